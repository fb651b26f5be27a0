"""`veil hitters ...`: the most frequent strings, where there are too many to list."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veil.cli.outcome import AsJson, Document, Seed, console, plural, reporting, warn_of_seed, wrote
from veil.cli.progress import progress

if TYPE_CHECKING:
    from veil.hitters import HeavyHitters

__all__ = ["hitters_app"]

hitters_app = typer.Typer(help="Find the most frequent strings, without a list of candidates.", no_args_is_help=True)

Epsilon = Annotated[float, typer.Option(help="The privacy of one report: smaller is more private.")]
K = Annotated[int, typer.Option("--k", "-k", help="How many values to look for.")]
MaxBytes = Annotated[
    int | None, typer.Option(help="People hold text of at most so many bytes; 16 if nothing is said. Longer is cut.")
]
BitCount = Annotated[
    int | None, typer.Option("--bits", help="People hold strings of M bits, as integers.", metavar="M")
]
Oracle = Annotated[
    str | None, typer.Option(help="OLH, or PGR, which decodes all continuations of a prefix at once; OLH if not said.")
]
Budget = Annotated[
    int | None, typer.Option(help="Candidates tried over all rounds: more is more accurate; 2^20 if not said.")
]
Alphabet = Annotated[
    str | None, typer.Option(help="Of text: try only words of these letters, as in abcdefghijklmnopqrstuvwxyz.")
]
Threshold = Annotated[
    float | None, typer.Option(help="Only values that at least this share of the people hold, as in 0.01.")
]
Column = Annotated[str | None, typer.Option(help="The column that holds the values, if there are several.")]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write the values found here: .csv, .parquet, .arrow or .json.")
]


@hitters_app.command()
@reporting
def plan(
    epsilon: Epsilon,
    k: K,
    max_bytes: MaxBytes = None,
    bits: BitCount = None,
    oracle: Oracle = None,
    budget: Budget = None,
    alphabet: Alphabet = None,
    users: Annotated[int, typer.Option(min=1, help="How many people will take part.")] = 1_000_000,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the task here.")] = None,
    as_json: AsJson = False,
) -> Document:
    """Say which prefixes people are asked for and what can be found, and write the task."""
    from veil.cli import pipeline, searching

    if out is not None:
        pipeline.check_output(out)
    search = searching.Wanted(k, max_bytes, bits, oracle, budget, alphabet).search(epsilon)
    document = searching.plan_document(search, users)
    screen = console(as_json)
    screen.print(searching.plan_table(document, search.domain))
    screen.print(
        f"{document['queries']:,} candidates in all, reports of {document['report_bytes']} bytes;"
        f" {search.keep} prefixes are kept from round to round."
    )
    if out is not None:
        pipeline.save_survey(search.survey, out)
        wrote(screen, out, f"the task {search.survey.task[:12]}")
    return document | {"task": search.survey.task, "out": None if out is None else str(out)}


@hitters_app.command()
@reporting
def find(
    task: Annotated[Path, typer.Argument(metavar="TASK", help="The task: a file that `veil hitters plan` wrote.")],
    reports: Annotated[
        list[Path], typer.Argument(help="Files of reports: from `veil randomize`, or `veil survey export`.")
    ],
    k: K,
    alphabet: Alphabet = None,
    threshold: Threshold = None,
    out: Out = None,
    as_json: AsJson = False,
) -> Document:
    """Search stored reports: as often as one likes, for any number of values, with memory for a chunk of people."""
    from veil.cli import pipeline, searching

    survey = pipeline.load_survey(task)
    _check_output(out, [task, *reports])
    search = searching.search_of(survey, searching.Wanted(k, alphabet=alphabet, threshold=threshold))
    found = searching.find_in_files(search, reports, progress)
    return {"task": survey.task, "files": len(reports), **_show(found, out, as_json)}


@hitters_app.command()
@reporting
def simulate(
    values: Annotated[Path, typer.Argument(help="People's values: .csv, .tsv, .parquet or .arrow.")],
    epsilon: Epsilon,
    k: K,
    max_bytes: MaxBytes = None,
    bits: BitCount = None,
    oracle: Oracle = None,
    budget: Budget = None,
    alphabet: Alphabet = None,
    threshold: Threshold = None,
    column: Column = None,
    seed: Seed = None,
    truth: Annotated[
        bool, typer.Option("--truth", help="Beside each value its true share in the file: for trials, not private.")
    ] = False,
    out: Out = None,
    as_json: AsJson = False,
) -> Document:
    """The whole way on a file of values: everybody's device reports once, then the reports are searched."""
    from veil.cli import pipeline, searching

    warn_of_seed(seed)
    _check_output(out, [values])
    search = searching.Wanted(k, max_bytes, bits, oracle, budget, alphabet, threshold).search(epsilon)
    with tempfile.TemporaryDirectory() as folder:
        reports = Path(folder) / "reports.arrow"
        pipeline.randomize_file(search.survey, values, reports, progress, column=column, seed=seed)
        found = searching.find_in_files(search, [reports], progress)
    known: dict[str, Any] = {"task": search.survey.task, "report_bytes": search.survey.layout.size}
    if not truth:
        return known | _show(found, out, as_json)
    shares, hits = searching.true_shares(search, values, column, found)
    shown = _show(found, out, as_json, shares)
    console(as_json).print(f"{hits} of the {plural(k, 'most frequent value')} were found.")
    return known | shown | {"found": hits}


def _check_output(out: Path | None, inputs: list[Path]) -> None:
    from veil.cli import pipeline, results

    if out is not None:
        pipeline.check_output(out, inputs, results.TABLES)


def _show(found: HeavyHitters, out: Path | None, as_json: bool, truth: list[float] | None = None) -> Document:
    from veil.cli import results, searching

    screen = console(as_json)
    for table in searching.hitters_tables(found, truth):
        screen.print(table)
    document = searching.hitters_document(found, truth)
    surely = sum(row["significant"] for row in document["hitters"])
    screen.print(
        f"{surely} of them are significant: estimated above {100 * document['threshold']:.2f} %, which no candidate"
        " that nobody holds exceeds, at alpha = 0.05."
    )
    if out is not None:
        results.save_table(searching.hitters_table(found), out)
        wrote(screen, out, plural(len(found), "value"))
    return document | {"out": None if out is None else str(out)}
