"""One run of a command: the shared options and what they lead to."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from omcli.base.errors import BadConfiguration, BadUsage, NoInput
from omcli.cli.arguments import option
from omcli.cli.console import Console, counted
from omcli.cli.options import counter_names, preset_names
from omcli.cli.output import Colour, Output
from omcli.text.dates.instants import pinned, seconds

if TYPE_CHECKING:
    from omcli.memory.notation import Notation
    from omcli.memory.tokens import TokenCounter
    from omcli.operations.deps import Workshop
    from omcli.operations.ingest.counts import TranscriptCounts
    from omcli.settings.settings import Files, Settings
    from omcli.wiring import Wiring


LARGEST = 1_000_000_000
"""What a number of rows or tokens is cut down to: more there never is, and SQLite wants 64 bits."""
_LONGEST_WAIT = 86_400
_Layout = TypeVar("_Layout", bound=StrEnum)
"""A way to print, one of several: `text` and `json` are among them."""


class Run:
    """One run of a command: what the shared options say, the adapters they lead to, and the two ways to speak."""

    def __init__(
        self,
        *,
        db: Annotated[
            Path | None, option("--db", metavar="PATH", help="The store.  [env: OM_DB]", show_default=False)
        ] = None,
        preset: Annotated[
            str | None,
            option(
                "--preset",
                metavar="NAME",
                help="Whose ways to go by.  [env: OM_PRESET]",
                autocompletion=preset_names,
            ),
        ] = None,
        config: Annotated[
            Path | None,
            option("--config", metavar="FILE", help="Your configuration.  [env: OM_CONFIG]", show_default=False),
        ] = None,
        counter: Annotated[
            str | None,
            option(
                "--counter",
                metavar="NAME",
                help="How tokens are counted.  [env: OM_COUNTER]",
                autocompletion=counter_names,
            ),
        ] = None,
        wait: Annotated[
            float | None,
            option("--wait", metavar="SECONDS", help="How long to wait for others.  [env: OM_WAIT; 10]"),
        ] = None,
        now: Annotated[str | None, option("--now", metavar="TIME", help="Pretend that this is now.")] = None,
        json: Annotated[bool, option("--json", help="Print one JSON document.")] = False,
        quiet: Annotated[bool, option("--quiet", "-q", help="Say nothing on stderr but errors.")] = False,
        strict: Annotated[bool, option("--strict", help="Turn warnings into errors.")] = False,
        directory: Annotated[
            Path | None, option("-C", metavar="DIR", help="Run as if started in DIR.", show_default=False)
        ] = None,
        colour: Annotated[Colour, option("--color", help="When to use colour.")] = Colour.AUTO,
    ) -> None:
        """Takes the options as they were given. Raises BadUsage, NoInput, BadConfiguration."""
        self.json = json
        self.strict = strict
        self.console = Console(quiet=quiet, as_json=json)
        self.output = Output(colour, before=self.console.clear)
        self._flags: dict[str, object] = {"db": db, "preset": preset, "counter": counter}
        self._flags["wait"] = seconds(wait, option="--wait ", most=_LONGEST_WAIT)
        self._config = config
        self._now = pinned(now, option="--now ")
        if directory is not None:
            _enter(directory)

    def override(self, flags: Mapping[str, object]) -> None:
        """What a command's own options say, by key, None where they are silent. Before `settings` is asked for."""
        self._flags |= flags

    @cached_property
    def settings(self) -> Settings:
        """The settings; what is wrong with them is said once. Raises BadConfiguration, BadUsage."""
        from omcli.settings.resolve import resolve

        settings = resolve(self._flags, os.environ, config=self._config)
        for warning in settings.warnings:
            self._warn(warning)
        return settings

    @property
    def shared_argv(self) -> list[str]:
        """What was said on the command line of where and by what settings to work, for another run that goes by them.

        Not `-C`: that one starts where this one is.
        """
        shared = ("db", "preset", "counter", "wait")
        said = {name: self._flags[name] for name in shared} | {"config": self._config, "now": self._now}
        return [f"--{name}={value}" for name, value in said.items() if value is not None]

    @property
    def files(self) -> Files:
        """Where configuration is looked for."""
        from omcli.settings.resolve import files

        return files(os.environ, self._config)

    @cached_property
    def wiring(self) -> Wiring:
        """What the run works with."""
        from omcli.wiring import Wiring

        return Wiring(self.settings, now=self._now)

    def another_wiring(self) -> Wiring:
        """The same once more, with a store that is opened anew; whoever asks for it closes it."""
        from omcli.wiring import Wiring

        return Wiring(self.settings, now=self._now)

    @cached_property
    def counter(self) -> TokenCounter:
        """The token counter that was asked for. Where it can't be had that is said, and the default one counts."""
        return self.wiring.counter_or_default(self._warn)

    def notation(self, asked: str | None) -> Notation:
        """How rows are written: as asked for on the command line, else as the settings say."""
        if asked is None:
            return self.wiring.notation_or_default(self._warn)
        from omcli.memory.notation import named

        return named(asked)

    def is_disabled(self, undone: str) -> bool:
        """Whether nothing is to be written; people are told then who says so, and what is left undone."""
        if self.settings.disabled:
            self.console.note(f"disabled by {self.settings.origin('disabled')}: {undone}")
        return self.settings.disabled

    def close(self) -> None:
        """Ends it: the store is closed, where one was opened."""
        if "wiring" in vars(self):
            self.wiring.close()

    @property
    def project(self) -> str:
        """The project that the current directory is. Raises NoInput where that has been deleted."""
        try:
            return str(Path.cwd())
        except FileNotFoundError:
            raise NoInput("the current directory does not exist any more") from None

    @property
    def current_session(self) -> str | None:
        """The session that the environment says is going on."""
        return os.environ.get("CLAUDE_CODE_SESSION_ID")

    def layout(self, to: _Layout) -> _Layout:
        """How something is printed, by `--to` and `--json`. Raises BadUsage where they exclude each other."""
        if self.json and to not in ("text", "json"):
            raise BadUsage(f"`--json` and `--to {to}` exclude each other")
        return type(to)("json") if self.json else to

    def check_stream(self, *, jsonl: bool) -> None:
        """Raises BadUsage where one document and a stream are asked for."""
        if self.json and jsonl:
            raise BadUsage("`--json` prints one document, `--jsonl` a stream: only one of them can be had")

    def workshop(self, wiring: Wiring | None = None) -> Workshop:
        """What taking transcripts in works with, of the run's wiring or another one; rules observe.

        What goes wrong on the way is a warning; on a terminal it is shown how far it has come.
        """
        return (wiring or self.wiring).workshop(
            self.counter, self._show_progress, warn=self.console.warn, busy=self.console.progress
        )

    def existing_workshop(self) -> Workshop:
        """The same, for who only works on what is in the store: where there is none, none is made."""
        from omcli.base.record import replace

        return replace(self.workshop(), open_store=lambda: self.wiring.existing)

    def _show_progress(self, name: str, tally: TranscriptCounts) -> None:
        self.console.progress(f"{name}: {counted(tally.counts.messages, 'message')}")

    def note_unknown(self, session: str) -> None:
        """Says that there is no such session."""
        self.console.note(f"there is no session `{session}`; `om sessions` lists them")

    def _warn(self, warning: str) -> None:
        if self.strict:
            raise BadConfiguration(warning)
        self.console.warn(warning)


def check_transcript(command: str, *, given: bool, format_name: str | None, session: str | None) -> None:
    """Raises BadUsage where none is named or piped in, for an unknown format and for an empty session."""
    from omcli.wiring import check_format

    if not given and is_typed():
        raise BadUsage("no transcript given", hint=f"`om {command} FILE`, or `om {command} < FILE`")
    if session is not None and not session.strip():
        raise BadUsage("`--session` is empty")
    if format_name:
        check_format(format_name)


def resolved(project: str | None) -> str | None:
    """A project as it is stored: an absolute path, without a slash at its end."""
    return None if project is None else str(Path(project).expanduser().absolute())


def is_typed() -> bool:
    """Whether standard input is a terminal, where nothing waits to be read."""
    return sys.stdin is not None and sys.stdin.isatty()


def _enter(directory: Path) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        raise NoInput(f"cannot change to {directory}: {error.strerror}") from None
