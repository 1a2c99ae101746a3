"""Codex CLI: which of the texts in the user's place are a person's prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from omcli.memory.message import Message
from omcli.memory.transcript import Carried, Item, Reason, Skipped

_LONGEST_WAIT = 16
"""User items that are held back at most: a file of nothing else is not collected in memory."""


class Prompts:
    """Tells prompts from their repetitions while a file streams by.

    A prompt is written as an event and as an item; only the event is sure to be a person's. So events are prompts and
    items repeat them - except in files without events (old ones, some of `codex exec`), where the items are all there
    is. An item and its event stand side by side: an item waits until Codex answers, and counts if no event came.
    """

    def __init__(self) -> None:
        self._held: list[Message] = []
        self._stream: str | None = None
        self._items_count = False

    @classmethod
    def going_on(cls, carried: Carried) -> Self:
        """One that goes on where another one carried this from."""
        prompts = cls()
        prompts._stream, prompts._items_count = carried["stream"], carried["items_count"]
        return prompts

    def carried(self) -> Carried | None:
        """What it knows, as JSON; None while an item waits for its event."""
        return None if self._held else {"stream": self._stream, "items_count": self._items_count}

    def event(self, stream: str, prompt: Message) -> Iterator[Item]:
        """A prompt told by an event of a `stream`. Newer files have two such streams; the first one seen counts."""
        yield from (Skipped(Reason.REPEATED) for _ in self._held)
        self._held.clear()
        if self._stream is None:
            self._stream = stream
        yield prompt if stream == self._stream else Skipped(Reason.REPEATED)

    def item(self, prompt: Message) -> Iterator[Item]:
        """A prompt told by an item."""
        if self._stream is not None:
            yield Skipped(Reason.REPEATED)
            return
        self._held.append(prompt)
        if len(self._held) > _LONGEST_WAIT:
            yield from self.answered()

    def answered(self) -> Iterator[Item]:
        """Codex went on: no event is to be expected for the items before."""
        if self._held:
            yield from self._held
            self._held.clear()
            self._items_count = True

    def end(self, *, has_events: bool) -> Iterator[Item]:
        """The end of the file. Where its event may be about to be written, the last item is left for the next run."""
        if has_events and not self._items_count:
            yield from (Skipped(Reason.TRUNCATED) for _ in self._held)
        else:
            yield from self._held
        self._held.clear()
