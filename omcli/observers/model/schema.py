"""The structure of an observer's reply."""

from __future__ import annotations

from collections.abc import Mapping

NAME = "observations"
KINDS = ("decision", "fact", "preference", "task", "outcome", "error", "event", "question", "identity")

_TEXT: Mapping[str, object] = {"type": "string"}
_LABELS: Mapping[str, object] = {"type": "array", "items": _TEXT}
_TIME: Mapping[str, object] = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}$"}


def _one_of(*values: str) -> Mapping[str, object]:
    return {"type": "string", "enum": list(values)}


def _maybe(schema: Mapping[str, object]) -> Mapping[str, object]:
    """The schema, or null. Lists of types are refused by some wires."""
    return {"anyOf": [schema, {"type": "null"}]}


def _object(properties: Mapping[str, object]) -> Mapping[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_ROW = _object({
    "text": _TEXT,
    "priority": _one_of("high", "medium", "low"),
    "kind": _one_of(*KINDS),
    "status": _maybe(_one_of("open", "done", "resolved")),
    "at": _TIME,
    "refers_to": _maybe(_TEXT),
    "refers_to_kind": _maybe(_one_of("exact", "estimated")),
    "sources": _LABELS,
    "replaces": _LABELS,
    "under": _maybe({"type": "integer"}),
})  # fmt: skip

SCHEMA: Mapping[str, object] = _object({
    "observations": {"type": "array", "items": _ROW},
    "used": _LABELS,
    "current_task": _maybe(_TEXT),
    "next_step": _maybe(_TEXT),
    "title": _maybe(_TEXT),
})  # fmt: skip
"""What every wire accepts: nothing optional, null for absence, no lengths. Lengths and labels are checked in code."""
