"""The reply a diligent model would give, made from the prompt alone: every label it is shown comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from omcli.memory.model import Prompt

_MESSAGE = re.compile(
    r"^(m[0-9]{1,6})(?: ([0-9]{4}-[0-9]{2}-[0-9]{2}))?(?: ([0-9]{2}:[0-9]{2}))? ?([^:\n]{0,80}: )?(.*)$"
)
_ROW = re.compile(r"^\W{0,4}(o[0-9]{1,6})\b\W{0,4}(.*)$")
_LONGEST = 400
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"


def echo(prompt: Prompt) -> str:
    """A JSON reply: rows that cite each message label, or, to a schema with `reflections`, one made of all rows.

    The same prompt gives the same reply.
    """
    lines = "\n".join(part for part in prompt.content if isinstance(part, str)).splitlines()
    properties = prompt.schema.get("properties")
    is_reflector = isinstance(properties, Mapping) and "reflections" in properties
    return json.dumps(_reflected(lines) if is_reflector else _observed(lines), ensure_ascii=False)


def _observed(lines: list[str]) -> dict[str, object]:
    """One row per label, at the time its message has, with what is said in its first lines."""
    rows: dict[str, dict[str, object]] = {}
    words: list[str] = []
    day = time = ""
    for line in lines:
        if (found := _MESSAGE.match(line)) and found[1] not in rows and found[1] == f"m{len(rows) + 1}":
            day, time = found[2] or day, found[3] or time
            words = [found[5]]
            rows[found[1]] = {"text": words, "at": f"{day} {time}".strip()}
        elif words and line.strip():
            words.append(line.strip())
    return {
        "observations": [
            {
                "text": _one_line(row["text"]) or label,
                "priority": "medium",
                "kind": "event",
                "status": None,
                "at": row["at"] or None,
                "refers_to": None,
                "refers_to_kind": None,
                "sources": [label],
                "replaces": [],
                "under": None,
            }
            for label, row in rows.items()
        ],
        "used": [],
        "current_task": None,
        "next_step": None,
        "title": None,
    }


def _reflected(lines: list[str]) -> dict[str, object]:
    """One reflection of all rows, in the words of the first."""
    rows = {found[1]: found[2] for line in lines if (found := _ROW.match(line))}
    days = sorted(set(re.findall(_DATE, "\n".join(rows.values()))))
    reflections: list[dict[str, object]] = []
    if rows:
        reflections.append(
            {
                "text": _one_line([next(iter(rows.values()))]) or "rows",
                "priority": "medium",
                "kind": "event",
                "status": None,
                "from": list(rows),
                "first": days[0] if days else None,
                "last": days[-1] if days else None,
            }
        )
    return {"reflections": reflections, "keep": [], "drop": [], "items": []}


def _one_line(words: object) -> str:
    assert isinstance(words, list)
    return " ".join(" ".join(words).split())[:_LONGEST]
