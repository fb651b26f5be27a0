"""Reading the tree of questions that a task describes."""

from __future__ import annotations

from typing import Any

from veil.errors import WireError
from veil.mechanisms import mechanism_from_json
from veil.survey.family import EachOf
from veil.survey.tree import AllOf, Ask, OneOf, Question
from veil.tools.json_documents import Json, take
from veil.view import view_from_json

__all__ = ["ask_from_json"]

_DEEPEST = 8


def ask_from_json(document: Any, held: Json, depth: int = 0) -> Ask:
    """The tree that a task describes, about a held domain."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if depth > _DEEPEST:
        raise WireError("a survey is at most eight levels deep")
    if kind == "question":
        view, mechanism = take(document, "question", "view", "mechanism")
        if not isinstance(view, dict) or not isinstance(mechanism, dict) or "held" in view or "domain" in mechanism:
            raise WireError("a question has a view and a mechanism, and no domain but its survey's")
        shown = view_from_json({**view, "held": held})
        return Question(mechanism_from_json({**mechanism, "domain": shown.domain.to_json()}), shown)
    if kind == "one-of":
        (branches,) = take(document, "one-of", "branches")
        if not isinstance(branches, list) or not all(isinstance(b, list) and len(b) == 2 for b in branches):
            raise WireError("the branches of one-of are pairs of a share and an ask")
        return OneOf(*((share, ask_from_json(ask, held, depth + 1)) for share, ask in branches))
    if kind == "all-of":
        (asks,) = take(document, "all-of", "asks")
        if not isinstance(asks, list):
            raise WireError("the asks of all-of are a list")
        return AllOf(*(ask_from_json(ask, held, depth + 1) for ask in asks))
    if kind == "each-of":
        return EachOf.from_json(document, held)
    raise WireError("expected an ask: question, one-of, all-of or each-of")
