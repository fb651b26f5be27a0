"""The guard of the command line: what commands compute, write and are called is what was recorded.

`python -m tests.support.record_commands` records it again, with a line in the changelog that says why; with `--texts`
only the words. See docs/decisions/0042-guards.md.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.house_commands import STEPS
from tests.support.record_commands import (
    EXACT,
    HELP,
    OPTIONS,
    TEXTS,
    command_help,
    command_options,
    differences,
    run_steps,
)

RECORDED = {record.pop("name"): record for record in map(json.loads, EXACT.read_text(encoding="utf-8").splitlines())}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """The exact record and the texts of every step, run now."""
    folder = tmp_path_factory.mktemp("commands").resolve()
    return {name: (exact, texts) for name, exact, texts in run_steps(folder)}


def test_the_recorded_steps_are_the_steps_that_are_run() -> None:
    assert list(RECORDED) == [step.name for step in STEPS]
    assert len({step.words for step in STEPS}) >= 40


@pytest.mark.parametrize("name", RECORDED)
def test_numbers_structure_files_and_exit_code_of_a_command(name: str, seen: dict[str, tuple[Any, Any]]) -> None:
    assert list(differences(json.loads(json.dumps(seen[name][0])), RECORDED[name])) == []


@pytest.mark.parametrize("name", RECORDED)
def test_texts_of_a_command(name: str, seen: dict[str, tuple[Any, Any]]) -> None:
    assert seen[name][1] == json.loads(TEXTS.read_text(encoding="utf-8"))[name]


def test_the_spelling_of_commands_and_options() -> None:
    assert command_options() == json.loads(OPTIONS.read_text(encoding="utf-8"))


def test_the_help_of_commands_and_options() -> None:
    assert command_help() == json.loads(HELP.read_text(encoding="utf-8"))
