"""`--engine`: the same answers from Spark through the commands, and one sentence where an engine is not there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.e2e.test_cli import save_study, veil, veil_json

from veil import OLH, Record
from veil.cli.options import address
from veil.engines import gpu
from veil.errors import InputError
from veil.histogram import Histogram
from veil.itemsets import SVIM
from veil.sql import Category, Measure, Table

SHOP = Table(2.0, Record.of(a=2, b=3), (Measure("spent", 2), Category("os", ("x", "y"))))


@pytest.fixture
def shared(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands use the session of the tests, and leave it open."""
    monkeypatch.setattr("veil.engines.spark.open_session", lambda engine: _Kept(spark))


class _Kept:
    """A session that nobody stops."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def stop(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def test_tally_and_estimate(shared: None, tmp_path: Path) -> None:
    study = save_study(tmp_path, Histogram(OLH(2.0, 16)))
    values = tmp_path / "values.parquet"
    pq.write_table(pa.table({"value": np.arange(2000) % 16}), values)
    veil("randomize", study, values, "-o", tmp_path / "a.parquet", "--seed", "1")
    veil("randomize", study, values, "-o", tmp_path / "b.arrow", "--seed", "2")
    files = [tmp_path / "a.parquet", tmp_path / "b.arrow"]
    for engine in ("local", "spark-local"):
        veil("tally", study, *files, "-o", tmp_path / f"{engine}.tally", "--engine", engine)
    assert (tmp_path / "local.tally").read_bytes() == (tmp_path / "spark-local.tally").read_bytes()
    here, far = (veil_json("estimate", study, *files, "--engine", engine) for engine in ("local", "spark-local"))
    assert here == far
    assert veil_json("estimate", study, tmp_path / "local.tally", "--engine", "spark-local") == here


def test_simulate_walks_on_spark(shared: None, tmp_path: Path) -> None:
    study = save_study(tmp_path, SVIM(2, 6.0, 20))
    rng = np.random.default_rng(0)
    sets = [[0, 1, int(rng.integers(2, 20))] for _ in range(3000)]
    pq.write_table(pa.table({"items": sets}), tmp_path / "sets.parquet", row_group_size=500)
    found = veil_json("simulate", study, tmp_path / "sets.parquet", "--engine", "spark-local")
    assert {row["value"] for row in found["rows"]} == {0, 1}
    kept = ["simulate", study, tmp_path / "sets.parquet", "--folder", tmp_path / "run", "--engine", "spark-local"]
    first, again = veil_json(*kept), veil_json(*kept)  # nobody is asked twice
    assert first["rows"] == again["rows"]
    for option in (["--seed", "1"], ["--people", "10"], ["--truth"]):
        refused = veil("simulate", study, tmp_path / "sets.parquet", *option, "--engine", "spark-local", code=3)
        assert "is for trials on one machine" in refused.stderr


def test_a_file_that_looks_like_an_address_is_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    (tmp_path / "s3:" / "reports.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=re.escape(f"for the file, give {tmp_path}/s3:/reports.parquet")):
        address(Path("s3://reports.parquet"))
    assert address(tmp_path / "s3:" / "reports.parquet") == f"{tmp_path}/s3:/reports.parquet"
    assert address(Path("s3://bucket/reports.parquet")) == "s3://bucket/reports.parquet"


def test_sql(shared: None, tmp_path: Path) -> None:
    study = save_study(tmp_path, SHOP)
    rng = np.random.default_rng(1)
    people = {"a": rng.integers(0, 2, 2000), "b": rng.integers(0, 3, 2000), "spent": rng.integers(0, 99, 2000) / 4}
    people["os"] = np.array(["x", "y"])[rng.integers(0, 2, 2000)]
    pq.write_table(pa.table(people), tmp_path / "people.parquet")
    folder = tmp_path / "s* shop"
    veil("randomize", study, tmp_path / "people.parquet", "-o", folder, "--seed", "3")
    query = "SELECT os, COUNT(*), AVG(spent) FROM people WHERE a = 1 GROUP BY os"
    here, far = (veil_json("sql", folder, query, "--engine", engine) for engine in ("local", "spark-local"))
    assert here == far
    asked = ["estimate", study, folder, "--set", f"query={query}", "--engine"]
    direct = [veil_json(*asked, engine) for engine in ("local", "spark-local")]
    assert direct[0] == direct[1]


@pytest.mark.parametrize("engine", ["magic", "spark", "SPARK://x:1"])
def test_an_engine_that_there_is_not(engine: str, tmp_path: Path) -> None:
    study = save_study(tmp_path, Histogram(OLH(2.0, 16)))
    refused = veil("tally", study, study, "-o", tmp_path / "x", "--engine", engine, code=3)
    assert "there is no engine" in refused.stderr


def test_engines_that_are_not_there_end_with_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = save_study(tmp_path, Histogram(OLH(2.0, 16)))
    pq.write_table(pa.table({"value": [1, 2, 3]}), tmp_path / "v.parquet")
    veil("randomize", study, tmp_path / "v.parquet", "-o", tmp_path / "r.parquet")
    tally = ["tally", study, tmp_path / "r.parquet", "-o", tmp_path / "x"]
    assert "no Spark answers at" in veil(*tally, "--engine", "spark://127.0.0.1:1", code=8).stderr
    monkeypatch.setenv("VEIL_ENGINE", "spark://127.0.0.1:1")
    assert "no Spark answers at" in veil(*tally, code=8).stderr
    if not gpu.available():
        assert "there is no engine 'cuda' here" in veil(*tally, "--engine", "cuda", code=8).stderr
    assert not (tmp_path / "x").exists()
    assert json.loads(veil(*tally, "--json", code=8).stdout)["error"]["kind"] == "EngineError"
