"""The decoder against everything that Hypothesis comes up with: right bytes come back, all others are refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.service.harness import framed

from veil import GRR, OLH, OUE, AllOf, OneOf, Public, Survey
from veil.collector.edge.decoding import decode_requests, frames_of_arrow
from veil.collector.settings import CollectorSettings, load_settings
from veil.collector.surveys.collection import is_maintained
from veil.errors import InputError, MismatchError, WireError
from veil.wire.frames import decode_report, report_size

SURVEYS = [
    Survey(OLH(1.0, 16)),
    Survey(OUE(1.0, 13)),
    Survey(OneOf((1, GRR(1.0, 300)), (2, OUE(1.0, 300)))),
    Survey(AllOf(GRR(1.0, 3), OLH(1.0, 3))),
]
survey_strategy = st.sampled_from(SURVEYS)


def alone(survey: Survey, body: bytes) -> bool:
    """Whether the library's own decoder takes every report of a body."""
    each = report_size(survey)
    if not body or len(body) % each:
        return False
    try:
        for start in range(0, len(body), each):
            decode_report(survey, body[start : start + each])
    except (WireError, MismatchError):
        return False
    return True


@given(survey_strategy, st.binary(max_size=400))
def test_random_bytes(survey: Survey, body: bytes) -> None:
    decoded = decode_requests(survey, [body])
    assert (decoded.problems[0] is None) == alone(survey, body)


@given(survey_strategy, st.data())
def test_requests_with_a_few_changed_bytes(survey: Survey, data: st.DataObject) -> None:
    bodies = []
    for _ in range(data.draw(st.integers(1, 6))):
        held = [0] * data.draw(st.integers(1, 4))
        body = bytearray(framed(survey, held))
        for _ in range(data.draw(st.integers(0, 2))):
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
        cut = data.draw(st.sampled_from([0, 0, 0, 1, 7]))
        bodies.append(bytes(body[: len(body) - cut]))
    decoded = decode_requests(survey, bodies)
    right = [alone(survey, body) for body in bodies]
    assert [problem is None for problem in decoded.problems] == right
    each = report_size(survey)
    kept = [
        body[i : i + each] for body, fine in zip(bodies, right, strict=True) if fine for i in range(0, len(body), each)
    ]
    kept.sort(key=lambda frame: frame[33:49])
    assert decoded.ids == b"".join(frame[33:49] for frame in kept)
    assert decoded.payloads == b"".join(frame[49:] for frame in kept)
    assert decoded.count == len(kept)


@given(
    st.integers(0, 3), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4), st.integers(0, 9)
)
def test_arrow_streams_with_a_few_changed_bytes(which: int, changes: list[tuple[int, int]], cut: int) -> None:
    """Flatbuffers that lie about offsets, lengths and compression must neither crash nor come through as something."""
    survey = SURVEYS[which]
    good = stream(survey, 5)
    assert len(frames_of_arrow(survey, good, most=5)) == 5 * report_size(survey)
    wrong = bytearray(good[: len(good) - cut])
    for place, value in changes:
        wrong[place % len(wrong)] = value
    try:
        frames = frames_of_arrow(survey, bytes(wrong), most=100)
    except (WireError, MismatchError):
        return
    assert decode_requests(survey, [frames]).problems == [None]


def test_too_many_rows_are_refused() -> None:
    with pytest.raises(WireError, match="at most 4"):
        frames_of_arrow(SURVEYS[0], stream(SURVEYS[0], 5), most=4)


def stream(survey: Survey, people: int) -> bytes:
    from veil.wire.arrow import to_arrow

    batch = to_arrow(survey.randomize([0] * people), survey)
    ids = pa.array([bytes([i]) * 16 for i in range(people)], pa.binary(16))
    schema = batch.schema.append(pa.field("report_id", pa.binary(16))).with_metadata(batch.schema.metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, ids], schema=schema))
    return sink.getvalue().to_pybytes()


def test_public_columns_travel_with_the_reports() -> None:
    survey = Survey(GRR(1.0, 4), [Public("age")])
    payload = survey.randomize([1, 2], public={"age": np.array([30, -4])}).to_bytes()
    head = b"\1" + bytes.fromhex(survey.task)
    body = head + b"b" * 16 + payload[:9] + head + b"a" * 16 + payload[9:]
    decoded = decode_requests(survey, [body])
    assert decoded.payloads == payload[9:] + payload[:9]
    assert is_maintained(survey)


def test_settings_come_from_a_file_and_the_environment(tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "veil.toml"
    file.write_text('port = 9000\ncors_origins = ["https://a"]\nminimum = 7\n')
    found = load_settings(file, {"VEIL_PORT": "9001", "VEIL_METRICS_OPEN": "true", "VEIL_DATA": "ignored"})
    assert (found.port, found.cors_origins, found.minimum, found.metrics_open) == (9001, ("https://a",), 7, True)
    assert load_settings(None, {"VEIL_SETTINGS": str(file)}).port == 9000
    assert load_settings(None, {"VEIL_SETTINGS": ""}).port == 8321  # as units and containers leave it
    for text in ("prot = 1", "port = 'x'", "port = true", "port = 70000", "minimum = 0", "x = [", "queue_bytes = 1"):
        file.write_text(text)
        with pytest.raises(InputError):
            load_settings(file, {})
    for name, value in (
        ("PORT", "x"),
        ("METRICS_OPEN", "maybe"),
        ("LOG_LEVEL", "loud"),
        ("TALLY_SECONDS", "0"),
        ("TALLY_SECONDS", "nan"),
    ):
        with pytest.raises(InputError):
            load_settings(None, {f"VEIL_{name}": value})
    with pytest.raises(InputError):
        load_settings(file.with_name("none.toml"), {})
    assert load_settings(None, {}) == CollectorSettings()


def test_dictionaries_and_foreign_columns_are_refused_before_the_stream_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    survey = SURVEYS[0]
    bomb = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["x" * 1_000_000]))
    table = pa.table({"seed": bomb}, metadata={"veil.task": survey.task, "veil.wire": "1"})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    foreign = sink.getvalue().to_pybytes()
    assert len(foreign) < 10_000
    dictionary = next(m for m in pa.ipc.MessageReader.open_stream(foreign) if m.type == "dictionary")
    schema, batch = pa.ipc.MessageReader.open_stream(stream(survey, 3))
    with_dictionary = b"".join(m.serialize().to_pybytes() for m in (schema, dictionary, batch))
    opened: list[int] = []
    monkeypatch.setattr(pa.ipc, "open_stream", lambda data: opened.append(len(data)))
    for wrong in (foreign, with_dictionary, batch.serialize().to_pybytes()):
        with pytest.raises(WireError):
            frames_of_arrow(survey, wrong, most=100)
    with pytest.raises(MismatchError):
        frames_of_arrow(survey, stream(Survey(OLH(1.0, 17)), 3), most=100)
    assert not opened
