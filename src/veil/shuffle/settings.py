"""The settings file of one party: its name, address, certificate and folder."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veil.errors import InputError, ParameterError
from veil.shuffle.plan import CollectionPlan
from veil.shuffle.transport.certificates import PartyIdentity
from veil.tools.messages import unknown_name
from veil.tools.numbers import is_int, is_number

_TEXTS = ("party", "plan", "certificate", "key", "authority", "data")
_MORE = ("secret", "silence", "patience", "limit", "connections")


@dataclass(frozen=True)
class PartySettings:
    """What a party knows about itself; its plan is what it shares with all others.

    `silence` is after how many seconds without a sign of life a party counts as gone, `patience` for how many seconds
    others may take until they can be reached and have shown who they are. `limit` is for how many seconds a party may
    work on one request; a shuffle may take longer for each report (`Protocol.seconds`). A shuffler serves up to
    `connections` devices at a time, and as many connections that have not shown who they are.
    `secret` is the file with a protocol's secret key, where the party has one.
    """

    party: str
    plan: CollectionPlan
    identity: PartyIdentity
    data: Path
    secret: Path | None = None
    silence: float = 20.0
    patience: float = 10.0
    limit: float = 300.0
    connections: int = 64

    @classmethod
    def read(cls, path: Path) -> PartySettings:
        """From a TOML file; paths in it are relative to its folder."""
        try:
            found = tomllib.loads(path.read_text())
        except (ValueError, RecursionError) as problem:  # also a number of more than 4,300 digits
            raise InputError(f"{path} is not a TOML file: {problem}") from None
        unknown = [name for name in found if name not in _TEXTS + _MORE]
        if unknown:
            raise InputError(f"{path}: {unknown_name('a setting', unknown[0], _TEXTS + _MORE)}")
        missing = [name for name in _TEXTS if not isinstance(found.get(name), str)]
        if missing:
            raise InputError(f"{path} lacks the setting {missing[0]}, a text")

        def file(name: str) -> Path:
            return path.parent / str(found[name])

        identity = PartyIdentity(file("certificate"), file("key"), file("authority"))
        secret = file("secret") if "secret" in found else None
        seconds = {name: _seconds(found[name], name) for name in ("silence", "patience", "limit") if name in found}
        connections = _connections(found.get("connections", cls.connections))
        plan = CollectionPlan.read(file("plan"))
        return cls(found["party"], plan, identity, file("data"), secret, **seconds, connections=connections)

    @property
    def folder(self) -> Path:
        """Where this party keeps what belongs to the collection."""
        return self.data / self.plan.collection


def _seconds(value: Any, name: str) -> float:
    if not is_number(value) or not 0.1 <= value <= 3600:
        raise ParameterError(f"{name} is a number of seconds, from 0.1 to 3600")
    return float(value)


def _connections(value: Any) -> int:
    if not is_int(value) or not 1 <= value <= 100_000:
        raise ParameterError(f"connections: expected an integer from 1 to 100,000, got {value!r}")
    return int(value)
