"""A collector that owns the key asks for a larger eps under the same name: no device pays it without a word."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.patience import until
from tests.service.harness import Collector, running
from tests.service.test_online_client import key_of
from tests.service.test_round_client import KEY, STUDY, device, stored
from tests.support.commands import CliRunner

from veil import GRR, AllOf, Client, Ledger, Public, Survey
from veil.cli.main import app
from veil.collector.surveys.catalogue import published_round
from veil.device.client import RoundPart
from veil.errors import BudgetError

LABELS = ["tea", "coffee", "water"]
SECOND = [
    Survey(GRR(8.0, LABELS), wave=2),
    Survey(AllOf(*[GRR(1.0, LABELS)] * 8), wave=2),  # each part declares 1
]


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("price") / "data") as one:
        yield one


@pytest.fixture(params=range(len(SECOND)), ids=["one question", "a tree"])
def name(collector: Collector, request: pytest.FixtureRequest) -> str:
    """The name of a survey that cost 1 as its first wave; its second costs 8, and is signed with the same key."""
    called = f"drinks-{request.param}-{len(NAMES)}"
    NAMES[called] = request.param
    collector.open_survey(beside(Survey(GRR(1.0, LABELS)), called), name=called)
    return called


NAMES: dict[str, int] = {}


def beside(survey: Survey, name: str) -> Survey:
    """The same with a public column, so that it is no other test's."""
    return Survey(survey.ask, [Public(name)], wave=survey.wave)


def answered(collector: Collector, name: str, ledger: Ledger, value: str = "tea", *, changed: bool = False) -> Any:
    client = Client.open(collector.url, key_of(collector), name, ledger)
    return client.answer(value, {name: [7]}, changed=changed).state


def second(collector: Collector, name: str) -> None:
    collector.open_survey(beside(SECOND[NAMES[name]], name), name=name)
    until(lambda: Client.open(collector.url, key_of(collector), name, Ledger(lifetime=100.0)).wave == 2)


def test_a_later_wave_costs_no_more_than_the_first_unless_a_person_says_so(
    collector: Collector, name: str, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger", lifetime=20.0)
    assert answered(collector, name, ledger) == "delivered"
    second(collector, name)
    with pytest.raises(BudgetError, match=r"costs eps 8 .* cost 1 .*per_survey"):
        answered(collector, name, ledger)
    assert float(ledger.spent) == pytest.approx(1)
    assert Client.open(collector.url, key_of(collector), name, ledger).outbox.parcels() == []
    with pytest.raises(BudgetError, match="per_survey: expected none"):
        Ledger(tmp_path / "ledger", lifetime=20.0, per_survey=8.0)
    ledger.raise_caps(per_survey=7.9)
    with pytest.raises(BudgetError, match="one survey"):
        answered(collector, name, ledger)
    ledger.raise_caps(per_survey=8.0)
    assert answered(collector, name, ledger) == "delivered"
    assert answered(collector, name, ledger) == "delivered"  # paid for: nothing more is drawn
    with pytest.raises(BudgetError, match="one survey"):
        answered(collector, name, ledger, "coffee", changed=True)
    assert float(ledger.spent) == pytest.approx(9)


def test_veil_answer_refuses_a_larger_price(collector: Collector, name: str, tmp_path: Path) -> None:
    def answer(*more: str) -> Any:
        own = ["--ledger", str(tmp_path / "ledger"), "--lifetime", "20", "--value", "tea", "--public", f"{name}=7"]
        there = ["--name", name, "--key", key_of(collector)]
        return CliRunner().invoke(app, ["answer", collector.url, *there, *own, *more])

    assert answer().exit_code == 0
    second(collector, name)
    refused = answer()
    assert (refused.exit_code, "costs eps 8" in refused.output) == (6, True), refused.output
    assert answer("--per-survey", "8").exit_code == 6
    raised = CliRunner().invoke(app, ["ledger", "raise", str(tmp_path / "ledger"), "--per-survey", "8"])
    assert raised.exit_code == 0, raised.output
    assert answer().exit_code == 0


def test_a_survey_costs_what_its_tree_promises_not_what_its_parts_declare(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", lifetime=7.9)
    client = Client(SECOND[1].to_bytes(), ledger)
    with pytest.raises(BudgetError, match=r"lifetime budget of 7\.9"):
        client.answer("tea")
    assert ledger.spent == 0


def test_a_round_is_paid_by_its_survey_and_within_the_cap_of_one_survey() -> None:
    """What a study declares does not reach a device: its rounds are signed with their surveys, and these cost."""
    survey = Survey(GRR(8.0, LABELS))
    shown = published_round(stored(survey), RoundPart(STUDY, 0, survey.task, Fraction(0), Fraction(1)), KEY)
    for cap in (Ledger(lifetime=7.9), Ledger(lifetime=20.0, per_survey=1.0)):
        with pytest.raises(BudgetError):
            device(cap).answer(shown, "tea")
        assert cap.spent == 0
