"""Names of files and folders that are patterns, options, addresses, columns or markup wherever a path is not data."""

from __future__ import annotations

import os

BAIT = ("shop", "ship", "s", "a", "b")
"""Names that patterns among ODD_NAMES match."""

ODD_NAMES = (
    *("s*", "sh?p", "[as]", "[!x]", "*", "**", "?", "[", "]", "[]", "{a,b}", "s*\\", "\\*", "back\\slash", "a\\[b]"),
    *("it's", 'a "b"', "50%", "%s %(a)s", "{0}", "{", "}", "$HOME", "`a`", "a;b", "a&b", "a#b", "<b>a", "[red]a"),
    *("a\nb", "a\rb", "a\tb", "\x1b[31ma", "\u202egnp", "\u2066a\u2069", "\u200b", "a b", " a", "a ", "é", "e\u0301"),
    *("-a", "--help", "~", "~root", "a=1", "s3:", "http:", "file:", "a:b", "@a", "a,b"),
)
"""Some of them match names in BAIT."""

if os.name != "posix":  # other systems refuse most of these
    ODD_NAMES = ("[as]", "{a,b}", "it's", "50%", "{0}", "a b", "-a", "~", "a=1")
