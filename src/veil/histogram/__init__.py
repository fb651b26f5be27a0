"""How many people hold each value: one question through one oracle, or any survey read question by question."""

from veil.histogram.questions import Histogram, Questions

__all__ = ["Histogram", "Questions"]
