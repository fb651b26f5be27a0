"""Results of joint distributions: remarks, truncated tables, selected cells, pictures."""

from __future__ import annotations

import datetime as dt
from functools import cache
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pytest

from veil import Interval, Record, simulate
from veil.marginals import CALM
from veil.results.base import Result
from veil.results.render.files import document, write_table

DAYS = Interval(dt.date(1950, 1, 1), dt.date(2000, 1, 1), cells=5)
PERSON = Record.of(age=Interval(0, 100, cells=10), sex=["f", "m"], smokes=2, region=["n", "e", "s", "w"], born=DAYS)
FEW, MANY = 50, 20_000
TOO_FEW = "There are too few reports to tell these shares apart."


@cache
def joint(people: int = MANY, inference: str = "consistent") -> Any:
    rng = np.random.default_rng(1)
    smokes = rng.integers(0, 2, people)
    held = {
        "age": rng.beta(2, 5, people) * 100,
        "sex": np.where(rng.random(people) < 0.1 + 0.8 * smokes, "f", "m"),
        "smokes": smokes,
        "region": rng.choice(list("nesw"), people),
        "born": [dt.datetime(1970, 5, 6)] * people,
    }
    epsilon = 4.0 if people == MANY else 1.0
    return simulate(CALM(epsilon, PERSON, k=2, sets=2, inference=inference), held, seed=1)  # type: ignore[arg-type]


def said(result: Result) -> str:
    return " ".join(result.remarks())


def test_reconstructed_marginals_have_a_remark() -> None:
    asked, reconstructed = joint().conditional("sex", given="age"), joint().conditional("sex", given=["age", "smokes"])
    assert (asked.facts()["measured"], reconstructed.facts()["measured"]) == (True, False)
    assert "maximum entropy" not in said(asked)
    assert "maximum entropy" in said(reconstructed)
    assert "maximum entropy" in said(joint().marginal(["sex", "age", "smokes"]))
    assert Result.from_json(reconstructed.to_json()) == reconstructed


def test_few_people_have_a_remark() -> None:
    for found in (joint(FEW), joint(FEW).marginal(["age", "region"]), joint(FEW).conditional("sex", given="age")):
        assert TOO_FEW in found.remarks()
    for found in (joint(), joint().marginal(["age", "region"])):
        assert TOO_FEW not in found.remarks()
    assert TOO_FEW not in joint().marginal(["age", "sex", "region"]).remarks()  # wide, but not for want of reports


def test_repaired_shares_have_a_remark() -> None:
    assert "moves small ones up" in said(joint())
    assert "moves small ones up" in said(joint(inference="graphical").marginal(["sex", "age"]))
    assert "moves small ones up" not in said(joint(inference="unbiased").marginal(["sex", "age"]))


def test_narrow_tables_show_every_attribute() -> None:
    found = joint()
    told = found.told(rows=10)
    assert list(dict.fromkeys(told.table["attribute"].to_pylist())) == list(PERSON.names)
    assert told.table["attribute"].to_pylist().count("region") == 2
    assert (told.table.num_rows, told.more) == (10, 23 - 10)
    assert "--marginal age,sex" in said(found)
    low, alone = (told.table[name].to_numpy() for name in ("low", "alone_low"))
    assert (low <= alone).all()
    assert (low < alone).any()
    assert found.told(rows=23).table.equals(found.table())


def test_documents_count_omitted_rows() -> None:
    found = joint().marginal(["age", "region"])
    assert (len(document(found, top=10)["rows"]), document(found, top=10)["more"]) == (10, 30)
    assert document(found, top=40)["more"] == 0
    assert "more" not in document(found)


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_files_contain_the_truth(ending: str, tmp_path: Any) -> None:
    found = joint().marginal("sex")
    write_table(found, tmp_path / f"found.{ending}", truth={"f": 0.5, "m": 0.5})
    if ending == "csv":
        assert pacsv.read_csv(tmp_path / "found.csv")["truth"].to_pylist() == [0.5, 0.5]
    assert "covered" in (tmp_path / f"found.{ending}").read_text()


def test_intervals_of_the_largest_cells_hold_for_the_largest_cells() -> None:
    """Everybody is spread evenly over 100 cells, so the largest ones are large by noise; a rival takes them alone."""
    record, cells = Record.of(a=10, b=10), np.arange(3_000)
    study, missed, rival = CALM(1.0, record, k=2, sets=2), 0, 0
    for seed in range(20):
        found: Any = simulate(study, {"a": cells % 10, "b": cells // 10 % 10}, seed=seed)
        picked = found.marginal(["a", "b"]).summary_table(rows=5)
        missed += int((picked["low"].to_numpy() > 0.01).sum())
        rival += int((picked["alone_low"].to_numpy() > 0.01).sum())
    assert missed <= 12  # 5 % of 100 are expected at most; 13 or more have a probability below 0.0015
    assert rival > 25


def test_pictures_show_uncertainty() -> None:
    few, plenty = joint(FEW).conditional("sex", given="age").plot(), joint().marginal(["smokes", "sex"]).plot()
    assert "pale" in few.get_title(loc="left")
    assert any("0 to 100" in text.get_text() for text in few.texts)
    assert np.asarray(few.images[0].get_alpha()).min() < 0.5
    assert "pale" not in plenty.get_title(loc="left")
    assert np.asarray(plenty.images[0].get_alpha()).min() == 1.0
    cut = joint().marginal(["age", "sex", "region"]).plot(k=10)
    assert "10 of 80 rows; not asked together: maximum entropy" in cut.get_title(loc="left")
    assert "not asked together" in joint().conditional("sex", given=["age", "region"]).plot().get_title(loc="left")


def test_insignificant_correlations_are_pale() -> None:
    found = joint().correlations(["sex", "smokes", "region"])
    table = {(row["first"], row["second"]): row for row in found.table().to_pylist()}
    assert [row["significant"] for row in table.values()] == [True, False, False]
    assert table["sex", "region"]["adjusted_p"] >= joint().correlation("sex", "region").p_value
    pale = np.asarray(found.plot().images[0].get_alpha()) < 0.5
    assert pale.tolist() == [[False, False, True], [False, False, True], [True, True, False]]
    assert repr(found) == "Correlations(3 pairs of attributes, n=20000)"
    assert repr(joint().correlations(["sex", "smokes"])) == "Correlations(1 pair of attributes, n=20000)"


def test_long_labels_are_turned_and_dates_are_dates() -> None:
    found = joint().marginal(["sex", "born"])
    assert found.table()["born"].to_pylist()[0] == "1950-01-01 to 1960-01-01"
    assert {label.get_rotation() for label in found.plot().get_xticklabels()} == {90.0}
    assert {label.get_rotation() for label in joint().marginal(["born", "sex"]).plot().get_xticklabels()} == {0.0}
    hours = Record.of(at=Interval(dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2), cells=2), sex=2)
    day = simulate(CALM(4.0, hours, k=1, sets=1), {"at": [dt.datetime(2026, 1, 1, 5)] * 90, "sex": [0] * 90}, seed=1)
    assert day.marginal("at").table()["at"].to_pylist()[0] == "2026-01-01 00:00 to 2026-01-01 12:00"  # type: ignore[attr-defined]


def test_synthetic_numbers_have_few_digits() -> None:
    ages = joint().synthesize(500, seed=1)["age"].to_pylist()
    assert set(ages) <= {5.0 + 10 * i for i in range(10)}
