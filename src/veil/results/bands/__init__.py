"""Bands of distributions, by what they assume."""
