"""One of a list of labels."""

from __future__ import annotations

import contextlib
import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from veil.domain.base import EXACT, Domain, as_list
from veil.domain.inputs import Column, as_int64, read_column, refuse_at
from veil.errors import DomainError, ParameterError, PrivacyWarning
from veil.tools.json_documents import Json, take
from veil.tools.numbers import is_int

Label = str | int

_FEW = 8  # so many labels are named in a message, where they are short: they are public
_SHORT = 80  # characters of them together


@dataclass(frozen=True, init=False)
class Categories(Domain):
    """One of a list of labels; `Categories.range(d)` is 0 .. d-1 without listing them.

    With `missing="category"` a missing value is an answer of its own (the last one, None); otherwise it is refused.
    Booleans are taken for 0 and 1 where these are the values, and for the labels "false" and "true" in any case.

    >>> Categories(["tea", "coffee"]).encode(["coffee", "tea"]).tolist()
    [1, 0]
    >>> Categories.range(4).size
    4
    """

    labels: tuple[Label, ...] | None
    count: int
    missing: Literal["refuse", "category"] = "refuse"
    kind = "categories"

    def __init__(self, labels: Sequence[Label], *, missing: Literal["refuse", "category"] = "refuse") -> None:
        checked = tuple(_label(label) for label in labels)
        if len(set(checked)) != len(checked):
            raise ParameterError("labels must differ from each other (after Unicode NFC)")
        self._set(checked, len(checked), missing)

    def _set(self, labels: tuple[Label, ...] | None, count: int, missing: Literal["refuse", "category"]) -> None:
        if missing not in ("refuse", "category"):
            raise ParameterError('missing is "refuse" or "category"')
        if not 1 <= count <= EXACT:
            raise ParameterError("a list of categories needs at least one and fewer than 2^53 of them")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "missing", missing)

    @classmethod
    def range(cls, count: int, *, missing: Literal["refuse", "category"] = "refuse") -> Categories:
        """The integers 0 .. count - 1."""
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
            raise ParameterError("a domain's size is an integer")
        made = cls.__new__(cls)
        made._set(None, int(count), missing)
        return made

    @classmethod
    def of(cls, values: Any) -> Categories:
        """The distinct values of a column. Only for public data: which values occur at all can give a person away."""
        warnings.warn(
            "a domain read off private data leaks which values occur: list the categories yourself",
            PrivacyWarning,
            stacklevel=2,
        )
        column = read_column(values)
        return cls(sorted({_plain(v) for v in column.values[~column.missing]}, key=lambda v: (str(type(v)), v)))

    @property
    def size(self) -> int:
        return self.count + (self.missing == "category")

    def encode(self, values: Any) -> NDArray[np.uint64]:
        distinct = _distinct_text(values)
        if distinct is not None:
            with contextlib.suppress(DomainError):  # below, the same again: with the right row
                return np.asarray(self._lookup(read_column(distinct[0]))[distinct[1]])
        column = read_column(values)
        if not column.missing.any():
            return self._lookup(column)
        if self.missing == "refuse":
            refuse_at(column.missing, f"expected {self.expected}; a value is missing")
        held = ~column.missing
        codes = np.full(len(column), self.count, dtype=np.uint64)
        codes[held] = self._lookup(Column(column.values[held], column.missing[held]))
        return codes

    def _lookup(self, column: Column) -> NDArray[np.uint64]:
        """Codes of a column in which nothing is missing."""
        if self._booleans is not None and _all_booleans(column.values):
            return np.array(self._booleans, dtype=np.uint64)[column.values.astype(np.int64)]
        if self.labels is None:
            integers = as_int64(column, self.expected)
            refuse_at((integers < 0) | (integers >= self.count), f"expected {self.expected}")
            return integers.astype(np.uint64)
        if column.values.dtype.kind == "U" and self.count <= _FEW:
            few = np.full(len(column), -1, dtype=np.int64)
            for code, label in enumerate(self.labels):
                if isinstance(label, str):
                    few[column.values == label] = code
            if (few >= 0).all():
                return few.astype(np.uint64)
        values = (as_int64(column, self.expected) if column.values.dtype.kind == "f" else column.values).tolist()
        find = self._index.get
        known = (str, int)  # what a label may be; anything else may not even be hashable
        codes = np.array([find(value, -1) if isinstance(value, known) else -1 for value in values], dtype=np.int64)
        for row in np.flatnonzero(codes < 0):
            value = values[row]
            if isinstance(value, str):  # in text, a boolean may be written True, TRUE or true
                codes[row] = find(unicodedata.normalize("NFC", value), self._truths.get(value.casefold(), -1))
            else:
                codes[row] = -1
        if not all(isinstance(label, str) for label in self._index):
            codes[[isinstance(value, bool) for value in values]] = -1  # True would pass for the label 1
        refuse_at(codes < 0, f"expected {self.expected}{self._suggestion(values, codes < 0)}")
        return codes.astype(np.uint64)

    def _suggestion(self, values: list[Any], wrong: NDArray[np.bool_]) -> str:
        """Says that labels were written with other capitals or with spaces, where they were.

        Which label it is would be somebody's answer: the one that is named does not depend on the values.
        """
        texts = [values[row] for row in np.flatnonzero(wrong) if isinstance(values[row], str)]
        near = sum(map(self.is_near, texts))
        if not near:
            return ""
        found = "one of them is a label" if near == 1 else f"{near:,} of them are labels"
        named = next(label for label in self.labels or () if isinstance(label, str))
        return f"; {found} but for capitals or spaces: write labels as the study does, as in {named!r}"

    def is_near(self, text: str) -> bool:
        """Whether a text is a label but for capitals or spaces."""
        return _folded(text) in self._near

    def decode(self, codes: Any) -> list[Any]:
        indices = np.asarray(codes, dtype=np.uint64).tolist()
        if self.labels is None:
            return [i if i < self.count else None for i in indices]
        return [self.labels[i] if i < self.count else None for i in indices]

    def to_json(self) -> Json:
        listed: Json = {"kind": "categories", "missing": self.missing}
        return listed | ({"size": self.count} if self.labels is None else {"labels": list(self.labels)})

    @classmethod
    def from_json(cls, document: Json) -> Categories:
        if isinstance(document, dict) and "size" in document:
            size, missing = take(document, "categories", "size", "missing")
            return cls.range(size, missing=missing)
        labels, missing = take(document, "categories", "labels", "missing")
        return cls(as_list(labels), missing=missing)

    def __repr__(self) -> str:
        if self.labels is None:
            return f"Categories.range({self.count})"
        shown = ", ".join(repr(label) for label in self.labels[:3])
        return f"Categories([{shown}{', ...' if self.count > 3 else ''}], {self.count} labels)"

    @cached_property
    def _index(self) -> dict[Label, int]:
        return {label: i for i, label in enumerate(self.labels or ())}

    @cached_property
    def _booleans(self) -> tuple[int, int] | None:
        """The codes of False and True, where it is plain which they are: of 0 and 1, or of labels that say so."""
        if self.labels is None or set(self.labels) == {0, 1}:
            return None if self.count != 2 else (0, 1) if self.labels is None else (self._index[0], self._index[1])
        return (self._truths["false"], self._truths["true"]) if self._truths else None

    @cached_property
    def _truths(self) -> dict[str, int]:
        """The codes of the labels "false" and "true", in whatever case; none where there is not exactly one of each."""
        told = [label.casefold() if isinstance(label, str) else "" for label in self.labels or ()]
        plain = told.count("false") == told.count("true") == 1
        return {word: told.index(word) for word in ("false", "true")} if plain else {}

    @cached_property
    def _near(self) -> set[str]:
        """The labels without capitals and spaces around them."""
        return {_folded(label) for label in self.labels or () if isinstance(label, str)}

    @property
    def expected(self) -> str:
        """What may be held, in the words of an error; labels are public."""
        if self.labels is None:
            return f"integers from 0 to {self.count - 1}"
        names = [str(label) for label in self.labels[:_FEW]]
        if self.count > _FEW or sum(map(len, names)) > _SHORT:
            return f"one of the {self.count} categories"
        return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _label(label: Any) -> Label:
    if isinstance(label, str):
        return unicodedata.normalize("NFC", label)
    if is_int(label) and abs(label) <= EXACT:
        return int(label)
    raise ParameterError("a label is a string or an integer below 2^53")


def _folded(text: str) -> str:
    """A text without what people overlook: capitals, and spaces around it or several in a row."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _all_booleans(values: NDArray[Any]) -> bool:
    """Whether a column holds booleans alone: among numbers, True would pass for 1."""
    if values.dtype == object:
        return len(values) > 0 and all(isinstance(value, (bool, np.bool_)) for value in values)
    return values.dtype.kind == "b"


def _distinct_text(values: Any) -> tuple[Any, NDArray[np.int64]] | None:
    """The different texts of a long Arrow column, and which of them each row has: each is then looked up once."""
    if type(values).__module__.partition(".")[0] != "pyarrow" or not hasattr(values, "dictionary_encode"):
        return None
    import pyarrow as pa

    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)) or values.null_count:
        return None
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(whole, pa.ChunkedArray) or not len(whole):
        return None
    coded = whole.dictionary_encode()
    return coded.dictionary, coded.indices.to_numpy().astype(np.int64)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
