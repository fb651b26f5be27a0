"""JSON schemas of what the collector sends, and what schemas are made of. `openapi` puts them into the description."""

from __future__ import annotations

from typing import Any

__all__ = ["NAME", "TASK", "TIME", "Node", "listed", "record", "reference", "schemas"]

Node = dict[str, Any]

TASK = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
TIME = {"type": ["string", "null"], "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"}
NAME = {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$"}
_WHOLE = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}
_STATE = {"enum": ["draft", "waiting", "open", "closed", "expired"]}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}


def schemas() -> Node:
    """By name: everything that an answer of the collector may be."""
    return {
        "Error": _error(),
        "Survey": _survey(),
        "Published": record({**_published(), "about": record(_published())}, required=list(_published())),
        "Round": record({**_published(), "part": record(_published()), "round": _WHOLE, "from": _SHARE, "to": _SHARE}),
        "Study": _study(),
        "Result": _result(),
        "Answer": {"allOf": [{"type": "object", "properties": {"task": TASK}, "required": ["task"]}, _is_result()]},
    }


def record(properties: Node, required: list[str] | None = None) -> Node:
    """An object with these members and no others, all of them required unless said."""
    needed = list(properties) if required is None else required
    made = {"type": "object", "properties": properties, "additionalProperties": False}
    return made | ({"required": needed} if needed else {})


def listed(items: Node) -> Node:
    """A list of such items."""
    return {"type": "array", "items": items}


def reference(name: str) -> Node:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _error() -> Node:
    inner = {"code": {"type": "string", "pattern": "^[a-z-]+$"}, "message": _TEXT}
    error = record({**inner, "expected": _TEXT}, required=["code", "message"])
    return record({"error": error})


def _survey() -> Node:
    return record(
        {
            "task": TASK,
            "kind": {**_TEXT, "description": "Of the study that its reports are read with."},
            "study": {"type": ["string", "null"], "description": "The study that this survey is a round of."},
            "name": {"type": ["string", "null"], "description": "Shared by the waves of a question."},
            "wave": {"type": ["integer", "null"], "minimum": 1},
            "texts": {"type": ["object", "null"], "description": "The question for people, by language."},
            "state": _STATE,
            "opens": TIME,
            "closes": TIME,
            **dict.fromkeys(("precision", "minimum", "step", "reports", "questions", "payload_bytes"), _WHOLE),
            "keep_days": {"type": ["integer", "null"], "description": "Reports are erased so many days after closing."},
            "purged": {**TIME, "description": "When its reports were erased; their number stays."},
            "epsilon": {"type": ["number", "null"]},
            "delta": {"type": "number"},
        }
    )


def _published() -> Node:
    return {name: {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"} for name in ("document", "key", "signature")}


def _study() -> Node:
    part = {"round": _WHOLE, "task": TASK, "state": _STATE, "reports": _WHOLE, "from": _SHARE, "to": _SHARE}
    return record(
        {
            "study": TASK,
            "kind": _TEXT,
            "state": {"enum": ["draft", "asking", "reading", "finished"]},
            "people": {"type": ["integer", "null"]},
            "round_seconds": {"type": ["integer", "null"]},
            "rounds": listed(record(part)),
        }
    )


def _result() -> Node:
    """Any result: what all of them say, its facts beside it, and its rows; or one result per question."""
    properties = {
        "kind": _TEXT,
        "people": {**_WHOLE, "description": "The number of reports."},
        "population": _WHOLE,
        "lineage": listed(_TEXT),
        "guarantee": {"type": ["object", "null"]},
        "level": {"type": "number"},
        "hidden": _WHOLE,
        "rows": listed({"type": "object"}),
        "remarks": listed(_TEXT),
        "answers": listed(_is_result()),
    }
    needed = ["kind", "people", "population", "lineage", "guarantee", "level"]
    either = [{"required": ["rows", "remarks"]}, {"required": ["answers"]}]
    return {"type": "object", "properties": properties, "required": needed, "oneOf": either}


def _is_result() -> Node:
    return reference("Result")
