"""Mechanisms for numbers.

square_wave, haar   SquareWave and HaarResponse, for distributions
means               StochasticRounding and Piecewise, for means
moments             the base classes, and exact sums of reports
reconstruction      the distribution behind a wave's reports, by EM and EMS
"""
