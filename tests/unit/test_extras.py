"""How to install an extra: from where veil came, so that nobody else's package of that name is meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from veil.tools import extras


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    extras._source.cache_clear()
    yield
    extras._source.cache_clear()


def came(monkeypatch: pytest.MonkeyPatch, origin: Any) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            return None if origin is None else json.dumps(origin)

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())


@pytest.mark.parametrize(("editable", "said"), [(True, "-e "), (False, "")])
def test_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, editable: bool, said: str) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    came(monkeypatch, {"url": clone.as_uri(), "dir_info": {"editable": editable}})
    assert extras.install("plot") == f"pip install {said}'{clone}[plot]'"


@pytest.mark.parametrize("origin", [None, {"url": "https://an.index/veil.whl"}, {"url": "file:///no/such/folder"}])
def test_by_its_name(monkeypatch: pytest.MonkeyPatch, origin: Any) -> None:
    came(monkeypatch, origin)
    assert extras.install("plot") == "pip install 'veil[plot]'"


def test_where_nothing_was_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert extras.install("plot") == "pip install 'veil[plot]'"
