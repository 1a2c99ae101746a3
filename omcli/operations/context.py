"""The context pack of a session: choosing the session and its rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from omcli.base.record import record, replace
from omcli.memory.message import UNLIMITED, KeptMessage, TokenCounter, rows_tokens
from omcli.memory.notation import WORDS, Notation
from omcli.memory.observation import CURRENT, Kind, Logged, LogQuery, Observation, Priority
from omcli.memory.ports import Store
from omcli.memory.session import NO_PROJECT, Session
from omcli.pack.budget import Budgets, Tier, shares
from omcli.pack.context_pack import Choice, ContextPack, Unobserved, pack
from omcli.pack.cross_session import SHARED_TYPES, is_shared
from omcli.pack.layouts import PackFormat

if TYPE_CHECKING:
    from omcli.memory.batch import Pending
    from omcli.memory.session import EvictionPolicy, FreezePoint
    from omcli.operations.deps import Deps
    from omcli.operations.recall import MatchingRow

_NEWEST, _BEST = 150, 450
"""The session's tier is chosen from this many of its newest rows and of its most important ones, so that a store with
a million rows is as fast as a small one. More are read only while they all fit.
"""
_SHARED_NEWEST, _SHARED_BEST = 50, 100
"""Numbers of the newest and of the most important rows of other sessions to choose from in each project: among
observations, and again among notes, reflections and items.
"""
_WAITING, _WAITING_TOKENS = 4, 2_500
"""Number of newest sessions of each project whose unobserved messages are observed for another session's pack, and
maximum tokens of messages of each session. Both are small because an agent waits for the pack: rules take a tenth of a
second for this.
"""
_EXCERPTS = 6
"""Tokens of messages to read per token of the tail's budget, because long tool results are printed as excerpts."""


@record
class Place:
    """The project and session of a pack."""

    project: str
    """The current directory."""
    session: str | None = None
    """The requested session or, without one, the running one according to the environment, if any."""
    is_everywhere: bool = False
    """True if rows from all projects may be included."""
    above: tuple[str, ...] = ()
    """Folders above the current directory, the nearest first. One of them may be its project."""
    is_strict: bool = False
    """True if no session of another project may stand in for one of this project."""


@record
class ContextResult:
    """A pack, and a message to the user about the choice of its session, unless the user named one that is known."""

    pack: ContextPack
    note: str | None = None
    matches: tuple[MatchingRow, ...] = ()
    """The rows that match the task, the best first."""


def context(
    store: Store,
    place: Place,
    *,
    budgets: Budgets,
    counter: TokenCounter,
    now: str,
    to: PackFormat = PackFormat.TEXT,
    notation: Notation = WORDS,
    choice: Choice = Choice(),  # noqa: B008 - a record never changes
    eviction: EvictionPolicy | None = None,
    rules: Callable[[], Deps] | None = None,
    task: str = "",
) -> ContextResult:
    """Return the pack for an agent, within the budgets. The store is only read.

    The session is that of the `place`. If it names none, the last session in this project is used, or in the project
    around it, or (unless the place is strict) anywhere. Without a session, or with an unknown one, the pack contains
    only rows of other sessions. Rows of the project around the current directory are shared with it.

    With an `eviction` policy, a session's pack is frozen at a freeze point. The freeze point is moved until all
    messages after it fit, which depends on the budgets too, so packs are built until one fits. A frozen or append-only
    pack also holds the rows that later ones replaced, while all fit. Its rows then only grow at the end until an
    operation hides some.

    Messages that are neither observed nor in the tail are observed for this pack only, by the observer of `rules`. This
    is not done if `rules` is None, or if the session's tier or the tail has no budget. Unless the pack is frozen, the
    newest unobserved messages of other sessions that share their rows are also observed for it.

    Rows that match the text of a `task` come first. If there are any, the pack is neither frozen nor append-only.
    """
    session, note = session_of_pack(store, place)
    own = session.project if session and session.project else place.project
    shared = shared_projects(store, session, place) if budgets.cross > 0 else ()
    matches = _matching(store, task, session, shared) if task else ()
    if matches:
        scores = {match.row.observation.id: match.share for match in matches}
        choice, eviction = replace(choice, matches=scores, is_append_only=False), None
    further = tuple(match.row for match in matches)
    # Only JSON prints the sources of rows. For a task, they show what the last messages repeat.
    bare = to is not PackFormat.JSON and not matches
    pending = store.batches.pending(session.id) if session else None
    usual = partial(
        pack, session=session, budgets=budgets, counter=counter, now=now, to=to, notation=notation, choice=choice
    )
    project = None if place.is_everywhere else own
    for freeze_point in _each_freeze_point(store, session, budgets, own=own, project=project, eviction=eviction):
        cross = _others(store, shared, session, freeze_point, rules, further=further, bare=bare)
        fill = partial(usual, cross=cross, freeze_point=freeze_point)
        if session is not None and pending is not None:
            fill = partial(fill, messages=_last_messages(store, session, budgets, freeze_point, pending))
        for rows in _rows_by_tier(
            store, session, budgets, choice, freeze_point, further=further, counter=counter, bare=bare
        ):
            found = _with_rows(fill, rows, session, pending, rules, budgets=budgets)
            if {row.id for row in rows}.issubset(row.id for row in found.observations):
                break
        if found.is_tail_whole:
            break
    return ContextResult(pack=found, note=note, matches=matches)


def context_for_prompt(
    store: Store,
    place: Place,
    prompt: str,
    *,
    shown: Collection[str],
    tokens: int,
    counter: TokenCounter,
    now: str,
    notation: Notation = WORDS,
) -> ContextPack:
    """Return a pack of at most `tokens` with the rows of other sessions that match a prompt, the best first. Rows whose
    ids are in `shown` are left out, because the session was shown them before. The store is only read.
    """
    session, _ = session_of_pack(store, place)
    name = place.session or (session.id if session else None)
    found = [
        match
        for match in _matching(store, prompt, None, shared_projects(store, session, place))
        if match.row.observation.id not in shown and match.row.observation.session != name
    ]
    return pack(
        session=session if session and session.id == name else None,
        cross=tuple(match.row.observation for match in found),
        budgets=Budgets(total=tokens, cross=tokens, session=0, tail=0, is_tail_fixed=True),
        counter=counter,
        now=now,
        notation=notation,
        choice=Choice(matches={match.row.observation.id: match.share for match in found}),
    )


def _with_rows(
    fill: Callable[..., ContextPack],
    rows: Sequence[Observation],
    session: Session | None,
    pending: Pending | None,
    rules: Callable[[], Deps] | None,
    *,
    budgets: Budgets,
) -> ContextPack:
    """Return the pack with the rows of a session. If messages would be missing from it, rows are made of them for this
    pack only.
    """
    if session is None or pending is None:
        return fill()
    fill = partial(fill, pending=pending.messages)
    found = fill(observations=rows, unobserved=Unobserved(pending=pending))
    if not found.gap or rules is None or min(budgets.tail, budgets.session) <= 0:
        return found
    return _with_provisional(found, rows, fill, session=session.id, pending=pending, deps=rules())


def _matching(
    store: Store, task: str, session: Session | None, projects: Iterable[str | None]
) -> tuple[MatchingRow, ...]:
    """Return the rows that match a task, the best first: rows of the session, and those rows of other sessions in the
    projects that may concern it (`is_shared`).
    """
    from omcli.operations.recall import RecallFilter, matching_rows  # noqa: PLC0415 - few packs are for a task

    own = session.id if session else None
    others = (
        RecallFilter(log=LogQuery(project=project, other_than=own), only=partial(is_shared, session=own))
        for project in projects
    )
    of_session = (RecallFilter(log=LogQuery(session=own)),) if own else ()
    return matching_rows(store, task, (*of_session, *others))


def shared_projects(store: Store, session: Session | None, place: Place) -> tuple[str | None, ...]:
    """Return the projects whose rows may be in a pack; None means all. The pack of the current directory may also have
    rows of the project around it, and sessions without a project share their rows with each other.
    """
    if place.is_everywhere:
        return (None,)
    own = session.project if session and session.project else place.project
    if own == place.project and (around := known_project(store, place.above)):
        return (own, around)
    return (own,) if _has_project(store, session, own) else (own, NO_PROJECT)


def _with_provisional(
    found: ContextPack,
    rows: Sequence[Observation],
    fill: Callable[..., ContextPack],
    *,
    session: str,
    pending: Pending,
    deps: Deps,
) -> ContextPack:
    """Return the pack with rows that were made for this pack only, from the messages that are in no tier."""
    from omcli.operations.observe.rows import provisional_rows  # noqa: PLC0415 - there is usually no such message

    provisional = provisional_rows(session, deps)
    unobserved = Unobserved(pending=pending, stood_in_for=provisional.messages)
    while True:
        # More rows may leave less room for the tail, and then stand in for messages it lost. It only gets shorter.
        tail = frozenset(turn.kept.seq for turn in found.turns)
        found = fill(observations=provisional.over(rows, tail), unobserved=unobserved)
        if tail.issubset(turn.kept.seq for turn in found.turns):
            return found


def _others(
    store: Store,
    projects: Sequence[str | None],
    session: Session | None,
    freeze_point: FreezePoint | None,
    rules: Callable[[], Deps] | None,
    *,
    further: Iterable[Logged],
    bare: bool,
) -> tuple[Observation, ...]:
    """Return the rows of other sessions and, unless the pack is frozen, high-priority rows that are made for this pack
    only, from messages that wait in the newest sessions of the projects.
    """
    as_of = freeze_point.position if freeze_point else None
    cross = cross_rows(store, projects, session, as_of=as_of, bare=bare, further=further)
    if freeze_point or rules is None:
        return cross
    newest = (each for project in projects for each in store.sessions.summaries(project=project, last=_WAITING))
    waiting = [
        each.session.id for each in newest if not each.is_observed and (not session or each.session.id != session.id)
    ]
    if waiting:
        from omcli.operations.observe.rows import provisional_rows  # noqa: PLC0415 - often no message waits

        deps = rules()
        for number, name in enumerate(waiting, 1):
            provisional = provisional_rows(name, deps, max_tokens=_WAITING_TOKENS, number=number)
            high = tuple(row for row in provisional.rows if row.priority is Priority.HIGH)
            cross = replace(provisional, rows=high).over(cross, frozenset())
    return cross


def _as_printed(eviction: EvictionPolicy, budgets: Budgets) -> EvictionPolicy:
    """Return the eviction policy, limited to the part of the budget that is guaranteed to the tail. Without a budget
    for the tail, it is unchanged.
    """
    if budgets.tail <= 0:
        return eviction
    return eviction.within(shares(budgets.total, budgets.limits)[Tier.TAIL])


def _each_freeze_point(
    store: Store,
    session: Session | None,
    budgets: Budgets,
    *,
    own: str,
    project: str | None,
    eviction: EvictionPolicy | None,
) -> Iterator[FreezePoint | None]:
    """Yield a session's possible freeze points, earliest first, or None if its pack is not frozen."""
    if eviction is None or session is None:
        yield None
        return
    eviction = _as_printed(eviction, budgets)
    for further in count():
        freeze_point = store.sessions.freeze_point(
            session.id, own=own, project=project, eviction=eviction, further=further
        )
        yield freeze_point
        if freeze_point.is_last:
            return


def session_of_pack(store: Store, place: Place) -> tuple[Session | None, str | None]:
    """Return the session of the pack, and a message to the user about the choice. Each is None if there is none."""
    if place.session is not None:
        session = store.sessions.find(place.session)
        note = None if session else f"unknown session `{place.session}`: only what other sessions left behind"
        return session, note
    if session := last_session(store, project=place.project):
        return session, f"no session named: using the last one of this project, `{session.id}`"
    if (around := known_project(store, place.above)) and (session := last_session(store, project=around)):
        return session, f"no session named: using the last one of {around}, `{session.id}`"
    if not place.is_strict and (session := last_session(store)):
        return session, f"no session named: using the last one, `{session.id}` of {session.project or 'no project'}"
    return None, None


def known_project(store: Store, folders: Iterable[str]) -> str | None:
    """Return the first of these folders in which a session started, or None."""
    return next((folder for folder in folders if store.sessions.summaries(project=folder, last=1)), None)


def last_session(store: Store, *, project: str | None = None) -> Session | None:
    """Return the session with the latest message, in a project or, if none is given, in the whole store. Return None if
    there is none.

    Sessions that are empty, because their messages were forgotten, are skipped.
    """
    for last in (1, None):  # the counts of all sessions are needed only if the last one is empty
        for each in store.sessions.summaries(project=project, last=last):
            if each.messages or each.observations or not each.is_observed:
                return each.session
    return None


def _has_project(store: Store, session: Session | None, own: str) -> bool:
    """Return True if the session belongs to a project. If `session` is None, return True if any session is stored in
    the project `own`.
    """
    if session is not None:
        return session.project is not None
    return bool(store.sessions.summaries(project=own, last=1))


def cross_rows(
    store: Store,
    projects: Sequence[str | None],
    session: Session | None,
    *,
    as_of: int | None,
    bare: bool,
    further: Iterable[Logged] = (),
) -> tuple[Observation, ...]:
    """Return rows of these projects (None means all) that may concern other sessions, the newest and the most important
    (for None, only the newest), and `further` ones, in the order they were added. Rows of `session` are left out.
    """
    own = session.id if session else None
    logged = [row for row in further if own is None or row.observation.session != own]
    for project in projects:
        # No index has the rows of all projects by importance.
        last, best = (_SHARED_NEWEST, _SHARED_BEST) if project is not None else (_SHARED_NEWEST + _SHARED_BEST, 0)
        chosen = LogQuery(project=project, other_than=own, last=last, best=best, as_of=as_of, bare=bare)
        logged += store.rows.log(replace(chosen, kinds=(Kind.NOTE, Kind.REFLECTION, Kind.ITEM)))
        logged += store.rows.log(replace(chosen, kinds=(Kind.OBSERVATION,), types=SHARED_TYPES))
    return in_log_order(logged)


def in_log_order(rows: Iterable[Logged]) -> tuple[Observation, ...]:
    """Return the rows in the order in which they were added, each once."""
    at = {row.position: row.observation for row in rows}
    return tuple(at[position] for position in sorted(at))


def _last_messages(
    store: Store, session: Session, budgets: Budgets, freeze_point: FreezePoint | None, pending: Pending
) -> tuple[KeptMessage, ...]:
    if budgets.tail <= 0:
        return ()
    is_long = sum(pending.tokens.values()) > budgets.tail  # the tail may have to use the whole budget
    room = max(budgets.tail, budgets.total) if is_long else budgets.tail
    return store.messages.tail(
        session.id, max_tokens=_EXCERPTS * room, after=freeze_point.message if freeze_point is not None else 0
    )


def _rows_by_tier(
    store: Store,
    session: Session | None,
    budgets: Budgets,
    choice: Choice,
    freeze_point: FreezePoint | None,
    *,
    further: Iterable[Logged],
    counter: TokenCounter,
    bare: bool,
) -> Iterator[tuple[Observation, ...]]:
    """Yield the session's rows, including its rows in `further`. In a frozen or append-only pack, first yield them
    together with the rows that they replaced, unless there is not enough room for all of these.
    """
    rest = [row for row in further if session is not None and row.observation.session == session.id]
    room = min(budgets.session, budgets.total)
    if session is None or (room <= 0 and not rest):
        yield ()
        return
    as_of = freeze_point.position if freeze_point is not None else None
    usual = LogQuery(session=session.id, as_of=as_of, bare=bare)
    if choice.is_append_only or freeze_point is not None:
        rows = _best_rows(store, replace(usual, has_replaced=True), room=room, counter=counter)
        if rows_tokens(rows, counter) <= room:
            yield _with_next_step(rows, store)
    yield _with_next_step(_best_rows(store, usual, room=room, counter=counter, further=rest), store)


def _best_rows(
    store: Store, query: LogQuery, *, room: int, counter: TokenCounter, further: Iterable[Logged] = ()
) -> tuple[Observation, ...]:
    """Return the `further` rows, and all rows of a query if they may fit into `room` tokens, otherwise at least
    `_NEWEST` of the newest and `_BEST` of the most important ones.
    """
    last, best = (UNLIMITED, 0) if room >= UNLIMITED else (_NEWEST, _BEST)
    while True:
        logged = tuple(store.rows.log(replace(query, last=last, best=best)))
        if len(logged) < max(last, best) or rows_tokens([row.observation for row in logged], counter) > room:
            return in_log_order((*further, *logged))
        last, best = 2 * last, 2 * best


def _with_next_step(rows: tuple[Observation, ...], store: Store) -> tuple[Observation, ...]:
    """Return the rows without metadata, which packs do not print. The current task keeps its own, for the next step."""
    return tuple(
        replace(row, metadata=store.rows.find(row.id).metadata)
        if CURRENT in row.tags
        else replace(row, metadata={})
        if row.metadata
        else row
        for row in rows
    )
