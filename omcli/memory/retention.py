"""Which rows and messages leave sight when memory is pruned, and in which order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby

from omcli.base.record import record
from omcli.memory.message import Message, Role, results_by_call
from omcli.memory.observation import FAILURES, PINNED, SETTLED, Dropped, Kind, Observation, Priority, Status, Type
from omcli.text.dates.instants import minute

_STANDING = frozenset({Type.INSTRUCTION, Type.PREFERENCE})
"""Types of what holds for everything that follows."""
_UNFINISHED = frozenset({Type.BLOCKER, Type.TASK}) | FAILURES
_RELEVANCE = {Priority.LOW: 0, Priority.MEDIUM: 1}


class SupportLevel(StrEnum):
    """How well a row is covered by reflections: by none, by one, or by several."""

    NONE = "none"
    PARTIAL = "partial"
    STRONG = "strong"

    @classmethod
    def of(cls, reflections: int) -> SupportLevel:
        """The coverage by so many."""
        return (cls.NONE, cls.PARTIAL, cls.STRONG)[min(reflections, 2)]


_COVERED_FIRST = (SupportLevel.STRONG, SupportLevel.PARTIAL, SupportLevel.NONE)


@record
class RetentionRules:
    """What is to be kept. A row goes if any of them says so; where none is given, nothing does.

    Of sessions all are meant, or one; of rows those of sessions, or those across sessions, never both.
    """

    before: str | None = None
    """Rows dated before this instant go."""
    keep_last: int | None = None
    """Of every session, all but the newest so many rows go."""
    max_tokens: int | None = None
    """Of every session, what matters least goes until its rows have no more tokens than that."""
    keep_sessions: int | None = None
    """Rows of all sessions go but for so many, those that were active last."""
    messages_before: str | None = None
    """Messages said before this instant go, as far as they were observed."""
    session: str | None = None
    """Only this session."""
    is_across: bool = False
    """Rows across sessions - of none, or lasting facts - and not those of sessions; a project's are pruned together."""
    spares_none: bool = False
    """Pinned rows, standing instructions, and what is open go as well."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing goes by them."""
        return not self.is_about_rows and self.messages_before is None

    @property
    def is_about_rows(self) -> bool:
        """Whether any of them is about rows."""
        return any(each is not None for each in (self.before, self.keep_last, self.max_tokens, self.keep_sessions))


@record
class Pool:
    """Rows that are pruned together: of a session, or of a project across sessions. In sight, in the log's order."""

    session: str | None
    rows: tuple[Observation, ...]
    active_at: str
    """Instant at which the session was active last."""
    hidden: tuple[Observation, ...] = ()
    """Rows out of sight that may be deleted: they go by their age, and with their session."""


@record
class MessageOutline:
    """A kept message without what it says."""

    seq: int
    at: str | None
    role: Role
    call_id: str | None
    is_main: bool
    """Whether it is of the main thread."""
    is_covered: bool
    """Whether it was observed."""
    is_counted: bool = True
    """`Message.is_counted`."""


def is_across(row: Observation) -> bool:
    """Whether a row is of no single session: a note for a project, a reflection across sessions, a lasting fact."""
    return row.session is None or row.kind is Kind.ITEM


def rows_to_go(
    pools: Sequence[Pool],
    rules: RetentionRules,
    *,
    support: Callable[[str], int],
    tokens: Callable[[Observation], int],
) -> Iterator[Dropped]:
    """The rows that go by the rules, each once, with the reason.

    Pinned rows, and instructions and preferences that hold, stay whatever the rules say. Those that count rows or
    tokens pass over tasks and problems that are open, and `max_tokens` over all that is open, in force or high: it is
    to find what matters least, the others say themselves what goes. `RetentionRules.spares_none` takes that back, but
    not for high rows. `support` tells how many rows were made of one.
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
            yield from drop(_until(order, over, tokens), f"more than {rules.max_tokens} tokens")


def first_to_go(
    candidates: Iterable[str],
    pool: Mapping[str, Observation],
    *,
    support: Callable[[str], int],
    most: int | None = None,
) -> tuple[Observation, ...]:
    """Rows in the order in which they are the least loss, at most so many.

    First what several reflections say, then what one says, then the rest; of these low ones before medium ones, and
    of equal ones the older first. What is high never goes, and an id that is not in the pool, or comes again, does not
    count.
    """
    rows = [pool[each] for each in dict.fromkeys(candidates) if each in pool]
    order = sorted(
        (row for row in rows if row.priority in _RELEVANCE),
        key=lambda row: (_COVERED_FIRST.index(SupportLevel.of(support(row.id))), _RELEVANCE[row.priority], row.dated),
    )
    return tuple(order[:most])


def _until(rows: Iterable[Observation], over: int, tokens: Callable[[Observation], int]) -> Iterator[Observation]:
    """Rows until they have so many tokens."""
    for row in rows:
        if over <= 0:
            return
        over -= tokens(row)
        yield row


def _newest(rows: Sequence[Observation], count: int) -> set[str]:
    """Ids of the rows that are dated last; of equal ones those that were added last."""
    oldest_first = sorted(rows, key=lambda row: row.dated)
    return {row.id for row in oldest_first[max(0, len(rows) - count) :]}


def _last_active(pools: Sequence[Pool], count: int | None) -> frozenset[str | None] | None:
    """The sessions that were active last, so many; None where that does not matter."""
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
    """`seq` of the messages of a session that go; `outline` is all of it, in order.

    What waits to be observed stays, and so does what the agent said last, which may be answered yet. A call and its
    results go together: not before the last of them may. A message without a time counts as said at `undated`.
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
"""How old the newest has to be before there is another one: a day, for a job that starts a little earlier each time."""
_NAME = re.compile(r"\.(\d{4}-\d{2}-\d{2}T\d{6})Z(?:-(\d{1,6}))?\.bak\Z", re.ASCII)


@record
class BackupResult:
    """What became of the backups of a store."""

    path: str | None
    """The one that was made; None where none was due."""
    removed: tuple[str, ...] = ()


@record
class Backup:
    """A backup, as its name tells of it."""

    name: str
    at: datetime
    number: int
    """Of those made at one moment."""


def label(now: str) -> str:
    """What a copy made at an instant is called: `<store>.<label>.bak`."""
    return f"{now[:19].replace(':', '')}Z"


def backups_among(names: Iterable[str], store: str) -> tuple[Backup, ...]:
    """Those of the files beside a store that are copies of it made at some moment, oldest first."""
    found = []
    for name in names:
        told = _NAME.fullmatch(name.removeprefix(store)) if name.startswith(store) else None
        at = _moment(told[1]) if told else None
        if told and at:
            found.append(Backup(name=name, at=at, number=int(told[2] or 1)))
    return tuple(sorted(found, key=lambda backup: (backup.at, backup.number)))


def is_due(backups: Iterable[Backup], now: str) -> bool:
    """Whether it is time for another one. Those from the future are of a clock that was wrong, and do not count."""
    moment = _of(now)
    return not any(moment - APART < backup.at <= moment for backup in backups)


def surplus(backups: Iterable[Backup], *, keep: int, now: str) -> tuple[Backup, ...]:
    """Those that are too many, oldest first; one from the future is taken to be the oldest."""
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
