"""Encoding: round trips of reports, batches, tallies and Arrow files, and errors for damaged bytes.

Whatever decodes encodes to the bytes that were given: two byte strings never mean the same.
"""

from __future__ import annotations

import copy
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.stored_reports import FILES, known, survey_of
from tests.support.stored_reports import SURVEYS as STORED

from veil import (
    GRR,
    OLH,
    OUE,
    AllOf,
    Bits,
    Integers,
    Interval,
    Items,
    OneOf,
    Public,
    Question,
    Record,
    SubsetSelection,
    Survey,
    Text,
)
from veil.domain import Categories, Domain
from veil.engines import FileCollection
from veil.entropy import SeededForExperiments
from veil.errors import EmptyError, MismatchError, ParameterError, VeilError, WireError
from veil.files import ReportWriter, read_reports
from veil.reports.columns import Reports
from veil.survey import Ask, SurveyTally
from veil.tools.json_documents import canonical
from veil.view import Ancestor, Project, SampleItem, Segment, prefix
from veil.wire.arrow import from_arrow, to_arrow
from veil.wire.frames import (
    ID_BYTES,
    decode_batch,
    decode_report,
    encode_batch,
    encode_report,
    from_payloads,
    report_size,
    to_payloads,
)
from veil.wire.tallies import decode_tally, encode_tally

Draw = Callable[[st.SearchStrategy[Any]], Any]
Json = dict[str, Any]

quick = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
thorough = settings(quick, max_examples=400)

EPSILONS = st.sampled_from([0.1, 0.5, 1.0, 2.5, 4.0])


# -- what to try ------------------------------------------------------------------------------------------------------


@st.composite
def domains(draw: Draw) -> Domain:
    return draw(
        st.one_of(
            st.integers(2, 400).map(Categories.range),
            st.lists(st.text(max_size=5), min_size=2, max_size=9, unique=True).map(lambda names: _labels(names)),
            st.integers(-50, 50).map(lambda lo: Integers(lo, lo + 99)),
            st.sampled_from([1, 5, 12, 63, 64, 65, 100]).map(Bits),
            st.integers(1, 20).map(Text),
        )
    )


def _labels(names: list[str]) -> Categories:
    distinct = sorted({name.encode("utf-8", "ignore").decode() for name in names})
    try:
        return Categories([*distinct, "no", "yes"] if not {"no", "yes"} & set(distinct) else ["no", "yes"])
    except VeilError:  # two of them are the same after NFC
        return Categories(["no", "yes"], missing="category")


@st.composite
def questions(draw: Draw, domain: Domain) -> Question:
    epsilon = draw(EPSILONS)
    kind = (
        draw(st.sampled_from(["GRR", "OUE", "OLH", "SubsetSelection"]))
        if domain.listable and domain.size <= 1000
        else "OLH"
    )
    if kind == "OLH":
        return Question(OLH(epsilon, domain, hash_range=draw(st.none() | st.integers(2, 70000))))
    if kind == "SubsetSelection":
        size = draw(st.none() | st.integers(1, min(domain.size - 1, 12)))
        return Question(SubsetSelection(epsilon, domain, subset_size=size))
    return Question({"GRR": GRR, "OUE": OUE}[kind](epsilon, domain))


@st.composite
def surveys(draw: Draw) -> Survey:
    domain = draw(domains())
    leaf = questions(domain)
    together = st.lists(leaf, min_size=1, max_size=3).map(lambda asks: AllOf(*asks))
    split = st.lists(st.tuples(st.integers(1, 9), leaf | together), min_size=1, max_size=4).map(lambda b: OneOf(*b))
    ask: Ask = draw(leaf | together | split | st.tuples(leaf, split).map(lambda asks: AllOf(*asks)))
    public = draw(st.lists(st.sampled_from(["income", "Größe", "x.y"]), unique=True, max_size=2))
    return Survey(ask, [Public(name, 2) for name in public])


@st.composite
def collected(draw: Draw) -> tuple[Survey, Reports]:
    survey, rows = draw(surveys()), draw(st.integers(1, 12))
    codes = [_code(draw, survey.domain) for _ in range(rows)]
    public = {
        column.name: draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=rows, max_size=rows))
        for column in survey.public
    }
    return survey, survey.randomize(codes, SeededForExperiments(draw(st.integers(0, 99))), public or None)


def _code(draw: Draw, domain: Domain) -> Any:
    if isinstance(domain, Text):
        return draw(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8))
    index = draw(st.integers(0, domain.size - 1))
    return index if isinstance(domain, Bits) else domain.label(index)


def fixed_surveys() -> dict[str, Survey]:
    """Some of every shape, for fuzzing bytes that are valid to begin with."""
    listed = Categories.range(100)
    level = Ancestor(listed, branching=4, level=2)
    person = Record.of(sex=["f", "m", "x"], age=Integers(0, 99))
    sex, both = Project(person, ("sex",)), Project(person, ("age", "sex"))
    sample = SampleItem(Items(10), length=3)
    text = Text(12)
    return {
        "grr": Survey(GRR(1.0, 5)),
        "oue": Survey(OUE(1.0, 13), [Public("income", 2)]),
        "olh": Survey(OLH(1.0, Text(5), hash_range=300)),
        "bits": Survey(SubsetSelection(1.0, 10)),
        "list": Survey(SubsetSelection(4.0, 1000)),
        "one-of": Survey(
            OneOf(
                (1, Question(GRR(1.0, listed))),
                (2, Question(OUE(1.0, listed))),
                (3, AllOf(Question(SubsetSelection(0.5, listed)), Question(GRR(0.5, level.domain), level))),
                (1, Question(SubsetSelection(4.0, listed))),
            )
        ),
        "record": Survey(
            AllOf(Question(GRR(1.0, sex.domain), sex), OneOf((1, Question(OLH(1.0, both.domain), both)))),
            [Public("weight"), Public("region")],
        ),
        "text": Survey(OneOf((1, Question(OLH(1.0, Bits(70)), prefix(text, 70))), (1, Question(OLH(1.0, text))))),
        "items": Survey(Question(GRR(1.0, sample.domain), sample)),
    }


SURVEYS = fixed_surveys()
NAMES = st.sampled_from(sorted(SURVEYS))


@cache
def reports_of(name: str) -> Reports:
    survey = SURVEYS[name]
    values: dict[str, Any] = {
        "olh": ["tea", "", "水", "coffee", "mate"],
        "record": {"sex": ["f", "m", "x", "f", "m"], "age": [0, 99, 5, 6, 7]},
        "text": ["Zürich", "Zug", "", "Bern", "Bernex"],
        "items": [[], [1], [1, 2, 3], [0, 9], [5, 6, 7, 8]],
    }
    public = {column.name: [-1, 0, 1, 2**63 - 1, -(2**63)] for column in survey.public} or None
    return survey.randomize(values.get(name, [0, 1, 2, 3, 4]), SeededForExperiments(1), public)


@cache
def tally_of(name: str, *, weighted: bool) -> SurveyTally:
    survey = SURVEYS[name]
    candidates: dict[int, Any] = {i: q.view.values.decode(_few(q.view.values)) for i, q in enumerate(survey.questions)}
    if name in ("grr", "oue", "bits"):
        candidates = {}
    return survey.tally(reports_of(name), candidates, [5, -3, 2**31 - 1, 0, 1] if weighted else None)


def _few(domain: Domain) -> Any:
    if domain.code_bytes:
        letters = np.array([[97 + i] + [0] * (domain.code_bytes - 1) for i in range(4)], dtype=np.uint8)
        return letters if isinstance(domain, Text) else letters[:, ::-1]
    return np.arange(min(domain.size, 4), dtype=np.uint64)


# -- round trips ------------------------------------------------------------------------------------------------------


def same(a: Reports, b: Reports) -> bool:
    equal = [np.array_equal(a.columns[name], b.columns[name]) for name in a.layout.names]
    return (a.task, a.layout) == (b.task, b.layout) and all(equal)


@quick
@given(collected(), st.binary(min_size=ID_BYTES, max_size=ID_BYTES))
def test_a_report_is_read_back(case: tuple[Survey, Reports], report_id: bytes) -> None:
    survey, reports = case
    data = encode_report(survey, reports[:1], report_id)
    assert len(data) == report_size(survey)
    found, report = decode_report(survey, data)
    assert found == report_id
    assert same(report, reports[:1])


@quick
@given(collected())
def test_a_batch_is_read_back(case: tuple[Survey, Reports]) -> None:
    survey, reports = case
    assert same(decode_batch(survey, encode_batch(reports)), reports)


@quick
@given(collected(), st.data())
def test_a_tally_is_read_back(case: tuple[Survey, Reports], data: st.DataObject) -> None:
    survey, reports = case
    weights = data.draw(
        st.none() | st.lists(st.integers(-(2**31) + 1, 2**31 - 1), min_size=len(reports), max_size=len(reports))
    )
    candidates = {}
    for i, question in enumerate(survey.questions):
        domain = question.view.values
        if not domain.listable or data.draw(st.booleans()):
            some = {_code(data.draw, domain) for _ in range(3)}
            codes = np.unique(domain.encode(list(some)), axis=0)
            candidates[i] = domain.decode(codes) if not isinstance(domain, Text) else ["a", "b"]
    tally = survey.tally(reports, candidates, weights)
    encoded = encode_tally(tally)
    decoded = decode_tally(survey, encoded)
    assert decoded == tally
    assert encode_tally(decoded) == encoded
    assert survey.task in encoded.decode("latin-1")


@quick
@given(collected())
def test_an_arrow_batch_is_read_back(case: tuple[Survey, Reports]) -> None:
    survey, reports = case
    assert same(from_arrow(to_arrow(reports, survey), survey), reports)
    sliced = to_arrow(reports, survey).slice(len(reports) // 2)
    assert same(from_arrow(sliced, survey), reports[len(reports) // 2 :])


@quick
@given(surveys())
def test_a_task_is_read_back(survey: Survey) -> None:
    again = Survey.from_json(survey.to_bytes())
    assert again == survey
    assert again.task == survey.task == hashlib.sha256(survey.to_bytes()).hexdigest()
    assert Survey.from_json(json.dumps(survey.to_json(), indent=3)).task == survey.task


def test_integers_of_numpy_are_written_like_pythons() -> None:
    two, nine = np.int64(2), np.uint8(9)
    made = [
        (Integers(two, nine), Integers(2, 9)),
        (Bits(nine), Bits(9)),
        (Text(nine), Text(9)),
        (Interval(0, 1, nine), Interval(0, 1, 9)),
        (Categories.range(nine), Categories.range(9)),
    ]
    for numpys, pythons in made:
        assert Survey(OLH(1.0, numpys)).to_bytes() == Survey(OLH(1.0, pythons)).to_bytes()
    views = [(Segment(Bits(9), np.int64(0), two), Segment(Bits(9), 0, 2)), (prefix(Text(9), nine), prefix(Text(9), 9))]
    for numpys, pythons in views:
        assert canonical(numpys.to_json()) == canonical(pythons.to_json())
    assert Survey(GRR(1.0, 3), [Public("x", two)]).task == Survey(GRR(1.0, 3), [Public("x", 2)]).task


def test_integers_on_both_sides_of_the_sign_bit_stay_exact() -> None:
    assert Bits(64).encode([2**63 + 5, 7]).tolist() == [2**63 + 5, 7]


def test_objects_that_cannot_be_encoded_are_refused() -> None:
    for build in (
        lambda: GRR(1.0, Text(1)),
        lambda: Categories.range(2**53),
        lambda: Interval(-1.7e308, 1.7e308),
        lambda: OneOf((1, OneOf((1, Question(GRR(1.0, 3)))))),
    ):
        with pytest.raises(ParameterError):
            build()


def test_an_empty_batch_is_not_written() -> None:
    with pytest.raises(EmptyError):
        encode_batch(reports_of("grr")[:0])


def test_a_report_of_another_survey_is_not_written() -> None:
    with pytest.raises(MismatchError):
        encode_report(SURVEYS["oue"], reports_of("grr")[:1], bytes(16))
    with pytest.raises(MismatchError):
        encode_report(SURVEYS["grr"], reports_of("grr"), bytes(16))
    with pytest.raises(MismatchError):
        to_arrow(reports_of("grr"), SURVEYS["oue"])


# -- damaged bytes ----------------------------------------------------------------------------------------------------


def report_again(survey: Survey, data: bytes) -> bytes:
    report_id, report = decode_report(survey, data)
    return encode_report(survey, report, report_id)


def batch_again(survey: Survey, data: bytes) -> bytes:
    return encode_batch(decode_batch(survey, data))


def tally_again(survey: Survey, data: bytes) -> bytes:
    return encode_tally(decode_tally(survey, data))


AGAIN = {"report": report_again, "batch": batch_again, "tally": tally_again}
KINDS = st.sampled_from(sorted(AGAIN))


@cache
def valid(kind: str, name: str) -> bytes:
    if kind == "tally":
        return encode_tally(tally_of(name, weighted=True))
    if kind == "batch":
        return encode_batch(reports_of(name))
    return encode_report(SURVEYS[name], reports_of(name)[:1], b"0123456789abcdef")


def sealed(whole: bytes) -> bytes:
    """A tally with a checksum that is right."""
    return whole + hashlib.sha256(whole).digest()


def refused_or_exact(kind: str, name: str, data: bytes) -> bool:
    """True where the bytes mean something; then they are the only bytes that do."""
    try:
        again = AGAIN[kind](SURVEYS[name], data)
    except VeilError:
        return False
    assert again == data
    return True


@st.composite
def damaged(draw: Draw, data: bytes) -> bytes:
    kind = draw(st.sampled_from(["flip", "flip", "cut", "extend", "insert", "splice"]))
    at = draw(st.integers(0, len(data) - 1))
    if kind == "cut":
        return data[:at]
    if kind == "extend":
        return data + draw(st.binary(min_size=1, max_size=40))
    if kind == "insert":
        return data[:at] + draw(st.binary(min_size=1, max_size=9)) + data[at:]
    if kind == "splice":
        part = draw(st.binary(min_size=1, max_size=9))
        return data[:at] + part + data[at + len(part) :]
    flipped = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        flipped[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(flipped)


@pytest.mark.parametrize("kind", sorted(AGAIN))
@pytest.mark.parametrize("name", sorted(SURVEYS))
def test_valid_bytes_are_exact(kind: str, name: str) -> None:
    assert refused_or_exact(kind, name, valid(kind, name))


@thorough
@given(KINDS, NAMES, st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(kind: str, name: str, data: bytes) -> None:
    assert not refused_or_exact(kind, name, data)


@thorough
@given(NAMES, st.data())
def test_arbitrary_payloads_after_a_valid_header(name: str, data: st.DataObject) -> None:
    survey = SURVEYS[name]
    head = bytes([1]) + bytes.fromhex(survey.task) + bytes(ID_BYTES)
    size = survey.layout.size
    refused_or_exact("report", name, head + data.draw(st.binary(min_size=size, max_size=size)))
    refused_or_exact("report", name, head + data.draw(st.binary(max_size=2 * size)))
    count = data.draw(st.sampled_from([0, 1, 2, 3, 2**31, 2**63, 2**64 - 1]))
    batch = b"VEILB\1" + bytes.fromhex(survey.task) + count.to_bytes(8, "little")
    refused_or_exact("batch", name, batch + data.draw(st.binary(max_size=4 * size)))


@thorough
@given(KINDS, NAMES, st.data())
def test_damaged_bytes(kind: str, name: str, data: st.DataObject) -> None:
    refused_or_exact(kind, name, data.draw(damaged(valid(kind, name))))


@thorough
@given(NAMES, st.data())
def test_damaged_tallies_with_a_valid_checksum(name: str, data: st.DataObject) -> None:
    """The checksum finds accidents; it must not be what stands between a liar and the parser."""
    refused_or_exact("tally", name, sealed(data.draw(damaged(valid("tally", name)[:-32]))))


def test_every_truncation_is_refused() -> None:
    for kind in AGAIN:
        whole = valid(kind, "one-of")
        assert not any(refused_or_exact(kind, "one-of", whole[:size]) for size in range(len(whole)))


def test_every_flipped_bit_of_a_tally_is_noticed() -> None:
    whole = valid("tally", "grr")
    for at in range(len(whole)):
        assert not refused_or_exact("tally", "grr", whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])


# -- edited documents -------------------------------------------------------------------------------------------------

STRANGE = st.sampled_from(
    [
        *(None, True, False, 0, 1, -1, 2, 255, 2**31, 2**53 - 1, 2**53, 2**64, -(2**63), 10**400),
        *(0.5, 1.0, float("nan"), float("inf"), -0.0, 1e308),
        *("", "0", "1", "-1", "+1", " 1", "1.0", "1e5", "NaN", "Infinity", "9" * 50, "9" * 5000, "0x10", "\u0661"),
        *("kind", "refuse", "category", "é", "e\u0301", "\ud800", "\0", "|O", "<u8", "|u1"),
        *([], [1], [[]], [["a", 1]], [[1, {}]], ["a", "a"], ["|u1", 0, 2**60], ["<u8", -1]),
        *({}, {"kind": "bits", "bits": 8}, {"kind": "text", "max_bytes": 3}, {"kind": []}, {"kind": {"kind": "GRR"}}),
    ]
).map(copy.deepcopy)


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) below a node."""
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from places(node[key])


@st.composite
def edited(draw: Draw, document: Json) -> Json:
    changed = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 2))):
        found = list(places(changed))
        if not found:
            break
        container, key = found[draw(st.integers(0, len(found) - 1))]
        kind = draw(st.sampled_from(["replace", "replace", "replace", "graft", "drop", "add", "again"]))
        if kind == "replace":
            container[key] = draw(STRANGE)
        elif kind == "graft":
            other, name = found[draw(st.integers(0, len(found) - 1))]
            container[key] = copy.deepcopy(other[name])
        elif kind == "drop":
            del container[key]
        elif kind == "add" and isinstance(container, dict):
            container[draw(st.sampled_from(["note", "kind", "size", "self", "hash_range", "\ud800"]))] = draw(STRANGE)
        elif isinstance(container, list):
            container.append(copy.deepcopy(container[key]))
    return changed


@thorough
@given(NAMES, st.booleans(), st.data())
def test_edited_tasks(name: str, as_text: bool, data: st.DataObject) -> None:
    document = data.draw(edited(SURVEYS[name].to_json()))
    try:
        survey = Survey.from_json(json.dumps(document) if as_text else document)
        assert survey.layout.size > 0
        assert survey.guarantee.epsilon > 0
    except VeilError:
        return
    assert survey.to_bytes() == canonical(document)
    assert survey.task == hashlib.sha256(canonical(document)).hexdigest()


@quick
@given(surveys(), st.data())
def test_edited_tasks_of_any_survey(survey: Survey, data: st.DataObject) -> None:
    document = data.draw(edited(survey.to_json()))
    try:
        again = Survey.from_json(document)
    except VeilError:
        return
    assert again.to_bytes() == canonical(document)


@quick
@given(NAMES, st.data())
def test_damaged_task_texts(name: str, data: st.DataObject) -> None:
    text = data.draw(damaged(SURVEYS[name].to_bytes()))
    try:
        survey = Survey.from_json(text)
    except VeilError:
        return
    assert survey.to_bytes() == canonical(json.loads(text))


@given(st.binary(max_size=60) | st.text(max_size=60))
@quick
def test_arbitrary_task_texts(text: bytes | str) -> None:
    with pytest.raises(VeilError):
        Survey.from_json(text)


@pytest.mark.parametrize(
    "document", [None, 1, [], (), {}, {"kind": "veil-survey"}, object(), 0.5, {1: 2}, {"kind": {}}]
)
def test_documents_other_than_tasks_are_refused(document: Any) -> None:
    with pytest.raises(WireError):
        Survey.from_json(document)


@thorough
@given(NAMES, st.booleans(), st.data())
def test_edited_tally_headers(name: str, tidy: bool, data: st.DataObject) -> None:
    """Whatever the header says, of whatever size: refused, or exactly what would have been written."""
    whole = valid("tally", name)[:-32]
    end = 14 + int.from_bytes(whole[6:14], "little")
    document = data.draw(edited(json.loads(whole[14:end])))
    try:
        header = canonical(document) if tidy else json.dumps(document).encode("utf-8", "surrogatepass")
    except VeilError:
        header = json.dumps(document).encode("utf-8", "surrogatepass")
    refused_or_exact("tally", name, sealed(whole[:6] + len(header).to_bytes(8, "little") + header + whole[end:]))


# -- damaged Arrow files ----------------------------------------------------------------------------------------------


@cache
def arrow_file(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.arrow"
        with ReportWriter(path, SURVEYS[name]) as writer:
            writer.write(reports_of(name))
            writer.write(reports_of(name)[:2])
        return path.read_bytes()


def read_arrow(name: str, data: bytes) -> list[Reports]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.arrow"
        path.write_bytes(data)
        return list(read_reports(path, SURVEYS[name]))


@pytest.mark.parametrize("name", sorted(SURVEYS))
def test_an_arrow_file_is_read_back(name: str) -> None:
    first, second = read_arrow(name, arrow_file(name))
    assert same(first, reports_of(name))
    assert same(second, reports_of(name)[:2])


@thorough
@given(NAMES, st.data())
def test_damaged_arrow_files(name: str, data: st.DataObject) -> None:
    try:
        parts = read_arrow(name, data.draw(damaged(arrow_file(name))))
    except VeilError:
        return
    for part in parts:  # what is read is valid: it survives the strict way through bytes
        if len(part):
            assert same(decode_batch(SURVEYS[name], encode_batch(part)), part)


def test_arrow_files_cut_short_anywhere() -> None:
    whole = arrow_file("grr")
    for size in range(0, len(whole) - 1, 7):
        with pytest.raises(VeilError):
            read_arrow("grr", whole[:size])


@quick
@given(collected())
def test_payloads_are_read_back(case: tuple[Survey, Reports]) -> None:
    survey, reports = case
    import pyarrow as pa

    batch = to_payloads(reports, survey)
    assert same(from_payloads(batch, survey), reports)
    assert same(from_payloads(batch.slice(len(reports) // 2), survey), reports[len(reports) // 2 :])
    short = pa.array([payload[:-1] for payload in batch.column(0).to_pylist()], pa.binary())
    with pytest.raises(WireError):
        from_payloads(batch.set_column(0, "payload", short), survey)


def test_arrow_batches_with_other_types_are_refused() -> None:
    import pyarrow as pa

    survey = SURVEYS["grr"]
    good = to_arrow(reports_of("grr"), survey)
    wrong = [
        good.replace_schema_metadata({}),
        good.replace_schema_metadata({**good.schema.metadata, b"veil.wire": b"2"}),
        pa.RecordBatch.from_arrays([good.column(0).cast(pa.int64())], schema=_schema(survey, pa.int64())),
        pa.RecordBatch.from_arrays([pa.array([1, None], pa.uint8())], schema=_schema(survey, pa.uint8())),
        pa.RecordBatch.from_arrays([pa.array([7], pa.uint8())], schema=_schema(survey, pa.uint8())),
    ]
    for batch in wrong:
        with pytest.raises(WireError):
            from_arrow(batch, survey)
    with pytest.raises(MismatchError):
        from_arrow(good.replace_schema_metadata({**good.schema.metadata, b"veil.task": b"0" * 64}), survey)


def _schema(survey: Survey, kind: Any) -> Any:
    import pyarrow as pa

    return pa.schema([pa.field("value", kind)], metadata={"veil.task": survey.task, "veil.wire": "1"})


@pytest.mark.parametrize("name", sorted(SURVEYS))
def test_an_empty_arrow_batch_is_read(name: str) -> None:
    survey = SURVEYS[name]
    assert len(from_arrow(to_arrow(reports_of(name)[:0], survey), survey)) == 0


@pytest.mark.parametrize("name", STORED)
def test_the_tally_of_stored_reports_has_the_stored_bytes(name: str) -> None:
    survey = survey_of(name)
    assert survey.task == known(name)["task"]
    stored = (FILES / f"{name}.tally").read_bytes()
    assert encode_tally(FileCollection(survey, [FILES / f"{name}.arrow"]).tally()) == stored
    assert encode_tally(decode_tally(survey, stored)) == stored
