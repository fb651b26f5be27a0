"""What every mechanism can do, and what pure oracles share.

A Mechanism holds parameters only: the randomizer that runs on a device and the estimator that runs at the collector.
A PureOracle is one whose reports each support a set of values (thesis 3.2): everything about its estimates follows from
four exact probabilities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.canonical import Json, digest, number, take
from veil.domain import Domain, DomainLike, Items, Record, as_domain, domain_from_json, is_int
from veil.entropy import Batch, Source, outcomes
from veil.errors import EmptyError, InputError, MismatchError, ParameterError, WireError
from veil.noise import SupportNoise, critical
from veil.privacy import Guarantee, check_epsilon, decimal_text
from veil.report import Columns, Layout, Reports
from veil.result import Estimate
from veil.tally import Tally, check_weights, weight_sums

__all__ = ["Mechanism", "PureOracle"]

_MOST_ENUMERATED = 64


@dataclass(frozen=True, init=False)
class Mechanism(ABC):
    """A randomizer and its estimator. Frozen: comparable, hashable, printable, JSON both ways."""

    epsilon: float
    domain: Domain
    name: ClassVar[str]

    def __init__(self, epsilon: float, domain: DomainLike) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(epsilon))
        object.__setattr__(self, "domain", as_domain(domain))
        if isinstance(self.domain, (Items, Record)):
            raise ParameterError(f"{self.name} asks for one value a person: use a View on {type(self.domain).__name__}")
        if self.domain.size < 2:
            raise ParameterError("a domain of one value has nothing to ask")

    # -- what it promises ------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The exact promise of one report."""

    @property
    @abstractmethod
    def thresholds(self) -> Mapping[str, int]:
        """The coins' thresholds out of 2^64: they stand in a task, so that no client computes an exponential."""

    # -- on the device ---------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The columns of a report."""

    @abstractmethod
    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        """Runs on the device: randomize codes of the domain into columns of reports, for at most one chunk of rows."""

    def randomize(self, values: Any, source: Source | None = None) -> Reports:
        """Runs on the device: one report a value. Without a source, from fresh entropy of the operating system."""
        codes = self.domain.encode(values)
        if not len(codes):
            raise EmptyError("expected at least one value to randomize")

        def draw(rows: slice, stream: Source) -> Reports:
            return Reports(self.digest, self.layout, self.draw(codes[rows], stream))

        return Reports.concatenate((source or Batch()).each_chunk(len(codes), draw))

    def channel(self) -> dict[bytes, list[Fraction]]:
        """For every possible report, its exact probability under each value: the shipped code, enumerated.

        Only for small domains, and mechanisms without a random seed.

        >>> from veil import GRR
        >>> [float(round(p, 3)) for p in GRR(epsilon=1, domain=2).channel()[b"\\x00"]]
        [0.731, 0.269]
        """
        if self.domain.size > _MOST_ENUMERATED:
            raise ParameterError(f"a channel is enumerated for at most {_MOST_ENUMERATED} values")
        matrix: dict[bytes, list[Fraction]] = {}
        for code in range(self.domain.size):
            held = np.array([code], dtype=np.uint64)

            def report_of(source: Source, held: NDArray[Any] = held) -> bytes:
                return self.layout.pack(self.draw(held, source))

            for report, chance in outcomes(report_of).items():
                matrix.setdefault(report, [Fraction(0)] * self.domain.size)[code] = chance
        return matrix

    # -- at the collector ------------------------------------------------------------------------------------------

    @abstractmethod
    def tally(self, reports: Reports, candidates: Any = None, weights: Any = None) -> Tally:
        """Runs at the collector: the integers to keep of these reports."""

    @abstractmethod
    def estimate(self, tally: Tally) -> Any:
        """Runs at the collector: what the population looks like."""

    def check(self, columns: Columns) -> None:
        """Refuse columns that this mechanism cannot have produced."""
        self.layout.check(columns)

    # -- identity --------------------------------------------------------------------------------------------------

    def parameters(self) -> Json:
        """Parameters beyond epsilon and domain, as they stand in a task."""
        return {}

    def to_json(self) -> Json:
        """The mechanism as it stands in a task."""
        return {
            "kind": self.name,
            "epsilon": decimal_text(self.epsilon),
            "domain": self.domain.to_json(),
            "thresholds": {name: f"{value:016x}" for name, value in self.thresholds.items()},
            **self.parameters(),
        }

    @classmethod
    def from_json(cls, document: Json) -> Mechanism:
        """Read a mechanism back; refuses thresholds other than those that epsilon gives."""
        extra = [key for key in document if key not in ("kind", "epsilon", "domain", "thresholds")]
        epsilon, domain, thresholds, *more = take(document, cls.name, "epsilon", "domain", "thresholds", *extra)
        try:
            made = cls(number(epsilon), domain_from_json(domain), **dict(zip(extra, more, strict=True)))
        except TypeError:
            raise WireError(f"{cls.name} does not have the parameters {', '.join(extra)}") from None
        if made.to_json()["thresholds"] != thresholds or made.to_json()["epsilon"] != epsilon:
            raise WireError("the task's thresholds are not those that its epsilon gives")
        return made

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON: names the reports and tallies of this mechanism."""
        return digest(self.to_json())


@dataclass(frozen=True, init=False)
class PureOracle(Mechanism):
    """A mechanism whose every report supports a set of values.

    A held value is supported with probability p, any other with probability q, and that is all the estimator needs:
    f = (support / n - q) / (p - q), unbiased (3.1).
    """

    disjoint: ClassVar[bool] = False
    """Whether a report supports one value at most (then padding-and-sampling amplifies)."""

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """The probability that a report supports the value that is held."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """The probability that a report supports a given value that is not held."""

    @property
    def noise(self) -> SupportNoise:
        """p and q, and how often two values are supported at once; here as if independently."""
        return SupportNoise(self.p, self.q, hit=self.p * self.q, miss=self.q**2)

    @abstractmethod
    def support(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """How many reports (or how much weight) support each candidate code; None means the whole domain in order."""

    @abstractmethod
    def supports(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        """Whether report i supports candidate j, as 0 and 1: for joint counts over few candidates."""

    @property
    def decode_pairs(self) -> float:
        """(report, candidate) steps that counting the whole domain costs a report."""
        return float(self.domain.size)

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """Variance of an estimated frequency from n people: (3.2); at frequency 0 it is Var* (3.3)."""
        _check_people(n)
        return self.noise.variance(frequency) / n

    def detection_floor(self, n: int, alpha: float = 0.05, candidates: int | None = None) -> float:
        """The significance threshold (3.13): a value this frequent is found half of the time, an absent one never.

        "Never" is with probability 1 - alpha over all candidates together.
        """
        tested = min(candidates or self.domain.size, 10**300)  # as far as a double reaches
        return critical(alpha / tested) * float(np.sqrt(self.variance(n)))

    def encode_candidates(self, candidates: Any) -> NDArray[Any] | None:
        """Candidates as codes, each once; None stands for a whole domain that can be listed."""
        if candidates is None:
            if not self.domain.listable:
                raise InputError("this domain is too large to list: say which candidates to count")
            return None
        return self.check_candidates(self.domain.encode(candidates))

    def check_candidates(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Candidates are at least one, and each stands once."""
        if not len(codes):
            raise EmptyError("expected at least one candidate")
        if len(np.unique(codes, axis=0)) != len(codes):
            raise InputError("a candidate stands twice")
        return codes

    def tally(self, reports: Reports, candidates: Any = None, weights: Any = None) -> Tally:
        """Runs at the collector: support counts over the candidates, with optional integer weights.

        >>> from veil import GRR
        >>> oracle = GRR(epsilon=1, domain=4)
        >>> oracle.tally(oracle.randomize([0, 1, 1])).people
        3
        """
        if not isinstance(reports, Reports) or reports.task != self.digest:
            raise MismatchError("expected reports of this mechanism; these were made for another task")
        return self.tally_columns(reports.columns, self.encode_candidates(candidates), weights)

    def tally_columns(self, columns: Columns, codes: NDArray[Any] | None, weights: Any = None) -> Tally:
        """Runs at the collector: the same for columns that are known to be this oracle's, and encoded candidates."""
        people = len(next(iter(columns.values())))
        checked = check_weights(weights, people)
        weight, square = weight_sums(checked, people)
        return Tally(self.digest, self.support(columns, codes, checked), people, weight, square, codes)

    def estimate(
        self, tally: Tally, *, population: int | None = None, scale: Fraction = Fraction(1), lineage: str = ""
    ) -> Estimate:
        """Runs at the collector: unbiased frequencies by (3.1), never clipped.

        `population` is the number of people that the reports are a random sample of; `scale` comes from the view.
        """
        if not isinstance(tally, Tally) or tally.task != self.digest:
            raise MismatchError("expected a tally of this mechanism; this was made for another task")
        if not tally.people:
            raise EmptyError("expected at least one report to estimate from")
        if not tally.weight:
            raise EmptyError("the reports' weights add up to zero")
        people = tally.people if population is None else max(population, tally.people)
        shares = (tally.counts / tally.weight - float(self.q)) / float(self.p - self.q)
        return Estimate(
            domain=self.domain,
            frequencies=shares * float(scale),
            n=tally.people,
            noise=self.noise,
            population=people,
            mass=tally.weight * people / tally.people,
            effective=tally.weight**2 / tally.square,
            scale=float(scale),
            candidates=tally.candidates,
            lineage=(lineage or f"{self.name}(epsilon={decimal_text(self.epsilon)})",),
        )


def _check_people(n: int) -> None:
    if not is_int(n) or n < 1:
        raise ParameterError("a number of people is at least 1")
