"""Marginals from reports about every attribute, each with a part of the budget (EM, thesis 6.1.6).

Everybody reports every attribute through GRR with epsilon / m. Any marginal follows from these reports: they have the
product of the attributes' channels, which is inverted attribute by attribute (unbiased, and often negative) or fitted
by maximum likelihood (EM; Fanti et al. 2016, Ren et al. 2018). Computations use tables of counts, never single people.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record
from veil.errors import InputError, ParameterError
from veil.marginals.choosing import products
from veil.marginals.joint import places_of
from veil.marginals.linear import LinearJoint
from veil.marginals.marginal import Marginal
from veil.marginals.study import JointStudy, Names
from veil.marginals.tables import MOST_CELLS, Places, Views, marginal_of, nearest_shares
from veil.mechanisms import GRR
from veil.privacy import decimal_text, split_epsilon
from veil.results.laws import SupportNoise
from veil.study import Collection
from veil.survey import AllOf, Question, Survey
from veil.tools.limits import check
from veil.view import Project

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Method = Literal["em", "unbiased"]

_WHOLE = 1 << 16
"""A table of all attributes of so many cells is kept as it is; of a larger one, those of k attributes each."""

_MOST_STEPS = 10_000
_WITHIN = 0.1
"""How far the log-likelihood of all reports may be from its maximum: differences of less than 1 say nothing."""

_TINY = 1e-300
_MIXED = 1e-3
"""How much of a uniform table the first guess has: EM never leaves 0."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitReports(LinearJoint):
    """A joint distribution read from how often combinations of reports occurred.

    `sets` are the attributes whose reports were counted together and `counts` their tables, one after another; `noises`
    says for each attribute of the record how its reports scatter. `method` is "em", the most likely table, or
    "unbiased", which may have negative cells.
    """

    variant: ClassVar[str] = "split"
    sets: tuple[tuple[str, ...], ...]
    counts: Ints
    noises: tuple[SupportNoise, ...]
    method: Method = "em"

    @cached_property
    def _views(self) -> Views:
        places = tuple(places_of(self.record, names) for names in self.sets)
        return Views(tuple(part.size for part in self.record.parts), places)

    @property
    def _has_joint(self) -> bool:
        return bool(self._views.containing(range(len(self.record.names))))

    @property
    def _known_sets(self) -> tuple[Places, ...]:
        return self._views.sets

    @cached_property
    def _shares(self) -> Floats:
        return np.asarray(self.counts / self.n)

    def _found(self, places: Places) -> Marginal:
        table = self._unbiased(places)
        if self.method == "em":
            table = most_likely(self._reported(places), self._channels(places), table, _WITHIN / self.n)
        return self._table(places, table)

    def _channels(self, places: Places) -> list[SupportNoise]:
        return [self.noises[place] for place in places]

    def _unbiased(self, places: Places) -> Floats:
        return unmixed(self._reported(places), self._channels(places))

    def _reported(self, places: Places) -> Floats:
        """How often each combination of reports about these attributes occurred."""
        whole = self._views.containing(places)
        if not whole:
            raise InputError(
                f"reports were counted together for at most {max(map(len, self.sets))} attributes, not for"
                f" {len(places)}: ask for a smaller marginal, or read with a larger k"
            )
        one = self._views.sets[whole[0]]
        return marginal_of(self._views.table(self._shares, whole[0]), [one.index(place) for place in places])

    def _variance(self, places: Places) -> Floats:
        # What a report adds to a cell is a product over attributes; its mean square is an average over all reports.
        found = self._reported(places)
        for axis, (inside, outside) in enumerate(map(_weights, self._channels(places))):
            found = (inside**2 - outside**2) * found + outside**2 * found.sum(axis=axis, keepdims=True)
        return found.reshape(-1) / self.n

    def _covariance(self, places: Places) -> Floats:
        found = self._reported(places)
        for channel in self._channels(places):  # the first axis becomes two, at the end
            inside, outside = _weights(channel)
            said = np.full((found.shape[0],) * 2, outside) + np.eye(found.shape[0]) * (inside - outside)
            found = np.tensordot(found, np.einsum("vy,wy->yvw", said, said), axes=(0, 0))
        many = found.ndim // 2
        square = found.transpose([*range(0, 2 * many, 2), *range(1, 2 * many, 2)])
        cells = self._unbiased(places).reshape(-1)
        return np.asarray((square.reshape(len(cells), -1) - np.outer(cells, cells)) / self.n)

    def __repr__(self) -> str:
        return f"SplitReports({len(self.record.names)} attributes, n={self.n})"


@dataclass(frozen=True)
class SplitEM(JointStudy[SplitReports]):
    """Any marginal, from everybody's reports of every attribute with a part of the budget each (EM, thesis 6.1.6).

    With m attributes each is asked through GRR with epsilon / m: so little that the thesis finds the answers worse than
    guessing. `k` says how many attributes' reports are counted together, and so how large a marginal can be; where the
    table of all of them has at most 65,536 cells it is kept, and `k` changes nothing. A tally of single attributes is
    not enough to read this study: it goes through the reports once.

    `method` is "em", the most likely table, begun from the closed form that undoes the noise attribute by attribute;
    or "unbiased", that closed form itself.

    Guarantee: ratios multiply, and each is rounded so that all together keep e^eps exactly.

    >>> from veil import simulate
    >>> people = {"sex": ["f", "m"] * 10_000, "smokes": [0, 1] * 10_000, "vegan": [0, 0, 1, 1] * 5_000}
    >>> study = SplitEM(9.0, Record.of(sex=["f", "m"], smokes=2, vegan=2), k=2)
    >>> simulate(study, people, seed=1).marginal(["sex", "smokes"]).shares.round(1).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    epsilon: float
    domain: Record
    k: int = 3
    method: Method = "em"
    marginal: Names | None = None
    given: Names | None = None
    kind: ClassVar[str] = "split-em"

    def __post_init__(self) -> None:
        self._check()
        if self.method not in get_args(Method):
            raise ParameterError(f"method is one of {', '.join(get_args(Method))}")
        split_epsilon(self.epsilon, len(self.domain.names))  # refuses parts that are too small
        sizes = [part.size for part in self.domain.parts]
        cells = math.prod(sizes) if math.prod(sizes) <= _WHOLE else products(sizes, self.k)
        if cells > MOST_CELLS:
            raise ParameterError(
                f"the tables of reports of {self.k} attributes have {cells:,} cells, more than {MOST_CELLS:,}: take a"
                " smaller k"
            )

    @cached_property
    def _kept(self) -> Views:
        """The attributes whose reports are counted together."""
        sizes = tuple(part.size for part in self.domain.parts)
        together = len(sizes) if math.prod(sizes) <= _WHOLE else self.k
        return Views(sizes, tuple(combinations(range(len(sizes)), together)))

    @cached_property
    def survey(self) -> Survey:
        """Every attribute, with its part of the budget."""
        each = split_epsilon(self.epsilon, len(self.domain.names))
        views = [Project(self.domain, (name,)) for name in self.domain.names]
        return Survey(AllOf(*(Question(GRR(each, view.domain), view) for view in views)))

    def answer(self, collected: Collection) -> SplitReports:
        """Runs at the collector: how often each combination of reports occurred."""
        many = f"{len(self.domain.names)} attributes"
        return SplitReports(
            record=self.domain,
            n=collected.people,
            population=collected.population,
            lineage=(f"SplitEM(epsilon={decimal_text(self.epsilon)}, {many})", self.method),
            shown=self.marginal,
            given=self.given,
            sets=tuple(tuple(self.domain.names[place] for place in places) for places in self._kept.sets),
            counts=counted_together(collected, self._kept),
            noises=tuple(question.pure.noise for question in self.survey.questions),
            method=self.method,
        )


def counted_together(collected: Collection, views: Views) -> Ints:
    """How many people's reports say each combination of values, for each view: its table, one after another.

    Everybody answered every question, so pieces of their answers have the same rows.
    """
    total = np.zeros(views.total, dtype=np.int64)
    questions = range(len(views.sizes))
    for pieces in zip(*(collected.columns(question) for question in questions), strict=True):
        values = [piece["value"].astype(np.int64) for piece in pieces]
        for start, stop, one in zip(views.offsets, views.offsets[1:], views.sets, strict=False):
            index = np.zeros(len(values[0]), dtype=np.int64)
            for place in one:
                index = index * views.sizes[place] + values[place]
            total[start:stop] += np.bincount(index, minlength=stop - start)
    return total


def _weights(channel: SupportNoise) -> tuple[float, float]:
    """What a report adds to the value that it says, and to each other one, where noise is undone."""
    p, q = float(channel.p), float(channel.q)
    return (1 - q) / (p - q), -q / (p - q)


def mixed(table: Floats, channels: Sequence[SupportNoise]) -> Floats:
    """What reports of people who hold a table are expected to say, one channel per axis."""
    for axis, channel in enumerate(channels):
        p, q = float(channel.p), float(channel.q)
        table = (p - q) * table + q * table.sum(axis=axis, keepdims=True)
    return table


def unmixed(reported: Floats, channels: Sequence[SupportNoise]) -> Floats:
    """The table that would be expected to give these reports: `mixed` backwards, without bias."""
    for axis, channel in enumerate(channels):
        p, q = float(channel.p), float(channel.q)
        reported = (reported - q * reported.sum(axis=axis, keepdims=True)) / (p - q)
    return reported


def most_likely(reported: Floats, channels: Sequence[SupportNoise], unbiased: Floats, within: float) -> Floats:
    """The table under which these reports are the most likely, by EM from the unbiased one.

    It stops where the log-likelihood per person is within `within` of its maximum: it is concave, so the largest of its
    slopes, less 1, bounds what is missing. A step of EM multiplies the cells by these slopes. Where there is much noise
    all of them are near 1, so they are raised to a power, which grows as long as the reports become more likely.
    """
    if unbiased.min() >= 0:
        return unbiased  # what explains all reports exactly
    table = nearest_shares(unbiased.reshape(1, -1)).reshape(unbiased.shape)
    table = (1 - _MIXED) * table + _MIXED / table.size
    power, expected = 1.0, mixed(table, channels)
    likelihood = (reported * np.log(expected)).sum()
    for _ in range(_MOST_STEPS):
        check()
        slopes = mixed(reported / expected, channels)  # GRR's channel is its own transpose
        if slopes.max() - 1 < within:
            break
        while True:
            logs = np.log(np.maximum(table, _TINY)) + power * np.log(slopes)
            further = np.exp(logs - logs.max())
            further /= further.sum()
            expected = mixed(further, channels)
            found = (reported * np.log(expected)).sum()
            if found >= likelihood or power == 1.0:  # a step of EM itself never goes down, but for rounding
                break
            power = max(1.0, power / 4)
        table, likelihood, power = further, found, 2 * power
    return table
