"""`veil inspect`: what a file is, in plain words.

Reads headers alone; with a study it reads and checks everything.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from veil.cli.options import Level, Top
from veil.cli.outcome import AsJson, Document, console, plural, reporting

__all__ = ["inspect"]

_ARROW, _PARQUET = b"ARROW1", b"PAR1"
_MOST_SHOWN = 12


@reporting
def inspect(
    file: Annotated[
        Path,
        typer.Argument(help="A study, a task, a file of reports, a tally, a saved result, or the folder of a run."),
    ],
    study: Annotated[
        Path | None, typer.Option(help="Check the whole file against this study or task.", metavar="STUDY")
    ] = None,
    level: Level = 0.95,
    top: Top = 10,
    as_json: AsJson = False,
) -> Document:
    """Say in plain words what a file is."""
    from rich.markup import escape

    from veil.cli.tables import facts_table

    sentence, facts = _inspected(file, study)
    screen = console(as_json)
    screen.print(sentence, markup=False)
    screen.print(facts_table(facts))
    return facts | {"file": str(file)}


def _inspected(path: Path, against: Path | None) -> tuple[str, Document]:
    from veil.cli.files import TALLY_MAGIC, check_inputs, load
    from veil.errors import EmptyError, WireError

    if path.is_dir():
        return _folder(path)
    check_inputs(path)
    with path.open("rb") as opened:
        start = opened.read(64)
    if not start:
        raise EmptyError(f"{path} is empty")
    survey = None if against is None else load(against).survey
    if start.startswith((_ARROW, _PARQUET)):
        return _reports(path, survey)
    if start.startswith(TALLY_MAGIC):
        return _tally(path, survey)
    if start.lstrip().startswith(b"{"):
        return _document(path)
    raise WireError(f"{path} is not a study, a task, a file of reports, a tally or a result")
