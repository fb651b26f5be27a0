"""Domains: the sets of values that people may hold.

A Domain turns values into codes and back, and refuses values outside of it. Codes are uint64 indices below `size`;
rows of bytes for values above 64 bits; a matrix of indices for records; `SetCodes` for sets of items. A domain is
public: it must not be derived from private data.

    Categories   one of a list of labels, or of 0 .. d-1        Bits     a string of m bits
    Integers     one of lo .. hi                                Text     a string of at most `max_bytes` UTF-8 bytes
    Interval     a real number, on a grid of cells              Items    a set of items of a universe
                                                                Record   one value for each named attribute

`Tuples` labels the cells of several attributes in a result; no person holds one. `domain_from_json` reads a domain of
a task, and `as_domain` takes an integer or a list as a domain.
"""

from veil.domain.base import Codes, Domain, SetCodes
from veil.domain.categories import Categories
from veil.domain.composite import (
    DOMAINS,
    DomainLike,
    Items,
    Record,
    Tuples,
    as_domain,
    domain_from_json,
    labels_from_json,
)
from veil.domain.numbers import Integers, Interval, Numeric
from veil.domain.strings import Bits, Text

__all__ = [
    "DOMAINS",
    "Bits",
    "Categories",
    "Codes",
    "Domain",
    "DomainLike",
    "Integers",
    "Interval",
    "Items",
    "Numeric",
    "Record",
    "SetCodes",
    "Text",
    "Tuples",
    "as_domain",
    "domain_from_json",
    "labels_from_json",
]
