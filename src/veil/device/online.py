"""A client on the network: it fetches a survey, verifies it, answers, and sends the answer until it arrives.

The rules are those of the browser client (docs/devices.md). After a refusal that may pass, the same bytes are sent
again at growing intervals, and not before the time in Retry-After. After a final refusal, the report is kept with the
reason.
"""

from __future__ import annotations

import base64
import binascii
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from veil.device.client import Client, checked_ledger
from veil.device.ledger import Ledger
from veil.device.outbox import Outbox, Parcel, Refusal
from veil.device.repeated_answers import written
from veil.device.statements import best_text, statements
from veil.device.verification import (
    NAME,
    check_valid,
    opening,
    published_task,
    read_about,
    read_published,
    verified,
)
from veil.device.web import HttpResponse, UntrustedError, Web
from veil.errors import AnsweredError, CollectorError, MismatchError, ParameterError, VeilError, WireError
from veil.survey import Survey
from veil.tools.json_documents import Json

FRAMED = "application/vnd.veil.reports"
_TASK = re.compile(r"[0-9a-f]{64}")
_FRESH = 300.0  # seconds for which a survey need not be looked at again
_FIRST, _LONGEST = 1.0, 300.0  # seconds before the second attempt, then twice as long each time, up to the longest
_DAY = 86_400.0


@dataclass(frozen=True)
class Receipt:
    """What became of an answer. It is paid for in every case.

    `delivered`: the collector has acknowledged it. `queued`: it is kept, and sent later. `refused`: the collector will
    never take it, for the reason given; it is not sent again. `earlier`: the survey was answered before, and what
    recognises that answer is forgotten. So nothing was drawn, paid or sent now, and the rest is about that answer.
    """

    state: Literal["delivered", "queued", "refused"]
    reason: Refusal | None = None
    earlier: bool = False


@dataclass(frozen=True)
class Clock:
    """What waiting needs from the world; tests bring their own."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[], float] = random.SystemRandom().random


def open_client(
    url: str,
    key: str | bytes | Sequence[str | bytes],
    name: str,
    ledger: Ledger,
    clock: Clock | None = None,
    *,
    allow_fine_times: bool = False,
) -> OnlineClient:
    """Runs on the device: see `Client.open`."""
    if not isinstance(name, str) or not (_TASK.fullmatch(name) or NAME.fullmatch(name)):
        raise ParameterError("expected the task id of a survey (64 hex digits), or its name: small letters, digits, -")
    ledger = checked_ledger(ledger)
    outbox = Outbox(None if ledger.path is None else ledger.path.with_name(f"{ledger.path.name}.outbox"))
    client = OnlineClient(
        Web(url), _read_keys(key), name, ledger, outbox, clock or Clock(), fine_times=allow_fine_times
    )
    client.look()
    ledger.check(client.survey.guarantee)
    return client


class OnlineClient:
    """Answers one survey of one collector for one person. `Client.open` makes it."""

    def __init__(
        self,
        web: Web,
        keys: tuple[bytes, ...],
        name: str,
        ledger: Ledger,
        outbox: Outbox,
        clock: Clock,
        *,
        fine_times: bool,
    ) -> None:
        self._web, self._keys, self._name, self._clock = web, keys, name, clock
        self._task = name if _TASK.fullmatch(name) else None
        self.ledger, self.outbox, self._fine_times = ledger, outbox, fine_times
        self._client: Client | None = None
        self._key = b""
        self._about: Json | None = None
        self._published: Json = {}
        self._seen, self._step = 0.0, 1

    @property
    def survey(self) -> Survey:
        """The survey as it was verified last."""
        assert self._client is not None
        return self._client.survey

    @property
    def wave(self) -> int | None:
        """Which wave of its name the survey is, counted from 1; None where it has no name."""
        return None if self._about is None else int(self._about["wave"])

    @property
    def step(self) -> int:
        """How many new reports the collector's answers count at a time, as it signed."""
        return self._step

    def text(self, *languages: str) -> str | None:
        """The question for people, in the first of these languages that it has; else in English, else in any.

        None where the collector says nothing about the survey.
        """
        return best_text({} if self._about is None else self._about["texts"], languages)

    @property
    def statements(self) -> dict[str, str]:
        """What to tell the person before they answer, by topic (`veil.device.statements`)."""
        return statements(self._published, self._web.address, self._key)

    @property
    def waiting(self) -> int:
        """How many reports wait for this collector."""
        return len(self._waiting())

    def answer(
        self,
        value: Any,
        public: Any = None,
        *,
        occasion: str | None = None,
        changed: bool = False,
        patience: float = 30.0,
    ) -> Receipt:
        """Runs on the device: randomize an answer, pay for it, and send it, trying again for `patience` seconds.

        Everything is on the disk before anything leaves the device. What could not be sent is sent by the next answer
        or `deliver`, also of another process. `occasion` is for surveys that are answered again and again (`Client`).
        An answer that was delivered, or refused for good, is forgotten; after it, only one that the person calls
        `changed` is drawn, paid and sent. See `Receipt.earlier`.
        """
        if abs(self._clock.now() - self._seen) > _FRESH:
            self.look()  # it may have closed since this client was opened
        assert self._client is not None
        self._check_wave(self._key, self._about)  # another process with this ledger may have seen a later one
        drafts: list[str] = []

        def draft(report: bytes) -> None:
            if self._task is None:  # the collector chooses what is asked under a name, and at which eps
                self.ledger.accept_price(f"{self._web.address}:{self._name}", self.survey.guarantee)
            drafts.append(self.outbox.put(self._parcel(report)).id)

        try:
            report = self._client.answer(value, public, occasion=occasion, changed=changed, drawn=draft)
        except VeilError as problem:
            for id_ in drafts:
                self.outbox.discard(id_)
            if not isinstance(problem, AnsweredError):
                raise
            self.deliver(patience)
            return self._earlier()
        parcel = self.outbox.put(replace(self._parcel(report), paid=True))
        for id_ in drafts:
            self.outbox.discard(id_)  # of a thread or process that was first with the same answer
        self.deliver(patience)
        left = next((other for other in self.outbox.parcels() if other.id == parcel.id), None)
        if left is None:
            return Receipt("delivered")
        return Receipt("queued") if left.refusal is None else Receipt("refused", left.refusal)

    def _earlier(self) -> Receipt:
        """What became of the answers to this survey that were given before."""
        mine = [parcel for parcel in self.outbox.parcels() if parcel.task == self.survey.task and parcel.paid]
        if any(parcel.waits for parcel in mine):
            return Receipt("queued", earlier=True)
        reason = next((parcel.refusal for parcel in reversed(mine)), None)
        return Receipt("delivered" if reason is None else "refused", reason, earlier=True)

    def deliver(self, patience: float = 0.0) -> int:
        """Runs on the device: send what waits for this collector, for so long at most. Returns how many are left."""
        self._settle_drafts()
        left = patience  # counted by what was waited: the clock may be set back meanwhile
        due = self._attempt_all(eager=True)
        while due is not None and (wait := max(due - self._clock.now(), 0.0)) <= left:
            self._clock.sleep(wait)
            left -= wait
            due = self._attempt_all(eager=False)
        return self.waiting

    def look(self) -> None:
        """Fetch the survey and verify it; while the collector cannot be reached, verify the copy that is kept."""
        path = f"/v1/surveys/{self._name if self._task else f'by-name/{self._name}'}"
        address = self._web.address + path
        answer = self._asked(path)
        if answer is None or answer.passing:
            kept = self.outbox.survey(address)
            if kept is None:
                why = "cannot be reached" if answer is None else f"publishes no survey now (status {answer.status})"
                raise CollectorError(f"the collector {why}, and this device has no copy of the survey")
            self._use(kept)
            return
        if answer.status == 410:
            self._forget_closed(address)
            raise CollectorError("this survey is closed: the collector takes no more answers")
        if answer.status != 200:
            raise CollectorError(f"the collector does not publish this survey (status {answer.status})")
        self._use(answer.document)
        self._seen = self._clock.now()
        self.outbox.keep_survey(address, _checked_part(answer.document))

    def _forget_closed(self, address: str) -> None:
        """Forget the copy of a closed survey, which may not be answered without a network, and its answers."""
        kept = self.outbox.survey(address)
        if kept is not None:
            self.ledger.forget(published_task(kept, _known_key(kept, self._keys)))
            self.outbox.keep_survey(address, None)

    def _asked(self, path: str) -> HttpResponse | None:
        """None where the collector cannot be reached. One that cannot be trusted is no such case."""
        try:
            return self._web.get(path)
        except UntrustedError:
            raise
        except CollectorError:
            return None

    def _use(self, published: Json) -> None:
        key = _known_key(published, self._keys)
        survey = verified(published, key, self._task, self._clock.now(), allow_fine_times=self._fine_times)
        about, step = read_about(published, key, survey.task), read_published(published, key).get("step", 1)
        if self._task is None:
            if about is None or about["name"] != self._name:
                raise MismatchError("this is a survey of another name than the one that was asked for")
            check_valid(about, self._clock.now())
        self._check_wave(key, about)
        if self._client is not None and self.survey.task != survey.task:
            raise MismatchError("another wave of this name is open now: open it anew, and ask again")
        self._published = published
        self._client, self._key, self._about, self._step = Client(survey, self.ledger), key, about, step

    def _check_wave(self, key: bytes, about: Json | None) -> None:
        """Record that this device sees a wave. Where a name is asked for, refuse one before the highest seen.

        Somebody who can only repeat what the collector once signed could otherwise have an earlier wave paid again.
        """
        if about is None:
            return
        name, wave = about["name"], about["wave"]
        highest = self.ledger.see_wave(key, name, wave)
        if self._task is None and wave < highest:
            raise CollectorError(
                f"this is wave {wave} of {name}, and this device has seen wave {highest}: expected no earlier one"
            )

    def _parcel(self, report: bytes) -> Parcel:
        return Parcel(report[33:49].hex(), self._web.address, self.survey.task, written(report), self._clock.now())

    def _settle_drafts(self) -> None:
        """What a process left that was killed while it paid: to be sent if the ledger knows it, else thrown away.

        After a day only: until then it may be another process's, which is about to pay.
        """
        for parcel in self.outbox.parcels():
            if not parcel.paid and self.ledger.holds(parcel.report):
                self.outbox.put(replace(parcel, paid=True))
            elif not parcel.paid and abs(self._clock.now() - parcel.drawn) > _DAY:
                self.outbox.discard(parcel.id)

    def _waiting(self) -> list[Parcel]:
        """What is to be sent here; one that fails again and again does not stand before the others."""
        latest = self._clock.now() + _DAY  # a clock that was set back must not hold a report for years
        mine = [parcel for parcel in self.outbox.parcels() if parcel.waits and parcel.collector == self._web.address]
        held = [
            replace(
                parcel,
                not_before=parcel.not_before if parcel.not_before <= latest else 0.0,
                held_until=parcel.held_until if parcel.held_until <= latest else 0.0,
            )
            for parcel in mine
        ]
        return sorted(held, key=lambda parcel: parcel.attempts)

    def _attempt_all(self, *, eager: bool) -> float | None:
        """Try what is due, or, eager, also what only our own patience holds. Returns when to come back, or None."""
        waiting = self._waiting()
        if max((parcel.held_until for parcel in waiting), default=0.0) <= self._clock.now():
            for parcel in waiting:
                now = self._clock.now()
                if parcel.opens > now or (not eager and parcel.not_before > now):
                    continue
                if not self._attempt(parcel):
                    break  # the next one would fare no better
        left = self._waiting()
        if not left:
            return None
        held = max(parcel.held_until for parcel in left)
        return max(held, min(max(parcel.not_before, parcel.opens) for parcel in left))

    def _attempt(self, parcel: Parcel) -> bool:
        """Send one report. False where the collector cannot take any now."""
        try:
            answer = self._web.post(f"/v1/surveys/{parcel.task}/reports", parcel.body, FRAMED)
        except CollectorError:  # it may have arrived all the same: the id tells
            self._postpone(parcel)
            return False
        now = self._clock.now()
        if answer.status == 200 and answer.document.get("acknowledged") == 1:
            self.ledger.forget(parcel.task, parcel.report)  # first: after a kill in between, it is sent again
            self.outbox.remove(parcel.id)
        elif answer.status == 409:
            self._postpone(parcel, opens=max(answer.retry_after(now), self._opens(parcel.task)))
        elif answer.status >= 400 and not answer.passing:
            self.ledger.forget(parcel.task, None if answer.status == 410 else parcel.report)  # 410: closed
            self.outbox.update(parcel.refused(_refusal(answer)))
        else:
            self._postpone(parcel, held_until=answer.retry_after(now))
            return False
        return True

    def _postpone(self, parcel: Parcel, *, held_until: float = 0.0, opens: float = 0.0) -> None:
        wait = min(_FIRST * 2 ** min(parcel.attempts, 20), _LONGEST) * (0.5 + self._clock.uniform())
        begin = max(self._clock.now(), opens)
        self.outbox.update(
            replace(parcel, attempts=parcel.attempts + 1, not_before=begin + wait, held_until=held_until, opens=opens)
        )

    def _opens(self, task: str) -> float:
        """When a survey opens that the collector calls not open yet; 0 where this client cannot know."""
        if task != self.survey.task:
            return 0.0  # another client's: signed with keys that this one may not know
        try:
            published = self._web.get(f"/v1/surveys/{task}").document
            return float(opening(published, _known_key(published, self._keys)) or 0)
        except VeilError:
            return 0.0


def _checked_part(published: Json) -> Json:
    """Return what was checked of a published survey, without anything beside it."""
    kept = {name: published[name] for name in ("document", "key", "signature")}
    return kept if "about" not in published else {**kept, "about": _checked_part(published["about"])}


def _refusal(answer: HttpResponse) -> Refusal:
    error = answer.document.get("error")
    said = error if isinstance(error, dict) else {}
    return Refusal(answer.status, str(said.get("code", answer.status))[:100], str(said.get("message", ""))[:500])


def _known_key(published: Json, keys: tuple[bytes, ...]) -> bytes:
    own = _decoded(published.get("key"))
    if own is None or own not in keys:
        raise WireError("this survey is not signed with a key that this device knows")
    return own


def _read_keys(given: Any) -> tuple[bytes, ...]:
    parts = list(given) if isinstance(given, (list, tuple)) else [given]
    keys = [part if isinstance(part, bytes) else _decoded(part) for part in parts]
    if not keys or not all(key is not None and len(key) == 32 for key in keys):
        raise ParameterError("expected the collector's public key, 32 bytes as base64url, or several of them")
    return tuple(key for key in keys if key is not None)


def _decoded(text: Any) -> bytes | None:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (TypeError, ValueError, binascii.Error):
        return None
