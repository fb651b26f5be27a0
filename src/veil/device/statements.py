"""Statements for the person who is asked, made from the signed survey alone; `best_text` picks a language.

The browser client has the same statements in `clients/js/src/statements.ts`; `vectors/statements.json` holds both to
one text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from veil.device.verification import FINEST_PRECISION, duration, read_published
from veil.errors import ParameterError
from veil.privacy import MAX_EPSILON, WEAK_EPSILON, Guarantee, odds
from veil.survey import Survey
from veil.tools.json_documents import Json


def statements(published: Json, collector: str, key: bytes | None = None) -> dict[str, str]:
    """Runs on the device: return what a published survey means for the person who answers it, by topic.

    `odds` says what a report can tell, exactly; `weak` is there if that is much. `public` names what is sent in clear,
    `time` how precise a time is kept, `kept` who keeps the report and for how long; `withdrawal` and `address` say what
    cannot be undone or hidden.
    """
    document = read_published(published, key)
    survey = Survey.from_json(document["survey"])
    weak, public = _weak(survey.guarantee), ", ".join(column.name for column in survey.public)
    told = {"odds": odds_statement(survey.guarantee)}
    if weak is not None:
        told["weak"] = weak
    told["public"] = (
        f"Sent and stored in clear beside your report: {public}. This can identify you."
        if public
        else "Your report carries nothing else about you in clear."
    )
    seconds = document["precision"]
    fine = " This is finer than an hour, and can show which report is yours." if seconds < FINEST_PRECISION else ""
    told["time"] = f"The time of your report is kept to {duration(seconds)}.{fine}"
    told["kept"] = f"The collector at {collector} keeps the report{_until(document.get('keep_days'))}"
    told["withdrawal"] = "Once your report is counted, it cannot be withdrawn."
    told["address"] = "While your device sends it, the collector and the network see your device's address."
    return told


def odds_statement(guarantee: Guarantee) -> str:
    """Return in words what a report can tell about the answer."""
    if guarantee.ratio is None:
        return "Your report promises nothing on its own."
    times, sure = odds(guarantee.ratio, guarantee.delta)
    reports = "All reports of one answer together" if guarantee.scope == "lifetime" else "Your report"
    told = (
        f"{reports} can make your answer at most {times} times as likely as another: whoever holds the two for equally"
        f" likely can then be {sure} sure."
    )
    if guarantee.delta:
        told = (
            f"Whoever holds two answers for equally likely guesses yours right with a probability of {sure}, on average"
            " over what a report may say."
        )
    return f"{told} A changed answer is one more report, and tells more."


def best_text(texts: Mapping[str, str], languages: Sequence[str]) -> str | None:
    """The text in the first of these languages that there is one in; else in English, else in any; None without texts.

    A region finds its language, a language its regions, and one region another: everybody reads that rather than none.

    >>> texts = {"de-CH": "Wie häufig?", "en": "How often?"}
    >>> best_text(texts, ["fr", "de"]), best_text(texts, ["de-AT"]), best_text(texts, ["fr"])
    ('Wie häufig?', 'Wie häufig?', 'How often?')
    """
    if not all(isinstance(language, str) for language in languages):
        raise ParameterError('a language is named as in "de" or "de-CH"')
    known = {tag.lower(): texts[tag] for tag in sorted(texts)}
    for wanted in (*languages, "en"):
        tag = wanted.lower()
        while tag:
            if tag in known:
                return known[tag]
            tag = tag.rpartition("-")[0]
        own = [text for tag, text in known.items() if _main(tag) == _main(wanted.lower())]
        if own:
            return own[0]
    return next(iter(known.values()), None)


def _main(tag: str) -> str:
    return tag.partition("-")[0]


def _until(days: int | None) -> str:
    if days is None:
        return ". It names no day on which it erases it."
    return f" until {days} {'day' if days == 1 else 'days'} after the survey is closed. Counts stay, and backups may."


def _weak(guarantee: Guarantee) -> str | None:
    if guarantee.epsilon > MAX_EPSILON:
        return f"This hardly protects your answer: eps is above {MAX_EPSILON:g}."
    if guarantee.epsilon > WEAK_EPSILON:
        return f"This protects your answer weakly: eps is above {WEAK_EPSILON:g}."
    return None
