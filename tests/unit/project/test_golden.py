"""Numbers that the papers print."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from veil import BLH, GRR, OLH, OUE, SHE, SUE, THE
from veil.mechanisms import FrequencyOracle

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
ROWS = list(csv.DictReader((GOLDEN / "table_3_2_variance_over_n.csv").read_text().splitlines()))


def rows(method: str) -> list[tuple[float, int, str]]:
    return [(float(r["epsilon"]), int(r["d"] or 1024), r["value"]) for r in ROWS if r["method"] == method]


BUILDERS: dict[str, Callable[[float, int], FrequencyOracle]] = {
    "DE": GRR,
    "SHE": lambda epsilon, size: SHE(epsilon, size, grid=64),  # the paper's Laplace noise is continuous
    "THE(theta=1)": lambda epsilon, size: THE(epsilon, size, theta=1.0),
    "SUE": SUE,
    "OUE": OUE,
    "BLH": BLH,
}


@pytest.mark.parametrize("method", BUILDERS)
def test_table_3_2(method: str) -> None:
    assert len(rows(method)) == (12 if method == "DE" else 4)
    for epsilon, size, value in rows(method):
        assert f"{50_000 * BUILDERS[method](epsilon, size).variance(50_000):.2f}" == value


def test_table_3_2_is_complete() -> None:
    assert {row["method"] for row in ROWS} == {*BUILDERS, "OLH"}
    assert len(ROWS) == 12 + 6 * 4


def test_table_3_2_olh_has_the_formula_and_the_oracle_its_own_variance() -> None:
    assert len(rows("OLH")) == 4
    integer_range = {0.5: 15.82, 1.0: 3.69, 2.0: 0.72, 4.0: 0.08}
    for epsilon, size, value in rows("OLH"):
        formula = 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2
        assert f"{formula:.2f}" == value
        assert round(OLH(epsilon, size).variance(1), 2) == integer_range[epsilon]


def test_olh_hash_ranges_are_rounded() -> None:
    assert [OLH(epsilon, 10).hash_range for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0)] == [2, 3, 4, 8, 56]
