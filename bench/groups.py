"""All groups of rows, and the functions that yield them; a group is imported when its rows are wanted."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from bench.timing import Row, Setting

GROUPS = {
    "speed": "bench.rows:speed_rows",
    "transforms": "bench.rows:transform_rows",
    "intervals": "bench.interval_rows:interval_rows",
    "post": "bench.post_rows:post_rows",
    "numeric": "bench.numeric_rows:numeric_rows",
    "trees": "bench.tree_rows:tree_rows",
    "hitters": "bench.hitters_rows:hitters_rows",
    "marginals": "bench.marginal_rows:marginal_rows",
    "shuffle": "bench.shuffle_rows:shuffle_rows",
    "peos": "bench.peos_rows:peos_rows",
    "sql": "bench.sql_rows:sql_rows",
    "start": "bench.rows:start_rows",
    "memory": "bench.memory:memory_rows",
    "collector": "bench.collector_load:collector_rows",
}


def rows_of(group: str, setting: Setting) -> Iterator[Row]:
    """Yield the rows of a group; each is measured before the next is made, or not at all."""
    module, _, function = GROUPS[group].partition(":")
    rows: Iterator[Row] = getattr(importlib.import_module(module), function)(setting)
    return rows
