"""The observation log: rows in the order they were written, and those that follow."""

from __future__ import annotations

from collections.abc import Iterator

from omcli.base.record import replace
from omcli.memory.observation import Observation
from omcli.memory.ports import LogQuery, Store
from omcli.operations.clock import Clock

_POLL_SECONDS = 1.0


def log(store: Store, query: LogQuery) -> Iterator[Observation]:
    """The rows a query asks for."""
    for logged in store.log(query):
        yield logged.observation


def unknown(store: Store, query: LogQuery) -> str | None:
    """Says which session or project of a query the store has never heard of."""
    session, project = query.session, query.project
    if session is not None and not (store.session(session) or _has(store, LogQuery(session=session))):
        return f"there is no session `{session}`; `om sessions` lists them"
    if project is not None and not (store.sessions(project=project, last=1) or _has(store, LogQuery(project=project))):
        return f"there is nothing of project {project}; `om sessions` shows which there are"
    return None


def _has(store: Store, query: LogQuery) -> bool:
    return any(store.log(replace(query, hidden=True, last=1)))


def follow(store: Store, query: LogQuery, clock: Clock) -> Iterator[Observation]:
    """The same, and then every row that is added; ends only when the reader stops."""
    while True:
        for logged in store.log(query):
            query = replace(query, after=logged.position)
            yield logged.observation
        query = replace(query, last=None)
        clock.sleep(_POLL_SECONDS)
