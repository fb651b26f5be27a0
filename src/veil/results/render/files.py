"""Any result as a file or as bytes for HTTP: CSV, Parquet, Arrow, or one JSON document.

`table_bytes` writes the table. CSV has no lists and no times: items are joined by a semicolon, times are text in ISO
8601. `document` is the JSON document that `--json` prints and the collector answers. `save` and `load` write a complete
result to a file and read it back.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veil.domain.text_values import SEPARATOR
from veil.errors import InputError, WireError
from veil.privacy import Guarantee
from veil.results.base import Result, Truth
from veil.tools.filesystem import write_atomically
from veil.tools.json_documents import RESULT, Json, load_json, take
from veil.tools.messages import unknown_name

if TYPE_CHECKING:
    import pyarrow

FORMATS = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.file",
    "arrows": "application/vnd.apache.arrow.stream",
}
"""What a result's table can be written as, and its media type; the names are the files' endings."""
_FORMULA = re.compile(r"^([=+\-@\t\r])")
"""What makes a spreadsheet take a cell of CSV for a formula."""


def write_table(
    result: Result, path: str | Path, level: float = 0.95, *, truth: Truth | None = None, hide: str | None = None
) -> None:
    """The table as the kind of file that its name says; a whole file or none. Options as in `table_bytes`."""
    form = Path(path).suffix.lower().removeprefix(".")
    write_atomically(path, table_bytes(result, form, level, truth=truth, hide=hide))


def table_bytes(
    result: Result,
    form: str,
    level: float = 0.95,
    *,
    truth: Truth | None = None,
    hide: str | None = None,
    guard_formulas: bool = False,
) -> bytes:
    """The table as one of FORMATS, with columns `truth` and `covered` where the truth is given.

    `hide` leaves out what a search found and is not significant: `Result.told`. `guard_formulas` is for CSV that
    people open in a spreadsheet: see `arrow_bytes`.
    """
    if form not in FORMATS:
        raise InputError(unknown_name("a format", form, FORMATS))
    if form == "json":
        return document_bytes(result, level, truth=truth, hide=hide)
    table = result.told(level, truth=truth, hide=hide is not None).table
    return arrow_bytes(table, form, guard_formulas=guard_formulas)


def arrow_bytes(table: pyarrow.Table, form: str, *, guard_formulas: bool = False) -> bytes:
    """Return an Arrow table as CSV, Parquet or Arrow.

    With `guard_formulas`, text cells and names of columns in CSV that a spreadsheet would take for a formula start with
    an apostrophe. Numbers stay as they are.
    """
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    if form == "csv":
        flat = _without_lists(table)
        pacsv.write_csv(_guard_formulas(flat) if guard_formulas else flat, sink)
    elif form == "parquet":
        pq.write_table(table, sink)
    else:
        with (pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream)(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def save(result: Result, path: str | Path, *, seeded: bool = False) -> None:
    """Write a whole result down, exactly: `load` reads it back. `seeded` says that a seed drew the reports' noise."""
    document = {"kind": "veil-result", "version": 1, "result": result.to_json()}
    if seeded:
        document["seeded"] = True
    write_atomically(path, (json.dumps(document, allow_nan=False) + "\n").encode())


def load(path: str | Path) -> Result:
    """Return the result that `save` wrote."""
    return load_marked(path)[0]


def load_marked(path: str | Path) -> tuple[Result, bool]:
    """Return the result that `save` wrote, and whether it says that a seed drew the reports' noise."""
    try:
        document = load_json(Path(path).read_bytes(), RESULT)
    except WireError:
        raise
    except ValueError:
        raise WireError("a result is a JSON document, and this file is none") from None
    marked = isinstance(document, dict) and document.pop("seeded", None)
    version, found = take(document, "veil-result", "version", "result")
    if version != 1 or marked not in (None, True):
        raise WireError("expected a result of version 1")
    return Result.from_json(found), bool(marked)


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


def cell_text(cell: Any) -> str | None:
    """A cell as text in CSV."""
    if isinstance(cell, (list, tuple)):
        return SEPARATOR.join(map(str, cell))
    if isinstance(cell, dt.datetime):
        return cell.isoformat()
    return None if cell is None else str(cell)


def _without_lists(table: pyarrow.Table) -> pyarrow.Table:
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_nested(field.type) or pa.types.is_timestamp(field.type):
            texts = [cell_text(cell) for cell in table.column(i).to_pylist()]
            table = table.set_column(i, field.name, pa.array(texts, pa.string()))
    return table


def _guard_formulas(table: pyarrow.Table) -> pyarrow.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
        if pa.types.is_string(table.schema.types[i]) or pa.types.is_large_string(table.schema.types[i]):
            guarded = pc.replace_substring_regex(table.column(i), _FORMULA.pattern, r"'\1")
            table = table.set_column(i, field.name, guarded)
    return table.rename_columns([_FORMULA.sub(r"'\1", name) for name in table.column_names])


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
