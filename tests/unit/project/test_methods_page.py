"""The page about post-processing describes every method as the method describes itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.commands import CliRunner

import veil
from veil.cli.main import app
from veil.post import METHODS, PAPER_METHODS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "post-processing.md"


@pytest.mark.parametrize("name", METHODS)
def test_page_has_a_correct_row_for_every_method(name: str) -> None:
    method = METHODS[name]
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{name}` |")]
    assert len(rows) == 1
    _, nonnegative, sums, good_for, bias = (cell.strip() for cell in rows[0].strip("|").split("|"))
    assert nonnegative in (("yes", "answers") if method.nonnegative else ("no",))
    assert sums == method.sums
    assert good_for.startswith(method.good_for.split(":")[0])
    assert bias == method.bias


def test_methods_of_the_paper_come_first() -> None:
    assert tuple(METHODS)[: len(PAPER_METHODS)] == PAPER_METHODS


def test_a_method_is_the_same_by_name_and_by_function() -> None:
    estimate = veil.simulate(veil.OLH(epsilon=1.0, domain=8), [0, 1, 2, 3] * 100, seed=3)
    for name, method in METHODS.items():
        if name != "mle":  # for GRR
            function = getattr(veil.post, name.replace("-", "_"))
            assert function is method
            assert estimate.post(name).frequencies.tolist() == function(estimate).frequencies.tolist()


def test_veil_post_lists_all_methods() -> None:
    listed = CliRunner().invoke(app, ["post", "--json"])
    assert [method["name"] for method in json.loads(listed.stdout)["methods"]] == list(METHODS)
    one = CliRunner().invoke(app, ["post", "norm-sub"])
    assert "norm-sub" in one.stdout
    assert "base-pos" not in one.stdout
    assert CliRunner().invoke(app, ["post", "norm-sup"]).exit_code == 3
