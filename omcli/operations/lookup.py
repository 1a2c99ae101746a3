"""The observation log: rows in the order they were written, and those that follow."""

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
    """The rows that a query selects."""
    for logged in store.rows.log(query):
        yield logged.observation


def unknown(store: Store, query: LogQuery) -> str | None:
    """Return a note about a session or project of a query that the store does not have; None if it has both."""
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
    """Yield the rows of a query, and then every row that is added, until the reader stops."""
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
    """The items that have all of these tags, in the order in which packs of other sessions show them."""
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
    """A row with its messages, or a message alone."""

    observation: Observation | None
    messages: tuple[KeptMessage, ...]
    coverage: Support | None = None
    """Support of a row; None for a message."""
    traces: RowHistory | None = None
    """Its origin and later changes, if asked for."""


def show(store: Store, reference: str, *, with_traces: bool = False) -> Shown:
    """Return the row or message with an id or handle. Raise UnknownId if it is unknown or ambiguous."""
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
