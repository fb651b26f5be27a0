"""What `veil plan` found, for people to read: the ways to ask beside each other, the taken one marked, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veil.cli.outcome import Document

if TYPE_CHECKING:
    from rich.table import Table

    from veil.cli.screen import Screen
    from veil.planning import Choice, Quantity

__all__ = ["show_choice", "show_goals"]

_TITLE = ("people_hold", "epsilon", "users")


def show_goals(screen: Screen) -> Document:
    """List all goals, and all kinds of studies."""
    from rich.text import Text

    from veil.cli.tables import plain_table
    from veil.planning.goals import GOALS, goal_of
    from veil.study import STUDIES

    parts = {"goals": list(GOALS.values()), "studies": [goal_of(kind) for kind in STUDIES if kind not in GOALS]}
    titles = ("Goals: the best way is found", "Kinds of studies: with the parameters that you give")
    for title, listed in zip(titles, parts.values(), strict=True):
        screen.print(Text(title, style="bold"))
        screen.print(plain_table(("kind", "what it tells"), [(goal.name, goal.summary) for goal in listed]))
    return {name: {goal.name: goal.summary for goal in listed} for name, listed in parts.items()}


def show_choice(choice: Choice, screen: Screen) -> None:
    """The options in a table with the taken one marked, what each round does, and why."""
    from rich.text import Text

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


def _table(headings: tuple[str, ...], *, text: int, wrap: bool = False) -> Table:
    """An empty table, of which the first columns are text; with `wrap`, text that may be long."""
    from rich import box
    from rich.table import Table

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
    from veil.results.units import Unit

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
