"""Trials on a file of values: a study in which everybody's device is asked in one of the rounds, planned if need be.

True answers of a trial of a table, under its answers. They are not private.

`veil simulate` and `veil compare`: the whole way on people whose values are known, before anybody is asked.
"""

from __future__ import annotations

import math
import os
import secrets
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.text import Text as RichText
from typer.core import TyperCommand

from veil.cli.input import begin, kept_seed, read_lines, some_seed
from veil.cli.options import (
    VALUES,
    Candidates,
    Changes,
    Clip,
    Column,
    Engine,
    Everything,
    Format,
    Given,
    Level,
    MarginalOf,
    MissingValues,
    Picture,
    Seed,
    Separator,
    TableOut,
    Top,
    Values,
    counting,
    given_changes,
    is_far,
    is_here,
)
from veil.cli.output import AsJson, Document, console, flag, plain_table, plural, reporting, warn, warn_of_seed, wrote
from veil.cli.values import ValueInput, load_people
from veil.comparison import Held
from veil.domain import Categories, Text
from veil.engines import Watch
from veil.entropy import SeededForExperiments
from veil.errors import DomainError, EmptyError, InputError
from veil.files import read_values
from veil.files.values import MissingPolicy
from veil.mechanisms import OLH
from veil.planning import GOALS, Wishes
from veil.planning.held import between
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


PeopleOption = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Take so many people, at random and with replacement, not those of the file."
    ),
]


class StudyBeforeValues(TyperCommand):
    """A command whose first argument may be left out: where one is given alone, it is the second."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", "[STUDY]", "VALUES"]


@reporting
def simulate(
    study: Annotated[
        Path | None,
        typer.Argument(metavar="[STUDY]", help="The study. Without one, --epsilon and the domain's options plan it."),
    ] = None,
    values: Annotated[Path | None, typer.Argument(metavar="VALUES", help=VALUES)] = None,
    epsilon: Annotated[float | None, typer.Option(help="Without a study: the privacy of one report.")] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels-file", help="Without a study: what people may hold, one label per line."),
    ] = None,
    bounds: Annotated[
        tuple[str, str] | None,
        typer.Option("--range", metavar="LO HI", help="Without a study: people hold numbers or times in this range."),
    ] = None,
    truth: Annotated[
        bool, flag("--truth", "Show what is true of the people beside it: for trials, it is not private.")
    ] = False,
    people: PeopleOption = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Keep the run here: after an interruption, go on from there, with nobody asked twice. Of a table: add"
            " the reports to this folder, to ask it with `veil sql`."
        ),
    ] = None,
    marginal: MarginalOf = None,
    given: Given = None,
    changes: Changes = None,
    candidates: Candidates = None,
    column: Column = None,
    separator: Separator = ";",
    clip: Clip = False,
    missing: MissingValues = None,
    values_format: Format = None,
    level: Level = 0.95,
    top: Top = 10,
    everything: Everything = False,
    seed: Seed = None,
    engine: Engine = "local",
    out: TableOut = None,
    plot: Picture = None,
    as_json: AsJson = False,
) -> Document:
    """Simulate a study on a file of values: each person reports once, in one or more rounds."""
    from veil.cli.input import StudyInput, load
    from veil.cli.output import progress
    from veil.cli.showing import OutputOptions, remarked
    from veil.cli.sql import added, check_folder, now_holds
    from veil.cli.values import ValueInput as ValuesOf
    from veil.errors import InputError
    from veil.sql import Table

    planning = {"--epsilon": epsilon, "--labels-file": labels, "--range": bounds}
    if values is not None and any(option is not None for option in planning.values()):
        raise typer.BadParameter(f"{', '.join(planning)} are for planning: give them without a study")
    if study is None or (values is None and epsilon is None):
        raise typer.BadParameter("give a study and a file of values, or a file of values and --epsilon")
    if labels is not None and bounds is not None:
        raise typer.BadParameter("people hold labels (--labels-file) or numbers (--range), not both")
    warn_of_seed(seed)
    wanted, screen = OutputOptions(out, plot, level, top, everything), console(as_json)
    wanted.check([path for path in (study, values) if path is not None])
    made = given_changes(changes, marginal=marginal, given=given)
    given_file = study if values is None else values
    far = is_far(engine)

    @cache  # planning and trial read the same file: standard input comes once
    def people_hold() -> ValuesOf:
        return ValuesOf.at(given_file, values_format, column=column, separator=separator, clip=clip, missing=missing)

    if values is None:
        planned = plan_for(people_hold(), epsilon or 0.0, labels, bounds, screen)
        loaded = StudyInput(planned, planned.survey).changed(made)
    else:
        loaded = load(study, made)
    loaded, _ = loaded.with_candidates(candidates)
    result: Result
    table = loaded.study if isinstance(loaded.study, Table) else None
    if table is not None and table.query is None and folder is None:
        raise InputError("a table is read by a query: --set query='SELECT ...', or --folder for one to ask in")
    if table is not None and truth and folder is not None:
        raise InputError("a folder may hold other people's reports too: of a table, --truth goes without --folder")
    if far:
        appends = table is not None and folder is not None
        check_far(seed, people, truth, appends, clip=clip, missing=missing is not None)
        if folder is None and not is_here(engine):
            raise InputError(
                "on a cluster, reports go into a folder that every worker reaches: say which with --folder"
            )
        with remarked() as remarks, counting(engine) as place:
            result = walk_far(place.spark, loaded.study, given_file, folder, column, progress)
        return {"task": loaded.survey.task, "seeded": False, **wanted.present(result, screen, remarks)}
    if table is not None and folder is not None:
        opened = check_folder(folder, table)
        had = 0 if opened is None else opened.people
    trial = Trial(loaded.study, people_hold(), people)
    for sentence in trial.moved.sentences():
        screen.print(sentence)
    known = {"task": loaded.survey.task, "seeded": seed is not None, **trial.moved.document()}
    before = 0
    with remarked() as remarks, counting(engine):
        if table is not None and folder is not None:
            rows = added(folder, table, trial.reports(seed, progress), opened, seeded=seed is not None)
            new = rows.people - had
            wrote(screen, folder, f"{plural(new, 'report')} of {plural(loaded.survey.layout.size, 'byte')}")
            screen.print_line(now_holds(rows))
            known |= {"folder": str(folder), "people": rows.people}
            if table.query is None:
                return known
            from veil.sql.execution.engine import run
            from veil.sql.language.parsing import parse

            result = run(parse(table.query, table), rows)
        else:
            result, before = trial.walk(folder, seed, progress)
    if before:
        screen.print(f"{plural(before, 'round')} had been answered before.")
    shown = wanted.present(result, screen, remarks, trial.held if truth and table is None else None)
    if table is not None and truth:
        shown["truth"] = show_truth(result, table, trial.walked, screen)
    return {**known, "answered_before": before, **shown}


@reporting
def compare(
    values: Values,
    studies: Annotated[str, typer.Option(help="The studies to compare, as in a.json,b.json.", metavar="FILES")],
    epsilon: Annotated[str, typer.Option(help="The privacy of one report: several, with commas.")] = "0.5,1,2",
    runs: Annotated[int, typer.Option(min=1, help="How often each study is run at each epsilon.")] = 5,
    people: PeopleOption = None,
    changes: Changes = None,
    column: Column = None,
    separator: Separator = ";",
    clip: Clip = False,
    missing: MissingValues = None,
    values_format: Format = None,
    seed: Seed = None,
    out: TableOut = None,
    plot: Picture = None,
    as_json: AsJson = False,
) -> Document:
    """Run several studies on your values at several epsilons, and compare their errors."""
    from veil.cli.input import check_inputs, listed_paths, read_study, some_seed
    from veil.cli.output import progress
    from veil.cli.showing import OutputOptions, remarked
    from veil.cli.values import ValueInput as ValuesOf
    from veil.comparison import compare as run_all
    from veil.errors import InputError

    warn_of_seed(seed)
    files = listed_paths(studies)
    try:
        epsilons = [float(part) for part in epsilon.split(",")]
    except ValueError:
        raise InputError("expected numbers with commas between them: --epsilon 0.5,1,2") from None
    hold = ValuesOf.at(values, values_format, column=column, separator=separator, clip=clip, missing=missing)
    check_inputs(*files, *hold.file.paths)
    wanted = OutputOptions(out, plot, 0.95, 10)
    wanted.check([*files, values])
    alike = len({file.stem for file in files}) < len(files)
    # a name need not be UTF-8; a label in a table is
    labels = [os.fsencode(file if alike else file.stem).decode(errors="backslashreplace") for file in files]
    found = {
        label: read_study(file).changed(**given_changes(changes)) for label, file in zip(labels, files, strict=True)
    }
    start = some_seed(seed)
    codes = {name: Trial(study, hold, people).people(start) for name, study in found.items()}
    with remarked() as remarks:
        result = run_all(found, codes, epsilons, runs, start, progress)
    return wanted.present(result, console(as_json), remarks)
