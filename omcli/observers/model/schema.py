"""The structure of an observer's reply."""

from __future__ import annotations

from omcli.memory.reply_schema import STATED, TEXT, TEXTS, Schema, list_of, maybe, object_of, one_of

NAME = "observations"

_TIME: Schema = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}$"}
_ROW = object_of({
    **STATED,
    "at": _TIME,
    "refers_to": maybe(TEXT),
    "refers_to_kind": maybe(one_of("exact", "estimated")),
    "sources": TEXTS,
    "replaces": TEXTS,
    "under": maybe({"type": "integer"}),
})  # fmt: skip

FIELDS = {
    "observations": list_of(_ROW),
    "used": TEXTS,
    "current_task": maybe(TEXT),
    "next_step": maybe(TEXT),
    "title": maybe(TEXT),
}
SCHEMA = object_of(FIELDS)
