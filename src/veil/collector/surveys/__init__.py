"""Surveys, their rounds, tallies, answers and exports."""
