"""Rows to be reflected on, and what a model answers to that."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from omcli.memory.observation import Observation
from tests.conftest import Om
from tests.e2e.scripts import Script, script
from tests.e2e.transcripts import Talk
from tests.material import NOW as AT
from tests.material import session
from tests.replying import answer, said

NOW = ("--now", "2026-03-02T12:00:00Z")


def kept(om: Om, *rows: Observation) -> None:
    """Puts rows into the store as they are, and their sessions."""
    om.db.parent.mkdir(exist_ok=True)
    with om.open() as store:
        for name in dict.fromkeys(row.session for row in rows if row.session):
            store.messages.append(session(name), [], counter="words", now=AT)
        for row in rows:
            store.rows.add(row)


def noticed(om: Om, *texts: str, session: str = "s", name: str = "noticed", day: str = "2026-02-10") -> None:
    """Rows of these texts, each observed in a message of its own of that day, in which rules find nothing."""
    talk = Talk(session=session, begin=datetime.fromisoformat(f"{day}T09:00:00+00:00"))
    for number in range(len(texts)):
        key = str(uuid5(NAMESPACE_URL, f"{session}/{name}/{number}"))
        talk.user("Hi.", uuid=key)
    rows = [said(text, f"m{number}") for number, text in enumerate(texts, start=1)]
    model = script(om, answer(*rows), name=f"{session}-{name}.json")
    om("observe", om.write(f"{session}-{name}.jsonl", talk.text()), "--model", model.model)


def told(text: str, *labels: str, **fields: object) -> dict[str, object]:
    """A reflection that takes the place of the rows it cites."""
    row: dict[str, object] = {
        "text": text, "priority": "medium", "kind": "fact", "status": None, "from": list(labels), "first": None,
        "last": None,
    }  # fmt: skip
    return row | fields


def reply(
    *reflections: dict[str, object],
    keep: Sequence[str] = (),
    drop: Sequence[dict[str, object]] = (),
    items: Sequence[dict[str, object]] = (),
) -> str:
    """What a model answers."""
    return json.dumps({"reflections": reflections, "keep": keep, "drop": drop, "items": items})


def labels(count: int, first: int = 1) -> list[str]:
    """So many labels."""
    return [f"o{number}" for number in range(first, first + count)]


def reflecting(om: Om, *replies: object, name: str = "reflector.json") -> Script:
    """A model that is asked to reflect and gives these replies."""
    return script(om, *replies, name=name)


def in_sight(om: Om, *arguments: str) -> list[dict[str, Any]]:
    """The rows that are in sight, oldest first."""
    return om("log", "--jsonl", *arguments).lines


def texts(om: Om, *arguments: str) -> list[str]:
    """What the rows in sight say."""
    return [row["text"] for row in in_sight(om, *arguments)]
