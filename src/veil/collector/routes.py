"""What each route does. Reports and published surveys are open to all; everything else needs a token with its scope."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from veil.collector import answers, openapi
from veil.collector.bodies import read_body, read_json
from veil.collector.catalogue import draft_of, parsed
from veil.collector.commit import refusal_of
from veil.collector.decoding import count_frames, frames_of_arrow
from veil.collector.exporting import open_export
from veil.collector.logs import log
from veil.collector.service import Service
from veil.collector.store import StoredSurvey, TokenRecord
from veil.collector.tokens import ANY_SURVEY, AnySurvey, authorised
from veil.errors import InputError, ServiceError
from veil.survey import Survey

__all__ = ["ROUTES", "Endpoint", "post_reports"]

FRAMED = "application/vnd.veil.reports"
ARROW = "application/vnd.apache.arrow.stream"
_MOST_AUDIT = 1_000
_PIECE_BYTES = 1 << 20

Handler = Callable[[Service, Request], Awaitable[Response]]


@dataclass(frozen=True)
class Endpoint:
    """A method on a path, and what serves it."""

    method: str
    path: str
    handler: Handler


async def post_reports(service: Service, request: Request) -> Response:
    """Take reports; acknowledge them once they are on the disk."""
    stored = await _survey_of(service, request)
    phase = stored.phase(int(time.time()))
    if phase != "open":
        raise refusal_of(phase)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (FRAMED, ARROW):
        raise ServiceError(415, "wrong-type", "expected another content type", expected=f"{FRAMED} or {ARROW}")
    survey = parsed(stored.document)
    frames = await read_body(service, request)
    if kind == ARROW:
        frames = await service.decoding.run(frames_of_arrow, survey, frames, service.settings.max_reports)
    count = count_frames(survey, len(frames))
    if count > service.settings.max_reports:
        expected = f"at most {service.settings.max_reports} reports"
        raise ServiceError(413, "too-large", "these are too many reports for one request", expected=expected)
    await service.queue.submit(stored, survey, frames, count)
    return Response(b'{"acknowledged":%d}' % count, media_type="application/json")


async def get_published(service: Service, request: Request) -> Response:
    """The signed survey for devices."""
    stored = await _survey_of(service, request)
    phase = stored.phase(int(time.time()))
    if phase not in ("open", "waiting"):  # a device that got it would pay for a report that nobody takes
        raise refusal_of(phase)
    return JSONResponse(service.published(stored))


async def create_survey(service: Service, request: Request) -> Response:
    """Keep a survey as a draft."""
    token = await _authorised(service, request, "surveys:write", None)
    document = await read_json(service, request)
    if "survey" not in document:
        raise InputError("expected an object with the task as its member 'survey'")
    survey = Survey.from_json(document.pop("survey"))
    settings = service.settings
    draft = draft_of(survey, document, precision=settings.precision, minimum=settings.minimum)

    def create() -> tuple[StoredSurvey, bool]:
        service.note(token.name, "create", survey.task)
        return service.catalogue.create(draft)

    stored, made = await asyncio.to_thread(create)
    return JSONResponse(service.catalogue.describe(stored), 201 if made else 200)


async def list_surveys(service: Service, request: Request) -> Response:
    """All surveys that the token may see."""

    def collect() -> list[Any]:
        token = _token(service, request, "surveys:read", ANY_SURVEY)
        mine = [s for s in service.store.surveys() if token.task in (None, s.task)]
        return [service.catalogue.describe(stored) for stored in mine]

    return JSONResponse({"surveys": await asyncio.to_thread(collect)})


async def get_state(service: Service, request: Request) -> Response:
    """How a survey stands."""
    task = request.path_params["task"]
    await _authorised(service, request, "surveys:read", task)
    stored = await asyncio.to_thread(service.catalogue.look_up, task)
    return JSONResponse(service.catalogue.describe(stored))


async def open_survey(service: Service, request: Request) -> Response:
    """From draft to open."""
    return await _move(service, request, "open", service.catalogue.open)


async def close_survey(service: Service, request: Request) -> Response:
    """From open to closed."""
    return await _move(service, request, "close", service.catalogue.close)


async def _move(service: Service, request: Request, action: str, move: Callable[[str], StoredSurvey]) -> Response:
    task = request.path_params["task"]
    token = await _authorised(service, request, "surveys:write", task)

    def moved() -> StoredSurvey:
        service.catalogue.look_up(task)  # refuses what is no task id before it is written anywhere
        service.note(token.name, action, task)
        return move(task)

    stored = await asyncio.to_thread(moved)
    log("info", f"survey-{action}", task=task, token=token.name)
    return JSONResponse(service.catalogue.describe(stored))


async def get_answer(service: Service, request: Request) -> Response:
    """An estimate, asked for by parameters."""
    query = dict(request.query_params)
    if "candidates" in query:
        raise InputError("candidates are sent as a document: use POST")
    level = query.pop("level", "0.95")
    try:
        query["level"] = float(level)  # type: ignore[assignment]  # text until here
    except ValueError:
        raise InputError("the level of an interval lies between 0 and 1") from None
    return await _answer(service, request, query)


async def post_answer(service: Service, request: Request) -> Response:
    """An estimate, asked for by a document: candidates may be many."""
    token = await _authorised(service, request, "answers:read", request.path_params["task"])
    document = await read_json(service, request)
    candidates = document.get("candidates")
    if candidates is not None and not isinstance(candidates, list):
        raise InputError("candidates are a list of values")
    return await _answer(service, request, document, token)


async def _answer(
    service: Service, request: Request, asked: dict[str, Any], token: TokenRecord | None = None
) -> Response:
    task, number = request.path_params["task"], request.path_params["question"]
    token = token or await _authorised(service, request, "answers:read", task)
    if not set(asked) <= {"post", "level", "format", "candidates"}:
        raise InputError("expected the parameters post, level, format and candidates")
    question: int | str = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1
    if number == answers.ALL:
        question = number

    def work() -> tuple[bytes, str]:
        query = answers.Query(question, **asked)  # refuses what is wrong before it is written to the audit log
        stored = service.catalogue.look_up(task)
        service.note(token.name, "answer", task, query.parameters)
        return answers.answer(service.store, stored, query)

    body, kind = await service.answering.run(work)
    return Response(body, media_type=kind)


async def get_export(service: Service, request: Request) -> Response:
    """All reports as Parquet."""
    task = request.path_params["task"]
    token = await _authorised(service, request, "export:read", task)

    def work() -> BinaryIO:
        stored = service.catalogue.look_up(task)
        service.note(token.name, "export", task)
        return open_export(service.store, stored, Path(service.settings.folder))

    file = await service.answering.run(work)
    headers = {
        "Content-Length": str(os.fstat(file.fileno()).st_size),
        "Content-Disposition": f'attachment; filename="{task[:12]}.parquet"',
    }
    return StreamingResponse(_pieces(file), headers=headers, media_type="application/vnd.apache.parquet")


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
            yield piece


async def get_audit(service: Service, request: Request) -> Response:
    """The latest entries of the audit log."""
    await _authorised(service, request, "audit:read", None)
    entries = await asyncio.to_thread(service.store.audit, _MOST_AUDIT)
    found = [{**vars(entry), "parameters": json.loads(entry.parameters)} for entry in entries]
    # in ASCII, which holds whatever was once written: a log that cannot be read is none
    return Response(json.dumps({"entries": found}), media_type="application/json")


async def get_metrics(service: Service, request: Request) -> Response:
    """Numbers for Prometheus."""
    if not service.settings.metrics_open:
        await _authorised(service, request, "metrics:read", None)
    service.metrics.set("veil_body_bytes", service.body_bytes)
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def get_health(service: Service, request: Request) -> Response:
    """Whether the process answers."""
    return JSONResponse({"status": "ok"})


async def get_ready(service: Service, request: Request) -> Response:
    """Whether it can store."""
    await asyncio.to_thread(service.store.ping)
    return JSONResponse({"status": "ok"})


async def get_openapi(service: Service, request: Request) -> Response:
    """The description of these routes."""
    return JSONResponse(openapi.document())


ROUTES = (
    Endpoint("POST", "/v1/surveys/{task}/reports", post_reports),  # first: by far the most frequent
    Endpoint("GET", "/v1/surveys/{task}", get_published),
    Endpoint("POST", "/v1/surveys", create_survey),
    Endpoint("GET", "/v1/surveys", list_surveys),
    Endpoint("GET", "/v1/surveys/{task}/state", get_state),
    Endpoint("POST", "/v1/surveys/{task}/open", open_survey),
    Endpoint("POST", "/v1/surveys/{task}/close", close_survey),
    Endpoint("GET", "/v1/surveys/{task}/answers/{question}", get_answer),
    Endpoint("POST", "/v1/surveys/{task}/answers/{question}", post_answer),
    Endpoint("GET", "/v1/surveys/{task}/export", get_export),
    Endpoint("GET", "/v1/audit", get_audit),
    Endpoint("GET", "/metrics", get_metrics),
    Endpoint("GET", "/healthz", get_health),
    Endpoint("GET", "/readyz", get_ready),
    Endpoint("GET", "/openapi.json", get_openapi),
)


def _token(service: Service, request: Request, scope: str, task: str | AnySurvey | None) -> TokenRecord:
    return authorised(service.store, request.headers.get("authorization"), scope, task)


async def _authorised(service: Service, request: Request, scope: str, task: str | None) -> TokenRecord:
    return await asyncio.to_thread(_token, service, request, scope, task)


async def _survey_of(service: Service, request: Request) -> StoredSurvey:
    task = request.path_params["task"]
    remembered = service.catalogue.recall(task)
    return await asyncio.to_thread(service.catalogue.look_up, task) if remembered is None else remembered
