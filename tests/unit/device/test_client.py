"""Clients for one person: reports, charges, repeated answers, and longitudinal mechanisms."""

from __future__ import annotations

import base64
import datetime as dt
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veil import GRR, OLH, AllOf, Categories, Client, Items, Ledger, OneOf, Public, Question, Rappor, Record, Survey
from veil.device.client import normative_report
from veil.entropy import System
from veil.errors import BudgetError, DomainError, InputError, ParameterError, WireError
from veil.itemsets import PSFO
from veil.view import Project, SampleItem
from veil.wire.frames import decode_report, report_size

COLOURS = Survey(OLH(1.0, Categories(["red", "green", "blue"])))


def test_a_report_is_decoded_by_the_collector() -> None:
    sent = Client(COLOURS.to_bytes(), Ledger(lifetime=1.0)).answer("green")
    assert len(sent) == report_size(COLOURS)
    report_id, report = decode_report(COLOURS, sent)
    assert len(report_id) == 16
    assert COLOURS.tally(report).people == 1


def test_the_same_answer_is_the_same_bytes_and_free_also_after_a_restart(tmp_path: Path) -> None:
    first = Client(COLOURS, Ledger(tmp_path / "ledger", lifetime=1.0)).answer("red")
    again = Client(COLOURS, Ledger(tmp_path / "ledger", lifetime=1.0))
    assert again.answer("red") == first
    with pytest.raises(BudgetError):
        again.answer("blue")


def test_a_changed_answer_is_charged_again() -> None:
    ledger = Ledger(lifetime=2.0)
    client = Client(COLOURS, ledger)
    assert client.answer("red") != client.answer("blue")
    assert float(ledger.spent) == pytest.approx(2.0)


def test_different_people_send_different_bytes() -> None:
    sent = {Client(COLOURS, Ledger(lifetime=1.0)).answer("red") for _ in range(20)}
    assert len(sent) == 20


def test_a_survey_with_a_delta_is_paid_with_one_or_refused() -> None:
    asked = PSFO(10, OLH, 2.0, 20, delta=1e-3)
    survey, ledger = asked.survey, Ledger(lifetime=5.0)
    with pytest.raises(BudgetError, match="grants none"):
        Client(survey.to_bytes(), ledger).answer([1, 2])
    assert ledger.charges == []
    ledger = Ledger(lifetime=5.0, delta=5e-4)
    client = Client(survey.to_bytes(), ledger)
    assert client.answer([1, 2]) == client.answer([2, 1])
    assert [charge.delta for charge in ledger.charges] == [asked.guarantee.delta]
    assert [charge.epsilon for charge in ledger.charges] == [Decimal(repr(asked.guarantee.epsilon))]
    with pytest.raises(BudgetError, match="exceed the delta"):
        client.answer([3])


def test_a_value_outside_the_domain_costs_nothing_and_is_not_shown() -> None:
    ledger = Ledger(lifetime=1.0)
    with pytest.raises(DomainError) as caught:
        Client(COLOURS, ledger).answer("ultraviolet")
    assert "ultraviolet" not in str(caught.value)
    assert ledger.spent == 0


def test_tasks_with_other_thresholds_are_refused() -> None:
    text = COLOURS.to_bytes().decode()
    threshold = COLOURS.to_json()["ask"]["mechanism"]["thresholds"]["stay"]
    raised = f"{int(threshold, 16) + 1:016x}"
    with pytest.raises(WireError, match="thresholds"):
        Client(text.replace(threshold, raised), Ledger(lifetime=1.0))


def test_records_sets_and_public_columns() -> None:
    record = Record.of(sex=["f", "m"], age=100)
    asks = OneOf(
        (1, Question(GRR(1.0, record.parts[0]), Project(record, ("sex",)))),
        (1, Question(OLH(1.0, 100), Project(record, ("age",)))),
    )
    survey = Survey(asks, public=[Public("postage", scale=2)])
    client = Client(survey, Ledger(lifetime=1.0))
    sent = client.answer({"sex": "f", "age": 30}, public={"postage": [1250]})
    _, report = decode_report(survey, sent)
    assert report.columns["public.postage"].tolist() == [1250]
    with pytest.raises(InputError, match="postage"):
        client.answer({"sex": "m", "age": 30})

    view = SampleItem(Items(["tea", "milk", "bread"]), 2)
    basket = Survey(Question(GRR(1.0, view.domain), view))
    _, report = decode_report(basket, Client(basket, Ledger(lifetime=1.0)).answer({"tea", "milk"}))
    assert 0 <= int(report.columns["value"][0]) < 5


def test_errors_for_one_person_name_no_row() -> None:
    record = Record.of(sex=["f", "m"], age=100)
    survey = Survey(Question(OLH(1.0, 100), Project(record, ("age",))), public=[Public("postage")])
    client = Client(survey, Ledger(lifetime=1.0))
    for value, postage in (({"sex": "f", "age": 300}, 7), ({"sex": "f", "age": 30}, 0.5)):
        for ask in (client.answer, client.mark):
            with pytest.raises(DomainError) as caught:
                ask(value, {"postage": [postage]})
            assert "row" not in str(caught.value)
            assert (caught.value.row, caught.value.count) == (None, 1)


def test_estimate_from_many_clients_has_the_declared_error() -> None:
    """4,000 devices, operating-system entropy, one report each: the estimate is where it should be."""
    survey = Survey(GRR(3.0, 4))
    payloads = [Client(survey, Ledger(lifetime=3.0)).answer(value % 2) for value in range(4_000)]
    tally = survey.tally(decode_report(survey, payloads[0])[1])
    for payload in payloads[1:]:
        tally = tally + survey.tally(decode_report(survey, payload)[1])
    estimate = survey.estimate(tally)[0]
    assert np.all(np.abs(estimate.frequencies - [0.5, 0.5, 0.0, 0.0]) < 7 * estimate.stderr)


LASTING = Survey(Rappor(2.0, Categories(["red", "green", "blue"]), instant=(0.25, 0.75)), public=[Public("day")])


@pytest.mark.parametrize("tree", [lambda one, other: AllOf(one, other), lambda one, other: OneOf((1, one), (2, other))])
def test_longitudinal_mechanisms_in_a_tree_are_refused(tree: Any) -> None:
    parts = [Question(Rappor(1.0, 10)), Question(Rappor(1.0, 10))]
    survey, ledger = Survey(tree(*parts)), Ledger(lifetime=100.0)
    with pytest.raises(ParameterError, match="one question"):
        Client(survey, ledger)
    assert ledger.charges == []
    cohort = next(name for name in survey.layout.names if name.endswith("cohort"))
    lives = [decode_report(survey, normative_report(survey, value, System()))[1] for value in range(10)]
    assert len({int(report.columns[cohort][0]) for report in lives}) > 1  # what a person who sent them would show


def paid(ledger: Ledger) -> int:
    """How many answers were paid for; what else is kept costs nothing."""
    return sum(charge.cost > 0 for charge in ledger.charges)


def test_a_longitudinal_answer_is_paid_once_and_reported_afresh_also_after_a_restart(tmp_path: Path) -> None:
    sent = []
    for day in range(6):
        today = dt.date(2026, 1, 1) + dt.timedelta(days=day)
        ledger = Ledger(tmp_path / "ledger", lifetime=2.0, today=lambda today=today: today)  # type: ignore[misc]
        client = Client(LASTING.to_bytes(), ledger)
        sent.append(client.answer("red", public={"day": [day]}))
        assert client.answer("red", public={"day": [day]}) == sent[-1]
    assert float(client.ledger.spent) == pytest.approx(2.0)
    decoded = [decode_report(LASTING, report) for report in sent]
    assert len({report_id for report_id, _ in decoded}) == 6
    assert len({int(report.columns["cohort"][0]) for _, report in decoded}) == 1
    assert len({report.columns["bits"].tobytes() for _, report in decoded}) == 6
    assert [int(report.columns["public.day"][0]) for _, report in decoded] == list(range(6))


def test_repeated_reports_average_to_the_permanent_step() -> None:
    """Over many days the collector learns the permanent bits. These are what was paid for."""
    ledger = Ledger(lifetime=2.0)
    client = Client(LASTING, ledger)
    days = [
        decode_report(LASTING, client.answer("red", public={"day": [0]}, occasion=f"day {day}"))[1]
        for day in range(200)
    ]
    share = np.mean([np.unpackbits(day.columns["bits"][0], bitorder="little") for day in days], axis=0)
    assert np.all((np.abs(share - 0.25) < 0.15) | (np.abs(share - 0.75) < 0.15))
    kept = LASTING.questions[0].mechanism.layout.unpack(base64.urlsafe_b64decode(ledger.kept(LASTING.task)[0]))
    assert (np.unpackbits(kept["bits"][0], bitorder="little") == (share > 0.5)).all()


def test_a_changed_longitudinal_answer_is_charged_and_an_old_one_is_free(tmp_path: Path) -> None:
    survey = Survey(Rappor(2.0, Categories(["red", "green", "blue"])))  # no second step: payloads show the memo

    def answer(value: str) -> bytes:
        return decode_report(survey, Client(survey, Ledger(tmp_path / "l", lifetime=4.0)).answer(value))[1].to_bytes()

    red, blue = answer("red"), answer("blue")
    assert red != blue
    assert float(Ledger(tmp_path / "l", lifetime=4.0).spent) == pytest.approx(4.0)
    assert (answer("red"), answer("blue"), answer("red")) == (red, blue, red)
    with pytest.raises(BudgetError):
        answer("green")
    assert paid(Ledger(tmp_path / "l", lifetime=4.0)) == 2


def test_a_longitudinal_answer_given_again_on_the_same_occasion_is_the_same_bytes(tmp_path: Path) -> None:
    """Whoever does not know whether a report arrived asks again: the collector counts it once, by its id."""

    def client() -> Client:
        return Client(LASTING, Ledger(tmp_path / "ledger", lifetime=2.0, today=lambda: dt.date(2026, 1, 1)))

    beside = {"day": [1]}
    first = client().answer("red", beside)
    assert {client().answer("red", beside) for _ in range(3)} == {first}
    week = client().answer("red", beside, occasion="week 1")
    assert week != first
    assert client().answer("red", beside, occasion="week 1") == week
    assert client().answer("red", {"day": [2]}) != first
    assert paid(client().ledger) == 1
    for wrong in ("", 1):
        with pytest.raises(ParameterError, match="text"):
            client().answer("red", beside, occasion=wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="again and again"):
        Client(COLOURS, Ledger(lifetime=1.0)).answer("red", occasion="today")


def test_a_longitudinal_answer_that_fails_costs_nothing() -> None:
    ledger = Ledger(lifetime=2.0)
    for value, public in (("ultraviolet", {"day": [1]}), ("red", None), ("red", {"day": [1, 2]})):
        with pytest.raises(InputError):
            Client(LASTING, ledger).answer(value, public=public)
    assert ledger.spent == 0


def test_a_longitudinal_answer_behind_a_view() -> None:
    record = Record.of(sex=["f", "m"], age=100)
    survey = Survey(Question(Rappor(2.0, 100), Project(record, ("age",))))
    client = Client(survey, Ledger(lifetime=2.0))
    first, again = (decode_report(survey, client.answer({"sex": "f", "age": 30}, occasion=f"{n}"))[1] for n in range(2))
    assert first.to_bytes() == again.to_bytes()


def test_an_answer_is_recognised_however_it_is_written(tmp_path: Path) -> None:
    """Sets have no order, and their text differs from process to process: the codes decide."""
    view = SampleItem(Items(["tea", "milk", "bread", "salt"]), 2)
    survey = Survey(Question(GRR(0.5, view.domain), view), public=[Public("w")])
    ledger = Ledger(tmp_path / "ledger", lifetime=5.0)
    client = Client(survey, ledger)
    sent = client.answer({"tea", "milk", "salt"}, public={"w": [1]})
    assert client.answer(["salt", "milk", "tea", "tea"], public={"w": np.array([1])}) == sent
    assert client.answer(("milk", "salt", "tea"), public={"w": (1,)}) == sent
    script = (
        "import sys; from veil import Client, Ledger; "
        "print(Client(open(sys.argv[1], 'rb').read(), Ledger(sys.argv[2], lifetime=5.0))"
        ".answer({'tea', 'salt', 'milk'}, public={'w': [1]}).hex())"
    )
    (tmp_path / "task.json").write_bytes(survey.to_bytes())
    for seed in range(3):
        again = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "task.json"), str(tmp_path / "ledger")],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
            text=True,
        )
        assert bytes.fromhex(again.stdout.strip()) == sent
    assert len(ledger.charges) == 1


@pytest.mark.parametrize("shared", ["client", "ledger", "file"])
@pytest.mark.parametrize("survey", [COLOURS, Survey(Rappor(1.0, Categories(["red", "green", "blue"])))])
def test_the_same_answer_in_several_threads_is_drawn_and_paid_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: str, survey: Survey
) -> None:
    """All threads look before any of them pays: one charge, and every one of them sends what that one drew."""
    together, recall = threading.Barrier(4), Ledger.recall

    def slowly(ledger: Ledger, task: str, mark: str) -> str | None:
        kept = recall(ledger, task, mark)
        together.wait(timeout=30)
        return kept

    def client() -> Client:
        return Client(survey, Ledger(tmp_path / "ledger", lifetime=4.0))

    clients = [client() for _ in range(4)]
    if shared == "client":
        clients = [clients[0]] * 4
    elif shared == "ledger":
        ledger = Ledger(lifetime=4.0)
        clients = [Client(survey, ledger) for _ in range(4)]
    monkeypatch.setattr(Ledger, "recall", slowly)
    with ThreadPoolExecutor(4) as pool:
        sent = list(pool.map(lambda one: one.answer("red"), clients))
    assert paid(clients[0].ledger) == 1
    assert len(set(sent)) == 1  # the very same bytes, with one report id


def test_the_same_answer_in_several_processes_is_drawn_and_paid_once(tmp_path: Path) -> None:
    """They share nothing but the ledger's file. Forty answers each, with few colours, so that they meet often."""
    script = (
        "import sys; from veil import Client, Ledger\n"
        "client = Client(open(sys.argv[1], 'rb').read(), Ledger(sys.argv[2], lifetime=1000.0))\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for value in range(40): print(client.answer(value).hex())\n"
    )
    (tmp_path / "task.json").write_bytes(Survey(GRR(1.0, 40)).to_bytes())
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "task.json"), str(tmp_path / "ledger")]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    sent = [process.communicate()[0].split() for process in running]
    assert sent[0] == sent[1] == sent[2]
    assert len(Ledger(tmp_path / "ledger", lifetime=1000.0).charges) == 40
