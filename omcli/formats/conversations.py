"""Records that are turns of one conversation, or hold a conversation each: how lists of messages are written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from omcli.formats.source import Record, Source
from omcli.memory.transcript import Item, NewConversation, Reason, Skipped


class Conversation(Protocol):
    """A conversation as it is read, turn by turn."""

    def whole(self, entry: Record) -> Iterator[Item]:
        """What the object that holds the conversation says of it as a whole."""

    def turn(self, entry: Record) -> Iterator[Item]:
        """What one turn gives."""


def in_turns(
    source: Source, *, turns_of: Callable[[Record], list[object] | None], begin: Callable[[], Conversation]
) -> Iterator[Item]:
    """Reads every record as a turn of the running conversation, or as one of its own where `turns_of` gives a list."""
    conversation = begin()
    begun = False
    for entry in source.records():
        if isinstance(entry, Skipped):
            yield entry
            continue
        turns = turns_of(entry)
        if turns is None:
            yield from conversation.turn(entry)
        else:
            if begun:
                yield NewConversation()
            conversation = begin()
            yield from conversation.whole(entry)
            for turn in turns:
                yield from conversation.turn(turn) if isinstance(turn, dict) else (Skipped(Reason.NOT_AN_OBJECT),)
        begun = True
