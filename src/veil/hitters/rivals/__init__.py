"""Rivals of PEM: the searches for heavy hitters that the papers compare it with."""
