"""A study collected between parties: people's reports in, shuffled reports out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.entropy import Batch
from veil.errors import InputError
from veil.files import ReportWriter
from veil.reports.columns import Reports
from veil.shuffle.parties.coordinator import Shuffled
from veil.shuffle.parties.device import Outbox, Submission, leave, most_together
from veil.shuffle.parties.plan import DEVICE, Plan
from veil.shuffle.parties.settings import Settings
from veil.shuffle.protocols import protocol_of
from veil.study import Study, study_from_json
from veil.survey import Survey
from veil.tools.filesystem import make_private_folder
from veil.wire.ring import Ring, ring_of

__all__ = ["Collection", "Device"]


class Collection:
    """What a plan is about: its study, and the way between reports and integers of the ring."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @cached_property
    def study(self) -> Study:
        """The study that people are asked for."""
        return study_from_json(self.plan.study)

    @cached_property
    def survey(self) -> Survey:
        """What people are asked."""
        return self.study.survey

    @cached_property
    def _ring(self) -> Ring:
        return ring_of(self.survey, self.plan.ring)

    def elements(self, reports: Reports) -> NDArray[np.uint64]:
        """Runs on the device: reports as integers, each uniform among those that stand for it."""
        return self._ring.encode(reports.columns, Batch())

    def outcome(self, settings: Settings) -> Path:
        """Where the server keeps the shuffled reports: a file of reports that says how many are fakes."""
        return settings.folder / "reports.arrow"

    def spot_checks(self, settings: Settings) -> Path:
        """Where the server keeps what its own accounts sent, in a sequential shuffle."""
        return settings.folder / "spot-checks"

    def keep(self, settings: Settings, shuffled: Shuffled) -> Shuffled:
        """Runs at the server: write the shuffled reports down, all or nothing; without its own accounts' ones."""
        make_private_folder(settings.folder)
        if (checks := self.spot_checks(settings)).exists():
            from veil.shuffle.sequential import SpotChecks, without_checks

            shuffled = without_checks(shuffled, SpotChecks.from_bytes(checks.read_bytes()))
        reports = self._ring.reports(shuffled.elements)
        with ReportWriter(self.outcome(settings), self.survey, fakes=self.plan.fakes, private=True) as writer:
            writer.write(reports)
        return shuffled


class Device:
    """Plays devices: randomizes, splits, writes down, and leaves shares with every shuffler.

    Reports are drawn once. What could not be sent stays in an outbox and is sent again as it is: `leave`.
    """

    def __init__(self, settings: Settings) -> None:
        if settings.party != DEVICE:
            raise InputError(f"these are the settings of {settings.party}: shares are left with those of a device")
        self._settings = settings
        self.collection = Collection(settings.plan)
        self._protocol = protocol_of(settings.plan)
        self.outbox = Outbox(settings.folder / "outbox")

    def answer(self, values: Any, *, together: int = 1) -> int:
        """Answer for people with these values, and say how many; in submissions of so many people each.

        A person's own device answers for one person.
        """
        self.prepare([self.collection.survey.randomize(values)], together)
        return self.leave()

    def prepare(self, reports: Iterable[Reports], together: int) -> None:
        """Split reports into shares and write them down: all of them, or none."""
        if len(self.outbox):
            raise InputError(f"shares of an earlier run are still to be sent, in {self._settings.folder}")
        self.outbox.fill(self._submissions(reports, min(together, most_together(self._protocol))))

    def _submissions(self, reports: Iterable[Reports], together: int) -> Iterator[Submission]:
        for some in reports:
            elements = self.collection.elements(some)
            for start in range(0, len(elements), together):
                yield Submission.of(self._protocol, elements[start : start + together])

    def leave(self, advance: Callable[[int], None] = lambda steps: None) -> int:
        """Send what is written down, and say for how many people; `advance` is called after each submission."""
        people = 0

        def left(submission: Submission) -> None:
            nonlocal people
            people += submission.people
            self.outbox.remove(submission)
            advance(1)

        asyncio.run(leave(self._settings, self._protocol, self.outbox, left))
        return people
