"""The public API: pinned names, light imports, a conformance suite for registered mechanisms, and a page for each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import veil
from veil import checks

ROOT = Path(__file__).resolve().parents[3]

PUBLIC = {
    "Rappor",
    "PGR",
    "HadamardResponse", "HaarResponse", "SHE",
    "BLH", "LinearHashing", "RandomProjection", "SUE", "THE", "hitters",
    "GRR", "MECHANISMS", "OLH", "OUE", "AllOf", "Bits", "Categories", "Client", "Collection", "EachOf",
    "Estimate", "TallyCollection", "OneRound", "STUDIES", "Study", "StudyRun",
    "study_from_json", "histogram",
    "Guarantee", "Integers", "Interval", "Items", "Ledger", "OneOf", "Public", "Question", "Record", "Round",
    "SquareWave", "StochasticRounding", "Piecewise", "itemsets", "marginals",
    "SubsetSelection", "Survey", "Tally", "Text", "VeilError", "choose", "merge", "metrics", "numeric", "post",
    "simulate", "sql",
}  # fmt: skip


def test_public_names_are_pinned() -> None:
    assert set(veil.__all__) == PUBLIC
    for name in veil.__all__:
        assert getattr(veil, name) is not None
    with pytest.raises(AttributeError):
        _ = veil.nothing
    assert set(veil.__all__) <= set(dir(veil))


def test_public_names_stay_callable_in_any_import_order() -> None:
    code = "import veil.simulation, veil.planning, veil.reports.tally, veil; assert callable(veil.simulate); veil.merge"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("kind", "name", "rule"),
    [(kind, name, rule) for kind in veil.MECHANISMS.values() for name, rule in checks.yield_checks(kind)],
    ids=lambda part: part.__name__ if isinstance(part, type) else str(part) if isinstance(part, str) else "",
)
def test_every_registered_mechanism_conforms(kind: type[object], name: str, rule: object) -> None:
    rule()  # type: ignore[operator]


@pytest.mark.parametrize("name", list(veil.MECHANISMS))
def test_every_mechanism_has_vectors_a_page_and_a_changelog_entry(name: str) -> None:
    kind = veil.MECHANISMS[name]
    module = Path(sys.modules[kind.__module__].__file__ or "")
    assert module.is_relative_to(Path(veil.__file__).parent / "mechanisms")
    slug = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
    assert (ROOT / "vectors" / f"{slug}.json").exists()
    page = ROOT / "docs" / "mechanisms" / f"{slug}.md"
    assert page.exists()
    assert "Guarantee" in page.read_text()
    assert name in (ROOT / "CHANGELOG.md").read_text()


def test_importing_veil_is_light() -> None:
    code = "import veil, veil.cli.main, sys; print(*(m for m in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"numpy", "numba", "pyarrow", "scipy", "matplotlib", "cryptography"} & set(loaded)


def test_compiled_kernels_fall_back_to_the_users_cache(tmp_path: Path) -> None:
    """Where the package cannot be written to, numba's cache goes to the user's cache folder."""
    package = tmp_path / "site" / "veil"
    shutil.copytree(ROOT / "src" / "veil", package, ignore=shutil.ignore_patterns("__pycache__"))
    kernels = package / "kernels"
    (kernels / "__pycache__").write_text("a file where the folder would be: not even root can write into it")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment |= {"HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)
    code = (
        "import numpy as np; from veil.kernels.hashing import splitmix64_each\n"
        "print(splitmix64_each(np.arange(1, dtype=np.uint64))[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 0xE220A8397B1DCDAF  # splitmix64(0)
    assert list((tmp_path / "cache").rglob("*.nbi"))
