"""How much is run."""

from __future__ import annotations

from collections.abc import Sequence

from veil_papers.common.exhibits import Setting

SEED = 17
DELTA = 1e-9
VALUES = 915
Goal = tuple[float, float, float]
"""eps_1, eps_2 and eps_3."""


class Plan:
    """How much is run."""

    def __init__(self, setting: Setting) -> None:
        pick, self.watch = setting.pick, setting.watch
        self.people: Sequence[int] = pick((602_325, 1_000_000), (602_325,))
        self.server: Sequence[float] = pick((0.1, 0.2, 0.5, 1.0), (0.1,))
        self.users: Sequence[float] = pick((0.25, 0.5, 1.0, 2.0), (0.25, 1.0))
        self.local: Sequence[float] = pick((2.0, 4.0, 6.0, 8.0), (4.0,))
        self.fake_shares: Sequence[float] = pick((0.0, 0.05, 0.1, 0.2, 0.4, 0.6), (0.0, 0.1, 0.4))
        self.collected: int = pick(20_000, 300)
        self.turns: int = pick(8, 1)
        self.added: int = pick(2_000, 30)
        self.sequential: Sequence[int] = pick((3, 7), (3,))
        self.oblivious: Sequence[int] = pick((3, 5, 7), (3,))
        vars(self).update(setting.changes)

    @property
    def goals(self) -> list[Goal]:
        """All promises that are asked for; where nobody needs a shuffler, none."""
        every = [(one, two, three) for three in self.local for one in self.server for two in self.users]
        return [goal for goal in every if goal[2] > min(goal[:2])]
