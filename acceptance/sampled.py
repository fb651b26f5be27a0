"""How much of a reproduction the default form of its step runs: full sizes and thresholds, fewer runs and points.

Verdicts count standard errors, which grow as runs get fewer: a claim fails in a sample only where more than that speaks
against it.
"""

from __future__ import annotations

from typing import Any


def _by_set(beta: int, flights: int, income: int, wages: int) -> dict[str, int]:
    return {"Beta": beta, "flights": flights, "income": income, "wages": wages}


HITTERS: dict[str, Any] = {
    "text_runs": 1,
    "epsilons": (0.5, 1.0, 2.0, 4.0),
    "text_epsilons": (2.0, 4.0),
    "tops": (8, 16, 32, 64),
    "text_tops": (16,),
    "step_epsilons": (0.9, 1.0, 2.0),
    "split_epsilons": (0.6, 1.2, 2.0, 4.0),
    "real_runs": 5,
}
NUMERIC: dict[str, Any] = {
    "epsilons": (0.5, 1.0, 2.0),
    "runs": _by_set(200, 40, 40, 40),
    "auto": _by_set(10, 2, 2, 2),
    "wave_runs": _by_set(50, 8, 8, 12),
    "width_runs": _by_set(60, 30, 16, 40),
    "formula_runs": _by_set(400, 40, 40, 80),
    "widths": (0.05, 0.1, 0.2, 0.3, 0.38),
}
MARGINALS: dict[str, Any] = {
    "epsilons": (0.2, 1.0, 2.0),
    "runs": 4,
    "few": 1,
    "em_queries": 3,
    "graphical_runs": 3,
    "heat_runs": 2,
    "heat_queries": 20,
    "heat_epsilons": (0.2, 1.0, 2.0),
    "k_runs": 3,
    "k_queries": 8,
    "k_epsilons": (0.4, 0.8, 1.2, 1.4, 1.6, 1.8),
    "splits": 6,
    "class_epsilons": (0.2, 0.8, 1.4, 2.0),
    "class_people": {"Adult": (16, 18, 20), "US": (18,)},
}
COVERAGE: dict[str, Any] = {
    "report_runs": 100,
    "forms_runs": 15,
    "top_runs": 30,
    "hitter_runs": 100,
    "set_runs": 5,
    "mean_runs": 60,
    "tree_runs": 20,
    "wave_runs": 5,
    "band_levels": (0.95,),
    "sql_designs": ("HIO", "Grids"),
    "sql_runs": 20,
}
SQL: dict[str, Any] = {
    "epsilons": (0.5, 2.0, 5.0),
    "sizes": (100_000, 500_000, 1_000_000),
    "collections": 2,
    "selectivities": (0.1, 0.5, 0.8),
    "practice_epsilons": (2.0,),
    "powers": (2, 4),
    "sc_one_in": 6,
    "read_runs": 10,
    "several_runs": 2,
    "lines": 2_000_000,
}
