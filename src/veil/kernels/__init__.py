"""Compiled loops. Only this package imports numba.

    counting          support of candidates, bits that are set, and sets contained in sets
    hashing           the local hash, linear hashing, and their support matrices
    geometry          points of projective spaces (PGR)
    transforms        Walsh-Hadamard transform and Helmert contrasts
    waves             EM for Square Wave
    trees             least squares and sums of squares over trees
    tails             tails of binomial sums and of the hypergeometric distribution
    normal_mixtures   likelihoods and posteriors of learned priors
    ipf, synthesis    tables from their marginals, and synthetic people from tables
    exact_sums        sums of products in 128 and 256 bits
    draws             random integers, coins and subsets from random words
    parallel          threads, and the choice of a counting device
    compiling         the decorator `compiled` and its cache

Kernels take plain arrays and drawn random words, never a Source. They release the GIL, so that
`parallel.sum_over_threads` spreads people over cores. Their sums are integers, so the split does not change them.
Compiled code is cached beside the source; in the user's cache folder if that is not writable (numba's own rule,
overridden by NUMBA_CACHE_DIR); in the folder given to `keep_compiled_in`; or else in memory.
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
