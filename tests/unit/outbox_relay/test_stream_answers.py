"""What an answer to a message that was published to NATS proves."""

import pytest

from outbox_relay.sinks.base import Delivered, Permanent, Retryable, Unknown
from outbox_relay.sinks.nats_answers import judged
from twiceshy_contract.destinations import NatsDestination

ANY = NatsDestination(servers=("nats://a",), subject="orders.created")
DECLARED = NatsDestination(servers=("nats://a",), subject="orders.created", stream="ORDERS")


def test_a_stream_that_says_where_it_stored_a_message_has_it() -> None:
    assert judged(b'{"stream":"ORDERS","seq":7}', DECLARED) == Delivered(receipt="ORDERS 7")
    assert judged(b'{"stream":"OTHER","seq":1,"duplicate":true}', ANY) == Delivered(
        receipt="OTHER 1", is_duplicate=True
    )


@pytest.mark.parametrize("answer", [b'{"stream":"ORDERS","seq":0}', b'{"stream":"","seq":1}', b'{"seq":1}', b"[]"])
def test_an_answer_without_a_place_proves_nothing(answer: bytes) -> None:
    assert isinstance(judged(answer, ANY), Unknown)


def test_another_stream_than_the_one_declared_proves_nothing() -> None:
    why = "OTHER answered for the subject orders.created, not ORDERS"
    assert judged(b'{"stream":"OTHER","seq":1}', DECLARED) == Unknown(why=why)


@pytest.mark.parametrize(
    ("number", "expected"), [(0, Unknown), (10158, Unknown), (10060, Permanent), (10023, Retryable), (10076, Retryable)]
)
def test_an_error_is_taken_for_what_it_proves(number: int, expected: type) -> None:
    answer = f'{{"error":{{"code":503,"err_code":{number},"description":"no"}}}}'.encode()
    assert isinstance(judged(answer, ANY), expected)
