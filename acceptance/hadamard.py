"""How fast is the Walsh-Hadamard transform, as a multiple of numpy's FFT of the same length?"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

__all__ = ["transform_over_fft"]


def transform_over_fft(size: int = 1 << 20, repeats: int = 100) -> float:
    """Time of our transform over that of numpy.fft.fft, best of interleaved repeats, both from fresh inputs."""
    from veil.kernels.hadamard import transform

    integers = np.random.default_rng(1).integers(-1000, 1000, size)
    numbers = integers.astype(np.complex128)
    scratch = integers.copy()
    transform(scratch)  # compiled now, not while it is timed
    best_transform = best_fft = np.inf
    for _ in range(repeats):
        np.copyto(scratch, integers)
        best_transform = min(best_transform, _seconds(lambda: transform(scratch)))
        best_fft = min(best_fft, _seconds(lambda: np.fft.fft(numbers)))
    return best_transform / best_fft


def _seconds(run: Callable[[], object]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start
