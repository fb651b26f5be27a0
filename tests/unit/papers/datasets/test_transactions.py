"""Transactions of the papers: true itemsets, files and synthetic replacements."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil import Items
from veil.errors import InputError
from veil_papers.datasets import Transactions


@given(st.lists(st.frozensets(st.integers(0, 5), max_size=5), min_size=1, max_size=30), st.integers(1, 40))
def test_top_itemsets_match_plain_python(sets: list[frozenset[int]], k: int) -> None:
    data = Transactions(Items(6).encode([sorted(held) for held in sets]), 6, "by hand", stand_in=False)
    counts = {}
    for size in range(1, 7):
        for chosen in combinations(range(6), size):
            held = sum(set(chosen) <= one for one in sets)
            if held:
                counts[chosen] = held
    best = sorted(counts.values(), reverse=True)[:k]
    found = {itemset: count for itemset, count in data.top_itemsets(k).items() if count}
    assert sorted(found.values(), reverse=True) == best
    assert all(counts[itemset] == count for itemset, count in found.items())


@pytest.mark.usefixtures("no_data_folder")
def test_transactions_from_a_folder_and_synthetic(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from veil_papers import datasets

    stand_in = datasets.pos_baskets()
    assert stand_in.stand_in
    assert (stand_in.people, stand_in.universe) == (100_000, 1_657)
    assert 5.5 < stand_in.sizes.mean() < 7.5
    assert stand_in.domain.encode(stand_in.to_arrow()).items.tolist() == stand_in.sets.items.tolist()
    column = pa.array([[5, 1], [], [1_656]], pa.list_(pa.uint16()))
    pq.write_table(pa.table({"items": column}), tmp_path / "bms_pos_first100k.parquet")
    read = datasets.pos_baskets(tmp_path)
    assert not read.stand_in
    assert read.sets.items.tolist() == [1, 5, 1_656]
    more = read.resample(1_000, seed=1)
    assert more.people == 1_000
    assert more.held[5] == more.held[1]
    assert read.top_items(2) == {1: 1, 5: 1}
    with pytest.raises(InputError):
        read.resample(0, seed=1)
    with pytest.raises(InputError):
        datasets.kosarak_sets(tmp_path)
    with pytest.raises(InputError):
        datasets.synthetic_baskets(0, 5, mean_size=2.0, exponent=1.0, seed=0)


def test_invoices_hold_different_products(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from veil_papers import datasets

    table = pa.table(
        {
            "invoice": pa.array(["a", "b", "a", "a"]).dictionary_encode(),
            "stock_code": pa.array(["x", "y", "z", "x"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "online_retail_uci.parquet")
    assert datasets.online_invoices(tmp_path).sizes.tolist() == [2, 1]
