"""One person, one round: devices that check the signed round, keep their number, and answer once."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.service.harness import FRAMED, Collector, running

from veil import GRR, Interval, Ledger, Piecewise, Rappor, Survey
from veil.collector.keys_and_tokens import load_key, public_bytes
from veil.collector.store.base import StoredSurvey
from veil.collector.surveys.catalogue import published, published_round
from veil.device import RoundClient, verified, verified_round
from veil.device.client import RoundPart
from veil.errors import BudgetError, MismatchError, ParameterError, WireError
from veil.numeric import TwoPhaseVariance
from veil.tools.json_documents import canonical, digest

KEY = Ed25519PrivateKey.generate()
STUDY, OTHER = "a" * 64, "b" * 64
FIRST, SECOND = Survey(GRR(1.0, 4)), Survey(GRR(1.0, 5))
HALF = Fraction(1, 2)


def stored(survey: Survey) -> StoredSurvey:
    return StoredSurvey(1, survey.task, survey.to_bytes(), "open", None, None, 3_600, 1)


def asked(
    number: int = 0, begin: Fraction = Fraction(0), end: Fraction = Fraction(1), study: str = STUDY, key: Any = KEY
) -> dict[str, Any]:
    """What a collector says of a round."""
    survey = (FIRST, SECOND)[number]
    return published_round(stored(survey), RoundPart(study, number, survey.task, begin, end), key)


def device(ledger: Ledger, study: str = STUDY) -> RoundClient:
    return RoundClient(study, ledger, public_bytes(KEY))


def test_a_round_by_rappor_is_one_report_on_whatever_day_it_is_sent_again() -> None:
    survey = Survey(Rappor(1.0, 10, instant=(0.25, 0.75)))
    round_ = published_round(stored(survey), RoundPart(STUDY, 0, survey.task, Fraction(0), Fraction(1)), KEY)
    days = iter(dt.date(2026, 1, day) for day in range(1, 29))
    ledger = Ledger(lifetime=1.0, today=lambda: next(days))
    assert len({device(ledger).answer(round_, 7) for _ in range(3)}) == 1


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("collector") / "data") as one:
        yield one


def test_every_device_answers_one_round_of_a_real_study(collector: Collector, tmp_path: Path) -> None:
    people, study = 60, TwoPhaseVariance(Piecewise, 4.0, Interval(0, 10))
    id_, key = digest(study.to_json()), public_bytes(load_key(collector.settings.key_path))
    answered: Counter[int] = Counter()
    with httpx.Client(base_url=collector.url, timeout=60, headers=collector.token()) as http:
        task = http.post("/v1/surveys", json={"survey": json.loads(study.to_bytes()), "minimum": 5}).json()["task"]
        http.post(f"/v1/surveys/{task}/open")
        for number in range(2):
            document = http.get(f"/v1/studies/{id_}/round").json()
            survey, part = verified_round(document, key, id_)
            assert (part.number, part.task) == (number, survey.task)
            assert (document["round"], document["from"], document["to"]) == (number, float(part.begin), float(part.end))
            if number == 0:  # the survey itself is published as ever
                alone = http.get(f"/v1/surveys/{task}").json()
                assert alone == {name: document[name] for name in ("document", "key", "signature")}
            for person in range(people):
                ledger = Ledger(tmp_path / f"{person}" / "ledger", lifetime=4.0)  # opened anew each time: a restart
                report = RoundClient(id_, ledger, key).answer(document, 5.0)
                if report is not None:
                    answered[person] += 1
                    sent = http.post(f"/v1/surveys/{survey.task}/reports", content=report, headers=FRAMED)
                    assert sent.json() == {"acknowledged": 1}
            assert http.post(f"/v1/studies/{id_}/next", json={"round": number}).status_code == 200
        state = http.get(f"/v1/studies/{id_}").json()
    assert state["state"] == "finished"
    assert answered == dict.fromkeys(range(people), 1)
    assert sum(one["reports"] for one in state["rounds"]) == people
    assert min(one["reports"] for one in state["rounds"]) >= 10  # of 60, half each: below this once in 10^7


def test_the_number_is_drawn_once_per_study_and_kept(tmp_path: Path) -> None:
    first, again = (Ledger(tmp_path / "ledger", lifetime=1.0) for _ in range(2))  # two processes at once
    assert device(first).number == device(again).number == device(Ledger(tmp_path / "ledger", lifetime=1.0)).number
    assert device(first).number != device(first, OTHER).number
    assert 0 <= device(first).number < 1
    assert first.spent == 0
    numbers = [device(Ledger(lifetime=1.0)).number for _ in range(400)]
    assert len(set(numbers)) == 400
    assert 140 < sum(number < HALF for number in numbers) < 260  # six standard deviations


def test_no_second_round_and_no_changed_answer(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", lifetime=9.0)
    report = device(ledger).answer(asked(), 1)
    assert report is not None
    assert device(Ledger(tmp_path / "ledger", lifetime=9.0)).answer(asked(), 1) == report
    with pytest.raises(BudgetError, match="answers one of its rounds, once"):
        device(ledger).answer(asked(), 2)
    with pytest.raises(BudgetError, match="answers one of its rounds, once"):  # a collector that asks everybody twice
        device(Ledger(tmp_path / "ledger", lifetime=9.0)).answer(asked(1), 1)
    assert ledger.spent == 1
    assert device(ledger, OTHER).answer(asked(study=OTHER), 2) is not None  # another study is another matter
    assert ledger.spent == 2


def test_a_round_for_other_people_costs_nothing() -> None:
    ledger = Ledger(lifetime=1.0)
    lower = device(ledger).number < HALF
    mine, others = (asked(0, Fraction(0), HALF), asked(1, HALF, Fraction(1)))[:: 1 if lower else -1]
    assert device(ledger).answer(others, 1) is None
    assert ledger.spent == 0
    assert device(ledger).answer(mine, 1) is not None
    assert device(ledger).answer(others, 1) is None
    assert ledger.spent == 1


def forged(change: dict[str, Any]) -> dict[str, Any]:
    """A round with a changed part under the signature of the old one."""
    document = asked()
    part = RoundPart(STUDY, 0, FIRST.task, Fraction(0), Fraction(1)).to_json()
    text = base64.urlsafe_b64encode(canonical({**part, **change})).rstrip(b"=").decode()
    return {**document, "part": {**document["part"], "document": text}}


def unsigned() -> dict[str, Any]:
    return {name: part for name, part in asked().items() if name != "part"}


REFUSED: list[tuple[Callable[[], dict[str, Any]], type[Exception]]] = [
    (unsigned, WireError),  # from and to beside the survey are for people
    (lambda: forged({"from": "1/2"}), WireError),
    (lambda: forged({"round": 1}), WireError),
    (lambda: {**asked(), "part": published(stored(FIRST), KEY)}, WireError),  # signed, but as a survey
    (lambda: asked(key=Ed25519PrivateKey.generate()), WireError),
    (lambda: asked(study=OTHER), MismatchError),
    (lambda: {**asked(), "part": asked(1)["part"]}, MismatchError),  # the part of one round, the survey of another
    (lambda: asked(begin=HALF, end=HALF), WireError),
    (lambda: asked(end=Fraction(3, 2)), WireError),
    (lambda: asked(number=-1), WireError),
]


@pytest.mark.parametrize(("document", "error"), REFUSED)
def test_what_is_not_signed_or_not_meant_is_refused(
    document: Callable[[], dict[str, Any]], error: type[Exception]
) -> None:
    ledger = Ledger(lifetime=9.0)
    with pytest.raises(error):
        device(ledger).answer(document(), 1)
    assert ledger.charges == []  # not even a number was drawn


def test_the_part_cannot_pass_for_a_survey() -> None:
    with pytest.raises(WireError, match="not signed"):
        verified(asked()["part"], public_bytes(KEY))


def test_a_ledger_keeps_the_first_note(tmp_path: Path) -> None:
    for ledger in (Ledger(lifetime=1.0), Ledger(tmp_path / "ledger", lifetime=1.0)):
        assert [ledger.remember("name", note) for note in ("one", "two", "one")] == ["one"] * 3
        assert ledger.remember("other", "two") == "two"
        assert (len(ledger.charges), ledger.spent, ledger.left) == (2, 0, 1)
        for name, note in (("a b", "c"), ("a", "b c"), ("", "a"), ("a", "")):
            with pytest.raises(ParameterError):
                ledger.remember(name, note)
    assert Ledger(tmp_path / "ledger", lifetime=1.0).remember("name", "three") == "one"
