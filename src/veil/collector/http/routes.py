"""The handlers of all routes. Reports and published surveys are open to all; other routes need a token with a scope."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from veil.collector.edge.commit import refusal_of
from veil.collector.edge.decoding import count_frames, frames_of_arrow
from veil.collector.edge.limits import read_body, read_json
from veil.collector.http import openapi
from veil.collector.keys_and_tokens import ANY_SURVEY, AnySurvey, authorised
from veil.collector.monitoring.logs import log
from veil.collector.service import Service
from veil.collector.store.base import StoredSurvey, TokenRecord
from veil.collector.surveys import answers
from veil.collector.surveys.answers import ResultKey
from veil.collector.surveys.catalogue import parsed, task_wanted
from veil.collector.surveys.exporting import open_export
from veil.errors import InputError, ServiceError, StoreError, WireError
from veil.study import study_from_json
from veil.survey import Survey
from veil.tools.json_documents import Json
from veil.tools.limits import Limits, limited
from veil.tools.numbers import is_int

FRAMED = "application/vnd.veil.reports"
ARROW = "application/vnd.apache.arrow.stream"
_MOST_AUDIT = 1_000
_MOST_ROUNDS = 1_000_000
_PIECE_BYTES = 1 << 20
_READY_SECONDS = 5
_FLAGS = {"true": True, "false": False}

RequestCounter = Callable[..., int]
"""A function that counts requests from one address, and returns 0 or the seconds to wait."""
Handler = Callable[[Service, Request], Awaitable[Response]]


@dataclass(frozen=True)
class Endpoint:
    """A method on a path, and its handler."""

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
    charge: RequestCounter | None = request.scope.get("veil.charge")
    if charge is not None and "authorization" in request.headers:
        try:
            await _authorised(service, request, "reports:write", stored.task)
        except ServiceError:  # what pretends to have a token counts as what has none
            _refuse_waiting(charge())
            raise
        charge = None
    frames = await read_body(service, request)
    if kind == ARROW:
        frames = await service.decoding.run(frames_of_arrow, survey, frames, service.settings.max_reports)
    count = check_count(service, survey, len(frames))
    check_batch(service, count, charge)
    await service.queue.submit(stored, survey, frames, count)
    return Response(b'{"acknowledged":%d}' % count, media_type="application/json")


def check_count(service: Service, survey: Survey, size: int) -> int:
    """How many framed reports so many bytes are; refuses too many of them."""
    count = count_frames(survey, size)
    if count > service.settings.max_reports:
        expected = f"at most {service.settings.max_reports} reports"
        message = "these are too many reports for one request"
        raise ServiceError(413, "too-large", message, expected=expected, limit="max_reports")
    return count


def check_batch(service: Service, count: int, charge: RequestCounter | None) -> None:
    """Count all reports of a batch that comes without a token; the first one was counted with its head."""
    if charge is None or count <= 1:
        return
    most = service.settings.requests_per_minute
    if count > most:
        message = f"more than {most} reports in one request need a token"
        expected = "a token with the scope reports:write"
        raise ServiceError(401, "no-token", message, expected=expected, limit="requests_per_minute")
    _refuse_waiting(charge(count=count - 1))


def _refuse_waiting(seconds: int) -> None:
    if seconds:
        message = "too many reports came from this address: send it again later"
        raise ServiceError(429, "too-many-requests", message, retry_after=seconds, limit="requests_per_minute")


async def get_published(service: Service, request: Request) -> Response:
    """The signed survey for devices."""
    stored = await _survey_of(service, request)
    phase = stored.phase(int(time.time()))
    if phase not in ("open", "waiting"):  # a device that got it would pay for a report that nobody takes
        raise refusal_of(phase)
    return JSONResponse(await service.published(stored))


async def get_by_name(service: Service, request: Request) -> Response:
    """The signed survey of a name's latest wave, for devices."""
    name = request.path_params["name"]
    remembered = service.catalogue.recall_named(name)
    stored = await service.in_thread(service.catalogue.named, name) if remembered is None else remembered
    phase = stored.phase(int(time.time()))
    if phase not in ("open", "waiting"):
        raise refusal_of(phase)
    return JSONResponse(await service.published(stored))


async def create_survey(service: Service, request: Request) -> Response:
    """Keep a study, or a bare task, with its survey as a draft."""
    token = await _authorised(service, request, "surveys:write", None)
    document = await read_json(service, request)
    if "survey" not in document:
        raise InputError("expected an object with a study or a task as its member 'survey'")
    settings = service.settings

    def create() -> tuple[Json, bool]:
        file = document.pop("survey")
        if not isinstance(file, dict):
            raise WireError("a study or a task is a JSON object")
        study, bare = study_from_json(file), file.get("kind") != "veil-study"
        terms = {"precision": settings.precision, "minimum": settings.minimum}
        service.note(token.name, "create", task_wanted(study.survey, document))
        stored, made = service.studies.publish(study, document, bare=bare, **terms)
        return service.catalogue.describe(stored), made

    described, made = await service.in_thread(create, by=service.decoding)
    return JSONResponse(described, 201 if made else 200)


async def list_surveys(service: Service, request: Request) -> Response:
    """All surveys that the token may see."""

    def collect() -> list[Any]:
        token = _token(service, request, "surveys:read", ANY_SURVEY)
        mine = [s for s in service.store.surveys() if token.task in (None, s.task)]
        return [service.catalogue.describe(stored) for stored in mine]

    return JSONResponse({"surveys": await service.in_thread(collect)})


async def get_state(service: Service, request: Request) -> Response:
    """How a survey stands."""
    task = request.path_params["task"]
    await _authorised(service, request, "surveys:read", task)
    stored = await service.in_thread(service.catalogue.look_up, task)
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

    stored = await service.in_thread(moved)
    log("info", f"survey-{action}", task=task, token=token.name)
    return JSONResponse(service.catalogue.describe(stored))


async def get_answer(service: Service, request: Request) -> Response:
    """What was found, asked for by parameters; `set` may stand several times."""
    token = await _authorised(service, request, "answers:read", request.path_params["task"])
    query = request.query_params
    asked: dict[str, Any] = {name: query[name] for name in query if name != "set"}
    if "candidates" in asked or "study" in asked:
        raise InputError("candidates and studies are sent as a document: use POST")
    asked |= {"all": _FLAGS.get(asked["all"], asked["all"])} if "all" in asked else {}
    with contextlib.suppress(ValueError):  # text stays, and is refused below
        asked |= {"level": float(asked["level"])} if "level" in asked else {}
    return await _answer(service, request, {**asked, "set": query.getlist("set")}, token)


async def post_answer(service: Service, request: Request) -> Response:
    """The same, asked for by a document: candidates may be many."""
    token = await _authorised(service, request, "answers:read", request.path_params["task"])
    return await _answer(service, request, await read_json(service, request), token)


async def _answer(service: Service, request: Request, asked: dict[str, Any], token: TokenRecord) -> Response:
    task = request.path_params["task"]
    if not set(asked) <= {"set", "level", "format", "all", "candidates", "study"}:
        raise InputError("expected the parameters set, level, format, all, candidates and study")
    for name in ("set", "candidates"):
        if asked.get(name) is not None and not isinstance(asked[name], list):
            raise InputError(f"{name} is a list")
    lists = {name: tuple(asked[name]) for name in ("set", "candidates") if asked.get(name) is not None}

    limits = Limits(service.settings.query_megabytes, service.settings.query_seconds, service.check_stopping)

    def prepare() -> tuple[StoredSurvey, answers.AnswerRequest, ResultKey]:
        # refuses what is wrong before it is written to the audit log
        query = answers.AnswerRequest(**{**asked, "set": (), "candidates": None, **lists})
        stored = service.catalogue.look_up(task)
        reading = answers.prepare(service.store, service.studies, stored, query, service.check_stopping, limits)
        service.note(token.name, "answer", task, query.parameters)
        return stored, query, reading

    stored, query, reading = await service.in_thread(prepare, by=service.answering)
    found = await service.readings.result(reading)

    def write() -> tuple[bytes, str]:
        with limited(limits):  # some results make their tables only now
            return answers.written(stored, query, found, reading.missing())

    body, kind = await service.in_thread(write, by=service.answering)
    return Response(body, media_type=kind)


async def get_study(service: Service, request: Request) -> Response:
    """Where a study of several rounds stands."""
    id_, _ = await _authorised_study(service, request, "surveys:read")
    return JSONResponse(await service.in_thread(service.studies.describe, id_))


async def next_round(service: Service, request: Request) -> Response:
    """Close the current round of a study, read it, and open the next one."""
    id_, token = await _authorised_study(service, request, "surveys:write")
    asked = await read_json(service, request) if request.headers.get("content-type") else {}
    number = asked.pop("round", None)
    if asked or (number is not None and not (is_int(number) and 0 <= number < _MOST_ROUNDS)):
        raise InputError("expected the number of the round to close as the member 'round', or nothing")

    def request_next() -> None:
        service.studies.look_up(id_)
        service.note(token.name, "next", service.studies.first_task(id_))
        service.studies.request_next(id_, number)

    await service.in_thread(request_next)
    await service.move_study(id_)
    return JSONResponse(await service.in_thread(service.studies.describe, id_))


async def get_round(service: Service, request: Request) -> Response:
    """The signed survey of the round that is open now, for devices; and which part of the people it is for."""
    id_ = request.path_params["study"]
    current = service.studies.recall(id_)
    stored, part = await service.in_thread(service.studies.current, id_) if current is None else current
    phase = stored.phase(int(time.time()))
    if phase not in ("open", "waiting"):
        raise refusal_of(phase)
    return JSONResponse(await service.published_round(stored, part))


async def get_export(service: Service, request: Request) -> Response:
    """All reports as Parquet."""
    task = request.path_params["task"]
    token = await _authorised(service, request, "export:read", task)

    def work() -> BinaryIO:
        stored = service.catalogue.look_up(task)
        service.note(token.name, "export", task)
        return open_export(service.store, stored, Path(service.settings.folder))

    file = await service.in_thread(work, by=service.answering)
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
    entries = await service.in_thread(service.store.audit, _MOST_AUDIT)
    found = [{**vars(entry), "parameters": json.loads(entry.parameters)} for entry in entries]
    # in ASCII, which holds whatever was once written: a log that cannot be read is none
    return Response(json.dumps({"entries": found}), media_type="application/json")


async def get_metrics(service: Service, request: Request) -> Response:
    """Numbers for Prometheus."""
    if not service.settings.metrics_open:
        await _authorised(service, request, "metrics:read", None)
    with contextlib.suppress(StoreError, ServiceError):  # what was known before is shown: this must answer
        service.marks = await service.in_thread(service.store.marks)
    marks = service.marks
    step = None if marks is None else max((step for *_, step in marks), default=1)  # no finer than any survey's
    text = service.metrics.text(step, [(task, mark) for task, mark, _ in marks or ()])
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def get_health(service: Service, request: Request) -> Response:
    """Whether the process answers."""
    return JSONResponse({"status": "ok"})


async def get_ready(service: Service, request: Request) -> Response:
    """Whether it can store, publish and answer; says no, rather than waiting for a database that says nothing."""

    def check() -> None:
        service.health.check_store()
        service.key_watch.confirm()

    try:
        async with asyncio.timeout(_READY_SECONDS):
            await asyncio.to_thread(check)
    except TimeoutError:
        raise ServiceError(503, "unavailable", "the database does not answer in time", retry_after=5) from None
    await asyncio.to_thread(service.health.check_answers)
    return JSONResponse({"status": "ok"})


async def get_openapi(service: Service, request: Request) -> Response:
    """The description of these routes."""
    return JSONResponse(openapi.document())


ROUTES = (
    Endpoint("POST", "/v1/surveys/{task}/reports", post_reports),  # first: by far the most frequent
    Endpoint("GET", "/v1/surveys/{task}", get_published),
    Endpoint("GET", "/v1/surveys/by-name/{name}", get_by_name),
    Endpoint("POST", "/v1/surveys", create_survey),
    Endpoint("GET", "/v1/surveys", list_surveys),
    Endpoint("GET", "/v1/surveys/{task}/state", get_state),
    Endpoint("POST", "/v1/surveys/{task}/open", open_survey),
    Endpoint("POST", "/v1/surveys/{task}/close", close_survey),
    Endpoint("GET", "/v1/surveys/{task}/answer", get_answer),
    Endpoint("POST", "/v1/surveys/{task}/answer", post_answer),
    Endpoint("GET", "/v1/studies/{study}", get_study),
    Endpoint("GET", "/v1/studies/{study}/round", get_round),
    Endpoint("POST", "/v1/studies/{study}/next", next_round),
    Endpoint("GET", "/v1/surveys/{task}/export", get_export),
    Endpoint("GET", "/v1/audit", get_audit),
    Endpoint("GET", "/metrics", get_metrics),
    Endpoint("GET", "/healthz", get_health),
    Endpoint("GET", "/readyz", get_ready),
    Endpoint("GET", "/openapi.json", get_openapi),
)


def _token(service: Service, request: Request, scope: str, task: str | AnySurvey | None) -> TokenRecord:
    return authorised(service.store, request.headers.get("authorization"), scope, task)


async def _authorised(service: Service, request: Request, scope: str, task: str | AnySurvey | None) -> TokenRecord:
    return await service.in_thread(_token, service, request, scope, task)


async def _authorised_study(service: Service, request: Request, scope: str) -> tuple[str, TokenRecord]:
    id_ = request.path_params["study"]
    await _authorised(service, request, scope, ANY_SURVEY)  # before anybody learns whether there is such a study
    task = await service.in_thread(service.studies.first_task, id_)
    return id_, await _authorised(service, request, scope, task)


async def _survey_of(service: Service, request: Request) -> StoredSurvey:
    task = request.path_params["task"]
    remembered = service.catalogue.recall(task)
    return await service.in_thread(service.catalogue.look_up, task) if remembered is None else remembered
