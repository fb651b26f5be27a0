"""The folder that sets a collection up: the plan, each party's settings, and keys to try it out with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from veil.errors import InputError, ParameterError
from veil.shuffle.parties.certificates import make_authority
from veil.shuffle.parties.plan import DEVICE, SERVER, Address, Plan
from veil.study import Study
from veil.tools.filesystem import make_private_folder, write_atomically, write_secret
from veil.tools.json_documents import Json, parse_json
from veil.wire.ring import ring_of

__all__ = ["make_folder"]

_PLAN = "plan.json"
Secrets = dict[str, tuple[str, bytes]]
"""By party, the name of its secret file and what is in it."""


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
) -> Plan:
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
    plan = Plan(protocol, collection, document, chosen, ring, tuple(zip(names, addresses, strict=True)), keys, least)
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
