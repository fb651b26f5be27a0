"""From what a person holds to what one question asks about: an index of a smaller domain.

A View maps codes of its `held` domain to codes of its `domain`; it may itself be random. `scale` is what an estimate
must be multiplied by to speak of the held values, and `outer` tells what a mechanism behind the view promises seen from
the held value (privacy amplification). Runs on the device.

    Identity    the value itself                   Segment     bits [start, stop) of a string; a prefix starts at 0
    Ancestor    its ancestor in a b-ary tree       Project     some attributes of a record, as one index
    SampleItem  one item of a set, padded with dummies to `length` (padding-and-sampling)
    ChannelSegment    a segment of a string behind a channel that a public hash puts it in
    SampleContained, CountContained, SetSize    what a set has of a list of candidates; how many items it has
    SquaredDistance   how far a number lies from a public one, squared
    BitsOf, Parity      some bits of a record's attributes, as one index; whether an odd number of them is set
    Composed, Product   a view of what another one shows; several views of one value, as one index

Views of sets through a list of candidates stand in `veil.view`.
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
