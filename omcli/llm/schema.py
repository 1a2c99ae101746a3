"""The structure of replies, and the words that stand in them: what models and agents are asked for, and what it means.

Every wire accepts such schemas: nothing optional, null for absence, no lists of types, no lengths. Lengths, labels and
names are checked in code.
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
"""What a row is about, in a model's words. A task is what was asked for: of `Type.TASK`, what is being done now, there
is one at any time, and it has a field of its own."""

MOST_ROWS, MOST_SOURCES, MOST_REPLACED = 60, 20, 10
"""Rows of one reply; messages that a row cites; rows that it takes the place of."""
MOST_TAGS, LONGEST_TAG = 8, 40
"""Tags of an item; characters of one."""

TEXT: Schema = {"type": "string"}


def one_of(*values: str) -> Schema:
    """One of these words."""
    return {"type": "string", "enum": list(map(str, values))}


def maybe(schema: Schema) -> Schema:
    """The same, or null. Lists of types are refused by some wires."""
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(schema: Schema) -> Schema:
    """Any number of it."""
    return {"type": "array", "items": schema}


def object_of(fields: Mapping[str, Schema]) -> Schema:
    """An object with all of these fields, and no other."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


TEXTS = list_of(TEXT)
STATED: Mapping[str, Schema] = MappingProxyType({
    "text": TEXT, "priority": one_of(*PRIORITIES), "kind": one_of(*KINDS), "status": maybe(one_of(*STATUSES)),
})  # fmt: skip
"""What every row that is written says of itself."""
