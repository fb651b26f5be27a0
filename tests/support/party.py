"""A party as users start it, that ends itself (SIGKILL) or stops (SIGSTOP) when it enters a given stage.

python -m tests.support.party STAGE SIGNAL  shuffler --config ...
"""

from __future__ import annotations

import logging
import os
import signal
import sys

from veil.cli.main import app


class _At(logging.Handler):
    def __init__(self, stage: str, name: str) -> None:
        super().__init__()
        self._stage, self._signal = stage, signal.Signals[name]

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().endswith(f": {self._stage}"):
            os.kill(os.getpid(), self._signal)


if __name__ == "__main__":
    stage, name, *command = sys.argv[1:]
    logger = logging.getLogger("veil.parties")
    logger.addHandler(_At(stage, name))
    logger.setLevel(logging.INFO)
    app(command)
