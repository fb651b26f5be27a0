"""A study for a file of values, where none was given: what `veil simulate values.csv --epsilon 1` runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from veil.cli.files import check_inputs, read_lines
from veil.cli.outcome import warn
from veil.domain import Categories, Text
from veil.errors import DomainError, EmptyError, InputError
from veil.files import read_values
from veil.mechanisms import OLH
from veil.planning import GOALS, Wishes
from veil.planning.held import between
from veil.study import Study
from veil.survey import Survey

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["plan_for"]

_AS_TEXT = Survey(OLH(1.0, Text(1)))  # reads any one column as it is


def plan_for(
    values: Path,
    epsilon: float,
    labels: Path | None,
    bounds: tuple[str, str] | None,
    column: str | None,
    screen: Console,
) -> Study:
    """A histogram of labels, or the distribution of numbers in a range."""
    check_inputs(values)
    if bounds is not None:
        goal = GOALS["numbers"]
        return goal.ways(Wishes(epsilon, between(*bounds)))[goal.usual or ""]()
    if labels is None:
        warn("the labels were listed from the values. Of real people the list must be public: --labels-file.")
    held = Categories(_listed(values, column) if labels is None else read_lines(labels))
    choice = GOALS["histogram"].choose(Wishes(epsilon, held))
    screen.print(choice.why, markup=False)
    return choice.study


def _listed(values: Path, column: str | None) -> list[Any]:
    """What people hold, in order; refused where that is no labels."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found: set[Any] = set()
    for table in read_values(values, _AS_TEXT, column):
        held = table.column(0)
        if not (pa.types.is_string(held.type) or pa.types.is_large_string(held.type) or pa.types.is_integer(held.type)):
            raise InputError(f"expected labels in {values}: text or whole numbers; of numbers, say their --range")
        if held.null_count:
            raise DomainError("expected a value for every person, one is missing")
        found.update(pc.unique(held).to_pylist())
    if not found:
        raise EmptyError(f"{values} holds no people")
    return sorted(found)
