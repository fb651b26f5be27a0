"""Records of the collector, and the contract of the databases that keep them.

A store's methods block and are called from threads. Each is one transaction: it is durable when the method returns, or
a `StoreError` is raised and nothing was acknowledged. Reports of a survey have sequence numbers in the order of
commits: a reader that has seen number k never finds a new report below it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from veil.errors import StoreDamagedError

SurveyPhase = Literal["draft", "waiting", "open", "closed", "expired"]
PRUNED = "prune-audit"
"""The action of an audit entry that says which earlier entries were erased."""


@dataclass(frozen=True)
class StoredSurvey:
    """A survey in a store. Times are seconds since 1970, UTC; `reports` counts each report once.

    `study` is the study file that says how its reports are read; None where a bare task was published, which is the
    study of its questions. `closed` is when it was closed, `keep_days` how long its reports are kept after that (None:
    until they are purged by hand), and `purged` when they were. `name`, `wave` and `texts` say what is asked, for
    people: `texts` is JSON, by language.
    """

    key: int
    task: str
    document: bytes
    state: Literal["draft", "open", "closed"]
    opens: int | None
    closes: int | None
    precision: int
    minimum: int
    reports: int = 0
    sequence: int = 0
    study: bytes | None = None
    closed: int | None = None
    keep_days: int | None = None
    name: str | None = None
    wave: int | None = None
    texts: str | None = None
    purged: int | None = None
    purging: int | None = None
    """The time when the purge began. Its reports count as purged from then on, whatever is still stored."""
    step: int = 1
    ended: int | None = None
    """When a collector recorded that its time is over. It takes no report from then on, whatever a clock says."""

    @property
    def mark(self) -> int:
        """How many reports analysts see: the latest multiple of `step`, and all once no more can come.

        It follows from the number of reports, which only grows: it is the same for several collectors and after a
        restart, and does not depend on what was purged or sent twice.

        >>> StoredSurvey(1, "t", b"", "open", None, None, 1, minimum=10, sequence=29, step=10).mark
        20
        """
        is_final = self.state == "closed" or self.ended is not None
        return self.sequence if is_final else self.sequence // self.step * self.step

    @property
    def is_purged(self) -> bool:
        """True if the reports are erased, or are being erased."""
        return self.purged is not None or self.purging is not None

    def phase(self, now: int) -> SurveyPhase:
        """What it takes at a moment: reports only while it is open.

        >>> StoredSurvey(1, "t", b"", "open", opens=None, closes=50, precision=1, minimum=1).phase(50)
        'expired'
        """
        if self.state != "open":
            return self.state
        if self.ended is not None or (self.closes is not None and now >= self.closes):
            return "expired"
        return "waiting" if self.opens is not None and now < self.opens else "open"

    def bucket(self, now: int) -> int:
        """A time, truncated to the survey's precision: all that is ever stored of it."""
        return now // self.precision * self.precision


@dataclass(frozen=True)
class Group:
    """Reports of one survey that are committed together: their ids (16 bytes each) and payloads, end to end."""

    survey: int
    ids: bytes
    payloads: bytes
    count: int
    task: str = ""
    """The survey's task, where the caller knows the key from a cache: nothing is stored if the key has another one."""


@dataclass(frozen=True)
class Chunk:
    """Payloads of the reports up to number `last`, their coarse times with counts, and the number of missing reports.

    Missing reports are in damaged or missing blocks.
    """

    payloads: bytes
    last: int
    buckets: tuple[tuple[int, int], ...] = ()
    missing: int = 0


@dataclass(frozen=True)
class StoredTally:
    """A tally as the library encodes it, and the sequence number up to which it counts."""

    encoded: bytes
    sequence: int


@dataclass(frozen=True)
class StoredStudy:
    """A study of several rounds under way: its file, its rule for closing rounds, and how far it is to go.

    `people` is how many take part in all, `seconds` how long a round is open; None where there is no such rule.
    `wanted` is how many rounds are to be closed and read: written down first, so that a restart goes on with it.
    """

    id: str
    document: bytes
    people: int | None = None
    seconds: int | None = None
    wanted: int = 0
    finished: bool = False


@dataclass(frozen=True)
class StoredRound:
    """A round of a study: the task of its survey, the share of all people that it asks, when it was first seen open."""

    number: int
    task: str
    share: Fraction
    opened: int | None = None


@dataclass(frozen=True)
class TokenRecord:
    """An analyst's token, without the secret: only its SHA-256 is kept."""

    name: str
    digest: bytes
    scopes: tuple[str, ...]
    task: str | None
    note: str
    created: str
    revoked: bool = False
    expires: str | None = None
    """The first day, in UTC, on which it is refused."""


@dataclass(frozen=True)
class AuditEntry:
    """An entry of the audit log: who asked what, and when; never the answer."""

    at: str
    token: str
    action: str
    task: str | None
    parameters: str


class Store(ABC):
    """The contract of a collector's database. `append` is safe with several collectors at once."""

    @property
    def epoch(self) -> int:
        """A number that changes when another database server takes over, which may lack the latest commits.

        What was remembered under another epoch may be ahead of what the database holds now.
        """
        return 0

    def steady(self, epoch: int | None = None) -> AbstractContextManager[int]:
        """Let the calls of this thread within the block, which yields the epoch, fail in any other epoch.

        For work that reads in one transaction and writes what it made of that in another.
        """
        return nullcontext(0)

    @abstractmethod
    def create(self, survey: StoredSurvey) -> bool:
        """Keep a draft; False if its task is there already, or another survey as its wave.

        Without a wave it is the next of its name. The given key and counts are ignored.
        """

    @abstractmethod
    def find(self, task: str) -> StoredSurvey | None:
        """The survey of a task id."""

    @abstractmethod
    def surveys(self) -> list[StoredSurvey]:
        """All surveys, oldest first."""

    @abstractmethod
    def survey(self, key: int) -> StoredSurvey:
        """The survey of a key."""

    @abstractmethod
    def named(self, name: str) -> list[StoredSurvey]:
        """All surveys of a name, the latest wave first."""

    @abstractmethod
    def behind(self) -> list[int]:
        """The keys of surveys with a mark beyond their tally, or without one: as cheap for many surveys as for few."""

    @abstractmethod
    def move(self, survey: int, before: str, after: str, now: int | None = None) -> bool:
        """Change a state, if it is still what it was; no report is stored after it was closed."""

    @abstractmethod
    def end(self, survey: int, now: int) -> None:
        """Record that the time of an open survey is over, if it is; no report is stored after that."""

    @abstractmethod
    def to_end(self, now: int) -> list[int]:
        """The keys of open surveys whose time is over, and of which that is not recorded yet."""

    @abstractmethod
    def marks(self) -> list[tuple[str, int, int]]:
        """The task of each survey that is no draft, how many of its reports analysts see, and its step."""

    @abstractmethod
    def unfolded(self, *, final: bool) -> list[int]:
        """The keys of surveys with ids beside payloads; only of those that take no more reports, if `final`."""

    @abstractmethod
    def fold_all(self, surveys: Sequence[int]) -> None:
        """Move the ids of all reports of these surveys into runs: nothing says then which id sent which payload.

        Damaged surveys are left out, and surveys whose reports are being erased.
        """

    @abstractmethod
    def set_reading(self, survey: int, study: bytes) -> None:
        """Keep another study of the same task: how its reports are read from now on."""

    @abstractmethod
    def append(self, groups: Sequence[Group], now: int) -> list[int | SurveyPhase | StoreDamagedError]:
        """Store the new reports of each group in one transaction. Return an outcome for each group.

        The outcome is the number of new reports, the phase of a survey that takes no reports now, or an error if damage
        in the survey's stored ids prevents the decision which reports are new. A report id that is there already keeps
        its first payload.
        """

    @property
    @abstractmethod
    def failed_upkeep(self) -> int:
        """How often what keeps commits cheap could not be done after one; it was put off."""

    @abstractmethod
    def chunk(self, survey: int, after: int, rows: int, until: int | None = None) -> Chunk | None:
        """Return the next `rows` reports beyond a sequence number, at most up to `until`; None if there are no more.

        Damaged blocks are left out and counted as missing. A purged survey has no reports.
        """

    @abstractmethod
    def buckets(self, survey: int, until: int) -> list[tuple[int, int]]:
        """The coarse times of the reports up to a sequence number, in their order, each with how many in a row."""

    @abstractmethod
    def missing(self, survey: int | None = None) -> int:
        """Return how many reports, of one survey or of all, this process could not read because they are damaged."""

    @abstractmethod
    def report_ids(self, survey: int) -> Iterator[bytes]:
        """The ids of all reports, for checks. Of most of them nobody knows which payload they came with."""

    @abstractmethod
    def tally(self, survey: int) -> StoredTally | None:
        """The stored tally."""

    @abstractmethod
    def save_tally(self, survey: int, tally: StoredTally, before: int | None, rows: int | None = None) -> bool:
        """Replace the tally that counts up to `before` (None: whatever is there); False if another was quicker.

        With `rows`, only while that many reports up to the tally's mark are there: they may have been purged meanwhile.
        """

    @abstractmethod
    def due_to_forget(self, now: int) -> list[int]:
        """The keys of surveys whose reports were kept for as long as they may be, and are still there."""

    @abstractmethod
    def counted(self, survey: int, asked: str) -> StoredTally | None:
        """What was counted for some candidates before, and up to which sequence number."""

    @abstractmethod
    def save_counted(self, survey: int, asked: str, tally: StoredTally, now: int, keep: int) -> None:
        """Keep what was counted, unless more is there; of each survey the so many that were asked for last."""

    @abstractmethod
    def note_asked(self, survey: int, asked: str, now: int) -> None:
        """What was counted for some candidates was asked for again."""

    @abstractmethod
    def purge(self, survey: int) -> int:
        """Erase the reports of a closed survey and their ids, keeping its tally. How many there were.

        Other surveys go on meanwhile: it takes several short transactions, and may be called again after a failure.
        """

    @abstractmethod
    def create_study(self, study: StoredStudy) -> bool:
        """Keep a study of several rounds; False if it is there already."""

    @abstractmethod
    def find_study(self, id_: str) -> StoredStudy | None:
        """The study of an id."""

    @abstractmethod
    def study_of(self, task: str) -> StoredStudy | None:
        """The study that a survey is a round of."""

    @abstractmethod
    def studies(self) -> list[StoredStudy]:
        """All studies of several rounds, oldest first."""

    @abstractmethod
    def under_way(self) -> list[tuple[str, str]]:
        """Studies whose current round is to be closed, or has a rule for that; each with the task of that round."""

    @abstractmethod
    def want_rounds(self, id_: str, wanted: int) -> None:
        """So many rounds of a study are to be closed and read; never fewer than before."""

    @abstractmethod
    def finish_study(self, id_: str) -> None:
        """A study has its result."""

    @abstractmethod
    def add_round(self, id_: str, number: int, share: Fraction, survey: StoredSurvey) -> bool:
        """Keep a round with its survey, both or none; again is fine. False if the task is there outside this round."""

    @abstractmethod
    def rounds(self, id_: str) -> list[StoredRound]:
        """The rounds of a study so far, in their order."""

    @abstractmethod
    def note_opened(self, id_: str, number: int, now: int) -> None:
        """A round was seen open; the first time counts."""

    @abstractmethod
    def take(self, run: str, mark: int, round_: int, index: int) -> bytes | None:
        """What a run took from its reports, which are those up to a mark; None where it did not yet."""

    @abstractmethod
    def save_take(self, run: str, mark: int, round_: int, index: int, data: bytes) -> None:
        """Keep what a run took; what is there already stays."""

    @abstractmethod
    def note_missing(self, run: str, mark: int, round_: int, reports: int) -> None:
        """Record that a run reads without this many reports, which are damaged; the largest number stays."""

    @abstractmethod
    def missing_in(self, run: str, mark: int) -> int:
        """Return how many reports a run was read without, over all its rounds."""

    @abstractmethod
    def forget_takes(self, run: str, mark: int, round_: int) -> None:
        """Nothing was taken in this round."""

    @abstractmethod
    def forget_marks_before(self, run: str, mark: int) -> None:
        """Forget what a run took from fewer reports."""

    @abstractmethod
    def add_token(self, token: TokenRecord) -> None:
        """Keep a new token."""

    @abstractmethod
    def tokens(self) -> list[TokenRecord]:
        """All tokens, oldest first."""

    @abstractmethod
    def find_token(self, digest: bytes) -> TokenRecord | None:
        """The token with this digest, revoked or not."""

    @abstractmethod
    def revoke_token(self, name: str) -> bool:
        """Refuse a token from now on; False if there is none of that name."""

    @abstractmethod
    def note(self, entry: AuditEntry) -> None:
        """Add to the audit log."""

    @abstractmethod
    def audit(self, limit: int) -> list[AuditEntry]:
        """The latest entries of the audit log, newest first."""

    @abstractmethod
    def prune_audit(self, before: str, entry: Callable[[int], AuditEntry]) -> int:
        """Erase the audit entries before a time and add `entry(count)`, in one transaction; return the count.

        Entries about earlier pruning (`PRUNED`) stay: they say what is missing from the log.
        """

    @abstractmethod
    def known(self, name: str) -> str | None:
        """What the database says under a name, if anything."""

    @abstractmethod
    def fact(self, name: str, value: str) -> str:
        """What the database says under a name: what was said first."""

    @abstractmethod
    def set_fact(self, name: str, value: str) -> None:
        """Say something else under a name."""

    @abstractmethod
    def size(self) -> int:
        """Return how many bytes the database takes."""

    @abstractmethod
    def ping(self) -> None:
        """Raise a StoreError unless the database answers."""

    @abstractmethod
    def probe(self, size: int = 0) -> None:
        """Write at least `size` bytes durably and remove them again; raise a StoreError where that fails."""

    @abstractmethod
    def close(self) -> None:
        """Give the connections back."""
