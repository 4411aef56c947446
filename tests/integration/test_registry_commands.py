"""`twiceshy tools apply` and `import` against a running service: what the plan shows is what then holds."""

import json
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from tests.service import ServiceProcess
from twiceshy._commands import main

TOOLS = """\
tools:
  {pay}:
    key: {{rule: business_key}}
    approval: {{when: "arguments.amount > `100`", summary: "Pay ${{arguments.to}}"}}
    compensation: {{tool: {refund}, arguments: {{payment: "${{result.id}}"}}}}
    provider_key_header: Idempotency-Key
    provider_window_seconds: 86400
  {refund}: {{class: idempotent}}
"""


def twiceshy(service: ServiceProcess, *words: str, code: int = 0, **more: Any) -> Result:
    result = CliRunner().invoke(main, [*words, "--url", service.url], **more)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def names() -> dict[str, str]:
    return {name: f"{name}_{uuid4().hex[:8]}" for name in ("pay", "refund")}


def test_a_file_is_planned_applied_and_then_unchanged(
    service: ServiceProcess, names: dict[str, str], tmp_path: Path
) -> None:
    path, pay = tmp_path / "tools.yaml", names["pay"]
    path.write_text(TOOLS.format(**names))
    dry = twiceshy(service, "tools", "apply", str(path), "--dry-run")
    assert f"+ {pay}: new, version 1\n" in dry.output
    assert service.ask("GET", f"/v1/tools/{pay}").status == 404
    assert "Applied." in twiceshy(service, "tools", "apply", str(path), "--yes").output
    held = service.ask("GET", f"/v1/tools/{pay}").body["declaration"]
    assert (held["declared_by"], held["approval"]["when"]) == ("person", "arguments.amount > `100`")
    assert "0 new, 0 changed, 2 unchanged." in twiceshy(service, "tools", "apply", str(path)).output
    path.write_text(path.read_text().replace("{class: idempotent}", "{class: read}"))
    lowered = twiceshy(service, "tools", "apply", str(path), "--yes").output
    assert "  ! class: idempotent → read  (guards less than before)" in lowered
    versions = twiceshy(service, "tools", "versions", names["refund"]).output.splitlines()[1:]
    assert [line.split()[:3] for line in versions] == [["2", "read", "person"], ["1", "idempotent", "person"]]
    old = json.loads(twiceshy(service, "tools", "show", names["refund"], "--version", "1", "--json").output)
    assert old["declaration"]["class"] == "idempotent"


def test_what_only_the_service_can_see_is_named_by_its_line_and_nothing_is_applied(
    service: ServiceProcess, names: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "tools.yaml"
    path.write_text(TOOLS.format(**names).replace("> `100`", ">").replace("${result.id}", "${result.}"))
    refused = twiceshy(service, "tools", "apply", str(path), "--yes", code=1).output
    assert f"tools.yaml:4:16: /tools/{names['pay']}/approval/when: this is no JMESPath expression" in refused
    assert "tools.yaml:5:" in refused
    assert "Nothing was applied." in refused
    assert [service.ask("GET", f"/v1/tools/{name}").status for name in names.values()] == [404, 404]


def test_hints_are_taken_where_nobody_has_spoken_and_lower_nothing(
    service: ServiceProcess, names: dict[str, str]
) -> None:
    said, new = names["pay"], names["refund"]
    twiceshy(service, "tools", "declare", said, "--class", "idempotent", "--attempts", "2")
    read = {"readOnlyHint": True}
    listed = {"tools": [{"name": said, "annotations": read}, {"name": new, "annotations": read}]}
    result = twiceshy(service, "tools", "import", "mcp", "-", "--yes", input=json.dumps(listed))
    assert f"= {said}: unchanged, version 1 (a person declared it, which wins)" in result.output
    shown = service.ask("GET", f"/v1/tools/{new}").body["declaration"]
    assert (shown["class"], shown["declared_by"]) == ("read", "hint")
    raised = {"tools": [{"name": said}]}
    result = twiceshy(service, "tools", "import", "mcp", "-", "--yes", input=json.dumps(raised))
    assert "    class: idempotent → side_effect" in result.output
    held = service.ask("GET", f"/v1/tools/{said}").body["declaration"]
    assert (held["class"], held["attempts"], held["declared_by"]) == ("side_effect", 2, "person")


def test_a_service_that_is_killed_while_it_applies_has_taken_all_or_nothing(database_url: str) -> None:
    tools = {f"tool-{number:04}": {"attempts": 3} for number in range(1000)}
    service = ServiceProcess(database_url)
    with service:
        asking = threading.Thread(target=_ask_whatever_comes, args=(service, {"tools": tools}))
        asking.start()
        asking.join(0.1)
        service.kill()
        asking.join(40)
    with service:
        assert len(service.ask("GET", "/v1/tools").body["items"]) in (0, 1000)
        reply = service.ask("POST", "/v1/tools/apply", {"tools": tools})
        assert len(reply.body["items"]) == 1000


def _ask_whatever_comes(service: ServiceProcess, body: object) -> None:
    try:
        service.ask("POST", "/v1/tools/apply", body)
    except (OSError, ValueError):
        return
