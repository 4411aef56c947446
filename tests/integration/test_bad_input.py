"""Bad input is refused with its place, and nothing is stored."""

from uuid import uuid4

import pytest

from tests.service import Reply, ServiceProcess

MEBIBYTE = 2**20


def begin_text(run: str, arguments: bytes) -> bytes:
    head = f'{{"tool": "pay", "run": "{run}", "attempt": "{uuid4()}", "arguments": '
    return head.encode() + arguments + b"}"


def refused_at(reply: Reply, path: str) -> None:
    assert (reply.status, reply.code) == (400, "invalid-request")
    assert reply.headers["content-type"] == "application/problem+json"
    assert [error["path"] for error in reply.body["errors"]] == [path]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (b'{"a": 1, "a": 2}', "/arguments/a"),
        (b'{"a": [1, NaN]}', "/arguments/a/1"),
        (b'{"a": -Infinity}', "/arguments/a"),
        (b'{"a": 1e999}', "/arguments/a"),
        (b'{"a": "\\ud800"}', "/arguments/a"),
        (b'{"\\udfff": 1}', "/arguments"),
        (b'{"a": "\xff"}', "/arguments/a"),
        (b'{"a": ' * 65 + b"1" + b"}" * 65, "/arguments" + "/a" * 64),
        (b'{"a": ' * 1100 + b"1" + b"}" * 1100, None),
        (b'{"$odd": 1}', "/arguments/$odd"),
        (b'{"when": {"$dt": "2026-10-12T14:00:00"}}', "/arguments/when/$dt"),
        (b'{"a": ', "/arguments/a"),
    ],
)
def test_arguments_that_two_readers_could_read_differently_are_refused_with_the_place(
    service: ServiceProcess, run: str, arguments: bytes, path: str | None
) -> None:
    reply = service.ask("POST", "/v1/effects", begin_text(run, arguments))
    refused_at(reply, reply.body["errors"][0]["path"] if path is None else path)
    assert reply.body["errors"][0]["path"].startswith("/arguments")
    assert service.ask("GET", f"/v1/runs/{run}").status == 404


def test_depth_64_is_taken(service: ServiceProcess, run: str) -> None:
    assert service.ask("POST", "/v1/effects", begin_text(run, b'{"a": ' * 64 + b"1" + b"}" * 64)).status == 201


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"surprise": 1}, "/surprise"),
        ({"outbox": []}, "/outbox"),
        ({"event": []}, "/event"),
        ({"tool": None}, "/tool"),
        ({"tool": ""}, "/tool"),
        ({"arguments": []}, "/arguments"),
        ({"attempt": "a1"}, "/attempt"),
        ({"occurrence": "2"}, "/occurrence"),
        ({"occurrence": 0}, "/occurrence"),
        ({"lease_seconds": 0.5}, "/lease_seconds"),
        ({"wait_seconds": 31}, "/wait_seconds"),
        ({"reopen": "yes"}, "/reopen"),
        ({"run": "a\u0000b"}, "/run"),
        ({"run": None}, "/run"),
        ({"run": ".."}, "/run"),
        ({"tool": "."}, "/tool"),
        ({"step": 1, "business_key": "k"}, "/step"),
    ],
)
def test_a_field_that_is_wrong_is_named(
    service: ServiceProcess, run: str, change: dict[str, object], path: str
) -> None:
    body: dict[str, object] = {"tool": "pay", "arguments": {}, "run": run, "attempt": str(uuid4())}
    refused_at(service.ask("POST", "/v1/effects", body | change), path)


def test_a_missing_field_is_named(service: ServiceProcess, run: str) -> None:
    refused_at(service.ask("POST", "/v1/effects", {"arguments": {}, "run": run, "attempt": str(uuid4())}), "/tool")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"{} {}"])
def test_a_body_that_is_not_an_object_is_refused(service: ServiceProcess, body: bytes) -> None:
    reply = service.raw("POST", "/v1/effects", body, {"Content-Type": "application/json"})
    assert (reply.status, reply.code) == (400, "invalid-request")


def test_a_field_of_a_later_contract_is_passed_over_when_the_client_says_so(service: ServiceProcess, run: str) -> None:
    body = {"tool": "pay", "arguments": {}, "run": run, "attempt": str(uuid4()), "of_the_future": 1}
    assert service.ask("POST", "/v1/effects", body, Twiceshy_Contract="99").status == 201


def test_a_body_of_a_mebibyte_is_taken_and_a_byte_more_is_too_large(service: ServiceProcess, run: str) -> None:
    empty = len(begin_text(run, b'{"a": ""}'))
    fitting = begin_text(run, b'{"a": "' + b"x" * (MEBIBYTE - empty) + b'"}')
    assert len(fitting) == MEBIBYTE
    assert service.ask("POST", "/v1/effects", fitting).status == 201
    larger = begin_text(f"{run}x", b'{"a": "' + b"x" * (MEBIBYTE - empty) + b'"}')
    reply = service.ask("POST", "/v1/effects", larger)
    assert (reply.status, reply.code) == (413, "too-large")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_another_content_type_is_refused(service: ServiceProcess, run: str, content_type: str) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    reply = service.raw("POST", "/v1/effects", begin_text(run, b"{}"), headers)
    assert (reply.status, reply.code) == (415, "unsupported-media-type")


def test_a_charset_beside_the_content_type_is_fine(service: ServiceProcess, run: str) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    assert service.raw("POST", "/v1/effects", begin_text(run, b"{}"), headers).status == 201


def test_an_unknown_path_and_a_wrong_method_are_problems(service: ServiceProcess) -> None:
    assert service.ask("GET", "/v2/effects").code == "not-found"
    assert service.ask("DELETE", "/v1/effects").code == "method-not-allowed"


@pytest.mark.parametrize(
    ("query", "path"),
    [("state=odd", "/state"), ("limit=0", "/limit"), ("after=zzz", "/after"), ("colour=red", "/colour")],
)
def test_a_wrong_query_is_named(service: ServiceProcess, query: str, path: str) -> None:
    refused_at(service.ask("GET", f"/v1/effects?{query}"), path)


def test_a_result_that_is_not_tagged_json_is_refused_with_the_place(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run)
    refused_at(service.report("commit", grant, result={"a": {"$odd": 1}}), "/result/a/$odd")


@pytest.mark.parametrize("path", ["/v1/runs/%00", "/v1/tools/%00", "/v1/tools/a%0Ab"])
def test_a_name_that_no_run_or_tool_can_have_is_not_found(service: ServiceProcess, path: str) -> None:
    assert service.ask("GET", path).code == "not-found"


@pytest.mark.parametrize("name", ["tool", "run"])
def test_a_nul_in_a_query_is_named(service: ServiceProcess, name: str) -> None:
    refused_at(service.ask("GET", f"/v1/effects?{name}=%00"), f"/{name}")


def test_a_nul_in_a_reason_is_named(service: ServiceProcess) -> None:
    word = {"as": "closed", "fence": 1, "reason": "a\u0000b"}
    refused_at(service.ask("POST", f"/v1/effects/{'0' * 64}/resolve", word), "/reason")


@pytest.mark.parametrize("header", ["b\xc3\xbck", '"abc', '"x"; p=1', '""', '"a" "b"'])
def test_an_idempotency_key_that_is_not_one_string_is_refused(service: ServiceProcess, header: str) -> None:
    body = {"tool": "pay", "arguments": {}, "attempt": str(uuid4())}
    refused_at(service.ask("POST", "/v1/effects", body, Idempotency_Key=header), "/business_key")


def test_an_unknown_field_in_an_error_is_named(service: ServiceProcess, run: str) -> None:
    error = {"type": "E", "message": "m", "more": 1}
    refused_at(service.report("fail", service.begin(run), kind="unknown", error=error), "/error/more")


def test_a_wrong_method_says_which_are_right(service: ServiceProcess) -> None:
    assert "POST" in service.ask("DELETE", "/v1/effects").headers["allow"]


def test_a_problem_type_leads_to_its_explanation(service: ServiceProcess) -> None:
    page = service.ask("GET", "/problems/outcome-in-doubt")
    assert page.status == 200
    assert "Nobody knows whether the effect happened" in page.body
    assert service.ask("GET", "/problems/never-heard").status == 404


def test_an_instant_that_no_answer_could_write_is_refused(service: ServiceProcess, run: str) -> None:
    for moment in ("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00%2B23:59"):
        refused_at(service.ask("GET", f"/v1/tools/pay-{run}?at={moment}"), "/at")
        refused_at(service.ask("GET", f"/v1/tools?at={moment}"), "/at")


def test_terms_and_versions_that_cannot_be_are_refused_where_nothing_is_done_too(
    service: ServiceProcess, run: str
) -> None:
    service.ask("POST", "/v1/runs", {"run": run})
    asked = {"run": run, "calls": [{"tool": "pay", "tool_version": 2**31}]}
    refused_at(service.ask("POST", "/v1/policy/decisions", asked), "/calls/0/tool_version")
    fork = {"parent": run, "at": 0, "live": [{"tool": "pay"}, {"tool": "mail", "when": "a ["}]}
    refused_at(
        service.ask("POST", "/v1/policy/decisions", {"fork": fork, "calls": [{"tool": "pay"}]}), "/fork/live/1/when"
    )


def test_a_line_break_at_the_end_of_a_name_of_a_header_or_an_address_is_refused(
    service: ServiceProcess, run: str
) -> None:
    probe = {"url": "https://pay.example/x", "applied": "a", "not_applied": "b"}
    path = f"/v1/tools/pay-{run}"
    refused_at(service.ask("PUT", path, {"provider_key_header": "X-Key\n"}), "/provider_key_header")
    refused_at(service.ask("PUT", path, {"probe": probe | {"url": "https://pay.example\n"}}), "/probe/url")
    assert service.ask("PUT", path, {"probe": probe | {"headers": {"X-A\n": "v"}}}).status == 400


@pytest.mark.parametrize("path", ["/v1/tools/%ff", "/v1/runs/%C3%28", "/v1/sagas/%ff", "/v1/runs/%ff/finish"])
def test_a_path_that_is_no_utf_8_is_refused(service: ServiceProcess, path: str) -> None:
    for method in ("GET", "PUT", "POST"):
        refused = service.ask(method, path, {})
        assert (refused.status, refused.code) == (400, "invalid-request"), method
    assert service.ask("GET", "/v1/tools/%EF%BF%BD").status == 404
