"""A format: its detector, its reader and its folders. Readers work by record or by turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from omcli.base.record import record, replace
from omcli.formats.source import Record, RecordStream, Sample
from omcli.memory.transcript import Checkpoint, Item, NewConversation, ReaderState, Reason, Skip
from omcli.text.instants import instant, utc_offset


@record
class TranscriptFolders:
    """Folders in which a program keeps its transcripts."""

    homes: tuple[str, ...]
    """Base folders; `~` is the home directory."""
    patterns: tuple[str, ...]
    """Glob patterns of the files below a base folder."""
    variable: str | None = None
    """Environment variable with a base folder to use instead."""


@record
class Format:
    """One kind of transcript. `formats` lists the modules that define one."""

    name: str
    """Value of `--format`."""
    title: str
    """Name for people."""
    detect: Callable[[Sample], bool]
    """Return True if the sample looks like this format; the first format that matches is used."""
    read: Callable[[RecordStream], Iterator[Item]]
    """Yield items in file order. Never raises for content: unusable records become `Skip`."""
    folders: TranscriptFolders | None = None
    """None if no program keeps transcripts in this format."""
    copies: bool = False
    """True if a resumed session repeats messages of earlier ones, with their ids and times (`Identities`)."""


class Reader(Protocol):
    """Reads a transcript record by record, with a state between two records that can be stored."""

    def items(self, entry: Record) -> Iterator[Item]:
        """Yield the items of one record."""

    def end(self) -> Iterator[Item]:
        """Yield the items still held back at the end of the input."""

    def state(self) -> ReaderState | None:
        """Return the state from which another reader can resume here; None while an item is held back."""


def by_record(begin: Callable[[ReaderState | None], Reader]) -> Callable[[RecordStream], Iterator[Item]]:
    """Return a `Format.read` function; `begin` returns a new reader, or one resumed from a state."""

    def read(source: RecordStream) -> Iterator[Item]:
        reader = begin(source.state)
        for entry in source.records():
            if isinstance(entry, dict):
                yield from reader.items(entry)
            elif not isinstance(entry, Checkpoint):
                yield entry
            elif (state := reader.state()) is not None:
                yield replace(entry, reader_state=state)
        yield from reader.end()

    return read


_TIMES = ("timestamp", "created_at", "createdAt", "ts", "time", "date")
"""Keys with the time of a turn: no API defines one, so programs choose their own."""


class TurnReader(Protocol):
    """Reads one conversation turn by turn."""

    def whole(self, entry: Record) -> Iterator[Item]:
        """Yield the session's facts from the object that holds the whole conversation."""

    def turn(self, entry: Record) -> Iterator[Item]:
        """Yield the items of one turn."""

    def state(self) -> ReaderState:
        """Return the state from which another reader can resume."""


Begin = Callable[[ReaderState | None], TurnReader]
"""Start a conversation, or resume one from a state."""


def by_turn(
    *, turns_of: Callable[[Record], list[object] | None], begin: Begin
) -> Callable[[RecordStream], Iterator[Item]]:
    """Return a `Format.read` function.

    A record is a whole conversation if `turns_of` returns a list, else a turn of the current one.
    """
    return by_record(lambda state: _Turns(turns_of, begin, state))


class _Turns:
    def __init__(
        self, turns_of: Callable[[Record], list[object] | None], begin: Begin, state: ReaderState | None
    ) -> None:
        self._turns_of = turns_of
        self._begin = begin
        self._begun = state is not None
        self._conversation = begin(state)

    def items(self, entry: Record) -> Iterator[Item]:
        turns = self._turns_of(entry)
        if turns is None:
            yield from self._conversation.turn(entry)
        else:
            if self._begun:
                yield NewConversation()
            self._conversation = self._begin(None)
            yield from self._conversation.whole(entry)
            for turn in turns:
                if isinstance(turn, dict):
                    yield from self._conversation.turn(turn)
                else:
                    yield Skip(Reason.NOT_AN_OBJECT)
        self._begun = True

    def end(self) -> Iterator[Item]:
        return iter(())

    def state(self) -> ReaderState | None:
        return self._conversation.state() if self._begun else None


def instant_of(turn: Record) -> str | None:
    """Return the time of a turn, if given."""
    return next((at for key in _TIMES if (at := instant(turn.get(key)))), None)


def utc_offset_of(turn: Record) -> int | None:
    """Return the UTC offset of a turn's time in minutes east, if given."""
    return next((utc_offset(turn[key]) for key in _TIMES if instant(turn.get(key))), None)
