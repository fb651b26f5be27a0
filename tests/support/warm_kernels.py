"""Imported by the server of warm starts: kernels of answers are loaded once, not by each collector that is forked."""

from __future__ import annotations

import threading

from veil.collector.monitoring.health import count_something

__all__: list[str] = []

count_something()
assert threading.active_count() == 1, "a fork would copy one thread of several"
