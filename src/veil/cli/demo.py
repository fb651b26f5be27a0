"""`veil demo --offline`: plan, randomize, tally and estimate with simulated people, as other commands do.

Every step leaves its file in one folder, so that each can be tried again by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veil.cli.choices import show_choice
from veil.cli.example import APPS, QUESTION, made_up
from veil.cli.files import load_tallies
from veil.cli.outcome import Document, plural, shell_command
from veil.cli.showing import Wanted
from veil.cli.values import Randomized, Values
from veil.comparison import Held
from veil.domain import Categories
from veil.engines import InFiles, Watch
from veil.planning import Wishes, plan
from veil.study import StudyRun
from veil.tools.filesystem import write_atomically
from veil.wire.tallies import encode_tally

if TYPE_CHECKING:
    from veil.cli.screen import Screen

__all__ = ["EPSILON", "beside_truth", "step", "walk"]

EPSILON = 1.0
TOP = 12
_HALVES = ("1", "2")


def walk(folder: Path, people: int, seed: int | None, screen: Screen, watch: Watch) -> Document:
    """Plan, randomize on two groups of devices, tally each, merge, estimate, draw; every step leaves its file."""
    folder.mkdir(parents=True, exist_ok=True)
    screen.print(f"[bold]{QUESTION}[/]\n{people:,} simulated people, {len(APPS)} possible answers.", markup=True)
    step(screen, 1, "plan", "compare the frequency oracles and choose one")
    choice = plan("histogram", Wishes(EPSILON, Categories(APPS), people))
    study, survey = choice.study, choice.study.survey
    show_choice(choice, screen)
    screen.print(
        f"  Privacy guarantee: for any two answers, the probabilities of a report differ by at most the factor"
        f" e^{survey.guarantee.epsilon:g} = {float(survey.guarantee.ratio or 0):.3f}."
    )
    write_atomically(folder / "study.json", study.to_bytes())

    step(screen, 2, "randomize", "each device turns its answer into a randomized report")
    held = made_up(people)
    counted: list[tuple[Path, Path]] = []
    for half, some in zip(_HALVES, np.array_split(held, len(_HALVES)), strict=True):
        values, reports = folder / f"people-{half}.csv", folder / f"reports-{half}.arrow"
        write_atomically(values, "\n".join(["app", *(APPS[i] for i in some), ""]).encode())
        # seeds differ: the same seed for both groups would give them the same noise
        own = None if seed is None else 2 * seed + len(counted)
        done = Randomized(study, survey, Values.at(values), watch, seed=own)
        done.write(reports)
        screen.print(
            f"  {values.name} -> {reports.name}: {done.people:,} reports of {plural(survey.layout.size, 'byte')}"
        )
        counted.append((reports, folder / f"tally-{half}.bin"))

    step(screen, 3, "tally and merge", "the collector counts the reports and adds the tallies")
    tally = folder / "tally.bin"
    for reports, part in counted:
        write_atomically(part, encode_tally(InFiles(survey, [reports], watch).tally()))
    merged = load_tallies(survey, [part for _, part in counted])
    write_atomically(tally, encode_tally(merged))
    screen.print(f"  {' + '.join(part.name for _, part in counted)} -> {tally.name}: {merged.people:,} reports")

    step(screen, 4, "estimate", "the estimated shares, and the true shares, which the collector never receives")
    run, known = StudyRun(study), Held(survey, held.astype(np.uint64))
    run.answer(merged)
    found = run.result
    assert found is not None
    drawn = find_spec("matplotlib") is not None  # an extra: the demo works without it
    shown = Wanted(None, folder / "estimate.svg" if drawn else None, 0.95, TOP).present(found, screen, (), known)
    truth = known.truth(found) or []
    covered = sum(row.low <= share <= row.high for row, share in zip(found, truth, strict=True))
    screen.print(f"{covered} of {len(APPS)} intervals contain the true share (95 % expected).")
    again = shell_command("veil", "estimate", folder / "study.json", tally, "--top", "20")
    screen.print()
    screen.print_line(f"All files are in {folder}/. Next: {again}")
    return {
        "folder": str(folder),
        "task": survey.task,
        "people": merged.people,
        "plan": choice.to_json(),
        "estimate": shown,
        "truth": dict(zip(APPS, truth, strict=True)),
        "covered": covered,
        "plot": shown["plot"],
    }


def step(screen: Screen, number: int, name: str, what: str) -> None:
    """A heading of the demo."""
    screen.print(f"\n[bold blue]{number} {name}[/]  [dim]{what}[/]", markup=True)


def beside_truth(
    screen: Screen, rows: Sequence[Document], held: NDArray[np.int64], seconds: float
) -> tuple[dict[str, float], int]:
    """Show the largest estimates beside the truth; the true shares, and how many of all intervals cover them."""
    from veil.cli.tables import plain_table
    from veil.results.units import Unit

    truth, share = np.bincount(held, minlength=len(APPS)) / len(held), Unit("share")
    known = {app: float(part) for app, part in zip(APPS, truth, strict=True)}
    cells = [
        (
            row["value"],
            share.text(row["frequency"]),
            share.interval(row["low"], row["high"]),
            share.text(known[row["value"]]),
        )
        for row in sorted(rows, key=lambda row: -row["frequency"])[:TOP]
    ]
    screen.print(plain_table(("value", "share", "95 % interval", "truth"), cells))
    covered = sum(row["low"] <= known[row["value"]] <= row["high"] for row in rows)
    screen.print(f"{covered} of {len(APPS)} intervals contain the true share (95 % expected). It took {seconds:.0f} s.")
    return known, covered
