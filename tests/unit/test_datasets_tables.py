"""Tables with private attributes and public columns: rows, resampling, both ways of getting them, bad arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veil import Record
from veil.errors import InputError
from veil_papers import datasets
from veil_papers.datasets import Records, Tabular


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VEIL_DATA", raising=False)


@pytest.fixture
def some() -> Tabular:
    held = Records(Record.of(sex=["f", "m"], age=3), np.array([[0, 2], [1, 0], [0, 1]]), "by hand", stand_in=False)
    return Tabular(held, {"hours": np.array([40, 20, 30]), "os": np.array(["a", "b", "a"])})


def test_private_and_public_columns_stay_together(some: Tabular) -> None:
    assert some.to_arrow().to_pylist()[1] == {"sex": "m", "age": 0, "hours": 20, "os": "b"}
    assert some.take(np.array([True, False, True])).public["hours"].tolist() == [40, 30]
    assert some.only(["age"]).rows().keys() == {"age", "hours", "os"}
    made = some.resample(500, seed=1)
    pairs = {
        (*codes, int(hours)) for codes, hours in zip(made.private.codes.tolist(), made.public["hours"], strict=True)
    }
    assert pairs == {(0, 2, 40), (1, 0, 20), (0, 1, 30)}
    with pytest.raises(InputError, match="at least 1"):
        some.resample(0, seed=1)


def test_chunks_are_all_people_in_order(some: Tabular) -> None:
    parts = list(some.chunks(2))
    assert [part.people for part in parts] == [2, 1]
    assert pa.concat_tables(part.to_arrow() for part in parts).equals(some.to_arrow())


@pytest.mark.parametrize("source", ["cps", "adult", "acs"])
def test_stand_ins_of_the_censuses_have_the_same_columns(source: datasets.Census) -> None:
    data = datasets.census_like(source=source, ordinal=(625, 256, 64, 25), categorical=4)
    assert data.stand_in
    assert data.private.sizes[:4] == (625, 256, 64, 25)
    [measure] = data.public.values()
    assert measure.std() / measure.mean() == pytest.approx(0.3, abs=0.01)
    first = data.private.table([data.private.domain.names[0]])
    assert first[0] / data.people == pytest.approx(0.25, abs=0.01)
    assert np.corrcoef(data.private.codes[:, :2].T.astype(float))[0, 1] != pytest.approx(0, abs=0.05)
    again = datasets.census_like(source=source, ordinal=(625, 256, 64, 25), categorical=4)
    assert (data.private.codes == again.private.codes).all()


@pytest.mark.parametrize(
    "wrong", [{"source": "x"}, {"ordinal": (2,) * 7}, {"categorical": 5}, {"ordinal": (), "categorical": 0}]
)
def test_what_cannot_be_made_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"one of|up to 6|between 0 and 4"):
        datasets.census_like(**wrong)  # type: ignore[arg-type]  # what a caller may get wrong


def test_the_stand_in_of_the_shop() -> None:
    data = datasets.online_retail()
    assert data.stand_in
    assert data.private.domain.names == ("region", "category", "price")
    assert data.public["postage"].min() == 0
    at_home = data.private.codes[:, 0] == 0
    assert data.private.domain.parts[0].label(0) == "Great Britain"
    assert data.public["postage"][~at_home].mean() > 2 * data.public["postage"][at_home].mean()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    adult = {"fnlwgt": [0, 300_000, 900_000], "age": [17, 40, 90], "marital_status": ["x", "y", "x"]}
    pq.write_table(pa.table(adult | {"hours_per_week": [40, 41, 42]}), tmp_path / "adult_uci.parquet")
    acs = {
        "PINCP": pa.array([None, 95_000, 1], pa.int32()),
        "POVPIP": [1, 2, 3],
        "MSP": pa.array([None, 1, 1], pa.int32()),
    }
    pq.write_table(pa.table(acs), tmp_path / "acs_nist2019_excerpts.parquet")
    lines = {
        "invoice": ["1", "1", "1", "2", "2", "C3"],
        "stock_code": ["22001", "84001A", "POST", "22002", "DOT", "22001"],
        "quantity": pa.array([2, 1, 2, 5, 1, -2], pa.int32()),
        "unit_price": pa.array([1.25, 99.0, 3.0, 0.85, 0.5, 1.25], pa.float32()),
        "invoice_time": pa.array([np.datetime64("2011-01-02T10:00:00", "ms")] * 6),
        "country": ["France", "France", "France", "Japan", "Japan", "France"],
    }
    pq.write_table(pa.table(lines), tmp_path / "online_retail_uci.parquet")
    return tmp_path


def test_numbers_of_a_census_are_cut_into_buckets_and_clipped(folder: Path) -> None:
    data = datasets.census_like(folder, source="adult", ordinal=(4, 75), categorical=1)
    assert not data.stand_in
    assert data.private.codes.tolist() == [[0, 1, 0], [2, 24, 1], [3, 74, 0]]
    assert data.public["hours"].tolist() == [40, 41, 42]
    missing = datasets.census_like(folder, source="acs", ordinal=(2,), categorical=1)
    assert missing.private.codes.tolist() == [[0, 1], [1, 0], [0, 0]]
    assert missing.private.domain.parts[1].label(1) == "none"


def test_order_lines_share_the_postage_of_their_order(folder: Path) -> None:
    data = datasets.online_retail(folder)
    rows = data.rows()
    assert data.people == 3
    assert rows["region"].tolist() == ["France", "France", "elsewhere"]
    assert rows["category"].tolist() == ["22", "84", "22"]
    assert data.private.codes[:, 2].tolist() == [6, 124, 4]  # dearer than 25 pounds: the last bucket
    assert rows["postage"].tolist() == [3.0, 3.0, 0.5]
    assert rows["quantity"].tolist() == [2, 1, 5]


@pytest.mark.parametrize("loader", [datasets.census_like, datasets.online_retail])
def test_a_folder_without_the_file_is_refused(loader: Callable[..., Tabular], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        loader(tmp_path)
