"""Files that are whole or not there; secrets that nobody else may read, at any moment; nothing but regular files."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import veil
from veil import GRR, OLH, Guarantee, Ledger
from veil.cli.input import kept_seed
from veil.collector.keys_and_tokens import make_key
from veil.device.outbox import Outbox, Parcel
from veil.errors import LedgerError, StoreError
from veil.histogram import Histogram
from veil.shuffle.collection import make_folder
from veil.shuffle.plan import Address
from veil.shuffle.sequential.mixing import ShufflerMemory
from veil.shuffle.sequential.onion import Key
from veil.shuffle.submissions import ShareStore, Submission
from veil.shuffle.submissions import SubmissionOutbox as ShareOutbox
from veil.tools.filesystem import atomic_replacement, open_private, write_atomically, write_secret

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")

SOURCE = Path(veil.__file__).parent


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def open_umask() -> Iterator[None]:
    """A process whose new files may be read and written by everybody, unless they say otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


# -- one secret --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("open_umask")
def test_a_secret_replaces_a_readable_file_and_a_link(tmp_path: Path) -> None:
    readable, elsewhere, link = tmp_path / "readable", tmp_path / "elsewhere", tmp_path / "link"
    for path in (readable, elsewhere):
        path.write_bytes(b"before")
        path.chmod(0o644)
    link.symlink_to(elsewhere)
    for path in (readable, link):
        write_secret(path, b"secret")
        assert (path.read_bytes(), mode(path), path.is_symlink()) == (b"secret", 0o600, False)
    assert (elsewhere.read_bytes(), mode(elsewhere)) == (b"before", 0o644)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link", "readable"]


@pytest.mark.usefixtures("open_umask")
def test_a_secret_is_private_and_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced, sync = tmp_path / "secret", list[tuple[bool, bool]](), os.fsync

    def watched(handle: int) -> None:
        found = os.fstat(handle)
        if stat.S_ISREG(found.st_mode):
            assert (stat.S_IMODE(found.st_mode), found.st_size) == (0o600, 5)
        synced.append((stat.S_ISDIR(found.st_mode), path.exists()))
        sync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    write_secret(path, b"12345")
    assert synced == [(False, False), (True, True)]  # the file before it is renamed, the folder after


def test_a_new_secret_is_refused_where_anything_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"before")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("file", "dangling"):
        with pytest.raises(FileExistsError):
            write_secret(tmp_path / name, b"secret", replace=False)
    assert (tmp_path / "file").read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "file"]
    write_secret(tmp_path / "new", b"secret", replace=False)
    assert ((tmp_path / "new").read_bytes(), mode(tmp_path / "new")) == (b"secret", 0o600)


def test_a_secret_that_cannot_be_synced_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_secret(tmp_path / "secret", b"before")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for write in (write_secret, write_atomically):
        with pytest.raises(OSError, match="No space"):
            write(tmp_path / "secret", b"after")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]


@pytest.mark.usefixtures("open_umask")
def test_a_private_log_is_made_private_and_is_no_link(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"before")
    log.chmod(0o644)
    os.close(open_private(log))
    assert (mode(log), log.read_bytes()) == (0o600, b"before")
    (tmp_path / "link").symlink_to(log)
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo"):
        with pytest.raises(OSError, match=r"(?i)too many levels|got a fifo"):
            open_private(tmp_path / name)


# -- ordinary files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_ordinary_files_have_the_mode_that_the_umask_gives(tmp_path: Path, mask: int, expected: int) -> None:
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "file.txt", b"content")
        with atomic_replacement(tmp_path / "private", private=True) as temporary:
            assert mode(temporary) == 0o600
            temporary.write_bytes(b"content")
    finally:
        os.umask(before)
    assert (mode(tmp_path / "file.txt"), mode(tmp_path / "private")) == (expected, 0o600)


def test_the_umask_of_the_process_is_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is 0, files of other threads may be written by everybody."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask belongs to all threads"))
    write_atomically(tmp_path / "file", b"content")
    with atomic_replacement(tmp_path / "other", private=True) as temporary:
        temporary.write_bytes(b"content")


# -- every secret ------------------------------------------------------------------------------------------------------


def ledger(folder: Path) -> None:
    Ledger(folder / "ledger", lifetime=1.0).spend("task", Guarantee.of(0.5))


def outbox(folder: Path) -> None:
    Outbox(folder / "outbox").put(Parcel("id", "https://c.example", "task", "report", 0.0))


def seal(folder: Path) -> None:
    kept = ShareStore(folder, 8)
    body = bytes(16) + (1).to_bytes(4) + bytes(8)
    asyncio.run(kept.keep(body))
    kept.seal(None, kept.held)
    kept.close()


def damaged_shares(folder: Path) -> None:
    seal(folder)
    log = bytearray((folder / "shares.log").read_bytes())
    log[-1] ^= 1
    (folder / "shares.log").write_bytes(log)
    (folder / "seal.json").unlink()
    ShareStore(folder, 8).close()
    assert (folder / "shares.damaged").exists()


def shares_on_their_way(folder: Path) -> None:
    ShareOutbox(folder / "outbox").fill([Submission(bytes(16), 1, (b"share", b"share"))])


def memory_of_a_shuffler(folder: Path) -> None:
    rows = np.zeros((2, 4), dtype=np.uint8)
    ShufflerMemory(folder, bytes(32)).remember(rows, rows)


def parties(protocol: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        study = Histogram(OLH(3.0, 1000, 20, seed_bytes=4))
        places = [Address("127.0.0.1", 7101 + i) for i in range(3)]
        make_folder(folder, study, places, collection="march", fakes=2, bits=512, protocol=protocol)

    return make


SECRETS: dict[str, Callable[[Path], object]] = {
    "a person's ledger": ledger,
    "a person's outbox": outbox,
    "the collector's key": lambda folder: make_key(folder / "signing.key"),
    "a mixer's key": lambda folder: Key.new().write(folder / "mixer.secret"),
    "the seed of a trial": lambda folder: kept_seed(folder, 10, None),
    "who takes part, and a shuffler's own secret": seal,
    "damaged shares": damaged_shares,
    "shares on their way": shares_on_their_way,
    "a shuffler's fakes": memory_of_a_shuffler,
    "keys of PEOS": parties("peos"),
    "keys of a sequential shuffle": parties("sequential"),
}
PUBLIC = r".*\.(crt|toml)|study\.json|plan\.json"


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("what", SECRETS)
def test_every_secret_is_written_for_its_owner_alone(tmp_path: Path, what: str) -> None:
    if what == "keys of PEOS":
        pytest.importorskip("gmpy2")
    SECRETS[what](tmp_path)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and not re.fullmatch(PUBLIC, path.name)]
    assert written
    assert {path.name: oct(mode(path)) for path in written if mode(path) != 0o600} == {}


@pytest.mark.usefixtures("open_umask")
def test_keys_of_parties_replace_what_was_prepared_for_them(tmp_path: Path) -> None:
    """A stranger who may write into the folder leaves a readable file, and a link, where keys will be."""
    readable, elsewhere = tmp_path / "shuffler-1.key", tmp_path / "elsewhere"
    readable.write_bytes(b"")
    readable.chmod(0o666)
    elsewhere.write_bytes(b"")
    (tmp_path / "shuffler-2.key").symlink_to(elsewhere)
    parties("sequential")(tmp_path)
    for name in ("shuffler-1.key", "shuffler-2.key"):
        assert b"PRIVATE KEY" in (tmp_path / name).read_bytes()
        assert (mode(tmp_path / name), (tmp_path / name).is_symlink()) == (0o600, False)
    assert elsewhere.read_bytes() == b""


def test_files_are_created_in_one_place_only() -> None:
    """Whoever writes a secret calls `write_secret` or `open_private`; SQLite makes its own files."""
    allowed = {"tools/filesystem.py", "collector/store/sqlite.py"}  # a lock, and a database
    makes = re.compile(r"O_CREAT|\.touch\(|mkstemp|NamedTemporaryFile\(")
    found = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if makes.search(path.read_text())}
    # flags for a log in place are given to `open_private`
    through = {"cli/parties.py", "shuffle/submissions.py"}
    for name in found & through:
        lines = [line for line in (SOURCE / name).read_text().splitlines() if makes.search(line)]
        assert all("open_private(" in line for line in lines), name
    assert found - through <= allowed
    changes = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if "umask(" in path.read_text()}
    assert changes <= {"collector/serve.py", "cli/surveys.py"}  # narrower, at the start of `serve` and `warm`


# -- what is no file ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["a folder", "a fifo", "a socket", "a device", "a link to a fifo"])
def test_a_ledger_that_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ledger"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a fifo":
        os.mkfifo(path)
    elif kind == "a link to a fifo":
        os.mkfifo(tmp_path / "fifo")
        path.symlink_to(tmp_path / "fifo")
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "a socket":
            listener.bind(str(path))
        with pytest.raises(LedgerError, match=f"expected a regular file, got {kind.removeprefix('a link to ')}"):
            Ledger(path, lifetime=1.0)


def test_a_ledger_that_others_may_read_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger(path, lifetime=1.0)
    path.chmod(0o644)
    Ledger(path, lifetime=1.0)
    assert mode(path) == 0o600


def test_a_ledger_may_be_a_link_to_a_file(tmp_path: Path) -> None:
    Ledger(tmp_path / "real", lifetime=1.0)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    Ledger(tmp_path / "link", lifetime=1.0).spend("task", GRR(0.5, 2).guarantee)
    assert len(Ledger(tmp_path / "real", lifetime=1.0).charges) == 1


def test_an_outbox_and_shares_that_are_no_regular_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "outbox.lock")
    with pytest.raises(LedgerError, match="got a fifo"):
        outbox(tmp_path)
    (tmp_path / "outbox.lock").unlink()
    os.mkfifo(tmp_path / "outbox")
    with pytest.raises(LedgerError, match="got a fifo"):
        outbox(tmp_path)
    os.mkfifo(tmp_path / "shares.log")
    with pytest.raises(StoreError, match="got a fifo"):
        ShareStore(tmp_path, 8)
