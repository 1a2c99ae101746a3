"""Ports of what `om recall` searches: the index of words, and vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from omcli.base.record import record
from omcli.memory.observation import Logged, LogQuery


@record
class WordMatch:
    """Visible messages, and rows of the log, that contain a word or another form of it, by number."""

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
    """True if a person or an agent said it. Calls, results and events are not turns."""
    tokens: int
    at: str | None
    is_wanted: bool
    """True if the query selects the message."""


@record
class Passage:
    """The line of a text (or the part of a long line) that says most about a query, and where the query's words are in
    it.
    """

    text: str
    words: tuple[tuple[int, int], ...] = ()


class SearchIndex(Protocol):
    """The words of visible messages and of all rows in the log, always up to date. Words match in any form ("cache",
    "cached"), and with or without accents. Names are split at their punctuation.
    """

    def match(self, words: Sequence[str], query: LogQuery, *, most: int) -> tuple[WordMatch, ...]:
        """Return, for each word, up to `most` of the newest messages and of the newest rows with it. Of the query, only
        the `session` counts.
        """

    def size(self, query: LogQuery) -> int:
        """Return the number of messages and rows among which `match` searches. It may be too high."""

    def around(self, seqs: Iterable[int], query: LogQuery, *, reach: int) -> tuple[MessagePlace, ...]:
        """Return these messages and up to `reach` on either side in the same session, sorted by session and `seq`. The
        query only decides their `is_wanted`.
        """

    def answered(self, seqs: Iterable[int]) -> Mapping[int, tuple[int, ...]]:
        """Map each prompt to its replies, until the next prompt in the same thread, and each call to its results, all
        by `seq`. Only the next few hundred messages are searched. Prompts and calls without any are left out.
        """

    def rows(self, positions: Iterable[int], query: LogQuery) -> tuple[Logged, ...]:
        """Return the rows at these positions that the query selects, in log order."""

    def passages(
        self,
        texts: Sequence[str],
        words: Sequence[str],
        *,
        weights: Mapping[str, float] | None = None,
        why: bool = False,
    ) -> tuple[Passage, ...]:
        """Return the line of each text that contains the most words, or the most weight if words have `weights`; the
        first line if the text has none of the words. If it is to say `why`, a line with a reason is preferred.
        """

    def check(self, *, thoroughly: bool = False) -> None:
        """Raise IndexDamaged if the index has lost a part, or if reading all of it `thoroughly` fails."""

    def renew(self) -> None:
        """Make the index again from the messages and rows, because it is damaged."""

    def mark_used(self, rows: Sequence[str], *, now: str) -> None:
        """Record that the rows with these ids were used."""


class TextPlace(NamedTuple):
    """A message or row whose text has vectors or is to have some."""

    is_row: bool
    number: int
    """`seq` of a message, or position of a row."""


@record
class Nearest:
    """Messages and rows whose text is similar to a query: their cosines, the highest first."""

    messages: Mapping[int, float]
    rows: Mapping[int, float]


@record
class VectorStatus:
    """Numbers of messages and rows with and without vectors of a model, and the model's dimensions if known."""

    dimensions: int | None
    messages: int
    rows: int
    missing_messages: int
    missing_rows: int
    size: int
    """Bytes of all vectors, including other models' vectors."""


class Vectors(Protocol):
    """Vectors by model, of visible rows and of visible prompts, replies and notes. A long text has several vectors.
    If a model's number of dimensions changes, only vectors with the latest number count.
    """

    def length(self, model: str) -> int | None:
        """Return the number of dimensions of a model's latest vectors, or None if none were ever added."""

    def missing(self, model: str) -> tuple[TextPlace, ...]:
        """Return the places without vectors of a model: rows by priority, then messages, of equals the newest first."""

    def texts(self, places: Sequence[TextPlace]) -> Mapping[TextPlace, tuple[str, ...]]:
        """Return the parts of the texts to embed. Places that are not visible any more are left out."""

    def known(self, model: str, texts: Iterable[str]) -> frozenset[str]:
        """Return the texts that already have a vector of the model, whichever message or row it was made for."""

    def put(self, model: str, places: Sequence[TextPlace], vectors: Mapping[str, Sequence[float]]) -> int:
        """Add vectors by text, link each place whose parts all have one, and return the number of linked places."""

    def nearest(self, model: str, vector: Sequence[float], query: LogQuery, *, most: int) -> Nearest:
        """Return the nearest messages and rows that a query selects, at most `most` of each. Raise BadConfiguration
        without numpy, and Unusable unless the vector has the number of dimensions that `length` returns.
        """

    def status(self, model: str) -> VectorStatus: ...

    def drop_unused(self) -> int:
        """Delete the vectors that no visible message or row is linked to, and return their number."""
