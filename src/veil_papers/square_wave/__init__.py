"""Li et al., "Estimating numerical distributions under local differential privacy" (SIGMOD 2020), Figures 2 to 7."""

from __future__ import annotations

from dataclasses import replace

from veil_papers.common.exhibits import Exhibit, Setting, Study
from veil_papers.common.sweep import Errors
from veil_papers.square_wave import figures as figures
from veil_papers.square_wave.methods import FULL, QUICK, data_sets, measure
from veil_papers.square_wave.people import People
from veil_papers.square_wave.waves import SHAPES, granularities, shapes, widths

__all__ = ["reproduce"]

SEED = 5
_SHAPED_AT = 1.0
_CRITERIA = (
    'the paper gives words ("best", "similar", "most cases"), the numbers in brackets that decide are ours; "(ours)" '
    "are claims of this project. A comparison fails where the opposite is measured by more than two standard errors; "
    "ratios are of means over the runs, with their standard error. Figure 6 got more runs after a first look, "
    "in which the least of ten means, of 12 runs each, was too small by chance. Read the measured column, not the "
    "verdict alone"
)


def reproduce(setting: Setting) -> Study:
    """All six figures."""
    plan, sets = (QUICK if setting.quick else FULL), data_sets(setting)
    found: dict[str, dict[str, Errors]] = {}
    with setting.watch("Figures 2 to 4: all methods", len(plan.epsilons) * sum(plan.runs.values())) as advance:
        for place, (label, people) in enumerate(sets.items()):
            at = [measure(people, eps, plan, [SEED, 2, place, i], advance) for i, eps in enumerate(plan.epsilons)]
            for of in at[0]:
                found.setdefault(of, {})[label] = Errors.of(plan.epsilons, [errors[of] for errors in at])
    at_formula, points = sum(plan.formula_runs.values()), len(plan.widths)
    a_shape = points * sum(plan.wave_runs.values()) + at_formula
    with setting.watch("Figure 5: shapes of waves", len(SHAPES) * a_shape) as advance:
        by_shape = {
            label: shapes(people, _SHAPED_AT, plan, [SEED, 5, place], advance)
            for place, (label, people) in enumerate(sets.items())
        }
    an_eps = points * sum(plan.width_runs.values()) + at_formula
    with setting.watch("Figure 6: widths of waves", len(plan.epsilons) * an_eps) as advance:
        by_width = {
            epsilon: widths(list(sets.values()), epsilon, plan, [SEED, 6, place], advance)
            for place, epsilon in enumerate(plan.epsilons)
        }
    with setting.watch("Figure 7: buckets", len(plan.epsilons) * sum(plan.wave_runs.values())) as advance:
        by_buckets = {
            label: granularities(people, plan, [SEED, 7, place], advance)
            for place, (label, people) in enumerate(sets.items())
        }
    exhibits: tuple[Exhibit, ...] = (
        figures.distances(found["wasserstein"], found["ks"], plan),
        figures.ranges(found["range 0.1"], found["range 0.4"], plan),
        figures.statistics(found["mean"], found["variance"], found["quantiles"], plan),
        figures.wave_shapes(by_shape, _SHAPED_AT, plan),
        figures.wave_widths(by_width, plan),
        figures.buckets(by_buckets, plan),
    )
    if not any(people.numbers.stand_in for people in sets.values()):
        exhibits = tuple(_with_remark(made) for made in exhibits)
    facts = {
        "Source": "Li et al., SIGMOD 2020, section 6",
        "Seed": str(SEED),
        **{people.label.capitalize(): _told(people) for people in sets.values()},
        "Criteria": _CRITERIA,
        "Run": "quick: fewer runs, points and people" if setting.quick else "in full",
    }
    title = "Numbers under local privacy: square waves, hierarchies, bins and means, run again"
    return Study("numeric", title, exhibits, facts)


def _with_remark(made: Exhibit) -> Exhibit:
    remark = figures.REMARKS.get(made.name)
    return made if remark is None else replace(made, notes=(*made.notes, remark))


def _told(people: People) -> str:
    numbers = people.numbers
    span = f"{numbers.lo:g} to {numbers.hi:,.0f} {numbers.unit}".strip()
    return f"{numbers.origin}; {people.count:,} people, {span}, {people.buckets:,} buckets"
