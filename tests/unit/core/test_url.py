"""URLs: what no server can tell apart is one, and nothing else."""

import pytest

from guard.core.normalisers.url import uniform_url
from twiceshy_contract.refusals import JsonValue


@pytest.mark.parametrize(
    ("written", "spelling"),
    [
        ("HTTPS://Example.COM/Path", "https://example.com/Path"),
        ("https://example.com", "https://example.com/"),
        (" https://example.com/ ", "https://example.com/"),
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:0443/", "https://example.com/"),
        ("https://example.com:/", "https://example.com/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("https://example.com:08443/", "https://example.com:8443/"),
        ("https://example.com:0/", "https://example.com:0/"),
        ("ws://example.com:80", "ws://example.com/"),
        ("s3://Bucket/Key", "s3://bucket/Key"),
        ("https://example.com/a/./b/../c", "https://example.com/a/c"),
        ("https://example.com/../a/..", "https://example.com/"),
        ("https://example.com/a/%2e%2E/b/.", "https://example.com/b/"),
        ("https://example.com/a//../b", "https://example.com/a/b"),
        ("https://example.com//a", "https://example.com//a"),
        ("https://example.com/%7euser/%41?q=%2d#%5f", "https://example.com/~user/A?q=-#_"),
        ("https://example.com/%c3%a4%2f%3A", "https://example.com/%C3%A4%2F%3A"),
        ("https://example.com/\u00e4?q=\u00f6#\u00fc", "https://example.com/%C3%A4?q=%C3%B6#%C3%BC"),
        ('https://example.com/a b"<>^`{|}', "https://example.com/a%20b%22%3C%3E%5E%60%7B%7C%7D"),
        ("https://example.com/?a[]=1&b=x+y", "https://example.com/?a[]=1&b=x+y"),
        ("https://b\u00fccher.example/", "https://xn--bcher-kva.example/"),
        ("https://B%C3%BCcher.example/", "https://xn--bcher-kva.example/"),
        ("https://XN--BCHER-KVA.example/", "https://xn--bcher-kva.example/"),
        ("https://[2001:DB8:0::1]:443/", "https://[2001:db8::1]/"),
        ("https://[::FFFF:1.2.3.4]/", "https://[::ffff:1.2.3.4]/"),
        ("https://User:p%40ss@example.com/", "https://User:p%40ss@example.com/"),
        ("https://@example.com/", "https://example.com/"),
        ("FILE:///etc/./hosts", "file:///etc/hosts"),
    ],
)
def test_a_url_has_one_spelling(written: str, spelling: str) -> None:
    assert uniform_url(written) == spelling


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://example.com/?a=1&b=2", "https://example.com/?b=2&a=1"),
        ("https://example.com/a", "https://example.com/a/"),
        ("https://example.com/a", "https://example.com/A"),
        ("https://example.com/", "https://example.com/?"),
        ("https://example.com/", "https://example.com/#"),
        ("https://example.com/#/invoice/7", "https://example.com/#/invoice/8"),
        ("https://example.com/a%2Fb", "https://example.com/a/b"),
        ("https://example.com/?a=%26", "https://example.com/?a=&"),
        ("https://example.com/?a=+", "https://example.com/?a=%20"),
        ("https://example.com/?a=[", "https://example.com/?a=%5B"),
        ("https://example.com/", "http://example.com/"),
        ("https://example.com/", "https://www.example.com/"),
        ("https://example.com/", "https://example.com./"),
        ("https://a@example.com/", "https://a:@example.com/"),
        ("https://example.com/\u00e9", "https://example.com/e\u0301"),
        ("https://127.0.0.1/", "https://127.1/"),
    ],
)
def test_what_a_server_can_tell_apart_stays_apart(one: str, other: str) -> None:
    assert uniform_url(one) != uniform_url(other)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("example.com/a", "not an absolute URL"),
        ("//example.com/a", "not an absolute URL"),
        ("/a", "not an absolute URL"),
        ("mailto:bob@example.com", "not an absolute URL"),
        ("https://a@b@c/", "not an absolute URL"),
        ("https://example.com:8x/", "not an absolute URL"),
        ("https://[::1/", "not an absolute URL"),
        ("", "not an absolute URL"),
        ("https:///a", "has no host"),
        ("https://:443/", "has no host"),
        ("https://example.com:65536/", "port of the URL"),
        ("https://example.com:00000000000099999999/", "port of the URL"),
        ("https://example.com\\@evil.example/", "backslash"),
        ("https://example.com/a\tb", "control characters"),
        ("https://example.com/a\nb", "control characters|absolute URL"),
        ("https://example.com/100%", "written %25"),
        ("https://example.com/%zz", "written %25"),
        ("https://%ff.example/", "not UTF-8"),
        ("https://a%2Fb.example/", "cannot exist"),
        ("https://a b.example/", "cannot exist"),
        ("https://a..example/", "cannot exist"),
        ("https://stra\u00dfe.example/", "ambiguous"),
        ("https://[::g]/", "no IPv6 address"),
        ("https://[v1.a]/", "no IPv6 address"),
        ("https://[fe80::1%25eth0]/", "names an interface"),
        (5, "is a string"),
        (None, "is a string"),
        ({"url": "https://example.com/"}, "is a string"),
    ],
)
def test_what_two_readers_could_take_for_two_places_is_refused(written: JsonValue, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        uniform_url(written)
