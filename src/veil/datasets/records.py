"""What people hold as records of several attributes: two censuses, cut to few categories, and a stand-in for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.datasets.folder import data_file
from veil.domain import Categories, Record
from veil.errors import InputError
from veil.tools.arguments import is_int

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Records", "adult", "us_census"]

_ADULT, _ADULT_PEOPLE = "adult_uci.parquet", 45_222
_ADULT_NAMES = (
    "age", "workclass", "education", "education_num", "occupation", "marital_status", "relationship", "race", "sex",
    "capital_gain", "capital_loss", "hours_per_week", "native_country", "fnlwgt", "income",
)  # fmt: skip
_UNKNOWN = "?"
_US, _US_PEOPLE, _RICH = "acs_nist2019_excerpts.parquet", 44_163, 50_000
_US_NAMES = (
    "AGEP", "EDU", "INDP_CAT", "SEX", "MSP", "OWN_RENT", "POVPIP", "NPF", "NOC", "HISP", "RAC1P", "HOUSING_TYPE",
    "DENSITY", "DREM", "DPHY", "PINCP",
)  # fmt: skip
_US_NUMBERS = ("AGEP", "EDU", "POVPIP", "NPF", "NOC", "DENSITY")


@dataclass(frozen=True, eq=False)
class Records:
    """One record per person as rows of codes, one index per attribute, and where they were read.

    >>> some = Records(Record.of(sex=["f", "m"], age=3), np.array([[0, 2], [1, 0], [0, 2]]), "by hand", stand_in=False)
    >>> some.table(["sex", "age"]).tolist()
    [[0, 0, 2], [1, 0, 0]]
    """

    domain: Record
    codes: NDArray[Any]
    origin: str
    stand_in: bool

    @property
    def people(self) -> int:
        """How many records there are."""
        return len(self.codes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return tuple(part.size for part in self.domain.parts)

    def only(self, names: Sequence[str]) -> Records:
        """The same people with some of their attributes, in this order."""
        parts = dict(self.domain.attributes)
        kept = Record(tuple((name, parts[name]) for name in names))
        places = [self.domain.names.index(name) for name in names]
        return Records(kept, self.codes[:, places], self.origin, self.stand_in)

    def take(self, rows: Any) -> Records:
        """Some of the people: their rows, or True for each of them."""
        return Records(self.domain, self.codes[rows], self.origin, self.stand_in)

    def resample(self, people: int, seed: int) -> Records:
        """`people` people, each with the record of one of these, drawn at random with replacement.

        >>> adult().resample(7, seed=1).people
        7
        """
        if not is_int(people) or people < 1:
            raise InputError("the number of people is an integer of at least 1")
        rows = np.random.default_rng(seed).integers(0, self.people, people)
        return Records(self.domain, self.codes[rows], f"{self.origin}, resampled", self.stand_in)

    def table(self, names: Sequence[str]) -> NDArray[np.int64]:
        """How many people hold each combination of these attributes, with one axis for each."""
        places = [self.domain.names.index(name) for name in names]
        shape = tuple(self.sizes[place] for place in places)
        cells = np.ravel_multi_index(tuple(self.codes[:, places].T), shape)
        return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)

    @cached_property
    def distinct(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The different records, and how many people hold each."""
        rows, counts = np.unique(self.codes, axis=0, return_counts=True)
        return rows.astype(np.int64), counts.astype(np.int64)

    def to_arrow(self) -> pyarrow.Table:
        """The records as a table with their labels: what `simulate` takes."""
        import pyarrow as pa

        columns = (part.decode(codes) for part, codes in zip(self.domain.parts, self.codes.T, strict=True))
        return pa.table(dict(zip(self.domain.names, map(pa.array, columns), strict=True)))


def adult(folder: str | Path | None = None, *, most: int = 3) -> Records:
    """45,222 people of the US census of 1994 (UCI Adult, without those who left something out): 15 attributes.

    Every attribute is cut to at most `most` categories (2 gives binary ones). Numbers are cut where the people that are
    left fall into equal parts, and never within a value, so that most people without a capital gain are one category.
    Of other attributes the `most - 1` most frequent values stay, and all others are "other". The last attribute says
    whether the yearly income is above 50,000 dollars.

    Without a folder the stand-in has as many people and the same attributes, each of which leans on one hidden
    number per person.

    >>> adult().people, adult().sizes == (3,) * 8 + (2,) + (3,) * 5 + (2,)
    (45222, True)
    """
    path = data_file(folder, _ADULT)
    if path is None:
        return _stand_in(_ADULT_NAMES, _ADULT_PEOPLE, {"sex": 2, "income": 2}, most, seed=5)
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=list(_ADULT_NAMES))
    columns = {name: column.to_numpy(zero_copy_only=False) for name, column in _columns(table)}
    known = np.all([column != _UNKNOWN for column in columns.values() if column.dtype.kind == "O"], axis=0)
    return _built({name: column[known] for name, column in columns.items()}, most, _ADULT)


def us_census(folder: str | Path | None = None, *, most: int = 3) -> Records:
    """44,163 people of the American Community Survey of 2019 (NIST's excerpts): 16 attributes, cut like `adult`'s.

    What does not apply to a person is a value like others: "none", or 0 among numbers. The last attribute says whether
    the yearly income is above 50,000 dollars. Every person counts once, without the survey's weights. Without a folder
    the stand-in is made as that of `adult`.

    >>> us_census().people, len(us_census().domain.names)
    (44163, 16)
    """
    path = data_file(folder, _US)
    if path is None:
        return _stand_in(_US_NAMES, _US_PEOPLE, {"SEX": 2, "PINCP": 2}, most, seed=6)
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    columns = {}
    for name, column in _columns(pq.read_table(path, columns=list(_US_NAMES))):
        if name == "PINCP":
            columns[name] = np.where(pc.fill_null(column, 0).to_numpy() > _RICH, "above 50,000", "up to 50,000")
        elif name in _US_NUMBERS:
            columns[name] = pc.fill_null(column, 0).to_numpy()
        else:
            columns[name] = np.array(["none" if code is None else str(code) for code in column.to_pylist()], object)
    return _built(columns, most, _US)


def _columns(table: pyarrow.Table) -> list[tuple[str, Any]]:
    """Each column's name and its values, without dictionaries."""
    import pyarrow as pa

    whole = [(name, table.column(name).combine_chunks()) for name in table.column_names]
    return [(name, col.dictionary_decode() if pa.types.is_dictionary(col.type) else col) for name, col in whole]


def _built(columns: dict[str, NDArray[Any]], most: int, origin: str) -> Records:
    """Records of columns cut to few categories: numbers into ranges, everything else to its frequent values."""
    _check(most)
    codes, parts = [], []
    for name, column in columns.items():
        found, labels = (_ranges if column.dtype.kind in "if" else frequent_labels)(column, most)
        codes.append(found)
        parts.append((name, Categories(labels)))
    narrow = np.min_scalar_type(
        max(part.size for _, part in parts)
    )  # a byte each, mostly: many people, many attributes
    return Records(
        Record(tuple(parts)), np.stack(codes, axis=1).astype(narrow), f"{origin}, at most {most} categories", False
    )


def _check(most: int) -> None:
    if not is_int(most) or most < 2:
        raise InputError("the number of categories is an integer of at least 2")


def _ranges(column: NDArray[Any], most: int) -> tuple[NDArray[np.int64], list[str]]:
    """Numbers as ranges: each takes values until it holds its part of the people that are left."""
    values, counts = np.unique(column, return_counts=True)
    last: list[float] = []
    left, held = int(counts.sum()), 0
    for value, count in zip(values[:-1].tolist(), counts[:-1].tolist(), strict=True):
        held += count
        if held * (most - len(last)) >= left:
            last.append(value)
            left, held = left - held, 0
            if len(last) == most - 1:
                break
    labels = [f"up to {value:g}" for value in last] + [f"above {last[-1]:g}" if last else "any"]
    return np.searchsorted(np.array(last), column, side="left").astype(np.int64), labels


def frequent_labels(column: NDArray[Any], most: int) -> tuple[NDArray[np.int64], list[str]]:
    """The most frequent values, ties by the alphabet, and "other" where there are more than `most`."""
    values, places, counts = np.unique(column.astype(str), return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    labels = [str(value) for value in values[order]]
    if len(labels) > most:
        labels = [*labels[: most - 1], "other"]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return np.minimum(ranks, len(labels) - 1)[places], labels


def _stand_in(names: Sequence[str], people: int, fewer: dict[str, int], most: int, seed: int) -> Records:
    """People with a hidden number each, normal; an attribute is that number and noise of its own, cut at quantiles.

    Attribute i leans on the hidden number with a correlation between 0.2 and 0.8, or against it; the share of its first
    category is drawn between 0.3 and 0.7, and the others share the rest evenly.
    """
    _check(most)
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=people)
    codes, parts = [], []
    for name in names:
        size, lean, first = min(most, fewer.get(name, most)), rng.uniform(0.2, 0.8), rng.uniform(0.3, 0.7)
        lean *= rng.choice([-1.0, 1.0])
        column = lean * hidden + np.sqrt(1 - lean**2) * rng.normal(size=people)
        cuts = np.quantile(column, np.linspace(first, 1.0, size)[:-1])
        codes.append(np.searchsorted(cuts, column))
        parts.append((name, Categories([f"{name} {i}" for i in range(size)])))
    origin = f"a stand-in: {people:,} people with one hidden number each, seed {seed}"
    return Records(
        Record(tuple(parts)), np.stack(codes, axis=1).astype(np.min_scalar_type(most)), origin, stand_in=True
    )
