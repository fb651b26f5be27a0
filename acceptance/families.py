"""A family of 10,011 questions: the size of its task, how long reading and drawing take, and what a tally costs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from bench.timing import best_times, local
from tests.service.browser.javascript import run_node

from veil import Categories, EachOf, Record, Survey
from veil.entropy import SeededForExperiments, System
from veil.mechanisms.best_oracle import direct_or_hashed
from veil.reports.columns import Reports
from veil.survey import AttributeSets
from veil.wire.frames import decode_report, encode_report

ATTRIBUTES = 142
REPORTS = 1_000_000
NODE = Path(__file__).resolve().parent.parent / "tests" / "service" / "browser" / "family_times.mjs"


def measure(repeats: int = 20) -> dict[str, float]:
    """The numbers by name; seconds are those of the quickest turn."""
    record = Record(tuple((f"q{i}", Categories.range(2 + i % 6)) for i in range(ATTRIBUTES)))
    survey = Survey(EachOf(AttributeSets(record, 2), lambda domain: direct_or_hashed(1.0, domain)))
    task = survey.to_bytes()
    codes = record.encode({name: [1] for name in record.names})

    def one() -> None:
        decode_report(survey, encode_report(survey, survey.reports(codes, System()), bytes(16)))

    found = {"questions": float(len(survey.questions)), "task bytes": float(len(task))}
    (found["read"],), _ = best_times((local(lambda: Survey.from_json(task), 1),), repeats)
    (found["drawn and checked"],), _ = best_times((local(one, 1),), 50 * repeats)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "task.json"
        path.write_bytes(task)
        read, drawn = map(float, run_node(NODE, path).split())
        found |= {"read in node": read / 1000, "drawn in node": drawn / 1000}
    asked = next(i for i, question in enumerate(survey.questions) if question.mechanism.domain.size == 49)
    return found | _tallies(survey, asked, repeats)


def _tallies(survey: Survey, asked: int, repeats: int) -> dict[str, float]:
    """Seconds for one question over those of a survey with it alone, of as many reports: interleaved, best of each.

    `usual`: people answered any of the questions. `worst`: all answered the one that is asked for, so that besides
    the same counting all of them are selected.
    """
    alone = Survey(survey.questions[asked])
    held = np.random.default_rng(0).integers(0, 2, (REPORTS, ATTRIBUTES)).astype(np.uint64)

    def drawn(of: Survey) -> Reports:
        return Reports.concatenate(
            SeededForExperiments(0).each_chunk(REPORTS, lambda rows, source: of.reports(held[rows], source))
        )

    usual, bare = drawn(survey), drawn(alone)
    columns = survey.layout.empty(REPORTS)
    columns["choice"][:] = asked
    worst = Reports(survey.task, survey.layout, columns | dict(bare.columns))
    ours = [local(lambda of=of: survey.tally(of, questions=[asked]), 1) for of in (usual, worst)]  # type: ignore[misc]
    times, _ = best_times((*ours, local(lambda: alone.tally(bare), 1)), repeats)
    return {"tally, usual": times[0] / times[2], "tally, worst": times[1] / times[2]}


def judge(found: dict[str, float]) -> tuple[list[tuple[str, str, str]], bool]:
    """Rows of (what, measured, required), and whether all of it holds."""
    limits = {
        "task bytes": 20_000,
        "read": 0.05,
        "drawn and checked": 0.001,
        "read in node": 0.05,
        "drawn in node": 0.001,
        "tally, usual": 1.3,
        "tally, worst": 1.3,
    }
    rows = [(name, f"{found[name]:.4g}", f"at most {limit:g}") for name, limit in limits.items()]
    rows.append(("questions", f"{found['questions']:.0f}", "at least 10,000"))
    return rows, found["questions"] >= 10_000 and all(found[name] <= limit for name, limit in limits.items())
