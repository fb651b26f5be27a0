"""True answers of a trial of a table, under its answers. They are not private."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.text import Text

from veil.cli.outcome import Document
from veil.cli.tables import plain_table
from veil.sql.answer import Answer, key_unit, measured_unit
from veil.sql.execution.engine import true_outputs
from veil.sql.table import Table
from veil.survey import People

if TYPE_CHECKING:
    from veil.cli.screen import Screen
    from veil.results.base import Result
    from veil.results.units import Unit

__all__ = ["show_truth"]


def show_truth(found: Result, table: Table, people: People, screen: Screen) -> list[Document]:
    """Show what is true of each row of an answer; returns the same as documents."""
    assert isinstance(found, Answer)
    outputs = true_outputs(found, table, people)
    units = [measured_unit(one) for one in found.outputs]  # to as many digits as the answer
    keys = [[key_unit(key).text(value) for value in key.values] for key in found.keys]
    rows = [
        [*(key[row] for key in keys), *(_text(one.values[row], unit) for one, unit in zip(outputs, units, strict=True))]
        for row in range(len(found))
    ]
    screen.print(Text("in truth, which a trial alone knows", style="bold"))
    screen.print(plain_table([*found.key_names, *found.output_names], rows))
    told = [
        dict(zip(found.output_names, (one.values[row] for one in outputs), strict=True)) for row in range(len(found))
    ]
    labels = [
        dict(zip(found.key_names, (key.labels[row] for key in found.keys), strict=True)) for row in range(len(found))
    ]
    return [
        {**label, **{name: None if math.isnan(value) else float(value) for name, value in one.items()}}
        for label, one in zip(labels, told, strict=True)
    ]


def _text(value: float, unit: Unit) -> str:
    return "-" if math.isnan(value) else unit.text(float(value))
