"""Every package and single module of veil has tests of its own, or a line here says where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "src" / "veil"
ELSEWHERE = {
    "__init__": "tests/unit/project/test_api.py",
    "__main__": "tests/e2e/test_cli_start.py",
    "checks": "tests/exact/mechanisms",
    "cli": "tests/e2e",
    "collector": "tests/service",
    "comparison": "tests/e2e/test_cli_studies.py",
    "entropy": "tests/unit/test_entropy_processes.py",
    "errors": "tests/e2e/test_cli.py",
    "histogram": "tests/unit/study/test_studies.py",
    "simulation": "tests/unit/hitters/test_searches.py",
    "version": "tests/e2e/test_package.py",
}


def subjects() -> list[str]:
    """Return the packages and single modules of veil."""
    packages = {path.parent.name for path in SOURCES.glob("*/__init__.py")}
    return sorted(packages | {path.stem for path in SOURCES.glob("*.py")})


@pytest.mark.parametrize("subject", subjects())
def test_a_subject_has_tests(subject: str) -> None:
    places = [ROOT / "tests/unit" / subject, ROOT / "tests/unit" / f"test_{subject}.py"]
    if subject in ELSEWHERE:
        places = [ROOT / ELSEWHERE[subject]]
    found = [path for place in places for path in ([place] if place.is_file() else place.rglob("test_*.py"))]
    assert any("def test_" in path.read_text(encoding="utf-8") for path in found)


def test_the_list_has_subjects_only() -> None:
    assert set(ELSEWHERE) <= set(subjects())
