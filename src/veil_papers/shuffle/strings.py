"""Figure 9.4: TreeHist over strings of six bytes, with people split where there is no shuffler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veil import simulate
from veil.domain import Text
from veil.hitters import HeavyHitters, shuffled_tree_hist
from veil_papers.common.claims import Says, by_point, each
from veil_papers.common.exhibits import Claim, Parts, exhibit
from veil_papers.common.sweep import Scores, Sweep, measure
from veil_papers.datasets import web_words
from veil_papers.shuffle.methods import HOW, LDP, SHUFFLED, Floats, Ints, Maker, drawn, exact_hashing, made, solh
from veil_papers.shuffle.plan import DELTA, SEED, Plan

Codes = NDArray[np.uint64]
Generator = np.random.Generator
Estimated = Callable[[Ints], Floats | None]
"""What is estimated of each value, from how many people hold it."""

TOP = 32
_BYTES = 6
_AMPLIFIED = 0.5  # from this eps_c on the bounds of SOLH and RAP give something to a sixth of it
_IMPROVED = ("SOLH", "AUE", "RAP")
_OURS = "SOLH, exact accountant (ours)"
_SHUFFLED: dict[str, Maker] = {name: SHUFFLED[name] for name in ("SH", *_IMPROVED)} | {_OURS: exact_hashing}


@dataclass(frozen=True, eq=False)
class Crowd:
    """Different strings of six bytes, as numbers of 48 bits in rising order, and how many people hold each."""

    codes: Codes
    held: Ints
    told: str = ""

    @property
    def people(self) -> int:
        """All people together."""
        return int(self.held.sum())

    @property
    def top(self) -> set[int]:
        """The strings that most people hold."""
        return set(self.codes[np.argsort(-self.held, kind="stable")[:TOP]].tolist())

    @cached_property
    def prefixes(self) -> list[tuple[Codes, Ints]]:
        """For every number of bytes the different beginnings, and how many people's strings begin so."""
        return [_beginnings(self.codes, self.held, length) for length in range(1, _BYTES + 1)]

    def strings(self) -> list[str]:
        """What each person holds."""
        texts = [code.to_bytes(_BYTES, "big").rstrip(b"\0").decode() for code in self.codes.tolist()]
        return [text for text, count in zip(texts, self.held.tolist(), strict=True) for _ in range(count)]


def crowd(plan: Plan, people: int | None = None) -> Crowd:
    """People who hold words cut to six bytes."""
    words, count = web_words(plan.data), people or plan.string_people
    codes, places = np.unique(as_numbers(Text(_BYTES).encode(words.values)), return_inverse=True)
    totals = np.bincount(places, words.held)
    held = np.random.default_rng(SEED).multinomial(count, totals / totals.sum())
    some = held > 0
    told = f"{words.origin}, cut to {_BYTES} bytes; {count:,} people, {some.sum():,} different strings"
    return Crowd(codes[some], held[some], told)


def _beginnings(codes: Codes, held: Ints, length: int) -> tuple[Codes, Ints]:
    found, places = np.unique(codes >> np.uint64(8 * (_BYTES - length)), return_inverse=True)
    return found, np.bincount(places, held).astype(np.int64)


def groups(people: Crowd, rng: Generator) -> list[tuple[Codes, Ints]]:
    """The same by prefix where everybody is in one of six groups, each of which tells beginnings of one length."""
    split = rng.multinomial(people.held, np.full(_BYTES, 1 / _BYTES))
    return [_beginnings(people.codes, split[:, length], length + 1) for length in range(_BYTES)]


def tree_hist(levels: Sequence[tuple[Codes, Ints]], estimate: Estimated) -> Codes:
    """The strings that TreeHist finds; of a method that cannot keep its promise, none.

    Each round asks about 256 continuations of what the last one kept; whoever holds none of them reports one more value
    that stands for all others.
    """
    kept: Codes = np.zeros(1, np.uint64)
    for prefixes, held in levels:
        tried = (kept[:, None] << np.uint64(8) | np.arange(256, dtype=np.uint64)).ravel()
        asked = _holders(tried, prefixes, held)
        found = estimate(np.append(asked, held.sum() - asked.sum()))
        if found is None:
            return kept[:0]
        kept = tried[np.argsort(-found[:-1], kind="stable")[:TOP]]
    return kept


def asking(make: Maker, epsilon: float, delta: float, rng: Generator) -> Estimated:
    """What a method estimates in each round, for a central promise."""

    def estimate(held: Ints) -> Floats | None:
        oracle = made(make, len(held), int(held.sum()), epsilon, delta)
        return None if oracle is None else drawn(oracle, held, rng)

    return estimate


def without_noise(people: Crowd) -> float:
    """What TreeHist would find if all counts were exact: some frequent strings have rare beginnings."""
    return precision(tree_hist(people.prefixes, lambda held: held / held.sum()), people)


def _holders(tried: Codes, prefixes: Codes, held: Ints) -> Ints:
    places = np.minimum(np.searchsorted(prefixes, tried), len(prefixes) - 1)
    return np.where(prefixes[places] == tried, held[places], 0)


def precision(found: Codes, people: Crowd) -> float:
    """How many of the strings that were found are among the most frequent, as a share."""
    return len(people.top.intersection(found.tolist())) / TOP if len(found) else float("nan")


def by_epsilon(people: Crowd, plan: Plan) -> Sweep:
    """Precision by the central epsilon."""

    def trial(place: int, run: int) -> Scores:
        epsilon, rng = plan.string_epsilons[place], np.random.default_rng([SEED, 4, place, run])
        split, scores = groups(people, rng), {}
        for name, make in LDP.items():
            scores[name] = precision(tree_hist(split, asking(make, epsilon, DELTA, rng)), people)
        part = epsilon / _BYTES, DELTA / _BYTES
        for name, make in _SHUFFLED.items():
            scores[name] = precision(tree_hist(people.prefixes, asking(make, *part, rng)), people)
        return {"precision": scores}

    return measure("Figure 9.4: strings", plan.watch, plan.string_epsilons, plan.string_runs, trial)["precision"]


@exhibit
def figure_4(found: Sweep, people: Crowd, plan: Plan) -> Parts:
    """Figure 9.4: the 32 most frequent strings of six bytes."""
    yield found.panel(f"{plan.string_people:,} people", "central eps", "precision", faint=(_OURS,), y_log=False)
    yield f"{HOW} {plan.string_runs} runs, mean and standard deviation; the same people in all of them."
    yield f"Without any noise TreeHist has a precision of {without_noise(people):.2f}: it drops prefixes as well."
    yield (
        "TreeHist in 6 rounds of 8 bits, 32 prefixes kept in each. OLH and Had keep eps_c without a shuffler, people "
        "split over the rounds; behind a shuffler everybody answers in each, with a sixth of eps_c and of delta. "
        f"GRR and unary encoding have {TOP * 256 + 1:,} values in a round, one for all strings not asked about. "
        "Where a bound gives nothing, SH, SOLH and RAP report as without a shuffler, and AUE has no point. Dashed: "
        "local hashing into 1,024 buckets, as strong as the exact blanket allows (local eps at most 12)."
    )
    yield from _claims(found)


def _claims(found: Sweep) -> Iterator[Claim]:
    amplified = found.only([x for x in found.x if x >= _AMPLIFIED])
    says = (
        "Except SH, the shuffled methods outperform the LDP TreeHist, OLH and Had (here: wherever their bounds give "
        "anything, from eps_c = 0.5 on, by more than two standard errors)"
    )
    told, right = [], True
    for name in _IMPROVED:
        for rival in LDP:
            gap, error = amplified.gap(name, rival)
            some = np.isfinite(gap)
            told.append(f"{name} over {rival} by {_least(gap[some])}")
            right = right and bool((gap[some] > 2 * np.nan_to_num(error[some])).all())
    yield Says(says).given("; ".join(told), right)
    gap, error = found.gap("SH", "OLH")
    says = "SH does not outperform the LDP TreeHist (here: OLH's, by two standard errors)"
    told_sh = by_point(found.x, gap, "+.2f", "eps_c")
    yield Says(says).given(f"SH minus OLH: {told_sh}", not (gap > 2 * np.nan_to_num(error)).any())
    last = found.x[-1]
    yield Says(f"(ours) At eps_c = {last:g} SOLH finds at least 3 times as many as OLH without a shuffler").given(
        each(found.each_at(last)), found.at("SOLH", last) >= 3 * found.at("OLH", last)
    )
    ahead, error = found.gap(_OURS, "SOLH")
    says = "(ours) By the exact accountant SOLH finds more than by the thesis's bound (here: at no eps_c fewer)"
    yield Says(says).given(
        f"more by {by_point(found.x, ahead, '+.2f', 'eps_c')}", not (ahead < -2 * np.nan_to_num(error)).any()
    )


def _least(gaps: NDArray[np.float64]) -> str:
    return f"{gaps.min():+.2f} to {gaps.max():+.2f}" if len(gaps) else "nothing, having no point"


@exhibit
def real_reports(plan: Plan) -> Parts:
    """Real reports: shuffled TreeHist by `simulate` beside drawn supports."""
    people, epsilons = crowd(plan, plan.real_people), (3.0, 6.0)

    def trial(place: int, run: int) -> Scores:
        epsilon, rng = epsilons[place], np.random.default_rng([SEED, 5, place, run])
        study = shuffled_tree_hist(epsilon, Text(_BYTES), TOP, people.people, DELTA, cap=40.0)
        real = found_codes(simulate(study, people.strings(), seed=run))
        made_up = tree_hist(people.prefixes, asking(solh, epsilon / _BYTES, DELTA / _BYTES, rng))
        return {"precision": {"reports": precision(real, people), "drawn": precision(made_up, people)}}

    found = measure("Real reports", plan.watch, epsilons, plan.real_runs, trial, paired=False)["precision"]
    yield found.panel(f"{people.people:,} people", "central eps", "precision", y_log=False)
    yield f"`simulate` randomizes, sends, decodes and counts; the study is `shuffled_tree_hist`. {plan.real_runs} runs."
    says = "Drawn supports are as good as real reports, and no better (here: within three standard errors and 0.02)"
    yield Says(says).same(found, "reports", "drawn", 0.02, "eps_c")


def found_codes(made_of: HeavyHitters) -> Codes:
    """What a search found, as numbers of 48 bits."""
    codes = made_of.estimates.candidates
    assert codes is not None
    return as_numbers(codes)


def as_numbers(codes: NDArray[np.uint8]) -> Codes:
    """Strings of six bytes as numbers of 48 bits."""
    return np.asarray(codes.astype(np.uint64) @ (np.uint64(256) ** np.arange(_BYTES, dtype=np.uint64)[::-1]))
