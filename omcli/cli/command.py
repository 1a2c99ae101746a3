"""Commands: functions with declared options, and the `Run` that they receive."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn, TextIO, TypeVar

from omcli.base import ignore, telling
from omcli.base.errors import BadConfiguration, BadUsage, IndexDamaged, InputOutput, NoInput, UnusableStore
from omcli.cli.console import Colour, Console, Exit, counted, unknown_session
from omcli.cli.options import SESSION_VARIABLE, Parameter, StoreOption, counter_names, option, parameters, preset_names
from omcli.cli.output import Output
from omcli.memory.notation import named
from omcli.settings import files, project_folders, resolve
from omcli.settings.settings import FLAG, ServerUrl
from omcli.text.clean import printed_name
from omcli.text.instants import check_number, parse_time
from omcli.wiring import Wiring, check_format

if TYPE_CHECKING:
    from omcli.cli.options import Values
    from omcli.memory.message import TokenCounter
    from omcli.memory.notation import Notation
    from omcli.memory.ports import Store
    from omcli.operations.deps import Deps, ObserverDeps, ReflectorDeps
    from omcli.operations.estimate import CallList
    from omcli.operations.ingest.sessions import TranscriptCounts
    from omcli.operations.replay import EarlierStore
    from omcli.settings.settings import Files, Settings
    from omcli.wiring.unused_key import UnusedKey

_LONGEST_WAIT = 86_400
_OF_STORE = (InputOutput.exit_code, UnusableStore.exit_code)
_Layout = TypeVar("_Layout", bound=StrEnum)
"""An enumeration of layouts that includes `text` and `json`."""


class Run:
    """One run of a command: its shared options, settings, wiring, stdout and stderr."""

    def __init__(
        self,
        *,
        db: StoreOption = None,
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
        verbose: Annotated[
            bool, option("--verbose", "-v", help="Print more on stderr, such as names of unknown record types.")
        ] = False,
        strict: Annotated[bool, option("--strict", help="Treat warnings as errors.")] = False,
        directory: Annotated[Path | None, option("-C", "--directory", metavar="DIR", help="Run as if in DIR.")] = None,
        colour: Annotated[Colour, option("--color", help="When to use colour.")] = Colour.AUTO,
    ) -> None:
        """Store the values of the shared options, and change to the directory of `-C`. Raise BadUsage if `--wait` or
        `--now` is invalid, and NoInput if the directory cannot be entered.
        """
        self.json = json
        self.strict = strict
        self.is_verbose = verbose
        self.console = Console(quiet=quiet, as_json=json, verbose=verbose, colour=colour)
        self.output = Output(colour, before=self.console.before_output, warn=self.console.warn)
        self._flags: dict[str, object] = {"db": db, "preset": preset, "counter": counter}
        self._flags["wait"] = check_number(wait, option="--wait ", most=_LONGEST_WAIT)
        self._config = config
        self._now = parse_time(now, option="--now ")
        self._project: str | None = None
        self.is_for_agent = False
        """True for a run that is part of another one and answers an agent, which sees only its own project."""
        if directory is not None:
            _enter(directory)

    def apply_options(self, flags: Mapping[str, object]) -> None:
        """Override settings with options of the command, before `settings` is first used; None means not given."""
        self._flags |= flags

    def part(self, *, into: TextIO, notes: TextIO, project: str | None = None) -> Run:
        """Return another run with the same store, settings and time. It prints text, without colour, to these streams,
        and reads the settings and opens the store again. If a project is given, it stands in for the current directory.
        """
        from copy import copy

        run = copy(self)
        for name in ("settings", "wiring", "counter", "unused_key"):
            vars(run).pop(name, None)
        run.json, run.is_for_agent = False, True
        run.output, run.console = Output(Colour.NEVER, into=into), Console(colour=Colour.NEVER, into=notes)
        run._flags, run._project = dict(self._flags), project or self._project  # noqa: SLF001 - the same class
        return run

    @cached_property
    def settings(self) -> Settings:
        """The settings of the run. On first use, warnings and notes about them are printed.

        Raise the errors of `settings.resolve`, and BadConfiguration on any warning with `--strict`.
        """
        settings = resolve(self._flags, os.environ, config=self._config)
        for warning in settings.warnings:
            self._warn(warning)
        for note in settings.notes:
            self.console.note(note)
        return settings

    @property
    def shared_arguments(self) -> list[str]:
        """The shared options that determine the store, the settings and the time, as arguments for another `om`
        process. `-C` is left out because the process inherits the directory.
        """
        shared = ("db", "preset", "counter", "wait")
        given = {name: self._flags[name] for name in shared} | {"config": self._config, "now": self._now}
        return [f"--{name}={value}" for name, value in given.items() if value is not None]

    @property
    def files(self) -> Files:
        """The configuration files of the run."""
        return files(os.environ, self._config)

    @cached_property
    def wiring(self) -> Wiring:
        """The wiring for the settings; its store is opened on first use."""
        return self.new_wiring()

    def new_wiring(self) -> Wiring:
        """Return another wiring, which opens the store again. The caller closes it."""
        return Wiring(self.settings, now=self._now, tell=self.console.note)

    @cached_property
    def counter(self) -> TokenCounter:
        """The token counter in the settings. If that is unknown or unavailable, print a warning and use the default one
        or, with `--strict`, raise BadConfiguration. Raise BadUsage if `--counter` names an unknown counter.
        """
        return self.wiring.counter_or_default(self._warn)

    def notation(self, name: str | None) -> Notation:
        """Return the notation with this name, or for None the one in the settings. Raise BadUsage for unknown names."""
        return self.wiring.notation_or_default(self._warn) if name is None else named(name)

    def is_read_only(self, consequence: str) -> bool:
        """Return True if the settings disable writing. In that case, print a note with the setting's origin and the
        consequence, unless the command itself has disabled writing.
        """
        if self.settings.disabled and self.settings.origin("disabled") != FLAG:
            self.console.note(f"disabled by {self.settings.origin('disabled')}: {consequence}")
        return self.settings.disabled

    def close(self) -> None:
        """Erase the progress line, wait for the pager, and close the store if it was opened."""
        self.console.clear()
        self.output.close()
        if "wiring" in vars(self):
            self.wiring.close()

    @property
    def project(self) -> str:
        """The current directory, as a project. Raise NoInput if it was deleted."""
        if self._project is not None:
            return self._project
        try:
            return str(Path.cwd())
        except FileNotFoundError:
            raise NoInput("the current directory no longer exists") from None

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders above the current directory that may be its project, the nearest first."""
        if self._project is not None:
            return ()
        return tuple(str(folder) for folder in tuple(project_folders())[1:] if folder != folder.parent)

    @property
    def active_session(self) -> str | None:
        """The session id that an agent has set in the environment, if any."""
        return printed_name(os.environ.get(SESSION_VARIABLE, "")) or None

    def session(self, reference: str | None, *, may_be_new: bool = False) -> str | None:
        """Return the id of the session that `--session` names, or None if it names none.

        The session of the running agent need not be stored yet. Raise BadUsage if the reference is empty, and
        UnknownSession as `lookup.session_id` does.
        """
        check_session(reference)
        if reference in (None, self.active_session) or self.wiring.reading.sessions.find(reference):
            return reference
        from omcli.operations.lookup import session_id

        return session_id(self.wiring.reading, printed_name(reference), may_be_new=may_be_new)

    def session_or_new(self, reference: str | None) -> str | None:
        """Return the id of the session to store something in, or None (see `lookup.session_id_or_new`). Raise as
        `session` does.

        A note is printed if the reference is taken for the id of a new session although known ids begin with it.
        """
        check_session(reference)
        if reference in (None, self.active_session) or (known := self.wiring.reading.sessions).find(reference):
            return reference
        from omcli.operations.lookup import session_id_or_new

        reference = printed_name(reference)
        session = session_id_or_new(self.wiring.reading, reference)
        if session == reference and (alike := known.ids(reference)) and reference not in alike:
            self.console.note(f"new session `{reference}`, not {counted(len(alike), 'session')} like `{alike[0]}`")
        return session

    def layout(self, to: _Layout) -> _Layout:
        """Return the layout chosen by `--to` and `--json`. Raise BadUsage if they contradict each other."""
        if self.json and to not in ("text", "json"):
            raise BadUsage(f"`--json` and `--to {to}` exclude each other")
        return type(to)("json") if self.json else to

    def check_stream(self, *, jsonl: bool) -> None:
        """Raise BadUsage if both `--json` and `--jsonl` are given."""
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
        """Return the dependencies of operations. The run's wiring is used unless another is given, and rules unless
        models are given.
        """
        return (wiring or self.wiring).deps(
            self.counter,
            self._show_progress,
            warn=self.console.warn,
            busy=self.console.progress,
            steps=self.console.steps,
            observer=observer,
            reflector=reflector,
            open_store=open_store,
            wait=wait,
        )

    def deps_or_empty(self, *, observer: ObserverDeps | None = None, reflector: ReflectorDeps | None = None) -> Deps:
        """Return dependencies whose store is empty and in memory if there is no store yet; no file is created."""
        return self.deps(observer=observer, reflector=reflector, open_store=lambda: self.wiring.store_or_empty)

    def observer(self, wiring: Wiring | None = None, *, batch_tokens: int | None = None) -> ObserverDeps:
        """Return the observer of the settings: a model, or rules. Raise as `Wiring.observer` does."""
        found = (wiring or self.wiring).observer(self.counter, warn=self.console.warn, batch_tokens=batch_tokens)
        return found if found.is_model or self.unused_key is None else self.unused_key.watch(found, self.settings)

    @cached_property
    def unused_key(self) -> UnusedKey | None:
        """The API key in the environment, if there is one and neither a model nor rules were chosen."""
        from omcli.wiring.models import endpoint_with_key

        if endpoint_with_key(os.environ) is None:
            return None
        from omcli.wiring.unused_key import UnusedKey

        return UnusedKey.find(self.settings, os.environ)

    def reflector(self, wiring: Wiring | None = None) -> ReflectorDeps:
        """Return the reflector of the settings: a model, or rules. Raise as `Wiring.reflector` does."""
        return (wiring or self.wiring).reflector(self.counter, warn=self.console.warn)

    @contextmanager
    def estimating(self) -> Iterator[CallList]:
        """Work on a private copy of the store inside the block, and collect the model calls instead of making them."""
        usual = self.wiring
        with usual.estimating() as (wiring, calls):
            self.wiring = wiring
            try:
                yield calls
            finally:
                self.wiring = usual

    @contextmanager
    def as_of(self, moment: str) -> Iterator[EarlierStore]:
        """Work at a moment inside the block, on a private copy of the store as it was then."""
        usual = self.wiring
        with usual.as_of(moment) as (wiring, earlier):
            self.wiring = wiring
            try:
                yield earlier
            finally:
                self.wiring = usual

    @contextmanager
    def with_store_checked(self) -> Iterator[None]:
        """Mend a store that proves damaged inside the block, and raise the error that says so: rebuild its index of
        words as `Wiring.with_index` does, or put its last backup in its place if the run may write to it.
        """
        try:
            yield
        except IndexDamaged:
            with self.wiring.with_index():
                raise
        except (InputOutput, UnusableStore, Exit) as error:
            done = self._replace_damaged_store() if error.exit_code in _OF_STORE else None
            if done is not None and not isinstance(error, Exit):
                raise done from error
            if done is not None:
                self.console.error(done)  # after those that the command has printed
            raise

    def _replace_damaged_store(self) -> InputOutput | None:
        if "wiring" not in vars(self) or not self.wiring.may_write or isinstance(self.settings.db, ServerUrl):
            return None
        from omcli.sqlite.restore import replace_damaged

        self.wiring.close()
        return replace_damaged(self.wiring.spool_path, now=self.wiring.clock.now(), wait=self.settings.wait)

    def _show_progress(self, name: str, tally: TranscriptCounts) -> None:
        self.console.progress(f"{name}: {counted(tally.counts.messages, 'message')}")

    def note_unknown_session(self, session: str) -> None:
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
        """The command's own parameters, then those of its option groups, then the shared options."""
        return (*parameters(self._function), *(each for group in (*self._groups, Run) for each in self._of(group)))

    def run(self, values: Values) -> None:
        """Run the command with these values. Raise OmError if it fails, or Exit with the code if it is not 0."""
        own = dict(values)
        run, *groups = (
            group(**{each.name: own.pop(each.name) for each in self._of(group)}) for group in (Run, *self._groups)
        )
        _handle_interrupt()
        telling.set(run.console.step if run.console.shows_progress else ignore)
        with closing(run), run.with_store_checked():
            self._function(run, *groups, **own)

    def call(self, run: Run, **values: object) -> None:
        """Run the command as a part of another one. Pass its option groups too; other options have their defaults."""
        self._function(run, **values)

    def _of(self, group: type) -> tuple[Parameter, ...]:
        """Return the parameters of an option group, except those that the command does not have. A name that the
        command's own option has, such as `-C` of `om recall`, stands for that option only.
        """
        own = {name for each in parameters(self._function) for name in each.declared.names}
        shared = (each for each in parameters(group.__init__) if each.name not in self._without)  # type: ignore[misc]
        return tuple(each if own.isdisjoint(each.declared.names) else each.without_names(own) for each in shared)


def with_shared(
    *groups: type, examples: str, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], CliCommand]:
    """Return a decorator that makes a command of a function. The function takes a `Run`, then one object per option
    group.

    `without` names the options that the command does not have, although `Run` or a group declares them.
    """

    def as_command(function: Callable[..., None]) -> CliCommand:
        return CliCommand(function, groups, examples=examples, without=without)

    return as_command


def shared_options() -> tuple[Parameter, ...]:
    """Return the options that all commands share; they can precede or follow the command."""
    return parameters(Run.__init__)


# ---- signals


def _handle_interrupt() -> None:
    """Make Ctrl-C raise KeyboardInterrupt from now on, unless it is ignored, so that the run releases its leases."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    ignore_unraisable()
    raise KeyboardInterrupt


def ignore_unraisable() -> None:
    """Stop printing unraisable exceptions. Call this once a signal has ended the run.

    If the signal arrives while a `with` block is being entered, Python closes the suspended generator only after the
    store is closed, and that fails. An unraisable KeyboardInterrupt or SystemExit still ends the run.
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
    """Raise BadUsage if no transcript is given and stdin is a terminal, the format is unknown, or the session empty."""
    if not given and is_terminal_input():
        raise BadUsage("no transcript given", hint=f"`om {command} FILE`, or `om {command} < FILE`")
    check_session(session)
    if format_name:
        check_format(format_name)


def check_session(reference: str | None) -> None:
    """Raise BadUsage if `--session` is given but empty."""
    if reference is not None and not reference.strip():
        raise BadUsage("`--session` is empty")


def is_terminal_input() -> bool:
    """Return True if stdin is a terminal, so that no input can be read from it."""
    return sys.stdin is not None and sys.stdin.isatty()


def _enter(directory: Path) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        raise NoInput(f"cannot change to {directory}: {error.strerror}") from None
