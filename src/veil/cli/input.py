"""Input files of commands (studies, tallies, reports, candidates), and the folder of a study of several rounds.

Inputs and outputs are checked before the work. The folder of a study holds `study.json`, the task of each round as
`round-000.json`, and the answers to it; after an interruption at any moment, the run continues from it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import secrets
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from veil.cli.output import SEEDED, Document, shell_command, wrote
from veil.domain import Bits, Categories, Domain, Integers, Interval
from veil.domain.composite import Tuples
from veil.domain.text_values import is_time, parse_time
from veil.engines import FileCollection, Watch
from veil.errors import EmptyError, InputError, MismatchError, PrivacyWarning, WireError
from veil.histogram import Questions
from veil.reports.tally import merge
from veil.study import Collection, Study, StudyRun, TallyCollection, study_from_json
from veil.survey import Survey, SurveyTally
from veil.tools.filesystem import write_atomically, write_secret
from veil.tools.json_documents import canonical, parse_json, take
from veil.tools.messages import name_file_in_errors
from veil.wire.tallies import decode_tally, is_tally

if TYPE_CHECKING:
    from veil.cli.options import CountingPlace
    from veil.cli.output import Screen

STUDY_NAME = "study.json"
"""The study in the folder of a run."""
_TRIAL_NAME = "trial.json"
_MOST_SHOWN = 8


def check_inputs(*paths: Path) -> None:
    """Refuse what is not there, a folder, and the same file twice: its people would count twice."""
    for path in paths:
        if not path.exists():
            raise InputError(f"there is no file {path}")
        if path.is_dir():
            raise InputError(f"{path} is a folder, expected a file")
    resolved = [path.resolve() for path in paths]
    twice = [path for i, path in enumerate(paths) if resolved[i] in resolved[:i]]
    if twice:
        raise InputError(f"{twice[0]} is given twice")


def listed_paths(text: str) -> list[Path]:
    """Return the files of a list with commas; a name with commas is found where the parts before them are no files."""
    parts, paths = text.split(","), list[Path]()
    while parts:
        joined = [",".join(parts[:count]) for count in range(1, len(parts) + 1)]
        known = (place for place, name in enumerate(joined) if _is_file(name) or _is_file(name.strip()))
        place = next(known, 0)
        paths.append(Path(joined[place] if _is_file(joined[place]) else joined[place].strip()))
        parts = parts[place + 1 :]
    return paths


def _is_file(name: str) -> bool:
    """True if there is a file of this name; False also where a name is too long."""
    try:
        return Path(name).is_file()
    except OSError:
        return False


def check_output(out: Path | None, inputs: Sequence[Path] = (), endings: Sequence[str] = ()) -> None:
    """Refuse an output before the work, not after it."""
    if out is None:
        return
    folder = out.parent
    if endings and out.suffix.lower() not in endings:
        raise InputError(f"expected an output that ends in {', '.join(endings)}, got {out.name}")
    if not folder.is_dir():
        raise InputError(f"cannot write {out}: there is no folder {folder}")
    if out.is_dir():
        raise InputError(f"cannot write {out}: it is a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {out}: no permission to write into {folder}")
    if out.resolve() in {path.resolve() for path in inputs}:
        raise InputError(f"{out} is an input: writing there would destroy it")


class StudyInput(NamedTuple):
    """A study, and the survey that is asked now: in the folder of a run, that of the current round."""

    study: Study
    survey: Survey

    def changed(self, changes: dict[str, str]) -> StudyInput:
        """The same with other parameters of the reading, from text."""
        if "candidates" in changes:
            raise InputError("candidates are read from a file, one value per line: expected --candidates FILE")
        if {"marginal", "given"} & set(changes) and "marginal" not in self.study.parameters():
            raise InputError(
                f"a study of kind {self.study.kind} reads no joint distribution: --marginal and --given are for those"
                " that `veil plan marginals` plans"
            )
        return StudyInput(self.study.changed(**changes), self.survey)

    def with_candidates(self, file: Path | None) -> tuple[StudyInput, dict[int, Any] | None]:
        """The study that counts only the values in a file, and those values by question."""
        if file is None:
            return self, None
        if "candidates" not in self.study.parameters():
            self.study.with_candidates(())  # takes none: refused before the file is read
        question = self.question or 0
        chosen = read_candidates(file, self.survey.questions[question].view.values)
        return StudyInput(self.study.with_candidates(chosen), self.survey), {question: chosen}

    @property
    def question(self) -> int | None:
        """Of a survey with several questions, the one that is read, where it is one."""
        return self.study.question if isinstance(self.study, Questions) else None


def load(path: Path, changes: dict[str, str] | None = None) -> StudyInput:
    """The study of a study file, of a bare task, or of the folder of a run; with other parameters of the reading."""
    if path.is_dir():
        run = open_run(path)
        if run.round is None:
            raise InputError(f"the study in {path} is finished: there is no round to ask")
        study, survey = run.study, run.round.survey
    else:
        study = read_study(path)
        survey = study.survey
    return StudyInput(study, survey).changed(changes or {})


def read_study(path: Path) -> Study:
    """The study of a study file, or of a bare task."""
    return read_published(path)[0]


def read_published(path: Path) -> tuple[Study, bool]:
    """The study of a file, and whether that is a bare task. The file is read once: it may be a pipe."""
    check_inputs(path)
    with name_file_in_errors(path):
        text = path.read_bytes()
        return study_from_json(text), parse_json(text)["kind"] != "veil-study"


def open_run(folder: Path) -> StudyRun:
    """The study of a folder, where it was left."""
    if not (folder / STUDY_NAME).is_file():
        begin = shell_command("veil", "next", folder, STUDY_NAME)
        randomize = shell_command("veil", "randomize", STUDY_NAME, "VALUES", "-o", folder)
        raise InputError(
            f"there is no study in {folder}: `{begin}` begins one of several rounds, and `{randomize}` a table"
        )
    study = read_study(folder / STUDY_NAME)
    with name_file_in_errors(folder):
        return StudyRun(study, folder)


def start_of(path: Path) -> bytes:
    """How a file begins: enough to tell what it is."""
    with path.open("rb") as file:
        return file.read(64).lstrip()


def load_tallies(survey: Survey, paths: Sequence[Path]) -> SurveyTally:
    """The sum of the tallies in the files."""
    check_inputs(*paths)
    merged: SurveyTally = merge(_load_tally(survey, path) for path in paths)
    return merged


def _load_tally(survey: Survey, path: Path) -> SurveyTally:
    with name_file_in_errors(path):
        return decode_tally(survey, path.read_bytes())


def collected_of(survey: Survey, paths: Sequence[Path], watch: Watch, place: CountingPlace | None = None) -> Collection:
    """Return what is in files or tables' folders: tallies, added up; or reports, counted at a place, by default here.

    Warns (`PrivacyWarning`) of reports that were drawn from a seed.
    """
    found = _collected_of(survey, paths, watch, place)
    if found.seeded:
        warnings.warn(SEEDED, PrivacyWarning, stacklevel=2)
    return found


def _collected_of(survey: Survey, paths: Sequence[Path], watch: Watch, place: CountingPlace | None) -> Collection:
    if any(path.is_dir() for path in paths):
        from veil.cli.table_folders import report_files

        paths = report_files(survey, paths)
    if place is not None and place.on_spark and not any(path.is_file() and is_tally(start_of(path)) for path in paths):
        return place.files(survey, paths, watch)  # which takes folders and addresses too
    check_inputs(*paths)
    tallies = [path for path in paths if is_tally(start_of(path))]
    if not tallies:
        return FileCollection(survey, paths, watch) if place is None else place.files(survey, paths, watch)
    if len(tallies) < len(paths):
        raise InputError("expected tallies or files of reports, not both at once: tally the reports first")
    return TallyCollection(survey, load_tallies(survey, paths))


def begin(study: Study, folder: Path) -> StudyRun:
    """A study that keeps what it takes in a folder: a new one, or the same one where it was left."""
    folder.mkdir(parents=True, exist_ok=True)
    _agree(folder / STUDY_NAME, study.to_bytes(), "another study: take another folder, or the same study")
    return open_run(folder)


def goes_on(
    folder: Path, files: Sequence[Path], changes: dict[str, str], watch: Watch, place: CountingPlace | None = None
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
    with name_file_in_errors(path):
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


def read_lines(path: Path) -> list[str]:
    """The lines of a text file that are not empty."""
    check_inputs(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8") from None
    kept = [line for line in lines if line]
    if not kept:
        raise EmptyError(f"{path} is empty: expected one value per line")
    return kept


def read_candidates(path: Path, domain: Domain) -> list[Any]:
    """The candidates in a text file, one per line, as the values that the domain knows."""
    parse = _parser(domain)
    found = []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            found.append(parse(line))
        except (KeyError, ValueError):
            raise InputError(f"candidate {number} of {path} is not a value of the question's domain") from None
    return found


def _parser(domain: Domain) -> Callable[[str], Any]:
    if isinstance(domain, Tuples):  # as a table writes them: "m, tea"
        return partial(_pair, [_parser(part) for part in domain.parts])
    if isinstance(domain, Categories) and domain.labels is not None:
        return {str(label): label for label in domain.labels}.__getitem__
    if isinstance(domain, (Categories, Integers, Bits)):
        return int
    if is_time(domain):
        return _time
    return float if isinstance(domain, Interval) else str


def _pair(parsers: Sequence[Callable[[str], Any]], text: str) -> tuple[Any, ...]:
    """One value for each part; a label with a comma in it is found where there is one way to read the line."""
    pieces, found = text.split(", "), []
    for cuts in combinations(range(1, len(pieces)), len(parsers) - 1):
        ends = (0, *cuts, len(pieces))
        texts = [", ".join(pieces[a:b]) for a, b in pairwise(ends)]
        with contextlib.suppress(KeyError, ValueError):
            found.append(tuple(parse(one) for parse, one in zip(parsers, texts, strict=True)))
    if len(found) != 1:
        raise ValueError
    return found[0]


def _time(text: str) -> dt.datetime:
    found = parse_time(text)
    if found is None:
        raise ValueError
    return found
