"""Pictures: results on the same axes, steps as wide as their bands, names and units of axes, and no matplotlib."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.commands import CliRunner

from veil import GRR, Integers, Interval, SquareWave, Survey, simulate
from veil.cli.main import app
from veil.entropy import SeededForExperiments
from veil.numeric import MeanOf, StochasticRounding, wave_bands
from veil.results.render.plot import plot_lines
from veil.tools.messages import install_command

plt = pytest.importorskip("matplotlib.pyplot")

DRINKS = ["tea", "coffee", "water", "milk", "juice"]
MARCH = simulate(GRR(3.0, DRINKS), ["tea"] * 4000 + ["coffee"] * 3000 + ["water"] * 2000 + ["milk"] * 1000, seed=1)
APRIL = simulate(GRR(3.0, DRINKS), ["juice"] * 6000 + ["coffee"] * 4000 + ["tea"] * 2000, seed=2)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def drawn(ax: Any, number: int) -> dict[str, float]:
    """What stands beside each value on the axis, of the result that was drawn so many results before."""
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    points = ax.containers[number][0]
    return {
        names[round(y - (0.0, 0.22)[number])]: x for x, y in zip(points.get_xdata(), points.get_ydata(), strict=True)
    }


def in_percent(estimate: Any, *values: str) -> dict[str, Any]:
    return {value: pytest.approx(100 * estimate[value].frequency) for value in values}


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_overlaid_estimates_share_their_axis_by_value() -> None:
    ax = APRIL.plot(3, ax=MARCH.plot(3))
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["tea", "coffee", "water", "juice"]
    assert drawn(ax, 0) == in_percent(MARCH, "tea", "coffee", "water", "juice")  # and not as if there was none
    assert drawn(ax, 1) == in_percent(APRIL, "tea", "coffee", "water", "juice")
    assert ax.get_ylim() == (3.7, -0.5)
    assert ax.get_xlabel() == "% of people"  # 10,000 are not 12,000
    assert len({container[0].get_color() for container in ax.containers}) == 2
    assert ax.get_ylabel() == "value"


def ends(ax: Any, number: int, value: str) -> tuple[float, float]:
    """The interval that is drawn for a value."""
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    rows = [round(y - (0.0, 0.22)[number]) for y in ax.containers[number][0].get_ydata()]
    low, high = ax.containers[number][2][0].get_segments()[rows.index(names.index(value))][:, 0]
    return low, high


def test_a_selected_row_keeps_its_selection_interval() -> None:
    alone, both = APRIL.plot(2), APRIL.plot(2, ax=MARCH.plot(2))
    assert ends(both, 1, "juice") == pytest.approx(ends(alone, 0, "juice"))
    row = MARCH["juice"]  # which March did not pick
    assert ends(both, 0, "juice") == pytest.approx((100 * row.low, 100 * row.high))


def test_a_third_result_and_truths_add_their_values_to_the_axis() -> None:
    shares = {"tea": 0.4, "coffee": 0.3, "water": 0.2, "milk": 0.1}
    ax = MARCH.plot(1, truth=shares, label="March")
    APRIL.plot(1, ax=ax, label="April")
    simulate(GRR(3.0, DRINKS), ["milk"] * 9000, seed=3).plot(1, ax=ax, label="May")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["tea", "juice", "milk"]
    assert [len(container[0].get_xdata()) for container in ax.containers] == [3, 3, 3]
    assert [name.split(",")[0] for name in legend(ax) if "interval" in name] == ["March", "April", "May"]
    (truth,) = [line for line in ax.lines if line.get_label() == "truth"]
    assert list(truth.get_xdata()) == pytest.approx([40.0, 0.0, 10.0])


def test_values_missing_in_one_result_stay_empty() -> None:
    other = simulate(GRR(3.0, ["cider", "tea"]), ["cider"] * 4000 + ["tea"] * 2000, seed=4)
    ax = other.plot(ax=MARCH.plot(2))
    assert set(drawn(ax, 0)) == {"tea", "coffee"}
    assert set(drawn(ax, 1)) == {"cider", "tea"}


NOISE = [simulate(GRR(0.1, 1024), np.arange(1024), seed=seed) for seed in (1, 2)]


def test_an_empty_picture_says_that_it_is_empty() -> None:
    told = "0 of 1,024 rows: nothing stands out of the noise"
    ax = NOISE[0].plot(hide=True)
    assert ax.get_title(loc="left") == f"GRR(epsilon=0.1)\n{told}"
    assert legend(ax) == ["significant above"]
    assert ax.get_xlim()[0] == 0
    ax = NOISE[1].difference(NOISE[0]).plot(hide=True)
    assert ax.get_title(loc="left").endswith(told)
    assert ax.get_legend() is None  # it has a line at no change, and nothing else
    ax = NOISE[1].difference(NOISE[0]).plot(3)
    assert legend(ax) == ["difference", "95 % interval"]  # none changed
    assert "3 of 1,024 rows" in ax.get_title(loc="left")


def test_hidden_rows_appear_beside_those_of_another_result() -> None:
    ax = NOISE[1].plot(2, ax=NOISE[0].plot(hide=True, label="first"), label="second")
    assert [len(container[0].get_xdata()) for container in ax.containers] == [2, 2]
    assert {name.split(",")[0] for name in legend(ax)} == {"first", "second", "significant above"}


def test_long_and_empty_labels_leave_room_for_the_picture() -> None:
    long = "a label that goes on and on for more than sixty characters, number {}"
    wordy = "a label whose ends are the same and whose middle has {} somewhere, which takes more room"
    held = [long.format(1), long.format(2), "$x_1$", ""]
    ax = simulate(GRR(5.0, held), held * 500, seed=1).plot()
    names = {tick.get_text() for tick in ax.get_yticklabels()}
    assert names == {*(f"a label that goes o\u2026characters, number {i}" for i in (1, 2)), "$x_1$", "(empty)"}
    held = [wordy.format(1), wordy.format(2)]
    names = {tick.get_text() for tick in simulate(GRR(5.0, held), held * 500, seed=1).plot().get_yticklabels()}
    assert len(names) == 2  # shortened no further than they can be told apart


def test_overlaid_estimates_have_one_legend() -> None:
    truth = [0.4, 0.3, 0.2, 0.1, 0.0]
    ax = MARCH.plot(truth=truth, label="March")
    APRIL.plot(truth=truth, ax=ax, label="April")
    assert sorted(legend(ax)) == ["April, 95 % interval", "March, 95 % interval", "significant above", "truth"]
    post = MARCH.post("norm-sub")
    unnamed = post.plot(ax=MARCH.plot())
    assert "GRR(epsilon=3), 95 % interval" in legend(unnamed)  # no longer just an estimate
    assert any(name.startswith("GRR(epsilon=3) > norm-sub") for name in legend(unnamed))
    assert unnamed.get_title(loc="left") == ""
    assert unnamed.get_xlabel() == "% of 10,000 people"
    twice = MARCH.plot(ax=MARCH.plot())
    assert len([name for name in legend(twice) if name.startswith("GRR")]) == 2


@pytest.mark.parametrize("many", [2, 3, 5])
def test_the_legend_of_overlaid_estimates_is_inside_the_picture(many: int) -> None:
    ax = MARCH.plot()
    for number in range(many - 1):
        (MARCH.post("norm-sub") if number else APRIL).plot(ax=ax)
    ax.figure.canvas.draw()
    found = ax.get_legend().get_window_extent()
    assert min(found.x0, found.y0) >= 0
    assert found.x1 <= ax.figure.bbox.x1
    assert ax.get_window_extent().height > 0.4 * ax.figure.bbox.height  # and leaves room for the picture


WAVE = SquareWave(2.0, Interval(0, 250_000), buckets=256)


def incomes(seed: int, replicates: int | None = 12) -> Any:
    values = np.clip(np.random.default_rng(seed).lognormal(10.6, 0.5, 4000), 0, 250_000)
    tally = WAVE.tally(WAVE.randomize(values, SeededForExperiments(seed)))
    found = WAVE.estimate(tally)
    return found if replicates is None else replace(found, bands=wave_bands(WAVE, tally, found, replicates=replicates))


def test_bands_and_line_of_a_distribution_have_the_same_steps() -> None:
    from matplotlib.patches import StepPatch

    found = incomes(1)
    ax = found.plot(truth=[1 / 256] * 256)
    heights = [patch.get_data() for patch in ax.patches if isinstance(patch, StepPatch)]
    corners = np.unique(ax.collections[0].get_paths()[0].vertices[:, 0])
    assert len(corners) == 65  # bands of 64 groups
    for values, edges, _ in heights:
        assert np.allclose(edges, corners)
        assert np.sum(values) * np.diff(edges)[0] / 5000 == pytest.approx(100)  # all people, in pieces of 5,000


def test_overlaid_distributions_have_the_same_unit_and_their_own_colours() -> None:
    from matplotlib.patches import StepPatch

    ax = incomes(1).plot(label="March")
    other = SquareWave(2.0, Interval(0, 250_000), buckets=32)
    found = other.estimate(other.tally(other.randomize(np.full(2000, 70_000.0), SeededForExperiments(3))))
    found.plot(ax=ax, label="April")
    lines = [patch for patch in ax.patches if isinstance(patch, StepPatch)]
    assert len({patch.get_edgecolor() for patch in lines}) == 2
    for patch in lines:
        values, edges, _ = patch.get_data()
        assert np.sum(values * np.diff(edges)) / 5000 == pytest.approx(100)
    assert legend(ax) == ["March, 95 % band: 12 simulated surveys", "March", "April"]
    assert ax.get_ylabel() == "% of people per 5,000"
    ax = incomes(2).plot(ax=incomes(1).plot())
    named = "SquareWave(epsilon=2) > EMS"
    assert [name.partition(" (2)")[0].partition(", 95")[0] for name in legend(ax)] == [named] * 4  # also the first band


def test_axes_have_names_units_and_thousands() -> None:
    ax = incomes(1, None).plot()
    ax.figure.canvas.draw()
    assert "100,000" in [tick.get_text() for tick in ax.get_xticklabels()]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("value", "% of 4,000 people per 5,000")
    days = SquareWave(1.0, Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1)), buckets=16)
    ax = days.estimate(days.tally(days.randomize([dt.date(2026, 5, 1)] * 500, SeededForExperiments(1)))).plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (UTC)", "% of 500 people per 7 days")
    ages = SquareWave(1.0, Integers(18, 99), buckets=82)
    ax = ages.estimate(ages.tally(ages.randomize([30] * 500, SeededForExperiments(1)))).plot()
    assert ax.get_ylabel() == "% of 500 people per value"
    mean = MeanOf(StochasticRounding(1.0, Interval(0, 250_000)))
    ax = mean.read(mean.survey.tally(mean.survey.randomize(np.full(3000, 50_000.0), SeededForExperiments(1)))).plot()
    ax.figure.canvas.draw()
    assert any("," in tick.get_text() for tick in ax.get_xticklabels())


def test_overlaid_means_are_drawn_below_each_other() -> None:
    mean = MeanOf(StochasticRounding(1.0, Interval(0, 100)))
    march, april = (
        mean.read(mean.survey.tally(mean.survey.randomize(np.full(people, 50.0), SeededForExperiments(1))))
        for people in (900, 800)
    )
    ax = april.plot(ax=march.plot(label="March"), label="April")
    assert legend(ax) == ["March, 95 % interval", "April, 95 % interval"]
    assert [line.get_ydata()[0] for line in ax.lines] == [0, 0, 1, 1]
    assert ax.get_xlabel() == "mean"


def test_the_legend_of_a_mean_covers_nothing_of_it() -> None:
    mean = MeanOf(StochasticRounding(1.0, Interval(0, 100)))
    found = mean.read(mean.survey.tally(mean.survey.randomize(np.full(900, 50.0), SeededForExperiments(1))))
    ax = found.plot(truth=[50.0])
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().y1 < ax.get_window_extent().y0


PLOTTING = {
    "estimate": ["estimate", "{study}", "{tally}"],
    "difference": ["difference", "{study}", "{tally}", "{tally}"],
    "simulate": ["simulate", "{study}", "{values}"],
    "compare": ["compare", "{values}", "--studies", "{study}"],
    "next": ["next", "{folder}", "{study}"],
    "sql": ["sql", "{folder}", "SELECT COUNT(*) FROM people"],
    "survey answer": ["survey", "answer", "0" * 64, "--folder", "{base}"],
    "reproduce": ["reproduce", "numeric", "--quick", "--out", "{out}"],
}


@pytest.mark.parametrize("command", PLOTTING)
def test_a_missing_matplotlib_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def worked(*_: Any, **__: Any) -> Any:
        raise AssertionError("the work had begun")

    study = tmp_path / "study.json"
    study.write_bytes(Survey(GRR(1.0, 3)).to_bytes())
    (tmp_path / "values.csv").write_text("held\n1\n")
    CliRunner().invoke(app, ["survey", "create", str(study), "--new", "--folder", str(tmp_path / "base")])
    paths = {name: tmp_path / name for name in ("tally", "folder", "base", "out")}
    paths |= {"study": study, "values": tmp_path / "values.csv"}
    monkeypatch.setattr("veil.results.render.plot.axes.find_spec", lambda name: None)
    monkeypatch.setattr("veil.cli.reproduce.EXPERIMENTS", {"numeric": worked})
    for work in ("veil.cli.input.collected_of", "veil.cli.trials.load_people", "veil.cli.input.goes_on"):
        monkeypatch.setattr(work, worked)
    args = [part.format(**paths) for part in PLOTTING[command]]
    picture = [] if command == "reproduce" else ["--plot", str(tmp_path / "p.svg")]
    done = CliRunner().invoke(app, [*args, *picture, "--json"])
    assert (done.exit_code, json.loads(done.stdout)["error"]["message"]) == (
        3,
        f"pictures need matplotlib: {install_command('plot')}",
    )


def test_names_in_a_legend_are_not_read_as_formulas(tmp_path: Path) -> None:
    names = (r"$\frac{$", "a$b$c", "_hidden", "100%")
    one = np.array([0.1, 0.05])
    ax = plot_lines((1.0, 2.0), dict.fromkeys(names, (one, one / 9)), "epsilon", "error")
    ax.figure.savefig(tmp_path / "lines.svg")  # here formulas are read
    assert [text.strip() for text in legend(ax)] == list(names)
    ax = MARCH.plot(3, label=r"$\frac{$")
    ax.figure.savefig(tmp_path / "rows.svg")
    assert r"$\frac{$, 95 % interval" in legend(ax)
