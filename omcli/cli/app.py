"""The `om` command and its subcommands."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Annotated

import typer

from omcli import __version__
from omcli.memory.errors import BadUsage

COMMANDS = ("observe", "context", "log", "show", "sessions", "status", "tokens", "note")
"""In the order of `om --help`. Each is a function in a module of its name beside this one, with its `EXAMPLES`."""

_EPILOG = """\b
om observe < transcript.jsonl       take a transcript in
om context --session ID             print what an agent should know
om log --since 7d --priority high   look at what was written down
"""


def application(arguments: list[str]) -> typer.Typer:
    """The application for these arguments. Where they begin with a command only that one is imported."""
    app = typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        epilog=_EPILOG,
    )
    app.callback(invoke_without_command=True)(om)
    for name in _wanted(arguments):
        module = import_module(f"omcli.cli.{name}")
        app.command(name, epilog=module.EXAMPLES)(getattr(module, name))
    return app


def _wanted(arguments: list[str]) -> Collection[str]:
    first = arguments[0] if arguments else ""
    if first == "--version":
        return ()
    return (first,) if first in COMMANDS else COMMANDS


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"om {__version__}")
        raise typer.Exit


def om(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A durable memory for LLM agents: transcripts in, dated observations and a context pack out."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(BadUsage.exit_code)
