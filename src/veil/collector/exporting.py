"""Reports as Parquet: the columns of the task and the truncated time, without ids and in no order of arrival."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from veil.collector.catalogue import parsed
from veil.collector.store import Store, StoredSurvey
from veil.files import EXPORTED_TIME
from veil.tools.durable import make_private_folder, replacing
from veil.wire.arrow import arrow_schema, to_arrow
from veil.wire.reports import Reports

__all__ = ["export_parquet", "open_export"]

_MOST_ROWS = 65_536
_CHUNK_BYTES = 8 << 20


def export_parquet(
    store: Store, stored: StoredSurvey, out: Path, advance: Callable[[int], object] = lambda rows: None
) -> int:
    """Write all reports of a survey to a Parquet file, in the order of their random ids. Returns how many."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    survey = parsed(stored.document)
    times = pa.field(EXPORTED_TIME, pa.timestamp("s", tz="UTC"), nullable=False)
    plain = arrow_schema(survey)
    schema = plain.append(times).with_metadata(plain.metadata)
    after, written = b"", 0
    most = max(1, min(_MOST_ROWS, _CHUNK_BYTES // survey.layout.size))
    with replacing(out) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        while rows := store.export(stored.key, after, most):
            reports = Reports.from_bytes(survey.task, survey.layout, b"".join(payload for _, payload, _ in rows))
            buckets = pa.array([datetime.fromtimestamp(bucket, UTC) for *_, bucket in rows], times.type)
            batch = to_arrow(reports, survey)
            writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, buckets], schema=schema))
            after = rows[-1][0]
            written += len(rows)
            advance(len(rows))
    return written


def open_export(store: Store, stored: StoredSurvey, folder: Path) -> BinaryIO:
    """The same as an open file that has no name any more: whatever becomes of the reader, nothing is left of it."""
    make_private_folder(folder)
    with tempfile.TemporaryDirectory(prefix="export-", dir=folder) as private:  # its owner alone may enter
        path = Path(private) / "reports.parquet"
        export_parquet(store, stored, path)
        return path.open("rb")
