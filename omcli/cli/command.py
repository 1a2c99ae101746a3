"""A command: a function with declared parameters, and the run it receives."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from types import FrameType
from typing import NoReturn

from omcli.cli.arguments import Parameter, Values, parameters
from omcli.cli.commands import COMMANDS
from omcli.cli.run import Run


class CliCommand:
    """A command with its parameters, help and examples."""

    def __init__(self, function: Callable[..., None], *, examples: str, without: Collection[str]) -> None:
        self.__doc__ = function.__doc__
        self.examples = examples
        self._function = function
        self._without = without

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its own parameters, then the shared ones."""
        return (*parameters(self._function), *self._shared)

    @cached_property
    def _shared(self) -> tuple[Parameter, ...]:
        return tuple(each for each in shared_options() if each.name not in self._without)

    def run(self, values: Values) -> None:
        """Run it with the values of a command line. Raise OmError, or Exit if it failed and said so."""
        own = dict(values)
        run = Run(**{each.name: own.pop(each.name) for each in self._shared})  # type: ignore[arg-type]
        _handle_interrupt()
        with closing(run):
            self._function(run, **own)


def with_shared(*, examples: str, without: Collection[str] = ()) -> Callable[[Callable[..., None]], CliCommand]:
    """Make a command of a function that takes a `Run` first; `without` names shared options it does not have."""

    def as_command(function: Callable[..., None]) -> CliCommand:
        return CliCommand(function, examples=examples, without=without)

    return as_command


def shared_options() -> tuple[Parameter, ...]:
    """The options that may be given after any command, or before it."""
    return parameters(Run.__init__)


def command_first(arguments: Sequence[str]) -> list[str]:
    """Move shared options that precede the command to a place after it.

    Any other line is returned unchanged, so that Typer reports the error.
    """
    options = {name: parameter for parameter in shared_options() for name in parameter.declared.names}
    rest = iter(enumerate(arguments))
    for at, word in rest:
        if word in COMMANDS:
            return [word, *arguments[:at], *arguments[at + 1 :]]
        takes_next = _takes_next(options, word)
        if takes_next is None:
            break
        if takes_next:
            next(rest, None)
    return list(arguments)


def _takes_next(options: Mapping[str, Parameter], word: str) -> bool | None:
    """True if the next word is this option's value; None for an unknown option (`-qC DIR` is `-q -C DIR`)."""
    if word.startswith("--"):
        name, has_value, _ = word.partition("=")
        return None if name not in options else options[name].kind is not bool and not has_value
    if not word.startswith("-") or word == "-":
        return None
    for at, letter in enumerate(word[1:], start=2):
        option = options.get(f"-{letter}")
        if option is None:
            return None
        if option.kind is not bool:
            return at == len(word)
    return False


def _handle_interrupt() -> None:
    """Let Ctrl-C unwind the run from here on, so that it releases its leases."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    ignore_unraisable()
    raise KeyboardInterrupt


def ignore_unraisable() -> None:
    """From here on, do not print errors that Python cannot raise.

    A signal that arrives as a `with` block is entered leaves its generator suspended. It is closed only after the store
    is, and then fails. If Exit itself could not be raised, the run still ends.
    """
    sys.unraisablehook = _end_or_ignore


def _end_or_ignore(ignored: sys.UnraisableHookArgs) -> None:
    error = ignored.exc_value
    while error is not None:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            sys.excepthook(type(error), error, None)
        error = error.__cause__ or error.__context__
