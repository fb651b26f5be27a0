"""Results out: on the terminal, as a document, into files and pictures. What they say is decided in `veil.results`."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from veil.cli.files import check_output
from veil.cli.outcome import Document, warn, wrote
from veil.errors import FitWarning, PrivacyWarning
from veil.results.base import Result, Truth
from veil.results.documents import document
from veil.results.files import PICTURES, TABLES, save_picture, save_table
from veil.results.terminal import show

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Wanted", "remarked"]


class Wanted(NamedTuple):
    """How a result is shown, and which files are written."""

    out: Path | None
    plot: Path | None
    level: float
    top: int

    def check(self, inputs: Sequence[Path]) -> None:
        """Refuse files that cannot be written, before the work."""
        check_output(self.out, inputs, TABLES)
        check_output(self.plot, inputs, PICTURES)

    def present(
        self, result: Result, screen: Console, remarks: Sequence[str] = (), truth: Truth | None = None
    ) -> Document:
        """Write, draw and show a result; returns the same as a document."""
        if self.out is not None:
            save_table(result, self.out, self.level, truth=truth)
        if self.plot is not None:
            save_picture(result, self.plot, self.top, truth=truth)
        show(result, screen, level=self.level, rows=self.top, truth=truth)
        made = document(result, level=self.level, rows=self.top, truth=truth)
        said = [*remarks, *made.get("remarks", ())]
        for remark in said:
            warn(remark)
        for path, what in ((self.out, "the table"), (self.plot, "the picture")):
            if path is not None:
                wrote(screen, path, what)
        names = {"out": self.out, "plot": self.plot}
        return made | {"remarks": said, **{name: None if path is None else str(path) for name, path in names.items()}}


@contextlib.contextmanager
def remarked() -> Iterator[list[str]]:
    """What a reading warns about, as sentences."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        for kind in (FitWarning, PrivacyWarning):
            warnings.simplefilter("always", kind)
        yield said
    for one in caught:
        if issubclass(one.category, (FitWarning, PrivacyWarning)):
            said.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    said[:] = dict.fromkeys(said)
