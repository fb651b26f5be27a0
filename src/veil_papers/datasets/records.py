"""Records of several attributes: two censuses, cut to few categories, and a stand-in for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Domain, Record
from veil_papers.datasets.files import check_integer, data_file, read_columns

if TYPE_CHECKING:
    import pyarrow

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
    """One record per person: rows of codes, one per attribute, and the origin of the data.

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
        """The number of records."""
        return len(self.codes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        return tuple(part.size for part in self.domain.parts)

    def only(self, names: Sequence[str]) -> Records:
        """Select attributes, in this order."""
        parts = dict(self.domain.attributes)
        return replace(
            self, domain=Record(tuple((n, parts[n]) for n in names)), codes=self.codes[:, self._index(names)]
        )

    def take(self, rows: Any) -> Records:
        """Select people by row numbers, a slice or a mask."""
        return replace(self, codes=self.codes[rows])

    def resample(self, people: int, seed: int) -> Records:
        """Draw `people` records at random with replacement.

        >>> adult().resample(7, seed=1).people
        7
        """
        return replace(self.take(draw_rows(people, self.people, seed)), origin=f"{self.origin}, resampled")

    def table(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Count the people with each combination of these attributes, one axis per attribute."""
        columns = self._index(names)
        shape = tuple(self.sizes[column] for column in columns)
        cells = np.ravel_multi_index(tuple(self.codes[:, columns].T), shape)
        return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)

    @cached_property
    def distinct(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct records, and the number of people with each."""
        rows, counts = np.unique(self.codes, axis=0, return_counts=True)
        return rows.astype(np.int64), counts.astype(np.int64)

    def to_arrow(self) -> pyarrow.Table:
        """Return the records as a table of labels, which `simulate` takes."""
        import pyarrow as pa

        columns = (part.decode(codes) for part, codes in zip(self.domain.parts, self.codes.T, strict=True))
        return pa.table(dict(zip(self.domain.names, map(pa.array, columns), strict=True)))

    def _index(self, names: Sequence[str]) -> list[int]:
        return [self.domain.names.index(name) for name in names]


def draw_rows(people: int, total: int, seed: int) -> NDArray[np.int64]:
    """Draw `people` of `total` row numbers with replacement."""
    return np.random.default_rng(seed).integers(0, total, check_integer("people", people))


def make_records(
    parts: Sequence[tuple[str, Domain]], codes: Sequence[NDArray[Any]], origin: str, *, stand_in: bool
) -> Records:
    """Return records of columns of codes, in the narrowest integers that hold them."""
    narrow = np.min_scalar_type(max(part.size for _, part in parts))
    return Records(Record(tuple(parts)), np.stack(codes, axis=1).astype(narrow), origin, stand_in)


def adult(folder: str | Path | None = None, *, most: int = 3) -> Records:
    """Return 45,222 people of the US census of 1994 (UCI Adult, complete answers only), with 15 attributes.

    Every attribute is cut to at most `most` categories (2 gives binary ones). Numbers are cut into ranges that hold
    equal parts of the remaining people; a value is never divided, so that people without a capital gain are one
    category. Of other attributes the `most - 1` most frequent values stay, and all others are "other". The last
    attribute says whether the yearly income is above 50,000 dollars.

    Without a folder the stand-in has as many people and the same attributes, each of which leans on one hidden
    number per person.

    >>> adult().people, adult().sizes == (3,) * 8 + (2,) + (3,) * 5 + (2,)
    (45222, True)
    """
    path = data_file(folder, _ADULT)
    if path is None:
        return _stand_in(_ADULT_NAMES, _ADULT_PEOPLE, {"sex": 2, "income": 2}, most, seed=5)
    arrays = read_columns(path, *_ADULT_NAMES)
    columns = {name: column.to_numpy(zero_copy_only=False) for name, column in arrays.items()}
    known = np.all([column != _UNKNOWN for column in columns.values() if column.dtype.kind == "O"], axis=0)
    return _cut({name: column[known] for name, column in columns.items()}, most, _ADULT)


def us_census(folder: str | Path | None = None, *, most: int = 3) -> Records:
    """Return 44,163 people of the American Community Survey of 2019 (NIST's excerpts), with 16 attributes.

    They are cut as in `adult`. A value that does not apply to a person is "none", or 0 among numbers. The last
    attribute says whether the yearly income is above 50,000 dollars. Every person counts once, without the survey's
    weights. Without a folder the stand-in is made as that of `adult`.

    >>> us_census().people, len(us_census().domain.names)
    (44163, 16)
    """
    path = data_file(folder, _US)
    if path is None:
        return _stand_in(_US_NAMES, _US_PEOPLE, {"SEX": 2, "PINCP": 2}, most, seed=6)
    import pyarrow.compute as pc

    columns = {}
    for name, column in read_columns(path, *_US_NAMES).items():
        if name == "PINCP":
            columns[name] = np.where(pc.fill_null(column, 0).to_numpy() > _RICH, "above 50,000", "up to 50,000")
        elif name in _US_NUMBERS:
            columns[name] = pc.fill_null(column, 0).to_numpy()
        else:
            columns[name] = np.array(["none" if code is None else str(code) for code in column.to_pylist()], object)
    return _cut(columns, most, _US)


def _cut(columns: dict[str, NDArray[Any]], most: int, origin: str) -> Records:
    """Return records of columns cut to few categories: numbers to ranges, other values to the most frequent."""
    check_integer("most", most, 2)
    codes, parts = [], []
    for name, column in columns.items():
        column_codes, labels = (_ranges if column.dtype.kind in "if" else frequent_labels)(column, most)
        codes.append(column_codes)
        parts.append((name, Categories(labels)))
    return make_records(parts, codes, f"{origin}, at most {most} categories", stand_in=False)


def _ranges(column: NDArray[Any], most: int) -> tuple[NDArray[np.int64], list[str]]:
    """Cut numbers into ranges; each takes values until it holds its part of the remaining people."""
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
    """Return codes and labels: the most frequent values, ties by the alphabet; beyond `most`, "other"."""
    values, places, counts = np.unique(column.astype(str), return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    labels = [str(value) for value in values[order]]
    if len(labels) > most:
        labels = [*labels[: most - 1], "other"]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return np.minimum(ranks, len(labels) - 1)[places], labels


def _stand_in(names: Sequence[str], people: int, fewer: dict[str, int], most: int, seed: int) -> Records:
    """Make up people with one hidden normal number each; an attribute is that number plus noise, cut at quantiles.

    The absolute correlation of an attribute with the hidden number is drawn between 0.2 and 0.8, and the share of its
    first category between 0.3 and 0.7; the others share the rest evenly.
    """
    check_integer("most", most, 2)
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
    return make_records(parts, codes, origin, stand_in=True)
