"""Chapter 6 of the thesis, marginals of many attributes: Figures 6.3 to 6.9."""

from __future__ import annotations

from veil_papers.common.exhibits import Reproduction, Setting
from veil_papers.datasets import kosarak_sets, retail_baskets, webview_clicks
from veil_papers.marginals import classify, figures, parameters
from veil_papers.marginals.runs import KOSARAK, SEED, Plan, binary_case, census, transactions

__all__ = ["CRITERIA", "SEED", "reproduce"]

CRITERIA = (
    'numbers in brackets that decide are ours; "(ours)" are claims of this project, "(goal)" what was asked of it'
)


def reproduce(setting: Setting) -> Reproduction:
    """All figures, and what was asked for beyond them."""
    plan, sources, other = Plan(setting), transactions(setting), census(setting, 3)
    compared = {
        KOSARAK: sources[KOSARAK],
        "Retail": retail_baskets(setting.data),
        "WebView-2": webview_clicks(setting.data),
    }
    by_k = parameters.ByK(binary_case(KOSARAK, kosarak_sets(setting.data), plan, (18, 16, 3)), plan).run()
    exhibits = (
        figures.noise(),
        figures.binary(figures.binary_cases(sources, plan), figures.both_readings(compared, plan), plan),
        figures.other(figures.other_cases(other, plan), plan),
        classify.classifiers(classify.classify(setting, plan), plan),
        parameters.heat_maps(parameters.heats(sources, plan), plan),
        parameters.other_k(by_k, plan),
        parameters.by_size(by_k, plan),
    )
    facts = {name: f"{data.origin}, resampled to n people" for name, data in (sources | compared | other).items()}
    return Reproduction("Marginals of many attributes: CALM and its rivals, run again", exhibits, facts)
