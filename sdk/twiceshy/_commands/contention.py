"""`twiceshy contention`: the effects that agents lately waited for most."""

import click

from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import print_line, print_table
from twiceshy._transports.base import Request
from twiceshy_contract.contention import ContentionView


@click.command()
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="How many to show.")
@with_json
@of_service
def contention(*, limit: int, as_json: bool, url: str | None, token: str | None) -> None:
    """List the effects that begins lately found under another attempt's lease, most first."""
    asked = Request(method="GET", path=f"/v1/contention?limit={limit}")
    found, answer = Service(url, token).ask(asked, ContentionView)
    if as_json:
        print_json(answer)
        return
    where = "on all replicas" if found.counted_in == "replicas" else "in the process that answered, and in no other"
    if found.items:
        print_table(("begins", "tool", "effect"), ((str(hot.begins), hot.tool, hot.key) for hot in found.items))
    else:
        print_line("No begin found another attempt's lease.")
    print_line(f"Counted {where}, in the last {found.minutes} minutes.")
