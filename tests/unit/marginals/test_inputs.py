"""Joint distributions: invalid studies and records, marginals of known people, rows by value, attribute names."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from veil import Categories, Client, Integers, Interval, Ledger, Record, simulate
from veil.comparison import TrueValues, compare
from veil.errors import BudgetError, DomainError, InputError, ParameterError, VeilError
from veil.histogram import Histogram
from veil.marginals import CALM, AllMarginals, FullContingency, SplitEM, Uniform
from veil.marginals.known import MOST_MARGINALS, KnownJoint
from veil.mechanisms import GRR
from veil.results.base import Result
from veil.results.render.layout import result_cells
from veil.results.render.terminal import render
from veil.results.units import key_columns, key_texts
from veil.study.parameters import from_text

PERSON = Record.of(age=["young", "old"], sex=["f", "m"], children=Integers(0, 2))
STUDY = CALM(3.0, PERSON, k=2, sets=2)
PEOPLE = {"age": ["young", "young", "old"] * 900, "sex": ["f", "m", "m"] * 900, "children": [0, 1, 2] * 900}


@pytest.fixture(scope="module")
def found() -> Any:
    return simulate(STUDY, PEOPLE, seed=1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"k": 4}, "from 1 to the record's 3"),
        ({"k": 0}, "from 1 to the record's 3"),
        ({"domain": Record.of(age=3)}, "at least two attributes"),
        ({"domain": Record.of(age=3, planet=["earth"])}, "'planet' has one value only"),
        ({"domain": Categories.range(4)}, "Record"),
        ({"sets": (("age", "income"),)}, "no attribute 'income'"),
        ({"sets": (("age", "age"),)}, "each named once"),
        ({"sets": 4}, "attributes"),
        ({"marginal": ("age", "income")}, "no attribute 'income'"),
        ({"given": ("age",)}, "given"),
        ({"marginal": ("age",), "given": ("age",)}, "given"),
        ({"inference": "guess"}, "inference"),
    ],
)
def test_invalid_studies_are_refused(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        CALM(**{"epsilon": 1.0, "domain": PERSON, "k": 2, "sets": 2, **given})


def test_marginal_of_too_many_cells_is_refused_with_advice() -> None:
    record = Record(tuple((f"a{i}", Integers(0, 9)) for i in range(9)))
    held = {name: [0, 9] for name in record.names}
    found = simulate(CALM(2.0, record, k=2, sets=2), held)
    with pytest.raises(ParameterError, match=r"1,000,000,000 cells, .*fewer attributes.*fewer values"):
        found.marginal(record.names)
    for sets in (9, (record.names,)):
        with pytest.raises(ParameterError, match="1,000,000,000 cells"):
            CALM(2.0, record, k=9, sets=sets)
    assert len(replace(found, shown=record.names)) == 10**9  # known without working it out


def test_invalid_records_are_refused_without_cost() -> None:
    device = Client(STUDY.survey, Ledger(lifetime=3.0))
    person: Any = {"age": "old", "sex": "f", "children": 2}
    for wrong, name in [
        ({**person, "age": "secret"}, "age"),
        ({**person, "children": 77_777}, "children"),
        ({**person, "children": "2"}, "children"),
        ({"age": "old", "children": 2}, "sex"),
        ({"age": "old", "sexx": "f", "children": 2}, "sex"),
        ({**person, "sex": None}, "sex"),
    ]:
        with pytest.raises(DomainError, match=f"attribute '{name}'") as caught:
            device.answer(wrong)
        assert "secret" not in str(caught.value)
        assert "77" not in str(caught.value)
    for wrong in ("old", 3, None, ["old", "f", 2]):
        with pytest.raises(InputError):
            device.answer(wrong)
    assert device.ledger.spent == 0  # nobody pays for what was refused
    report = device.answer({**person, "income": 5})
    assert device.answer(person) == report  # what nobody asks for does not count
    assert float(device.ledger.spent) == pytest.approx(3.0)
    with pytest.raises(BudgetError):
        device.answer({**person, "sex": "m"})


def test_attribute_names_as_text() -> None:
    hint = STUDY.parameters()["marginal"]
    assert from_text(hint, "age,sex", "marginal") == ("age", "sex")
    assert from_text(hint, 'age, "height, cm"', "marginal") == ("age", "height, cm")
    assert from_text(hint, "none", "marginal") is None
    with pytest.raises(InputError):
        from_text(hint, "a\rb", "marginal")
    assert STUDY.changed(marginal="age,sex").marginal == ("age", "sex")
    with pytest.raises(VeilError, match="would change what people are asked"):
        STUDY.changed(sets="1")


def test_known_marginals_are_counts(found: Any) -> None:
    codes = PERSON.encode(PEOPLE)
    known, held = KnownJoint.of(PERSON, codes), TrueValues(STUDY, codes)
    for names in (["age"], ["sex", "age"], ["children", "age", "sex"]):
        wanted = np.zeros([dict(PERSON.attributes)[name].size for name in names])
        for row in codes:
            wanted[tuple(int(row[PERSON.names.index(name)]) for name in names)] += 1 / len(codes)
        assert np.allclose(known.marginal(names).shares, wanted, atol=1e-12)
        if len(names) < 3:
            assert held.truth(found.marginal(names)) == pytest.approx(wanted.ravel().tolist())
            assert held.truth(replace(found, shown=tuple(names))) == pytest.approx(wanted.ravel().tolist())
    third = 1 / 3
    assert held.truth(found) == pytest.approx([2 * third, third, third, 2 * third, third, third, third])
    other = simulate(CALM(3.0, Record.of(a=2, b=2), k=2), {"a": [0, 1], "b": [0, 1]})
    assert held.truth(other) is None
    with pytest.raises(InputError, match="not written down"):
        known.to_json()
    with pytest.raises(InputError):
        KnownJoint.of(PERSON, codes[:0])


def test_known_conditionals_are_counts(found: Any) -> None:
    held = TrueValues(STUDY, PERSON.encode(PEOPLE))
    wanted = [1, 0, 0, 0, 0.5, 0.5]  # children of women, then of men
    for result in (found.conditional("children", "sex"), replace(found, shown=("children",), given=("sex",))):
        assert held.truth(result) == pytest.approx(wanted)
        assert result.summary_table(truth=held.truth(result))["truth"].to_pylist() == pytest.approx(wanted)
    women = KnownJoint.of(PERSON, PERSON.encode({"age": ["old"], "sex": ["f"], "children": [2]}))
    shares = women.truth(found.conditional("age", "sex"))
    assert shares[:2] == [0.0, 1.0]
    assert np.isnan(shares[2:]).all()  # there are no men
    table = found.conditional("age", "sex").summary_table(truth=shares)
    assert table["truth"].to_pylist() == [0.0, 1.0, None, None]
    assert table["covered"].to_pylist()[2:] == [None, None]


def test_error_is_the_mean_over_marginals(found: Any) -> None:
    codes = PERSON.encode(PEOPLE)
    known = KnownJoint.of(PERSON, codes)
    errors = [
        np.sum((found.marginal(names).frequencies - known.marginal(names).frequencies) ** 2)
        for names in combinations(PERSON.names, 2)
    ]
    assert TrueValues(STUDY, codes).error(found) == pytest.approx(math.sqrt(np.mean(errors)))
    assert known.sse(known, 2) == 0
    pair = found.marginal(["age", "sex"])
    assert TrueValues(STUDY, codes).error(pair) == pytest.approx(math.sqrt(errors[0]))


def test_error_of_many_marginals_uses_the_same_fifty() -> None:
    record = Record(tuple((f"a{i}", Categories.range(2)) for i in range(20)))
    known = KnownJoint.of(record, np.zeros((3, 20), np.uint64))
    some = known._some(3)
    assert some == known._some(3)
    assert len(set(some)) == MOST_MARGINALS
    assert all(len(set(names)) == 3 for names in some)
    assert set(record.names) == {name for names in some for name in names}


def test_compare_uses_the_error_over_marginals() -> None:
    codes = PERSON.encode(PEOPLE)
    studies = {"pairs": STUDY, "all": CALM(1.0, PERSON, k=2, sets=3)}
    result = compare(studies, dict.fromkeys(studies, codes), [0.5, 4.0], runs=4, seed=1)
    assert result.shares
    assert (result.errors[:, 0] > result.errors[:, 1]).all()  # more privacy, more noise
    three = {"two": STUDY, "three": CALM(3.0, PERSON, k=3, sets=3)}
    with pytest.raises(InputError, match="as many of them"):
        compare(three, dict.fromkeys(three, codes), [1.0], 1)
    with pytest.raises(InputError, match="shares are compared with shares"):
        compare({"age": Histogram(GRR(1.0, 2)), "pairs": STUDY}, {"age": codes[:, 0], "pairs": codes}, [1.0], 1)


def test_rows_by_value(found: Any) -> None:
    pair = found.marginal(["sex", "children"])
    assert pair[("m", 2)].frequency == pair.shares[1, 2]
    shown = replace(found, shown=("sex", "children"))
    assert shown[("m", 2)] == pair[("m", 2)]
    assert found[("sex", "m")].frequency == found.marginal("sex").frequencies[1]
    assert found[("children", 0)].attribute == "children"
    for wrong in ("sex", ("sex", "x"), ("income", 1), ("m", 2), 5):
        with pytest.raises(DomainError):
            found[wrong]
    with pytest.raises(DomainError):
        pair[("m", 3)]


def test_few_cells_are_in_their_order_and_many_by_size(found: Any) -> None:
    pair = replace(found, shown=("sex", "children"))
    assert pair.summary_table(rows=6) == pair.table()
    largest = pair.summary_table(rows=2)["frequency"].to_pylist()
    assert largest == sorted(pair.table()["frequency"].to_pylist(), reverse=True)[:2]
    assert len(pair) == pair.table().num_rows == 6
    assert len(found) == found.table().num_rows == 7


def test_truth_by_tuples_of_values(found: Any) -> None:
    pair = found.marginal(["sex", "children"])
    table = pair.summary_table(rows=6, truth={("f", 0): 0.5, ("m", 2): 0.25})
    assert table["truth"].to_pylist() == [0.5, 0.0, 0.0, 0.0, 0.0, 0.25]
    alone = found.marginal("sex").summary_table(truth={"f": 0.75})
    assert alone["truth"].to_pylist() == [0.75, 0.0]


NAMES = ("frequency", "count", "from", "to", "low", "high", "mean", "child_count", "is_low", "is_high", "covered")


def test_attributes_may_have_any_name() -> None:
    """Names that mean something in tables neither hide numbers nor pass for them."""
    record = Record(tuple((name, Integers(0, 1)) for name in NAMES))
    found = simulate(CALM(4.0, record, k=2, sets=2), {name: [0, 1] * 200 for name in NAMES}, seed=1)
    for names in combinations(NAMES, 2):
        marginal = found.marginal(names)
        table = marginal.table()
        assert table["frequency"].to_pylist() == marginal.frequencies.tolist()
        assert len(key_columns(table)) == 2
        shown = replace(found, shown=names)
        headings = [cells.heading for cells in result_cells(shown.summary_table(truth=[0.25] * 4), 0.95)]
        assert len(headings) == 2 + 5
        assert headings[2:4] == ["share", "count"]
        assert [heading.strip() for heading in headings[:2]] == [name.replace("_", " ") for name in names]
        assert key_texts(table) == ["0, 0", "0, 1", "1, 0", "1, 1"]
        assert [row.frequency for row in marginal] == marginal.frequencies.tolist()
        assert Result.from_json(shown.to_json()) == shown


def test_wide_marginals_lose_no_number_at_80_columns() -> None:
    record = Record(
        (
            *((f"a long name of attribute {i}", Categories(["a long label of it", "b"])) for i in range(5)),
            ("income", Interval(0, 100_000, 2)),
        )
    )
    held = {name: ["b", "a long label of it"] * 300 for name in record.names[:5]} | {"income": [5.0, 90_000.0] * 300}
    study = CALM(4.0, record, k=2, sets=(record.names[:3], record.names[3:]), marginal=record.names[3:])
    sink = io.StringIO()
    found = simulate(study, held, seed=1)
    Console(width=80, file=sink).print(render(found))
    lines = sink.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines)
    text = " ".join(sink.getvalue().split())
    for share in found.table()["frequency"].to_pylist():
        assert f"{100 * share:.2f} %" in text


BITS = Record(tuple((f"a{i}", Categories.range(2)) for i in range(16)))
SMALL = Record.of(a=2, b=3, c=2)


def coins(people: int, attributes: int, share: float, seed: int) -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(seed).random((people, attributes)) < share
    return {f"a{i}": drawn[:, i].astype(int) for i in range(attributes)}


def test_view_without_answers_has_no_influence() -> None:
    """It once kept all tables from agreeing: a third of everything became uniform."""
    held = coins(500, 16, 0.05, seed=0)
    found = simulate(CALM(4.0, BITS, k=3, sets=2), held, seed=1)
    assert len(found.sets) < 120
    assert found.repaired.rounds < 200
    for name in BITS.names:
        assert abs(found.marginal(name).frequencies[1] - held[name].mean()) < 0.12
    never = found.marginal(next(pair for pair in combinations(BITS.names, 2) if pair not in found.sets))
    assert not never.measured
    assert never.remarks()


def test_independent_attributes_are_rarely_significant() -> None:
    """A test of the people who took part alone rejects: no people are independent to the last one."""
    five = Record(BITS.attributes[:5])
    rejected = 0
    for seed in range(30):
        found = simulate(FullContingency(8.0, five), coins(2_000, 5, 0.5, seed), seed=seed)
        rejected += found.correlations().facts()["significant"] > 0
    assert rejected <= 6  # one in twenty, by Holm; it was all of them
    both = coins(2_000, 5, 0.5, seed=1)
    both["a1"] = both["a0"]
    assert simulate(FullContingency(8.0, five), both, seed=1).correlation("a0", "a1").p_value < 1e-9


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: CALM(1.0, BITS, marginal=5),  # type: ignore[arg-type]
        lambda: CALM(1.0, BITS, sets=True),
        lambda: CALM(1.0, BITS, sets=1.5),  # type: ignore[arg-type]
        lambda: CALM(1.0, BITS, sets="ab"),  # type: ignore[arg-type]
        lambda: SplitEM(10.0, Record(tuple((f"a{i}", Categories.range(2)) for i in range(100))), k=5),
        lambda: CALM(1.0, Record(tuple((f"a{i}", Categories.range(200)) for i in range(40))), k=2, sets=2),
        lambda: AllMarginals(1.0, Record(tuple((f"a{i}", Categories.range(100)) for i in range(5))), k=5),
        lambda: Uniform.of(SMALL).marginal(5),
        lambda: Uniform.of(SMALL).marginal([["a"]]),
        lambda: Uniform.of(SMALL).conditional("a", None),
        lambda: Uniform.of(SMALL).synthesize(3, seed=-1),
    ],
)
def test_invalid_arguments_raise_veil_errors(wrong: Callable[[], Any]) -> None:
    with pytest.raises(VeilError):
        wrong()


def test_single_attribute_name_is_accepted() -> None:
    assert CALM(1.0, SMALL, k=2, marginal="a").marginal == ("a",)  # type: ignore[arg-type]
