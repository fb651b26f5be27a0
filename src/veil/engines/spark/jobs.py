"""A job of Spark from the driver's side: run to its end, watched by its stages, its failures told in one sentence.

Nothing of a job counts unless all of it came through. Where no worker takes up work for a while, Spark would wait for
ever; the job is ended then.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from veil import errors
from veil.engines.spark.tasks import OTHER_VERSION
from veil.engines.watching import Advance
from veil.errors import EngineError, VeilError
from veil.version import VERSION

__all__ = ["PATIENCE", "finished", "raised", "told", "watched"]

PATIENCE = 60.0
"""Seconds without any task at work after which a job is ended."""
_EVERY = 0.2

Found = TypeVar("Found")


def finished(spark: Any, work: Callable[[], Found], advance: Advance = lambda steps: None, people: int = 0) -> Found:
    """Run a job to its end. `advance` is told of so many people as its tasks come through."""
    told_of = [0]

    def so_far(done: int, tasks: int) -> None:
        now = people * done // tasks
        advance(max(0, now - told_of[0]))
        told_of[0] = max(told_of[0], now)

    with watched(spark, so_far) as gave_up, told(gave_up):
        found = work()
    so_far(1, 1)
    return found


@contextmanager
def watched(spark: Any, so_far: Callable[[int, int], None] = lambda done, tasks: None) -> Iterator[threading.Event]:
    """Look at the stages of a session's jobs; end those of this thread where no task has been at work for too long.

    `so_far` is told how many of how many tasks came through. Through Spark Connect the server decides for itself how
    long it waits.
    """
    if not hasattr(spark, "_jsparkSession"):
        with _handled(spark, so_far):
            yield threading.Event()
        return
    context, tag = spark.sparkContext, f"veil-{uuid.uuid4().hex}"
    done, gave_up = threading.Event(), threading.Event()

    def look() -> None:
        idle, before = 0.0, -1
        while not done.wait(_EVERY):
            at_work, completed, tasks = _progress(context)
            idle = idle + _EVERY if tasks and not at_work and completed == before else 0.0
            before = completed
            if tasks:
                so_far(completed, tasks)
            if idle > PATIENCE:
                gave_up.set()
                context.cancelJobsWithTag(tag)
                return

    watcher = threading.Thread(target=look, name="veil-spark-watch", daemon=True)
    context.addJobTag(tag)
    watcher.start()
    try:
        yield gave_up
    finally:
        done.set()
        watcher.join()
        if getattr(context, "_jsc", None) is not None:
            context.removeJobTag(tag)


def _progress(context: Any) -> tuple[int, int, int]:
    """Tasks at work, tasks that came through, and all tasks, of the stages that are under way."""
    try:
        tracker = context.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:  # the cluster was lost just now, and the job itself says so
        return 1, 0, 0
    known = [stage for stage in stages if stage is not None]
    return (
        sum(stage.numActiveTasks for stage in known),
        sum(stage.numCompletedTasks for stage in known),
        sum(stage.numTasks for stage in known),
    )


@contextmanager
def _handled(spark: Any, so_far: Callable[[int, int], None]) -> Iterator[None]:
    """The progress of Spark Connect."""

    def handle(stages: Any = None, **rest: Any) -> None:
        tasks = sum(stage.num_tasks for stage in stages or ())
        if tasks:
            so_far(sum(stage.num_completed_tasks for stage in stages), tasks)

    spark.registerProgressHandler(handle)
    try:
        yield
    finally:
        spark.removeProgressHandler(handle)


# -- what went wrong ---------------------------------------------------------------------------------------------------

_RAISED = re.compile(r"veil\.errors\.(\w+): (.*)")
_MISSING = re.compile(r"No module named '([\w.]+)'")
_LOST = ("stopped SparkContext", "SparkContext was shut down", "SparkContext has been shutdown", "UNAVAILABLE")


def raised(error: str) -> VeilError:
    """The error that a task gave back, as the driver raises it."""
    kind, _, message = error.partition("\n")
    if kind == OTHER_VERSION:
        return EngineError(
            f"a worker of the cluster has veil {message}, and {VERSION} was expected: nothing was counted"
        )
    made = getattr(errors, kind, EngineError)
    try:
        return made(message) if issubclass(made, VeilError) else EngineError(message)
    except TypeError:  # an error of more than one part
        return EngineError(message)


@contextmanager
def told(gave_up: threading.Event | None = None) -> Iterator[None]:
    """Tell whatever Spark says of a failure in one sentence of ours; messages that may hold values are left out."""
    try:
        yield
    except VeilError:
        raise
    except Exception as problem:
        if not type(problem).__module__.startswith(("pyspark", "py4j", "grpc")) and not isinstance(problem, OSError):
            raise
        if gave_up is not None and gave_up.is_set():
            raise EngineError(
                f"no worker of the cluster took up work for {PATIENCE:.0f} s: is it lost, or busy with others?"
            ) from None
        raise _translated(str(problem), type(problem).__name__) from None


def _translated(message: str, kind: str) -> VeilError:
    ours = _RAISED.findall(message)
    if ours and hasattr(errors, ours[-1][0]):
        return raised("\n".join(ours[-1]))
    missing = _MISSING.search(message)
    if missing and missing[1].partition(".")[0] == "veil":
        return EngineError(f"a worker of the cluster has no veil {VERSION}: install it there, or send it along")
    if missing:
        return EngineError(f"a worker of the cluster has no {missing[1]}: expected what 'veil-ldp[spark]' installs")
    if "PYTHON_VERSION_MISMATCH" in message:
        return EngineError("workers of the cluster run another Python: expected the driver's minor version")
    if "maxResultSize" in message:
        return EngineError(
            "what the tasks counted is more than the driver takes (spark.driver.maxResultSize): ask for fewer questions"
            " or candidates at once, or raise it"
        )
    if any(sign in message for sign in _LOST) or kind in ("Py4JNetworkError", "ConnectionRefusedError"):
        return EngineError("the cluster was lost: nothing was counted")
    found = re.findall(r"^(?:\w+\.)*(\w+(?:Error|Exception|Invalid)\w*)(?::|$)", message, re.MULTILINE)
    return EngineError(f"the job failed on the cluster ({found[-1] if found else kind}): Spark's log says why")
