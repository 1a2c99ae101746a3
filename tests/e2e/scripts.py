"""Models whose replies are written down, and what they were asked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import Om

UNTIL = {"until": "go"}
"""A reply that says this is not given before `Script.answers`."""


@dataclass(frozen=True, slots=True)
class Script:
    """The replies of a model in a file, and the record of what it was sent."""

    path: Path

    @property
    def model(self) -> str:
        """As `--model` takes it."""
        return f"scripted/{self.path}"

    def answers(self) -> None:
        """From now on, to who has waited (`UNTIL`)."""
        self.path.with_name("go").touch()

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What it was sent, ask by ask."""
        record = self.path.with_name(f"{self.path.name}.asked.jsonl")
        text = record.read_text() if record.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]  # the last may be being written

    @property
    def prompts(self) -> list[str]:
        """What stands in the prompts beside the rules."""
        return ["".join(part for part in ask["content"] if isinstance(part, str)) for ask in self.asked]

    @property
    def transcripts(self) -> list[str]:
        """What stands between the fences of the prompts."""
        return [prompt.split("\n<<< transcript ")[1].split("\n>>> ")[0].partition("\n")[2] for prompt in self.prompts]


def script(om: Om, *replies: object, name: str = "replies.json") -> Script:
    """A model that gives these replies, one after the other; texts as they stand, objects as `providers.scripted`."""
    return Script(om.write(name, json.dumps(list(replies))))


def always(om: Om, reply: object, name: str = "always.json") -> Script:
    """A model that always gives the same reply."""
    return Script(om.write(name, json.dumps(reply)))


def rows(om: Om, *arguments: str) -> list[dict[str, Any]]:
    """The rows in the store, as `om log --jsonl` prints them."""
    return om("log", "--all", "--jsonl", *arguments).lines


def said_by_model(om: Om) -> list[str]:
    """The texts of the rows that a model wrote."""
    return [row["text"] for row in rows(om) if row["source"] == "model"]


def pending(om: Om) -> int:
    """How many messages wait."""
    return int(om("status", "--json").document["pending"])


def calls(om: Om) -> dict[str, Any]:
    """The ledger's total."""
    total: dict[str, Any] = om("usage", "--json").document["total"]
    return total
