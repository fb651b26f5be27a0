"""A study collected between parties: the folder that sets it up, people's reports in, shuffled reports out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.entropy import Batch
from veil.errors import InputError, ParameterError
from veil.files import ReportWriter
from veil.shuffle.parties.certificates import make_authority
from veil.shuffle.parties.coordinator import Shuffled
from veil.shuffle.parties.plan import DEVICE, SERVER, Address, Plan
from veil.shuffle.parties.settings import Settings
from veil.shuffle.ring import Ring, ring_of
from veil.study import Study
from veil.study.registry import study_from_json
from veil.survey import Survey
from veil.tools.canonical import parse
from veil.tools.durable import make_private_folder, write_atomically
from veil.wire.reports import Reports

__all__ = ["Collection", "make_folder"]

_PLAN = "plan.json"
_ROOM_FOR_ORDERS = 1024
"""Bits of a modulus that has room for orders of 256 bits."""


class Collection:
    """What a plan is about: its study, and the way between reports and integers of the ring."""

    def __init__(self, plan: Plan) -> None:
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

    def outcome(self, settings: Settings) -> Path:
        """Where the server keeps the shuffled reports: a file of reports that says how many are fakes."""
        return settings.folder / "reports.arrow"

    def spot_checks(self, settings: Settings) -> Path:
        """Where the server keeps what its own accounts sent, in a sequential shuffle."""
        return settings.folder / "spot-checks"

    def keep(self, settings: Settings, shuffled: Shuffled) -> Shuffled:
        """Runs at the server: write the shuffled reports down, all or nothing; without its own accounts' ones."""
        make_private_folder(settings.folder)
        if (checks := self.spot_checks(settings)).exists():
            from veil.shuffle.sequential import SpotChecks, without_checks

            shuffled = without_checks(shuffled, SpotChecks.from_bytes(checks.read_bytes()))
        reports = self._ring.reports(shuffled.elements)
        with ReportWriter(self.outcome(settings), self.survey, fakes=self.plan.fakes) as writer:
            writer.write(reports)
        return shuffled


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
) -> Plan:
    """Set up a collection: keys, certificates of a test authority, the plan, and a file of settings for each party.

    Without `fakes`, as many as the study's shuffler adds. In production every party makes its own key, and only the
    plan and certificates are the same everywhere: here one folder has everything, to be taken apart or tried out.
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
    public, secrets = _keys(protocol, names, ring, bits)
    document = parse(study.to_bytes())
    plan = Plan(protocol, collection, document, chosen, ring, tuple(zip(names, addresses, strict=True)), public)
    make_private_folder(folder)
    make_authority(folder, [*names, SERVER, DEVICE])
    for file, data in secrets.values():
        (folder / file).touch(mode=0o600)
        (folder / file).write_bytes(data)
    write_atomically(folder / "study.json", study.to_bytes())
    for name in (*names, SERVER, DEVICE):
        own_secret = secrets[name][0] if name in secrets else None
        write_atomically(folder / f"{name}.toml", _settings_file(name, own_secret).encode())
    write_atomically(folder / _PLAN, plan.to_bytes())
    return plan


Secrets = dict[str, tuple[str, bytes]]


def _keys(protocol: str, names: Sequence[str], ring: int, bits: int | None) -> tuple[dict[str, Any], Secrets]:
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
    # with orders of 64 bits, 2^32 steps find the factors: only where the modulus itself protects nobody
    public, secret = make_keys(ring, size, 256 if size >= _ROOM_FOR_ORDERS else 64)
    return {"server": public.to_json()}, {SERVER: ("secret.json", json.dumps(secret.to_json()).encode())}


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
