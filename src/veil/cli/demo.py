"""`veil demo --offline`: the whole corridor on made-up people, through the same functions as the other commands.

Every step leaves its file in one folder, so that each can be tried again by hand.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veil.cli import pipeline, planning, results, tables
from veil.cli.example import APPS, QUESTION, made_up
from veil.cli.outcome import Document
from veil.domain import Categories
from veil.results.estimate import Estimate
from veil.tools.durable import write_atomically

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["ALPHA", "EPSILON", "TOP", "step", "walk"]

EPSILON = 1.0
TOP = 12
ALPHA = 0.05
_HALVES = ("1", "2")


def walk(folder: Path, people: int, seed: int | None, screen: Console, watch: pipeline.Watch) -> Document:
    """Plan, randomize on two groups of devices, tally each, merge, estimate, draw; every step leaves its file."""
    folder.mkdir(parents=True, exist_ok=True)
    task, tally, picture = folder / "task.json", folder / "tally.bin", folder / "estimate.svg"

    screen.print(f"[bold]{QUESTION}[/]\n{people:,} made-up people each hold one of {len(APPS)} answers.")
    step(screen, 1, "plan", "the oracles that could ask it, and what each would cost")
    planned = planning.plan(Categories(APPS), EPSILON, people)
    survey = planned.survey
    screen.print(tables.plan_table(planned.choice, people))
    screen.print(f"[bold green]*[/] {planned.choice.why}")
    screen.print(
        f"  The promise, exact: no two answers make any report more than e^{survey.guarantee.epsilon:g} ="
        f" {float(survey.guarantee.ratio or 0):.3f} times as likely."
    )
    pipeline.save_survey(survey, task)

    step(screen, 2, "randomize", "on the devices: an answer becomes a report, and only that leaves")
    held = made_up(people)
    counted: list[tuple[Path, Path]] = []
    for half, some in zip(_HALVES, np.array_split(held, len(_HALVES)), strict=True):
        values, reports = folder / f"people-{half}.csv", folder / f"reports-{half}.arrow"
        write_atomically(values, "\n".join(["app", *(APPS[i] for i in some), ""]).encode())
        # seeds differ: the same seed for both groups would give them the same noise
        done = pipeline.randomize_file(
            survey, values, reports, watch, seed=None if seed is None else 2 * seed + len(counted)
        )
        screen.print(f"  {values.name} -> {reports.name}: {done.people:,} reports of {survey.layout.size} bytes")
        counted.append((reports, folder / f"tally-{half}.bin"))

    step(screen, 3, "tally and merge", "at the collector: integers that add up exactly")
    for reports, part in counted:
        pipeline.save_tally(pipeline.tally_files(survey, [reports], watch), part)
    merged = pipeline.load_tallies(survey, [part for _, part in counted])
    pipeline.save_tally(merged, tally)
    names = " + ".join(part.name for _, part in counted)
    screen.print(f"  {names} -> {tally.name}: {merged.people:,} reports")

    step(screen, 4, "estimate", "what the collector learns, beside the truth that it never saw")
    estimate = survey.estimate_question(merged, 0)
    truth = np.bincount(held, minlength=len(APPS)) / people
    known = {app: float(share) for app, share in zip(APPS, truth, strict=True)}
    screen.print(tables.estimate_table(estimate, TOP, ALPHA, "The largest shares", known))
    drawn = find_spec("matplotlib") is not None  # an extra: the demo works without it
    if drawn:
        results.write_picture([results.Answered(0, estimate)], picture, TOP, truth=truth)
    covered = _covered(estimate, truth)
    screen.print(f"{tables.significance(estimate, ALPHA)} {covered} of all {len(APPS)} intervals cover the truth.")
    _farewell(screen, folder, picture.name if drawn else "none without matplotlib")
    return {
        "folder": str(folder),
        "task": survey.task,
        "people": merged.people,
        "plan": tables.plan_document(planned.choice, people),
        "estimate": {"question": 0, **tables.estimate_document(estimate, TOP, ALPHA)},
        "truth": known,
        "covered": covered,
        "plot": str(picture) if drawn else None,
    }


def _covered(estimate: Estimate, truth: Any) -> int:
    bounds = estimate.interval()
    return int(((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).sum())


def step(screen: Console, number: int, name: str, what: str) -> None:
    """A heading of the demo."""
    screen.print(f"\n[bold blue]{number} {name}[/]  [dim]{what}[/]")


def _farewell(screen: Console, folder: Path, picture: str) -> None:
    again = f"veil estimate {folder / 'task.json'} {folder / 'tally.bin'} --top 20"
    screen.print(f"\nAll in {folder}/, picture: {picture}. Next: {again}", markup=False, soft_wrap=True)
