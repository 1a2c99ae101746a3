"""The reply a diligent model would give, made from the prompt alone: every label it is shown comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from omcli.llm.model import Prompt

_FENCE = re.compile(r"^<<< transcript (\S+)\n(.*)^>>> transcript \1$", re.MULTILINE | re.DOTALL)
_MESSAGE = re.compile(
    r"^(?P<label>m[0-9]{1,6})(?: (?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}))?(?: (?P<time>[0-9]{2}:[0-9]{2}))?"
    r"(?P<before> \(before\))? (?:(?P<who>[^:\n\[]{1,80}): )?(?P<words>.*)$"
)
_ROW = re.compile(r"^(?:\W{0,4}|## Group `)(?P<label>o[0-9]{1,6})\b`?(?P<words>.*)$")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LONGEST = 400
_FIRST_WORDS = 4


def echo(prompt: Prompt) -> str:
    """A JSON reply to an observer's or a reflector's prompt. The same prompt gives the same reply.

    To an observer: one row for each message, without those shown only for reading along, with its words in its place.
    To a reflector, which is who asks with a schema of `reflections`: rows that have to stay stay, and what is left
    becomes one reflection, of the first words of each.
    """
    text = "\n".join(part for part in prompt.content if isinstance(part, str))
    properties = prompt.schema.get("properties")
    is_reflector = isinstance(properties, Mapping) and "reflections" in properties
    return json.dumps(_reflected(text) if is_reflector else _observed(text), ensure_ascii=False)


def _observed(text: str) -> dict[str, object]:
    fenced = _FENCE.search(text)
    rows: dict[str, list[str]] = {}
    times: dict[str, str] = {}
    words: list[str] = []
    day = time = ""
    for line in (fenced[2] if fenced else text).splitlines():
        found = _MESSAGE.match(line)
        if found is None or found["label"] in rows:
            words.append(line)
            continue
        day, time = found["day"] or day, found["time"] or time
        words = [found["words"]]
        if not found["before"]:
            rows[found["label"]] = words
            times[found["label"]] = f"{day} {time}"
    return {
        "observations": [_row(label, said, times[label]) for label, said in rows.items()],
        "used": [],
        "current_task": None,
        "next_step": None,
        "title": None,
    }


def _row(label: str, words: Iterable[str], at: str) -> dict[str, object]:
    return {
        "text": _one_line(words) or label,
        "priority": "medium",
        "kind": "event",
        "status": None,
        "at": at,
        "refers_to": None,
        "refers_to_kind": None,
        "sources": [label],
        "replaces": [],
        "under": None,
    }


def _reflected(text: str) -> dict[str, object]:
    rows: dict[str, list[str]] = {}
    words: list[str] = []
    for line in text.splitlines():
        if (found := _ROW.match(line)) and found["label"] not in rows:
            words = rows[found["label"]] = [found["words"]]
        elif line.startswith(("_range: ", "- ")):
            words.append(line)
    kept = [label for label, said in rows.items() if "(verbatim)" in " ".join(said)]
    folded = {label: _one_line(said) for label, said in rows.items() if label not in kept}
    days = sorted(day for said in folded.values() for day in _DAY.findall(said)[:1])
    reflections: list[dict[str, object]] = []
    if folded:
        reflections.append({
            "text": _one_line(_beginning(said) for said in folded.values()) or "rows",
            "priority": "medium",
            "kind": "event",
            "status": None,
            "from": list(folded),
            "first": days[0] if days else None,
            "last": days[-1] if days else None,
        })  # fmt: skip
    return {"reflections": reflections, "keep": kept, "drop": [], "items": []}


def _beginning(row: str) -> str:
    """The first words of a row, behind its range, date and kind; without backticks, one of a pair might be left."""
    return " ".join(row.rpartition("_ - ")[2].partition(": ")[2].replace("`", "").split()[:_FIRST_WORDS])


def _one_line(words: Iterable[str]) -> str:
    return " ".join(" ".join(words).split())[:_LONGEST]
