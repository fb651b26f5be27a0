"""The process of a collector: it binds a port, serves with uvicorn, and drains the queue on SIGTERM or SIGINT.

`HttpConnection` extends uvicorn's protocol class and `IngestRequest` takes the place of its request. uvicorn promises
neither interface, so `check_uvicorn` refuses an untested version before anything of it is imported.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from veil.collector.edge.ingest import Ingest
from veil.collector.edge.limits import AddressLimit
from veil.collector.http.app import App
from veil.collector.monitoring.logs import log, set_up
from veil.collector.service import Service
from veil.collector.settings import CollectorSettings
from veil.errors import ExtraError, InputError, StoreTimeoutError, StoreUnreachableError
from veil.kernels import keep_compiled_in
from veil.tools.limits import require_files
from veil.tools.messages import missing_extra

FIRST, NEXT = (0, 30), (0, 55)
"""The first tested minor version, and the first one that is not tested."""
_LOOK_SECONDS = 1.0
_WHY = {
    errno.EADDRNOTAVAIL: "this address is not one of this machine",
    errno.EACCES: "this account may not use this port",
}
_SWITCH_SECONDS = 0.0005  # the thread that commits gets the interpreter back from a busy event loop ten times sooner


def check_uvicorn(found: str | None = None) -> None:
    """Raise `ExtraError` unless uvicorn is of a tested version; `found` is the installed one unless it is given.

    >>> check_uvicorn("0.30.0")
    >>> check_uvicorn("0.55.0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    veil.errors.ExtraError: uvicorn: expected version 0.30 or later and before 0.55, got 0.55.0: pip install ...
    """
    if found is None:
        found = _installed()
    parts = found.split(".")
    tested = all(part.isdecimal() for part in parts[:2]) and FIRST <= tuple(int(part) for part in parts[:2]) < NEXT
    if not tested:
        bounds = "expected version {}.{} or later and before {}.{}".format(*FIRST, *NEXT)
        raise missing_extra(f"uvicorn: {bounds}, got {found}", "collector")


def serve(settings: CollectorSettings) -> None:
    """Serve until a signal asks to stop."""
    from veil.collector.edge.protocol import files_needed

    os.umask(0o077)  # whatever is written from here on is for this account alone
    if hasattr(signal, "SIGPIPE"):  # a device that hangs up must not end us, as `veil ... | head` may
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    set_up(settings.log_level)
    files = files_needed(settings.max_connections)
    require_files(files, f"the collector (max_connections = {settings.max_connections})")
    keep_kernels(settings)
    with _bound(settings) as listener:
        _serve(settings, listener, files)


def keep_kernels(settings: CollectorSettings) -> None:
    """Keep compiled kernels in the collector's folder where neither the package nor a home can be written."""
    keep_compiled_in(Path(settings.folder).resolve() / "kernels")


def _serve(settings: CollectorSettings, listener: socket.socket, files: int) -> None:
    import uvicorn

    from veil.collector.edge.protocol import BACKLOG, Edge, protocol_of

    sys.setswitchinterval(_SWITCH_SECONDS)
    app = App(_service(settings))
    app.service.health.prepare_answers()  # a failure is logged, and readiness tells it: reports are taken all the same
    limited = settings.requests_per_minute and not settings.limits_at_proxy
    limit = AddressLimit(settings.requests_per_minute) if limited else None
    edge = Edge(settings, app.service.metrics, settings.max_connections, limit)
    listener.listen(BACKLOG)
    host, port = listener.getsockname()[:2]
    log("info", "listening", host=host, port=port, connections=edge.most, files=files)
    config = uvicorn.Config(
        app,
        http=protocol_of(edge, Ingest(app)),
        log_config=None,
        access_log=False,  # no address and no time of a report is kept
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        backlog=BACKLOG,
        timeout_keep_alive=3600,  # the edge closes idle connections
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again after it has stopped
        uvicorn.Server(config).run(sockets=[listener])


def _service(settings: CollectorSettings) -> Service:
    """Return the service; wait for a database that is not reachable yet, because both may start at the same moment."""
    give_up = time.monotonic() + settings.database_wait_seconds
    while True:
        try:
            return Service(settings)
        except (StoreUnreachableError, StoreTimeoutError) as problem:
            if time.monotonic() >= give_up:
                raise
            log("warning", "waiting-for-database", problem)
            time.sleep(_LOOK_SECONDS)


def _bound(settings: CollectorSettings) -> socket.socket:
    """A socket that does not listen yet: whoever comes before the database does is refused, and need not wait."""
    listener = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
    except OSError as problem:
        listener.close()
        where = f"cannot listen on {settings.host}, port {settings.port}"
        if isinstance(problem, socket.gaierror):
            raise InputError(f"{where}: no address belongs to this host") from None
        raise InputError(f"{where}: {_WHY.get(problem.errno or 0, 'is it in use?')}") from None
    return listener


def _installed() -> str:
    try:
        return version("uvicorn")
    except PackageNotFoundError:
        raise ExtraError("uvicorn: expected an installed package with a version, got one without") from None
