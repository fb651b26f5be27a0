"""A shuffler, as a study knows it: how many reports it mixes, and which promise people rely on it for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from veil.privacy import decimal_text
from veil.shuffle.amplification import Amplified, amplify
from veil.shuffle.bounds import check_delta, check_users
from veil.tools.canonical import Json, number, take

if TYPE_CHECKING:
    from veil.mechanisms import Mechanism

__all__ = ["Shuffler"]


@dataclass(frozen=True)
class Shuffler:
    """Reports are mixed with those of at least `users` people before anybody reads them; promises hold up to `delta`.

    >>> from veil import GRR
    >>> Shuffler(10_000, 1e-6).central(GRR(1.0, 100)).epsilon < 0.0072
    True
    """

    users: int
    delta: float
    kind: ClassVar[str] = "shuffler"

    def __post_init__(self) -> None:
        object.__setattr__(self, "users", check_users(self.users))
        object.__setattr__(self, "delta", check_delta(self.delta))

    def central(self, mechanism: Mechanism, people: int | None = None) -> Amplified:
        """The promise towards whoever sees only mixed reports; `people`, where fewer came than were promised."""
        return amplify(mechanism, self.users if people is None else min(people, self.users), self.delta)

    def to_json(self) -> Json:
        """As it stands in a study file."""
        return {"kind": self.kind, "users": self.users, "delta": decimal_text(self.delta)}

    @classmethod
    def from_json(cls, document: Any) -> Shuffler:
        """The same backwards, strictly."""
        users, delta = take(document, cls.kind, "users", "delta")
        return cls(users, number(delta))
