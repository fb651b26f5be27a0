"""`veil itemsets ...`: frequent items and sets of items, where each person holds a set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from veil.cli.outcome import AsJson, Document, Seed, console, plural, reporting, warn, warn_of_seed, wrote
from veil.cli.progress import progress

if TYPE_CHECKING:
    from veil.campaign import CampaignRun
    from veil.cli.mining import Mined

__all__ = ["itemsets_app"]

itemsets_app = typer.Typer(
    help="Find frequent items and itemsets in people's sets, round by round.", no_args_is_help=True
)

Epsilon = Annotated[float, typer.Option(help="The privacy of one report: smaller is more private.")]
K = Annotated[int, typer.Option("--k", "-k", help="How many items or sets to look for.")]
AsSets = Annotated[
    bool, typer.Option("--sets", help="Look for sets of items, single ones among them (SVSM, not SVIM).")
]
Confidence = Annotated[
    float | None,
    typer.Option(
        "--rules", help="Also association rules of at least this confidence, as in 0.5.", metavar="CONFIDENCE"
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write what is found here: .csv, .parquet, .arrow or .json.")
]
Folder = Annotated[Path, typer.Argument(help="The campaign's folder.")]


@itemsets_app.command()
@reporting
def plan(
    folder: Folder,
    epsilon: Epsilon,
    k: K,
    universe: Annotated[Path, typer.Option(help="All items there are, one a line.")],
    sets: AsSets = False,
    as_json: AsJson = False,
) -> Document:
    """Start a campaign: write the task of its first round into a folder."""
    from veil.cli import mining

    wanted = mining.Mining(k, epsilon, mining.universe_of(universe), sets)
    return _go_on(mining.start_folder(wanted, folder), folder, None, None, None, as_json)


@itemsets_app.command("next")
@reporting
def next_(
    folder: Folder,
    tally: Annotated[
        Path | None, typer.Argument(help="The tally of the current round; without it, say where the campaign stands.")
    ] = None,
    rules: Confidence = None,
    out: Out = None,
    as_json: AsJson = False,
) -> Document:
    """Take the answer to a round, and write the next round's task; after the last, show what was found."""
    from veil.cli import mining

    _check_output(out)
    return _go_on(mining.open_folder(folder), folder, tally, rules, out, as_json)


@itemsets_app.command()
@reporting
def simulate(
    values: Annotated[
        Path, typer.Argument(help="People's sets: lists in .parquet or .arrow, or text in .csv or .tsv.")
    ],
    epsilon: Epsilon,
    k: K,
    sets: AsSets = False,
    rules: Confidence = None,
    universe: Annotated[
        Path | None, typer.Option(help="All items there are, one a line; else those that the sets hold.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="The column that holds the sets, if there are several.")] = None,
    separator: Annotated[str, typer.Option(help="What stands between the items of a set, in text files.")] = ";",
    folder: Annotated[
        Path | None, typer.Option(help="Keep every round's answer here: after an interruption, go on from there.")
    ] = None,
    seed: Seed = None,
    out: Out = None,
    as_json: AsJson = False,
) -> Document:
    """The whole campaign on a file of sets: everybody's device is asked in one of the rounds."""
    from veil.cli import mining

    warn_of_seed(seed)
    _check_output(out, values)
    _check_rules(rules, sets)
    domain, held = mining.load_sets(values, column, separator, universe)
    if universe is None:
        warn("the items were listed from the sets themselves. Of real people the list must be public: --universe.")
    wanted = mining.Mining(k, epsilon, domain, sets)
    found, before = mining.mine_file(wanted, held, folder, seed, progress)
    if before:
        console(as_json).print(f"{plural(before, 'round')} had been answered before.")
    document = {"universe": domain.universe.size, "answered_before": before}
    return document | _show(found, rules, out, as_json)


def _go_on(
    run: CampaignRun, folder: Path, tally: Path | None, rules: float | None, out: Path | None, as_json: bool
) -> Document:
    from veil.cli import mining, tables

    task = mining.move_on(run, folder, tally)
    if run.round is None or task is None:
        return {"finished": True, **_show(run.result, rules, out, as_json)}
    if out is not None or rules is not None:
        warn("there is a round to go: --out and --rules wait for the end of the campaign.")
    asked = mining.round_document(run, run.round)
    screen = console(as_json)
    screen.print(f"Round {asked['round']}: ask {100 * asked['share']:g} % of the people, who were not asked before.")
    screen.print(tables.facts_table({name: asked[name] for name in ("view", "mechanism", "report_bytes")}))
    wrote(screen, task, f"the task {asked['task'][:12]}")
    return {"finished": False, **asked, "out": str(task)}


def _check_output(out: Path | None, *inputs: Path) -> None:
    from veil.cli import pipeline, results

    if out is not None:
        pipeline.check_output(out, inputs, results.TABLES)


def _check_rules(rules: float | None, sets: bool) -> None:
    if rules is not None and not sets:
        raise typer.BadParameter("--rules are read from sets of items: add --sets")


def _show(found: Mined, rules: float | None, out: Path | None, as_json: bool) -> Document:
    from veil.cli import mining, results
    from veil.itemsets import FrequentItemsets

    _check_rules(rules, isinstance(found, FrequentItemsets))
    read = found.rules(rules) if rules is not None and isinstance(found, FrequentItemsets) else None
    screen = console(as_json)
    for table in mining.mined_tables(found, read):
        screen.print(table)
    if out is not None:
        results.save_table(mining.mined_table(found, out.suffix.lower()), out)
        wrote(screen, out, "what was found")
    return mining.mined_document(found, read) | {"out": None if out is None else str(out)}
