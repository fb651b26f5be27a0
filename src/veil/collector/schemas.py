"""JSON schemas of answers, one a kind, and what every schema is made of. `openapi` puts them into the description."""

from __future__ import annotations

from typing import Any

__all__ = ["TASK", "Node", "answer_schemas", "listed", "record", "reference"]

Node = dict[str, Any]

TASK = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_NUMBER, _OPEN = {"type": "number"}, {"type": ["number", "null"]}
_UNIT = {"type": ["number", "string", "null"], "description": "In units of the domain; a time as text in ISO 8601."}
_WHOLE = {"type": "integer", "minimum": 0}


def answer_schemas() -> Node:
    """By name: an answer, which is one of its kinds, and each of them."""
    kinds = {
        "Frequencies": _frequencies(),
        "Distribution": _distribution(),
        "Mean": _mean(),
        "Differences": _differences(),
    }
    return {"Answer": {"oneOf": [reference(name) for name in kinds]}, **kinds}


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


def _head(kind: str) -> Node:
    return {
        "task": TASK,
        "question": {"oneOf": [_WHOLE, {"const": "all"}]},
        "kind": {"const": kind},
        "people": _WHOLE,
        "reports": _WHOLE,
        "lineage": listed({"type": "string"}),
    }


def _frequencies() -> Node:
    row = {"value": {}, "frequency": _NUMBER, "count": _NUMBER, "low": _OPEN, "high": _OPEN}
    asked = {"level": _NUMBER, "post": {"type": "string"}}
    return record({**_head("frequencies"), **asked, "values": listed(record(row))})


def _distribution() -> Node:
    row = {"low": _UNIT, "high": _UNIT, "frequency": _NUMBER, "count": _NUMBER, "cumulative": _NUMBER}
    fit = record({"iterations": _WHOLE, "converged": {"type": "boolean"}})
    return record(
        {
            **_head("distribution"),
            "proper": {"type": "boolean", "description": "Whether no mass is negative; quantiles need that."},
            "mean": _UNIT,
            "std": _OPEN,
            "quantiles": listed(record({"level": _NUMBER, "value": _UNIT})),
            "fit": {"oneOf": [fit, {"type": "null"}]},
            "buckets": listed(record(row)),
        }
    )


def _mean() -> Node:
    found = {"mean": _UNIT, "stderr": _NUMBER, "low": _UNIT, "high": _UNIT}
    return record({**_head("mean"), "level": _NUMBER, **found})


def _differences() -> Node:
    row = {"pair": _WHOLE, **dict.fromkeys(("difference", "stderr", "low", "high"), _NUMBER)}
    return record({**_head("differences"), "level": _NUMBER, "pairs": listed(record(row))})
