"""Mechanisms: a randomizer that runs on a device, and an estimator that runs at the collector.

    base, oracle    the base classes Mechanism, FrequencyOracle and PureOracle
    best_oracle     the choice of the oracle with the smallest variance
    oracles         frequency oracles: GRR, OUE, SUE, OLH, BLH, SubsetSelection, HadamardResponse, PGR, LinearHashing
    numbers         SquareWave and HaarResponse for distributions; StochasticRounding and Piecewise for means
    longitudinal    Rappor, for answers that are given repeatedly
    rivals          SHE, THE and RandomProjection, for comparisons

`MECHANISMS` is the table of all of them: a new one is tested, and planned for, once it is listed there.
`mechanism_from_json` reads the mechanism of a task.
"""

from __future__ import annotations

from typing import Any

from veil.mechanisms.base import Mechanism
from veil.mechanisms.longitudinal.rappor import Rappor, design_matrix
from veil.mechanisms.numbers.haar import HaarResponse
from veil.mechanisms.numbers.means import Piecewise, StochasticRounding
from veil.mechanisms.numbers.moments import MeanMechanism, NumericMechanism
from veil.mechanisms.numbers.square_wave import SquareWave, best_width
from veil.mechanisms.oracle import FrequencyOracle, PureOracle
from veil.mechanisms.oracles.grr import GRR
from veil.mechanisms.oracles.hadamard import HadamardResponse
from veil.mechanisms.oracles.linear_hashing import LinearHashing
from veil.mechanisms.oracles.local_hashing import BLH, OLH
from veil.mechanisms.oracles.pgr import PGR
from veil.mechanisms.oracles.subset import SubsetSelection
from veil.mechanisms.oracles.unary import OUE, SUE
from veil.mechanisms.rivals.histogram_encoding import SHE, THE
from veil.mechanisms.rivals.projection import RandomProjection
from veil.tools.json_documents import kind_of

__all__ = [
    "BLH",
    "GRR",
    "MECHANISMS",
    "OLH",
    "OUE",
    "PGR",
    "SHE",
    "SUE",
    "THE",
    "FrequencyOracle",
    "HaarResponse",
    "HadamardResponse",
    "LinearHashing",
    "MeanMechanism",
    "Mechanism",
    "NumericMechanism",
    "Piecewise",
    "PureOracle",
    "RandomProjection",
    "Rappor",
    "SquareWave",
    "StochasticRounding",
    "SubsetSelection",
    "best_width",
    "design_matrix",
    "mechanism_from_json",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    "GRR": GRR,
    "OUE": OUE,
    "OLH": OLH,
    "SubsetSelection": SubsetSelection,
    "HadamardResponse": HadamardResponse,
    "SHE": SHE,
    "SUE": SUE,
    "THE": THE,
    "BLH": BLH,
    "RandomProjection": RandomProjection,
    "Rappor": Rappor,
    "PGR": PGR,
    "LinearHashing": LinearHashing,
    "SquareWave": SquareWave,
    "HaarResponse": HaarResponse,
    "StochasticRounding": StochasticRounding,
    "Piecewise": Piecewise,
}


def mechanism_from_json(document: Any) -> Mechanism:
    """The mechanism that a task describes."""
    return MECHANISMS[kind_of(document, MECHANISMS, "a mechanism")].from_json(document)
