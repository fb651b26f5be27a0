"""Text from outside in messages: escaped, so that it is safe to print, and compared with names that are known.

Terminals act on control characters, line breaks forge lines of a log, and bidirectional marks reorder what people read.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

__all__ = ["escape_lines", "escape_text", "unknown_name"]

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
