"""Runs the collector: binds, serves with uvicorn, and on SIGTERM or SIGINT drains what waits before it ends."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

from veil.collector.app import App
from veil.collector.edge import BACKLOG, Edge, protocol_of, room_for_connections
from veil.collector.ingest import Ingest
from veil.collector.logs import log, set_up
from veil.collector.service import Service
from veil.collector.settings import Settings
from veil.errors import InputError, StoreTimeoutError, StoreUnreachableError
from veil.kernels import keep_compiled_in

__all__ = ["serve"]

_LOOK_SECONDS = 1.0
_SWITCH_SECONDS = 0.0005  # the thread that commits gets the interpreter back from a busy event loop ten times sooner


def serve(settings: Settings) -> None:
    """Serve until a signal asks to stop."""
    import uvicorn

    os.umask(0o077)  # whatever is written from here on is for this account alone
    set_up(settings.log_level)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(
            signal.SIGPIPE, signal.SIG_IGN
        )  # a device that hangs up must not end us, as `veil ... | head` may
    sys.setswitchinterval(_SWITCH_SECONDS)
    keep_compiled_in(Path(settings.folder).resolve() / "kernels")  # where neither the package nor a home can be written
    app = App(_service(settings))
    listener = _bind(settings)
    host, port = listener.getsockname()[:2]
    edge = Edge(settings, app.service.metrics, room_for_connections(settings.max_connections))
    log("info", "listening", host=host, port=port, connections=edge.most)
    if edge.most < settings.max_connections:
        log("warning", "fewer-connections", wanted=settings.max_connections, most=edge.most)
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
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn raises it again after it has stopped
        pass
    finally:
        listener.close()


def _service(settings: Settings) -> Service:
    """The service, once its database is there: both may be started at the same moment."""
    give_up = time.monotonic() + settings.database_wait_seconds
    while True:
        try:
            return Service(settings)
        except (StoreUnreachableError, StoreTimeoutError) as problem:
            if time.monotonic() >= give_up:
                raise
            log("warning", "waiting-for-database", problem)
            time.sleep(_LOOK_SECONDS)


def _bind(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError:
        raise InputError(f"cannot listen on {settings.host}, port {settings.port}: is it in use?") from None
