"""Families of questions (EachOf), composed views and tallies of some questions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from veil import GRR, OLH, OUE, AllOf, EachOf, Integers, Items, OneOf, Question, Record, SubsetSelection, Survey
from veil.domain import Categories
from veil.entropy import Words
from veil.mechanisms.best_oracle import direct_or_hashed
from veil.survey import AttributeSets, Levels, ListedSets
from veil.tools.json_documents import canonical
from veil.view import Ancestor, Composed, Identity, Product, Project, SampleItem
from veil.wire.frames import decode_batch, encode_batch
from veil.wire.tallies import encode_tally

from .surveys import Case, vectors
from .words import LAST, Json, limit, pack, stream

PERSON = Record.of(sex=["f", "m", "x"], age=Integers(0, 99), married=2, children=7)


def every_survey() -> list[Json]:
    return [pairs(), all_sizes(), wide(), listed(), levels(), within(), composed()]


def person(sex: str = "m", age: int = 42, married: int = 1, children: int = 6) -> Json:
    return {"sex": sex, "age": age, "married": married, "children": children}


def pairs() -> Json:
    """GRR or OLH, whichever is better for a size: both kinds of columns."""
    survey = Survey(EachOf(AttributeSets(PERSON, 2), lambda domain: direct_or_hashed(1.0, domain)))
    cases: list[Case] = [(f"question {i}", person(), [i]) for i in range(6)]
    cases += [
        ("the choice rejected, then the last question", person("x", 99, 0, 0), [limit(6), LAST, 5]),
        ("streamed (spare entropy)", person("f", 0, 0, 3), []),
    ]
    return vectors("all pairs of four attributes, by GRR or OLH", survey, cases)


def all_sizes() -> Json:
    record = Record(tuple((f"a{i}", Categories.range(2 + i % 3)) for i in range(9)))
    survey = Survey(EachOf(AttributeSets(record, 4), lambda domain: GRR(2.0, domain)))
    value = {f"a{i}": (2 + i % 3) - 1 for i in range(9)}
    last = len(survey.questions) - 1
    cases: list[Case] = [(f"question {i}", value, [i]) for i in (0, 1, 55, 56, 90, 91, 125, last)]
    return vectors("all sets of four of nine attributes, by GRR: a threshold for each size", survey, cases)


def wide() -> Json:
    record = Record(tuple((f"a{i}", Categories.range(2 + i % 5)) for i in range(142)))
    survey = Survey(EachOf(AttributeSets(record, 2), lambda domain: OLH(1.0, domain)))
    value = {f"a{i}": i % (2 + i % 5) for i in range(142)}
    cases: list[Case] = [(f"question {i}", value, [i]) for i in (0, 140, 141, 5000, 10_010)]
    return vectors("10,011 pairs, by OLH: one threshold, a choice of two bytes", survey, cases)


def listed() -> Json:
    sets = (("age",), ("sex", "married"), ("sex", "married", "children"), ("children",))
    survey = Survey(EachOf(ListedSets(PERSON, sets), lambda domain: SubsetSelection(1.0, domain)))
    return vectors(
        "listed sets of attributes, by SubsetSelection", survey, [(f"question {i}", person(), [i]) for i in range(4)]
    )


def levels() -> Json:
    rule = Levels(PERSON, (("age", 5), ("sex", 3), ("children", 2)))
    survey = Survey(EachOf(rule, lambda domain: OUE(0.5, domain) if domain.size < 20 else OLH(0.5, domain)))
    last = len(rule) - 1
    cases: list[Case] = [(f"question {i}", person(age=99), [i]) for i in (0, 2, 3, 7, 8, 15, 23, last)]
    return vectors("levels of three attributes (HIO), by OUE or OLH", survey, cases)


def within() -> Json:
    family = EachOf(AttributeSets(PERSON, 1), lambda domain: GRR(0.5, domain))
    view = Project(PERSON, ("sex", "married"))
    pair = Question(OLH(1.0, view.domain), view)
    survey = Survey(OneOf((1, pair), (2, AllOf(family, family))))
    cases: list[Case] = [
        ("the question", person(), [0]),
        ("two families", person(), [1, 3]),
        ("streamed", person(), []),
    ]
    return vectors("a OneOf of a question and an AllOf of two families", survey, cases)


def composed() -> Json:
    age, sex = Project(PERSON, ("age",)), Project(PERSON, ("sex",))
    decade = Composed(age, Ancestor(age.domain, 10, 1))
    both = Product(sex, decade, Project(PERSON, ("married", "children")))
    views = [decade, both, Composed(Identity(PERSON), both), Composed(both, Ancestor(both.domain, 4, 3))]
    survey = Survey(OneOf(*((1, Question(GRR(1.0, view.domain), view)) for view in views)))
    return vectors("composed views and products", survey, [(f"branch {i}", person(age=57), [i]) for i in range(4)])


def tallied_survey() -> Survey:
    return Survey(EachOf(AttributeSets(PERSON, 2), lambda domain: direct_or_hashed(1.0, domain)))


def some_questions() -> Json:
    """The same reports, counted for all questions and for two of them."""
    survey = tallied_survey()
    people: list[Any] = [person(sex, age) for sex in "fmx" for age in (3, 50, 98)]
    batch = encode_batch(survey.randomize(people, Words(pack(stream("some questions", 200)))))
    reports = decode_batch(survey, batch)
    some = survey.tally(reports, {1: [("x", 1), ("f", 0)]}, questions=[5, 1])
    return {
        "task": survey.to_json(),
        "task_id": survey.task,
        "batch": batch.hex(),
        "questions": [1, 5],
        "tally": encode_tally(some).hex(),
        "tally_counts": [part.counts.tolist() for part in some.parts],
        "whole_tally": encode_tally(survey.tally(reports)).hex(),
    }


def bad_tallies() -> Json:
    """Tallies of some questions that reading must refuse."""
    survey = tallied_survey()
    reports = decode_batch(survey, bytes.fromhex(some_questions()["batch"]))
    good = encode_tally(survey.tally(reports, questions=[1, 5]))
    length = int.from_bytes(good[6:14], "little")
    header, body = json.loads(good[14 : 14 + length]), good[14 + length : -32]

    def listing(questions: Any) -> bytes:
        raw = canonical({**header, "questions": questions})
        whole = good[:6] + len(raw).to_bytes(8, "little") + raw + body
        return whole + hashlib.sha256(whole).digest()

    assert listing([1, 5]) == good
    cases = [
        ("other questions", [0, 5], "MismatchError"),
        ("questions that fall", [5, 1], "WireError"),
        ("a question twice", [1, 1], "WireError"),
        ("a question that is not there", [1, 6], "WireError"),
        ("a question below 0", [-1, 5], "WireError"),
        ("one question too few", [1], "WireError"),
        ("one question too many", [1, 2, 5], "WireError"),
        ("no questions", [], "WireError"),
        ("all questions", [0, 1, 2, 3, 4, 5], "WireError"),
        ("questions as text", ["1", "5"], "WireError"),
        ("a question that is true", [True, 5], "WireError"),
        ("questions that are null", None, "WireError"),
    ]
    return {
        "task": survey.to_json(),
        "cases": [{"name": name, "tally": listing(listed).hex(), "error": error} for name, listed, error in cases],
    }


def bad_payload_groups() -> list[tuple[str, Survey, list[tuple[str, str]]]]:
    """Payloads that the surveys cannot have produced: choice, value, seed (8), bucket."""
    survey = tallied_survey()
    assert [field.size for field in survey.layout.fields] == [1, 1, 8, 1]
    zero = "00" * 9
    return [
        (
            "a family of six pairs, by GRR or OLH",
            survey,
            [
                ("choice out of range", "0600" + zero),
                ("question 1, by GRR: value out of range", "0106" + zero),
                ("question 1, by GRR: a seed", "010001" + "00" * 8),
                ("question 1, by GRR: a bucket", "0100" + "00" * 8 + "01"),
                ("question 0, by OLH: a value", "0001" + zero),
                ("question 5, by OLH: bucket out of range", "0500" + "00" * 8 + "04"),
            ],
        )
    ]


BadTask = tuple[str, Json, Callable[[Json], Any], str, str | None]


def bad_tasks() -> Iterator[BadTask]:
    """For each: a name, a task, what is done to it, the error, and what a client says that checks the ratio alone."""
    pairs_, listed_, levels_, views = (made["task"] for made in (pairs(), listed(), levels(), composed()))

    def rule(name: str, task: Json, keys: Json, error: str = "ParameterError") -> BadTask:
        return f"EachOf: {name}", task, lambda d: d["ask"]["rule"].update(keys), error, None

    def table(
        name: str, edit: Callable[[list[Any]], Any], error: str = "WireError", ratio: str | None = None
    ) -> BadTask:
        return f"EachOf: {name}", pairs_, lambda d: edit(d["ask"]["mechanisms"]), error, ratio

    def coin(step: int) -> Callable[[list[Any]], None]:
        def edit(entries: list[Any]) -> None:
            coins = entries[0][1]["thresholds"]
            coins["stay"] = f"{int(coins['stay'], 16) + step:016x}"

        return edit

    def view(name: str, branch: int, edit: Callable[[Json], None], error: str) -> BadTask:
        return name, views, lambda d: edit(d["ask"]["branches"][branch][1]["view"]), error, None

    yield table("a threshold one higher", coin(1), ratio="above")
    yield table("a threshold one lower", coin(-1), ratio="within")
    yield table("no mechanisms", lambda t: t.clear())
    yield table("mechanisms from a size that does not occur", lambda t: t[0].__setitem__(0, 5))
    yield table("mechanisms from a size within the range that does not occur", lambda t: t[1].__setitem__(0, 15))
    yield table("mechanisms from a size that is a string", lambda t: t[0].__setitem__(0, "6"))
    yield table("mechanisms that do not begin with the least size", lambda t: t.pop(0))
    yield table("mechanisms that fall", lambda t: t.reverse())
    yield table("an entry twice", lambda t: t.append(t[-1]))
    yield table("an entry that changes nothing", lambda t: t.append([700, t[-1][1]]))
    yield table("an entry of three", lambda t: t[0].append(1))
    yield table("a mechanism with a domain", lambda t: t[0][1].update(domain={"kind": "bits", "bits": 3}))
    yield table("a mechanism for fewer values than are shown", lambda t: t.pop(1))
    yield rule("an unknown rule", pairs_, {"kind": "all"}, "WireError")
    yield rule("an unknown key", pairs_, {"note": 1}, "WireError")
    yield rule("sets of no attributes", pairs_, {"size": 0})
    yield rule("sets of more attributes than there are", pairs_, {"size": 5})
    yield rule("a size that is true", pairs_, {"size": True})
    yield rule("no listed sets", listed_, {"sets": []})
    yield rule("an empty listed set", listed_, {"sets": [[1], []]})
    yield rule("a listed set twice", listed_, {"sets": [[1], [0, 2], [0, 2, 3], [3], [3]]})
    yield rule("a listed set that falls", listed_, {"sets": [[1], [2, 0], [0, 2, 3], [3]]}, "WireError")
    yield rule("an attribute twice in a listed set", listed_, {"sets": [[1, 1]]})
    yield rule("a listed attribute that is not there", listed_, {"sets": [[4]]}, "WireError")
    yield rule("a listed attribute by its name", listed_, {"sets": [["age"]]}, "WireError")
    yield rule("no trees", levels_, {"trees": []})
    yield rule("a tree over an unknown attribute", levels_, {"trees": [["income", 2]]})
    yield rule("two trees over one attribute", levels_, {"trees": [["age", 5], ["age", 4]]})
    yield rule("a tree that does not branch", levels_, {"trees": [["age", 1]]})
    yield rule("a branching that is a string", levels_, {"trees": [["age", "5"]]})
    yield rule("a tree of three", levels_, {"trees": [["age", 5, 2]]})
    single = {"kind": "categories", "missing": "refuse", "size": 8}
    yield "EachOf: of categories", pairs_, lambda d: d.update(domain=single), "WireError", None
    yield "EachOf: directly within a OneOf", pairs_, lambda d: d.update(ask=_one_of(d["ask"])), "ParameterError", None
    yield "EachOf: of more than 2^20 questions", _many(1450), lambda _: None, "ParameterError", None
    huge = {"kind": "record", "attributes": [[f"a{i}", {"kind": "bits", "bits": 64}] for i in range(20)]}
    more = [f"EachOf: {what}" for what in ("of 2^64 cells", "of more cells than a double holds", "of huge trees")]
    yield more[0], singles(), lambda d: d.update(domain=huge), "ParameterError", None
    yield more[1], _many(3), lambda d: (d.update(domain=huge), d["ask"]["rule"].update(size=17)), "ParameterError", None
    trees = {"trees": [[f"a{i}", 2**53 - 1] for i in range(6)]}
    yield (
        more[2],
        levels_,
        lambda d: (d.update(domain=huge), d["ask"]["rule"].update(trees)),
        "ParameterError",
        None,
    )
    yield "Composed: without a second view", views, lambda d: _view(d, 0).pop("then"), "WireError", None
    yield view("Composed: a view with a domain", 0, lambda v: v["first"].update(held=single), "WireError")
    yield view("Composed: an unknown view", 0, lambda v: v["then"].update(kind="mirror"), "WireError")
    yield view("Composed: a view that is a list", 0, lambda v: v.update(then=[]), "WireError")
    yield view("Composed: nine deep", 0, _nest, "ParameterError")
    yield view("Product: of one view", 1, lambda v: v.update(views=v["views"][:1]), "ParameterError")
    yield view("Product: of none", 1, lambda v: v.update(views=[]), "ParameterError")
    yield view("Product: of an object", 1, lambda v: v.update(views={}), "WireError")
    yield view("Product: of records", 1, lambda v: v.update(views=[{"kind": "identity"}] * 2), "ParameterError")
    yield view("Product: of 2^53 combinations", 1, lambda v: v.update(views=v["views"] * 8), "ParameterError")
    sample = SampleItem(Items(5), 2)
    items = Survey(Question(GRR(1.0, sample.domain), sample)).to_json()
    drawn: Json = {"kind": "composed", "first": {"kind": "identity"}, "then": items["ask"]["view"]}
    yield "Composed: a view that draws", items, lambda d: d["ask"].update(view=drawn), "ParameterError", None
    twice: Json = {"kind": "product", "views": [items["ask"]["view"]] * 2}
    yield "Product: views that draw", items, lambda d: d["ask"].update(view=twice), "ParameterError", None


def singles() -> Json:
    return Survey(EachOf(AttributeSets(Record.of(a0=2, a1=2), 1), lambda domain: GRR(1.0, domain))).to_json()


def _view(document: Json, branch: int) -> Json:
    return document["ask"]["branches"][branch][1]["view"]


def _one_of(ask: Json) -> Json:
    return {"kind": "one-of", "branches": [[1, ask]]}


def _nest(view: Json) -> None:
    """The whole record, looked at again and again before the first view."""
    for _ in range(7):
        view["first"] = {"kind": "composed", "first": {"kind": "identity"}, "then": view["first"]}


def _many(attributes: int) -> Json:
    """Pairs of so many attributes, without names worth mentioning."""
    record = Record(tuple((f"{i:x}", Categories.range(2)) for i in range(3)))
    task = Survey(EachOf(AttributeSets(record, 2), lambda domain: GRR(1.0, domain))).to_json()
    two = {"kind": "bits", "bits": 1}
    task["domain"]["attributes"] = [[f"{i:x}", two] for i in range(attributes)]
    return task
