"""The structure of an observer's reply."""

from __future__ import annotations

from collections.abc import Mapping

NAME = "observations"

_LABELS: Mapping[str, object] = {"type": "array", "items": {"type": "string"}}
_MAYBE_TEXT: Mapping[str, object] = {"type": ["string", "null"]}
KINDS = ("decision", "fact", "preference", "task", "outcome", "error", "event", "question", "identity")


def _object(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_ROW = _object({
    "text": {"type": "string"},
    "priority": {"type": "string", "enum": ["high", "medium", "low"]},
    "kind": {"type": "string", "enum": list(KINDS)},
    "status": {"type": ["string", "null"], "enum": ["open", "done", "resolved", None]},
    "at": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}$"},
    "refers_to": _MAYBE_TEXT,
    "refers_to_kind": {"type": ["string", "null"], "enum": ["exact", "estimated", None]},
    "sources": _LABELS,
    "replaces": _LABELS,
    "under": {"type": ["integer", "null"]},
})  # fmt: skip

SCHEMA: Mapping[str, object] = _object({
    "observations": {"type": "array", "items": _ROW},
    "used": _LABELS,
    "current_task": _MAYBE_TEXT,
    "next_step": _MAYBE_TEXT,
    "title": _MAYBE_TEXT,
})  # fmt: skip
"""What every wire accepts: nothing optional, null for absence, no lengths. Lengths and labels are checked in code."""
