"""Compilation of loops, and the cache of compiled code.

numba stores compiled code beside the source or in the user's cache folder, and raises an error if neither can be
written to, as for a service without a home on a read-only system. Then the folder given to
`veil.kernels.keep_compiled_in` is used; without one, each process compiles for itself. A truncated cache file or a full
disk costs the time to compile again, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core.caching import FunctionCache

from veil import kernels

F = TypeVar("F", bound=Callable[..., Any])
_CONFIG: Any = numba.config  # its names are made when it is read


def compiled(**options: Any) -> Callable[[F], F]:
    """A decorator like `numba.njit` that releases the interpreter's lock and keeps what it compiled, if it can."""

    def decorate(function: F) -> F:
        kernel = numba.njit(nogil=True, **options)(function)
        cache = _cache_of(function)
        if cache is not None:
            kernel._cache = cache  # what numba's own `cache=True` does, with a cache that does not stop at an error
        return kernel

    return decorate


class _Forgiving(FunctionCache):
    """numba's cache, for which an unreadable file is as good as none, and a failed write no reason to stop."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever a damaged file makes of it
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:  # a full disk; or an index that cannot be read, which is where writing begins
            return


def _cache_of(function: Callable[..., Any]) -> _Forgiving | None:
    try:
        return _Forgiving(function)
    except RuntimeError:  # "no locator available": nothing that numba knows can be written to
        folder = kernels.folder_of_compiled()
        if folder is None or _CONFIG.CACHE_DIR:
            return None
    try:
        _CONFIG.CACHE_DIR = str(folder)
        return _Forgiving(function)
    except RuntimeError:
        return None
    finally:
        _CONFIG.CACHE_DIR = ""
