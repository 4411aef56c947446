"""Calls as the service names them, of tools that need no registry."""

from uuid import UUID

from guard.core.effects import Instant, RunId, TenantId
from guard.core.tools import Tool
from guard.service.naming import NamedCall, named_call
from guard.service.registry import as_known
from guard.service.runs import KnownRun
from guard.service.understanding import read_arguments, rule_of
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.tools import ToolDeclaration

TENANT = TenantId(1)
RUN = RunId(UUID(int=1))


def called(declaration: ToolDeclaration, attempt: int = 1) -> NamedCall:
    """Return a call of a tool that is declared so."""
    tool = as_known(
        Tool(tenant=TENANT, name="page", version=1, digest=b"", declared_at=Instant(0), declaration=declaration)
    )
    request = BeginRequest(tool="page", arguments={"to": "bob"}, attempt=UUID(int=attempt), run="main")
    understood = (rule_of(request, tool), read_arguments(request.arguments, tool))
    return named_call(TENANT, request, understood, KnownRun(id=RUN, fork=None), tool, tool)
