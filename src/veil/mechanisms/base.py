"""The base class of mechanisms: the randomizer that runs on a device, and the estimator that runs at the collector.

A Mechanism holds parameters only. `veil.mechanisms.oracle` adds what frequency oracles share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain, DomainLike, Items, Record, as_domain, domain_from_json
from veil.entropy import Batch, Source, outcomes
from veil.errors import EmptyError, InputError, MismatchError, ParameterError, WireError
from veil.privacy import Guarantee, check_epsilon, decimal_text
from veil.reports.columns import Reports
from veil.reports.layout import Columns, Layout
from veil.reports.tally import Tally, check_weights, weight_sums
from veil.tools.json_documents import Json, digest, number, take
from veil.view import View

_MOST_ENUMERATED = 64
Drawing = Callable[[slice, Source], dict[str, NDArray[Any]]]
"""Columns for some rows, from their source."""


@dataclass(frozen=True, init=False)
class Mechanism(ABC):
    """A randomizer and its estimator. Frozen: comparable, hashable, printable, JSON both ways."""

    epsilon: float
    domain: Domain
    name: ClassVar[str]
    tight: ClassVar[bool] = True
    """Whether the ratio reaches e^epsilon, up to the rounding of thresholds."""

    @property
    def fake_support(self) -> Fraction | None:
        """The probability that a uniformly random report supports a given value; None where fakes are not removed."""
        return None

    def __init__(self, epsilon: float, domain: DomainLike) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(epsilon))
        object.__setattr__(self, "domain", as_domain(domain))
        if isinstance(self.domain, (Items, Record)):
            held = type(self.domain).__name__
            raise ParameterError(f"{self.name} asks for one value per person: use a View on {held}")
        if self.domain.size < 2:
            raise ParameterError("a domain of one value has nothing to ask")

    # -- what it promises ------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The exact promise of one report."""

    def seen_through(self, view: View) -> Guarantee:
        """The exact promise of one report about a view's shown value, to who holds what the view looks at."""
        return view.outer(self.guarantee)

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
        """Runs on the device: one report per value. Without a source, from fresh entropy of the operating system."""
        codes = self.domain.encode(values)
        return self.by_chunk(len(codes), source, lambda rows, stream: self.draw(codes[rows], stream))

    def by_chunk(self, people: int, source: Source | None, draw: Drawing, layout: Layout | None = None) -> Reports:
        """Runs on the device: what `draw` makes of each chunk of people, end to end; of another layout where given."""
        if not people:
            raise EmptyError("expected at least one value to randomize")

        def chunk(rows: slice, stream: Source) -> Reports:
            return Reports(self.digest, layout or self.layout, draw(rows, stream))

        return Reports.concatenate((source or Batch()).each_chunk(people, chunk))

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
    def counts(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """Runs at the collector: the integers of a tally; without candidates, of everything that is estimated."""

    @abstractmethod
    def tally_size(self, candidates: NDArray[Any] | None) -> int:
        """How many integers a tally holds."""

    @property
    def closed(self) -> bool:
        """Whether a tally can be kept without naming candidates first."""
        return True

    def encode_candidates(self, candidates: Any) -> NDArray[Any] | None:
        """Candidates as codes, each once; None stands for all that is estimated."""
        if candidates is not None:
            raise InputError(f"{self.name} does not count values one by one: it takes no candidates")
        return None

    def tally(self, reports: Reports, candidates: Any = None, weights: Any = None) -> Tally:
        """Runs at the collector: the integers to keep, for the candidates, with optional integer weights.

        >>> from veil import GRR
        >>> oracle = GRR(epsilon=1, domain=4)
        >>> oracle.tally(oracle.randomize([0, 1, 1])).people
        3
        """
        if not isinstance(reports, Reports) or reports.task != self.digest:
            raise MismatchError("expected reports of this mechanism; these were made for another task")
        return self.tally_columns(reports.columns, self.encode_candidates(candidates), weights)

    def tally_columns(self, columns: Columns, codes: NDArray[Any] | None, weights: Any = None) -> Tally:
        """Runs at the collector: the same for columns known to be this mechanism's, and encoded candidates."""
        people = len(next(iter(columns.values())))
        checked = check_weights(weights, people)
        weight, square = weight_sums(checked, people)
        return Tally(self.digest, self.counts(columns, codes, checked), people, weight, square, codes)

    @abstractmethod
    def estimate(
        self, tally: Tally, *, population: int | None = None, scale: Fraction = Fraction(1), lineage: str = ""
    ) -> Any:
        """Runs at the collector: what the population looks like.

        `population` is the number of people that the reports are a random sample of; `scale` comes from the view.
        """

    def own(self, tally: Tally) -> Tally:
        """The tally, if it is this mechanism's and there is something in it to estimate from."""
        if isinstance(tally, Reports):
            raise MismatchError("expected a tally: estimate(tally(reports))")
        if not isinstance(tally, Tally) or tally.task != self.digest:
            raise MismatchError("expected a tally of this mechanism; this was made for another task")
        if len(tally.counts) != self.tally_size(tally.candidates):
            raise MismatchError("this tally does not have the counts of its candidates")
        if tally.fakes and self.fake_support is None:
            raise InputError(f"{self.name} does not know what uniform fakes support: GRR and OLH remove them")
        if tally.fakes and not tally.people == tally.weight == tally.square:
            raise InputError("reports with fakes among them have no weights: nobody knows which are fakes")
        if not tally.people:
            raise EmptyError("expected at least one report to estimate from")
        if not tally.weight:
            raise EmptyError("the reports' weights add up to zero")
        return tally

    @property
    def signature(self) -> str:
        """How the mechanism is named in a lineage."""
        return f"{self.name}(epsilon={self.epsilon:.6g})"

    def check(self, columns: Columns) -> None:
        """Refuse columns that this mechanism cannot have produced."""
        self.layout.check(columns)

    def over(self, domain: Domain) -> Self:
        """The same mechanism for another domain of as many values, each with an index: only the values' names differ.

        >>> from veil import GRR, Categories
        >>> GRR(1.0, 2).over(Categories(["no", "yes"])) == GRR(1.0, ["no", "yes"])
        True
        """
        if domain == self.domain:
            return self
        if domain.size != self.domain.size or domain.code_bytes or self.domain.code_bytes:
            raise ParameterError("expected a domain of as many values, each with an index")
        made = object.__new__(type(self))
        for part in fields(self):
            object.__setattr__(made, part.name, domain if part.name == "domain" else getattr(self, part.name))
        return made

    # -- identity --------------------------------------------------------------------------------------------------

    def parameters(self) -> Json:
        """Parameters beyond epsilon and domain, as they stand in a task."""
        return {}

    @classmethod
    def read_parameters(cls, document: Json) -> dict[str, Any]:
        """The same parameters read back, as the constructor takes them."""
        return document

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
            parameters = cls.read_parameters(dict(zip(extra, more, strict=True)))
            made = cls(number(epsilon), domain_from_json(domain), **parameters)
        except TypeError:
            raise WireError(f"{cls.name} does not have the parameters {', '.join(extra)}") from None
        if made.to_json()["thresholds"] != thresholds:
            raise WireError("the task's thresholds are not those that its epsilon gives")
        if made.to_json() != document:
            raise WireError(f"this {cls.name} is not written as veil writes it: its id would not be its own")
        return made

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON: names the reports and tallies of this mechanism."""
        return digest(self.to_json())
