"""A command: a function with declared parameters, and the run it receives, with settings, wiring and streams."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

from omcli.base.errors import BadConfiguration, BadUsage, NoInput
from omcli.cli.console import Colour, Console, counted
from omcli.cli.options import Parameter, Values, counter_names, option, parameters, preset_names
from omcli.cli.output import Output
from omcli.memory.notation import named
from omcli.settings import files, resolve
from omcli.text.instants import check_number, parse_time
from omcli.wiring import Wiring, check_format

if TYPE_CHECKING:
    from omcli.memory.message import TokenCounter
    from omcli.memory.notation import Notation
    from omcli.memory.ports import Store
    from omcli.operations.deps import Deps, ObserverDeps, ReflectorDeps
    from omcli.operations.ingest.sessions import TranscriptCounts
    from omcli.settings.settings import Files, Settings
    from omcli.wiring import Wiring


_LONGEST_WAIT = 86_400
_Layout = TypeVar("_Layout", bound=StrEnum)
"""An enumeration of layouts, `text` and `json` among them."""


class Run:
    """One run of a command: its shared options, settings, wiring, stdout and stderr."""

    def __init__(
        self,
        *,
        db: Annotated[Path | None, option("--db", metavar="PATH", help="Store to use.  [env: OM_DB]")] = None,
        preset: Annotated[
            str | None,
            option(
                "--preset",
                metavar="NAME",
                help="Preset to use: default, zora, lango, duet, pi, coding, mastra.  [env: OM_PRESET]",
                autocompletion=preset_names,
            ),
        ] = None,
        config: Annotated[
            Path | None, option("--config", metavar="FILE", help="Configuration file to use.  [env: OM_CONFIG]")
        ] = None,
        counter: Annotated[
            str | None,
            option(
                "--counter",
                metavar="NAME",
                help="Token counter to use.  [env: OM_COUNTER]",
                autocompletion=counter_names,
            ),
        ] = None,
        wait: Annotated[
            float | None,
            option(
                "--wait",
                metavar="SECONDS",
                help="Seconds to wait for another process's lock.  [env: OM_WAIT; default: 10]",
            ),
        ] = None,
        now: Annotated[str | None, option("--now", metavar="TIME", help="Use this as the current time.")] = None,
        json: Annotated[bool, option("--json", help="Print one JSON document.")] = False,
        quiet: Annotated[bool, option("--quiet", "-q", help="Print no progress, notes or warnings on stderr.")] = False,
        strict: Annotated[bool, option("--strict", help="Treat warnings as errors.")] = False,
        directory: Annotated[Path | None, option("-C", metavar="DIR", help="Run as if started in DIR.")] = None,
        colour: Annotated[Colour, option("--color", help="When to use colour.")] = Colour.AUTO,
    ) -> None:
        """Take the values of the shared options. Raise BadUsage, NoInput."""
        self.json = json
        self.strict = strict
        self.console = Console(quiet=quiet, as_json=json, colour=colour)
        self.output = Output(colour, before=self.console.clear)
        self._flags: dict[str, object] = {"db": db, "preset": preset, "counter": counter}
        self._flags["wait"] = check_number(wait, option="--wait ", most=_LONGEST_WAIT)
        self._config = config
        self._now = parse_time(now, option="--now ")
        if directory is not None:
            _enter(directory)

    def apply_options(self, flags: Mapping[str, object]) -> None:
        """Override settings with the command's own options (None if not given). Call it before `settings` is first
        used.
        """
        self._flags |= flags

    @cached_property
    def settings(self) -> Settings:
        """The settings; warnings about them are printed once. Raise BadConfiguration, BadUsage."""
        settings = resolve(self._flags, os.environ, config=self._config)
        for warning in settings.warnings:
            self._warn(warning)
        return settings

    @property
    def shared_arguments(self) -> list[str]:
        """The shared options, for another run on this store; not `-C`, which is inherited."""
        shared = ("db", "preset", "counter", "wait")
        given = {name: self._flags[name] for name in shared} | {"config": self._config, "now": self._now}
        return [f"--{name}={value}" for name, value in given.items() if value is not None]

    @property
    def files(self) -> Files:
        """The configuration files to look for."""
        return files(os.environ, self._config)

    @cached_property
    def wiring(self) -> Wiring:
        """The adapters that the settings choose."""
        return self.new_wiring()

    def new_wiring(self) -> Wiring:
        """Wiring with a store opened anew; the caller closes it."""
        return Wiring(self.settings, now=self._now)

    @cached_property
    def counter(self) -> TokenCounter:
        """The token counter of the settings; if it is unavailable, the default one, with a warning."""
        return self.wiring.counter_or_default(self._warn)

    def notation(self, name: str | None) -> Notation:
        """The notation with this name, or that of the settings."""
        if name is None:
            return self.wiring.notation_or_default(self._warn)

        return named(name)

    def is_read_only(self, consequence: str) -> bool:
        """True if writing is disabled; then print a note with the setting and the consequence."""
        if self.settings.disabled:
            self.console.note(f"disabled by {self.settings.origin('disabled')}: {consequence}")
        return self.settings.disabled

    def close(self) -> None:
        """Erase progress, and close the store if one was opened."""
        self.console.clear()
        if "wiring" in vars(self):
            self.wiring.close()

    @property
    def project(self) -> str:
        """The current directory as a project. Raise NoInput if it was deleted."""
        try:
            return str(Path.cwd())
        except FileNotFoundError:
            raise NoInput("the current directory no longer exists") from None

    @property
    def active_session(self) -> str | None:
        """The session id from the environment, if an agent sets one."""
        return os.environ.get("CLAUDE_CODE_SESSION_ID")

    def layout(self, to: _Layout) -> _Layout:
        """The layout that `--to` and `--json` choose. Raise BadUsage if they exclude each other."""
        if self.json and to not in ("text", "json"):
            raise BadUsage(f"`--json` and `--to {to}` exclude each other")
        return type(to)("json") if self.json else to

    def check_stream(self, *, jsonl: bool) -> None:
        """Raise BadUsage if both one document and a stream are asked for."""
        if self.json and jsonl:
            raise BadUsage("`--json` and `--jsonl` exclude each other")

    def deps(
        self,
        wiring: Wiring | None = None,
        *,
        observer: ObserverDeps | None = None,
        reflector: ReflectorDeps | None = None,
        open_store: Callable[[], Store] | None = None,
        wait: float | None = None,
    ) -> Deps:
        """The dependencies of operations, from the run's wiring or the given one; rules unless others are given."""
        return (wiring or self.wiring).deps(
            self.counter,
            self._show_progress,
            warn=self.console.warn,
            busy=self.console.progress,
            observer=observer,
            reflector=reflector,
            open_store=open_store,
            wait=wait,
        )

    def deps_or_empty(self, *, observer: ObserverDeps | None = None, reflector: ReflectorDeps | None = None) -> Deps:
        """Dependencies for an existing store; a missing one is not created."""
        return self.deps(observer=observer, reflector=reflector, open_store=lambda: self.wiring.store_or_empty)

    def observer(self, wiring: Wiring | None = None, *, batch_tokens: int | None = None) -> ObserverDeps:
        """The model that observes, or rules. Raise as `Wiring.observer` does."""
        return (wiring or self.wiring).observer(self.counter, warn=self.console.warn, batch_tokens=batch_tokens)

    def reflector(self, wiring: Wiring | None = None) -> ReflectorDeps:
        """The model that reflects, or rules. Raise as `Wiring.reflector` does."""
        return (wiring or self.wiring).reflector(self.counter, warn=self.console.warn)

    def _show_progress(self, name: str, tally: TranscriptCounts) -> None:
        self.console.progress(f"{name}: {counted(tally.counts.messages, 'message')}")

    def note_unknown_session(self, session: str) -> None:
        """Print a note that the session is unknown."""
        self.console.note(unknown_session(session))

    def _warn(self, warning: str) -> None:
        if self.strict:
            raise BadConfiguration(warning)
        self.console.warn(warning)


class CliCommand:
    """A command with its parameters, help and examples."""

    def __init__(
        self, function: Callable[..., None], groups: Sequence[type], *, examples: str, without: Collection[str]
    ) -> None:
        self.__doc__ = function.__doc__
        self.examples = examples
        self._function = function
        self._groups = groups
        self._without = without

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its own parameters, those of its groups, and the shared ones."""
        return (*parameters(self._function), *(each for group in (*self._groups, Run) for each in self._of(group)))

    def run(self, values: Values) -> None:
        """Run it with the values of a command line. Raise OmError, or Exit if it failed and printed why."""
        own = dict(values)
        run, *groups = (
            group(**{each.name: own.pop(each.name) for each in self._of(group)}) for group in (Run, *self._groups)
        )
        _handle_interrupt()
        with closing(run):
            self._function(run, *groups, **own)

    def _of(self, group: type) -> tuple[Parameter, ...]:
        """The parameters of a group that the command has."""
        return tuple(each for each in parameters(group.__init__) if each.name not in self._without)  # type: ignore[misc]


def with_shared(
    *groups: type, examples: str, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], CliCommand]:
    """Make a command of a function that takes a `Run` and, after it, one object for each group of options.

    `without` names the options of `Run` and the groups that the command does not have.
    """

    def as_command(function: Callable[..., None]) -> CliCommand:
        return CliCommand(function, groups, examples=examples, without=without)

    return as_command


def shared_options() -> tuple[Parameter, ...]:
    """The options that may be given after any command, or before it."""
    return parameters(Run.__init__)


# ---- signals


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


# ---- checks and values that several commands need


def check_transcript(command: str, *, given: bool, format_name: str | None, session: str | None) -> None:
    """Raise BadUsage for a missing transcript, an unknown format and an empty session."""
    if not given and is_terminal_input():
        raise BadUsage("no transcript given", hint=f"`om {command} FILE`, or `om {command} < FILE`")
    if session is not None and not session.strip():
        raise BadUsage("`--session` is empty")
    if format_name:
        check_format(format_name)


def unknown_session(session: str) -> str:
    """A note about a session that the store does not have."""
    return f"unknown session `{session}`; `om sessions` lists them"


def is_terminal_input() -> bool:
    """True if stdin is a terminal, so that there is nothing to read."""
    return sys.stdin is not None and sys.stdin.isatty()


def _enter(directory: Path) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        raise NoInput(f"cannot change to {directory}: {error.strerror}") from None
