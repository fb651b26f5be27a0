"""Studies in folders: `study.json`, the task of each round as `round-000.json`, and what the study took.

A run goes on from its folder after an interruption at any moment.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from veil.cli.files import STUDY_NAME, collected_of, naming, open_run, read_study, start_of
from veil.cli.outcome import Document, wrote
from veil.engines import Watch
from veil.errors import InputError, MismatchError, WireError
from veil.study import Study, StudyRun
from veil.tools.filesystem import write_atomically, write_secret
from veil.tools.json_documents import canonical, parse_json, take

if TYPE_CHECKING:
    from veil.cli.engines import Place
    from veil.cli.screen import Screen

__all__ = ["begin", "goes_on", "kept_seed", "show_round", "some_seed"]

_TRIAL_NAME = "trial.json"
_MOST_SHOWN = 8


def begin(study: Study, folder: Path) -> StudyRun:
    """A study that keeps what it takes in a folder: a new one, or the same one where it was left."""
    folder.mkdir(parents=True, exist_ok=True)
    _agree(folder / STUDY_NAME, study.to_bytes(), "another study: take another folder, or the same study")
    return open_run(folder)


def goes_on(
    folder: Path, files: Sequence[Path], changes: dict[str, str], watch: Watch, place: Place | None = None
) -> StudyRun:
    """Runs at the collector: begin a study with its file, or take what the current round collected, if anything."""
    if len(files) == 1 and files[0].is_file() and start_of(files[0]).startswith(b"{"):
        return begin(read_study(files[0]).changed(**changes), folder)
    if changes:
        raise InputError("parameters are set when a study begins: expected --set beside the study's file")
    run = open_run(folder)
    if files:
        if run.round is None:
            raise InputError("this study is finished: it takes no more answers")
        run.answer(collected_of(run.round.survey, files, watch, place))
    return run


def show_round(run: StudyRun, folder: Path, screen: Screen) -> Document:
    """Write the task of the round to ask, and say of how many people it asks what."""
    assert run.round is not None
    asked, task = run.round, folder / f"round-{run.finished:03d}.json"
    write_atomically(task, asked.survey.to_bytes())
    begun = any(folder.glob(f"round-{run.finished:03d}.take-*"))
    before = ", who were not asked before" if run.finished else ""
    screen.print(f"Round {run.finished}: ask {100 * float(asked.people):g} % of the people{before}.")
    if begun:
        screen.print("It was being read when it was interrupted: give the same reports once more, and ask nobody.")
    many = len(asked.survey.questions)
    some = asked.survey.questions[:_MOST_SHOWN]
    shown = list(dict.fromkeys(f"{one.view.kind} through {one.mechanism.signature}" for one in some))
    for line in shown:
        screen.print(f"  {line}")
    wrote(screen, task, f"the task {asked.survey.task[:12]}")
    return {
        "finished": False,
        "begun": begun,
        "round": run.finished,
        "task": asked.survey.task,
        "share": float(asked.people),
        "questions": many,
        "asks": shown,
        "report_bytes": asked.survey.layout.size,
        "out": str(task),
    }


def some_seed(seed: int | None) -> int:
    """The seed that was given, or a secret one."""
    return secrets.randbits(128) if seed is None else seed


def kept_seed(folder: Path, people: int, seed: int | None) -> int:
    """The number that a trial in a folder draws everything by; without a seed, a secret one that is kept there."""
    path = folder / _TRIAL_NAME
    if not path.exists():
        made = {"seed": str(some_seed(seed)), "people": people, "seeded": seed is not None}
        write_secret(path, canonical({"kind": "veil-trial", **made}))  # the seed undoes the privacy of every report
    with naming(path):
        kept, *same = take(parse_json(path.read_bytes()), "veil-trial", "seed", "people", "seeded")
        if not isinstance(kept, str) or not kept.isdecimal():
            raise WireError("a trial's seed is a number")
    if same != [people, seed is not None] or (seed is not None and str(seed) != kept):
        raise MismatchError(f"{folder} holds a trial of other people, or one with another --seed")
    return int(kept)


def _agree(path: Path, text: bytes, otherwise: str) -> None:
    if not path.exists():
        write_atomically(path, text)
    elif path.read_bytes() != text:
        raise MismatchError(f"{path.parent} holds {otherwise}")
