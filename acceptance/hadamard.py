"""How fast is the Walsh-Hadamard transform, as a multiple of numpy's FFT of the same length?"""

from __future__ import annotations

import numpy as np
from bench.timing import Contestant, best_times, local


def transform_over_fft(size: int = 1 << 20, repeats: int = 100) -> float:
    """Time of our transform over that of numpy.fft.fft, best of interleaved repeats, both from fresh inputs."""
    from veil.kernels.transforms import transform

    integers = np.random.default_rng(1).integers(-1000, 1000, size)
    numbers = integers.astype(np.complex128)
    scratch = integers.copy()

    def fresh() -> float:
        np.copyto(scratch, integers)
        return local(lambda: transform(scratch), 1).run()

    (ours, bare), _ = best_times((Contestant(fresh, 1), local(lambda: np.fft.fft(numbers), 1)), repeats)
    return ours / bare
