"""Spot checks between parties: the server's own accounts leave messages as devices do, and go before estimation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veil.shuffle.parties.coordinator import Shuffled
from veil.shuffle.parties.device import Submission
from veil.shuffle.parties.protocol import Protocol
from veil.shuffle.sequential.spot_checks import SpotChecks

__all__ = ["submissions_of", "without_checks"]


def submissions_of(protocol: Protocol, checks: SpotChecks) -> list[Submission]:
    """One submission for each of the server's own accounts, made as a person's device makes its own.

    Put them into an outbox and leave them from where, and when, people's devices leave theirs: what tells them apart
    from people could only be how they come.
    """
    return [Submission.of(protocol, np.array([report], dtype=np.uint64)) for report in checks.reports]


def without_checks(shuffled: Shuffled, checks: SpotChecks) -> Shuffled:
    """What came out, of people and fakes alone; a SpotCheckError where checks are missing.

    Called in a coordinator's `keep`, that error comes before anything is acknowledged: shufflers still hold everything.
    """
    left = checks.remove(shuffled.elements)
    return replace(shuffled, elements=left, people=shuffled.people - len(checks.reports))
