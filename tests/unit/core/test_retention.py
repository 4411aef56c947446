"""How long the record of a final effect is kept."""

from guard.core.effects import SECOND
from guard.core.retention import kept_for
from twiceshy_contract.tools import ToolDeclaration


def test_an_effect_without_a_run_is_kept_for_three_days_and_one_of_a_run_for_thirty() -> None:
    assert kept_for(ToolDeclaration(), has_run=False) == 3 * 24 * 3600 * SECOND
    assert kept_for(ToolDeclaration(), has_run=True) == 30 * 24 * 3600 * SECOND


def test_what_a_tool_says_holds_for_both() -> None:
    for has_run in (True, False):
        assert kept_for(ToolDeclaration(retention_seconds=1.5), has_run=has_run) == 1_500_000
