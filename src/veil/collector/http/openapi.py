"""The OpenAPI description of the collector, and the JSON schemas of what it sends.

It is written by hand; tests compare it with the routes.
"""

from __future__ import annotations

from typing import Any

from veil import __version__
from veil.survey import MOST_WAVES

Node = dict[str, Any]
TASK = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
TIME = {"type": ["string", "null"], "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"}
NAME = {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$"}
_WHOLE = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}
_STATE = {"enum": ["draft", "waiting", "open", "closed", "expired"]}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_REFUSALS = {
    400: "The connection was closed within the body, or what came is no HTTP.",
    401: "No token, or one that is unknown or revoked.",
    403: "The token has another scope, or is for another survey.",
    404: "There is no such survey or study.",
    405: "The path has no such method.",
    408: "The head or the body did not come in time.",
    409: "The survey or the study is in another state, or there are too few reports.",
    410: "The survey is closed, its time is over, or the study is finished.",
    413: "The body is too large, or has too many reports.",
    415: "The content type is another, or the body is encoded.",
    422: "The content is malformed, out of range, or of another survey. Nothing was stored.",
    429: "The collector is busy, or too much came from this address; see Retry-After.",
    431: "The head is too large.",
    503: "The database is down, full or hangs, or the collector stops; see Retry-After. Nothing was acknowledged.",
}
_AT_THE_EDGE = (400, 408, 429, 431, 503)  # before any route is looked for


def document() -> Node:
    """The whole description, OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "veil collector",
            "version": __version__,
            "description": "Takes randomized reports, keeps each exactly once, and answers analysts.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {**_device_paths(), **_survey_paths(), **_study_paths(), **_answer_paths(), **_operation_paths()},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas(),
        },
    }


def schemas() -> Node:
    """By name: everything that an answer of the collector may be."""
    return {
        "Error": _error(),
        "Survey": _survey(),
        "Published": record({**_published(), "about": record(_published())}, required=list(_published())),
        "Round": record({**_published(), "part": record(_published()), "round": _WHOLE, "from": _SHARE, "to": _SHARE}),
        "Study": _study(),
        "Result": _result(),
        "Answer": {"allOf": [{"type": "object", "properties": {"task": TASK}, "required": ["task"]}, _is_result()]},
    }


def record(properties: Node, required: list[str] | None = None) -> Node:
    """An object with these members and no others, all of them required unless said."""
    needed = list(properties) if required is None else required
    made = {"type": "object", "properties": properties, "additionalProperties": False}
    return made | ({"required": needed} if needed else {})


def listed(items: Node) -> Node:
    """A list of such items."""
    return {"type": "array", "items": items}


def reference(name: str) -> Node:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _device_paths() -> Node:
    framed = {"application/vnd.veil.reports": _BINARY, "application/vnd.apache.arrow.stream": _BINARY}
    acknowledged = record({"acknowledged": {"type": "integer", "minimum": 1}})
    return {
        "/v1/surveys/{task}/reports": {
            "parameters": [_in_path("task", TASK)],
            "post": _operation(
                "postReports",
                "Send one or more reports. Acknowledged once all are durable; the same ids again are counted once.",
                _json("How many reports are stored, now or before.", acknowledged),
                (400, 401, 403, 404, 408, 409, 410, 413, 415, 422, 429, 503),
                body={"required": True, "content": framed},
            ),
        },
        "/v1/surveys/by-name/{name}": {
            "parameters": [_in_path("name", NAME)],
            "get": _operation(
                "getSurveyByName",
                "The published survey of a name's latest wave, signed.",
                _json("As a published survey, with its name, wave and texts.", reference("Published")),
                (404, 410, 503),
            ),
        },
        "/v1/surveys/{task}": {
            "parameters": [_in_path("task", TASK)],
            "get": _operation(
                "getSurvey",
                "The published survey, signed.",
                _json("Document, key and signature, in base64url without padding.", reference("Published")),
                (404, 410, 503),
            ),
        },
    }


def _survey_paths() -> Node:
    one = _json("The survey as it stands.", reference("Survey"))
    terms = {
        "survey": {"type": "object", "description": "A study file, or a task: docs/wire-format.md, section 2."},
        "opens": TIME,
        "closes": TIME,
        "precision": {"type": "integer", "minimum": 1, "maximum": 31_622_400},
        "allow_fine_times": {"type": "boolean", "description": "Publish a precision below 3,600 seconds."},
        "allow_weak_privacy": {"type": "boolean", "description": "Publish an eps above 10 per report."},
        "minimum": {"type": "integer", "minimum": 1, "maximum": 2**40},
        "step": {"type": "integer", "minimum": 1, "maximum": 2**40},
        "keep_days": {"type": "integer", "minimum": 1, "maximum": 36_525},
        "name": NAME,
        "wave": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_WAVES,
            "description": "Needs a name; default: the next one, or the wave of the task.",
        },
        "texts": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 2_000}},
        "people": {"type": "integer", "minimum": 1, "maximum": 2**40},
        "round_seconds": {"type": "integer", "minimum": 1, "maximum": 2**40},
    }
    made = {"schema": record(terms, required=["survey"])}
    created = _operation(
        "createSurvey",
        "Keep a study, or a bare task, with its survey as a draft; another study of the same task changes its reading.",
        one,
        (400, 401, 403, 408, 409, 413, 415, 422, 429, 503),
        scope="surveys:write",
        body={"required": True, "content": {"application/json": made}},
    )
    created["responses"]["201"] = one
    every = _json("All surveys that the token may see.", record({"surveys": listed(reference("Survey"))}))
    with_task = {"parameters": [_in_path("task", TASK)]}
    refusals, moves = (401, 403, 404, 503), (401, 403, 404, 409, 503)
    return {
        "/v1/surveys": {
            "post": created,
            "get": _operation("listSurveys", "List surveys.", every, (401, 403, 503), scope="surveys:read"),
        },
        "/v1/surveys/{task}/state": {
            **with_task,
            "get": _operation("getState", "How a survey stands.", one, refusals, scope="surveys:read"),
        },
        "/v1/surveys/{task}/open": {
            **with_task,
            "post": _operation("openSurvey", "Open a draft.", one, moves, scope="surveys:write"),
        },
        "/v1/surveys/{task}/close": {
            **with_task,
            "post": _operation("closeSurvey", "Close a survey.", one, moves, scope="surveys:write"),
        },
    }


def _study_paths() -> Node:
    one = _json("Where the study stands, round by round.", reference("Study"))
    number = record({"round": {"type": "integer", "minimum": 0, "maximum": 999_999}}, required=[])
    with_study = {"parameters": [_in_path("study", TASK)]}
    return {
        "/v1/studies/{study}": {
            **with_study,
            "get": _operation(
                "getStudy", "Where a study of several rounds stands.", one, (401, 403, 404, 503), scope="surveys:read"
            ),
        },
        "/v1/studies/{study}/round": {
            **with_study,
            "get": _operation(
                "getRound",
                "The published survey of the round that is open now, and the part of all people that it is for.",
                _json("As a published survey, with the round's number and part.", reference("Round")),
                (404, 409, 410, 503),
            ),
        },
        "/v1/studies/{study}/next": {
            **with_study,
            "post": _operation(
                "nextRound",
                "Close the current round, read it, and open the next. With the round's number, again is fine.",
                one,
                (400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503),
                scope="surveys:write",
                body={"required": False, "content": {"application/json": {"schema": number}}},
            ),
        },
    }


def _answer_paths() -> Node:
    form = {"type": "string", "enum": ["json", "csv", "arrow"]}
    level = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    settings = {**listed({"type": "string", "pattern": "="}), "maxItems": 32}
    value = {"type": ["string", "number", "null"]}
    asked = {
        "set": settings,
        "level": level,
        "format": form,
        "all": {"type": "boolean", "description": "Whether rows of a search are told that are not significant."},
        "candidates": {**listed(value), "minItems": 1},
        "study": {
            "type": "object",
            "description": "Another study of this task, or the task, to read the reports with.",
        },
    }
    found = _json("What was found.", reference("Answer"))
    found["content"] |= {"text/csv": _BINARY, "application/vnd.apache.arrow.stream": _BINARY}
    refusals = (401, 403, 404, 409, 422, 429, 503)
    parquet = {"description": "Parquet.", "content": {"application/vnd.apache.parquet": _BINARY}}
    return {
        "/v1/surveys/{task}/answer": {
            "parameters": [_in_path("task", TASK)],
            "get": {
                **_operation("getAnswer", "What the study of a survey found.", found, refusals, scope="answers:read"),
                "parameters": [_in_query(name, asked[name]) for name in ("set", "level", "format", "all")],
            },
            "post": _operation(
                "postAnswer",
                "The same, for given candidates, or read with another study.",
                found,
                (400, 408, 413, 415, *refusals),
                scope="answers:read",
                body={"required": True, "content": {"application/json": {"schema": record(asked, required=[])}}},
            ),
        },
        "/v1/surveys/{task}/export": {
            "parameters": [_in_path("task", TASK)],
            "get": _operation("export", "All reports.", parquet, (401, 403, 404, 429, 503), scope="export:read"),
        },
    }


def _operation_paths() -> Node:
    text = {"type": ["string", "null"]}
    entry = record(dict.fromkeys(("at", "token", "action", "task"), text) | {"parameters": {"type": "object"}})
    entries = _json("Newest first.", record({"entries": listed(entry)}))
    numbers = {"description": "Prometheus's text.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    fine = _json("It is.", record({"status": {"const": "ok"}}))
    whole = _json("This document.", {"type": "object"})
    refusals = (401, 403, 503)
    return {
        "/v1/audit": {"get": _operation("getAudit", "Who asked what.", entries, refusals, scope="audit:read")},
        "/metrics": {"get": _operation("getMetrics", "Numbers.", numbers, refusals, scope="metrics:read")},
        "/healthz": {"get": _operation("getHealth", "Whether the process answers.", fine, ())},
        "/readyz": {"get": _operation("getReady", "Whether it can store and answer.", fine, (503,))},
        "/openapi.json": {"get": _operation("getOpenapi", "This document.", whole, ())},
    }


def _error() -> Node:
    inner = {"code": {"type": "string", "pattern": "^[a-z-]+$"}, "message": _TEXT}
    error = record({**inner, "expected": _TEXT}, required=["code", "message"])
    return record({"error": error})


def _survey() -> Node:
    return record(
        {
            "task": TASK,
            "kind": {**_TEXT, "description": "Of the study that its reports are read with."},
            "study": {"type": ["string", "null"], "description": "The study that this survey is a round of."},
            "name": {"type": ["string", "null"], "description": "Shared by the waves of a question."},
            "wave": {"type": ["integer", "null"], "minimum": 1},
            "texts": {"type": ["object", "null"], "description": "The question for people, by language."},
            "state": _STATE,
            "opens": TIME,
            "closes": TIME,
            **dict.fromkeys(("precision", "minimum", "step", "reports", "questions", "payload_bytes"), _WHOLE),
            "keep_days": {"type": ["integer", "null"], "description": "Reports are erased so many days after closing."},
            "purged": {**TIME, "description": "When its reports were erased; their number stays."},
            "epsilon": {"type": ["number", "null"]},
            "delta": {"type": "number"},
        }
    )


def _published() -> Node:
    return {name: {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"} for name in ("document", "key", "signature")}


def _study() -> Node:
    part = {"round": _WHOLE, "task": TASK, "state": _STATE, "reports": _WHOLE, "from": _SHARE, "to": _SHARE}
    return record(
        {
            "study": TASK,
            "kind": _TEXT,
            "state": {"enum": ["draft", "asking", "reading", "finished"]},
            "people": {"type": ["integer", "null"]},
            "round_seconds": {"type": ["integer", "null"]},
            "rounds": listed(record(part)),
        }
    )


def _result() -> Node:
    """Any result: what all of them say, its facts beside it, and its rows; or one result per question."""
    properties = {
        "kind": _TEXT,
        "people": {**_WHOLE, "description": "The number of reports."},
        "population": _WHOLE,
        "lineage": listed(_TEXT),
        "guarantee": {"type": ["object", "null"]},
        "level": {"type": "number"},
        "hidden": _WHOLE,
        "rows": listed({"type": "object"}),
        "remarks": listed(_TEXT),
        "answers": listed(_is_result()),
    }
    needed = ["kind", "people", "population", "lineage", "guarantee", "level"]
    either = [{"required": ["rows", "remarks"]}, {"required": ["answers"]}]
    return {"type": "object", "properties": properties, "required": needed, "oneOf": either}


def _is_result() -> Node:
    return reference("Result")


def _operation(
    name: str,
    summary: str,
    found: Node,
    refusals: tuple[int, ...],
    *,
    scope: str | None = None,
    body: Node | None = None,
) -> Node:
    answers = {"200": found}
    for status in sorted({*refusals, *_AT_THE_EDGE}):
        answers[str(status)] = _refusal(status)
    operation: Node = {"operationId": name, "summary": summary, "responses": answers}
    if scope is not None:
        operation |= {"security": [{"token": []}], "description": f"Needs a token with the scope {scope}."}
    return operation if body is None else operation | {"requestBody": body}


def _refusal(status: int) -> Node:
    refusal = _json(_REFUSALS[status], reference("Error"))
    if status in (429, 503):
        refusal["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
    return refusal


def _json(description: str, schema: Node) -> Node:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _in_path(name: str, schema: Node) -> Node:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(name: str, schema: Node) -> Node:
    return {"name": name, "in": "query", "required": False, "schema": schema}
