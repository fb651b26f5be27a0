"""Trials on a file of values: simulated devices, plans for values without a study, and true answers beside results.

Each person is asked in one round. True answers are not private.
"""

from __future__ import annotations

import math
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text as RichText

from veil.cli.input import begin, kept_seed, read_lines, some_seed
from veil.cli.output import Document, plain_table, warn
from veil.cli.values import ValueInput, load_people
from veil.comparison import TrueValues
from veil.domain import Categories, Text
from veil.engines import Watch
from veil.entropy import SeededForExperiments
from veil.errors import DomainError, EmptyError, InputError
from veil.files import read_values
from veil.files.values import MissingPolicy
from veil.mechanisms import OLH
from veil.planning import GOALS, Wishes
from veil.planning.domains import between
from veil.reports.columns import Reports
from veil.results.base import Result
from veil.simulation import SimulatedCollection, walk_rounds
from veil.sql.answer import Answer, key_unit, measured_unit
from veil.sql.execution.engine import true_outputs
from veil.sql.table import Table
from veil.study import Study, StudyRun
from veil.survey import People, Survey

if TYPE_CHECKING:
    from veil.cli.output import Screen
    from veil.results.units import Unit

_AS_TEXT = Survey(OLH(1.0, Text(1)))  # reads any one column as it is
_PEOPLE = 1 << 200  # where the streams that draw people lie, apart from those that randomize


class Trial:
    """A study and the people of a file; with `people`, so many of them, drawn at random with replacement."""

    def __init__(self, study: Study, values: ValueInput, people: int | None) -> None:
        self.study = study
        values.file.keep()  # standard input is read for every study
        self._known, self.moved = load_people(study, values)
        self._people = people
        self.held = TrueValues(study, self._known)
        self.walked = self._known
        """Who was asked; with `people`, after `walk`."""

    def people(self, seed: int) -> People:
        """The people of the trial: what they hold, and their public columns."""
        if self._people is None:
            return self._known
        return self._known[SeededForExperiments(_PEOPLE + seed).below(len(self._known), self._people).astype(np.int64)]

    def reports(self, seed: int | None, watch: Watch) -> Iterator[Reports]:
        """What the people's devices send, a chunk of people at a time; everything is drawn by one number."""
        drawn = some_seed(seed)
        simulated = SimulatedCollection(self.study.survey, self.people(drawn), SeededForExperiments(drawn), watch)
        with watch("randomizing", simulated.expected) as advance:
            for reports in simulated.reports():
                yield reports
                advance(len(reports))

    def walk(self, folder: Path | None, seed: int | None, watch: Watch) -> tuple[Result, int]:
        """The whole study; also how many rounds had been answered before, in the folder.

        Everything is drawn by one number. In a folder it is kept, so that a run that goes on after an interruption asks
        the same people in the same rounds, and their reports are the same ones: nobody is asked twice.
        """
        run = StudyRun(self.study) if folder is None else begin(self.study, folder)
        many = self._people or len(self._known)
        drawn = some_seed(seed) if folder is None else kept_seed(folder, many, seed)
        people, source = self.people(drawn), SeededForExperiments(drawn)
        self.held, self.walked, before = TrueValues(self.study, people), people, run.finished
        for _ in walk_rounds(run, people, source, source, watch):
            pass
        assert run.result is not None
        return run.result, before


def check_far(seed: int | None, people: int | None, truth: bool, appends: bool, **reading: bool) -> None:
    """Refuse what a trial on Spark cannot do: its tasks draw from fresh entropy, each in its own place."""
    refused = {
        "--seed": seed is not None,  # it would travel to every worker, and whoever knows it can undo the privacy
        "--people": people is not None,
        "--truth": truth,
        "--folder of a table": appends,
        **{f"--{name}": given for name, given in reading.items()},
    }
    for option in (option for option, given in refused.items() if given):
        raise InputError(f"{option} is for trials on one machine: leave it out, or --engine")


def walk_far(spark: Any, study: Study, values: Path, folder: Path | None, column: str | None, watch: Watch) -> Result:
    """The whole study on Spark, from files or folders of Parquet; reports are kept in the folder, if one is given."""
    from veil.cli.options import address
    from veil.simulation.spark import count_people, walk

    if folder is not None:
        run, people = begin(study, folder), count_people([address(values)])
        return walk(
            spark, run, [address(values)], folder, kept_seed(folder, people, None) % 2**64, watch, column=column
        )
    with tempfile.TemporaryDirectory(prefix="veil-trial-") as temporary:
        key = secrets.randbits(64)
        return walk(spark, StudyRun(study), [address(values)], Path(temporary), key, watch, column=column)


def plan_for(
    values: ValueInput, epsilon: float, labels: Path | None, bounds: tuple[str, str] | None, screen: Screen
) -> Study:
    """A histogram of labels, or the distribution of numbers in a range."""
    if bounds is not None:
        goal = GOALS["numbers"]
        return goal.ways(Wishes(epsilon, between(*bounds)))[goal.usual or ""]()
    if labels is None:
        warn("the labels were listed from the values. Of real people the list must be public: --labels-file.")
    listed = _listed(values) if labels is None else read_lines(labels)
    held = Categories(listed, missing="category" if values.missing == "category" else "refuse")
    choice = GOALS["histogram"].choose(Wishes(epsilon, held))
    screen.print(choice.why)
    return choice.study


def _listed(values: ValueInput) -> list[Any]:
    """What people hold, in order; refused where that is no labels."""
    import pyarrow as pa
    import pyarrow.compute as pc

    file, found = values.file, set[Any]()
    file.keep()
    without = MissingPolicy("skip" if values.missing == "skip" else None)
    for table in read_values(file, _AS_TEXT, values.column, without=without):
        held = table.column(0)
        if not (pa.types.is_string(held.type) or pa.types.is_large_string(held.type) or pa.types.is_integer(held.type)):
            raise InputError(f"expected labels in {file}: text or whole numbers; of numbers, say their --range")
        if held.null_count and values.missing != "category":
            lacking = held.is_null().to_numpy()
            refused = DomainError("expected labels; a value is missing", int(lacking.argmax()), int(lacking.sum()))
            raise file.placed(refused, table)
        found.update(pc.unique(held.drop_null()).to_pylist())
    if not found:
        raise EmptyError(f"{file} holds no people")
    return sorted(found)


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
    screen.print(RichText("in truth, which a trial alone knows", style="bold"))
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
