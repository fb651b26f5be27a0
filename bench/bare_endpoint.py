"""The rival of the collector's load rows: a bare Starlette endpoint that reads the body and stores nothing."""

from __future__ import annotations

import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def take(request: Request) -> JSONResponse:
    return JSONResponse({"acknowledged": len(await request.body())})


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=2048)
    print(listener.getsockname()[1], flush=True)
    app = Starlette(routes=[Route("/{path:path}", take, methods=["POST"])])
    uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="warning")).run(sockets=[listener])
