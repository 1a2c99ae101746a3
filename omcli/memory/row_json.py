"""JSON of rows and messages, as all commands print it."""

from __future__ import annotations

from omcli.base.patterns import lazily
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Observation

# Valid in JSON, but they move a terminal's cursor, reverse its text, end lines or can't be encoded.
_RAW = lazily("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def json_line(value: object) -> str:
    """Return a value as JSON on one line, with characters escaped that upset terminals or encoders."""
    import json  # noqa: PLC0415 - a pack as text is printed without

    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _RAW.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def quoted(text: str) -> str:
    """Return text escaped for a JSON string, without the quotes."""
    return json_line(text)[1:-1]


def row(observation: Observation) -> dict[str, object]:
    """Return the columns of a row by name, without absent ones."""
    columns: dict[str, object] = {
        "id": observation.id,
        "session": observation.session,
        "kind": observation.kind,
        "type": observation.type,
        "priority": observation.priority,
        "status": observation.status,
        "importance": observation.importance,
        "text": observation.text,
        "observed_at": observation.observed_at,
        "event_at": observation.event_at,
        "refers_to": observation.refers_to,
        "message_ids": list(observation.message_ids),
        "source": observation.source,
        "tokens": observation.tokens,
        "counter": observation.counter,
        "tags": list(observation.tags) or None,
        "generation": observation.generation or None,
        "superseded_by": observation.superseded_by,
        "dropped_at": observation.dropped_at,
        "reason": observation.reason,
    }
    return {name: value for name, value in columns.items() if value is not None}


def full_row(observation: Observation) -> dict[str, object]:
    """Return the columns of a row, and also `supports` (the rows it was made from), `metadata` from its observer, and
    `last_used_at`, when a model last reported using it."""
    more = {
        "last_used_at": observation.last_used_at,
        "supports": list(observation.supports),
        "metadata": dict(observation.metadata),
    }
    return row(observation) | {name: value for name, value in more.items() if value}


def message(kept: KeptMessage, *, text: str | None = None) -> dict[str, object]:
    """Return the fields of a message by name, without absent ones. `text` replaces the message's, for an excerpt."""
    said = kept.message
    fields: dict[str, object] = {
        "id": kept.key,
        "session": kept.session,
        "role": said.role,
        "aside": said.kind,
        "at": said.at,
        "utc_offset": said.utc_offset,
        "name": said.name,
        "agent": said.agent,
        "cwd": said.cwd,
        "tool": said.tool,
        "call_id": said.call_id,
        "failed": said.failed,
        "exit_code": said.exit_code,
        "text": said.text if text is None else text,
        "images": [
            {"media_type": image.media_type, "size": image.size, "sha256": image.sha256} for image in said.images
        ]
        or None,
    }
    return {name: value for name, value in fields.items() if value is not None}
