"""The one place that chooses adapters; each is imported and built when it is first asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from omcli.memory.errors import BadInput, NoInput

if TYPE_CHECKING:
    from omcli.memory.ports import Store, TokenCounter
    from omcli.memory.transcript import Item, Transcript
    from omcli.operations.clock import Clock
    from omcli.operations.tally import Tally
    from omcli.operations.workshop import Workshop
    from omcli.settings.settings import Settings

STDIN = "-"
"""The name that means standard input."""


class Wiring:
    """What one run works with, made from its settings."""

    def __init__(self, settings: Settings, *, now: str | None = None) -> None:
        """`now` pins the clock to an instant."""
        self.settings = settings
        self._now = now

    @cached_property
    def clock(self) -> Clock:
        """The time."""
        from omcli.operations.clock import Clock

        return Clock(self._now)

    def counter(self, name: str | None) -> TokenCounter:
        """The token counter of this name, or the default one. Raises BadUsage, BadConfiguration."""
        from omcli.tokenizers.table import DEFAULT, counter

        return counter(name or DEFAULT)

    @cached_property
    def store(self) -> Store:
        """The store, made if there is none. Raises CannotCreate, InputOutput, StoreLocked, BadConfiguration."""
        return self._open(read_only=False)

    @cached_property
    def reading(self) -> Store:
        """The store for reading only: nothing is written, and where there is none it is empty."""
        return self._open(read_only=True)

    @property
    def store_size(self) -> int | None:
        """Bytes of the store and of the log that SQLite keeps beside it; None where there is no store."""
        db = self.settings.db
        files = [db, db.with_name(f"{db.name}-wal")]
        return sum(file.stat().st_size for file in files if file.exists()) if db.exists() else None

    @property
    def schema_version(self) -> int:
        """The schema that stores are read and written in; an older one is brought up to it."""
        from omcli.sqlite.migrate import steps

        return len(steps())

    def _open(self, *, read_only: bool) -> Store:
        from omcli.sqlite.store import SqliteStore

        return SqliteStore.open(self.settings.db, wait=self.settings.wait, read_only=read_only)

    def workshop(self, counter: TokenCounter, progress: Callable[[str, Tally], None]) -> Workshop:
        """What taking transcripts in works with."""
        from omcli.memory.observation import Source as WrittenBy
        from omcli.observers.rules import RuleObserver
        from omcli.operations.workshop import Workshop

        return Workshop(
            open_store=lambda: self.store,
            counter=counter,
            observer=RuleObserver(),
            written_by=WrittenBy.RULES,
            clock=self.clock,
            new_id=self.new_id,
            owner=self.owner,
            wait=self.settings.wait,
            progress=progress,
        )

    def new_id(self) -> str:
        """A UUIDv7."""
        return uuid7(self.clock.milliseconds(), int.from_bytes(os.urandom(10), "big"))

    @property
    def owner(self) -> str:
        """Who holds the leases of this process."""
        from omcli.sqlite.owner import this_process

        return this_process()


@contextmanager
def transcript(name: str, *, format_name: str | None = None) -> Iterator[Transcript]:
    """Opens a file, or standard input, as a transcript of the format named, or recognised.

    Raises NoInput, also while it is read, and BadInput for a directory and for what no reader recognises.
    """
    with _opened(name) as stream:
        yield transcript_in(stream, format_name=format_name)


def content(name: str) -> bytes:
    """All of a file, or of standard input. Raises NoInput, BadInput."""
    with _opened(name) as stream, _readable():
        return stream.read()


def transcript_in(stream: BinaryIO, *, format_name: str | None = None) -> Transcript:
    """A stream as a transcript of the format named, or recognised. Raises UnknownFormat, NoInput."""
    from omcli.formats.source import Shape, Source
    from omcli.formats.table import named, recognised
    from omcli.memory.transcript import Transcript

    with _readable():
        source = Source(stream)
        if source.shape is Shape.EMPTY:
            return Transcript(format=None, items=())
        chosen = named(format_name) if format_name else recognised(source)
    return Transcript(format=chosen.name, copies=chosen.copies, items=_reading(chosen.read(source)))


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    """A file, or standard input. Raises NoInput, BadInput."""
    if name == STDIN:
        if sys.stdin is None:
            raise NoInput("standard input is closed")
        yield sys.stdin.buffer
        return
    try:
        stream = Path(name).open("rb")  # noqa: SIM115 - only what opening raises is meant here
    except FileNotFoundError:
        raise NoInput("there is no such file", hint="check the path; `-` is standard input") from None
    except PermissionError:
        raise NoInput("the file may not be read") from None
    except IsADirectoryError:
        raise BadInput("it is a directory", hint=f"name the transcripts in it: `om observe {name}/*.jsonl`") from None
    except OSError as error:
        raise NoInput(f"it cannot be opened: {error.strerror}") from error
    with stream:
        yield stream


def _reading(items: Iterator[Item]) -> Iterator[Item]:
    with _readable():
        yield from items


@contextmanager
def _readable() -> Iterator[None]:
    """Says in our words what the disk refuses while an input is read. Raises NoInput."""
    try:
        yield
    except OSError as error:
        raise NoInput(f"it cannot be read: {error.strerror}") from error


def check_format(name: str) -> None:
    """Raises BadUsage for a format that does not exist."""
    from omcli.formats.table import named

    named(name)


def formats() -> tuple[str, ...]:
    """Names of the formats."""
    from omcli.formats.table import FORMATS

    return tuple(entry.name for entry in FORMATS)


def counters() -> tuple[str, ...]:
    """Names of the token counters."""
    from omcli.tokenizers.table import NAMES

    return NAMES


def uuid7(milliseconds: int, randomness: int) -> str:
    """The UUIDv7 of an instant and (at least) 74 random bits."""
    tail = 0x7 << 76 | (randomness >> 62 & 0xFFF) << 64 | 0b10 << 62 | randomness & (1 << 62) - 1
    digits = f"{(milliseconds & (1 << 48) - 1) << 80 | tail:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
