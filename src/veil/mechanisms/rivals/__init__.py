"""Frequency oracles for comparisons: SHE and THE in `histogram_encoding`, RandomProjection in `projection`.

They never have the smallest variance.
"""
