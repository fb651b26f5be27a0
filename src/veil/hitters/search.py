"""Searches through prefixes of increasing length that keep the frequent ones from round to round.

Each person reports the prefix of one randomly drawn length, once. The rounds take place at the collector, after all
reports have been collected. PEM and its rivals differ in the lengths, and in the test of the last candidates.

`fit_trie` fits non-negative frequencies to the trie of kept prefixes by least squares. The frequency of a kept prefix
is the sum over its kept values plus, for text, a remainder of values that were not kept. Random bit strings have
almost no remainder below a frequent prefix, and the fit is more accurate without one. Levels are not averaged: false
children of a frequent prefix would inherit its frequency.
"""

from __future__ import annotations

import unicodedata
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veil.domain import Bits, Text
from veil.errors import ParameterError
from veil.hitters.result import HeavyHitters, SearchRound
from veil.mechanisms import OLH, LinearHashing, PureOracle
from veil.mechanisms.oracles.linear_hashing import aligned_suffix
from veil.privacy import check_epsilon, split_epsilon
from veil.results.estimate import Estimate
from veil.study import Collection, OneRound
from veil.study.continuations import Continuations, cut, spelled, start
from veil.survey import AllOf, Ask, OneOf, Question, Survey
from veil.tools.numbers import convert_int_fields, is_int
from veil.view import prefix

Floats = NDArray[np.float64]
Test = Literal["people", "budget"]
Oracle = Literal["OLH", "PGR"]
TESTED = 10
"""One person out of this number answers the final test, where people are split (section 4.4.1)."""

_SLACK = 3.0  # standard errors that a prefix may lie below the threshold before the last round


class HitterSearch(OneRound[HeavyHitters]):
    """A search for heavy hitters: the collector goes through what it has again and again."""

    epsilon: float
    domain: Bits | Text
    k: int

    @abstractmethod
    def answer(self, collected: Collection) -> HeavyHitters:
        """Runs at the collector: the heavy hitters behind these reports; as often as one likes."""


@dataclass(frozen=True)
class PrefixSearch(HitterSearch):
    """A search through prefixes of the given lengths, in bits; the last is the whole value.

    `keep` prefixes stay after each round, `k` values come out. `test` gives the last candidates to a question of their
    own: "people" asks a tenth of the people (section 4.4.1), "budget" asks everybody with half of eps. `threshold`
    returns values at least that frequent, at most k. `alphabet` is for text: only strings over these letters are tried;
    lengths are whole bytes then. Reports do not depend on it. `fit` ranks the last round by the frequencies that fit
    the whole trie of kept prefixes. `last` is the share of the people in the last group, whose estimates come out,
    against 1 for each other group. `oracle` is "OLH", or "PGR", which asks through `LinearHashing`.
    """

    epsilon: float
    domain: Bits | Text
    k: int
    keep: int
    lengths: tuple[int, ...]
    test: Test | None = None
    threshold: float | None = None
    alphabet: str | None = None
    fit: bool = False
    last: int = 1
    oracle: Oracle = "OLH"
    kind: ClassVar[str] = "prefix-search"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        as_held(self.domain)
        check_k(self.k, self.domain)
        if not is_int(self.keep) or self.keep < self.k:
            raise ParameterError("a search keeps at least k prefixes from round to round")
        if not is_int(self.last) or self.last < 1:
            raise ParameterError("the last group's share is an integer of at least 1")
        if self.oracle not in get_args(Oracle):
            raise ParameterError("the oracle is OLH or PGR")
        if self.oracle == "PGR" and self.alphabet is not None:
            raise ParameterError("PGR decodes all continuations at once: with an alphabet take OLH")
        if self.test not in (None, "people", "budget"):
            raise ParameterError("a test is of people, of budget, or there is none")
        convert_int_fields(self, "k", "keep", "last")
        if not all(is_int(length) for length in self.lengths):
            raise ParameterError("lengths of prefixes are numbers of bits")
        steps = np.diff([0, *self.lengths])
        if not len(steps) or (steps < 1).any() or self.lengths[-1] != self.domain.bits:
            raise ParameterError("prefixes get longer from round to round, and the last is the whole value")
        if self.threshold is not None and not (isinstance(self.threshold, float) and 0 < self.threshold < 1):
            raise ParameterError("a threshold is a frequency between 0 and 1")
        if self.alphabet is not None:
            if not isinstance(self.domain, Text) or not as_alphabet(self.alphabet):
                raise ParameterError("an alphabet is a string of letters, for text")
            if any(length % 8 for length in self.lengths) or steps.max() > 56:
                raise ParameterError("with an alphabet, rounds add between 1 and 7 whole bytes")

    # -- what people are asked -------------------------------------------------------------------------------------

    def _mechanism(self, epsilon: float, shown: Bits, step: int) -> PureOracle:
        """What a prefix is reported through; its last `step` bits are those that the round adds."""
        if self.oracle == "OLH":
            return OLH(epsilon, shown)
        return LinearHashing(epsilon, shown, suffix=aligned_suffix(epsilon, step))

    @cached_property
    def survey(self) -> Survey:
        """One of the lengths, the last with its own share, and the final test where there is one."""
        if self.test == "budget":
            half = split_epsilon(self.epsilon, 2)
            return Survey(AllOf(self._asked(half, len(self.lengths) - 1), self._one_of(half)))
        return Survey(self._one_of(self.epsilon))

    def _one_of(self, epsilon: float) -> Ask:
        levels = [self._asked(epsilon, i) for i in range(len(self.lengths))]
        if self.test == "people":
            last = self._asked(epsilon, len(self.lengths) - 1)
            return OneOf(*((TESTED - 1, level) for level in levels), (len(levels), last))
        return levels[0] if len(levels) == 1 else OneOf(*((1, level) for level in levels[:-1]), (self.last, levels[-1]))

    def _asked(self, epsilon: float, level: int) -> Question:
        view = prefix(self.domain, self.lengths[level])
        return Question(self._mechanism(epsilon, view.domain, self._step(level)), view)

    def _step(self, level: int) -> int:
        """Bits that a round adds. The first begins with all prefixes of ceil(log2 k) bits, as later ones do with k."""
        if level:
            return self.lengths[level] - self.lengths[level - 1]
        first = 0 if self.alphabet else (self.k - 1).bit_length()
        return self.lengths[0] - min(first, self.lengths[0] - 1)

    def _question(self, level: int) -> int:
        return level + 1 if self.test == "budget" else level

    @property
    def _tested(self) -> int | None:
        return {None: None, "people": len(self.lengths), "budget": 0}[self.test]

    # -- at the collector ------------------------------------------------------------------------------------------

    def answer(self, collected: Collection) -> HeavyHitters:
        prefixes = self._beginning()
        history: list[SearchRound] = []
        estimates: list[Estimate] = []
        for level, length in enumerate(self.lengths):
            asked = (self._question(level),)
            tried = self._candidates(prefixes, level)
            best = collected.best(asked, tried, self.keep)
            estimate = collected.estimate(asked, best)
            estimate = self._above(estimate, last=length == self.domain.bits and self.test is None)
            least = float(estimate.frequencies.min()) if len(estimate) else float("nan")
            history.append(SearchRound(length, best.people, tried.size, len(estimate), least))
            estimates.append(estimate)
            prefixes = codes_of(estimate)
            if not len(prefixes):
                break
        return self._result(collected, estimates, tuple(history))

    def _beginning(self) -> NDArray[Any]:
        width = self.lengths[0] - self._step(0)
        return np.arange(1 << width, dtype=np.uint64) if width else start()

    def _candidates(self, prefixes: NDArray[Any], level: int) -> Continuations:
        step = self._step(level)
        suffixes = None if self.alphabet is None else spelled(self.alphabet.encode(), step // 8)
        return Continuations(prefixes, self.lengths[level] - step, step, suffixes, isinstance(self.domain, Text))

    def _above(self, estimate: Estimate, *, last: bool) -> Estimate:
        """Without what lies below the threshold; before the last round, clearly below it."""
        if self.threshold is None:
            return estimate
        slack = 0.0 if last else _SLACK * np.sqrt(estimate.variance_at(np.array([self.threshold])))
        return _chosen(estimate, np.flatnonzero(estimate.frequencies >= self.threshold - slack))

    def _result(
        self, collected: Collection, estimates: list[Estimate], history: tuple[SearchRound, ...]
    ) -> HeavyHitters:
        last, ranks, fitted = replace(estimates[-1], tested=tried_in(history)), estimates[-1].frequencies, None
        if history[-1].length < self.domain.bits:  # nothing lay above the threshold
            return HeavyHitters(nothing(last, self.domain), history)
        if self._tested is not None:
            return after_test(collected, self._tested, codes_of(last), self.domain, self.k, history, self.threshold)
        if self.fit and len(last):
            ranks = fitted = self._fitted(estimates)
        order = np.lexsort((-last.frequencies, -ranks))[: self.k]
        return HeavyHitters(in_values(last, order, self.domain), history, None if fitted is None else fitted[order])

    def _fitted(self, estimates: list[Estimate]) -> NDArray[np.float64]:
        """Frequencies of the last candidates that fit the whole trie; under a prefix of text there are many others."""
        codes, seen = [codes_of(level) for level in estimates], [estimate.frequencies for estimate in estimates]
        noise = [estimate.variance_at(0 * estimate.frequencies) for estimate in estimates]
        return fit_trie(list(self.lengths), codes, seen, noise, others=isinstance(self.domain, Text))


def after_test(
    collected: Collection,
    question: int,
    codes: NDArray[Any],
    domain: Bits | Text,
    k: int,
    history: tuple[SearchRound, ...],
    threshold: float | None = None,
) -> HeavyHitters:
    """Runs at the collector: the k best of the last candidates, by a question about whole values.

    Its answers took no part in the search (other people gave them, or the same people with new randomness), so that
    only these candidates were tested by them.
    """
    found = collected.estimate((question,), collected.support((question,), codes))
    estimate = replace(found, tested=len(codes))
    order = np.argsort(-estimate.frequencies, kind="stable")[:k]
    if threshold is not None:
        order = order[estimate.frequencies[order] >= threshold]
    return HeavyHitters(in_values(estimate, order, domain), history)


def tried_in(history: Sequence[SearchRound]) -> int:
    """How many candidates a search without a test of its own ever tried: all rounds together."""
    return sum(step.candidates for step in history)


def in_values(estimate: Estimate, order: NDArray[np.int64], domain: Bits | Text) -> Estimate:
    """Some rows of an estimate over all bits of a value, as an estimate of values that people hold."""
    chosen = _chosen(estimate, order)
    codes: Any = chosen.candidates
    if isinstance(domain, Text) and domain.bits <= 64:
        codes = codes.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - domain.max_bytes :]
    return replace(chosen, domain=domain, candidates=codes, whole=False)


def nothing(estimate: Estimate, domain: Bits | Text) -> Estimate:
    """An estimate of no values."""
    none = domain.encode([0] if isinstance(domain, Bits) else [""])[:0]
    return replace(estimate, domain=domain, frequencies=np.zeros(0), candidates=none, whole=False)


def codes_of(estimate: Estimate) -> NDArray[Any]:
    """The codes that an estimate is about."""
    assert estimate.candidates is not None
    return estimate.candidates


def _chosen(estimate: Estimate, order: NDArray[np.int64]) -> Estimate:
    return replace(estimate, frequencies=estimate.frequencies[order], candidates=codes_of(estimate)[order])


def fit_trie(
    lengths: list[int],
    codes: list[NDArray[Any]],
    frequencies: list[Floats],
    variances: list[Floats],
    *,
    others: bool,
) -> Floats:
    """The last level's frequencies that fit all levels best: not negative, a parent the sum of its children.

    One list entry per level, the shortest prefixes first; each code's prefix is among the codes of the level before.
    With `others` a parent may have people of its own, beyond its kept children.

    >>> one, noise = np.array([1], dtype=np.uint64), [np.ones(1), np.ones(1)]
    >>> fit_trie([1, 2], [one, 2 * one], [np.array([0.5]), np.array([0.3])], noise, others=False).round(6).tolist()
    [0.4]
    >>> fit_trie([1, 2], [one, 2 * one], [np.array([0.5]), np.array([0.3])], noise, others=True).round(6).tolist()
    [0.3]
    """
    from scipy.optimize import minimize

    parents = [_parents(codes[i], lengths[i], codes[i + 1], lengths[i + 1]) for i in range(len(codes) - 1)]
    ends = np.cumsum([len(level) for level in codes])
    weights = np.concatenate([1 / np.sqrt(v) for v in variances])
    target = np.concatenate(frequencies) * weights
    scale = float(weights.max())  # unknowns in standard errors: a well-scaled problem

    def gathered(masses: Floats) -> Floats:
        """A node's mass with all below it."""
        levels = np.split(masses, ends[:-1])
        for i in range(len(levels) - 1, 0, -1):
            levels[i - 1] = levels[i - 1] + np.bincount(parents[i - 1], levels[i], len(levels[i - 1]))
        return np.concatenate(levels)

    def spread(slopes: Floats) -> Floats:
        """A node's slope with all above it: the transpose."""
        levels = np.split(slopes, ends[:-1])
        for i in range(1, len(levels)):
            levels[i] = levels[i] + levels[i - 1][parents[i - 1]]
        return np.concatenate(levels)

    def loss(masses: Floats) -> tuple[float, Floats]:
        off = gathered(masses) * weights / scale - target
        return 0.5 * float(off @ off), spread(off * weights / scale)

    first = np.zeros(int(ends[-1]))
    inner = len(first) - len(codes[-1])
    bounds = [(0, None if others else 0)] * inner + [(0, None)] * len(codes[-1])
    first[len(first) - len(codes[-1]) :] = np.maximum(frequencies[-1], 0) * scale
    options = {"maxiter": 2000, "maxfun": 20000, "ftol": 1e-14, "gtol": 1e-9, "maxcor": 30}
    solved = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(solved.x[len(first) - len(codes[-1]) :]) / scale


def _parents(above: NDArray[Any], length: int, below: NDArray[Any], longer: int) -> NDArray[np.int64]:
    where = {code.tobytes(): i for i, code in enumerate(above)}
    return np.array([where[code.tobytes()] for code in cut(below, longer, length)], dtype=np.int64)


def as_held(domain: Any) -> Bits | Text:
    """The domain, if its values have prefixes."""
    if not isinstance(domain, (Bits, Text)):
        raise ParameterError("heavy hitters are searched among Bits(m) or Text(max_bytes): strings that have prefixes")
    return domain


def as_alphabet(alphabet: Any) -> str | None:
    """Letters as text is written: NFC, so that they are the bytes that a device reports."""
    if alphabet is None:
        return None
    try:
        letters = unicodedata.normalize("NFC", alphabet)
        letters.encode()
    except (TypeError, UnicodeEncodeError):
        raise ParameterError("an alphabet is a string of letters, for text") from None
    if not letters or "\0" in letters:
        raise ParameterError("an alphabet is a string of letters, for text")
    return letters


def check_k(k: Any, domain: Bits | Text) -> None:
    """Between 1 and as many values as there are."""
    if not is_int(k) or k < 1:
        raise ParameterError("a search for heavy hitters looks for at least one: k is an integer of at least 1")
    if k > domain.size:
        raise ParameterError("k is larger than the domain: there are fewer values than that")


def per_letter(domain: Text, groups: int) -> tuple[int, ...]:
    """Prefix lengths of whole bytes in about equal steps."""
    return tuple(8 * -(-i * domain.max_bytes // groups) for i in range(1, groups + 1))


def words(alphabet: Sequence[int], letters: int) -> int:
    """How many words of at most `letters` letters there are."""
    return sum(len(set(alphabet)) ** i for i in range(letters + 1))
