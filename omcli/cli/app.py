"""The `om` application for Typer: help, completion, and all command lines that `options.plain` does not parse."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import _completion_classes
from typer.completion import get_completion_inspect_parameters
from typer.core import TyperCommand, TyperGroup

from omcli import __version__
from omcli.base.errors import BadUsage
from omcli.cli.command import shared_options
from omcli.cli.commands import GROUPS, command
from omcli.cli.help import VERSION, command_help, main_help

if TYPE_CHECKING:
    from omcli.cli.options import Parameter

_ALIAS = "_alias_of_"


def run_command(arguments: list[str]) -> int:
    """Run `om` with these arguments and return the exit code. Raise BadUsage if they are invalid, or the command's
    error.
    """
    if "_OM_COMPLETE" in os.environ:
        get_completion_inspect_parameters()  # makes Typer register the shells it completes for
        # Otherwise rich, whose import takes longer than all the rest, would remove words in brackets as markup.
        _completion_classes._sanitize_help_text = lambda text: text  # noqa: SLF001
    try:
        result = typer.main.get_command(cli()).main(args=arguments, prog_name="om", standalone_mode=False)
    except typer.TyperException as error:
        raise _usage(error) from None
    return result if isinstance(result, int) else 0


def cli() -> typer.Typer:
    """Return the application. It knows the commands by name and summary; only the one that is run is imported."""
    app = _new(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
    app.callback(invoke_without_command=True)(_with_shared_options())
    for names in GROUPS.values():
        for name, about in names.items():
            app.command(name, help=about)(lambda: None)
    return app


def _new(**settings: Any) -> typer.Typer:
    return typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, **settings)


def as_command(parameters: Collection[Parameter], receive: Callable[[dict[str, object]], None]) -> Callable[..., None]:
    """Return a function for Typer with these parameters. It passes its arguments to `receive` as a dict."""

    def call(**given: object) -> None:
        receive(dict(_merged_values(given)))

    call.__signature__ = inspect.Signature([each for one in parameters for each in _as_parameters(one)])  # type: ignore[attr-defined]
    call.__annotations__ = {}
    return call


def _as_parameters(parameter: Parameter) -> Iterator[inspect.Parameter]:
    """Yield the parameter as Typer declares it. If it has former names, also yield a hidden option with those names."""
    declared = parameter.declared
    settings: dict[str, Any] = dict(declared.settings)
    if parameter.number is not None:
        settings["parser"] = _number_type(parameter.number, declared.at_least)
    info = typer.Option(*declared.names, **settings) if declared.names else typer.Argument(**settings)
    yield inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if parameter.default is ... else parameter.default,
        annotation=Annotated[parameter.kind, info],
    )
    if declared.aliases:
        settings.pop("show_default", None)
        yield inspect.Parameter(
            f"{parameter.name}{_ALIAS}",
            inspect.Parameter.KEYWORD_ONLY,
            default=False if parameter.kind is bool else None,
            annotation=Annotated[
                parameter.kind if parameter.kind is bool else parameter.kind | None,
                typer.Option(*declared.aliases, hidden=True, **settings),
            ],
        )


def _merged_values(given: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Yield each parameter's value. A value given under a former name of the option takes precedence."""
    for name, value in given.items():
        if not name.endswith(_ALIAS):
            former = given.get(f"{name}{_ALIAS}")
            yield name, value if former is None or former is False else former


def _number_type(kind: type[int | float], at_least: int | None) -> Callable[[str], float]:
    expected = "a whole number" if kind is int else "a number"
    if at_least is not None:
        expected += f", at least {at_least}"

    def parse(text: str | float) -> float:  # Typer passes the default through it as well
        try:
            number = kind(text)
        except (ValueError, OverflowError):
            number = None
        if number is None or (at_least is not None and number < at_least):
            raise typer.BadParameter(f"`{text}` is not valid (expected {expected})")
        return number

    return parse


class _Command(TyperCommand):
    """A command whose help is written by `cli.help`."""

    def get_help(self, ctx: Any) -> str:  # noqa: ARG002
        return command_help(self.name or "").rstrip()


class _Group(TyperGroup):
    """`om` itself, whose help is written by `cli.help`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of the command, the command with its parameters, and the words after it."""
        name, found, rest = super().resolve_command(ctx, args)
        if name is None:  # completing the words after an unknown command
            return name, found, rest
        wanted, app = command(name), _new()
        app.command(name, cls=_Command)(as_command(wanted.parameters, wanted.run))
        return name, typer.main.get_command(app), rest

    def get_help(self, ctx: Any) -> str:  # noqa: ARG002
        return main_help().rstrip()


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"om {__version__}")
        raise typer.Exit


def om(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option(VERSION[0], callback=_print_version, is_eager=True, help=VERSION[1])
    ] = False,
) -> None:
    """If no command is given, print the help on stderr and exit with 2."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(BadUsage.exit_code)


def _with_shared_options() -> Callable[..., None]:
    """Return a function like `om` that also has the shared options, so that help and completion show them.

    Their values are not used: `command_first` has already moved the shared options behind the command.
    """

    def call(context: typer.Context, _version: bool, **_shared: object) -> None:
        om(context)

    own = inspect.signature(om, eval_str=True).parameters.values()
    shared = [each for one in shared_options() for each in _as_parameters(one)]
    call.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    call.__annotations__ = {}
    return call


def _usage(error: typer.TyperException) -> BadUsage:
    """Return a usage error from Typer, reworded like om's own errors."""
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "om"
    before_command = context is not None and context.parent is None and "option" in message.lower()
    hint = "options come after the command: `om log --json`" if before_command else f"try `{path} --help`"
    return BadUsage(message[:1].lower() + message[1:], hint=hint)
