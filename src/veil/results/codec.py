"""Frozen dataclasses as plain JSON and back, field by field by their types.

A document cannot name code to run. Floats are exact (the shortest decimal that reads back), NaN is null; fractions are
text; domains, noise laws and bands are documents with a kind of their own.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import Field, fields
from fractions import Fraction
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from veil.domain import Domain, labels_from_json
from veil.errors import VeilError, WireError
from veil.results.bands.base import BANDS, Bands
from veil.results.laws import NOISES, Noise
from veil.tools.json_documents import Json

Made = TypeVar("Made")

SOMETIMES = types.MappingProxyType({"sometimes": True})
"""Metadata of a field that is written only where it is not None."""


def write_fields(value: Any) -> Json:
    """The fields of a frozen dataclass as JSON."""
    held = {field: getattr(value, field.name) for field in fields(value)}
    return {field.name: _write(part) for field, part in held.items() if part is not None or not _sometimes(field)}


def _sometimes(field: Field[Any]) -> bool:
    return bool(field.metadata.get("sometimes"))


def read_fields(kind: type[Made], document: Any) -> Made:
    """The dataclass that these fields make; refuses missing, further and impossible ones.

    >>> from veil.results.distribution import Fit
    >>> read_fields(Fit, write_fields(Fit(7, True, (-1.5,)))) == Fit(7, True, (-1.5,))
    True
    """
    known = fields(kind)  # type: ignore[arg-type]  # every caller has a dataclass
    there = document if isinstance(document, dict) else {}
    names = [one.name for one in known if not _sometimes(one) or there.get(one.name) is not None]
    if not isinstance(document, dict) or set(document) != set(names):
        raise WireError(f"expected an object with the keys {', '.join(names)}")
    hints = get_type_hints(kind)
    try:
        given = {name: _read(hints[name], document[name]) for name in names}
        made = kind(**given)
    except VeilError as problem:
        raise WireError(f"a damaged result: {problem}") from None
    except (TypeError, ValueError, KeyError, IndexError, ArithmeticError):
        raise WireError(f"expected a {kind.__name__} as it was written") from None
    for name, value in given.items():  # bit for bit, where making it would divide by its sum once more
        object.__setattr__(made, name, value)
    return made


def _write(value: Any) -> Any:
    if isinstance(value, float):  # numpy's doubles too
        return None if math.isnan(value) else float(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.ndarray):
        return _write_array(value)
    if isinstance(value, Mapping):
        return {name: _write(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_write(part) for part in value]
    if isinstance(value, (Noise, Bands)):
        return {"kind": value.kind, **write_fields(value)}
    # results and domains say themselves how they are written
    return value.to_json() if hasattr(value, "to_json") else write_fields(value)


def _write_array(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype in (np.float64, np.int64):  # what types tell; NaN is null
        listed = array.tolist()
        return listed if array.dtype == np.int64 or not np.isnan(array).any() else _write(listed)
    return {"dtype": str(array.dtype), "shape": list(array.shape), "values": array.reshape(-1).tolist()}


def _read(hint: Any, found: Any) -> Any:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if found is None and type(None) in parts:
            return None
        (hint,) = (part for part in parts if part is not type(None))
        return _read(hint, found)
    if origin is np.ndarray:
        return _read_array(get_args(parts[1])[0], found)
    if origin is tuple:
        return tuple(_read(parts[0], part) for part in _expect(list, found))
    if origin is Literal:
        return _expect(str, found) if found in parts else _refuse()
    if origin is not None and issubclass(origin, Mapping):
        return {_expect(str, name): _read(parts[1], part) for name, part in _expect(dict, found).items()}
    if hint in (bool, int, str):
        return _expect(hint, found)
    if hint is float:
        if found is None:
            return math.nan
        return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else _refuse()
    if hint is Fraction:
        return Fraction(_expect(str, found))
    return _read_object(hint, found)


def _read_object(hint: Any, found: Any) -> Any:
    if issubclass(hint, Domain):
        return _of_type(hint, labels_from_json(found))
    if issubclass(hint, (Noise, Bands)):
        kind = _expect(str, _expect(dict, found)["kind"])
        held: type[Any] = NOISES[kind] if issubclass(hint, Noise) else BANDS[kind]
        return read_fields(held, {name: part for name, part in found.items() if name != "kind"})
    if hasattr(hint, "from_json"):
        return _of_type(hint, hint.from_json(found))
    return read_fields(hint, found)


def _read_array(scalar: Any, found: Any) -> np.ndarray[Any, Any]:
    if scalar is Any:
        described = _expect(dict, found)
        dtype = described["dtype"] if described["dtype"] in ("uint8", "uint64") else _refuse()
        return np.array(described["values"], dtype=dtype).reshape(described["shape"])
    return np.array(_expect(list, found), dtype=scalar)  # null is NaN


def _of_type(hint: type[Any], made: Any) -> Any:
    return made if isinstance(made, hint) else _refuse()


def _expect(kind: type[Made], found: Any) -> Made:
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        _refuse()
    checked: Made = found
    return checked


def _refuse() -> Any:
    raise WireError("a field of another type than expected")
