"""Transcripts of any size for benchmarks, written line by line as Claude Code writes them, the same every time.

Sizes follow real sessions: a megabyte holds about 70 calls with results of 2.4 KB on average, 40 answers, 10 prompts.
A quarter of it is what was said, called and answered, a third the client's own copy of the results, the rest thinking,
progress records and envelopes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, TextIO
from uuid import UUID

PROJECT = "/home/ada/harbour"
SESSION = "7b1e4c52-0000-4000-8000-000000000001"
_BEGIN = datetime(2026, 2, 10, 9, 0, tzinfo=UTC)

_THINGS = (
    "berth crane tide gate pilot ledger queue parser schedule buoy manifest ferry lock beacon cargo channel".split()
)
_VERBS = "load store sort merge check parse print cache retry split count close read write guard trim".split()
_PROSE = """
the berth plan is read twice before a ferry docks and nobody knows why since the ledger already holds every arrival so
we keep one copy and drop the other when the tide table changes at night while the crane waits for its turn in the queue
and the pilot asks again whether the gate is open or shut until somebody writes it down where all of them can see it
""".split()
_ASKED = (
    "Please make `{name}` in {path} return the {thing} in metres, and keep the old name as an alias.",
    "Why does {path} fail with {number} entries? Find out and fix it.",
    "Always run the tests of {thing} before you say that it works.",
    "We decided to keep the {thing} in one table because two of them drifted apart last winter.",
    "No, not like that: `{name}` must not open the file again.",
    "What is left to do for the {thing} before Friday?",
)
_TOLD = (
    "I will look at {path} first.",
    "Done: `{name}` now returns metres, and all {number} tests pass.",
    "The cause was `{name}`: it read the {thing} before the lock was taken. I moved the call behind it.",
    "Now the tests for {path}.",
    "I could not reproduce it with {number} entries; the failure needs a second writer.",
)


def write(path: Path, size: int, *, seed: int = 1, session: str = SESSION) -> None:
    """Writes a transcript of about `size` bytes, at least one turn."""
    with path.open("w", encoding="utf-8") as file:
        written = 0
        for line in lines(seed, session=session):
            file.write(line)
            written += len(line)
            if written >= size and line.startswith('{"type":"system"'):
                return


def grow(path: Path, *, seed: int) -> None:
    """Appends one more turn."""
    with path.open("a", encoding="utf-8") as file:
        for line in lines(seed):
            file.write(line)
            if line.startswith('{"type":"system"'):
                return


def lines(seed: int, *, session: str = SESSION) -> Iterator[str]:
    """Records without end; a turn ends with a `system` record."""
    writer = _Writer(Random(seed), session)
    while True:
        yield from writer.turn()


class _Writer:
    """Writes one session, a second per record."""

    def __init__(self, random: Random, session: str) -> None:
        self._random = random
        self._session = session
        self._at = _BEGIN + timedelta(days=random.randrange(300))
        self._parent: str | None = None

    def turn(self) -> Iterator[str]:
        """A prompt, some steps with tools, an answer, the client's closing record."""
        yield self._record("user", {"message": {"role": "user", "content": self._phrase(_ASKED)}})
        for _ in range(self._random.randrange(1, 14)):
            yield from self._step()
        yield self._said({"type": "text", "text": f"{self._phrase(_TOLD)} {self._prose(150)}"})
        yield self._record("system", {"subtype": "turn_duration", "durationMs": self._random.randrange(100_000)})

    def _step(self) -> Iterator[str]:
        if self._random.random() < 0.6:
            yield self._said({"type": "thinking", "thinking": self._prose(150), "signature": self._token(300)})
        if self._random.random() < 0.4:
            yield self._said({"type": "text", "text": f"{self._phrase(_TOLD)} {self._prose(self._lines(150))}"})
        call = f"toolu_{self._token(24)}"
        tool, arguments, output, failed = self._random.choices(
            [self._shell, self._file, self._edit, self._search], weights=[40, 25, 20, 15]
        )[0]()
        yield self._said({"type": "tool_use", "id": call, "name": tool, "input": arguments})
        for _ in range(self._random.choice([0, 0, 0, 0, 1, 2])):
            yield self._record(
                "progress", {"data": {"type": "hook_progress", "command": self._prose(650)}, "toolUseID": call}
            )
        result = {"tool_use_id": call, "type": "tool_result", "content": output, "is_error": failed}
        message = {"role": "user", "content": [result]}
        copy = {"stdout": output, "stderr": "", "interrupted": False, "original": self._code(self._lines(120))}
        yield self._record("user", {"message": message, "toolUseResult": copy})

    def _shell(self) -> tuple[str, dict[str, Any], str, bool]:
        command = f"python -m pytest -q tests/test_{self._thing()}.py 2>&1 | tail -{self._random.randrange(5, 80)}"
        if self._random.random() < 0.5:
            command = f"git log --oneline -- {self._path()} && wc -l {self._path()}"
        output = [f"{self._path()}:{self._random.randrange(900)}: {self._prose(8)}" for _ in range(self._lines(90))]
        failed = self._random.random() < 0.15
        if failed:
            output = [
                "Exit code 1",
                *output,
                f"E   KeyError: '{self._name()}'",
                f"FAILED {self._path()}::{self._name()}",
            ]
        return "Bash", {"command": command, "description": self._prose(6)}, "\n".join(output), failed

    def _file(self) -> tuple[str, dict[str, Any], str, bool]:
        numbered = "\n".join(f"{at:6}\t{line}" for at, line in enumerate(self._code(self._lines(180)).splitlines(), 1))
        return "Read", {"file_path": f"{PROJECT}/{self._path()}"}, numbered, False

    def _edit(self) -> tuple[str, dict[str, Any], str, bool]:
        path = f"{PROJECT}/{self._path()}"
        arguments = {
            "file_path": path,
            "old_string": self._code(self._lines(70)),
            "new_string": self._code(self._lines(70)),
        }
        return "Edit", arguments, f"The file {path} has been updated.\n{self._code(6)}", False

    def _search(self) -> tuple[str, dict[str, Any], str, bool]:
        found = [
            f"{PROJECT}/{self._path()}:{self._random.randrange(900)}:    {self._statement()}"
            for _ in range(self._lines(50))
        ]
        return "Grep", {"pattern": self._name(), "path": PROJECT}, "\n".join(found), False

    def _said(self, block: dict[str, Any]) -> str:
        usage = {"input_tokens": self._random.randrange(9), "cache_read_input_tokens": self._random.randrange(90_000)}
        message = {
            "id": f"msg_{self._token(24)}",
            "type": "message",
            "role": "assistant",
            "model": "m-1",
            "content": [block],
            "stop_reason": None,
            "usage": usage | {"output_tokens": 1, "service_tier": "standard"},
        }
        return self._record("assistant", {"message": message, "requestId": f"req_{self._token(24)}"})

    def _record(self, kind: str, fields: dict[str, Any]) -> str:
        self._at += timedelta(seconds=1)
        uuid = str(UUID(int=self._random.getrandbits(128)))
        envelope = {
            "type": kind,
            "parentUuid": self._parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": PROJECT,
            "sessionId": self._session,
            "version": "2.1.0",
            "gitBranch": "main",
            "uuid": uuid,
            "timestamp": f"{self._at:%Y-%m-%dT%H:%M:%S}.000Z",
        }
        self._parent = uuid
        return json.dumps(envelope | fields, separators=(",", ":")) + "\n"

    def _lines(self, most: int) -> int:
        """Mostly few, sometimes many."""
        return 1 + int(most * self._random.random() ** 2)

    def _phrase(self, phrases: tuple[str, ...]) -> str:
        phrase = self._random.choice(phrases)
        number = self._random.randrange(3, 400)
        return phrase.format(name=self._name(), path=self._path(), thing=self._thing(), number=number)

    def _prose(self, words: int) -> str:
        return " ".join(self._random.choices(_PROSE, k=words))

    def _code(self, lines: int) -> str:
        return "\n".join(f"    {self._statement()}" for _ in range(lines))

    def _statement(self) -> str:
        return f"{self._name()} = {self._thing()}.{self._name()}({self._thing()}, limit={self._random.randrange(9999)})"

    def _name(self) -> str:
        return f"{self._random.choice(_VERBS)}_{self._thing()}_{self._random.randrange(40)}"

    def _path(self) -> str:
        return f"src/{self._thing()}/{self._random.choice(_VERBS)}_{self._thing()}.py"

    def _thing(self) -> str:
        return self._random.choice(_THINGS)

    def _token(self, length: int) -> str:
        return "".join(self._random.choices("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ123456789", k=length))


def write_turns(path: Path) -> None:
    """Write a session of 50,000 messages of a word or two."""
    with path.open("w") as stream:
        for nth in range(50_000):
            text: Any = f"ok {nth}" if nth % 2 == 0 else [{"type": "text", "text": f"done {nth}"}]
            _write_record(stream, nth, "assistant" if nth % 2 else "user", text)


def write_calls(path: Path) -> None:
    """Write a session in which one message calls a tool 100,000 times."""
    calls = [
        {"type": "tool_use", "id": f"t{nth}", "name": "Bash", "input": {"command": f"ls dir{nth}"}}
        for nth in range(100_000)
    ]
    with path.open("w") as stream:
        _write_record(stream, 0, "user", "Run them all.")
        _write_record(stream, 1, "assistant", calls)


def _write_record(stream: TextIO, nth: int, role: str, content: Any) -> None:
    record = {
        "type": role,
        "sessionId": SESSION,
        "uuid": f"u{nth}",
        "parentUuid": f"u{nth - 1}" if nth else None,
        "cwd": PROJECT,
        "timestamp": f"2026-01-05T{nth // 3600 % 24:02}:{nth // 60 % 60:02}:{nth % 60:02}Z",
        "message": {"role": role, "content": content},
    }
    stream.write(json.dumps(record) + "\n")
