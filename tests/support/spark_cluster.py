"""A standalone cluster of Spark on this machine: a master and workers, each a process that can be killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from tests.patience import until

ROOT = Path(__file__).parents[2]


class Cluster:
    """A master and some workers with one core each; `environment` is what their executors see besides."""

    def __init__(self, folder: Path, workers: int = 2, environment: dict[str, str] | None = None) -> None:
        self._folder, self._many = folder, workers
        import pyspark

        self._home = Path(pyspark.__file__).parent
        self._environment = {
            **os.environ,
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": "512m",
            **(environment or {}),
        }
        self._processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[int] = []
        """The processes of the workers."""
        self.master, self.master_process = "", 0

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        log = self._folder / "master.log"
        self.master_process = self._start(
            "master.Master", log, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
        )
        self.master = until(lambda: self._said(log, r"spark://127\.0\.0\.1:\d+"), lambda: log.read_text())
        for i in range(self._many):
            self.add_worker(i)
        until(lambda: log.read_text().count("Registering worker") >= self._many, lambda: log.read_text())
        return self

    def add_worker(self, number: int) -> None:
        """Start one more worker."""
        folder = self._folder / f"worker-{number}"
        options = [
            "--host",
            "127.0.0.1",
            "--cores",
            "1",
            "--memory",
            "1g",
            "--work-dir",
            str(folder),
            "--webui-port",
            "0",
        ]
        self.workers.append(self._start("worker.Worker", self._folder / f"worker-{number}.log", *options, self.master))

    def _start(self, name: str, log: Path, *arguments: str) -> int:
        command = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        with log.open("wb") as out:
            started = subprocess.Popen(command, stdout=out, stderr=out, env=self._environment, cwd=self._folder)
        self._processes.append(started)
        return started.pid

    @staticmethod
    def _said(log: Path, what: str) -> str:
        found = re.search(what, log.read_text()) if log.exists() else None
        return found[0] if found else ""

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, at: TracebackType | None
    ) -> None:
        for process in self._processes:
            for below in _below(process.pid):
                below.kill()
            process.send_signal(signal.SIGKILL)
            process.wait()


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def executors_of(worker: int) -> list[int]:
    """The processes of a worker that run tasks."""
    return [child.pid for child in _below(worker) if "java" in child.name()]
