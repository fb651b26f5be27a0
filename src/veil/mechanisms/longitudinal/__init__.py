"""Mechanisms for answers that are given repeatedly: the base class in `base`, and `rappor`."""
