"""One side of a comparison of two commits: measures the rows of its own checkout, as it is told over a pipe.

`python -m bench.side GROUP REPEATS REPORTS` reads a command a line and answers each with one line of JSON:

- `next`: go on to the next row, and return its name and whether a ratio is required of it (or `{"end": true}`);
- `turn`: run veil's side of that row once, and return its cost for one person (or why it cannot run).
"""

from __future__ import annotations

import json
import sys
from typing import Any

from bench.groups import GROUPS, rows_of
from bench.timing import NotRunError, Row, Setting


def main(group: str, repeats: int, reports: int) -> None:
    """Answer commands until the input ends."""
    rows = rows_of(group, Setting(repeats, reports, rivals=False, quick=True)) if group in GROUPS else iter(())
    row: Row | None = None
    for command in sys.stdin:
        if command.strip() == "next":
            row = next(rows, None)
            answer = {"end": True} if row is None else _described(row)
        else:
            assert row is not None, "expected `next` before `turn`"
            answer = _turn(row)
        print(json.dumps(answer), flush=True)


def _described(row: Row) -> dict[str, Any]:
    return {"what": row.what, "required": row.required is not None, "turns": row.turns, "warm": row.ours.warm}


def _turn(row: Row) -> dict[str, Any]:
    try:
        return {"cost": row.ours.run() / row.ours.people}
    except NotRunError as why:
        return {"not_run": str(why)}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
