"""Plans and settings of parties: documents, invalid values, limits on open files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.in_memory import small_plan

from veil.errors import InputError, ParameterError, WireError
from veil.shuffle.plan import Address, CollectionPlan
from veil.shuffle.settings import PartySettings


@pytest.mark.parametrize(
    "change",
    [
        {"collection": "Has Capitals"},
        {"ring": 16},
        {"fakes": -1},
        {"shufflers": (("a", Address("h", 1)), ("a", Address("h", 2)))},
        {"shufflers": (("server", Address("h", 1)),)},
    ],
)
def test_invalid_plans_are_refused(change: dict[str, Any]) -> None:
    facts = {"protocol": "peos", "collection": "c", "study": {}, "fakes": 0, "ring": 64, "shufflers": (), "keys": {}}
    with pytest.raises(ParameterError):
        CollectionPlan(**{**facts, **change})


def test_plans_as_documents() -> None:
    plan = small_plan(3, fakes=5)
    assert CollectionPlan.from_json(json.loads(plan.to_bytes())) == plan
    for broken in ({}, {**plan.to_json(), "more": 1}, {**plan.to_json(), "shufflers": [["a"]]}, [1]):
        with pytest.raises(WireError):
            CollectionPlan.from_json(broken)
    with pytest.raises(ParameterError, match="HOST:PORT"):
        Address.read("nowhere")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("party = ", "is not a TOML file"),
        ("party = " + "9" * 5_000, "is not a TOML file"),
        ('party = "a"', "lacks the setting plan"),
        ('colour = "red"', "got 'colour'"),
    ],
)
def test_invalid_settings_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "party.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        PartySettings.read(tmp_path / "party.toml")


@pytest.mark.parametrize("value", ["0", "100001", "true", '"64"', "1.5"])
def test_invalid_number_of_connections_is_refused(tmp_path: Path, value: str) -> None:
    (tmp_path / "plan.json").write_bytes(small_plan(3).to_bytes())
    lines = [f'{key} = "x"' for key in ("party", "certificate", "key", "authority", "data")]
    (tmp_path / "party.toml").write_text("\n".join([*lines, 'plan = "plan.json"', f"connections = {value}"]))
    with pytest.raises(ParameterError, match="connections: expected an integer from 1 to 100,000"):
        PartySettings.read(tmp_path / "party.toml")


def test_soft_limit_on_files_is_raised_to_the_hard_limit() -> None:
    code = (
        "import resource; from veil.tools.limits import require_files\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))\n"
        "require_files(150, 'a test'); print(resource.getrlimit(resource.RLIMIT_NOFILE))\n"
        "require_files(201, 'a test')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "(150, 200)\n"
    assert done.stderr.splitlines()[-1] == (
        "veil.errors.InputError: open files: expected a limit of at least 201 for a test, got 200; "
        "raise the limit first (`ulimit -n 201`, or LimitNOFILE= in a unit)"
    )
