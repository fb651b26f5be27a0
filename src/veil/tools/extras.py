"""How to install an extra: of veil from where it came, so that nobody else's package of that name is meant."""

from __future__ import annotations

import functools
from pathlib import Path

__all__ = ["install"]


def install(extra: str) -> str:
    """The command that adds an extra, for messages.

    >>> install("plot").endswith("[plot]'")
    True
    """
    editable, source = _source()
    return f"pip install {'-e ' * editable}'{source}[{extra}]'"


@functools.cache
def _source() -> tuple[bool, str]:
    """What to name to pip, and whether to be edited: the folder that veil came from while it is there, or its name."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        came = json.loads(distribution("veil").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return False, "veil"
    url = urlsplit(came.get("url", ""))
    folder = Path(url2pathname(url.path))
    if url.scheme != "file" or not (folder / "pyproject.toml").exists():
        return False, "veil"
    return bool(came.get("dir_info", {}).get("editable")), str(folder)
