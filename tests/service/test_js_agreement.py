"""Beyond the vectors: random surveys give the same bytes in both languages, and random damage is refused in both."""

from __future__ import annotations

import copy
import datetime as dt
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.service.browser.javascript import run_node

from veil import (
    BLH,
    GRR,
    OLH,
    OUE,
    PGR,
    SHE,
    SUE,
    THE,
    AllOf,
    EachOf,
    HaarResponse,
    HadamardResponse,
    Ledger,
    LinearHashing,
    OneOf,
    Piecewise,
    Question,
    RandomProjection,
    Rappor,
    SquareWave,
    StochasticRounding,
    SubsetSelection,
    Survey,
)
from veil.device.client import normative_report
from veil.device.repeated_answers import RepeatedAnswers
from veil.domain import Bits, Categories, Domain, Integers, Interval, Items, Numeric, Record, Text
from veil.entropy import Words
from veil.errors import EntropyError, ParameterError, VeilError
from veil.survey import AttributeSets, Levels, ListedBits, ListedSets, Parities, Rule
from veil.survey.rules import RULES
from veil.tools.json_documents import canonical, parse_json
from veil.view import (
    Ancestor,
    Composed,
    CountContained,
    Identity,
    Product,
    Project,
    SampleContained,
    SampleItem,
    Segment,
    SetSize,
    SquaredDistance,
    View,
    bits_of,
)

SCRIPT = Path(__file__).parent / "browser" / "reports.mjs"
ENTROPY = 1 << 16
ALPHABET = 'aé\u0301ß水🍵 "\\\n\u2028z'

Value = Callable[[random.Random], Any]


def word(draw: random.Random) -> str:
    return "".join(draw.choice(ALPHABET) for _ in range(draw.randint(1, 6)))


def flat_domain(draw: random.Random) -> tuple[Domain, Value]:
    """A domain with one index a value, and how to draw from it."""
    kind = draw.randrange(4)
    if kind == 0:
        labels = list({word(draw) for _ in range(draw.randint(3, 9))} | {draw.randint(-5, 5)})
        try:
            domain = Categories(labels, missing=draw.choice(["refuse", "category"]))
        except ParameterError:  # two that are the same after NFC
            return flat_domain(draw)
        return domain, lambda d: d.choice([*labels, None] if domain.missing == "category" else labels)
    if kind == 1:
        size = draw.choice([2, 3, 17, 64, 65, 255, 256, 257, 1000])
        return Categories.range(size), lambda d: d.randrange(size)
    if kind == 2:
        return number_domain(draw, cells=[2, 10, 333])
    bits = draw.randint(1, 9)
    return Bits(bits), lambda d: d.randrange(1 << bits)


def number_domain(draw: random.Random, cells: list[int]) -> tuple[Numeric, Value]:
    """Integers, real numbers or times, and how to draw from them."""
    kind = draw.randrange(3)
    if kind == 0:
        first = draw.randint(-(2**40), 2**40)
        last = first + draw.choice([1, 5, 99, 300])
        return Integers(first, last), lambda d: d.randint(first, last)
    if kind == 1:
        lo = draw.choice([-1.5, 0.0, 1e-7, -3e5, 1e22])
        hi = lo + draw.choice([1.0, 0.3, 7e9]) * max(1.0, abs(lo))
        return Interval(lo, hi, draw.choice(cells)), lambda d: min(max(lo + d.random() * (hi - lo), lo), hi)
    start = dt.datetime(draw.choice([1, 1900, 1970, 2026, 2300, 8000]), 2, 3, 4, 5, 6)
    seconds = draw.choice([1, 86_400, 10**9])
    millisecond = dt.timedelta(milliseconds=1)
    times = Interval(start, start + dt.timedelta(seconds=seconds), draw.choice(cells))
    return times, lambda d: start + d.randint(0, 1000 * seconds) * millisecond


def view_and_value(draw: random.Random) -> tuple[Callable[[], View], Value]:
    """A held domain as a maker of views on it, and how to draw a value."""
    kind = draw.randrange(8)
    if kind >= 6:
        numbers, value = number_domain(draw, cells=[2, 333, 1 << 20, 1 << 32])
        return lambda: draw.choice([lambda: Identity(numbers), lambda: squared_distance(draw, numbers)])(), value
    if kind <= 1:
        domain, value = flat_domain(draw)
        trees = [lambda: Ancestor(domain, draw.randint(2, 5), 1)] if domain.size > 5 else []
        return lambda: draw.choice([lambda: Identity(domain), *trees])(), value
    if kind == 2:
        text = Text(draw.randint(2, 20))
        return lambda: segment(draw, text, text.bits), word
    if kind == 3:
        bits = draw.choice([12, 64, 65, 100, 200])
        strings = Bits(bits)
        return lambda: segment(draw, strings, bits), lambda d: d.randrange(1 << bits)
    if kind == 4:
        universe, value = flat_domain(draw)
        sets = Items(universe)
        return lambda: set_view(draw, sets), lambda d: [value(d) for _ in range(d.randint(0, 8))]
    parts = {f"a{i}": flat_domain(draw) for i in range(draw.randint(1, 3))}
    record = Record(tuple((name, domain) for name, (domain, _) in parts.items()))
    return lambda: record_view(draw, record, 0), lambda d: {name: value(d) for name, (_, value) in parts.items()}


def record_view(draw: random.Random, record: Record, depth: int) -> View:
    """Some attributes, their ancestors, or several such views as one."""
    kind = draw.randrange(5) if depth < 2 else 0
    if kind < 3:
        return Project(record, tuple(draw.sample(record.names, draw.randint(1, min(2, len(record.names))))))
    first = record_view(draw, record, depth + 1)
    if kind == 3 and first.domain.size > 5:
        return Composed(first, Ancestor(first.domain, draw.randint(2, 5), 1))
    return Product(first, record_view(draw, record, depth + 1))


def family(draw: random.Random, record: Record, *, lifetime: bool) -> EachOf:
    """Every rule, asked through mechanisms that differ from size to size."""
    kind = draw.randrange(5)
    rule: Rule
    if kind == 0:
        rule = AttributeSets(record, draw.randint(1, len(record.names)))
    elif kind == 1:
        listed = {tuple(draw.sample(record.names, draw.randint(1, len(record.names)))) for _ in range(3)}
        rule = ListedSets(record, tuple(sorted({tuple(sorted(names)) for names in listed})))
    elif kind == 2 and any(part.size > 1 for part in record.parts):
        bits = bits_of(record)
        sets = {tuple(sorted(draw.sample(bits, draw.randint(1, min(6, len(bits)))))) for _ in range(3)}
        rule = ListedBits(record, tuple(sorted(sets)))
    elif kind == 3 and 1 < max(part.size for part in record.parts) <= 64:
        rule = Parities(record, draw.randint(1, 2))
    else:
        some = draw.sample(record.names, draw.randint(1, len(record.names)))
        rule = Levels(record, tuple((name, draw.choice([2, 3, 5, 1000])) for name in some))
    return EachOf(rule, lambda domain: question(draw, Identity(domain), lifetime=lifetime).mechanism)


def segment(draw: random.Random, source: Bits | Text, bits: int) -> View:
    width = draw.choice([1, 3, 8, 11, bits])
    start = draw.randint(0, bits - min(width, bits))
    return Segment(source, start, start + min(width, bits)) if width < bits else Identity(source)


def set_view(draw: random.Random, sets: Items) -> View:
    size, kind = sets.universe.size, draw.randrange(4)
    if kind == 0:
        return SampleItem(sets, *padding(draw))
    if kind == 1:
        return SetSize(sets, draw.randint(1, min(size, 9)))
    items = range(min(size, 9))
    chosen = {tuple(sorted(draw.sample(items, draw.randint(1, min(size, 3))))) for _ in range(draw.randint(1, 7))}
    candidates = tuple(draw.sample(sorted(chosen), len(chosen)))
    if kind == 2:
        return CountContained(sets, candidates, draw.randint(1, len(candidates)))
    return SampleContained(sets, candidates, *padding(draw))


def padding(draw: random.Random) -> tuple[int, int | None]:
    """A length, and half of the time a load, which hashing takes."""
    length = draw.randint(1, 6)
    return length, draw.randint(1, length - 1) if length > 1 and draw.random() < 0.5 else None


def squared_distance(draw: random.Random, source: Numeric) -> View:
    lo, hi = source.ends
    return SquaredDistance(source, lo + draw.uniform(-0.5, 1.5) * (hi - lo), draw.choice([2, 1000, 1 << 20, 1 << 32]))


def question(draw: random.Random, view: View, *, lifetime: bool) -> Question:
    epsilon = draw.choice([0.1, 0.5, 1.0, 2.3, 6.0])
    while True:
        makers: list[Callable[[], Any]] = [
            lambda: GRR(epsilon, view.domain),
            lambda: OUE(epsilon, view.domain),
            lambda: SUE(epsilon, view.domain),
            lambda: THE(epsilon, view.domain),
            lambda: OLH(epsilon, view.domain, draw.choice([None, 2, 5, 300, 2**31])),
            lambda: BLH(epsilon, view.domain),
            lambda: RandomProjection(epsilon, view.domain, draw.choice([2, 1000, 2**32])),
            lambda: LinearHashing(
                epsilon, view.domain, draw.choice([None, 2, 5, 257]), draw.choice([None, 1, 9, 17, 20])
            ),
            lambda: SubsetSelection(epsilon, view.domain),
            lambda: HadamardResponse(epsilon, view.domain),
            lambda: PGR(epsilon, view.domain),
            lambda: SHE(epsilon, view.domain, grid=draw.choice([1, 3])),
            lambda: HaarResponse(epsilon, view.domain),
            lambda: SquareWave(
                epsilon, view.domain, b=draw.choice([None, 0.0, 0.3, 1.0]), ratio=draw.choice([0, 0.4, 1])
            ),
            lambda: StochasticRounding(epsilon, view.domain),
            lambda: Piecewise(epsilon, view.domain, draw.choice([2, 300, 1 << 16, 1 << 24])),
        ]
        if lifetime:
            bits, cohorts, instant = draw.choice([16, 100]), draw.choice([1, 8]), draw.choice([None, (0.25, 0.75)])
            return Question(Rappor(epsilon, view.domain, bits, 2, cohorts, instant), view)
        try:
            return Question(draw.choice(makers)(), view)
        except VeilError:  # this mechanism does not take this domain
            continue


def tree(draw: random.Random, make: Callable[[], View], depth: int, *, lifetime: bool) -> Any:
    kind = draw.randrange(3) if depth < 2 else 0
    view = make()
    if isinstance(view.held, Record) and draw.random() < 0.4:
        return family(draw, view.held, lifetime=lifetime)
    if kind == 0:
        return question(draw, view, lifetime=lifetime)
    parts = [tree(draw, make, depth + 1, lifetime=lifetime) for _ in range(draw.randint(1, 3))]
    if kind == 1 and not any(isinstance(part, (OneOf, EachOf)) for part in parts):
        return OneOf(*((draw.choice([1, 3, 2**32]), part) for part in parts))
    return AllOf(*parts)


def surveys(seed: int, count: int) -> Iterator[tuple[Survey, Any, bytes]]:
    draw = random.Random(seed)
    while count:
        make, value = view_and_value(draw)
        try:
            survey = Survey(tree(draw, make, 0, lifetime=draw.random() < 0.1))
        except VeilError:  # a domain of one value, say
            continue
        if survey.layout.size > 4096:
            continue
        yield survey, value(draw), draw.randbytes(ENTROPY)
        count -= 1


def outcomes(folder: Path, cases: list[dict[str, Any]]) -> list[str]:
    """What the browser client makes of the cases."""
    (folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
    found = [json.loads(line) for line in run_node(SCRIPT, folder / "cases.jsonl").splitlines()]
    assert len(found) == len(cases)
    return found


def portable(value: Any) -> Any:
    """Integers that JSON in JavaScript would round travel as text, and so do times."""
    if isinstance(value, dt.datetime):
        return {"time": value.isoformat() + "Z"}
    if isinstance(value, dict):
        return {name: portable(part) for name, part in value.items()}
    if isinstance(value, list):
        return [portable(part) for part in value]
    return {"big": str(value)} if isinstance(value, int) and abs(value) >= 2**53 else value


def test_random_surveys_give_the_same_bytes(tmp_path: Path) -> None:
    cases, wanted, kinds, rules = [], [], set(), set()
    for survey, value, entropy in surveys(1, 400):
        task = survey.to_bytes().decode()
        source = Words(entropy)
        try:
            wanted.append(normative_report(survey, value, source).hex())
        except EntropyError:  # more than this test has: thousands of words for one report
            continue
        cases.append({"task": task, "value": portable(value), "entropy": entropy[: 8 * source.used].hex()})
        kinds |= {q.mechanism.name for q in survey.questions} | {q.view.kind for q in survey.questions}
        rules |= set(re.findall(r'"rule":{"kind":"([a-z-]+)"', task))
    assert outcomes(tmp_path, cases) == wanted
    assert len(cases) > 300
    assert len(kinds) == 17 + 13  # every mechanism and every view came up
    assert rules == set(RULES)


def test_random_lives_give_the_same_bytes(tmp_path: Path) -> None:
    """One person's answers over time: cohort, permanent steps and reports, kept alike in both languages."""
    draw = random.Random(7)
    cases, wanted = [], []
    while len(cases) < 60:
        make, value = view_and_value(draw)
        try:
            survey = Survey(question(draw, make(), lifetime=True))
        except VeilError:
            continue
        ledger = Ledger(lifetime=1e6)
        answers = RepeatedAnswers.of(survey, ledger)
        assert answers is not None
        values, life, sent = [value(draw) for _ in range(3)], [], []
        for _ in range(8):
            held, occasion = draw.choice(values), draw.choice("abc")
            own = json.dumps(portable(held)).encode().hex()
            entropy = draw.randbytes(ENTROPY)
            source = Words(entropy)
            codes = survey.domain.encode([held])
            report = answers.report(codes, {}, (own, f"{own}-{occasion}"), source, lambda report: None)
            life.append([portable(held), occasion, entropy[: 8 * source.used].hex()])
            sent.append(report.hex())
        cases.append({"task": survey.to_bytes().decode(), "life": life})
        wanted.append(" ".join(sent))
    assert outcomes(tmp_path, cases) == wanted


def damaged(document: Any, draw: random.Random) -> Any:
    """A copy of a task with one thing changed somewhere in it."""
    copied = copy.deepcopy(document)
    places: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            visit(node[key])

    visit(copied)
    node, key = draw.choice(places)
    old = node[key]
    edit = draw.randrange(6)
    if edit == 0:
        del node[key]
    elif edit == 1 and isinstance(node, dict):
        node["more"] = old
    elif edit == 2 and isinstance(old, int):
        node[key] = draw.choice([-1, 0, 1, old + 1, old - 1, 2**31, 2**32 + 1, 2**53 - 1, str(old)])
    elif edit == 3 and isinstance(old, str):
        node[key] = draw.choice(
            [old.upper(), old + "0", "0" + old, "", old[::-1], "0.5", "1e1", "-1", "identity", "GRR"]
        )
    elif edit == 4:
        node[key] = draw.choice([None, True, [], {}, [old], {"kind": "bits", "bits": 3}])
    elif isinstance(node, list):
        node.append(copy.deepcopy(old))
    return copied


def test_what_python_refuses_the_browser_refuses(tmp_path: Path) -> None:
    """But for thresholds that are safe and not Python's own: those a device cannot tell, and need not."""
    draw = random.Random(2)
    cases, verdicts = [], []
    for survey, _, _ in surveys(3, 300):
        for _ in range(10):
            document = damaged(json.loads(survey.to_bytes()), draw)
            task = canonical(document)
            cases.append({"task": task.decode()})
            try:
                verdicts.append(Survey.from_json(parse_json(task)).task)
            except VeilError as problem:
                verdicts.append("safe" if "threshold" in str(problem) else "refused")
    wrong = []
    for case, found, verdict in zip(cases, outcomes(tmp_path, cases), verdicts, strict=True):
        taken = not found.startswith("survey-")
        agreed = found == verdict if verdict not in ("safe", "refused") else verdict == "safe" or not taken
        if not agreed:
            wrong.append((found, verdict, case["task"]))
    assert wrong == []
    assert min(verdicts.count("refused"), sum(len(verdict) == 64 for verdict in verdicts)) > 100
