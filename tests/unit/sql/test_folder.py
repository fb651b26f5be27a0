"""Tables in folders: appended files are whole, checked once, and refused or ignored if they do not belong."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.support.odd_names import BAIT, ODD_NAMES

from veil.domain import Integers, Record
from veil.entropy import SeededForExperiments
from veil.errors import EmptyError, InputError, MismatchError, VeilError, WireError
from veil.files.reports import write_parquet
from veil.reports.columns import Reports
from veil.sql import Measure, Table
from veil.sql.folder import TableFolder, create, open_folder
from veil.wire.arrow import to_arrow

pytest.importorskip("duckdb")

TABLE = Table(1.5, Record.of(age=Integers(0, 24)), (Measure("price", 2), Measure("visits")))
OTHER = Table(1.0, Record.of(age=Integers(0, 24)), (Measure("price", 2), Measure("visits")))


def reports(people: int, seed: int = 1, table: Table = TABLE) -> Reports:
    rng = np.random.default_rng(seed)
    public = table.encode_public({"price": rng.random(people) * 50, "visits": rng.integers(0, 9, people)})
    return table.survey.randomize({"age": rng.integers(0, 25, people)}, SeededForExperiments(seed), public)


def summed(folder: TableFolder) -> object:
    return [
        (one.pattern, one.counts.tolist(), one.totals, one.products)
        for one in folder.count(["1", '"price"', '"price" * "visits"'], ['"visits" > 4']).classes
    ]


def test_a_folder_is_made_opened_and_added_to(tmp_path: Path) -> None:
    folder = create(tmp_path / "odd [1] it's *" / "t", TABLE)
    assert open_folder(folder.path).table == TABLE
    assert folder.people == 0
    assert folder.count(["1"]).classes == ()
    everybody = reports(1000)
    folder.append(everybody[:300])
    first = open_folder(folder.path)
    assert first.people == folder.people == 300
    folder.append(iter([everybody[300:301], everybody[301:301], everybody[301:]]))  # the other one sees it too
    assert first.people == folder.people == 1000
    assert summed(first) == summed(folder)
    whole = create(tmp_path / "whole", TABLE)
    whole.append(everybody)
    assert summed(whole) == summed(folder)
    assert folder.ignored == whole.ignored == ()
    assert len(list(whole.path.iterdir())) == 2


def test_create_and_open_refuse_unusable_paths(tmp_path: Path) -> None:
    folder = create(tmp_path / "t", TABLE)
    with pytest.raises(InputError, match="a table already"):
        create(tmp_path / "t", TABLE)
    with pytest.raises(EmptyError):
        folder.append([])
    with pytest.raises(MismatchError):
        folder.append(reports(3, table=OTHER))
    wrong = dict(reports(3).columns)
    wrong["choice"] = np.full(3, 200, np.uint8)
    with pytest.raises(VeilError):
        folder.append(Reports(TABLE.survey.task, TABLE.survey.layout, wrong))
    assert folder.people == 0
    assert [p.name for p in folder.path.iterdir()] == ["study.json"]
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="expected a folder"):
        create(tmp_path / "file", TABLE)
    with pytest.raises(InputError, match="there is no table"):
        open_folder(tmp_path / "nowhere")
    (folder.path / "study.json").write_bytes(TABLE.to_bytes().replace(b'"epsilon":"1.5"', b'"epsilon":"1.6"'))
    with pytest.raises((MismatchError, WireError)):
        open_folder(folder.path)


def test_files_of_another_table_are_refused_by_name(tmp_path: Path) -> None:
    folder, other = create(tmp_path / "t", TABLE), create(tmp_path / "other", OTHER)
    folder.append(reports(10))
    part = other.append(reports(10, table=OTHER))
    shutil.copy(part, folder.path / "theirs.parquet")
    with pytest.raises(MismatchError, match=r"theirs\.parquet is no part of this table"):
        folder.count(["1"])
    (folder.path / "theirs.parquet").unlink()
    assert folder.people == 10
    import pyarrow as pa
    import pyarrow.parquet as pq

    good = pa.Table.from_batches([to_arrow(reports(10), TABLE.survey)])
    kept = good.schema.metadata
    for bad in (
        good.drop_columns(["seed"]),
        good.append_column("more", pa.array([1] * 10)),
        good.set_column(0, "choice", good["choice"].cast(pa.uint32())),
        good.set_column(0, "choice", pa.array([200] * 10, pa.uint8())),
        good.set_column(0, "choice", pa.array([0, None] * 5, pa.uint8())),
        pa.table({"a": [1]}),
    ):
        pq.write_table(
            bad.replace_schema_metadata(None if "a" in bad.column_names else kept), folder.path / "bad.parquet"
        )
        with pytest.raises((WireError, MismatchError), match=r"bad\.parquet is no part of this table"):
            open_folder(folder.path).count(["1"])
    (folder.path / "bad.parquet").unlink()
    (folder.path / "bad.parquet").write_bytes(b"PAR1" + b"nothing" * 9 + b"PAR1")
    with pytest.raises(WireError, match="bad"):
        open_folder(folder.path).count(["1"])


def test_what_a_collector_exports_can_be_put_into_the_folder(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder, everybody = create(tmp_path / "t", TABLE), reports(500)
    plain = pa.Table.from_batches([to_arrow(everybody[:200], TABLE.survey)])
    times = pa.array(np.zeros(200, "datetime64[s]"), pa.timestamp("s", tz="UTC"))
    pq.write_table(plain.append_column("time", times), folder.path / "exported.parquet")
    folder.append(everybody[200:])
    whole = create(tmp_path / "whole", TABLE)
    whole.append(everybody)
    assert folder.people == 500
    assert summed(folder) == summed(whole)


def test_half_written_files_are_ignored_and_reported(tmp_path: Path) -> None:
    folder = create(tmp_path / "t", TABLE)
    folder.append(reports(10))
    data = folder.append(reports(20, 2)).read_bytes()
    for name, size in ((".part.parquet.xyz.parquet", 100), ("copied.parquet", len(data) - 1), ("empty.parquet", 0)):
        (folder.path / name).write_bytes(data[:size])
    (folder.path / "old.arrow").write_bytes(b"")
    (folder.path / "README.txt").write_text("hello")
    again = open_folder(folder.path)
    assert again.people == folder.people == 30
    assert [line.partition(":")[0] for line in again.ignored] == [
        ".part.parquet.xyz.parquet",
        "copied.parquet",
        "empty.parquet",
        "old.arrow",
    ]
    assert summed(again) == summed(folder)


def test_damaged_files_raise(tmp_path: Path) -> None:
    folder = create(tmp_path / "t", TABLE)
    part = folder.append(reports(400))
    whole, truth = part.read_bytes(), summed(folder)
    rng = np.random.default_rng(5)
    for place in [*rng.integers(0, 8 * len(whole), 60).tolist(), 0, 8 * len(whole) - 1]:
        data = bytearray(whole)
        data[place // 8] ^= 1 << (place % 8)
        part.write_bytes(data)
        again = open_folder(folder.path)
        if bytes(data[-4:]) != b"PAR1":  # it looks half-written
            assert again.people == 0
            assert again.ignored == (f"{part.name}: not written to its end",)
        else:
            with pytest.raises(WireError, match=f"{part.name} was damaged"):
                again.count(["1"])
    part.write_bytes(whole)
    assert summed(open_folder(folder.path)) == truth


def test_a_file_is_checked_once_and_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = create(tmp_path / "t", TABLE)
    part = folder.append(reports(50))
    checked: list[str] = []
    check = TableFolder._check

    def noted(self: TableFolder, path: Path) -> int | str:
        checked.append(path.name)
        return check(self, path)

    monkeypatch.setattr(TableFolder, "_check", noted)
    again = open_folder(folder.path)
    for _ in range(3):
        assert again.people == 50
        first = again.database()
        assert again.database() is first
    assert checked == [part.name]
    os.utime(part, ns=(1, 1))
    assert again.people == 50
    assert checked == [part.name] * 2
    part.unlink()
    assert again.people == 0
    assert again.database() is not first
    shutil.rmtree(folder.path)
    with pytest.raises(InputError, match="no table in"):
        again.count(["1"])


_APPENDING = """
import sys
from veil.sql.folder import open_folder
from veil.reports.columns import Reports
folder = open_folder(sys.argv[1])
made = folder.table.survey.randomize({"age": [i % 25 for i in range(20000)]}, None, folder.table.encode_public(
    {"price": [1] * 20000, "visits": [2] * 20000}))
folder.append([made] * 5)
print("ready", flush=True)
while True:
    folder.append([made] * 5)
"""


def test_answers_do_not_depend_on_how_rows_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sqlglot")
    import veil.sql

    everybody = reports(4000)
    whole, split = create(tmp_path / "whole", TABLE), create(tmp_path / "split", TABLE)
    whole.append(everybody)
    order = np.random.default_rng(9).permutation(4000)
    for some in np.array_split(order, [1, 2, 900, 901, 3000]):
        split.append(everybody[some])
    for query in (
        "SELECT COUNT(*), SUM(price), AVG(price * visits), STDDEV(price) FROM people WHERE age BETWEEN 3 AND 17",
        "SELECT visits, COUNT(*) AS n, SUM(price) FROM people WHERE age < 9 OR price > 20 GROUP BY visits ORDER BY n",
    ):
        answers = []
        for path in (whole.path, split.path):
            for kept in (1 << 30, 0):
                monkeypatch.setattr("veil.sql.execution.duckdb.IN_MEMORY", kept)
                with veil.sql.open(path) as database:
                    answers.append(database.query(query).to_json())
        assert all(answer == answers[0] for answer in answers)


def test_a_kill_in_the_middle_of_adding_leaves_whole_files_only(tmp_path: Path) -> None:
    folder = create(tmp_path / "t", TABLE)
    rng, before = np.random.default_rng(3), 0
    for _ in range(2):
        adding = subprocess.Popen([sys.executable, "-c", _APPENDING, str(folder.path)], stdout=subprocess.PIPE)
        assert adding.stdout is not None
        assert adding.stdout.readline() == b"ready\n"
        time.sleep(float(rng.random()) * 0.3)
        adding.send_signal(signal.SIGKILL)
        adding.wait()
        adding.stdout.close()
        again = open_folder(folder.path)
        assert again.people % 100_000 == 0
        assert again.people > before
        before = again.people
        assert all(line.startswith(".part") for line in again.ignored)
        assert sum(one.totals[1] for one in again.count(["1", '"visits"']).classes) == 2 * again.people


def test_a_folder_with_an_odd_name_is_read_alone(tmp_path: Path) -> None:
    other = create(tmp_path / "other", TABLE).append(reports(30, seed=2))
    own = create(tmp_path / "own", TABLE).append(reports(7, seed=3))
    expected = summed(open_folder(own.parent))
    for bait in BAIT:  # under the name of our own file
        (tmp_path / bait).mkdir()
        shutil.copy(other, tmp_path / bait / "reports.parquet")
    for name in ODD_NAMES:
        folder = create(tmp_path / name, TABLE)
        shutil.copy(own, folder.path / "reports.parquet")
        assert (folder.people, folder.ignored) == (7, ()), name
        assert summed(folder) == expected, name
    for bait in BAIT:
        (tmp_path / bait / "study.json").write_bytes(TABLE.to_bytes())
        assert open_folder(tmp_path / bait).people == 30


def test_a_file_with_an_odd_name_is_read_once_or_ignored(tmp_path: Path) -> None:
    everybody = reports(20 + len(ODD_NAMES))
    folder = create(tmp_path / "t", TABLE)
    part = folder.append(everybody[:20])
    alone = summed(folder)
    for name in ODD_NAMES:  # the same reports again: one of the two files counts
        copy = shutil.copy(part, folder.path / f"{name}.parquet")
        assert (folder.people, len(folder.ignored)) == (20, 1), name
        assert summed(folder) == alone, name
        copy.unlink()
    for i, name in enumerate(ODD_NAMES, start=20):
        write_parquet(folder.path / f"{name}.parquet", TABLE.survey, [everybody[i : i + 1]])
    assert (folder.people, folder.ignored) == (len(everybody), ())
    whole = create(tmp_path / "whole", TABLE)
    whole.append(everybody)
    assert summed(folder) == summed(whole)


def test_a_large_table_with_an_odd_name_is_read_by_every_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veil.sql.execution.duckdb.IN_MEMORY", 0)
    plain, odd = create(tmp_path / "a=1" / "plain", TABLE), create(tmp_path / "a=1" / "pl*", TABLE)
    for folder in (plain, odd):
        folder.append(reports(300)[:100])
        folder.append(reports(300)[100:])
    assert summed(odd) == summed(odd) == summed(plain)
