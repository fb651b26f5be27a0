"""What every result can do: the same for every kind, from a table with units to JSON and back."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from veil import (
    GRR,
    OLH,
    SHE,
    Bits,
    Categories,
    EachOf,
    HaarResponse,
    Integers,
    Interval,
    Piecewise,
    Rappor,
    Record,
    SquareWave,
    Survey,
    Text,
    simulate,
)
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import DomainError, InputError, ParameterError, WireError
from veil.histogram import Questions
from veil.hitters import PEM
from veil.itemsets import SVIM, SVSM
from veil.marginals import CALM
from veil.numeric import Hierarchy, HybridMean, TwoPhaseVariance, wave_bands
from veil.results import Answers, Distribution, Mean, Result, SmoothBands, load, save
from veil.results.render.files import FORMATS, document, table_bytes, write_table
from veil.results.render.layout import result_cells, show, to_html
from veil.results.render.terminal import render
from veil.results.units import Unit, length_unit, number_unit
from veil.survey import AttributeSets

RNG = np.random.default_rng(1)
YEAR = Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1))
DRINKS = ["tea", "coffee with a lot of milk and sugar please", "water", "[bold]juice\n\x1b[31m"]
GROCERIES = ["milk", "bread", "butter", "a very long item indeed", "eggs", "salt", "oil", "<b>&"]


def banded() -> Distribution:
    wave = SquareWave(2.0, Interval(0, 250_000), buckets=1024)
    tally = wave.tally(wave.randomize(RNG.beta(2, 5, 5000) * 250_000, SeededForExperiments(1)))
    found = wave.estimate(tally)
    return replace(found, bands=wave_bands(wave, tally, found, replicates=10))


def joint() -> Any:
    """Attributes of every type; a label that is long, names that mean something elsewhere, nothing that fits beside."""
    held = Record(
        (
            ("what people drink", Categories(DRINKS)),
            ("[bold]low", Categories(["x", 1], missing="category")),
            ("hour", Integers(18, 20)),
            ("day", Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1), 12)),
        )
    )
    day = dt.datetime(2026, 5, 6)
    people = [dict(zip(held.names, one, strict=True)) for one in ((DRINKS[0], 1, 18, day), (DRINKS[1], None, 20, day))]
    return simulate(CALM(4.0, held, k=2, sets=2), people * 2_000, seed=1)


def made() -> dict[str, Result]:
    drinks = simulate(OLH(3.0, DRINKS), ["tea"] * 6_000 + ["water"] * 3_000, seed=1)
    sets = [sorted({GROCERIES[i] for i in RNG.integers(0, 4, 4)}) for _ in range(8_000)]
    return {
        "frequencies": replace(drinks, guarantee=OLH(3.0, DRINKS).guarantee),
        "processed": drinks.post("norm-sub"),
        "normed": drinks.post("norm"),
        "positive": drinks.post("post-pos"),
        "calibrated": drinks.post("calibrate"),
        "additive": simulate(SHE(1.0, 4), [1] * 100, seed=1),
        "unknown": simulate(Rappor(4.0, 10), [1] * 2_000 + [2] * 900, seed=1),
        "bits": simulate(OLH(1.0, Bits(100)), [2**99, 5], candidates=[2**99, 5], seed=1),
        "missing": simulate(GRR(1.0, Categories(["a"], missing="category")), ["a", None], seed=1),
        "mixed": simulate(GRR(1.0, ["a", 1]), ["a", 1, 1], seed=1),
        "distribution": banded(),
        "times": simulate(SquareWave(2.0, YEAR, buckets=32), [dt.datetime(2026, 5, 6)] * 500, seed=1),
        "ages": simulate(Hierarchy(2.0, Integers(18, 99)), RNG.integers(18, 70, 5_000), seed=1),
        "mean": simulate(HybridMean(2.0, Interval(0, 250_000)), RNG.beta(2, 5, 5_000) * 250_000, seed=1),
        "mean of times": simulate(Piecewise(2.0, YEAR), [dt.datetime(2026, 5, 6)] * 900, seed=1),
        "mean and variance": simulate(TwoPhaseVariance(Piecewise, 4.0, YEAR), [dt.datetime(2026, 5, 6)] * 500, seed=1),
        "differences": simulate(HaarResponse(4.0, 9), RNG.integers(0, 9, 2_000), seed=1),
        "hitters": simulate(PEM(4.0, Text(4), k=5), ["tea"] * 3_000 + ["coff"] * 2_000 + ["w"] * 1_000, seed=1),
        "no hitters": simulate(PEM(1.0, Text(4), k=5, threshold=0.9), ["tea"] * 900 + ["coff"] * 900, seed=1),
        "items": simulate(SVIM(4, 4.0, GROCERIES), sets, seed=1),
        "itemsets": simulate(SVSM(6, 4.0, GROCERIES), sets, seed=1),
        "marginals": joint(),
        "shown marginal": replace(joint(), shown=("what people drink", "[bold]low"), inference="separate"),
        "marginal": joint().marginal(["hour", "what people drink"]),
        "marginal of times": joint().marginal("day"),
        "conditional": joint().conditional(["hour"], given=["what people drink"]),
        "shown conditional": replace(joint(), shown=("hour",), given=("[bold]low", "what people drink")),
        "correlations": joint().correlations(),
    }


RESULTS = made()
RESULTS["answers"] = Answers([RESULTS[name] for name in ("frequencies", "mean", "ages", "times")], [0, 2, 5, 6])
every = pytest.mark.parametrize("name", RESULTS)


def plain(text: str) -> str:
    return " ".join(text.split())


def printed(result: Result, width: int, **options: Any) -> str:
    sink = io.StringIO()
    Console(width=width, file=sink, highlight=False).print(render(result, **options))
    return sink.getvalue()


# -- JSON both ways ----------------------------------------------------------------------------------------------------


@every
def test_a_result_is_read_back_from_json_and_files(name: str, tmp_path: Path) -> None:
    result = RESULTS[name]
    text = json.dumps(result.to_json(), allow_nan=False)
    again = Result.from_json(json.loads(text))
    assert type(again) is type(result)
    assert again == result
    assert hash(again) == hash(result)
    assert json.dumps(again.to_json()) == text
    assert again.table().equals(result.table(), check_metadata=True)
    assert again.facts() == result.facts()
    save(result, tmp_path / "found.json")
    assert load(tmp_path / "found.json") == result


def test_bands_are_saved_with_their_distribution() -> None:
    found = RESULTS["distribution"]
    again = Result.from_json(found.to_json())
    assert isinstance(found, Distribution)
    assert isinstance(again, Distribution)
    assert found.bands is not None
    assert again.bands is not None
    assert again.bands.mean() == found.bands.mean()
    assert again.bands.quantile(0.3) == found.bands.quantile(0.3)
    assert isinstance(found.bands, SmoothBands)
    assert isinstance(again.bands, SmoothBands)
    assert again.bands.errors.tobytes() == found.bands.errors.tobytes()


def test_results_that_differ_are_not_equal() -> None:
    first = RESULTS["frequencies"]
    assert first != RESULTS["processed"]
    assert first != replace(first, guarantee=None)  # type: ignore[type-var]  # every result is a dataclass
    assert first != "tea"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "unknown"},
        {"kind": None},
        {"variant": "unknown"},
        {"variant": 3},
        {"n": "many"},
        {"n": True},
        {"frequencies": [[1.0], [1.0, 2.0]]},
        {"frequencies": "x"},
        {"noise": {"kind": "x"}},
        {"noise": {"kind": "support", "p": "1/2"}},
        {"noise": {"kind": "support", "p": "1/0", "q": "1/2", "hit": "0", "miss": "0"}},
        {"domain": {"kind": "items"}},
        {"candidates": {"dtype": "object", "shape": [1], "values": ["x"]}},
        {"lineage": [1]},
        {"guarantee": {"ratio": "1/2"}},
        {"more": 1},
    ],
)
def test_damaged_documents_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        Result.from_json(RESULTS["frequencies"].to_json() | change)


def test_other_documents_are_refused(tmp_path: Path) -> None:
    for text in ("", "[1]", "{", '{"kind": "veil-result", "version": 2, "result": {}}', '{"kind": "mean"}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(WireError):
            load(tmp_path / "bad.json")
    with pytest.raises(WireError):
        Result.from_json([])


# -- tables, facts, rows -----------------------------------------------------------------------------------------------


@every
def test_the_columns_of_a_table_have_units(name: str) -> None:
    for level in (0.5, 0.95):
        table = RESULTS[name].table(level)
        for field in table.schema:
            assert b"veil.unit" in field.metadata
            Unit.of_field(field)
    if name not in ("ages", "times"):  # which have no intervals
        with pytest.raises(ParameterError):
            RESULTS[name].table(1.5)


@every
def test_facts_are_json_and_have_no_nan(name: str) -> None:
    result = RESULTS[name]
    json.dumps(result.facts(), allow_nan=False)
    shown = document(result)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert shown["people"] == result.n
    assert all(remark.endswith(".") for remark in result.remarks())


@every
def test_data_frames_and_rows_equal_the_table(name: str) -> None:
    result = RESULTS[name]
    table = result.table()
    assert len(result.to_pandas()) == len(result.to_polars()) == table.num_rows
    if name == "answers":
        return
    assert len(list(result)) == table.num_rows == len(result)
    if "frequency" in table.column_names:
        assert [row.frequency for row in result] == pytest.approx(table["frequency"].to_pylist())


def test_rows_by_value() -> None:
    tea: Any = RESULTS["frequencies"]
    assert tea["tea"] == tea.at("tea")
    ages: Any = RESULTS["ages"]
    assert (ages[18].from_, ages[18].to) == (18, 18)
    dollars: Any = RESULTS["distribution"]
    assert dollars[12_345.0].from_ <= 12_345.0 < dollars[12_345.0].to
    hitters: Any = RESULTS["hitters"]
    assert hitters["coff"].truncated
    sets: Any = RESULTS["itemsets"]
    assert sets["milk"] == sets[("milk",)] == sets.at(["milk"])
    assert RESULTS["differences"][2].pair == 2
    for name, absent in (("frequencies", "gin"), ("hitters", "gin"), ("ages", 7), ("itemsets", ("eggs", "oil"))):
        with pytest.raises(DomainError):
            RESULTS[name][absent]


def test_facts_of_numbers_have_bands_and_times_as_text() -> None:
    facts = RESULTS["distribution"].facts()
    assert facts["mean_low"] < facts["mean"] < facts["mean_high"]
    assert [quantile["level"] for quantile in facts["quantiles"]] == [0.1, 0.25, 0.5, 0.75, 0.9]
    assert all(q["low"] <= q["value"] <= q["high"] for q in facts["quantiles"])
    assert facts["replicates"] == 10
    assert RESULTS["times"].facts()["mean"].startswith("2026-05-")
    assert RESULTS["mean of times"].facts()["mean"].startswith("2026-05-")
    beyond = Mean(1e18, 1.0, 5, YEAR)
    assert beyond.facts()["mean"] is None
    assert "calendar" in beyond.remarks()[0]
    assert beyond.table()["mean"].to_pylist() == [None]


def test_significance_is_judged_at_one_minus_the_level() -> None:
    for name in ("frequencies", "processed", "hitters", "items", "itemsets"):
        strict, loose = (sum(RESULTS[name].table(level)["significant"].to_pylist()) for level in (0.999999, 0.5))
        assert strict <= loose
        assert RESULTS[name].facts()["significant"] == sum(RESULTS[name].table()["significant"].to_pylist())
    found: Any = RESULTS["frequencies"]
    assert found.facts(0.9)["threshold"] == found.threshold(0.1)
    assert {row.value for row in found.significant()} == {"tea", "water"}


def test_remarks_of_results() -> None:
    few = RESULTS["times"]
    assert any("500" in remark for remark in few.remarks())
    rough = Distribution(Interval(0, 1), np.array([0, 1, 2]), np.array([1.2, -0.2]), 5_000, 5_000)
    assert ["negative" in remark for remark in rough.remarks()] == [True]
    assert (rough.facts()["std"], rough.facts()["quantiles"]) == (None, [])
    assert "No noise law" in RESULTS["unknown"].remarks()[0]
    assert "No value was found" in RESULTS["no hitters"].remarks()[0]


# -- answers -----------------------------------------------------------------------------------------------------------


def test_answers_are_a_sequence_of_results() -> None:
    answers = RESULTS["answers"]
    assert isinstance(answers, Answers)
    parts = [RESULTS[name] for name in ("frequencies", "mean", "ages", "times")]
    assert answers == parts
    assert answers != parts[:2]
    assert list(answers) == parts
    assert answers[1] is parts[1]
    assert answers[-2:] == tuple(parts[2:])
    assert parts[2] in answers
    assert answers.of(5) is parts[2]
    assert set(answers.table()["question"].to_pylist()) == {0, 2, 5, 6}
    assert [part["question"] for part in document(answers)["answers"]] == [0, 2, 5, 6]
    with pytest.raises(InputError):
        answers.of(1)
    for bad in (([],), (parts, [1])):
        with pytest.raises(ParameterError):
            Answers(*bad)
    with pytest.raises(InputError, match="at most 12"):
        Answers([parts[1]] * 13).plot()


# -- files -------------------------------------------------------------------------------------------------------------


@every
def test_every_file_format_holds_the_table(name: str, tmp_path: Path) -> None:
    result = RESULTS[name]
    for form in FORMATS:
        write_table(result, tmp_path / f"found.{form}")
        assert (tmp_path / f"found.{form}").read_bytes() == table_bytes(result, form)
    assert pq.read_table(tmp_path / "found.parquet").equals(result.table())
    assert pa.ipc.open_file(tmp_path / "found.arrow").read_all().equals(result.table(), check_metadata=True)
    assert pa.ipc.open_stream(tmp_path / "found.arrows").read_all().equals(result.table(), check_metadata=True)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "found.csv").read_bytes().decode(), newline="")))
    assert len(rows) == result.table().num_rows
    assert json.loads((tmp_path / "found.json").read_text()) == document(result)
    with pytest.raises(InputError):
        write_table(result, tmp_path / "found.txt")


def test_csv_joins_items_and_writes_times_as_text() -> None:
    lines = table_bytes(RESULTS["itemsets"], "csv").decode().splitlines()
    assert any(line.startswith('"milk;a very long item indeed"') for line in lines)
    assert table_bytes(RESULTS["times"], "csv").decode().splitlines()[1].startswith('"2026-01-01T00:00:00"')


# -- the terminal ------------------------------------------------------------------------------------------------------


def cells_of(result: Result, **options: Any) -> list[str]:
    """Every text that must appear: all cells of the grid, the facts and the lists."""
    texts = []
    for _, part in result.parts():
        shown = show(part, **options)
        for grid in (shown.grid, *(cells for _, cells in shown.lists)):
            for cells in grid:
                items = [item for row in cells.items or [] for item in row]
                texts += items or cells.texts
        texts += [text for _, text in shown.pairs] + shown.remarks
    return texts


@every
@pytest.mark.parametrize("width", [40, 80, 100])
def test_texts_are_complete_in_a_terminal_of_any_width(name: str, width: int) -> None:
    result = RESULTS[name]
    text = printed(result, width)
    lines = text.splitlines()
    assert max(len(line) for line in lines) <= width
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    whole = plain(text)
    for cell in cells_of(result):
        if cell not in text:  # a label may wrap between words, or stand beside numbers of its row
            assert all(word in whole for word in cell.split()), cell
    for number in re.findall(r"\d[\d,.]*\d %", " ".join(cells_of(result))):
        assert number in text


@every
@pytest.mark.parametrize("width", [60, 80, 100])
def test_intervals_stay_on_one_line(name: str, width: int) -> None:
    lines = printed(RESULTS[name], width).splitlines()
    for _, part in RESULTS[name].parts():
        for cells in result_cells(part.summary_table(), 0.95):
            if "interval" in cells.heading or cells.heading == "range":
                assert all(any(text in line for line in lines) for text in cells.texts)


def test_narrow_tables_drop_bars_then_wrap_labels() -> None:
    found = RESULTS["frequencies"]
    bar = "\N{BLACK SQUARE}"
    assert bar in printed(found, 110)
    assert bar not in printed(found, 90)
    assert "coffee with a lot of milk and sugar please" in printed(found, 92)
    narrow = printed(found, 80)
    assert "coffee with a lot of milk and sugar please" not in narrow
    assert "sugar please" in narrow.splitlines()[7]


def test_labels_cannot_format_the_terminal_or_break_its_lines() -> None:
    text = printed(RESULTS["frequencies"], 120)
    assert "[bold]juice\\n\\x1b[31m" in text
    assert "\x1b" not in text


def test_a_distribution_is_shown_as_a_few_ranges() -> None:
    table = RESULTS["distribution"].summary_table()
    assert table.num_rows == 16
    assert sum(table["frequency"].to_pylist()) == pytest.approx(1.0)
    text = printed(RESULTS["distribution"], 80)
    assert "0 to 15,625" in text
    assert "0 to 15,625" in printed(RESULTS["distribution"], 40)
    assert "18 to 23" in printed(RESULTS["ages"], 80)


def test_a_table_with_the_truth_has_columns_truth_and_covered() -> None:
    found = RESULTS["frequencies"]
    table = found.summary_table(truth={"tea": 2 / 3, "water": 0.9})
    assert table["truth"].to_pylist() == [2 / 3, 0.9, 0.0, 0.0]
    assert table["covered"].to_pylist()[:2] == [True, False]
    assert table["truth"].to_pylist()[:1] == found.summary_table(truth=[2 / 3, 0, 0, 0])["truth"].to_pylist()[:1]
    assert "66.67 %" in printed(found, 100, truth={"tea": 2 / 3})
    with pytest.raises(InputError, match="4"):
        found.summary_table(truth=[1.0])
    ranges = RESULTS["distribution"].summary_table(truth=np.full(1024, 1 / 1024))
    assert ranges["truth"].to_pylist() == pytest.approx([1 / 16] * 16)
    sets: Any = RESULTS["itemsets"]
    assert sets.summary_table(truth={("milk",): 0.5})["truth"].to_pylist().count(0.5) == 1


def test_titles_and_the_number_of_omitted_rows() -> None:
    text = printed(RESULTS["frequencies"], 80, title="drinks", top=1)
    assert text.startswith("drinks\n")
    assert "and 3 more" in text
    whole = printed(simulate(GRR(3.0, Integers(1, 9)), [2] * 500, seed=1), 80, top=1)
    assert "and 8 more" in whole
    assert "significant  1\n" in whole
    assert "question 5" in printed(RESULTS["answers"], 80)


def test_a_word_longer_than_a_line_is_folded() -> None:
    label = "".join(f"{i:03d}" for i in range(60))
    text = printed(simulate(GRR(4.0, [label, "b"]), [label] * 50, seed=1), 40)
    assert label in text.replace("\n", "")


# -- notebooks and pictures --------------------------------------------------------------------------------------------


@every
def test_html_escapes_everything(name: str) -> None:
    page = RESULTS[name]._repr_html_()
    assert "<b>" not in page
    assert "\x1b" not in page
    tags = set(re.findall(r"</?(\w+)", page))
    assert tags <= {"div", "p", "strong", "em", "table", "thead", "tbody", "tr", "th", "td"}


def test_html_shows_labels() -> None:
    found = simulate(GRR(4.0, ["<b>&", "b"]), ["b"] * 50, seed=1)
    assert "&lt;b&gt;&amp;" in to_html(found)
    assert to_html(found) == found._repr_html_()


@every
def test_every_result_has_a_picture(name: str) -> None:
    import matplotlib.pyplot as plt

    axes = RESULTS[name].plot()
    assert axes.figure is not None
    maps = ("marginal", "shown marginal", "conditional", "correlations")  # a heat map and its bar of colours
    assert len(axes.figure.get_axes()) == (4 if name == "answers" else 2 if name in maps else 1)
    plt.close("all")


# -- units -------------------------------------------------------------------------------------------------------------


def test_numbers_are_written_with_the_digits_of_their_unit() -> None:
    dollars, day = Interval(0, 250_000), Interval(dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 1, 6))
    assert number_unit(dollars).text(61_234.56) == "61,235"
    assert number_unit(Interval(0, 1)).text(0.123456) == "0.1235"
    assert number_unit(Integers(18, 99)).text(20.0) == "20"
    assert number_unit(Integers(18, 99)).text(20.5) == "20.50"
    assert number_unit(YEAR).text(dt.datetime(2026, 5, 6, 7, 8)) == "2026-05-06 07:08"
    assert number_unit(day).text("2026-03-01T01:02:03.004000") == "2026-03-01 01:02:03.004"
    assert length_unit(dollars).text(1884.2) == "1,884"
    assert length_unit(Interval(0, 1)).text(0.012345) == "0.0123"
    assert [length_unit(YEAR).text(seconds) for seconds in (200_000, 8_000, 150, 1.5)] == [
        "2.3 days",
        "2.2 hours",
        "2.5 minutes",
        "1.5 seconds",
    ]
    assert Unit("share").text(math.nan) == Unit("share").interval(None, 1.0) == "\N{EN DASH}"
    assert Unit("label").text(None) == "(missing)"


def test_cells_of_a_pair_keep_their_labels() -> None:
    record = Record.of(sex=["f", "m"], age=Integers(0, 3), city=3)
    survey = Survey(EachOf(AttributeSets(record, 2), lambda domain: GRR(4.0, domain)))
    people = {"sex": ["f", "m"] * 500, "age": [1, 2] * 500, "city": [0, 1] * 500}
    collected = MemoryCollection(survey, survey.randomize(people, SeededForExperiments(1)))
    found = Questions(survey, question=0).read(collected)
    assert found["f", 1].frequency == pytest.approx(0.5, abs=0.2)
    assert found.table().column("value").to_pylist()[:2] == ["f, 0", "f, 1"]
    every = Questions(survey).read(collected)
    assert len(every) == 3
    for result in (found, every):
        assert Result.from_json(json.loads(json.dumps(result.to_json()))) == result
