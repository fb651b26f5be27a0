"""`veil estimate`, `veil difference` and `veil next`: what the reports say, and what changed between two of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veil.cli.engines import Engine, counting
from veil.cli.options import (
    Candidates,
    Changes,
    Collected,
    Everything,
    Given,
    Level,
    MarginalOf,
    Picture,
    StudyFile,
    TableOut,
    Top,
    given_changes,
)
from veil.cli.outcome import AsJson, Document, console, reporting, warn

__all__ = ["difference", "estimate", "next_round"]


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
    from veil.cli.files import collected_of, load
    from veil.cli.progress import progress
    from veil.cli.showing import Wanted, remarked
    from veil.errors import InputError
    from veil.study import OneRound

    made = given_changes(changes, marginal=marginal, given=given)
    loaded, _ = load(study, made).with_candidates(candidates)
    wanted = Wanted(out, plot, level, top, everything)
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
    from veil.cli.files import collected_of, load
    from veil.cli.progress import progress
    from veil.cli.showing import Wanted, remarked
    from veil.errors import InputError
    from veil.study import OneRound

    wanted, results = Wanted(out, plot, level, top, everything), []
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
    from veil.cli.progress import progress
    from veil.cli.rounds import goes_on, show_round
    from veil.cli.showing import Wanted, remarked

    wanted, screen = Wanted(out, plot, level, top, everything), console(as_json)
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
