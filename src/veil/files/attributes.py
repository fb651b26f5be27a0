"""The columns of a file as attributes: their domains, or facts about labels, numbers and times.

`read_attributes` gives the domains of a record. `read_facts` gives facts for proposals that a person looks at, as `veil
plan sql` makes them. The result becomes part of a study, which everybody may read: never read it off private data.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from veil.domain import Categories, Domain, Integers
from veil.domain.text_values import parse_time
from veil.errors import EmptyError, InputError
from veil.files.arrow_files import PathLike
from veil.files.values import read_columns

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["labels", "numbers", "times"]
MOST_VALUES = 4096
"""How many different values of a column are taken for labels, or as a range of integers."""
_FEW = 12  # so many different integers are labels, which need not follow each other; more are a range
_MOST_DECIMALS = 9
_CODES = r"^-?0[0-9]+$"  # as 007: labels that look like numbers


def read_attributes(path: PathLike, names: Sequence[str]) -> dict[str, Domain]:
    """The domain of each named column: its labels in order, or the range of its integers.

    Text is one of the labels found, and booleans are the labels "false" and "true". Integers are labels where there
    are at most 12 different ones, else all those between the smallest and the largest. Where cells are empty, "missing"
    is an answer of its own. Numbers with fractions and times are refused, with what to write instead.
    """
    found: dict[str, set[Any]] = {name: set() for name in names}
    rows = 0
    for table in read_columns(path, names):
        rows += table.num_rows
        for name in names:
            found[name] |= _different(table.column(name), name)
            if len(found[name]) > MOST_VALUES + 1:
                raise InputError(_many(name, found[name]))
    if not rows:
        raise EmptyError(f"{path} holds no people: there is nothing to read attributes off")
    return {name: _domain(values, name) for name, values in found.items()}


def _different(column: pa.ChunkedArray, name: str) -> set[Any]:
    """The different values in a column; of text that writes whole numbers, still text."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_boolean(kind):
        return {"false", "true"} | ({None} if column.null_count else set())
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise InputError(_continuous(name, time=pa.types.is_temporal(kind)))
    return set(column.unique().to_pylist())


def _continuous(name: str, *, time: bool) -> str:
    return (
        f"column {name} holds neither labels nor whole numbers: say in how many cells it is asked for, "
        f"as in --attribute {name}={'2026-01-01..2027-01-01/12' if time else '0..100/10'}"
    )


def _many(name: str, values: set[Any]) -> str:
    told = {value for value in values if isinstance(value, str)}
    if told and all(map(_is_number_or_time, told)) and not all(map(is_whole, told)):
        return _continuous(name, time=_has_time(told))
    return (
        f"column {name} has more than {MOST_VALUES:,} different values: put them together in fewer groups, "
        f"as in --attribute {name}=0..100/10 for numbers, or leave it out"
    )


def _domain(values: set[Any], name: str) -> Domain:
    present = values - {None}
    whole = all(isinstance(value, int) or is_whole(value) for value in present)
    if whole and len(present) > _FEW:
        integers = [int(value) for value in present]
        if None in values:
            raise InputError(f"column {name} has empty cells among its numbers: fill them, or leave it out")
        if max(integers) - min(integers) >= MOST_VALUES:
            raise InputError(
                f"column {name} has whole numbers over a range of more than {MOST_VALUES:,}: ask for it in cells, "
                f"as in --attribute {name}=0..100000/10"
            )
        return Integers(min(integers), max(integers))
    if present and not whole and all(map(_is_number_or_time, present)):  # in a text file, where all is text
        time = _has_time(present)
        listed = "2026-01-31,2026-02-28" if time else "0.5,1.0"
        raise InputError(f"{_continuous(name, time=time)}; or list its labels, as in --attribute {name}={listed}")
    if len(present) > MOST_VALUES:
        raise InputError(_many(name, present))
    if not present:
        raise EmptyError(f"column {name} is empty")
    labels = sorted(int(value) for value in present) if whole else sorted(map(str, present))
    return Categories(labels, missing="category" if None in values else "refuse")


def _is_number_or_time(value: Any) -> bool:
    """Whether a value of a text file is a number or a time; codes as 007 are labels."""
    if isinstance(value, int):
        return True
    if value.isdecimal() and not is_whole(value):
        return False
    try:
        return math.isfinite(float(value))
    except ValueError:
        return parse_time(value) is not None


def _has_time(values: set[Any]) -> bool:
    """Whether there is a time among numbers and times, as text."""
    return any(parse_time(value) is not None and not is_whole(value) for value in values)


def is_whole(text: str) -> bool:
    """Whether a text is a whole number as it is usually written.

    >>> is_whole("-12"), is_whole("007"), is_whole("1.0")
    (True, False, False)
    """
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= 15 and text == str(int(text))


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
