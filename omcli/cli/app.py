"""The `om` command and its subcommands, for Typer: help, completion, and every command line that is not plain."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer._click.exceptions import ClickException, UsageError
from typer._completion_classes import completion_init

from omcli import __version__
from omcli.base.errors import BadUsage
from omcli.cli.command import shared_options
from omcli.cli.commands import COMMANDS, command

if TYPE_CHECKING:
    from omcli.cli.arguments import Parameter

_EPILOG = """\b
om observe < transcript.jsonl       take a transcript in
om context --session ID             print what an agent should know
om log --since 7d --priority high   look at what was written down
"""


def run_typer(arguments: list[str]) -> int:
    """Runs `om` with these arguments and gives its exit code. Raises BadUsage, and what the command raises."""
    if "_OM_COMPLETE" in os.environ:
        completion_init()
    try:
        result = typer.main.get_command(application(arguments)).main(
            args=arguments, prog_name="om", standalone_mode=False
        )
    except ClickException as error:
        raise _usage(error) from None
    return result if isinstance(result, int) else 0


def application(arguments: list[str]) -> typer.Typer:
    """The application for these arguments. Where they begin with a command only that one is imported."""
    app = typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        epilog=_EPILOG,
    )
    app.callback(invoke_without_command=True)(_with_shared_options())
    for name in _wanted(arguments):
        found = command(name)
        app.command(name, epilog=found.examples, help=found.__doc__)(with_signature(found.parameters, found.run))
    return app


def with_signature(
    parameters: Collection[Parameter], receive: Callable[[dict[str, object]], None]
) -> Callable[..., None]:
    """A function with these parameters, as Typer reads them, that passes on what it is called with."""

    def call(**given: object) -> None:
        receive(given)

    call.__signature__ = inspect.Signature(list(map(_for_typer, parameters)))  # type: ignore[attr-defined]
    call.__annotations__ = {}
    return call


def _for_typer(parameter: Parameter) -> inspect.Parameter:
    declared = parameter.declared
    settings: dict[str, Any] = dict(declared.settings)
    told = typer.Option(*declared.names, **settings) if declared.names else typer.Argument(**settings)
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if parameter.default is ... else parameter.default,
        annotation=Annotated[parameter.kind, told],
    )


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


def _with_shared_options() -> Callable[..., None]:
    """`om`, with the shared options for its help and for completion; a line that holds them is never read with it."""

    def call(context: typer.Context, _version: bool, **_shared: object) -> None:
        om(context)

    own = inspect.signature(om, eval_str=True).parameters.values()
    call.__signature__ = inspect.Signature([*own, *map(_for_typer, shared_options())])  # type: ignore[attr-defined]
    call.__annotations__ = {}
    call.__doc__ = om.__doc__
    return call


_IN_PLAIN_WORDS = {
    "is not a valid int range": "is no whole number",
    "is not a valid int": "is no whole number",
    "is not a valid float range": "is no number",
    "is not a valid float": "is no number",
}


def _usage(error: ClickException) -> BadUsage:
    """A usage error of Typer's in our words."""
    message = error.format_message().rstrip(".")
    for theirs, ours in _IN_PLAIN_WORDS.items():
        message = message.replace(theirs, ours)
    context = error.ctx if isinstance(error, UsageError) else None
    path = context.command_path if context else "om"
    before_command = context is not None and context.parent is None and "option" in message.lower()
    hint = "options come after the command: `om log --json`" if before_command else f"try `{path} --help`"
    return BadUsage(message[:1].lower() + message[1:], hint=hint)
