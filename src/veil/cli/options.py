"""Options and arguments that several commands share, their completion in a shell, and the engine that counts.

The result does not depend on `--engine`. Nothing heavy is imported here, so that `veil --help` starts quickly; names
for completion are imported when they are needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from veil.cli.output import flag
from veil.errors import InputError

if TYPE_CHECKING:
    from veil.engines import ReportStream, Watch
    from veil.survey import Survey

Names = list[tuple[str, str]]
LOCAL, CUDA = "local", "cuda"


def goals() -> Names:
    """The goals and kinds of studies that `veil plan` takes."""
    from veil.planning import GOALS, goal_of
    from veil.study import STUDIES

    return [(kind, goal_of(kind).summary) for kind in (*GOALS, *(kind for kind in STUDIES if kind not in GOALS))]


def methods() -> Names:
    """The methods of post-processing."""
    from veil.post import METHODS

    return [(name, method.good_for) for name, method in METHODS.items()]


def experiments() -> Names:
    """What `veil reproduce` runs."""
    from veil_papers import EXPERIMENTS

    return [(name, experiment.paper) for name, experiment in EXPERIMENTS.items()]


def scopes() -> Names:
    """What a token of the collector may be allowed to do."""
    from veil.collector.keys_and_tokens import SCOPES

    return list(SCOPES.items())


Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        envvar="VEIL_ENGINE",
        metavar="ENGINE",
        help="Where reports are counted: local, cuda for a GPU, spark-local for Spark on this machine,"
        " spark://host:port for a cluster, or sc://host:port through Spark Connect. The result is the same.",
    ),
]


def is_far(engine: str) -> bool:
    """Whether an engine is one of Spark's, which takes folders and addresses beside files."""
    return engine not in (LOCAL, CUDA)


def is_here(engine: str) -> bool:
    """Whether all of an engine runs on this machine, as far as its name tells."""
    return not is_far(engine) or re.match(r"spark-local$|\w+://(127\.0\.0\.1|localhost)[:/]", engine) is not None


class CountingPlace:
    """Where a command counts. A session of Spark is opened when it is first needed."""

    def __init__(self, engine: str, stack: ExitStack) -> None:
        self._engine, self._stack = engine, stack

    @property
    def on_spark(self) -> bool:
        """Whether Spark counts."""
        return is_far(self._engine)

    @cached_property
    def spark(self) -> Any:
        """The session."""
        from veil.engines.spark import open_session

        session = open_session(self._engine)
        self._stack.callback(session.stop)
        return session

    def files(self, survey: Survey, paths: Sequence[Path], watch: Watch) -> ReportStream:
        """Files of reports, counted here."""
        from veil.engines import FileCollection

        if not self.on_spark:
            return FileCollection(survey, paths, watch)
        from veil.engines.spark import SparkCollection
        from veil.engines.spark.pieces import Files, found_files
        from veil.engines.spark.session import check_installed

        check_installed(remote=self._engine.startswith("sc://"))
        # refuses what is no file of reports before Spark is started
        files = Files.of(survey, found_files([address(path) for path in paths]))
        return SparkCollection.files(self.spark, survey, files, watch)


def address(path: Path) -> str:
    """Return a path as it was written: of an address such as s3://bucket, `Path` keeps one slash.

    A local file that could be meant as well is refused; its path in full is no address.

    >>> address(Path("s3://bucket/reports")), address(Path("a/b.parquet"))
    ('s3://bucket/reports', 'a/b.parquet')
    """
    written = re.sub(r"^([a-z][a-z0-9+.-]+):/(?!/)", r"\1://", path.as_posix())
    if written != path.as_posix() and path.exists():
        raise InputError(f"{written} is an address, and {path} is a file here: for the file, give {path.resolve()}")
    return written


def _is_spark(engine: str) -> bool:
    from veil.engines.spark.session import is_spark

    return is_spark(engine)


@contextmanager
def counting(engine: str) -> Iterator[CountingPlace]:
    """Count on an engine while this lasts; refused in one sentence where it is not there."""
    if is_far(engine) and not _is_spark(engine):
        where = " (VEIL_ENGINE)" if os.environ.get("VEIL_ENGINE") == engine else ""
        raise InputError(
            f"there is no engine {engine!r}{where}: expected local, cuda, spark-local, spark://host:port or"
            " sc://host:port"
        )
    with ExitStack() as stack:
        if engine == CUDA:
            from veil.engines import gpu

            stack.enter_context(gpu.cuda())
        yield CountingPlace(engine, stack)


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
