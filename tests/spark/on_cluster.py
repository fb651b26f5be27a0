"""The driver's side of the tests on a cluster: one case per run, in a process of its own.

`python -m tests.spark.on_cluster CASE FOLDER PEOPLE` starts a master and two workers, and ends with 0 where all holds.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.patience import until
from tests.support.held import people_of
from tests.support.spark_cluster import ROOT, Cluster, executors_of

from veil import OLH, Public, Record, Study, StudyRun, Survey, Text
from veil.engines import FileCollection
from veil.engines.spark import SparkCollection, open_session
from veil.engines.spark import session as jobs
from veil.engines.spark.pieces import cut
from veil.entropy import SeededForExperiments
from veil.errors import EngineError
from veil.files import read_reports
from veil.histogram import Questions
from veil.hitters import PEM
from veil.itemsets import SVIM
from veil.marginals import CALM
from veil.results.render.files import document
from veil.simulation import SimulatedCollection
from veil.simulation import spark as drawn
from veil.sql import Category, Measure, Table
from veil.study.run import MemoryJournal
from veil.survey import People
from veil.version import VERSION
from veil.wire.arrow import to_arrow
from veil.wire.tallies import encode_tally

SETTINGS = {
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.deploy.maxExecutorRetries": "-1",
}
RECORD = Record.of(a=2, b=3, c=2)
TABLE = Table(
    2.0,
    RECORD,
    (Measure("spent", 2), Category("os", ("a", "b"))),
    query="SELECT os, COUNT(*), SUM(spent) FROM people WHERE a = 1 GROUP BY os",
)
STUDIES: list[Study] = [
    PEM(4.0, Text(3), 4, alphabet="abc"),
    SVIM(2, 3.0, 30),
    CALM(2.0, RECORD, k=2, users=2_000),
    TABLE,
]


def said(what: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {what}\n")
    sys.stdout.flush()


class Killing:
    """Progress that kills a process once some of the people were counted."""

    def __init__(self, find: Callable[[], list[int]], share: float = 0.1) -> None:
        self._find, self._share, self.killed = find, share, 0

    @contextmanager
    def __call__(self, what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        seen = [0]

        def advance(people: int) -> None:
            seen[0] += people
            if not self.killed and seen[0] >= self._share * (total or 1):
                for pid in self._find():
                    os.kill(pid, signal.SIGKILL)
                    self.killed += 1

        yield advance


def reports_of(folder: Path, survey: Survey, people: int, groups: int, files: int = 2) -> list[Path]:
    """So many people's reports, in files with so many row groups each."""
    folder.mkdir(parents=True, exist_ok=True)
    paths, many = [], people // files
    for i in range(files):
        path = folder / f"part-{i}.parquet"
        codes = np.random.default_rng(i).integers(0, survey.domain.size, many).astype(np.uint64)
        chunks = SimulatedCollection(survey, People(codes), SeededForExperiments(i)).reports()
        _write(path, survey, chunks, max(1, many // groups))
        paths.append(path)
    return paths


def _write(path: Path, survey: Survey, chunks: Any, rows: int) -> None:
    batches = [to_arrow(chunk, survey) for chunk in chunks]
    pq.write_table(pa.Table.from_batches(batches), path, row_group_size=rows)


def same_study(spark: Any, study: Study, folder: Path, people: int) -> None:
    """A study on one machine and on the cluster: the same takes, byte by byte, and the same result."""
    here, there = MemoryJournal(), MemoryJournal()
    local, far = StudyRun(study, here), StudyRun(study, there)
    held, number = people_of(study, people), 0
    while local.round is not None:
        survey, paths = local.round.survey, []
        for i, rows in enumerate(np.array_split(np.arange(people), 2)):
            path = folder / f"{study.kind}-{number}-{i}.parquet"
            _write(
                path,
                survey,
                SimulatedCollection(survey, held[rows], SeededForExperiments(number + i)).reports(),
                people // 10,
            )
            paths.append(path)
        if isinstance(study, Table):  # read by the tasks, not at the driver
            direct = document(study.read(SparkCollection.files(spark, survey, paths)), 0.95)
            assert direct == document(study.read(FileCollection(survey, paths)), 0.95), study.kind
        local.answer(FileCollection(survey, paths))
        far.answer(SparkCollection.files(spark, survey, paths))
        number += 1
    assert here._kept == there._kept, study.kind
    assert document(local.result, 0.95) == document(far.result, 0.95), study.kind
    said(f"{study.kind}: the same")


# -- cases -------------------------------------------------------------------------------------------------------------


def counting(folder: Path, people: int) -> None:
    """Tallies with 1, 7 and many pieces, while a worker and an executor are killed; then studies on what is left."""
    large = people > 10**6
    survey, many = Survey(OLH(1.0, 1024 if large else 64)), 200 if large else 30
    paths = reports_of(folder / "reports", survey, people, 100)
    started = time.monotonic()
    local = encode_tally(FileCollection(survey, paths).tally())
    said(f"local: {time.monotonic() - started:.1f} s")
    with Cluster(folder / "cluster") as cluster:
        said("cluster started")
        spark = open_session(cluster.master, **SETTINGS)
        for pieces in (1, 7):
            assert encode_tally(SparkCollection.files(spark, survey, paths, pieces=pieces).tally()) == local
            said(f"{pieces} pieces: the same")
        kills: list[tuple[str, Callable[[], list[int]]]] = [
            ("an executor", lambda: executors_of(cluster.workers[1])),
            ("a worker", lambda: cluster.workers[:1]),
        ]
        for what, find in kills:
            killing = Killing(find)
            for _ in range(5):  # until it was killed in the middle: a few short tasks may end between two looks
                far = SparkCollection.files(spark, survey, paths, killing, pieces=many)
                assert encode_tally(far.tally()) == local
                if killing.killed:
                    break
            assert killing.killed, f"{what} was not killed in the middle"
            said(f"{many} pieces, {what} killed: the same")
        for study in STUDIES:
            same_study(spark, study, folder, 100_000 if large else 2000)
        spark.stop()


def drawing(folder: Path, people: int) -> None:
    """Randomizing while a worker is killed: everybody has one report. The rival, which shuffles, does not."""
    survey = Survey(OLH(1.0, 1024), [Public("person")])
    study, values = Questions(survey), folder / "people.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table({"value": np.arange(people) % 1024, "person": np.arange(people)})
    pq.write_table(table, values, row_group_size=people // 64)
    with Cluster(folder / "cluster") as cluster:
        spark = open_session(
            cluster.master,
            **SETTINGS,
            **{
                "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
                "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
            },
        )
        killing = Killing(lambda: cluster.workers[:1], share=0.2)
        assert drawn.randomize(spark, study, [values], folder / "out", killing, column="value", pieces=64) == people
        assert killing.killed
        twice, none = _asked(folder / "out", survey, people)
        said(f"randomize, a worker killed: {twice} people twice, {none} not at all")
        assert (twice, none) == (0, 0)
        assert not list((folder / "out").rglob("_temporary"))
        cluster.add_worker(2)
        _rival(spark, cluster, study, values, folder, people)
        spark.stop()


def _asked(out: Path, survey: Survey, people: int) -> tuple[int, int]:
    """How many people have more than one report, and how many have none."""
    counts = np.zeros(people, np.int64)
    for file in out.glob("part-*.parquet"):
        for reports in read_reports(file, survey):
            counts += np.bincount(reports.columns["public.person"], minlength=people)
    return int((counts > 1).sum()), int((counts == 0).sum())


def _rival(spark: Any, cluster: Cluster, study: Any, values: Path, folder: Path, people: int) -> None:
    """The same with a shuffle between drawing and writing: after a lost worker, noise is drawn a second time."""
    from pyspark.sql import functions as of

    survey, rows = study.survey, drawn._rows_of([str(values)])
    made = cut(rows, 64, 2, 16)
    arguments = {
        "files": (str(values),),
        "pieces": made,
        "rows": rows,
        "columns": ("value", "person"),
        "part": drawn._Part(0, (0, 1)).packed,  # type: ignore[arg-type]  # everybody
    }
    draw = partial(drawn._draw, VERSION, study.to_bytes(), survey.to_bytes(), arguments)
    frame = spark.range(0, len(made), 1, len(made)).mapInArrow(draw, drawn._schema(survey))
    shuffled = frame.repartition(40, of.col("payload"))
    out = folder / "rival"

    def wrote() -> int:
        return len(list(out.rglob("part-*.parquet"))) if out.exists() else 0

    def kill() -> None:  # in the second stage, once some of it was written
        until(lambda: wrote() >= 6)
        os.kill(cluster.workers[1], signal.SIGKILL)
        for pid in executors_of(cluster.workers[1]):
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        shuffled.write.parquet(str(out))
    except Exception as problem:
        if "indeterminate" not in str(problem).lower():
            raise
        said("the rival was ended by Spark itself: its output is indeterminate")
        return
    finally:
        killer.join()
    twice, none = _asked(out, survey, people)
    said(f"the rival: {twice} people twice, {none} not at all")
    assert twice > 0, "the shuffle after drawing was not caught"
    assert none > 0


def refused(work: Callable[[], Any], why: str) -> None:
    """The work ends in one sentence of ours."""
    with pytest.raises(EngineError, match=why) as found:
        work()
    said(str(found.value))


def nobody(folder: Path, people: int) -> None:
    """A cluster without workers, and one that is lost, end in one sentence instead of waiting for ever."""
    survey = Survey(OLH(1.0, 64))
    paths = reports_of(folder / "reports", survey, people, 4)
    short, usual = 5.0, jobs.PATIENCE
    with Cluster(folder / "cluster", workers=0) as cluster:
        spark = open_session(cluster.master, **SETTINGS)
        jobs.PATIENCE = short
        refused(lambda: SparkCollection.files(spark, survey, paths).tally(), "no worker of the cluster took up work")
        jobs.PATIENCE = usual  # a worker and its executor start, however busy the machine
        cluster.add_worker(0)
        far = SparkCollection.files(spark, survey, paths)
        assert encode_tally(far.tally()) == encode_tally(FileCollection(survey, paths).tally())
        for pid in (*executors_of(cluster.workers[0]), cluster.workers[0], cluster.master_process):
            os.kill(pid, signal.SIGKILL)
        jobs.PATIENCE = short
        refused(far.tally, "no worker of the cluster took up work|the cluster was lost|failed on the cluster")
        spark.stop()


def other_version(folder: Path, people: int) -> None:
    """Workers with another veil are refused in one sentence."""
    survey = Survey(OLH(1.0, 64))
    paths = reports_of(folder / "reports", survey, people, 4)
    fake = folder / "older"
    _copy_older(fake)
    with Cluster(folder / "cluster", workers=1) as cluster:
        spark = open_session(cluster.master, **{**SETTINGS, "spark.executorEnv.PYTHONPATH": str(fake)})
        refused(lambda: SparkCollection.files(spark, survey, paths).tally(), r"has veil 0\.0\.1")
        spark.stop()


def _copy_older(folder: Path) -> None:
    """The package as it is, but for its version."""
    shutil.copytree(ROOT / "src" / "veil", folder / "veil", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "veil" / "version.py").write_text('VERSION = "0.0.1"\n')


CASES: dict[str, Callable[[Path, int], None]] = {
    "counting": counting,
    "drawing": drawing,
    "nobody": nobody,
    "other-version": other_version,
}

if __name__ == "__main__":
    case, place, many = sys.argv[1:]
    CASES[case](Path(place), int(many))
    said(json.dumps({"case": case, "holds": True}))
