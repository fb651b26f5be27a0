"""Commands on reports and tallies: `randomize`, `tally`, `merge`, `estimate`, `difference`, `next`, `synthesize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veil.cli.options import (
    Candidates,
    Changes,
    Clip,
    Collected,
    Column,
    Engine,
    Everything,
    Format,
    Given,
    Level,
    MarginalOf,
    MissingValues,
    Out,
    Picture,
    Seed,
    Separator,
    StudyFile,
    TableOut,
    Top,
    Values,
    counting,
    given_changes,
    is_far,
)
from veil.cli.output import SEEDED, AsJson, Document, console, plural, progress, reporting, warn, warn_of_seed, wrote
from veil.errors import InputError

if TYPE_CHECKING:
    from veil.survey import SurveyTally

_SYNTHETIC_ENDINGS = (".csv", ".parquet", ".arrow")


@reporting
def randomize(
    study: StudyFile,
    values: Values,
    out: Out,
    column: Column = None,
    clip: Clip = False,
    separator: Separator = ";",
    missing: MissingValues = None,
    values_format: Format = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> Document:
    """Randomize each value into a report, as each person's device would.

    For a table, the output may be a folder: the reports are added to it as a new file. With a name that ends in .arrow
    or .parquet, the output is a single file.
    """
    from veil.cli.input import check_output, load
    from veil.cli.table_folders import added, check_folder, now_holds
    from veil.cli.values import RandomizedRows
    from veil.cli.values import ValueInput as ValuesOf
    from veil.files.arrow_files import ARROW, PARQUET
    from veil.sql import Table

    warn_of_seed(seed)
    asked, survey = load(study)
    table = asked if isinstance(asked, Table) and out.suffix.lower() not in (*ARROW, *PARQUET) else None
    if table is not None:
        found = check_folder(out, table)
    else:
        check_output(out, [study, values], (".arrow", ".parquet"))
    given = ValuesOf.at(values, values_format, column=column, separator=separator, clip=clip, missing=missing)
    done = RandomizedRows(asked, survey, given, progress, seed=seed)
    screen, now = console(as_json), None
    if table is not None:
        now = added(out, table, done, found, seeded=seed is not None)
    else:
        done.write(out)
    for sentence in done.moved.sentences():
        screen.print(sentence)
    wrote(screen, out, f"{plural(done.people, 'report')} of {plural(survey.layout.size, 'byte')}")
    counted: Document = {"people": done.people, **done.moved.document()}
    if now is not None:
        screen.print_line(now_holds(now))
        counted |= {"table": {"people": now.people, "files": len(now.files)}}
    return {"task": survey.task, **counted, "seeded": seed is not None, "out": str(out)}


@reporting
def tally(
    study: StudyFile,
    reports: Annotated[
        list[Path], typer.Argument(help="Files of reports: from `veil randomize`, or from `veil survey export`.")
    ],
    out: Out,
    changes: Changes = None,
    candidates: Candidates = None,
    engine: Engine = "local",
    as_json: AsJson = False,
) -> Document:
    """Count reports into a tally. Memory use does not grow with the number of people."""
    from veil.cli.input import check_inputs, check_output, load
    from veil.tools.filesystem import write_atomically
    from veil.wire.tallies import encode_tally

    loaded, chosen = load(study, given_changes(changes)).with_candidates(candidates)
    check_output(out, [study, *reports])
    if not is_far(engine):
        check_inputs(*reports)
    wanted = None if loaded.question is None else (loaded.question,)
    searched = "candidates" not in loaded.study.parameters()
    if searched and not all(question.mechanism.closed for question in loaded.survey.questions):
        kind = loaded.study.kind
        raise InputError(f"a study of kind {kind} goes through the reports themselves: give them to `veil estimate`")
    with counting(engine) as place:
        counted = place.files(loaded.survey, reports, progress).tally(wanted, chosen)
    write_atomically(out, encode_tally(counted))
    return _told(out, loaded.survey.task, counted, len(reports), as_json)


@reporting
def merge(
    study: StudyFile,
    tallies: Annotated[list[Path], typer.Argument(help="Tallies of the same task, over different people.")],
    out: Out,
    as_json: AsJson = False,
) -> Document:
    """Add tallies of one task. The sum equals a single tally of all reports."""
    from veil.cli.input import check_output, load, load_tallies
    from veil.tools.filesystem import write_atomically
    from veil.wire.tallies import encode_tally

    _, survey = load(study)
    check_output(out, [study, *tallies])
    merged = load_tallies(survey, tallies)
    write_atomically(out, encode_tally(merged))
    return _told(out, survey.task, merged, len(tallies), as_json)


def _told(out: Path, task: str, tally: SurveyTally, files: int, as_json: bool) -> Document:
    if tally.seeded:
        warn(SEEDED)
    beside = {"fakes": tally.fakes} if tally.fakes else {}
    among = f" and {plural(tally.fakes, 'fake')}" if beside else ""
    wrote(console(as_json), out, f"a tally of {plural(tally.people, 'report')}{among} from {plural(files, 'file')}")
    return {"task": task, "people": tally.people, **beside, "seeded": tally.seeded, "files": files, "out": str(out)}


@reporting
def estimate(
    study: StudyFile,
    collected: Collected,
    marginal: MarginalOf = None,
    given: Given = None,
    changes: Changes = None,
    candidates: Candidates = None,
    level: Level = 0.95,
    top: Top = 10,
    everything: Everything = False,
    engine: Engine = "local",
    out: TableOut = None,
    plot: Picture = None,
    as_json: AsJson = False,
) -> Document:
    """Estimate the result of a study, with errors: frequencies, a distribution, a mean or frequent values."""
    from veil.cli.input import collected_of, load
    from veil.cli.results import OutputOptions, remarked
    from veil.study import OneRound

    made = given_changes(changes, marginal=marginal, given=given)
    loaded, _ = load(study, made).with_candidates(candidates)
    wanted = OutputOptions(out, plot, level, top, everything)
    wanted.check([study, *collected])
    if not isinstance(loaded.study, OneRound):
        raise InputError("this study takes several rounds: `veil next FOLDER` goes through them")
    with remarked() as remarks, counting(engine) as place:
        result = loaded.study.read(collected_of(loaded.survey, collected, progress, place))
    return {"task": loaded.survey.task, **wanted.present(result, console(as_json), remarks)}


@reporting
def difference(
    study: StudyFile,
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="A tally, a file of reports, or a table's folder: the earlier one.")
    ],
    after: Annotated[
        Path, typer.Argument(metavar="AFTER", help="A tally, a file of reports, or a table's folder: the later one.")
    ],
    asked_before: Annotated[
        Path | None,
        typer.Option("--before-study", metavar="STUDY", help="The study of BEFORE, where it was another one."),
    ] = None,
    changes: Changes = None,
    candidates: Candidates = None,
    level: Level = 0.95,
    top: Top = 10,
    everything: Everything = False,
    out: TableOut = None,
    plot: Picture = None,
    as_json: AsJson = False,
) -> Document:
    """Estimate the change between two collections, with intervals: for example two months or two groups."""
    from veil.cli.input import collected_of, load
    from veil.cli.results import OutputOptions, remarked
    from veil.study import OneRound

    wanted, results = OutputOptions(out, plot, level, top, everything), []
    wanted.check([study, before, after, *([] if asked_before is None else [asked_before])])
    with remarked() as remarks:
        for asked, collected in ((study, after), (asked_before or study, before)):
            loaded, _ = load(asked, given_changes(changes)).with_candidates(candidates)
            if not isinstance(loaded.study, OneRound):
                raise InputError("differences are taken between studies of one round")
            results.append(loaded.study.read(collected_of(loaded.survey, [collected], progress)))
        change = results[0].difference(results[1])
    return wanted.present(change, console(as_json), remarks)


@reporting
def next_round(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the study keeps what it took.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="A study, to begin with; later the current round's tallies or files of reports."
            " With nothing, say where the study stands."
        ),
    ] = None,
    changes: Changes = None,
    level: Level = 0.95,
    top: Top = 10,
    everything: Everything = False,
    engine: Engine = "local",
    out: TableOut = None,
    plot: Picture = None,
    as_json: AsJson = False,
) -> Document:
    """Read the reports of a round and write the task of the next round; after the last round, show the result."""
    from veil.cli.input import goes_on, show_round
    from veil.cli.results import OutputOptions, remarked

    wanted, screen = OutputOptions(out, plot, level, top, everything), console(as_json)
    wanted.check(files or [])
    with remarked() as remarks, counting(engine) as place:
        run = goes_on(folder, files or [], given_changes(changes), progress, place)
    if run.result is not None:
        return {"finished": True, "answered": run.finished, **wanted.present(run.result, screen, remarks)}
    for remark in remarks:
        warn(remark)
    if out is not None or plot is not None:
        warn("there is a round to go: --out and --plot wait for the result.")
    return show_round(run, folder, screen)


@reporting
def synthesize(
    study: StudyFile,
    collected: Collected,
    people: Annotated[int, typer.Option("--people", "-n", min=1, metavar="N", help="How many people to make up.")],
    out: Out,
    changes: Changes = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Make up the same people again.")] = None,
    as_json: AsJson = False,
) -> Document:
    """Generate synthetic records from an estimated joint distribution (.csv, .parquet or .arrow)."""
    from veil.cli.input import check_output, collected_of, load
    from veil.cli.results import remarked
    from veil.marginals import JointStudy
    from veil.results.render.files import arrow_bytes
    from veil.tools.filesystem import write_atomically

    loaded = load(study, given_changes(changes))
    check_output(out, [study, *collected], _SYNTHETIC_ENDINGS)
    if not isinstance(loaded.study, JointStudy):
        raise InputError(
            f"people are made up from a joint distribution, which a study of kind {loaded.study.kind} does not read:"
            " `veil plan marginals` plans one"
        )
    with remarked() as remarks:
        found = loaded.study.read(collected_of(loaded.survey, collected, progress))
        with progress("making up people", people) as advance:
            made = found.synthesize(people, seed)
            advance(people)
    write_atomically(out, arrow_bytes(made, out.suffix.lower().removeprefix(".")))
    facts = found.facts()
    of = f"{plural(facts['views'], 'set')} of up to {facts['largest_view']}" if "views" in facts else "pairs of"
    said = (
        f"These people are made up: none of them is one of the {found.n:,} who answered. Together they follow what was"
        f" estimated for {of} attributes, with the errors that `veil estimate` shows; what nobody was asked for"
        " together is as mixed as that allows."
    )
    screen = console(as_json)
    wrote(screen, out, f"{plural(made.num_rows, 'row')} of {plural(made.num_columns, 'attribute')}")
    screen.print(said)
    for remark in remarks:
        warn(remark)
    known = {"task": loaded.survey.task, "people": found.n, "made_up": made.num_rows, "columns": made.column_names}
    return {**known, "seeded": seed is not None, "remarks": [said, *remarks], "out": str(out)}
