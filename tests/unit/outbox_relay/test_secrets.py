"""A file is read as a secret only where an operator keeps secrets, and nothing tells what else this machine has."""

import os
from pathlib import Path

import pytest

from outbox_relay.secrets import MAX_SECRET_BYTES, secret_reader
from outbox_relay.sinks.base import SinkRefused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secrets").mkdir()
    return tmp_path / "secrets"


def refusal(name: str, folder: Path) -> str:
    with pytest.raises(SinkRefused) as refused:
        secret_reader({"TWICESHY_SECRET_FILES": str(folder)})(name)
    return str(refused.value).removeprefix(f"The secret {name} ")


def test_a_file_below_a_folder_of_secrets_is_read_anew_each_time(folder: Path) -> None:
    read = secret_reader({"TWICESHY_SECRET_FILES": f"/nowhere{os.pathsep}{folder}"})
    place = folder / "orders"
    place.write_text("one\n", encoding="utf-8")
    assert read(f"file:{place}") == "one"
    place.write_text("  zwei ü ", encoding="utf-8")
    assert read(f"file:{place}") == "zwei ü"


def test_a_link_is_read_where_it_leads_to_a_secret(folder: Path) -> None:
    (folder / "..data").mkdir()
    (folder / "..data" / "token").write_text("t")
    (folder / "token").symlink_to("..data/token")
    assert secret_reader({"TWICESHY_SECRET_FILES": str(folder)})(f"file:{folder}/token") == "t"


def test_whatever_is_no_secret_is_refused_in_the_same_words(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("private")
    (folder / "leads-out").symlink_to(tmp_path / "other")
    (folder / "circle").symlink_to(folder / "circle")
    (folder / "empty").write_text("\n")
    (folder / "binary").write_bytes(b"\xff\xfe")
    (folder / "large").write_bytes(b"x" * (MAX_SECRET_BYTES + 1))
    os.mkfifo(folder / "pipe")
    places = [
        "/proc/self/environ", "/etc/passwd", "/etc/shadow", "/dev/zero", "/nowhere/x", f"{tmp_path}/other",
        f"{folder}/../other", f"{folder}", f"{folder}/missing", f"{folder}/empty/below", *map(str, folder.iterdir()),
    ]  # fmt: skip
    said = (
        f"cannot be read as a secret: put it below {folder}, as a file of at most 64 KiB of text that the relay can "
        "read, or name its folder in TWICESHY_SECRET_FILES."
    )
    assert {refusal(f"file:{place}", folder) for place in places} == {said}


def test_without_a_setting_secrets_are_those_of_containers() -> None:
    with pytest.raises(SinkRefused, match=r"put it below /run/secrets, as a file"):
        secret_reader({})("file:/etc/hostname")


def test_the_token_of_a_pods_own_account_is_no_secret_of_a_receiver(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "kubernetes.io").mkdir()
    for place in (folder / "kubernetes.io" / "token", folder / "orders"):
        place.write_text("t")
    monkeypatch.setattr("outbox_relay.secrets.DEFAULT_FOLDER", str(folder))
    assert secret_reader({})(f"file:{folder}/orders") == "t"
    with pytest.raises(SinkRefused):
        secret_reader({})(f"file:{folder}/kubernetes.io/token")
