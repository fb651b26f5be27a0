"""Results and plans on the terminal, and results as documents, in files and in pictures."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from veil.cli.input import check_output
from veil.cli.output import SEEDED, Document, plain_table, warn, wrote
from veil.errors import FitWarning, InputError, PrivacyWarning
from veil.results.base import Result
from veil.results.render.files import FORMATS, document, save, write_table
from veil.results.render.plot import need_matplotlib
from veil.results.render.terminal import render
from veil.results.units import Unit
from veil.tools.filesystem import atomic_replacement

if TYPE_CHECKING:
    from veil.cli.output import Screen
    from veil.comparison import TrueValues
    from veil.planning import Choice, Quantity

_RESULT = ".result.json"
_PICTURES = (".svg", ".png", ".pdf")
_TITLE = ("people_hold", "epsilon", "users")


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
        from veil.results.render.plot import save_figure

        picked = not self.everything and result.told(self.level, self.top, hide=True).hidden
        style: dict[str, Any] = {"hide": True} if picked else {}
        panel = result.plot(self.top, truth=truth, **style)
        with atomic_replacement(path) as temporary:
            save_figure(panel, str(temporary))


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


def show_choice(choice: Choice, screen: Screen) -> None:
    """The options in a table with the taken one marked, what each round does, and why."""
    facts = choice.facts
    held, epsilon, users = (facts[name] for name in _TITLE)
    promised = f"eps = {epsilon:g}"
    if "epsilon_central" in facts:
        promised = f"eps = {facts['epsilon_central']:g} after a shuffler (delta = {facts['delta']:g})"
    screen.print(Text(f"{choice.goal}: people hold {held}, {promised}, {users:,} people", style="bold"))
    names = list(choice.taken.errors)
    table = _table(("", "way", "report", *names), text=2)
    for option in choice.options:
        taken = option is choice.taken
        cells = [_text(option.errors[name]) for name in names]
        style = "bold green" if taken else "" if option.allowed else "dim"
        table.add_row("*" if taken else "", option.name, f"{option.report_bytes:,} B", *cells, style=style)
    screen.print(table)
    if choice.rounds:
        rounds = _table(tuple(choice.rounds[0]), text=0)
        for row in choice.rounds:
            rounds.add_row(*(_text(measure) for measure in row.values()))
        screen.print(Text(f"the rounds of {choice.taken.name}", style="bold"))
        screen.print(rounds)
    if choice.attributes:
        attributes = _table(tuple(choice.attributes[0]), text=2, wrap=True)
        for row in choice.attributes:
            attributes.add_row(*(Text(_text(measure)) for measure in row.values()))
        screen.print(attributes)
    for option in choice.options:
        for note in option.notes:
            screen.print(Text(f"{option.name}: {note}.", style="dim"))
    titled = (*_TITLE, "epsilon_central", "delta")
    more = [f"{name.replace('_', ' ')}: {fact:,}" for name, fact in facts.items() if name not in titled]
    for line in (", ".join(more), choice.about):
        if line:
            screen.print(Text(line, style="dim"))
    screen.print(Text.assemble(("* ", "bold green"), choice.why))


def show_goals(screen: Screen) -> Document:
    """List all goals, and all kinds of studies."""
    from veil.planning.goals import GOALS, goal_of
    from veil.study import STUDIES

    parts = {"goals": list(GOALS.values()), "studies": [goal_of(kind) for kind in STUDIES if kind not in GOALS]}
    titles = ("Goals: the best way is found", "Kinds of studies: with the parameters that you give")
    for title, listed in zip(titles, parts.values(), strict=True):
        screen.print(Text(title, style="bold"))
        screen.print(plain_table(("kind", "what it tells"), [(goal.name, goal.summary) for goal in listed]))
    return {name: {goal.name: goal.summary for goal in listed} for name, listed in parts.items()}


def _table(headings: tuple[str, ...], *, text: int, wrap: bool = False) -> Table:
    """An empty table, of which the first columns are text; with `wrap`, text that may be long."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for i, heading in enumerate(headings):
        longest = max((len(word) for word in heading.split()), default=0)
        table.add_column(
            heading,
            justify="left" if i < text else "right",
            no_wrap=i < text and not wrap,
            overflow="fold",
            min_width=longest,
        )
    return table


def _text(measure: Quantity) -> str:
    value = measure.value
    if not isinstance(value, (int, float)):
        return "-" if value is None else value
    if measure.unit == "share":
        return f"{100 * value:.3f} %" if value >= 1e-4 else f"{100 * value:.2g} %"
    if measure.unit == "count":
        return f"{value:,.0f}" if value < 1e8 else f"{value:.1e}"
    if measure.unit == "square":
        return f"{value:.2g}"
    if measure.unit == "eps":
        return f"{value:.4g}"
    if measure.unit == "effort":
        return "< 1 s" if value < 1 else Unit("duration").text(round(value))
    return Unit(measure.unit).text(value)  # type: ignore[arg-type]  # a length or a duration
