"""How much of a reproduction the default form of its step runs: full sizes and thresholds, fewer runs and points.

Verdicts count standard errors, which grow as runs get fewer: a claim fails in a sample only where more than that speaks
against it.
"""

from __future__ import annotations

from dataclasses import replace

from veil_papers.hitter_plan import FULL as ALL_HITTERS
from veil_papers.numeric_runs import BETA, FLIGHTS, INCOME, WAGES
from veil_papers.numeric_runs import FULL as ALL_NUMERIC

__all__ = ["HITTERS", "NUMERIC"]

HITTERS = replace(
    ALL_HITTERS,
    text_runs=1,
    epsilons=(0.5, 1.0, 2.0, 4.0),
    text_epsilons=(2.0, 4.0),
    tops=(8, 16, 32, 64),
    text_tops=(16,),
    step_epsilons=(0.9, 1.0, 2.0),
    split_epsilons=(0.6, 1.2, 2.0, 4.0),
    real_runs=5,
)
NUMERIC = replace(
    ALL_NUMERIC,
    epsilons=(0.5, 1.0, 2.0),
    runs={BETA: 200, FLIGHTS: 40, INCOME: 40, WAGES: 40},
    auto={BETA: 10, FLIGHTS: 2, INCOME: 2, WAGES: 2},
    wave_runs={BETA: 50, FLIGHTS: 8, INCOME: 8, WAGES: 12},
    width_runs={BETA: 60, FLIGHTS: 30, INCOME: 16, WAGES: 40},
    formula_runs={BETA: 400, FLIGHTS: 40, INCOME: 40, WAGES: 80},
    widths=(0.05, 0.1, 0.2, 0.3, 0.38),
)
