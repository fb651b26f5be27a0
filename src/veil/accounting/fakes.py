"""Central guarantees and errors where shufflers add uniform fake reports (thesis 9.5), and the shuffler of a study.

A fake report says nothing about anybody, and looks like a real one. The report of one person hides among the fakes even
if the server and all other people combine what they know. For GRR and OLH the blanket is the uniform distribution of
all reports, so a fake is, exactly or almost, a report from the blanket:

- Reports travel as integers modulo 2^l. A fake is a uniform one, and stands for a value (GRR) or for a bucket of the
  hash function of a uniform seed (OLH); a device draws uniformly among the integers that stand for its report. Given
  the value or bucket, an integer carries no information, so the server might as well see values or buckets.
- Of 2^b integers (b = 64 for GRR, the 32 low bits for OLH), some of d' buckets have one more than others. Each has a
  share of at least floor(2^b / d') / 2^b, `least_share`. The distribution of a fake is therefore a mixture: uniform
  with probability d' * least_share, otherwise independent of anybody's value, and it may be revealed to an attacker. So
  a fake counts as a report that is from the blanket with probability d' * least_share, where a person's report has
  gamma.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from veil.accounting import bounds
from veil.accounting.amplification import ShuffleGuarantee, amplify, certified, promised, unshuffled
from veil.accounting.blanket import blanket_of
from veil.accounting.blanket_delta import Fakes
from veil.accounting.bounds import check_delta, check_users
from veil.errors import ParameterError, WireError
from veil.privacy import decimal_text
from veil.tools.json_documents import Json, number, take

if TYPE_CHECKING:
    from veil.mechanisms import FrequencyOracle, Mechanism


FakeBound = Literal["blanket", "thesis"]
_RING_BITS, _BUCKET_BITS = 64, 32
"""Of all integers, and of the part of them that stands for a bucket of local hashing."""


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

    def central(self, mechanism: Mechanism, people: int | None = None) -> ShuffleGuarantee:
        """The promise towards whoever sees only mixed reports; `people`, where fewer came than were promised."""
        users = self.users if people is None else min(people, self.users)
        if not self.fakes:
            return amplify(mechanism, users, self.delta)
        if users < 2:  # nobody else to hide among
            return self.among_fakes(mechanism)
        return against_server(mechanism, users, self.fakes, self.delta)

    def among_fakes(self, mechanism: Mechanism) -> ShuffleGuarantee:
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


def against_server(
    mechanism: Mechanism, users: int, fakes: int, delta: float, bound: FakeBound = "blanket"
) -> ShuffleGuarantee:
    """The promise towards the server alone, which sees the shuffled reports of all users and the fakes among them.

    "thesis" is Corollary 9.5.2 or 9.5.3.

    >>> from veil import OLH
    >>> found = against_server(OLH(4.0, 1000, 16), 100_000, 50_000, 1e-9)
    >>> round(found.epsilon, 4), round(against_server(OLH(4.0, 1000, 16), 100_000, 50_000, 1e-9, "thesis").epsilon, 4)
    (0.0777, 0.2564)
    """
    _check(mechanism, fakes, bound)
    users, delta = check_users(users), check_delta(delta)
    if not fakes:
        return amplify(mechanism, users, delta, bound)
    if bound == "blanket":
        low, ratio = certified(blanket_of(mechanism), users, delta, fakes_of(mechanism, fakes))
    else:
        share = 1 / (math.exp(mechanism.guarantee.epsilon) + buckets_of(mechanism) - 1)
        low, ratio = _by_thesis((users - 1) * share + fakes * float(least_share(mechanism)), delta)
    return promised(mechanism, users, delta, bound, low, ratio, fakes)


def against_server_and_users(
    mechanism: Mechanism, fakes: int, delta: float, bound: FakeBound = "blanket"
) -> ShuffleGuarantee:
    """The promise towards the server and all other users together: one person's report hides among the fakes alone.

    >>> from veil import OLH
    >>> found = against_server_and_users(OLH(4.0, 1000, 16), 50_000, 1e-9)
    >>> round(found.epsilon, 4), round(against_server_and_users(OLH(4.0, 1000, 16), 50_000, 1e-9, "thesis").epsilon, 4)
    (0.0946, 0.3098)
    """
    _check(mechanism, fakes, bound)
    delta = check_delta(delta)
    if not fakes:
        return unshuffled(mechanism, 1, bound)
    if bound == "blanket":
        low, ratio = certified(blanket_of(mechanism), 1, delta, fakes_of(mechanism, fakes))
    else:
        low, ratio = _by_thesis(fakes * float(least_share(mechanism)), delta)
    return promised(mechanism, 1, delta, bound, low, ratio, fakes)


def _by_thesis(mean: float, delta: float) -> tuple[float, float]:
    low = bounds.binomial(mean, delta)
    return low, math.exp(low) * (1 + 2.0**-40)


def variance_with_fakes(oracle: FrequencyOracle, users: int, fakes: int, frequency: float = 0.0) -> float:
    """The variance of a frequency of `users` people, estimated from their reports and as many fakes (9.5.3).

    What fakes are expected to add is subtracted; what they add beyond it stays, as noise.

    >>> from veil import GRR
    >>> oracle = GRR(2.0, 10)
    >>> variance_with_fakes(oracle, 1000, 0) == oracle.variance(1000)
    True
    >>> f"{variance_with_fakes(oracle, 1000, 500):.3g}"
    '0.000673'
    """
    check_fakeable(oracle)
    p, q = (float(getattr(oracle, name)) for name in ("p", "q"))
    assert oracle.fake_support is not None  # GRR and OLH, or it would have been refused
    supports = float(oracle.fake_support)
    return oracle.variance(users, frequency) + fakes * supports * (1 - supports) / (users * (p - q)) ** 2


def least_share(mechanism: Mechanism) -> Fraction:
    """The smallest probability that a uniform integer stands for a given value or bucket.

    >>> from veil import OLH
    >>> least_share(OLH(1.0, 1000, 16)), float(1 - 3 * least_share(OLH(1.0, 1000, 3)))
    (Fraction(1, 16), 2.3283064365386963e-10)
    """
    from veil.mechanisms import GRR

    buckets = buckets_of(mechanism)
    many = 1 << (_RING_BITS if isinstance(mechanism, GRR) else _BUCKET_BITS)
    return Fraction(many // buckets, many)


def fakes_of(mechanism: Mechanism, fakes: int) -> Fakes:
    """So many fake reports, as the accountant takes them."""
    return Fakes(int(fakes), buckets_of(mechanism) * least_share(mechanism))


def buckets_of(mechanism: Mechanism) -> int:
    """Among how many values or buckets a fake report is uniform."""
    from veil.mechanisms import GRR, OLH

    if isinstance(mechanism, GRR):
        return mechanism.domain.size
    if isinstance(mechanism, OLH):
        return mechanism.hash_range
    raise ParameterError(
        f"fake reports are accounted for GRR and OLH, whose blanket is uniform: not for "
        f"{getattr(mechanism, 'name', 'this')}; expected one of these, or a shuffler without fakes"
    )


def check_fakeable(mechanism: Mechanism) -> None:
    """Refuse a mechanism for which fakes are not accounted."""
    buckets = buckets_of(mechanism)
    if buckets > 1 << _BUCKET_BITS:
        raise ParameterError("fake reports are uniform among at most 2^32 values or buckets")


def _check(mechanism: Mechanism, fakes: int, bound: str) -> None:
    if bound not in ("blanket", "thesis"):
        raise ParameterError('a bound is "blanket" or "thesis"')
    check_fakeable(mechanism)
    Fakes(fakes)  # refuses what is no number of fakes
