"""Refusals as HTTP responses: {"error": {"code": ..., "message": ...}}, with `expected` where it helps."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from veil.collector.monitoring.logs import RateLimitedLog
from veil.collector.monitoring.metrics import Metrics
from veil.errors import (
    EmptyError,
    ExtraError,
    InputError,
    LimitError,
    MismatchError,
    ServiceError,
    StoreError,
    VeilError,
    WireError,
)

_STORE_RETRY_SECONDS = 5
_log = RateLimitedLog()
_CODES: tuple[tuple[type[VeilError], str], ...] = (
    (MismatchError, "foreign-survey"),
    (WireError, "malformed"),
    (EmptyError, "empty"),
    (InputError, "bad-input"),
)
_HTTP = {404: "not-found", 405: "method-not-allowed"}


def as_service_error(problem: BaseException) -> ServiceError:
    """What the other side is told: our own words for what we know, and none of an unforeseen problem's."""
    if isinstance(problem, ServiceError):
        return problem
    if isinstance(problem, StoreError):
        message = "the collector cannot store or read now: nothing was acknowledged, send it again later"
        return ServiceError(503, "unavailable", message, retry_after=_STORE_RETRY_SECONDS)
    if isinstance(problem, HTTPException):
        code = _HTTP.get(problem.status_code, "bad-request")
        allowed = (problem.headers or {}).get("Allow")
        return ServiceError(problem.status_code, code, HTTPStatus(problem.status_code).phrase.lower(), expected=allowed)
    if isinstance(problem, ExtraError):  # its words say where this collector is installed
        return ServiceError(
            503, "unavailable", "this collector lacks a library that the answer needs: tell its operator"
        )
    if isinstance(problem, LimitError):
        return ServiceError(422, "over-limit", str(problem), expected=problem.expected, limit="query")
    for kind, code in _CODES:
        if isinstance(problem, kind):
            return ServiceError(422, code, str(problem))
    return ServiceError(500, "internal", "something unforeseen happened: nothing was acknowledged")


def noted(metrics: Metrics, problem: BaseException) -> ServiceError:
    """The same, counted; and logged where nobody foresaw it, but no line for each request: anybody may send many."""
    refusal = as_service_error(problem)
    metrics.add("veil_refused_total", code=refusal.code)
    if refusal.limit is not None:
        metrics.add("veil_limits_reached_total", limit=refusal.limit)
    if refusal.status >= 500 and not isinstance(problem, ServiceError):  # those are logged where they arise
        _log("error" if refusal.status == 500 else "warning", refusal.code, problem)
    return refusal


def error_response(problem: ServiceError) -> Response:
    """A refusal as an answer."""
    error: dict[str, Any] = {"code": problem.code, "message": str(problem)}
    if problem.expected is not None:
        error["expected"] = problem.expected
    headers = {} if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    if problem.status == 405 and problem.expected is not None:
        headers["Allow"] = problem.expected
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = json.dumps({"error": error})
    return Response(body, problem.status, headers, media_type="application/json")
