"""Plans for histograms: the cost and error of each frequency oracle, also through a shuffler.

Through a shuffler, all oracles are compared for the same central guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from veil.accounting import ShuffleDesign, ShuffleGuarantee, Shuffler, designs
from veil.domain import Domain, DomainLike, as_domain
from veil.errors import InputError
from veil.histogram import Histogram
from veil.mechanisms import MECHANISMS, FrequencyOracle
from veil.planning.base import Choice, Goal, Option, Quantity, Row, Ways, Wishes, byte_text
from veil.study import Study
from veil.tools.json_documents import Json

_AS_GOOD = 1.05
"""Variances within 5 % are as good as equal; the shorter report, then the cheaper decoding, decides."""
_STEPS_PER_SECOND = 1e9
"""What the slowest kernel does on one core of an ordinary machine; most do several times that."""
_ERROR = "standard error"


def choose(
    domain: DomainLike, epsilon: float, users: int | None = None, max_report_bytes: int | None = None
) -> OracleChoice:
    """The oracle with the smallest variance; among those within 5 %, the shortest report, then the cheapest decoding.

    >>> choose(4, 1.0).oracle.name, choose(100_000, 1.0).oracle.name
    ('GRR', 'PGR')
    >>> choose(1024, 1.0).options[0].name
    'SubsetSelection'
    """
    people = Wishes.users if users is None else users
    found = HistogramGoal().choose(Wishes(epsilon, as_domain(domain), people, max_report_bytes=max_report_bytes))
    return OracleChoice(**vars(found))


@dataclass(frozen=True)
class OracleChoice(Choice):
    """A choice among oracles."""

    @property
    def oracle(self) -> FrequencyOracle:
        """The oracle to ask through."""
        return _oracle(self.study)


class HistogramGoal(Goal):
    """Every registered oracle that can serve the domain, the most accurate first."""

    name = "histogram"
    summary = "How many people hold each value of a list."
    takes = ("domain", "labels", "labels_file", "missing", "shuffler")
    about = "Errors are for a value with a true share of 0. Decoding times are for one core at 10^9 steps per second."

    def choose(self, wishes: Wishes) -> Choice:

        return super().choose(wishes) if wishes.central is None else ShuffledHistogram().choose(wishes)

    def ways(self, wishes: Wishes) -> Ways:
        held = wishes.held
        if held is None:
            raise InputError("a histogram is of values that are known: expected --domain, --labels or --labels-file")
        oracles = {name: kind for name, kind in MECHANISMS.items() if issubclass(kind, FrequencyOracle)}
        return {name: _asking(kind, wishes.epsilon, held) for name, kind in oracles.items()}

    def errors(self, study: Study, wishes: Wishes) -> Row:
        oracle, people = _oracle(study), wishes.users
        known = oracle.noise.known
        return {
            "standard error": Quantity(math.sqrt(oracle.variance(people)) if known else None, "share"),
            "detection floor": Quantity(oracle.detection_floor(people) if known else None, "share"),
            "steps per report": Quantity(oracle.decode_pairs, "count"),
            "decoding": Quantity(oracle.decode_pairs * people / _STEPS_PER_SECOND, "effort"),
        }

    def doubts(self, study: Study) -> tuple[str, ...]:
        oracle = _oracle(study)
        if not oracle.noise.known:
            return ("its error is unknown",)
        return () if oracle.unbiased else ("biased for any number of people",)

    def order(self, options: list[Option]) -> list[Option]:
        return sorted(options, key=lambda option: (not _oracle(option.study).noise.known, option.error(_ERROR)))

    def best(self, allowed: Sequence[Option], wishes: Wishes) -> tuple[Option, str]:
        close = [option for option in allowed if option.error(_ERROR) ** 2 <= _AS_GOOD * allowed[0].error(_ERROR) ** 2]
        order = list(MECHANISMS)  # what costs and reaches the same is taken in the order of the registry
        taken = min(
            close,
            key=lambda option: (
                option.report_bytes,
                option.error("steps per report"),
                round(option.error(_ERROR), 12),
                order.index(option.name),
            ),
        )
        return taken, _why(taken, close, allowed, wishes.max_report_bytes)


class ShuffledHistogram(HistogramGoal):
    """The best of every kind of oracle whose shuffled reports keep the central promise."""

    about = (
        "Errors: of one value's share of the people, if nobody holds it. The central eps is towards whoever sees only "
        "shuffled reports; if the shuffler tells who sent what, the local eps is all that is left."
    )

    def choose(self, wishes: Wishes) -> Choice:
        return Goal.choose(self, wishes)

    def ways(self, wishes: Wishes) -> Ways:
        held, central = wishes.held, wishes.central
        if held is None or central is None:
            raise InputError("a histogram is of values that are known: expected --domain, --labels or --labels-file")
        shuffler = Shuffler(wishes.users, central.delta)
        found = designs(wishes.users, held, central.epsilon, central.delta, wishes.epsilon)
        return {
            one.oracle.name: _shuffled_asking(one, shuffler) for one in sorted(found, key=lambda one: one.mean_variance)
        }

    def errors(self, study: Study, wishes: Wishes) -> Row:
        found = _central(study)
        more = super().errors(study, wishes)
        return {
            "local eps": Quantity(found.local.epsilon, "eps"),
            "central eps": Quantity(found.epsilon, "eps"),
            **more,
        }

    def facts(self, study: Study, wishes: Wishes) -> Json:
        found = _central(study)
        return {
            "epsilon": found.local.epsilon,
            "epsilon_central": found.epsilon if wishes.central is None else wishes.central.epsilon,
            "delta": float(found.central.delta),
            "central_epsilon": float(f"{found.epsilon:.6g}"),
            "central_epsilon_at_least": float(f"{found.low:.6g}"),
        }

    def notes(self, study: Study) -> tuple[str, ...]:
        return () if _central(study).amplifies else ("the shuffle adds nothing: its local eps keeps the promise",)

    def order(self, options: list[Option]) -> list[Option]:
        return sorted(options, key=lambda option: option.error("standard error"))


def _asking(kind: type[FrequencyOracle], epsilon: float, domain: Domain) -> Callable[[], Study]:
    return lambda: Histogram(kind(epsilon, domain))


def _oracle(study: Study) -> FrequencyOracle:
    assert isinstance(study, Histogram)
    return study.oracle


def _why(taken: Option, close: Sequence[Option], allowed: Sequence[Option], limit: int | None) -> str:
    size = byte_text(taken.report_bytes)
    fits = "" if limit is None else f" among reports of at most {byte_text(limit)}"
    if len(close) == 1:
        others = [option for option in allowed if option is not taken]
        times = others[0].error(_ERROR) / taken.error(_ERROR) if others else 1.0
        rest = f", {times:.2f} times better than {others[0].name}" if others else ""
        return f"{taken.name} has the smallest error{fits}{rest}, in reports of {size}."
    return (
        f"{taken.name} is chosen: of the oracles with a variance within 5 % of the smallest{fits}"
        f" ({', '.join(option.name for option in close)}), it has the cheapest reports ({size})."
    )


def _shuffled_asking(one: ShuffleDesign, shuffler: Shuffler) -> Callable[[], Study]:
    return lambda: Histogram(one.oracle, shuffler=shuffler)


def _central(study: Study) -> ShuffleGuarantee:
    assert isinstance(study, Histogram)
    assert study.central is not None
    return study.central
