"""How far marginals will be off, before anybody is asked: noise, and people who stand for all of them.

The prediction is of the unbiased estimates, each interaction averaged over the views that hold it. Tables that are then
made non-negative err less, most of all where noise is large. What is not predicted is the error of marginals that no
view holds whole, where interactions that nobody was asked about are missing: it depends on the data alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations

from veil.domain import Categories
from veil.errors import ParameterError
from veil.marginals.choosing import expected_cells, products
from veil.mechanisms import GRR
from veil.mechanisms.best_oracle import least_variance
from veil.privacy import check_epsilon
from veil.tools.numbers import is_int

__all__ = ["Predicted", "predicted_error", "predicted_fourier_error"]


@dataclass(frozen=True)
class Predicted:
    """The error of a marginal of k attributes, squared and added up over its cells; the mean over all of these."""

    noise: float
    """What the randomizers add."""
    sampling: float
    """What comes from asking each view of some people only, where cells are equally frequent; else it is smaller."""
    cells: float
    """The mean number of cells of such a marginal."""
    held: float
    """The share of these marginals that a view holds whole."""

    @property
    def sse(self) -> float:
        """Both errors together."""
        return self.noise + self.sampling

    @property
    def cell(self) -> float:
        """The error of one cell, as a standard error."""
        return math.sqrt(self.sse / self.cells)


def predicted_error(
    sizes: Sequence[int], sets: Sequence[Sequence[int]], epsilon: float, users: int, k: int, *, separate: bool = False
) -> Predicted:
    """What to expect of marginals of k attributes, with these views asked of equally many of the people each.

    An interaction S, of prod(d_i - 1) coefficients over its attributes, is averaged over the views V that hold it,
    weighted by a_V = n_V / (w_V L_V): n_V people, L_V cells, and w_V the variance that one person's report adds along
    any direction in which cells add up to 0. In a marginal of L cells it adds prod(d_i - 1) / L times 1 / sum a_V of
    noise, and 1 / N - 1 / n of sampling, where N = (sum a_V)^2 / sum(a_V^2 / n_V) of the n people told about it.

    With `separate`, every marginal is read from the views that hold it whole, as where views are not made to agree.

    >>> all_pairs = predicted_error((2, 2, 2), [(0, 1), (0, 2), (1, 2)], 1.0, 100_000, k=2)
    >>> round(all_pairs.noise, 6), round(all_pairs.sampling, 6), all_pairs.held
    (0.000151, 7e-06, 1.0)
    """
    m, epsilon = len(sizes), check_epsilon(epsilon)
    if not is_int(k) or not 1 <= k <= m or not is_int(users) or users < 1 or not len(sets):
        raise ParameterError("expected at least one view, one person, and marginals of 1 to all attributes")
    people = users / len(sets)
    weights: dict[tuple[int, ...], list[float]] = defaultdict(list)
    for view in sets:
        cells = math.prod(sizes[place] for place in view)
        weight = people / (_contrast_variance(epsilon, cells) * cells)
        for size in [k] if separate else range(1, k + 1):
            for some in combinations(sorted(view), size):
                weights[some].append(weight)

    @cache
    def around(others: tuple[int, ...], more: int) -> float:
        """The sum of 1 / cells of all sets of `more` of these attributes."""
        return products([1 / size for size in others], more)

    noise = sampling = 0.0
    held = [some for some in weights if len(some) == k]
    for some, each in weights.items():
        cells = math.prod(sizes[place] for place in some)
        total = sum(each)
        asked = people * total**2 / sum(weight**2 for weight in each)
        if separate:  # all interactions of the marginal at once
            factor = (cells - 1) / cells
        else:
            others = tuple(sorted(sizes[place] for place in range(m) if place not in some))
            factor = math.prod(sizes[place] - 1 for place in some) / cells * around(others, k - len(some))
        noise += factor / total
        sampling += factor * (1 / asked - 1 / users)
    every = len(held) if separate else math.comb(m, k)
    if not every:
        raise ParameterError("no view holds a marginal of so many attributes")
    return Predicted(noise / every, max(sampling, 0.0) / every, expected_cells(sizes, k), len(held) / math.comb(m, k))


def predicted_fourier_error(sizes: Sequence[int], epsilon: float, users: int, k: int) -> Predicted:
    """The same where each person reports one Fourier coefficient of a set of bits that touches at most k attributes.

    Of C coefficients each is told by n / C people, who report -1 or 1 by randomized response: its variance is
    sigma^2 = C / n / (p - q)^2. A marginal of L cells, whose attributes have b bits, is the transform of 2^b of them,
    cut to its cells: it errs by sigma^2 (L - 1) / 2^b.

    >>> round(predicted_fourier_error((2,) * 8, 1.0, 100_000, k=3).sse, 6)
    0.003761
    """
    bits = [(size - 1).bit_length() for size in sizes]
    coefficients = sum(products([2**width - 1 for width in bits], some) for some in range(1, k + 1))
    response = GRR(check_epsilon(epsilon), 2)
    every = math.comb(len(sizes), k)
    filled = products([size / 2**width for size, width in zip(sizes, bits, strict=True)], k) / every
    factor = (filled - products([1 / 2**width for width in bits], k) / every) * coefficients / users
    spread = 1 / float(response.p - response.q) ** 2 - 1
    return Predicted(factor * spread, factor * (1 - 1 / coefficients), expected_cells(sizes, k), 1.0)


@lru_cache(maxsize=1024)
def _contrast_variance(epsilon: float, cells: int) -> float:
    """The variance that one report adds along a direction of length 1 whose cells add up to 0, cells equally frequent.

    Held value x, direction h: Var(sum h_v s_v) is q - miss, and h_x^2 times what the held value adds; h_x^2 is
    1 / cells on average. Oracles whose estimates add up to 1 have more noise along these directions than in a cell.
    """
    noise = least_variance(epsilon, Categories.range(cells)).noise
    p, q, hit, miss = (float(chance) for chance in (noise.p, noise.q, noise.hit, noise.miss))
    by_held = p * (1 - p) - q * (1 - q) - 2 * (hit - p * q) + 2 * (miss - q * q)
    return (q - miss + by_held / cells) / (p - q) ** 2
