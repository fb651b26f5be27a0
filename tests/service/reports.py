"""Reports for tests of the stores, past devices and HTTP."""

from __future__ import annotations

from tests.service.harness import SURVEY

from veil import Survey
from veil.collector.store.base import Group, Store, StoredSurvey
from veil.collector.surveys.catalogue import Catalogue, draft_of

SIZE = SURVEY.layout.size


def opened(store: Store, survey: Survey = SURVEY) -> StoredSurvey:
    """The survey, open."""
    catalogue = Catalogue(store)
    catalogue.create(draft_of(survey, {}, precision=60, minimum=1))
    return catalogue.open(survey.task)


def group(stored: StoredSurvey, ids: bytes, mark: int = 0) -> Group:
    """Reports whose payloads begin with the number of their group."""
    count = len(ids) // 16
    return Group(stored.key, ids, (bytes([mark]) + bytes(SIZE - 1)) * count, count)
