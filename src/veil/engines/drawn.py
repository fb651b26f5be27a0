"""Supports without reports, for experiments: the same numbers in distribution, drawn from what people hold.

With an ideal hash, a report supports the held value with probability p and every other value with probability q,
independently of each other. So the supports of different candidates are independent, and a candidate that n_v of n
people hold has support

    c_v  ~  Bin(n_v, p) + Bin(n - n_v, q).

Of the many candidates that nobody holds only the largest supports matter: they are the top order statistics of as many
independent Bin(n, q), drawn exactly, and they belong to candidates drawn at random. Who answers which question is drawn
as on devices: a multinomial over the branches of each OneOf, everybody for each part of an AllOf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.engines.counting import Counts, TopCandidates
from veil.entropy import Words
from veil.errors import EmptyError, InputError
from veil.reports.columns import Reports
from veil.reports.layout import Columns
from veil.reports.tally import Tally
from veil.study.collection import Codes, Collection, Questions
from veil.study.continuations import Continuations
from veil.survey import AllOf, Ask, EachOf, OneOf, Survey, SurveyTally

Generator = np.random.Generator
Seed = int | Sequence[int] | Generator


def top_of_absent(count: int, top: int, n: int, q: float, rng: Generator) -> Counts:
    """The `top` largest of `count` independent Bin(n, q), the largest first: exact, by uniform order statistics.

    >>> top_of_absent(10**9, 2, 1000, 0.25, np.random.default_rng(0)).tolist()
    [337, 333]
    """
    from scipy.stats import binom

    top = min(top, count)
    if not top:
        return np.zeros(0, dtype=np.int64)
    # The largest of m uniforms is V^(1/m); below it lie m - 1 uniforms again.
    logs = np.cumsum(np.log(rng.random(top)) / (count - np.arange(top, dtype=np.float64)))
    return np.asarray(binom.isf(-np.expm1(logs), n, q)).astype(np.int64)


class DrawnCollection(Collection):
    """What people who hold these values would have answered, as counts drawn with a seed.

    What reports give, in distribution, at a thousandth of the cost; for oracles whose reports support values
    independently of each other: OLH up to its hash. With `counts`, each value is held by its count of people.

    >>> from veil import Bits
    >>> from veil.hitters import PEM
    >>> search = PEM(epsilon=4.0, domain=Bits(32), k=2)
    >>> search.read(DrawnCollection(search.survey, [7] * 6000 + [2**31] * 4000)).values
    [7, 2147483648]
    """

    def __init__(self, survey: Survey, values: Any, seed: Seed = 0, counts: Any = None) -> None:
        codes = survey.domain.encode(values)
        people = np.ones(len(codes), dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
        if len(people) != len(codes) or (people < 0).any():
            raise InputError("counts are numbers of people, one per value")
        _, firsts, places = np.unique(_keys(codes), return_index=True, return_inverse=True)
        self._begin(survey, codes[firsts], np.bincount(places.ravel(), people).astype(np.int64), seed)

    @classmethod
    def of_codes(cls, survey: Survey, codes: Codes, counts: Counts, seed: Seed = 0) -> DrawnCollection:
        """The same for different values that are encoded already, and how many people hold each."""
        made = cls.__new__(cls)
        made._begin(survey, codes, counts, seed)
        return made

    def _begin(self, survey: Survey, held: Codes, held_by: Counts, seed: Seed) -> None:
        self.survey, self._held, self._people = survey, held, int(held_by.sum())
        self._rng = np.random.default_rng(seed)
        if not self._people:
            raise EmptyError("expected at least one person")
        if any(question.view.random for question in survey.questions):
            raise InputError("supports are drawn for questions whose views draw nothing themselves")
        self._answers = list(split_people(survey.ask, held_by, self._rng))
        self._shown: dict[int, tuple[Codes, NDArray[np.int64]]] = {}
        self._seen: dict[tuple[int, bytes], tuple[int, int]] = {}

    @property
    def people(self) -> int:
        return self._people

    @property
    def fingerprint(self) -> str:
        return "drawn"

    def answered(self, question: int) -> int:
        return int(self._answers[question].sum())

    def _asked(self, questions: Questions) -> int:
        return sum(self.answered(i) for i in questions)

    def _tally(self, questions: Questions, codes: Codes, counts: Counts) -> Tally:
        people = self._asked(questions)
        return Tally(self.oracle(questions).digest, counts, people, people, people, codes)

    def tally(self, questions: Questions | None = None, candidates: Mapping[int, Any] | None = None) -> SurveyTally:
        wanted = range(len(self.survey.ask)) if questions is None else questions
        parts = []
        for i in wanted:
            asked = self.survey.questions[i]
            codes = asked.encode_candidates((candidates or {}).get(i))
            every = np.arange(asked.pure.domain.size, dtype=np.uint64) if codes is None else codes
            counts, people = self._support((i,), every), self.answered(i)
            parts.append(Tally(asked.pure.digest, counts, people, people, people, codes))
        return SurveyTally(self.survey.task, self.people, tuple(parts), None if questions is None else tuple(questions))

    def reports(self) -> Iterator[Reports]:
        raise InputError("counts were drawn, and there are no reports")

    def columns(self, question: int) -> Iterator[Columns]:
        raise InputError("what is drawn has no reports")

    def _distinct(self, question: int) -> tuple[Codes, NDArray[np.int64]]:
        """What the question's view shows of the held values, each once, and where each held value went."""
        if question not in self._shown:
            shown = self.survey.questions[question].view.apply(self._held, Words(b""))
            _, firsts, places = np.unique(_keys(shown), return_index=True, return_inverse=True)
            self._shown[question] = shown[firsts], places.ravel()
        return self._shown[question]

    def _holders(self, question: int) -> tuple[Codes, NDArray[np.int64]]:
        codes, places = self._distinct(question)
        return codes, np.bincount(places, self._answers[question], len(codes)).astype(np.int64)

    def _drawn(self, question: int, codes: Codes, holders: NDArray[np.int64]) -> Counts:
        """Support of these codes, by holders and by others; remembered, so that it is drawn once."""
        oracle, people = self.survey.questions[question].pure, self.answered(question)
        mine = self._rng.binomial(holders, float(oracle.p))
        others = self._rng.binomial(people - holders, float(oracle.q))
        for code, inside, outside in zip(codes, mine, others, strict=True):
            self._seen.setdefault((question, code.tobytes()), (int(inside), int(outside)))
        kept = [self._seen[question, code.tobytes()] for code in codes]
        return np.array([inside + outside for inside, outside in kept], dtype=np.int64)

    def support(self, questions: Questions, codes: Codes) -> Tally:
        return self._tally(questions, codes, self._support(questions, codes))

    def _support(self, questions: Questions, codes: Codes) -> Counts:
        total, wanted = np.zeros(len(codes), dtype=np.int64), _keys(codes)
        for question in questions:
            held, holders = self._holders(question)
            known = _keys(held)
            places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            total += self._drawn(question, codes, np.where(known[places] == wanted, holders[places], 0))
        return total

    def best(self, questions: Questions, continuations: Continuations, keep: int) -> Tally:
        held, _ = self._distinct(questions[0])
        real = held[continuations.holds(held)]
        best = TopCandidates(keep)
        if len(real):
            best.offer(real, self._support(questions, real))
        people, q = self._asked(questions), float(self.oracle(questions).q)
        counts = top_of_absent(continuations.size - len(real), keep, people, q, self._rng)
        if len(counts):
            codes = self._absent(continuations, real, len(counts))
            self._share_out(questions, codes, counts)
            best.offer(codes, counts)
        return self._tally(questions, *best.taken())

    def _absent(self, continuations: Continuations, real: Codes, count: int) -> Codes:
        """`count` different candidates that nobody holds, at random."""
        taken = {code.tobytes() for code in real}
        if continuations.size <= 4 * (count + len(real)):
            every = np.concatenate(list(continuations.blocks()))
            free = [i for i, code in enumerate(every) if code.tobytes() not in taken]
            return np.asarray(every[self._rng.permutation(free)[:count]])
        found: list[Codes] = []
        while len(found) < count:
            (code,) = continuations.at(int(self._rng.integers(continuations.size)))
            if code.tobytes() not in taken:
                taken.add(code.tobytes())
                found.append(code)
        return np.stack(found)

    def _share_out(self, questions: Questions, codes: Codes, counts: Counts) -> None:
        """Which of the questions an absent candidate's support came from: all answers are alike."""
        sizes = np.array([self.answered(i) for i in questions])
        for code, count in zip(codes, counts, strict=True):
            parts = self._rng.multivariate_hypergeometric(sizes, count, method="marginals")
            for question, part in zip(questions, parts, strict=True):
                self._seen[question, code.tobytes()] = (0, int(part))

    def joint(self, candidates: Mapping[int, Any]) -> Counts:
        (first, some), (second, more) = candidates.items()
        codes, others = (
            self.survey.questions[first].view.values.encode(some),
            self.survey.questions[second].view.values.encode(more),
        )
        total = np.zeros((len(codes), len(others), 2, 2), dtype=np.int64)
        a, b = self._by_person(first, codes), self._by_person(second, others)
        total[:, :, 1, 1] = a.astype(np.float32) @ b.T.astype(np.float32)
        total[:, :, 1, 0] = a.sum(axis=1)[:, None] - total[:, :, 1, 1]
        total[:, :, 0, 1] = b.sum(axis=1) - total[:, :, 1, 1]
        total[:, :, 0, 0] = a.shape[1] - total[:, :, 1, 1] - total[:, :, 1, 0] - total[:, :, 0, 1]
        return total

    def _by_person(self, question: int, codes: Codes) -> NDArray[np.bool_]:
        """Whose reports support each code: as many holders and others as were drawn, each at random."""
        self._support((question,), codes)
        held, places = self._distinct(question)
        shown = np.repeat(places, self._answers[question])
        supported = np.zeros((len(codes), len(shown)), dtype=np.bool_)
        where = {code.tobytes(): i for i, code in enumerate(held)}
        for row, code in zip(supported, codes, strict=True):
            inside, outside = self._seen[question, code.tobytes()]
            holds = shown == where.get(code.tobytes(), -1)
            row[self._rng.permutation(np.flatnonzero(holds))[:inside]] = True
            row[self._rng.permutation(np.flatnonzero(~holds))[:outside]] = True
        return supported


def _keys(codes: Codes) -> NDArray[Any]:
    """Codes as one comparable thing each; bytes have one length, so that trailing zeros say nothing."""
    return codes if codes.ndim == 1 else np.ascontiguousarray(codes).view(f"S{codes.shape[1]}")[:, 0]


def split_people(ask: Ask, held_by: NDArray[np.int64], rng: Generator) -> Iterator[NDArray[np.int64]]:
    """How many holders of each value answer each question below, in order."""
    if isinstance(ask, OneOf):
        shares = np.array([share for share, _ in ask.branches], dtype=np.float64)
        parts = rng.multinomial(held_by, shares / shares.sum())
        for i, (_, branch) in enumerate(ask.branches):
            yield from split_people(branch, parts[:, i], rng)
    elif isinstance(ask, EachOf):
        yield from rng.multinomial(held_by, np.full(len(ask), 1 / len(ask))).T
    elif isinstance(ask, AllOf):
        for part in ask.asks:
            yield from split_people(part, held_by, rng)
    else:
        yield held_by
