"""The ASGI application: routing, one shape for all errors, CORS for devices, and no trace of clients."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from veil.collector.http.routes import ROUTES, Endpoint, post_reports
from veil.collector.monitoring.logs import log
from veil.collector.problems import error_response, noted
from veil.collector.service import Service
from veil.errors import ServiceError

_PUBLISHED = re.compile(r"/v1/(surveys/[^/]+|surveys/by-name/[^/]+|studies/[^/]+/round)")
# By far the most frequent request goes past the router, which would take a third of its time.
_REPORTS = re.compile(r"/v1/surveys/([^/]+)/reports")
_REPORTS_ROUTE = "POST /v1/surveys/{task}/reports"
_HEADERS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
_EXPOSE, _VARY = (b"access-control-expose-headers", b"Retry-After"), (b"vary", b"Origin")
_SHARED = [*_HEADERS, (b"access-control-allow-origin", b"*"), _EXPOSE]


class App:
    """A collector as an ASGI application."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._any_origin = "*" in service.settings.cors_origins
        self._origins = {origin.encode() for origin in service.settings.cors_origins}
        by_path: dict[str, dict[str, Endpoint]] = {}
        for one in ROUTES:
            by_path.setdefault(one.path, {})[one.method] = one
        routes = [Route(path, self._endpoint(found), methods=list(found)) for path, found in by_path.items()]
        self._router = Router(routes, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self  # so that the router raises what it refuses, instead of answering in a shape of its own
        status = 0
        beside = _HEADERS
        reports = _REPORTS.fullmatch(scope["path"])
        for_devices = reports is not None or _PUBLISHED.fullmatch(scope["path"]) is not None
        if for_devices:
            beside = self.beside(next((value for name, value in scope["headers"] if name == b"origin"), b""))

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *beside]
            await send(message)

        start = time.perf_counter()
        try:
            if "veil.wait" in scope:  # the edge says so
                message = "too many requests came from this address: send it again later"
                wait = scope["veil.wait"]
                raise ServiceError(429, "too-many-requests", message, retry_after=wait, limit="requests_per_minute")
            if for_devices and scope["method"] == "OPTIONS":
                await _preflight()(scope, receive, answer)
            elif reports is not None and scope["method"] == "POST":
                scope["path_params"], scope["veil.route"] = {"task": reports[1]}, _REPORTS_ROUTE
                response = await post_reports(self.service, Request(scope, receive))
                await response(scope, receive, answer)
            else:
                await self._router(scope, receive, answer)
        except Exception as problem:
            refusal = noted(self.service.metrics, problem)
            if status:  # the answer is under way: all that is left is to break it off
                raise HTTPException(500) from None
            await error_response(refusal)(scope, receive, answer)
        route = scope.get("veil.route", "none")
        self.service.metrics.add("veil_requests_total", route=route, status=str(status))
        self.service.metrics.observe("veil_request_seconds", time.perf_counter() - start, route=route)

    def _endpoint(self, methods: dict[str, Endpoint]) -> Callable[[Request], Awaitable[Response]]:
        """One path, whatever its methods: a refused one is then told all that there are."""
        names = {method: f"{method} {one.path}" for method, one in methods.items()}

        async def endpoint(request: Request) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            request.scope["veil.route"] = names[method]
            return await methods[method].handler(self.service, request)

        return endpoint

    def beside(self, origin: bytes) -> list[tuple[bytes, bytes]]:
        """Headers of what devices use. Any page may fetch a survey and send reports: no cookie or token is involved."""
        if self._any_origin:
            return _SHARED
        if origin in self._origins:
            return [*_HEADERS, (b"access-control-allow-origin", origin), _EXPOSE, _VARY]
        return [*_HEADERS, _VARY]

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.service.start()
        except Exception as problem:
            log("error", "not-started", problem)
            await send({"type": "lifespan.startup.failed", "message": type(problem).__name__})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.service.stop()
        await send({"type": "lifespan.shutdown.complete"})


def _preflight() -> Response:
    allowed = {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Content-Type",
        "Access-Control-Max-Age": "86400",
    }
    return Response(status_code=204, headers=allowed)
