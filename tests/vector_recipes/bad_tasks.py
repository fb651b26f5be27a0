"""Tasks that reading must refuse, each for one reason."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from veil import (
    GRR,
    OLH,
    OUE,
    SHE,
    HaarResponse,
    HadamardResponse,
    Integers,
    Interval,
    Items,
    LinearHashing,
    Piecewise,
    Question,
    RandomProjection,
    SquareWave,
    StochasticRounding,
    SubsetSelection,
    Survey,
)
from veil.tools.json_documents import canonical
from veil.view import CountContained, SampleContained, SampleItem, SetSize, SquaredDistance

from . import bits, each_of
from .words import Json


def bad_tasks() -> Json:
    """Texts that reading must refuse.

    `ratio` says what a client does that checks the ratio alone: "above" must be refused by it too, "within" is private
    (and refused only because the thresholds are not those that epsilon gives); null where it does not matter.
    """
    grr, oue_, olh, sub = (made.to_json() for made in (Survey(GRR(1.0, 8)), *other_surveys()))
    text = canonical(grr).decode()
    stay = grr["ask"]["mechanism"]["thresholds"]["stay"]
    cases: list[tuple[str, str, str, str | None]] = []

    def edited(name: str, document: Json, edit: Callable[[Json], None], error: str, ratio: str | None = None) -> None:
        changed = copy.deepcopy(document)
        edit(changed)
        cases.append((name, json.dumps(changed, sort_keys=True, separators=(",", ":")), error, ratio))

    def mechanism(name: str, key: str, value: Any, error: str) -> None:
        edited(name, grr, lambda d: d["ask"]["mechanism"].update({key: value}), error)

    def domain(name: str, value: Any, error: str) -> None:
        def edit(document: Json) -> None:
            document["domain"] = value

        edited(name, grr, edit, error)

    def coin(name: str, document: Json, key: str, step: int, ratio: str) -> None:
        def edit(changed: Json) -> None:
            coins = changed["ask"]["mechanism"]["thresholds"]
            coins[key] = f"{int(coins[key], 16) + step:016x}"

        edited(name, document, edit, "WireError", ratio)

    def shaped(name: str, document: Json, keys: Json, error: str, ratio: str | None = None) -> None:
        edited(name, document, lambda d: d["ask"]["mechanism"].update(keys), error, ratio)

    def looked(name: str, document: Json, keys: Json, error: str) -> None:
        edited(name, document, lambda d: d["ask"]["view"].update(keys), error)

    def over(name: str, document: Json, value: Json, error: str = "ParameterError") -> None:
        edited(name, document, lambda d: d.update(domain=value), error)

    coin("GRR: the threshold one higher", grr, "stay", 1, "above")
    coin("GRR: the threshold one lower", grr, "stay", -1, "within")
    coin("GRR: the threshold far higher", grr, "stay", 2**60, "above")
    coin("GRR: the threshold so low that moving gives the value away", grr, "stay", -int(stay, 16) + 1, "above")
    coin("OUE: others one lower", oue_, "others", -1, "above")
    coin("OUE: others one higher", oue_, "others", 1, "within")
    coin("OUE: held raised", oue_, "held", 2**40, "above")
    coin("OLH: the threshold one higher", olh, "stay", 1, "above")
    coin("OLH: the threshold one lower", olh, "stay", -1, "within")
    shaped("OLH: seeds of 8 bytes, which goes without saying", olh, {"seed_bytes": 8}, "WireError")
    shaped("OLH: seeds of 2 bytes", olh, {"seed_bytes": 2}, "ParameterError")
    shaped("OLH: bytes of a seed as a string", olh, {"seed_bytes": "4"}, "ParameterError")
    coin("SubsetSelection: the threshold one higher", sub, "inside", 1, "above")
    coin("SubsetSelection: the threshold one lower", sub, "inside", -1, "within")
    linear = Survey(LinearHashing(1.0, 1024, suffix=6)).to_json()
    coin("LinearHashing: the threshold one higher", linear, "stay", 1, "above")
    coin("LinearHashing: the threshold one lower", linear, "stay", -1, "within")
    shaped("LinearHashing: more buckets than its threshold is for", linear, {"hash_range": 5}, "WireError", "above")
    shaped("LinearHashing: fewer", linear, {"hash_range": 2}, "WireError", "within")
    shaped("LinearHashing: a range that is no prime", linear, {"hash_range": 4}, "ParameterError")
    shaped("LinearHashing: a range of 2^16 and one, a prime", linear, {"hash_range": 65537}, "ParameterError")
    shaped("LinearHashing: no suffix", linear, {"suffix": 0}, "ParameterError")
    shaped("LinearHashing: a suffix longer than a value", linear, {"suffix": 11}, "ParameterError")
    shaped("LinearHashing: a suffix that is a string", linear, {"suffix": "6"}, "ParameterError")
    long = Survey(LinearHashing(1.0, 2**40, suffix=26)).to_json()
    shaped("LinearHashing: a suffix too long for one transform", long, {"suffix": 27}, "ParameterError")
    hadamard, she = (Survey(made).to_json() for made in (HadamardResponse(1.0, 9), SHE(1.0, 4)))
    coin("HadamardResponse: the threshold one higher", hadamard, "keep", 1, "above")
    coin("HadamardResponse: the threshold one lower", hadamard, "keep", -1, "within")
    coin("SHE: one step further made less likely", she, "further", -1, "above")
    coin("SHE: zero made too likely", she, "zero", 2**20, "above")
    coin("SHE: zero made far too unlikely", she, "zero", -3 * 2**60, "above")
    wave, piecewise, rounding, haar, squared = (survey.to_json() for survey in surveys_of_numbers())
    coin("SquareWave: the threshold one higher", wave, "near", 1, "above")
    coin("SquareWave: the threshold one lower", wave, "near", -1, "within")
    coin("Piecewise: the threshold one higher", piecewise, "inside", 1, "above")
    coin("Piecewise: the threshold one lower", piecewise, "inside", -1, "within")
    coin("StochasticRounding: the threshold one higher", rounding, "keep", 1, "above")
    coin("StochasticRounding: the threshold one lower", rounding, "keep", -1, "within")
    coin("HaarResponse: the threshold one higher", haar, "keep", 1, "above")
    coin("HaarResponse: the threshold one lower", haar, "keep", -1, "within")
    shaped("SquareWave: narrower than its threshold", wave, {"half_width": 3}, "WireError", "above")
    shaped("SquareWave: a steeper ramp than its threshold", wave, {"ramp": 4}, "WireError", "above")
    shaped("SquareWave: wider than its threshold", wave, {"half_width": 5}, "WireError", "within")
    shaped("SquareWave: a half width above the cells", wave, {"half_width": 21}, "ParameterError")
    shaped("SquareWave: a half width below 0", wave, {"half_width": -1}, "ParameterError")
    shaped("SquareWave: a half width that is a string", wave, {"half_width": "4"}, "ParameterError")
    shaped("SquareWave: a ramp of 0", wave, {"ramp": 0}, "ParameterError")
    shaped("SquareWave: a ramp beyond the triangle", wave, {"ramp": 6}, "ParameterError")
    shaped("SquareWave: no buckets", wave, {"buckets": 0}, "ParameterError")
    shaped("SquareWave: more buckets than cells", wave, {"buckets": 21}, "ParameterError")
    shaped("Piecewise: a window of 0", piecewise, {"window": 0}, "ParameterError")
    shaped("Piecewise: a window of all steps", piecewise, {"window": 300}, "ParameterError")
    shaped("Piecewise: more than 2^24 steps", piecewise, {"steps": 2**24 + 1}, "ParameterError")
    shaped("Piecewise: one step", piecewise, {"steps": 1, "window": 1}, "ParameterError")
    for document in (wave, piecewise, rounding):
        kind = document["ask"]["mechanism"]["kind"]
        over(f"{kind}: of categories", document, {"kind": "categories", "missing": "refuse", "size": 20})
        over(f"{kind}: of more than 2^32 cells", document, {"kind": "integers", "lo": 0, "hi": 2**32})
    over("HaarResponse: of more than 2^24 values", haar, {"kind": "integers", "lo": 0, "hi": 2**24})
    looked("SquaredDistance: a centre of minus 0", squared, {"centre": "-0"}, "WireError")
    looked("SquaredDistance: a centre that is a number", squared, {"centre": 4}, "WireError")
    looked("SquaredDistance: a centre too far away", squared, {"centre": "1" + "0" * 200}, "ParameterError")
    looked("SquaredDistance: no cells", squared, {"cells": 0}, "ParameterError")
    over(
        "SquaredDistance: of categories", squared, {"kind": "categories", "missing": "refuse", "size": 20}, "WireError"
    )
    over("SquaredDistance: of more than 2^32 cells", squared, {"kind": "integers", "lo": 0, "hi": 2**32})
    sample, count, size = (survey.to_json() for survey in surveys_of_sets())
    looked("SampleContained: no candidates", sample, {"candidates": []}, "ParameterError")
    looked("SampleContained: a candidate twice", sample, {"candidates": [[1], [1]]}, "ParameterError")
    looked("SampleContained: a candidate without items", sample, {"candidates": [[1], []]}, "ParameterError")
    looked("SampleContained: items that fall", sample, {"candidates": [[2, 1]]}, "ParameterError")
    looked("SampleContained: an item twice", sample, {"candidates": [[1, 1]]}, "ParameterError")
    looked("SampleContained: an item outside the universe", sample, {"candidates": [[5]]}, "ParameterError")
    looked("SampleContained: an item below 0", sample, {"candidates": [[-1]]}, "ParameterError")
    looked("SampleContained: an item that is a string", sample, {"candidates": [["1"]]}, "WireError")
    looked("SampleContained: an item that is true", sample, {"candidates": [[True]]}, "WireError")
    looked("SampleContained: candidates that are no lists", sample, {"candidates": [1]}, "WireError")
    looked("SampleContained: candidates as an object", sample, {"candidates": {}}, "WireError")
    looked("SampleContained: padded to nothing", sample, {"length": 0}, "ParameterError")
    looked("CountContained: at most nothing", count, {"most": 0}, "ParameterError")
    looked("CountContained: more than the candidates", count, {"most": 4}, "ParameterError")
    looked("SetSize: at most nothing", size, {"most": 0}, "ParameterError")
    looked("SetSize: more than the universe", size, {"most": 6}, "ParameterError")
    for name, document in (("SampleContained", sample), ("CountContained", count), ("SetSize", size)):
        over(f"{name}: of categories", document, {"kind": "categories", "missing": "refuse", "size": 5}, "WireError")
    mechanism("a larger epsilon than the thresholds'", "epsilon", "1.1", "WireError")
    mechanism("a smaller epsilon than the thresholds'", "epsilon", "0.9", "WireError")
    mechanism("epsilon as a float", "epsilon", 1.5, "WireError")
    mechanism("epsilon as an integer", "epsilon", 1, "WireError")
    mechanism("epsilon with a zero at the end", "epsilon", "1.0", "WireError")
    mechanism("epsilon in scientific notation", "epsilon", "1e0", "WireError")
    mechanism("epsilon zero", "epsilon", "0", "ParameterError")
    mechanism("epsilon negative", "epsilon", "-1", "ParameterError")
    mechanism("epsilon not a number", "epsilon", "NaN", "WireError")
    mechanism("epsilon infinite", "epsilon", "Infinity", "WireError")
    mechanism("epsilon too large for a coin", "epsilon", "41", "ParameterError")
    mechanism("thresholds without their zeros", "thresholds", {"stay": stay.lstrip("0") + " "}, "WireError")
    mechanism("thresholds in capitals", "thresholds", {"stay": stay.upper()}, "WireError")
    mechanism("thresholds as numbers", "thresholds", {"stay": 5}, "WireError")
    mechanism("one threshold more", "thresholds", {"stay": stay, "go": stay}, "WireError")
    mechanism("an unknown key in the mechanism", "note", "hello", "WireError")
    mechanism("a parameter of another mechanism", "hash_range", 4, "WireError")
    mechanism("an unknown mechanism", "kind", "RAPPOR", "WireError")
    edited("a missing key", grr, lambda d: d["ask"]["mechanism"].pop("thresholds"), "WireError")
    edited("an unknown key in the survey", grr, lambda d: d.update(note="hello"), "WireError")
    edited("an unknown kind of document", grr, lambda d: d.update(kind="veil-campaign"), "WireError")
    edited("an unknown kind of ask", grr, lambda d: d["ask"].update(kind="some-of"), "WireError")
    edited("an unknown kind of view", grr, lambda d: d["ask"]["view"].update(kind="mirror"), "WireError")
    edited("another task version", grr, lambda d: d.update(version=2), "WireError")
    edited("a version that is a boolean", grr, lambda d: d.update(version=True), "WireError")
    edited("a public column with a bad scale", grr, lambda d: d.update(public=[["income", 10]]), "ParameterError")
    edited("a public column twice", grr, lambda d: d.update(public=[["a", 0], ["a", 0]]), "ParameterError")
    edited("a view with a domain of its own", grr, lambda d: d["ask"]["view"].update(source=d["domain"]), "WireError")
    edited("a mechanism with its own", grr, lambda d: d["ask"]["mechanism"].update(domain=d["domain"]), "WireError")
    edited("OneOf without branches", grr, lambda d: d.update(ask={"kind": "one-of", "branches": []}), "ParameterError")
    edited("a share of zero", grr, lambda d: d.update(ask=one_of(d["ask"], 0)), "ParameterError")
    edited("a share that is a string", grr, lambda d: d.update(ask=one_of(d["ask"], "1")), "ParameterError")
    edited("OneOf directly within OneOf", grr, lambda d: d.update(ask=one_of(one_of(d["ask"], 1), 1)), "ParameterError")
    edited("AllOf without asks", grr, lambda d: d.update(ask={"kind": "all-of", "asks": []}), "ParameterError")
    edited("a tree nine levels deep", grr, lambda d: d.update(ask=nested(d["ask"], 9)), "WireError")
    edited("a tree a thousand levels deep", grr, lambda d: d.update(ask=nested(d["ask"], 200)), "WireError")
    domain("an unknown kind of domain", {"kind": "reals"}, "WireError")
    domain("a domain of one value", {"kind": "categories", "missing": "refuse", "size": 1}, "ParameterError")
    domain("a size that is a boolean", {"kind": "categories", "missing": "refuse", "size": True}, "ParameterError")
    domain("an integer of 2^53", {"kind": "integers", "lo": 0, "hi": 2**53}, "WireError")
    domain("an integer of 2^64", {"kind": "categories", "missing": "refuse", "size": 2**64}, "WireError")
    domain("labels and a size", {"kind": "categories", "missing": "refuse", "size": 8, "labels": ["a"]}, "WireError")
    domain("a label twice after NFC", labelled("caf\u00e9", "cafe\u0301"), "ParameterError")
    domain("a label that is not NFC", labelled("cafe\u0301", *"abcdefg"), "WireError")
    domain("a label that is no Unicode", labelled("\ud800", *"abcdefg"), "WireError")
    domain("an interval with a zero at the end", {"kind": "interval", "lo": "0.0", "hi": "1", "cells": 8}, "WireError")
    domain("an interval backwards", {"kind": "interval", "lo": "1", "hi": "0", "cells": 8}, "ParameterError")
    domain("an interval of another unit", {**TIMES, "unit": "days"}, "WireError")
    domain("an interval whose unit is number", {**TIMES, "unit": "number"}, "WireError")
    domain("an interval whose unit is null", {**TIMES, "unit": None}, "WireError")
    domain("times in the year 12000", {**TIMES, "hi": "316517976000", "unit": "time"}, "ParameterError")
    domain("an attribute whose name is a list", {"kind": "record", "attributes": [[[], {}]]}, "WireError")
    cases += [
        ("not JSON", "veil", "WireError", None),
        ("empty", "", "WireError", None),
        ("a list", "[]", "WireError", None),
        ("a number", "1", "WireError", None),
        ("cut off", text[:-1], "WireError", None),
        ("something after the end", text + "{}", "WireError", None),
        ("a repeated key", text.replace('"version":1', '"version":1,"version":1'), "WireError", None),
        ("a float", text.replace('"version":1', '"version":1.0'), "WireError", None),
        ("NaN", text.replace('"version":1', '"version":NaN'), "WireError", None),
        ("an integer with an exponent", text.replace('"version":1', '"version":1e0'), "WireError", None),
        ("an integer of 5000 digits", text.replace('"version":1', '"version":' + "9" * 5000), "WireError", None),
    ]
    loaded, *others = (survey.to_json() for survey in surveys_with_loads())
    shaped("a load behind OLH with seeds of 4 bytes", loaded, {"seed_bytes": 4}, "ParameterError")
    wide = copy.deepcopy(loaded)
    wide["ask"]["view"]["length"] = 2000
    for name, document, load, error in (
        ("a load of 0", loaded, 0, "ParameterError"),
        ("a load below 0", loaded, -1, "ParameterError"),
        ("a load of the whole length", loaded, 4, "ParameterError"),
        ("a load above 1024", wide, 1025, "ParameterError"),
        ("a load that is a string", loaded, "2", "ParameterError"),
        ("a load that is true", loaded, True, "ParameterError"),
        ("a load that is null", loaded, None, "WireError"),
        ("a load so small that its delta is above 1", loaded, 1, "ParameterError"),
    ):
        looked(f"SampleItem: {name}", document, {"load": load}, error)
    for document in (sample, *others):
        behind = document["ask"]["mechanism"]["kind"]
        looked(f"a load behind {behind}", document, {"load": 3}, "ParameterError")
    looked("CountContained: a load", count, {"load": 2}, "WireError")
    for name, document, edit, error, ratio in (*each_of.bad_tasks(), *bits.bad_tasks()):
        edited(name, document, edit, error, ratio)
    return {
        "cases": [{"name": name, "text": body, "error": error, "ratio": ratio} for name, body, error, ratio in cases]
    }


def other_surveys() -> list[Survey]:
    return [Survey(OUE(0.1, 8)), Survey(OLH(4.0, 8)), Survey(SubsetSelection(1.0, 20))]


def surveys_of_numbers() -> list[Survey]:
    grid = Interval(0, 10, cells=20)
    view = SquaredDistance(Integers(0, 9), 4.0)
    return [
        Survey(SquareWave(1.0, grid, half_width=4, ramp=2)),
        Survey(Piecewise(1.0, grid, steps=300)),
        Survey(StochasticRounding(1.0, grid)),
        Survey(HaarResponse(1.0, 9)),
        Survey(Question(Piecewise(1.0, view.domain), view)),
    ]


def surveys_of_sets() -> list[Survey]:
    held, candidates = Items(5), ((1,), (0, 1), (3, 4))
    sample = SampleContained(held, candidates, length=4)
    views = (CountContained(held, candidates, most=3), SetSize(held, most=5))
    behind = GRR(sample.inner_epsilon(1.0, disjoint=True), sample.domain)
    return [Survey(Question(behind, sample)), *(Survey(Question(GRR(1.0, view.domain), view)) for view in views)]


def surveys_with_loads() -> list[Survey]:
    """A good one, behind OLH; and sampled items without one, behind mechanisms that take none."""
    loaded, plain = SampleItem(Items(5), 4, load=2), SampleItem(Items(5), 4)
    others = (kind(1.0, plain.domain) for kind in (OUE, RandomProjection, LinearHashing))
    return [
        Survey(Question(OLH(1.0, loaded.domain), loaded)),
        *(Survey(Question(oracle, plain)) for oracle in others),
    ]


TIMES: Json = {"kind": "interval", "lo": "0", "hi": "86400", "cells": 8}


def one_of(ask: Json, share: Any) -> Json:
    return {"kind": "one-of", "branches": [[share, ask]]}


def nested(ask: Json, levels: int) -> Json:
    for _ in range(levels):
        ask = {"kind": "all-of", "asks": [ask]}
    return ask


def labelled(*labels: str) -> Json:
    return {"kind": "categories", "missing": "refuse", "labels": list(labels)}
