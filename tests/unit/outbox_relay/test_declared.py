"""A file of destinations is read as strictly as the API reads one, and whatever is wrong is named by its line."""

from pathlib import Path

import pytest

from outbox_relay.declared import FileRefused, destinations_in
from twiceshy_contract.destinations import LogDestination, WebhookDestination

TOP = "destinations:\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "destinations.yaml"
    path.write_text(text)
    return path


def test_names_are_mapped_to_settings(tmp_path: Path) -> None:
    text = """
destinations:
  hooks:
    kind: webhook
    url: https://example.com/hooks
    secrets: ["env:TWICESHY_SECRET_HOOKS"]
    rate_per_second: 2.5
    at_least_once: true
  lines: {kind: log, path: 12:30}
"""
    assert destinations_in(written(tmp_path, text)) == {
        "hooks": WebhookDestination(
            url="https://example.com/hooks",
            secrets=("env:TWICESHY_SECRET_HOOKS",),
            rate_per_second=2.5,
            at_least_once=True,
        ),
        "lines": LogDestination(path="12:30"),
    }


def test_json_is_read_too(tmp_path: Path) -> None:
    assert destinations_in(written(tmp_path, '{"destinations": {"lines": {"kind": "log"}}}')) == {
        "lines": LogDestination()
    }


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "", "is empty"),
        ("- a\n", ":1:1:", "destinations is missing: it is a mapping of names to settings"),
        ("hooks: {kind: log}\n", ":1:1:", "/destinations: destinations is missing"),
        ("destinations: {}\n", ":1:1:", "/destinations: no destination is declared here"),
        (f"{TOP}  a: {{kind: log}}\nmore: 1\n", ":3:1:", "/more: this field is not known"),
        ("destinations: 3\n", ":1:1:", "it is a mapping of names to settings"),
        ("a: [1\n", ":2:1:", "it is not YAML"),
        (f"{TOP}\n  a: {{kind: log}}\n  a: {{kind: log}}\n", ":4:3:", "the key 'a' stands twice, first in line 3"),
        (f"{TOP}  a:\n    kind: log\n    kind: log\n", ":4:5:", "the key 'kind' stands twice, first in line 3"),
        (
            f"{TOP}  a: {{kind: webhok}}\n",
            ":2:7:",
            "there is no kind 'webhok'; did you mean webhook?; the kinds are webhook",
        ),
        (f"{TOP}  a: {{url: x}}\n", ":2:3:", "kind is missing; the kinds are webhook, smtp"),
        (f"{TOP}  a: {{kind: log, concurency: 3}}\n", ":2:18:", "/destinations/a/concurency: this field is not known"),
        (f"{TOP}  a: {{kind: log, attempts: '3'}}\n", ":2:18:", "/destinations/a/attempts: Expected int, got str"),
        (f"{TOP}  a: {{kind: log, at_least_once: yes}}\n", ":2:18:", "Expected bool, got str"),
        (f"{TOP}  a: {{kind: log, path: !x y}}\n", ":2:24:", "the tag !x is not read"),
        (f"{TOP}  'a b': {{kind: log}}\n", ":2:3:", "a destination's name has 1 to 100 letters"),
        (f"{TOP}  a:\n    <<: {{kind: log}}\n", ":3:5:", "merge keys (<<) are not read"),
        (
            f"{TOP}  a: {{kind: webhook, url: 'ftp://x.example'}}\n",
            ":2:22:",
            "/destinations/a/url: the URL of a webhook",
        ),
        (
            f"{TOP}  a: {{kind: redis, url: 'redis://h', stream: s, password: hunter2}}\n",
            ":2:49:",
            "a secret never stands here: say env:TWICESHY_SECRET_…",
        ),
    ],
)
def test_what_is_wrong_is_named_by_its_line(tmp_path: Path, text: str, place: str, reason: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(FileRefused) as refused:
        destinations_in(path)
    assert str(refused.value).startswith(f"{path}{place}")
    assert reason in str(refused.value)


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, f"{TOP}  a: {{kind: log, x: 1}}\n  b: {{kind: webhook, url: 'https:'}}\n  c: log\n")
    with pytest.raises(FileRefused) as refused:
        destinations_in(path)
    assert sorted(line.split(":")[1] for line in str(refused.value).split("\n")) == ["2", "3", "4"]


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "destinations.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileRefused, match="cannot be read"):
        destinations_in(path)
