"""The surveys of a collector: drafts, published documents with their signatures, and changes of state.

A survey is a draft, then open, then closed; by time it is also waiting (open, but not yet) or expired. An open survey
never changes, except for the study that its reports are read with, which devices never see. Devices check published
documents with `veil.device.verification` and `veil.device.client`.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from veil.collector.keys_and_tokens import fingerprint, is_signed_for, known_fingerprint, load_key, public_bytes
from veil.collector.settings import MAX_DAYS, CollectorSettings
from veil.collector.store.base import Store, StoredSurvey
from veil.device.client import ROUND_PURPOSE, RoundPart
from veil.device.verification import (
    ABOUT_KIND,
    ABOUT_PURPOSE,
    FINEST_PRECISION,
    KIND,
    NAME,
    PURPOSE,
    VERSION,
    read_time,
    written_time,
)
from veil.errors import InputError, ServiceError, StoreError, WireError
from veil.privacy import MAX_EPSILON, Guarantee, weakness
from veil.study import Study, study_from_json
from veil.survey import MOST_WAVES, Survey
from veil.tools.json_documents import Json, canonical, parse_json
from veil.tools.numbers import is_int

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_DAY = 86_400
_REMEMBERED_SECONDS = 1.0  # the transaction that stores a report looks again: this only saves it the way
_MOST_REMEMBERED = 1_000
_MOST_SECONDS = 2**40
_KEYS = ("opens", "closes", "precision", "minimum", "step", "keep_days", "name", "texts", "wave")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_MOST_LANGUAGES = 100
_MOST_TEXT = 2_000


@lru_cache(maxsize=256)
def parsed(document: bytes) -> Survey:
    """The survey of a stored document; reading one again and again would cost more than its reports."""
    return Survey.from_json(document)


def read_by(stored: StoredSurvey) -> Survey:
    """The survey that a stored one's reports are read by: of every wave, the first.

    Devices see their wave's own task; what a study reads is the same question, whenever it was asked.
    """
    return parsed(stored.document).first


@lru_cache(maxsize=64)
def parsed_study(document: bytes) -> Study:
    """The study of a stored study file; of a bare task of any wave, the study of its questions."""
    if parse_json(document).get("kind") == "veil-survey":
        document = parsed(document).first.to_bytes()
    return study_from_json(document)


@dataclass
class _Remembered:
    stored: StoredSurvey
    until: float


class Catalogue:
    """Surveys by task id. Its methods block: call them from a thread, except `recall` and `recall_named`."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock
        self._remembered: dict[str, _Remembered] = {}  # by task
        self._names: dict[str, _Remembered] = {}

    def recall(self, task: str, grace: float = 0.0) -> StoredSurvey | None:
        """A survey that was looked up a moment ago, or up to `grace` seconds before that; does not block."""
        found = self._remembered.get(task)
        return found.stored if found is not None and time.monotonic() < found.until + grace else None

    def recall_named(self, name: str) -> StoredSurvey | None:
        """The same by name: what `named` found a moment ago."""
        found = self._names.get(name)
        return found.stored if found is not None and time.monotonic() < found.until else None

    def look_up(self, task: str) -> StoredSurvey:
        """A survey as it is now; refuses an unknown one."""
        found = self._store.find(task) if is_digest(task) else None
        if found is None:
            self._remembered.pop(task, None)
            raise ServiceError(404, "unknown-survey", "there is no survey with this task id")
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[task] = _Remembered(found, time.monotonic() + _REMEMBERED_SECONDS)
        return found

    def named(self, name: str) -> StoredSurvey:
        """The latest wave of a name that takes reports now, or else the latest that there is."""
        every = self._store.named(name) if NAME.fullmatch(name) else []
        found = [stored for stored in every if stored.state != "draft"]
        if not found:
            raise ServiceError(404, "unknown-survey", "there is no survey of this name")
        now = int(self._clock())
        latest = next((stored for stored in found if stored.phase(now) == "open"), found[0])
        if len(self._names) >= _MOST_REMEMBERED:
            self._names.clear()
        self._names[name] = _Remembered(latest, time.monotonic() + _REMEMBERED_SECONDS)
        return latest

    def waves(self, text: str) -> list[StoredSurvey]:
        """What an operator's text names: all waves of `drinks`, or the one of `drinks/4`; drafts, too."""
        name, slash, number = text.partition("/")
        every = self._store.named(name) if NAME.fullmatch(name) else []
        return [stored for stored in every if not slash or number == str(stored.wave)]

    def chosen(self, text: str) -> StoredSurvey:
        """The one survey that an operator means: by its name, by name and wave, or by the beginning of its task id.

        What could mean two is refused: a wave that came or was closed meanwhile must not change what a command does.
        """
        waves, of_name = self.waves(text), self.waves(text.partition("/")[0])
        begun = [stored for stored in self._store.surveys() if text and stored.task.startswith(text)]
        found = {stored.key: stored for stored in (*waves, *begun)}
        if len(found) == 1:
            return next(iter(found.values()))
        if waves and begun:
            raise both_named(text)
        if of_name:
            name, numbers = of_name[0].name, [stored.wave for stored in of_name]
            raise InputError(f"say which wave: {name}/{numbers[-1]}" + f" to {name}/{numbers[0]}" * (len(numbers) > 1))
        raise InputError(
            "expected a survey's name (with its wave, as drinks/2, where there are several), or the beginning of one"
            f" task id; {len(begun)} surveys begin like this"
        )

    def create(self, draft: StoredSurvey) -> tuple[StoredSurvey, bool]:
        """Keep a draft, or find the same one there; refuses another with the same task.

        Another study of the same task replaces the one that was there: it says how reports are read, and no more. A
        bare task says nothing about that, and leaves it as it is.
        """
        self._check_wave(draft)
        made = self._store.create(draft)
        if not made and self._store.find(draft.task) is None:  # somebody else's survey took the wave meanwhile
            self._check_wave(draft)
        found = self.look_up(draft.task)
        terms = [
            (s.opens, s.closes, s.precision, s.minimum, s.step, s.keep_days, s.name, s.texts) for s in (draft, found)
        ]
        if not made and terms[0] != terms[1]:
            message = "this survey is there already, with other times, limits or texts"
            if draft.name:
                message += f"; asked again under its name it is wave {(found.wave or 1) + 1}, and has to say so"
            raise ServiceError(409, "survey-exists", message)
        if draft.study is None or draft.study == found.study:
            return found, made
        if self._store.study_of(draft.task) is not None:
            raise ServiceError(409, "survey-exists", "this survey is a round of a study, which says how it is read")
        self._store.set_reading(found.key, draft.study)
        return self.look_up(draft.task), made

    def _check_wave(self, draft: StoredSurvey) -> None:
        """Refuse a wave that was another survey's, or that leaves one out; asking for the same one again is fine."""
        if draft.wave is None or draft.name is None:
            return
        there = {stored.wave: stored.task for stored in self._store.named(draft.name)}
        following = 1 + max((wave for wave in there if wave is not None), default=0)
        if there.get(draft.wave, draft.task) != draft.task:
            raise ServiceError(409, "survey-exists", f"wave {draft.wave} of {draft.name} asked something else")
        if draft.wave not in there and draft.wave != following:
            raise ServiceError(
                409, "wrong-wave", f"wave: expected {following}, the next wave of {draft.name}, got {draft.wave}"
            )

    def open(self, task: str) -> StoredSurvey:
        """From draft to open. Again is fine; a closed one stays closed."""
        return self._moved(task, "draft", "open")

    def close(self, task: str) -> StoredSurvey:
        """From open to closed. Again is fine; a draft cannot be closed. Nothing links ids and payloads after that."""
        before, closed = self.look_up(task), self._moved(task, "open", "closed")
        if before.state != "closed":
            with suppress(StoreError):  # it is closed all the same, and a collector that runs tries again
                self._store.fold_all([closed.key])
        return closed

    def _moved(self, task: str, before: str, after: str) -> StoredSurvey:
        self._names.clear()
        found = self.look_up(task)
        if found.state != after and not self._store.move(found.key, before, after, int(self._clock())):
            raise ServiceError(
                409, "wrong-state", f"this survey is {found.state}", expected=f"a survey that is {before}"
            )
        return self.look_up(task)

    def describe(self, stored: StoredSurvey) -> Json:
        """A survey for an analyst, whose `reports` go in steps."""
        survey, run = parsed(stored.document), self._store.study_of(stored.task)
        document = (stored.study or stored.document) if run is None else run.document
        return {
            "task": stored.task,
            "kind": parsed_study(document).kind,
            "study": None if run is None else run.id,
            "name": stored.name,
            "wave": stored.wave,
            "texts": None if stored.texts is None else parse_json(stored.texts),
            "state": stored.phase(int(self._clock())),
            "opens": written_time(stored.opens),
            "closes": written_time(stored.closes),
            "precision": stored.precision,
            "minimum": stored.minimum,
            "step": stored.step,
            "keep_days": stored.keep_days,
            "purged": written_time(stored.purged),
            "reports": stored.mark,
            "questions": len(survey.questions),
            "payload_bytes": survey.layout.size,
            "epsilon": survey.guarantee.epsilon,
            "delta": float(survey.guarantee.delta),
        }


def both_named(text: str) -> InputError:
    """The refusal of a text that is a name, and the beginning of another survey's or study's id."""
    return InputError(
        f"{text} is the name of one survey, and the id of another begins like this: say {text}/1, or more of the id"
    )


def is_digest(text: str) -> bool:
    """Whether a text can be the id of a task or of a study."""
    return len(text) == 64 and all(digit in "0123456789abcdef" for digit in text)


def draft_of(
    survey: Survey, options: Json, *, precision: int, minimum: int, study: bytes | None = None
) -> StoredSurvey:
    """A survey that is not open yet, with its times and limits checked; `study` is the file of its study."""
    unknown = [name for name in options if name not in _KEYS]
    if unknown:
        raise InputError(f"expected the options {', '.join(_KEYS)}")
    opens, closes = read_time(options.get("opens")), read_time(options.get("closes"))
    if opens is not None and closes is not None and closes <= opens:
        raise InputError("a survey closes after it opens")
    precision = whole_number(options.get("precision", precision), "precision", 366 * 86_400)
    minimum = whole_number(options.get("minimum", minimum), "minimum", _MOST_SECONDS)
    step = whole_number(options.get("step", minimum), "step", _MOST_SECONDS)
    keep = options.get("keep_days")
    keep = None if keep is None else whole_number(keep, "keep_days", MAX_DAYS)
    name, texts = _about(options.get("name"), options.get("texts"))
    wave = options.get("wave", survey.wave if survey.wave > 1 else None)
    if wave is not None:
        if name is None:
            raise InputError("a wave goes with a name, which all waves share")
        survey = _of_wave(survey, wave)
    draft = StoredSurvey(0, survey.task, survey.to_bytes(), "draft", opens, closes, precision, minimum, study=study)
    return replace(draft, step=step, keep_days=keep, name=name, texts=texts, wave=wave)


def check_allowed(guarantee: Guarantee, options: Json, *, precision: int) -> None:
    """Refuse terms that need an option of their own to be published; these options are removed.

    `precision` is that of surveys that do not say.
    """
    fine, weak = _flag(options, "allow_fine_times"), _flag(options, "allow_weak_privacy")
    if not weak and guarantee.epsilon > MAX_EPSILON:
        raise InputError(
            f"epsilon: expected at most {MAX_EPSILON:g} per report: {weakness(guarantee)}; allow_weak_privacy"
            " (--allow-weak-privacy) publishes it all the same"
        )
    seconds = options.get("precision", precision)
    if not fine and is_int(seconds) and seconds < FINEST_PRECISION:
        raise InputError(
            f"precision: expected at least {FINEST_PRECISION} (1 hour), got {seconds}: finer times can show whose"
            " a report is, and devices refuse them; allow_fine_times (--allow-fine-times) publishes them all the same"
        )


def task_wanted(survey: Survey, options: Json) -> str:
    """The task that publishing a survey with these options asks for: the audit log has it before anything is done."""
    try:
        return survey.task if options.get("wave") is None else _of_wave(survey, options["wave"]).task
    except InputError:
        return survey.task  # publishing says what is wrong with the wave


def whole_number(value: Any, name: str, most: int) -> int:
    """An option that is an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InputError(f"{name} is an integer from 1 to {most}")
    return value


def unsigned(stored: StoredSurvey) -> bytes:
    """The bytes that are signed."""
    document: Json = {
        "kind": KIND,
        "version": VERSION,
        "survey": parse_json(stored.document),
        "opens": written_time(stored.opens),
        "closes": written_time(stored.closes),
        "precision": stored.precision,
        **({} if stored.keep_days is None else {"keep_days": stored.keep_days}),
        **({} if stored.step == 1 else {"step": stored.step}),
    }
    return canonical(document)


def valid_until(now: float, days: int) -> int:
    """Return when a statement that is signed now expires, in seconds since 1970: `days` after the end of today (UTC).

    All statements of a day are the same bytes, whichever process signs them: no device can be told from another by one.

    >>> valid_until(0, 30) == valid_until(86_399, 30) == 31 * 86_400
    True
    """
    return (int(now) // _DAY + 1 + days) * _DAY


def published(stored: StoredSurvey, key: Ed25519PrivateKey, until: int | None = None) -> Json:
    """Return the document that a device downloads. A survey with a name has a signed statement beside it.

    `until` is when that statement expires, in seconds since 1970; devices refuse one without.
    """
    document = _signed(unsigned(stored), PURPOSE, key)
    if stored.name is None:
        return document
    about: Json = {
        "kind": ABOUT_KIND,
        "version": VERSION,
        "task": stored.task,
        "name": stored.name,
        "wave": stored.wave,
        "texts": parse_json(stored.texts or "{}"),
        "valid_until": written_time(until),
    }
    return {**document, "about": _signed(canonical(about), ABOUT_PURPOSE, key)}


def published_round(stored: StoredSurvey, part: RoundPart, key: Ed25519PrivateKey) -> Json:
    """The same for a round of a study, with whom it asks: signed on its own, and again for people to read."""
    shown = {"round": part.number, "from": float(part.begin), "to": float(part.end)}
    return {**published(stored, key), "part": _signed(canonical(part.to_json()), ROUND_PURPOSE, key), **shown}


def for_devices(settings: CollectorSettings, store: Store, stored: StoredSurvey) -> Json:
    """What goes into the devices' software: where the survey is, and the key that it must be signed with."""
    key = None
    made_here = settings.database_file is not None and not is_signed_for(store)  # a server's collectors have theirs
    if settings.key_path.exists() or made_here:
        here = load_key(settings.key_path)
        if known_fingerprint(store, here) == fingerprint(here):
            key = key_text(here)
    return {"path": f"/v1/surveys/{stored.task}", "key": key}


def key_text(key: Ed25519PrivateKey) -> str:
    """The public key as devices' software has it."""
    return _text(public_bytes(key))


def _flag(options: Json, name: str) -> bool:
    given = options.pop(name, False)
    if not isinstance(given, bool):
        raise InputError(f"{name}: expected true or false")
    return given


def _of_wave(survey: Survey, wave: Any) -> Survey:
    return Survey(survey.ask, survey.public, whole_number(wave, "wave", MOST_WAVES))


def _about(name: Any, texts: Any) -> tuple[str | None, str | None]:
    """What is asked, for people: a name that several waves share, and the question in one or more languages."""
    if name is None:
        if texts is not None:
            raise InputError("a question's texts go with a name")
        return None, None
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError("a survey's name has 1 to 63 small letters, digits and hyphens")
    given = {} if texts is None else texts
    if not isinstance(given, dict) or len(given) > _MOST_LANGUAGES:
        raise InputError(f"texts are an object: a question in up to {_MOST_LANGUAGES} languages")
    for language, text in given.items():
        if not (_LANGUAGE.fullmatch(language) and isinstance(text, str) and 0 < len(text) <= _MOST_TEXT):
            raise InputError(f'a text stands under its language, as in "de-CH", and has 1 to {_MOST_TEXT:,} characters')
    try:
        return name, canonical(given).decode()
    except (UnicodeEncodeError, WireError):
        raise InputError("a question's texts are Unicode") from None


def _signed(document: bytes, purpose: bytes, key: Ed25519PrivateKey) -> Json:
    parts = {"document": document, "key": public_bytes(key), "signature": key.sign(purpose + document)}
    return {name: _text(part) for name, part in parts.items()}


def _text(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()
