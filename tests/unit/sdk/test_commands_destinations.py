"""`twiceshy destinations`: where messages go, on the command line and in a file."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result

from tests.unit.sdk.commands import Asked, answering, run
from tests.unit.sdk.real_server import serving
from tests.unit.sdk.scripted import answered, problem
from tests.unit.sdk.test_commands_completion import completed
from twiceshy._commands import plans
from twiceshy._transports.base import Reply

QUEUE = {"pending": 0, "in_flight": 0, "dead": 0, "unknown": 0, "parked": 0, "oldest_pending_seconds": 0.0}
HOOK = {"kind": "webhook", "url": "https://shop.example.com/hooks", "secrets": ["env:TWICESHY_SECRET_ORDERS"]}


def view(name: str = "orders", settings: Any = HOOK, **more: Any) -> dict[str, Any]:
    breaker = {"state": "closed", "open_until": None, "held_until": None, "allowance": None}
    return {
        "name": name, "version": 3, "state": "active", "note": None, "declared_at": "2026-10-12T14:00:00.000000Z",
        "settings": settings, "breaker": breaker, "queue": QUEUE, **more,
    }  # fmt: skip


BUSY = view(
    "mail",
    {"kind": "smtp", "host": "mail.example.com", "sender": "b@example.com"},
    state="paused",
    note="paused by ann: moving",
    breaker={"state": "open", "open_until": "2026-10-12T14:05:00.000000Z", "held_until": None, "allowance": None},
    queue={**QUEUE, "pending": 12, "in_flight": 2, "dead": 3, "unknown": 1, "oldest_pending_seconds": 90.0},
)


def test_destinations_are_listed_with_what_waits_for_them() -> None:
    asked: Asked = []
    result = run(answering(asked, lambda *_: answered(200, {"items": [BUSY, view()]})), "destinations", "list")
    assert asked == [("GET", "/v1/destinations", None)]
    lines = [line.split() for line in result.output.splitlines()]
    assert lines[1] == ["mail", "smtp", "paused", "open", "12", "2", "90", "s", "3", "1", "0"]
    assert lines[2] == ["orders", "webhook", "active", "closed", "0", "0", "-", "0", "0", "0"]


def test_no_destinations_say_how_to_declare_one_and_json_is_the_services() -> None:
    empty = answering([], lambda *_: answered(200, {"items": []}))
    assert "destinations apply FILE" in run(empty, "destinations", "list").output
    assert msgspec.json.decode(run(empty, "destinations", "list", "--json").output) == {"items": []}


def test_a_destination_is_shown_with_its_settings_and_its_breaker() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, BUSY))
    result = run(handler, "destinations", "show", "mail")
    assert asked == [("GET", "/v1/destinations/mail", None)]
    shown = {line.split("  ")[0]: line.split("  ")[-1].strip() for line in result.output.splitlines()}
    assert shown["breaker"] == "open until 2026-10-12T14:05:00Z"
    assert shown["pending"] == "12, the oldest for 90 s"
    assert (shown["host"], shown["note"], shown["dead"]) == ("mail.example.com", "paused by ann: moving", "3")
    assert msgspec.json.decode(run(handler, "destinations", "show", "mail", "--json").output) == BUSY


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_a_check_says_what_was_seen_and_ends_so(ok: object, code: int) -> None:
    asked: Asked = []
    seen = {"ok": ok, "detail": "220 mail.example.com ready", "milliseconds": 12.4}
    result = run(answering(asked, lambda *_: answered(200, seen)), "destinations", "check", "mail")
    assert asked == [("POST", "/v1/destinations/mail/check", None)]
    assert (result.exit_code, "mail: 220 mail.example.com ready (12 ms)" in result.output) == (code, True)


@pytest.mark.parametrize(
    ("verb", "said"), [("pause", "is paused"), ("resume", "is active"), ("remove", "is removed: nothing is staged")]
)
def test_a_destination_is_paused_resumed_and_removed(verb: str, said: str) -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, view()))
    result = run(handler, "destinations", verb, "orders", "--reason", "moving", "--by", "ann")
    assert asked == [("POST", f"/v1/destinations/orders/{verb}", {"reason": "moving", "by": "ann"})]
    assert said in result.output
    told = run(handler, "destinations", verb, "orders", "--reason", "moving", "--json")
    assert msgspec.json.decode(told.output) == view()


FILE = """\
destinations:
  orders:
    kind: webhook
    url: https://shop.example.com/new
    secrets: [env:TWICESHY_SECRET_ORDERS]
  log: {kind: log}
  mail: {kind: smtp, host: mail.example.com, sender: b@example.com}
"""
HELD = {"items": [view(), BUSY]}
DRY = "?dry_run=true"


def applied(text: str, *words: str, asked: Asked, folder: Path, held: Any = HELD, typed: str | None = None) -> Result:
    path = folder / "destinations.yaml"
    path.write_text(text)

    def answers(method: str, path: str) -> Reply:
        if path.endswith(DRY):
            return answered(200, {"name": "orders", "settings": HOOK})
        return answered(200, held if method == "GET" else view(path.rsplit("/", 1)[-1], version=4))

    return run(answering(asked, answers), "destinations", "apply", str(path), *words, input=typed)


def test_what_changes_is_shown_and_declared_and_nothing_else(tmp_path: Path) -> None:
    asked: Asked = []
    result = applied(FILE, "--yes", asked=asked, folder=tmp_path)
    assert result.exit_code == 0, result.output
    assert [(method, path) for method, path, _ in asked] == [
        ("GET", "/v1/destinations"),
        ("PUT", f"/v1/destinations/orders{DRY}"), ("PUT", f"/v1/destinations/log{DRY}"),
        ("PUT", "/v1/destinations/orders"), ("PUT", "/v1/destinations/log"),
    ]  # fmt: skip
    assert (asked[3][2]["kind"], asked[3][2]["url"]) == ("webhook", "https://shop.example.com/new")
    assert result.output.splitlines()[:3] == [
        "~ orders: changed",
        "    url: https://shop.example.com/hooks → https://shop.example.com/new",
        "+ log: new",
    ]
    assert result.output.splitlines()[-3:] == ["= mail: unchanged", "1 new, 1 changed, 1 unchanged.", "Applied."]


def test_a_dry_run_declares_nothing_and_json_tells_the_plan(tmp_path: Path) -> None:
    asked: Asked = []
    result = applied(FILE, "--dry-run", asked=asked, folder=tmp_path)
    assert (result.exit_code, [path for _, path, _ in asked if not path.endswith(DRY)]) == (0, ["/v1/destinations"])
    assert result.output.endswith("This is a dry run: nothing was applied.\n")
    told = applied(FILE, "--yes", "--json", asked=[], folder=tmp_path)
    plan = [(it["name"], it["change"], it["version"]) for it in msgspec.json.decode(told.output)["items"]]
    assert plan == [("orders", "changed", 4), ("log", "new", 4), ("mail", "unchanged", 3)]
    assert applied(FILE, "--json", asked=[], folder=tmp_path).exit_code == 2


def test_a_person_is_asked_and_nobody_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Asked = []
    refused = applied(FILE, asked=asked, folder=tmp_path)
    assert (refused.exit_code, _declared(asked), "add --yes" in refused.output) == (2, 0, True)
    monkeypatch.setattr(plans, "is_anybody_there", lambda: True)
    assert applied(FILE, asked=asked, folder=tmp_path, typed="n\n").exit_code == 1
    assert _declared(asked) == 0
    assert applied(FILE, asked=asked, folder=tmp_path, typed="y\n").exit_code == 0
    assert _declared(asked) == 2


def _declared(asked: Asked) -> int:
    return sum(method == "PUT" and not path.endswith(DRY) for method, path, _ in asked)


HOOKED = "destinations:\n  a:\n    kind: webhook\n    url: https://h/\n"
SECRET = "a secret never stands here: say env:TWICESHY_SECRET_…"


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("destinations:\n  a: {kind: log, paht: x}\n", ["y:2:18: /destinations/a/paht: this field is not known."]),
        ("destinations:\n  a: {kind: webhok}\n", ["y:2:7: /destinations/a/kind: there is no kind 'webhok'; did you"]),
        ("destinations:\n  a: {url: x}\n", ["y:2:3: /destinations/a/kind: kind is missing; the kinds are web"]),
        ("destinations:\n  a: {kind: smtp, host: h}\n", ["/destinations/a/sender: ", "missing"]),
        ("destinations:\n  a: {kind: log, attempts: 0}\n", ["y:2:18: /destinations/a/attempts: Expected int >= 1."]),
        ("destinations:\n  a b: {kind: log}\n", ["y:2:3: /destinations/a b: a destination's name has 1 to 100"]),
        ("destinations:\n  a: log\n", ["/destinations/a: settings are a mapping that begins with `kind`"]),
        ("destination: {}\n", ["/destinations: destinations is missing", "/destination: this field is not known."]),
        ("destinations: {}\n", ["no destination is declared here"]),
        ("destinations:\n  a: {kind: log}\n  a: {kind: log}\n", ["y:3:3: the key 'a' stands twice"]),
        (
            "destinations:\n  a:\n    kind: smtp\n    host: h\n    sender: b@c.d\n    password: hunter2\n",
            [f"y:6:5: /destinations/a/password: {SECRET}"],
        ),
        (
            HOOKED + "    secrets:\n      - env:HOME\n      - whsec_hunter2\n",
            [f"y:6:9: /destinations/a/secrets/0: {SECRET}", f"y:7:9: /destinations/a/secrets/1: {SECRET}"],
        ),
        (
            "destinations:\n  a:\n    kind: webhook\n    url: https://h/\n    secret_headers: {X: hunter2}\n",
            [f"/destinations/a/secret_headers/X: {SECRET}"],
        ),
        (
            HOOKED + "    headers: {Authorization: Bearer hunter2}\n",
            ["/destinations/a/headers/Authorization: this header is a secret: name it in `secret_headers`"],
        ),
        (
            "destinations:\n  a: {kind: redis, url: 'redis://:hunter2@h', stream: s}\n",
            ["/destinations/a/url: a secret does not stand in a URL: name it in a field of its own"],
        ),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_refused_by_its_places_and_tells_no_secret(
    text: str, messages: list[str], tmp_path: Path
) -> None:
    asked: Asked = []
    result = applied(text, "--yes", asked=asked, folder=tmp_path)
    output = result.output.replace("destinations.yaml", "y")
    assert (result.exit_code, asked) == (2, [])
    assert [message for message in messages if message not in output] == [], output
    assert "hunter2" not in output


def test_what_the_service_refuses_is_named_by_its_line(tmp_path: Path) -> None:
    wrong = problem("invalid-request", 400, errors=[{"path": "/url", "message": "the URL names no host"}])
    path = tmp_path / "y.yaml"
    hook = "kind: webhook, url: 'https:'"
    path.write_text(f"destinations:\n  a: {{kind: log}}\n  b: {{{hook}}}\n  c: {{{hook}}}\n")

    def answers(method: str, path: str) -> Reply:
        if path.endswith(f"/a{DRY}"):
            return answered(200, {"name": "a", "settings": {"kind": "log"}})
        return answered(200, {"items": []}) if method == "GET" else wrong

    for mode in ("--yes", "--dry-run"):
        asked: Asked = []
        result = run(answering(asked, answers), "destinations", "apply", str(path), mode)
        assert "y.yaml:3:22: /destinations/b/url: the URL names no host." in result.output
        assert "y.yaml:4:22: /destinations/c/url: the URL names no host." in result.output
        assert (result.exit_code, _declared(asked), "Nothing was applied." in result.output) == (2, 0, True)


def test_what_was_applied_before_something_went_wrong_is_said(tmp_path: Path) -> None:
    path = tmp_path / "y.yaml"
    path.write_text("destinations:\n  a: {kind: log}\n  b: {kind: log}\n  c: {kind: log}\n")

    def answers(method: str, path: str) -> Reply:
        if path.endswith(DRY):
            return answered(200, {"name": "a", "settings": {"kind": "log"}})
        if path.endswith("/b"):
            return problem("store-unavailable", 503)
        return answered(200, {"items": []} if method == "GET" else view("a"))

    result = run(answering([], answers), "destinations", "apply", str(path), "--yes")
    assert (result.exit_code, "Nothing was applied" in result.output) == (1, False)
    assert "Applied: a. Not applied: b, c. Mend that and apply the file again" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "a b"), "is not the name of a destination"),
        (("pause", "mail"), "Missing option '--reason'"),
        (("puase", "mail"), "Did you mean 'pause'?"),
        (("apply", "nowhere.yaml"), "cannot be read"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_once(words: tuple[str, ...], said: str) -> None:
    result = run(answering([], lambda *_: answered(500, {})), "destinations", *words)
    assert (result.exit_code, said in result.output) == (2, True)


def test_names_of_destinations_are_completed() -> None:
    with serving(lambda *_: answered(200, {"items": [view(), BUSY]})) as url:
        assert completed("twiceshy outbox list --destination m", TWICESHY_URL=url) == ["mail"]
