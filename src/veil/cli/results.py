"""Results on the terminal, as documents, and in files and pictures. `veil.results` decides what they contain."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from veil.cli.input import check_output
from veil.cli.output import SEEDED, Document, warn, wrote
from veil.errors import FitWarning, InputError, PrivacyWarning
from veil.plot import need_matplotlib
from veil.results.base import Result
from veil.results.render.files import FORMATS, document, save, write_table
from veil.results.render.terminal import render
from veil.tools.filesystem import atomic_replacement

if TYPE_CHECKING:
    from veil.cli.output import Screen
    from veil.comparison import TrueValues


_RESULT = ".result.json"
_PICTURES = (".svg", ".png", ".pdf")


class OutputOptions(NamedTuple):
    """How a result is shown, and which files are written."""

    out: Path | None
    plot: Path | None
    level: float
    top: int
    everything: bool = False
    """Whether rows are shown and written that are not significant: see `Result.told`."""

    @property
    def _hide(self) -> str | None:
        return None if self.everything else "--all"

    def check(self, inputs: Sequence[Path]) -> None:
        """Refuse files that cannot be written, before the work."""
        check_output(self.out, inputs, [f".{ending}" for ending in FORMATS])
        check_output(self.plot, inputs, _PICTURES)
        if self.plot is not None:
            need_matplotlib()
        if not 0 < self.level < 1:
            raise InputError("the level of an interval lies between 0 and 1, as in 0.95")

    def present(
        self, result: Result, screen: Screen, remarks: Sequence[str] = (), held: TrueValues | None = None
    ) -> Document:
        """Write, draw and show a result, beside what people hold where that is known; returns a document."""
        parts = result.parts()
        truths = [None if held is None else held.truth(part, number) for number, part in parts]
        whole = self.out is not None and self.out.name.lower().endswith(_RESULT)
        only = truths[0] if len(parts) == 1 else None
        if self.out is not None and whole:
            save(result, self.out, seeded=SEEDED in remarks)
        elif self.out is not None:
            beside = None if result.selection else only  # files of a search have what was found, and nothing else
            write_table(result, self.out, self.level, truth=beside, hide=self._hide)
        if self.plot is not None:
            self._draw(result, self.plot, only)
        made = document(result, self.level, top=self.top, truth=only, hide=self._hide)
        for place, ((number, part), truth) in enumerate(zip(parts, truths, strict=True)):
            title = None if number is None else f"question {number}: {part.answered()}, {' > '.join(part.lineage)}"
            shown = render(part, level=self.level, top=self.top, title=title, truth=truth, hide=self._hide)
            screen.print(shown)
            if len(parts) > 1 and truth is not None:
                answer = document(part, self.level, top=self.top, truth=truth, hide=self._hide)
                made["answers"][place] = {"question": number, **answer}
        for remark in remarks:
            warn(remark)
        for path, what in ((self.out, "the result" if whole else "the table"), (self.plot, "the picture")):
            if path is not None:
                wrote(screen, path, what)
        files = {
            "out": None if self.out is None else str(self.out),
            "plot": None if self.plot is None else str(self.plot),
        }
        return {**made, "remarks": [*remarks, *made.get("remarks", result.remarks())], **files}

    def _draw(self, result: Result, path: Path, truth: Sequence[float] | None) -> None:
        from veil.plot import save

        picked = not self.everything and result.told(self.level, self.top, hide=True).hidden
        style: dict[str, Any] = {"hide": True} if picked else {}
        panel = result.plot(self.top, truth=truth, **style)
        with atomic_replacement(path) as temporary:
            save(panel, str(temporary))


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
