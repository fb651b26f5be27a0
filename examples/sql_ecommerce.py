"""A shop that never learns who bought what, and asks in SQL: postage and sales by region, category and price.

Read it from top to bottom like a notebook, or run it:

    python examples/sql_ecommerce.py --out shop.svg

It needs veil-ldp[sql] and veil-ldp[plot]. With the data folder (VEIL_DATA) the order lines are those of UCI Online
Retail, as in the case study of chapter 7 of Wang's thesis; without it they are made up. Region, category and price are
private: they leave a device as a report with noise. Postage, quantity and the day are known to the shop anyway.
"""

# %% What we want to know, and from whom
from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

import veil.sql
from veil.entropy import SeededForExperiments
from veil_papers.datasets import online_retail

options = argparse.ArgumentParser(description="Ask a shop's private data in SQL, under local differential privacy.")
options.add_argument("--out", type=Path, default=Path("shop.svg"), help="the picture")
options.add_argument("--folder", type=Path, help="where the table is made (default: a temporary folder)")
options.add_argument("--people", type=int, default=1_000_000, help="order lines, each of another person")
options.add_argument("--epsilon", type=float, default=2.0)
options.add_argument("--seed", type=int, default=0, help="for repeatable reports: for examples and tests only")
chosen = options.parse_args()
screen = Console(width=110)

# %% People as they really are: nobody but this example ever sees their private columns together with the public ones
lines = online_retail().resample(chosen.people, seed=1)
print(f"{lines.people:,} order lines: {lines.origin}")

# %% The plan: which design errs least for such dimensions and so many people?
private = lines.private.domain
ranked = veil.sql.choose_design(private, chosen.epsilon, chosen.people)
compared = Table("design", *next(iter(ranked)).errors, title="predicted standard errors of counts, in % of all people")
for one in ranked[:4]:
    compared.add_row(one.name, *(f"{100 * error:.2f}" for error in one.errors.values()))
screen.print(compared)

shop = veil.sql.Table(
    chosen.epsilon,
    private,
    public=(veil.sql.Measure("postage", 2), veil.sql.Measure("quantity"), veil.sql.Moment("day")),
    design=veil.sql.HIO(),  # its answers rest on nothing but reports; grids fill in what lies between their cells
    name="shop",
)
print(f"every report keeps a ratio of e^{shop.guarantee.epsilon:g} over region, category and price together")

# %% Devices report, day by day; the shop keeps a folder of Parquet files
folder = chosen.folder or Path(tempfile.mkdtemp()) / "shop"
table = veil.sql.create(folder, shop)
for number, some in enumerate(lines.chunks(1 << 18)):
    held = some.rows()
    table.append(
        shop.survey.randomize(held, SeededForExperiments(chosen.seed + number), public=shop.encode_public(held))
    )
print(
    f"{len(table.files)} files, {sum(path.stat().st_size for path in table.files) / chosen.people:.1f} bytes per person"
)

# %% Questions in SQL, each with the true answer beside it, which only this example can know
QUESTIONS = {
    "How many lines, and how much postage, by region?": """
        SELECT region, COUNT(*) AS lines, SUM(postage) AS postage FROM shop GROUP BY region ORDER BY region""",
    "What does postage come to for products of 2 to 5 pounds, at home?": """
        SELECT AVG(postage) AS postage FROM shop
        WHERE region = 'Great Britain' AND price >= 2 AND price < 5""",
    "And abroad, for those of 2 pounds and more?": """
        SELECT COUNT(*) AS lines, AVG(postage) AS postage FROM shop
        WHERE region <> 'Great Britain' AND price >= 2""",
    "How many pieces of the cheap products go out in each quarter?": """
        SELECT quarter(day) AS quarter, SUM(quantity) AS pieces FROM shop
        WHERE price < 2 AND quantity < 100 GROUP BY quarter ORDER BY quarter""",
    "What is bought most in Great Britain?": """
        SELECT category, COUNT(*) AS lines FROM shop
        WHERE region = 'Great Britain' GROUP BY category HAVING lines > 20000 ORDER BY lines DESC LIMIT 5""",
}

COUNTED = ("lines", "pieces")  # whole numbers

raw = duckdb.connect()
raw.register("shop", lines.to_arrow())
answers = {}
within, shown = 0, 0
with veil.sql.open(folder) as db:
    for question, text in QUESTIONS.items():
        began = time.perf_counter()
        answer = answers[question] = db.query(text)
        took = time.perf_counter() - began
        keys = [key.name for key in answer.keys]
        true = {tuple(row[: len(keys)]): row[len(keys) :] for row in raw.execute(text).fetchall()}
        view = Table(*keys, *(name for one in answer.outputs for name in (one.name, "95 %", "true")), title=question)
        rows = answer.table().to_pylist()
        for row in rows:
            cells = [str(row[key]) for key in keys]
            here = true.get(tuple(row[key] for key in keys), (np.nan,) * len(answer.outputs))
            for one, truth in zip(answer.outputs, map(float, here), strict=True):
                low, high = row[f"{one.name}_low"], row[f"{one.name}_high"]
                if not np.isnan(truth):
                    shown, within = shown + 1, within + (low <= truth <= high)
                digits = 0 if one.name in COUNTED else 2
                cells += [f"{number:,.{digits}f}" for number in (row[one.name], truth)]
                cells.insert(-1, f"{low:,.{digits}f} to {high:,.{digits}f}")
            view.add_row(*cells)
        screen.print(view)
        print(f"{', '.join(answer.used)}; {took * 1000:.0f} ms\n")
print(f"{within} of {shown} true answers lie in their 95 % interval")

# %% What would a question cost, before it is asked? Nothing of the reports is read for this but their number
with veil.sql.open(folder) as db:
    plan = db.explain("SELECT COUNT(*) AS lines FROM shop WHERE category = '22' AND price < 2.4")
    print(f"predicted standard error: {plan.stderr('lines'):,.0f} lines, from {plan.groups} groups")

# %% And in one picture
first = answers["How many lines, and how much postage, by region?"]
panel = first.plot()
panel.figure.savefig(chosen.out)
print(f"wrote {chosen.out}")
if chosen.folder is None:
    shutil.rmtree(folder.parent)
