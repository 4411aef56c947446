"""Normalisers on the running service: what is spelled in two ways is one call, and the preview shows its reading."""

from collections.abc import Mapping

import pytest

from tests.service import Reply, ServiceProcess

ALEX = {"alias": {"alex@example.com": "user-7", "al@example.com": "user-7"}}


def declare(service: ServiceProcess, tool: str, normalisers: Mapping[str, object], **roles: object) -> Reply:
    return service.ask("PUT", f"/v1/tools/{tool}", {"arguments": {"normalisers": normalisers, **roles}})


@pytest.mark.parametrize(
    ("normaliser", "spellings", "other", "read"),
    [
        ({"phone": "DE"}, ("030 123456", "+49 (0)30 / 12-34-56"), "+49 30 123457", "+4930123456"),
        ("phone", ("tel:+1-650-253-0000;ext=5", "+1 650 253 0000 x5"), "+1 650 253 0000", "+16502530000;ext=5"),
        (["email", ALEX], ("Alex <ALEX@Example.com>", "user-7"), "kim@example.com", "user-7"),
        ("money", ({"amount": 12.5, "currency": "EUR"}, "EUR 12.50"), "12.51 EUR", "12.50 EUR"),
        ("money", ({"amount": {"$dec": "12.500"}, "currency": "eur"}, "12.5 EUR"), "12.50 USD", "12.50 EUR"),
        ("url", ("https://a.example", "HTTPS://A.example:443/b/.."), "https://a.example/b", "https://a.example/"),
        ("trim_casefold", (" Stra\u00dfe ", "STRASSE"), "Strase", "strasse"),
        ("nfc", ("e\u0301", "\u00e9"), "E\u0301", "\u00e9"),
        ("utc", ("2026-10-12T16:00+02:00", {"$dt": "2026-10-12T14:00Z"}), "2026-10-12T16:00Z", "2026-10-12T14:00:00Z"),
    ],
)
def test_two_spellings_are_one_call_and_another_value_is_another(
    service: ServiceProcess, run: str, normaliser: object, spellings: tuple[object, object], other: object, read: str
) -> None:
    tool = f"tool-{run}"
    assert declare(service, tool, {"/x": normaliser}).status == 200
    first = service.begin(run, tool, {"x": spellings[0]})
    service.report("commit", first, result=1)
    replay = service.begin(run, tool, {"x": spellings[1]})
    assert (replay.status, replay.body["key"], replay.body["drift"]) == (200, first.body["key"], None)
    assert service.begin(run, tool, {"x": other}).status == 201
    preview = service.ask("POST", "/v1/keys", {"tool": tool, "arguments": {"x": spellings[1]}, "run": run})
    assert (preview.body["identity"], preview.body["key"]) == (f'{{"x":"{read}"}}', first.body["key"])


def test_a_declaration_is_answered_to_the_letter_and_has_one_version(service: ServiceProcess, run: str) -> None:
    normalisers = {"/to": ["email", ALEX], "/call": {"phone": "DE"}, "/at": "utc"}
    declared = [declare(service, f"tool-{run}", normalisers).body for _ in range(2)]
    assert declared[0]["declaration"]["arguments"]["normalisers"] == normalisers
    assert [answer["version"] for answer in declared] == [1, 1]
    assert service.ask("GET", f"/v1/tools/tool-{run}").body["digest"] == declared[0]["digest"]


def test_content_is_normalised_too_before_it_is_called_drift(service: ServiceProcess, run: str) -> None:
    tool = f"tool-{run}"
    declare(service, tool, {"/link": "url"}, content=["/link"])
    service.report("commit", service.begin(run, tool, {"link": "https://example.com"}), result=1)
    assert service.begin(run, tool, {"link": "https://EXAMPLE.com/"}).body["drift"] is None
    assert service.begin(run, tool, {"link": "https://example.com/a"}).body["drift"] == {"content": ["/link"]}


@pytest.mark.parametrize(
    ("normaliser", "value", "reason"),
    [
        ("phone", "030 123456", "without its country code"),
        ("money", "1.500 EUR", "thousands"),
        ("money", "$12", "sign of a currency"),
        ("url", "example.com", "absolute URL"),
        ("trim_casefold", ["x"], "a text is a string"),
        ({"alias": {"a": "b"}}, {"a": "b"}, "one value"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_path_and_leaves_nothing(
    service: ServiceProcess, run: str, normaliser: object, value: object, reason: str
) -> None:
    tool = f"tool-{run}"
    declare(service, tool, {"/deep/*/x": normaliser})
    for refused in (
        service.begin(run, tool, {"deep": [{"x": None}, {"x": value}]}),
        service.ask("POST", "/v1/keys", {"tool": tool, "arguments": {"deep": [{}, {"x": value}]}, "run": run}),
    ):
        assert refused.status == 400
        assert [error["path"] for error in refused.body["errors"]] == ["/arguments/deep/1/x"]
        assert reason in str(refused.body["errors"])
    assert service.ask("GET", f"/v1/effects?run={run}").body["items"] == []


@pytest.mark.parametrize(
    ("normaliser", "path"),
    [
        ({"phone": "UK"}, "/arguments/normalisers/~1x/phone"),
        (["email", {"alias": {"Alex@example.com": "u"}}], "/arguments/normalisers/~1x/1/alias/Alex@example.com"),
        ({"alias": {"a": "b", "b": "c"}}, "/arguments/normalisers/~1x/alias/a"),
    ],
)
def test_a_declaration_that_can_never_hold_is_refused_with_its_place(
    service: ServiceProcess, run: str, normaliser: object, path: str
) -> None:
    refused = declare(service, f"tool-{run}", {"/x": normaliser})
    assert (refused.status, [error["path"] for error in refused.body["errors"]]) == (400, [path])
    assert service.ask("GET", f"/v1/tools/tool-{run}").status == 404


@pytest.mark.parametrize("said", ["emial", {}, ["email"], {"phone": "DE", "alias": {"a": "b"}}, 5])
def test_what_is_no_normaliser_is_refused(service: ServiceProcess, run: str, said: object) -> None:
    assert declare(service, f"tool-{run}", {"/x": said}).status == 400


def test_the_shapes_are_described(service: ServiceProcess) -> None:
    schemas = service.ask("GET", "/schema/openapi.json").body["components"]["schemas"]
    assert set(schemas["NormaliserWith"]["properties"]) == {"phone", "alias"}
