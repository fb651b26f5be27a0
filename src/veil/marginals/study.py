"""Studies of joint distributions: CALM, and the base classes of studies of marginals."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeVar, get_args

import numpy as np

from veil.domain import Record
from veil.errors import ParameterError
from veil.marginals.choosing import choose_views, products
from veil.marginals.joint import Joint, check_cells, listed_names, places_of
from veil.marginals.result import Inference, Marginals
from veil.marginals.tables import MOST_CELLS
from veil.mechanisms import PureOracle
from veil.mechanisms.best_oracle import least_variance
from veil.privacy import check_epsilon, decimal_text
from veil.study import Collection, OneRound
from veil.survey import AttributeSets, EachOf, ListedSets, Survey
from veil.tools.numbers import is_int, is_number

Names = tuple[str, ...]


Found = TypeVar("Found", bound=Joint)


class JointStudy(OneRound[Found]):
    """A study of the joint distribution of a record's attributes, however it asks for it."""

    epsilon: float
    domain: Record
    k: int
    marginal: Names | None
    given: Names | None

    def _check(self) -> None:
        """Refuse parameters that no study of marginals has."""
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not isinstance(self.domain, Record):
            raise ParameterError("a joint distribution is of the attributes of a Record")
        many = len(self.domain.names)
        if many < 2:
            raise ParameterError("a joint distribution needs at least two attributes: one alone is a histogram")
        small = [name for name, part in self.domain.attributes if part.size < 2]
        if small:
            raise ParameterError(f"attribute {small[0]!r} has one value only: there is nothing to ask about it")
        if not is_int(self.k) or not 1 <= self.k <= many:
            raise ParameterError(f"k is the number of attributes of a marginal, from 1 to the record's {many}")
        for name in ("marginal", "given"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, listed_names(getattr(self, name)))
                places_of(self.domain, getattr(self, name))
        if self.given is not None and self.marginal is None:
            other = next((name for name in self.domain.names if name not in self.given), "...")
            raise ParameterError(
                f"given={','.join(self.given)} says among whom to look, but not what to show of them: expected a "
                f"marginal too, as in --marginal {other}"
            )
        both = [name for name in self.given or () if name in (self.marginal or ())]
        if both:
            raise ParameterError(
                f"{both[0]} is both in marginal and in given: among people who are alike in it there is nothing to show"
            )

    def _check_reading(self, inference: Any) -> None:
        """Refuse a way of reading tables that there is not."""
        if inference not in get_args(Inference):
            raise ParameterError(f"inference is one of {', '.join(get_args(Inference))}")


class ViewStudy(JointStudy[Found]):
    """A study of a record that asks each person for one view: a part of the record, as one value.

    Guarantee: every view is asked through an oracle that keeps e^eps, and which one does not depend on the value.
    """

    inference: Inference

    @property
    @abstractmethod
    def family(self) -> EachOf:
        """The views, and the oracles through which they are asked."""

    @cached_property
    def survey(self) -> Survey:
        """One view per person, drawn with equal chances."""
        return Survey(self.family)

    def oracle(self, domain: Any) -> PureOracle:
        """What a view is asked through: the oracle with the least variance for its number of cells."""
        return least_variance(self.epsilon, domain)

    def _read(self, collected: Collection, sets: Sequence[Names]) -> dict[str, Any]:
        """Runs at the collector: the fields of a result that has the unbiased tables of all views that were answered.

        A view that nobody answered says nothing, and is as if it had not been asked.
        """
        tally, family = collected.tally(), self.family
        oracles = dict(zip(family.rule.sizes, family.mechanisms, strict=True))
        sizes = family.rule.sizes_of(np.arange(len(family))).tolist()
        answered = [number for number in range(len(family)) if tally.part(number).people]
        raw = [oracles[sizes[number]].shares(tally.part(number)) for number in answered]  # type: ignore[attr-defined]
        there = sorted({sizes[number] for number in answered})
        return {
            "record": self.domain,
            "n": collected.people,
            "population": collected.population,
            "lineage": (self._signature, self.inference),
            "shown": self.marginal,
            "given": self.given,
            "sets": tuple(sets[number] for number in answered),
            "raw": np.concatenate(raw),
            "people": np.array([tally.part(number).people for number in answered], dtype=np.int64),
            "noises": tuple(oracles[size].noise for size in there),  # type: ignore[attr-defined]
            "inference": self.inference,
        }

    def _check_views(self, sets: int | Sequence[Names]) -> None:
        """Refuse views that are too many, or whose tables have too many cells: one of them, or all together."""
        sizes = [part.size for part in self.domain.parts]
        if is_int(sets):
            AttributeSets(self.domain, sets)  # refuses numbers of attributes that there are not
            largest, total = math.prod(sorted(sizes)[-sets:]), products(sizes, sets)
        else:
            listed = (places_of(self.domain, one) for one in sets)  # type: ignore[union-attr]  # no integer
            cells = [math.prod(sizes[place] for place in places) for places in listed]
            largest, total = max(cells, default=0), sum(cells)
        check_cells(largest)
        if total > MOST_CELLS:
            raise ParameterError(
                f"all views together have {total:,} cells, more than {MOST_CELLS:,}: ask for views of fewer attributes,"
                " or cut the domains of attributes into fewer values"
            )

    @property
    def _signature(self) -> str:
        many = f"{len(self.family)} views" if len(self.family) > 1 else "1 view"
        return f"{type(self).__name__}(epsilon={decimal_text(self.epsilon)}, {many})"


class MarginalStudy(ViewStudy[Marginals]):
    """A study of a record whose views are sets of attributes, so that their tables are marginals."""

    def _check(self) -> None:
        super()._check()
        self._check_reading(self.inference)

    def answer(self, collected: Collection) -> Marginals:
        """Runs at the collector: the tables of all views, unbiased; everything else follows from them."""
        return Marginals(**self._read(collected, self.family.rule.named))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class CALM(MarginalStudy):
    """Any joint distribution of a few attributes, from views that are made to agree (Zhang et al., CCS 2018).

    Algorithm 2 of the thesis chooses how many attributes a view has and how many views there are, for marginals of `k`
    attributes and about `users` people; `threshold` is the error that it aims at. `sets` names views instead: as lists
    of attributes, or as one number s for all sets of s attributes. Marginals of any number of attributes are answered.

    `inference` says how the views are read together, see `Marginals`. `marginal` and `given` say what to show.

    Guarantee: each person answers one view, through an oracle that keeps e^eps; which one does not depend on the value.

    >>> from veil import simulate
    >>> people = {"sex": ["f", "m"] * 10_000, "smokes": [0, 1] * 10_000, "vegan": [0, 0, 1, 1] * 5_000}
    >>> study = CALM(4.0, Record.of(sex=["f", "m"], smokes=2, vegan=2), k=2, users=20_000)
    >>> simulate(study, people, seed=1).marginal(["sex", "smokes"]).shares.round(1).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    epsilon: float
    domain: Record
    k: int = 3
    users: int = 1_000_000
    threshold: float = 0.001
    sets: int | tuple[Names, ...] | None = None
    inference: Inference = "consistent"
    marginal: Names | None = None
    given: Names | None = None
    kind: ClassVar[str] = "calm"

    def __post_init__(self) -> None:
        self._check()
        if not is_int(self.users) or self.users < 1:
            raise ParameterError("a number of people is at least 1")
        if not is_number(self.threshold) or not 0 < self.threshold < 1:
            raise ParameterError("the threshold is an error to aim at, between 0 and 1")
        object.__setattr__(self, "sets", self._chosen() if self.sets is None else self.sets)
        object.__setattr__(self, "sets", self._plain(self.sets))

    def _chosen(self) -> tuple[Names, ...]:
        sizes = tuple(part.size for part in self.domain.parts)
        chosen = choose_views(sizes, self.k, self.epsilon, self.users, self.threshold)
        return tuple(tuple(self.domain.names[place] for place in places) for places in chosen)

    def _plain(self, sets: Any) -> int | tuple[Names, ...]:
        """Sets as they stand in a study file: one number where all sets of so many attributes are asked."""
        if is_int(sets):
            self._check_views(sets)
            return int(sets)
        if isinstance(sets, str) or not isinstance(sets, Iterable):
            raise ParameterError('views are listed by the names of their attributes, as in [["age", "sex"], ["sex"]]')
        named = tuple(map(listed_names, sets))
        self._check_views(named)
        listed = ListedSets(self.domain, named).sets
        every = AttributeSets(self.domain, len(listed[0]))
        same = len(every) == len(listed) and all(len(one) == every.size for one in listed)
        return every.size if same else listed

    @cached_property
    def family(self) -> EachOf:
        rule = AttributeSets(self.domain, self.sets) if is_int(self.sets) else ListedSets(self.domain, self.sets)  # type: ignore[arg-type]
        return EachOf(rule, self.oracle)
