"""Lines of the working-memory block about work done: file changes, failures and commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from omcli.base.record import field, mutable_record, record
from omcli.memory.observation import FAILURES, FILE_CHANGES, PINNED, Kind, Observation, Status, Type
from omcli.pack.cross_session import WEIGHTS
from omcli.text.clean import below, short
from omcli.text.phrases import with_times

LINE_CHARACTERS = 300
"""Maximum length of a line, in characters. A longer one is cut, between words if possible."""


@record
class Fact:
    """A row, its index among the session's rows, and whether it is settled."""

    place: int
    row: Observation
    is_settled: bool

    def known(self, name: str) -> str:
        """Return the string stored under `name` in the row's metadata, or an empty string if there is none."""
        value = self.row.metadata.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str, default: int) -> int:
        """Return the count stored under `name` in the row's metadata, or the default if there is none."""
        value = self.row.metadata.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default

    def objects(self, name: str) -> list[Mapping[str, object]]:
        """Return the objects in the list stored under `name` in the row's metadata; empty if there is no list."""
        value = self.row.metadata.get(name)
        return [part for part in value if isinstance(part, dict)] if isinstance(value, (list, tuple)) else []


@mutable_record
class FactLine:
    """A line about one subject. `facts` are its rows, the latest last."""

    facts: list[Fact]
    text: str
    is_settled: bool = False
    label: str = ""
    """Beginning of the text that repeats the section's heading. It is left out if possible."""

    @property
    def order(self) -> tuple[bool, bool, int, int]:
        """Sort key: pinned lines first, then unsettled ones, then by priority, then the newest."""
        last = self.facts[-1]
        return (PINNED not in last.row.tags, self.is_settled, -WEIGHTS[last.row.priority], -last.place)


def in_order(lines: Iterable[FactLine]) -> list[FactLine]:
    """Return the lines, most important first."""
    return sorted(lines, key=lambda line: line.order)


def lines_of(facts: Iterable[Fact], belongs: Callable[[Fact], bool]) -> Iterator[FactLine]:
    """Yield a line for each matching row. Rows with equal text share a line."""
    lines: dict[str, FactLine] = {}
    for fact in facts:
        if belongs(fact):
            put(lines, fact.row.text, fact, fact.row.text)
    yield from lines.values()


def put(lines: dict[str, FactLine], key: str, fact: Fact, text: str, *, label: str = "") -> FactLine:
    """Add a row to the line stored under `key`, a new line if there is none, and give the line this text and the row's
    state.
    """
    line = lines.setdefault(key, FactLine(facts=[], text=text, label=label))
    line.facts.append(fact)
    line.text, line.is_settled = text, fact.is_settled
    return line


_CHANGE_CHARACTERS = 120
_FILE = "File "
_RUNS = frozenset({Type.COMMAND_RUN, Type.TOOL_USED})
_NOISE = 3
"""Maximum importance of an observed command or tool use that only reads."""
_RAN = "Ran: "


# ---- files


@mutable_record
class _File:
    facts: list[Fact] = field(default_factory=list)
    is_created: bool = False
    is_deleted: bool = False
    edits: int = 0
    moved_from: str = ""

    @property
    def summary(self) -> str:
        """Summary such as `created, modified × 2`."""
        if self.is_deleted:
            return "deleted"
        parts = [f"moved from {self.moved_from}"] if self.moved_from else []
        if self.is_created:
            parts.append("created")
        if self.edits:
            parts.append(f"modified × {self.edits}" if self.edits > 1 else "modified")
        return ", ".join(parts or ["modified"])


def file_lines(facts: Iterable[Fact], *, cwd: str | None) -> Iterator[FactLine]:
    """Yield a line per file with a summary of its changes and the description of the last one. A row that names no file
    gets a line of its own.
    """
    files: dict[str, _File] = {}
    for fact in facts:
        if fact.row.type not in FILE_CHANGES:
            continue
        path = below(cwd, fact.known("path"))
        if not path:
            yield FactLine(facts=[fact], text=fact.row.text)
            continue
        file = files.setdefault(path, _File())
        _change(file, fact)
        if moved_to := below(cwd, fact.known("moved_to")):
            files[moved_to] = files.pop(path)
            files[moved_to].moved_from = path
    for path, file in files.items():
        said = file.facts[-1].row.text
        what = "" if file.is_deleted else (said.partition(f"{path}: ")[2] or said.partition(": ")[2])
        change = f": {short(what, _CHANGE_CHARACTERS)}" if what else ""
        yield FactLine(facts=file.facts, text=f"{_FILE}{path} ({file.summary}){change}", label=_FILE)


def _change(file: _File, fact: Fact) -> None:
    created = fact.row.type is Type.FILE_CREATED
    file.facts.append(fact)
    if fact.known("change") == "deleted":
        file.is_deleted, file.is_created, file.edits = True, False, 0
        return
    if file.is_deleted:
        file.is_deleted, file.edits = False, 0
    # Overwriting an existing file counts as one more modification.
    again = created and len(file.facts) > 1 and (file.is_created or file.edits > 0)
    file.is_created = file.is_created or (created and not again)
    file.edits += again + fact.number("edits", 0 if created else 1)


# ---- failures and commands


def failure_lines(facts: Iterable[Fact], *, cwd: str | None) -> dict[str, FactLine]:
    """Map each failed command, and each target that a tool failed on, to its line. The keys are made by `_failed_at`.

    A failure is settled if its row is settled, if the command succeeded later, or if the target was changed
    later.
    """
    lines: dict[str, FactLine] = {}
    times: dict[str, int] = {}
    for fact in facts:
        if fact.row.type in FAILURES:
            key = _failed_at(fact, cwd=cwd)
            if key in lines and fact.is_settled and _is_earlier(fact, lines[key].facts[-1]):
                continue  # the line is about a newer failure
            before = 0 if key in lines and lines[key].is_settled else times.get(key, 0)
            times[key] = before + fact.number("times", 1)
            put(lines, key, fact, with_times(_without_count(fact), times[key]), label=_RAN)
        else:
            for key in _worked(fact, cwd=cwd):
                if key in lines:
                    lines[key].is_settled = True
    return lines


def _is_earlier(fact: Fact, other: Fact) -> bool:
    return bool(fact.row.event_at and other.row.event_at and fact.row.event_at < other.row.event_at)


def _failed_at(fact: Fact, *, cwd: str | None) -> str:
    if command := fact.known("command"):
        return f"run {command}"
    target = below(cwd, fact.known("target"))
    return f"use {target}" if target else fact.row.text


def _worked(fact: Fact, *, cwd: str | None) -> Iterator[str]:
    """Yield the keys (see `_failed_at`) of the failures that a row shows to be resolved."""
    if fact.row.type in FILE_CHANGES:
        yield f"use {below(cwd, fact.known('path'))}"
    if fact.row.status is not Status.DONE:
        return
    commands = fact.row.metadata.get("commands")
    for command in (fact.known("command"), *(commands if isinstance(commands, list) else ())):
        if command and isinstance(command, str):
            yield f"run {command}"
            yield from (f"run {part.strip()}" for part in command.split("&&"))


def command_lines(facts: Iterable[Fact], *, besides: Mapping[str, FactLine]) -> Iterator[FactLine]:
    """Yield a line per command with its last outcome. Those that only read are left out, and those in `besides`, which
    have failed.
    """
    lines: dict[str, FactLine] = {}
    for fact in facts:
        if fact.row.type in _RUNS and not _is_read_only(fact):
            key = f"run {fact.known('command')}" if fact.known("command") else fact.row.text
            if key not in besides:
                put(lines, key, fact, _without_count(fact), label=_RAN)
    yield from lines.values()


def _is_read_only(fact: Fact) -> bool:
    return fact.row.kind is Kind.OBSERVATION and fact.row.importance <= _NOISE


def _without_count(fact: Fact) -> str:
    """Return a row's text without its count, such as ` (× 3)`."""
    return fact.row.text.removesuffix(f" (× {fact.number('times', 1)})")
