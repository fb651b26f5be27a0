"""All goals of `veil plan`, and the plan of any other registered kind of study from its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from veil.domain import Domain, Record
from veil.errors import InputError
from veil.mechanisms import MECHANISMS, FrequencyOracle, Mechanism
from veil.planning.base import Choice, Goal, Option, Ways, Wishes
from veil.planning.histogram import HistogramGoal, choose
from veil.planning.hitters import HittersGoal, ItemsGoal
from veil.planning.marginals import MarginalsGoal
from veil.planning.numbers import MeanGoal, NumbersGoal, VarianceGoal
from veil.planning.rebuilding import settings_from_text, takes
from veil.planning.sql import SqlGoal
from veil.study import STUDIES, Study
from veil.study.parameters import types_of
from veil.survey import Survey
from veil.tools.messages import unknown_name

_HOLDING = ("domain", "labels", "labels_file", "missing", "range", "integers", "max_bytes", "bits", "universe")
_RECORDS = ("file", "private", "attribute")
_PLAIN = (bool, int, float, str, type(None))
_METHODS = ("oracle", "mechanism", "method")


def plan(kind: str, wishes: Wishes) -> Choice:
    """Which way to ask: of a goal, or one kind of study with its parameters.

    >>> from veil import Interval
    >>> [plan("mean", Wishes(epsilon, Interval(0, 100))).taken.name for epsilon in (0.5, 2.0)]
    ['StochasticRounding', 'HybridMean']
    """
    return goal_of(kind).choose(wishes)


def goal_of(kind: str) -> Goal:
    """The goal of this name, or the plan of a kind of study.

    >>> goal_of("numbers").takes, goal_of("hierarchy").summary[:6]
    (('range', 'integers', 'buckets', 'rough'), 'A tree')
    """
    if kind in GOALS:
        return GOALS[kind]
    if kind not in STUDIES:
        raise InputError(unknown_name("a goal or a kind of study", kind, dict.fromkeys((*GOALS, *STUDIES))))
    return Direct(STUDIES[kind])


class Direct(Goal):
    """One kind of study, with the parameters that were given.

    `epsilon`, `k`, `buckets` and `people` (or `users`) are parameters of these names; what people hold is the one that
    is a domain; a mechanism is made for both. All others are set by name.

    >>> from veil import Interval
    >>> from veil.numeric import Hierarchy
    >>> Direct(Hierarchy).choose(Wishes(1.0, Interval(0, 1), settings={"branching": "8"})).study.branching
    8
    """

    def __init__(self, study: type[Study]) -> None:
        self._study = study
        self.name = study.kind
        self.summary = " ".join((inspect.getdoc(study) or "").split("\n\n")[0].split()).split(". ")[0].rstrip(".") + "."
        hints = study.parameters()
        mechanisms = [kind for hint in hints.values() for kind in types_of(hint, Mechanism)]
        asks = mechanisms or any(types_of(hint, Domain) for hint in hints.values())
        buckets = "buckets" in hints or any("buckets" in takes(kind) for kind in mechanisms)
        records = any(types_of(hint, Record) for hint in hints.values())
        holding = _RECORDS if records else _HOLDING if asks else ()
        self.takes = (*holding, *(["k"] if "k" in hints else []), *(["buckets"] if buckets else []))

    def choose(self, wishes: Wishes) -> Choice:
        return self.pick(self.ways(wishes), replace(wishes, method=None, settings={}))

    def ways(self, wishes: Wishes) -> Ways:
        return {self.name: lambda: self._built(wishes)}

    def best(self, allowed: Sequence[Option], wishes: Wishes) -> tuple[Option, str]:
        return allowed[0], f"A study of kind {self.name}, with the parameters that were given."

    def _built(self, wishes: Wishes) -> Study:
        hints, known = self._study.parameters(), takes(self._study)
        if any(types_of(hint, Survey) for hint in hints.values()):
            raise InputError(f"a study of kind {self.name} is about a survey that there is: its task is all it needs")
        given = settings_from_text(self._study, dict(wishes.settings))
        named = next((name for name in _METHODS if name in hints), None)
        if wishes.method is not None:
            if named is None:
                raise InputError(f"a study of kind {self.name} is asked in one way: leave --method out")
            if not types_of(hints[named], Mechanism):
                given |= settings_from_text(self._study, {named: wishes.method})
        for name, hint in hints.items():
            found = given[name] if name in given else self._value(name, hint, wishes)
            if found is not None:
                given[name] = found
        missing = [name for name in known if name not in given and known[name].default is inspect.Parameter.empty]
        if missing:
            raise InputError(f"a study of kind {self.name} needs {_needed(hints, missing[0])}")
        return self._study(**given)

    def _value(self, name: str, hint: Any, wishes: Wishes) -> Any:
        """What the wishes say about a parameter; None where they say nothing."""
        own = {"epsilon": wishes.epsilon, "k": wishes.k, "buckets": wishes.buckets}
        own |= dict.fromkeys(("people", "users"), wishes.users)
        if name in own:
            return own[name]
        if types_of(hint, Domain):
            return wishes.held
        kinds = types_of(hint, Mechanism)
        return _mechanism(kinds, name, wishes) if kinds and wishes.held is not None else None


def _needed(hints: dict[str, Any], name: str) -> str:
    """A parameter, and the options that give it."""
    hint = hints.get(name)
    if types_of(hint, Record):
        return "to know what people hold: expected FILE with --private, or --attribute"
    if types_of(hint, Domain) or types_of(hint, Mechanism):
        return "to know what people hold: expected --domain, --labels, --range, --max-bytes, --bits or --universe"
    if any(kind not in _PLAIN for kind in types_of(hint, object)):
        return f"{name}, which no text can say: such a study is made in Python, and its `to_bytes()` is the study file"
    return f"{name}: expected {'-k K' if name == 'k' else f'--set {name}=VALUE'}"


def _mechanism(kinds: Sequence[type[Mechanism]], name: str, wishes: Wishes) -> Mechanism:
    """A mechanism of one of these kinds: the named one, the only one, or the best oracle."""
    assert wishes.held is not None
    fitting = {known: kind for known, kind in MECHANISMS.items() if issubclass(kind, tuple(kinds))}
    if wishes.method is None and len(fitting) > 1:
        if all(issubclass(kind, FrequencyOracle) for kind in kinds):
            best = choose(wishes.held, wishes.epsilon, wishes.users, wishes.max_report_bytes).oracle
            if isinstance(best, tuple(kinds)):
                return best
        raise InputError(f"this study asks through a mechanism: expected --method with one of {', '.join(fitting)}")
    found = next(iter(fitting.values()))
    if wishes.method is not None:
        by_name = {known.lower(): kind for known, kind in fitting.items()}
        if wishes.method.lower() not in by_name:
            raise InputError(f"{name} is one of {', '.join(fitting)}; there is none of that name")
        found = by_name[wishes.method.lower()]
    more = {"buckets": wishes.buckets} if wishes.buckets is not None and "buckets" in takes(found) else {}
    return found(wishes.epsilon, wishes.held, **more)


GOALS: dict[str, Goal] = {
    goal.name: goal
    for goal in (
        HistogramGoal(),
        NumbersGoal(),
        MeanGoal(),
        VarianceGoal(),
        HittersGoal(),
        ItemsGoal(),
        MarginalsGoal(),
        SqlGoal(),
    )
}
