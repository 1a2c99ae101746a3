"""Forgetting (hiding rows and messages, and keeping their content from being stored again), and undoing operations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from omcli.base import lazily
from omcli.base.errors import BadUsage, StaleBatch, UnknownId
from omcli.base.record import record, replace
from omcli.memory.changes import EraseResult, Operation, OperationKind, OperationWrite, SessionTitle, UndoPreview
from omcli.memory.coverage import row_says, tombstone, tombstone_of
from omcli.memory.message import KeptMessage, Role
from omcli.memory.observation import NEXT_STEP, TOOL_EVENTS, LogQuery, Observation, Source, handle
from omcli.memory.ports import Operations, Store
from omcli.memory.reflection import Scope
from omcli.operations.clock import Clock
from omcli.text.similarity import folded_text, is_distinctive, said_words, says

_SENTENCE_END = lazily(r"(?<=[.!?;])\s+|(?<=[。！？])")
_TRIES = 10
"""Maximum number of attempts. An attempt fails if another process adds rows during the search."""


@record
class ForgetRequest:
    """Rows and messages to forget: all that contain `match` or, if it is None, those with these ids."""

    ids: tuple[str, ...] = ()
    match: str | None = None
    """Text to find, ignoring case and spacing."""
    session: str | None = None
    """Limits `match` to this session."""
    project: str | None = None
    with_derived: bool = False
    """True to also forget rows that were made from these rows or messages, or that replaced these rows, directly or
    through other rows.
    """


@record
class BufferedPart:
    """Part of a buffered batch: a row, or a session title."""

    session: str
    text: str
    digest: str
    """Tombstone of the part. The batch is written without the part, and no model is shown the part."""
    sources: tuple[int, ...] = ()


@record
class ForgetReport:
    rows: tuple[Observation, ...]
    """Forgotten rows, including rows that were forgotten earlier but are not deleted yet."""
    messages: tuple[KeptMessage, ...]
    titles: tuple[SessionTitle, ...]
    replaced: tuple[Observation, ...] = ()
    """Rows that the forgotten rows had replaced. They are hidden too, but without tombstones."""
    derived: tuple[Observation, ...] = ()
    """Visible rows that were made from forgotten rows or messages, or that replaced forgotten rows. They may still
    contain the forgotten text.
    """
    buffered: tuple[BufferedPart, ...] = ()
    """Parts of buffered batches that will not be written."""
    derived_buffered: tuple[BufferedPart, ...] = ()
    """Parts of buffered batches that were made from forgotten rows or parts, or would replace them. They may still
    contain the forgotten text.
    """
    sources: tuple[KeptMessage, ...] = ()
    """Source messages of the forgotten rows and parts, unless they are forgotten too; they may still contain the
    forgotten text.
    """
    parts: tuple[str, ...] = ()
    """Lines and sentences of the forgotten messages and rows that contain `match` and are distinctive. Each gets a
    tombstone of its own. Not searched for in a dry run.
    """
    seen: int = 0
    """Position in the log of the last row that was searched, or 0 if there are no rows."""
    done: Operation | None = None
    """None if nothing was found, if everything was forgotten before, or in a dry run."""
    erased: EraseResult | None = None
    """None if rows were only hidden, or in a dry run."""

    @property
    def is_empty(self) -> bool:
        return not (self.rows or self.messages or self.titles or self.buffered)


def forget(
    store: Store, wanted: ForgetRequest, *, clock: Clock, dry_run: bool = False, for_good: bool = False
) -> ForgetReport:
    """Hide rows, messages and session titles in one operation, or delete them with `for_good`. `dry_run` only finds
    them.

    The search is repeated if other processes write rows during it. Raise UnknownId if an id is unknown or ambiguous,
    BadUsage if `match` is empty, and StaleBatch if other processes keep writing.
    """
    found = _found(store, wanted, with_parts=not dry_run)
    if dry_run:
        return found
    for tries_left in reversed(range(_TRIES)):
        try:
            if not found.is_empty and (for_good or not _is_forgotten(store, found)):
                found = replace(found, done=_change(store, wanted, found, clock=clock, for_good=for_good))
            break
        except StaleBatch:
            if not tries_left:
                raise
            found = _found(store, wanted, with_parts=True)
    return replace(found, erased=store.operations.erase((), now=clock.now())) if for_good else found


def _is_forgotten(store: Store, found: ForgetReport) -> bool:
    """Return True if everything that was found had been forgotten before."""
    gone = {row.id for row in store.tombstones.rows()}
    are_kept_out = zip(found.rows, store.tombstones.match(found.rows), strict=True)
    return (
        gone.issuperset(row.id for row in (*found.rows, *found.replaced))
        and all(is_kept_out or row.source is Source.USER for row, is_kept_out in are_kept_out)
        and store.tombstones.has_messages([kept.seq for kept in found.messages])
        and set(store.tombstones.titles()).issuperset(found.titles)
        and not found.buffered
        and all(store.tombstones.match_texts(found.parts))
    )


def _change(store: Store, wanted: ForgetRequest, found: ForgetReport, *, clock: Clock, for_good: bool) -> Operation:
    change = OperationWrite(
        verb=OperationKind.FORGET,
        scope=Scope(session=wanted.session),
        messages=tuple(kept.seq for kept in found.messages),
        forgotten=tuple(row.id for row in found.rows),
        replaced=tuple(row.id for row in found.replaced),
        titles=found.titles,
        digests=tuple(dict.fromkeys(each.digest for each in found.buffered)),
        parts=found.parts,
        seen=found.seen,
    )
    return store.operations.change(change, now=clock.now(), for_good=for_good)


def _found(store: Store, wanted: ForgetRequest, *, with_parts: bool) -> ForgetReport:
    match = folded_text(wanted.match or "")
    if wanted.match is not None and not match:
        raise BadUsage("`--match` is empty")
    # Read before the search: rows after this position have not been searched.
    seen = next((logged.position for logged in store.rows.log(LogQuery(hidden=True, last=1, bare=True))), 0)
    rows, messages = _named(store, wanted.ids) if wanted.match is None else _matching(store, wanted)
    seqs = {kept.seq for kept in messages}
    related = store.search.related([row.id for row in rows], sorted(seqs))
    derived, may_repeat = {row.id for row in related.derived}, [row for row in related.derived if row.is_visible]
    if wanted.with_derived and derived:
        rows, may_repeat = [*related.derived, *rows], []
        related = store.search.related([row.id for row in rows], sorted(seqs))
    gone = {row.id for row in rows}
    replaced = {row.id for row in related.replaced}
    buffered, derived_buffered = _buffered(store, wanted, gone | derived, seqs)
    cited = {seq for row in rows for seq in row.sources} | {seq for each in buffered for seq in each.sources}
    return ForgetReport(
        rows=tuple(rows),
        messages=tuple(messages),
        titles=tuple(_titles(store, wanted, rows, messages)),
        replaced=related.replaced,
        derived=tuple(row for row in may_repeat if row.id not in replaced),
        buffered=buffered,
        derived_buffered=derived_buffered,
        sources=store.messages.by_seq(cited - seqs),
        parts=tuple(dict.fromkeys(_parts(rows, messages, match))) if match and with_parts else (),
        seen=seen,
    )


def _parts(rows: Iterable[Observation], messages: Iterable[KeptMessage], match: str) -> Iterator[str]:
    """Yield the distinctive lines and sentences in these rows and messages that contain `match`. Text of tools doesn't
    count.
    """
    said = [kept.message.text for kept in messages if kept.message.role not in (Role.CALL, Role.RESULT)]
    for row in rows:
        if row.type not in TOOL_EVENTS:
            said += [row.text, str(row.metadata.get(NEXT_STEP, ""))]
    for line in chain.from_iterable(text.splitlines() for text in said):
        for part in dict.fromkeys((line, *_SENTENCE_END.split(line))):
            if match in folded_text(part) and is_distinctive(said_words(part)):
                yield part


def _named(store: Store, ids: Iterable[str]) -> tuple[list[Observation], list[KeptMessage]]:
    rows: dict[str, Observation] = {}
    messages: dict[int, KeptMessage] = {}
    hidden = store.tombstones.rows()
    for reference in ids:
        try:
            row = store.rows.find(reference)
            rows[row.id] = row
        except UnknownId as no_row:
            kept = _message(store, reference)
            gone = {row.id: row for row in hidden if reference.lower() in (row.id, handle(row.id))}
            if kept is None and len(gone) != 1:
                raise no_row from None
            rows |= gone
            messages |= {kept.seq: kept} if kept else {}
    return list(rows.values()), [messages[seq] for seq in sorted(messages)]


def _message(store: Store, key: str) -> KeptMessage | None:
    """Return the message with a printed id, even if it is hidden, or None if there is none. Raise UnknownId if several
    messages have this id, unless exactly one of them is visible.
    """
    found = store.messages.named(key)
    return store.messages.by_key(key) if len(found) > 1 else next(iter(found), None)


def _matching(store: Store, wanted: ForgetRequest) -> tuple[list[Observation], list[KeptMessage]]:
    text, projects = folded_text(wanted.match or ""), _project_by_session(store)
    rows = [row for row in store.search.rows(text) if _is_covered(wanted, row.session, row.project)]
    messages = [
        kept for kept in store.search.messages(text) if _is_covered(wanted, kept.session, projects.get(kept.session))
    ]
    return rows, messages


def _project_by_session(store: Store) -> dict[str, str | None]:
    return {summary.session.id: summary.session.project for summary in store.sessions.summaries()}


def _is_covered(wanted: ForgetRequest, session: str | None, project: str | None) -> bool:
    return wanted.session in (None, session) and wanted.project in (None, project)


def _buffered(
    store: Store, wanted: ForgetRequest, gone: Collection[str], messages: Collection[int]
) -> tuple[tuple[BufferedPart, ...], tuple[BufferedPart, ...]]:
    """Return the parts of buffered batches that match, and the parts that were made from forgotten rows or parts, or
    would replace them. With `with_derived`, the first tuple contains both.

    Parts made from one of `messages` are in neither tuple, unless they match, because without that message they are not
    written.
    """
    text, projects, of_it = folded_text(wanted.match or ""), _project_by_session(store), set(gone)
    buffered: list[BufferedPart] = []
    derived: list[BufferedPart] = []
    for block in store.batches.all_buffered():
        session = block.batch.session
        is_meant = bool(text) and _is_covered(wanted, session, projects.get(session))
        for draft, name in zip(block.observed.drafts, block.ids, strict=True):
            digest = tombstone(draft, session=session)
            found = BufferedPart(session=session, text=draft.text, digest=digest, sources=draft.sources)
            has_gone = not set(messages).isdisjoint(draft.sources)
            if is_meant and row_says(draft, text):
                buffered.append(found)
            elif not of_it.isdisjoint((*draft.replaces, *draft.supports)) and not has_gone:
                (buffered if wanted.with_derived else derived).append(found)
            elif not has_gone:
                continue
            of_it.add(name)
        title = block.observed.title
        if title is not None and is_meant and text in folded_text(title):
            buffered.append(BufferedPart(session=session, text=title, digest=tombstone_of(title)))
    return tuple(buffered), tuple(derived)


def _titles(
    store: Store, wanted: ForgetRequest, rows: Iterable[Observation], messages: Iterable[KeptMessage]
) -> Iterator[SessionTitle]:
    """Yield the session titles that contain `match`. Without `match`, yield those that repeat one of the session's
    given rows or occur in one of its given messages. Hidden titles are included.
    """
    rows, messages = list(rows), list(messages)
    projects = _project_by_session(store)
    visible = (
        SessionTitle(each.session.id, each.session.title)
        for each in store.sessions.summaries()
        if each.session.title is not None
    )
    for titled in dict.fromkeys((*visible, *store.tombstones.titles())):
        name, title = titled
        if wanted.match is not None:
            is_meant = _is_covered(wanted, name, projects.get(name)) and folded_text(wanted.match) in folded_text(title)
        else:
            is_meant = any(row.session == name and says(title, row.text) for row in rows) or any(
                kept.session == name and folded_text(title) in folded_text(kept.message.text) for kept in messages
            )
        if is_meant:
            yield titled


@record
class UndoReport:
    undoing: UndoPreview
    by: Operation | None = None
    """The undo itself as an operation, or None for a dry run."""


def undo(operations: Operations, number: int | None, *, clock: Clock, dry_run: bool = False) -> UndoReport:
    """Undo an operation, by default the last one that can be undone. `dry_run` changes nothing.

    Raise NotUndoable if the operation is unknown or cannot be undone, or if there is none to undo.
    """
    undoing = operations.preview_undo(number)
    return UndoReport(undoing=undoing, by=None if dry_run else operations.undo(undoing.undone.number, now=clock.now()))
