"""What stands in vectors/, made anew: `build` gives every file by its name, `text_of` its text. Deterministic.

Not for tests of statistics: nothing here says that a distribution is right.
"""

from __future__ import annotations

import json

from . import (
    bad_reports,
    bad_tasks,
    bits,
    containers,
    each_of,
    families,
    haar,
    hadamard_she,
    lasting,
    marginals,
    means,
    pgr,
    prefixes,
    primitives,
    published,
    rappor,
    rings,
    set_views,
    statements,
    surveys,
    tables,
    waves,
)
from .words import Json

__all__ = ["build", "text_of"]


def build() -> dict[str, Json]:
    """Every file by its name."""
    return {
        "primitives.json": primitives.primitives(),
        "grr.json": {
            "surveys": [
                surveys.grr_pair(),
                surveys.grr_labels(),
                surveys.grr_wide(),
                surveys.grr_integers(),
                surveys.grr_interval(),
            ]
        },
        "oue.json": {
            "surveys": [surveys.oue(5, 0.1), surveys.oue(64, 1.0), surveys.oue(70, 4.0), surveys.oue(130, 1.0)]
        },
        "olh.json": {
            "surveys": [
                surveys.olh_plain(),
                surveys.olh_wide(),
                surveys.olh_bits(),
                surveys.olh_long_bits(),
                surveys.olh_text(),
            ]
        },
        "olh-short-seeds.json": {"surveys": [surveys.olh_short(), surveys.olh_short_text(), surveys.olh_short_items()]},
        "subset-selection.json": {
            "surveys": [
                surveys.subset(20, 1.0),
                surveys.subset(70, 0.1),
                surveys.subset(200, 4.0),
                *surveys.subset_lists(),
            ]
        },
        "sue.json": {"surveys": families.sue_surveys()},
        "the.json": {"surveys": families.the_surveys()},
        "blh.json": {"surveys": families.blh_surveys()},
        "random-projection.json": {"surveys": families.projection_surveys()},
        "linear-hashing.json": {"surveys": families.linear_surveys()},
        "pgr.json": {"surveys": pgr.every_survey()},
        "prefixes.json": {"surveys": prefixes.every_survey()},
        "rappor.json": {"surveys": rappor.every_survey()},
        "hadamard-response.json": {"surveys": hadamard_she.hadamard_surveys()},
        "haar-response.json": {"surveys": haar.every_survey()},
        "she.json": {"surveys": hadamard_she.she_surveys()},
        "square-wave.json": {"surveys": waves.every_survey()},
        "stochastic-rounding.json": {"surveys": means.rounding_surveys()},
        "piecewise.json": {"surveys": means.piecewise_surveys()},
        "one-of.json": {"surveys": [surveys.mixed(), surveys.record(), surveys.text_prefixes(), surveys.items()]},
        "set-views.json": {"surveys": set_views.every_survey()},
        "each-of.json": {"surveys": each_of.every_survey()},
        "calm.json": {"surveys": marginals.every_survey()},
        "tables.json": {"surveys": tables.every_survey()},
        "bits.json": {"surveys": bits.every_survey()},
        "lasting.json": lasting.lasting(),
        "published.json": published.published(),
        "statements.json": statements.statements(),
        "rings.json": rings.rings(),
        "some-questions.json": each_of.some_questions(),
        "containers.json": containers.containers(),
        "bad_reports.json": bad_reports.bad_reports(),
        "bad_batches.json": containers.bad_batches(),
        "bad_tasks.json": bad_tasks.bad_tasks(),
        "bad_tallies.json": containers.bad_tallies(),
        "bad_some_questions.json": each_of.bad_tallies(),
    }


def text_of(document: Json) -> str:
    """A file's text: indented, keys in the order of this module, ASCII only so that no editor renormalizes it."""
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"
