"""Reading records and files in tests of transcript formats."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omcli.formats import Format
from omcli.formats.source import RecordStream
from omcli.memory.message import Message
from omcli.memory.session import Session
from omcli.memory.transcript import Facts, Item, Reason, Skip
from omcli.operations.ingest.sessions import TranscriptCounts


def json_lines(*records: object) -> bytes:
    """Records as JSON Lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def items_of(form: Format, content: bytes) -> list[Item]:
    """Read bytes with the format detected from them."""
    source = RecordStream(io.BytesIO(content))
    assert form.detect(source.sample), f"{form.name} does not recognise {content[:200]!r}"
    return list(form.read(source))


def messages_of(form: Format, *records: object) -> list[Message]:
    """The messages of records."""
    return [item for item in items_of(form, json_lines(*records)) if isinstance(item, Message)]


def skipped_of(form: Format, *records: object) -> list[Skip]:
    """Skip items of records."""
    return [item for item in items_of(form, json_lines(*records)) if isinstance(item, Skip)]


def session_of(form: Format, *records: object) -> Session:
    """Facts of the session after records."""
    known = Session(id="?", agent=form.name)
    for item in items_of(form, json_lines(*records)):
        if isinstance(item, Facts):
            known = known.merged(
                Session(
                    id=known.id,
                    agent=form.name,
                    cwd=item.cwd,
                    branch=item.branch,
                    title=item.title,
                    model=item.model,
                    parent=item.parent,
                )
            )
            known = Session(**{**_fields(known), "id": item.session or known.id})
    return known


def _fields(session: Session) -> dict[str, Any]:
    return {name: getattr(session, name) for name in Session.__dataclass_fields__}


def faults(items: list[Item]) -> list[Skip]:
    """Skip items that are faults."""
    return [item for item in items if isinstance(item, Skip) and item.reason.is_fault]


def reasons(skipped: list[Skip]) -> list[Reason]:
    """Reasons of skipped items."""
    return [item.reason for item in skipped]


ODD: tuple[object, ...] = (
    None,
    True,
    -1,
    1e400,
    10**400,
    "",
    "odd",
    [],
    ["odd", None],
    [[]],
    {},
    {"type": "odd"},
    [{"type": ["odd"]}],
)
"""Values that nothing in a transcript should be, each of another kind."""


def mutations(record: object) -> Iterator[object]:
    """The record with each odd value in each of its places, and with each place left out."""
    yield from ODD
    if isinstance(record, dict):
        for key, inner in record.items():
            yield {other: kept for other, kept in record.items() if other != key}
            yield from ({**record, key: changed} for changed in mutations(inner))
    elif isinstance(record, list):
        for place, inner in enumerate(record):
            yield from ([*record[:place], changed, *record[place + 1 :]] for changed in mutations(inner))


def facts_of_file(form: Format, path: Path) -> dict[str, object]:
    """A file's numbers under the names of the transcripts' index."""
    tally = TranscriptCounts()
    sessions: list[str] = []
    cwds: list[str] = []
    times: list[str] = []
    with path.open("rb") as stream:
        source = RecordStream(stream)
        assert form.detect(source.sample), f"{path} is not recognised as {form.name}"
        for item in form.read(source):
            tally.add(item)
            if isinstance(item, Facts):
                sessions += [item.session] if item.session else []
                cwds += [item.cwd] if item.cwd else []
            elif isinstance(item, Message) and item.is_counted and item.at:
                times.append(item.at)
    return {
        **{name: getattr(tally.counts, name) for name in (*type(tally.counts).__dataclass_fields__, "messages")},
        "session_id": sessions[0] if sessions else None,
        "cwd": cwds[0] if cwds else None,
        "first_timestamp": min(times, default=None),
        "last_timestamp": max(times, default=None),
    }
