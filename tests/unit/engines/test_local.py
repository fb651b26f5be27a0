"""Collections on one machine: ranges and weights by public columns, and files of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veil import GRR, OLH, OneOf, Public, Survey
from veil.engines import FileCollection, MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import EmptyError, InputError, WireError
from veil.files.reports import ReportsFile
from veil.wire.arrow import to_arrow
from veil.wire.frames import payload_metadata, to_payloads
from veil.wire.tallies import encode_tally

SURVEY = Survey(OneOf((1, GRR(1.0, 5)), (2, OLH(1.0, 5))), [Public("age"), Public("spent", 2)])
PEOPLE = 2000
AGES = np.arange(PEOPLE) % 90 - 5


def reports() -> Any:
    public = {"age": AGES, "spent": np.arange(PEOPLE) - 700}
    return SURVEY.randomize(np.arange(PEOPLE) % 5, SeededForExperiments(1), public)


def test_ranges_select_the_same_reports_as_a_mask() -> None:
    everybody = reports()
    inside = (AGES >= 18) & (AGES <= 30)
    some = MemoryCollection(SURVEY, [everybody[:700], everybody[700:]]).where(age=(18, 30))
    assert some.people == int(inside.sum())
    assert some.tally() == SURVEY.tally(everybody[inside])
    assert some.where(spent=(-100, 100)).tally() == SURVEY.tally(
        everybody[inside & (abs(np.arange(PEOPLE) - 700) <= 100)]
    )
    assert some.fingerprint != MemoryCollection(SURVEY, everybody).where(age=(18, 31)).fingerprint


def test_weights_from_a_public_column() -> None:
    everybody = reports()
    found = MemoryCollection(SURVEY, [everybody[:700], everybody[700:]]).tally(weights="spent")
    assert found == SURVEY.tally(everybody, weights=np.arange(PEOPLE) - 700)
    assert found != SURVEY.tally(everybody)


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ({"size": (1, 2)}, "it has age, spent"),
        ({}, "public columns"),
        ({"age": (1,)}, "two integers"),
        ({"age": (1, 2.5)}, "two integers"),
    ],
)
def test_bad_ranges_are_refused(ranges: Any, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        MemoryCollection(SURVEY, reports()).where(**ranges)


def test_ranges_of_reports_with_fakes_are_refused() -> None:
    survey = Survey(GRR(1.0, 5))
    with pytest.raises(InputError, match="fakes"):
        MemoryCollection(survey, survey.randomize([1, 2, 3], SeededForExperiments(1)), fakes=1).where(age=(1, 2))


def test_the_same_reports_in_every_kind_of_file(tmp_path: Path) -> None:
    everybody = reports()
    batch = to_arrow(everybody, SURVEY)
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_table(pa.Table.from_batches([batch]), max_chunksize=300)
    plain = pa.Table.from_batches([batch])
    pq.write_table(plain, tmp_path / "b.parquet", row_group_size=300)
    beside = plain.append_column("report_id", pa.array([str(i).encode() for i in range(PEOPLE)]))
    pq.write_table(beside.replace_schema_metadata(batch.schema.metadata), tmp_path / "c.parquet", row_group_size=300)
    payloads = pa.Table.from_batches([to_payloads(everybody, SURVEY)])
    named = payloads.schema.set(0, payloads.schema.field(0).with_metadata(payload_metadata(SURVEY)))
    pq.write_table(payloads.cast(named), tmp_path / "d.parquet", row_group_size=300)
    expected = encode_tally(SURVEY.tally(everybody))
    for name in ("a.arrow", "b.parquet", "c.parquet", "d.parquet"):
        if name != "c.parquet":
            assert encode_tally(FileCollection(SURVEY, [tmp_path / name]).tally()) == expected
        with ReportsFile(tmp_path / name, SURVEY) as file:
            assert file.rows == (300,) * 6 + (200,)
            some = list(file.read(range(2, 4), rows=150))
            assert sum(map(len, some)) == 600
            assert some[0].to_bytes() == everybody[600 : 600 + len(some[0])].to_bytes()
            assert file.has_ids == (name == "c.parquet")
    with pytest.raises(InputError, match="ids of reports, which may stand twice"):
        FileCollection(SURVEY, [tmp_path / "c.parquet"]).tally()
    pq.write_table(payloads, tmp_path / "e.parquet")  # payloads of nobody knows which task
    with pytest.raises(WireError):
        FileCollection(SURVEY, [tmp_path / "e.parquet"]).tally()
    pq.write_table(plain.slice(0, 0), tmp_path / "f.parquet")
    with pytest.raises(EmptyError):
        FileCollection(SURVEY, [tmp_path / "f.parquet"]).tally()
