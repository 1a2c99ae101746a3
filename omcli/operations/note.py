"""Notes: rows written by hand, also in place of other rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from omcli.base.errors import BadInput, BadUsage, OmError
from omcli.base.record import record, replace
from omcli.memory.changes import OperationKind, OperationWrite
from omcli.memory.message import TokenCounter
from omcli.memory.observation import (
    ITEM_TYPES,
    UNVERIFIED,
    Draft,
    Dropped,
    Kind,
    Observation,
    Priority,
    Source,
    Status,
    Type,
    handle,
)
from omcli.memory.ports import Store
from omcli.memory.reflection import Scope
from omcli.operations.clock import Clock
from omcli.operations.deps import StoreOrSpool
from omcli.operations.observe.rows import as_row
from omcli.text.clean import clean, one_line
from omcli.text.redaction import redact


@record
class KeptNote:
    """A stored note, and the number of secrets removed from it, by rule."""

    observation: Observation
    redactions: dict[str, int]
    resolved: tuple[Observation, ...] = ()
    operation: int | None = None
    """Number of the operation that wrote the note and hid the resolved rows, or None if the note resolves none."""
    spooled_for: OmError | None = None
    """Error for which the note waits in the spool, or None if it is stored."""


def note(
    text: str,
    *,
    target: StoreOrSpool,
    counter: TokenCounter,
    clock: Clock,
    new_id: Callable[[], str],
    project: str | None,
    session: str | None = None,
    type_: Type | None = None,
    priority: Priority = Priority.MEDIUM,
    tags: tuple[str, ...] = (),
    is_item: bool = False,
    resolves: tuple[str, ...] = (),
) -> KeptNote:
    """Write a note or, with `is_item`, a lasting fact. The rows with the ids or handles in `resolves` are hidden. The
    note belongs to the given session, otherwise to that of the first resolved row, otherwise to the project.

    Raise BadUsage if the note is empty or an item cannot have the type, UnknownId if a resolved row is unknown or its
    handle ambiguous, and BadInput if it is already hidden.
    """
    if is_item and type_ not in (None, *ITEM_TYPES):
        raise BadUsage(f"`{type_}` is not a valid type of an item", hint=f"types: {', '.join(ITEM_TYPES)}")
    redacted, *redacted_tags = (redact(clean(given)) for given in (text, *tags))
    line = one_line(redacted.text)
    if not line:
        raise BadUsage("the note is empty", hint="`om note TEXT`, or `om note -` to read it from stdin")
    store = target.open_store()
    resolved = tuple(_visible_row(store, each) for each in resolves)
    session = session or next((row.session for row in resolved), None)
    known = store.sessions.find(session) if session else None
    now = clock.now()
    draft = Draft(
        text=line,
        type=type_ or (Type.KNOWLEDGE if is_item else Type.FACT),
        importance=priority.importance,
        priority=priority,
        sources=(),
        event_at=now,
        tags=tuple(dict.fromkeys(tag.text for tag in redacted_tags if tag.text)),
        source=Source.USER,
    )
    observation = as_row(
        draft,
        row_id=new_id(),
        kind=Kind.ITEM if is_item else Kind.NOTE,
        session=session,
        project=known.project if known and known.project else project,
        keys={},
        at=now,
        tokens=counter.text(draft.text),
        counter=counter.name,
        author=store.author,
    )
    redactions = dict(sum((Counter(found.counts) for found in (redacted, *redacted_tags)), Counter[str]()))
    noted = KeptNote(observation=observation, redactions=redactions)
    if not resolved:
        target.add(observation)
        return replace(noted, spooled_for=target.error)
    return replace(noted, resolved=resolved, operation=_resolve(store, resolved, observation))


def replace_rows(
    rows: tuple[Observation, ...],
    *,
    store: Store,
    counter: TokenCounter,
    clock: Clock,
    new_id: Callable[[], str],
    text: str | None = None,
    tag: str | None = None,
) -> KeptNote:
    """Write the last of these rows again as a note (an item stays an item), with another text or a further tag, and
    hide them all in one operation.

    A row with another text is dated anew, and counts as verified. Raise BadUsage if the text is empty, UnknownId if a
    row was forgotten, and BadInput if it is hidden.
    """
    resolved = tuple(_visible_row(store, row.id) for row in rows)
    old, now = resolved[-1], clock.now()
    redacted = redact(clean(old.text if text is None else text))
    line = one_line(redacted.text)
    if not line:
        raise BadUsage("the note is empty")
    is_same = line == old.text
    tags = old.tags if is_same else tuple(each for each in old.tags if each != UNVERIFIED)
    written = replace(
        old,
        id=new_id(),
        kind=Kind.ITEM if old.kind is Kind.ITEM else Kind.NOTE,
        text=line,
        observed_at=now,
        event_at=old.event_at if is_same else now,
        refers_to=old.refers_to if is_same else None,
        metadata=old.metadata if is_same else {},
        tags=tuple(dict.fromkeys((*tags, *((tag,) if tag else ())))),
        tokens=counter.text(line),
        counter=counter.name,
        source=Source.USER,
        last_used_at=None,
        generation=0,
        supports=(),
    )
    operation = _resolve(store, resolved, written)
    return KeptNote(observation=written, redactions=dict(redacted.counts), resolved=resolved, operation=operation)


def resolve_by(row: Observation, by: Observation, *, store: Store, clock: Clock) -> int:
    """Hide a row that another one supersedes, and return the number of the operation. Raise UnknownId if one of the two
    was forgotten, and BadInput if one is hidden.
    """
    resolved = _visible_row(store, row.id)
    return _resolve(store, (resolved,), _visible_row(store, by.id), at=clock.now())


def _visible_row(store: Store, reference: str) -> Observation:
    row = store.rows.find(reference)
    if not row.is_visible:
        shown = handle(row.id)
        raise BadInput(f"`{shown}` is hidden already", hint=f"`om show {shown} --history` tells why")
    return row


def _resolve(store: Store, resolved: tuple[Observation, ...], by: Observation, *, at: str | None = None) -> int:
    """Hide rows that another one resolves, and return the number of the operation.

    Without `at`, the operation also writes that row (`by`), at the row's own time. With `at`, the time of the
    operation, the row is already stored.
    """
    done = OperationWrite(
        verb=OperationKind.NOTE,
        scope=Scope(session=by.session, project=None if by.session else by.project),
        made=(by,) if at is None else (),
        dropped=tuple(Dropped(row=row.id, reason=Status.RESOLVED, by=by.id) for row in resolved),
        figures={"rows": len(resolved)},
    )
    return store.operations.change(done, now=at or by.observed_at).number
