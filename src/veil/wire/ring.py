"""Reports as integers: each report is an interval of the integers below 2^bits, and every such integer is a report.

Parties that shuffle together add shares modulo 2^bits, and the fakes that they add are uniform in that ring. A fake
must look like a person's report, so every integer must decode to a report: a device draws uniformly from the interval
of its report. `veil.shuffle` has the shuffle itself, and `veil.accounting` the value of fakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.entropy import Source
from veil.errors import InputError, ParameterError
from veil.mechanisms import GRR, OLH, Mechanism
from veil.reports.columns import Reports
from veil.reports.layout import Layout
from veil.survey import Survey
from veil.tools.numbers import is_int

U64 = NDArray[np.uint64]

_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_EVEN = 16  # bits that intervals have at least, so that their sizes differ by less than 2^-16 of themselves


def ring_of(asked: Survey | Mechanism, bits: int = 64) -> Ring:
    """The ring in which the reports of a survey of one question, or of a mechanism, are shuffled.

    GRR has one of 64 or 32 bits, and OLH with seeds of four bytes has one of 64: other reports are too long, or are not
    all equally likely to be a uniform fake. Intervals are of at least 2^16 integers, because where they are uneven
    fakes are not quite uniform reports: at most 2^(bits - 16) values, and at most 2^16 buckets.

    >>> ring = ring_of(GRR(epsilon=1.0, domain=3))
    >>> ring.decode(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64))["value"].tolist()
    [0, 1, 2]
    """
    if not is_int(bits) or bits not in (32, 64):
        raise ParameterError("a ring has 64 bits, or 32")
    if isinstance(asked, Survey):
        questions = asked.questions if len(asked.ask) == 1 else ()
        if len(questions) != 1 or asked.public or asked.layout.names != questions[0].mechanism.layout.names:
            raise ParameterError("a ring is for a survey of one question, without public columns or a choice")
        mechanism, task = questions[0].mechanism, asked.task
    elif isinstance(asked, Mechanism):
        mechanism, task = asked, asked.digest
    else:
        raise ParameterError("expected a survey or a mechanism")
    if isinstance(mechanism, OLH):
        if mechanism.seed_bytes != 4 or bits != 64:
            raise ParameterError("OLH has a ring of 64 bits, with seeds of four: OLH(..., seed_bytes=4)")
        if mechanism.hash_range > 1 << _EVEN:
            raise ParameterError("a ring has at most 2^16 buckets: with more, fakes would not be uniform reports")
    elif not isinstance(mechanism, GRR):
        raise ParameterError(
            f"{mechanism.name} has no ring: GRR and OLH(..., seed_bytes=4) do, whose reports are short and all alike"
        )
    elif mechanism.domain.size > 1 << (bits - _EVEN):
        raise ParameterError(
            f"a ring of {bits} bits has at most 2^{bits - _EVEN} values: with more, fakes would not be uniform reports"
        )
    return Ring(task, mechanism.layout, int(bits))


@dataclass(frozen=True)
class Ring:
    """The integers below 2^bits as reports: made by `ring_of`.

    The highest bits are the seed, where there is one. The others, z of w bits, are cut into as many intervals as there
    are values or buckets, m: z stands for floor(z m / 2^w). Guarantee: the draw in an interval does not look at what
    is held, so that an element tells as much as its report, and no more.

    >>> from veil import OLH
    >>> from veil.entropy import SeededForExperiments
    >>> oracle = OLH(epsilon=1.0, domain=100, seed_bytes=4)
    >>> ring, reports = ring_of(oracle), oracle.randomize([7, 8, 9])
    >>> again = ring.reports(ring.encode(reports.columns, SeededForExperiments(1)))
    >>> again.to_bytes() == reports.to_bytes()
    True
    """

    task: str
    layout: Layout
    bits: int

    @property
    def modulus(self) -> int:
        """How many elements there are."""
        return 1 << self.bits

    @property
    def cells(self) -> int:
        """How many intervals there are: values, or buckets under each seed."""
        return self.layout.fields[-1].bound

    @property
    def _width(self) -> int:
        """The bits that are cut into intervals."""
        seeds = self.layout.fields[0].bound if len(self.layout.fields) > 1 else 1
        return self.bits - (seeds.bit_length() - 1)

    def encode(self, columns: Mapping[str, NDArray[Any]], source: Source) -> U64:
        """Runs on the device: each report as an element, uniform among all that stand for it."""
        self.layout.check(columns)
        cells = columns[self.layout.names[-1]].astype(np.uint64)
        starts, sizes = self._intervals(cells)
        elements = starts + source.below(sizes, len(cells)) if len(cells) else starts
        if len(self.layout.fields) > 1:
            elements |= columns[self.layout.names[0]].astype(np.uint64) << np.uint64(self._width)
        return elements

    def _intervals(self, cells: U64) -> tuple[U64, U64]:
        """Where the intervals [ceil(c 2^w / m), ceil((c + 1) 2^w / m)) begin, and how long they are; exactly."""
        whole, rest = divmod(1 << self._width, self.cells)  # c 2^w / m = c whole + c rest / m, and c rest < 2^64
        m, wide, one = np.uint64(self.cells), np.uint64(rest), np.uint64(1)
        before, after = ((c * wide + m - one) // m for c in (cells, cells + one))
        return cells * np.uint64(whole) + before, np.uint64(whole) + after - before

    def decode(self, elements: Any) -> dict[str, NDArray[Any]]:
        """Runs at the collector: the columns of the reports that elements stand for; every element stands for one."""
        given = np.asarray(elements)
        if given.ndim != 1 or given.dtype.kind not in "ui" or (given.dtype.kind == "i" and (given < 0).any()):
            raise InputError("elements of a ring are a list of integers of at least 0")
        found = given.astype(np.uint64)
        if self.bits < 64 and (found >> np.uint64(self.bits)).any():
            raise InputError(f"an element of this ring is below 2^{self.bits}")
        width = np.uint64(self._width)
        low = found if self._width == 64 else found & np.uint64((1 << self._width) - 1)
        m = np.uint64(self.cells)
        if self._width <= 32:
            cells = (low * m) >> width
        else:  # in halves: neither product reaches 2^64
            cells = ((low >> _HALF) * m + (((low & _LOW) * m) >> _HALF)) >> (width - _HALF)
        *seeds, field = self.layout.fields
        columns = {seed.name: (found >> width).astype(seed.dtype) for seed in seeds}
        return {**columns, field.name: cells.astype(field.dtype)}

    def reports(self, elements: Any) -> Reports:
        """Runs at the collector: the reports that elements stand for."""
        return Reports(self.task, self.layout, self.decode(elements))

    def uniform(self, count: int, source: Source) -> U64:
        """Runs at a shuffler: so many uniform elements, as fakes are.

        >>> from veil.entropy import SeededForExperiments
        >>> len(ring_of(GRR(epsilon=1.0, domain=3)).uniform(5, SeededForExperiments(1)))
        5
        """
        if not is_int(count) or count < 0:
            raise ParameterError("a number of fakes is an integer of at least 0")
        return source.below(self.modulus, int(count))
