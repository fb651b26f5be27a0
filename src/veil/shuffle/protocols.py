"""The protocols between parties, by the name that stands in a plan."""

from __future__ import annotations

import json
from pathlib import Path

from veil.errors import InputError, WireError
from veil.shuffle.parties.plan import Plan
from veil.shuffle.parties.protocol import Protocol

__all__ = ["protocol_of"]


def protocol_of(plan: Plan, secret: Path | None = None) -> Protocol:
    """The protocol of a plan; with the server's secret key from its file, where it is to open the outcome."""
    if plan.protocol == "peos":
        from veil.shuffle.peos import Peos, PublicKey, SecretKey

        if secret is None:
            return Peos(plan)
        try:
            document = json.loads(secret.read_bytes())
        except ValueError:
            raise WireError(f"{secret} is not a secret key") from None
        return Peos(plan, SecretKey.from_json(document, PublicKey.from_json(plan.keys.get("server"))))
    raise InputError(f"there is no protocol {plan.protocol!r} between parties: expected peos")
