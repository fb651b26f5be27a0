"""A shuffler, as a study knows it: how many reports it mixes, and which promise people rely on it for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from veil.errors import WireError
from veil.privacy import decimal_text
from veil.shuffle.accountant import Fakes
from veil.shuffle.amplification import Amplified, amplify
from veil.shuffle.blanket import blanket_of
from veil.shuffle.bounds import check_delta, check_users
from veil.shuffle.fakes import against_server, against_server_and_users, check_fakeable
from veil.tools.json_documents import Json, number, take

if TYPE_CHECKING:
    from veil.mechanisms import Mechanism

__all__ = ["Shuffler"]


@dataclass(frozen=True)
class Shuffler:
    """Reports are mixed with those of at least `users` people before anybody reads them; promises hold up to `delta`.

    Where shufflers add uniform fake reports (PEOS), `fakes` is how many they add together. One person is then hidden
    among these even if all other people tell the server what they sent.

    >>> from veil import GRR
    >>> Shuffler(10_000, 1e-6).central(GRR(1.0, 100)).epsilon < 0.0072
    True
    >>> Shuffler(10_000, 1e-6, fakes=5_000).among_fakes(GRR(1.0, 100)).epsilon < 0.0105
    True
    """

    users: int
    delta: float
    fakes: int = 0
    kind: ClassVar[str] = "shuffler"

    def __post_init__(self) -> None:
        object.__setattr__(self, "users", check_users(self.users))
        object.__setattr__(self, "delta", check_delta(self.delta))
        object.__setattr__(self, "fakes", Fakes(self.fakes).count)

    def check(self, mechanism: Mechanism) -> None:
        """Refuse a mechanism whose promise behind this shuffler is not known."""
        if self.fakes:
            check_fakeable(mechanism)
        blanket_of(mechanism)

    def central(self, mechanism: Mechanism, people: int | None = None) -> Amplified:
        """The promise towards whoever sees only mixed reports; `people`, where fewer came than were promised."""
        users = self.users if people is None else min(people, self.users)
        if not self.fakes:
            return amplify(mechanism, users, self.delta)
        if users < 2:  # nobody else to hide among
            return self.among_fakes(mechanism)
        return against_server(mechanism, users, self.fakes, self.delta)

    def among_fakes(self, mechanism: Mechanism) -> Amplified:
        """The promise towards the server and all other people together: without fakes, the local one."""
        self.check(mechanism)
        return against_server_and_users(mechanism, self.fakes, self.delta)

    def to_json(self) -> Json:
        """As it stands in a study file; fakes only where there are some."""
        added = {"fakes": self.fakes} if self.fakes else {}
        return {"kind": self.kind, "users": self.users, "delta": decimal_text(self.delta), **added}

    @classmethod
    def from_json(cls, document: Any) -> Shuffler:
        """The same backwards, strictly."""
        if isinstance(document, dict) and "fakes" in document:
            users, delta, fakes = take(document, cls.kind, "users", "delta", "fakes")
            if fakes == 0:
                raise WireError("a shuffler without fakes does not name them")
            return cls(users, number(delta), fakes)
        users, delta = take(document, cls.kind, "users", "delta")
        return cls(users, number(delta))
