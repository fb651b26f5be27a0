"""Views made of views: a view of what another one shows, and several views of the same value as one index.

The parts draw nothing at random, so the whole shows the same for the same value and adds no privacy cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from veil.domain import Categories, Domain, Items, Record, Tuples
from veil.entropy import Source
from veil.errors import ParameterError, WireError
from veil.tools.json_documents import Json, take
from veil.view.base import Codes1, View

_DEEPEST = 8
Read = Callable[[Json], View]
"""How a view is read from a task: the registry of all views stands above this module."""


@dataclass(frozen=True, init=False)
class Composed(View):
    """What `then` shows of what `first` shows: the ancestor of a projected attribute, say.

    >>> from veil.entropy import Words
    >>> from veil.view import Ancestor, Project
    >>> record = Record.of(sex=["f", "m"], age=100)
    >>> age = Project(record, ("age",))
    >>> decade = Composed(age, Ancestor(age.domain, branching=10, level=1))
    >>> decade.apply(record.encode({"sex": ["f"], "age": [37]}), Words(b"")).tolist()
    [3]
    """

    held: Domain
    first: View
    then: View
    kind = "composed"

    def __init__(self, first: View, then: View) -> None:
        _check((first, then))
        if then.held != first.domain:
            raise ParameterError(f"the first view shows {first.domain}, but the second looks at {then.held}")
        object.__setattr__(self, "held", first.held)
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "then", then)

    @property
    def domain(self) -> Domain:
        return self.then.domain

    @property
    def values(self) -> Domain:
        return self.then.values

    def apply(self, codes: Any, source: Source) -> Codes1:
        return self.then.apply(self.first.apply(codes, source), source)

    def to_json(self) -> Json:
        return {"kind": "composed", "held": self.held.to_json(), "first": _bare(self.first), "then": _bare(self.then)}

    @classmethod
    def from_json(cls, document: Json, read: Read) -> Composed:
        """The view that a task describes; `read` reads the views that it is made of."""
        held, first, then = take(document, "composed", "held", "first", "then")
        shown = _read(first, held, read)
        return cls(shown, _read(then, shown.domain.to_json(), read))


@dataclass(frozen=True, init=False)
class Product(View):
    """What several views show of one value, as one index: the last view varies fastest. Labelled with tuples.

    >>> from veil.view import Ancestor, Project
    >>> record = Record.of(sex=["f", "m"], age=100)
    >>> age = Project(record, ("age",))
    >>> both = Product(Project(record, ("sex",)), Composed(age, Ancestor(age.domain, branching=10, level=1)))
    >>> both.domain, both.values.decode([13])
    (Categories.range(20), [('m', 3)])
    """

    held: Domain
    views: tuple[View, ...]
    kind = "product"

    def __init__(self, *views: View) -> None:
        _check(views)
        if len(views) < 2 or any(view.held != views[0].held for view in views):
            raise ParameterError("a product is one of at least two views, and all look at the same value")
        shown = [view.domain for view in views]
        if any(domain.code_bytes or isinstance(domain, (Items, Record)) for domain in shown):
            raise ParameterError("the views of a product show one index each")
        if math.prod(domain.size for domain in shown) >= 2**53:
            raise ParameterError("these views show 2^53 combinations or more")
        object.__setattr__(self, "held", views[0].held)
        object.__setattr__(self, "views", tuple(views))

    @property
    def domain(self) -> Categories:
        return Categories.range(math.prod(view.domain.size for view in self.views))

    @property
    def values(self) -> Tuples:
        return Tuples(tuple(view.values for view in self.views))

    def apply(self, codes: Any, source: Source) -> Codes1:
        index = np.zeros(len(codes), dtype=np.uint64)
        for view in self.views:
            index = index * np.uint64(view.domain.size) + view.apply(codes, source)
        return index

    def to_json(self) -> Json:
        return {"kind": "product", "held": self.held.to_json(), "views": [_bare(view) for view in self.views]}

    @classmethod
    def from_json(cls, document: Json, read: Read) -> Product:
        """The view that a task describes; `read` reads the views that it is made of."""
        held, views = take(document, "product", "held", "views")
        if not isinstance(views, list):
            raise WireError("the views of a product are a list")
        return cls(*(_read(view, held, read) for view in views))


def _bare(view: View) -> Json:
    """A view as it stands within another: what it looks at is known from there."""
    return {key: value for key, value in view.to_json().items() if key != "held"}


def _read(document: Any, held: Json, read: Read) -> View:
    if not isinstance(document, dict) or "held" in document:
        raise WireError("a view within another has no domain of its own")
    return read({**document, "held": held})


def _check(views: tuple[Any, ...]) -> None:
    if not all(isinstance(view, View) for view in views):
        raise ParameterError("expected views")
    if any(view.random for view in views):
        raise ParameterError("a view that draws (SampleItem, SampleContained) is no part of another")
    if max((_depth(view) for view in views), default=0) >= _DEEPEST:
        raise ParameterError("views are composed at most eight deep")


def _depth(view: View) -> int:
    parts = (view.first, view.then) if isinstance(view, Composed) else view.views if isinstance(view, Product) else ()
    return 1 + max(map(_depth, parts), default=0)
