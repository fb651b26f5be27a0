"""Files and folders: atomic writes, private files, and scratch folders.

A file is either complete or absent, also after a crash. Only the owner can read a secret, from the moment that it is
created. The owner of a scratch folder holds a lock on a file in it for as long as it lives, so that the next process
can remove the folder of one that was killed. A lock on the parent folder protects a folder while it is being made.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: folders are not locked, and leftovers stay
    fcntl = None  # type: ignore[assignment]

_PRIVATE = 0o600
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_LOCK = "lock"


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
def temporary_beside(target: Path, *, private: bool = False) -> Iterator[Path]:
    """A temporary file in the same folder, its name beginning with a dot; gone at the end, unless it was renamed."""
    handle, temporary = _new_file(target, private=private)
    os.close(handle)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_replacement(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place at the end, or vanishes with an error.

    A private file may be read by its owner alone, whatever was at `path` before.
    """
    with temporary_beside(Path(path), private=private) as temporary:
        yield temporary
        commit_file(temporary, Path(path))


def commit_file(temporary: Path, target: Path) -> None:
    """Give a temporary file that is whole its name, for good."""
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    temporary.replace(target)
    sync_folder(target.parent)


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file, or leave what was there."""
    with atomic_replacement(path) as temporary:
        temporary.write_bytes(data)


def write_secret(path: Path, data: bytes, *, replace: bool = True) -> None:
    """Write a whole file that its owner alone may read, from its first moment on, or leave what was there.

    The data goes to a new file of mode 0600, which is synced and renamed. So the mode of a file that was at `path` and
    a link that was there do not matter: both are replaced. Without `replace`, raises `FileExistsError` where `path` is
    there, also if another process makes it meanwhile.
    """
    handle, temporary = _new_file(path, private=True)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            temporary.replace(path)
        else:
            os.link(temporary, path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def remove_temporary_files(path: Path) -> None:
    """Remove the temporary files that killed processes left beside `path`, where no other one is writing it now."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}{re.escape(path.suffix)}")
    for other in path.parent.iterdir():
        if pattern.fullmatch(other.name):
            other.unlink(missing_ok=True)


def open_private(path: str | os.PathLike[str], flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """Open a file that is written in place and that its owner alone may read, such as a log; made if it is missing.

    Raises `OSError` for a link and for what is not a regular file. A file that others may read becomes private.
    """
    handle = open_regular(path, flags | _NO_LINK)
    make_private(handle)
    return handle


def make_private(handle: int) -> None:
    """Take from others the right to read or write an open file, if this account owns it."""
    if os.name == "posix" and stat.S_IMODE(os.fstat(handle).st_mode) & 0o077:
        with contextlib.suppress(PermissionError):
            os.fchmod(handle, _PRIVATE)


def open_regular(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file; raises `OSError` for a fifo, a device, a socket and a folder, and never waits for one of them."""
    with contextlib.suppress(FileNotFoundError):  # looked at first: opening a device may do something
        _check_regular(Path(path).stat())
    handle = os.open(path, flags | _NO_WAIT, _PRIVATE)
    try:
        _check_regular(os.fstat(handle))
        if _NO_WAIT:
            os.set_blocking(handle, True)
    except OSError:
        os.close(handle)
        raise
    return handle


def _check_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "something else")
        raise OSError(errno.EINVAL, f"expected a regular file, got {kind}")


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a fifo"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _new_file(target: Path, *, private: bool) -> tuple[int, Path]:
    """Make an empty file of a fresh name beside `target`. The system applies the umask: to read it is to change it."""
    while True:
        path = target.with_name(f".{target.name}.{secrets.token_hex(4)}{target.suffix}")
        with contextlib.suppress(FileExistsError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK, _PRIVATE if private else 0o666), path


@contextlib.contextmanager
def scratch_folder(prefix: str, parent: Path) -> Iterator[Path]:
    """Make a private folder for the length of the block, after the removal of leftovers with the same prefix."""
    remove_scratch_folders(prefix, parent)
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


def remove_scratch_folders(prefix: str, parent: Path) -> list[Path]:
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
