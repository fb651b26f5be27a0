"""Sessions of Spark for the command line, and jobs as the driver runs them.

A session gets the settings that veil needs; an existing session is passed to `SparkCollection` as it is. A job is
watched by its stages, and its failures become one sentence. Nothing of a job counts unless all of it came through.
Where no worker takes up work for a while, Spark would wait forever; the job is ended then.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from veil import errors
from veil.engines.counting import Advance
from veil.engines.spark.tasks import OTHER_VERSION
from veil.errors import EngineError, InputError, VeilError
from veil.tools.messages import install_command
from veil.version import VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "spark-local"
PATIENCE = 60.0
"""Seconds without any task at work after which a job is ended."""
_EVERY = 0.2
_WAIT = 10.0
_LOOPBACK = ("127.0.0.1", "localhost")
_RAISED = re.compile(r"veil\.errors\.(\w+): (.*)")
_MISSING = re.compile(r"No module named '([\w.]+)'")
_LOST = ("stopped SparkContext", "SparkContext was shut down", "SparkContext has been shutdown", "UNAVAILABLE")
Found = TypeVar("Found")


def is_spark(engine: str) -> bool:
    """Whether an engine's name is one of Spark's: spark-local, spark://host:port, or sc://host:port for Connect."""
    return engine == LOCAL or engine.startswith(("spark://", "sc://"))


def check_installed(remote: bool = False) -> None:
    """Refuse in one sentence where Spark cannot run: no pyspark, or no Java."""
    missing = [name for name in ("pyspark", "pandas", *(("grpc",) if remote else ())) if find_spec(name) is None]
    if missing:
        more = ", and for Connect 'pyspark[connect]'" if remote else ""
        raise EngineError(f"counting on Spark needs {' and '.join(missing)}: {install_command('spark')}{more}")
    home = os.environ.get("JAVA_HOME")
    if not remote and not (shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")):
        where = f"in JAVA_HOME, {home}" if home else "on this machine"
        raise EngineError(f"Spark needs Java 17 or later, and there is none {where} (Debian: openjdk-17-jre-headless)")


def open_session(engine: str, **settings: str) -> SparkSession:
    """The session of an engine's name, set up for veil; `settings` are further ones of Spark's."""
    if not is_spark(engine):
        raise InputError(f"expected spark-local, spark://host:port or sc://host:port, got {engine}")
    remote = engine.startswith("sc://")
    check_installed(remote)
    host = None if engine == LOCAL else _reached(engine)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("veil")
    if remote:
        builder = builder.remote(engine)
    else:
        # workers must run this Python: `python3` of their PATH may lack everything
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master("local[*]" if engine == LOCAL else engine)
        settings = _usual(host, settings.get("spark.task.cpus", "1")) | settings
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
        session.range(1).schema  # noqa: B018  # a context that could not start fails here
    except Exception as problem:  # whatever py4j, grpc or Spark's own errors are
        reason = re.search(r"(UnsupportedClassVersionError|JAVA_GATEWAY_EXITED)", str(problem))
        why = "is its Java older than 17?" if reason else f"{type(problem).__name__}"
        raise EngineError(f"Spark could not start: {why}") from None
    return session


def _usual(host: str | None, cores: str) -> dict[str, str]:
    usual = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.executorEnv.VEIL_THREADS": cores,
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    }
    if host is None or host in _LOOPBACK:  # else a machine's name decides, which may be another interface's
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        usual |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if "NUMBA_CACHE_DIR" in os.environ:
        usual["spark.executorEnv.NUMBA_CACHE_DIR"] = os.environ["NUMBA_CACHE_DIR"]
    return usual


def _reached(engine: str) -> str:
    """The host of an address; refused where nobody answers, for which Spark would wait a minute."""
    found = re.fullmatch(r"(?:spark|sc)://([\w.-]+):(\d{1,5})(?:[/,].*)?", engine)
    if found is None:
        raise InputError(f"expected {engine.partition(':')[0]}://host:port, got {engine}")
    host, port = found[1], int(found[2])
    try:
        socket.create_connection((host, port), timeout=_WAIT).close()
    except (OSError, OverflowError):
        raise EngineError(f"no Spark answers at {host}:{port}: is its master running?") from None
    return host


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
