"""Prefixes through LinearHashing, as searches for heavy hitters ask for them: of text and of long strings of bits."""

from __future__ import annotations

from veil import Bits, LinearHashing, OneOf, Question, Survey, Text
from veil.hitters import MultipleChannel
from veil.view import prefix

from .surveys import Case, vectors
from .words import LAST, Json, threshold


def text() -> Json:
    """Prefixes of up to 64 bits, of more, of whole bytes and not: what is hashed is a number or bytes."""
    domain = Text(12)
    views = [prefix(domain, bits) for bits in (13, 29, 83, 96)]
    suffixes = (13, 16, 15, 9)
    questions = [
        Question(LinearHashing(2.0, view.domain, suffix=suffix), view)
        for view, suffix in zip(views, suffixes, strict=True)
    ]
    survey = Survey(OneOf(*((1, question) for question in questions[:-1]), (2, questions[-1])))
    words = ("", "tea", "Zürich Hauptbahnhof")
    cases: list[Case] = [(f"branch {i} of {word!a}", word, [i]) for i in range(5) for word in words]
    return vectors("prefixes of text through LinearHashing", survey, cases)


def whole_text() -> Json:
    survey = Survey(LinearHashing(4.0, Text(3), hash_range=257, suffix=17))
    stay = threshold(survey, "stay")
    cases: list[Case] = [
        ("stays", "tea", [1, stay - 1]),
        ("moves; below(256) takes one word", "tea", [1, stay, LAST]),
        ("the seed that makes the coefficients' word 0", "ü", [0xD1B54A32D192ED03]),
        ("streamed", "", []),
    ]
    return vectors("LinearHashing of text of three bytes, a prime of two bytes", survey, cases)


def bits() -> Json:
    survey = Survey(LinearHashing(0.3, Bits(70), hash_range=2, suffix=5))
    cases: list[Case] = [
        ("zeros", {"hex": "00" * 9}, []),
        ("ones", {"hex": "3f" + "ff" * 8}, []),
        ("one before the suffix", {"hex": "00" * 8 + "20"}, []),
    ]
    return vectors("LinearHashing of 70 bits: 65 of them hashed as nine bytes", survey, cases)


def channels() -> list[Json]:
    """A segment behind a channel, as the multiple channel method asks for it: of bits, of text, of many bits."""
    held = [("bits", Bits(20), [0, 0xABCDE]), ("text", Text(11), ["", "tea", "Zürich Hbf"])]
    held.append(("130 bits", Bits(130), [{"hex": "00" * 17}, {"hex": "02" + "5a" * 16}]))
    found = []
    for name, domain, values in held:
        survey = MultipleChannel(1.0, domain, 3).survey
        cases: list[Case] = [
            (f"branch {i} of value {j}", value, [i]) for i in (0, 9, 12) for j, value in enumerate(values)
        ]
        found.append(vectors(f"channels of {name}", survey, cases))
    return found


def every_survey() -> list[Json]:
    return [text(), whole_text(), bits(), *channels()]
