"""All errors and warnings of veil. None of them carries a private value.

VeilError
├── InputError (also ValueError)      an argument breaks its contract
│   ├── ParameterError                epsilon, a hash range, a share, ...
│   ├── DomainError                   a value that the domain does not hold, or a missing one
│   ├── EmptyError                    no people, no reports
│   ├── ExtraError                    a library that an extra brings is not installed
│   ├── LimitError                    a query or reading that needs more memory or time than it may have
│   └── SqlError                      a query that cannot be answered, and where in it
├── MismatchError (also ValueError)   reports, tallies or files of another task
├── WireError (also ValueError)       bytes that are truncated, foreign or out of range
├── BudgetError                       the ledger refuses to spend
│   └── AnsweredError                 the survey was answered before: nothing is drawn or paid again
├── LedgerError                       the ledger's file cannot be trusted, so nothing is spent
├── EntropyError                      a source of randomness ran dry
├── CollectorError                    a device cannot reach the collector, or cannot trust what it says
├── ServiceError                      the collector refuses a request, with a code and a status of HTTP
├── StoreError                        the collector's database is down, full or damaged: nothing was acknowledged
│   ├── StoreTimeoutError             it did not answer in time
│   ├── StoreFullError                the disk is full, or the database reached its largest size
│   ├── StoreDamagedError             a part of what it holds is damaged or missing
│   └── StoreUnreachableError         no connection to it could be made
│       └── StoreReadOnlyError        its server takes no writes: a standby, or one that was demoted
├── PartyError                        a party of a shuffle failed, refused or fell silent: nothing was counted
└── EngineError                       what should count is not there, or failed: nothing was counted

PrivacyWarning (UserWarning)          allowed, but it may leak
FitWarning (UserWarning)              a model does not fit, and another was used
EngineWarning (UserWarning)           what should count is not there, and something slower does
"""

from __future__ import annotations

__all__ = [
    "AnsweredError",
    "BudgetError",
    "CollectorError",
    "DomainError",
    "EmptyError",
    "EngineError",
    "EngineWarning",
    "EntropyError",
    "ExtraError",
    "FitWarning",
    "InputError",
    "LedgerError",
    "LimitError",
    "MismatchError",
    "ParameterError",
    "PartyError",
    "PrivacyWarning",
    "ServiceError",
    "SqlError",
    "StoreDamagedError",
    "StoreError",
    "StoreFullError",
    "StoreReadOnlyError",
    "StoreTimeoutError",
    "StoreUnreachableError",
    "VeilError",
    "WireError",
]


class VeilError(Exception):
    """The root of all errors that veil raises on purpose."""


class InputError(VeilError, ValueError):
    """An argument breaks its contract."""


class ParameterError(InputError):
    """A parameter (epsilon, a hash range, a share, ...) is outside what is allowed."""


class DomainError(InputError):
    """A value does not belong to the domain. The value itself is never shown, only its row where there are several."""

    def __init__(self, expected: str, row: int | None = None, count: int = 1) -> None:
        self.expected, self.row, self.count = expected, row, count
        rows = "" if row is None else f" (row {row}{f', and {count - 1} more' if count > 1 else ''}; rows count from 0)"
        super().__init__(expected + rows)


class ExtraError(InputError):
    """A library that an extra brings is not installed. The message says how to install it here."""


class EmptyError(InputError):
    """There is nobody to randomize for, or nothing to estimate from."""


class LimitError(InputError):
    """A query or reading needs more memory or time than it may have. `expected` says what would fit."""

    def __init__(self, message: str, expected: str) -> None:
        self.expected = expected
        super().__init__(f"{message}; expected {expected}")


class SqlError(InputError):
    """A query that is not supported: `line` and `column` (from 1) say where, `message` what was found and expected."""

    def __init__(self, message: str, line: int, column: int) -> None:
        self.message, self.line, self.column = message, line, column
        super().__init__(f"line {line}, column {column}: {message}")


class MismatchError(VeilError, ValueError):
    """Two things that were made for different tasks were about to be mixed."""


class WireError(VeilError, ValueError):
    """Bytes that are truncated, foreign, damaged or out of range."""


class BudgetError(VeilError):
    """The ledger refuses: the answer would spend more than the person allowed."""


class AnsweredError(BudgetError):
    """The survey was answered before, and perhaps with this answer: nothing is drawn or paid again unasked."""


class LedgerError(VeilError):
    """The ledger's file is damaged or locked; nothing is spent until it is mended."""


class EntropyError(VeilError):
    """A finite source of randomness has no words left."""


class CollectorError(VeilError):
    """A device cannot reach the collector, or gets no survey from it. What was paid for is kept, and sent later."""


class ServiceError(VeilError):
    """The collector refuses a request. `code` is for programs, `status` is HTTP's, `retry_after` is in seconds.

    `limit` names the limit that was met, for metrics.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        expected: str | None = None,
        retry_after: int | None = None,
        limit: str | None = None,
    ) -> None:
        self.status, self.code, self.expected, self.retry_after = status, code, expected, retry_after
        self.limit = limit
        super().__init__(message)


class StoreError(VeilError):
    """The collector's database is down, full or damaged. Whatever was about to be stored was not acknowledged."""


class StoreTimeoutError(StoreError):
    """The collector's database did not answer in time: it hangs, or is locked by somebody else."""


class StoreFullError(StoreError):
    """The disk of the collector's database is full. The message is the same for every cause, and may be logged."""

    def __init__(self) -> None:
        super().__init__("the database cannot be used: the disk is full")


class StoreDamagedError(StoreError):
    """A part of what the collector's database holds is damaged or missing; the message names it."""


class StoreUnreachableError(StoreError):
    """No connection to the collector's database could be made: it may not be there yet."""


class StoreReadOnlyError(StoreUnreachableError):
    """The collector's database takes no writes: its server is a standby, or was demoted to one."""


class PartyError(VeilError):
    """A party of a shuffle failed, refused or fell silent. `party` is its name; nothing was counted."""

    def __init__(self, party: str, reason: str) -> None:
        self.party, self.reason = party, reason
        super().__init__(f"{party} {reason}")


class EngineError(VeilError):
    """What should count (a GPU, a cluster) is not there, or failed. Nothing was counted."""


class PrivacyWarning(UserWarning):
    """Allowed, but it may tell something about the people behind the data."""


class FitWarning(UserWarning):
    """An assumed model cannot fit the estimates; what was used in its place is in the lineage."""


class EngineWarning(UserWarning):
    """What should count is not on this machine; something slower does, with the same result."""
