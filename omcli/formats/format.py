"""A format: how a kind of transcript is recognised, how it is read, and where it lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from omcli.base.record import record, replace
from omcli.formats.source import Record, Sample, Source
from omcli.memory.transcript import Carried, Item, NewConversation, Pause, Reason, Skipped
from omcli.text.dates.instants import instant, utc_offset


@record
class Place:
    """Where a program keeps its transcripts."""

    homes: tuple[str, ...]
    """Folders of its own; `~` is the home directory."""
    patterns: tuple[str, ...]
    """What lies in them, as glob patterns."""
    variable: str | None = None
    """The environment variable that names another folder in place of these."""


@record
class Format:
    """One kind of transcript: a row of the table in `formats.table`."""

    name: str
    """What `--format` calls it."""
    title: str
    """What people call it."""
    sniff: Callable[[Sample], bool]
    """Whether this looks like one; the table asks in its order and takes the first yes."""
    read: Callable[[Source], Iterator[Item]]
    """Yields items in file order. Never raises for content: what it can't use becomes `Skipped`."""
    place: Place | None = None
    """Where its transcripts lie; None where no program keeps them."""
    copies: bool = False
    """Sessions copy messages of earlier ones after a resume, with their ids and instants (`memory.identity`)."""


class Reader(Protocol):
    """Reads a transcript record by record. What it knows between two of them can be written down."""

    def items(self, entry: Record) -> Iterator[Item]:
        """What one record gives."""

    def end(self) -> Iterator[Item]:
        """What is still to be said at the end of the input."""

    def carried(self) -> Carried | None:
        """What another reader needs to go on from here as this one would; None while something is undecided."""


def by_record(begin: Callable[[Carried | None], Reader]) -> Callable[[Source], Iterator[Item]]:
    """Makes a `Format.read`; `begin` gives a reader, new or with what an earlier one carried."""

    def read(source: Source) -> Iterator[Item]:
        reader = begin(source.carried)
        for entry in source.records():
            if isinstance(entry, dict):
                yield from reader.items(entry)
            elif not isinstance(entry, Pause):
                yield entry
            elif (carried := reader.carried()) is not None:
                yield replace(entry, carried=carried)
        yield from reader.end()

    return read


_TIMES = ("timestamp", "created_at", "createdAt", "ts", "time", "date")
"""Where turns say when they were said; no interface has a place for it, and programs choose their own."""


class Conversation(Protocol):
    """A conversation as it is read, turn by turn."""

    def whole(self, entry: Record) -> Iterator[Item]:
        """What the object that holds the conversation says of it as a whole."""

    def turn(self, entry: Record) -> Iterator[Item]:
        """What one turn gives."""

    def carried(self) -> Carried:
        """What it needs to go on."""


Begin = Callable[[Carried | None], Conversation]
"""Begins a conversation, or goes on with one."""


def in_turns(*, turns_of: Callable[[Record], list[object] | None], begin: Begin) -> Callable[[Source], Iterator[Item]]:
    """Reads every record as a turn of the running conversation, or as one of its own where `turns_of` gives a list."""
    return by_record(lambda carried: _Turns(turns_of, begin, carried))


class _Turns:
    def __init__(
        self, turns_of: Callable[[Record], list[object] | None], begin: Begin, carried: Carried | None
    ) -> None:
        self._turns_of = turns_of
        self._begin = begin
        self._begun = carried is not None
        self._conversation = begin(carried)

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
                    yield Skipped(Reason.NOT_AN_OBJECT)
        self._begun = True

    def end(self) -> Iterator[Item]:
        return iter(())

    def carried(self) -> Carried | None:
        return self._conversation.carried() if self._begun else None


def instant_of(turn: Record) -> str | None:
    """When a turn was said, where it tells."""
    return next((at for key in _TIMES if (at := instant(turn.get(key)))), None)


def utc_offset_of(turn: Record) -> int | None:
    """In which zone it was said, in minutes east of UTC, where its time tells."""
    return next((utc_offset(turn[key]) for key in _TIMES if instant(turn.get(key))), None)
