"""Tables of kinds: each names every class of its family, and reading a document imports only the module of its kind."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.unit.study.test_studies import EVERY

import veil
from veil.errors import WireError
from veil.results.bands.base import BANDS, Bands
from veil.results.base import KINDS, VARIANTS, Result
from veil.results.mean import Mean
from veil.study import STUDIES, Study, study_from_json
from veil.tools.json_documents import Kinds

SOURCE = Path(veil.__file__).parent
STATED = re.compile(r"^    (kind|variant)\b.*= \"", re.MULTILINE)

READ_EACH = """
import json, os, sys
from veil.study import study_from_json
for document in json.load(sys.stdin):
    if not os.fork():
        kind = study_from_json(document).kind
        print(json.dumps([kind, [name for name in sys.modules if name.startswith("veil.")]]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


def classes(base: type[Any]) -> Iterator[type[Any]]:
    """Yield the concrete classes of veil below `base`, once every module that states a kind is imported."""
    for kind in base.__subclasses__():
        if kind.__module__.startswith("veil.") and not inspect.isabstract(kind):
            yield kind
        yield from classes(kind)


def place(kind: type[Any]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


@pytest.fixture(scope="module", autouse=True)
def _everything_imported() -> None:
    for path in SOURCE.rglob("*.py"):
        if STATED.search(path.read_text()):
            import_module(".".join(("veil", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"))


def test_studies_are_the_classes_that_exist() -> None:
    assert {kind.kind: place(kind) for kind in classes(Study)} == STUDIES.places
    assert len(list(classes(Study))) == len(STUDIES.places)


def test_results_are_the_classes_that_exist() -> None:
    stated = [kind for kind in classes(Result) if {"kind", "variant"} & set(vars(kind))]
    assert {kind.kind: place(kind) for kind in stated if not kind.variant} == KINDS.places
    assert {kind.variant: place(kind) for kind in stated if kind.variant} == VARIANTS.places
    assert len(stated) == len(KINDS.places) + len(VARIANTS.places)


def test_bands_are_the_classes_that_exist() -> None:
    assert {kind.kind: place(kind) for kind in classes(Bands)} == BANDS.places


def test_reading_a_study_imports_its_package_only() -> None:
    package_of = {kind: place.partition(":")[0].split(".")[1] for kind, place in STUDIES.places.items()}
    packages = set(package_of.values())
    examples = list({package_of[study.kind]: study for study in EVERY}.values())
    assert len(examples) == len(packages) == 6
    files = json.dumps([study.to_bytes().decode() for study in examples])
    output = subprocess.run([sys.executable, "-c", READ_EACH], input=files, capture_output=True, text=True, check=True)
    for line in output.stdout.splitlines():
        kind, modules = json.loads(line)
        own, module = package_of[kind], STUDIES.places[kind].split(":")[0]
        further = {"marginals"} if own == "sql" else set()  # a table reads marginals with the methods of CALM
        assert module in modules
        assert {name.split(".")[1] for name in modules} & packages == {own, *further}, kind
    assert len(output.stdout.splitlines()) == 6


def test_registered_kind_is_added_with_its_class() -> None:
    kinds: Kinds[Any] = Kinds({"mean": "veil.results.mean:Mean"})
    kinds["own"] = dict
    assert list(kinds) == ["mean", "own"]
    assert kinds["own"] is dict
    assert kinds["mean"] is Mean
    with pytest.raises(KeyError):
        kinds["median"]


@pytest.mark.parametrize("kind", ["median", None, ["mean"]])
def test_an_unknown_kind_is_refused_with_those_that_exist(kind: Any) -> None:
    document = json.loads(EVERY[0].to_bytes())
    document["study"]["kind"] = kind
    with pytest.raises(WireError, match="expected a study: one of questions, histogram"):
        study_from_json(document)
