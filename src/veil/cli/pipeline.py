"""What the commands do, without how it is said: files in, files out, a chunk of people at a time.

`veil demo` walks through the same functions. Outputs appear only once they are whole.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from veil.cli.progress import Advance
from veil.domain import Bits, Categories, Domain, Integers, Interval, Numeric
from veil.domain.set_text import SEPARATOR
from veil.domain.times import is_time, parse_time
from veil.entropy import Batch, Seeded
from veil.errors import DomainError, EmptyError, InputError, MismatchError, WireError
from veil.files import ReportWriter, count_rows, public_of, read_reports, read_values, values_of
from veil.survey import Survey, SurveyTally
from veil.tally import merge
from veil.tools.durable import write_atomically
from veil.wire.reports import Reports
from veil.wire.tallies import decode_tally, encode_tally

__all__ = [
    "Randomized",
    "check_inputs",
    "check_output",
    "load_survey",
    "load_tallies",
    "randomize_file",
    "read_all",
    "read_candidates",
    "read_lines",
    "save_survey",
    "save_tally",
    "tally_files",
]

Watch = Callable[[str, int | None], AbstractContextManager[Advance]]
"""Makes a progress bar: what is going on, and for how many people if that is known."""


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


def check_output(out: Path, inputs: Sequence[Path] = (), endings: Sequence[str] = ()) -> None:
    """Refuse an output before the work, not after it."""
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


def load_survey(path: Path) -> Survey:
    """The survey that a task file describes."""
    check_inputs(path)
    with _naming(path):
        return Survey.from_json(path.read_bytes())


def save_survey(survey: Survey, out: Path) -> None:
    """The task as canonical JSON: its SHA-256 is the task id."""
    write_atomically(out, survey.to_bytes())


class Randomized(NamedTuple):
    """How many people there were, and how many of their values were moved to an end of the domain."""

    people: int
    clipped: int


def randomize_file(
    survey: Survey,
    values: Path,
    out: Path,
    watch: Watch,
    *,
    column: str | None = None,
    seed: int | None = None,
    clip: bool = False,
    separator: str = SEPARATOR,
) -> Randomized:
    """Runs on the device: a report for every row of a file, from one source; with `clip`, of the nearest value."""
    check_inputs(values)
    domain = survey.domain
    if clip and not isinstance(domain, Numeric):
        raise InputError("only numbers can be clipped: this task asks for something else")
    source = Batch() if seed is None else Seeded(seed)
    clipped = 0
    with watch("randomizing", count_rows(values)) as advance, ReportWriter(out, survey) as writer:
        for table in read_values(values, survey, column, separator):
            try:
                held = values_of(table, survey)
                if clip and isinstance(domain, Numeric):
                    held, moved = domain.clip(held)
                    clipped += moved
                reports = survey.randomize(held, source, public_of(table, survey))
            except DomainError as problem:
                raise problem.moved(writer.rows) from None
            writer.write(reports)
            advance(len(reports))
        if not writer.rows:
            raise EmptyError(f"{values} holds no people")
        return Randomized(writer.rows, clipped)


def tally_files(survey: Survey, files: Sequence[Path], watch: Watch, candidates: Any = None) -> SurveyTally:
    """Runs at the collector: the tally of all reports in the files, a record batch at a time."""
    check_inputs(*files)
    by_question = None if candidates is None else {0: candidates}
    total: SurveyTally | None = None
    with watch("tallying", _total_rows(files)) as advance:
        for reports in read_all(survey, files):
            part = survey.tally(reports, by_question)
            total = part if total is None else total + part
            advance(len(reports))
    if total is None or not total.people:
        raise EmptyError("there are no reports in these files")
    return total


def load_tallies(survey: Survey, paths: Sequence[Path]) -> SurveyTally:
    """The sum of the tallies in the files."""
    check_inputs(*paths)
    merged: SurveyTally = merge(_load_tally(survey, path) for path in paths)
    return merged


def save_tally(tally: SurveyTally, out: Path) -> None:
    """The tally as bytes, with its checksum."""
    write_atomically(out, encode_tally(tally))


def read_lines(path: Path) -> list[str]:
    """The lines of a text file that are not empty."""
    check_inputs(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8") from None
    kept = [line for line in lines if line]
    if not kept:
        raise EmptyError(f"{path} is empty: expected one value a line")
    return kept


def read_candidates(path: Path, domain: Domain) -> list[Any]:
    """The candidates in a text file, one a line, as the values that the domain knows."""
    parse = _parser(domain)
    found = []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            found.append(parse(line))
        except (KeyError, ValueError):
            raise InputError(f"candidate {number} of {path} is not a value of the question's domain") from None
    return found


def _load_tally(survey: Survey, path: Path) -> SurveyTally:
    with _naming(path):
        return decode_tally(survey, path.read_bytes())


def _parser(domain: Domain) -> Callable[[str], Any]:
    if isinstance(domain, Categories) and domain.labels is not None:
        return {str(label): label for label in domain.labels}.__getitem__
    if isinstance(domain, (Categories, Integers, Bits)):
        return int
    if is_time(domain):
        return _time
    return float if isinstance(domain, Interval) else str


def _time(text: str) -> dt.datetime:
    found = parse_time(text)
    if found is None:
        raise ValueError
    return found


def _total_rows(files: Sequence[Path]) -> int | None:
    rows = [count_rows(path) for path in files]
    return None if None in rows else sum(count or 0 for count in rows)


def read_all(survey: Survey, files: Sequence[Path]) -> Iterator[Reports]:
    """Runs at the collector: the reports of all files, a record batch at a time."""
    for path in files:
        with _naming(path):
            yield from read_reports(path, survey)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Say which file it was: several are read in a row."""
    try:
        yield
    except (WireError, MismatchError) as problem:
        if str(path) in str(problem):
            raise
        raise type(problem)(f"{path}: {problem}") from None
