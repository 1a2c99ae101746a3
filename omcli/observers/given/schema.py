"""The structure of what an agent hands in: a model's reply, with a token and what is to become of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from omcli.memory.observation import ITEM_TYPES
from omcli.observers.model.schema import SCHEMA


def schema() -> dict[str, object]:
    """JSON schema, as every model endpoint accepts it: nothing optional, null for absence, no lengths."""
    of_reply = cast("Mapping[str, Any]", SCHEMA["properties"])
    of_row = of_reply["observations"]["items"]["properties"]
    maybe_text = {"type": ["string", "null"]}
    texts = {"type": "array", "items": {"type": "string"}}
    text = {"type": "string"}
    reflection = {name: of_row[name] for name in ("text", "priority", "kind", "status")}
    reflection["from"] = texts
    item = {"text": text, "type": {**text, "enum": [str(kind) for kind in ITEM_TYPES]}, "tags": texts, "from": texts}
    return _object({
        "token": text,
        **of_reply,
        "reflections": _list(reflection),
        "items": _list(item),
        "retire": _list({"row": text, "reason": text, "by": maybe_text}),
    })  # fmt: skip


def _list(properties: Mapping[str, object]) -> dict[str, object]:
    return {"type": "array", "items": _object(properties)}


def _object(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
