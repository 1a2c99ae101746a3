"""Answers of a store worked out in Python from all its messages and rows, in the plainest way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

from omcli.base.errors import LaneTaken
from omcli.memory.coverage import row_says
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Kind, Logged, LogQuery, Observation
from omcli.memory.ports import Lane, Store
from omcli.text.similarity import folded_text


def everything(store: Store) -> tuple[list[KeptMessage], list[Logged]]:
    """All messages that are not hidden, and all rows but forgotten ones."""
    return list(store.messages.all()), list(store.rows.log(LogQuery(hidden=True)))


def log(rows: Iterable[Logged], query: LogQuery) -> list[Logged]:
    """The rows of a query that asks for no earlier state."""
    found = [logged for logged in rows if _is_asked_for(logged, query)]
    if query.last is None:
        return found
    newest = [logged.position for logged in reversed(found)]
    best = sorted(found, key=lambda logged: (logged.observation.importance, logged.position), reverse=True)
    chosen = {*newest[: query.last], *(logged.position for logged in best[: query.best])}
    return [logged for logged in found if logged.position in chosen]


def _is_asked_for(logged: Logged, query: LogQuery) -> bool:
    row = logged.observation
    return (
        logged.position > query.after
        and (query.session is None or row.session == query.session)
        and (query.other_than is None or row.session != query.other_than)
        and (query.project is None or row.project == query.project)
        and (not query.kinds or row.kind in query.kinds)
        and (not query.types or row.type in query.types)
        and (not query.priorities or row.priority in query.priorities)
        and (query.since is None or row.dated >= query.since)
        and (query.until is None or row.dated < query.until)
        and (query.hidden or row.is_visible)
    )


def tail(messages: Iterable[KeptMessage], name: str, *, max_tokens: int, after: int) -> list[int]:
    """`seq` of the end of a session's main thread."""
    found: list[KeptMessage] = []
    for kept in reversed([kept for kept in messages if kept.session == name and kept.message.agent is None]):
        if kept.seq <= after or (found and sum(each.tokens for each in found) + kept.tokens > max_tokens):
            break
        found.insert(0, kept)
    return [kept.seq for kept in found]


def tokens(found: Iterable[KeptMessage | Observation]) -> dict[str, int]:
    """Their tokens by counter."""
    sums: dict[str, int] = {}
    for each in found:
        sums[each.counter] = sums.get(each.counter, 0) + each.tokens
    return sums


def thread(messages: Iterable[KeptMessage], name: str) -> list[KeptMessage]:
    """The main thread of a session, or its subagents' if it has none."""
    of_it = [kept for kept in messages if kept.session == name]
    return [kept for kept in of_it if kept.message.agent is None] or of_it


def waiting(messages: Iterable[KeptMessage], name: str, covered: Collection[int]) -> list[KeptMessage]:
    """Messages of a session that no batch has covered."""
    return [kept for kept in messages if kept.session == name and kept.seq not in covered]


def has_work(
    lane: str, least: int, counter: str, waiting: Collection[KeptMessage], visible: Collection[Observation]
) -> bool:
    """Whether a session has as much as is asked for, or something that another counter counted."""
    if lane == "reflections":
        return any(row.kind is Kind.REFLECTION for row in visible)
    found = waiting if lane == "pending" else visible
    sums = tokens(found)
    return bool(found) and (bool(sums.keys() - {counter}) or sums[counter] >= least)


def saying(messages: Iterable[KeptMessage], rows: Iterable[Logged], text: str) -> tuple[set[int], set[str]]:
    """`seq` of the messages, and ids of the rows, that contain a text."""
    return (
        {kept.seq for kept in messages if text in folded_text(kept.message.text)},
        {logged.observation.id for logged in rows if row_says(logged.observation, text)},
    )


def supports(rows: Iterable[Logged]) -> dict[str, int]:
    """Number of rows made of each."""
    return dict(Counter(made_of for logged in rows for made_of in logged.observation.supports))


class Owners:
    """The leases that were claimed."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, Lane], tuple[str, str]] = defaultdict(lambda: ("", ""))

    def claim(self, name: str, lane: Lane, *, owner: str, now: str, until: str) -> type[LaneTaken] | None:
        """Claim a lane; the error if another owner holds it. An owner on `host:3` is gone."""
        holder, end = self._held[name, lane]
        if holder not in ("", owner) and end > now and "host:3" not in holder:
            self._held[name, lane] = (holder, min(end, until))
            return LaneTaken
        self._held[name, lane] = (owner, until)
        return None

    def release(self, name: str, lane: Lane, *, owner: str) -> None:
        if self._held[name, lane][0] == owner:
            del self._held[name, lane]
