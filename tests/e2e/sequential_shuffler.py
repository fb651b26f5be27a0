"""A shuffler's process for tests: SETTINGS [end STAGE | tamper]. It can be told to fail at a point of the protocol."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from veil.shuffle.protocol import Attempt
from veil.shuffle.sequential import Sequential
from veil.shuffle.settings import PartySettings
from veil.shuffle.shuffler import ShufflerProcess


def end_at(stage: str) -> None:
    """End this process, as the kernel would, when an attempt enters a stage."""

    def entered(attempt: Attempt, text: str) -> None:
        if text.startswith(stage):
            os.kill(os.getpid(), signal.SIGKILL)

    Attempt.stage = entered  # type: ignore[method-assign]


def tamper() -> None:
    """Change one byte of one message that is handed on."""
    honest = Attempt.send

    async def dishonest(attempt: Attempt, to: int, label: int, array: Any) -> None:
        array = array.copy()
        array[7, 50] ^= 1
        await honest(attempt, to, label, array)

    Attempt.send = dishonest  # type: ignore[method-assign]


if __name__ == "__main__":
    match sys.argv[2:]:
        case ["end", stage]:
            end_at(stage)
        case ["tamper"]:
            tamper()
    settings = PartySettings.read(Path(sys.argv[1]))
    asyncio.run(ShufflerProcess(settings, Sequential.of(settings)).listen(lambda: print("ready", flush=True)))
