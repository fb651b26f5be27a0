"""One profile for Hypothesis: the same examples every time, and no deadline, because a slow machine is not a bug."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("veil", deadline=None, derandomize=True)
settings.load_profile("veil")
