"""The proofs can fail: mistakes found in public libraries, and classics, are each caught by the same functions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil.checks import CheckError, check, exact_supports, worst_ratio
from veil.entropy import Source
from veil.mechanisms import GRR, MECHANISMS, OUE, SubsetSelection
from veil.privacy import WORD, Guarantee, exp_below
from veil.reports.layout import Field, Layout


@dataclass(frozen=True, init=False)
class FloatGRR(GRR):
    """The textbook threshold, rounded to nearest as doubles do: exceeds eps in about half of all settings."""

    @cached_property
    def _stay(self) -> int:
        e = np.exp(self.epsilon)
        return int(e / (e + self.domain.size - 1) * WORD)


@dataclass(frozen=True, init=False)
class NeverClears(OUE):
    """A unary encoding that edits in place and never clears the held bit."""

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        columns = super().draw(codes, source)
        columns["bits"][np.arange(len(codes)), codes >> np.uint64(3)] |= np.uint8(1) << (codes & np.uint64(7)).astype(
            np.uint8
        )
        return columns


@dataclass(frozen=True, init=False)
class HeldFirst(SubsetSelection):
    """A subset that is sent as a list with the held value in front."""

    @property
    def as_bits(self) -> bool:
        return False

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("subset", self.domain.size, count=self.subset_size),))

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        lists = super().draw(codes, source)["subset"].reshape(len(codes), -1)
        front = np.argsort(lists != codes[:, None].astype(lists.dtype), axis=1, kind="stable")
        ordered = np.take_along_axis(lists, front, axis=1)
        return {"subset": ordered.reshape(self.layout.fields[0].shape(len(codes)))}


@dataclass(frozen=True, init=False)
class SwappedGRR(GRR):
    """p and q confused in the estimator."""

    @cached_property
    def p(self) -> Fraction:
        return (1 - Fraction(self._stay, WORD)) / (self.domain.size - 1)

    @cached_property
    def q(self) -> Fraction:
        return Fraction(self._stay, WORD)

    @cached_property
    def guarantee(self) -> Guarantee:
        return GRR(self.epsilon, self.domain).guarantee


def test_float_thresholds_break_the_promise_somewhere() -> None:
    broken = [
        (epsilon, size)
        for epsilon in (0.1, 0.3, 0.7, 1.0, 1.5)
        for size in range(2, 9)
        if worst_ratio(FloatGRR(epsilon, size).channel()) > exp_below(epsilon)
    ]
    assert len(broken) > 5
    for epsilon, size in broken:
        assert worst_ratio(GRR(epsilon, size).channel()) <= exp_below(epsilon)


def test_a_bit_that_is_never_cleared_gives_the_value_away() -> None:
    with pytest.raises(CheckError, match="impossible under some value"):
        worst_ratio(NeverClears(1.0, 3).channel())


def test_a_subset_with_the_held_value_first_breaks_epsilon() -> None:
    oracle = HeldFirst(0.1, 6)
    assert oracle.subset_size > 1
    with pytest.raises(CheckError, match="impossible under some value"):
        worst_ratio(oracle.channel())


def test_swapped_probabilities_are_seen_as_bias() -> None:
    oracle = SwappedGRR(1.0, 4)
    single, _ = exact_supports(oracle)
    assert single[0][0] == oracle.q != oracle.p


BROKEN = [(NeverClears, "impossible"), (HeldFirst, "impossible"), (SwappedGRR, "biased")]


@pytest.mark.parametrize(("broken", "message"), BROKEN, ids=lambda part: getattr(part, "__name__", part))
def test_the_conformance_suite_rejects_each_broken_mechanism(
    broken: type[Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MECHANISMS, broken.name, broken)
    monkeypatch.setattr(SubsetSelection, "check", lambda self, columns: None)  # a lax decoder must not hide it
    with pytest.raises(CheckError, match=message):
        check(broken)
