"""A question in the language of the person who is asked, out of those that it was written in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from veil.errors import ParameterError

__all__ = ["best_text"]


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
