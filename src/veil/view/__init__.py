"""Views: maps from the value that a person holds to the index of a smaller domain that one question asks about.

A View maps codes of its `held` domain to codes of its `domain`; it may itself be random. `scale` is the factor from
estimated frequencies to frequencies of held values, and `outer` is the guarantee of a mechanism behind the view with
respect to the held value (privacy amplification). Runs on the device.

    Identity    the value itself                   Segment     bits [start, stop) of a string; a prefix starts at 0
    Ancestor    its ancestor in a b-ary tree       Project     some attributes of a record, as one index
    SampleItem  one item of a set, padded with dummies to `length` (padding-and-sampling)
    ChannelSegment    a segment of a string, with the channel that a public hash assigns to the string
    SampleContained, CountContained   one of the listed candidates that a set contains; how many it contains
    SetSize           the number of items of a set
    SquaredDistance   the squared distance of a number from a public one
    BitsOf, Parity    some bits of a record's attributes, as one index; the parity of some bits
    Composed, Product a view of what another one shows; several views of one value, as one index

`VIEWS` is the table of all kinds, and `view_from_json` reads the view of a task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from veil.tools.json_documents import Json, by_kind
from veil.view.base import View
from veil.view.bits import Bit, BitsOf, ChannelSegment, Parity, Segment, bits_of, numbers_of, prefix, width_of
from veil.view.composed import Composed, Product
from veil.view.sets import MOST_LOAD, CountContained, ItemSets, SampleContained, SampleItem, SetSize
from veil.view.values import Ancestor, Identity, Project, SquaredDistance

__all__ = [
    "MOST_LOAD",
    "VIEWS",
    "Ancestor",
    "Bit",
    "BitsOf",
    "ChannelSegment",
    "Composed",
    "CountContained",
    "Identity",
    "ItemSets",
    "Parity",
    "Product",
    "Project",
    "SampleContained",
    "SampleItem",
    "Segment",
    "SetSize",
    "SquaredDistance",
    "View",
    "bits_of",
    "numbers_of",
    "prefix",
    "view_from_json",
    "width_of",
]

VIEWS: dict[str, Callable[[Json], View]] = {
    "identity": Identity.from_json,
    "segment": Segment.from_json,
    "channel-segment": ChannelSegment.from_json,
    "ancestor": Ancestor.from_json,
    "project": Project.from_json,
    "bits-of": BitsOf.from_json,
    "parity": Parity.from_json,
    "squared-distance": SquaredDistance.from_json,
    "sample-item": SampleItem.from_json,
    "sample-contained": SampleContained.from_json,
    "count-contained": CountContained.from_json,
    "set-size": SetSize.from_json,
    "composed": lambda document: Composed.from_json(document, view_from_json),
    "product": lambda document: Product.from_json(document, view_from_json),
}


def view_from_json(document: Any) -> View:
    """The view that a task describes."""
    return by_kind(document, VIEWS, "a view")
