"""The commands of `veil`: parse, call, print.

Everything heavy is imported inside a command, so that `veil --help` answers at once.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veil import __version__
from veil.cli.collecting import check_installed, serve, survey_app, token_app
from veil.cli.hitters import hitters_app
from veil.cli.itemsets import itemsets_app
from veil.cli.outcome import (
    EXIT_CODES,
    AsJson,
    Document,
    Seed,
    console,
    plural,
    reporting,
    warn,
    warn_of_seed,
    wrote,
)
from veil_papers import EXPERIMENTS

if TYPE_CHECKING:
    from veil.cli.pipeline import Watch

__all__ = ["app", "run"]

_EPILOG = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()) + "."

app = typer.Typer(
    name="veil",
    help="Statistics from people without learning anybody's answer, by local differential privacy.",
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with local variables would show people's values
)

app.add_typer(hitters_app, name="hitters")
app.add_typer(itemsets_app, name="itemsets")
app.command()(serve)
app.add_typer(survey_app, name="survey")
app.add_typer(token_app, name="token")

Task = Annotated[Path, typer.Argument(metavar="TASK", help="The task: a file that `veil plan --out` wrote.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The file to write.")]
Smoothing = Literal["ems", "em", "auto"]  # as in `estimating`, which is too heavy to import here
Method = Literal["exact", "admm", "consistent"]


def run() -> None:
    """The entry point of the `veil` command."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `veil ... | head` ends quietly, as other tools do
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a label that the terminal cannot write is no reason to fail
    app()


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    """Statistics from people without learning anybody's answer, by local differential privacy."""
    if version:
        typer.echo(f"veil {__version__}")
        raise typer.Exit


@app.command()
@reporting
def plan(
    epsilon: Annotated[float, typer.Option(help="The privacy of one report: smaller is more private.")],
    domain: Annotated[int | None, typer.Option(help="People hold one of the integers 0 .. N-1.", metavar="N")] = None,
    labels: Annotated[str | None, typer.Option(help="People hold one of these, as in tea,coffee,water.")] = None,
    labels_file: Annotated[Path | None, typer.Option(help="The same from a text file, one label a line.")] = None,
    numeric: Annotated[
        tuple[str, str] | None,
        typer.Option(help="People hold a number from LO to HI, or a time: 2026-01-01 2027-01-01.", metavar="LO HI"),
    ] = None,
    integers: Annotated[bool, typer.Option("--integers", help="With --numeric: a whole number.")] = False,
    buckets: Annotated[
        int | None, typer.Option(help="With --numeric: how fine the distribution is; 1024 if not said.")
    ] = None,
    mean: Annotated[bool, typer.Option("--mean", help="With --numeric: ask for the mean and nothing else.")] = False,
    users: Annotated[int, typer.Option(help="How many people will take part.")] = 1_000_000,
    oracle: Annotated[str | None, typer.Option(help="Write this oracle's task, not the chosen one's.")] = None,
    max_report_bytes: Annotated[int | None, typer.Option(help="The longest report that may be sent.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the task here.")] = None,
    as_json: AsJson = False,
) -> Document:
    """Compare what each oracle would cost and reach, and write the task of one."""
    given = [option for option in (domain, labels, labels_file, numeric) if option is not None]
    if len(given) != 1:
        raise typer.BadParameter("give exactly one of --domain, --labels, --labels-file and --numeric")
    if numeric is None and (integers or buckets is not None or mean):
        raise typer.BadParameter("--integers, --buckets and --mean go with --numeric")
    from veil.cli import numbers, pipeline, planning, tables

    if out is not None:
        pipeline.check_output(out, [labels_file] if labels_file else [])
    screen = console(as_json)
    if numeric is not None:
        held = planning.numeric_domain_of(*numeric, integers=integers, buckets=buckets)
        found = planning.choose_numeric(
            held, epsilon, users, buckets=buckets, mean=mean, name=oracle, max_report_bytes=max_report_bytes
        )
        screen.print(numbers.numeric_plan_table(found, users, max_report_bytes))
        screen.print(f"[bold green]*[/] {found.why}")
        survey, name, document = found.taken.survey, found.taken.name, numbers.numeric_plan_document(found, users)
    else:
        labelled = planning.domain_of(domain, labels, labels_file)
        chosen = planning.plan(labelled, epsilon, users, max_report_bytes, oracle)
        screen.print(tables.plan_table(chosen.choice, users, max_report_bytes))
        screen.print(f"[bold green]*[/] {chosen.choice.why}")
        survey, document = chosen.survey, tables.plan_document(chosen.choice, users)
        name = survey.questions[0].mechanism.name
        if chosen.named:
            screen.print(f"The task is that of {name}, as asked.")
    if out is not None:
        pipeline.save_survey(survey, out)
        wrote(screen, out, f"the task {survey.task[:12]}")
    return document | {"oracle": name, "task": survey.task, "out": _name(out)}


@app.command()
@reporting
def randomize(
    task: Task,
    values: Annotated[Path, typer.Argument(help="People's values: .csv, .tsv, .parquet or .arrow.")],
    out: Out,
    column: Annotated[str | None, typer.Option(help="The column that holds the values, if there are several.")] = None,
    seed: Seed = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Move numbers outside the domain to its nearer end, and count them.")
    ] = False,
    separator: Annotated[str, typer.Option(help="What stands between the items of a set, in text files.")] = ";",
    as_json: AsJson = False,
) -> Document:
    """Turn every person's value into a report, as their device would."""
    from veil.cli import pipeline

    warn_of_seed(seed)
    survey = pipeline.load_survey(task)
    pipeline.check_output(out, [task, values], (".arrow",))
    done = pipeline.randomize_file(
        survey, values, out, _watch(), column=column, seed=seed, clip=clip, separator=separator
    )
    screen = console(as_json)
    if clip:
        were = "was" if done.clipped == 1 else "were"
        screen.print(f"{plural(done.clipped, 'value')} {were} outside and {were} clipped")
    wrote(screen, out, f"{done.people:,} reports of {survey.layout.size} bytes")
    counted = {"people": done.people, "clipped": done.clipped if clip else None}
    return {"task": survey.task, **counted, "seeded": seed is not None, "out": str(out)}


@app.command()
@reporting
def tally(
    task: Task,
    reports: Annotated[list[Path], typer.Argument(help="Files of reports that `veil randomize` wrote.")],
    out: Out,
    candidates: Annotated[
        Path | None, typer.Option(help="Values to count, one a line: needed where the domain cannot be listed.")
    ] = None,
    as_json: AsJson = False,
) -> Document:
    """Count what the reports support; memory does not grow with the number of people."""
    from veil.cli import pipeline

    survey = pipeline.load_survey(task)
    pipeline.check_output(out, [task, *reports])
    domain = survey.question(0).mechanism.domain
    chosen = None if candidates is None else pipeline.read_candidates(candidates, domain)
    counted = pipeline.tally_files(survey, reports, _watch(), chosen)
    pipeline.save_tally(counted, out)
    wrote(console(as_json), out, f"a tally of {counted.people:,} reports from {plural(len(reports), 'file')}")
    return {"task": survey.task, "people": counted.people, "files": len(reports), "out": str(out)}


@app.command()
@reporting
def merge(
    task: Task,
    tallies: Annotated[list[Path], typer.Argument(help="Tallies of the same task, over different people.")],
    out: Out,
    as_json: AsJson = False,
) -> Document:
    """Add tallies up: the same as one tally of all their reports."""
    from veil.cli import pipeline

    survey = pipeline.load_survey(task)
    pipeline.check_output(out, [task, *tallies])
    merged = pipeline.load_tallies(survey, tallies)
    pipeline.save_tally(merged, out)
    wrote(console(as_json), out, f"a tally of {merged.people:,} reports from {plural(len(tallies), 'file')}")
    return {"task": survey.task, "people": merged.people, "files": len(tallies), "out": str(out)}


@app.command()
@reporting
def estimate(
    task: Task,
    tally: Annotated[Path, typer.Argument(help="A tally that `veil tally` or `veil merge` wrote.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write all values here: .csv, .parquet, .arrow or .json.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the largest values or the distribution here: .svg, .png or .pdf.")
    ] = None,
    top: Annotated[int | None, typer.Option(min=1, help="How many values to show; 10 if not said.")] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Chance that any value called significant is held by nobody; 0.05 if not said."
        ),
    ] = None,
    question: Annotated[int | None, typer.Option(min=0, help="Only this question, counted from 0.")] = None,
    post: Annotated[
        str | None, typer.Option(help="Post-process: auto, or a method that `veil post --list` shows.", metavar="NAME")
    ] = None,
    smoothing: Annotated[
        Smoothing | None, typer.Option(help="Of SquareWave: ems, em without smoothing, or auto, which finds spikes.")
    ] = None,
    method: Annotated[
        Method | None, typer.Option(help="Of a Hierarchy: exact, admm, or consistent, which may be negative.")
    ] = None,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="Of a Hierarchy: weigh its levels by their variances.")
    ] = False,
    bands: Annotated[
        int | None, typer.Option(help="95 % bands of a distribution, from so many simulated surveys.", metavar="N")
    ] = None,
    as_json: AsJson = False,
) -> Document:
    """Estimate frequencies with 95 % intervals; of numbers, their distribution or their mean."""
    from veil.cli.estimating import Wanted, estimate_file, reading_of

    screen = console(as_json)
    how = reading_of(smoothing, method, weighted=weighted)
    wanted = Wanted(out, plot, top, alpha, question, post, bands)
    document = estimate_file(task, tally, screen, how, wanted)
    for remark in document["remarks"]:
        warn(remark)
    for path, what in ((out, "all values"), (plot, "the picture")):
        if path is not None:
            wrote(screen, path, what)
    return document | {"out": _name(out), "plot": _name(plot)}


@app.command()
@reporting
def post(
    name: Annotated[str | None, typer.Argument(help="One method to read about.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="All methods in a table: the same as without a name.")] = False,
    as_json: AsJson = False,
) -> Document:
    """List the post-processing methods: what each enforces, what it is good for, how it is biased."""
    from veil.cli import tables
    from veil.post import METHODS, method

    chosen = [method(name)] if name is not None else list(METHODS.values())
    console(as_json).print(tables.methods_table(chosen))
    facts = ("name", "enforces", "good_for", "bias")
    return {"methods": [{fact: getattr(entry, fact) for fact in facts} for entry in chosen]}


@app.command()
@reporting
def inspect(
    file: Annotated[Path, typer.Argument(help="A task, a file of reports or a tally.")],
    task: Annotated[Path | None, typer.Option(help="Check the whole file against this task.")] = None,
    as_json: AsJson = False,
) -> Document:
    """Say in plain words what a file is."""
    from veil.cli import pipeline, tables
    from veil.cli.inspecting import inspect_file

    sentence, facts = inspect_file(file, None if task is None else pipeline.load_survey(task))
    screen = console(as_json)
    screen.print(sentence, markup=False)
    screen.print(tables.facts_table(facts))
    return facts | {"file": str(file)}


@app.command()
@reporting
def demo(
    offline: Annotated[
        bool, typer.Option("--offline", help="Through files instead: randomize, tally, merge, estimate, picture.")
    ] = False,
    people: Annotated[
        int | None, typer.Option(min=100, help="How many people to make up: 20,000, or 200,000 with --offline.")
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="With --offline: where the files go, demo if not said.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="With --offline: make the reports repeatable (the people always are).")
    ] = None,
    as_json: AsJson = False,
) -> Document:
    """Walk the whole way with made-up people: a collector, devices that report over HTTP, and what it learns."""
    if offline:
        from veil.cli.demo import walk

        return walk(folder or Path("demo"), people or 200_000, seed, console(as_json), _watch())
    if folder is not None or seed is not None:
        raise typer.BadParameter("--folder and --seed go with --offline")
    check_installed()
    from veil.cli.demo_online import walk_online

    return walk_online(people or 20_000, console(as_json), _watch())


@app.command()
@reporting
def reproduce(
    experiment: Annotated[
        str | None, typer.Argument(help=f"One of {', '.join(EXPERIMENTS)}. Without a name: list them.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer runs and points: at most a minute; verdicts are indicative.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder to write. Default: docs/reproduction/NAME, or reproduction/NAME."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The folder with the real data. Default: VEIL_DATA, or else a made-up stand-in."),
    ] = None,
    as_json: AsJson = False,
) -> Document:
    """Run a paper's experiment again: its tables, its figures, and its claims with a verdict."""
    from veil.cli.reproducing import list_experiments, reproduce_experiment

    if experiment is None:
        return list_experiments(console(as_json))
    return reproduce_experiment(experiment, quick, out, data, console(as_json), _watch())


def _watch() -> Watch:
    from veil.cli.progress import progress

    return progress


def _name(path: Path | None) -> str | None:
    return None if path is None else str(path)
