"""Retention: rows, messages and backups to remove, and their order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby

from omcli.base.record import record
from omcli.memory.message import Message, Role, results_by_call
from omcli.memory.observation import FAILURES, PINNED, SETTLED, Dropped, Kind, Observation, Priority, Status, Type
from omcli.text.instants import minute

_STANDING = frozenset({Type.INSTRUCTION, Type.PREFERENCE})
"""Types of rows that hold for everything that follows."""
_UNFINISHED = frozenset({Type.BLOCKER, Type.TASK}) | FAILURES
_RELEVANCE = {Priority.LOW: 0, Priority.MEDIUM: 1}


class Support(StrEnum):
    """Number of reflections made from a row, as a level."""

    NONE = "none"
    PARTIAL = "partial"
    STRONG = "strong"

    @classmethod
    def of(cls, reflections: int) -> Support:
        """Return the level for a number of reflections."""
        return (cls.NONE, cls.PARTIAL, cls.STRONG)[min(reflections, 2)]


_COVERED_FIRST = (Support.STRONG, Support.PARTIAL, Support.NONE)


@record
class RetentionRules:
    """Limits for pruning. A row that exceeds any of them is pruned; without limits none is.

    They apply to all sessions or one, and either to rows of sessions or to rows across sessions.
    """

    before: str | None = None
    """Prune rows dated before this instant."""
    keep_last: int | None = None
    """Keep only this many rows of every session, the newest."""
    max_tokens: int | None = None
    """Prune the least important rows of every session until the others have at most this many tokens."""
    keep_sessions: int | None = None
    """Keep only rows of this many sessions, the last active."""
    messages_before: str | None = None
    """Prune observed messages written before this instant."""
    session: str | None = None
    """Only this session."""
    is_across: bool = False
    """Prune only cross-session rows (of no session, or items), each project's together."""
    spares_none: bool = False
    """Prune protected rows too: pinned rows, standing instructions, open tasks and problems."""

    @property
    def is_empty(self) -> bool:
        """True if there are no limits."""
        return not self.is_about_rows and self.messages_before is None

    @property
    def is_about_rows(self) -> bool:
        """True if any limit applies to rows."""
        return any(each is not None for each in (self.before, self.keep_last, self.max_tokens, self.keep_sessions))


@record
class Pool:
    """Visible rows that are pruned together, of a session or of a project across sessions, in log order."""

    session: str | None
    rows: tuple[Observation, ...]
    active_at: str
    """Instant of the last activity in the session."""
    hidden: tuple[Observation, ...] = ()
    """Hidden rows that may be deleted by age, or with their session."""


@record
class MessageOutline:
    """A stored message without its text."""

    seq: int
    at: str | None
    role: Role
    call_id: str | None
    is_main: bool
    """True if it belongs to the main thread."""
    is_covered: bool
    """True if it was observed."""
    is_counted: bool = True
    """See `Message.is_counted`."""


def is_across(row: Observation) -> bool:
    """Return True if a row belongs to no single session: a project's note, a cross-session reflection, an item."""
    return row.session is None or row.kind is Kind.ITEM


def rows_to_go(
    pools: Sequence[Pool],
    rules: RetentionRules,
    *,
    support: Callable[[str], int],
    tokens: Callable[[Observation], int],
) -> Iterator[Dropped]:
    """Yield the rows to prune, each once, with a reason.

    Protected: pinned rows, and instructions and preferences in force; for limits of rows and tokens also open tasks and
    problems; for `max_tokens`, which looks for the least important rows, also whatever is open, in force or of high
    priority. `RetentionRules.spares_none` lifts all of that, except for high priority. `support` gives the number of
    rows made from a row.
    """
    kept = _last_active(pools, rules.keep_sessions)
    for pool in pools:
        yield from _of_pool(pool, rules, kept, support=support, tokens=tokens)


def _of_pool(
    pool: Pool,
    rules: RetentionRules,
    kept: frozenset[str | None] | None,
    *,
    support: Callable[[str], int],
    tokens: Callable[[Observation], int],
) -> Iterator[Dropped]:
    gone: set[str] = set()

    def drop(rows: Iterable[Observation], reason: str) -> Iterator[Dropped]:
        for row in rows:
            if row.id not in gone:
                gone.add(row.id)
                yield Dropped(row=row.id, reason=reason)

    free = [row for row in pool.rows if rules.spares_none or not _is_standing(row)]
    whole = (*pool.hidden, *free)
    if kept is not None and pool.session not in kept:
        yield from drop(whole, f"not of the last {rules.keep_sessions} sessions")
    if rules.before is not None:
        yield from drop([row for row in whole if row.dated < rules.before], f"older than {minute(rules.before)}")
    settled = [row for row in free if rules.spares_none or not _is_unfinished(row)]
    if rules.keep_last is not None:
        newest = _newest(pool.rows, rules.keep_last)
        yield from drop([row for row in settled if row.id not in newest], f"not of the last {rules.keep_last} rows")
    if rules.max_tokens is not None:
        left = {row.id: row for row in pool.rows if row.id not in gone}
        over = sum(map(tokens, left.values())) - rules.max_tokens
        if over > 0:
            candidates = [row.id for row in settled if row.id in left and (rules.spares_none or not _is_wanted(row))]
            order = first_to_go(candidates, left, support=support)
            yield from drop(_up_to(order, over, tokens), f"more than {rules.max_tokens} tokens")


def first_to_go(
    candidates: Iterable[str],
    pool: Mapping[str, Observation],
    *,
    support: Callable[[str], int],
    most: int | None = None,
) -> tuple[Observation, ...]:
    """Return rows by ascending loss, at most `most`.

    First those behind several reflections, then behind one, then the rest; within these low before medium priority,
    then older ones. High priority is never pruned. Unknown and repeated ids are ignored.
    """
    rows = [pool[each] for each in dict.fromkeys(candidates) if each in pool]
    order = sorted(
        (row for row in rows if row.priority in _RELEVANCE),
        key=lambda row: (_COVERED_FIRST.index(Support.of(support(row.id))), _RELEVANCE[row.priority], row.dated),
    )
    return tuple(order[:most])


def _up_to(rows: Iterable[Observation], over: int, tokens: Callable[[Observation], int]) -> Iterator[Observation]:
    """Yield rows until they have this many tokens."""
    for row in rows:
        if over <= 0:
            return
        over -= tokens(row)
        yield row


def _newest(rows: Sequence[Observation], count: int) -> set[str]:
    """Ids of the newest rows by date; of equal dates those added last."""
    oldest_first = sorted(rows, key=lambda row: row.dated)
    return {row.id for row in oldest_first[max(0, len(rows) - count) :]}


def _last_active(pools: Sequence[Pool], count: int | None) -> frozenset[str | None] | None:
    """The last active sessions; None if there is no limit."""
    if count is None:
        return None
    order = sorted(pools, key=lambda pool: (pool.active_at, pool.session or ""), reverse=True)
    return frozenset(pool.session for pool in order[:count])


def _is_standing(row: Observation) -> bool:
    return PINNED in row.tags or (row.type in _STANDING and row.status not in SETTLED)


def _is_unfinished(row: Observation) -> bool:
    return row.status is Status.OPEN and row.type in _UNFINISHED


def _is_wanted(row: Observation) -> bool:
    return row.status is Status.OPEN or row.is_in_force


def messages_to_go(outline: Sequence[MessageOutline], *, before: str, undated: str) -> tuple[int, ...]:
    """Return the `seq` of the messages to prune; `outline` is the whole session in order.

    Unobserved messages stay, and so does the agent's last reply, which may still be answered. A call and its results
    are pruned together. A message without a time counts as written at `undated`.
    """
    said_last = max((each.seq for each in outline if each.is_covered and _is_answer(each)), default=0)

    def may_go(each: MessageOutline) -> bool:
        return each.is_covered and each.seq != said_last and (each.at or undated) < before

    results = results_by_call([Message(role=each.role, text="", call_id=each.call_id) for each in outline])
    call_of = {result: call for call, places in results.items() for result in places}
    together = sorted(range(len(outline)), key=lambda place: call_of.get(place, place))
    gone: list[int] = []
    for _, places in groupby(together, key=lambda place: call_of.get(place, place)):
        unit = [outline[place] for place in places]
        if all(map(may_go, unit)):
            gone += [each.seq for each in unit]
    return tuple(sorted(gone))


def _is_answer(each: MessageOutline) -> bool:
    return each.is_main and each.role is Role.ASSISTANT


APART = timedelta(hours=20)
"""Age of the newest backup from which another is due: a day, for a job that starts a little earlier each time."""
_NAME = re.compile(r"\.(\d{4}-\d{2}-\d{2}T\d{6})Z(?:-(\d{1,6}))?\.bak\Z", re.ASCII)


@record
class BackupResult:
    """Result of backing up a store."""

    path: str | None
    """Path of the new backup; None if none was due."""
    removed: tuple[str, ...] = ()


@record
class Backup:
    """A backup, as described by its file name."""

    name: str
    at: datetime
    number: int
    """Distinguishes backups of the same moment."""


def label(now: str) -> str:
    """Return the label of a copy: `<store>.<label>.bak`."""
    return f"{now[:19].replace(':', '')}Z"


def backups_among(names: Iterable[str], store: str) -> tuple[Backup, ...]:
    """Return the backups of a store among the files beside it, oldest first."""
    found = []
    for name in names:
        told = _NAME.fullmatch(name.removeprefix(store)) if name.startswith(store) else None
        at = _moment(told[1]) if told else None
        if told and at:
            found.append(Backup(name=name, at=at, number=int(told[2] or 1)))
    return tuple(sorted(found, key=lambda backup: (backup.at, backup.number)))


def is_due(backups: Iterable[Backup], now: str) -> bool:
    """Return True if another backup is due. Backups from the future come from a wrong clock and don't count."""
    moment = _of(now)
    return not any(moment - APART < backup.at <= moment for backup in backups)


def surplus(backups: Iterable[Backup], *, keep: int, now: str) -> tuple[Backup, ...]:
    """Return the surplus backups, oldest first; one from the future counts as the oldest."""
    moment = _of(now)
    ordered = sorted(backups, key=lambda backup: (backup.at <= moment, backup.at, backup.number))
    return tuple(ordered[: max(0, len(ordered) - keep)])


def _of(now: str) -> datetime:
    return datetime.fromisoformat(now[:19])


def _moment(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H%M%S")  # noqa: DTZ007 - all of them are UTC
    except ValueError:
        return None
