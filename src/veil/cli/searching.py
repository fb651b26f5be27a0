"""What `veil hitters` does and shows: which search a task stands for, how files are searched, what is found.

A task does not say that it is PEM's, nor how many values to look for: any survey that asks for longer and longer
prefixes of one string can be searched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text as Shown

from veil.cli import tables
from veil.cli.outcome import Document
from veil.cli.pipeline import Watch, check_inputs, read_all
from veil.cli.progress import Advance
from veil.domain import Bits, Text
from veil.errors import InputError
from veil.files import read_values, values_of
from veil.hitters import PEM, HeavyHitters, HitterSearch, PrefixSearch, sensitivity_threshold
from veil.hitters.search import words
from veil.hitters.supports import Counted, Questions, Supported
from veil.mechanisms import PureOracle
from veil.protocol import Stored
from veil.study.continuations import Continuations
from veil.survey import OneOf, Question, Survey
from veil.tools.normal import critical
from veil.view import Segment

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "TaskSearch",
    "Wanted",
    "find_in_files",
    "hitters_document",
    "hitters_table",
    "hitters_tables",
    "plan_document",
    "plan_table",
    "search_of",
    "true_shares",
]

_ALPHA = 0.05
_USUAL_BYTES = 16


@dataclass(frozen=True)
class Wanted:
    """What to look for; None is what was not said."""

    k: int
    max_bytes: int | None = None
    bits: int | None = None
    oracle: str | None = None
    budget: int | None = None
    alphabet: str | None = None
    threshold: float | None = None

    def search(self, epsilon: float) -> PEM:
        """PEM for these wishes."""
        if self.bits is not None and self.max_bytes is not None:
            raise InputError("people hold text (--max-bytes) or strings of bits (--bits), not both")
        domain = Text(_USUAL_BYTES if self.max_bytes is None else self.max_bytes) if self.bits is None else None
        given: dict[str, Any] = {"alphabet": self.alphabet, "threshold": self.threshold}
        if self.oracle is not None:
            given["oracle"] = self.oracle.upper()
        if self.budget is not None:
            given["budget"] = self.budget
        return PEM(epsilon, domain or Bits(self.bits or 0), self.k, **given)


@dataclass(frozen=True)
class TaskSearch(PrefixSearch):
    """A search through the prefixes that a task asks for."""

    asked: Survey | None = None

    @property
    def survey(self) -> Survey:  # the task's own, where others make theirs
        assert self.asked is not None
        return self.asked


def search_of(survey: Survey, wanted: Wanted) -> TaskSearch:
    """The search that a task's reports are good for.

    >>> from veil import Bits
    >>> search_of(PEM(1.0, Bits(32), k=8).survey, Wanted(k=4)).lengths == PEM(1.0, Bits(32), k=8).lengths
    True
    """
    asks = [ask for _, ask in survey.ask.branches] if isinstance(survey.ask, OneOf) else [survey.ask]
    if not all(_asks_for_a_prefix(ask) for ask in asks):
        raise InputError("this task does not ask for prefixes of strings: expected one that `veil hitters plan` wrote")
    lengths = tuple(question.view.stop for question in survey.questions if isinstance(question.view, Segment))
    domain = survey.domain
    if not isinstance(domain, (Bits, Text)) or lengths[-1] != domain.bits or sorted(set(lengths)) != list(lengths):
        raise InputError("this task's prefixes do not get longer up to the whole string: it cannot be searched")
    epsilon = survey.question(0).mechanism.epsilon
    usual = PEM(epsilon, domain, wanted.k, groups=len(lengths))
    return TaskSearch(
        *(epsilon, domain, wanted.k, usual.keep, lengths),
        threshold=wanted.threshold,
        alphabet=wanted.alphabet,
        fitted=usual.fitted,
        asked=survey,
    )


def _asks_for_a_prefix(ask: Any) -> bool:
    if not isinstance(ask, Question) or not isinstance(ask.view, Segment):
        return False
    return not ask.view.start and isinstance(ask.mechanism, PureOracle)


# -- searching ---------------------------------------------------------------------------------------------------------


class _Watched(Counted):
    """Supports that say whose reports have been searched."""

    def __init__(self, stored: Stored, advance: Advance) -> None:
        super().__init__(stored)
        self._advance = advance

    def best(self, questions: Questions, candidates: Continuations, keep: int) -> Supported:
        found = super().best(questions, candidates, keep)
        self._advance(self.people(questions))
        return found


def find_in_files(search: HitterSearch, files: Sequence[Path], watch: Watch) -> HeavyHitters:
    """Runs at the collector: the heavy hitters in files of reports, gone through a chunk at a time, again and again."""
    check_inputs(*files)
    stored = search.own(Stored(search.survey, lambda: read_all(search.survey, files)))
    with watch("searching", stored.people) as advance:
        return search.search(_Watched(stored, advance))


def true_shares(search: PrefixSearch, values: Path, column: str | None, found: HeavyHitters) -> tuple[list[float], int]:
    """What is true in a file of values: the share of each value found, and how many of the k most frequent they are."""
    holders: dict[bytes, int] = {}
    for table in read_values(values, search.survey, column):
        codes, counts = np.unique(search.domain.encode(values_of(table, search.survey)), axis=0, return_counts=True)
        for code, count in zip(codes, counts, strict=True):
            holders[code.tobytes()] = holders.get(code.tobytes(), 0) + int(count)
    people = sum(holders.values())
    named = [] if found.estimates.candidates is None else [code.tobytes() for code in found.estimates.candidates]
    least = sorted(holders.values(), reverse=True)[: search.k][-1]
    hits = sum(holders.get(code, 0) >= least for code in named)
    return [holders.get(code, 0) / people for code in named], hits


# -- plans -------------------------------------------------------------------------------------------------------------


def plan_document(search: PEM, people: int) -> Document:
    """Every round: who is asked for what, how much is tried, and what stands out of its noise."""
    shares = [share for share, _ in search.survey.ask.branches] if isinstance(search.survey.ask, OneOf) else [1]
    rounds = []
    for i, question in enumerate(search.survey.questions):
        group = max(people * shares[i] // sum(shares), 1)
        tried = _tried(search, i)
        sigma = math.sqrt(question.pure.variance(1))
        floor = sensitivity_threshold(sigma, tried, group, search.keep if i + 1 < len(shares) else 1.0)
        rounds.append({"bits": search.lengths[i], "people": group, "candidates": tried, "floor": floor})
    return {
        "users": people,
        "k": search.k,
        "keep": search.keep,
        "oracle": search.kind,
        "epsilon": search.epsilon,
        "report_bytes": search.survey.layout.size,
        "queries": sum(row["candidates"] for row in rounds),
        "floor": max(row["floor"] for row in rounds),
        "rounds": rounds,
    }


def _tried(search: PEM, level: int) -> int:
    before = search.lengths[level - 1] if level else 0
    step = search.lengths[level] - before
    each = 1 << step if search.alphabet is None else words(search.alphabet.encode(), step // 8)
    return each * min(search.keep, 1 << before)


def plan_table(document: Document, held: Bits | Text) -> Table:
    """The rounds of a search, before anybody is asked."""
    strings = f"text of {held.max_bytes} bytes" if isinstance(held, Text) else f"strings of {held.bits} bits"
    table = _table(f"the {document['k']} most frequent of {strings}, eps = {document['epsilon']:g}, by PEM")
    table.caption = "Floor: the share of the people from which on a value is likely to stay."
    for row in document["rounds"]:
        table.add_row(f"{row['bits']:,}", f"{row['people']:,}", f"{row['candidates']:,}", tables.percent(row["floor"]))
    return table


def _table(title: str, *more: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=Shown(title, style="bold"), title_justify="left", caption_justify="left")
    for heading in ("bits", "people", "candidates", *(more or ("floor",))):
        table.add_column(heading, justify="right")
    return table


# -- what is found -----------------------------------------------------------------------------------------------------


def _surely(found: HeavyHitters) -> float:
    """What the estimate of a candidate of the last round exceeds with a chance of 5 % over all of them, if not held."""
    star = float(found.estimates.variance_at(np.zeros(1))[0])
    return critical(_ALPHA / max(found.history[-1].candidates, 1)) * math.sqrt(star)


def hitters_document(found: HeavyHitters, truth: Sequence[float] | None = None) -> Document:
    """Every value with its interval, and how each round went."""
    floor = _surely(found)
    rows = []
    for i, row in enumerate(_rows(found)):
        facts = {**row, "significant": row["frequency"] > floor}
        rows.append(facts if truth is None else facts | {"truth": truth[i]})
    rounds = [
        {**asdict(step), "threshold": None if math.isnan(step.threshold) else step.threshold} for step in found.history
    ]
    return {"people": found.estimates.population, "threshold": floor, "hitters": rows, "rounds": rounds}


def _rows(found: HeavyHitters) -> Iterator[Document]:
    for i, row in enumerate(found.rows):
        extra: Document = {"truncated": bool(found.truncated[i])}
        if found.fitted is not None:
            extra["fitted"] = float(found.fitted[i])
        yield {**asdict(row), "value": found.values[i], **extra}


def hitters_tables(found: HeavyHitters, truth: Sequence[float] | None = None) -> Iterator[Table]:
    """How the rounds went, and the values with 95 % intervals."""
    rounds = _table(f"{found.estimates.population:,} people, {len(found.history)} rounds", "kept", "least kept")
    for step in found.history:
        least = tables.percent(step.threshold)
        rounds.add_row(f"{step.length:,}", f"{step.people:,}", f"{step.candidates:,}", f"{step.kept:,}", least)
    yield rounds
    floor = _surely(found)
    rows = found.rows
    known: Mapping[Any, float] | None = None
    if truth is not None:
        known = {row.value: share for row, share in zip(rows, truth, strict=True)}
    surely = {row.value for row in rows if row.frequency > floor}
    yield tables.rows_table(rows, surely, f"{len(rows)} heavy hitters, {found.estimates.lineage[0]}", known)


def hitters_table(found: HeavyHitters) -> pa.Table:
    """The values found, as columns of a file."""
    import pyarrow as pa

    table = found.estimates.to_arrow().append_column("truncated", pa.array(found.truncated))
    return table if found.fitted is None else table.append_column("fitted", pa.array(found.fitted))
