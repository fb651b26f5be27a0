"""The commands for numbers and times: the whole way for distributions, hierarchies and means; clipping; mistakes."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.e2e.test_cli import save_values, small, veil, veil_json

from veil import GRR, Integers, Interval, OneOf, Question, Record, SquareWave, Survey
from veil.entropy import Seeded
from veil.mechanisms.reconstruction import Stopping
from veil.numeric.haar import HaarHierarchy
from veil.numeric.hierarchy import Hierarchy
from veil.numeric.means import HybridMean
from veil.planning.numbers import choose_numeric
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
    "numbers": (["--numeric", 0, 250_000], incomes, Interval(0, 250_000)),
    "integers": (["--numeric", 18, 99, "--integers"], ages, Integers(18, 99)),
    "times": (["--numeric", *YEAR], moments, Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1))),
}


def plan(tmp_path: Path, *options: Any, users: int = 20) -> Path:
    task = tmp_path / "task.json"
    veil("plan", *options, "--users", users, "--out", task)
    return task


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
        survey.tally(survey.randomize(some, Seeded(10 + i))) for i, some in enumerate(np.array_split(held, 2))
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
    survey = Survey(SquareWave(2.0, domain, buckets))
    assert Survey.from_json(task.read_bytes()) == survey
    tally = walked(tmp_path, task, held)
    out, picture = tmp_path / "out.csv", tmp_path / "out.svg"
    (found,) = veil_json("estimate", task, tally, "-o", out, "--plot", picture, "--bands", 10)["questions"]
    (expected,) = survey.estimate(library(survey, held))
    levels = [0.1, 0.25, 0.5, 0.75, 0.9]
    assert (found["kind"], found["people"], found["question"]) == ("distribution", PEOPLE, 0)
    assert found["mean"] == written(expected.mean())
    assert found["std"] == expected.std()
    assert [(one["level"], one["value"]) for one in found["quantiles"]] == [
        (level, written(expected.quantile(level))) for level in levels
    ]
    assert found["fit"] == {"iterations": expected.fit.iterations, "converged": True}
    assert len(found["ranges"]) == (14 if kind == "integers" else 16)
    assert sum(row["frequency"] for row in found["ranges"]) == pytest.approx(1)
    low, high = expected.bands(10).quantile(0.5)
    assert found["bands"]["quantiles"][2] == [written(end) for end in (low, high)]
    table = pacsv.read_csv(out)
    banded = [f"{what}_{end}" for what in ("frequency", "cumulative") for end in ("low", "high")]
    assert table.column_names == ["low", "high", "frequency", "count", "cumulative", *banded]
    assert table["frequency"].to_pylist() == expected.masses.tolist()
    assert picture.read_text().startswith("<?xml")
    text = veil("estimate", task, tally).stdout
    assert all(word in text for word in ("mean", "standard deviation", "median", "90 % quantile", "Converged"))
    plain = veil_json("estimate", task, tally, "--smoothing", "em")["questions"][0]
    assert plain["lineage"][-1] == "EM"
    assert plain["mean"] != found["mean"]


def test_spikes_are_looked_for_on_request(tmp_path: Path) -> None:
    task = plan(tmp_path, *KINDS["integers"][0], "--epsilon", 3)
    tally = walked(tmp_path, task, np.repeat([20, 40, 60], 5_000))
    smooth, spiky = (veil_json("estimate", task, tally, "--smoothing", how)["questions"][0] for how in ("ems", "auto"))
    assert smooth["lineage"][-1] == "EMS(share 0.02565)"  # of 82 ages, neighbours get less than of 256 buckets
    assert spiky["lineage"][-1] != smooth["lineage"][-1]
    assert spiky["std"] < smooth["std"]
    text = veil("estimate", task, tally, "--smoothing", "auto", "--bands", 10).stdout
    assert "95 %: " in text


@pytest.mark.parametrize("ending", ["parquet", "arrow", "json"])
def test_tables_of_times_in_every_kind_of_file(tmp_path: Path, ending: str) -> None:
    task = plan(tmp_path, *KINDS["times"][0], "--epsilon", 2, "--buckets", 365)
    tally, out = walked(tmp_path, task, moments(2_000)), tmp_path / f"out.{ending}"
    veil("estimate", task, tally, "-o", out)
    rows = {
        "parquet": lambda: pq.read_table(out).to_pylist(),
        "arrow": lambda: pa.ipc.open_file(out.read_bytes()).read_all().to_pylist(),
        "json": lambda: json.loads(out.read_text()),
    }[ending]()
    assert len(rows) == 365
    assert str(rows[31]["low"]).replace("T", " ") == "2026-02-01 00:00:00"


def test_a_hierarchy_is_read_as_one(tmp_path: Path) -> None:
    held, domain = incomes(), Interval(0, 250_000)
    task = plan(tmp_path, "--numeric", 0, 250_000, "--epsilon", 2, "--oracle", "hierarchy", "--buckets", 256)
    protocol = Hierarchy(2.0, domain, 256)
    assert Survey.from_json(task.read_bytes()) == protocol.survey
    tally, counted = walked(tmp_path, task, held), library(protocol.survey, held)
    readings: dict[tuple[str, ...], Any] = {
        (): protocol.estimate(counted),
        ("--method", "admm"): protocol.estimate(counted, "admm"),
        ("--weighted",): protocol.estimate(counted, weighted=True),
        ("--method", "consistent"): protocol.estimate(counted, "consistent"),
    }
    for options, expected in readings.items():
        (found,) = veil_json("estimate", task, tally, *options)["questions"]
        assert (found["question"], found["kind"], found["buckets"]) == ("all", "distribution", 256)
        assert found["mean"] == expected.mean(), options
        assert found["proper"] is expected.proper
        assert bool(found["quantiles"]) is expected.proper
    assert len({expected.mean() for expected in readings.values()}) == 4
    assert "negative" in veil("estimate", task, tally, "--method", "consistent").stdout
    out = tmp_path / "out.parquet"
    veil("estimate", task, tally, "-o", out, "--plot", tmp_path / "p.png")
    assert pq.read_table(out).column_names == ["low", "high", "frequency", "count", "cumulative"]
    (level,) = veil_json("estimate", task, tally, "--question", 0, "--post", "norm-sub")["questions"]
    assert (level["kind"], level["candidates"], level["question"]) == ("frequencies", 4, 0)
    veil("estimate", task, tally, "--question", 4, code=3)
    assert "Hierarchy" in veil("estimate", task, tally, "--question", 0, "--method", "exact", code=3).stderr


def test_a_haar_hierarchy_has_ranges_and_differences(tmp_path: Path) -> None:
    held = ages()
    task = plan(tmp_path, *KINDS["integers"][0], "--epsilon", 2, "--oracle", "HaarHierarchy")
    protocol = HaarHierarchy(2.0, Integers(18, 99))
    tally, counted = walked(tmp_path, task, held), library(protocol.survey, held)
    expected = protocol.estimate(counted)
    (found,) = veil_json("estimate", task, tally)["questions"]
    assert (found["proper"], found["quantiles"], found["std"]) == (False, [], None)
    assert found["mean"] == expected.mean()
    assert found["ranges"][0] == {"low": 18.0, "high": 23.0, "frequency": pytest.approx(expected.range(18, 23))}
    assert found["ranges"][-1] == {"low": 96.0, "high": 99.0, "frequency": pytest.approx(expected.range(96, 99))}
    text = veil("estimate", task, tally, "--bands", 10).stdout
    assert "quantile" not in text.replace("no quantiles", "")
    assert "95 % band" in text
    (level,) = veil_json("estimate", task, tally, "--question", 1, "--top", 1)["questions"]
    largest = protocol.levels(counted)[1]
    assert (level["kind"], level["pairs"], len(level["top"])) == ("differences", 2, 1)
    assert abs(level["top"][0]["difference"]) == abs(largest.differences).max()
    assert "left less right" in veil("estimate", task, tally, "--question", 1).stdout
    veil("estimate", task, tally, "--method", "exact", code=3)


@pytest.mark.parametrize(("oracle", "kind"), [("Piecewise", "numbers"), ("StochasticRounding", "integers")])
def test_a_mean_covers_the_truth(tmp_path: Path, oracle: str, kind: str) -> None:
    options, people, _ = KINDS[kind]
    held = people()
    task = plan(tmp_path, *options, "--epsilon", 2, "--oracle", oracle, "--mean")
    tally, out = walked(tmp_path, task, held), tmp_path / "out.csv"
    (found,) = veil_json("estimate", task, tally, "-o", out)["questions"]
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
    task = plan(tmp_path, *KINDS["times"][0], "--epsilon", 2, "--mean")
    protocol = HybridMean(2.0, KINDS["times"][2])
    assert Survey.from_json(task.read_bytes()) == protocol.survey
    tally, out = walked(tmp_path, task, held), tmp_path / "out.csv"
    (found,) = veil_json("estimate", task, tally, "-o", out)["questions"]
    expected = protocol.estimate(library(protocol.survey, held))
    assert (found["question"], found["mean"]) == ("all", expected.shown.isoformat())
    truth = held.astype("datetime64[us]").astype(np.int64).mean() / 1e6
    assert abs(expected.value - truth) < NINES * expected.stderr
    assert out.read_text().splitlines()[1].startswith(f'"{found["mean"]}"')
    assert "2026-" in veil("estimate", task, tally).stdout
    assert len(veil_json("estimate", task, tally, "--question", 1)["questions"]) == 1


def test_results_of_several_kinds(tmp_path: Path) -> None:
    domain = Integers(0, 9)
    survey = Survey(OneOf((1, Question(SquareWave(3.0, domain))), (1, Question(GRR(3.0, domain)))))
    task, held = tmp_path / "task.json", np.arange(6_000) % 7
    task.write_bytes(survey.to_bytes())
    tally = walked(tmp_path, task, held)
    found = veil_json("estimate", task, tally, "--top", 3, "--alpha", 0.01, "--smoothing", "em")["questions"]
    assert [(one["question"], one["kind"]) for one in found] == [(0, "distribution"), (1, "frequencies")]
    assert found[0]["lineage"][-1] == "EM"
    text = veil("estimate", task, tally).stdout
    assert "question 0" in text
    assert "question 1" in text
    out = tmp_path / "out.csv"
    for options in (["-o", out], ["--plot", tmp_path / "p.svg"], ["--post", "norm-sub"]):
        veil("estimate", task, tally, *options, code=3)
        assert not out.exists()
    veil("estimate", task, tally, "--question", 0, "-o", out, "--plot", tmp_path / "p.svg")
    assert pacsv.read_csv(out).column_names == ["question", "low", "high", "frequency", "count", "cumulative"]


def test_two_distributions_in_one_table(tmp_path: Path) -> None:
    year = KINDS["times"][2]
    record = Record.of(income=Interval(0, 250_000), born=year)
    views = [Project(record, (name,)) for name in ("income", "born")]
    survey = Survey(OneOf(*((1, Question(SquareWave(2.0, view.domain, buckets=8), view)) for view in views)))
    task, out = tmp_path / "task.json", tmp_path / "out.csv"
    task.write_bytes(survey.to_bytes())
    rows = "".join(f"{income:.2f},2026-05-{1 + i % 28:02d}\n" for i, income in enumerate(incomes(2_000)))
    veil("randomize", task, small(tmp_path, "income,born\n" + rows), "-o", tmp_path / "r.arrow")
    veil("tally", task, tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    veil("estimate", task, tmp_path / "t.bin", "-o", out)
    table = pacsv.read_csv(out).to_pylist()
    assert [row["question"] for row in table] == [0] * 8 + [1] * 8
    assert (str(table[1]["low"]), str(table[8]["low"])[:10]) == ("31250", "2026-01-01")


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
    assert "80,001 values were outside and were clipped" in veil("randomize", task, outside, "-o", out, "--clip").stdout
    one = small(tmp_path, "age\n17\n20\n", "one.csv")
    assert "1 value was outside and was clipped" in veil("randomize", task, one, "-o", out, "--clip").stdout
    bad = small(tmp_path, "age\n17\nx77777\n", "bad.csv")
    assert "77777" not in veil("randomize", task, bad, "-o", out, "--clip", code=3).output
    veil("plan", "--domain", 4, "--epsilon", 1, "--out", tmp_path / "labels.json")
    message = veil("randomize", tmp_path / "labels.json", one, "-o", out, "--clip", code=3).stderr
    assert "only numbers can be clipped" in message


def test_times_outside_are_clipped(tmp_path: Path) -> None:
    task, out = plan(tmp_path, "--numeric", *YEAR, "--epsilon", 1), tmp_path / "r.arrow"
    values = small(tmp_path, "born\n1999-12-31\n2026-03-01T12:00\n2030-01-01\n")
    veil("randomize", task, values, "-o", out, code=3)
    assert veil_json("randomize", task, values, "-o", out, "--clip")["clipped"] == 2


def test_times_may_be_written_in_many_ways(tmp_path: Path) -> None:
    task = plan(tmp_path, "--numeric", *YEAR, "--epsilon", 1)
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
    task = plan(tmp_path, "--numeric", *YEAR, "--epsilon", 1)
    refused = veil("randomize", task, small(tmp_path, f"born\n{text}"), "-o", tmp_path / "r.arrow", code=3)
    assert len(refused.stderr.splitlines()) == 1
    assert "77777" not in refused.output
    assert not (tmp_path / "r.arrow").exists()


def test_a_forgotten_header_is_noticed(tmp_path: Path) -> None:
    task = plan(tmp_path, "--numeric", *YEAR, "--epsilon", 1)
    message = veil("randomize", task, small(tmp_path, "2026-05-01\n2026-05-02\n"), "-o", tmp_path / "r.arrow", code=3)
    assert "looks like a value" in message.stderr


def test_whole_numbers_first_and_others_late(tmp_path: Path) -> None:
    task = plan(tmp_path, "--numeric", -40, 60, "--epsilon", 1)
    values = small(tmp_path, "degrees\n" + "20\n" * 600_000 + "20.5\n")  # beyond the block that a type is guessed from
    assert veil_json("randomize", task, values, "-o", tmp_path / "r.arrow")["people"] == 600_001


# -- plan and inspect --------------------------------------------------------------------------------------------------


def test_plan_compares_every_way_to_ask(tmp_path: Path) -> None:
    found = veil_json("plan", "--numeric", 0, 250_000, "--epsilon", 1, "--users", 20_000)
    rows = {option["oracle"]: option for option in found["options"]}
    assert list(rows) == ["SquareWave", "Hierarchy", "HaarHierarchy", "StochasticRounding", "Piecewise", "HybridMean"]
    assert (found["chosen"], found["oracle"], found["simulated_users"]) == ("SquareWave", "SquareWave", 20_000)
    hybrid = HybridMean(1.0, Interval(0, 250_000))
    assert rows["HybridMean"]["mean_stderr"] == hybrid.variance(20_000) ** 0.5
    assert [row["range_error"] is None for row in rows.values()] == [False] * 3 + [True] * 3
    assert [row["mean_stderr"] is None for row in rows.values()] == [True] * 3 + [False] * 3
    assert rows["HaarHierarchy"]["answers"] == ["ranges", "mean"]
    text = veil("plan", "--numeric", 0, 250_000, "--epsilon", 1, "--users", 20_000).stdout
    assert all(name in text for name in rows)
    assert "numbers from 0 to 250,000" in text
    again = veil_json("plan", "--numeric", 0, 250_000, "--epsilon", 1, "--users", 20_000)
    assert again == found


def test_the_error_of_a_range_is_what_it_says() -> None:
    choice = choose_numeric(Interval(0, 1), 1.0, 20_000, name="Hierarchy", buckets=64)
    more = choose_numeric(Interval(0, 1), 1.0, 80_000, name="Hierarchy", buckets=64)
    assert choice.taken.range_error is not None
    assert more.taken.range_error is not None
    assert 1.4 < choice.taken.range_error / more.taken.range_error < 2.8  # half, for four times the people


@pytest.mark.parametrize(("epsilon", "name"), [(0.5, "StochasticRounding"), (1.0, "HybridMean"), (4.0, "HybridMean")])
def test_plan_of_a_mean_takes_the_smallest_error(epsilon: float, name: str) -> None:
    found = veil_json("plan", "--numeric", -40, 60, "--epsilon", epsilon, "--mean")
    errors = {option["oracle"]: option["mean_stderr"] for option in found["options"]}
    assert set(errors) == {"StochasticRounding", "Piecewise", "HybridMean"}
    assert (found["chosen"], errors[name]) == (name, pytest.approx(min(errors.values())))


def test_plan_keeps_to_the_limit_of_a_report() -> None:
    asked = ["plan", "--numeric", 0, 1, "--epsilon", 1, "--users", 500]
    assert veil_json(*asked, "--max-report-bytes", 3)["chosen"] == "HaarHierarchy"
    assert veil_json(*asked, "--max-report-bytes", 1)["chosen"] == "StochasticRounding"
    veil(*asked, "--max-report-bytes", 3, "--oracle", "SquareWave", code=3)
    veil(*asked, "--max-report-bytes", 0, code=3)


def test_plan_leaves_out_what_a_domain_is_beyond() -> None:
    coarse = veil_json("plan", "--numeric", 0, 99_999, "--integers", "--buckets", 100, "--epsilon", 1, "--users", 500)
    assert [option["oracle"] for option in coarse["options"]][:2] == ["SquareWave", "StochasticRounding"]
    fine = veil_json("plan", "--numeric", 0, 1, "--buckets", 8192, "--epsilon", 1, "--users", 500)
    assert fine["options"][0]["range_error"] is None
    asked = ["--numeric", 0, 99_999, "--integers", "--buckets", 100, "--epsilon", 1]
    veil("plan", *asked, "--oracle", "Hierarchy", code=3)


BAD_PLANS: list[tuple[list[Any], int]] = [
    (["--numeric", 0], 2),
    (["--numeric", 0, 1, "--domain", 4], 2),
    (["--domain", 4, "--mean"], 2),
    (["--domain", 4, "--buckets", 8], 2),
    (["--labels", "a,b", "--integers"], 2),
    (["--numeric", 1, 0], 3),
    (["--numeric", 0, "inf"], 3),
    (["--numeric", 0, "soon"], 3),
    (["--numeric", 0, "2026-01-01"], 3),
    (["--numeric", 0.5, 9, "--integers"], 3),
    (["--numeric", *YEAR, "--integers"], 3),
    (["--numeric", 5, 5, "--integers"], 3),
    (["--numeric", 0, 1, "--oracle", "GRR"], 3),
    (["--numeric", 0, 1, "--oracle", "SquareWave", "--mean"], 3),
    (["--numeric", 0, 1, "--oracle", "Piecewise", "--buckets", 8], 3),
    (["--numeric", 0, 1, "--mean", "--buckets", 8], 3),
    (["--numeric", 0, 1, "--buckets", 0], 3),
    (["--numeric", 0, 1, "--users", 0], 3),
    (["--domain", 4, "--oracle", "SquareWave"], 3),
]


@pytest.mark.parametrize(("options", "code"), BAD_PLANS)
def test_bad_plans_are_refused(tmp_path: Path, options: list[Any], code: int) -> None:
    veil("plan", *options, "--epsilon", 1, "--out", tmp_path / "task.json", code=code)
    assert not (tmp_path / "task.json").exists()


def test_inspect_says_what_will_be_answered(tmp_path: Path) -> None:
    tasks = {
        "SquareWave": (["--oracle", "SquareWave"], "distribution", None),
        "Hierarchy": (["--oracle", "Hierarchy", "--buckets", 64], "distribution", "Hierarchy"),
        "HaarHierarchy": (["--oracle", "HaarHierarchy", "--buckets", 64], "distribution", "HaarHierarchy"),
        "Piecewise": (["--oracle", "Piecewise"], "mean", None),
        "HybridMean": (["--oracle", "HybridMean"], "mean", "HybridMean"),
    }
    for name, (options, answers, protocol) in tasks.items():
        task = plan(tmp_path, "--numeric", *YEAR, "--epsilon", 1, *options)
        facts = veil_json("inspect", task)
        assert (facts["answers"], facts["protocol"]) == ([answers], protocol)
        assert facts["held"] == "times from 2026-01-01 00:00 to 2027-01-01 00:00"
        text = veil("inspect", task).stdout
        assert f"by {name}" in text.replace("\n", " ")
        assert ("read together" in text) is (protocol is not None)
    tally = walked(tmp_path, task, moments(1_000))
    facts = veil_json("inspect", tally, "--task", task)
    assert [question["counts"] for question in facts["questions"]] == [3, 3]
    assert sum(question["reports"] for question in facts["questions"]) == 1_000


# -- mistakes ----------------------------------------------------------------------------------------------------------

BAD_ESTIMATES: dict[str, list[list[Any]]] = {
    "SquareWave": [
        ["--post", "norm-sub"],
        ["--top", 3],
        ["--alpha", 0.1],
        ["--method", "exact"],
        ["--weighted"],
        ["--bands", 3],
        ["--question", 1],
    ],
    "Piecewise": [["--bands", 20], ["--smoothing", "em"], ["--top", 3], ["--plot", "p.svg"], ["--post", "auto"]],
    "Hierarchy": [
        ["--smoothing", "ems"],
        ["--post", "norm-sub"],
        ["--method", "consistent", "--weighted"],
        ["--question", 0, "--weighted"],
        ["--question", 0, "--bands", 20],
    ],
}


@pytest.mark.parametrize("oracle", BAD_ESTIMATES)
def test_options_that_do_not_apply_are_refused(tmp_path: Path, oracle: str) -> None:
    task = plan(tmp_path, "--numeric", 0, 250_000, "--epsilon", 1, "--oracle", oracle)
    tally, out = walked(tmp_path, task, incomes(2_000)), tmp_path / "out.csv"
    for options in BAD_ESTIMATES[oracle]:
        given = [tmp_path / one if one == "p.svg" else one for one in options]
        refused = veil("estimate", task, tally, "-o", out, *given, code=3)
        assert len(refused.stderr.splitlines()) == 1, options
        assert (refused.stdout, out.exists()) == ("", False)
        assert set(veil_json("estimate", task, tally, *given, code=3)["error"]) == {"kind", "message"}
    veil("estimate", task, tally, "--smoothing", "none", code=2)
    veil("estimate", task, tally, "--method", "best", code=2)
    candidates = small(tmp_path, "3\n", "candidates")
    asked = ["tally", task, tmp_path / "r0.arrow", "-o", out, "--candidates", candidates]
    if oracle != "Hierarchy":
        assert "no candidates" in veil(*asked, code=3).stderr


def test_a_reconstruction_that_does_not_end_is_warned_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = plan(tmp_path, "--numeric", 0, 250_000, "--epsilon", 1)
    tally = walked(tmp_path, task, incomes(2_000))
    assert "WARNING" not in veil("estimate", task, tally).stderr
    monkeypatch.setattr(Stopping, "paper", lambda *_, **__: Stopping(tau=1e-9, most=5))
    shown = veil("estimate", task, tally)
    assert "did not converge within 5 iterations" in shown.stderr
    assert "Stopped after 5" in shown.stdout
    found = veil_json("estimate", task, tally)
    assert found["questions"][0]["fit"] == {"iterations": 5, "converged": False}
    assert len(found["remarks"]) == 1


def test_the_real_commands_in_processes_of_their_own(tmp_path: Path) -> None:
    def run(*args: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "veil.cli", *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)

    small(tmp_path, "degrees\n" + "\n".join(f"{20 + i % 7}.5" for i in range(3_000)) + "\n99\n")
    plan(tmp_path, "--numeric", -40, 60, "--epsilon", 4)
    assert "1 value was outside" in run("randomize", "task.json", "values.csv", "--clip", "-o", "r.arrow").stdout
    veil("tally", tmp_path / "task.json", tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    found = json.loads(run("estimate", "task.json", "t.bin", "--json").stdout)["questions"][0]
    assert 20 < found["mean"] < 27  # 23.5, at a standard error of some tenths
