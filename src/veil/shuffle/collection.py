"""Studies collected between parties: the folder that sets a collection up, and the devices that answer.

`make_folder` writes the plan, the settings of each party and, for trials, all keys. `PartyCollection` converts between
the reports of a study and integers of the ring, and stores the shuffled reports.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.entropy import Batch
from veil.errors import InputError, ParameterError
from veil.files import ReportWriter
from veil.reports.columns import Reports
from veil.shuffle.coordinator import ShuffleOutcome
from veil.shuffle.plan import DEVICE, SERVER, Address, CollectionPlan
from veil.shuffle.protocol import protocol_of
from veil.shuffle.settings import PartySettings
from veil.shuffle.submissions import Submission, SubmissionOutbox, leave, most_together
from veil.shuffle.transport.certificates import make_authority
from veil.study import Study, study_from_json
from veil.survey import Survey
from veil.tools.filesystem import make_private_folder, write_atomically, write_secret
from veil.tools.json_documents import Json, parse_json
from veil.wire.ring import Ring, ring_of

Secrets = dict[str, tuple[str, bytes]]
"""By party, the name of its secret file and what is in it."""

_PLAN = "plan.json"


class PartyCollection:
    """The study of a plan, the encoding of its reports as integers of the ring, and the files of its outcome."""

    def __init__(self, plan: CollectionPlan) -> None:
        self.plan = plan

    @cached_property
    def study(self) -> Study:
        """The study that people are asked for."""
        return study_from_json(self.plan.study)

    @cached_property
    def survey(self) -> Survey:
        """What people are asked."""
        return self.study.survey

    @cached_property
    def _ring(self) -> Ring:
        return ring_of(self.survey, self.plan.ring)

    def elements(self, reports: Reports) -> NDArray[np.uint64]:
        """Runs on the device: reports as integers, each uniform among those that stand for it."""
        return self._ring.encode(reports.columns, Batch())

    def outcome(self, settings: PartySettings) -> Path:
        """Where the server keeps the shuffled reports: a file of reports that says how many are fakes."""
        return settings.folder / "reports.arrow"

    def spot_checks(self, settings: PartySettings) -> Path:
        """Where the server keeps what its own accounts sent, in a sequential shuffle."""
        return settings.folder / "spot-checks"

    def keep(self, settings: PartySettings, shuffled: ShuffleOutcome) -> ShuffleOutcome:
        """Runs at the server: write the shuffled reports down, all or nothing; without its own accounts' ones."""
        make_private_folder(settings.folder)
        if (checks := self.spot_checks(settings)).exists():
            from veil.shuffle.sequential import SpotChecks, without_checks

            shuffled = without_checks(shuffled, SpotChecks.from_bytes(checks.read_bytes()))
        reports = self._ring.reports(shuffled.elements)
        with ReportWriter(self.outcome(settings), self.survey, fakes=self.plan.fakes, private=True) as writer:
            writer.write(reports)
        return shuffled


class Device:
    """Plays devices: randomizes, splits, writes down, and leaves shares with every shuffler.

    Reports are drawn once. What could not be sent stays in an outbox and is sent again as it is: `leave`.
    """

    def __init__(self, settings: PartySettings) -> None:
        if settings.party != DEVICE:
            raise InputError(f"these are the settings of {settings.party}: shares are left with those of a device")
        self._settings = settings
        self.collection = PartyCollection(settings.plan)
        self._protocol = protocol_of(settings.plan)
        self.outbox = SubmissionOutbox(settings.folder / "outbox")

    def answer(self, values: Any, *, together: int = 1) -> int:
        """Answer for people with these values, and say how many; in submissions of so many people each.

        A person's own device answers for one person.
        """
        self.prepare([self.collection.survey.randomize(values)], together)
        return self.leave()

    def prepare(self, reports: Iterable[Reports], together: int) -> None:
        """Split reports into shares and write them down: all of them, or none."""
        if len(self.outbox):
            raise InputError(f"shares of an earlier run are still to be sent, in {self._settings.folder}")
        self.outbox.fill(self._submissions(reports, min(together, most_together(self._protocol))))

    def _submissions(self, reports: Iterable[Reports], together: int) -> Iterator[Submission]:
        for some in reports:
            elements = self.collection.elements(some)
            for start in range(0, len(elements), together):
                yield Submission.of(self._protocol, elements[start : start + together])

    def leave(self, advance: Callable[[int], None] = lambda steps: None) -> int:
        """Send what is written down, and say for how many people; `advance` is called after each submission."""
        people = 0

        def left(submission: Submission) -> None:
            nonlocal people
            people += submission.people
            self.outbox.remove(submission)
            advance(1)

        asyncio.run(leave(self._settings, self._protocol, self.outbox, left))
        return people


def make_folder(
    folder: Path,
    study: Study,
    addresses: Sequence[Address],
    *,
    collection: str,
    fakes: int | None = None,
    ring: int = 64,
    bits: int | None = None,
    protocol: str = "peos",
    least: int | None = None,
    public: Json | None = None,
) -> CollectionPlan:
    """Set up a collection: keys, certificates of a test authority, the plan, and a file of settings for each party.

    Without `fakes` and `least`, as many fakes and at least as many people as the study's shuffler has. In production
    every party makes its own keys: with the server's `public` key nothing secret is made here, nor any certificate.
    """
    if (folder / _PLAN).exists():
        raise InputError(f"{folder} holds a plan already: its keys would be lost")
    ring_of(study.survey, ring)  # refuses reports that cannot be shuffled, before keys are made
    own = getattr(getattr(study, "shuffler", None), "fakes", 0)
    if fakes is not None and own and fakes != own:
        raise ParameterError(f"the study was planned with {own:,} fakes, and its promises rest on them")
    chosen = own if fakes is None else fakes
    if chosen and getattr(study, "shuffler", None) is not None and ring != 64:
        raise ParameterError("promises with fakes are for reports of 64 bits on the way: of 32, fakes are less even")
    names = tuple(f"shuffler-{i + 1}" for i in range(len(addresses)))
    keys, secrets = _keys(protocol, names, ring, bits) if public is None else _given(protocol, names, ring, public)
    if least is None:
        least = getattr(getattr(study, "shuffler", None), "users", 1)
    document = parse_json(study.to_bytes())
    plan = CollectionPlan(
        protocol, collection, document, chosen, ring, tuple(zip(names, addresses, strict=True)), keys, least
    )
    make_private_folder(folder)
    if public is None:
        make_authority(folder, [*names, SERVER, DEVICE])
    for file, data in secrets.values():
        write_secret(folder / file, data)
    write_atomically(folder / "study.json", study.to_bytes())
    for name in (*names, SERVER, DEVICE):
        own_secret = secrets[name][0] if name in secrets else "secret.json" if public and name == SERVER else None
        write_atomically(folder / f"{name}.toml", _settings_file(name, own_secret).encode())
    write_atomically(folder / _PLAN, plan.to_bytes())
    return plan


def _keys(protocol: str, names: Sequence[str], ring: int, bits: int | None) -> tuple[Json, Secrets]:
    """What stands in the plan, and for each party that has a secret the name of its file and what is in it."""
    if protocol == "sequential":
        from veil.shuffle.sequential import Key, keys_in_plan

        keys = {name: Key.new() for name in (*names, SERVER)}
        public_keys = keys_in_plan([keys[name].public for name in names], keys[SERVER].public)
        return public_keys, {name: (f"{name}.secret", key.to_bytes()) for name, key in keys.items()}
    if protocol != "peos":
        raise InputError(f"there is no protocol {protocol!r} between parties: expected peos or sequential")
    from veil.shuffle.peos import FULL_BITS, check_shufflers, make_keys

    check_shufflers(len(names))
    size = FULL_BITS if bits is None else bits
    public, secret = make_keys(ring, size)
    return {"server": public.to_json()}, {SERVER: ("secret.json", json.dumps(secret.to_json()).encode())}


def _given(protocol: str, names: Sequence[str], ring: int, public: Json) -> tuple[Json, Secrets]:
    """A plan's keys where the server made its own."""
    if protocol != "peos":
        raise InputError("a public key of the server's own is for peos: in a sequential shuffle everybody has one")
    from veil.shuffle.peos import PublicKey, check_shufflers

    check_shufflers(len(names))
    key = PublicKey.from_json(public)
    if key.ring != ring:
        raise ParameterError(f"the server's key is for reports of {key.ring} bits: expected {ring}")
    return {"server": key.to_json()}, {}


def _settings_file(name: str, secret: str | None) -> str:
    lines = {
        "party": name,
        "plan": _PLAN,
        "certificate": f"{name}.crt",
        "key": f"{name}.key",
        "authority": "authority.crt",
        "data": f"data/{name}",
        **({} if secret is None else {"secret": secret}),
    }
    return "".join(f'{key} = "{value}"\n' for key, value in lines.items())
