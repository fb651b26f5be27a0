"""The whole corridor in one function: what happens to people's values from the device to the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, overload

import numpy as np

from veil.campaign import Campaign, CampaignRun
from veil.entropy import Seeded, Source
from veil.errors import EmptyError, InputError
from veil.mechanisms import FrequencyOracle, Mechanism
from veil.protocol import OpenProtocol, Protocol, Stored
from veil.results.estimate import Estimate
from veil.survey import Survey, SurveyTally
from veil.tally import merge
from veil.wire.frames import decode_batch, encode_batch
from veil.wire.reports import Reports

__all__ = ["simulate", "walk_rounds"]


@overload
def simulate(
    protocol: FrequencyOracle, values: Any, seed: int = 0, *, candidates: Mapping[int, Any] | Any = None
) -> Estimate: ...
@overload
def simulate(
    protocol: Survey, values: Any, seed: int = 0, *, candidates: Mapping[int, Any] | Any = None
) -> list[Any]: ...
@overload
def simulate(protocol: Mechanism | Protocol | OpenProtocol | Campaign, values: Any, seed: int = 0) -> Any: ...
def simulate(
    protocol: Mechanism | Survey | Protocol | OpenProtocol | Campaign,
    values: Any,
    seed: int = 0,
    *,
    candidates: Mapping[int, Any] | Any = None,
) -> Any:
    """Run a protocol on known values: randomize, encode, decode, tally, estimate. The same seed gives the same result.

    A mechanism gives its result (a frequency oracle an Estimate), a survey a list of them (one a question), a protocol
    what its questions say together, an open protocol what it finds in stored reports, a campaign whatever it returns.

    >>> from veil import GRR
    >>> estimate = simulate(GRR(epsilon=4.0, domain=3), [0] * 9000 + [2] * 1000)
    >>> bool(abs(estimate.frequencies[0] - 0.9) < 5 * estimate.stderr[0])
    True
    """
    source = Seeded(seed)
    if not isinstance(protocol, (Campaign, Mechanism, OpenProtocol, Protocol, Survey)):
        raise InputError("simulate(protocol, values): expected a mechanism, a survey, a protocol or a campaign")
    if isinstance(protocol, Campaign):
        return _simulate_campaign(protocol, values, source)
    if isinstance(protocol, OpenProtocol):
        asked = protocol.survey
        return protocol.find(Stored(asked, list(_received(asked, asked.domain.encode(values), source))))
    if isinstance(protocol, Protocol):
        survey = protocol.survey
        return protocol.estimate(_collect(survey, survey.domain.encode(values), source, candidates))
    if isinstance(protocol, Mechanism):
        by_question = None if candidates is None else {0: candidates}
        return _simulate_survey(Survey(protocol), values, source, by_question)[0]
    return _simulate_survey(protocol, values, source, candidates)


def _simulate_survey(survey: Survey, values: Any, source: Source, candidates: Mapping[int, Any] | None) -> list[Any]:
    return survey.estimate(_collect(survey, survey.domain.encode(values), source, candidates))


def _collect(survey: Survey, codes: Any, source: Source, candidates: Mapping[int, Any] | None) -> SurveyTally:
    """Devices randomize and send, the collector decodes and adds up, a chunk of people at a time."""
    tallies = (survey.tally(received, candidates) for received in _received(survey, codes, source))
    return merge(tallies)  # type: ignore[no-any-return]  # merge adds whatever it is given


def _received(survey: Survey, codes: Any, source: Source) -> Iterator[Reports]:
    """What the collector decodes of what devices send, a chunk of people at a time."""
    if not len(codes):
        raise EmptyError("expected at least one person")
    for rows, stream in source.chunks(len(codes)):
        sent = encode_batch(survey.reports(codes[rows], stream))  # on the devices
        yield decode_batch(survey, sent)  # at the collector


def _simulate_campaign(campaign: Campaign, values: Any, source: Source) -> Any:
    run = CampaignRun(campaign)
    if run.round is not None:
        codes = run.round.survey.domain.encode(values)
        for _ in walk_rounds(run, codes, source, source):
            pass
    return run.result


def walk_rounds(run: CampaignRun, codes: Any, order: Source, devices: Source) -> Iterator[int]:
    """Each round asks people that were not asked before, drawn at random: everybody answers once.

    `order` shuffles the people and `devices` randomize. Yields how many people each round asked, once it is answered. A
    run that goes on after a restart goes on with people that are still to ask, if `order` is the same; and if `devices`
    is a seeded source that begins anew, as if there had been no restart.
    """
    waiting = _shuffled(len(codes), order)
    for done in run.answered:
        asked, waiting = np.split(waiting, [round(len(codes) * done.people)])
        for _ in devices.chunks(len(asked)):
            pass  # streams that were used
    while run.round is not None:
        asked, waiting = np.split(waiting, [round(len(codes) * run.round.people)])
        if not len(asked):
            raise EmptyError(f"round {run.finished} asks nobody: there are too few people for this campaign")
        run.answer(_collect(run.round.survey, codes[asked], devices, run.round.candidates))
        yield len(asked)


def _shuffled(people: int, source: Source) -> Any:
    """A random order of the people. Ties of 64-bit keys are too rare to matter here: nothing private depends on it."""
    return np.argsort(source.below(2**64, people), kind="stable")
