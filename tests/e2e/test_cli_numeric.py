"""The commands for numbers and times: the whole way for distributions, hierarchies and means; clipping; mistakes."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.e2e.test_cli import save_study, save_values, small, veil, veil_json

from veil import GRR, Integers, Interval, OneOf, Question, Record, SquareWave, Survey
from veil.entropy import SeededForExperiments
from veil.mechanisms import Piecewise
from veil.mechanisms.numbers.reconstruction import Stopping
from veil.numeric import HaarHierarchy, Hierarchy, HybridMean, MeanOf, WaveDistribution
from veil.study import study_from_json
from veil.view import Project

PEOPLE = 70_000  # more than one chunk of people
YEAR = ("2026-01-01", "2027-01-01")
NINES = 6.2  # standard errors: 1e-9, both sides together


def incomes(people: int = PEOPLE) -> Any:
    return np.random.default_rng(1).beta(2, 6, people) * 250_000


def ages(people: int = PEOPLE) -> Any:
    return 18 + np.random.default_rng(2).binomial(81, 0.3, people)


def moments(people: int = PEOPLE) -> Any:
    seconds = np.random.default_rng(3).beta(5, 2, people) * 365 * 86_400
    return np.datetime64("2026-01-01", "us") + (seconds * 1e6).astype("timedelta64[us]")


KINDS: dict[str, tuple[list[Any], Any, Any]] = {
    "numbers": (["--range", 0, 250_000], incomes, Interval(0, 250_000)),
    "integers": (["--range", 18, 99, "--integers"], ages, Integers(18, 99)),
    "times": (["--range", *YEAR], moments, Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1))),
}


def plan(tmp_path: Path, *options: Any, goal: str = "numbers", users: int = 20) -> Path:
    study = tmp_path / "study.json"
    veil("plan", goal, *options, "--users", users, "--out", study)
    return study


def walked(tmp_path: Path, task: Path, held: Any, ending: str = "csv") -> Path:
    """Two groups of people randomize with known seeds; their tallies are merged."""
    parts = []
    for i, some in enumerate(np.array_split(held, 2)):
        values = save_values(tmp_path / f"v{i}.{ending}", pa.table({"held": some}))
        veil("randomize", task, values, "-o", tmp_path / f"r{i}.arrow", "--seed", 10 + i)
        veil("tally", task, tmp_path / f"r{i}.arrow", "-o", tmp_path / f"t{i}.bin")
        parts.append(tmp_path / f"t{i}.bin")
    veil("merge", task, *parts, "-o", tmp_path / "tally.bin")
    return tmp_path / "tally.bin"


def library(survey: Survey, held: Any) -> Any:
    """The same people through the library: their tally."""
    first, second = (
        survey.tally(survey.randomize(some, SeededForExperiments(10 + i)))
        for i, some in enumerate(np.array_split(held, 2))
    )
    return first + second


def written(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.datetime) else value


# -- the whole way -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_distribution_is_that_of_the_library(tmp_path: Path, kind: str) -> None:
    options, people, domain = KINDS[kind]
    held = people()
    buckets = min(256, domain.size)
    task = plan(tmp_path, *options, "--epsilon", 2, "--buckets", buckets)
    study = WaveDistribution(SquareWave(2.0, domain, buckets))
    assert study_from_json(task.read_bytes()) == study
    tally = walked(tmp_path, task, held)
    out, picture = tmp_path / "out.csv", tmp_path / "out.svg"
    found = veil_json("estimate", task, tally, "-o", out, "--plot", picture, "--set", "bands=10")
    expected = replace(study, bands=10).read(library(study.survey, held))
    levels = [0.1, 0.25, 0.5, 0.75, 0.9]
    assert (found["kind"], found["people"]) == ("distribution", PEOPLE)
    assert found["mean"] == written(expected.mean())
    assert found["std"] == expected.std()
    assert [(one["level"], one["value"]) for one in found["quantiles"]] == [
        (level, written(expected.quantile(level))) for level in levels
    ]
    assert (found["iterations"], found["converged"]) == (expected.fit.iterations, True)
    assert len(found["rows"]) == (14 if kind == "integers" else 16)
    assert sum(row["frequency"] for row in found["rows"]) == pytest.approx(1)
    low, high = expected.bands.quantile(0.5)
    assert [found["quantiles"][2][end] for end in ("low", "high")] == [written(end) for end in (low, high)]
    table = pacsv.read_csv(out)
    banded = ["low", "high", "cumulative", "cumulative_low", "cumulative_high"]
    assert table.column_names == ["from", "to", "frequency", "count", *banded]
    assert table["frequency"].to_pylist() == expected.masses.tolist()
    assert picture.read_text().startswith("<?xml")
    text = veil("estimate", task, tally).stdout
    assert all(word in text for word in ("mean", "standard deviation", "quantiles", "90", "converged"))
    plain = veil_json("estimate", task, tally, "--set", "smoothing=em")
    assert plain["lineage"][-1] == "EM"
    assert plain["mean"] != found["mean"]


def test_spikes_are_looked_for_on_request(tmp_path: Path) -> None:
    task = plan(tmp_path, *KINDS["integers"][0], "--epsilon", 3)
    tally = walked(tmp_path, task, np.repeat([20, 40, 60], 5_000))
    smooth, spiky = (veil_json("estimate", task, tally, "--set", f"smoothing={how}") for how in ("ems", "auto"))
    assert smooth["lineage"][-1] == "EMS(share 0.02565)"  # of 82 ages, neighbours get less than of 256 buckets
    assert spiky["lineage"][-1] != smooth["lineage"][-1]
    truth = (20, 20, 40, 60, 60)
    off = [sum(abs(q["value"] - t) for q, t in zip(one["quantiles"], truth, strict=True)) for one in (smooth, spiky)]
    assert off[1] < off[0]
    text = veil("estimate", task, tally, "--set", "smoothing=auto", "--set", "bands=10").stdout
    assert "95 % interval" in text


@pytest.mark.parametrize("ending", ["parquet", "arrow", "json"])
def test_tables_of_times_in_every_kind_of_file(tmp_path: Path, ending: str) -> None:
    task = plan(tmp_path, *KINDS["times"][0], "--epsilon", 2, "--buckets", 365)
    tally, out = walked(tmp_path, task, moments(2_000)), tmp_path / f"out.{ending}"
    veil("estimate", task, tally, "-o", out)
    rows = {
        "parquet": lambda: pq.read_table(out).to_pylist(),
        "arrow": lambda: pa.ipc.open_file(out.read_bytes()).read_all().to_pylist(),
        "json": lambda: json.loads(out.read_text())["rows"],
    }[ending]()
    assert len(rows) == 365
    assert str(rows[31]["from"]).replace("T", " ") == "2026-02-01 00:00:00"


def test_a_hierarchy_is_read_as_one(tmp_path: Path) -> None:
    held, domain = incomes(), Interval(0, 250_000)
    task = plan(tmp_path, "--range", 0, 250_000, "--epsilon", 2, "--method", "hierarchy", "--buckets", 256)
    study = Hierarchy(2.0, domain, 256)
    assert study_from_json(task.read_bytes()) == study
    tally, counted = walked(tmp_path, task, held), library(study.survey, held)
    readings: dict[tuple[str, ...], Any] = {
        (): study.read(counted),
        ("method=admm",): replace(study, method="admm").read(counted),
        ("weighted=yes",): replace(study, weighted=True).read(counted),
        ("method=consistent",): replace(study, method="consistent").read(counted),
    }
    for changes, expected in readings.items():
        found = veil_json("estimate", task, tally, *(part for change in changes for part in ("--set", change)))
        assert (found["kind"], found["buckets"]) == ("distribution", 256)
        assert found["mean"] == expected.mean(), changes
        assert found["proper"] is expected.proper
        assert bool(found["quantiles"]) is expected.proper
    assert len({expected.mean() for expected in readings.values()}) == 4
    assert "negative" in veil("estimate", task, tally, "--set", "method=consistent").stdout
    out = tmp_path / "out.parquet"
    veil("estimate", task, tally, "-o", out, "--plot", tmp_path / "p.png")
    columns = ["from", "to", "frequency", "count", "low", "high", "cumulative", "cumulative_low", "cumulative_high"]
    assert pq.read_table(out).column_names == columns
    bare = tmp_path / "task.json"  # of the task alone, its questions one by one
    bare.write_bytes(study.survey.to_bytes())
    level = veil_json("estimate", bare, tally, "--set", "question=0", "--set", "post=norm-sub")
    assert (level["kind"], level["values"]) == ("frequencies", 4)
    veil("estimate", bare, tally, "--set", "question=4", code=3)
    assert "got 'method'" in veil("estimate", bare, tally, "--set", "method=exact", code=3).stderr


def test_a_haar_hierarchy_has_ranges_and_differences(tmp_path: Path) -> None:
    held = ages()
    task = plan(tmp_path, *KINDS["integers"][0], "--epsilon", 2, "--method", "HaarHierarchy")
    study = HaarHierarchy(2.0, Integers(18, 99))
    tally, counted = walked(tmp_path, task, held), library(study.survey, held)
    expected = study.read(counted)
    found = veil_json("estimate", task, tally)
    assert (found["proper"], found["quantiles"], found["std"]) == (False, [], None)
    assert found["mean"] == expected.mean()
    first, last = found["rows"][0], found["rows"][-1]
    assert (first["from"], first["to"], first["frequency"]) == (18, 23, pytest.approx(expected.range(18, 23)))
    assert (last["from"], last["to"], last["frequency"]) == (96, 99, pytest.approx(expected.range(96, 99)))
    text = veil("estimate", task, tally, "--set", "bands=10").stdout
    assert "quantile" not in text.replace("no quantiles", "")
    assert "95 % interval" in text
    bare = tmp_path / "task.json"
    bare.write_bytes(study.survey.to_bytes())
    level = veil_json("estimate", bare, tally, "--set", "question=1", "--top", 1)
    (largest,) = [study.survey.estimate_question(counted, 1)]
    assert (level["kind"], level["pairs"], len(level["rows"])) == ("differences", 2, 1)
    assert abs(level["rows"][0]["difference"]) == abs(largest.differences).max()
    assert "difference" in veil("estimate", bare, tally, "--set", "question=1").stdout
    veil("estimate", task, tally, "--set", "method=exact", code=3)


@pytest.mark.parametrize(("oracle", "kind"), [("Piecewise", "numbers"), ("StochasticRounding", "integers")])
def test_a_mean_covers_the_truth(tmp_path: Path, oracle: str, kind: str) -> None:
    options, people, _ = KINDS[kind]
    held = people()
    task = plan(tmp_path, *options, "--epsilon", 2, "--method", oracle, goal="mean")
    tally, out = walked(tmp_path, task, held), tmp_path / "out.csv"
    found = veil_json("estimate", task, tally, "-o", out)
    away = (found["mean"] - held.mean()) / found["stderr"]
    assert (found["kind"], found["people"]) == ("mean", PEOPLE)
    assert abs(away) < NINES
    rival = (found["mean"] - 1.1 * held.mean()) / found["stderr"]
    assert abs(rival) > NINES
    assert found["low"] < found["mean"] < found["high"]
    (row,) = pacsv.read_csv(out).to_pylist()
    assert row == {name: found[name] for name in ("mean", "stderr", "low", "high")}
    assert "95 % interval" in veil("estimate", task, tally).stdout


def test_a_hybrid_mean_of_times(tmp_path: Path) -> None:
    held = moments()
    task = plan(tmp_path, *KINDS["times"][0], "--epsilon", 2, goal="mean")
    study = HybridMean(2.0, KINDS["times"][2])
    assert study_from_json(task.read_bytes()) == study
    tally, out = walked(tmp_path, task, held), tmp_path / "out.csv"
    found = veil_json("estimate", task, tally, "-o", out)
    expected = study.read(library(study.survey, held))
    assert found["mean"] == expected.shown.isoformat()
    truth = held.astype("datetime64[us]").astype(np.int64).mean() / 1e6
    assert abs(expected.value - truth) < NINES * expected.stderr
    assert out.read_text().splitlines()[1].startswith(f'"{found["mean"]}"')
    assert "2026-" in veil("estimate", task, tally).stdout
    bare = tmp_path / "task.json"
    bare.write_bytes(study.survey.to_bytes())
    assert veil_json("estimate", bare, tally, "--set", "question=1")["kind"] == "mean"


def test_results_of_several_kinds(tmp_path: Path) -> None:
    domain = Integers(0, 9)
    survey = Survey(OneOf((1, Question(SquareWave(3.0, domain))), (1, Question(GRR(3.0, domain)))))
    task, held = tmp_path / "task.json", np.arange(6_000) % 7
    task.write_bytes(survey.to_bytes())
    tally = walked(tmp_path, task, held)
    found = veil_json("estimate", task, tally, "--top", 3, "--level", 0.99)["answers"]
    assert [(one["question"], one["kind"]) for one in found] == [(0, "distribution"), (1, "frequencies")]
    assert (found[1]["level"], len(found[1]["rows"])) == (0.99, 3)
    text = veil("estimate", task, tally).stdout
    assert "question 0" in text
    assert "question 1" in text
    out = tmp_path / "out.csv"
    veil("estimate", task, tally, "--set", "post=norm-sub", "-o", out, code=3)
    assert not out.exists()
    veil("estimate", task, tally, "-o", out, "--plot", tmp_path / "p.svg")
    table = pacsv.read_csv(out)
    assert table["question"].to_pylist() == [0] * 10 + [1] * 10
    assert table["from"].null_count == 10  # columns that a question does not have are empty
    veil("estimate", task, tally, "--set", "question=0", "-o", out)
    assert pacsv.read_csv(out).column_names == ["from", "to", "frequency", "count", "cumulative"]


def test_two_distributions_in_one_table(tmp_path: Path) -> None:
    year = KINDS["times"][2]
    record = Record.of(income=Interval(0, 250_000), born=year)
    views = [Project(record, (name,)) for name in ("income", "born")]
    survey = Survey(OneOf(*((1, Question(SquareWave(2.0, view.domain, buckets=8), view)) for view in views)))
    task, out = tmp_path / "task.json", tmp_path / "out.csv"
    task.write_bytes(survey.to_bytes())
    rows = "".join(f"{income:.2f},2026-05-{1 + i % 28:02d}\n" for i, income in enumerate(incomes(2_000)))
    values = small(tmp_path, "income,born\n" + rows)
    veil("randomize", task, values, "-o", tmp_path / "r.arrow")
    veil("tally", task, tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    veil("estimate", task, tmp_path / "t.bin", "-o", out)
    table = pacsv.read_csv(out).to_pylist()
    assert [row["question"] for row in table] == [0] * 8 + [1] * 8
    assert (str(table[1]["from"]), str(table[8]["from"])[:10]) == ("31250.0", "2026-01-01")
    trial = veil_json("simulate", task, values, "--truth", "--seed", 1)["answers"]
    assert [sum(row["truth"] for row in one["rows"]) for one in trial] == [pytest.approx(1)] * 2
    assert trial[1]["rows"][2]["truth"] + trial[1]["rows"][3]["truth"] == pytest.approx(1)  # April to June


# -- values ------------------------------------------------------------------------------------------------------------


def test_what_lies_outside_is_clipped_only_on_request(tmp_path: Path) -> None:
    task, out = plan(tmp_path, *KINDS["integers"][0], "--epsilon", 1), tmp_path / "r.arrow"
    outside = small(tmp_path, "age\n" + "17\n40\n-3\n" * 40_000 + "400\n")
    inside = small(tmp_path, "age\n" + "18\n40\n18\n" * 40_000 + "99\n", "inside.csv")
    message = veil("randomize", task, outside, "-o", out, code=3).stderr
    assert "integers from 18 to 99" in message
    assert not out.exists()
    found = veil_json("randomize", task, outside, "-o", out, "--clip", "--seed", 3)
    assert (found["people"], found["clipped"]) == (120_001, 80_001)
    clipped = out.read_bytes()
    assert veil_json("randomize", task, inside, "-o", out, "--seed", 3)["clipped"] is None
    assert out.read_bytes() == clipped
    told = veil("randomize", task, outside, "-o", out, "--clip").stdout
    assert "80,001 values were outside the domain and moved to its nearer end" in told
    one = small(tmp_path, "age\n17\n20\n", "one.csv")
    assert (
        "1 value was outside the domain and moved to its nearer end"
        in veil("randomize", task, one, "-o", out, "--clip").stdout
    )
    bad = small(tmp_path, "age\n17\nx77777\n", "bad.csv")
    assert "77777" not in veil("randomize", task, bad, "-o", out, "--clip", code=3).output
    veil("plan", "histogram", "--domain", 4, "--epsilon", 1, "--out", tmp_path / "labels.json")
    message = veil("randomize", tmp_path / "labels.json", one, "-o", out, "--clip", code=3).stderr
    assert "only numbers can be clipped" in message


def test_times_outside_are_clipped(tmp_path: Path) -> None:
    task, out = plan(tmp_path, "--range", *YEAR, "--epsilon", 1), tmp_path / "r.arrow"
    values = small(tmp_path, "born\n1999-12-31\n2026-03-01T12:00\n2030-01-01\n")
    veil("randomize", task, values, "-o", out, code=3)
    assert veil_json("randomize", task, values, "-o", out, "--clip")["clipped"] == 2


def test_times_may_be_written_in_many_ways(tmp_path: Path) -> None:
    task = plan(tmp_path, "--range", *YEAR, "--epsilon", 1)
    days = np.datetime64("2026-01-01") + np.arange(300)
    texts = {
        "dates": [f"{day}" for day in days],
        "with a time": [f"{day} 00:00:00" for day in days],
        "mixed": [f"{day}" if i % 2 else f"{day}T00:00:00.000" for i, day in enumerate(days)],
        "in UTC": [f"{day}T00:00:00Z" for day in days],
        "in another zone": [f"{day}T02:00:00+02:00" for day in days],
    }
    files = {name: small(tmp_path, "born\n" + "\n".join(lines) + "\n", f"{name}.csv") for name, lines in texts.items()}
    columns = {
        "days": pa.array(days.astype("datetime64[D]")),
        "stamps": pa.array(days.astype("datetime64[ns]")),
        "zoned": pa.array(days.astype("datetime64[us]")).cast(pa.timestamp("us", "Europe/Berlin")),
        "text": pa.array(texts["in UTC"]),
    }
    for name, column in columns.items():
        files[name] = save_values(tmp_path / f"{name}.parquet", pa.table({"born": column}))
    reports = set()
    for values in files.values():
        veil("randomize", task, values, "-o", tmp_path / "r.arrow", "--seed", 4)
        reports.add((tmp_path / "r.arrow").read_bytes())
    assert len(reports) == 1


@pytest.mark.parametrize(
    "text", ["2026-05-01\nyesterday-77777\n", "2026-05-01\n20-77777-1\n", "2025-12-31\n", "77777\n", "2026-05-01\n\n"]
)
def test_what_is_no_time_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    task = plan(tmp_path, "--range", *YEAR, "--epsilon", 1)
    refused = veil("randomize", task, small(tmp_path, f"born\n{text}"), "-o", tmp_path / "r.arrow", code=3)
    assert len(refused.stderr.splitlines()) == 1
    assert "77777" not in refused.output
    assert not (tmp_path / "r.arrow").exists()


def test_a_forgotten_header_is_noticed(tmp_path: Path) -> None:
    task = plan(tmp_path, "--range", *YEAR, "--epsilon", 1)
    message = veil("randomize", task, small(tmp_path, "2026-05-01\n2026-05-02\n"), "-o", tmp_path / "r.arrow", code=3)
    assert "looks like a value" in message.stderr


def test_whole_numbers_first_and_others_late(tmp_path: Path) -> None:
    task = plan(tmp_path, "--range", -40, 60, "--epsilon", 1)
    values = small(tmp_path, "degrees\n" + "20\n" * 600_000 + "20.5\n")  # beyond the block that a type is guessed from
    assert veil_json("randomize", task, values, "-o", tmp_path / "r.arrow")["people"] == 600_001


# -- inspect and mistakes ----------------------------------------------------------------------------------------------


def test_inspect_says_what_is_asked(tmp_path: Path) -> None:
    year = KINDS["times"][2]
    studies = [
        WaveDistribution(SquareWave(1.0, year)),
        Hierarchy(1.0, year, 64),
        HaarHierarchy(1.0, year, 64),
        MeanOf(Piecewise(1.0, year)),
        HybridMean(1.0, year),
    ]
    for study in studies:
        task = save_study(tmp_path, study)
        facts = veil_json("inspect", task)
        assert (facts["study"], facts["asked"]) == (study.kind, len(study.survey.questions))
        assert facts["held"] == "times from 2026-01-01 00:00:00 to 2027-01-01 00:00:00"
        text = veil("inspect", task).stdout
        assert f"kind {study.kind}" in text.replace("\n", " ")
    tally = walked(tmp_path, task, moments(1_000))
    facts = veil_json("inspect", tally, "--study", task)
    assert [question["counts"] for question in facts["questions"]] == [3, 3]
    assert sum(question["reports"] for question in facts["questions"]) == 1_000


BAD_ESTIMATES: dict[str, tuple[Any, list[list[str]]]] = {
    "square wave": (
        lambda domain: WaveDistribution(SquareWave(1.0, domain)),
        [["post=norm-sub"], ["method=exact"], ["weighted=yes"], ["bands=3"], ["question=1"], ["smoothing=none"]],
    ),
    "piecewise": (
        lambda domain: MeanOf(Piecewise(1.0, domain)),
        [["bands=20"], ["smoothing=em"], ["post=auto"]],
    ),
    "hierarchy": (
        lambda domain: Hierarchy(1.0, domain),
        [["smoothing=ems"], ["post=norm-sub"], ["method=consistent", "weighted=yes"], ["method=best"], ["question=0"]],
    ),
}


@pytest.mark.parametrize("name", BAD_ESTIMATES)
def test_parameters_that_do_not_apply_are_refused(tmp_path: Path, name: str) -> None:
    make, readings = BAD_ESTIMATES[name]
    task = save_study(tmp_path, make(Interval(0, 250_000)))
    tally, out = walked(tmp_path, task, incomes(2_000)), tmp_path / "out.csv"
    for changes in readings:
        given = [part for change in changes for part in ("--set", change)]
        refused = veil("estimate", task, tally, "-o", out, *given, code=3)
        assert len(refused.stderr.splitlines()) == 1, changes
        assert (refused.stdout, out.exists()) == ("", False)
        assert set(veil_json("estimate", task, tally, *given, code=3)["error"]) == {"kind", "message"}
    candidates = small(tmp_path, "3\n", "candidates")
    asked = ["tally", task, tmp_path / "r0.arrow", "-o", out, "--candidates", candidates]
    assert "no candidates" in veil(*asked, code=3).stderr


def test_a_reconstruction_that_does_not_end_is_warned_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = plan(tmp_path, "--range", 0, 250_000, "--epsilon", 1)
    tally = walked(tmp_path, task, incomes(2_000))
    assert "did not converge" not in veil("estimate", task, tally).output
    monkeypatch.setattr(Stopping, "paper", lambda *_, **__: Stopping(tau=1e-9, most=5))
    assert "did not converge within 5 iterations" in veil("estimate", task, tally).stdout
    found = veil_json("estimate", task, tally)
    assert (found["iterations"], found["converged"]) == (5, False)
    assert len([remark for remark in found["remarks"] if "converge" in remark]) == 1


def test_the_real_commands_in_processes_of_their_own(tmp_path: Path) -> None:
    def run(*args: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "veil.cli", *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)

    small(tmp_path, "degrees\n" + "\n".join(f"{20 + i % 7}.5" for i in range(3_000)) + "\n99\n")
    plan(tmp_path, "--range", -40, 60, "--epsilon", 4)
    assert "1 value was outside" in run("randomize", "study.json", "values.csv", "--clip", "-o", "r.arrow").stdout
    veil("tally", tmp_path / "study.json", tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    found = json.loads(run("estimate", "study.json", "t.bin", "--json").stdout)
    assert 20 < found["mean"] < 27  # 23.5, at a standard error of some tenths
