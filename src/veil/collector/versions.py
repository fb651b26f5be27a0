"""The versions of uvicorn that the collector's edge is tested with.

`edge.Connection` extends uvicorn's protocol class and `ingest.Taken` takes the place of its request, neither of which
uvicorn promises to keep. So an untested version is refused at the start, before anything of it is imported.
`tests/service/test_versions.py` compares the bounds with `pyproject.toml`, and its acceptance test runs both ends.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from veil.errors import ExtraError
from veil.tools.messages import missing_extra

__all__ = ["FIRST", "NEXT", "check_uvicorn"]

FIRST, NEXT = (0, 30), (0, 55)
"""The first tested minor version, and the first one that is not tested."""


def check_uvicorn(found: str | None = None) -> None:
    """Raise `ExtraError` unless uvicorn is of a tested version; `found` is the installed one unless it is given.

    >>> check_uvicorn("0.30.0")
    >>> check_uvicorn("0.55.0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    veil.errors.ExtraError: uvicorn: expected version 0.30 or later and before 0.55, got 0.55.0: pip install ...
    """
    if found is None:
        found = _installed()
    parts = found.split(".")
    tested = all(part.isdecimal() for part in parts[:2]) and FIRST <= tuple(int(part) for part in parts[:2]) < NEXT
    if not tested:
        bounds = "expected version {}.{} or later and before {}.{}".format(*FIRST, *NEXT)
        raise missing_extra(f"uvicorn: {bounds}, got {found}", "collector")


def _installed() -> str:
    try:
        return version("uvicorn")
    except PackageNotFoundError:
        raise ExtraError("uvicorn: expected an installed package with a version, got one without") from None
