"""The compiled loops. Nothing outside this package imports numba.

Kernels take plain arrays and decided draws, never a Source. They release the GIL, so `parallel.sum_over_threads`
spreads people over cores; their sums are integers, so the result does not depend on how. Compiled code is cached beside
the source, in the user's cache folder where that is not writable (numba's own rule; NUMBA_CACHE_DIR overrides both), in
the folder given to `keep_compiled_in`, or in memory: see `compiling`.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["folder_of_compiled", "keep_compiled_in"]

_folder: Path | None = None


def keep_compiled_in(folder: Path | None) -> None:
    """Where to keep compiled code if neither the package nor the user's cache folder can be written to.

    Only for a folder that nobody else can write to: what is kept there is run. Kernels that are imported later use it.
    """
    global _folder
    _folder = folder


def folder_of_compiled() -> Path | None:
    """What was given to `keep_compiled_in`."""
    return _folder
