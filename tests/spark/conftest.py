"""One session of Spark for all tests that need one; loudly skipped where there is no Java or no pyspark, not in CI."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from veil.engines.spark.session import check_installed, open_session
from veil.errors import EngineError


def _needed() -> None:
    try:
        check_installed()
    except EngineError as problem:
        if os.environ.get("CI"):
            pytest.fail(f"CI needs Spark: {problem}")
        pytest.skip(f"TESTS OF SPARK ARE SKIPPED: {problem}")


@pytest.fixture(scope="session")
def java() -> None:
    """Spark can run here."""
    _needed()


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[Any]:
    """A session with two cores."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own, when it is first imported
        session = open_session("spark-local", **{"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()
