"""Searches by prefixes: lengths, candidates, the fit of a trie, text, files, invalid parameters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.golden import golden_rows

from veil import OLH, Bits, Categories, LinearHashing, Question, Survey, Text, simulate
from veil.engines import DrawnCollection, FileCollection, MemoryCollection
from veil.engines.counting import TopCandidates
from veil.entropy import SeededForExperiments
from veil.errors import EmptyError, InputError, MismatchError, ParameterError
from veil.files import ReportWriter
from veil.hitters import (
    PEM,
    HeavyHitters,
    MultipleChannel,
    PrivTrie,
    SegmentPairs,
    fewest_groups,
    pem1,
    prefix_lengths,
    sensitivity_threshold,
    tree_hist,
)
from veil.hitters.search import fit_trie
from veil.mechanisms.oracles.linear_hashing import aligned_suffix
from veil.metrics import f1
from veil.study.continuations import Continuations, spelled, start
from veil_papers.datasets import exponential_bits, first_names


def people(seed: int = 0, count: int = 20_000, bits: int = 24) -> tuple[Any, list[int]]:
    return exponential_bits(count, bits, seed, scale=0.5)


def sigma(epsilon: float) -> float:
    return math.sqrt(4 * math.exp(epsilon)) / (math.exp(epsilon) - 1)


def test_sensitivity_threshold_matches_table_4_1() -> None:
    rows = golden_rows("table_4_1_sensitivity_threshold.csv")
    assert len(rows) == 32
    for row in rows:
        found = sensitivity_threshold(sigma(float(row["epsilon"])), 2.0 ** int(row["m"]), int(row["n"]))
        assert found == pytest.approx(float(row["theta"]), rel=5e-3)


@pytest.mark.parametrize(
    ("epsilon", "bits", "n", "groups", "theta"),
    [
        (1, 32, 10**6, 3, 0.014388),
        (1, 64, 10**6, 4, 0.019845),
        (2, 48, 10**5, 4, 0.024903),
        (2, 128, 10**7, 3, 0.003668),
    ],
)
def test_sensitivity_threshold_of_several_groups_matches_table_4_1(
    epsilon: float, bits: int, n: int, groups: int, theta: float
) -> None:
    """The text's g > 1 comes out within 1 % with n / g people and k 2^floor((m - 10) / g) - k candidates, k = 1024."""
    candidates = 1024.0 * 2 ** ((bits - 10) // groups) - 1024
    assert sensitivity_threshold(sigma(epsilon), candidates, n // groups) == pytest.approx(theta, rel=0.01)


def test_groups_and_lengths_match_the_thesis() -> None:
    assert fewest_groups(64, 16, 16, 2**20) == fewest_groups(64, 16, 32, 2**20) == 5
    assert fewest_groups(64, 16, 16, 2**21) == 4
    assert prefix_lengths(128, 256, 6) == (28, 48, 68, 88, 108, 128)  # Example 1
    assert prefix_lengths(7, 5, 3) == (5, 6, 7)


def test_lengths_stay_within_the_budget() -> None:
    for domain, k, budget in (
        (Bits(64), 16, 2**20),
        (Bits(160), 100, 2**18),
        (Text(6), 16, 2**20),
        (Bits(20), 1, 2**10),
    ):
        made = PEM(1.0, domain, k, budget=budget)
        steps = np.diff([(k - 1).bit_length(), *made.lengths])
        assert made.keep * 2 ** int(steps.max()) * len(made.lengths) <= budget
        assert made.lengths[-1] == domain.bits
    assert PEM(1.0, Bits(64), 16).keep == 32
    assert PEM(1.0, Text(8), 16).keep == 64


@pytest.mark.parametrize(("width", "step"), [(0, 3), (5, 4), (60, 4), (60, 9), (70, 5), (64, 8), (0, 7)])
def test_candidates_are_prefixes_with_every_suffix(width: int, step: int) -> None:
    rng = np.random.default_rng(width)
    numbers = sorted({int(rng.integers(0, 2**62)) % 2**width for _ in range(5)}) if width else [0]
    prefixes = Bits(width).encode(numbers) if width else start()
    made = Continuations(prefixes, width, step)
    wanted = [(number << step) + suffix for number in numbers for suffix in range(2**step)]
    for most in (3, 1 << 22):
        blocks = list(made.blocks(most))
        assert Bits(width + step).decode(np.concatenate(blocks)) == wanted
        assert max(len(block) for block in blocks) <= max(most, 1)
    assert made.size == len(wanted)
    inside = Bits(width + step).encode(wanted)
    assert made.holds(inside).all()
    if width:
        outside = Bits(width + step).encode([(numbers[-1] ^ 1) << step])
        assert made.holds(outside).all() == ((numbers[-1] ^ 1) in numbers)
    if (step > 2 and width + step - 2 <= 64) or width > 64:
        narrow = made.narrowed(step - 2)
        assert Bits(width + step).decode(np.concatenate(list(narrow.blocks()))) == wanted


def test_continuations_of_ended_text_are_padding() -> None:
    rows = Text(2).encode(["a", "ab"])
    prefixes = rows.view(">u2")[:, 0].astype(np.uint64)
    made = Continuations(prefixes, 16, 8, spelled(b"xy", 1), text=True)
    found = [int(code).to_bytes(3, "big") for code in np.concatenate(list(made.blocks()))]
    assert found == [b"a\0\0", b"ab\0", b"abx", b"aby"]
    assert made.size == 4
    codes = np.array([int.from_bytes(word, "big") for word in (b"a\0x", b"a\0\0", b"abx", b"abz")], dtype=np.uint64)
    assert made.holds(codes).tolist() == [False, True, True, False]


def test_best_candidates_of_many_blocks() -> None:
    counts = np.random.default_rng(0).integers(0, 1000, 5000)
    best = TopCandidates(17)
    for first in range(0, 5000, 321):
        best.offer(np.arange(first, min(first + 321, 5000), dtype=np.uint64), counts[first : first + 321])
    codes, kept = best.taken()
    assert sorted(kept.tolist()) == sorted(counts)[-17:]
    assert np.array_equal(kept, counts[codes.astype(int)])
    assert (np.diff(kept) <= 0).all()


@pytest.mark.parametrize("others", [True, False])
def test_fit_trie_is_non_negative_least_squares(others: bool) -> None:
    from scipy.optimize import nnls

    rng = np.random.default_rng(1)
    top = np.array([1, 4, 6], dtype=np.uint64)
    middle = np.array([4, 7, 18, 25], dtype=np.uint64)  # under 1, 1, 4, 6
    leaves = np.array([8, 9, 14, 37, 50, 51], dtype=np.uint64)
    levels = [top, middle, leaves]
    seen = [rng.normal(0.05, 0.05, len(level)) for level in levels]
    noise = [np.full(len(level), variance) for level, variance in zip(levels, (1e-4, 2e-4, 1e-4), strict=True)]
    columns = []
    for depth, level in enumerate(levels):
        for code in level:
            above = [[float(int(code) >> shift == other) for other in levels[up]] for up, shift in _shifts(depth)]
            columns.append(np.concatenate([*above, np.zeros(sum(len(low) for low in levels[depth + 1 :]))]))
    matrix = np.array(columns).T if others else np.array(columns[7:]).T
    weights = 1 / np.sqrt(np.concatenate(noise))
    wanted = nnls(matrix * weights[:, None], np.concatenate(seen) * weights)[0][-6:]
    assert fit_trie([3, 5, 6], levels, seen, noise, others=others) == pytest.approx(wanted, abs=1e-6)


def _shifts(depth: int) -> list[tuple[int, int]]:
    lengths = (3, 5, 6)
    return [(up, lengths[depth] - lengths[up]) for up in range(depth + 1)]


@pytest.mark.parametrize("bits", [24, 64, 101, 160])
@pytest.mark.parametrize("oracle", ["OLH", "PGR"])
def test_pem_finds_frequent_values(bits: int, oracle: Any) -> None:
    held = [[7, 2**bits - 3, 2 ** (bits - 1)][i % 7 % 3] for i in range(9000)]
    found = simulate(PEM(4.0, Bits(bits), 3, budget=2**13, oracle=oracle), held, seed=2)
    assert isinstance(found, HeavyHitters)
    assert set(found.values) == set(held)
    assert found.values[0] == 7
    truth = np.array([held.count(value) / len(held) for value in found.values])
    assert (np.abs(found.estimates.frequencies - truth) < 6 * found.estimates.stderr).all()
    assert found.estimates.post("norm-sub", total=1.0).frequencies.min() >= 0
    assert [step.length for step in found.history] == list(PEM(4.0, Bits(bits), 3, budget=2**13).lengths)
    assert sum(step.people for step in found.history) == 9000
    assert all(step.kept == 6 for step in found.history[1:])


def test_best_by_transform_equals_best_by_support() -> None:
    """The transform behind PGR, and pairs counted one by one."""
    held, _ = people()
    made = PEM(3.0, Bits(24), 4, budget=2**12, oracle="PGR")
    stored = MemoryCollection(made.survey, made.survey.randomize(held[:3000], SeededForExperiments(4)))
    asked = (1,)
    kept = Continuations(np.arange(5, dtype=np.uint64), made.lengths[0], made.lengths[1] - made.lengths[0])
    quick = stored.best(asked, kept, 20)
    every = np.concatenate(list(kept.blocks()))
    slow = TopCandidates(20)
    slow.offer(every, stored.support(asked, every).counts)
    assert np.array_equal(quick.counts, slow.taken()[1])
    assert quick.candidates is not None
    assert np.array_equal(stored.support(asked, quick.candidates).counts, quick.counts)


def test_threshold_limits_the_values_found() -> None:
    held = [5] * 6000 + [70_000] * 3000 + list(range(100_000, 101_000))
    made = PEM(4.0, Bits(20), 8, budget=2**12, threshold=0.1)
    assert simulate(made, held, seed=1).values == [5, 70_000]
    assert len(simulate(PEM(4.0, Bits(20), 8, budget=2**12), held, seed=1).values) == 8  # the rival: the k best
    none = simulate(PEM(4.0, Bits(20), 8, budget=2**12, threshold=0.9), held, seed=1)
    assert none.values == []
    assert len(none.history) < len(made.lengths)
    assert math.isnan(none.history[-1].threshold)


def test_long_text_is_marked_as_truncated() -> None:
    held = ["tea"] * 3000 + ["coffee"] * 3000 + ["cof"] * 3000
    found = simulate(PEM(4.0, Text(4), 3, budget=2**13), held, seed=1)
    by_value = dict(zip(found.values, found.truncated.tolist(), strict=True))
    assert by_value == {"tea": False, "coff": True, "cof": False}  # neither merged with the other
    assert {row.value for row in found.rows} == {"tea", "coff…", "cof"}


def test_alphabet_changes_candidates_and_not_the_task() -> None:
    held = ["tea"] * 3000 + ["ale"] * 2000 + ["mate"] * 2000 + ["Tee"] * 1500
    blind, lower = PEM(4.0, Text(4), 3, groups=2), PEM(4.0, Text(4), 3, groups=2, alphabet="abcdefghijklmnopqrstuvwxyz")
    assert lower.lengths == (16, 32)
    found = simulate(lower, held, seed=1)
    assert set(found.values) == {"tea", "ale", "mate"}
    assert found.history[0].candidates == 1 + 26 + 26**2
    assert sum(step.candidates for step in found.history) <= 13 * 703
    assert lower.survey.questions[-1] == blind.survey.questions[-1]
    same = PEM(4.0, Text(4), 3, groups=2, alphabet="xyz")
    assert same.survey.task == lower.survey.task  # reports do not depend on it
    assert set(lower.read(DrawnCollection(lower.survey, held, 1)).values) == set(found.values)


def test_pem_finds_first_names() -> None:
    names = first_names().people(200_000, seed=1)
    truth = [name for name, _ in Counter(names).most_common(8)]
    made = PEM(6.0, Text(6), 8, budget=2**18)
    assert f1(made.read(DrawnCollection(made.survey, names, 1)).values, truth) > 0.6


def test_search_reads_a_report_file_several_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, _ = people()
    made = PEM(3.0, Bits(24), 4, budget=2**12)
    reports = made.survey.randomize(held, SeededForExperiments(1))
    with ReportWriter(tmp_path / "r.arrow", made.survey) as writer:
        for first in range(0, len(reports), 7000):
            writer.write(reports[slice(first, first + 7000)])
    opened: list[int] = []

    class Opened(FileCollection):
        def chunks(self) -> Any:
            opened.append(1)
            return super().chunks()

    stored = Opened(made.survey, [tmp_path / "r.arrow"])
    found = made.read(stored)
    assert len(opened) > len(made.lengths)
    assert found.values == made.read(MemoryCollection(made.survey, reports)).values
    assert stored.people == len(reports)
    monkeypatch.setattr("veil.engines.counting._PIECE_ROWS", 1000)
    pieces = list(stored.columns(0))
    assert sum(len(piece["seed"]) for piece in pieces) == found.history[0].people
    assert len(pieces) > 1


def test_reports_of_another_survey_or_none_are_refused() -> None:
    made = PEM(1.0, Bits(16), 2)
    other = Survey(OLH(1.0, 8))
    with pytest.raises(MismatchError):
        made.read(MemoryCollection(other, other.randomize([1])))
    with pytest.raises(InputError, match="again"):
        MemoryCollection(made.survey, iter([made.survey.randomize([1])]))  # type: ignore[arg-type]
    with pytest.raises(EmptyError):
        made.read(MemoryCollection(made.survey, []))
    with pytest.raises(EmptyError):
        simulate(made, [])
    with pytest.raises(EmptyError):
        made.read(DrawnCollection(made.survey, []))
    with pytest.raises(EmptyError, match="too few"):
        simulate(PEM(1.0, Bits(30), 2, groups=20), [1])


@pytest.mark.parametrize(
    "made",
    [
        lambda: PEM(1.0, Bits(16), 0),
        lambda: PEM(1.0, Bits(16), True),
        lambda: PEM(1.0, Bits(3), 9),
        lambda: PEM(1.0, Bits(5000), 2),
        lambda: PEM(1.0, Categories.range(8), 2),  # type: ignore[arg-type]
        lambda: PEM(0.0, Bits(16), 2),
        lambda: PEM(1.0, Bits(16), 4, keep=3),
        lambda: PEM(1.0, Bits(16), 4, budget=4),
        lambda: PEM(1.0, Bits(16), 4, budget=0),
        lambda: PEM(1.0, Bits(16), 4, groups=0),
        lambda: PEM(1.0, Bits(16), 4, groups=17),
        lambda: PEM(1.0, Bits(16), 4, threshold=1.5),
        lambda: PEM(1.0, Bits(16), 4, oracle="GRR"),  # type: ignore[arg-type]
        lambda: PEM(1.0, Bits(16), 4, alphabet="ab"),
        lambda: PEM(1.0, Text(4), 4, alphabet=""),
        lambda: PEM(1.0, Text(4), 4, alphabet="ab", oracle="PGR"),
        lambda: PEM(1.0, Text(20), 4, alphabet="ab", groups=2),
        lambda: PEM(1.0, Text(4), 4, alphabet="ab", budget=8),
        lambda: PEM(1.0, Bits(16), 4, last=0).survey,
        lambda: pem1(1.0, Bits(16), 0),
        lambda: tree_hist(1.0, Bits(3), 9),
        lambda: SegmentPairs(1.0, Bits(16), 4, segments=3),
        lambda: SegmentPairs(1.0, Bits(16), 16, segments=4),
        lambda: MultipleChannel(1.0, Bits(16), 4, step=0),
        lambda: PrivTrie(1.0, Bits(12), 4, people=10**6),
        lambda: PrivTrie(1.0, Bits(16), 4, people=10),
        lambda: sensitivity_threshold(1.0, 10, 0),
        lambda: sensitivity_threshold(1.0, 1, 10, 2.0),
        lambda: LinearHashing(1.0, Bits(16), hash_range=4),
        lambda: LinearHashing(1.0, Bits(16), suffix=17),
        lambda: LinearHashing(1.0, Bits(40), suffix=30),
    ],
)
def test_bad_parameters_are_refused(made: Callable[[], Any]) -> None:
    with pytest.raises(ParameterError):
        made()


def test_small_domains() -> None:
    assert PEM(1.0, Bits(1), 1).lengths == (1,)
    assert PEM(1.0, Bits(4), 16).lengths == (4,)
    assert f1(simulate(PEM(5.0, Bits(1), 1), [1] * 50).values, [1]) == 1.0
    assert len(simulate(PEM(5.0, Bits(2), 4), [1] * 50)) == 4


def test_task_with_linear_hashing_round_trips() -> None:
    survey = PEM(1.0, Bits(64), 16, oracle="PGR").survey
    assert Survey.from_json(survey.to_bytes()) == survey
    assert isinstance(survey.questions[0], Question)
    assert aligned_suffix(1.0, 20) == 19
    assert survey.layout.size == 10


def test_numpy_integers_are_accepted_as_parameters() -> None:
    k = np.int64(16)
    assert PEM(1.0, Bits(64), k, keep=np.int64(32)) == PEM(1.0, Bits(64), 16, keep=32)
    assert fewest_groups(64, k, np.int64(32), 2**20) == fewest_groups(64, 16, 32, 2**20)
    assert pem1(1.0, Bits(8), np.int64(4)).lengths == pem1(1.0, Bits(8), 4).lengths
    channels = MultipleChannel(1.0, Bits(32), np.int64(4), step=np.int64(8))
    assert channels.survey.to_bytes() == MultipleChannel(1.0, Bits(32), 4, step=8).survey.to_bytes()


def test_truncated_texts_keep_distinct_labels() -> None:
    domain = Text(3)
    labels = domain.decode(domain.encode(["\u00e9\u00e9", "\u00e9\u0159"]))
    assert len(set(labels)) == 2


def test_alphabet_is_normalized_to_nfc() -> None:
    composed, decomposed = (PEM(2.0, Text(4), 2, alphabet=letters) for letters in ("\u00e9", "e\u0301"))
    assert composed == decomposed


def test_linear_hashing_counts_do_not_depend_on_the_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = LinearHashing(6.0, Bits(10), suffix=10)
    reports = mechanism.randomize(np.arange(500) % 1000, SeededForExperiments(1))
    whole = mechanism.tally(reports).counts
    monkeypatch.setattr("veil.mechanisms.oracles.linear_hashing._PLACES", 7 * mechanism.hash_range)
    assert (mechanism.tally(reports).counts == whole).all()


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": "a"},
        {"threshold": float("nan")},
        {"keep": float("nan")},
        {"keep": 1},
        {"alphabet": ["a"]},
        {"alphabet": b"ab"},
        {"alphabet": 7},
        {"alphabet": "\ud800"},
        {"alphabet": ""},
        {"last": 0},
        {"groups": 0},
        {"budget": 1},
    ],
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        PEM(1.0, Text(4), 4, **options)
