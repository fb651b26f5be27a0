"""Copies that a killed restore or backup leaves behind are removed by the next start, and nothing else is."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.service.reports import group, opened
from tests.support.commands import CliRunner
from tests.support.warm_start import start

from veil.cli.main import app
from veil.collector.service import Service
from veil.collector.settings import CollectorSettings
from veil.collector.store.backup import back_up
from veil.collector.store.sqlite import SqliteStore
from veil.tools.filesystem import remove_scratch_folders, scratch_folder

# `veil restore` or `veil backup` that is killed when its copy is there
KILLED = """
import os, signal, sys
from veil.cli.main import run
from veil.collector.store import backup

def killed(*given):
    os.kill(os.getpid(), signal.SIGKILL)

backup._copy = killed
run()
"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A backup of 20 reports."""
    store = SqliteStore(tmp_path / "x.sqlite3")
    store.append([group(opened(store), os.urandom(16 * 20))], 1_000)
    (tmp_path / "backups").mkdir()
    back_up(store, tmp_path / "backups" / "saved.sqlite3")
    store.close()
    return tmp_path / "backups" / "saved.sqlite3"


def copies(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir() if one.name.startswith((".veil-restore-", ".veil-backup-"))]


def serve(folder: Path) -> None:
    Service(CollectorSettings(folder=str(folder))).store.close()


def restore_again(folder: Path) -> None:
    saved = folder.parent / "backups" / "saved.sqlite3"
    assert CliRunner().invoke(app, ["restore", str(saved), "--new", "--folder", str(folder)]).exit_code == 0


@pytest.mark.parametrize("next_start", [serve, restore_again])
def test_the_next_start_removes_the_copy_of_a_killed_restore(
    saved: Path, tmp_path: Path, next_start: Callable[[Path], None]
) -> None:
    folder = tmp_path / "data"
    killed = start(KILLED, "veil", "restore", str(saved), "--new", "--folder", str(folder))
    assert killed.wait() == -9
    assert len(copies(folder)) == 1
    assert copies(saved.parent) == []
    next_start(folder)
    assert copies(folder) == []


def test_the_next_backup_removes_the_copy_of_a_killed_one(tmp_path: Path) -> None:
    folder, backups = tmp_path / "data", tmp_path / "backups"
    backups.mkdir()
    serve(folder)
    killed = start(KILLED, "veil", "backup", str(backups / "one"), "--folder", str(folder))
    assert killed.wait() == -9
    assert len(copies(backups)) == 1
    assert CliRunner().invoke(app, ["backup", str(backups / "two"), "--folder", str(folder)]).exit_code == 0
    assert [one.name for one in backups.iterdir()] == ["two"]


def test_a_copy_that_a_running_restore_writes_stays(tmp_path: Path) -> None:
    with scratch_folder(".veil-restore-", tmp_path) as own:
        (own / "copy.sqlite3").write_bytes(b"x")
        assert remove_scratch_folders(".veil-restore-", tmp_path) == []
        with scratch_folder(".veil-restore-", tmp_path) as other:
            assert own.is_dir()
        assert not other.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("locks_files", [True, False])
def test_backups_are_made_where_folders_cannot_be_locked(
    locks_files: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def of_nfs(handle: int, operation: int) -> None:  # it locks only files that are open for writing
        if not locks_files or stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", of_nfs)
    store = SqliteStore(tmp_path / "x.sqlite3")
    store.append([group(opened(store), os.urandom(16 * 20))], 1_000)
    back_up(store, tmp_path / "saved.sqlite3")
    store.close()
    assert (tmp_path / "saved.sqlite3").is_file()
    assert copies(tmp_path) == []
    with scratch_folder(".veil-restore-", tmp_path) as own:
        assert remove_scratch_folders(".veil-restore-", tmp_path) == []
        assert own.is_dir()


def test_only_our_own_folders_are_removed(tmp_path: Path) -> None:
    """Somebody's files, a link to a folder, and a folder without a lock, as an earlier version made it."""
    (tmp_path / ".veil-restore-notes").write_text("mine")
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "elsewhere" / "lock").touch()
    (tmp_path / ".veil-restore-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / ".veil-restore-old").mkdir(mode=0o700)
    (tmp_path / ".veil-restore-old" / "copy.sqlite3").touch()
    (tmp_path / ".veil-restore-shared").mkdir(mode=0o755)
    (tmp_path / ".veil-restore-shared").chmod(0o755)
    (tmp_path / ".veil-restore-shared" / "lock").touch()
    (tmp_path / ".veil-restore-empty").mkdir(mode=0o700)  # killed before it had a lock
    before = set(tmp_path.iterdir())
    assert remove_scratch_folders(".veil-restore-", tmp_path) == [tmp_path / ".veil-restore-empty"]
    assert set(tmp_path.iterdir()) == before - {tmp_path / ".veil-restore-empty"}
