"""The sequential shuffle between processes: it fails by name, and what is repeated shows nothing new."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from veil.entropy import SeededForExperiments
from veil.errors import PartyError, StoreError
from veil.shuffle.coordinator import Coordinator, ShuffleOutcome
from veil.shuffle.plan import CollectionPlan
from veil.shuffle.rehearsal import free_addresses
from veil.shuffle.sequential import Key, Sequential, SpotChecks, keys_in_plan, submissions_of, without_checks
from veil.shuffle.settings import PartySettings
from veil.shuffle.submissions import Submission, leave
from veil.shuffle.transport.certificates import make_authority

NAMES = ("mixer-1", "mixer-2", "mixer-3")
PEOPLE, FAKES, CHECKS = 300, 50, 5
REPORTS = SeededForExperiments(1).below(1 << 64, PEOPLE)


class Parties:
    """Three shufflers as processes; server and devices are this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[str]] = {}
        make_authority(folder, [*NAMES, "server", "device"])
        keys = {name: Key.new() for name in (*NAMES, "server")}
        for name, key in keys.items():
            key.write(folder / f"{name}.secret")
        addresses = tuple(zip(NAMES, free_addresses(3), strict=True))
        public = keys_in_plan([keys[name].public for name in NAMES], keys["server"].public)
        plan = CollectionPlan("sequential", "march", {"kind": "none"}, FAKES, 64, addresses, public)
        (folder / "plan.json").write_bytes(plan.to_bytes())
        for name in (*NAMES, "server", "device"):
            (folder / f"{name}.toml").write_text(
                f'party = "{name}"\nplan = "plan.json"\ncertificate = "{name}.crt"\nkey = "{name}.key"\n'
                f'authority = "authority.crt"\ndata = "data-{name}"\nsecret = "{name}.secret"\npatience = 3\n'
            )

    def settings(self, name: str) -> PartySettings:
        return PartySettings.read(self.folder / f"{name}.toml")

    def start(self, name: str, *how: str) -> None:
        script = Path(__file__).parent / "sequential_shuffler.py"
        command = [sys.executable, str(script), str(self.folder / f"{name}.toml"), *how]
        self.running[name] = process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    def end(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def leave(self, checks: SpotChecks) -> None:
        settings = self.settings("device")
        protocol = Sequential.of(settings)
        people = [Submission.of(protocol, group) for group in np.split(REPORTS, 30)]
        asyncio.run(leave(settings, protocol, [*people, *submissions_of(protocol, checks)]))

    def shuffle(self, checks: SpotChecks, *, fail: bool = False) -> ShuffleOutcome:
        """Run the collection; `fail` as a server does that cannot write the outcome down."""
        settings, kept = self.settings("server"), []

        def keep(shuffled: ShuffleOutcome) -> None:
            kept.append(without_checks(shuffled, checks))
            if fail:
                raise StoreError("the disk is full")

        try:
            asyncio.run(Coordinator(settings, Sequential.of(settings)).run(keep))
        except StoreError:
            assert fail
        return kept[0]


@pytest.fixture
def parties(tmp_path: Path) -> Iterator[Parties]:
    found = Parties(tmp_path)
    yield found
    for name in list(found.running):
        found.end(name)


def test_a_killed_shuffler_is_named_and_repeating_shows_nothing_new(parties: Parties) -> None:
    checks = SpotChecks.draw(CHECKS, SeededForExperiments(2))
    for name, *how in [("mixer-1",), ("mixer-2", "end", "handing on"), ("mixer-3",)]:
        parties.start(name, *how)
    parties.leave(checks)
    with pytest.raises(PartyError, match="mixer-2") as caught:
        parties.shuffle(checks)
    assert caught.value.party == "mixer-2"
    assert parties.running["mixer-2"].wait() < 0
    parties.end("mixer-2")
    parties.start("mixer-2")

    first = parties.shuffle(checks, fail=True)
    for name in ("mixer-1", "mixer-3"):  # and these come back from their disks, too
        parties.end(name)
        parties.start(name)
    second = parties.shuffle(checks)
    assert first.people == second.people == PEOPLE
    assert len(second.elements) == PEOPLE + FAKES
    assert not Counter(REPORTS.tolist()) - Counter(second.elements.tolist())
    assert Counter(first.elements.tolist()) == Counter(second.elements.tolist())
    assert first.elements.tolist() != second.elements.tolist()
    with pytest.raises(PartyError, match="was shuffled before"):
        parties.shuffle(checks)


def test_a_shuffler_that_changes_a_message_is_named_by_the_next(parties: Parties) -> None:
    checks = SpotChecks.draw(CHECKS, SeededForExperiments(3))
    for name, *how in [("mixer-1", "tamper"), ("mixer-2",), ("mixer-3",)]:
        parties.start(name, *how)
    parties.leave(checks)
    with pytest.raises(PartyError, match=r"mixer-1 handed over 1 messages of 322 that do not open \(.*: 7\)") as caught:
        parties.shuffle(checks)
    assert caught.value.party == "mixer-1"
    parties.end("mixer-1")
    parties.start("mixer-1")
    assert len(parties.shuffle(checks).elements) == PEOPLE + FAKES  # nothing was fixed by messages that were refused
