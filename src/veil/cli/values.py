"""Files of people's values: randomized as on devices, or read whole for a trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from veil.cli.files import check_inputs
from veil.domain import Numeric, Record
from veil.domain.set_text import SEPARATOR
from veil.engines import Watch
from veil.entropy import Batch, Seeded
from veil.errors import DomainError, EmptyError, InputError
from veil.files import ReportWriter, count_rows, public_of, read_values, values_of
from veil.survey import Survey

__all__ = ["Randomized", "load_codes", "randomize_file"]


class Randomized(NamedTuple):
    """How many people there were, and how many of their values were moved to an end of the domain."""

    people: int
    clipped: int


def randomize_file(
    survey: Survey,
    values: Path,
    out: Path,
    watch: Watch,
    *,
    column: str | None = None,
    seed: int | None = None,
    clip: bool = False,
    separator: str = SEPARATOR,
) -> Randomized:
    """Runs on the device: a report for every row of a file, from one source; with `clip`, of the nearest value."""
    check_inputs(values)
    clipping = _Clipping(survey, clip)
    source = Batch() if seed is None else Seeded(seed)
    with watch("randomizing", count_rows(values)) as advance, ReportWriter(out, survey) as writer:
        for table in read_values(values, survey, column, separator):
            try:
                held = clipping.clip(values_of(table, survey))
                reports = survey.randomize(held, source, public_of(table, survey))
            except DomainError as problem:
                raise problem.moved(writer.rows) from None
            writer.write(reports)
            advance(len(reports))
        if not writer.rows:
            raise EmptyError(f"{values} holds no people")
        return Randomized(writer.rows, clipping.moved)


def load_codes(survey: Survey, values: Path, column: str | None, separator: str, clip: bool) -> tuple[Any, int]:
    """What everybody in a file holds, as codes of the survey's domain; and how many values were clipped."""
    import pyarrow as pa

    check_inputs(values)
    clipping = _Clipping(survey, clip)
    if survey.public:
        raise InputError(
            "this survey has public columns: go through `veil randomize`, `veil tally` and `veil estimate`"
        )
    tables = list(read_values(values, survey, column, separator))
    if not tables:
        raise EmptyError(f"{values} holds no people")
    held = clipping.clip(values_of(pa.concat_tables(tables), survey))
    return survey.domain.encode(held), clipping.moved


class _Clipping:
    """Values as they are, or moved into the domain and counted; of records, the attributes that are numbers."""

    def __init__(self, survey: Survey, clip: bool) -> None:
        domain = survey.domain if clip else None
        self._whole = domain if isinstance(domain, Numeric) else None
        attributes = domain.attributes if isinstance(domain, Record) else ()
        self._parts = {name: part for name, part in attributes if isinstance(part, Numeric)}
        self.moved = 0
        if clip and self._whole is None and not self._parts:
            what = "none of the attributes is one" if attributes else "this study asks for something else"
            raise InputError(f"only numbers can be clipped: {what}")

    def clip(self, held: Any) -> Any:
        if self._whole is not None:
            return self._inside(self._whole, held)
        if not self._parts:
            return held
        columns = {name: held[name] for name in held.column_names}
        for name, part in self._parts.items():
            try:
                columns[name] = self._inside(part, columns[name])
            except DomainError as problem:
                raise DomainError(f"attribute {name!r}: {problem.expected}", problem.row, problem.count) from None
        return columns

    def _inside(self, domain: Numeric, held: Any) -> Any:
        inside, moved = domain.clip(held)
        self.moved += moved
        return inside
