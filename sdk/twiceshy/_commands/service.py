"""One request of a command to the service; every failure becomes one sentence and exit code 1."""

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import click
import msgspec

from twiceshy._replies import read_problem
from twiceshy._settings import DEFAULT_URL, EMBEDDED_URL, TOKEN_VARIABLE, URL_VARIABLE, Settings, file_of, settle
from twiceshy._transports.base import NoReply, Reply, Request, Transport
from twiceshy._transports.connect import connect
from twiceshy.exceptions import SetupError
from twiceshy_contract.problems import FieldError, Problem

T = TypeVar("T")
_NO_RUN: Final = re.compile(r"There is no run (?:'.*?'|\".*?\")(?=[. ])", re.DOTALL)

with_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, as the service answers it.")


def of_service(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name the service."""
    url = click.option(
        "--url",
        envvar=URL_VARIABLE,
        show_default=f"{DEFAULT_URL}; where nothing answers there, ./twiceshy.db",
        show_envvar=True,
        help="The service, or a database such as sqlite:///twiceshy.db.",
    )
    token = click.option("--token", envvar=TOKEN_VARIABLE, show_envvar=True, help="Its bearer token.")
    return url(token(command))


def print_json(body: bytes) -> None:
    """Print JSON for a reader."""
    click.echo(msgspec.json.format(body, indent=2).decode())


class Unreached(click.ClickException):
    """No answer came."""


class Strange(click.ClickException):
    """An answer came, and it is not the guard's."""


class Refused(click.ClickException):
    """The service refused; `code` is the problem's, `errors` are the places in the request that are wrong."""

    def __init__(self, message: str, code: str, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.errors = tuple(errors)


class Service:
    """The service that a command speaks to, or a database that it opens itself.

    Without a URL that is the usual service; where none answers, the record of programs in this folder that embed one.
    """

    def __init__(self, url: str | None, token: str | None) -> None:
        self._transport: Transport
        self._may_look_here = url is None
        self._connect(url or DEFAULT_URL, token)

    def _connect(self, url: str, token: str | None) -> None:
        try:
            settings = settle(url, token)
            _require_file(settings)
            self._transport = connect(settings.url, settings.token)
        except SetupError as error:
            raise click.UsageError(str(error)) from error
        self.url = settings.shown

    def ask(self, request: Request, kind: type[T]) -> tuple[T, bytes]:
        """Send a request and return its answer, read and as it came."""
        reply = self._send(request)
        if isinstance(reply, NoReply) and self._may_look_here and _is_record_here():
            click.echo(f"No service answers at {self.url}; this is the record in ./twiceshy.db.", err=True)
            self._may_look_here = False
            self._connect(EMBEDDED_URL, None)
            reply = self._send(request)
        if isinstance(reply, NoReply):
            raise Unreached(
                f"The service at {self.url} cannot be reached ({reply.reason}). Start one with `twiceshy serve`, or "
                "name another with --url or TWICESHY_URL."
            )
        if 200 <= reply.status < 300:
            return self._read(reply, kind), reply.body
        problem = read_problem(reply)
        if problem is None:
            raise self._not_the_guard(reply)
        raise _refused(problem)

    def mention_record_here(self) -> None:
        """Say that this folder has a record of its own, where the service was not named and knows of nothing."""
        if self._may_look_here and _is_record_here():
            click.echo(f"That is what {self.url} knows. For the record in this folder: --url {EMBEDDED_URL}", err=True)

    def _send(self, request: Request) -> Reply | NoReply:
        try:
            return _interruptibly(lambda: self._transport.send(request))
        except SetupError as error:
            raise Unreached(str(error)) from error

    def _read(self, reply: Reply, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(reply.body, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._not_the_guard(reply) from error

    def _not_the_guard(self, reply: Reply) -> Strange:
        return Strange(
            f"{self.url} answered {reply.status} ({reply.content_type or 'no content type'}), which is not the "
            "guard's answer. Check --url or TWICESHY_URL."
        )


def _require_file(settings: Settings) -> None:
    """Refuse a database file that is missing: a command looks at a record, it begins none."""
    file = file_of(settings.url)
    if file is not None and not file.exists():
        raise SetupError(
            f"There is no database {file}. A guard in a program makes it at its first call, and `twiceshy migrate "
            f"--database {settings.shown}` at once."
        )


def _is_record_here() -> bool:
    """Say whether a program with an embedded guard left its record in this folder."""
    file = file_of(EMBEDDED_URL)
    return file is not None and file.exists()


def _interruptibly(send: Callable[[], Reply | NoReply]) -> Reply | NoReply:
    """Send from a thread that nobody has to wait for: a call into the HTTP client does not hear Ctrl-C."""
    reply: Future[Reply | NoReply] = Future()

    def work() -> None:
        try:
            reply.set_result(send())
        except BaseException as error:  # noqa: BLE001 - raised again where the reply is awaited
            reply.set_exception(error)

    threading.Thread(target=work, daemon=True, name="twiceshy-request").start()
    return reply.result()


def _refused(problem: Problem) -> Refused:
    missing = _NO_RUN.match(problem.detail or "") if problem.code == "not-found" else None
    if missing is not None:
        return Refused(f"{missing[0]}. `twiceshy runs list` shows those there are.", problem.code)
    places = "".join(f"\n  {error.path or 'the body'}: {error.message}" for error in problem.errors)
    return Refused(f"{problem.title}. {problem.detail}{places}", problem.code, problem.errors)
