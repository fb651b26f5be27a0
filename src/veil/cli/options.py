"""The options and arguments that commands share, each written once.

Nothing heavy is imported here: `veil --help` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from veil.cli.outcome import flag

__all__ = [
    "VALUES",
    "Candidates",
    "Changes",
    "Clip",
    "Collected",
    "Column",
    "Everything",
    "Format",
    "Given",
    "HeldDomain",
    "HeldLabels",
    "HeldLabelsFile",
    "Level",
    "MarginalOf",
    "MissingValues",
    "Out",
    "Picture",
    "Seed",
    "Separator",
    "StudyFile",
    "TableOut",
    "Top",
    "Values",
    "given_changes",
    "whole_number",
]

StudyFile = Annotated[
    Path,
    typer.Argument(
        metavar="STUDY",
        help="The study: a file that `veil plan` wrote, a bare task, or the folder of a run, for its current round.",
    ),
]
Collected = Annotated[
    list[Path], typer.Argument(help="Tallies, files of reports, or folders of tables: of different people.")
]
VALUES = "People's values: .csv, .tsv or .jsonl (also .gz), .parquet or .arrow; - is standard input, with --format."
Values = Annotated[Path, typer.Argument(metavar="VALUES", help=VALUES)]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="What VALUES is, where its ending does not say it: csv, tsv, jsonl, csv.gz, tsv.gz or jsonl.gz.",
    ),
]
MissingValues = Annotated[
    Literal["refuse", "skip", "category"] | None,
    typer.Option(
        "--missing",
        help="What becomes of people without a value: refused, left out and counted, or an answer of their own, shown"
        ' as "(missing)", where the study has one. Default: that answer where there is one, else refused.',
    ),
]

Seed = Annotated[int | None, typer.Option(help="For tests only: whoever knows it can undo the privacy.", metavar="N")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The file to write.")]
TableOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Write the table here, every row that is not hidden: .csv, .parquet, .arrow or .json;"
        " or the result itself, exactly, for `veil inspect` and `veil.results.load`: .result.json.",
    ),
]
Picture = Annotated[Path | None, typer.Option("--plot", help="Draw a picture of it here: .svg, .png or .pdf.")]
Level = Annotated[
    float,
    typer.Option(help="How sure intervals are; what is called significant is wrong with the remaining chance."),
]
Top = Annotated[int, typer.Option(min=1, help="How many rows to show, the most important ones.")]
Everything = Annotated[
    bool,
    flag("--all", "Show and write also what is not significant, or not changed: it may be nothing but noise."),
]
Column = Annotated[str | None, typer.Option(help="The column that holds the values, if there are several.")]
Separator = Annotated[str, typer.Option(help="What stands between the items of a set, in text files.")]
Clip = Annotated[
    bool, flag("--clip", "Move numbers outside the domain to its nearer end, and count them; also in records.")
]
Candidates = Annotated[
    Path | None,
    typer.Option(help="A text file with the values to count, one value per line: where there are too many to list."),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Read the reports in another way: a parameter of the study, as in method=admm or question=3."
        " Several are allowed.",
    ),
]
MarginalOf = Annotated[
    str | None,
    typer.Option(
        "--marginal",
        metavar="NAMES",
        help="Of a joint distribution: the attributes to show together, as in age,sex. Without it, each one alone.",
    ),
]
Given = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES", help="With --marginal: show it among people who are alike in these attributes, as in sex."
    ),
]

HeldDomain = Annotated[int | None, typer.Option(metavar="N", help="People hold one of the integers 0 .. N-1.")]
HeldLabels = Annotated[str | None, typer.Option(help="People hold one of these, as in tea,coffee,water.")]
HeldLabelsFile = Annotated[Path | None, typer.Option(help="The same from a text file, one label per line.")]


def given_changes(changes: list[str] | None, **named: str | None) -> dict[str, str]:
    """The parameters of `--set`, and those that have an option of their own; each given once."""
    made = {name: text for name, text in named.items() if text is not None}
    for change in changes or ():
        name, equals, text = change.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"--set takes NAME=VALUE, as in --set method=admm; got {change}")
        if name in made:
            raise typer.BadParameter(f"{name} is given twice")
        made[name] = text
    return made


def whole_number(text: str) -> int:
    """A whole number as people write it: 1000000, 1,000,000, 1_000_000 or 1e6."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        value = 0.5
    if value != int(value) if abs(value) < 2**53 else True:
        raise typer.BadParameter(f"{text!r} is no whole number")
    return int(value)
