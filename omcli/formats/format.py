"""A format: how a kind of transcript is recognised, how it is read, and where it lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from omcli.formats.source import Sample, Source
from omcli.memory.transcript import Item


@dataclass(frozen=True, slots=True, kw_only=True)
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
    places: tuple[str, ...] = ()
    """Glob patterns of where the program keeps its transcripts; `~` is the home directory."""
    copies: bool = False
    """Sessions copy messages of earlier ones after a resume, with their ids and instants (`memory.identity`)."""
