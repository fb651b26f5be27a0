"""Damaged files: every command ends with a documented exit code and one clear error, and leaves nothing behind."""

from __future__ import annotations

import gc
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.mutated import COMMANDS, Command, Corpus, Outcome, build_corpus, mutate, run

from veil.cli.output import EXIT_CODES

DAILY, ALL = 1_000, 10_000
MORE_MEMORY = 100 << 20


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = build_corpus(tmp_path_factory.mktemp("corpus"))
    gc.freeze()  # else the first collection in each child copies all memory
    yield made
    gc.unfreeze()


def attempt(corpus: Corpus, command: Command, folder: Path, damaged: str | None, seed: int) -> tuple[Outcome, set[str]]:
    """Run a command with one file damaged; also return the files that were not there before."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    corpus.copy(command, folder)
    if damaged is not None:
        (folder / damaged).write_bytes(mutate((corpus.folder / damaged).read_bytes(), random.Random(seed)))
    before = listed(folder)
    outcome = run(corpus.arguments(command), folder)
    return outcome, {name for name in listed(folder) - before if name.split("/")[0] not in command.outputs}


def listed(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.acceptance)], ids=["daily", "all"])
def test_damaged_files_end_in_one_clear_error(corpus: Corpus, command: Command, part: int, tmp_path: Path) -> None:
    whole, left = attempt(corpus, command, tmp_path / "whole", None, 0)
    assert whole.code in command.codes, whole
    assert not left
    files = corpus.files(command)
    assert files
    for seed, damaged in cases(files, part):
        outcome, left = attempt(corpus, command, tmp_path / "damaged", damaged, seed)
        case = (command.name, damaged, seed, outcome)
        assert outcome.code in EXIT_CODES, case
        assert outcome.code != 1, case
        assert "Traceback" not in outcome.stderr, case
        assert outcome.peak <= whole.peak + MORE_MEMORY, case
        assert not left, (case, left)
        if outcome.code not in command.codes:
            errors = [line for line in outcome.stderr.splitlines() if not line.startswith(("WARNING: ", "query "))]
            assert errors, case
            for output in command.outputs:
                assert (corpus.folder / output).exists() or not (tmp_path / "damaged" / output).is_file(), case


def cases(files: list[str], part: int) -> Iterator[tuple[int, str]]:
    """Seeds and the file that each damages; the files take turns."""
    first, last = (0, -(-DAILY // len(COMMANDS))) if part == 0 else (1_000, 1_000 + -(-(ALL - DAILY) // len(COMMANDS)))
    for seed in range(first, last):
        yield seed, files[seed % len(files)]
