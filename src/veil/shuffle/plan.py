"""The plan of a collection: one file, equal at all parties."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from veil.errors import ParameterError, WireError
from veil.tools.json_documents import Json, canonical, digest, load_json
from veil.tools.numbers import is_int

SERVER = "server"
DEVICE = "device"
"""The name in a device's certificate: it may leave shares, and nothing else."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_FIELDS = ("protocol", "collection", "study", "fakes", "ring", "shufflers", "keys", "least")


def is_party_name(text: Any) -> TypeGuard[str]:
    """Return True if `text` can be the name of a party: 1 to 63 small letters, digits and hyphens.

    >>> is_party_name("shuffler-1"), is_party_name("shuffler-1\\nready")
    (True, False)
    """
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


@dataclass(frozen=True)
class Address:
    """Where a party listens.

    >>> Address.read("127.0.0.1:7101").port
    7101
    """

    host: str
    port: int

    @classmethod
    def read(cls, text: Any) -> Address:
        """From HOST:PORT."""
        host, _, port = str(text).rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise ParameterError("an address is HOST:PORT")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class CollectionPlan:
    """The plan of a collection.

    `study` is the study file's document, `fakes` how many uniform reports the shufflers add, `ring` the number of bits
    of a report, `shufflers` their names and addresses in their order, `keys` what the protocol needs to be public. No
    shuffler closes the collection with fewer than `least` people: that is what central promises rest on.
    """

    protocol: str
    collection: str
    study: Json
    fakes: int
    ring: int
    shufflers: tuple[tuple[str, Address], ...]
    keys: Json
    least: int = 1

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.collection):
            raise ParameterError("a collection's name is made of small letters, digits and hyphens")
        names = self.names
        if len(set(names)) != len(names) or any(not _NAME.fullmatch(name) for name in names):
            raise ParameterError("shufflers have different names, of small letters, digits and hyphens")
        if {SERVER, DEVICE} & set(names):
            raise ParameterError("no shuffler is named server or device")
        if not is_int(self.fakes) or self.fakes < 0:
            raise ParameterError("a number of fake reports is an integer of at least 0")
        if not is_int(self.least) or self.least < 1:
            raise ParameterError("the least number of people is an integer of at least 1")
        if self.ring not in (32, 64):
            raise ParameterError("reports are integers of 32 or 64 bits")

    @property
    def names(self) -> tuple[str, ...]:
        """The shufflers, in their order."""
        return tuple(name for name, _ in self.shufflers)

    def address(self, name: str) -> Address:
        """Where a shuffler listens."""
        return dict(self.shufflers)[name]

    def index(self, name: str) -> int:
        """A shuffler's place, from 0."""
        return self.names.index(name)

    def to_json(self) -> Json:
        """The plan as it stands in its file, and as parties show it to each other."""
        return {
            "kind": "veil-parties",
            "protocol": self.protocol,
            "collection": self.collection,
            "study": self.study,
            "fakes": self.fakes,
            "ring": self.ring,
            "shufflers": [[name, str(address)] for name, address in self.shufflers],
            "keys": self.keys,
            "least": self.least,
        }

    @classmethod
    def from_json(cls, document: Any) -> CollectionPlan:
        """The same backwards, strictly."""
        if not isinstance(document, dict) or set(document) != {"kind", *_FIELDS} or document["kind"] != "veil-parties":
            raise WireError(f"a plan of parties has the fields kind, {', '.join(_FIELDS)}")
        try:
            shufflers = tuple((str(name), Address.read(address)) for name, address in document["shufflers"])
        except (TypeError, ValueError) as problem:
            raise WireError(f"a plan lists shufflers as pairs of name and address: {problem}") from None
        if not isinstance(document["keys"], dict) or not isinstance(document["study"], dict):
            raise WireError("a plan holds a study and keys as objects")
        own = {name: document[name] for name in _FIELDS}
        return cls(**{**own, "shufflers": shufflers})

    @classmethod
    def read(cls, path: Path) -> CollectionPlan:
        """From its file."""
        try:
            document = load_json(path.read_bytes())
        except ValueError:
            raise WireError(f"{path} is not a plan of parties") from None
        return cls.from_json(document)

    def to_bytes(self) -> bytes:
        """The plan's file."""
        return canonical(self.to_json())

    def fingerprints(self) -> dict[str, str]:
        """A digest of each part: what parties show each other before they work together."""
        return {name: digest({"part": part}) for name, part in self.to_json().items() if name != "kind"}

    def differences(self, others: Any) -> list[str]:
        """In which parts another party's plan differs, by its fingerprints."""
        own = self.fingerprints()
        return [name for name in own if not isinstance(others, dict) or others.get(name) != own[name]]
