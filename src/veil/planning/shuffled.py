"""How many people hold each value, asked through a shuffler: what each oracle reaches for the same central promise."""

from __future__ import annotations

from collections.abc import Callable

from veil.errors import InputError
from veil.histogram import Histogram
from veil.planning.base import Choice, Goal, Measure, Option, Row, Ways, Wishes
from veil.planning.histogram import HistogramGoal
from veil.shuffle import Amplified, ShuffleDesign, Shuffler, designs
from veil.study import Study
from veil.tools.json_documents import Json

__all__ = ["ShuffledHistogram"]


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
        return {one.oracle.name: _asking(one, shuffler) for one in sorted(found, key=lambda one: one.mean_variance)}

    def errors(self, study: Study, wishes: Wishes) -> Row:
        found = _central(study)
        more = super().errors(study, wishes)
        return {
            "local eps": Measure(found.local.epsilon, "eps"),
            "central eps": Measure(found.epsilon, "eps"),
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


def _asking(one: ShuffleDesign, shuffler: Shuffler) -> Callable[[], Study]:
    return lambda: Histogram(one.oracle, shuffler=shuffler)


def _central(study: Study) -> Amplified:
    assert isinstance(study, Histogram)
    assert study.central is not None
    return study.central
