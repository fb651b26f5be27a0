"""A collector that asks one survey, as the browser client's tests need it: where it is, its key, and its estimates."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
from tests.service.harness import running

from veil import Survey
from veil.collector.keys_and_tokens import load_key, public_bytes
from veil.collector.surveys.catalogue import draft_of, published
from veil.files import read_reports
from veil.reports.columns import Reports

ABOUT = {"name": "drinks", "texts": {"en": "What did you drink this morning?", "de": "Was haben Sie getrunken?"}}
"""What the example page is told about its survey."""


@dataclass(frozen=True)
class Asking:
    """What a page must know, and an analyst's token beside it."""

    address: str
    task: str
    key: str
    token: str

    def frequencies(self) -> list[float]:
        """The estimates, in the order of the domain."""
        return [row["frequency"] for row in self._ask("answer")["rows"]]

    def reports(self) -> int:
        """How many reports count."""
        return int(self._ask("state")["reports"])

    def export(self, survey: Survey, path: Path) -> Reports:
        """All reports, by way of a file."""
        path.write_bytes(self._get("export").content)
        return Reports.concatenate(list(read_reports(path, survey)))

    def _ask(self, what: str) -> dict[str, Any]:
        return self._get(what).json()

    def _get(self, what: str) -> httpx.Response:
        answer = httpx.get(f"{self.address}/v1/surveys/{self.task}/{what}", headers={"Authorization": self.token})
        assert answer.status_code == 200, answer.text
        return answer


@contextmanager
def asking(folder: Path, survey: Survey, **about: Any) -> Iterator[Asking]:
    """Runs for the length of a block; the survey may have a name and texts."""
    with running(folder) as collector:
        collector.open_survey(survey, precision=3600, allow_weak_privacy=True, **about)
        key = base64.urlsafe_b64encode(public_bytes(load_key(collector.settings.key_path))).rstrip(b"=").decode()
        token = collector.token("answers:read", "surveys:read", "export:read")["Authorization"]
        yield Asking(collector.url, survey.task, key, token)


def old_surveys(folder: Path, survey: Survey) -> list[tuple[dict[str, Any], str]]:
    """Return surveys that the collector in `folder` signed, to be shown to one page in turn; each with its state then.

    The second wave; the first one again; the second one with a statement that was not renewed.
    """
    key, now = load_key(folder / "signing.key"), int(time.time())
    shown = []
    for wave, until, state in (
        (2, now + 86_400, "ready"),
        (1, now + 86_400, "survey-rollback"),
        (2, now - 2 * 86_400, "survey-outdated"),
    ):
        draft = draft_of(Survey(survey.ask, wave=wave), ABOUT, precision=3600, minimum=1)
        shown.append((published(replace(draft, wave=wave), key, until), state))
    return shown
