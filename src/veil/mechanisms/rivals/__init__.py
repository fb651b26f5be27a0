"""Frequency oracles for comparisons: they are never the best choice."""
