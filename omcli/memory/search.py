"""Port of the index of words that `om recall` searches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from omcli.base.record import record
from omcli.memory.observation import Logged, LogQuery


@record
class WordMatch:
    """The visible messages and the rows that contain a word or another form of it, by number."""

    messages: frozenset[int]
    """`seq` of the newest messages."""
    rows: frozenset[int]
    """Positions of the newest rows in the log."""
    count: float
    """Number of all messages and rows with the word, estimated if not all are given."""


@record
class MessagePlace:
    """A message as the index sees it: its place in a session, but not its text."""

    seq: int
    session: int
    """Number of its session. Neighbours have the same number."""
    is_person: bool
    """True if a person said it, not an agent or a tool."""
    is_turn: bool
    """True if a person or an agent said it. Calls, results and events are no turns."""
    tokens: int
    at: str | None
    is_wanted: bool
    """True if the query selects the message."""


@record
class Passage:
    """The line of a text that has most of the words, or a part of it if it is long, and where the words are in it."""

    text: str
    words: tuple[tuple[int, int], ...] = ()


class SearchIndex(Protocol):
    """The words of all visible messages and of all rows in the log. It is always up to date.

    Words match in any form ("cache", "cached"), and with or without accents. Names are split at their punctuation.
    """

    def match(self, words: Sequence[str], query: LogQuery, *, most: int) -> tuple[WordMatch, ...]:
        """Return the matches of each word: at most the `most` newest messages and as many rows.

        Of the query only the session counts; some messages and rows of other sessions may match as well.
        """

    def size(self, query: LogQuery) -> int:
        """Return the number of messages and rows among which `match` searches. It may be too high."""

    def around(self, seqs: Iterable[int], query: LogQuery, *, reach: int) -> tuple[MessagePlace, ...]:
        """Return these messages and up to `reach` on either side in the same session, in order by session."""

    def rows(self, positions: Iterable[int], query: LogQuery) -> tuple[Logged, ...]:
        """Return those of the rows at these positions that the query selects, in log order."""

    def passages(self, texts: Sequence[str], words: Sequence[str]) -> tuple[Passage, ...]:
        """Return the best line of each text; the first line if it has none of the words."""

    def renew(self) -> None:
        """Make the index again from the messages and rows, because it is damaged."""

    def mark_used(self, rows: Sequence[str], *, now: str) -> None:
        """Record that the rows with these ids were used."""
