"""Numbers about the installation for `/metrics`: the version, the size of the database, free disk, the last backup.

A running collector learns of a backup from the database, where `veil backup` writes its time.
"""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from pathlib import Path

from veil.collector.metrics import Metrics
from veil.collector.migrating import latest
from veil.collector.store import Store
from veil.version import VERSION

__all__ = ["last_backup", "measure", "note_backup"]

_BACKUP = "last-backup"
_COARSE = 64 << 20  # bytes: every commit changes sizes, and finer ones would show when single reports came


def measure(metrics: Metrics, store: Store, folder: Path, database: str) -> None:
    """Set the gauges. Blocks. `database` is the kind of database: sqlite or postgresql.

    The disk is that of the collector's folder. The disk of a PostgreSQL server cannot be seen from here.
    """
    labels = {"version": VERSION, "python": platform.python_version(), "database": database, "schema": str(latest())}
    metrics.set("veil_build_info", 1, **labels)
    with suppress(OSError):
        disk = os.statvfs(folder)
        metrics.set("veil_disk_free_bytes", disk.f_bavail * disk.f_frsize // _COARSE * _COARSE)
        metrics.set("veil_disk_bytes", disk.f_blocks * disk.f_frsize)
    metrics.set("veil_database_bytes", -(-store.size() // _COARSE) * _COARSE)
    metrics.set("veil_last_backup_timestamp_seconds", last_backup(store))


def note_backup(store: Store) -> None:
    """Record in the database that a backup is complete."""
    store.set_fact(_BACKUP, str(int(time.time())))


def last_backup(store: Store) -> int:
    """Return the time of the last backup in seconds since 1970, or 0 if there was none."""
    noted = store.known(_BACKUP) or ""
    return int(noted) if noted.isascii() and noted.isdigit() else 0
