"""The golden vectors: they equal the output of the code, bad ones are refused, and node agrees."""

from __future__ import annotations

import datetime as dt
import importlib
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.patience import LIMIT
from tests.service.browser.javascript import built_client

from veil import Ledger, Survey, errors
from veil.device.client import normative_report
from veil.device.online import Clock, open_client
from veil.device.verification import read_time
from veil.device.web import HttpResponse, Web
from veil.entropy import Words
from veil.tools.json_documents import canonical, parse_json
from veil.wire.frames import decode_batch, decode_report, encode_batch, encode_report
from veil.wire.ring import ring_of
from veil.wire.tallies import decode_tally, encode_tally

ROOT = Path(__file__).resolve().parents[3]
VECTORS = ROOT / "vectors"
SCRIPT = ROOT / "clients" / "js" / "test" / "vectors.mjs"
GOOD = (
    *("linear-hashing", "prefixes", "olh-short-seeds"),
    *("grr", "oue", "olh", "subset-selection", "pgr", "rappor", "hadamard-response", "haar-response", "she"),
    *("square-wave", "stochastic-rounding", "piecewise", "one-of", "set-views", "each-of", "calm", "bits", "tables"),
)

Json = dict[str, Any]


def read(name: str) -> Json:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="ascii"))


def held(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"time"}:
        return dt.datetime.fromisoformat(value["time"])
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) and set(value) == {"hex"} else value


def good_surveys() -> Iterator[Any]:
    for name in GOOD:
        for vector in read(name)["surveys"]:
            yield pytest.param(vector, id=vector["name"])


def bad_cases(name: str) -> Iterator[Any]:
    for group in read(name).get("surveys", [read(name)]):
        for case in group["cases"]:
            yield pytest.param(group.get("task"), case, id=f"{group.get('name', name)}: {case['name']}")


def test_the_files_are_what_the_generator_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tests")
    recipes = importlib.import_module("vector_recipes")
    wanted = {name: recipes.text_of(document) for name, document in recipes.build().items()}
    found = {path.name: path.read_text(encoding="ascii") for path in VECTORS.glob("*.json")}
    assert sorted(found) == sorted(wanted)
    for name, text in wanted.items():
        assert found[name] == text, f"vectors/{name} has drifted: run tests/make_vectors.py if that is wanted"


@pytest.mark.parametrize("vector", list(good_surveys()))
def test_reports_are_reproduced(vector: Json) -> None:
    survey = Survey.from_json(json.dumps(vector["task"]))
    assert survey.task == vector["task_id"]
    assert survey.guarantee.ratio == Fraction(*map(int, vector["ratio"]))
    assert survey.guarantee.delta == Fraction(*map(int, vector.get("delta", (0, 1))))
    for case in vector["cases"]:
        entropy = bytes.fromhex(case["entropy"])
        source = Words(entropy)
        public = {name: [number] for name, number in case["public"].items()} if "public" in case else None
        report = normative_report(survey, held(case["value"]), source, public)
        assert (report.hex(), source.used) == (case["report"], case["words"]), case["name"]
        report_id, decoded = decode_report(survey, report)
        assert encode_report(survey, decoded, report_id) == report
        with pytest.raises(errors.EntropyError):
            normative_report(survey, held(case["value"]), Words(entropy[: 8 * case["words"] - 8]), public)


@pytest.mark.parametrize("person", read("lasting")["people"], ids=lambda person: person["name"])
def test_answers_over_time_are_reproduced(person: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    """One ledger for a person's life: nothing is drawn twice, and the first report is the normative one."""
    monkeypatch.syspath_prepend(ROOT / "tests")
    replayed = importlib.import_module("vector_recipes.lasting").replayed
    survey, ledger = Survey.from_json(json.dumps(person["task"])), Ledger(lifetime=1000.0)
    assert survey.task == person["task_id"]
    public = person["public"] or None
    for step in person["steps"]:
        source = Words(bytes.fromhex(step["entropy"]))
        report = replayed(survey, ledger, step["value"], step["occasion"], source, public)
        assert (report.hex(), source.used) == (step["report"], step["words"]), step["name"]
    assert sum(charge.cost > 0 for charge in ledger.charges) == person["paid"]
    cohorts = {bytes.fromhex(step["report"])[49 : 49 + survey.layout.fields[0].width] for step in person["steps"]}
    assert len(cohorts) == 1
    first, *_ = person["steps"]
    beside = {name: [number] for name, number in public.items()} if public else None
    normative = normative_report(survey, first["value"], Words(bytes.fromhex(first["entropy"])), beside)
    assert normative.hex() == first["report"]


def test_vectors_cover_all_layouts_and_widths() -> None:
    """Both layouts of a subset, one and two bytes, widths that are no multiples of 8 or 64; waves of all widths."""
    columns = [column for name in GOOD for vector in read(name)["surveys"] for column in vector["columns"]]
    assert {column["name"] for column in columns} >= {"value", "bits", "seed", "bucket", "subset", "choice", "0.bits"}
    assert any(column["name"] == "bucket" and column["width"] == 2 for column in columns)
    assert any((column["bits"] or 0) > 64 and column["bits"] % 8 for column in columns)
    assert {column["width"] for column in columns if column["name"] == "subset"} == {1, 2}
    assert {column["width"] for column in columns if column["name"] == "cell"} == {1, 2, 4, 8}


def test_batches_and_tallies_are_reproduced() -> None:
    vector = read("containers")
    survey = Survey.from_json(vector["task"])
    batch, tally = bytes.fromhex(vector["batch"]), bytes.fromhex(vector["tally"])
    assert survey.task == vector["task_id"]
    assert encode_batch(decode_batch(survey, batch)) == batch
    assert encode_tally(decode_tally(survey, tally)) == tally
    assert [part.counts.tolist() for part in decode_tally(survey, tally).parts] == vector["tally_counts"]
    again = bytes.fromhex(vector["tally_of_wave_2"])
    assert decode_tally(survey, again) == replace(decode_tally(survey, tally), wave=2)
    assert encode_tally(decode_tally(survey, again)) == again


def test_tallies_of_selected_questions_are_reproduced() -> None:
    vector = read("some-questions")
    survey = Survey.from_json(vector["task"])
    reports = decode_batch(survey, bytes.fromhex(vector["batch"]))
    some = decode_tally(survey, bytes.fromhex(vector["tally"]))
    assert (survey.task, some.questions) == (vector["task_id"], tuple(vector["questions"]))
    assert encode_tally(some).hex() == vector["tally"]
    assert [part.counts.tolist() for part in some.parts] == vector["tally_counts"]
    assert encode_tally(survey.tally(reports)).hex() == vector["whole_tally"]


@pytest.mark.parametrize("vector", read("rings")["surveys"], ids=lambda vector: vector["name"])
def test_ring_elements_are_reproduced(vector: Json) -> None:
    survey = Survey.from_json(vector["task"])
    ring, layout = ring_of(survey, vector["bits"]), survey.layout
    assert survey.task == vector["task_id"]
    for case in vector["cases"]:
        source = Words(bytes.fromhex(case["entropy"]))
        assert ring.encode(layout.unpack(bytes.fromhex(case["payload"])), source).tolist() == [int(case["element"])]
        assert 8 * source.used == len(case["entropy"]) // 2
    elements = np.array([int(case["element"]) for case in vector["elements"]], dtype=np.uint64)
    assert ring.reports(elements).to_bytes().hex() == "".join(case["payload"] for case in vector["elements"])
    tally = decode_tally(survey, bytes.fromhex(vector["tally"]))
    assert (tally.people, tally.fakes) == (len(elements) - vector["fakes"], vector["fakes"])
    assert tally == survey.tally(ring.reports(elements)).with_fakes(vector["fakes"])


@pytest.mark.parametrize(("task", "case"), list(bad_cases("bad_reports")))
def test_bad_reports_are_refused(task: Json, case: Json) -> None:
    with pytest.raises(errors.VeilError) as refused:
        decode_report(Survey.from_json(task), bytes.fromhex(case["report"]))
    assert type(refused.value).__name__ == case["error"]


@pytest.mark.parametrize(("task", "case"), list(bad_cases("bad_batches")))
def test_bad_batches_are_refused(task: Json, case: Json) -> None:
    with pytest.raises(errors.VeilError) as refused:
        decode_batch(Survey.from_json(task), bytes.fromhex(case["batch"]))
    assert type(refused.value).__name__ == case["error"]


@pytest.mark.parametrize(("task", "case"), [*bad_cases("bad_tallies"), *bad_cases("bad_some_questions")])
def test_bad_tallies_are_refused(task: Json, case: Json) -> None:
    with pytest.raises(errors.VeilError) as refused:
        decode_tally(Survey.from_json(task), bytes.fromhex(case["tally"]))
    assert type(refused.value).__name__ == case["error"]


@pytest.mark.parametrize(("task", "case"), list(bad_cases("bad_tasks")))
def test_bad_tasks_are_refused(task: None, case: Json) -> None:
    for document in (case["text"], case["text"].encode("utf-8", errors="surrogatepass")):
        with pytest.raises(errors.VeilError) as refused:
            Survey.from_json(document)
        assert type(refused.value).__name__ == case["error"]


def test_device_accepts_or_refuses_published_surveys_as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One ledger for all steps: what it saw in earlier ones decides."""
    vectors, ledger = read("published"), Ledger(lifetime=1.0)
    for step in vectors["steps"]:
        answer = HttpResponse(200, {}, json.dumps(step["published"]).encode())
        monkeypatch.setattr(Web, "get", lambda *_, answer=answer: answer)
        now = read_time(step["now"])
        clock = Clock(now=lambda now=now: now)  # type: ignore[misc]
        try:
            open_client("https://collector.example", vectors["keys"], step["asked"], ledger, clock)
            outcome = "open"
        except errors.VeilError as problem:
            said = {"renewed": "outdated", "has seen wave": "rollback"}
            outcome = next((word for part, word in said.items() if part in str(problem)), "refused")
        assert outcome == step["outcome"], step["name"]
    assert ledger.charges == []


def test_every_bad_task_is_bad_for_one_reason() -> None:
    """The documents that the bad ones were made from are good: what is refused is the edit."""
    for vector in (v for name in GOOD for v in read(name)["surveys"]):
        again = parse_json(canonical(vector["task"]))
        assert Survey.from_json(again).task == vector["task_id"]


def test_the_examples_of_the_specification_are_in_the_vectors() -> None:
    text = (ROOT / "docs" / "wire-format.md").read_text(encoding="utf-8")
    examples = set(re.findall(r"\b[0-9a-f]{14,}\b", text))
    every = "".join(path.read_text(encoding="ascii") for path in VECTORS.glob("*.json"))
    assert len(examples) > 8
    assert [example for example in examples if example not in every] == []


# -- node -------------------------------------------------------------------------------------------------------------


def reproduce(folder: Path) -> tuple[int, int, int, str]:
    """What the browser client's modules make of the vectors: exit code, checks passed and failed, output."""
    built_client()
    ran = subprocess.run(["node", str(SCRIPT), str(folder)], capture_output=True, text=True, timeout=LIMIT, check=False)
    counts = re.search(r"^(\d+) passed, (\d+) failed$", ran.stdout, re.MULTILINE)
    assert counts, ran.stdout + ran.stderr
    return ran.returncode, int(counts[1]), int(counts[2]), ran.stdout


def test_node_reproduces_the_vectors() -> None:
    code, passed, failed, output = reproduce(VECTORS)
    assert (code, failed) == (0, 0), output
    cases = sum(len(vector["cases"]) for name in GOOD for vector in read(name)["surveys"])
    assert passed >= cases + sum(len(rows) for rows in read("primitives").values())
    assert passed >= 1100


def flip(text: str, pattern: str) -> str:
    """The text with the last hex digit of the first match changed."""
    found = re.search(pattern, text)
    assert found
    digit = "1" if text[found.end(1) - 1] == "0" else "0"
    return text[: found.end(1) - 1] + digit + text[found.end(1) :]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("grr", r'"report": "([0-9a-f]+)"'),
        ("oue", r'"report": "([0-9a-f]+)"'),
        ("olh", r'"report": "([0-9a-f]+)"'),
        ("olh", r'"task_id": "([0-9a-f]+)"'),
        ("olh-short-seeds", r'"report": "([0-9a-f]+)"'),
        ("subset-selection", r'"report": "([0-9a-f]+)"'),
        ("linear-hashing", r'"report": "([0-9a-f]+)"'),
        ("pgr", r'"report": "([0-9a-f]+)"'),
        ("rappor", r'"report": "([0-9a-f]+)"'),
        ("rappor", r'"flip": "([0-9a-f]+)"'),
        ("hadamard-response", r'"report": "([0-9a-f]+)"'),
        ("hadamard-response", r'"keep": "([0-9a-f]+)"'),
        ("haar-response", r'"report": "([0-9a-f]+)"'),
        ("square-wave", r'"report": "([0-9a-f]+)"'),
        ("square-wave", r'"near": "([0-9a-f]+)"'),
        ("stochastic-rounding", r'"report": "([0-9a-f]+)"'),
        ("piecewise", r'"report": "([0-9a-f]+)"'),
        ("piecewise", r'"centre": "([0-9.]+)"'),
        ("she", r'"report": "([0-9a-f]+)"'),
        ("she", r'"further": "([0-9a-f]+)"'),
        ("one-of", r'"report": "([0-9a-f]+)"'),
        ("each-of", r'"report": "([0-9a-f]+)"'),
        ("each-of", r'"stay": "([0-9a-f]+)"'),
        ("calm", r'"report": "([0-9a-f]+)"'),
        ("oue", r'"others": "([0-9a-f]+)"'),
        ("grr", r'"ratio": \[\s+"([0-9]+)"'),
        ("set-views", r'"delta": \[\s+"([0-9]+)"'),
        ("set-views", r'"load": ([0-9]+)'),
        ("primitives", r'"spread": "([0-9a-f]+)"'),
        ("bad_tasks", r'"ratio": "(abov)e"'),
        ("published", r'"outcome": "(rollbac)k"'),
        ("statements", r"at most ([0-9.]+) times"),
    ],
)
def test_node_fails_on_one_flipped_digit(name: str, pattern: str, tmp_path: Path) -> None:
    empty = {"primitives": {}, "lasting": {"people": []}, "bad_tasks": {"cases": []}, "published": {"steps": []}}
    empty["statements"] = {"cases": []}
    for other in VECTORS.glob("*.json"):  # the file alone: all others would be gone through for nothing
        (tmp_path / other.name).write_text(json.dumps(empty.get(other.stem, {"surveys": []})))
    path = tmp_path / f"{name}.json"
    right = (VECTORS / f"{name}.json").read_text(encoding="ascii")
    path.write_text(right, encoding="ascii")
    _, before, none, _ = reproduce(tmp_path)
    assert none == 0
    path.write_text(flip(right, pattern), encoding="ascii")
    code, passed, failed, _ = reproduce(tmp_path)
    assert code != 0
    assert failed >= 1
    assert passed >= before / 2  # the others of the file are as they were
