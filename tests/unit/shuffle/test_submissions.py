"""Submissions: a shuffler's store through crashes and closing, a device's outbox, lists as bytes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.in_memory import small_plan

from veil.errors import InputError, MismatchError, StoreError, VeilError, WireError
from veil.shuffle.peos import Peos
from veil.shuffle.submissions import Seal, ShareStore, Submission, SubmissionOutbox, pack, unpack


def body(name: int, people: int, fill: int = 1, size: int = 8) -> bytes:
    return name.to_bytes(16) + people.to_bytes(4) + bytes([fill]) * size * people


def keep(kept: ShareStore, *bodies: bytes) -> None:
    async def all_of_them() -> None:
        await asyncio.gather(*(kept.keep(one) for one in bodies))

    asyncio.run(all_of_them())


def test_complete_records_survive_a_restart(tmp_path: Path) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(2, 3), body(1, 1, 7))
    kept.close()
    log = tmp_path / "shares.log"
    whole = log.read_bytes()
    for cut in (1, 4, 20, len(whole) // 2):
        log.write_bytes(whole + body(3, 2)[:cut])
        again = ShareStore(tmp_path, 8)
        assert [(name[-1], people) for name, people in again.submissions] == [(1, 1), (2, 3)]
        again.close()
        assert log.read_bytes() == whole  # what was cut off never was acknowledged
    for place in (2, 18, 25):  # of the id, the number of people, the shares
        damaged = bytearray(whole)
        damaged[place] ^= 1
        log.write_bytes(bytes(damaged))
        assert ShareStore(tmp_path, 8).submissions == []
    assert (tmp_path / "shares.damaged").read_bytes() == bytes(damaged)  # what is behind it can still be found
    assert (log.stat().st_mode & 0o777) == 0o600


def test_shares_are_ordered_by_id(tmp_path: Path) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(9, 1, 9), body(2, 2, 2))
    kept.seal(None, kept.held)
    assert kept.shares().tolist() == [[2] * 8, [2] * 8, [9] * 8]


def test_duplicate_submissions_count_once_and_different_content_is_refused(tmp_path: Path) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(1, 2), body(1, 2))
    size = (tmp_path / "shares.log").stat().st_size
    for other in (body(1, 2, 5), body(1, 1)):
        with pytest.raises(MismatchError, match="other content"):
            keep(kept, other)
    assert (tmp_path / "shares.log").stat().st_size == size
    for bad in (b"", body(3, 0), body(3, 2)[:-1], body(3, 2) + b"x"):
        with pytest.raises(InputError, match="a submission is"):
            keep(kept, bad)


def test_full_disk_leaves_no_partial_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(1, 1))
    real = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda file, data: real(file, data[:10]))
        with pytest.raises(StoreError, match="nothing was kept"):
            keep(kept, body(2, 1))
    keep(kept, body(3, 1))
    kept.close()
    assert [name[-1] for name, _ in ShareStore(tmp_path, 8).submissions] == [1, 3]


def test_a_collection_is_closed_once(tmp_path: Path) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(1, 1), body(2, 1))
    with pytest.raises(MismatchError, match="holds shares of 2 of the 3 people"):
        kept.seal(None, Seal(3, "0" * 64))
    chosen = Seal.of([(body(1, 1)[:16], 1)])
    kept.seal([body(1, 1)[:16]], chosen)
    secret = kept.secret
    kept.close()
    again = ShareStore(tmp_path, 8)
    assert (again.secret, again.sealed, len(again.shares())) == (secret, chosen, 1)
    again.seal(None, chosen)  # the same again
    with pytest.raises(MismatchError, match="with other people"):
        again.seal(None, Seal.of([(body(2, 1)[:16], 1)]))
    with pytest.raises(MismatchError, match="closed"):
        keep(again, body(3, 1))
    keep(again, body(2, 1))  # what it holds already it may acknowledge again
    again.finish()
    assert (tmp_path / "shares.log").read_bytes() == b""
    assert secret.hex() not in "".join(p.read_text(errors="ignore") for p in tmp_path.iterdir())
    with pytest.raises(MismatchError, match="shuffled before"):
        again.seal(None, Seal.of([]))


def test_lost_sealed_shares_stop_the_shuffler(tmp_path: Path) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(1, 1))
    kept.seal(None, kept.held)
    kept.close()
    (tmp_path / "shares.log").write_bytes(b"")
    with pytest.raises(InputError, match="has lost shares that were sealed"):
        ShareStore(tmp_path, 8)


def test_unshuffled_shares_are_not_deleted(tmp_path: Path) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(1, 1))
    with pytest.raises(MismatchError, match="never shuffled"):
        kept.finish()
    kept.close()
    assert len(ShareStore(tmp_path, 8).submissions) == 1


def test_shares_are_on_disk_before_the_seal_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(1, 1))
    synced: list[bool] = []
    real = os.fsync

    def watched(file: int) -> None:
        synced.append((tmp_path / "seal.json").exists())
        real(file)

    monkeypatch.setattr(os, "fsync", watched)
    kept.seal(None, kept.held)
    assert synced[0] is False
    assert len(synced) >= 3  # the log, the seal, the folder


def test_outbox_is_filled_atomically(tmp_path: Path) -> None:
    protocol = Peos(small_plan(3))
    made = [Submission.of(protocol, np.arange(3, dtype=np.uint64)) for _ in range(4)]
    outbox = SubmissionOutbox(tmp_path / "outbox")
    assert not len(outbox)

    def broken() -> Any:
        yield made[0]
        raise VeilError("the device died")

    with pytest.raises(VeilError):
        outbox.fill(broken())
    assert not len(outbox)
    outbox.fill(made)
    assert {one.to_bytes() for one in outbox} == {one.to_bytes() for one in made}
    outbox.remove(made[0])
    assert len(outbox) == 3
    with pytest.raises(WireError):
        Submission.from_bytes(made[0].to_bytes()[:-1])


def test_lists_of_submissions_as_bytes() -> None:
    rows = [(bytes(15) + b"\0", 1), (b"\0" * 15 + b"\1", 70_000)]
    assert unpack(pack(rows)) == rows
    assert unpack(pack([])) == []
