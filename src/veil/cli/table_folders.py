"""Folders of tables as commands write and read them: a new one is created, an existing one gets another file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from veil.cli.input import check_output
from veil.cli.output import plural, warn
from veil.errors import EmptyError, InputError, MismatchError
from veil.reports.columns import Reports
from veil.sql import Table
from veil.sql.folder import STUDY_NAME, TableFolder, create, open_folder
from veil.survey import Survey


def check_folder(folder: Path, table: Table) -> TableFolder | None:
    """The folder that takes a table's reports, if it is there; refused before the work where it cannot take them."""
    if (folder / STUDY_NAME).exists():
        found = open_folder(folder)
        if found.table.survey.task != table.survey.task:
            raise MismatchError(f"{folder} holds another table: take another folder, or the same table")
        _ = found.people  # refuses damaged files now
        return found
    if folder.is_dir():
        if any(folder.iterdir()):
            raise InputError(f"{folder} holds something else: expected a table, an empty folder, or none")
    else:
        check_output(folder)
    return None


def added(
    folder: Path, table: Table, reports: Iterable[Reports], found: TableFolder | None, *, seeded: bool
) -> TableFolder:
    """Add reports as one file to the folder that `check_folder` found; it is made where there is none."""
    given = iter(reports)
    first = next(given)  # whatever is wrong with the first people leaves no folder behind
    if found is None:
        found = create(folder, table)
    found.append(chain([first], given), seeded=seeded)
    return found


def now_holds(found: TableFolder) -> str:
    """How many people and files a table has, in words."""
    return f"the table in {found.path} now has {plural(found.people, 'report')} in {plural(len(found.files), 'file')}"


def report_files(survey: Survey, paths: Sequence[Path]) -> list[Path]:
    """The same paths, with the files of reports in place of each table's folder."""
    files: list[Path] = []
    for path in paths:
        if not (path.is_dir() and (path / STUDY_NAME).exists()):
            files.append(path)
            continue
        found = open_folder(path)
        if found.table.survey.task != survey.task:
            raise MismatchError(f"{path} holds another table than the study asks")
        if not found.files:
            raise EmptyError(f"nobody has reported to the table in {path} yet")
        for ignored in found.ignored:
            warn(f"left out of the answers: {ignored}")
        files += found.files
    return files
