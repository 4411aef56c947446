"""`twiceshy completion`: what a shell reads to complete commands, options and their values."""

from typing import Final, Literal, get_args

import click
from click.shell_completion import get_completion_class

Shell = Literal["bash", "zsh", "fish"]
PROGRAM: Final = "twiceshy"
VARIABLE: Final = "_TWICESHY_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(get_args(Shell)))
@click.pass_context
def completion(context: click.Context, shell: Shell) -> None:
    """Print the completion script for a shell.

    \b
    bash: eval "$(twiceshy completion bash)"     in ~/.bashrc
    zsh:  eval "$(twiceshy completion zsh)"      in ~/.zshrc, after compinit
    fish: twiceshy completion fish > ~/.config/fish/completions/twiceshy.fish
    """  # noqa: D301 - click reads the control character
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"This version of click completes nothing for {shell}. Upgrade it.")
    click.echo(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source())
