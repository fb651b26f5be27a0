"""Records of people: tables, resampling, how attributes are cut to few categories, files and stand-ins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veil import Record
from veil.domain import Items
from veil.errors import InputError
from veil_papers import datasets
from veil_papers.datasets import Records, Transactions

LOADERS: list[Callable[..., Records]] = [datasets.adult, datasets.us_census]


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VEIL_DATA", raising=False)


@pytest.fixture
def some() -> Records:
    codes = np.array([[0, 2, 1], [1, 0, 1], [0, 2, 0], [0, 2, 1]])
    return Records(Record.of(sex=["f", "m"], age=3, owner=["no", "yes"]), codes, "by hand", stand_in=False)


def test_tables_have_one_axis_per_attribute_in_the_order_asked(some: Records) -> None:
    assert some.table(["sex", "age"]).tolist() == [[0, 0, 3], [1, 0, 0]]
    assert some.table(["age", "sex"]).tolist() == some.table(["sex", "age"]).T.tolist()
    assert some.only(["owner", "sex"]).codes.tolist() == [[1, 0], [1, 1], [0, 0], [1, 0]]
    assert some.only(["owner", "sex"]).domain == Record.of(owner=["no", "yes"], sex=["f", "m"])
    rows, counts = some.distinct
    assert dict(zip(map(tuple, rows.tolist()), counts.tolist(), strict=True)) == {
        (0, 2, 0): 1,
        (0, 2, 1): 2,
        (1, 0, 1): 1,
    }
    assert some.take([3]).to_arrow().to_pylist() == [{"sex": "f", "age": 2, "owner": "yes"}]
    assert (some.domain.encode(some.to_arrow()) == some.codes).all()


def test_resampling_draws_whole_people(some: Records) -> None:
    made = some.resample(1_000, seed=1)
    assert made.people == 1_000
    assert {tuple(row) for row in made.codes.tolist()} == {tuple(row) for row in some.codes.tolist()}
    assert (made.codes == some.resample(1_000, seed=1).codes).all()
    assert (made.codes != some.resample(1_000, seed=2).codes).any()
    with pytest.raises(InputError, match="at least 1"):
        some.resample(0, seed=1)


def test_the_most_frequent_items_are_attributes() -> None:
    baskets = Transactions(Items(4).encode([[0, 1, 3], [1, 3], [], [3]]), 4, "by hand", stand_in=False)
    made = baskets.records(3)
    assert made.domain.names == ("item_3", "item_1", "item_0")
    assert made.codes.tolist() == [[1, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 0]]
    assert made.sizes == (2, 2, 2)
    for wrong in (0, 5, 1.5):
        with pytest.raises(InputError, match="between 1 and 4"):
            baskets.records(wrong)  # type: ignore[arg-type]  # what a caller may get wrong


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("most", [2, 3])
def test_stand_ins_have_attributes_that_depend_on_each_other(loader: Callable[..., Records], most: int) -> None:
    data = loader(most=most)
    assert data.stand_in
    assert set(data.sizes) <= {2, most}
    assert data.sizes[-1] == 2
    first, second = data.domain.names[:2]
    shares = data.table([first, second]) / data.people
    assert np.abs(shares - np.outer(shares.sum(1), shares.sum(0))).max() > 0.005
    assert (data.codes == loader(most=most).codes).all()


@pytest.mark.parametrize("loader", LOADERS)
def test_there_are_at_least_two_categories(loader: Callable[..., Records]) -> None:
    with pytest.raises(InputError, match="at least 2"):
        loader(most=1)


def test_transactions_without_a_folder() -> None:
    assert datasets.retail_baskets().stand_in
    assert datasets.webview_clicks().records(16).sizes == (2,) * 16


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of the same form: five people each, one of whom left something out, and two visits."""
    numbers = {"age": [20, 30, 30, 40, 50], "education_num": [9, 9, 9, 10, 13], "fnlwgt": [1, 2, 3, 4, 5]}
    numbers |= {"capital_gain": [0, 0, 0, 7, 9], "capital_loss": [0] * 5, "hours_per_week": [40] * 4 + [20]}
    words = {"workclass": ["a", "b", "a", "c", "d"], "education": ["x"] * 5, "occupation": ["?", "p", "p", "q", "q"]}
    words |= {name: ["u"] * 5 for name in ("marital_status", "relationship", "race", "sex", "native_country")}
    words["income"] = ["<=50K", "<=50K", ">50K", "<=50K", "<=50K"]
    columns = {name: pa.array(column, pa.int32()) for name, column in numbers.items()}
    columns |= {name: pa.array(column).dictionary_encode() for name, column in words.items()}
    pq.write_table(pa.table(columns), tmp_path / "adult_uci.parquet")
    census: dict[str, list[int | float | None]] = {"AGEP": [1, 2, 3, 4, 5], "PINCP": [None, 0, 50_000, 50_001, 99_000]}
    census |= {name: [1, 2, 1, None, 3] for name in ("EDU", "INDP_CAT", "SEX", "MSP", "OWN_RENT", "POVPIP", "NPF")}
    census |= {name: [1, 1, 1, 2, 2] for name in ("NOC", "HISP", "RAC1P", "HOUSING_TYPE", "DENSITY", "DREM", "DPHY")}
    pq.write_table(pa.table(census), tmp_path / "acs_nist2019_excerpts.parquet")
    pq.write_table(pa.table({"items": [[55_267, 330_285], [330_285]]}), tmp_path / "bms_webview2.parquet")
    return tmp_path


def test_numbers_are_cut_into_ranges_and_rare_values_merged(folder: Path) -> None:
    data = datasets.adult(folder)
    assert (data.people, data.stand_in) == (4, False)  # who left something out is left out
    parts, columns = dict(data.domain.attributes), dict(zip(data.domain.names, data.codes.T.tolist(), strict=True))
    assert (parts["age"].decode([0, 1, 2]), columns["age"]) == (["up to 30", "up to 40", "above 40"], [0, 0, 1, 2])
    assert parts["capital_gain"].decode([0, 1, 2]) == ["up to 0", "up to 7", "above 7"]
    assert (parts["capital_loss"].size, columns["capital_loss"]) == (1, [0] * 4)
    assert (parts["workclass"].size, columns["workclass"]) == (4 - 1, [1, 0, 2, 2])
    binary = datasets.adult(folder, most=2)
    assert dict(binary.domain.attributes)["age"].decode([0, 1]) == ["up to 30", "above 30"]
    assert dict(binary.domain.attributes)["workclass"].decode([0, 1]) == ["a", "other"]


def test_what_does_not_apply_is_a_value(folder: Path) -> None:
    data = datasets.us_census(folder)
    parts, columns = dict(data.domain.attributes), dict(zip(data.domain.names, data.codes.T.tolist(), strict=True))
    assert parts["PINCP"].decode(columns["PINCP"]) == ["up to 50,000"] * 3 + ["above 50,000"] * 2
    assert parts["MSP"].decode([0, 1, 2]) == ["1", "2", "other"]
    assert columns["MSP"] == [0, 1, 0, 2, 2]
    assert parts["EDU"].decode(columns["EDU"]) == ["up to 1"] * 1 + ["up to 2"] + ["up to 1"] * 2 + ["above 2"]


def test_codes_of_pages_are_numbered_in_order(folder: Path) -> None:
    visits = datasets.webview_clicks(folder)
    assert (visits.universe, visits.sizes.tolist(), visits.held.tolist()) == (2, [2, 1], [1, 2])
    with pytest.raises(InputError, match="no file"):
        datasets.retail_baskets(folder)
