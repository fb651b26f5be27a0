"""Files that are either whole or not there, also after a crash."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "beside",
    "make_private_folder",
    "replacing",
    "settle",
    "sync_folder",
    "write_atomically",
    "write_private",
]


def sync_folder(folder: Path) -> None:
    """Make the folder's entries durable (a no-op where the system cannot)."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def make_private_folder(folder: Path) -> None:
    """Make a folder that its owner alone may enter; one that is there stays as it is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextlib.contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A temporary file in the same folder, its name beginning with a dot; gone at the end, unless it was renamed."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place at the end, or vanishes with an error."""
    with beside(Path(path)) as temporary:
        yield temporary
        settle(temporary, Path(path), private=private)


def settle(temporary: Path, target: Path, *, private: bool = False) -> None:
    """Give a temporary file that is whole its name, for good; a private one is its owner's alone, as it was before."""
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    if not private:
        temporary.chmod(0o666 & ~_umask())
    temporary.replace(target)
    sync_folder(target.parent)


def write_atomically(path: str | os.PathLike[str], data: bytes, *, private: bool = False) -> None:
    """Write a whole file, or leave what was there; a private one may be read by its owner alone."""
    with replacing(path, private=private) as temporary:
        temporary.write_bytes(data)


def write_private(path: Path, data: bytes) -> None:
    """Write a file that its owner alone may read, from its first moment on."""
    path.touch(mode=0o600)
    path.write_bytes(data)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
