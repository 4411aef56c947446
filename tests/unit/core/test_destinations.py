"""Settings of a destination: nothing that cannot be delivered by, and no secret in a row."""

from typing import Any

import msgspec
import pytest

from guard.core.destinations import check_destination
from twiceshy_contract.destinations import Destination
from twiceshy_contract.refusals import Refusal

HOOK = {"kind": "webhook", "url": "https://x.example/y"}
MAIL = {"kind": "smtp", "host": "mail.example", "sender": "desk@acme.example"}
REDIS = {"kind": "redis", "url": "redis://x.example", "stream": "s"}
NATS = {"kind": "nats", "servers": ["nats://a.example:4222"], "subject": "s"}
RABBIT = {"kind": "rabbitmq", "url": "amqp://x.example", "routing_key": "q"}
KAFKA = {"kind": "kafka", "servers": ["a.example:9092"], "topic": "t"}


def check(settings: dict[str, Any]) -> None:
    check_destination(msgspec.convert(settings, Destination))


@pytest.mark.parametrize(
    "settings",
    [
        HOOK,
        HOOK | {"url": "http://[::1]:8080/x?y=1&token=", "headers": {"X-A": "b", "X-Token-Kind": "c"}},
        HOOK | {"secret_headers": {"Authorization": "env:TWICESHY_SECRET_HOOK"}},
        MAIL,
        MAIL | {"sender": "Desk <desk@acme.example>", "senders": {"bob": "Bob <bob@acme.example>"}},
        MAIL | {"username": "u", "password": "env:TWICESHY_SECRET_SMTP"},
        REDIS,
        REDIS | {"url": "rediss://user@x.example:6380/1"},
        REDIS | {"url": "redis://x.example?db=3"},
        NATS | {"servers": ["nats://a.example:4222", "tls://b.example"]},
        RABBIT | {"url": "amqps://user@x.example/vhost"},
        KAFKA,
        {"kind": "log"},
    ],
)
def test_what_could_be_delivered_by_is_taken(settings: dict[str, Any]) -> None:
    check(settings)


@pytest.mark.parametrize(
    ("settings", "place", "reason"),
    [
        (HOOK | {"url": "ftp://x.example"}, "/url", "the URL of a webhook begins with `https:` or `http:`"),
        (HOOK | {"url": "x.example/y"}, "/url", "the URL of a webhook begins with `https:` or `http:`"),
        (HOOK | {"url": "https:///y"}, "/url", "the URL names no host"),
        (HOOK | {"url": "https://x.example:no"}, "/url", "this is no URL"),
        (HOOK | {"url": "https://[::1/y"}, "/url", "this is no URL"),
        (HOOK | {"url": "https://u@x.example"}, "/url", "a secret does not stand in a URL"),
        (HOOK | {"url": "https://u:p@x.example"}, "/url", "a secret does not stand in a URL"),
        *(
            (
                HOOK | {"url": f"https://x.example/y?a=b&{name}=s"},
                "/url",
                "a secret does not stand in a URL: name it in a",
            )
            for name in ("token", "api_key", "ACCESS_TOKEN", "secret", "client_secret", "password", "api%5Fkey")
        ),
        *(
            (
                HOOK | {"headers": {"X-A": "b", name: "s"}},
                f"/headers/{name}",
                "this header is a secret: name it in `secre",
            )
            for name in ("Authorization", "cookie", "X-Api-Key", "X-Auth-Token", "X-Secret")
        ),
        (HOOK | {"headers": {"Webhook-Id": "1"}}, "/headers/Webhook-Id", "the relay writes this header itself"),
        (
            HOOK | {"secret_headers": {"HOST": "env:TWICESHY_SECRET_A"}},
            "/secret_headers/HOST",
            "the relay writes this header itself",
        ),
        (
            HOOK | {"headers": {"X-A": "b"}, "secret_headers": {"x-a": "env:TWICESHY_SECRET_A"}},
            "/secret_headers",
            "the header 'x-a' stands in `headers` too",
        ),
        (MAIL | {"sender": "nobody"}, "/sender", "'nobody' is no sender of mail"),
        (MAIL | {"senders": {"a/b": "nobody"}}, "/senders/a~1b", "'nobody' is no sender of mail"),
        (MAIL | {"username": "u"}, "/password", "give both `username` and `password`"),
        (MAIL | {"password": "file:/s"}, "/username", "give both `username` and `password`"),
        (MAIL | {"events": ["approval.decided"]}, "/events", "the service's own events are no mail"),
        (REDIS | {"url": "http://x.example"}, "/url", "the URL of a redis begins with `redis:`"),
        (REDIS | {"url": "redis://x.example?password=p"}, "/url", "a secret does not stand in a URL"),
        (REDIS | {"url": "redis://x.example?pass%77ord=p"}, "/url", "a secret does not stand in a URL"),
        (
            REDIS | {"url": "redis://x.example?parser_class=x"},
            "/url",
            "the URL of a redis takes no option 'parser_class'",
        ),
        (REDIS | {"url": "unix:///var/run/docker.sock"}, "/url", "the URL of a redis begins with `redis:`"),
        (NATS | {"servers": ["wss://a.example"]}, "/servers/0", "the URL of a nats begins with `nats:` or `tls:`"),
        (NATS | {"servers": ["nats://token@a.example"]}, "/servers/0", "a secret does not stand in a URL"),
        (NATS | {"servers": ["nats://a.example:99999"]}, "/servers/0", "this is no URL"),
        (NATS | {"subject": "$JS.API.STREAM.DELETE.S"}, "/subject", "a subject that begins with `$` commands"),
        (RABBIT | {"url": "amqps://x.example/?cafile=/x"}, "/url", "the URL of a rabbitmq takes no option 'cafile'"),
        (RABBIT | {"routing_key": "é" * 128}, "/routing_key", "this is longer than 255 bytes of UTF-8"),
        (RABBIT | {"exchange": "é" * 128}, "/exchange", "this is longer than 255 bytes of UTF-8"),
        (NATS | {"servers": ["nats://a.example", "nats://u:p@b.example"]}, "/servers/1", "a secret does not stand"),
        (RABBIT | {"url": "https://x.example"}, "/url", "the URL of a rabbitmq begins with `amqp:` or `amqps:`"),
    ],
)
def test_what_nothing_could_be_delivered_by_is_refused_with_its_place(
    settings: dict[str, Any], place: str, reason: str
) -> None:
    with pytest.raises(Refusal) as refused:
        check(settings)
    assert (refused.value.path, refused.value.reason[: len(reason)]) == (place, reason)
