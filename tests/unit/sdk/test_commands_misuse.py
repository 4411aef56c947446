"""Every misuse of the command: one clear error, no trace, and the exit code that belongs to it."""

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.sdk.commands import KEY, SUMMARY, Asked, answering, run
from tests.unit.sdk.real_server import serving
from tests.unit.sdk.scripted import answered, problem
from twiceshy._commands import main
from twiceshy._transports.base import Reply

NAME = "is not the name of a"
PREVIEW = ["keys", "preview", "--tool", "pay", "--arguments"]
WRONG_USES: list[tuple[list[str], str]] = [
    (["efects"], "No such command 'efects'. Did you mean 'effects'?"),
    (["migrat"], "Did you mean 'migrate'?"),
    (["zzz"], "No such command 'zzz'. There are: approvals, completion, "),
    (["effects", "lst"], "No such command 'lst'. Did you mean 'list'?"),
    (["runs", "end"], "No such command 'end'. There are: "),
    (["effects", "list", "--stat", "failed"], "--state"),
    (["effects", "list", "--state", "fail"], "'fail' is not one of"),
    (["effects", "list", "--limit", "many"], "'many' is not a valid integer"),
    (["effects", "list", "--run", "a/b"], NAME),
    (["effects", "list", "--tool", ""], NAME),
    (["runs", "show", ".."], NAME),
    (["runs", "show", "\udcff"], NAME),
    (["runs", "show"], "Name a run, or a file with --file."),
    (["runs", "finish", "r", "--as", "open"], "'open' is not one of"),
    (["tools", "show", "a\nb"], NAME),
    (["tools", "declare"], "Missing argument 'NAME'"),
    (["keys", "preview", "--tool", "pay"], "Missing option '--arguments'"),
    ([*PREVIEW, "{"], "--arguments is not JSON"),
    ([*PREVIEW, "\udcff"], "--arguments is not JSON"),
    ([*PREVIEW, '{"a": 1, "a": 2}'], "--arguments is not JSON"),
    ([*PREVIEW, "[1]"], "--arguments: Expected object"),
    ([*PREVIEW, "@/nowhere/at.all"], "--arguments: '/nowhere/at.all' cannot be read"),
    ([*PREVIEW, "{}", "--occurrence", "0"], "--occurrence: Expected int >= 1"),
    ([*PREVIEW, "{}", "--business-key", ""], "--business-key: Expected str of length >= 1"),
    (["completion", "tcsh"], "'tcsh' is not one of"),
    (["effects", "show", "abc"], "64 lower-case hex digits"),
]


@pytest.mark.parametrize(("words", "message"), WRONG_USES, ids=[" ".join(words)[:40] for words, _ in WRONG_USES])
def test_a_wrong_use_asks_nothing_says_what_is_wrong_and_exits_with_2(words: list[str], message: str) -> None:
    asked: Asked = []
    clean: dict[str, str | None] = {name: None for name in os.environ if name.startswith("TWICESHY_")}
    with serving(answering(asked, lambda *_: answered(200, {}))) as url:
        result = CliRunner().invoke(main, words, env={**clean, "TWICESHY_URL": url})
    assert (result.exit_code, asked) == (2, []), result.output
    assert message in result.output
    assert result.stdout == ""


ANSWERS: list[tuple[Reply, str]] = [
    (problem("unauthorized", 401), "The service says unauthorized."),
    (problem("not-found", 404), "The service says not-found."),
    (problem("store-unavailable", 503), "The service says store-unavailable."),
    (Reply(status=200, content_type="text/html", body=b"<html>"), "answered 200 (text/html), which is not the guard's"),
    (Reply(status=502, content_type="", body=b""), "answered 502 (no content type), which is not the guard's"),
    (Reply(status=302, content_type="text/html", body=b""), "answered 302"),
    (answered(200, {"items": 7}), "which is not the guard's answer"),
    (Reply(status=200, content_type="application/json", body=b"[" * 5000), "which is not the guard's answer"),
]
READINGS = [
    ["effects", "list"], ["effects", "show", KEY], ["runs", "list"], ["runs", "show", "r"], ["runs", "finish", "r"],
    ["tools", "list"], ["tools", "show", "pay"], [*PREVIEW, "{}"],
]  # fmt: skip


@pytest.mark.parametrize("words", READINGS, ids=" ".join)
@pytest.mark.parametrize(("reply", "message"), ANSWERS)
def test_what_the_service_refuses_or_something_else_answers_exits_with_1(
    words: list[str], reply: Reply, message: str
) -> None:
    result = run(lambda *_: reply, *words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.output


@pytest.mark.parametrize("words", [*READINGS, ["tools", "declare", "pay"]], ids=" ".join)
def test_an_unreachable_service_exits_with_1_and_says_how_to_start_one(words: list[str]) -> None:
    with serving(lambda *_: answered(200, {})) as url:
        pass
    result = CliRunner().invoke(main, [*words, "--url", url])
    assert (result.exit_code, result.stdout) == (1, "")
    assert url in result.stderr
    assert "twiceshy serve" in result.stderr


@pytest.mark.parametrize("url", ["localhost:8700", "ftp://host", "http://", "http://host:99999", "http://u:p@host"])
def test_a_url_that_is_none_is_a_wrong_use(url: str) -> None:
    result = CliRunner().invoke(main, ["effects", "list", "--url", url])
    assert (result.exit_code, "is not a service URL" in result.output) == (2, True)


def test_a_misspelt_variable_is_a_wrong_use() -> None:
    result = CliRunner().invoke(main, ["effects", "list"], env={"TWICESHY_URI": "http://127.0.0.1:1"})
    assert result.exit_code == 2
    assert "TWICESHY_URI is not a setting; did you mean TWICESHY_URL?" in result.output


def test_a_missing_database_file_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "typo.db"
    result = CliRunner().invoke(main, ["effects", "list", "--url", f"sqlite:///{path}"])
    assert (result.exit_code, "There is no database" in result.output, path.exists()) == (2, True, False)
    assert f"`twiceshy migrate --database sqlite:///{path}`" in result.output


def test_where_no_service_answers_the_record_of_this_folder_is_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("twiceshy._commands.service.DEFAULT_URL", "http://127.0.0.1:1")
    without = CliRunner().invoke(main, ["effects", "list"])
    assert (without.exit_code, "cannot be reached" in without.output) == (1, True)
    (tmp_path / "twiceshy.db").touch()
    result = CliRunner().invoke(main, ["effects", "list"])
    assert result.exit_code == 0
    assert result.stderr == "No service answers at http://127.0.0.1:1; this is the record in ./twiceshy.db.\n"
    named = CliRunner().invoke(main, ["effects", "list", "--url", "http://127.0.0.1:1"])
    assert (named.exit_code, "cannot be reached" in named.output) == (1, True)


@contextmanager
def started(*words: str, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command as a process of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TWICESHY_")}
    command = [sys.executable, "-m", "twiceshy", *words, "--url", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean) as process:
        try:
            yield process
        finally:
            process.kill()


def test_ctrl_c_ends_a_command_that_waits_for_an_answer_with_one_line_and_130() -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    silent.settimeout(20)
    with silent, started("effects", "list", url=f"http://127.0.0.1:{silent.getsockname()[1]}") as process:
        connection, _ = silent.accept()
        with connection:
            assert select.select([connection], [], [], 20)[0]  # the request is on its way
            process.send_signal(signal.SIGINT)
            said, complained = process.communicate(timeout=5)
    assert (process.returncode, said, complained) == (130, b"", b"Stopped.\n")


def test_ctrl_c_while_the_command_is_loaded_ends_it_the_same_way() -> None:
    code = """
import sys

class Interrupts:
    def find_spec(self, name, *_):
        if name == "msgspec":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
from twiceshy_command import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")


def test_a_reader_that_goes_away_is_no_error_to_talk_about() -> None:
    page = answered(200, {"items": [{**SUMMARY, "tool": "t" * 200}] * 500, "next": None})
    with serving(lambda *_: page) as url, started("effects", "list", "--limit", "500", url=url) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10) == b"key       "
        process.stdout.close()
        assert process.stderr.read() == b""


def test_an_output_that_lacks_a_character_gets_it_written_out() -> None:
    page = answered(200, {"items": [{**SUMMARY, "tool": "a→b"}], "next": None})
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    with serving(lambda *_: page) as url:
        command = [sys.executable, "-m", "twiceshy", "effects", "list", "--url", url]
        done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=30)
    assert (done.returncode, rb"a\u2192b" in done.stdout) == (0, True), done.stderr


def test_an_output_that_cannot_be_written_is_said_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "twiceshy", "completion", "bash"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr.splitlines()) == (
        1,
        ["Error: The output cannot be written: No space left on device."],
    )
