"""What an experiment gives: exhibits (a figure and its table) and the paper's claims, each with a verdict.

Data only. How it is drawn is `drawing`, how it is written is `writing`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
Advance = Callable[[int], None]
Watch = Callable[[str, int | None], AbstractContextManager[Advance]]
"""Shows progress: called with what is done and how many steps it has; gives a function to be called after each."""


@dataclass(frozen=True)
class Setting:
    """How to run an experiment: quickly or in full, with which data folder, and who watches."""

    quick: bool = False
    data: Path | None = None
    watch: Watch = lambda what, total: nullcontext(lambda steps: None)
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Parts of the experiment's plan that are not as in full: fewer runs or points."""

    def pick(self, full: T, quick: T) -> T:
        """One of the two: how much is run."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what was measured, and whether it holds. `exact` ones involve no chance."""

    says: str
    measured: str
    holds: bool
    exact: bool = False

    def verdict(self, quick: bool) -> str:
        """In words; a quick run decides only what involves no chance."""
        if quick and not self.exact:
            return "indicative"
        return "holds" if self.holds else "does not hold"


@dataclass(frozen=True)
class Curve:
    """One method in a panel: means, their standard deviation (NaN where there is one run), and theory beside it."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    spread: tuple[float, ...] | None = None
    theory: tuple[float, ...] | None = None
    faint: bool = False  # whether it is drawn dashed, as an addition to another curve or to the paper


@dataclass(frozen=True)
class Panel:
    """Curves over one axis. `x_log` is the base of a logarithmic axis, 0 for a linear one; `marks` are dotted lines."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    x_log: int = 0
    y_log: bool = True
    marks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Grid:
    """A table of numbers to be seen at a glance: one row and one column of labels, and which numbers are red.

    A number that is not there is NaN. Colours go from bad at `low` to good at `high`, which may be the smaller one.
    """

    title: str
    y_label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    numbers: tuple[tuple[float, ...], ...]
    fails: tuple[tuple[bool, ...], ...]
    low: float = 0.8
    high: float = 1.0
    row_label: str = ""


Parts = Iterator[Panel | Grid | Claim | str]  # what an exhibit is made of: panels, grids, claims and notes


@dataclass(frozen=True)
class Exhibit:
    """A figure of the paper: its panels, what is claimed about it, and notes on how it was made."""

    name: str
    title: str
    panels: tuple[Panel | Grid, ...]
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]


def exhibit(parts: Callable[P, Parts]) -> Callable[P, Exhibit]:
    """Make an exhibit of what a function yields: panels, claims and notes, in any order.

    Its title is the first line of the function's docstring, with the function's arguments filled in; its files are
    named as the title begins, "figure-4" for "Figure 4: the noise".
    """
    text, signature = (parts.__doc__ or "").partition("\n")[0].rstrip("."), inspect.signature(parts)

    @wraps(parts)
    def made(*args: P.args, **kwargs: P.kwargs) -> Exhibit:
        title, found = text.format(**signature.bind(*args, **kwargs).arguments), list(parts(*args, **kwargs))
        kinds: Any = (tuple(part for part in found if isinstance(part, kind)) for kind in (Panel | Grid, Claim, str))
        return Exhibit(title.partition(":")[0].lower().replace(" ", "-"), title, *kinds)

    return made


@dataclass(frozen=True)
class Reproduction:
    """All exhibits of an experiment, and the facts that a reader needs to run it again."""

    title: str
    exhibits: tuple[Exhibit, ...]
    facts: dict[str, str]
    name: str = ""
    quick: bool = False

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of all exhibits."""
        return tuple(claim for exhibit in self.exhibits for claim in exhibit.claims)

    @property
    def summary(self) -> str:
        """How many claims hold, in words."""
        judged = [claim for claim in self.claims if claim.exact or not self.quick]
        held = f"{sum(claim.holds for claim in judged)} of {len(judged)} claims hold"
        return held + (f"; a quick run only indicates the other {len(self.claims) - len(judged)}" if self.quick else "")


def brief(value: float) -> str:
    """A number as people read it: three significant digits, thousands in groups.

    >>> brief(0.01234), brief(1234.4), brief(123456789.0)
    ('0.0123', '1,234', '1.23e8')
    """
    size = abs(value)
    if value == round(value) and size < 1e4:
        return f"{round(value):,}"
    if size >= 1e7 or 0 < size < 1e-3:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.3g}"
