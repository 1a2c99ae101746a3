"""Exporting memory in another tool's format: rows of the log, grouped as they were written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby

from omcli.base.record import record
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
from omcli.memory.batch import Covered
from omcli.memory.message import TokenCounter
from omcli.memory.notation import line
from omcli.memory.observation import Kind, Logged, LogQuery, Observation
from omcli.memory.ports import Store


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
    """Return the range of messages that a row's group covers: the imported range, otherwise its batch's, otherwise that
    of an observation's sources, otherwise `NOWHERE`.

    An imported range that equals part of the batch's range is replaced by the batch's range, which is complete.
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


def _said(row: Observation, name: str) -> str | None:
    """Return a string from a row's metadata, or None if it is missing or empty."""
    value = row.metadata.get(name)
    return value if isinstance(value, str) and value else None
