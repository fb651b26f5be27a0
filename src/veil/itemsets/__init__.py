"""Frequent items and itemsets, where each person holds a set of items.

People hold `veil.Items(universe)`. docs/itemsets.md describes the rounds and their guarantees.

    PSFO, Adap                       padding-and-sampling: the frequency of every item, in one round
    SVIM, LDPMiner                   studies that find the k most frequent items
    ItemMining, Phase, FIGURE_5_3    the study behind both, its phases, and the variants of Figure 5.3
    SVSM                             a study that finds the k most frequent itemsets
    likely_sets, largest_size        the candidates of SVSM, and the largest number of items in one
    FrequentItems, FrequentItemsets  the results, with `FrequentItemset`, `AssociationRule` and `MiningRound`
    SetSizes, read_sizes             the distribution of set sizes, and its estimate
    hashed_load                      the number of items of a set that may share a bucket of OLH
"""

from veil.itemsets.mining import FIGURE_5_3, SVIM, ItemMining, LDPMiner, Phase
from veil.itemsets.result import FrequentItems, FrequentItemset, FrequentItemsets, MiningRound
from veil.itemsets.rules import AssociationRule
from veil.itemsets.sampling import PSFO, Adap, SetSizes, hashed_load, read_sizes
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
    "MiningRound",
    "Phase",
    "SetSizes",
    "hashed_load",
    "largest_size",
    "likely_sets",
    "read_sizes",
]
