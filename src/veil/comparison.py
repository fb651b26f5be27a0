"""Trials beside the truth: what is true of people whose values are known, how far a result is off, which study is best.

For experiments on data like one's own, before anybody is asked. Everything is read off a result's table, by the names
of its columns; nothing here knows the kinds of results.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.datasets.transactions import Transactions
from veil.domain import Domain, Items, Numeric, Record
from veil.engines import Watch, unwatched
from veil.entropy import Seeded, Words
from veil.errors import EntropyError, InputError
from veil.planning.epsilon import at_epsilon
from veil.privacy import Guarantee
from veil.results.base import Result, Truth
from veil.results.units import Unit, make_table
from veil.simulation import walk_rounds
from veil.study import Study, StudyRun
from veil.survey import Survey

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

__all__ = ["Comparison", "Held", "compare"]

Floats = NDArray[np.float64]
Shares = Mapping[Any, float]


class Held:
    """What people really hold, as codes of a survey's domain.

    >>> from veil import GRR, simulate
    >>> from veil.survey import Survey
    >>> survey = Survey(GRR(epsilon=4.0, domain=["tea", "coffee"]))
    >>> values = ["tea"] * 900 + ["coffee"] * 100
    >>> held, found = Held(survey, survey.domain.encode(values)), simulate(survey, values)[0]
    >>> held.truth(found), bool(held.error(found) < 0.03)
    ([0.9, 0.1], True)
    """

    def __init__(self, survey: Survey, codes: Any) -> None:
        self._survey, self._codes = survey, codes
        self._known: dict[tuple[int | None, int | None], Shares] = {}

    def truth(self, result: Result, question: int | None = None) -> list[float] | None:
        """What is true of each row of a result's table: shares, or a mean; None where no row has a truth.

        `question` is that of one part of the results of a whole survey.
        """
        table = result.table()
        names, (domain, codes) = table.column_names, self._seen(question)
        if "from" in names and isinstance(domain, Numeric):
            starts = domain.numbers(table["from"].to_pylist())
            places = np.searchsorted(starts, domain.numbers(domain.decode(codes)), side="right") - 1
            return (np.bincount(places, minlength=len(starts)) / len(codes)).tolist()  # type: ignore[no-any-return]
        if "frequency" in names:
            cells = table.column(0).to_pylist()
            if names[0] == "items":
                return self._containing(cells)
            shares = self._shares(question)
            return [shares.get(cell, 0.0) for cell in cells]
        if "mean" in names and isinstance(domain, Numeric):
            return [float(domain.numbers(domain.decode(codes)).mean())]
        return None

    def error(self, result: Result) -> float:
        """How far a result is off: the root mean square over its questions, and over what is asked in each.

        Of values or sets: of their shares; values that are among the most frequent ones and were not found count as
        estimated at 0. Of a distribution: of the share of people below each bucket's end, which does not depend on how
        many buckets there are. Of a mean: its distance from the truth.
        """
        errors = [self._error(part, question) for question, part in result.parts()]
        return math.sqrt(float(np.mean(np.square(errors))))

    def _error(self, result: Result, question: int | None) -> float:
        known, table = self.truth(result, question), result.table()
        if known is None:
            raise InputError("the truth of these results is not known: compare studies of shares, numbers or means")
        if "frequency" not in table.column_names:
            domain, _ = self._seen(question)
            assert isinstance(domain, Numeric)
            return abs(float(domain.numbers(table["mean"].to_pylist())[0]) - known[0])
        off = np.asarray(table["frequency"].to_pylist(), dtype=np.float64) - known
        if "from" in table.column_names:
            off = np.cumsum(off)
        else:
            off = np.concatenate([off, self._missed(table.column(0).to_pylist(), question)])
        return math.sqrt(float(np.mean(off**2))) if len(off) else 0.0

    def _missed(self, found: Sequence[Any], question: int | None) -> list[float]:
        """The shares of what is among the most frequent and was not found."""
        if any(isinstance(cell, list) for cell in found):
            there = {_set_name(cell) for cell in found}
            return [share for name, share in self._shares(question, len(found)).items() if name not in there]
        shares = self._shares(question)
        best = heapq.nlargest(len(found), shares, key=lambda value: shares[value])
        there = set(found)
        return [shares[value] for value in best if value not in there]

    def _seen(self, question: int | None) -> tuple[Domain, Any]:
        """What is told by a question: what people hold, unless it looks at a part of it."""
        domain = self._survey.domain
        if question is None and isinstance(domain, Record) and len(self._survey.questions) == 1:
            question = 0
        if question is None:
            return domain, self._codes
        view = self._survey.question(question).view
        try:
            return view.domain, view.apply(self._codes, Words(b""))
        except EntropyError:  # a random part of a set: the truth is that of the whole set
            return domain, self._codes

    def _shares(self, question: int | None, k: int | None = None) -> Shares:
        """The share of the people who hold each value, or each item; with k, sets of items, the k most frequent."""
        if (question, k) not in self._known:
            self._known[question, k] = self._counted(question, k)
        return self._known[question, k]

    def _counted(self, question: int | None, k: int | None) -> Shares:
        domain, codes = self._seen(question)
        if isinstance(domain, Items):
            known, universe = Transactions(codes, domain.universe.size, "", stand_in=False), domain.universe
            if k is not None:
                best = known.top_itemsets(k).items()
                return {_set_name(universe.decode(list(items))): count / len(codes) for items, count in best}
            return dict(zip(universe.decode(range(universe.size)), (known.held / len(codes)).tolist(), strict=True))
        values, counts = np.unique(codes, axis=0, return_counts=True)
        return dict(zip(domain.decode(values), (counts / len(codes)).tolist(), strict=True))

    def _containing(self, sets: Sequence[Sequence[str]]) -> list[float]:
        """The share of the people who hold all items of each set."""
        domain = self._survey.domain
        assert isinstance(domain, Items)
        places = {str(item): place for place, item in enumerate(domain.universe.decode(range(domain.universe.size)))}
        owners = np.repeat(np.arange(len(self._codes)), np.diff(self._codes.offsets))
        shares = []
        for items in sets:
            wanted = np.isin(self._codes.items, [places[item] for item in items])
            has = np.bincount(owners[wanted], minlength=len(self._codes)) == len(items)
            shares.append(float(has.mean()))
        return shares


def _set_name(items: Sequence[Any]) -> tuple[str, ...]:
    """A set of items as it stands in a table."""
    return tuple(map(str, items))


# -- several studies ---------------------------------------------------------------------------------------------------


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
    """Whether errors are of shares of the people; else of means, in the units that people hold."""
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
        """Error against epsilon, one line per study, with standard errors. Needs `veil[plot]`."""
        from veil.plot import plot_lines

        means, spreads = self._means
        scale, of = (
            (100, f"error, % of {self.n:,} people") if self.shares else (1, f"error of the mean, {self.n:,} people")
        )
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
    errors, of_shares = np.zeros((len(studies), len(epsilons), runs)), set[bool]()
    with watch("comparing", errors.size) as advance:
        for i, (name, study) in enumerate(studies.items()):
            for j, epsilon in enumerate(epsilons):
                asked = at_epsilon(study, epsilon)
                held = Held(asked.survey, codes[name])
                for k in range(runs):
                    source = Seeded(seed + i + len(studies) * (j + len(epsilons) * k))
                    run = StudyRun(asked)
                    for _ in walk_rounds(run, codes[name], source, source):
                        pass
                    assert run.result is not None
                    errors[i, j, k] = held.error(run.result)
                    of_shares.add("mean" not in run.result.table().column_names)
                    advance(1)
    people = max(len(codes[name]) for name in studies)
    if len(of_shares) > 1:
        raise InputError("means are compared with means, and shares with shares: these studies tell both")
    return Comparison(tuple(studies), tuple(map(float, epsilons)), errors, people, of_shares.pop())
