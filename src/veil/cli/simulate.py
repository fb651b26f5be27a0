"""`veil simulate` and `veil compare`: whole studies on people whose values are known, before a real collection."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

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
from veil.cli.output import AsJson, Document, console, flag, plural, progress, reporting, warn_of_seed, wrote
from veil.errors import InputError

if TYPE_CHECKING:
    from veil.results.base import Result

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
    from veil.cli.results import OutputOptions, remarked
    from veil.cli.table_folders import added, check_folder, now_holds
    from veil.cli.trials import Trial, check_far, plan_for, show_truth, walk_far
    from veil.cli.values import ValueInput
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
    def people_hold() -> ValueInput:
        return ValueInput.at(given_file, values_format, column=column, separator=separator, clip=clip, missing=missing)

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
    from veil.cli.results import OutputOptions, remarked
    from veil.cli.trials import Trial
    from veil.cli.values import ValueInput
    from veil.comparison import compare as run_all

    warn_of_seed(seed)
    files = listed_paths(studies)
    try:
        epsilons = [float(part) for part in epsilon.split(",")]
    except ValueError:
        raise InputError("expected numbers with commas between them: --epsilon 0.5,1,2") from None
    hold = ValueInput.at(values, values_format, column=column, separator=separator, clip=clip, missing=missing)
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
