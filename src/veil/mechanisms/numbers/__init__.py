"""Mechanisms for numbers: distributions and means."""
