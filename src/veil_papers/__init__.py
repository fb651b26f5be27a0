"""The papers' experiments, run again: each gives tables, figures and the papers' claims with a verdict.

`EXPERIMENTS` is the catalogue; `veil reproduce NAME` runs one. Nothing here is needed to use veil, and nothing heavy is
imported until an experiment runs.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veil_papers.common.exhibits import Reproduction, Setting

__all__ = ["EXPERIMENTS", "Experiment"]


@dataclass(frozen=True)
class Experiment:
    """A paper's experiments: a function of the setting. `minutes` is how long all of it takes on one core."""

    name: str
    paper: str
    exhibits: str
    minutes: int

    def __call__(self, setting: Setting) -> Reproduction:
        """Run it."""
        module = importlib.import_module(f"veil_papers.{self.name.replace('-', '_')}")
        made: Reproduction = module.reproduce(setting)
        facts = {"Source": self.paper, "Seed": str(module.SEED), **made.facts}
        if criteria := getattr(module, "CRITERIA", ""):
            facts["Criteria"] = criteria
        sampled = "a sample: fewer runs and points than in full, the same thresholds"
        facts["Run"] = setting.pick(
            sampled if setting.changes else "in full",
            "quick: fewer runs, points and people; only what involves no chance is decided",
        )
        return replace(made, name=self.name, quick=setting.quick, facts=facts)


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment("calibrate", "Jia and Gong, Calibrate, INFOCOM 2019, section IV", "Figures 4 to 9", 3),
        Experiment("consistency", "Wang et al., NDSS 2020, section V", "Figures 1 to 10", 5),
        Experiment("coverage", "every stated error of this package, beside the truth", "Tables 1 to 8", 25),
        Experiment("frequency-oracles", "Wang's thesis (2021), chapter 3", "Figures 3.1 to 3.5", 3),
        Experiment("heavy-hitters", "Wang's thesis (2021), 4.3.4 and 4.4", "Tables 4.1 to 4.3, Figures 4.2 to 4.6", 30),
        Experiment("itemsets", "Wang's thesis (2021), 5.4 and 5.5.2", "Figures 5.3, 5.4 and 5.6 to 5.8", 6),
        Experiment("marginals", "Wang's thesis (2021), chapter 6", "Figures 6.3 to 6.9", 45),
        Experiment("numeric", "Li et al., SIGMOD 2020, section 6", "Figures 2 to 7", 60),
        Experiment("peos", "Wang's thesis (2021), 9.5", "fake reports against collusion: choices of parameters", 6),
        Experiment("sql", "Wang's thesis (2021), chapter 7", "Figures 7.3 to 7.10, Tables 7.2 and 7.3, and beyond", 30),
        Experiment(
            "shuffle", "Wang's thesis (2021), 9.2, 9.3 and 9.6", "Tables 9.1 and 9.2, Figures 9.3, 9.4, and beyond", 2
        ),
        Experiment("splitting", "Wang's thesis (2021), 3.4.2", "people split against the budget split", 1),
    )
}
