"""What an experiment gives: exhibits (a figure and its table) and the paper's claims, each with a verdict.

Data only. How it is drawn is `drawing`, how it is written is `writing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Advance", "Claim", "Curve", "Exhibit", "Panel", "Setting", "Study", "Watch", "brief", "unwatched"]

Advance = Callable[[int], None]
Watch = Callable[[str, int | None], AbstractContextManager[Advance]]
"""Shows progress: called with what is done and how many steps it has; gives a function to be called after each."""


@contextmanager
def unwatched(what: str, total: int | None = None) -> Iterator[Advance]:
    """Progress that nobody watches."""
    yield lambda steps: None


@dataclass(frozen=True)
class Setting:
    """How to run an experiment: quickly or in full, with which data folder, and who watches."""

    quick: bool = False
    data: Path | None = None
    watch: Watch = unwatched


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what was measured, and whether it holds. `exact` ones involve no chance."""

    says: str
    measured: str
    holds: bool
    exact: bool = False

    @property
    def verdict(self) -> str:
        return "holds" if self.holds else "does not hold"


@dataclass(frozen=True)
class Curve:
    """One method in a panel: means, and where there are several runs their standard deviation; theory beside it."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    spread: tuple[float, ...] | None = None
    theory: tuple[float, ...] | None = None
    faint: bool = False
    """Whether it is drawn dashed, as an addition to another curve or to the paper."""

    def at(self, x: float) -> float:
        """The mean at one of the points."""
        return self.y[self.x.index(x)]


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

    def curve(self, name: str) -> Curve:
        """The curve of that name."""
        return next(curve for curve in self.curves if curve.name == name)


@dataclass(frozen=True)
class Exhibit:
    """A figure of the paper: its panels, what is claimed about it, and remarks on how it was made."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Study:
    """All exhibits of an experiment, and the facts that a reader needs to run it again."""

    name: str
    title: str
    exhibits: tuple[Exhibit, ...]
    facts: dict[str, str]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of all exhibits."""
        return tuple(claim for exhibit in self.exhibits for claim in exhibit.claims)


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
