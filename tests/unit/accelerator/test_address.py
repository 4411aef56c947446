"""Where Redis is: every form of its URL is read, and a wrong one is refused with what is wrong and an example."""

import pytest

from guard.accelerator.address import Address, AddressRefused, address_of

SECRET, AWKWARD, OTHER = "secret", "p@ss/word", "other"


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("redis://cache", Address(kind="single", hosts=(("cache", 6379),))),
        ("redis://cache:7000/3", Address(kind="single", hosts=(("cache", 7000),), db=3)),
        (
            "rediss://ann:p%40ss%2Fword@cache/0?ca=/etc/ca.pem",
            Address(
                kind="single",
                hosts=(("cache", 6379),),
                is_encrypted=True,
                ca="/etc/ca.pem",
                user="ann",
                password=AWKWARD,
            ),
        ),
        ("redis://:secret@[::1]:7000", Address(kind="single", hosts=(("::1", 7000),), password=SECRET)),
        ("redis://[::1]", Address(kind="single", hosts=(("::1", 6379),))),
        ("unix:///run/valkey.sock?db=2", Address(kind="file", path="/run/valkey.sock", db=2)),
        ("unix://:secret@/run/valkey.sock", Address(kind="file", path="/run/valkey.sock", password=SECRET)),
        ("redis+cluster://one:7000,two", Address(kind="cluster", hosts=(("one", 7000), ("two", 6379)))),
        (
            "rediss+cluster://:secret@one",
            Address(kind="cluster", hosts=(("one", 6379),), is_encrypted=True, password=SECRET),
        ),
        (
            "redis+sentinel://ann:secret@one,two:5000/main/4?sentinel_password=other",
            Address(
                kind="sentinel",
                hosts=(("one", 26379), ("two", 5000)),
                service="main",
                db=4,
                user="ann",
                password=SECRET,
                sentinel_password=OTHER,
            ),
        ),
    ],
)
def test_every_form_is_read(url: str, meant: Address) -> None:
    assert address_of(url) == meant


@pytest.mark.parametrize(
    ("url", "why", "example"),
    [
        ("", "begins with none of redis://", "redis://user:password@host:6379/0"),
        ("localhost:6379", "begins with none of", "redis://user:password@host:6379/0"),
        ("reds://cache", "did you mean redis", "redis://user:password@host:6379/0"),
        ("http://cache", "begins with none of", "redis://user:password@host:6379/0"),
        ("redis://", "names no host", "redis://user:password@host:6379/0"),
        ("redis://cache:port", "port 'port' is none", "redis://user:password@host:6379/0"),
        ("redis://cache:0", "port '0' is none", "redis://user:password@host:6379/0"),
        ("redis://cache:65536", "port '65536' is none", "redis://user:password@host:6379/0"),
        ("redis://cache/zero", "database 'zero' is no number", "redis://user:password@host:6379/0"),
        ("redis://cache/0/1", "more behind its host", "redis://user:password@host:6379/0"),
        ("redis://one,two", "several hosts", "redis://user:password@host:6379/0"),
        ("redis://::1", "in brackets", "redis://user:password@host:6379/0"),
        ("redis://[::1", "cannot be read", "redis://user:password@host:6379/0"),
        ("redis://cache?ca=/etc/ca.pem", "option 'ca' means nothing", "redis://user:password@host:6379/0"),
        ("rediss://cache?cas=/etc/ca.pem", "did you mean ca", "redis://user:password@host:6379/0"),
        ("unix://", "no path", "unix:///run/valkey/valkey.sock?db=0"),
        ("unix://run/valkey.sock", "names a host", "unix:///run/valkey/valkey.sock?db=0"),
        ("unix:///run/valkey.sock?db=x", "database 'x'", "unix:///run/valkey/valkey.sock?db=0"),
        ("redis+cluster://one/1", "has but one", "redis+cluster://user:password@host:6379,other:6379"),
        ("redis+cluster://one,", "names no host", "redis+cluster://user:password@host:6379,other:6379"),
        ("redis+sentinel://one", "which service", "redis+sentinel://user:password@host:26379,other:26379/service/0"),
        ("redis+sentinel://one/main/x", "database 'x'", "redis+sentinel://user:password@host:26379,other:26379"),
    ],
)
def test_a_wrong_one_is_refused_with_what_is_wrong_and_an_example(url: str, why: str, example: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        address_of(url)
    assert why in str(refused.value)
    assert example in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://ann:secret@cache:7000/3", "redis://cache:7000/3"),
        ("rediss://:secret@[::1]", "rediss://[::1]:6379/0"),
        ("unix://:secret@/run/valkey.sock", "unix:///run/valkey.sock?db=0"),
        ("redis+cluster://:secret@one,two", "redis+cluster://one:6379,two:6379"),
        ("redis+sentinel://:secret@one/main?sentinel_password=secret", "redis+sentinel://one:26379/main/0"),
    ],
)
def test_what_is_shown_of_it_holds_no_secret(url: str, shown: str) -> None:
    assert address_of(url).shown == shown
