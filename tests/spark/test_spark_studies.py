"""Studies on Spark take what they take on one machine: the same bytes, whatever the pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.held import people_of
from tests.unit.study.test_studies import RECORD

from veil import OLH, Bits, Interval, SquareWave, StochasticRounding, Study, StudyRun, Survey, Text
from veil.engines import FileCollection
from veil.engines.spark import SparkCollection
from veil.entropy import SeededForExperiments
from veil.files.reports import write_parquet
from veil.histogram import Histogram
from veil.hitters import PEM, SegmentPairs
from veil.itemsets import SVIM
from veil.marginals import CALM, SplitEM
from veil.numeric import Hierarchy, MeanOf, WaveDistribution
from veil.results.render.files import document
from veil.simulation import SimulatedCollection
from veil.sql import HI, HIO, MG, SC, Category, Grids, Measure, Table
from veil.study.run import MemoryJournal

UNIT = Interval(0.0, 1.0)
SHOP = (Measure("spent", 2), Category("os", ("a", "b")))
GROUPED = "SELECT os, COUNT(*), SUM(spent), AVG(spent * 1.5) FROM people WHERE a = 1 AND spent > -2 GROUP BY os"
SOME: list[Study] = [
    Histogram(OLH(1.0, 300), post="norm-sub"),
    WaveDistribution(SquareWave(1.0, UNIT, buckets=32)),
    Hierarchy(1.0, UNIT, buckets=32),
    MeanOf(StochasticRounding(1.0, UNIT)),
    PEM(4.0, Text(3), 4, alphabet="abc"),
    PEM(4.0, Bits(20), 3, oracle="PGR"),
    SegmentPairs(4.0, Bits(16), 4),
    SVIM(2, 3.0, 30),
    CALM(2.0, RECORD, k=2, users=2_000),
    SplitEM(2.0, RECORD, k=2),
]
MANY = ", ".join(f"SUM(spent + {i}) AS s{i}" for i in range(10))
QUERIES = [
    (HIO(), f"SELECT os, {MANY} FROM people WHERE b < 2 GROUP BY os"),  # noqa: S608
    (HIO(), GROUPED),
    (HIO(), "SELECT a, os, COUNT(os), AVG(spent) FROM people GROUP BY a, os ORDER BY os LIMIT 3"),
    (HIO(), "SELECT SUM(CAST(spent AS DOUBLE) / 3) FROM people WHERE (a = 1 OR b < 2) AND os = 'a'"),
    (HI(), "SELECT spent > 3 AS big, COUNT(*) FROM people WHERE b < 2 GROUP BY spent > 3"),
    (SC(), GROUPED),
    (MG(), GROUPED),
    (Grids(), GROUPED),
    (Grids(), "SELECT COUNT(*), SUM(spent) FROM people WHERE a = 1 AND b < 2"),
]


def written(folder: Path, survey: Survey, people: Any, seed: int, files: int = 3) -> list[Path]:
    """Everybody's reports, in several files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for i, rows in enumerate(np.array_split(np.arange(len(people)), files)):
        path = folder / f"part-{i}.parquet"
        write_parquet(path, survey, SimulatedCollection(survey, people[rows], SeededForExperiments(seed + i)).reports())
        paths.append(path)
    return paths


def both(study: Study, spark: Any, folder: Path, people: int = 2000, pieces: int | None = None) -> tuple[Any, Any]:
    """A study on one machine and on Spark, round by round over the same files: its takes, and its result."""
    here, there = MemoryJournal(), MemoryJournal()
    local, far = StudyRun(study, here), StudyRun(study, there)
    held, seed = people_of(study, people), 1
    while local.round is not None:
        survey = local.round.survey
        paths = written(folder / str(seed), survey, held, 100 * seed)
        local.answer(FileCollection(survey, paths))
        far.answer(SparkCollection.files(spark, survey, paths, pieces=pieces))
        seed += 1
    return (here._kept, document(local.result, 0.95)), (there._kept, document(far.result, 0.95))


@pytest.mark.parametrize("study", SOME, ids=lambda study: study.kind)
def test_a_study_is_the_same_on_spark(study: Study, spark: Any, tmp_path: Path) -> None:
    local, far = both(study, spark, tmp_path)
    assert far == local


@pytest.mark.parametrize(("design", "query"), QUERIES)
def test_a_query_is_the_same_on_spark(design: Any, query: str, spark: Any, tmp_path: Path) -> None:
    table = Table(2.0, RECORD, SHOP, design, query=query)
    paths = written(tmp_path, table.survey, people_of(table, 3000), 7)
    local = document(table.read(FileCollection(table.survey, paths)), 0.95)
    far = SparkCollection.files(spark, table.survey, paths, pieces=3)
    assert document(table.read(far), 0.95) == local
    other = written(tmp_path / "other", table.survey, people_of(table, 3000), 8)  # the rival: other noise
    assert document(table.read(FileCollection(table.survey, other)), 0.95) != local
