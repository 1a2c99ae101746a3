"""What becomes of a row, a message or a block that the fake store holds; nothing here remembers anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from omcli.memory.buffer import Block, Span
from omcli.memory.changes import UNDONE, tombstone_of, tombstone_to_be
from omcli.memory.message import KeptMessage, Message
from omcli.memory.observation import Observation
from omcli.memory.ports import Logged, LogQuery, Replacement
from omcli.memory.roles import Dropped
from omcli.memory.session import Session

_Value = TypeVar("_Value", Session, Message, Observation)


def well_formed(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def storable(value: _Value) -> _Value:
    """The value as a store gives it back."""
    changes: dict[str, Any] = {}
    for each in fields(value):
        content = getattr(value, each.name)
        if type(content) is str:
            changes[each.name] = well_formed(content)
        elif type(content) is int and abs(content) >= 1 << 63:
            changes[each.name] = None
    return replace(value, **changes)


def without_pictures(message: Message) -> Message:
    return replace(message, images=tuple(replace(image, content=None) for image in message.images))


def unlinked(row: Observation) -> Observation:
    return replace(row, sources=(), message_ids=(), supports=())


def replaced_by(logged: Logged, replacement: Replacement) -> Logged:
    if logged.observation.id != replacement.row or not logged.observation.is_visible:
        return logged
    hidden = replace(logged.observation, superseded_by=replacement.by, reason=replacement.reason)
    return replace(logged, observation=hidden)


def taken_out(logged: Logged, dropped: Dropped, now: str) -> Logged:
    if dropped.by is not None:
        return replaced_by(logged, Replacement(row=dropped.row, by=dropped.by, reason=dropped.reason))
    if logged.observation.id != dropped.row or not logged.observation.is_visible:
        return logged
    return replace(logged, observation=replace(logged.observation, dropped_at=now, reason=dropped.reason))


def taken_back(logged: Logged, gone: set[str], back: set[str], now: str) -> Logged:
    """A row as it is once what made it, or what hid it, is undone."""
    row = logged.observation
    if row.id in back:
        row = replace(row, superseded_by=None, dropped_at=None, reason=None)
    if row.id in gone and row.is_visible:
        row = replace(row, dropped_at=now, reason=UNDONE)
    return replace(logged, observation=row)


def marked_used(logged: Logged, used: Sequence[str], now: str) -> Logged:
    row = logged.observation
    if row.id not in used:
        return logged
    return replace(logged, observation=replace(row, last_used_at=max(row.last_used_at or "", now)))


def asked_for(logged: Logged, query: LogQuery) -> bool:
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


def span(block: Block) -> Span:
    return Span(block.begins, block.batch.through)


def told_by(block: Block) -> set[str]:
    """The tombstones of all that a block says."""
    rows = {tombstone_to_be(draft, session=block.batch.session) for draft in block.observed.drafts}
    return rows | ({tombstone_of(block.observed.title)} if block.observed.title else set())


def covers(block: Block, kept: KeptMessage) -> bool:
    return kept.session == block.batch.session and block.begins < kept.seq <= block.batch.through
