"""Table 9.3: what the two protocols between parties cost, measured between processes and scaled to a million people."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from veil.shuffle.peos import make_keys
from veil.shuffle.rehearsal import Rehearsal, rehearse
from veil_papers.common.claims import Says, span
from veil_papers.common.exhibits import Claim, Grid, Parts, brief, exhibit
from veil_papers.peos.plan import Plan

_MILLION = 1_000_000
_SOME, _MANY = 500, 5_500
_PROTOCOLS = {"SS": "sequential", "PEOS": "peos"}
_ROWS: dict[str, Callable[[Rehearsal], float]] = {
    "user, ms": lambda one: 1000 * one.user_seconds,
    "user, bytes": lambda one: one.user_bytes,
    "shuffler, s": lambda one: _each(one, sum(cost.seconds for cost in one.shufflers)),
    "shuffler, MB": lambda one: _each(one, sum(cost.sent for cost in one.shufflers)) / 1e6,
    "server, s": lambda one: one.server_seconds / one.reports * _MILLION,
    "server, MB": lambda one: one.server_bytes / one.reports * _MILLION / 1e6,
}
_THESIS: dict[tuple[str, int], tuple[float, ...]] = {
    ("SS", 3): (0.24, 416, 49, 224, 49, 128),
    ("SS", 7): (0.49, 800, 50, 416, 49, 128),
    ("PEOS", 3): (1.6, 400, 0.2, 429.8, 65, 392),
    ("PEOS", 7): (1.6, 432, 0.7, 3293.3, 65, 408),
}
Found = dict[tuple[str, int], Rehearsal]
"""By protocol and number of shufflers."""


def _each(one: Rehearsal, total: float) -> float:
    """What one shuffler of them has of a total, on average and for a million reports."""
    return total / len(one.shufflers) / one.reports * _MILLION


def measure(plan: Plan) -> Found:
    """A collection for each protocol and number of shufflers."""
    wanted = [("SS", r) for r in plan.sequential] + [("PEOS", r) for r in plan.oblivious]
    found: Found = {}
    with plan.watch("Table 9.3: collections between processes", len(wanted)) as advance:
        for name, r in wanted:
            found[name, r] = rehearse(_PROTOCOLS[name], shufflers=r, people=plan.collected, fakes=plan.added)
            advance(1)
    return found


@exhibit
def table_3(found: Found, plan: Plan) -> Parts:
    """Table 9.3: what a million people cost each party."""
    columns = [(f"{name}, r = {r}", name, r) for name, r in found]
    ours = {(name, r): [row(one) for row in _ROWS.values()] for (name, r), one in found.items()}
    known = [(shown, _THESIS[name, r], ours[name, r]) for shown, name, r in columns if (name, r) in _THESIS]
    numbers = tuple(tuple(theirs[i] / mine[i] for _, theirs, mine in known) for i in range(len(_ROWS)))
    fails = tuple(tuple(False for _ in row) for row in numbers)
    title = "how many times less than the thesis measured"
    yield Grid(title, "", tuple(_ROWS), tuple(shown for shown, _, _ in known), numbers, fails, 0.1, 4.0, "cost")
    yield _numbers(columns, ours)
    yield (
        f"Measured with {plan.collected:,} people and {plan.added:,} fakes, keys of 3072 bits, each shuffler a process "
        "of its own on one machine, over TLS; seconds are of one core, on average over the shufflers; bytes are those "
        "sent, by the server those received, frames included and TLS's own not. The thesis has 32 threads for "
        "decryption, and ElGamal and AES where SS has HPKE here. Its shufflers do not renew ciphertexts, without which "
        "server and first shuffler link every report to its sender: that is what a shuffler's seconds are here."
    )
    yield Says("(ours) Every report comes out, among as many fakes as were planned").exactly(
        f"{sum(one.whole for one in found.values())} of {len(found)} collections", all(o.whole for o in found.values())
    )
    yield from _formulas(found)
    yield from _goals(found, plan)
    yield from _theirs(found)


def _numbers(columns: list[tuple[str, str, int]], ours: dict[tuple[str, int], list[float]]) -> str:
    """Both tables, as a table in Markdown."""
    head = "| | " + " | ".join(f"{shown}: thesis | ours" for shown, _, _ in columns) + " |"
    lines = [head, "|---" * (1 + 2 * len(columns)) + "|"]
    for i, row in enumerate(_ROWS):
        cells = []
        for _, name, r in columns:
            theirs = _THESIS.get((name, r))
            cells += ["" if theirs is None else f"{theirs[i]:g}", f"{ours[name, r][i]:.3g}"]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _formulas(found: Found) -> Iterator[Claim]:
    """Bytes beside those of the formulas."""
    ratios: list[float] = []
    expected: tuple[float, float, float]
    for (name, r), one in found.items():
        t, rounds = r // 2 + 1, math.comb(r, r // 2 + 1)
        if name == "PEOS":
            shares = rounds * (r - t) * t + (rounds - 1) * t * (r - 1) - (r - t) + (t - 1)
            expected = (8 * (r - 1) + 384, 384 * (r - t + 1) + 8 * shares, 8 * (t - 1) + 384)
        else:
            layers = [8 + 48 * k for k in range(1, r + 2)]
            # each shuffler adds its fakes behind the people's messages
            passed = sum(layers[r - 1 - i] * (one.people + one.fakes * (i + 1) // r) for i in range(r))
            expected = (layers[-1], passed / one.reports, layers[0])
        measured = (one.user_bytes, one.shuffled_bytes, one.server_bytes / one.reports)
        ratios += [had / should for had, should in zip(measured, expected, strict=True)]
    says = "(goal) Bytes of users, shufflers and server are those of the formulas, within 1 %"
    yield Says(says).given(f"{span(ratios, '.4f')} of them", all(abs(ratio - 1) <= 0.01 for ratio in ratios))


def _goals(found: Found, plan: Plan) -> Iterator[Claim]:
    """What was to be reached."""
    peos = {r: one for (name, r), one in found.items() if name == "PEOS"}
    encryption, decryption = (1000 * seconds for seconds in _fastest(plan.turns))
    best = "(here: the best of several turns; the machine is shared)"
    yield Says(f"(goal) Encryption takes less than 0.4 ms on one core {best}").given(
        f"{encryption:.3f} ms", encryption < 0.4
    )
    yield Says(f"(goal) Decryption takes less than 0.45 ms on one core {best}").given(
        f"{decryption:.3f} ms", decryption < 0.45
    )
    for r, limit in ((3, 60), (5, 80)):
        if r in peos:
            seconds = peos[r].core_seconds * 22_000 / peos[r].reports
            says = f"(goal) 20,000 people and 2,000 fakes take less than {limit} s of one core, r = {r}"
            yield Says(says).given(f"{seconds:.1f} s", seconds < limit)


def _fastest(turns: int) -> tuple[float, float]:
    """The seconds that one encryption and one decryption take at best, with tables."""
    public, secret = make_keys()
    shares = np.arange(_SOME, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    ciphertexts = np.tile(public.encrypt_all(shares), (_MANY // _SOME, 1))
    secret.decrypt_all(ciphertexts)  # makes the tables for many

    def best(work: Callable[[], object], count: int) -> float:
        times = []
        for _ in range(turns):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return min(times) / count

    encryption = best(lambda: public.encrypt_all(shares), _SOME)
    return encryption, best(lambda: secret.decrypt_all(ciphertexts), _MANY)


def _theirs(found: Found) -> Iterator[Claim]:
    """What the thesis says about its table."""
    peos = {r: one for (name, r), one in found.items() if name == "PEOS"}
    sizes, times = [one.user_bytes for one in peos.values()], [1000 * one.user_seconds for one in peos.values()]
    yield Says("The user-side overhead is small: 400 to 432 bytes and 1.6 ms").given(
        f"{span(sizes, '.0f')} bytes, {span(times, '.2f')} ms", max(sizes) < 440 and max(times) < 1.6
    )
    seconds = [_ROWS["shuffler, s"](one) for one in peos.values()]
    yield Says("A shuffler's computation is no more than one second for a million reports").given(
        f"{span(seconds, brief)} s, because ciphertexts have to be renewed", max(seconds) <= 1
    )
    server = [one.server_bytes / one.reports for one in peos.values()]
    yield Says("The server's communication is mostly the encrypted share, and grows slowly with r").given(
        f"{span(server, '.0f')} bytes for each report", max(server) < 440
    )
