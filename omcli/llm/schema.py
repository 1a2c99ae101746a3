"""JSON schemas of replies, and the words allowed in them.

Every provider accepts such schemas: all fields required, null for absence, no lists of types, no length limits.
Lengths, labels and names are checked in code.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from omcli.memory.observation import Priority, Status, Type

Schema = Mapping[str, object]

PRIORITIES: Mapping[str, Priority] = MappingProxyType({each.value: each for each in Priority})
STATUSES: Mapping[str, Status] = MappingProxyType({each.value: each for each in Status})
KINDS: Mapping[str, Type] = MappingProxyType({
    "decision": Type.DECISION, "fact": Type.FACT, "preference": Type.PREFERENCE, "task": Type.REQUEST,
    "outcome": Type.OUTCOME, "error": Type.BLOCKER, "event": Type.EVENT, "question": Type.QUESTION,
    "identity": Type.FACT,
})  # fmt: skip
"""Type for each kind of row that a model may give. Its `task` is a request, since `Type.TASK`, the current work, exists
only once and has a field of its own."""

MOST_ROWS, MOST_SOURCES, MOST_REPLACED = 60, 20, 10
"""Limits for rows in a reply, messages cited by a row, and rows replaced by a row."""
MOST_TAGS, LONGEST_TAG = 8, 40
"""Limits for tags of an item, and characters of a tag."""

TEXT: Schema = {"type": "string"}


def one_of(*values: str) -> Schema:
    """Return a schema for one of these words."""
    return {"type": "string", "enum": list(map(str, values))}


def optional(schema: Schema) -> Schema:
    """Return a schema that also allows null. It avoids lists of types, which some providers refuse."""
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(schema: Schema) -> Schema:
    """Return a schema for a list."""
    return {"type": "array", "items": schema}


def object_of(fields: Mapping[str, Schema]) -> Schema:
    """Return a schema for an object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


TEXTS = list_of(TEXT)
STATED: Mapping[str, Schema] = MappingProxyType({
    "text": TEXT, "priority": one_of(*PRIORITIES), "kind": one_of(*KINDS), "status": optional(one_of(*STATUSES)),
})  # fmt: skip
"""Fields of every row."""
