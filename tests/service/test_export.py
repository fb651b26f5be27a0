"""What a collector exports, `veil tally` can read: the same tally, whichever way the reports took."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.service.harness import SURVEY, framed
from typer.testing import CliRunner

from veil import GRR, Integers, Ledger, Record, Survey
from veil.cli.main import app
from veil.collector.catalogue import Catalogue, draft_of
from veil.collector.decoding import decode_requests
from veil.collector.exporting import export_parquet
from veil.collector.sqlite_store import SqliteStore
from veil.collector.store import Group
from veil.collector.tallying import catch_up
from veil.device.client import Client
from veil.errors import MismatchError, WireError
from veil.files import read_reports
from veil.sql import Category, Measure, Table
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


def test_what_devices_sent_beside_public_columns_becomes_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    from veil.sql.folder import create
    from veil.wire.frames import decode_report

    shop = Table(2.0, Record.of(age=Integers(0, 24)), (Measure("spent", 2), Category("os", ("ios", "web"))))
    people = [{"spent": 0.25 * i, "os": ("ios", "web")[i % 2]} for i in range(40)]
    sent = [
        Client(shop.survey.to_bytes(), Ledger(lifetime=2.0)).answer({"age": i % 25}, [shop.encode_person(one)])
        for i, one in enumerate(people)
    ]
    held = [{"age": i % 25} for i in range(500)]
    beside = shop.encode_public({"spent": np.arange(500) / 100, "os": ["web"] * 500})
    more = framed(shop.survey, held, public=beside)
    store, exported = SqliteStore(tmp_path / "c.sqlite3"), create(tmp_path / "exported", shop)
    catalogue = Catalogue(store)
    catalogue.create(draft_of(shop.survey, {}, precision=60, minimum=1))
    stored = catalogue.open(shop.survey.task)
    for bodies in (sent, [more]):
        decoded = decode_requests(shop.survey, bodies)
        assert not any(decoded.problems)
        store.append([Group(stored.key, decoded.ids, decoded.payloads, decoded.count)], now=1_000)
    current = store.find(shop.survey.task)
    assert current is not None
    export_parquet(store, current, exported.path / "from-the-collector.parquet")
    store.close()
    size = len(sent[0])
    frames = [*sent, *(more[i : i + size] for i in range(0, len(more), size))]
    direct = create(tmp_path / "direct", shop)
    direct.append(decode_report(shop.survey, frame)[1] for frame in frames)
    assert exported.people == direct.people == 540
    sums = ["1", '"spent"', '"spent" * "spent"']
    found = [
        [(one.keys, one.pattern, one.counts.tolist(), one.totals, one.products) for one in counted.classes]
        for counted in (rows.count(sums, ['"spent" > 1'], ['"os"']) for rows in (exported, direct))
    ]
    assert found[0] == found[1]
    spent = sum(25 * i for i in range(40)) + sum(range(500))
    assert sum(totals[1] for *_, totals, _ in found[0]) == spent
