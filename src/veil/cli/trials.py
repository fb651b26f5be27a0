"""A study on a file of values: everybody's device is asked in one of its rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from veil.cli.rounds import begin, kept_seed, some_seed
from veil.cli.values import load_codes
from veil.comparison import Held
from veil.engines import Watch
from veil.entropy import Seeded
from veil.results.base import Result
from veil.simulation import walk_rounds
from veil.study import Study, StudyRun

__all__ = ["Trial"]

_PEOPLE = 1 << 200  # where the streams that draw people lie, apart from those that randomize


class Trial:
    """A study and the people of a file; with `people`, so many of them, drawn at random with replacement."""

    def __init__(
        self, study: Study, values: Path, *, column: str | None, separator: str, clip: bool, people: int | None
    ) -> None:
        self.study = study
        self._codes, self.clipped = load_codes(study.survey, values, column, separator, clip)
        self._people = people
        self.held = Held(study.survey, self._codes)

    def codes(self, seed: int) -> Any:
        """What the people of the trial hold."""
        if self._people is None:
            return self._codes
        rows = Seeded(_PEOPLE + seed).below(len(self._codes), self._people).astype(np.int64)
        return self._codes[rows]

    def walk(self, folder: Path | None, seed: int | None, watch: Watch) -> tuple[Result, int]:
        """The whole study; also how many rounds had been answered before, in the folder.

        Everything is drawn by one number. In a folder it is kept, so that a run that goes on after an interruption asks
        the same people in the same rounds, and their reports are the same ones: nobody is asked twice.
        """
        run = StudyRun(self.study) if folder is None else begin(self.study, folder)
        people = self._people or len(self._codes)
        drawn = some_seed(seed) if folder is None else kept_seed(folder, people, seed)
        codes, source = self.codes(drawn), Seeded(drawn)
        self.held, before = Held(self.study.survey, codes), run.finished
        for _ in walk_rounds(run, codes, source, source, watch):
            pass
        assert run.result is not None
        return run.result, before
