"""Searches for heavy hitters that the papers compare PEM with."""
