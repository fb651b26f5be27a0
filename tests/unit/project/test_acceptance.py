"""`make acceptance`: steps that passed on this code are skipped, and a sample never counts as the whole."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from acceptance import __main__ as frame
from acceptance import demo_speed, results
from acceptance.hardening_load import Turn
from acceptance.hardening_load import judge as judge_load
from acceptance.steps import STEPS, Outcome, Step
from acceptance.tested import ran

LIMIT = 3


def outcome(measured: int) -> Outcome:
    return Outcome([("a number", str(measured), f"at most {LIMIT}")], measured <= LIMIT, seed="7")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for results, and two steps: one with a sample, one that fails."""
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    monkeypatch.setattr(results, "PAGE", tmp_path / "page.md")
    monkeypatch.setitem(STEPS, "toy", Step(lambda: outcome(1), 10, lambda: outcome(2), 100))
    monkeypatch.setitem(STEPS, "wrong", Step(lambda: outcome(4), 10))
    return tmp_path


def test_a_sample_passes_for_a_sample_only(folder: Path) -> None:
    assert not frame.passed("toy", full=False)
    assert frame.run_here("toy", full=False)
    assert frame.passed("toy", full=False)
    assert not frame.passed("toy", full=True)
    assert json.loads((folder / "toy.sampled.json").read_text())["form"] == "sampled"
    assert frame.run_here("toy", full=True)
    (folder / "toy.sampled.json").unlink()
    assert frame.passed("toy", full=True)
    assert frame.passed("toy", full=False)  # all of it serves as a sample


def test_failed_steps_and_steps_of_other_code_run_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not frame.run_here("wrong", full=False)
    assert not frame.passed("wrong", full=False)
    assert frame.run_here("toy", full=False)
    monkeypatch.setattr(frame, "fingerprint", lambda folders: "of other code")
    assert not frame.passed("toy", full=False)


def test_page_names_sampled_steps(folder: Path) -> None:
    for full in (False, True):
        frame.run_here("toy", full)
    frame.run_here("wrong", full=False)
    results.write_page()
    page = (folder / "page.md").read_text()
    assert all(f"\n## {title}\n" in page for title in ("toy: passed", "toy: passed on a sample", "wrong: FAILED"))
    assert "| a number | 4 | at most 3 |" in page


def test_remaining_time_follows_durations_of_steps(folder: Path) -> None:
    progress = frame.Progress(["toy", "wrong"], full=False)
    assert progress.remaining() == 10  # two at a time
    progress.done("toy")
    assert progress.line().startswith("1 of 2 steps; 0 s so far, about 10 s to go")
    assert frame.expected("toy", full=True) == 100
    frame.run_here("toy", full=True)
    assert frame.expected("toy", full=True) == 0


def test_the_demo_is_timed_in_a_clone_that_finds_pips_cache_warm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a Makefile whose demo costs nothing: what is run where, and what is said about it."""
    runs = tmp_path / "runs"
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "Makefile").write_text(f"demo .venv/.demo-ready:\n\t@echo $@ in $(CURDIR) >> {runs}\n")
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    monkeypatch.setenv("MAKEFLAGS", "--dry-run")
    found = demo_speed.measure(repository)
    told = [line.rpartition("/")[2] for line in runs.read_text().splitlines()]
    assert told == ["warm", "fresh"]
    ((what, seconds, required),), passed = demo_speed.judge(found)
    assert (float(seconds) < 60, required, passed) == (True, "<= 60", True)
    assert f"load average {found['load']:.1f}" in what
    assert not demo_speed.judge({**found, "seconds": 60.1})[1]


def test_a_step_that_runs_tests_names_those_that_fail(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tests = tmp_path / "test_toy.py"
    tests.write_text("def test_good():\n    assert True\n\n\ndef test_bad():\n    assert 1 == 2, 'the reason'\n")
    assert ran(tmp_path, "test_toy.py", "toys") == ([("toys", "1 of 2 failed: test_bad", "all")], False)
    assert "the reason" in capfd.readouterr().err
    assert ran(tmp_path, "test_toy.py", "toys", "-k", "good") == ([("toys", "1 passed", "all")], True)
    assert ran(tmp_path, "test_toy.py", "toys", "-k", "neither") == ([("toys", "failed before any test", "all")], False)


def test_load_report_checks_errors_slow_turns_and_memory() -> None:
    def judged(slow: int, statuses: dict[str, int] | None = None, megabytes: tuple[int, ...] = ()) -> bool:
        before = Turn([1.0] * 100, Counter({"200": 1}))
        after = [Turn([1.2 if i < slow else 1.05] * 100, Counter(statuses or {"200": 1, "422": 1})) for i in range(5)]
        return judge_load([(before, one) for one in after], megabytes)[1]

    assert judged(0)
    assert judged(1, megabytes=(100, 200, 216, 230))
    assert not judged(2)
    assert not judged(0, {"503": 1})
    assert not judged(0, {"422": 1, "unexpected": 1})
    assert not judged(0, megabytes=(100, 200, 216, 240))
