"""A session of Spark for the command line: the settings that veil needs, and one sentence where Spark cannot start.

Whoever has a session hands it to `SparkCollected` as it is: nothing here is needed then.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from veil.errors import EngineError, InputError
from veil.tools.messages import install_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_installed", "is_spark", "open_session"]

LOCAL = "spark-local"
_WAIT = 10.0
_LOOPBACK = ("127.0.0.1", "localhost")


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
