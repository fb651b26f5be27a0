"""Chapter 4 of the thesis, heavy hitters: Tables 4.1 to 4.3 and Figures 4.2 to 4.6."""

from __future__ import annotations

from veil_papers.common.exhibits import Reproduction, Setting
from veil_papers.datasets import first_names, web_words
from veil_papers.heavy_hitters import figures, tables
from veil_papers.heavy_hitters.searching import QUERIES, URLS, Plan, Source

SEED = 7
CRITERIA = (
    'numbers in brackets that decide are ours; "(ours)" are claims of this project, "(goal)" what was asked of it'
)


def reproduce(setting: Setting) -> Reproduction:
    """All tables and figures, and what was asked for beyond them."""
    plan, names, words = Plan(setting), first_names(setting.data), web_words(setting.data)
    sources = {URLS: Source.of(words, 20, plan.urls), QUERIES: Source.of(names, 6, plan.strings)}
    cut = {URLS: Source.of(words, 4, plan.urls), QUERIES: Source.of(names, 4, plan.strings)}
    held = {"names": sources[QUERIES], "words": Source.of(words, 6, plan.strings)}
    by_epsilon, by_top = (figures.measure_by(axis, sources, plan, SEED) for axis in ("eps", "k"))
    splits, steps = figures.measure_splits(plan, SEED), figures.measure_steps(plan, SEED)
    exhibits = (
        tables.thresholds(),
        *tables.few_groups(cut, plan, SEED),
        figures.by_epsilon(by_epsilon, plan),
        figures.by_top(by_top, plan),
        figures.thresholds(plan, SEED),
        figures.design(splits["F1"], steps["F1"], plan),
        figures.errors(splits["Var"], by_epsilon),
        figures.text(held, plan, SEED),
        figures.real_reports(plan, SEED),
    )
    facts = {
        "Synthetic": "random strings of 64 bits, frequencies proportional to e^(-0.05 r), 1,000,000 people",
        "URLs": f"stand-in for the URL data: the {plan.urls:,} most frequent of {words.origin}, padded to 20 bytes, "
        "1,200,000 people",
        "Queries": f"stand-in for the query data: {names.origin}, cut to 6 bytes, 500,000 people",
    }
    return Reproduction("Heavy hitters: PEM and its rivals, run again", exhibits, facts)
