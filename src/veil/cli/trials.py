"""Trials on a file of values: a study in which everybody's device is asked in one of the rounds, planned if need be."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veil.cli.files import read_lines
from veil.cli.outcome import warn
from veil.cli.rounds import begin, kept_seed, some_seed
from veil.cli.values import Values, load_people
from veil.comparison import Held
from veil.domain import Categories, Text
from veil.engines import Watch
from veil.entropy import SeededForExperiments
from veil.errors import DomainError, EmptyError, InputError
from veil.files import read_values
from veil.files.values import WithoutMissing
from veil.mechanisms import OLH
from veil.planning import GOALS, Wishes
from veil.planning.held import between
from veil.reports.columns import Reports
from veil.results.base import Result
from veil.simulation import Simulated, walk_rounds
from veil.study import Study, StudyRun
from veil.survey import People, Survey

if TYPE_CHECKING:
    from veil.cli.screen import Screen

__all__ = ["Trial", "check_far", "plan_for", "walk_far"]

_AS_TEXT = Survey(OLH(1.0, Text(1)))  # reads any one column as it is
_PEOPLE = 1 << 200  # where the streams that draw people lie, apart from those that randomize


class Trial:
    """A study and the people of a file; with `people`, so many of them, drawn at random with replacement."""

    def __init__(self, study: Study, values: Values, people: int | None) -> None:
        self.study = study
        values.file.keep()  # standard input is read for every study
        self._known, self.moved = load_people(study, values)
        self._people = people
        self.held = Held(study, self._known)
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
        simulated = Simulated(self.study.survey, self.people(drawn), SeededForExperiments(drawn), watch)
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
        self.held, self.walked, before = Held(self.study, people), people, run.finished
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
    from veil.cli.engines import address
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
    values: Values, epsilon: float, labels: Path | None, bounds: tuple[str, str] | None, screen: Screen
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


def _listed(values: Values) -> list[Any]:
    """What people hold, in order; refused where that is no labels."""
    import pyarrow as pa
    import pyarrow.compute as pc

    file, found = values.file, set[Any]()
    file.keep()
    without = WithoutMissing("skip" if values.missing == "skip" else None)
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
