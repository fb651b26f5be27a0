"""Frequent items and itemsets, where each person holds a set.

    PSFO              padding-and-sampling: how many people hold each item, in one round
    SVIM, LDPMiner    studies that find the k most frequent items; ItemMining is what both are made of
    SVSM              finds the k most frequent sets of items, and association rules from them

People hold `veil.Items(universe)`. docs/itemsets.md says how the rounds go and what they promise.
"""

from veil.itemsets.mining import FIGURE_5_3, SVIM, ItemMining, LDPMiner, Phase
from veil.itemsets.result import FrequentItems, FrequentItemset, FrequentItemsets, Step
from veil.itemsets.rules import AssociationRule
from veil.itemsets.sampling import PSFO, Adap, Sizes, hashed_load, read_sizes
from veil.itemsets.svsm import SVSM, largest_size, likely_sets

__all__ = [
    "FIGURE_5_3",
    "PSFO",
    "SVIM",
    "SVSM",
    "Adap",
    "AssociationRule",
    "FrequentItems",
    "FrequentItemset",
    "FrequentItemsets",
    "ItemMining",
    "LDPMiner",
    "Phase",
    "Sizes",
    "Step",
    "hashed_load",
    "largest_size",
    "likely_sets",
    "read_sizes",
]
