"""Which bits can begin a text, held against all characters that there are; and that searches try nothing else."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from veil import Bits, Text
from veil.domain.strings import UTF8_IMPOSSIBLE, UTF8_START, advance_utf8, count_utf8_endings, utf8_endings
from veil.engines import DrawnCollection, MemoryCollection
from veil.engines.counting import TopCandidates
from veil.entropy import SeededForExperiments
from veil.hitters import PEM, Continuations
from veil.study.continuations import start, text_states


@cache
def begun_characters() -> frozenset[bytes]:
    """All that stands before the last byte of some character; Python's decoder alone lets surrogates begin."""
    every = (chr(point).encode() for point in range(0x80, 0x110000) if not 0xD800 <= point < 0xE000)
    return frozenset(written[:end] for written in every for end in range(1, len(written)))


def begins_text(code: bytes) -> bool:
    """Whether some text, cut after so many bytes and padded with zeros, is written like this."""
    written = code.rstrip(b"\0")
    if b"\0" in written:
        return False
    try:
        written.decode()
    except UnicodeDecodeError as problem:
        return len(written) == len(code) and written[problem.start :] in begun_characters()
    return True


@cache
def two_bytes() -> frozenset[int]:
    return frozenset(number for number in range(1 << 16) if begins_text(number.to_bytes(2, "big")))


@pytest.mark.parametrize("width", range(1, 17))
def test_beginnings_are_those_that_a_decoder_may_still_accept(width: int) -> None:
    wanted = sorted({number >> (16 - width) for number in two_bytes()})
    assert utf8_endings(UTF8_START, width).tolist() == wanted
    assert count_utf8_endings(UTF8_START, width) == len(wanted)
    every = np.arange(1 << width, dtype=np.uint64)
    assert np.flatnonzero(text_states(every, width) != UTF8_IMPOSSIBLE).tolist() == wanted


def test_characters_of_three_and_four_bytes() -> None:
    """Overlong forms, surrogates and what lies beyond the last code point: at the edges of every rule."""
    edges = [0x00, 0x01, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xED, 0xF0, 0xF4, 0xF5, 0xFF]
    firsts = [0x41, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5]
    rows = [bytes(row) for row in itertools.product(firsts, edges, edges, edges)]
    codes = np.array([int.from_bytes(row, "big") for row in rows], dtype=np.uint64)
    assert (text_states(codes, 32) != UTF8_IMPOSSIBLE).tolist() == [begins_text(row) for row in rows]
    written = "\N{GRINNING FACE}\N{EURO SIGN}\ud7ff".encode()
    assert begins_text(written)
    assert text_states(Bits(80).encode([written]), 80).tolist() == [UTF8_START]
    for cut_at in range(1, 81):  # every beginning of a text is one
        number = int.from_bytes(written, "big") >> (80 - cut_at)
        assert text_states(Bits(cut_at).encode([number]), cut_at)[0] != UTF8_IMPOSSIBLE


def test_endings_from_within_a_byte_and_within_a_character() -> None:
    for before in ("€".encode()[:1], b"\xed", b"\xf0\x9f", b"a", b"a\0"):
        for begun in range(8):
            width = 8 * len(before) + begun
            starts = np.arange(1 << begun, dtype=np.uint64) | np.uint64(int.from_bytes(before, "big") << begun)
            for code, state in zip(starts, text_states(starts, width), strict=True):
                longer = (code << np.uint64(11)) | np.arange(1 << 11, dtype=np.uint64)
                possible = text_states(longer, width + 11) != UTF8_IMPOSSIBLE
                found = utf8_endings(int(state), 11)
                assert np.array_equal(found, np.flatnonzero(possible))
                assert count_utf8_endings(int(state), 11) == len(found)
                after = advance_utf8(np.full(len(found), state), begun, found, 11)
                assert np.array_equal(after, text_states(longer[possible], width + 11))


@pytest.mark.parametrize("width", [0, 8, 13, 60, 67])
def test_candidates_of_text_are_exactly_the_possible_ones(width: int) -> None:
    words = Text(12).encode(["tea", "été d'hiver", "日本語の", "\N{GRINNING FACE}" * 3, "a"])
    numbers = [int.from_bytes(row.tobytes(), "big") >> (96 - width) for row in words]
    prefixes = Bits(width).encode(sorted(set(numbers))) if width else start()
    every, made = Continuations(prefixes, width, 9), Continuations(prefixes, width, 9, text=True)
    codes = np.concatenate(list(every.blocks()))
    possible = codes[text_states(codes, width + 9) != UTF8_IMPOSSIBLE]
    for most in (5, 1 << 22):
        blocks = list(made.blocks(most))
        assert max(map(len, blocks)) <= most
        found = np.concatenate(blocks)
        assert sorted(map(bytes, found)) == sorted(map(bytes, possible))
    assert made.size == len(possible) < every.size
    assert np.array_equal(np.concatenate([made.at(place) for place in range(made.size)]), found)
    with pytest.raises(IndexError):
        made.at(made.size)
    assert np.array_equal(codes[made.holds(codes)], possible)
    narrow = np.concatenate(list(made.narrowed(4).blocks()))
    assert sorted(map(bytes, narrow)) == sorted(map(bytes, possible))


def test_letters_of_several_bytes_are_not_torn_apart() -> None:
    search = PEM(4.0, Text(2), 4, alphabet="aé", budget=2**12)
    (tried,) = [search._candidates(search._beginning(), level) for level in range(len(search.lengths))][:1]
    words = {int(code).to_bytes(tried.length // 8, "big") for code in np.concatenate(list(tried.blocks()))}
    assert {b"\xc3\xa9", b"a\xc3", b"aa", b"a\0", b"\0\0"} == words
    assert tried.size == 5


@pytest.mark.parametrize("oracle", ["OLH", "PGR"])
def test_what_is_no_text_displaces_nothing(oracle: str) -> None:
    """Few people and much noise: every candidate that stays can still become a text, also through transforms."""
    search = PEM(1.0, Text(5), 8, budget=2**14, oracle=oracle)
    held = ["zürich", "tea", "日本"] * 100
    reports = MemoryCollection(search.survey, search.survey.randomize(held, SeededForExperiments(5)))
    prefixes, tried = search._beginning(), 0
    for level in range(len(search.lengths)):
        candidates = search._candidates(prefixes, level)
        best = reports.best((level,), candidates, search.keep)
        slow = TopCandidates(search.keep)
        for block in candidates.blocks():
            slow.offer(block, reports.support((level,), block).counts)
        assert np.array_equal(best.counts, slow.taken()[1])
        assert best.candidates is not None
        assert np.array_equal(reports.support((level,), best.candidates).counts, best.counts)
        assert (text_states(best.candidates, search.lengths[level]) != UTF8_IMPOSSIBLE).all()
        prefixes, tried = best.candidates, tried + candidates.size
    found = search.read(reports)
    assert all(begins_text(row.tobytes()) for row in found.estimates.candidates)
    assert sum(step.candidates for step in found.history) == tried


def test_drawn_supports_try_the_same() -> None:
    search = PEM(1.0, Text(6), 16)
    found = search.read(DrawnCollection(search.survey, ["naïve", "tea"] * 500, seed=1))
    assert all(begins_text(row.tobytes()) for row in found.estimates.candidates)
    every = [Continuations(search._beginning(), search.lengths[0] - search._step(0), search._step(0))]
    assert found.history[0].candidates < every[0].size
