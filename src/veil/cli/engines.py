"""`--engine`: where reports are counted. Nothing of it shows in a result."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from veil.engines import Streamed, Watch
    from veil.survey import Survey

__all__ = ["Engine", "Place", "address", "counting", "is_far", "is_here"]

LOCAL, CUDA = "local", "cuda"

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


class Place:
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

    def files(self, survey: Survey, paths: Sequence[Path], watch: Watch) -> Streamed:
        """Files of reports, counted here."""
        from veil.engines import InFiles

        if not self.on_spark:
            return InFiles(survey, paths, watch)
        from veil.engines.spark import SparkCollected
        from veil.engines.spark.pieces import Files, found_files
        from veil.engines.spark.session import check_installed

        check_installed(remote=self._engine.startswith("sc://"))
        # refuses what is no file of reports before Spark is started
        files = Files.of(survey, found_files([address(path) for path in paths]))
        return SparkCollected.files(self.spark, survey, files, watch)


def address(path: Path) -> str:
    """Return a path as it was written: of an address such as s3://bucket, `Path` keeps one slash.

    A local file that could be meant as well is refused; its path in full is no address.

    >>> address(Path("s3://bucket/reports")), address(Path("a/b.parquet"))
    ('s3://bucket/reports', 'a/b.parquet')
    """
    from veil.errors import InputError

    written = re.sub(r"^([a-z][a-z0-9+.-]+):/(?!/)", r"\1://", path.as_posix())
    if written != path.as_posix() and path.exists():
        raise InputError(f"{written} is an address, and {path} is a file here: for the file, give {path.resolve()}")
    return written


def _is_spark(engine: str) -> bool:
    from veil.engines.spark.session import is_spark

    return is_spark(engine)


@contextmanager
def counting(engine: str) -> Iterator[Place]:
    """Count on an engine while this lasts; refused in one sentence where it is not there."""
    from veil.errors import InputError

    if is_far(engine) and not _is_spark(engine):
        where = " (VEIL_ENGINE)" if os.environ.get("VEIL_ENGINE") == engine else ""
        raise InputError(
            f"there is no engine {engine!r}{where}: expected local, cuda, spark-local, spark://host:port or sc://host:port"
        )
    with ExitStack() as stack:
        if engine == CUDA:
            from veil.engines import gpu

            stack.enter_context(gpu.cuda())
        yield Place(engine, stack)
