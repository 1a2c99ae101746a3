"""Looking up rows and messages: the log, following it, items, and single entries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from omcli.base.errors import BadInput, UnknownId, UnknownSession
from omcli.base.record import record, replace
from omcli.memory.changes import RowHistory
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Kind, LogQuery, Observation, Type
from omcli.memory.ports import Store
from omcli.memory.retention import Support
from omcli.operations.clock import Clock
from omcli.pack.cross_session import by_value
from omcli.text.instants import first_id

_POLL_SECONDS = 1.0
LAST = "last"
"""Reference to the session that was active last. Sessions without messages and rows are skipped."""
_SHORTEST_REFERENCE = 4
_HANDLE = 8
_HARDLY_LONGER = 4
_COMPLETE = 16
"""Minimum length of an unknown id that is taken for the id of a new session, unless it is the beginning of a UUID.
Abbreviations are shorter.
"""
_SIMILAR = 0.7
_MOST_CANDIDATES = 5
_UUID = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
_DIGITS = frozenset("0123456789abcdefABCDEF")


# ---- sessions


def session_id(store: Store, reference: str, *, may_be_new: bool = False) -> str:
    """Return the id of the session that a reference names: its id, at least 4 characters of its beginning, or `last`.

    With `may_be_new`, an unknown id that is long enough to be complete is returned as it is: hooks name sessions that
    have no messages yet. Raise UnknownSession if the reference matches no session, or several.
    """
    found = store.sessions.ids(reference) if len(reference) >= _SHORTEST_REFERENCE else ()
    if reference in found or reference in store.sessions.ids(reference):
        return reference
    if reference == LAST:
        return _last_session(store)
    if len(found) > 1:
        raise UnknownSession(f"{len(found)} sessions begin with `{reference}`", hint=_candidates(found))
    if not (found or (may_be_new and _is_whole(reference))):
        raise unknown_session(store, reference)
    return found[0] if found else reference


def session_id_or_new(store: Store, reference: str) -> str:
    """Return the id of the session to store something in. A reference stands for a known session if it is `last`, the
    first 8 or more digits of its UUID, or its handle exactly as `om sessions` prints it. Otherwise it is the id itself.

    Other abbreviations are ids of new sessions, because `task-1` must not mean `task-12`. Raise UnknownSession if a
    reference is ambiguous, or for `last` without sessions.
    """
    found = store.sessions.ids(reference)
    is_uuid = _is_uuid_handle(reference) and any(_begins_uuid(session) == len(_UUID) for session in found)
    if reference == LAST or is_uuid:
        return session_id(store, reference)
    handles = session_handles(store.sessions.ids()) if found and reference not in found else {}
    return next((session for session in found if handles.get(session) == reference), reference)


def _is_uuid_handle(reference: str) -> bool:
    return _HANDLE <= _begins_uuid(reference) < len(_UUID)


def _begins_uuid(text: str) -> int:
    """Return the length of a text that is a UUID or the beginning of one, otherwise 0."""
    fits = all(
        character == "-" if sign == "-" else character in _DIGITS for character, sign in zip(text, _UUID, strict=False)
    )
    return len(text) if fits and len(text) <= len(_UUID) else 0


def session_handles(ids: Sequence[str]) -> dict[str, str]:
    """Map each id of all sessions, given sorted, to its shortest unique beginning of at least 8 characters.

    An id that is hardly longer is not abbreviated.
    """
    handles: dict[str, str] = {}
    for before, session, after in zip(("", *ids[:-1]), ids, (*ids[1:], ""), strict=False):  # ids may be empty
        length = max(_HANDLE, _shared(session, before) + 1, _shared(session, after) + 1)
        length += session[length - 1 : length] in ("-", " ")
        handles[session] = session if len(session) <= length + _HARDLY_LONGER else session[:length]
    return handles


def _shared(one: str, other: str) -> int:
    """Return the number of characters with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


def unknown_session(store: Store, reference: str) -> UnknownSession:
    """Return the error for a session that is not in the store, with similar ids as a hint."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for errors

    ids = store.sessions.ids()
    if not ids:
        return UnknownSession(f"unknown session `{reference}`: no sessions yet", hint="`om observe FILE` adds one")
    handles = session_handles(ids)
    names = {**{handle: session for session, handle in handles.items()}, **{session: session for session in ids}}
    folded = [name.casefold() for name in names]
    close = get_close_matches(reference.casefold(), folded, n=3, cutoff=_SIMILAR)
    near = dict.fromkeys(session for word in close for name, session in names.items() if name.casefold() == word)
    meant = f"did you mean {_joined(f'`{handles[each]}`' for each in near)}? " if near else ""
    return UnknownSession(f"unknown session `{reference}`", hint=f"{meant}`om sessions` lists them")


def _last_session(store: Store) -> str:
    from omcli.operations.context import last_session  # noqa: PLC0415 - only for `last`

    if session := last_session(store):
        return session.id
    if store.sessions.ids():
        raise UnknownSession("no session has messages", hint="`om sessions` lists them")
    raise UnknownSession("no sessions yet", hint="`om observe FILE` adds one")


def _is_whole(reference: str) -> bool:
    return len(reference) >= _COMPLETE and not _is_uuid_handle(reference)


def _candidates(found: Sequence[str]) -> str:
    more = len(found) - _MOST_CANDIDATES
    return f"{_joined(f'`{each}`' for each in found[:_MOST_CANDIDATES])}{f', and {more} more' if more > 0 else ''}"


def _joined(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


# ---- rows and messages


def log(store: Store, query: LogQuery) -> Iterator[Observation]:
    """Yield the rows that a query selects."""
    for logged in store.rows.log(query):
        yield logged.observation


def unknown(store: Store, query: LogQuery) -> str | None:
    """Return an error text if the store does not know the session, project or author of a query, otherwise None."""
    session, project = query.session, query.project
    if session is not None and store.sessions.find(session) is None:
        return f"unknown session `{session}`; `om sessions` lists them"
    if project is not None and not (
        store.sessions.summaries(project=project, last=1) or _has(store, LogQuery(project=project))
    ):
        return f"unknown project {project}; `om sessions` shows them"
    if query.author is not None and query.author not in {each.name for each in store.sessions.authors()}:
        return f"nothing here was stored by {query.author}"
    return None


def _has(store: Store, query: LogQuery) -> bool:
    return any(store.rows.log(replace(query, hidden=True, last=1)))


@record
class RowChange:
    """A difference between the memory at the beginning and at the end of a period."""

    added: Observation | None
    """A row written in the period and visible at its end. None if no such row replaced the rows in `gone`."""
    gone: tuple[Observation, ...]
    """Earlier rows hidden in the period: those that `added` replaced, directly or through other rows. If `added` is
    None: those that no visible row replaced.
    """


def changes(store: Store, query: LogQuery, *, since: str, until: str | None) -> Iterator[RowChange]:
    """Yield the changes to the rows of a query from `since` on and before `until`, if that is given: the rows added, in
    the order in which they were written, then the hidden rows that no visible row replaced.
    """
    wanted = replace(query, hidden=True, changed_since=since)
    oldest, latest = first_id(since), until and first_id(until)

    def is_gone(row: Observation, at: str | None, lowest: str | None) -> bool:
        """Return True if a row was hidden before `at`, or at any time if `at` is None. `lowest` is the lowest id that a
        row written at `at` can have: a row superseded by one with a lower id was hidden before.
        """
        hidden = ((row.dropped_at, at), (row.superseded_by, lowest))
        return any(found is not None and (bound is None or found < bound) for found, bound in hidden)

    next_ids: dict[str, str | None] = {}
    gone: list[Observation] = []
    for row in log(store, wanted):
        if is_gone(row, until, latest):
            next_ids[row.id] = row.superseded_by
            if row.observed_at < since and not is_gone(row, since, oldest):
                gone.append(row)
    replaced: defaultdict[str | None, list[Observation]] = defaultdict(list)
    for row in gone:
        replaced[_last_of(row.id, next_ids)].append(row)
    for row in log(store, wanted):
        if since <= row.observed_at and (until is None or row.observed_at < until) and row.id not in next_ids:
            yield RowChange(added=row, gone=tuple(replaced.pop(row.id, ())))
    if replaced:
        yield RowChange(added=None, gone=tuple(chain.from_iterable(replaced.values())))


def _last_of(row: str, next_ids: Mapping[str, str | None]) -> str | None:
    """Return the id of the last row that replaced a row, directly or through others, or its own id if none did. Return
    None if one of these rows was dropped.
    """
    last: str | None = row
    for _ in next_ids:  # in a store that was merged with a forged one, rows may replace each other
        if last is None or last not in next_ids:
            break
        last = next_ids[last]
    return last


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
    """Coverage of the row by reflections; None for a message."""
    traces: RowHistory | None = None
    """Origin and later changes of the row, if requested."""


def show(store: Store, reference: str, *, with_traces: bool = False) -> Shown:
    """Return the row, even a hidden one, or else the visible message with this id or handle. Raise UnknownId if the
    reference is unknown or ambiguous.
    """
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


def around(store: Store, reference: str, *, reach: int) -> tuple[tuple[KeptMessage, ...], tuple[KeptMessage, ...]]:
    """Return the messages of the row with this id or handle, or the message with this id. As a second tuple, return
    these together with up to `reach` messages of the session before and after each.

    Raise UnknownId if the reference is unknown or ambiguous, and BadInput if the row has no messages.
    """
    found = show(store, reference).messages
    if not found:
        raise BadInput(
            f"`{reference}` has no messages around it", hint="it was not made from messages, or they are gone"
        )
    named = {kept.seq for kept in found}
    near = store.index.around(named, LogQuery(), reach=reach)
    return found, store.messages.by_seq(place.seq for place in near)
