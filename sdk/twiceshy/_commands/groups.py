"""Groups of commands that name the nearest where one is misspelt."""

from difflib import get_close_matches

import click
from click.shell_completion import CompletionItem


class Group(click.Group):
    """A group whose commands are known by name before any of them is loaded."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or say which one was probably meant."""
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(name, known, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(known)}."
            ctx.fail(f"No such command {name!r}.{meant}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands without loading any; what starts otherwise is an option."""
        if incomplete and not incomplete[0].isalnum():
            return super().shell_complete(ctx, incomplete)
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [CompletionItem(name, help=self._short_help(name)) for name in names]

    def _short_help(self, name: str) -> str | None:
        own = self.commands.get(name)
        return None if own is None else own.get_short_help_str()


Group.group_class = Group
