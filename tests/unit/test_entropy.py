"""Sources of randomness: byte rules, exact distributions, separate streams, and enumeration."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.significance import frequency_fits

from veil.entropy import CHUNK_ROWS, Batch, Enumerated, SeededForExperiments, Source, System, Words, outcomes
from veil.errors import EntropyError, ParameterError
from veil.privacy import WORD


def words(*values: int) -> Words:
    return Words(b"".join(value.to_bytes(8, "little") for value in values))


@given(st.integers(0, WORD), st.integers(0, WORD - 1))
def test_a_coin_is_a_word_below_its_threshold(threshold: int, word: int) -> None:
    assert words(word).coin(threshold) == (word < threshold)


@given(st.integers(1, WORD), st.lists(st.integers(0, WORD - 1), min_size=1, max_size=5))
def test_below_rejects_the_incomplete_run(bound: int, drawn: list[int]) -> None:
    limit = WORD // bound * bound
    accepted = [word for word in drawn if word < limit]
    source, by_array = words(*drawn), words(*drawn)
    if not accepted:
        with pytest.raises(EntropyError):
            source.below(bound)
        return
    assert source.below(bound) == accepted[0] % bound
    assert source.used == drawn.index(accepted[0]) + 1
    if bound < WORD:  # an array of bounds follows the same rule
        assert by_array.below(np.array([bound], dtype=np.uint64), 1)[0] == accepted[0] % bound
        assert by_array.used == source.used


def bit_by_bit(threshold: int, width: int, source: Words) -> list[bool]:
    """The rule of docs/wire-format.md, spelled out with plain integers."""
    blocks = [(1 << min(64, width - 64 * b)) - 1 for b in range(-(-width // 64))]
    heads = [0] * len(blocks)
    undecided = list(blocks)
    for position in range(63, -1, -1):
        if threshold == WORD or not threshold % (1 << (position + 1)):
            break
        for b, lanes in enumerate(undecided):
            if lanes:
                word = int(source.words(1)[0])
                if threshold >> position & 1:
                    heads[b] |= lanes & ~word
                    undecided[b] = lanes & word
                else:
                    undecided[b] = lanes & ~word
    if threshold == WORD:
        heads = blocks
    return [bool(heads[i // 64] >> (i % 64) & 1) for i in range(width)]


@given(
    st.one_of(st.sampled_from([0, 1, WORD // 2, WORD // 4 * 3, WORD - 1, WORD]), st.integers(0, WORD)),
    st.integers(1, 200),
    st.integers(0, 2**32),
)
def test_coin_bits_follow_their_rule(threshold: int, width: int, seed: int) -> None:
    entropy = SeededForExperiments(seed).words(64 * 4).tobytes()
    packed, plain = Words(entropy), Words(entropy)
    bits = np.unpackbits(packed.coin_bits(threshold, 1, width), axis=1, bitorder="little")
    assert bits.shape[1] == -(-width // 8) * 8
    assert bits[0, :width].astype(bool).tolist() == bit_by_bit(threshold, width, plain)
    assert not bits[0, width:].any()
    assert packed.used == plain.used


@pytest.mark.parametrize("probability", [0.0001, 0.2689, 0.5, 0.9])
def test_coins_and_coin_bits_have_the_same_distribution(probability: float) -> None:
    threshold = int(probability * WORD)
    coins = int(SeededForExperiments(1).coin(threshold, 640_000).sum())
    bits = np.unpackbits(SeededForExperiments(2).coin_bits(threshold, 5_000, 128), axis=1, bitorder="little")
    for found in (coins, int(bits.sum())):
        assert frequency_fits(found, 640_000, probability)
        assert not frequency_fits(found, 640_000, min(1.1 * probability + 0.001, 1.0))
    for lane in (0, 63, 64, 127):  # no lane is special
        assert frequency_fits(int(bits[:, lane].sum()), 5_000, probability)


@pytest.mark.parametrize("bounds", [[1], [7], [3, 1, 2**63 + 5], [2**64 - 1, 2, 2**32], list(range(749, 1024))])
def test_bounds_in_turn_with_and_without_compiled_code(bounds: list[int]) -> None:
    turns = np.array(bounds, dtype=np.uint64)
    rows = (1 << 13) // len(bounds) + 1
    drawn = SeededForExperiments(4).below(turns, rows * len(bounds))
    words, expected = SeededForExperiments(4).words(rows * len(bounds)), []
    for word, bound in zip(words.tolist(), bounds * rows, strict=True):
        expected.append(word % bound if word < WORD // bound * bound else None)
    if None not in expected:  # no word was rejected, so draw i is word i modulo its bound
        assert drawn.tolist() == expected
    assert np.all(drawn.reshape(rows, -1) < turns)
    assert None not in expected or max(bounds) > 2**60


def test_below_is_uniform() -> None:
    drawn = SeededForExperiments(3).below(7, 700_000)
    for count in np.bincount(drawn, minlength=7):
        assert frequency_fits(int(count), 700_000, 1 / 7)
        assert not frequency_fits(int(count), 700_000, 1 / 6)


def test_streams_of_chunks_differ_and_repeat() -> None:
    first, second = (chunk.words(4).tolist() for _, chunk in SeededForExperiments(1).chunks(CHUNK_ROWS + 1))
    again = [chunk.words(4).tolist() for _, chunk in SeededForExperiments(1).chunks(CHUNK_ROWS + 1)]
    assert [first, second] == again
    assert first != second
    assert SeededForExperiments(1).words(4).tolist() not in again
    assert SeededForExperiments(2).words(4).tolist() != SeededForExperiments(1).words(4).tolist()
    source = SeededForExperiments(1)
    one_by_one = [chunk.words(4).tolist() for _ in range(2) for _, chunk in source.chunks(1)]
    assert one_by_one == again


def test_the_batch_stream_is_aes_256_in_counter_mode() -> None:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    source = SeededForExperiments(9)
    key = source._stream.key
    encryptor = Cipher(algorithms.AES(key), modes.CTR((1).to_bytes(8, "big") + bytes(8))).encryptor()
    expected = np.frombuffer(encryptor.update(bytes(800)), dtype="<u8")
    _, chunk = next(iter(source.chunks(5)))
    assert np.array_equal(np.concatenate([chunk.words(1), chunk.words(99)]), expected)


def test_fresh_sources_never_repeat() -> None:
    seen = {tuple(source().words(2).tolist()) for source in (Batch, System) for _ in range(50)}
    assert len(seen) == 100


def test_threads_never_share_a_stream() -> None:
    source = Batch()

    def firsts(_: int) -> list[int]:
        return [int(chunk.words(1)[0]) for _ in range(300) for _, chunk in source.chunks(1)]

    with ThreadPoolExecutor(8) as pool:
        drawn = [word for part in pool.map(firsts, range(16)) for word in part]
    assert len(set(drawn)) == 16 * 300


def test_no_key_in_a_repr() -> None:
    assert repr(Batch()) == "Batch(...)"
    assert repr(SeededForExperiments(3)) == "SeededForExperiments(...)"


@pytest.mark.parametrize("bad", [-1, 1.5, "1", True, None])
def test_seeds_are_integers(bad: object) -> None:
    with pytest.raises(ParameterError):
        SeededForExperiments(bad)  # type: ignore[arg-type]


def test_words_are_exhausted() -> None:
    source = words(1, 2)
    source.words(2)
    with pytest.raises(EntropyError):
        source.coin(5)
    with pytest.raises(ParameterError):
        Words(b"123")


@pytest.mark.parametrize(("threshold", "bound"), [(-1, 0), (WORD + 1, WORD + 1)])
def test_thresholds_and_bounds_are_checked(threshold: int, bound: int) -> None:
    for source in (SeededForExperiments(1), Enumerated([])):
        with pytest.raises(ParameterError):
            source.coin(threshold)
        with pytest.raises(ParameterError):
            source.below(bound)
    with pytest.raises(ParameterError):
        SeededForExperiments(1).below(np.array([0], dtype=np.uint64), 1)


def test_outcomes_are_exact_and_add_up_to_one() -> None:
    def experiment(source: Source) -> tuple[int, bool, tuple[int, ...]]:
        die = source.below(3)
        heads = source.coin(WORD // 4) if die else True
        bits = source.coin_bits(3 * WORD // 4, 1, 2)
        return die, heads, tuple(bits[0].tolist())

    found = outcomes(experiment)
    assert sum(found.values()) == 1
    assert found[0, True, (3,)] == Fraction(1, 3) * Fraction(9, 16)
    assert found[2, False, (1,)] == Fraction(1, 3) * Fraction(3, 4) * Fraction(3, 16)
    assert len(found) == 4 + 2 * 8


def test_impossible_branches_are_not_taken_and_wide_ones_refused() -> None:
    assert outcomes(lambda source: source.coin(0)) == {False: 1}
    assert outcomes(lambda source: source.coin(WORD)) == {True: 1}
    with pytest.raises(EntropyError, match="too wide"):
        outcomes(lambda source: source.below(2**64))
    with pytest.raises(EntropyError):
        Enumerated([]).words(1)
