"""What a collector exports, `veil tally` can read: the same tally, whichever way the reports took."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.service.harness import SURVEY, framed
from tests.support.commands import CliRunner

from veil import GRR, Integers, Ledger, Record, Survey
from veil.cli.main import app
from veil.collector.edge.decoding import decode_requests
from veil.collector.store.base import Group, StoredSurvey
from veil.collector.store.sqlite import SqliteStore
from veil.collector.surveys import exporting
from veil.collector.surveys.catalogue import Catalogue, draft_of
from veil.collector.surveys.collection import catch_up
from veil.collector.surveys.exporting import export_folder, export_parquet
from veil.device.client import Client
from veil.errors import InputError, MismatchError, WireError
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


def exported(tmp_path: Path, days: list[int], each: int) -> tuple[SqliteStore, StoredSurvey, list[bytes]]:
    """A survey with so many reports on each of some days; and their payloads in the order in which they came."""
    store = SqliteStore(tmp_path / "c.sqlite3")
    catalogue = Catalogue(store)
    catalogue.create(draft_of(SURVEY, {}, precision=3_600, minimum=1))
    stored = catalogue.open(SURVEY.task)
    sent = []
    for day in days:
        decoded = decode_requests(SURVEY, [framed(SURVEY, [1] * each)])
        store.append([Group(stored.key, decoded.ids, decoded.payloads, each)], now=day * 86_400 + 7_200)
        sent.append(decoded.payloads)
    return store, store.survey(stored.key), sent


def rows_of(path: Path) -> list[bytes]:
    return [some.to_bytes() for some in read_reports(path, SURVEY)]


def test_a_folder_of_days_holds_each_report_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_PART_ROWS", 200)
    monkeypatch.setattr(exporting, "_GROUPS_OF_A_FILE", 2)
    monkeypatch.setattr(exporting, "_MOST_ROWS", 77)
    store, stored, sent = exported(tmp_path, [20_000, 20_001, 20_000], 600)
    out = tmp_path / "out"
    assert export_folder(store, stored, out) == 1_800
    files = sorted(out.rglob("*.parquet"))
    assert {file.parent.relative_to(out).as_posix() for file in files} == {
        f"task={SURVEY.task}/day={day}" for day in ("2024-10-04", "2024-10-05")
    }
    assert [file.name for file in files] == [f"part-{i:05d}.parquet" for i in (0, 1, 2, 0, 1)]
    size = SURVEY.layout.size
    found = b"".join(b"".join(rows_of(file)) for file in files)
    cut = lambda data: sorted(data[i : i + size] for i in range(0, len(data), size))  # noqa: E731
    assert cut(found) == cut(b"".join(sent))
    other = b"".join(b"".join(rows_of(file)) for file in files if file.parent.name.endswith("05"))
    assert cut(other) == cut(sent[1])
    # as other engines see it: the folders' names are columns, and no id is among them
    table = ds.dataset(out, partitioning="hive").to_table()
    assert set(table.column_names) == {"seed", "bucket", "time", "task", "day"}
    assert table.num_rows == 1_800
    with pytest.raises(InputError, match="new folder"):
        export_folder(store, stored, out)
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []
    store.close()


def test_nothing_is_left_of_the_order_of_arrival(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_PART_ROWS", 1_000)
    store, stored, sent = exported(tmp_path, [1] * 10, 500)
    size = SURVEY.layout.size
    first = {data[i : i + size]: n for n, data in enumerate(sent) for i in range(0, len(data), size)}
    orders = []
    for name in ("a.parquet", "b.parquet"):
        assert export_parquet(store, stored, tmp_path / name) == 5_000
        data = b"".join(rows_of(tmp_path / name))
        orders.append([first[data[i : i + size]] for i in range(0, len(data), size)])
    assert orders[0] != orders[1]
    for order in orders:  # the correlation of place and arrival is within 6 standard deviations of none
        assert abs(np.corrcoef(np.arange(5_000), order)[0, 1]) < 6 / 5_000**0.5
    assert abs(np.corrcoef(np.arange(5_000), sorted(orders[0]))[0, 1]) > 0.9  # a rival that keeps it
    store.close()


def test_row_groups_are_large_and_seeds_have_no_dictionary(tmp_path: Path) -> None:
    store, stored, _ = exported(tmp_path, [1, 2, 3], 100_000)
    export_parquet(store, stored, tmp_path / "x.parquet")
    described = pq.read_metadata(tmp_path / "x.parquet")
    sizes = [described.row_group(i).num_rows for i in range(described.num_row_groups)]
    assert sum(sizes) == 300_000
    assert all(1 << 17 <= size <= 1 << 20 for size in sizes)
    encodings = {
        described.row_group(0).column(i).path_in_schema: described.row_group(0).column(i).encodings
        for i in range(described.num_columns)
    }
    assert not any("DICTIONARY" in one for one in encodings["seed"])
    assert any("DICTIONARY" in one for one in encodings["bucket"])
    assert "report_id" not in encodings
    store.close()


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
    export_parquet(store, current, exported.path / "from-the-collector.parquet")  # replaces the file
    export_parquet(store, current, exported.path / "again.parquet")
    store.close()
    assert exported.people == 2 * 540  # docs/sql.md warns of this: the orders differ, so that nothing shows it
    (exported.path / "again.parquet").unlink()
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
