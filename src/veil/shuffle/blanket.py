"""The privacy blanket of a mechanism: what every report says whatever is held (Balle, Bell, Gascon and Nissim 2019).

Each person's report comes, with probability gamma, from one distribution that does not depend on what they hold. After
a shuffle nobody knows which reports these are, and one person's report hides among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from veil.errors import ParameterError

if TYPE_CHECKING:
    from veil.mechanisms import Mechanism, PureOracle, SquareWave

__all__ = ["Blanket", "blanket_of"]


@dataclass(frozen=True)
class Blanket:
    """The blanket of a mechanism whose reports each support a set of values, and are `ratio` times likelier for them.

    Drawn from the blanket, a report supports a given value with probability `share`, and two given values with
    probability `both`. Everything a shuffle is worth follows from these three numbers.

    >>> from veil import GRR
    >>> found = blanket_of(GRR(1.0, 4))
    >>> found.share, found.both, round(float(found.gamma), 4)
    (Fraction(1, 4), Fraction(0, 1), 0.6995)
    """

    ratio: Fraction
    share: Fraction
    both: Fraction

    def __post_init__(self) -> None:
        parts = (self.ratio, self.share, self.both)
        if not all(isinstance(part, (Fraction, int)) for part in parts):
            raise ParameterError("a blanket has a ratio, a share and a share of pairs, as exact fractions")
        if self.ratio <= 1 or not 0 < self.share < 1 or not 0 <= self.both <= self.share:
            raise ParameterError("a blanket has a ratio above 1, a share between 0 and 1, and pairs within the share")

    @property
    def gamma(self) -> Fraction:
        """The probability that a report is drawn from the blanket."""
        return 1 / (1 + self.share * (self.ratio - 1))

    @property
    def apart(self) -> Fraction:
        """The probability that a person's report is from the blanket and supports the first of two values alone."""
        return self.gamma * (self.share - self.both)

    def atoms(self) -> list[tuple[Fraction, Fraction, Fraction]]:
        """What a report from the blanket shows about two values, held and not: probability, and both likelihoods.

        Likelihoods are over that of the blanket's part. The probabilities add up to gamma.
        """
        neither = self.gamma * (1 - 2 * self.share + self.both)
        one, many = Fraction(1), self.ratio
        return [
            (self.apart, many, one),
            (self.apart, one, many),
            (self.gamma * self.both, many, many),
            (neither, one, one),
        ]

    @staticmethod
    def of_support(ratio: Fraction, p: Fraction, q: Fraction) -> Blanket:
        """The blanket of a pure oracle, by the probabilities that a report supports a held value and another one.

        p = ratio * share * gamma and q = gamma * (share - both) + ratio * gamma * both, solved for share and both.

        >>> Blanket.of_support(Fraction(3), Fraction(3, 5), Fraction(1, 3)).share
        Fraction(1, 3)
        """
        share = p / (ratio - p * (ratio - 1))
        both = (q * (1 + share * (ratio - 1)) - share) / (ratio - 1)
        return Blanket(ratio, share, both)


def blanket_of(mechanism: Mechanism) -> Blanket:
    """The blanket of GRR, local hashing, unary encoding, subset selection, Hadamard response, PGR or a square wave.

    Local hashing is taken at its word: hash functions that behave as random ones, two values at a time. Of a wave it is
    the blanket between the two values that overlap least; for any other two, a shuffle is worth more.

    >>> from veil import SubsetSelection
    >>> blanket_of(SubsetSelection(1.0, 100)).share
    Fraction(27, 100)
    """
    from veil.mechanisms import (
        BLH,
        GRR,
        OLH,
        PGR,
        HadamardResponse,
        LinearHashing,
        PureOracle,
        SquareWave,
        SubsetSelection,
    )
    from veil.mechanisms.oracles.unary import UnaryEncoding

    if isinstance(mechanism, SquareWave):
        return _of_wave(mechanism)
    # not every local hashing: the rows of RandomProjection are few and public, and some values share most of them
    known = (GRR, OLH, BLH, LinearHashing, UnaryEncoding, SubsetSelection, HadamardResponse, PGR)
    if isinstance(mechanism, known):
        assert isinstance(mechanism, PureOracle)
        return _of_oracle(mechanism)
    raise ParameterError(
        f"the blanket of {getattr(mechanism, 'name', 'this')} is not known: expected GRR, OLH, BLH, LinearHashing, "
        'unary encoding, SubsetSelection, HadamardResponse, PGR or SquareWave; method="clones" is for any mechanism'
    )


def _of_oracle(oracle: PureOracle) -> Blanket:
    ratio = oracle.guarantee.ratio
    assert ratio is not None
    return Blanket.of_support(ratio, oracle.p, oracle.q)


def _of_wave(wave: SquareWave) -> Blanket:
    if wave.ramp != 1:
        raise ParameterError("the blanket of a wave is known where the wave is square: expected ratio = 1")
    ratio = wave.guarantee.ratio
    assert ratio is not None
    overlap = max(0, wave.plateau - (wave.cells - 1))  # of the waves of the first and the last value
    return Blanket(ratio, Fraction(wave.plateau, wave.outputs), Fraction(overlap, wave.outputs))
