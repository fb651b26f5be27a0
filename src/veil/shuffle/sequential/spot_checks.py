"""Spot checks: accounts of the server whose reports have to come out of the shuffle (thesis 9.5.1).

The server creates a few accounts and answers for them with uniform reports, wrapped as every device wraps its own. Only
the server knows them: a shuffler sees messages of one length under keys that it does not have, and cannot tell them
from those of people. A shuffler that replaces or drops messages hits some of them sooner or later, and the server,
which knows their reports, notices. They are removed before estimation.

Spot checks do not detect fakes that are not uniform, they do not identify the shuffler, and they do not help against a
server that colludes. The accounts are not people: guarantees must not count them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from veil.entropy import Source
from veil.errors import ParameterError, PartyError, WireError
from veil.shuffle.coordinator import ShuffleOutcome
from veil.shuffle.protocol import Protocol
from veil.shuffle.sequential.onion import REPORT_BYTES, U64, Bytes, Route, wrap_many
from veil.shuffle.submissions import Submission
from veil.tools.numbers import is_int


class SpotCheckError(PartyError):
    """Reports of the server's own accounts did not come out: some shuffler, nobody knows which, is not honest."""

    def __init__(self, missing: int, checks: int) -> None:
        self.missing, self.checks = missing, checks
        super().__init__(
            "some shuffler",
            f"replaced or dropped messages: {missing} of {checks} spot checks did not come out, and the reports must "
            "not be used",
        )


@dataclass(frozen=True)
class SpotChecks:
    """The reports of the server's own accounts: its secret until the shuffle is over.

    >>> checks = SpotChecks((5, 7))
    >>> checks.remove(np.array([7, 1, 5, 5], dtype=np.uint64)).tolist()
    [1, 5]
    >>> checks.missing(np.array([7, 1, 2, 2], dtype=np.uint64))
    1
    """

    reports: tuple[int, ...]

    def __post_init__(self) -> None:
        if not all(is_int(report) and 0 <= report < 1 << 64 for report in self.reports):
            raise ParameterError("a report is an integer between 0 and 2^64 - 1")
        if len(set(self.reports)) < len(self.reports):
            raise ParameterError("spot checks are reports that differ from each other")

    @classmethod
    def draw(cls, count: int, source: Source, *, ring: int = 64) -> SpotChecks:
        """So many uniform reports of `ring` bits, all different."""
        if not is_int(count) or count < 0:
            raise ParameterError("there are 0 spot checks or more")
        drawn: dict[int, None] = {}
        while len(drawn) < count:
            drawn.update(dict.fromkeys(source.below(1 << ring, int(count) - len(drawn)).tolist()))
        return cls(tuple(drawn))

    def messages(self, route: Route) -> Bytes:
        """Their messages, made as every device makes its own. Once: a device that is asked again sends them again."""
        return wrap_many(route, np.array(self.reports, dtype=np.uint64))

    def missing(self, reports: U64) -> int:
        """How many of them are not among the reports that came out."""
        found = Counter(reports[np.isin(reports, np.array(self.reports, dtype=np.uint64))].tolist())
        return sum(not found[report] for report in self.reports)

    def remove(self, reports: U64) -> U64:
        """The reports that came out, without these, in their order; a SpotCheckError where one is missing."""
        if missing := self.missing(reports):
            raise SpotCheckError(missing, len(self.reports))
        # One of each: somebody's own report may by chance be equal to a check's, and stays.
        values, firsts = np.unique(reports, return_index=True)
        checks = firsts[np.isin(values, np.array(self.reports, dtype=np.uint64))]
        return np.delete(reports, checks)

    def to_bytes(self) -> bytes:
        """As the server keeps them, in a file that nobody else reads."""
        return np.array(self.reports, dtype="<u8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> SpotChecks:
        """The same backwards."""
        if len(data) % REPORT_BYTES:
            raise WireError(f"spot checks are kept as {REPORT_BYTES} bytes each")
        return cls(tuple(np.frombuffer(data, dtype="<u8").tolist()))

    def __repr__(self) -> str:
        return f"SpotChecks of {len(self.reports)} accounts"


def detection(checks: int, replaced: int, messages: int) -> Fraction:
    """The probability that at least one of the checks is among the replaced messages, exactly.

    A shuffler that cannot tell them apart replaces `replaced` of the `messages` that it gets, `checks` among them:
    1 less C(messages - checks, replaced) / C(messages, replaced). Never less than 1 - (1 - replaced / messages)^checks.

    >>> detection(checks=10, replaced=2, messages=20)
    Fraction(29, 38)
    """
    if not (is_int(checks) and is_int(replaced) and is_int(messages)):
        raise ParameterError("checks, replaced and messages are integers")
    if not (0 <= checks <= messages and 0 <= replaced <= messages):
        raise ParameterError("checks and replaced lie between 0 and the number of messages")
    # The roles are exchangeable: the shorter product of the two.
    few, many = sorted((int(checks), int(replaced)))
    missed = Fraction(math.perm(int(messages) - many, few), math.perm(int(messages), few))
    return 1 - missed


def submissions_of(protocol: Protocol, checks: SpotChecks) -> list[Submission]:
    """One submission for each of the server's own accounts, made as a person's device makes its own.

    Put them into an outbox and leave them from where, and when, people's devices leave theirs: what tells them apart
    from people could only be how they come.
    """
    return [Submission.of(protocol, np.array([report], dtype=np.uint64)) for report in checks.reports]


def without_checks(shuffled: ShuffleOutcome, checks: SpotChecks) -> ShuffleOutcome:
    """What came out, of people and fakes alone; a SpotCheckError where checks are missing.

    Called in a coordinator's `keep`, that error comes before anything is acknowledged: shufflers still hold everything.
    """
    left = checks.remove(shuffled.elements)
    return replace(shuffled, elements=left, people=shuffled.people - len(checks.reports))
