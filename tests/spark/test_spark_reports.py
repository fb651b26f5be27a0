"""Reports on Spark: pieces, tables, ids, weights, filters, searches by blocks, and one sentence for what is wrong."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.test_spark_studies import written

from veil import GRR, OLH, OUE, AllOf, Bits, OneOf, Public, Survey
from veil.engines import FileCollection, MemoryCollection
from veil.engines.spark import SparkCollection, collected, session, tasks
from veil.engines.spark import session as jobs
from veil.engines.spark.pieces import cut
from veil.engines.spark.session import open_session
from veil.entropy import Batch, SeededForExperiments
from veil.errors import (
    DomainError,
    EmptyError,
    EngineError,
    EntropyError,
    InputError,
    MismatchError,
    VeilError,
    WireError,
)
from veil.files import read_reports
from veil.histogram import Questions
from veil.hitters import PEM
from veil.itemsets import SVIM
from veil.mechanisms import MECHANISMS, FrequencyOracle
from veil.results.render.files import document
from veil.simulation.spark import _PeoplePart, randomize, walk
from veil.study import Continuations, StudyRun
from veil.study.continuations import start
from veil.tools.messages import install_command
from veil.version import VERSION
from veil.wire.arrow import to_arrow
from veil.wire.frames import from_payloads, to_payloads
from veil.wire.tallies import encode_tally

AGED = Survey(OLH(1.0, 50), [Public("age"), Public("spent", 2)])
PLAIN = Survey(OLH(1.0, 300))
PEOPLE = 3000
HALF = (Fraction(1, 2), Fraction(1))


def aged_reports(people: int = PEOPLE) -> Any:
    rng = np.random.default_rng(3)
    public = {"age": rng.integers(0, 90, people), "spent": rng.integers(-500, 5000, people)}
    return AGED.randomize(rng.integers(0, 50, people), SeededForExperiments(5), public)


def parquet(path: Path, survey: Survey, reports: Any, rows: int = 500, ids: Any = None) -> Path:
    """Reports in row groups of so many, with ids beside them where they are given."""
    table = pa.Table.from_batches([to_arrow(reports, survey)])
    if ids is not None:
        table = table.append_column("report_id", pa.array(ids, pa.binary()))
        table = table.replace_schema_metadata(to_arrow(reports, survey).schema.metadata)
    pq.write_table(table, path, row_group_size=rows)
    return path


@pytest.mark.parametrize("pieces", [1, 7, 200])
def test_the_number_of_pieces_does_not_show(pieces: int, spark: Any, tmp_path: Path) -> None:
    reports = PLAIN.randomize(np.arange(PEOPLE) % 300, SeededForExperiments(1))
    path = parquet(tmp_path / "a.parquet", PLAIN, reports, rows=100)
    far = SparkCollection.files(spark, PLAIN, [path], pieces=pieces)
    assert encode_tally(far.tally()) == encode_tally(MemoryCollection(PLAIN, reports).tally())
    assert far.people == PEOPLE


def test_pieces_hold_every_group_once() -> None:
    rows = [[7, 0, 3], [], [1] * 50]
    for pieces in (1, 2, 7, 200):
        made = cut(rows, 9, 2, pieces)
        groups = [(file, group) for piece in made for file, first, last in piece for group in range(first, last)]
        assert groups == [(0, 0), (0, 2), *((2, i) for i in range(50))]
        assert len(made) <= pieces


def frame_of(spark: Any, survey: Survey, reports: Any, **columns: Any) -> Any:
    """A table of Spark's with payloads, and further columns."""
    batch = to_payloads(reports, survey)
    table = pa.Table.from_batches([batch])
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return spark.createDataFrame(table)


def test_every_mechanism_through_a_table(spark: Any) -> None:
    kinds = [kind for name, kind in MECHANISMS.items() if issubclass(kind, FrequencyOracle) and name != "Rappor"]
    survey = Survey(AllOf(*(kind(0.5, 8) for kind in kinds)))  # type: ignore[call-arg]  # all take both
    assert len(kinds) >= 12
    reports = survey.randomize(np.arange(PEOPLE) % 8, SeededForExperiments(2))
    far = SparkCollection.frame(spark, survey, frame_of(spark, survey, reports).repartition(3))
    assert encode_tally(far.tally()) == encode_tally(survey.tally(reports))


def test_a_tree_with_public_columns_weights_and_ranges(spark: Any, tmp_path: Path) -> None:
    survey = Survey(OneOf((1, GRR(1.0, 5)), (2, OUE(1.0, 5))), [Public("age")])
    ages = np.arange(PEOPLE) % 80 - 10
    reports = survey.randomize(np.arange(PEOPLE) % 5, SeededForExperiments(1), {"age": ages})
    path = parquet(tmp_path / "a.parquet", survey, reports)
    here = MemoryCollection(survey, reports)
    for far in (
        SparkCollection.files(spark, survey, [path]),
        SparkCollection.frame(spark, survey, frame_of(spark, survey, reports)),
    ):
        assert encode_tally(far.tally()) == encode_tally(here.tally())
        assert encode_tally(far.tally(weights="age")) == encode_tally(survey.tally(reports, weights=ages))
        some, mine = far.where(age=(18, 30)), here.where(age=(18, 30))
        assert some.people == mine.people == int(((ages >= 18) & (ages <= 30)).sum())
        assert encode_tally(some.tally((1,))) == encode_tally(mine.tally((1,)))
        assert far.where(age=(500, 600)).people == 0
        assert [some.answered(i) for i in (0, 1)] == [mine.answered(i) for i in (0, 1)]
        with pytest.raises(InputError, match="no public column 'size' to weigh by"):
            far.tally(weights="size")
        with pytest.raises(InputError, match="public columns of their survey"):
            far.where(size=(1, 2))


def test_reports_with_one_id_count_once_whatever_the_order(spark: Any, tmp_path: Path) -> None:
    reports = aged_reports(400)
    ids = [str(i % 300).encode() for i in range(400)]  # 100 ids stand twice, before different reports
    rng, found = np.random.default_rng(0), set()
    for run in range(3):
        order = rng.permutation(400)
        halves = [order[:150], order[150:]]
        paths = [
            parquet(tmp_path / f"{run}-{i}.parquet", AGED, reports[rows], 50, [ids[j] for j in rows])
            for i, rows in enumerate(halves)
        ]
        far = SparkCollection.files(spark, AGED, paths)
        assert far.people == 300
        found.add(encode_tally(far.tally()))
    assert len(found) == 1
    shuffled = rng.permutation(400)
    frame = frame_of(spark, AGED, reports[shuffled], report_id=[ids[j] for j in shuffled])
    assert encode_tally(SparkCollection.frame(spark, AGED, frame, unique="report_id").tally()) in found
    kept = {}
    for row in order:  # the rival: whichever comes first
        kept.setdefault(ids[row], int(row))
    assert encode_tally(MemoryCollection(AGED, reports[np.array(list(kept.values()))]).tally()) not in found


def test_a_search_by_many_blocks(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "_BLOCK", 1 << 10)
    study = PEM(4.0, Bits(24), k=8, budget=2**14)
    values = np.minimum(np.random.default_rng(0).geometric(0.1, 4000), 200) * 65_537
    paths = written(tmp_path, study.survey, study.encode(values), 1)
    far, here = SparkCollection.files(spark, study.survey, paths), FileCollection(study.survey, paths)
    last = len(study.survey.questions) - 1
    for keep in (1, 40, 5000):  # with few people and many candidates, ties are everywhere
        tried = Continuations(start(), 0, study.survey.questions[0].pure.domain.size.bit_length() - 1)
        assert far.best((0,), tried, keep) == here.best((0,), tried, keep)
    assert study.read(far).values == study.read(here).values
    codes = np.arange(5000, dtype=np.uint64)
    assert far.support((last,), codes) == here.support((last,), codes)


# -- randomizing -------------------------------------------------------------------------------------------------------


def people_file(path: Path, people: int, rows: int = 500) -> Path:
    table = pa.table({"value": np.arange(people) % 50, "age": np.arange(people), "spent": np.arange(people) * 3})
    pq.write_table(table, path, row_group_size=rows)
    return path


def test_randomizing_gives_everybody_one_report(spark: Any, tmp_path: Path) -> None:
    values = people_file(tmp_path / "people.parquet", PEOPLE)
    study = Questions(AGED)
    assert randomize(spark, study, [values], tmp_path / "out", column="value") == PEOPLE
    files = sorted((tmp_path / "out").glob("part-*.parquet"))
    reports = [some for file in files for some in read_reports(file, AGED)]
    ages = np.sort(np.concatenate([some.columns["public.age"] for some in reports]))
    assert ages.tolist() == list(range(PEOPLE))
    far = SparkCollection.files(spark, AGED, [tmp_path / "out"])
    assert encode_tally(far.tally()) == encode_tally(FileCollection(AGED, files).tally())
    again = SparkCollection.frame(spark, AGED, spark.read.parquet(str(tmp_path / "out")))
    assert encode_tally(again.tally()) == encode_tally(far.tally())
    with pytest.raises(InputError, match="there already"):
        randomize(spark, study, [values], tmp_path / "out", column="value")
    seeds = {bytes(some.to_bytes()) for some in reports}
    randomize(spark, study, [values], tmp_path / "second", column="value")
    second = {bytes(s.to_bytes()) for f in (tmp_path / "second").glob("*.parquet") for s in read_reports(f, AGED)}
    assert not seeds & second  # fresh entropy every time


def test_folders_with_odd_names_are_written_and_read(spark: Any, tmp_path: Path) -> None:
    study = Questions(PLAIN)
    values = people_file(tmp_path / "people.parquet", 40)
    for i, name in enumerate(('s*[!x]?{a,b} it\'s "50%" a=1', "line\nbreak\u202e back\\slash%20", "s3:")):
        given, out = tmp_path / str(i) / f"{name}.parquet", tmp_path / str(i) / name
        given.parent.mkdir()
        values.rename(given)
        assert randomize(spark, study, [given], out, column="value") == 40
        assert {path.name for path in given.parent.iterdir()} == {given.name, name}
        assert SparkCollection.files(spark, PLAIN, [out]).people == 40
        values = given
    with pytest.raises(InputError, match="expected a name in UTF-8"):
        randomize(spark, study, [values], tmp_path / "\udcff", column="value")
    assert not (tmp_path / "\udcff").exists()


def test_rounds_ask_nobody_twice(spark: Any, tmp_path: Path) -> None:
    values, study = people_file(tmp_path / "people.parquet", PEOPLE), Questions(AGED)
    ends = [Fraction(0), Fraction(1, 5), Fraction(7, 10), Fraction(1)]
    seen: list[int] = []
    for i, share in enumerate(pairwise(ends)):
        out = tmp_path / str(i)
        many = randomize(spark, study, [values], out, column="value", share=share, key=99)
        assert abs(many - PEOPLE * (share[1] - share[0])) < 5 * PEOPLE**0.5
        for file in out.glob("part-*.parquet"):
            seen += [int(age) for some in read_reports(file, AGED) for age in some.columns["public.age"]]
    assert sorted(seen) == list(range(PEOPLE))


def test_a_study_of_several_rounds_walks_on_spark(spark: Any, tmp_path: Path) -> None:
    study = SVIM(2, 6.0, 20)
    rng = np.random.default_rng(0)
    sets = [[0, 1, int(rng.integers(2, 20))] for _ in range(PEOPLE)]
    pq.write_table(pa.table({"items": sets}), tmp_path / "sets.parquet", row_group_size=700)
    found = walk(spark, StudyRun(study), [tmp_path / "sets.parquet"], tmp_path, 7)
    assert set(found.items) == {0, 1}


def test_values_outside_the_domain_fail_the_job_and_leave_nothing(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"value": [1, 2, 777_777]}), tmp_path / "bad.parquet")
    with pytest.raises(DomainError) as refused:
        randomize(spark, Questions(PLAIN), [tmp_path / "bad.parquet"], tmp_path / "out")
    assert "777" not in str(refused.value)
    assert not list((tmp_path / "out").rglob("*.parquet"))


@pytest.mark.parametrize(
    "setting",
    [
        ("spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version", "2"),
        ("mapreduce.fileoutputcommitter.algorithm.version", "2"),
        ("spark.sql.sources.commitProtocolClass", "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol"),
        ("spark.sql.parquet.output.committer.class", "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter"),
        ("spark.sql.execution.pyspark.udf.tracebackWithLocals.enabled", "true"),
    ],
)
def test_settings_that_would_leak_are_refused(setting: tuple[str, str], spark: Any, tmp_path: Path) -> None:
    spark.conf.set(*setting)
    try:
        with pytest.raises(InputError, match=setting[0]):
            randomize(
                spark, Questions(AGED), [people_file(tmp_path / "p.parquet", 10)], tmp_path / "out", column="value"
            )
    finally:
        spark.conf.unset(setting[0])


@pytest.mark.parametrize("source", [Batch(), SeededForExperiments(1)])
def test_entropy_does_not_travel(source: Any) -> None:
    with pytest.raises(EntropyError, match="cannot be copied or pickled"):
        pickle.dumps(source)


def test_the_place_of_a_bad_value_is_its_own_row(spark: Any, tmp_path: Path) -> None:
    values = np.arange(PEOPLE) % 50
    values[900] = 777_777
    pq.write_table(pa.table({"value": values}), tmp_path / "bad.parquet", row_group_size=400)
    share = (Fraction(0), Fraction(1, 2)) if _PeoplePart(99, (Fraction(0), Fraction(1, 2))).holds(900, 901)[0] else HALF
    with pytest.raises(DomainError, match=r"row 900;"):
        randomize(spark, Questions(PLAIN), [tmp_path / "bad.parquet"], tmp_path / "out", share=share, key=99)
    pq.write_table(pa.table({"other": [1]}), tmp_path / "other.parquet")
    pq.write_table(pa.table({"value": [1]}), tmp_path / "good.parquet")
    paths = [tmp_path / "good.parquet", tmp_path / "other.parquet"]
    with pytest.raises(InputError, match=r"other\.parquet has no column value"):
        randomize(spark, Questions(PLAIN), paths, tmp_path / "out2", column="value")


def test_a_walk_goes_on_with_the_same_people_only(spark: Any, tmp_path: Path) -> None:
    values, study = people_file(tmp_path / "people.parquet", 500), Questions(AGED)
    first = walk(spark, StudyRun(study), [values], tmp_path, 7, column="value")
    again = walk(spark, StudyRun(study), [values], tmp_path, 7, column="value")  # read once more, nobody asked
    assert document(first, 0.95) == document(again, 0.95)
    people_file(values, 600)
    with pytest.raises(MismatchError, match="other people"):
        walk(spark, StudyRun(study), [values], tmp_path, 7, column="value")


# -- what is wrong -----------------------------------------------------------------------------------------------------


def test_a_file_of_another_task_is_refused_by_name(spark: Any, tmp_path: Path) -> None:
    good = parquet(tmp_path / "good.parquet", PLAIN, PLAIN.randomize([1, 2], SeededForExperiments(1)))
    other = Survey(OLH(1.0, 301))
    bad = parquet(tmp_path / "bad.parquet", other, other.randomize([1, 2], SeededForExperiments(1)))
    with pytest.raises(MismatchError, match=r"bad\.parquet.*another task"):
        SparkCollection.files(spark, PLAIN, [good, bad])
    batch = to_arrow(PLAIN.randomize([1, 2], SeededForExperiments(1)), PLAIN)
    pq.write_table(pa.Table.from_batches([batch]).drop_columns(["bucket"]), tmp_path / "short.parquet")
    with pytest.raises(WireError, match=r"short\.parquet.*expected the columns"):
        SparkCollection.files(spark, PLAIN, [good, tmp_path / "short.parquet"])
    (tmp_path / "cut.parquet").write_bytes(good.read_bytes()[:-20])
    with pytest.raises(WireError, match=r"cut\.parquet.*not a complete Parquet file"):
        SparkCollection.files(spark, PLAIN, [good, tmp_path / "cut.parquet"])
    with pytest.raises(InputError, match="given twice"):
        SparkCollection.files(spark, PLAIN, [good, good])
    with pytest.raises(InputError, match="there is no file"):
        SparkCollection.files(spark, PLAIN, [tmp_path / "nothing.parquet"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmptyError, match="no files of reports"):
        SparkCollection.files(spark, PLAIN, [tmp_path / "empty"])


def test_reports_that_change_between_passes_are_refused(spark: Any, tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", PLAIN, PLAIN.randomize(np.arange(300), SeededForExperiments(1)))
    far = SparkCollection.files(spark, PLAIN, [path])
    far.tally()
    parquet(path, PLAIN, PLAIN.randomize(np.arange(300), SeededForExperiments(2)))
    with pytest.raises(EngineError, match="changed between two passes"):
        far.tally()
    parquet(path, PLAIN, PLAIN.randomize(np.arange(200), SeededForExperiments(2)))
    with pytest.raises(EngineError, match="hold 300 reports and the tasks saw 200"):
        far.tally()


def test_reports_that_change_before_they_are_streamed_are_refused(spark: Any, tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", PLAIN, PLAIN.randomize(np.arange(300), SeededForExperiments(1)))
    far = SparkCollection.files(spark, PLAIN, [path])
    far.tally()
    assert sum(map(len, far.reports())) == 300
    parquet(path, PLAIN, PLAIN.randomize(np.arange(300), SeededForExperiments(2)))
    with pytest.raises(EngineError, match="changed between two passes"):
        list(far.reports())


def test_ids_that_are_missing_or_numbers_are_refused(spark: Any, tmp_path: Path) -> None:
    reports = PLAIN.randomize(np.arange(10), SeededForExperiments(1))
    ids = [None if i % 2 else str(i).encode() for i in range(10)]
    far = SparkCollection.frame(spark, PLAIN, frame_of(spark, PLAIN, reports, id=pa.array(ids)), unique="id")
    with pytest.raises(WireError, match="no id"):
        far.tally()
    table = pa.Table.from_batches([to_arrow(reports, PLAIN)]).append_column("report_id", pa.array(range(10)))
    pq.write_table(table.replace_schema_metadata(to_arrow(reports, PLAIN).schema.metadata), tmp_path / "a.parquet")
    with pytest.raises(WireError, match="holds bytes or text"):
        SparkCollection.files(spark, PLAIN, [tmp_path / "a.parquet"])


def test_nobody_left_and_no_candidates(spark: Any, tmp_path: Path) -> None:
    survey = Survey(OLH(1.0, Bits(22)), [Public("age")])
    reports = survey.randomize(np.arange(50), SeededForExperiments(1), {"age": np.arange(50)})
    path = parquet(tmp_path / "a.parquet", survey, reports)
    far, here = SparkCollection.files(spark, survey, [path]), FileCollection(survey, [path])
    everything = Continuations(start(), 0, 22)
    nobody, nobody_here = far.where(age=(900, 901)), here.where(age=(900, 901))
    assert nobody.best((0,), everything, 5) == nobody_here.best((0,), everything, 5)
    assert nobody.fingerprint == nobody_here.fingerprint
    assert nobody.where(age=(1, 2)).fingerprint == nobody_here.where(age=(1, 2)).fingerprint
    none = np.zeros(0, np.uint64)
    assert far.support((0,), none) == here.support((0,), none)


def test_few_tasks_where_results_are_large(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    survey = Survey(OUE(1.0, 3000))
    reports = survey.randomize(np.arange(400) % 3000, SeededForExperiments(1))
    path = parquet(tmp_path / "a.parquet", survey, reports, rows=10)
    far = SparkCollection.files(spark, survey, [path], pieces=40)
    ran: list[int] = []
    whole = SparkCollection.parts
    monkeypatch.setattr(collected, "_RESULT_BYTES", 3 * 8 * 3000)
    monkeypatch.setattr(SparkCollection, "parts", lambda self, *a, **k: ran.append(k["most"]) or whole(self, *a, **k))
    assert encode_tally(far.tally()) == encode_tally(survey.tally(reports))
    assert ran == [3]
    assert far._source.coarser(3).tasks == 3


def test_progress_is_told_to_the_end(spark: Any, tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", PLAIN, PLAIN.randomize(np.arange(300), SeededForExperiments(1)), rows=50)
    told: list[int] = []

    @contextmanager
    def watch(what: str, total: int | None = None) -> Iterator[Any]:
        assert total == 300
        yield told.append

    SparkCollection.files(spark, PLAIN, [path], watch, pieces=6).tally()
    assert sum(told) == 300


def test_addresses_are_read_as_they_are_written(spark: Any, tmp_path: Path) -> None:
    reports = PLAIN.randomize(np.arange(300), SeededForExperiments(1))
    path = parquet(tmp_path / "a.parquet", PLAIN, reports)
    for address in (path.as_uri(), tmp_path.as_uri()):
        far = SparkCollection.files(spark, PLAIN, [address])
        assert far.people == 300
        assert encode_tally(far.tally()) == encode_tally(PLAIN.tally(reports))
        assert far.fingerprint == FileCollection(PLAIN, [path]).fingerprint
        assert sum(map(len, far.reports())) == 300


def test_bad_payloads_are_refused_at_the_driver(spark: Any) -> None:
    reports = PLAIN.randomize([1, 2, 3], SeededForExperiments(1))
    payloads = to_payloads(reports, PLAIN).column(0).to_pylist()
    for broken in ([*payloads, payloads[0][:-1]], [*payloads, None], [*payloads, b"\xff" * len(payloads[0])]):
        frame = spark.createDataFrame(pa.table({"payload": pa.array(broken, pa.binary())}))
        with pytest.raises(WireError):
            SparkCollection.frame(spark, PLAIN, frame).tally()
    with pytest.raises(WireError, match="expected the columns payload"):
        SparkCollection.frame(spark, PLAIN, spark.range(3))
    with pytest.raises(InputError, match="no column report_id"):
        SparkCollection.frame(spark, PLAIN, frame_of(spark, PLAIN, reports), unique="report_id")


def test_an_empty_table(spark: Any) -> None:
    frame = frame_of(spark, PLAIN, PLAIN.randomize([1], SeededForExperiments(1))).limit(0)
    far = SparkCollection.frame(spark, PLAIN, frame)
    assert far.people == 0
    with pytest.raises(EmptyError):
        far.tally()


def test_too_large_results_are_one_sentence(spark: Any, tmp_path: Path) -> None:
    problem = "Total size of serialized results of 3 tasks (2.0 GiB) is bigger than spark.driver.maxResultSize"
    assert "spark.driver.maxResultSize" in str(jobs._translated(problem, "Py4JJavaError"))


def test_a_worker_without_veil_or_with_another(spark: Any) -> None:
    missing = "PythonException: Traceback...\nModuleNotFoundError: No module named 'veil'\n"
    assert f"no veil {VERSION}" in str(jobs._translated(missing, "PythonException"))
    (row,) = tasks.run("9.9.9", "veil.engines.spark.tasks:tally", PLAIN.to_bytes(), {}, iter(()))
    assert "has veil" in str(jobs.raised(row.column("error")[0].as_py()))


@pytest.mark.parametrize(("kind", "expected"), [("WireError", WireError), ("Nothing", EngineError)])
def test_errors_of_tasks_come_back_as_they_were(kind: str, expected: type[VeilError]) -> None:
    assert type(jobs.raised(f"{kind}\nwhat was expected")) is expected


def test_no_pyspark_no_java_no_master(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match=r"no Spark answers at 127\.0\.0\.1:1"):
        open_session("spark://127.0.0.1:1")
    with pytest.raises(InputError, match="spark://host:port"):
        open_session("spark://nowhere")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(EngineError, match="needs Java 17"):
        open_session("spark-local")
    monkeypatch.setattr(session, "find_spec", lambda name: None)
    with pytest.raises(EngineError, match=re.escape(install_command("spark"))):
        open_session("spark-local")


def test_payloads_are_the_reports_again() -> None:
    reports = aged_reports(100)
    again = from_payloads(to_payloads(reports, AGED), AGED)
    assert again.to_bytes() == reports.to_bytes()
    size = AGED.layout.size
    whole = [reports.to_bytes()[i : i + size] for i in range(0, 100 * size, size)]  # as they travel, public ones inside
    batch = pa.record_batch({"payload": pa.array(whole, pa.binary())})
    assert from_payloads(batch.slice(3, 50), AGED).to_bytes() == reports[3:53].to_bytes()
