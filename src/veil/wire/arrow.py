"""Reports as record batches of Arrow: the columns of their layout, with the task in the schema's metadata."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import MismatchError, WireError
from veil.reports.columns import Reports
from veil.reports.layout import Field
from veil.survey import Survey
from veil.wire.frames import VERSION

if TYPE_CHECKING:
    import pyarrow as pa


_FAKES = b"veil.fakes"
_WAVE = b"veil.wave"
_SEEDED = b"veil.seeded"


def arrow_schema(survey: Survey, fakes: int = 0, wave: int = 1, *, seeded: bool = False) -> pa.Schema:
    """Return the columns of an Arrow file of reports.

    Its metadata has the task and, where they apply, the number of fakes, a later wave, and that a seed drew the noise.
    """
    import pyarrow as pa

    fields = [pa.field(field.name, _arrow_type(field), nullable=False) for field in survey.layout.fields]
    among = {_FAKES.decode(): str(fakes)} if fakes else {}
    if wave > 1:
        among[_WAVE.decode()] = str(wave)
    if seeded:
        among[_SEEDED.decode()] = "1"
    return pa.schema(fields, metadata={"veil.task": survey.task, "veil.wire": str(VERSION), **among})


def fakes_of(schema: pa.Schema) -> int:
    """How many of the reports that a schema describes are nobody's."""
    said = (schema.metadata or {}).get(_FAKES)
    if said is None:
        return 0
    if not re.fullmatch(rb"[1-9][0-9]{0,18}", said):
        raise WireError("a file of reports says how many fakes it has as a decimal number of at least 1")
    return int(said)


def wave_of(schema: pa.Schema) -> int:
    """The wave that the reports which a schema describes are of."""
    said = (schema.metadata or {}).get(_WAVE, b"1")
    if not re.fullmatch(rb"[1-9][0-9]{0,6}", said):
        raise WireError("a file of reports says its wave as a decimal number of at least 1")
    return int(said)


def seeded_of(schema: pa.Schema) -> bool:
    """True if the reports that a schema describes were drawn from a seed, for an experiment."""
    said = (schema.metadata or {}).get(_SEEDED)
    if said not in (None, b"1"):
        raise WireError("veil.seeded: expected 1, or no such key")
    return said is not None


def to_arrow(reports: Reports, survey: Survey) -> pa.RecordBatch:
    """Reports as an Arrow record batch."""
    import pyarrow as pa

    if reports.task != survey.task:
        raise MismatchError("these reports were made for another task")
    arrays = []
    for field in survey.layout.fields:
        column = np.ascontiguousarray(reports.columns[field.name])
        if not field.is_vector:
            arrays.append(pa.array(column, type=_arrow_type(field)))
        elif field.width == 1:
            data = pa.py_buffer(column)
            arrays.append(pa.Array.from_buffers(pa.binary(field.count), len(column), [None, data]))
        else:
            arrays.append(pa.FixedSizeListArray.from_arrays(pa.array(column.ravel()), field.count))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(survey))


def from_arrow(batch: pa.RecordBatch, survey: Survey) -> Reports:
    """Runs at the collector: an Arrow record batch as reports, strictly checked."""
    check_schema(batch.schema, survey)
    return reports_of(batch, survey)


def reports_of(batch: pa.RecordBatch, survey: Survey) -> Reports:
    """The same of a batch whose schema has been checked."""
    columns: dict[str, NDArray[Any]] = {}
    for field in survey.layout.fields:
        array = batch.column(field.name)
        if array.null_count:
            raise WireError(f"column {field.name!r} has missing entries")
        columns[field.name] = _from_arrow_column(array, field)
    reports = Reports(survey.task, survey.layout, columns)
    survey.layout.check(columns)
    survey.check(reports)
    return reports


def _from_arrow_column(array: Any, field: Field) -> NDArray[Any]:
    if not field.is_vector:
        return np.asarray(array.to_numpy())
    if field.width == 1:
        start = array.offset * field.count
        data = np.frombuffer(array.buffers()[1], dtype=np.uint8)[start : start + len(array) * field.count]
        return data.reshape(len(array), field.count)
    return np.asarray(array.flatten().to_numpy()).reshape(len(array), field.count)


def _arrow_type(field: Field) -> pa.DataType:
    import pyarrow as pa

    if field.is_vector and field.width == 1:
        return pa.binary(field.count)
    scalar = pa.from_numpy_dtype(field.dtype)
    return pa.list_(scalar, field.count) if field.is_vector else scalar


def check_schema(schema: pa.Schema, survey: Survey, *, fakes: bool = False) -> None:
    """Refuse a schema that is not the one of this task; and fakes, unless whoever reads takes them off."""
    metadata = schema.metadata or {}
    if metadata.get(b"veil.wire") != str(VERSION).encode():
        raise WireError(f"expected a file of veil reports of wire version {VERSION}")
    if metadata.get(b"veil.task") != survey.task.encode():
        raise MismatchError("these reports were made for another task")
    expected = arrow_schema(survey)
    if schema.names != expected.names or schema.types != expected.types:
        raise WireError(f"expected the columns {', '.join(expected.names)}")
    if fakes_of(schema) and not fakes:
        raise WireError("there are uniform fakes among these reports, and here all reports are taken for people's")
