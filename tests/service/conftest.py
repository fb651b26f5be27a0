"""PostgreSQL for the tests that need it: skipped loudly where it is missing, an error where CI=true."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.service.postgres import Server, binaries, server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    if binaries() is None:
        message = "PostgreSQL is not installed (Debian: apt-get install postgresql): its store was NOT tested"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with server() as one:
        yield one
