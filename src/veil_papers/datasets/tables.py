"""Tables of private attributes and public columns: three censuses and an online shop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Domain, Interval
from veil.errors import InputError
from veil_papers.datasets.files import check_integer, data_file, read_columns
from veil_papers.datasets.records import Records, draw_rows, frequent_labels, make_records

if TYPE_CHECKING:
    import pyarrow

Census = Literal["cps", "adult", "acs"]
Columns = dict[str, NDArray[Any]]
_ROWS = 1 << 18


@dataclass(frozen=True, eq=False)
class Tabular:
    """One row per person: private attributes as codes, and public columns as arrays of the same length.

    >>> from veil import Record
    >>> some = Tabular(Records(Record.of(sex=["f", "m"]), np.array([[0], [1]]), "by hand", stand_in=False),
    ...                {"hours": np.array([40, 20])})
    >>> some.rows()["sex"].tolist(), some.take([1]).public["hours"].tolist()
    (['f', 'm'], [20])
    """

    private: Records
    public: Mapping[str, NDArray[Any]]

    @property
    def people(self) -> int:
        """The number of rows."""
        return self.private.people

    @property
    def origin(self) -> str:
        """The origin of the data."""
        return self.private.origin

    @property
    def stand_in(self) -> bool:
        """True for made-up data."""
        return self.private.stand_in

    def only(self, names: Sequence[str]) -> Tabular:
        """Select private attributes, in this order; public columns stay."""
        return Tabular(self.private.only(names), self.public)

    def take(self, rows: Any) -> Tabular:
        """Select people by row numbers, a slice or a mask."""
        return Tabular(self.private.take(rows), {name: column[rows] for name, column in self.public.items()})

    def resample(self, people: int, seed: int) -> Tabular:
        """Draw `people` rows at random with replacement.

        >>> census_like().resample(7, seed=1).people
        7
        """
        rows = self.take(draw_rows(people, self.people, seed))
        return replace(rows, private=replace(rows.private, origin=f"{self.origin}, resampled"))

    def rows(self) -> Columns:
        """Return all columns as arrays of values: the private ones decoded, then the public ones."""
        parts, codes = self.private.domain.parts, self.private.codes.T
        held = (np.asarray(part.decode(column)) for part, column in zip(parts, codes, strict=True))
        return dict(zip(self.private.domain.names, held, strict=True)) | dict(self.public)

    def chunks(self, rows: int = _ROWS) -> Iterator[Tabular]:
        """Yield the same people in chunks of at most `rows`."""
        for start in range(0, self.people, rows):
            yield self.take(slice(start, start + rows))

    def to_arrow(self) -> pyarrow.Table:
        """Return all columns as an Arrow table, for example to write a file."""
        import pyarrow as pa

        return pa.table({name: pa.array(column) for name, column in self.rows().items()})


# -- censuses ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """The columns of a census file: numbers with the range to be cut into buckets, labels, and the public measure."""

    file: str
    people: int
    ordinal: Mapping[str, tuple[str, float, float]]
    """By our name: the column in the file and the range; values beyond it are clipped."""
    categorical: Mapping[str, tuple[str, int]]
    """By our name: the column in the file and the number of labels, the last of which is "other" if there are more."""
    measure: tuple[str, str, int]
    """Our name, the column in the file, and the divisor of its integers."""


_SOURCES: dict[str, _Source] = {
    "cps": _Source(
        "cps_taxunits_taxcalc.parquet",
        280_005,
        {
            "wages": ("wages_total", 0, 200_000),
            "age": ("age_head", 0, 90),
            "spouse_wages": ("wages_spouse", 0, 100_000),
            "benefits": ("social_security", 0, 50_000),
            "spouse_age": ("age_spouse", 0, 90),
            "pension": ("pension_income", 0, 30_000),
        },
        {
            "filing": ("marital_filing", 4),
            "persons": ("n_persons", 6),
            "year": ("survey_year", 3),
            "state": ("state_fips", 51),
        },
        ("weight", "weight_s006", 10_000),
    ),
    "adult": _Source(
        "adult_uci.parquet",
        48_842,
        {
            "final_weight": ("fnlwgt", 0, 600_000),
            "age": ("age", 16, 91),
            "education_years": ("education_num", 0, 17),
            "gain": ("capital_gain", 0, 20_000),
        },
        {"marital": ("marital_status", 7), "relationship": ("relationship", 6), "race": ("race", 5), "sex": ("sex", 2)},
        ("hours", "hours_per_week", 1),
    ),
    "acs": _Source(
        "acs_nist2019_excerpts.parquet",
        44_163,
        {
            "income": ("PINCP", -10_000, 200_000),
            "age": ("AGEP", 0, 100),
            "industry": ("INDP", 0, 10_000),
            "density": ("DENSITY", 0, 55_000),
        },
        {"marital": ("MSP", 7), "race": ("RAC1P", 9), "education": ("EDU", 13), "sex": ("SEX", 2)},
        ("poverty", "POVPIP", 1),
    ),
}


def census_like(
    folder: str | Path | None = None, *, source: Census = "cps", ordinal: Sequence[int] = (1024,), categorical: int = 0
) -> Tabular:
    """Return people of a US census: numbers in equal buckets, labels, and one public measure.

    `ordinal` has the number of buckets of the first, second, ... number; `categorical` is the number of labelled
    attributes, up to four:

    - cps, 280,005 tax units of 2012 to 2014: wages, age, spouse_wages, benefits, spouse_age, pension; filing,
      persons, year, state; public is the weight in the survey, in hundreds;
    - adult, 48,842 people of UCI Adult: final_weight, age, education_years, gain; marital, relationship, race, sex;
      public are the hours of work per week, with a coefficient of variation of 0.31;
    - acs, 44,163 people of the American Community Survey: income, age, industry, density; marital, race, education,
      sex; public is the family's income in per cent of the poverty line.

    Numbers are clipped to their range; a missing value is 0, or the label "none".

    Without a folder the stand-in has as many people and the same columns; each column leans on one hidden number per
    person, the first has a quarter of the people at its lower end, and the measure has mean 40 and deviation 12.

    >>> some = census_like(ordinal=(256, 64), categorical=1)
    >>> some.people, some.private.domain.names, some.private.sizes, list(some.public)
    (280005, ('wages', 'age', 'filing'), (256, 64, 4), ['weight'])
    """
    if source not in get_args(Census):
        raise InputError(f"source: expected one of {', '.join(get_args(Census))}, got {source}")
    chosen = _SOURCES[source]
    most = len(chosen.ordinal)
    if len(ordinal) > most or len(ordinal) + check_integer("categorical", categorical, 0, 4) < 1:
        raise InputError(f"ordinal: expected up to {most} numbers of {source}, and at least one attribute in all")
    path = data_file(folder, chosen.file)
    make = _MadeUp(chosen.people, seed=9) if path is None else _FromFile(path)
    codes: list[NDArray[np.uint64]] = []
    parts: list[tuple[str, Domain]] = []
    for cells, (name, (column, lo, hi)) in zip(ordinal, chosen.ordinal.items(), strict=False):
        domain = Interval(lo, hi, cells=cells)
        codes.append(domain.encode(np.clip(make.numbers(column, lo, hi), lo, hi)))
        parts.append((name, domain))
    for name, (column, most) in list(chosen.categorical.items())[:categorical]:
        label_codes, labels = frequent_labels(make.labels(column, most), most)
        codes.append(label_codes.astype(np.uint64))
        parts.append((name, Categories(labels)))
    public, column, by = chosen.measure
    measure = {public: make.measure(column, by)}
    return Tabular(make_records(parts, codes, make.origin, stand_in=path is None), measure)


class _FromFile:
    """Columns of a census file, with 0 or "none" for missing values."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.origin = path.name

    def _read(self, column: str) -> Any:
        return read_columns(self.path, column)[column]

    def numbers(self, column: str, lo: float, hi: float) -> NDArray[np.float64]:
        import pyarrow.compute as pc

        return np.asarray(pc.fill_null(self._read(column), 0).to_numpy(zero_copy_only=False), np.float64)

    def labels(self, column: str, most: int) -> NDArray[Any]:
        return np.array(["none" if one is None else str(one) for one in self._read(column).to_pylist()])

    def measure(self, column: str, by: int) -> NDArray[np.int64]:
        return np.rint(self.numbers(column, 0, 0) / by).astype(np.int64)


class _MadeUp:
    """Made-up columns: each correlates with one hidden normal number per person, by 0.3 to 0.7 or their negatives."""

    def __init__(self, people: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.hidden = self.rng.normal(size=people)
        self.origin = f"a stand-in: {people:,} people with one hidden number each, seed {seed}"
        self.first = True

    def _leaning(self) -> NDArray[np.float64]:
        lean = float(self.rng.uniform(0.3, 0.7) * self.rng.choice([-1.0, 1.0]))
        return np.asarray(lean * self.hidden + np.sqrt(1 - lean**2) * self.rng.normal(size=len(self.hidden)))

    def numbers(self, column: str, lo: float, hi: float) -> NDArray[np.float64]:
        place = 1 / (1 + np.exp(-1.2 * self._leaning()))
        place = np.where(place < np.quantile(place, 0.25), 0.0, place**2) if self.first else place
        self.first = False
        return lo + np.asarray(place) * (hi - lo)

    def labels(self, column: str, most: int) -> NDArray[Any]:
        shares = np.cumsum(1.0 / np.arange(1, most + 1))
        value = self._leaning()
        cuts = np.quantile(value, shares[:-1] / shares[-1])
        return np.array([f"{column} {i}" for i in range(most)])[np.searchsorted(cuts, value)]

    def measure(self, column: str, by: int) -> NDArray[np.int64]:
        return np.clip(np.rint(40 + 12 * self._leaning()), 1, 99).astype(np.int64)


# -- an online shop ----------------------------------------------------------------------------------------------------

_ONLINE, _LINES = "online_retail_uci.parquet", 528_272
_REGIONS = {"United Kingdom": "Great Britain", "EIRE": "Ireland", "Germany": "Germany", "France": "France"}
_BEYOND = frozenset(
    ("Australia", "Bahrain", "Brazil", "Canada", "Hong Kong", "Israel", "Japan", "Lebanon", "RSA", "Saudi Arabia",
     "Singapore", "USA", "United Arab Emirates", "Unspecified")
)  # fmt: skip
_POSTAGE = ("POST", "DOT")
_CATEGORIES = 12
_PRICE = Interval(0, 25, cells=125)


def online_retail(folder: str | Path | None = None) -> Tabular:
    """Return 528,272 order lines of a British online shop (UCI Online Retail, 2010 to 2011); a line is a person.

    Private are region (Great Britain, Ireland, Germany, France, other Europe, elsewhere), category (the first two
    characters of the product's code: the eleven most frequent, and "other") and price (pounds, in 125 buckets, clipped
    at 25). Public are postage (pounds: the postage of the order over its lines), quantity and day. Returns, gifts
    without a price, and the lines of postage themselves are left out.

    Without a folder the stand-in has as many lines, with about the same shares and means.

    >>> online_retail().people, online_retail().private.sizes
    (528272, (6, 12, 125))
    """
    path = data_file(folder, _ONLINE)
    if path is None:
        return _made_up_shop()
    import pyarrow as pa
    import pyarrow.compute as pc

    names = ("invoice", "stock_code", "quantity", "unit_price", "invoice_time", "country")
    table = pa.table(read_columns(path, *names))
    table = table.filter(pc.and_(pc.greater(table["quantity"], 0), pc.greater(table["unit_price"], 0)))
    code = table["stock_code"].to_numpy()
    price, quantity = (table[name].to_numpy().astype(np.float64) for name in ("unit_price", "quantity"))
    _, order = np.unique(table["invoice"].to_numpy(), return_inverse=True)
    fee = np.isin(code, _POSTAGE)
    lines = np.bincount(order, ~fee)
    postage = np.bincount(order, np.where(fee, price * quantity, 0.0)) / np.maximum(lines, 1)
    countries, which = np.unique(table["country"].to_numpy(), return_inverse=True)
    regions = np.array([_REGIONS.get(c, "elsewhere" if c in _BEYOND else "other Europe") for c in countries])[which]
    columns = {
        "region": regions[~fee],
        "category": np.array([product[:2] for product in code[~fee].tolist()]),
        "price": price[~fee],
        "postage": np.round(postage[order][~fee], 2),
        "quantity": quantity[~fee].astype(np.int64),
        "day": table["invoice_time"].to_numpy().astype("datetime64[D]")[~fee],
    }
    return _shop(columns, _ONLINE, stand_in=False)


def _shop(columns: Columns, origin: str, *, stand_in: bool) -> Tabular:
    """Return the table of these columns, with labels ordered by frequency."""
    region, regions = frequent_labels(columns["region"], len(_REGIONS) + 2)
    category, categories = frequent_labels(columns["category"], _CATEGORIES)
    price = _PRICE.encode(np.minimum(columns["price"], _PRICE.hi))
    parts = (("region", Categories(regions)), ("category", Categories(categories)), ("price", _PRICE))
    public = {name: columns[name] for name in ("postage", "quantity", "day")}
    return Tabular(make_records(parts, (region, category, price), origin, stand_in=stand_in), public)


def _made_up_shop() -> Tabular:
    rng = np.random.default_rng(10)
    labels = np.array([*_REGIONS.values(), "other Europe", "elsewhere"])
    abroad = rng.choice(6, _LINES, p=[0.915, 0.015, 0.017, 0.016, 0.031, 0.006])
    shares = 1.0 / np.arange(1, _CATEGORIES + 1) ** 1.3
    category = rng.choice(_CATEGORIES, _LINES, p=shares / shares.sum())
    paid = rng.random(_LINES) < np.where(abroad > 0, 0.6, 0.25)
    columns = {
        "region": labels[abroad],
        "category": np.array([f"2{i:x}" for i in range(_CATEGORIES)])[category],
        "price": np.exp(rng.normal(0.75, 0.85, _LINES)),
        "postage": np.round(np.where(paid, rng.gamma(1.2, np.where(abroad > 0, 2.0, 1.4)), 0.0), 2),
        "quantity": rng.geometric(0.12, _LINES),
        "day": np.datetime64("2010-12-01") + rng.integers(0, 374, _LINES),
    }
    return _shop(columns, f"a stand-in: {_LINES:,} order lines, seed 10", stand_in=True)
