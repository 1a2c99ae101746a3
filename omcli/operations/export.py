"""Exporting memory: rows of the log for another tool, grouped as they were written; the best rows as a document."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby

from omcli.base.record import record, replace
from omcli.exchange.groups import (
    CATEGORY,
    CWD,
    NOWHERE,
    ORIGINAL_ID,
    WRITTEN_AT,
    Exchange,
    Group,
    GroupRow,
    MessageRange,
    parents,
    range_of,
)
from omcli.exchange.markdown import DECISIONS, FACTS, OPEN, RULES, SESSIONS, Document, written, written_session
from omcli.llm.schema import rules_of_user
from omcli.memory.batch import Covered
from omcli.memory.message import TokenCounter
from omcli.memory.notation import line
from omcli.memory.observation import FAILURES, Kind, Logged, LogQuery, Observation, Priority, Status, Type
from omcli.memory.ports import Store
from omcli.pack.cross_session import each_once, is_shared
from omcli.pack.salience import by_salience
from omcli.text.clean import AGENT, USER, one_line


@record
class _Origin:
    """Attributes that the rows of a group share."""

    session: str | None
    kind: Kind
    observed_at: str | None
    """Time of observation, for rows without a batch."""
    written_as: str | None
    """Id of the group in the file from which it was imported."""
    covered: Covered | None
    reach: MessageRange
    alone: str | None
    """Id of the row, if the row is a group of its own."""


def export(store: Store, query: LogQuery, exchange: Exchange, counter: TokenCounter) -> Iterator[str]:
    """Yield the selected rows as pieces of text in the other tool's format. Token counts in them use `counter`."""
    return exchange.render(_each_group(store, query), counter.text)


def _each_group(store: Store, query: LogQuery) -> Iterator[Group]:
    @cache
    def batches(session: str) -> Mapping[int, Covered]:
        return {position: batch for batch in store.batches.covered(session) for position in batch.positions}

    def origin(logged: Logged) -> _Origin:
        row = logged.observation
        batch = batches(row.session).get(logged.position) if row.session is not None else None
        return _Origin(
            session=row.session,
            kind=row.kind,
            observed_at=None if batch else row.observed_at,
            written_as=_said(row, ORIGINAL_ID),
            covered=batch,
            reach=_reach(row, batch),
            alone=row.id if row.kind in (Kind.ITEM, Kind.NOTE) else None,
        )

    @cache
    def directory(session: str) -> str | None:
        found = store.sessions.find(session)
        return found.cwd if found else None

    for shared, logged in groupby(store.rows.log(query), key=origin):
        places: dict[str | None, list[Observation]] = {}
        for entry in logged:
            row = entry.observation
            cwd = _said(row, CWD) or row.project or (directory(row.session) if row.session else None)
            places.setdefault(cwd, []).append(row)
        for cwd, rows in places.items():
            yield _group(shared, rows, cwd)


def _group(shared: _Origin, rows: Sequence[Observation], cwd: str | None) -> Group:
    first = rows[0]
    return Group(
        entries=tuple(GroupRow(line=line(row), under=above) for row, above in zip(rows, parents(rows), strict=True)),
        kind=shared.kind,
        id=shared.written_as or _derived_id(first),
        session=shared.session,
        cwd=cwd,
        created_at=_said(first, WRITTEN_AT) or first.observed_at,
        reach=_reach_of_sources(rows) if shared.reach == NOWHERE else shared.reach,
        category=_said(first, CATEGORY) or f"{first.type}/reflected",
        tags=first.tags,
        generation=max(row.generation for row in rows),
    )


def _reach(row: Observation, batch: Covered | None) -> MessageRange:
    """Return the range of messages that a row's group covers: the imported range, otherwise the batch's range,
    otherwise (for an observation) the range of its sources, otherwise `NOWHERE`.

    An imported range that has only the ids, or only the indexes, of the batch's range is replaced by the batch's, which
    has both.
    """
    said = range_of(row.metadata)
    if batch is not None and (said == NOWHERE or said in _reaches(batch)):
        return MessageRange(first=batch.first, last=batch.last, start=batch.start, end=batch.end)
    return _reach_of_sources([row]) if said == NOWHERE and row.kind is Kind.OBSERVATION else said


def _reach_of_sources(rows: Sequence[Observation]) -> MessageRange:
    """Return the range from the first to the last message that rows were made from, or `NOWHERE` without any.

    Reflections written together were made from rows of several batches.
    """
    made_of = sorted(pair for row in rows for pair in zip(row.sources, row.message_ids, strict=True))
    return MessageRange(first=made_of[0][1], last=made_of[-1][1]) if made_of else NOWHERE


def _reaches(batch: Covered) -> tuple[MessageRange, MessageRange]:
    return MessageRange(first=batch.first, last=batch.last), MessageRange(start=batch.start, end=batch.end)


def _derived_id(row: Observation) -> str:
    """Return `obs_{milliseconds}_{random}`, with both parts from the row's UUIDv7, so that a group's id is the same in
    every export.
    """
    digits = row.id.replace("-", "")
    return f"obs_{int(digits[:12], 16)}_{digits[-12:]}"


# ---- documents

_NEWEST, _BEST = 2_000, 2_000
"""Rows of a document are chosen from this many of the newest ones and of the most important ones."""
_MOST_SESSIONS = 5
_LONGEST = 100
"""Maximum number of characters of a session's title."""
_HEADING = 4
"""Tokens to add for a heading's mark and empty lines."""
_MISSES = 50
"""A document counts as full once more than this many successive rows do not fit."""
_TO_DO = frozenset({Type.REQUEST, Type.QUESTION, Type.TASK, Type.TODO_UPDATED, Type.PLAN, Type.BLOCKER, *FAILURES})


@record
class KeptDocument:
    """A document as printed."""

    text: str
    rows: int
    left_out: int
    """Number of rows that did not fit."""
    tokens: int


@record
class _Line:
    part: str
    text: str
    at: str = ""
    """Instant by which the lines of a part are sorted; "" if they are in order."""


def export_document(
    store: Store, query: LogQuery, document: Document, *, project: str, budget: int, counter: TokenCounter
) -> KeptDocument:
    """Return the best of the selected rows as a document of at most `budget` tokens, or only its marks if even these
    need more. Rows that concern only their session are left out.

    Rules of the user are chosen first, then the last sessions, then rows in the order of a pack (`pack/salience.py`).
    Within a part, rows are in the order of their dates.
    """
    query = replace(query, last=_NEWEST, best=_BEST) if query.last is None else query
    told = each_once([logged.observation for logged in store.rows.log(query)])
    rows = [(row, part) for row in told if (part := _part(row)) in document.parts]
    sessions = list(_sessions(store, query)) if SESSIONS in document.parts else []
    lines = [_Line(part=part, text=written(row, part), at=row.dated) for row, part in rows]
    lines += [_Line(part=SESSIONS, text=text) for text in sessions]
    by_worth = list(by_salience([row for row, _ in rows]))
    rules = [place for place in by_worth if rules_of_user(rows[place][0])]
    order = list(dict.fromkeys([*rules, *range(len(rows), len(lines)), *by_worth]))

    def printed(chosen: Collection[int]) -> str:
        parts: dict[str, list[str]] = {}
        for each in sorted((lines[place] for place in sorted(chosen)), key=lambda each: each.at):
            parts.setdefault(each.part, []).append(each.text)
        return document.render(project, parts)

    frame = counter.text(document.render(project, {RULES: ["-"]}))
    chosen = _fitting(lines, order, budget - frame, counter)
    while chosen and counter.text(printed(chosen)) > budget:
        chosen.pop()
    text = printed(chosen)
    shown = sum(place < len(rows) for place in chosen)
    return KeptDocument(text=text, rows=shown, left_out=len(rows) - shown, tokens=counter.text(text))


def _fitting(lines: Sequence[_Line], order: Sequence[int], room: int, counter: TokenCounter) -> list[int]:
    """Return the indexes of the lines that fit, best first. The heading of the rules is not counted."""
    chosen: list[int] = []
    parts, misses = {RULES}, 0
    for place in order:
        line = lines[place]
        cost = counter.text(line.text) + 1 + (0 if line.part in parts else counter.text(line.part) + _HEADING)
        if cost <= room:
            room -= cost
            misses = 0
            chosen.append(place)
            parts.add(line.part)
        elif misses == _MISSES:
            break
        else:
            misses += 1
    return chosen


def _part(row: Observation) -> str | None:
    """Return the heading below which a row belongs, or None if it concerns only its session.

    Words of the user or the agent are a lasting fact only if the row has high priority, or is a reflection, note or
    item.
    """
    if row.type in _TO_DO and row.status is Status.OPEN:
        return OPEN
    if row.type is Type.DECISION and row.is_in_force:
        return DECISIONS
    if rules_of_user(row) or (row.kind is Kind.ITEM and row.type in (Type.BEHAVIOR, Type.PROFILE)):
        return RULES
    is_remark = (
        row.kind is Kind.OBSERVATION and row.text.startswith((AGENT, USER)) and row.priority is not Priority.HIGH
    )
    return FACTS if is_shared(row, session=None) and not is_remark else None


def _sessions(store: Store, query: LogQuery) -> Iterator[str]:
    """Yield the last sessions of the query's project, or of all, the newest first, each with its title or the beginning
    of its first prompt. Sessions without either, and those that the query does not select, are left out.
    """
    for summary in store.sessions.summaries(project=query.project, last=_MOST_SESSIONS):
        session = summary.session
        title = one_line(session.title or store.sessions.prompt(session.id) or "")
        if title and query.session in (None, session.id):
            yield written_session(
                session.id, f"{title[:_LONGEST]}…" if len(title) > _LONGEST else title, summary.active_at
            )


def _said(row: Observation, name: str) -> str | None:
    """Return a string from a row's metadata, or None if it is missing or empty."""
    value = row.metadata.get(name)
    return value if isinstance(value, str) and value else None
