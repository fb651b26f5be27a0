"""Simulated collections: people's values through devices and collector to the result, in one process.

    simulate               a study, survey or mechanism on known values
    SimulatedCollection    the reports of people's devices, as the collector decodes them
    walk_rounds            a study of several rounds, each of other people

`veil.simulation.spark` does the same on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, overload

import numpy as np

from veil.engines import ReportStream, Watch, unwatched
from veil.entropy import SeededForExperiments, Source
from veil.errors import EmptyError, InputError
from veil.mechanisms import FrequencyOracle, Mechanism
from veil.reports.columns import Reports
from veil.results.answers import Answers
from veil.results.base import Result
from veil.results.estimate import Estimate
from veil.study import Study, StudyRun
from veil.survey import People, Survey
from veil.wire.frames import decode_batch, encode_batch
from veil.wire.ring import ring_of

__all__ = ["SimulatedCollection", "simulate", "walk_rounds"]

_KEPT_BYTES = 256 << 20


@overload
def simulate(study: FrequencyOracle, values: Any, seed: int = 0, *, candidates: Any = None) -> Estimate: ...
@overload
def simulate(study: Survey, values: Any, seed: int = 0, *, candidates: Mapping[int, Any] | None = None) -> Answers: ...
@overload
def simulate(study: Mechanism | Study, values: Any, seed: int = 0) -> Any: ...
def simulate(
    study: Mechanism | Survey | Study, values: Any, seed: int = 0, *, candidates: Mapping[int, Any] | Any = None
) -> Any:
    """Run a study on known values: randomize, encode, decode, tally, read. The same seed gives the same result.

    A study gives its result, of as many rounds as it has; a mechanism gives its result (a frequency oracle an
    Estimate), a survey one result per question.

    >>> from veil import GRR
    >>> estimate = simulate(GRR(epsilon=4.0, domain=3), [0] * 9000 + [2] * 1000)
    >>> bool(abs(estimate.frequencies[0] - 0.9) < 5 * estimate.stderr[0])
    True
    """
    if isinstance(study, Study):
        if candidates is not None:
            study = study.with_candidates(candidates)
        return _simulate(study, values, SeededForExperiments(seed))
    if not isinstance(study, (Mechanism, Survey)):
        raise InputError("simulate(study, values): expected a study, a survey or a mechanism")
    survey = study if isinstance(study, Survey) else Survey(study)
    by_question = candidates if isinstance(study, Survey) or candidates is None else {0: candidates}
    tally = SimulatedCollection(survey, survey.domain.encode(values), SeededForExperiments(seed)).tally(
        candidates=by_question
    )
    found = survey.estimate(tally)
    return found if isinstance(study, Survey) else found[0]


def _simulate(study: Study, values: Any, source: SeededForExperiments) -> Result | None:
    run = StudyRun(study)
    if run.round is not None:
        for _ in walk_rounds(run, study.encode(values), source, source):
            pass
    return run.result


class SimulatedCollection(ReportStream):
    """What the collector decodes of what people's devices send, a chunk of people at a time.

    Reports are made once and kept while they are small; more of them are made again, the same ones, at every pass.
    Behind people's come `fakes` uniform ones, as shufflers add them.
    """

    def __init__(
        self, survey: Survey, codes: Any, source: SeededForExperiments, watch: Watch = unwatched, *, fakes: int = 0
    ) -> None:
        super().__init__(survey, watch)
        if not len(codes):
            raise EmptyError("expected at least one person")
        self._held = codes if isinstance(codes, People) else People(codes)
        if len(self._held.public) != len(survey.public):
            raise InputError("this survey has public columns: expected people with those columns (study.encode)")
        self._kept: list[Reports] | None = None
        self._fakes = fakes
        self._devices, self._shufflers = source.replays(len(codes)), source.replays(fakes)

    @property
    def fakes(self) -> int:
        return self._fakes

    @property
    def expected(self) -> int:
        return len(self._held) + self._fakes

    def chunks(self) -> Iterator[Reports]:
        if self._kept is not None:
            return iter(self._kept)
        if self.survey.layout.size * self.expected > _KEPT_BYTES:
            return self._received()
        self._kept = list(self._received())
        return iter(self._kept)

    def _received(self) -> Iterator[Reports]:
        for rows, stream in self._devices():
            some = self._held[rows]
            sent = encode_batch(self.survey.reports(some.codes, stream, some.public))  # on the devices
            yield decode_batch(self.survey, sent)  # at the collector
        if self._fakes:
            yield from self._added()

    def _added(self) -> Iterator[Reports]:
        """Yield the shufflers' fakes, from streams behind those of the people."""
        ring = ring_of(self.survey)
        for rows, stream in self._shufflers():
            yield ring.reports(ring.uniform(rows.stop - rows.start, stream))


def walk_rounds(
    run: StudyRun, codes: Any, order: Source, devices: SeededForExperiments, watch: Watch = unwatched
) -> Iterator[int]:
    """Each round asks people that were not asked before, drawn at random: everybody answers once.

    `order` shuffles the people and `devices` randomize. Yields how many people each round asked, once it is answered. A
    run that goes on after a restart goes on with people that are still to ask, if `order` is the same; and if `devices`
    begins anew, as if there had been no restart.
    """
    shares = [asked.people for asked in run.answered]
    if run.round is not None and not shares and run.round.people == 1:  # nobody is left out: no need to draw
        run.answer(SimulatedCollection(run.round.survey, codes, devices, watch, fakes=run.study.planned_fakes))
        yield len(codes)
        return
    waiting = _shuffled(len(codes), order)
    for share in shares:
        asked, waiting = np.split(waiting, [round(len(codes) * share)])
        for _ in devices.chunks(len(asked)):
            pass  # streams that were used
    while run.round is not None:
        asked, waiting = np.split(waiting, [round(len(codes) * run.round.people)])
        if not len(asked):
            raise EmptyError(f"round {run.finished} asks nobody: there are too few people for this study")
        run.answer(SimulatedCollection(run.round.survey, codes[asked], devices, watch))
        yield len(asked)


def _shuffled(people: int, source: Source) -> Any:
    """A random order of the people. Ties of 64-bit keys are too rare to matter here: nothing private depends on it."""
    return np.argsort(source.below(2**64, people), kind="stable")
