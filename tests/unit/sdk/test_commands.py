"""The command line: what it prints, asks the service, and how it exits."""

from importlib import metadata

import msgspec
import pytest
from click.testing import CliRunner

from tests.unit.sdk.commands import SUMMARY, Asked, answering, numbered, run
from tests.unit.sdk.real_server import serving
from tests.unit.sdk.scripted import DOWNSTREAM, KEY, about, answered, problem
from twiceshy._commands import main
from twiceshy._transports.base import Reply

VIEW = {
    **SUMMARY,
    "as_of": "2026-10-12T14:01:00.000000Z", "caller_step": None,
    "arguments": {"amount": 7}, "outcome": {"error": {"type": "Declined", "message": "no"}},
    "downstream_key": DOWNSTREAM, "retry_at": None, "settles_at": None, "resolution": None,
    "attempts": [{"fence": 1, "granted_at": "2026-10-12T14:00:00Z", "deadline": "2026-10-12T14:00:30Z",
                  "report": "unknown", "reported_at": None, "settled": False}],
    "evidence": [{"at": "2026-10-12T14:00:00Z", "attempt": None, "kind": "success", "body": {"result": 1}}],
}  # fmt: skip


def test_list_shows_whole_keys_and_passes_filters_on() -> None:
    asked: Asked = []
    page = answered(200, {"items": [SUMMARY], "next": "more"})
    handler = answering(asked, lambda *_: page)
    result = run(handler, "effects", "list", "--state", "in_doubt", "--run", "a b", "--limit", "1")
    assert result.exit_code == 0, result.output
    assert KEY in result.output
    assert "There are more" in result.output
    assert asked == [("GET", "/v1/effects?state=in_doubt&run=a+b&limit=1", None)]


def test_a_listing_beyond_a_page_follows_next_and_is_one_page_of_json() -> None:
    asked: Asked = []
    pages = {
        "/v1/effects?limit=500": {"items": [numbered(n) for n in range(500)], "next": "a b"},
        "/v1/effects?limit=2&after=a+b": {"items": [numbered(500), numbered(501)], "next": "c"},
    }
    result = run(
        answering(asked, lambda _, path: answered(200, pages[path])), "effects", "list", "--limit", "502", "--json"
    )
    assert result.exit_code == 0, result.output
    assert msgspec.json.decode(result.stdout) == {"items": [numbered(n) for n in range(502)], "next": "c"}


def test_all_of_a_listing_is_read_to_its_end() -> None:
    asked: Asked = []
    pages = {
        "/v1/effects?limit=500": {"items": [numbered(1)], "next": "more"},
        "/v1/effects?limit=500&after=more": {"items": [numbered(2)], "next": None},
    }
    result = run(answering(asked, lambda _, path: answered(200, pages[path])), "effects", "list", "--all")
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["key", f"{1:064x}", f"{2:064x}"]
    assert [path for _, path, _ in asked] == list(pages)


def test_closed_doubt_is_asked_for_with_doubt_only() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {"items": [], "next": None}))
    assert run(handler, "effects", "list", "--state", "in_doubt", "--closed").exit_code == 0
    assert [path for _, path, _ in asked] == ["/v1/effects?state=in_doubt&closed=true&limit=50"]
    refused = run(handler, "effects", "list", "--closed")
    assert (refused.exit_code, "--state in_doubt" in refused.output) == (2, True)


def test_a_listing_is_plain_and_unwrapped_where_no_terminal_is() -> None:
    long = {**SUMMARY, "tool": "t" * 200, "run": "r" * 200}
    page = answered(200, {"items": [long], "next": None})
    result = run(answering([], lambda *_: page), "effects", "list")
    heading, line = result.stdout.splitlines()
    assert "\x1b" not in result.output
    assert line.split() == [KEY, "in_doubt", "t" * 200, "r" * 200, "1", "2026-10-12T14:00:00Z"]
    assert (heading.rstrip(), line.rstrip()) == (heading, line)


def test_what_a_provider_said_cannot_command_the_terminal() -> None:
    said = {"error": {"type": "Declined", "message": "no\x1b[2J\n\u202egood"}}
    result = run(answering([], lambda *_: answered(200, {**VIEW, "outcome": said})), "effects", "show", KEY)
    assert "Declined: no\\x1b[2J\\n\\u202egood" in result.output


def test_an_empty_list_says_so() -> None:
    result = run(answering([], lambda *_: answered(200, {"items": [], "next": None})), "effects", "list")
    assert (result.exit_code, result.output) == (0, "No effects.\n")


def test_list_and_show_print_the_services_json() -> None:
    listed = run(
        answering([], lambda *_: answered(200, {"items": [SUMMARY], "next": None})), "effects", "list", "--json"
    )
    assert msgspec.json.decode(listed.output) == {"items": [SUMMARY], "next": None}
    shown = run(answering([], lambda *_: answered(200, VIEW)), "effects", "show", KEY, "--json")
    assert msgspec.json.decode(shown.output) == VIEW


def test_show_prints_arguments_outcome_attempts_and_evidence() -> None:
    result = run(answering([], lambda *_: answered(200, VIEW)), "effects", "show", KEY)
    assert result.exit_code == 0, result.output
    for part in (KEY, '{"amount": 7}', "Declined: no", "unknown", "Evidence", DOWNSTREAM):
        assert part in result.output


def test_resolve_looks_up_the_fence_and_says_what_it_settles() -> None:
    asked: Asked = []
    handler = answering(asked, lambda method, _: answered(200, VIEW if method == "GET" else about(state="succeeded")))
    result = run(handler, "effects", "resolve", KEY, "--as", "applied", "--reason", "seen", "--result", '{"id": 1}')
    assert result.exit_code == 0, result.output
    assert "pay, in_doubt, fence 1" in result.output
    assert "is succeeded" in result.output
    assert asked[0] == ("GET", f"/v1/effects/{KEY}", None)
    body = {"as": "applied", "fence": 1, "reason": "seen", "result": {"id": 1}}
    assert asked[1] == ("POST", f"/v1/effects/{KEY}/resolve", body)


@pytest.mark.parametrize(
    ("words", "sent"), [([], {}), (["--result", "null"], {"result": None}), (["--result", "7"], {"result": 7})]
)
def test_resolve_sends_a_result_only_where_one_is_given(words: list[str], sent: dict[str, object]) -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, about(state="succeeded")))
    result = run(handler, "effects", "resolve", KEY, "--as", "applied", "--reason", "seen", "--fence", "1", *words)
    assert result.exit_code == 0, result.output
    assert asked[0][2] == {"as": "applied", "fence": 1, "reason": "seen", **sent}


def test_the_help_of_resolve_shows_a_result() -> None:
    result = CliRunner().invoke(main, ["effects", "resolve", "--help"])
    assert "twiceshy effects resolve KEY --as applied --result '<JSON>' --reason '...'\n" in result.output
    assert "ResultNotKept" in result.output


def test_resolve_sends_the_moment_before_the_provider_was_asked() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, about(state="pending")))
    words = ["effects", "resolve", KEY, "--as", "not_applied", "--reason", "no", "--fence", "1", "--as-of"]
    assert run(handler, *words, "2026-10-12T14:01:00Z").exit_code == 0
    assert asked[0][2]["as_of"] == "2026-10-12T14:01:00Z"
    for wrong in ("soon", "2026-10-12T14:01:00"):
        assert run(handler, *words, wrong).exit_code == 2


def test_resolve_takes_the_fence_that_was_looked_at() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: problem("changed-since"))
    result = run(handler, "effects", "resolve", KEY, "--as", "closed", "--reason", "gone", "--fence", "3")
    assert result.exit_code == 1
    assert "The service says changed-since" in result.output
    assert [(method, body["fence"]) for method, _, body in asked] == [("POST", 3)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "abc"], "64 lower-case hex digits"),
        (["resolve", KEY, "--as", "applied"], "--reason"),
        (["resolve", KEY, "--as", "guess", "--reason", "x"], "guess"),
        (["resolve", KEY, "--as", "closed", "--reason", "x", "--result", "1"], "--as applied only"),
        (["resolve", KEY, "--as", "applied", "--reason", "x", "--result", "{"], "is not JSON"),
        (["list", "--limit", "0"], "--limit"),
    ],
)
def test_a_wrong_use_exits_with_2(arguments: list[str], message: str) -> None:
    result = run(lambda *_: answered(200, {}), "effects", *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_an_unreachable_service_names_its_url_and_serve() -> None:
    with serving(lambda *_: answered(200, {})) as url:
        pass
    result = CliRunner().invoke(main, ["effects", "list", "--url", url])
    assert result.exit_code == 1
    assert url in result.output
    assert "twiceshy serve" in result.output


@pytest.mark.parametrize("reply", [answered(200, {"no": 1}), Reply(status=404, content_type="text/html", body=b"x")])
def test_something_else_at_the_url_is_told(reply: Reply) -> None:
    result = run(lambda *_: reply, "effects", "list")
    assert result.exit_code == 1
    assert "not the guard's answer" in result.output.replace("\n", " ")


def test_a_broken_command_breaks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    points = metadata.EntryPoints(
        [
            metadata.EntryPoint("broken", "no.such.module:x", "twiceshy.commands"),
            metadata.EntryPoint("odd", "os:getpid", "twiceshy.commands"),
            metadata.EntryPoint("good", "twiceshy._commands.effects:effects", "twiceshy.commands"),
        ]
    )
    monkeypatch.setattr(metadata, "entry_points", lambda **_: points)
    runner = CliRunner()
    assert runner.invoke(main, ["--help"]).exit_code == 0
    assert runner.invoke(main, ["good", "--help"]).exit_code == 0
    for name in ("broken", "odd"):
        result = runner.invoke(main, [name, "--port", "1"])
        assert result.exit_code == 1
        assert "cannot be loaded" in result.output
    assert runner.invoke(main, ["none"]).exit_code == 2


def test_the_version_is_the_distributions() -> None:
    assert metadata.version("twiceshy") in CliRunner().invoke(main, ["--version"]).output
