"""Doubt that settles itself: the service asks the provider over HTTP, and believes nothing but proof."""

import json
import socketserver
import threading
import time
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.integration.flagged import flags_about
from tests.providers import Provider, Question, Reaction
from tests.service import Reply, ServiceProcess

ERROR = {"type": "TimeoutError", "message": "no word"}
PATIENCE = 20.0
PAID = Reaction(body={"state": "paid", "payment": {"id": "p-7"}})
UNKNOWN = Reaction(body={"state": "unknown"})


def probe_of(provider: Provider, path: str = "payments", **changes: object) -> dict[str, object]:
    probe: dict[str, object] = {
        "url": f"{provider.url}/{path}?key=${{downstream_key}}",
        "applied": "body.state == 'paid'",
        "not_applied": "body.state == 'unknown'",
        "result": "body.payment",
        "timeout_seconds": 5,
    }
    return probe | changes


def declare(service: ServiceProcess, tool: str, probe: dict[str, object] | None, **fields: object) -> None:
    declared = {"settle_seconds": 0, "arguments": {"identity": ["/to"]}, "probe": probe, **fields}
    assert service.ask("PUT", f"/v1/tools/{tool}", declared).status == 200


def in_doubt(service: ServiceProcess, run: str, tool: str, to: str = "bob") -> Reply:
    grant = service.begin(run, tool, {"to": to})
    assert grant.status == 201, grant.body
    assert service.report("fail", grant, kind="unknown", error=ERROR).body["state"] == "in_doubt"
    return grant


def seen(service: ServiceProcess, grant: Reply, is_right: Callable[[dict[str, object]], bool]) -> dict[str, object]:
    """Read the effect until it is as it should be."""
    until = time.monotonic() + PATIENCE
    while True:
        shown: dict[str, object] = service.ask("GET", f"/v1/effects/{grant.body['key']}").body
        if is_right(shown):
            return shown
        assert time.monotonic() < until, shown
        time.sleep(0.02)


def in_state(state: str) -> Callable[[dict[str, object]], bool]:
    return lambda shown: shown["state"] == state


def said(shown: dict[str, object]) -> str:
    probe = shown["probe"]
    return str(probe["said"]) if isinstance(probe, dict) and probe["said"] is not None else ""


def key_in(question: Question) -> str:
    return parse_qs(urlsplit(question.path).query)["key"][0]


def test_a_provider_that_knows_the_payment_settles_the_doubt_with_its_result(service: ServiceProcess, run: str) -> None:
    with Provider(lambda _: PAID) as bank:
        declare(service, f"pay-{run}", probe_of(bank))
        grant = in_doubt(service, run, f"pay-{run}")
        shown = seen(service, grant, in_state("succeeded"))
    assert shown["outcome"] == {"result": {"id": "p-7"}}
    assert str(shown["resolution"]).startswith("applied (fence 1): its provider was asked over HTTP")
    assert [key_in(question) for question in bank.questions] == [grant.body["downstream_key"]]
    assert shown["probe"] is None
    replayed = service.begin(run, f"pay-{run}")
    assert (replayed.status, replayed.body["outcome"]) == (200, {"result": {"id": "p-7"}})


def test_a_provider_that_knows_of_none_lets_the_call_be_tried_again(service: ServiceProcess, run: str) -> None:
    with Provider(lambda _: UNKNOWN) as bank:
        declare(service, f"pay-{run}", probe_of(bank))
        grant = in_doubt(service, run, f"pay-{run}")
        seen(service, grant, in_state("pending"))
    again = service.begin(run, f"pay-{run}")
    assert (again.status, again.body["fence"]) == (201, 2)
    assert again.body["downstream_key"] != grant.body["downstream_key"]


def test_that_nothing_was_applied_is_not_believed_before_the_settle_time(service: ServiceProcess, run: str) -> None:
    with Provider(lambda _: UNKNOWN) as bank:
        declare(service, f"pay-{run}", probe_of(bank), settle_seconds=2)
        grant = in_doubt(service, run, f"pay-{run}")
        early = seen(service, grant, lambda shown: "not applied" in said(shown))
        assert early["state"] == "in_doubt"
        assert isinstance(early["probe"], dict)
        assert early["probe"]["next_at"] >= str(early["settles_at"])
        seen(service, grant, in_state("pending"))
        assert len(bank.questions) >= 2


def test_a_payment_that_shows_late_heals_the_doubt(service: ServiceProcess, run: str) -> None:
    reactions = [Reaction(body={"state": "processing"}), PAID]
    with Provider(lambda _: reactions.pop(0) if len(reactions) > 1 else reactions[0]) as bank:
        declare(service, f"pay-{run}", probe_of(bank))
        grant = in_doubt(service, run, f"pay-{run}")
        assert "neither" in said(seen(service, grant, lambda shown: bool(said(shown))))
        seen(service, grant, in_state("succeeded"))


def test_a_provider_that_hangs_redirects_breaks_babbles_or_lies_leaves_the_doubt_as_it_is(
    service: ServiceProcess, run: str
) -> None:
    """None of these is proof, and each of them looks like proof to who reads carelessly."""
    reactions = {
        "hangs": Reaction(hangs=True),
        "redirects": Reaction(302, headers={"Location": "/truth?key=x"}),
        "breaks": Reaction(500, {"state": "unknown"}),
        "lets-nobody-in": Reaction(403, {"state": "unknown"}),
        "babbles": Reaction(404, b"<html>not found</html>"),
        "is-endless": Reaction(body=b" " * 2**20, endless=True),
        "says-both": Reaction(body={"state": "paid", "none": True}),
        "says-neither": Reaction(body={"state": "processing"}),
        "names-another": Reaction(body={"state": "paid", "key": "another"}),
    }
    words = {
        "hangs": "did not answer within 0.3 s", "redirects": "302", "breaks": "500", "lets-nobody-in": "403",
        "babbles": "not the JSON", "is-endless": "larger than 1 MiB", "says-both": "both", "says-neither": "neither",
        "names-another": "another key",
    }  # fmt: skip

    def react(question: Question) -> Reaction:
        return reactions.get(urlsplit(question.path).path.strip("/"), PAID)

    with Provider(react) as bank:
        grants = {}
        for name in reactions:
            changes: dict[str, object] = {"timeout_seconds": 0.3 if name == "hangs" else 5}
            changes["not_applied"] = "body.state == 'unknown' || body.none == `true`"
            if name == "names-another":
                changes["echo"] = "body.key"
            declare(service, f"{name}-{run}", probe_of(bank, name, **changes))
            grants[name] = in_doubt(service, run, f"{name}-{run}")
        for name, grant in grants.items():
            shown = seen(service, grant, lambda shown: bool(said(shown)))
            assert words[name] in said(shown)
            assert shown["state"] == "in_doubt"
        assert not any("truth" in question.path for question in bank.questions)


def test_a_question_that_cannot_be_filled_in_is_not_asked(service: ServiceProcess, run: str) -> None:
    with Provider(lambda _: UNKNOWN) as bank:
        declare(service, f"pay-{run}", probe_of(bank, url=f"{bank.url}/${{arguments.order}}"))
        grant = in_doubt(service, run, f"pay-{run}")
        shown = seen(service, grant, lambda shown: bool(said(shown)))
    assert "nothing was asked: at /url" in said(shown)
    assert bank.questions == []


def test_a_hanging_provider_holds_up_no_other(service: ServiceProcess, run: str) -> None:
    with Provider(lambda question: PAID if "quick" in question.path else Reaction(hangs=True)) as bank:
        for name in ("slow", "quick"):
            declare(service, f"{name}-{run}", probe_of(bank, name))
        for number in range(12):
            in_doubt(service, run, f"slow-{run}", str(number))
        bank.wait_for(2, "slow")
        grant = in_doubt(service, run, f"quick-{run}")
        seen(service, grant, in_state("succeeded"))
        assert len(bank.wait_for(2, "slow")) == 2


def test_many_hanging_providers_hold_up_no_other(database_url: str, run: str) -> None:
    """Six tools with two questions each, and every one of them hangs."""
    names = [f"slow-{number}" for number in range(6)]
    with (
        ServiceProcess(database_url) as service,
        Provider(lambda question: PAID if "quick" in question.path else Reaction(hangs=True)) as bank,
    ):
        for name in (*names, "quick"):
            declare(service, name, probe_of(bank, name, timeout_seconds=30))
        for name in names:
            for to in ("bob", "carol"):
                in_doubt(service, run, name, to)
        bank.wait_for(12, "slow")
        grant = in_doubt(service, run, "quick")
        asked_at = time.monotonic()
        seen(service, grant, in_state("succeeded"))
        assert time.monotonic() - asked_at < 5


class _Echo(socketserver.BaseRequestHandler):
    """Sends back what it was sent, as a head that is no HTTP or as an answer's body."""

    def handle(self) -> None:
        head = self.request.recv(65536)
        if b"/raw" in head:
            self.request.sendall(head)
        else:
            header = head.decode().partition("Authorization: ")[2].partition("\r\n")[0]
            body = json.dumps({"state": "paid", "payment": {"id": header}}).encode()
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def test_a_secret_that_a_provider_sends_back_is_kept_nowhere(database_url: str, run: str) -> None:
    word = "s3cr3tTOKENvalue"
    with (
        socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo) as echo,
        ServiceProcess(database_url, TWICESHY_SECRET_BANK=word) as service,
    ):
        threading.Thread(target=echo.serve_forever, args=(0.02,), daemon=True).start()
        for name in ("raw", "body"):
            probe: dict[str, object] = {
                "url": f"http://127.0.0.1:{echo.server_address[1]}/{name}",
                "headers": {"Authorization": "Bearer ${env.TWICESHY_SECRET_BANK}"},
                "applied": "body.state == 'paid'",
                "not_applied": "body.state == 'unknown'",
                "result": "body.payment",
            }
            declare(service, name, probe)
        raw, body = (in_doubt(service, run, name) for name in ("raw", "body"))
        silent = seen(service, raw, lambda shown: bool(said(shown)))
        settled = seen(service, body, in_state("succeeded"))
        echo.shutdown()
    assert said(silent).startswith("no answer: its answer is no HTTP (")
    assert settled["outcome"] == {"result": {"id": "Bearer [secret]"}}
    assert word not in json.dumps([silent, settled])


def test_a_lying_provider_changes_nothing_that_is_final_and_its_word_is_kept_and_flagged(
    service: ServiceProcess, run: str
) -> None:
    """The attempt's own success arrives while its provider is asked, and the provider then says that it knows none."""
    with Provider(lambda _: UNKNOWN) as bank:
        declare(service, f"pay-{run}", probe_of(bank))
        grant = service.begin(run, f"pay-{run}")

        def react(_: Question) -> Reaction:
            assert service.report("commit", grant, result="receipt").status == 200
            return UNKNOWN

        bank.react = react
        service.report("fail", grant, kind="unknown", error=ERROR)
        shown = seen(service, grant, lambda shown: bool(shown["evidence"]))
    assert (shown["state"], shown["outcome"]) == ("succeeded", {"result": "receipt"})
    assert [(flag["kind"], flag["tool"]) for flag in flags_about(service, grant)] == [("contradiction", f"pay-{run}")]


def test_doubt_that_is_closed_or_over_is_asked_about_no_more(service: ServiceProcess, run: str) -> None:
    with Provider(lambda _: Reaction(body={"state": "processing"})) as bank:
        declare(service, f"pay-{run}", None)
        closed, known = (in_doubt(service, run, f"pay-{run}", to) for to in ("bob", "carol"))
        for grant, word in ((closed, "closed"), (known, "applied")):
            body = {"as": word, "fence": 1, "reason": "the bank's clerk says so"}
            assert service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", body).status == 200
        declare(service, f"pay-{run}", probe_of(bank))
        open_one = in_doubt(service, run, f"pay-{run}", "dave")
        seen(service, open_one, lambda shown: bool(said(shown)))
    assert {key_in(question) for question in bank.questions} == {open_one.body["downstream_key"]}


@pytest.mark.parametrize("backend", ["postgresql"])
def test_of_two_replicas_one_asks_about_each_effect(database_url: str, run: str) -> None:
    """The questions are claimed in the database, so that a provider hears each once a round."""
    with (
        ServiceProcess(database_url) as one,
        ServiceProcess(database_url),
        Provider(lambda _: PAID) as bank,
    ):
        declare(one, "pay", probe_of(bank))
        grants = [in_doubt(one, run, "pay", str(number)) for number in range(12)]
        for grant in grants:
            seen(one, grant, in_state("succeeded"))
    assert sorted(map(key_in, bank.questions)) == sorted(grant.body["downstream_key"] for grant in grants)


def test_a_service_that_is_killed_between_the_answer_and_its_writing_asks_again(database_url: str, run: str) -> None:
    word = "s3cret"
    process = ServiceProcess(database_url, TWICESHY_SECRET_BANK=word)
    with Provider(lambda _: PAID) as bank, process:
        headers = {"Authorization": "Bearer ${env.TWICESHY_SECRET_BANK}"}
        declare(process, "pay", probe_of(bank, headers=headers, timeout_seconds=0.3))

        def react(_: Question) -> Reaction:
            process.kill()
            bank.react = lambda _: PAID
            return PAID

        bank.react = react
        grant = process.begin(run, "pay")
        process.report("fail", grant, kind="unknown", error=ERROR)
        bank.wait_for(1)
        process.start()
        seen(process, grant, in_state("succeeded"))
        assert [question.headers["authorization"] for question in bank.wait_for(2)] == [f"Bearer {word}"] * 2
