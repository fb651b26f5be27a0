"""Chapter 4 of the thesis, heavy hitters: Tables 4.1 to 4.3 and Figures 4.2 to 4.6."""

from __future__ import annotations

from veil.datasets import first_names, web_words
from veil_papers.common.exhibits import Setting, Study
from veil_papers.heavy_hitters import figures as hitter_figures
from veil_papers.heavy_hitters import goals as hitter_goals
from veil_papers.heavy_hitters import tables as hitter_tables
from veil_papers.heavy_hitters import variants as hitter_variants
from veil_papers.heavy_hitters.plan import FULL, QUERIES, QUICK, URLS
from veil_papers.heavy_hitters.searching import Source

__all__ = ["reproduce"]

SEED = 7


def reproduce(setting: Setting) -> Study:
    """All tables and figures, and what was asked for beyond them."""
    plan, watch = (QUICK if setting.quick else FULL), setting.watch
    names, words = first_names(setting.data), web_words(setting.data)
    sources = {URLS: Source.of(words, 20, plan.urls), QUERIES: Source.of(names, 6, plan.names)}
    cut = {URLS: Source.of(words, 4, plan.urls), QUERIES: Source.of(names, 4, plan.names)}
    held = {"names": sources[QUERIES], "words": Source.of(words, 6, plan.words)}
    by_epsilon = hitter_figures.measure_epsilons(sources, plan, SEED, watch)
    by_top = hitter_figures.measure_tops(sources, plan, SEED, watch)
    splits = hitter_variants.measure_splits(plan, SEED, watch)
    steps = hitter_variants.measure_steps(plan, SEED, watch)
    exhibits = (
        hitter_tables.thresholds(),
        *hitter_tables.few_groups(cut, plan, SEED, watch),
        hitter_figures.by_epsilon(by_epsilon, plan, hitter_goals.comparison(by_epsilon)),
        hitter_figures.by_top(by_top, plan),
        hitter_variants.thresholds(plan, SEED, watch),
        hitter_variants.design(splits["F1"], steps["F1"], plan),
        hitter_variants.errors(splits["Var"], by_epsilon),
        hitter_goals.text(held, plan, SEED, watch),
        hitter_goals.real_reports(plan, SEED, watch),
    )
    facts = {
        "Source": "Wang's thesis (2021), 4.3.4 and 4.4",
        "Seed": str(SEED),
        "Synthetic": "random strings of 64 bits, frequencies proportional to e^(-0.05 r), 1,000,000 people",
        "URLs": f"stand-in for the URL data: the {plan.urls:,} most frequent of {words.origin}, padded to 20 bytes, "
        "1,200,000 people",
        "Queries": f"stand-in for the query data: {names.origin}, cut to 6 bytes, 500,000 people",
        "Criteria": 'numbers in brackets that decide are ours; "(ours)" are claims of this project, "(goal)" what was '
        "asked of it",
        "Run": "quick: fewer runs and points" if setting.quick else "in full",
    }
    return Study("heavy-hitters", "Heavy hitters: PEM and its rivals, run again", exhibits, facts)
