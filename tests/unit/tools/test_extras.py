"""How to install an extra: from where veil came, so that nobody else's package of that name is meant."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from veil.collector.problems import as_service_error
from veil.errors import InputError
from veil.tools import messages as extras


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    extras._origin.cache_clear()
    yield
    extras._origin.cache_clear()


def came(monkeypatch: pytest.MonkeyPatch, origin: Any) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            return None if origin is None else json.dumps(origin)

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())


@pytest.mark.parametrize(("editable", "said"), [(True, "-e "), (False, "")])
def test_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, editable: bool, said: str) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()
    came(monkeypatch, {"url": clone.as_uri(), "dir_info": {"editable": editable}})
    assert extras.install_command("plot") == f"pip install {said}'{clone}[plot]'"


def test_from_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "ann's veil-1.whl"
    wheel.touch()
    came(monkeypatch, {"url": wheel.as_uri(), "archive_info": {}})
    command = shlex.split(extras.install_command("plot"))
    assert command == ["pip", "install", f"{wheel}[plot]"]


def test_from_a_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    came(monkeypatch, {"url": "https://veil.example/veil.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}})
    assert extras.install_command("plot") == "pip install 'veil-ldp[plot] @ git+https://veil.example/veil.git'"


@pytest.mark.parametrize("origin", [None, {"url": "https://an.index/veil.whl"}, {"url": "file:///no/such/folder"}])
def test_by_its_name(monkeypatch: pytest.MonkeyPatch, origin: Any) -> None:
    came(monkeypatch, origin)
    assert extras.install_command("plot") == "pip install 'veil-ldp[plot]'"


def test_where_nothing_was_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert extras.install_command("plot") == "pip install 'veil-ldp[plot]'"


def test_analysts_are_not_told_where_a_collector_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    came(monkeypatch, {"url": tmp_path.as_uri(), "dir_info": {}})
    problem = extras.missing_extra("queries need sqlglot and duckdb", "sql")
    assert isinstance(problem, InputError)
    assert str(tmp_path) in str(problem)  # as operators are
    told = as_service_error(problem)
    assert (told.status, str(tmp_path) in str(told), "tell its operator" in str(told)) == (503, False, True)
