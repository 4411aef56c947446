"""The peer that does nothing: an ordinary route of the same server software, which reads the body and answers."""

import socket

import click
import uvicorn
from litestar import Litestar, Request, Response, post
from litestar.datastructures import State

_ANSWER = b'{"decision":"execute","key":"%064d","fence":1,"state":"executing","tool":"create_calendar_hold"}' % 0


@post("/noop")
async def noop(request: Request[None, None, State]) -> Response[bytes]:
    """Read the body and answer a constant."""
    await request.body()
    return Response(_ANSWER, media_type="application/json")


@click.command()
def serve() -> None:
    """Serve on a free port, with the options that the service gives to its server, and print the address."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)

    def announce() -> None:
        click.echo(f"http://127.0.0.1:{listening.getsockname()[1]}")

    app = Litestar(route_handlers=[noop], on_startup=[announce], openapi_config=None, logging_config=None)
    config = uvicorn.Config(
        app, http="httptools", lifespan="on", log_level="warning", access_log=False, server_header=False
    )
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    serve()
