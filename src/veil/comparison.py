"""Errors of results on people whose values are known, and a comparison of several studies by them.

For experiments on data like your own, before a real collection. Values are read from a result's table by the names of
its columns. Of the kinds of results, only joint distributions are known here, which are many tables in one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Items, Numeric, Record
from veil.engines import Watch, unwatched
from veil.entropy import SeededForExperiments, Words
from veil.errors import InputError
from veil.histogram import Questions
from veil.marginals import Joint
from veil.marginals.known import KnownJoint
from veil.marginals.marginal import CellTable
from veil.numeric import without_bands
from veil.planning.rebuilding import at_epsilon
from veil.privacy import Guarantee
from veil.results.base import Result, Truth
from veil.results.units import Unit, make_table
from veil.simulation import walk_rounds
from veil.study import Study, StudyRun
from veil.survey import People, Survey
from veil.view import Identity, SampleContained, SampleItem, View

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

__all__ = ["Comparison", "TrueValues", "compare"]

Floats = NDArray[np.float64]
Shares = Mapping[Any, float]


class TrueValues:
    """What people really hold, as codes of the domain of a survey, or of a study.

    A result of one question tells what that question's view shows; all other results tell what people hold.

    >>> from veil import GRR, simulate
    >>> from veil.survey import People, Survey
    >>> survey = Survey(GRR(epsilon=4.0, domain=["tea", "coffee"]))
    >>> values = ["tea"] * 900 + ["coffee"] * 100
    >>> held, found = TrueValues(survey, survey.domain.encode(values)), simulate(survey, values)[0]
    >>> held.truth(found), bool(held.error(found) < 0.03)
    ([0.9, 0.1], True)
    """

    def __init__(self, asked: Survey | Study, codes: Any) -> None:
        self._survey = asked if isinstance(asked, Survey) else asked.survey
        self._codes = codes.codes if isinstance(codes, People) else codes
        one = 0 if len(self._survey.questions) == 1 else None
        self._question = asked.question if isinstance(asked, Questions) and asked.question is not None else one
        self._known: dict[tuple[View, int | None], Shares] = {}
        self.k: int = getattr(asked, "k", 2)
        """Of a study of joint distributions: of how many attributes the marginals are."""

    def truth(self, result: Result, question: int | None = None) -> list[float] | None:
        """What is true of each row of a result's table: shares, or a mean; None where that is not known.

        `question` is that of one part of the results of a whole survey.
        """
        if isinstance(result, (Joint, CellTable)):
            known = self._joint(result.record)
            return None if known is None else known.truth(result)
        view = self._view(result, question)
        return None if view is None else self._truth(view, result.table())

    def error(self, result: Result) -> float:
        """How far a result is off: the root mean square over its questions, and over what is asked in each.

        Of values or sets: of their shares; values that are among the most frequent ones and were not found count as
        estimated at 0. Of a distribution: of the share of people below each bucket's end, which does not depend on how
        many buckets there are. Of a mean: its distance from the truth; with a variance, also that of the standard
        deviation. Of a joint distribution: the root of the mean, over marginals, of the sum of the squared errors of
        their cells; of as many attributes as the study is for (its k), and of at most 50 of these marginals.
        """
        errors = [self._error(part, question) for question, part in result.parts()]
        return math.sqrt(float(np.mean(np.square(errors))))

    @cached_property
    def _records(self) -> KnownJoint | None:
        domain = self._survey.domain
        return KnownJoint.of(domain, self._codes) if isinstance(domain, Record) else None

    def _joint(self, record: Record) -> KnownJoint | None:
        """The true joint distribution, where these attributes are some of those that people hold."""
        known = self._records
        return None if known is None or not set(record.attributes) <= set(known.record.attributes) else known

    def _view(self, result: Result, question: int | None) -> View | None:
        """What shows the values that a result tells: its question's view, or all that people hold; None if neither."""
        told, whole = getattr(result, "domain", None), Identity(self._survey.domain)
        number = self._question if question is None else question
        if told is not None and number is not None:
            view = self._survey.questions[number].view
            if told in (view.values, view.domain):
                return whole if isinstance(view, SampleItem) else view  # a random item: the truth is of the whole set
        return whole if told is None or told == whole.held else None

    def _truth(self, view: View, table: pyarrow.Table) -> list[float] | None:
        names = table.column_names
        if "from" in names and isinstance(view.domain, Numeric):
            starts, held = view.domain.numbers(table["from"].to_pylist()), self._numbers(view)
            places = np.searchsorted(starts, held, side="right") - 1
            return (np.bincount(places, minlength=len(starts)) / len(held)).tolist()  # type: ignore[no-any-return]
        if "frequency" in names:
            cells = table.column(0).to_pylist()
            if names[0] == "items":
                return self._containing(self._places(cells))
            shares = self._shares(view)
            return [shares.get(_name(cell), 0.0) for cell in cells]
        if "mean" in names and isinstance(view.domain, Numeric):
            return [float(self._numbers(view).mean())]
        return None

    def _error(self, result: Result, question: int | None) -> float:
        joint = self._joint(result.record) if isinstance(result, (Joint, CellTable)) else None
        if joint is not None and isinstance(result, (Joint, CellTable)):
            return math.sqrt(joint.sse(result, self.k))
        view, table = self._view(result, question), result.table()
        known = None if view is None else self._truth(view, table)
        if view is None or known is None:
            raise InputError("the truth of these results is not known: compare studies of shares, numbers or means")
        if "frequency" not in table.column_names:
            assert isinstance(view.domain, Numeric)
            off = view.domain.numbers(table["mean"].to_pylist()) - known
            if "variance" in table.column_names:
                spread = math.sqrt(max(table["variance"][0].as_py(), 0.0))
                off = np.append(off, spread - self._numbers(view).std())
            return math.sqrt(float(np.mean(off**2)))
        off = np.asarray(table["frequency"].to_pylist(), dtype=np.float64) - known
        if "from" in table.column_names:
            off = np.cumsum(off)
        else:
            off = np.concatenate([off, self._missed(table.column(0).to_pylist(), view)])
        return math.sqrt(float(np.mean(off**2))) if len(off) else 0.0

    def _missed(self, found: Sequence[Any], view: View) -> list[float]:
        """The shares of what is among the most frequent and was not found."""
        there = set(map(_name, found))
        sets = any(isinstance(cell, list) for cell in found)
        shares = self._shares(view, len(found)) if sets else self._shares(view)
        best = heapq.nlargest(len(found), shares, key=lambda value: shares[value])
        return [shares[value] for value in best if value not in there]

    def _numbers(self, view: View) -> Floats:
        """What the people hold, as numbers."""
        assert isinstance(view.domain, Numeric)
        return np.asarray(view.domain.numbers(view.domain.decode(view.apply(self._codes, Words(b"")))))

    def _shares(self, view: View, k: int | None = None) -> Shares:
        """The share of the people who hold each value, or each item; with k, sets of items, the k most frequent."""
        if (view, k) not in self._known:
            self._known[view, k] = self._counted(view, k)
        return self._known[view, k]

    def _counted(self, view: View, k: int | None) -> Shares:
        people = len(self._codes)
        if isinstance(view, SampleContained):
            names = map(_name, view.values.decode(range(view.values.size)))
            return dict(zip(names, self._containing(view.candidates), strict=True))
        if isinstance(view.domain, Items):
            universe = view.domain.universe
            if k is not None:
                best = self._codes.top_itemsets(k, universe.size).items()
                return {_name(universe.decode(list(items))): count / people for items, count in best}
            names = map(_name, universe.decode(range(universe.size)))
            return dict(zip(names, (self._codes.count_items(universe.size) / people).tolist(), strict=True))
        values, counts = np.unique(view.apply(self._codes, Words(b"")), axis=0, return_counts=True)
        return dict(zip(map(_name, view.values.decode(values)), (counts / people).tolist(), strict=True))

    def _places(self, sets: Sequence[Sequence[str]]) -> list[list[int]]:
        """Sets of items as they stand in a table, as codes."""
        domain = self._survey.domain
        assert isinstance(domain, Items)
        places = {str(item): place for place, item in enumerate(domain.universe.decode(range(domain.universe.size)))}
        return [[places[item] for item in items] for items in sets]

    def _containing(self, sets: Sequence[Sequence[int]]) -> list[float]:
        """The share of the people who hold all items of each set."""
        owners = np.repeat(np.arange(len(self._codes)), np.diff(self._codes.offsets))
        shares = []
        for items in sets:
            wanted = np.isin(self._codes.items, items)
            has = np.bincount(owners[wanted], minlength=len(self._codes)) == len(items)
            shares.append(float(has.mean()))
        return shares


def _name(cell: Any) -> str | tuple[str, ...] | None:
    """A value, the values of a pair or a set of items, the same for a value and for how it stands in a table."""
    if isinstance(cell, list):
        return tuple(map(str, cell))
    if isinstance(cell, tuple):
        return ", ".join(map(str, cell))
    return None if cell is None else str(cell)


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """How far each study was off at each epsilon, in several runs on the same people: the smaller, the better."""

    kind: ClassVar[str] = "comparison"
    studies: tuple[str, ...]
    epsilons: tuple[float, ...]
    errors: Floats
    """By study, epsilon and run."""
    n: int
    shares: bool = True
    """Whether errors are of shares of the people; else of means and deviations, in the units that people hold."""
    lineage: tuple[str, ...] = ()
    guarantee: Guarantee | None = field(default=None, kw_only=True)

    @property
    def population(self) -> int:
        return self.n

    @property
    def _unit(self) -> Unit:
        return Unit("share" if self.shares else "length")

    @property
    def _means(self) -> tuple[Floats, Floats]:
        """The mean over all runs, and its standard error; not known of one run."""
        runs = self.errors.shape[2]
        spread = (
            self.errors.std(axis=2, ddof=1) / math.sqrt(runs) if runs > 1 else np.full(self.errors.shape[:2], np.nan)
        )
        return self.errors.mean(axis=2), spread

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """One row per study and epsilon."""
        means, spreads = self._means
        return make_table(
            {
                "study": ([name for name in self.studies for _ in self.epsilons], Unit("label")),
                "epsilon": (list(self.epsilons) * len(self.studies), Unit("label")),
                "error": (means.ravel(), self._unit),
                "stderr": (spreads.ravel(), self._unit),
            }
        )

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """Which study was off the least at each epsilon."""
        best = self._means[0].argmin(axis=0)
        named = [{"epsilon": e, "study": self.studies[i]} for e, i in zip(self.epsilons, best, strict=True)]
        return {"runs": int(self.errors.shape[2]), "best": named}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"best.epsilon": Unit("label")}

    def summary_table(self, level: float = 0.95, rows: int = 10, truth: Truth | None = None) -> pyarrow.Table:
        """All rows: they are few."""
        return self.table(level)

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """Error against epsilon, one line per study, with standard errors. Needs `veil-ldp[plot]`."""
        from veil.results.render.plot import plot_lines

        means, spreads = self._means
        scale, of = (100, f"error, % of {self.n:,} people") if self.shares else (1, f"error, {self.n:,} people")
        lines = {name: (scale * means[i], scale * spreads[i]) for i, name in enumerate(self.studies)}
        return plot_lines(self.epsilons, lines, "epsilon", of, ax=ax)

    def plot_height(self, k: int = 20) -> float:
        return 4.0


def compare(
    studies: Mapping[str, Study],
    codes: Mapping[str, Any],
    epsilons: Sequence[float],
    runs: int = 5,
    seed: int = 0,
    watch: Watch = unwatched,
) -> Comparison:
    """Run each study at each epsilon on people whose values are known (codes of its domain), several times.

    >>> from veil import GRR, OUE
    >>> from veil.histogram import Histogram
    >>> studies = {"GRR": Histogram(GRR(1.0, 64)), "OUE": Histogram(OUE(1.0, 64))}
    >>> people = np.arange(2_000, dtype=np.uint64) % 4
    >>> found = compare(studies, dict.fromkeys(studies, people), [1.0], runs=2)
    >>> found.facts()["best"]
    [{'epsilon': 1.0, 'study': 'OUE'}]
    """
    if not studies or not epsilons or runs < 1:
        raise InputError("compare needs at least one study, one epsilon and one run")
    if len(set(epsilons)) < len(epsilons):
        raise InputError("expected each epsilon once: one is given twice")
    errors, told = np.zeros((len(studies), len(epsilons), runs)), set[tuple[bool, bool, tuple[str, ...]]]()
    with watch("comparing", errors.size) as advance:
        for i, (name, study) in enumerate(studies.items()):
            for j, epsilon in enumerate(epsilons):
                asked = without_bands(at_epsilon(study, epsilon))  # nobody looks at them here
                held = TrueValues(asked, codes[name])
                for k in range(runs):
                    source = SeededForExperiments(seed + i + len(studies) * (j + len(epsilons) * k))
                    run = StudyRun(asked)
                    for _ in walk_rounds(run, codes[name], source, source):
                        pass
                    assert run.result is not None
                    errors[i, j, k] = held.error(run.result)
                    if isinstance(run.result, Joint):
                        told.add((False, False, (str(held.k), *run.result.record.names)))
                    else:
                        columns = run.result.table().column_names
                        told.add(("mean" in columns, "variance" in columns, ()))
                    advance(1)
    people = max(len(codes[name]) for name in studies)
    if len(told) > 1:
        raise InputError(
            "shares are compared with shares, means with means, variances with variances, and joint distributions with"
            " those of the same attributes that are planned for marginals of as many of them (k)"
        )
    shares = not any(mean for mean, _, _ in told)
    return Comparison(tuple(studies), tuple(map(float, epsilons)), errors, people, shares=shares)
