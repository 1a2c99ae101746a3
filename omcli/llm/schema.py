"""JSON schemas for replies, and the values that models may use in them.

All providers accept these schemas, because every field is required (null stands for absence) and there are neither
lists of types nor length limits. Lengths, labels and names are checked after parsing.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from omcli.base import lazily
from omcli.memory.observation import CURRENT, TOOL_EVENTS, Kind, Observation, Priority, Source, Status, Type
from omcli.text.clean import AGENT
from omcli.text.phrases import OUTPUT_OF, speaks_for_user

Schema = Mapping[str, object]

PRIORITIES: Mapping[str, Priority] = MappingProxyType({each.value: each for each in Priority})
STATUSES: Mapping[str, Status] = MappingProxyType({each.value: each for each in Status})
KINDS: Mapping[str, Type] = MappingProxyType({
    "decision": Type.DECISION, "fact": Type.FACT, "preference": Type.PREFERENCE, "task": Type.REQUEST,
    "outcome": Type.OUTCOME, "error": Type.BLOCKER, "event": Type.EVENT, "question": Type.QUESTION,
    "identity": Type.FACT,
})  # fmt: skip
"""Row type for each kind that a model may use.

The kind `task` means a request. The current work (`Type.TASK`) exists only once, so it has its own field in a reply.
"""

ONLY_FROM_USER = frozenset({Type.PREFERENCE, Type.INSTRUCTION, Type.CORRECTION, Type.REQUEST})
"""Types of rows that a model may write only if the user said it."""
IDENTITY = "identity"
"""Kind and tag of a row about who somebody is."""
ONLY_HEARD = "only_heard"
"""Metadata key of a heard row: only an output, pasted text or a subagent says it, not the user or the agent."""
RULED = "ruled"
"""Metadata key of rules of the user: the texts that a reflection or an item repeats, or True for a decision of the
user in a model's words (see `rules_of_user`).
"""
_PASTED = lazily(r"[^\s:]+(?: [^\s:]+){0,2} pasted: |Pasted text says: ")
"""Matches the beginning that rules, or checks of a model's rows, give to rows about pasted text."""


def is_only_heard(row: Observation) -> bool:
    """Return True for a heard row: its content comes only from an output, pasted text or a subagent."""
    if row.source is Source.USER:
        return False
    return ONLY_HEARD in row.metadata or row.text.startswith(OUTPUT_OF) or bool(_PASTED.match(row.text))


def is_of_user(row: Observation) -> bool:
    """Return True if a stored row states words or a decision of the user. This was checked when the row was written."""
    if is_only_heard(row):
        return False
    if row.source is Source.USER or row.type in ONLY_FROM_USER or not {CURRENT, IDENTITY}.isdisjoint(row.tags):
        return True
    is_quoted = row.source in (Source.RULES, Source.IMPORT) and row.type not in TOOL_EVENTS
    if (is_quoted or row.type is Type.DECISION) and not row.text.startswith((AGENT, OUTPUT_OF)):
        return True
    return speaks_for_user(row.text, is_agent=True)


def rules_of_user(row: Observation) -> tuple[str, ...]:
    """Return the rules of the user in a row, word for word: an instruction, preference, correction or decision in
    force, or who somebody is. Only a person may reverse or retire such a rule, and a row that folds it must repeat it.
    """
    if ruled := repeated_rules(row.metadata):
        return ruled
    is_identity = IDENTITY in row.tags and row.kind is not Kind.REFLECTION
    if not (row.is_in_force or is_identity) or not is_of_user(row):
        return ()
    is_of_model = row.type is Type.DECISION and row.source in (Source.MODEL, Source.AGENT)
    return () if is_of_model and not (RULED in row.metadata or speaks_for_user(row.text)) else (row.text,)


def repeated_rules(metadata: Mapping[str, object]) -> tuple[str, ...]:
    """Return the rules of the user that a reflection or an item with this metadata repeats."""
    ruled = metadata.get(RULED)
    return tuple(map(str, ruled)) if isinstance(ruled, list | tuple) else ()


MOST_ROWS, MOST_SOURCES, MOST_REPLACED = 60, 20, 10
"""Maximum numbers of rows in a reply, of messages that a row cites, and of rows that a row replaces."""
MOST_TAGS, LONGEST_TAG = 8, 40
"""Maximum number of tags per item, and maximum length of a tag in characters."""

TEXT: Schema = {"type": "string"}


def one_of(*values: str) -> Schema:
    """Return a schema for a string that is one of the values."""
    return {"type": "string", "enum": list(map(str, values))}


def optional(schema: Schema) -> Schema:
    """Return a schema that also allows null. It uses no list of types because some providers refuse those."""
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def object_of(fields: Mapping[str, Schema]) -> Schema:
    """Return a schema for an object with exactly these fields, all of them required."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


TEXTS = list_of(TEXT)
STATED: Mapping[str, Schema] = MappingProxyType({
    "text": TEXT, "priority": one_of(*PRIORITIES), "kind": one_of(*KINDS), "status": optional(one_of(*STATUSES)),
})  # fmt: skip
"""Schemas of the fields that every row has."""
