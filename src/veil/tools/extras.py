"""How to install an extra: from where veil came, or by the distribution's own name.

The distribution is called `veil-ldp`. The name `veil` on the public index belongs to somebody else, so no message may
ask for it.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from veil.errors import ExtraError

__all__ = ["install", "missing"]


def missing(need: str, extra: str) -> ExtraError:
    """The refusal of what needs a library of an extra that is not installed, with what to do.

    >>> str(missing("pictures need matplotlib", "plot")).partition(": ")[0]
    'pictures need matplotlib'
    """
    return ExtraError(f"{need}: {install(extra)}")


def install(extra: str) -> str:
    """The command that adds an extra, for messages.

    >>> "[plot]" in install("plot")
    True
    """
    import shlex

    origin = _origin()
    place = origin.get("url", "")
    asked = f"veil-ldp[{extra}]"
    if "vcs_info" in origin:
        asked = f"veil-ldp[{extra}] @ {origin['vcs_info']['vcs']}+{place}"
    elif (path := _path(place)) is not None:  # a clone, or a wheel
        asked = f"{path}[{extra}]"
    edited = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {edited}{shlex.quote(asked)}"


@functools.cache
def _origin() -> dict[str, Any]:
    """What pip wrote down about where veil came from (PEP 610); nothing where it came from an index."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return dict(json.loads(distribution("veil-ldp").read_text("direct_url.json") or "{}"))
    except PackageNotFoundError:
        return {}


def _path(place: str) -> Path | None:
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    url = urlsplit(place)
    path = Path(url2pathname(url.path))
    return path if url.scheme == "file" and path.exists() else None
