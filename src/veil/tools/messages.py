"""Texts of messages: escaping of untrusted text, suggestions for unknown names, and how to install an extra.

Untrusted text can control a terminal, forge lines of a log, and reorder what people read by bidirectional marks, so it
is escaped. The distribution is called `veil-ldp`; messages never tell anybody to install `veil`, because that name on
the public index belongs to somebody else.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from veil.errors import ExtraError, MismatchError, WireError

_MAX_LISTED = 20

# Zero-width joiners belong to words of several scripts and to emoji; spaces of any width are harmless.
_SAFE = frozenset("\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}")


def escape_text(text: str) -> str:
    r"""Return `text` as one line that can neither format a terminal nor reorder or break what stands beside it.

    Characters that are not printable become the escape sequences of Python literals.

    >>> print(escape_text("caf\u00e9 \x1b[31mred\n"))
    café \x1b[31mred\n
    """
    if text.isprintable():
        return text
    return "".join(c if _is_safe(c) else c.encode("unicode_escape").decode("ascii") for c in text)


def escape_lines(text: str) -> str:
    """Return `text` with each line escaped by `escape_text`; its line feeds stay."""
    return "\n".join(map(escape_text, text.split("\n")))


def unknown_name(expected: str, name: Any, known: Iterable[str], *, prefix: str = "") -> str:
    """Return a message about a name that is not known: with the nearest known names, or all where none is near.

    >>> print(unknown_name("a method", "admn", ["norm-sub", "admm"]))
    expected a method, got 'admn'; did you mean admm?
    >>> print(unknown_name("an engine", "gpu", ["local", "cuda"]))
    expected an engine (local, cuda), got 'gpu'
    """
    from difflib import get_close_matches

    names = list(known)
    folded = {one.removeprefix(prefix).casefold(): one for one in names}
    near = [folded[one] for one in get_close_matches(str(name).removeprefix(prefix).casefold(), folded, cutoff=0.65)]
    if near:
        return f"expected {expected}, got {name!r}; did you mean {' or '.join(near)}?"
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return f"expected {expected} ({', '.join(names[:_MAX_LISTED])}{more}), got {name!r}"


def _is_safe(character: str) -> bool:
    return character.isprintable() or character in _SAFE or unicodedata.category(character) == "Zs"


def missing_extra(need: str, extra: str) -> ExtraError:
    """The refusal of what needs a library of an extra that is not installed, with what to do.

    >>> str(missing_extra("pictures need matplotlib", "plot")).partition(": ")[0]
    'pictures need matplotlib'
    """
    return ExtraError(f"{need}: {install_command(extra)}")


def install_command(extra: str) -> str:
    """The command that adds an extra, for messages.

    >>> "[plot]" in install_command("plot")
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


@contextmanager
def name_file_in_errors(path: str | Path) -> Iterator[None]:
    """Add the name of a file to errors about its content that do not have it, where several files are read in a row."""
    try:
        yield
    except (WireError, MismatchError) as problem:
        if str(path) in str(problem):
            raise
        raise type(problem)(f"{path}: {problem}") from None
