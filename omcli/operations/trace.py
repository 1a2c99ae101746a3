"""Tracing a text on its way from messages through rows into a pack, to find where it was lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from omcli.base.errors import BadUsage
from omcli.base.record import record, replace
from omcli.memory.changes import OperationKind, RowHistory
from omcli.memory.message import KeptMessage
from omcli.memory.observation import PROVISIONAL, Kind, LogQuery, Observation
from omcli.memory.search import Passage
from omcli.memory.session import NO_PROJECT
from omcli.operations.context import Place, shared_projects
from omcli.pack.budget import Tier
from omcli.pack.cross_session import is_shared
from omcli.recall.ranking import MOST_MATCHES, Query
from omcli.text.similarity import weight

if TYPE_CHECKING:
    from omcli.memory.ports import Store
    from omcli.pack.context_pack import ContextPack

_MOST_READ = 1_000
"""Maximum number of messages to read, and of rows. The newest are read."""
_CITED = 0.75
"""Share of a text's words, by weight, that a row must contain to say the text, if one of its messages contains all of
them: rows are shorter than messages.
"""
_FOLDED = (Kind.REFLECTION, Kind.ITEM)


class LostAt(StrEnum):
    """The stage at which a text was lost."""

    OBSERVING = "observing"
    """No row says it, or a later observation replaced the row."""
    REFLECTING = "reflecting"
    EDITING = "editing"
    """Its rows were pruned, resolved by a note, or hidden by undoing the operation that made them."""
    PACKING = "packing"


@record
class MessageTrace:
    """A visible message that contains the text."""

    kept: KeptMessage
    passage: Passage
    """The line that contains the most words of the text."""
    is_pending: bool
    """True if no batch covers it yet."""


@record
class BatchTrace:
    """A batch that has messages with the text, but no row with it."""

    session: str
    first: str
    """Printed id of the first message."""
    last: str
    messages: int
    rows: int


@record
class RowTrace:
    """A row that says the text, and its later history."""

    row: Observation
    history: RowHistory
    """Empty if the row is visible."""
    said_by: frozenset[str] = frozenset()
    """Ids of the rows it was made into, and of its successor, if they say the text too."""

    @property
    def rows_made(self) -> tuple[Observation, ...]:
        """The rows that this row was made into or replaced by, each once."""
        after = self.history.successor
        rows = (*self.history.made_into, *((after,) if after else ()))
        return tuple({row.id: row for row in rows}.values())

    @property
    def lost_at(self) -> LostAt:
        """Stage at which the row was hidden. Only for hidden rows."""
        verb = self.history.hidden_by.verb if self.history.hidden_by else None
        if verb in (OperationKind.REFLECT, OperationKind.COMPACT):
            return LostAt.REFLECTING
        return LostAt.EDITING if verb is not None else LostAt.OBSERVING


@record
class PackTrace:
    """The parts of a session's pack that say the text."""

    pack: ContextPack
    rows: tuple[Observation, ...]
    messages: tuple[KeptMessage, ...]
    missing: tuple[tuple[Observation, Tier | None], ...]
    """Visible rows with the text that are not in the pack, each with the tier that could hold it, or None."""

    @property
    def is_printed(self) -> bool:
        return bool(self.rows or self.messages)


@record
class TextTrace:
    """The way of a text through the memory."""

    query: str
    messages: tuple[MessageTrace, ...]
    """In order of arrival."""
    rows: tuple[RowTrace, ...]
    """Observations and notes that say the text, hidden ones too."""
    left_out: tuple[BatchTrace, ...]
    """The batches of the messages, if no row says the text."""
    instead: tuple[Observation, ...]
    """The rows that were made of the messages, if no row says the text."""
    folded: tuple[RowTrace, ...]
    """Reflections and items that say the text, hidden ones too."""
    packed: PackTrace | None
    """None if nothing contains the text."""

    @property
    def is_found(self) -> bool:
        return bool(self.messages or self.rows or self.folded)

    @property
    def hidden(self) -> tuple[RowTrace, ...]:
        """The rows that are superseded or dropped."""
        return tuple(each for each in (*self.rows, *self.folded) if not each.row.is_visible)

    @property
    def lost_at(self) -> LostAt | None:
        """Stage at which the text was lost. None if the pack has it, or if nothing contains it."""
        if self.packed is None or self.packed.is_printed:
            return None
        rows = (*self.rows, *self.folded)
        if any(trace.row.is_visible for trace in rows):
            return LostAt.PACKING
        return rows[-1].lost_at if rows else LostAt.OBSERVING


def trace(
    store: Store,
    text: str,
    query: LogQuery,
    *,
    place: Place,
    pack_of: Callable[[Place], ContextPack],
) -> TextTrace:
    """Follow a text: its words in any form, its names and quotations as written.

    If the place names no session, the pack is made for the session that has the newest row with the text or, if no
    session's row has it, the newest message. Raise BadUsage if the text has no words, and IndexDamaged if the index of
    words is damaged.
    """
    asked = Query.of(text)
    if not asked.words:
        raise BadUsage("the text has no words", hint="try `om trace E1234`")
    view = _TextView(store, asked, query)
    messages = view.messages()
    rows = view.rows({kept.seq for kept in messages})
    traces = tuple(view.trace(row, rows) for row in rows)
    said = tuple(each for each in traces if each.row.kind not in _FOLDED)
    folded = tuple(each for each in traces if each.row.kind in _FOLDED)
    pending = _pending(store, messages)
    passages = store.index.passages([kept.message.text for kept in messages], asked.words)
    covered = [kept for kept in messages if kept.seq not in pending]
    packed = None
    if messages or rows:
        having = [row.session for row in rows if row.session] or [kept.session for kept in messages]
        pack = pack_of(replace(place, session=place.session or next(reversed(having), None)))
        known = store.sessions.find(pack.session) if pack.session else None
        packed = _packed(asked, pack, messages, rows, projects=shared_projects(store, known, place))
    return TextTrace(
        query=text,
        messages=tuple(
            MessageTrace(kept=kept, passage=passage, is_pending=kept.seq in pending)
            for kept, passage in zip(messages, passages, strict=True)
        ),
        rows=said,
        left_out=() if rows else _left_out(store, covered),
        instead=() if rows else _made_of(store, covered),
        folded=folded,
        packed=packed,
    )


class _TextView:
    """The messages and rows that contain a text."""

    def __init__(self, store: Store, asked: Query, query: LogQuery) -> None:
        self._store = store
        self._asked = asked
        self._query = query
        self._matches = store.index.match(asked.words, query, most=MOST_MATCHES)
        if not all(match.messages for match in self._matches):
            store.index.check()  # a damaged index may have lost them

    def messages(self) -> tuple[KeptMessage, ...]:
        seqs = frozenset.intersection(*(match.messages for match in self._matches))
        places = self._store.index.around(seqs, self._query, reach=0)
        wanted = sorted(place.seq for place in places if place.is_wanted)[-_MOST_READ:]
        found = self._store.messages.by_seq(wanted)
        return tuple(kept for kept in found if not self._asked.missing(kept.message.text))

    def rows(self, seqs: set[int]) -> tuple[Observation, ...]:
        """Return the rows that have all words of the text, and those that have three quarters of them (by weight) and
        cite one of these messages. Names and quotations must be in the rows as written.
        """
        whole = weight(self._asked.words)
        words = {
            position: [
                word for word, match in zip(self._asked.words, self._matches, strict=True) if position in match.rows
            ]
            for position in frozenset[int]().union(*(match.rows for match in self._matches))
        }
        some = sorted(position for position, had in words.items() if weight(had) >= _CITED * whole)
        found = self._store.index.rows(some[-_MOST_READ:], replace(self._query, hidden=True))
        return tuple(
            logged.observation
            for logged in found
            if not self._asked.missing(logged.observation.text)
            and (len(words[logged.position]) == len(self._asked.words) or seqs.intersection(logged.observation.sources))
        )

    def trace(self, row: Observation, rows: Sequence[Observation]) -> RowTrace:
        if row.is_visible:
            return RowTrace(row=row, history=RowHistory())
        traced = RowTrace(row=row, history=self._store.operations.traces(row.id))
        saying = {each.id for each in rows}
        return replace(traced, said_by=frozenset(each.id for each in traced.rows_made if each.id in saying))


def _pending(store: Store, messages: Sequence[KeptMessage]) -> frozenset[int]:
    """Return the `seq` of the messages that no batch covers."""
    waiting = {session: store.batches.pending(session) for session in {kept.session for kept in messages}}
    return frozenset(
        kept.seq
        for kept in messages
        if kept.seq > waiting[kept.session].after or kept.seq in waiting[kept.session].late
    )


def _left_out(store: Store, messages: Sequence[KeptMessage]) -> tuple[BatchTrace, ...]:
    """Return the batches that covered these messages, each once."""
    found: dict[BatchTrace, None] = {}
    for session in dict.fromkeys(kept.session for kept in messages):
        seqs = [kept.seq for kept in messages if kept.session == session]
        for batch in store.batches.covered(session):
            first, last = (
                min((kept.seq for kept in store.messages.named(key) if kept.session == session), default=0)
                for key in (batch.first, batch.last)
            )
            if any(first <= seq <= last for seq in seqs):
                count, rows = batch.end - batch.start, len(batch.positions)
                found[BatchTrace(session=session, first=batch.first, last=batch.last, messages=count, rows=rows)] = None
    return tuple(found)


def _made_of(store: Store, messages: Sequence[KeptMessage]) -> tuple[Observation, ...]:
    """Return the observations that cite these messages."""
    seqs = {kept.seq for kept in messages}
    derived = store.search.related((), sorted(seqs)).derived if seqs else ()
    return tuple(row for row in derived if row.kind is Kind.OBSERVATION and not seqs.isdisjoint(row.sources))


def _packed(
    asked: Query,
    pack: ContextPack,
    messages: Sequence[KeptMessage],
    rows: Sequence[Observation],
    *,
    projects: Collection[str | None],
) -> PackTrace:
    """Compare a pack, which may have rows of these projects (`shared_projects`), with the rows and messages that say
    the text.
    """
    saying = {row.id for row in rows}
    seqs = {kept.seq for kept in messages}
    shown = (*pack.cross, *pack.observations)
    in_pack = {row.id for row in shown}
    missing = (row for row in rows if row.is_visible and row.id not in in_pack)
    turns = (turn for turn in pack.turns if turn.kept.seq in seqs)
    return PackTrace(
        pack=pack,
        rows=tuple(row for row in shown if row.id in saying or (PROVISIONAL in row.tags and asked.is_in(row.text))),
        messages=tuple(turn.kept for turn in turns if turn.is_whole or asked.is_in(turn.text)),
        missing=tuple((row, _tier(row, pack.session, projects)) for row in missing),
    )


def _tier(row: Observation, session: str | None, projects: Collection[str | None]) -> Tier | None:
    """Return the tier of a session's pack that could hold a row, or None."""
    if session is not None and row.session == session and row.kind is not Kind.ITEM:
        return Tier.SESSION
    is_near = None in projects or (row.project or NO_PROJECT) in projects
    return Tier.CROSS if is_near and is_shared(row, session=session) else None
