"""How incomes are distributed, from people who never tell theirs: truth, estimates and bands in one picture.

Read it from top to bottom like a notebook, or run it:

    python examples/income_distribution.py --out income.svg

It needs veil-ldp[plot]. The incomes are those of `veil_papers.datasets.income`: a census histogram if VEIL_DATA names
the folder with it, else made-up numbers, log-normal with spikes at round numbers.
"""

# %% What we want to know, and from whom
from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from rich.console import Console
from rich.table import Table

import veil
from veil.metrics import ks, wasserstein
from veil.numeric import Hierarchy, assumed_bands
from veil.results.distribution import Distribution
from veil_papers.datasets import income

options = argparse.ArgumentParser(description="Estimate an income distribution under local differential privacy.")
options.add_argument("--out", type=Path, default=Path("income.svg"), help="the picture")
options.add_argument("--people", type=int, default=500_000)
options.add_argument("--epsilon", type=float, default=2.0)
options.add_argument("--replicates", type=int, default=50, help="simulated collections for the bands")
chosen = options.parse_args()

data = income(bins=512)
held = data.spread(chosen.people)  # what every person holds, in dollars
domain = veil.Interval(data.lo, data.hi)
buckets = 512
truth = data.histogram(buckets)

# %% On the devices: each randomizes its own number. Square Wave for the shape, a hierarchy for what is spiky.
wave = veil.SquareWave(chosen.epsilon, domain, buckets)
reports = wave.randomize(held)  # four bytes per person
print(f"every report keeps a ratio of e^{wave.guarantee.epsilon:g} at most, in {wave.layout.size} bytes")

# %% At the collector: integers in, a distribution out
tally = wave.tally(reports)
smooth = wave.estimate(tally)  # EMS
spiky = wave.estimate(tally, smoothing="auto")  # EMS with spikes, if held-out reports speak for them
tree = veil.simulate(Hierarchy(chosen.epsilon, domain, buckets), held)  # asked of other people, in practice
bands = assumed_bands(wave, tally, smooth, replicates=chosen.replicates)  # incomes are rough: wide, and they hold


# %% What it says, in dollars
known = Distribution(smooth.domain, smooth.cells, truth, n=chosen.people, population=chosen.people)
results = {
    "truth": known,
    "Square Wave, EMS": smooth,
    f"Square Wave, {spiky.lineage[-1]}": spiky,
    "HH-ADMM": tree,
}
table = Table("method", "median", "middle half", "20,000 to 60,000", "Wasserstein", "KS")
for name, found in results.items():
    low, middle, high = found.quantile([0.25, 0.5, 0.75])
    errors = wasserstein(found.masses, truth, length=1.0), ks(found.masses, truth)
    answers = (f"{middle:,.0f}", f"{low:,.0f} to {high:,.0f}", f"{found.range(20_000, 60_000):.1%}")
    table.add_row(name, *answers, *(f"{error:.5f}" for error in errors))
Console(width=120).print(table)
for name, value, (low, high) in (
    ("median", smooth.quantile(0.5), bands.quantile(0.5)),
    ("mean", smooth.mean(), bands.mean()),
):
    print(f"{name} by EMS {value:,.0f}, 95 % band {low:,.0f} to {high:,.0f}")

# %% And in one picture: how many people in each bucket, and how many below
colors = {"Square Wave, EMS": "#1f6feb", f"Square Wave, {spiky.lineage[-1]}": "#b8860b", "HH-ADMM": "#2a9d5c"}
figure, (above, center, below) = plt.subplots(3, 1, figsize=(10, 11), layout="constrained", sharex=True)
with_bands = replace(smooth, bands=bands)
with_bands.plot(truth=truth, ax=above, label="Square Wave, EMS", color=colors["Square Wave, EMS"])
spiky.plot(truth=truth, ax=center, label=list(colors)[1], color=list(colors.values())[1])
tree.plot(ax=center, label="HH-ADMM", color=colors["HH-ADMM"])
for panel in (above, center):
    panel.set_ylim(0, 3)  # the first bucket, people without an income, is far higher
above.set_title(f"{chosen.people:,} people, eps = {chosen.epsilon:g}, {buckets} buckets", loc="left")
points = smooth.edges
below.plot(points, known.cdf(points), lw=1.2, color="#d1495b", label="truth")
below.fill_between(points, *bands.cdf(points), alpha=0.25, lw=0, color="#1f6feb", label="95 % band")
for name, color in colors.items():
    below.plot(points, results[name].cdf(points), lw=1, color=color, label=name)
below.set_xlim(data.lo, smooth.quantile(0.97))
below.set_xlabel(data.unit)
below.set_ylabel("people at or below")
below.legend(frameon=False, fontsize=8)
below.grid(lw=0.4, alpha=0.6)
figure.savefig(chosen.out)
print(f"wrote {chosen.out}")
