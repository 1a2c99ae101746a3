"""Transcripts for the tests of this folder, written line by line in the way Claude Code writes them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

PROJECT = "/home/ada/tide-tables"
_BEGIN = datetime(2026, 2, 10, 9, 0, tzinfo=UTC)


@dataclass(slots=True)
class Talk:
    """A session as it grows; every method adds one record, a minute later than the one before."""

    session: str = "5d0c6e0a-0000-4000-8000-000000000001"
    cwd: str = PROJECT
    begin: datetime = _BEGIN
    lines: list[str] = field(default_factory=list)

    def user(self, text: str, **fields: Any) -> Talk:
        """A prompt."""
        return self._add("user", {"role": "user", "content": text}, **fields)

    def assistant(self, text: str, **fields: Any) -> Talk:
        """An answer."""
        return self._add("assistant", self._said([{"type": "text", "text": text}]), **fields)

    def call(self, tool: str, arguments: dict[str, Any], **fields: Any) -> Talk:
        """A tool call; its result is expected next."""
        use = {"type": "tool_use", "id": self._id("toolu", len(self.lines) + 1), "name": tool, "input": arguments}
        return self._add("assistant", self._said([use]), **fields)

    def result(self, text: str, *, is_error: bool = False, **fields: Any) -> Talk:
        """What the tool called last answered."""
        block = {"type": "tool_result", "tool_use_id": self._id("toolu", len(self.lines)), "content": text}
        return self._add(
            "user", {"role": "user", "content": [block | ({"is_error": True} if is_error else {})]}, **fields
        )

    def raw(self, line: str) -> Talk:
        """A line as it is."""
        self.lines.append(line)
        return self

    def text(self) -> str:
        """The file."""
        return "".join(f"{line}\n" for line in self.lines)

    def _said(self, blocks: list[dict[str, Any]]) -> dict[str, Any]:
        named = {"id": self._id("msg", len(self.lines)), "type": "message", "role": "assistant", "model": "m"}
        return {**named, "content": blocks}

    def _id(self, kind: str, number: int) -> str:
        return f"{kind}_{uuid5(NAMESPACE_URL, f'{self.session}/{number}').hex[:16]}"

    def _add(self, kind: str, message: dict[str, Any], **fields: Any) -> Talk:
        number = len(self.lines)
        record = {
            "type": kind,
            "uuid": str(uuid5(NAMESPACE_URL, f"{self.session}/{number}")),
            "parentUuid": None,
            "sessionId": self.session,
            "cwd": self.cwd,
            "gitBranch": "main",
            "version": "2.1.0",
            "isSidechain": False,
            "timestamp": (self.begin + timedelta(minutes=number)).isoformat().replace("+00:00", ".000Z"),
            "message": message,
            **fields,
        }
        return self.raw(json.dumps(record))


def tide_story(**fields: Any) -> Talk:
    """Eight messages: a request with a standing instruction, an edit, a failing test run, a fix, a result."""
    return (
        Talk(**fields)
        .user("Always use metric units. Please add a --station flag to tides.py so that I can pick Cuxhaven.")
        .assistant("I will add the flag to the parser.")
        .call("Edit", {"file_path": f"{PROJECT}/tides.py", "old_string": "parse()", "new_string": "parse(station)"})
        .result("The file has been updated.")
        .call("Bash", {"command": "pytest -q tests/test_tides.py"})
        .result("Exit code 1\nE   KeyError: 'Cuxhaven'", is_error=True)
        .user("The station ids are in stations.json, we decided to keep them lower case.")
        .assistant("Done: the ids are looked up in lower case now, and all 12 tests pass.")
    )


def long_talk(session: str, messages: int, *, lines: int = 20) -> Talk:
    """Prompts and commands, each with something of its own to keep; a command prints so many lines."""
    # Equal words at the same instant would be taken for a copy that a resumed session made.
    talk = Talk(session=session, begin=_BEGIN + timedelta(seconds=sum(session.encode()) % 60))
    for number in range(messages // 4):
        talk.user(f"We decided that rule {number} of {session} is to use port {8000 + number}.")
        talk.call("Bash", {"command": f"make target-{number}", "cwd": PROJECT})
        talk.result(f"built target-{number}\n" + "compiling something long\n" * lines)
        talk.assistant(f"Target {number} is built.")
    return talk


def with_remarks(talk: Talk, count: int) -> Talk:
    """The talk and so many remarks of its agent, each of some twenty tokens of its own."""
    for number in range(count):
        if number % 40 == 0:
            talk.user(f"Now tell me about pier {number} and those after it.")
        talk.assistant(f"Pier {number} was painted by crew {number}, whose foreman wrote it into book {number}.")
    return talk
