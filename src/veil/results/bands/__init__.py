"""Bands of a distribution: intervals for its ranges, quantiles and mean, by what they assume.

base     the base class Bands
smooth   SmoothBands, from simulated surveys: people are distributed smoothly
free     FreeBands, without assumptions: everything that a wave's reports do not rule out
levels   LevelBands, from unbiased levels of a tree
"""
