"""The peak memory of this process. Used here and in the peers' processes: imports nothing of veil."""

from __future__ import annotations

import resource
from pathlib import Path


def peak_mb() -> float:
    """The peak of this process's memory. Linux's getrusage includes that of the parent before exec: ask for our own."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    own = [line for line in lines if line.startswith("VmHWM:")]
    return (int(own[0].split()[1]) if own else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024
