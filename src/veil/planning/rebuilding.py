"""A study or mechanism made again with other arguments, where what its defaults gave follows from the new ones."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar, get_type_hints

from veil.errors import InputError, ParameterError
from veil.study import Study
from veil.study.parameters import from_text
from veil.tools.messages import unknown_name

__all__ = ["rebuilt", "settings_from_text", "takes"]

Made = TypeVar("Made")


def rebuilt(instance: Made, values: dict[str, Any], **changes: Any) -> Made:
    """The instance that has the arguments `values`, made again with changes.

    An argument that the defaults would have given as well is left to them, so that it follows from what changes.
    """
    kind, kept = type(instance), dict(values)
    for name, parameter in takes(kind).items():
        if name in kept and parameter.default is not inspect.Parameter.empty:
            fewer = {other: value for other, value in kept.items() if other != name}
            if _same(instance, fewer):
                kept = fewer
    return kind(**{**kept, **changes})


def _same(instance: Any, values: dict[str, Any]) -> bool:
    try:
        return bool(type(instance)(**values) == instance)
    except ParameterError:
        return False


def takes(kind: type[Any]) -> dict[str, inspect.Parameter]:
    """The arguments that a class is made with."""
    return dict(inspect.signature(kind).parameters)


def settings_from_text(study: type[Study], texts: dict[str, str]) -> dict[str, Any]:
    """Arguments of a kind of study from the texts of `--set`, by their types.

    >>> from veil.hitters import PEM
    >>> settings_from_text(PEM, {"budget": "4096", "threshold": "0.01"})
    {'budget': 4096, 'threshold': 0.01}
    """
    known = takes(study)
    unknown = [name for name in texts if name not in known]
    if unknown:
        raise InputError(unknown_name(f"a parameter of {study.kind}", unknown[0], known))
    hints = {**get_type_hints(study.__init__), **study.parameters()}
    return {name: from_text(hints[name], text, name) for name, text in texts.items()}
