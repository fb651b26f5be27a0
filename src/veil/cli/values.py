"""Files of people's values: randomized as on devices, or read whole for a trial."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from veil.cli.files import check_inputs
from veil.domain import Domain, Numeric, Record
from veil.domain.set_text import SEPARATOR
from veil.engines import Watch
from veil.entropy import Batch, Seeded
from veil.errors import DomainError, EmptyError, InputError
from veil.files import ReportWriter, count_rows, read_values, values_of
from veil.files.opening import PARQUET, TEXT
from veil.files.reports import write_parquet
from veil.study import Study
from veil.survey import People, Survey
from veil.tools.durable import replacing
from veil.wire.reports import Reports

__all__ = ["Randomized", "load_people"]


class Randomized:
    """Runs on the device: a report for every row of a file, from one source; with `clip`, of the nearest value."""

    def __init__(
        self,
        study: Study,
        survey: Survey,
        values: Path,
        watch: Watch,
        *,
        column: str | None = None,
        seed: int | None = None,
        clip: bool = False,
        separator: str = SEPARATOR,
    ) -> None:
        check_inputs(values)
        self._study, self._survey, self._values, self._watch = study, survey, values, watch
        self._clipping = _Clipping(survey, clip)
        self._source = Batch() if seed is None else Seeded(seed)
        self._tables = read_values(values, survey, column, separator, study.public_text)
        self.people = 0

    @property
    def clipped(self) -> int:
        """How many values were moved to an end of the domain."""
        return self._clipping.moved

    def __iter__(self) -> Iterator[Reports]:
        with self._watch("randomizing", count_rows(self._values)) as advance:
            for table in self._tables:
                try:
                    held = self._clipping.clip(values_of(table, self._survey))
                    reports = self._survey.randomize(held, self._source, self._study.encode_public(table))
                except DomainError as problem:
                    raise self._clipping.placed(problem.moved(self.people), self._values) from None
                self.people += len(reports)
                yield reports
                advance(len(reports))
        if not self.people:
            raise EmptyError(f"{self._values} holds no people")

    def write(self, out: Path) -> None:
        """Write all reports to a file, by its name Parquet or Arrow."""
        if out.suffix.lower() in PARQUET:
            with replacing(out) as temporary:
                write_parquet(temporary, self._survey, self)
            return
        with ReportWriter(out, self._survey) as writer:
            for reports in self:
                writer.write(reports)


def load_people(study: Study, values: Path, column: str | None, separator: str, clip: bool) -> tuple[People, int]:
    """What everybody in a file holds, with their public columns; and how many values were clipped."""
    import pyarrow as pa

    check_inputs(values)
    survey, clipping = study.survey, _Clipping(study.survey, clip)
    tables = list(read_values(values, survey, column, separator, study.public_text))
    if not tables:
        raise EmptyError(f"{values} holds no people")
    whole = pa.concat_tables(tables)
    try:
        codes = survey.domain.encode(clipping.clip(values_of(whole, survey)))
        return People(codes, survey.read_public(study.encode_public(whole), len(codes))), clipping.moved
    except DomainError as problem:
        raise clipping.placed(problem, values) from None


class _Clipping:
    """Values as they are, or moved into the domain and counted; of records, the attributes that are numbers."""

    def __init__(self, survey: Survey, clip: bool) -> None:
        domain = survey.domain if clip else None
        self._whole = domain if isinstance(domain, Numeric) else None
        attributes = domain.attributes if isinstance(domain, Record) else ()
        self._parts = {name: part for name, part in attributes if isinstance(part, Numeric)}
        self._ranges = () if clip else tuple(_ranges(survey.domain))
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

    def placed(self, problem: DomainError, file: Path) -> DomainError:
        """The same error with its place in a file, and with --clip where that would help."""
        if problem.row is None:
            return problem
        said = str(problem)
        if file.suffix.lower() in TEXT:
            more = f", and {problem.count - 1:,} more" if problem.count > 1 else ""
            said = f"{problem.expected} (line {problem.row + 2:,} of {file}{more})"
        hint = "; --clip moves numbers outside to the nearer end" if problem.expected in self._ranges else ""
        return DomainError(said + hint)

    def _inside(self, domain: Numeric, held: Any) -> Any:
        inside, moved = domain.clip(held)
        self.moved += moved
        return inside


def _ranges(domain: Domain) -> Iterator[str]:
    """What is expected of numbers that clipping would move, as errors say it."""
    parts = domain.attributes if isinstance(domain, Record) else (("", domain),)
    for name, part in parts:
        if isinstance(part, Numeric):
            low, high = part.ends
            try:
                part.encode(part.values_of(np.array([2 * high - low + 1])))
            except DomainError as problem:
                yield f"attribute {name!r}: {problem.expected}" if name else problem.expected
