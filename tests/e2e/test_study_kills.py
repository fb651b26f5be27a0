"""A study in a folder goes on after SIGKILL at any moment: the same answer, bit by bit, and nobody is asked twice."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.warm_start import COMMAND, start
from tests.support.warm_start import run as run_to_its_end

from veil import Bits, Items, Study
from veil.hitters import PEM
from veil.itemsets import SVIM, SVSM

PEOPLE = 20_000


def study_of(kind: str) -> tuple[Study, pa.Array]:
    """A study, and what people hold."""
    rng = np.random.default_rng(1)
    if kind == "pem":
        held = rng.choice([7, 2**31, 12345, 99, 2**20], PEOPLE, p=[0.4, 0.3, 0.15, 0.1, 0.05])
        return PEM(4.0, Bits(32), 4, budget=2**16), pa.array(held)
    sizes = rng.integers(0, 5, PEOPLE)
    sets = [np.unique(np.minimum(rng.geometric(0.2, size) - 1, 29)).tolist() for size in sizes]
    mined = SVIM(4, 3.0, Items(30)) if kind == "svim" else SVSM(4, 3.0, Items(30))
    return mined, pa.array(sets, pa.list_(pa.int64()))


def command(folder: Path, run: str) -> list[str]:
    files = [str(folder / "study.json"), str(folder / "values.parquet")]
    return ["veil", "simulate", *files, "--folder", str(folder / run), "--seed", "5", "--json"]


def found(output: str) -> Any:
    """What was found; not how many rounds had been answered before."""
    return {name: fact for name, fact in json.loads(output).items() if name != "answered_before"}


def walked(folder: Path, run: str) -> Any:
    code, output, problem = run_to_its_end(COMMAND, *command(folder, run))
    assert code == 0, problem
    return found(output)


def taken(folder: Path) -> dict[str, bytes]:
    """Everything that a run recorded: the counts of people asked, and what they answered."""
    return {file.name: file.read_bytes() for file in sorted(folder.glob("round-*.take-*"))}


def kills(kind: str, times: int, folder: Path, seed: int = 0) -> None:
    """So many runs, each killed at a random moment and gone on with; all end as an undisturbed one does."""
    study, values = study_of(kind)
    (folder / "study.json").write_bytes(study.to_bytes())
    pq.write_table(pa.table({"held": values}), folder / "values.parquet")
    walked(folder, "first")  # compiles
    begun_at = time.monotonic()
    undisturbed = walked(folder, "undisturbed")
    usual, moments = time.monotonic() - begun_at, random.Random(seed)
    halfway = 0
    for number in range(times):
        run = f"run-{number}"
        begun = start(COMMAND, *command(folder, run), stdout=DEVNULL, stderr=DEVNULL)
        if number % 2:  # while people are asked and read, as far as a clock can tell
            time.sleep(usual * moments.uniform(0.3, 1.0))
        else:  # right behind a take
            until = time.monotonic() + 10 * usual
            wanted = moments.randrange(len(taken(folder / "undisturbed")))
            while len(taken(folder / run)) < wanted and begun.poll() is None and time.monotonic() < until:
                time.sleep(0.001)
        begun.kill()
        begun.wait()
        halfway += 0 < len(taken(folder / run)) < len(taken(folder / "undisturbed"))
        assert walked(folder, run) == undisturbed
        assert taken(folder / run) == taken(folder / "undisturbed")  # the same people, asked once each
    assert halfway  # some kills hit a run under way


def test_a_few_kills(tmp_path: Path) -> None:
    kills("svsm", 2, tmp_path)


@pytest.mark.acceptance
@pytest.mark.parametrize("kind", ["pem", "svim", "svsm"])
def test_20_kills(kind: str, tmp_path: Path) -> None:
    kills(kind, 20, tmp_path, seed=1)
