"""Schema files: descriptions of a table in TOML or JSON.

[table]
name = "shop"                   # for FROM; "people" if left out
epsilon = 2.0
mechanism = "HIO"               # or HI, SC, MG, Grids; auto, the default, takes the best of all but Grids
fan_out = 5                     # of HIO, HI and SC, or one for each dimension; fitted if left out
most = 2                        # of HIO: ask about at most so many dimensions at once; all, if left out
reading = "levels"              # or "plain", as in the thesis, or "consistent"
users = 1000000                 # how many people will take part, for auto and Grids; so many if left out

[private.age]
integers = [18, 99]             # whole numbers, both ends included
[private.salary]
range = [0, 250000]             # numbers, in equal buckets
buckets = 250
[private.born]
dates = [1920-01-01, 2009-12-31]   # days, both included; in so many equal buckets where `buckets` is given
[private.state]
labels = ["NY", "WA"]

[public.purchase]
measure = true
scale = 2                       # digits after the point; 0 if left out
[public.os]
labels = ["ios", "android"]
[public.bought]
moment = "day"                  # or "second"
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from veil.domain import Categories, Domain, Integers, Interval, Record
from veil.domain.text_values import parse_time
from veil.errors import InputError, ParameterError, WireError
from veil.files.arrow_files import PathLike
from veil.sql.columns import Category, Measure, Moment, PublicColumn
from veil.sql.designs.base import Design
from veil.sql.table import Table
from veil.tools.json_documents import load_json
from veil.tools.messages import unknown_name
from veil.tools.numbers import is_int

_TABLE = ("name", "epsilon", "mechanism", "fan_out", "most", "users", "reading")
_USERS = 1_000_000


class Schema(NamedTuple):
    """What a schema file says: a table, for how many people, and whether its design is the best one or a named one."""

    table: Table
    users: int | None
    auto: bool


def read_schema(path: PathLike) -> Table:
    """The table that a schema file (.toml or .json) describes. Errors name the key that they are about."""
    return load_schema(path).table


def load_schema(path: PathLike, epsilon: float | None = None, users: int | None = None) -> Schema:
    """All that a schema file says; with another epsilon or number of people, where they are given."""
    where = Path(path)
    try:
        content = where.read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no file {where}") from None
    except OSError:
        raise InputError(f"{where} cannot be opened as a file") from None
    return _schema(_document(where, content), str(where), epsilon, users)


def _document(where: Path, content: bytes) -> Any:
    import tomllib

    if where.suffix.lower() not in (".toml", ".json"):
        raise InputError(f"expected a schema file that ends in .toml or .json, got {where.name}")
    name, load = ("JSON", load_json) if where.suffix.lower() == ".json" else ("TOML", tomllib.loads)
    try:
        return load(content.decode())
    except UnicodeDecodeError:
        raise InputError(f"{where} is not UTF-8 text") from None
    except (ValueError, RecursionError) as problem:  # also a number of more than 4,300 digits
        raise InputError(f"{where} is no {name}: {problem}") from None


def _schema(document: Any, where: str, epsilon: float | None = None, users: int | None = None) -> Schema:
    schema = _SchemaTable(document, where, "")
    schema.check("table", "private", "public")
    table = schema.part("table")
    table.check(*_TABLE)
    eps = table.number("epsilon") if epsilon is None else epsilon
    if users is None and "users" in table.given:
        users = table.whole("users", 1, _USERS)
    private = {name: _dimension(part) for name, part in schema.parts("private")}
    if not private:
        raise schema.problem("private", "expected at least one dimension, as [private.age] with integers = [18, 99]")
    public = tuple(_column(name, part) for name, part in schema.parts("public"))
    record = table.made("", lambda: Record(tuple(private.items())))
    name, reading = table.given.get("name", "people"), table.given.get("reading", "levels")
    design, auto = _design(table, record, eps, _USERS if users is None else users)
    return Schema(table.made("", lambda: Table(eps, record, public, design, name, reading)), users, auto)


class _SchemaTable:
    """A table of the file, with the path of its keys."""

    def __init__(self, given: Any, where: str, path: str) -> None:
        self.where, self.path = where, path
        if not isinstance(given, dict):
            raise self.problem("", "expected a table of keys")
        self.given: dict[str, Any] = given

    def problem(self, key: str, expected: str) -> InputError:
        at = ".".join(filter(None, (self.path, key)))
        return InputError(f"{self.where}: {at + ': ' if at else ''}{expected}")

    def check(self, *known: str) -> None:
        """Refuse keys that are not known, with those that are."""
        for key in self.given:
            if key not in known:
                raise self.problem("", unknown_name("a key", key, known))

    def part(self, key: str) -> _SchemaTable:
        if key not in self.given:
            raise self.problem(key, "this table of keys is missing")
        return _SchemaTable(self.given[key], self.where, ".".join(filter(None, (self.path, key))))

    def parts(self, key: str) -> list[tuple[str, _SchemaTable]]:
        if key not in self.given:
            return []
        inner = self.part(key)
        return [(name, inner.part(name)) for name in inner.given]

    def one_of(self, *keys: str) -> str:
        """The one of these keys that is there."""
        found = [key for key in keys if key in self.given]
        if len(found) != 1:
            raise self.problem("", f"expected exactly one of the keys {', '.join(keys)}")
        return found[0]

    def number(self, key: str) -> float:
        value = self.given.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.problem(key, "expected a number" if key in self.given else "this number is missing")
        try:
            return float(value)
        except OverflowError:
            raise self.problem(key, "this number is too large") from None

    def whole(self, key: str, least: int, default: int) -> int:
        value = self.given.get(key, default)
        if not is_int(value) or value < least:
            raise self.problem(key, f"expected a whole number of at least {least}")
        return int(value)

    def pair(self, key: str, fits: Callable[[Any], bool], expected: str) -> tuple[Any, Any]:
        value = self.given[key]
        if not isinstance(value, list) or len(value) != 2 or not all(map(fits, value)):
            raise self.problem(key, f"expected {expected}")
        return value[0], value[1]

    def made(self, key: str, make: Callable[[], Any]) -> Any:
        """What is made of it; what it refuses is said with the key."""
        try:
            return make()
        except (ParameterError, WireError) as problem:
            raise self.problem(key, str(problem)) from None


def _dimension(part: _SchemaTable) -> Domain:
    key = part.one_of("integers", "range", "dates", "labels")
    part.check(key, *(("buckets",) if key in ("range", "dates") else ()))
    found: Domain
    if key == "labels":
        labels = part.given[key]
        if not isinstance(labels, list):
            raise part.problem(key, 'expected a list of labels, as in ["NY", "WA"]')
        found = part.made(key, lambda: Categories(labels))
    elif key == "integers":
        low, high = part.pair(key, is_int, "two whole numbers, the smaller first, as in [18, 99]")
        found = part.made(key, lambda: Integers(low, high))
    elif key == "range":
        low, high = part.pair(key, _is_number, "two numbers, the smaller first, as in [0, 250000]")
        if "buckets" not in part.given:
            raise part.problem("buckets", "this whole number is missing: in how many equal buckets the range is asked")
        cells = part.whole("buckets", 2, 2)
        found = part.made(key, lambda: Interval(low, high, cells=cells))
    else:
        first, last = part.pair(key, lambda day: _day(day) is not None, "two dates, as in [1920-01-01, 2009-12-31]")
        found = part.made(key, lambda: days(_known(first), _known(last)))
        if "buckets" in part.given:
            cells = part.whole("buckets", 2, 2)
            assert isinstance(found, Interval)
            if found.cells % cells:
                raise part.problem(
                    "buckets",
                    f"expected a number that divides the {found.cells:,} days, so that buckets are whole days",
                )
            found = Interval(found.lo, found.hi, cells, "time")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _day(value: Any) -> dt.date | None:
    if isinstance(value, dt.datetime) or not isinstance(value, (dt.date, str)):
        return None
    found = parse_time(value) if isinstance(value, str) else value
    return found.date() if isinstance(found, dt.datetime) else found


def _known(value: Any) -> dt.date:
    day = _day(value)
    assert day is not None
    return day


def days(first: dt.date, last: dt.date, each: int = 1) -> Interval:
    """Days from the first to the last one, both included, in buckets of `each` of them; the last one may reach further.

    >>> days(dt.date(2026, 1, 1), dt.date(2026, 12, 31)).cells, days(dt.date(2026, 1, 1), dt.date(2026, 1, 30), 7).cells
    (365, 5)
    """
    buckets = max(-(-((last - first).days + 1) // each), 1)
    if buckets * each > (dt.date.max - first).days:
        raise ParameterError("expected days that end before 9999-12-31, with the last bucket")
    return Interval(first, first + dt.timedelta(days=buckets * each), cells=buckets)  # type: ignore[arg-type]  # dates


def _column(name: str, part: _SchemaTable) -> PublicColumn:
    key = part.one_of("measure", "labels", "moment")
    part.check(key, *(("scale",) if key == "measure" else ()))
    if key == "labels":
        labels = part.given[key]
        if not isinstance(labels, list):
            raise part.problem(key, 'expected a list of labels, as in ["ios", "android"]')
        return part.made(key, lambda: Category(name, tuple(labels)))  # type: ignore[no-any-return]
    if key == "moment":
        return part.made(key, lambda: Moment(name, part.given[key]))  # type: ignore[no-any-return]
    if part.given[key] is not True:
        raise part.problem(key, "expected true")
    return part.made("scale", lambda: Measure(name, part.whole("scale", 0, 0)))  # type: ignore[no-any-return]


def _design(table: _SchemaTable, private: Record, epsilon: float, users: int) -> tuple[Design, bool]:
    """The design of a schema, and whether it is the best one and not one that is named."""
    from veil.sql.designs.choosing import DESIGNS, choose_design

    named = table.given.get("mechanism", "auto")
    by_name: Mapping[str, Callable[..., Design]] = {design.__name__.lower(): design for design in DESIGNS.values()}
    if not isinstance(named, str) or named.lower() not in {"auto", *by_name}:
        listed = ", ".join(design.__name__ for design in DESIGNS.values())
        raise table.problem("mechanism", f"expected {listed} or auto")
    make = by_name.get(named.lower())
    given: dict[str, Any] = {"people": users} if named.lower() == "grids" else {}
    if "fan_out" in table.given:
        _check_goes(table, "fan_out", named, "HIO", "HI", "SC")
        listed_ = table.given["fan_out"]
        given["fan_outs"] = tuple(listed_) if isinstance(listed_, list) else table.whole("fan_out", 2, 2)
    if "most" in table.given:
        _check_goes(table, "most", named, "HIO")
        given["most"] = table.whole("most", 1, 1)
    if make is None:
        found = table.made("", lambda: choose_design(private, epsilon, users))
        return found[0].design, True
    key = "fan_out" if "fan_out" in table.given else ""
    return table.made(key, lambda: make(**given).fitted(private, epsilon)), False


def _check_goes(table: _SchemaTable, key: str, named: str, *designs: str) -> None:
    """Refuse a key that the mechanism does not have."""
    if named.lower() not in map(str.lower, designs):
        raise table.problem(key, f"this goes with the mechanism {' or '.join(designs)}: name it")
