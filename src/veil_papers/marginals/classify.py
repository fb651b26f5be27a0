"""Figure 6.6: classifiers trained on synthetic people from a private marginal. Needs `veil-ldp[rappor]`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.marginals import CALM
from veil.post import norm_sub
from veil_papers.common.claims import Says, with_error
from veil_papers.common.exhibits import Claim, Parts, Setting, exhibit
from veil_papers.common.families import DRAWN
from veil_papers.common.sweep import Scores, Sweep, known, measure
from veil_papers.datasets import Records
from veil_papers.marginals.runs import ADULT, SEED, US, M, Plan, ask, census, power, study_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEATURES = {
    ADULT: ("age", "workclass", "education", "education_num", "occupation", "income"),
    US: ("AGEP", "EDU", "INDP_CAT", "SEX", "MSP", "PINCP"),
}
"""The attributes of the marginal; the last is the label. The thesis's for US are not in the file."""
_MODELLED = 1 << 18  # with more people views are so large that one model takes many seconds
_KINDS = {"binary": 2, "3 categories": 3}


def classified(train: Ints | Floats, test: Ints) -> float:
    """The share of people in `test` whose label a support vector machine trained on `train` gets wrong.

    Both are tables, the last axis the label: a cell counts as that many people. The machine has a radial kernel over
    one column per value (scikit-learn's defaults); cells weighted by people equal people one by one.
    """
    try:
        from sklearn.svm import SVC
    except ImportError:
        raise InputError("classifiers need scikit-learn: pip install scikit-learn") from None
    shape = train.shape[:-1]
    cells = np.indices(shape).reshape(len(shape), -1)
    columns = np.concatenate([np.eye(size)[codes] for size, codes in zip(shape, cells, strict=True)], axis=1)
    held, asked = train.reshape(-1, 2).astype(np.float64), test.reshape(-1, 2)
    rows, labels = np.nonzero(held)
    if len(set(labels.tolist())) < 2:
        said = np.full(len(held), labels[0])
    else:
        machine = SVC(kernel="rbf").fit(columns[rows], labels, sample_weight=held[rows, labels])
        said = machine.predict(columns)
    return float(1 - asked[np.arange(len(asked)), said].sum() / asked.sum())


class Split:
    """Four fifths of the people to learn from, resampled to as many as are asked, and one fifth to test on."""

    def __init__(self, people: Records, names: Sequence[str], count: int, seed: Sequence[int]) -> None:
        order = np.random.default_rng(seed).permutation(people.people)
        cut = people.people * 4 // 5
        self.names, self.test = names, people.take(order[cut:]).table(names)
        learnt = people.take(order[:cut])
        self.people, self.train = learnt.resample(count, SEED), learnt.table(names)

    @cached_property
    def baselines(self) -> dict[str, float]:
        """Without any noise, and everybody given the label that most have."""
        labels = self.test.reshape(-1, 2).sum(axis=0)
        common = int(self.train.reshape(-1, 2).sum(axis=0).argmax())
        return {M.NO_NOISE: classified(self.train, self.test), M.MAJORITY: float(1 - labels[common] / labels.sum())}

    def wrong(self, table: Floats, rng: np.random.Generator) -> float:
        """The misclassification rate after training on as many synthetic people, drawn from what a method says."""
        drawn = rng.multinomial(self.people.people, norm_sub(table, total=1.0))
        return classified(drawn.reshape(self.train.shape), self.test)


def _trial(split: Split, epsilon: float, rng: np.random.Generator) -> dict[str, float]:
    people, k, found = split.people, len(split.names), dict(split.baselines)
    chosen, small = study_of(CALM, epsilon, people.domain, k, users=people.people), math.prod(people.sizes) <= 1 << 16
    ways: dict[str, dict[str, Any]] = {M.CALM: {}} | (
        {M.GRAPHICAL: {"inference": "graphical"}} if small and people.people <= _MODELLED else {}
    )
    read_in = dict(zip(ways, ask(chosen, people, rng, *ways.values()), strict=True))
    (read_in[M.PAIRS],) = ask(study_of(CALM, epsilon, people.domain, k, sets=2), people, rng)
    for name, read in read_in.items():
        found[name] = split.wrong(read(split.names), rng)
    if small:
        (read,) = ask(_alone(epsilon, people), people, rng)
        found[M.FC] = split.wrong(read(split.names), rng)
    # of AM only those people matter who are asked for this marginal
    asked = people.take(rng.random(people.people) * math.comb(len(people.sizes), k) < 1).only(split.names)
    if asked.people:
        (read,) = ask(_alone(epsilon, asked), asked, rng)
        found[M.AM] = split.wrong(read(split.names), rng)
    return found


def _alone(epsilon: float, people: Records) -> Any:
    """One view of all attributes, read for itself: FC, and AM as far as one marginal goes."""
    m = len(people.sizes)
    return study_of(CALM, epsilon, people.domain, m, sets=m, inference="separate")


def classify(setting: Setting, plan: Plan) -> dict[str, Sweep]:
    """Misclassification by eps: both data sets, cut in two ways, with more and more people."""
    found = {}
    for kind, most in _KINDS.items():
        for number, (data, people) in enumerate(census(setting, most).items()):
            for bits in plan.class_people[data]:
                label = f"{data}, {kind}, n = {power((1 << bits) // plan.fewer)}"
                seed = [SEED, 600 + 10 * number + most, bits]
                found[label] = _swept(people, FEATURES[data], (1 << bits) // plan.fewer, label, seed, plan)
    return found


def _swept(people: Records, names: Sequence[str], count: int, label: str, seed: list[int], plan: Plan) -> Sweep:
    splits: dict[int, Split] = {}

    def trial(at: int, run: int) -> Scores:
        if run not in splits:
            splits.clear()
            splits[run] = Split(people, names, count, [*seed, run])
        rng = np.random.default_rng([*seed, at, run])
        return {"wrong": _trial(splits[run], plan.class_epsilons[at], rng)}

    return measure(f"Figure 6.6: {label}", plan.watch, plan.class_epsilons, plan.splits, trial)["wrong"]


@exhibit
def classifiers(found: Mapping[str, Sweep], plan: Plan) -> Parts:
    """Figure 6.6: misclassification by machines that learn from synthetic people."""
    for letter, (label, sweep) in zip("abcdefghijkl", found.items(), strict=False):
        yield sweep.panel(f"({letter}) {label}", "eps", "misclassification", faint=M.OURS, y_log=False)
    yield (
        f"{DRAWN} {plan.splits} splits of the people into four fifths, resampled to n, and a fifth to test on. A "
        "support vector machine with a radial kernel learns from n people drawn from a method's marginal of five "
        "features and the label, out of all attributes (Adult 15, US 16); negative cells go by Norm-Sub. Of AM only "
        "those people are drawn who are asked for this marginal. FC and the graphical model run up to 2^16 cells. FT, "
        "which needs more questions than AM, is left out. CALM has the views that Algorithm 2 chooses for k = 6; with "
        "binary attributes and eps = 2 these are 4-way, and their noise decides the label of small cells. All pairs "
        "are less noisy, and so is one graphical model of the same reports (up to 2^18 people). The thesis's features "
        f"of US are not in the file; here they are {', '.join(FEATURES[US][:-1])}."
    )
    yield from _goals(found, plan)
    yield from _of_the_thesis(found)


def _goals(found: Mapping[str, Sweep], plan: Plan) -> Iterator[Claim]:
    full = power((1 << 18) // plan.fewer)
    for kind, points in (("binary", 1.0), ("3 categories", 2.5)):
        sweep = found[f"{ADULT}, {kind}, n = {full}"].only((2.0,))
        for begins, name in (("(goal)", M.PAIRS), ("(ours)", M.GRAPHICAL), ("(ours)", M.CALM)):
            if name in sweep.runs:
                gap, error = (100 * float(part[0]) for part in sweep.gap(name, M.NO_NOISE))
                title = "CALM, views by Algorithm 2," if name == M.CALM else name.removesuffix(" (ours)")
                yield Says(
                    f"{begins} Adult, {kind}, n = 2^18, eps = 2: {title} is within {points:g} points of NoNoise"
                ).given(f"{with_error(gap, error)} points above ({_rates(sweep)})", gap - 2 * known(error) <= points)
        rivals = [name for name in (M.FC, M.AM) if name in sweep.runs]
        verb = "are" if len(rivals) > 1 else "is"
        says = f"(goal) Adult, {kind}, n = 2^18, eps = 2: {' and '.join(rivals)} {verb} worse than Majority"
        yield Says(says).given(_rates(sweep), all(sweep.at(n, 2.0) > sweep.at(M.MAJORITY, 2.0) for n in rivals))


def _rates(sweep: Sweep) -> str:
    return ", ".join(f"{name} {100 * rate:.1f} %" for name, rate in sweep.each_at(2.0).items())


def _of_the_thesis(found: Mapping[str, Sweep]) -> Iterator[Claim]:
    gaps = {label: sweep.gap(M.CALM, M.NO_NOISE)[0] for label, sweep in found.items()}
    near = np.concatenate(list(gaps.values())) <= 0.02
    yield Says("In most cases CALM is close to NoNoise (here: within 2 points in more than half of the cases)").given(
        f"in {int(near.sum())} of {len(near)} cases", near.mean() > 0.5
    )
    worse = [
        sweep.mean(name)[0] >= sweep.mean(M.MAJORITY)[0]
        for sweep in found.values()
        for name in (M.FC, M.AM)
        if name in sweep.runs
    ]
    yield Says("At the smallest eps FC and AM are not better than Majority").given(
        f"in {sum(worse)} of {len(worse)} cases", all(worse)
    )
    for bits, epsilon in ((18, 1.4), (20, 0.8)):
        label = f"{ADULT}, binary, n = 2^{bits}"
        if label in found and epsilon in found[label].x:
            near_by = found[label].only((epsilon,))
            gap, error = (100 * float(part[0]) for part in near_by.gap(M.CALM, M.NO_NOISE))
            says = f"{label}: CALM is almost optimal at eps = {epsilon:g} (here: within 1 point)"
            best = 100 * float(near_by.gap(M.PAIRS, M.NO_NOISE)[0][0])
            yield Says(says).given(
                f"{with_error(gap, error)} points above NoNoise; with all pairs {best:.2f}", gap <= 1
            )
    pairs = [
        (gaps[label].mean(), gaps[label.replace("binary", "3 categories")].mean())
        for label in gaps
        if "binary" in label
    ]
    yield Says(
        "With 3 categories CALM is further from NoNoise than with binary attributes (here: mean over eps)"
    ).given(
        "; ".join(f"{100 * two:.2f} and {100 * three:.2f} points" for two, three in pairs),
        all(two < three for two, three in pairs),
    )
    by_kind: dict[str, list[float]] = {}
    for label, off in gaps.items():
        by_kind.setdefault(label.rpartition(",")[0], []).append(float(off.mean()))
    yield Says("More people help (here: CALM is closer to NoNoise at the largest n than at the smallest)").given(
        "; ".join(f"{kind} {', '.join(f'{100 * gap:.2f}' for gap in of)} points" for kind, of in by_kind.items()),
        all(of[-1] < of[0] for of in by_kind.values() if len(of) > 1),
    )
