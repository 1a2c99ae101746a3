"""A format: how a kind of transcript is recognised, how it is read, and where it lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from omcli.base.record import record, replace
from omcli.formats.source import Record, Sample, Source
from omcli.memory.transcript import Carried, Item, Pause


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
