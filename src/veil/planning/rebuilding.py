"""Studies and mechanisms with other arguments, and the same study with another epsilon.

Arguments that the defaults gave follow from the new ones: coins, hash ranges, the share of a last group. Arguments that
were chosen otherwise stay.
"""

from __future__ import annotations

import inspect
from typing import Any, TypeVar, get_type_hints

from veil.errors import InputError, ParameterError
from veil.mechanisms import Mechanism
from veil.privacy import check_epsilon
from veil.study import Study
from veil.study.parameters import from_text
from veil.survey import EachOf, OneOf, Question, Survey
from veil.survey.tree import Ask
from veil.tools.messages import unknown_name

Made = TypeVar("Made")
Planned = TypeVar("Planned", bound=Study)


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


def at_epsilon(study: Planned, epsilon: float) -> Planned:
    """The study with another epsilon, its other parameters as they are.

    Nested studies and mechanisms change with it. Refused where it is not clear what should change: a survey that
    splits its budget over several questions, or one behind a view that hides which item was sampled.

    >>> from veil import GRR, OLH
    >>> from veil.histogram import Histogram
    >>> at_epsilon(Histogram(GRR(1.0, 3), post="norm-sub"), 2.0) == Histogram(GRR(2.0, 3), post="norm-sub")
    True
    >>> for buckets in (None, 2):
    ...     print(at_epsilon(Histogram(OLH(1.0, 100, buckets)), 3.0).oracle.hash_range)
    21
    2
    """
    wanted = check_epsilon(epsilon)
    values = {name: getattr(study, name) for name in study.parameters()}
    changes = {name: _changed(value, wanted) for name, value in values.items()}
    changes = {name: value for name, value in changes.items() if value is not values[name]}
    if "epsilon" in values:
        changes["epsilon"] = wanted
    if not changes:
        raise InputError(f"a study of kind {study.kind} has no epsilon that could be changed: plan it again")
    made = rebuilt(study, values, **changes)
    if study.guarantee.ratio is not None and not made.guarantee.within(wanted):
        raise InputError(f"a study of kind {study.kind} splits its epsilon in a way of its own: plan it again")
    return made


def _changed(value: Any, epsilon: float) -> Any:
    """One parameter of a study: another epsilon in what has one, and the very same object otherwise."""
    if isinstance(value, Study):
        return at_epsilon(value, epsilon)
    if isinstance(value, Mechanism):
        return _mechanism(value, epsilon)
    if isinstance(value, Survey):
        return Survey(_ask(value.ask, epsilon), value.public, value.wave)
    return value


def _mechanism(mechanism: Mechanism, epsilon: float) -> Mechanism:
    more = type(mechanism).read_parameters(mechanism.parameters())
    values = {"epsilon": mechanism.epsilon, "domain": mechanism.domain, **more}
    return rebuilt(mechanism, values, epsilon=epsilon)


def _ask(ask: Ask, epsilon: float) -> Ask:
    if isinstance(ask, OneOf):
        return OneOf(*((share, _ask(branch, epsilon)) for share, branch in ask.branches))
    if isinstance(ask, EachOf):
        made = {mechanism.domain: _mechanism(mechanism, epsilon) for mechanism in ask.mechanisms}
        return EachOf(ask.rule, made.__getitem__)
    if isinstance(ask, Question) and ask.guarantee == ask.mechanism.guarantee:
        return Question(_mechanism(ask.mechanism, epsilon), ask.view)
    raise InputError("this survey's questions share one epsilon in a way that only its plan knows: plan it again")
