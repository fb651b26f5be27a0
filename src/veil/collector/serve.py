"""Runs the collector: binds, serves with uvicorn, and on SIGTERM or SIGINT drains what waits before it ends."""

from __future__ import annotations

import os
import signal
import socket
import sys

from veil.collector.app import App
from veil.collector.logs import log, set_up
from veil.collector.service import Service
from veil.collector.settings import Settings
from veil.errors import InputError

__all__ = ["serve"]

_BACKLOG = 2048
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
    app = App(Service(settings))
    listener = _bind(settings)
    host, port = listener.getsockname()[:2]
    log("info", "listening", host=host, port=port)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # no address and no time of a report is kept
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        backlog=_BACKLOG,
        timeout_keep_alive=75,  # longer than a reverse proxy's, so that it is never the one to be surprised
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn raises it again after it has stopped
        pass
    finally:
        listener.close()


def _bind(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
    except OSError:
        raise InputError(f"cannot listen on {settings.host}, port {settings.port}: is it in use?") from None
