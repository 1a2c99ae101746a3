"""The structure of what an agent hands in: a model's reply, with a token and what is to become of rows."""

from __future__ import annotations

from omcli.memory.observation import ITEM_TYPES
from omcli.memory.reply_schema import STATED, TEXT, TEXTS, list_of, maybe, object_of, one_of
from omcli.observers.model.schema import FIELDS

SCHEMA = object_of({
    "token": TEXT,
    **FIELDS,
    "reflections": list_of(object_of({**STATED, "from": TEXTS})),
    "items": list_of(object_of({"text": TEXT, "type": one_of(*ITEM_TYPES), "tags": TEXTS, "from": TEXTS})),
    "retire": list_of(object_of({"row": TEXT, "reason": TEXT, "by": maybe(TEXT)})),
})  # fmt: skip
