"""Studies and results with one part missing or replaced are read as they are, or refused with an error of veil."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.mutated import STRANGE
from tests.unit.planning.test_at_epsilon import STUDY_OF
from tests.unit.results.test_every_result import RESULTS

from veil.errors import VeilError
from veil.results.render.files import load, save
from veil.study import study_from_json

MISSING = object()


def changed(document: Any, seed: int, each: int = 5) -> Iterator[Any]:
    """Documents without one part, or with one of another kind in its place: `each` for every part."""
    draw = random.Random(seed)
    for path in paths(document):
        for new in (MISSING, *draw.sample(STRANGE, each - 1)):
            made = copy.deepcopy(document)
            holder = made
            for key in path[:-1]:
                holder = holder[key]
            if new is MISSING:
                del holder[path[-1]]
            else:
                holder[path[-1]] = new
            yield made


def paths(document: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = list(document) if isinstance(document, dict) else range(min(len(document), 2))
    for key in keys:
        yield (*above, key)
        if isinstance(document[key], (dict, list)):
            yield from paths(document[key], (*above, key))


@pytest.mark.parametrize("number", range(len(STUDY_OF)))
def test_a_damaged_study_is_refused(number: int) -> None:
    document = STUDY_OF[number](1.0).to_json()
    refused = 0
    for damaged in changed(document, number):
        try:
            study_from_json(damaged)
        except VeilError:
            refused += 1
    assert refused > 10


def test_a_design_without_a_kind_is_refused() -> None:
    document = STUDY_OF[-1](1.0).to_json()
    del document["design"]["kind"]
    with pytest.raises(VeilError):
        study_from_json(document)


@pytest.mark.parametrize("name", RESULTS)
def test_a_damaged_result_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "saved.result.json"
    save(RESULTS[name], path)
    document = json.loads(path.read_bytes())
    refused = 0
    for damaged in changed(document, 1, 3):
        path.write_text(json.dumps(damaged))
        try:
            load(path)
        except VeilError:
            refused += 1
    assert refused > 3
