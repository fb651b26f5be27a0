"""Templates of a data protection impact assessment and of a notice to people, with the figures of a study.

What the study file and the collector's defaults say is filled in. Everything else is a marked blank.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from veil.collector.settings import CollectorSettings
from veil.collector.store.seen import FOLDED
from veil.collector.surveys.collection import is_maintained
from veil.device.statements import odds_statement
from veil.histogram import Histogram
from veil.planning.base import in_words
from veil.privacy import Guarantee, odds, weakness
from veil.study import OneRound, Study
from veil.tools.messages import escape_text
from veil.version import VERSION
from veil.wire.frames import ID_BYTES, report_size

_MAX_MECHANISMS = 12
_MARKUP = re.compile(r"([\\`*_\[\]<>|~&])")
_SCOPES = {"report": "one report", "lifetime": "all reports of one person about one value"}
_NEIGHBOURS = {
    "replace": "two lives of one person that differ in one answer",
    "remove": "the reports with and without one person",
}


def figures(study: Study) -> dict[str, Any]:
    """Return what is known about a study and about a collector with default settings, for an assessment.

    >>> from veil import GRR
    >>> known = figures(Histogram(GRR(1.0, ["tea", "coffee"])))
    >>> known["epsilon"], known["odds"], known["guess_percent"], known["rounds"]
    ('1', '2.72', '73.11', 1)
    """
    survey, promise, settings = study.survey, study.guarantee, CollectorSettings()
    names = sorted({question.mechanism.name for question in survey.questions[:_MAX_MECHANISMS]})
    first = next(study.rounds())
    return {
        "version": VERSION,
        "study": study.kind,
        "task": survey.task,
        "held": in_words(survey.domain),
        "questions": len(survey.questions),
        "mechanisms": names,
        "public_columns": [column.name for column in survey.public],
        "epsilon": None if promise.ratio is None else _rounded_up(Fraction(promise.epsilon), 6),
        "delta": _rounded_up(promise.delta, 2),
        "odds": None if promise.ratio is None else odds(promise.ratio)[0],
        "odds_statement": odds_statement(promise),
        "weakness": weakness(promise),
        "guess_percent": None if promise.ratio is None else _rounded_up(100 * _guess(promise), 4),
        "scope": promise.scope,
        "neighbours": promise.neighbours,
        "central": _central(study),
        "rounds": 1 if isinstance(study, OneRound) else None,
        "first_share": str(first.people),
        "payload_bytes": survey.layout.size,
        "framed_bytes": report_size(survey),
        "id_bytes": ID_BYTES,
        "precision_seconds": settings.precision,
        "minimum": settings.minimum,
        "keep_days": None,
        "valid_days": settings.valid_days,
        "keeps_tally": is_maintained(survey),
        "fold_seconds": settings.fold_seconds,
        "unfolded_reports": FOLDED,
    }


def assessment(study: Study) -> str:
    """Return both templates as one Markdown document."""
    known = figures(study)
    parts = (_head(known), _collected(known), _promise(known), _kept(known), _linked(known), _rest())
    return "\n\n".join((*parts, _notice(known))) + "\n"


def _guess(promise: Guarantee) -> Fraction:
    """Return the largest probability to guess right which of two equally likely answers a person gave."""
    assert promise.ratio is not None
    return (promise.ratio + promise.delta) / (1 + promise.ratio)


def _rounded_up(value: Fraction, digits: int) -> str:
    up = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{up.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(up):f}"


def _central(study: Study) -> str | None:
    return str(study.central.central) if isinstance(study, Histogram) and study.central is not None else None


def _bytes(count: int) -> str:
    return f"{count:,} byte{'s' if count != 1 else ''}"


def _blank(what: str) -> str:
    return f"**[TO FILL IN: {what}]**"


def _safe(text: str) -> str:
    """Return foreign text as Markdown shows it: without control characters and markup."""
    return _MARKUP.sub(r"\\\1", escape_text(text))


def _listed(names: list[str]) -> str:
    return ", ".join(_safe(name) for name in names) if names else "none"


def _head(known: dict[str, Any]) -> str:
    return f"""# Data protection impact assessment (template)

Written by veil {known["version"]} for a study of kind {_safe(known["study"])} with the task
{known["task"]}.
Figures come from the study file and from the collector's default settings. What veil does not know is marked TO FILL
IN. This is no legal advice.

## 1. Purpose and responsibility

- Controller and contact: {_blank("name, address, data protection officer")}
- Purpose, and why it needs this survey: {_blank("purpose")}
- Legal basis: {_blank("for example consent, Article 6(1)(a) GDPR; decided by you and your counsel")}
- Special categories of data in the answers: {_blank("yes or no, and the condition that applies")}
- Who is asked, how many, and how they were chosen: {_blank("people")}
- Processors and hosting: {_blank("who runs the collector, the proxy and the database, and where")}
- Recipients of results, reports or tallies: {_blank("recipients, countries")}"""


def _collected(known: dict[str, Any]) -> str:
    mechanisms = _listed(known["mechanisms"]) + (" and others" if known["questions"] > _MAX_MECHANISMS else "")
    rounds = known["rounds"] or "several; the first asks this share of the people: " + known["first_share"]
    return f"""## 2. What is collected

- Held on the device and never sent: {_safe(known["held"])}. What the values mean: {_blank("question and answers")}
- Sent: one randomized report of {_bytes(known["payload_bytes"])}, {known["framed_bytes"]} with its frame (task id and
  random report id). All reports are of this length.
- Public columns, sent and kept in clear: {_listed(known["public_columns"])}. {_public_note(known)}
- Questions: {known["questions"]:,}, by {mechanisms}
- Rounds: {rounds}
- Seen while a device is connected, and not kept: its address. For limits, a count under a keyed hash of it is in memory
  for at most a minute. By the proxy in front: {_blank("logs of the proxy")}"""


def _public_note(known: dict[str, Any]) -> str:
    if not known["public_columns"]:
        return "Nothing is sent in clear beside the report."
    return "The promise below does not cover them; combinations can identify a person: " + _blank("who can")


def _promise(known: dict[str, Any]) -> str:
    if known["epsilon"] is None:
        lines = ["- A report alone promises nothing: the survey relies on a shuffler."]
    else:
        lines = [
            f"- Local differential privacy: eps = {known['epsilon']}, delta = {known['delta']}",
            f"- Odds, as devices show them: {known['odds_statement']}",
            "- Whoever holds two answers for equally likely guesses right with a probability of at most"
            f" {known['guess_percent']} %.",
        ]
        if known["weakness"] is not None:
            lines.append(f"- Warning: {known['weakness']}.")
    if known["central"] is not None:
        lines.append(
            f"- After a shuffler: {known['central']}. It holds only if the shuffler mixes the planned number of reports"
            " and does not work together with the collector."
        )
    lines += [
        f"- Unit of privacy: {_SCOPES[known['scope']]}. Neighbours: {_NEIGHBOURS[known['neighbours']]}.",
        "- Several reports of one person (other surveys, later waves, changed answers) add up: eps by eps. The bound"
        f" per person is the sum of what their ledgers allow: {_blank('lifetime eps per device, number of devices')}",
        f"- Why this eps is acceptable here: {_blank('reasoning')}",
    ]
    return "\n".join(("## 3. What is promised", "", *lines))


def _kept(known: dict[str, Any]) -> str:
    tally = (
        "a tally (sums over all reports) is kept and survives the erasure of reports"
        if known["keeps_tally"]
        else "no tally is kept in advance; what was counted for a reading is stored and survives the erasure of reports"
    )
    again = "" if known["rounds"] else " What each round took from its reports (noisy sums) is kept as well."
    hours = known["precision_seconds"] // 3600
    return f"""## 4. What the collector keeps, and how long

- Reports, and a random id of {known["id_bytes"]} bytes for each; {tally}.{again}
- Time of arrival, truncated to {hours} hours by default: {_blank("--precision, if it was set")}
- Reports and ids are kept until they are purged by hand, unless `--keep-days` was set: {_blank("--keep-days")}
- Answers are given from {known["minimum"]} reports on by default, and move in steps of as many:
  {_blank("--minimum and --step, if they were set")}
- Audit log (accounts, tokens, questions; no answers): until it is pruned by hand: {_blank("how long, and by whom")}
- Backups and exports are not erased with the reports: {_blank("where, and how long they are kept")}"""


def _linked(known: dict[str, Any]) -> str:
    again = (
        "The same answer on the same occasion is the same bytes; on another it is a fresh report."
        if known["scope"] == "lifetime"
        else "Until it is delivered, an answer is sent again as the same bytes, so the collector sees the repetition."
    )
    lines = [
        f"- The report carries no identity. Its id is random and made for this report alone. {again}",
        "- The collector's database can link an id with its report for"
        f" {known['fold_seconds'] // 60} minutes at most by default, and for the latest {known['unfolded_reports']:,}"
        f" reports of a survey at most: {_blank('fold_seconds, if it was set')}. Longer while no collector runs, in"
        " backups that were made meanwhile, and in PostgreSQL's files and log.",
        "- Somebody who has the database and recorded the network can narrow a report down to those of the same"
        " moment.",
    ]
    if known["scope"] == "lifetime":
        lines.append("- Reports of one person over time have the same cohort, and show when the answer changed.")
    if known["public_columns"]:
        lines.append(f"- Public columns link reports with other data: {_listed(known['public_columns'])}.")
    lines.append(f"- Other data that the controller holds about the same people: {_blank('data, and who can join it')}")
    return "\n".join(("## 5. Linkability", "", *lines))


def _rest() -> str:
    return f"""## 6. Rights

- Erasure and withdrawal: once a report is stored, veil has no way to find or remove one person's report. The reports
  of a closed survey can be purged together. Tallies, results, exports and backups stay until they are deleted on their
  own.
- Access and objection: {_blank("how requests are answered; Article 11 GDPR may apply")}

## 7. Risks and decision

- Risks to people, their likelihood and severity: {_blank("assessment")}
- Measures: {_blank("minimum, retention, limits on tokens, training, encryption of disks")}
- Views of people or their representatives: {_blank("if sought")}
- Decision, date, signature: {_blank("decision")}"""


def _notice(known: dict[str, Any]) -> str:
    beside = (
        f"These are sent and kept without noise: {_listed(known['public_columns'])}."
        if known["public_columns"]
        else "Nothing is sent with it without noise, except a random id."
    )
    hours = known["precision_seconds"] // 3600
    return f"""# Notice to people (template)

- **Who asks, and why:** {_blank("controller, contact, purpose, legal basis")}
- **What you are asked:** {_blank("the question")}
- **What leaves your device:** one report of {_bytes(known["framed_bytes"])} that is randomized on your device. {beside}
- **How well it is protected:** Your device adds noise before it sends anything. {known["odds_statement"]}
  Answers to other surveys, later waves and changed answers add to it.
- **What is kept:** the report, a random id, and the time truncated to {hours} hours
  ({_blank("if it was set otherwise")}). Your address is seen while your device is connected, and is not kept by the
  collector.
- **How long, and by whom:** {_blank("who keeps the reports, and until when")}
- **Can you take it back?** Not once your device has sent it: there is no way to remove one person's report. It stays in
  sums that were made from it.
- **Your rights and how to complain:** {_blank("contact, supervisory authority")}"""
