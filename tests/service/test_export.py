"""What a collector exports, `veil tally` can read: the same tally, whichever way the reports took."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.service.harness import SURVEY, framed
from typer.testing import CliRunner

from veil import GRR, Survey
from veil.cli.main import app
from veil.collector.catalogue import Catalogue, draft_of
from veil.collector.decoding import decode_requests
from veil.collector.exporting import export_parquet
from veil.collector.sqlite_store import SqliteStore
from veil.collector.store import Group
from veil.collector.tallying import catch_up
from veil.errors import MismatchError, WireError
from veil.files import read_reports
from veil.wire.tallies import encode_tally


def test_an_export_is_a_file_of_reports(tmp_path: Path) -> None:
    store, out = SqliteStore(tmp_path / "c.sqlite3"), tmp_path / "reports.parquet"
    catalogue = Catalogue(store)
    catalogue.create(draft_of(SURVEY, {}, precision=60, minimum=1))
    stored = catalogue.open(SURVEY.task)
    decoded = decode_requests(SURVEY, [framed(SURVEY, [1, 2, 3] * 200)])
    store.append([Group(stored.key, decoded.ids, decoded.payloads, decoded.count)], now=1_000)
    current = store.find(SURVEY.task)
    assert current is not None
    kept = catch_up(store, current, SURVEY)
    export_parquet(store, current, out)
    store.close()
    task, tally = tmp_path / "task.json", tmp_path / "tally.bin"
    task.write_bytes(SURVEY.to_bytes())
    done = CliRunner().invoke(app, ["tally", str(task), str(out), "-o", str(tally), "--json"])
    assert json.loads(done.stdout)["people"] == 600
    assert kept is not None
    assert tally.read_bytes() == encode_tally(kept)
    with pytest.raises(MismatchError):
        list(read_reports(out, Survey(GRR(1.0, 4))))
    foreign = tmp_path / "foreign.parquet"
    pq.write_table(pq.read_table(out).replace_schema_metadata({}), foreign)
    with pytest.raises(WireError, match="veil reports"):
        list(read_reports(foreign, SURVEY))
    out.write_bytes(out.read_bytes()[:-10])
    with pytest.raises(WireError, match="Parquet"):
        list(read_reports(out, SURVEY))
