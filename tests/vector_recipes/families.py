"""The other members of the unary and hashing families: SUE, THE, BLH, RandomProjection, LinearHashing."""

from __future__ import annotations

from veil import BLH, SUE, THE, Bits, LinearHashing, RandomProjection, Survey
from veil.mechanisms import Mechanism

from .surveys import vectors
from .words import LAST, Json, threshold


def sue_surveys() -> list[Json]:
    return [_streamed(SUE(epsilon, size)) for epsilon, size in ((0.1, 5), (1.0, 64), (4.0, 130))]


def the_surveys() -> list[Json]:
    return [_streamed(THE(1.0, 70)), _streamed(THE(0.5, 9, theta=1.0)), _streamed(THE(4.0, 20, theta=0.625))]


def blh_surveys() -> list[Json]:
    return [_hashed(BLH(1.0, 1024)), _hashed(BLH(0.3, Bits(100)))]


def projection_surveys() -> list[Json]:
    return [_hashed(RandomProjection(1.0, 1024)), _hashed(RandomProjection(2.0, 30, rows=100))]


def linear_surveys() -> list[Json]:
    prefixes = [LinearHashing(2.0, Bits(64), suffix=19), LinearHashing(0.3, Bits(100), suffix=12)]
    return [_hashed(oracle) for oracle in (LinearHashing(1.0, 1024), *prefixes)]


def _streamed(oracle: Mechanism) -> Json:
    last = oracle.domain.size - 1
    cases = [(f"value {value}, streamed", value, []) for value in (0, last // 2, last)]
    return vectors(_title(oracle), Survey(oracle), cases)


def _hashed(oracle: Mechanism) -> Json:
    survey = Survey(oracle)
    stay = threshold(survey, "stay")
    cases = [
        ("stays, seed 0", 0, [0, stay - 1]),
        ("moves", 7, [5, stay, LAST]),
        ("streamed", 11, []),
    ]
    return vectors(_title(oracle), survey, cases)


def _title(oracle: Mechanism) -> str:
    size = str(oracle.domain.size) if oracle.domain.listable else "very many"
    return f"{oracle.name} of {size} values, eps {oracle.epsilon:g}"
