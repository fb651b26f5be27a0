"""PEOS between processes: the right outcome, and after any failure either the right outcome or the party's name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.patience import until
from tests.support.warm_start import start
from tests.support.world import World

from veil.errors import PartyError
from veil.shuffle.coordinator import ShuffleOutcome
from veil.shuffle.peos import Peos, Schedule
from veil.shuffle.plan import DEVICE, SERVER
from veil.shuffle.submissions import Submission, _leave, leave
from veil.shuffle.transport.certificates import PartyIdentity, make_authority
from veil.shuffle.transport.connections import dial

Elements = NDArray[np.uint64]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, silence=5.0)
    yield made
    made.end()


def drawn(count: int, seed: int = 0) -> Elements:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def whole(found: tuple[ShuffleOutcome, Elements], reports: Elements) -> bool:
    """Whether the outcome is the reports and the fakes, exactly, in another order."""
    shuffled, fakes = found
    expected = np.concatenate([reports, fakes])
    assert shuffled.people == len(reports)
    return sorted(shuffled.elements.tolist()) == sorted(expected.tolist())


@pytest.mark.parametrize("shufflers", [3, 5])
def test_the_outcome_is_the_reports_and_the_fakes(tmp_path: Path, shufflers: int) -> None:
    world = World(tmp_path, shufflers)
    try:
        world.start()
        reports = drawn(500)
        world.leave(world.submissions(reports))
        found = world.shuffle()
        assert whole(found, reports)
        assert found[0].elements.tolist()[:500] != reports.tolist()
        sent = sum(cost.sent for cost in found[0].costs)
        assert sent < 1.05 * 550 * Schedule(shufflers).bytes_per_report(ciphertext=64)
        # what was acknowledged is forgotten, and not shuffled again
        assert all(not (world.folder / f"data/{n}/test/shares.log").read_bytes() for n in world.plan.names)
        with pytest.raises(PartyError, match="was shuffled before"):
            world.shuffle()
    finally:
        world.end()


@pytest.mark.acceptance
@pytest.mark.parametrize("shufflers", [3, 5])
def test_the_outcome_with_full_keys(tmp_path: Path, shufflers: int) -> None:
    """20,000 people and 2,000 fakes: the reports and the fakes, exactly."""
    world = World(tmp_path, shufflers, fakes=2_000, full_keys=True)
    try:
        world.start()
        reports = drawn(20_000)
        world.leave(world.submissions(reports, together=1_000))
        found = world.shuffle()
        assert whole(found, reports)
        sent = sum(cost.sent for cost in found[0].costs)
        assert sent == pytest.approx(22_000 * Schedule(shufflers).bytes_per_report(), rel=0.01)
    finally:
        world.end()


# -- killed, restarted, silent -----------------------------------------------------------------------------------------

STAGES = ["closing", "meeting the others", "taking shares"]
STAGES += [f"round {i}: {what}" for i in range(3) for what in ("hiding", "permuting", "sharing again")]
STAGES = [stage for stage in STAGES if stage != "round 2: sharing again"]


def enters(party: int, stage: str) -> bool:
    """Whether a shuffler of three comes to a stage: seekers do not permute."""
    return "permuting" not in stage or party in Schedule(3).rounds[int(stage[6])].hiders


def stops(world: World, name: str, stage: str) -> None:
    """A shuffler that dies at a stage stops the run, with its name."""
    world.fail(name, stage)
    with pytest.raises(PartyError) as stopped:
        world.shuffle()
    assert stopped.value.party == name, (stage, str(stopped.value))
    until(lambda: not world.alive(name))


def test_shufflers_that_are_killed(world: World) -> None:
    """One after the other, in one collection: each is named, and in the end the same reports and fakes come out."""
    world.start()
    reports = drawn(120)
    world.leave(world.submissions(reports))
    fakes = None
    for i, stage in enumerate(["meeting the others", "round 0: permuting", "round 1: sharing again"]):
        party = next(j % 3 for j in range(i, i + 3) if enters(j % 3, stage))
        stops(world, world.plan.names[party], stage)
        world.start(world.plan.names[party])
        if stage == "meeting the others":
            fakes = world.fakes()
    stops(world, "shuffler-3", "handing over to the server")
    world.start("shuffler-3")
    found = world.shuffle()
    assert whole(found, reports)
    assert np.array_equal(fakes, found[1])  # type: ignore[arg-type]  # two outcomes would show no difference


@pytest.mark.acceptance
@pytest.mark.parametrize("party", range(3))
def test_every_shuffler_killed_at_every_stage(tmp_path: Path, party: int) -> None:
    """Each stage with a collection of its own that completes on the rerun."""
    stages = [stage for stage in STAGES if enters(party, stage)]
    stages += ["handing over to the server"] if party in Schedule(3).last_hiders else []
    for i, stage in enumerate(stages):
        folder = tmp_path / str(i)
        folder.mkdir()
        world = World(folder, silence=5.0)
        try:
            reports = drawn(50, i)
            world.start()
            world.leave(world.submissions(reports))
            stops(world, world.plan.names[party], stage)
            world.start(world.plan.names[party])
            assert whole(world.shuffle(), reports)
        finally:
            world.end()


def test_killed_while_forgetting(world: World) -> None:
    """The outcome is kept, one shuffler dies before it forgot: the next run only acknowledges."""
    world.start()
    world.fail("shuffler-3", "forgetting")
    reports = drawn(80)
    world.leave(world.submissions(reports))
    with pytest.raises(PartyError, match="shuffler-3"):
        world.shuffle()
    world.start("shuffler-3")
    with pytest.raises(IndexError):  # nothing new comes out
        world.shuffle(kept=True)
    assert all((world.folder / f"data/{name}/test/finished").exists() for name in world.plan.names)


def test_a_silent_shuffler_is_named(tmp_path: Path) -> None:
    world = World(tmp_path, silence=1.5)
    try:
        world.start()
        world.fail("shuffler-2", "round 1: hiding", "SIGSTOP")
        reports = drawn(60)
        world.leave(world.submissions(reports))
        with pytest.raises(PartyError, match="shuffler-2 has been silent"):
            world.shuffle()
        world.end("shuffler-2")
        world.start("shuffler-2")
        assert whole(world.shuffle(), reports)
    finally:
        world.end()


SERVER_STAGES = ["closing the collection", "waiting for the shufflers", "opening the outcome", "acknowledging"]
SERVER_CODE = (
    "import sys, asyncio; from pathlib import Path; from tests.support.party import watch;"
    "from veil.shuffle.coordinator import Coordinator; from veil.shuffle.settings import PartySettings;"
    "from veil.shuffle.protocol import protocol_of; s = PartySettings.read(Path(sys.argv[1]));"
    "watch(Path(sys.argv[1]).parent / 'fail');"
    "keep = lambda out: (s.folder.mkdir(parents=True), out.elements.tofile(s.folder / 'kept'));"
    "asyncio.run(Coordinator(s, protocol_of(s.plan, s.secret)).run(keep))"
)


def test_a_server_that_is_killed_at_every_stage(world: World) -> None:
    """One after the other, in one collection: the outcome is there once, and is the right one."""
    world.start()
    reports = drawn(60)
    world.leave(world.submissions(reports))
    kept = world.settings(SERVER).folder / "kept"
    for stage in SERVER_STAGES:
        assert not kept.exists()
        world.fail(SERVER, stage)
        assert start(SERVER_CODE, "server", str(world.folder / "server.toml")).wait() == -9
    expected = np.concatenate([reports, world.fakes()])
    assert sorted(np.fromfile(kept, dtype=np.uint64).tolist()) == sorted(expected.tolist())
    with pytest.raises(IndexError):  # the next run acknowledges, and nothing new comes out
        world.shuffle(kept=True)
    assert all((world.folder / f"data/{name}/test/finished").exists() for name in world.plan.names)


# -- shares ------------------------------------------------------------------------------------------------------------


def test_shares_that_one_shuffler_lacks(world: World) -> None:
    """A device that died in between: its people are named as missing, or left out; then nobody can come in again."""
    world.start()
    reports = drawn(100)
    *complete, broken = world.submissions(reports, together=20)
    world.leave(complete)
    world.end("shuffler-3")
    with pytest.raises(PartyError, match="shuffler-3 cannot be reached"):
        asyncio.run(leave(world.settings(DEVICE, patience=0.5), Peos(world.plan), [broken]))
    world.start("shuffler-3")
    _leave_with(world, broken, "shuffler-1", "shuffler-2")
    with pytest.raises(PartyError, match=r"shuffler-3 lacks the shares of 20 of the 100 people.*--leave-out"):
        world.shuffle()
    assert whole(world.shuffle(leave_out=True), reports[:80])
    with pytest.raises(PartyError, match="too late"):
        world.leave([broken])


def _leave_with(world: World, submission: Submission, *names: str) -> None:
    async def send() -> None:
        for name in names:
            channel = await dial(world.settings(DEVICE), name, "leave")
            await _leave(channel, world.plan.index(name), submission, world.settings(DEVICE).limit)
            await channel.close()

    asyncio.run(send())


def test_no_shuffler_closes_with_fewer_people_than_were_promised(tmp_path: Path) -> None:
    world = World(tmp_path, least=100)
    try:
        world.start()
        reports = drawn(120)
        world.leave(world.submissions(reports[:99]))
        with pytest.raises(PartyError, match="does not close the collection with 99 of the 100 people"):
            world.shuffle()
        world.leave(world.submissions(reports[99:]))  # it is still open
        assert whole(world.shuffle(), reports)
    finally:
        world.end()


def test_shares_that_come_twice_count_once(world: World) -> None:
    world.start()
    reports = drawn(60)
    submissions = world.submissions(reports)
    world.leave(submissions)
    world.leave(submissions)
    world.end()
    world.start()  # and after a restart
    world.leave(submissions)
    other = replace(submissions[0], payloads=tuple(bytes(len(p)) for p in submissions[0].payloads))
    with pytest.raises(PartyError, match="came before, with other content"):
        world.leave([other])
    assert whole(world.shuffle(), reports)


def test_late_shares_wait_for_the_next_collection_after_a_failed_attempt(world: World) -> None:
    """Otherwise two outcomes would differ by exactly one person's report."""
    world.start()
    world.fail("shuffler-3", "round 1: hiding")
    reports = drawn(60)
    world.leave(world.submissions(reports))
    with pytest.raises(PartyError):
        world.shuffle()
    until(lambda: not world.alive("shuffler-3"))
    world.start("shuffler-3")
    with pytest.raises(PartyError, match="too late"):
        world.leave(world.submissions(drawn(1, 9)))
    assert whole(world.shuffle(), reports)


# -- strangers ---------------------------------------------------------------------------------------------------------


def test_strangers_are_refused(world: World, tmp_path: Path) -> None:
    world.start()
    world.leave(world.submissions(drawn(20)))
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    make_authority(foreign, [SERVER])

    def shuffle_as(**changes: Any) -> Any:
        return world.shuffle(settings=world.settings(SERVER, **changes))

    stranger = PartyIdentity(foreign / "server.crt", foreign / "server.key", tmp_path / "authority.crt")
    with pytest.raises(PartyError, match=r"shuffler-.*(TLS|went away)"):
        shuffle_as(identity=stranger)
    suspicious = PartyIdentity(tmp_path / "server.crt", tmp_path / "server.key", foreign / "authority.crt")
    with pytest.raises(PartyError, match="did not show the certificate of shuffler-1"):
        shuffle_as(identity=suspicious)
    device = PartyIdentity(tmp_path / "device.crt", tmp_path / "device.key", tmp_path / "authority.crt")
    with pytest.raises(PartyError, match="does not let device do this"):  # a device may not close a collection
        shuffle_as(identity=device)
    with pytest.raises(PartyError, match="does not let shuffler-1 do this"):  # nor may a shuffler leave shares
        asyncio.run(leave(world.settings("shuffler-1"), Peos(world.plan), []))
    (one, first), (two, second), third = world.plan.shufflers
    swapped = replace(world.plan, shufflers=((one, second), (two, first), third))
    with pytest.raises(PartyError, match="did not show the certificate of shuffler-1"):
        shuffle_as(plan=swapped)
    with pytest.raises(PartyError, match="has another plan than server: they differ in fakes"):
        shuffle_as(plan=replace(world.plan, fakes=51))
    keys = {"server": {**world.plan.keys["server"], "g": "3"}}
    with pytest.raises(PartyError, match="they differ in keys"):
        shuffle_as(plan=replace(world.plan, keys=keys))
    assert len(world.shuffle()[0].elements) == 70  # whoever it was, the collection goes on
