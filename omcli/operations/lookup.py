"""Looking up rows and messages: the log, following it, items, and single entries."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from omcli.base.errors import UnknownId
from omcli.base.record import record, replace
from omcli.memory.changes import RowHistory
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Kind, Observation, Type
from omcli.memory.ports import LogQuery, Store
from omcli.memory.retention import Support
from omcli.operations.clock import Clock
from omcli.pack.cross_session import by_value

_POLL_SECONDS = 1.0


def log(store: Store, query: LogQuery) -> Iterator[Observation]:
    """Yield the rows that a query selects."""
    for logged in store.rows.log(query):
        yield logged.observation


def unknown(store: Store, query: LogQuery) -> str | None:
    """Return an error text if the store does not know the session or project in a query, otherwise None."""
    session, project = query.session, query.project
    if session is not None and not (store.sessions.find(session) or _has(store, LogQuery(session=session))):
        return f"unknown session `{session}`; `om sessions` lists them"
    if project is not None and not (
        store.sessions.summaries(project=project, last=1) or _has(store, LogQuery(project=project))
    ):
        return f"unknown project {project}; `om sessions` shows them"
    return None


def _has(store: Store, query: LogQuery) -> bool:
    return any(store.rows.log(replace(query, hidden=True, last=1)))


def follow(store: Store, query: LogQuery, clock: Clock) -> Iterator[Observation]:
    """Yield the rows that a query selects, then every matching row as it is added. Never ends."""
    while True:
        for logged in store.rows.log(query):
            query = replace(query, after=logged.position)
            yield logged.observation
        query = replace(query, last=None)
        clock.sleep(_POLL_SECONDS)


def items(
    store: Store,
    *,
    now: str,
    tags: Collection[str] = (),
    types: tuple[Type, ...] = (),
    project: str | None = None,
    hidden: bool = False,
) -> tuple[Observation, ...]:
    """Return the selected items that have all of these tags, ignoring case, in the order in which they rank in other
    sessions' packs.
    """
    query = LogQuery(kinds=(Kind.ITEM,), types=types, project=project, hidden=hidden)
    wanted = {tag.casefold() for tag in tags}
    found = [
        logged.observation
        for logged in store.rows.log(query)
        if wanted <= {tag.casefold() for tag in logged.observation.tags}
    ]
    return tuple(found[place] for place in by_value(found, now=now))


@record
class Shown:
    """A row with its source messages, or a single message."""

    observation: Observation | None
    messages: tuple[KeptMessage, ...]
    coverage: Support | None = None
    """How far reflections already cover the row; None for a message."""
    traces: RowHistory | None = None
    """Origin and later changes of the row, if requested."""


def show(store: Store, reference: str, *, with_traces: bool = False) -> Shown:
    """Return the row or message with this id or handle. Raise UnknownId if it is unknown or ambiguous."""
    try:
        observation = store.rows.find(reference)
    except UnknownId as no_row:
        try:
            return Shown(observation=None, messages=(store.messages.by_key(reference),))
        except UnknownId as no_message:
            raise no_message if len(store.messages.named(reference)) > 1 else no_row from None
    return Shown(
        observation=observation,
        messages=store.messages.by_seq(observation.sources),
        coverage=Support.of(store.reflections.support(observation.id)),
        traces=store.operations.traces(observation.id) if with_traces else None,
    )
