"""Protocols for marginals that the papers compare CALM with."""
