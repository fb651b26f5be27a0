"""Mixtures of normal distributions over sorted atoms: likelihoods, posteriors, and the sums for learning a prior.

An observation depends on the atoms near it only, so each row holds a window of them: row i starts at atom first[i].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

F8 = np.float64


@compiled()
def likelihoods(
    observed: NDArray[F8], atoms: NDArray[F8], sd: NDArray[F8], first: NDArray[np.int64], last: NDArray[np.int64]
) -> tuple[NDArray[F8], NDArray[F8]]:
    """Normal densities of each observation at atoms first..last-1, over the largest of them; and its logarithm."""
    width = 1
    for i in range(len(observed)):
        width = max(width, last[i] - first[i])
    rows = np.zeros((len(observed), width), F8)
    peaks = np.empty(len(observed), F8)
    for i in range(len(observed)):
        peak = -math.inf
        for j in range(first[i], last[i]):
            z = (observed[i] - atoms[j]) / sd[j]
            rows[i, j - first[i]] = -0.5 * z * z - math.log(sd[j])
            peak = max(peak, rows[i, j - first[i]])
        for j in range(last[i] - first[i]):
            rows[i, j] = math.exp(rows[i, j] - peak)
        peaks[i] = peak
    return rows, peaks


@compiled()
def posteriors(
    observed: NDArray[F8],
    atoms: NDArray[F8],
    log_mass: NDArray[F8],
    sd: NDArray[F8],
    widths: NDArray[F8],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    cut: float,
) -> NDArray[F8]:
    """For each observation: posterior mean, variance, probability of lying above `cut`, and log evidence.

    An atom with a width stands for a normal distribution around it, in the variance and the probability.
    """
    out = np.empty((4, len(observed)), F8)
    for i in range(len(observed)):
        peak = -math.inf
        for j in range(first[i], last[i]):
            z = (observed[i] - atoms[j]) / sd[j]
            peak = max(peak, log_mass[j] - 0.5 * z * z - math.log(sd[j]))
        total = mean = square = above = 0.0
        for j in range(first[i], last[i]):
            z = (observed[i] - atoms[j]) / sd[j]
            weight = math.exp(log_mass[j] - 0.5 * z * z - math.log(sd[j]) - peak)
            step = atoms[j] - observed[i]  # moments about the observation: no cancellation
            total += weight
            mean += weight * step
            square += weight * (step * step + widths[j] * widths[j])
            if widths[j] > 0.0:
                above += weight * 0.5 * math.erfc((cut - atoms[j]) / widths[j] * math.sqrt(0.5))
            elif atoms[j] > cut:
                above += weight
        mean /= total
        out[0, i] = observed[i] + mean
        out[1, i] = max(square / total - mean * mean, 0.0)
        out[2, i] = above / total
        out[3, i] = peak + math.log(total)
    return out


@compiled()
def mixtures(rows: NDArray[F8], first: NDArray[np.int64], weights: NDArray[F8]) -> NDArray[F8]:
    """Each observation's likelihood under weighted atoms."""
    out = np.zeros(len(rows), F8)
    for i in range(len(rows)):
        total = 0.0
        for j in range(min(rows.shape[1], len(weights) - first[i])):
            total += rows[i, j] * weights[first[i] + j]
        out[i] = total
    return out


@compiled()
def scores(rows: NDArray[F8], first: NDArray[np.int64], shares: NDArray[F8], atoms: int) -> NDArray[F8]:
    """Each atom's likelihood summed over observations with these shares."""
    out = np.zeros(atoms, F8)
    for i in range(len(rows)):
        for j in range(min(rows.shape[1], atoms - first[i])):
            out[first[i] + j] += rows[i, j] * shares[i]
    return out


@compiled()
def gram(rows: NDArray[F8], first: NDArray[np.int64], shares: NDArray[F8], atoms: int) -> NDArray[F8]:
    """The matrix of products of atoms, summed over observations: from the diagonal on, out[j, k - j]."""
    width = rows.shape[1]
    out = np.zeros((atoms, width), F8)
    for i in range(len(rows)):
        inside = min(width, atoms - first[i])
        for j in range(inside):
            left = rows[i, j] * shares[i]
            if left == 0.0:
                continue
            for k in range(j, inside):
                out[first[i] + j, k - j] += left * rows[i, k]
    return out


@compiled()
def factor(band: NDArray[F8]) -> NDArray[F8]:
    """Cholesky's factor of a positive definite band, in place, in the form that `gram` gives.

    LAPACK's would do as well, but its threads stand in each other's way where other work goes on.
    """
    size, width = band.shape
    for j in range(size):
        reach = min(width, size - j)
        pivot = math.sqrt(max(band[j, 0], 1e-300))
        band[j, 0] = pivot
        for k in range(1, reach):
            band[j, k] /= pivot
        for k in range(1, reach):
            left = band[j, k]
            if left != 0.0:
                for i in range(k, reach):
                    band[j + k, i - k] -= left * band[j, i]
    return band


@compiled()
def solve(factored: NDArray[F8], right: NDArray[F8]) -> NDArray[F8]:
    """Solve with a band's factor."""
    size, width = factored.shape
    out = right.copy()
    for j in range(size):
        out[j] /= factored[j, 0]
        for k in range(1, min(width, size - j)):
            out[j + k] -= factored[j, k] * out[j]
    for j in range(size - 1, -1, -1):
        total = out[j]
        for k in range(1, min(width, size - j)):
            total -= factored[j, k] * out[j + k]
        out[j] = total / factored[j, 0]
    return out
