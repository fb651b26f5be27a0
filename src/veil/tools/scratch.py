"""Temporary folders that the next process removes if their owner was killed.

The owner holds a lock on a file in the folder for as long as it lives. A lock on the parent folder keeps others from
looking at a folder that is just being made.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["remove_leftovers", "scratch_folder"]

_LOCK = "lock"

try:
    import fcntl
except ImportError:  # Windows: folders are not locked, and leftovers stay
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def scratch_folder(prefix: str, parent: Path) -> Iterator[Path]:
    """Make a private folder for the length of the block, after the removal of leftovers with the same prefix."""
    remove_leftovers(prefix, parent)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # NFS locks no folders: there nobody removes leftovers
            stack.enter_context(_locked_parent(parent))
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        lock = os.open(folder / _LOCK, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a lock that cannot be taken is not free for others either
                fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        os.close(lock)  # first: NFS keeps files that are open
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(prefix: str, parent: Path) -> list[Path]:
    """Remove the folders that killed processes of this account left behind, and return them.

    Only a folder whose lock is free, or an empty one, is a leftover. Anything else is not touched.
    """
    removed: list[Path] = []
    if fcntl is None:
        return removed
    with contextlib.suppress(OSError), _locked_parent(parent):  # a parent that cannot be read or locked keeps them
        for entry in sorted(parent.iterdir()):
            if entry.name.startswith(prefix) and _is_own_folder(entry) and _is_abandoned(entry):
                shutil.rmtree(entry, ignore_errors=True)
                removed.append(entry)
    return removed


def _is_own_folder(entry: Path) -> bool:
    found = entry.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _is_abandoned(folder: Path) -> bool:
    try:
        handle = os.open(folder / _LOCK, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return not any(folder.iterdir())
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


@contextlib.contextmanager
def _locked_parent(parent: Path) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    handle = os.open(parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
