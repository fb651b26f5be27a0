"""Any result as one JSON document for programs: what `--json` prints and the collector answers."""

from __future__ import annotations

import datetime as dt
import json
import math
from typing import Any

from veil.privacy import Guarantee
from veil.results.base import Result, Truth
from veil.tools.json_documents import Json

__all__ = ["document", "document_bytes", "plain_rows"]


def document(
    result: Result,
    level: float = 0.95,
    *,
    top: int | None = None,
    truth: Truth | None = None,
    hide: str | None = None,
) -> Json:
    """Who was asked, the facts, the rows and the remarks; all rows, or the `top` most important ones.

    With `top`, `more` says how many rows there are beside these. With `hide`, which says how to see everything, what is
    not significant is left out, and `hidden` says how many rows that is: see `Result.told`.

    >>> from veil import OLH, simulate
    >>> found = document(simulate(OLH(epsilon=1.0, domain=4), [0] * 700 + [1] * 300, seed=1), top=2)
    >>> found["kind"], found["people"], [row["value"] for row in found["rows"]]
    ('frequencies', 1000, [0, 1])
    """
    head: Json = {
        "kind": result.kind,
        "people": result.n,
        "population": result.population,
        "lineage": list(result.lineage),
        "guarantee": _promise(result.guarantee),
        "level": level,
    }
    parts = result.parts()
    if parts[0][1] is not result:
        answers = [{"question": number, **document(part, level, top=top, hide=hide)} for number, part in parts]
        return {**head, "answers": answers}
    told = result.told(level, top, truth, hide=hide is not None)
    counted = {} if hide is None else {"hidden": told.hidden}
    if top is not None:
        counted["more"] = told.more
    remarks = [*result.remarks(), *told.remarks(hide)]
    return {**head, **result.facts(level), **counted, "rows": plain_rows(told.table), "remarks": remarks}


def document_bytes(result: Result, level: float = 0.95, **options: Any) -> bytes:
    """The document as it goes into a file or over HTTP."""
    return (json.dumps(document(result, level, **options), indent=1, allow_nan=False) + "\n").encode()


def plain_rows(table: Any) -> list[Json]:
    """The rows of a table as JSON: times in ISO 8601, null where a number is not known."""
    return [{name: _plain(cell) for name, cell in row.items()} for row in table.to_pylist()]


def _plain(cell: Any) -> Any:
    if isinstance(cell, dt.datetime):
        return cell.isoformat()
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return cell if cell is None or isinstance(cell, (bool, int, str, list, dict)) else str(cell)


def _promise(guarantee: Guarantee | None) -> Json | None:
    if guarantee is None:
        return None
    epsilon = guarantee.epsilon
    return {
        "epsilon": epsilon if math.isfinite(epsilon) else None,
        "delta": float(guarantee.delta),
        "neighbours": guarantee.neighbours,
        "scope": guarantee.scope,
    }
