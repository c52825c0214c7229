"""The commands, each in a file of its group; those of a toolset in its folder."""

from __future__ import annotations

import typer

from pegboard.cli import (
    add,
    audit,
    change,
    changes,
    clients,
    completion,
    doctor,
    gateway_control,
    imports,
    logins,
    look,
    registry,
    run,
    secrets,
    service,
    tokens,
    trust,
    whoami,
)
from pegboard.toolsets.installed import load_parts

app = typer.Typer(
    name="pegboard",
    help="One endpoint between an AI agent and all of its tools.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    # Plain help loads in half the time.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Show the version and exit.")) -> None:
    """One endpoint between an AI agent and all of its tools."""
    if version:
        from pegboard.version import VERSION

        typer.echo(VERSION)
        raise typer.Exit


_GROUPS = (
    run,
    gateway_control,
    trust,
    add,
    imports,
    registry,
    clients,
    change,
    changes,
    look,
    logins,
    tokens,
    secrets,
    whoami,
)
for group in (*_GROUPS, *load_parts("commands").values(), audit, service, doctor, completion):
    group.add_to(app)
