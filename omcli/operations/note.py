"""A note: a row written by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from omcli.memory.errors import BadUsage
from omcli.memory.observation import ITEM_TYPES, Kind, Observation, Priority, Source, Type
from omcli.memory.ports import Store, TokenCounter
from omcli.memory.record import record
from omcli.memory.redaction import redact
from omcli.memory.text import clean, one_line
from omcli.operations.clock import Clock


@record
class Noted:
    """A note that was kept, and how many secrets were taken out of it."""

    observation: Observation
    redactions: dict[str, int]


def note(
    text: str,
    *,
    store: Store,
    counter: TokenCounter,
    clock: Clock,
    new_id: Callable[[], str],
    project: str | None,
    session: str | None = None,
    type_: Type | None = None,
    priority: Priority = Priority.MEDIUM,
    tags: tuple[str, ...] = (),
    is_item: bool = False,
) -> Noted:
    """Keeps a note: with a session it belongs to that, else to the project. An item is a lasting fact.

    Raises BadUsage for an empty one, and for an item of a type that items don't have.
    """
    if is_item and type_ not in (None, *ITEM_TYPES):
        raise BadUsage(f"`{type_}` is no type of a lasting fact", hint=f"types: {', '.join(ITEM_TYPES)}")
    redacted, *redacted_tags = (redact(clean(given)) for given in (text, *tags))
    line = one_line(redacted.text)
    if not line:
        raise BadUsage("the note is empty", hint="`om note TEXT`, or `om note -` to read it from stdin")
    known = store.session(session) if session else None
    now = clock.now()
    observation = Observation(
        id=new_id(),
        session=session,
        project=known.project if known and known.project else project,
        kind=Kind.ITEM if is_item else Kind.NOTE,
        type=type_ or (Type.KNOWLEDGE if is_item else Type.FACT),
        priority=priority,
        importance=priority.importance,
        status=None,
        text=line,
        observed_at=now,
        event_at=now,
        refers_to=None,
        message_ids=(),
        sources=(),
        tokens=counter.text(line),
        counter=counter.name,
        source=Source.USER,
        tags=tuple(dict.fromkeys(tag.text for tag in redacted_tags if tag.text)),
    )
    store.add(observation)
    redactions = sum((Counter(found.counts) for found in (redacted, *redacted_tags)), Counter[str]())
    return Noted(observation=observation, redactions=dict(redactions))
