"""What the columns of a file hold, in a few facts: labels, numbers with their ends and decimals, or dates and times.

For proposals that a person looks at, as `veil plan sql` makes them. What is found may become part of a study, which
everybody may read: never read it off data whose labels are private.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from veil.domain.text_values import parse_time
from veil.errors import EmptyError
from veil.files.attributes import MOST_VALUES
from veil.files.opening import PathLike
from veil.files.values import read_columns

__all__ = ["ColumnFacts", "read_facts"]

Kind = Literal["labels", "numbers", "times"]
_MOST_DECIMALS = 9
_CODES = r"^-?0[0-9]+$"  # as 007: labels that look like numbers


@dataclass
class ColumnFacts:
    """What a column holds; `labels` is None where there are more than 4,096 different values."""

    kind: Kind = "numbers"
    labels: set[str] | None = field(default_factory=set)
    missing: bool = False
    low: float = np.inf
    high: float = -np.inf
    decimals: int = 0
    """Digits after the point, of numbers; at most 9."""
    first: dt.datetime | None = None
    last: dt.datetime | None = None
    days: bool = True
    """Whether all times are whole days."""

    @property
    def whole(self) -> bool:
        """Whether all numbers are whole."""
        return self.kind == "numbers" and self.decimals == 0


def read_facts(path: PathLike, names: Sequence[str]) -> dict[str, ColumnFacts]:
    """The facts of each named column of a file, in one pass.

    Text is taken for numbers or times where all of it reads as such; codes like 007 are labels, and so are booleans.
    """
    found: dict[str, ColumnFacts] = {name: ColumnFacts() for name in names}
    rows = 0
    for table in read_columns(path, names):
        for name in names:
            _add(found[name], table.column(name).combine_chunks())
        rows += table.num_rows
    if not rows:
        raise EmptyError(f"{path} holds no people: there is nothing to read columns off")
    for name, facts in found.items():
        if facts.labels is not None and not facts.labels:
            raise EmptyError(f"column {name} is empty")
    return found


def _add(facts: ColumnFacts, column: Any) -> None:
    """Take a chunk of a column in."""
    import pyarrow as pa
    import pyarrow.compute as pc

    first = facts.labels is not None and not facts.labels
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    facts.missing |= bool(column.null_count)
    held = column.drop_null().unique()
    if pa.types.is_boolean(held.type):
        facts.kind, held = "labels", pa.array(["false", "true"])
    elif first and pa.types.is_temporal(held.type):
        facts.kind = "times"
    texts = held.cast(pa.string())
    if facts.labels is not None and len(facts.labels) <= MOST_VALUES:
        facts.labels |= set(texts.to_pylist())
    if facts.labels is not None and len(facts.labels) > MOST_VALUES:
        facts.labels = None
    if not len(held):
        return
    textual = pa.types.is_string(held.type) or pa.types.is_large_string(held.type)
    if facts.kind == "numbers" and not (textual and pc.any(pc.match_substring_regex(texts, _CODES)).as_py()):
        try:
            _add_numbers(facts, held.cast(pa.float64()).to_numpy(zero_copy_only=False), texts if textual else None)
            return
        except pa.ArrowInvalid:
            facts.kind = "times" if first else "labels"
    elif facts.kind == "numbers":
        facts.kind = "labels"
    if facts.kind == "times" and not _add_times(facts, held, textual=textual):
        facts.kind = "labels"


def _add_numbers(facts: ColumnFacts, numbers: Any, texts: Any) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not np.isfinite(numbers).all():
        raise pa.ArrowInvalid("not finite")
    facts.low, facts.high = min(facts.low, float(numbers.min())), max(facts.high, float(numbers.max()))
    if texts is not None and not pc.any(pc.match_substring_regex(texts, "[eE]")).as_py():
        digits = pc.utf8_length(pc.replace_substring_regex(texts, r"^[^.]*\.?", ""))
        found = int(pc.max(digits).as_py())
    else:
        found = next(
            (s for s in range(_MOST_DECIMALS) if np.allclose(np.rint(numbers * 10**s), numbers * 10**s, 1e-12, 1e-9)),
            _MOST_DECIMALS,
        )
    facts.decimals = min(max(facts.decimals, found), _MOST_DECIMALS)


def _add_times(facts: ColumnFacts, held: Any, *, textual: bool) -> bool:
    """Whether all of a chunk are times; then its ends are taken in."""
    import pyarrow as pa

    if textual:
        times = [parse_time(text) for text in held.to_pylist()]
    else:
        try:
            times = [parse_time(time.isoformat()) for time in held.cast(pa.timestamp("us")).to_pylist()]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a time of day has no date
            return False
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return False
    facts.first = min(known) if facts.first is None else min(facts.first, *known)
    facts.last = max(known) if facts.last is None else max(facts.last, *known)
    facts.days &= all(not (time.hour or time.minute or time.second or time.microsecond) for time in known)
    return True
