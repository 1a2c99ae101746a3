"""The one place that chooses adapters; each is imported and built when it is first asked for."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from omcli import __version__
from omcli.memory.errors import BadInput, NoInput

if TYPE_CHECKING:
    from omcli.formats.format import Format
    from omcli.formats.source import Source
    from omcli.memory.bookmark import Earlier, Origin
    from omcli.memory.ports import Batch, Observed, TokenCounter
    from omcli.memory.transcript import Item, Transcript
    from omcli.operations.clock import Clock
    from omcli.operations.limits import Limit
    from omcli.operations.reflect import Studio
    from omcli.operations.tally import Tally
    from omcli.operations.tick import Due
    from omcli.operations.workshop import Workshop
    from omcli.settings.settings import Settings
    from omcli.sqlite.store import SqliteStore
    from omcli.wiring.models import Surroundings

STDIN = "-"
"""The name that means standard input."""


def _silent(name: str, tally: Tally) -> None:
    """Nobody is shown any progress."""


def _unheard(said: str) -> None:
    """Nobody is told."""


class _Rules:
    """The observer by rules, imported when there is something to observe: a file that has not changed gives nothing."""

    def observe(self, batch: Batch) -> Observed:
        from omcli.observers.rules import RuleObserver

        return RuleObserver().observe(batch)


class Wiring:
    """What one run works with, made from its settings."""

    def __init__(self, settings: Settings, *, now: str | None = None) -> None:
        """`now` pins the clock to an instant."""
        self.settings = settings
        self._now = now
        self._opened: list[SqliteStore] = []

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
    def store(self) -> SqliteStore:
        """The store, made if there is none. Raises CannotCreate, InputOutput, StoreLocked, BadConfiguration."""
        return self._open(read_only=False)

    @cached_property
    def reading(self) -> SqliteStore:
        """The store for reading only: nothing is written, and where there is none it is empty."""
        return self._open(read_only=True)

    @property
    def _has_store(self) -> bool:
        try:
            return self.settings.db.exists()
        except OSError:
            return True  # opening it says what is wrong

    @property
    def store_size(self) -> int | None:
        """Bytes of the store and of the log that SQLite keeps beside it; None where there is no store."""
        db = self.settings.db
        sizes = [_size(db), _size(db.with_name(f"{db.name}-wal"))]
        return None if sizes[0] is None else sum(size or 0 for size in sizes)

    @property
    def schema_version(self) -> int:
        """The schema that stores are read and written in; an older one is brought up to it."""
        from omcli.sqlite.migrate import steps

        return len(steps())

    def _open(self, *, read_only: bool) -> SqliteStore:
        from omcli.sqlite.store import SqliteStore

        store = SqliteStore.open(self.settings.db, wait=self.settings.wait, read_only=read_only)
        self._opened.append(store)
        return store

    def close(self) -> None:
        """Closes what was opened: the last one to close a store writes its log into the file."""
        while self._opened:
            self._opened.pop().close()

    @contextmanager
    def transcript(
        self, name: str, *, format_name: str | None = None, session: str | None = None
    ) -> Iterator[Transcript]:
        """Opens a file, or standard input, as a transcript of the format named, or recognised.

        A file that was taken in before, on the same terms, is read from where it goes on. Raises NoInput, also while it
        is read, BadInput for a directory and for what no reader recognises, and what opening the store raises.
        """
        with _opened(name) as stream:
            origin = _origin(name, stream, terms=[__version__, _readers(), format_name, session])
            yield self._rest(stream, origin) or transcript_in(stream, format_name=format_name, origin=origin)

    def _rest(self, stream: BinaryIO, origin: Origin | None) -> Transcript | None:
        """What follows the part of a file that need not be read again; None where there is none."""
        from omcli.formats.growth import known_part
        from omcli.memory.transcript import Transcript

        if origin is None or not self._has_store:
            return None
        with _readable():
            known = known_part(stream, self.store.bookmarks(origin))
        if known is None:
            return None
        earlier = known.bookmark.earlier(goes_on=not known.is_all)
        if earlier.carried is None:
            return Transcript(format=earlier.found["format"], items=(), origin=origin, earlier=earlier)

        from omcli.formats.source import Source
        from omcli.formats.table import named

        source = Source(stream, extent=known.extent, carried=earlier.carried["reader"])
        return _read(source, named(earlier.found["format"]), origin=origin, earlier=earlier)

    def workshop(
        self,
        counter: TokenCounter,
        progress: Callable[[str, Tally], None] = _silent,
        *,
        warn: Callable[[str], None] = _unheard,
        busy: Callable[[str], None] = _unheard,
    ) -> Workshop:
        """What taking transcripts in works with, rules as observer."""
        from omcli.operations.workshop import Workshop

        return Workshop(
            open_store=lambda: self.store,
            counter=counter,
            observer=_Rules(),
            warn=warn,
            busy=busy,
            clock=self.clock,
            new_id=self.new_id,
            owner=self.owner,
            wait=self.settings.wait,
            progress=progress,
        )

    def observing(self, workshop: Workshop) -> Workshop:
        """The same, observed by the model that the settings or the environment name; by rules where they name none.

        Raises NotAllowed, BadConfiguration and NoInput, before anybody is asked anything.
        """
        from omcli.wiring import models

        chosen = models.observer(self._surroundings(workshop))
        if chosen is None:
            return workshop
        from omcli.memory.record import replace

        tokens = min(self.settings.observe.batch_tokens, self.settings.observe.max_transcript or workshop.batch_tokens)
        most = self.settings.observe.chunk_messages or None
        return replace(
            workshop,
            observer=chosen.observer,
            after_loop=chosen.after_loop,
            stand_in=chosen.stand_in,
            keeps_pictures=chosen.takes_images,
            batch_tokens=tokens,
            batch_messages=most,
            is_model=True,
        )

    @property
    def limits(self) -> tuple[Limit, ...]:
        """What models may cost."""
        from omcli.wiring import models

        return models.limits(self.settings)

    def due(self) -> Due:
        """When a session's messages are to be observed."""
        from omcli.operations.tick import Due, Trigger

        said = self.settings.observe
        batches = 1 if said.chunk_messages else None
        return Due(trigger=Trigger(said.trigger), tokens=said.tokens, inclusive=said.inclusive, batches=batches)

    def studio(self, workshop: Workshop) -> Studio:
        """What reflecting works with, by the model that is named for it, or by rules. Raises as `observing` does."""
        from omcli.memory.record import replace
        from omcli.wiring import models

        by_rules = self.studio_of_rules(workshop)
        chosen = models.reflector(self._surroundings(workshop))
        if chosen is None:
            return by_rules
        reflector, name, stand_in = chosen
        return replace(by_rules, reflector=reflector, name=name, stand_in=stand_in, is_model=True)

    def studio_of_rules(self, workshop: Workshop) -> Studio:
        """What reflecting by rules works with."""
        from omcli.operations.reflect import Meta, Policy, Studio, Verbatim
        from omcli.reflectors.rules import RuleReflector

        said = self.settings.reflect
        policy = Policy(
            tokens=said.tokens,
            inclusive=said.inclusive,
            target=said.target,
            rows=said.rows,
            verbatim=Verbatim(said.verbatim),
            meta=Meta(said.meta),
            meta_at=said.meta_at,
        )
        return Studio(workshop=workshop, reflector=RuleReflector(workshop.counter), policy=policy)

    def _surroundings(self, workshop: Workshop) -> Surroundings:
        from omcli.wiring.models import Surroundings

        return Surroundings(
            settings=self.settings,
            store=lambda: self.store,
            clock=self.clock,
            counter=workshop.counter,
            warn=workshop.warn,
            picture=self._picture,
        )

    def _picture(self, sha256: str) -> bytes | None:
        return self.store.picture(sha256)

    def new_id(self) -> str:
        """A UUIDv7."""
        return uuid7(self.clock.milliseconds(), int.from_bytes(os.urandom(10), "big"))

    @property
    def owner(self) -> str:
        """Who holds the leases of this process."""
        from omcli.sqlite.owner import this_process

        return this_process()


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # the log goes when the last writer does
        return None


def content(name: str) -> bytes:
    """All of a file, or of standard input. Raises NoInput, BadInput."""
    with _opened(name) as stream, _readable():
        return stream.read()


def transcript_in(stream: BinaryIO, *, format_name: str | None = None, origin: Origin | None = None) -> Transcript:
    """A stream as a transcript of the format named, or recognised. Raises UnknownFormat, NoInput."""
    from omcli.formats.source import Shape, Source
    from omcli.formats.table import named, recognised
    from omcli.memory.transcript import Transcript

    with _readable():
        source = Source(stream)
        if source.shape is Shape.EMPTY:
            return Transcript(format=None, items=())
        chosen = named(format_name) if format_name else recognised(source)
    return _read(source, chosen, origin=origin)


def _read(source: Source, chosen: Format, *, origin: Origin | None, earlier: Earlier | None = None) -> Transcript:
    from omcli.memory.transcript import Transcript

    return Transcript(
        format=chosen.name, copies=chosen.copies, items=_reading(source, chosen), origin=origin, earlier=earlier
    )


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


def _readers() -> int:
    """Tells the readers of this installation from others of the same version: those may come to something else."""
    with os.scandir(Path(__file__).parents[1] / "formats") as modules:
        return max(module.stat().st_mtime_ns for module in modules if module.name.endswith(".py"))


def _origin(name: str, stream: BinaryIO, *, terms: list[str | int | None]) -> Origin | None:
    """Where a stream comes from, if it can be read there again: not from standard input, nor from a pipe."""
    if name == STDIN or not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return None
    import json

    from omcli.memory.bookmark import Origin

    return Origin(path=os.path.realpath(name), terms=json.dumps(terms))


def _reading(source: Source, chosen: Format) -> Iterator[Item]:
    """The items, and at last the end."""
    with _readable():
        yield from chosen.read(source)
        if source.end is not None:
            yield source.end


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
    from omcli.formats.table import NAMES

    return NAMES


def counters() -> tuple[str, ...]:
    """Names of the token counters."""
    from omcli.tokenizers.table import NAMES

    return NAMES


def uuid7(milliseconds: int, randomness: int) -> str:
    """The UUIDv7 of an instant and (at least) 74 random bits."""
    tail = 0x7 << 76 | (randomness >> 62 & 0xFFF) << 64 | 0b10 << 62 | randomness & (1 << 62) - 1
    digits = f"{(milliseconds & (1 << 48) - 1) << 80 | tail:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
