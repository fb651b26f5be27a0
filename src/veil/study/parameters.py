"""Parameters of studies as JSON and as text, by their types: for study files, and for `--set`."""

from __future__ import annotations

import contextlib
import csv
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

from veil.domain import Domain, domain_from_json
from veil.errors import InputError, WireError
from veil.mechanisms import MECHANISMS, Mechanism, mechanism_from_json
from veil.privacy import decimal_text
from veil.survey import Survey
from veil.tools.json_documents import number
from veil.tools.numbers import is_int
from veil.view import View, view_from_json

_READERS: dict[type[Any], Any] = {
    Domain: domain_from_json,
    Mechanism: mechanism_from_json,
    View: view_from_json,
    Survey: Survey.from_json,
}


def written(value: Any) -> Any:
    """A parameter as it stands in a study file: numbers that are not integers as decimal strings.

    >>> written((1, 0.5, None, "admm"))
    [1, '0.5', None, 'admm']
    """
    if value is None or isinstance(value, (bool, str)) or is_int(value):
        return value
    if isinstance(value, float):
        return decimal_text(value)
    if isinstance(value, (tuple, list)):
        return [written(part) for part in value]
    if isinstance(value, type):
        return value.__name__
    return value.to_json()


def read(hint: Any, document: Any, name: str = "a parameter") -> Any:
    """A parameter of this type, read back from a study file.

    >>> read(float | None, "0.5"), read(tuple[int, ...], [1, 2])
    (0.5, (1, 2))
    """
    for kind in _arms(hint):
        try:
            return _read(kind, document, name)
        except _WrongKindError:
            continue
    raise WireError(f"{name} is not written as a study of this version writes it")


class _WrongKindError(Exception):
    """A document that is none of this type."""


def _arms(hint: Any) -> Iterator[Any]:
    """The types that a union allows, one after the other."""
    if get_origin(hint) in (Union, types.UnionType):
        for part in get_args(hint):
            yield from _arms(part)
    else:
        yield hint


def types_of(hint: Any, base: type[Any]) -> list[type[Any]]:
    """The types below `base` that a parameter may be an instance of.

    >>> [kind.__name__ for kind in types_of(int | Domain | None, Domain)]
    ['Domain']
    """
    return [kind for kind in _arms(hint) if isinstance(kind, type) and not get_origin(kind) and issubclass(kind, base)]


def _read(hint: Any, document: Any, name: str) -> Any:
    origin, parts = get_origin(hint), get_args(hint)
    if hint in (None, types.NoneType) and document is None:
        return None
    if hint in (bool, str) and isinstance(document, hint):
        return document
    if hint is int and is_int(document):
        return document
    if hint is float and isinstance(document, str):
        try:
            return number(document)
        except WireError:
            raise _WrongKindError from None
    if origin is Literal and document in parts and type(document) in {type(part) for part in parts}:
        return document
    if origin is tuple and isinstance(document, list):
        inner = [parts[0]] * len(document) if parts[1:] == (...,) else list(parts)
        if len(inner) == len(document):
            return tuple(read(one, part, name) for one, part in zip(inner, document, strict=True))
    if origin is type and isinstance(document, str):
        found = MECHANISMS.get(document) or next((s for s in _kinds(parts[0]) if s.__name__ == document), None)
        if found is not None and issubclass(found, parts[0]):
            return found
    if isinstance(hint, type):
        return _read_object(hint, document)
    raise _WrongKindError


def _read_object(hint: type[Any], document: Any) -> Any:
    if not isinstance(document, dict):
        raise _WrongKindError
    for kind, reader in _READERS.items():
        if issubclass(hint, kind):
            made = reader(document)
            if not isinstance(made, hint):
                raise _WrongKindError
            return made
    name = document.get("kind")
    for kind in _kinds(hint):
        if isinstance(name, str) and getattr(kind, "kind", None) == name and hasattr(kind, "from_json"):
            return kind.from_json(document)
    raise _WrongKindError


def _kinds(base: type[Any]) -> Iterator[type[Any]]:
    yield base
    for kind in base.__subclasses__():
        yield from _kinds(kind)


def from_text(hint: Any, text: str, name: str) -> Any:
    """A parameter of this type from the text of a command line.

    >>> from_text(bool, "yes", "weighted"), from_text(int | None, "none", "buckets")
    (True, None)
    >>> from_text(tuple[str, ...] | None, 'age, sex, "height, cm"', "marginal")
    ('age', 'sex', 'height, cm')
    >>> from_text(int | tuple[tuple[str, ...], ...], "age+sex, region", "sets")
    (('age', 'sex'), ('region',))
    """
    choices = []
    if text.lower() == "none" and types.NoneType in _arms(hint):  # before `str`, which takes everything
        return None
    for kind in _arms(hint):
        if kind in (None, types.NoneType):
            choices.append("none")
        elif kind is bool:
            choices.append("yes or no")
            if text.lower() in ("yes", "true", "no", "false"):
                return text.lower() in ("yes", "true")
        elif kind in (int, float):
            choices.append("an integer" if kind is int else "a number")
            try:
                return kind(text)
            except ValueError:
                continue
        elif get_origin(kind) is Literal:
            choices += [str(part) for part in get_args(kind)]
            if text in get_args(kind):
                return text
        elif kind is str:
            return text
        elif get_origin(kind) is type:
            choices += [f"the name of a {part.__name__}" for part in get_args(kind)]
            with contextlib.suppress(_WrongKindError):
                return _read(kind, text, name)
        elif get_origin(kind) is tuple and get_args(kind)[0] in (int, float, str):
            try:
                return tuple(get_args(kind)[0](part) for part in _listed(text))
            except (ValueError, csv.Error):
                choices.append("a list with commas")
        elif get_origin(kind) is tuple and get_args(get_args(kind)[0]) == (str, ...):
            choices.append("sets of names as in age+sex,age+region")
            with contextlib.suppress(csv.Error):
                return tuple(tuple(name.strip() for name in part.split("+")) for part in _listed(text))
    if not choices:
        raise InputError(f"{name} cannot be set from the command line: plan the study again")
    raise InputError(f"{name} is {', '.join(choices[:-1])}{' or ' if choices[1:] else ''}{choices[-1]}")


def _listed(text: str) -> list[str]:
    """What stands between commas; a part in double quotes may hold commas itself."""
    return next(csv.reader([text], skipinitialspace=True), [])
