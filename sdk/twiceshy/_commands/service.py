"""One request of a command to the service; every failure becomes one sentence and exit code 1."""

from typing import TypeVar

import click
import msgspec

from twiceshy._ask import read_problem
from twiceshy._settings import settle
from twiceshy._transports.base import NoReply, Reply, Request, Transport
from twiceshy._transports.connect import connect
from twiceshy.exceptions import SetupError
from twiceshy_contract.problems import Problem

T = TypeVar("T")


class Refused(click.ClickException):
    """The service refused; `code` is the problem's."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Service:
    """The service that a command speaks to."""

    def __init__(self, url: str | None, token: str | None) -> None:
        try:
            settings = settle(url, token)
        except SetupError as error:
            raise click.UsageError(str(error)) from error
        self.url = settings.url
        self._transport: Transport = connect(settings.url, settings.token)

    def ask(self, request: Request, kind: type[T]) -> tuple[T, bytes]:
        """Send a request and return its answer, read and as it came."""
        reply = self._transport.send(request)
        if isinstance(reply, NoReply):
            raise click.ClickException(
                f"The service at {self.url} cannot be reached ({reply.reason}). Start one with `twiceshy serve`, or "
                "name another with --url or TWICESHY_URL."
            )
        if 200 <= reply.status < 300:
            return self._read(reply, kind), reply.body
        problem = read_problem(reply)
        if problem is None:
            raise self._not_the_guard(reply)
        raise _refused(problem)

    def _read(self, reply: Reply, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(reply.body, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._not_the_guard(reply) from error

    def _not_the_guard(self, reply: Reply) -> click.ClickException:
        return click.ClickException(
            f"{self.url} answered {reply.status} ({reply.content_type or 'no content type'}), which is not the "
            "guard's answer. Check --url or TWICESHY_URL."
        )


def _refused(problem: Problem) -> Refused:
    places = "".join(f"\n  {error.path or 'the body'}: {error.message}" for error in problem.errors)
    return Refused(f"{problem.title}. {problem.detail}{places}", problem.code)
