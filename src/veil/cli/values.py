"""Files of people's values: randomized as on devices, or read whole for a trial."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from veil.cli.input import check_inputs
from veil.domain import Domain, Numeric, Record
from veil.domain.text_values import SEPARATOR
from veil.engines import Watch
from veil.entropy import Batch, SeededForExperiments
from veil.errors import DomainError, EmptyError, InputError
from veil.files import ReportWriter, ValueFile, count_rows, read_values, values_of
from veil.files.arrow_files import PARQUET
from veil.files.reports import write_parquet
from veil.files.values import Missing, MissingPolicy
from veil.reports.columns import Reports
from veil.study import Study
from veil.survey import People, Survey
from veil.tools.filesystem import atomic_replacement


@dataclass(frozen=True)
class ValueInput:
    """A file of people's values, and how it is read."""

    file: ValueFile
    column: str | None = None
    separator: str = SEPARATOR
    clip: bool = False
    missing: Missing | None = None

    def __post_init__(self) -> None:
        check_inputs(*self.file.paths)

    @classmethod
    def at(cls, path: Path, form: str | None = None, **how: Any) -> ValueInput:
        """Those of a path, or of standard input."""
        return cls(ValueFile(path, form), **how)

    def tables(self, study: Study, survey: Survey, without: MissingPolicy) -> Iterator[Any]:
        """What is in it for a survey, a chunk at a time."""
        return read_values(self.file, survey, self.column, self.separator, study.public_text, without)


@dataclass
class ClippingCounts:
    """How many values were moved to an end of the domain, and how many people were left out for want of one."""

    clipped: int | None
    skipped: int | None

    def document(self) -> dict[str, int | None]:
        """For programs; null where it was not asked for."""
        return {"clipped": self.clipped, "skipped": self.skipped}

    def sentences(self) -> Iterator[str]:
        """For people."""
        if self.clipped is not None:
            what = "1 value was" if self.clipped == 1 else f"{self.clipped:,} values were"
            yield f"{what} outside the domain and moved to its nearer end"
        if self.skipped is not None:
            yield f"{'1 person' if self.skipped == 1 else f'{self.skipped:,} people'} without a value left out"


class RandomizedRows:
    """Runs on the device: a report for every row of a file, from one source; with `clip`, of the nearest value."""

    def __init__(
        self, study: Study, survey: Survey, values: ValueInput, watch: Watch, *, seed: int | None = None
    ) -> None:
        self._study, self._survey, self._values, self._watch = study, survey, values, watch
        self._clipping, self._without = _Clipping(survey, values.clip), MissingPolicy(values.missing)
        self._source = Batch() if seed is None else SeededForExperiments(seed)
        self._seeded = seed is not None
        self._tables = values.tables(study, survey, self._without)
        self.people = 0

    @property
    def moved(self) -> ClippingCounts:
        """What was not taken as it is."""
        return _moved(self._values, self._clipping, self._without)

    def __iter__(self) -> Iterator[Reports]:
        file = self._values.file
        with self._watch("randomizing", next(map(count_rows, file.paths), None)) as advance:
            for table in self._tables:
                try:
                    held = self._clipping.clip(values_of(table, self._survey))
                    reports = self._survey.randomize(held, self._source, self._study.encode_public(table))
                except DomainError as problem:
                    raise self._clipping.placed(problem, file, table) from None
                self.people += len(reports)
                yield reports
                advance(len(reports))
        if not self.people:
            raise _nobody(file, self._without)

    def write(self, out: Path) -> None:
        """Write all reports to a file, by its name Parquet or Arrow."""
        if out.suffix.lower() in PARQUET:
            with atomic_replacement(out) as temporary:
                write_parquet(temporary, self._survey, self, seeded=self._seeded)
            return
        with ReportWriter(out, self._survey, seeded=self._seeded) as writer:
            for reports in self:
                writer.write(reports)


def load_people(study: Study, values: ValueInput) -> tuple[People, ClippingCounts]:
    """What everybody in a file holds, with their public columns; and what was not taken as it is."""
    import pyarrow as pa

    survey, clipping, without = study.survey, _Clipping(study.survey, values.clip), MissingPolicy(values.missing)
    tables = list(values.tables(study, survey, without))
    if not tables:
        raise _nobody(values.file, without)
    whole = pa.concat_tables(tables, promote_options="permissive")
    try:
        codes = survey.domain.encode(clipping.clip(values_of(whole, survey)))
        people = People(codes, survey.read_public(study.encode_public(whole), len(codes)))
    except DomainError as problem:
        raise clipping.placed(problem, values.file, whole) from None
    return people, _moved(values, clipping, without)


def _moved(values: ValueInput, clipping: _Clipping, without: MissingPolicy) -> ClippingCounts:
    return ClippingCounts(
        clipping.moved if values.clip else None, without.skipped if values.missing == "skip" else None
    )


def _nobody(file: ValueFile, without: MissingPolicy) -> EmptyError:
    return EmptyError(f"{file} holds no people{' with a value' if without.skipped else ''}")


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

    def placed(self, problem: DomainError, file: ValueFile, table: Any) -> DomainError:
        """The same error with its place in a file, and with --clip where that would help."""
        hint = "; --clip moves numbers outside to the nearer end" if problem.expected in self._ranges else ""
        return DomainError(f"{file.placed(problem, table)}{hint}")

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
