"""Figures of the source code: `python -m tests.support.house` prints them."""
