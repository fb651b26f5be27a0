"""Fixtures of the tests of datasets."""

from __future__ import annotations

import pytest


@pytest.fixture
def no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset VEIL_DATA, so that loaders make synthetic data."""
    monkeypatch.delenv("VEIL_DATA", raising=False)
