"""veil: statistics from people without learning anybody's answer, by local differential privacy.

Each device randomizes its person's answer before it leaves; the collector sees only noisy reports and still estimates
the population. `veil.simulate` shows the whole corridor in one call; docs/architecture.md lists the packages.

>>> import veil
>>> oracle = veil.OLH(epsilon=1.0, domain=["red", "green", "blue"])
>>> reports = oracle.randomize(["red", "red", "blue"])           # on the devices
>>> estimate = oracle.estimate(oracle.tally(reports))            # at the collector
>>> estimate.values
['red', 'green', 'blue']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from veil.version import VERSION

if TYPE_CHECKING:
    from veil import histogram, hitters, itemsets, marginals, metrics, numeric, post, sql
    from veil.device.client import Client
    from veil.device.ledger import Ledger
    from veil.domain import Bits, Categories, Integers, Interval, Items, Record, Text
    from veil.errors import VeilError
    from veil.mechanisms import (
        BLH,
        GRR,
        MECHANISMS,
        OLH,
        OUE,
        PGR,
        SHE,
        SUE,
        THE,
        HaarResponse,
        HadamardResponse,
        LinearHashing,
        Piecewise,
        RandomProjection,
        Rappor,
        SquareWave,
        StochasticRounding,
        SubsetSelection,
    )
    from veil.planning.histogram import choose
    from veil.privacy import Guarantee
    from veil.reports.tally import Tally, merge
    from veil.results.estimate import Estimate
    from veil.simulation import simulate
    from veil.study import STUDIES, Collection, OneRound, Round, Study, StudyRun, TallyCollection, study_from_json
    from veil.survey import AllOf, EachOf, OneOf, Public, Question, Survey

__version__ = VERSION

# Names are loaded when first used: `import veil` and `veil --help` stay free of numpy, numba and pyarrow.
_HOMES = {
    "veil.device.client": ("Client",),
    "veil.domain": ("Bits", "Categories", "Integers", "Interval", "Items", "Record", "Text"),
    "veil.errors": ("VeilError",),
    "veil.device.ledger": ("Ledger",),
    "veil.mechanisms": (
        "PGR",
        "Rappor",
        "HadamardResponse",
        "HaarResponse",
        "LinearHashing",
        "SHE",
        "BLH",
        "RandomProjection",
        "SUE",
        "THE",
        "GRR",
        "MECHANISMS",
        "OLH",
        "OUE",
        "Piecewise",
        "SquareWave",
        "StochasticRounding",
        "SubsetSelection",
    ),
    "veil.planning.histogram": ("choose",),
    "veil.privacy": ("Guarantee",),
    "veil.results.estimate": ("Estimate",),
    "veil.simulation": ("simulate",),
    "veil.study": (
        "STUDIES",
        "Collection",
        "TallyCollection",
        "OneRound",
        "Round",
        "Study",
        "StudyRun",
        "study_from_json",
    ),
    "veil.survey": ("AllOf", "EachOf", "OneOf", "Public", "Question", "Survey"),
    "veil.reports.tally": ("Tally", "merge"),
}
_ROOMS = ("histogram", "hitters", "itemsets", "marginals", "metrics", "numeric", "post", "sql")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BLH",
    "GRR",
    "MECHANISMS",
    "OLH",
    "OUE",
    "PGR",
    "SHE",
    "STUDIES",
    "SUE",
    "THE",
    "AllOf",
    "Bits",
    "Categories",
    "Client",
    "Collection",
    "EachOf",
    "Estimate",
    "Guarantee",
    "HaarResponse",
    "HadamardResponse",
    "Integers",
    "Interval",
    "Items",
    "Ledger",
    "LinearHashing",
    "OneOf",
    "OneRound",
    "Piecewise",
    "Public",
    "Question",
    "RandomProjection",
    "Rappor",
    "Record",
    "Round",
    "SquareWave",
    "StochasticRounding",
    "Study",
    "StudyRun",
    "SubsetSelection",
    "Survey",
    "Tally",
    "TallyCollection",
    "Text",
    "VeilError",
    "choose",
    "histogram",
    "hitters",
    "itemsets",
    "marginals",
    "merge",
    "metrics",
    "numeric",
    "post",
    "simulate",
    "sql",
    "study_from_json",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if name in _ROOMS:
        return importlib.import_module(f"veil.{name}")
    if home is None:
        raise AttributeError(f"module 'veil' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
