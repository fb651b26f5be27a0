"""The protocols between parties, by the name that stands in a plan."""

from __future__ import annotations

from pathlib import Path

from veil.errors import InputError, WireError
from veil.shuffle.parties.plan import Plan
from veil.shuffle.parties.protocol import Protocol
from veil.tools.json_documents import load_json

__all__ = ["protocol_of"]


def protocol_of(plan: Plan, secret: Path | None = None, folder: Path | None = None) -> Protocol:
    """The protocol of a plan, with the party's secret key from its file where it has one.

    In PEOS that is the server; in the sequential shuffle every shuffler too, and a shuffler remembers in its `folder`.
    """
    if plan.protocol == "peos":
        from veil.shuffle.peos import Peos, PublicKey, SecretKey

        if secret is None:
            return Peos(plan)
        try:
            document = load_json(secret.read_bytes())
        except ValueError:
            raise WireError(f"{secret} is not a secret key") from None
        return Peos(plan, SecretKey.from_json(document, PublicKey.from_json(plan.keys.get("server"))))
    if plan.protocol == "sequential":
        from veil.shuffle.sequential import Key, Sequential

        return Sequential(plan, None if secret is None else Key.read(secret), folder)
    raise InputError(f"there is no protocol {plan.protocol!r} between parties: expected peos or sequential")
