"""Rivals of CALM: the protocols for marginals that the papers compare it with."""
