"""Passes over the reports of a table, and what follows from their sums."""
