"""A question that is asked again is another wave of it: a task of its own, read by the same study."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veil import GRR, OLH, Client, Ledger, Public, Survey
from veil.collector.store.sqlite import SqliteStore
from veil.collector.surveys.catalogue import Catalogue, draft_of, parsed, parsed_study, read_by
from veil.domain import Integers, Record
from veil.engines import FileCollection, MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import BudgetError, InputError, MismatchError, ParameterError, ServiceError, WireError
from veil.histogram import Histogram
from veil.sql import Measure, Table
from veil.sql.folder import create
from veil.study import TallyCollection
from veil.wire.arrow import arrow_schema, to_arrow
from veil.wire.tallies import decode_tally, encode_tally

SURVEY = Survey(OLH(1.0, ["tea", "coffee"]), [Public("age")])


def test_each_wave_has_its_own_task_and_the_first_does_not_mention_it() -> None:
    again = Survey(SURVEY.ask, SURVEY.public, wave=2)
    assert again.task != SURVEY.task
    assert "wave" not in SURVEY.to_json()
    assert again.to_json() == {**SURVEY.to_json(), "wave": 2}
    assert Survey.from_json(again.to_bytes()) == again
    assert again.first == SURVEY
    assert again.layout == SURVEY.layout


@pytest.mark.parametrize("wave", [0, 1, -1, 2.0, "2", True, None, 10**9])
def test_invalid_waves_are_refused(wave: object) -> None:
    with pytest.raises(WireError):
        Survey.from_json(json.dumps({**SURVEY.to_json(), "wave": wave}))
    if wave not in (1, True):
        with pytest.raises(ParameterError):
            Survey(SURVEY.ask, wave=wave)  # type: ignore[arg-type]  # on purpose


def test_a_device_draws_and_pays_for_every_wave(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", lifetime=2.0)
    surveys = [Survey(GRR(1.0, ["tea", "coffee"]), wave=wave) for wave in (1, 2, 3)]
    first = Client(surveys[0].to_bytes(), ledger)
    sent = first.answer("tea")
    assert first.answer("tea") == sent  # again in the same wave: the same bytes, and nothing to pay
    assert Client(surveys[1].to_bytes(), ledger).answer("tea") != sent
    with pytest.raises(BudgetError):
        Client(surveys[2].to_bytes(), ledger).answer("tea")


def test_the_collector_keeps_waves_in_order(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.sqlite3")
    catalogue, study = Catalogue(store), Histogram(OLH(1.0, ["tea", "coffee"]))

    def create(**options: object) -> tuple[object, bool]:
        return catalogue.create(draft_of(study.survey, options, precision=60, minimum=1, study=study.to_bytes()))

    first, _ = create(name="drinks")
    with pytest.raises(ServiceError, match="wave: expected 2, the next wave of drinks, got 3"):
        create(name="drinks", wave=3)
    second, made = create(name="drinks", wave=2)
    assert made
    assert create(name="drinks", wave=2) == (second, False)  # asked for again
    assert (first.wave, second.wave, parsed(second.document).wave) == (1, 2, 2)  # type: ignore[attr-defined]
    assert read_by(second) == study.survey  # type: ignore[arg-type]
    other = Histogram(OLH(1.0, ["tea", "water"]))
    with pytest.raises(ServiceError, match="asked something else"):
        catalogue.create(draft_of(other.survey, {"name": "drinks", "wave": 2}, precision=60, minimum=1))
    with pytest.raises(InputError, match="a wave goes with a name"):
        draft_of(study.survey, {"wave": 2}, precision=60, minimum=1)
    bare = Survey(SURVEY.ask, SURVEY.public, wave=5).to_bytes()
    assert parsed_study(bare).survey == SURVEY
    store.close()


def test_reports_of_several_waves_are_not_added_up(tmp_path: Path) -> None:
    reports = SURVEY.randomize(["tea", "coffee"], SeededForExperiments(1), {"age": [1, 2]})
    for wave in (1, 2):
        table = pa.Table.from_batches([to_arrow(reports, SURVEY)])
        table = table.replace_schema_metadata(arrow_schema(SURVEY, wave=wave).metadata)
        pq.write_table(table, tmp_path / f"{wave}.parquet")
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    for path in paths:
        assert FileCollection(SURVEY, [path]).people == 2
    with pytest.raises(MismatchError, match="several waves"):
        FileCollection(SURVEY, paths).tally()
    first, second = (FileCollection(SURVEY, [path]).tally() for path in paths)
    assert (first.wave, second.wave, FileCollection(SURVEY, paths[1:]).where(age=(1, 1)).tally().wave) == (1, 2, 2)
    assert first != second
    assert (second + second).wave == 2
    with pytest.raises(MismatchError, match=r"several waves \(1, 2\)"):
        first + second
    read = decode_tally(SURVEY, encode_tally(second))
    assert (read, read.wave, TallyCollection(SURVEY, read).wave) == (second, 2, 2)
    assert b"wave" not in encode_tally(first)  # as it was before there were waves


def test_a_study_reads_the_tally_of_a_later_wave() -> None:
    study = Histogram(OLH(3.0, ["tea", "coffee"]))
    again = Survey(study.survey.ask, study.survey.public, wave=2)
    held = ["tea"] * 900 + ["coffee"] * 100
    reports = again.randomize(held, SeededForExperiments(1))
    first, counted = study.survey.tally(study.survey.randomize(held, SeededForExperiments(1))), again.tally(reports)
    assert (counted.task, counted.wave) == (study.survey.task, 2)
    assert study.read(counted) == study.read(first)
    assert again.estimate(counted).results == study.survey.estimate(counted).results
    assert MemoryCollection(again, reports).tally() == counted
    assert decode_tally(again, encode_tally(counted)) == decode_tally(study.survey, encode_tally(counted)) == counted
    with pytest.raises(MismatchError, match="several waves"):
        first + counted
    with pytest.raises(MismatchError, match="another task"):
        again.estimate(first)


def test_a_table_refuses_reports_of_other_waves(tmp_path: Path) -> None:
    table = Table(1.5, Record.of(age=Integers(0, 24)), (Measure("visits"),))
    reports = table.survey.randomize({"age": [3, 9]}, SeededForExperiments(1), {"visits": [1, 2]})
    folder = create(tmp_path / "shop", table)
    written = folder.append(reports)
    assert folder.people == 2
    later = pq.read_table(written)
    later = later.replace_schema_metadata(arrow_schema(table.survey, wave=2).metadata)
    pq.write_table(later, folder.path / "second-wave.parquet")
    with pytest.raises(MismatchError, match="several waves"):
        _ = folder.people
    written.unlink()
    assert folder.people == 2  # the second by itself
