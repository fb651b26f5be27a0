"""Folders that are tables, as commands write them: made where there is none, added to where there is one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from veil.cli.files import check_output
from veil.errors import InputError, MismatchError
from veil.sql import Table
from veil.sql.folder import STUDY_NAME, Folder, create, open_folder
from veil.wire.reports import Reports

__all__ = ["added", "check_folder"]


def check_folder(folder: Path, table: Table) -> None:
    """Refuse a folder that cannot take a table's reports, before the work."""
    if (folder / STUDY_NAME).exists():
        if open_folder(folder).table.survey.task != table.survey.task:
            raise MismatchError(f"{folder} holds another table: take another folder, or the same table")
    elif folder.is_dir():
        if any(folder.iterdir()):
            raise InputError(f"{folder} holds something else: expected a table, an empty folder, or none")
    else:
        check_output(folder)


def added(folder: Path, table: Table, reports: Iterable[Reports]) -> Folder:
    """Add reports to a table's folder, as one file; the folder is made where there is none."""
    given = iter(reports)
    first = next(given)  # whatever is wrong with the first people leaves no folder behind
    found = open_folder(folder) if (folder / STUDY_NAME).exists() else create(folder, table)
    found.append(chain([first], given))
    return found
