"""Text from outside, made safe to print: file names, labels, and what a collector or another party sends.

Terminals act on control characters, line breaks forge lines of a log, and bidirectional marks reorder what people read.
"""

from __future__ import annotations

import unicodedata

__all__ = ["escape_lines", "escape_text"]

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


def _is_safe(character: str) -> bool:
    return character.isprintable() or character in _SAFE or unicodedata.category(character) == "Zs"
