"""The schedule of PEOS: the hiders, seekers and holder of each round, fixed and public.

With r shufflers and t = floor(r/2) + 1 there is a round for each group of t of them, the *hiders*, in lexicographic
order; the others are *seekers*. One shuffler, the *holder*, has its shares under the server's key. Per round:

1. Seekers split what they have among the hiders. A holder that is a seeker hands its ciphertexts to the first hider.
2. The hiders agree on a secret permutation, and all apply it.
3. But for the last round, each hider splits what it has among all r shufflers, and everybody adds up.

The holder stays what it is while it is a hider: it adds and splits by a plaintext offset beside the ciphertexts, which
nobody else sees. When it hands over, and when the last one hands over to the server, it multiplies every ciphertext by
a fresh h^r, after permuting. In lexicographic order the holders are 1, 2, ..., r - t + 1, so that there are r - t + 1
passes over the ciphertexts in all, where a new holder in every round would need C(r, t).

**Why the server and r - t shufflers together learn nothing about who sent what.** They follow the protocol, but tell
each other everything. (A holder that deviates can mark a ciphertext for the server: docs/peos.md. The thesis's
Corollary 9.5.1 for a random schedule rests on Laur, Willemson and Zhang 2011.)
Of r shufflers r - t are corrupt at most, so there is a round whose hiders H are all honest. Its permutation is uniform
and unknown to the corrupt parties. It remains to show that what they see before and after that round does not tell it.

- *Plain shares.* Before the round, what corrupt parties know of a report is their own shares. What they send to the
  hiders in step 1 they know too. If the round is not the last one, every hider splits what it has afresh in step 3: all
  shares afterwards are uniform among those with the right sum, whatever there was before. If it is the last one, its
  hiders' shares go to the server as they are. They came from the round before it, whose hiders are more than half of
  all shufflers and so have somebody in common with H: its splitting made the shares of H uniform among those with the
  right sum, and what seekers added does not change that. In both cases what is seen afterwards is, given the sums, that
  is the reports in their new order, independent of what was seen before.
- *Ciphertexts.* The first of H is the holder in this round. Whoever sees the ciphertexts next gets them from it or from
  a later holder, so after a hand-over that came after the permutation. There each was multiplied by g^o h^s with a
  fresh s: given its plaintext it is uniform among all encryptions of it (but for 2^-128), also for whoever can decrypt.
  And its plaintext is a share as above. Without this, h^r stays the same from the device to the server, and server and
  first shuffler link every report: they divide out g^m and compare. A test does it.

So the corrupt parties see the same whatever the permutation in that round was, and who sent what is hidden among all
n + n_r reports. It is floor(r/2) of them for odd r; for an even r, r - t = r/2 - 1 is what r - 1 shufflers tolerate
already, at a higher price: r is odd.

All shufflers together, without the server, see plain shares of all but the holder's: the reports are hidden by the
encryption. Then, as for the server with more than r - t shufflers, who sent what is not hidden, and the local
promise of each report is what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from veil.errors import ParameterError
from veil.tools.numbers import is_int

_MOST = 15  # 6,435 rounds: each of them is a round trip between all


def check_shufflers(count: int) -> int:
    """An odd number of shufflers from 3, or a refusal that says why."""
    if not is_int(count) or count < 3:
        raise ParameterError(
            "PEOS takes at least 3 shufflers: with 1 or 2, one that tells the server is enough to undo the shuffle"
        )
    if count % 2 == 0:
        raise ParameterError(
            f"PEOS takes an odd number of shufflers: with {count} as with {count - 1}, no more than {(count - 1) // 2} "
            "may be corrupt, and they cost more"
        )
    if count > _MOST:
        raise ParameterError(f"PEOS takes at most {_MOST} shufflers: the number of rounds doubles with each")
    return int(count)


@dataclass(frozen=True)
class HidingRound:
    """One round: who hides, who has the ciphertexts when it begins, and whether it is the last."""

    number: int
    hiders: tuple[int, ...]
    holder: int
    last: bool

    @property
    def heir(self) -> int:
        """Who has the ciphertexts once seekers have passed theirs on: the first of the hiders."""
        return self.hiders[0]

    @property
    def hands_over(self) -> bool:
        """Whether the holder is a seeker in this round."""
        return self.holder not in self.hiders


@dataclass(frozen=True)
class Schedule:
    """All rounds for so many shufflers, counted from 0.

    >>> [(one.hiders, one.holder) for one in Schedule(3).rounds]
    [((0, 1), 0), ((0, 2), 0), ((1, 2), 0)]
    >>> [Schedule(r).bytes_per_report() for r in (3, 5, 7)]
    [880, 2496, 11424]
    """

    shufflers: int

    def __post_init__(self) -> None:
        check_shufflers(self.shufflers)

    @property
    def hiders(self) -> int:
        """t: how many hide in a round."""
        return self.shufflers // 2 + 1

    @property
    def tolerated(self) -> int:
        """How many corrupt shufflers the shuffle withstands, the server among the corrupt or not."""
        return self.shufflers - self.hiders

    @cached_property
    def rounds(self) -> tuple[HidingRound, ...]:
        """The rounds, in order."""
        groups = list(combinations(range(self.shufflers), self.hiders))
        holders = [0, *(group[0] for group in groups[:-1])]
        numbered = enumerate(zip(groups, holders, strict=True))
        return tuple(HidingRound(i, group, holder, i == len(groups) - 1) for i, (group, holder) in numbered)

    @property
    def last_hiders(self) -> tuple[int, ...]:
        """Those who send the server their shares in the end; the first of them sends ciphertexts."""
        return self.rounds[-1].hiders

    def bytes_per_report(self, ciphertext: int = 384, share: int = 8) -> int:
        """What all shufflers together send for each report, fakes included."""
        r, t, rounds = self.shufflers, self.hiders, len(self.rounds)
        shares = rounds * (r - t) * t + (rounds - 1) * t * (r - 1) - (r - t) + (t - 1)
        return ciphertext * (r - t + 1) + share * shares
