"""How attributes of people go together, from people who never tell them: tables, a correlation, made-up people.

Read it from top to bottom like a notebook, or run it:

    python examples/joint_distribution.py --out people.svg

It needs veil-ldp[plot]. The people are made up below: older people smoke more, and who works at night sleeps less.
"""

# %% What we want to know, and from whom
from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table

import veil
from veil.marginals import CALM
from veil.marginals.known import KnownJoint
from veil.results.render.terminal import render

options = argparse.ArgumentParser(description="Learn how attributes go together under local differential privacy.")
options.add_argument("--out", type=Path, default=Path("people.svg"), help="the picture")
options.add_argument("--people", type=int, default=500_000)
options.add_argument("--epsilon", type=float, default=2.0)
options.add_argument("--seed", type=int, default=0, help="for repeatable reports: for examples and tests only")
chosen = options.parse_args()
screen = Console(width=100)

person = veil.Record.of(
    age=["18-29", "30-44", "45-64", "65+"],
    sex=["f", "m"],
    smokes=["no", "yes"],
    shift=["day", "evening", "night"],
    sleep=veil.Integers(4, 9),  # hours
    region=["north", "east", "south", "west"],
)

# %% People as they really are: nobody but this example ever sees them
draw = np.random.default_rng(1)
age = draw.choice(4, chosen.people, p=[0.2, 0.3, 0.3, 0.2])
shift = np.where(age == 3, 0, draw.choice(3, chosen.people, p=[0.6, 0.25, 0.15]))  # the oldest have retired
held = np.stack(
    [
        age,
        draw.integers(0, 2, chosen.people),
        draw.random(chosen.people) < 0.1 + 0.1 * age,
        shift,
        np.clip(np.round(draw.normal(3.5 - 0.9 * shift, 0.9)), 0, 5),
        draw.choice(4, chosen.people, p=[0.4, 0.3, 0.2, 0.1]),
    ],
    axis=1,
).astype(np.uint64)
truth = KnownJoint.of(person, held)

# %% The plan: a few views, sets of attributes that are asked for together; each person answers one of them
study = CALM(chosen.epsilon, person, k=3, users=chosen.people)
print(f"{len(study.family)} views, such as {', '.join(study.family.question(0).view.attributes)};", end=" ")
print(f"every report keeps a ratio of e^{study.guarantee.epsilon:g}, in {study.survey.layout.size} bytes")

# %% The whole way: every device draws its view and randomizes its answer, the collector counts and reads
people = {name: part.decode(held[:, place]) for place, (name, part) in enumerate(person.attributes)}
found = veil.simulate(study, people, seed=chosen.seed)
pair = found.marginal(["age", "smokes"])
screen.print(render(pair, title="age and smoking", truth=truth.marginal(["age", "smokes"]).frequencies))

# %% Shares within groups, and how strongly two attributes go together
screen.print(render(found.conditional(["smokes"], given=["age"]), title="smoking within each age"))
for first, second in (("shift", "sleep"), ("age", "smokes"), ("sex", "region")):
    tie = found.correlation(first, second)
    verdict = "they go together" if tie.p_value < 0.05 else "nothing speaks for a tie"
    print(f"{first} and {second}: {tie.value:.2f} ({tie.low:.2f} to {tie.high:.2f}, 95 %): {verdict}")

# %% Made-up people: rows for software that wants rows, with the same labels and about the same tables
made = found.synthesize(chosen.people, seed=chosen.seed)
copied = KnownJoint.of(person, person.encode(made))
table = Table("table of", "error of the estimate", "error of made-up people", title="root of summed squares, in %")
for names in (["age", "smokes"], ["shift", "sleep"], ["age", "shift", "sleep"]):
    errors = [100 * truth.sse(joint.marginal(names), len(names)) ** 0.5 for joint in (found, copied)]
    table.add_row(", ".join(names), *(f"{error:.2f}" for error in errors))
screen.print(table)
print(f"made up {made.num_rows:,} people; the first: {made.slice(0, 1).to_pylist()[0]}")

# %% And in one picture: what is true, what was learnt, and what the made-up people show
figure, panels = plt.subplots(3, 1, figsize=(8, 9), layout="constrained")
for panel, (title, joint) in zip(panels, {"truth": truth, "CALM": found, "made up": copied}.items(), strict=True):
    joint.plot(["shift", "sleep"], ax=panel)
    panel.set_title(f"{title}: shift and hours of sleep, {chosen.people:,} people", loc="left")
figure.savefig(chosen.out)
print(f"wrote {chosen.out}")
