"""A party as users start it, that ends itself (SIGKILL) or stops (SIGSTOP) when it enters a given stage.

Its arguments are a file, which names the stage and the signal once it is there, and those of `veil`.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path

from veil.cli.main import app


class At(logging.Handler):
    """Sends itself a signal at the stage that a file names, once."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        if not self._file.exists():
            return
        stage, name = self._file.read_text().splitlines()
        if record.getMessage() == stage:
            self._file.unlink()
            os.kill(os.getpid(), signal.Signals[name])


def watch(file: Path) -> None:
    """Do so in this process."""
    logger = logging.getLogger("veil.parties")
    logger.addHandler(At(file))
    logger.setLevel(logging.INFO)


def main() -> None:
    """Run the command behind the name of the file."""
    watch(Path(sys.argv[1]))
    app(sys.argv[2:])
