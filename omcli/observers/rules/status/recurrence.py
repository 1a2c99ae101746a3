"""Rows about the same thing: their key, how often it happened, and what failed."""

from __future__ import annotations

from types import MappingProxyType

from omcli.base.patterns import lazily
from omcli.base.record import replace
from omcli.memory.observation import FAILURES, FILE_CHANGES, Draft, Status, Type
from omcli.observers.rules.tools.commands import command_key, tool_key
from omcli.observers.rules.tools.events import tool_kind
from omcli.text.phrases import times_in, with_times, without_times

# What such a command says is not outdone by doing something else.
_CHECKS = lazily(
    r"\b(?:tests?|spec|lint|check|typecheck|build|compile|verify|validate|deploy|publish|release|push|migrate|make|"
    r"tsc|mypy|pyright|pytest|jest|vitest|mocha|rspec|phpunit|ruff|eslint|clippy|vet|gradlew?|mvn|tox|nox)\b"
)


def row_key(draft: Draft) -> tuple[Type, str, str | None]:
    """What makes two rows the same: commands and failures whatever their count, failures in one place."""
    return draft.type, without_times(draft.text) if _is_counted(draft) else draft.text, failure_directory(draft)


def _is_counted(draft: Draft) -> bool:
    return draft.type in FAILURES or (draft.type is Type.COMMAND_RUN and "command" in draft.metadata)


def with_count(old: Draft, new: Draft) -> Draft:
    """The new row with how often it happened in all, where that is counted."""
    if new.type in FILE_CHANGES:
        edits = _edits(old) + _edits(new) + (new.type is Type.FILE_CREATED)  # it was there already
        return replace(new, metadata=MappingProxyType({**new.metadata, "edits": edits}))
    if not _is_counted(new) or is_running(new):
        return new
    times = times_in(old.text) + times_in(new.text)
    metadata = MappingProxyType({**new.metadata, "times": times})
    return replace(new, text=with_times(without_times(new.text), times), metadata=metadata)


def _edits(draft: Draft) -> int:
    """How often a row says that a file was edited."""
    edits = draft.metadata.get("edits")
    return edits if isinstance(edits, int) else 1


def failure_key(draft: Draft) -> str:
    """What a failure's row says failed; empty for any other row."""
    if draft.type not in FAILURES:
        return ""
    command, tool, target = (draft.metadata.get(name) for name in ("command", "tool", "target"))
    if isinstance(command, str):
        return command_key(command)
    kind = tool_kind(tool) if isinstance(tool, str) else None
    return tool_key(kind, target) if kind and isinstance(target, str) else ""


def failure_directory(draft: Draft) -> str | None:
    """Where the command of a failure's row ran, where that was said."""
    directory = draft.metadata.get("directory") if draft.type in FAILURES else None
    return directory if isinstance(directory, str) else None


def is_check(draft: Draft) -> bool:
    """Whether a failure tells of what was made, or of what was to be published, and not of one way to get there."""
    command = draft.metadata.get("command")
    return isinstance(command, str) and bool(_CHECKS.search(command))


def is_running(draft: Draft) -> bool:
    """Whether a row is of something that was started and has not ended."""
    return draft.status is Status.OPEN and isinstance(draft.metadata.get("process"), str)


def todo_texts(row: Draft | None) -> frozenset[str]:
    """The entries of a row that holds a whole list of todos."""
    entries = row.metadata.get("todos") if row and row.type is Type.TODO_UPDATED else None
    if row is None or not isinstance(entries, list | tuple) or row.metadata.get("partial"):
        return frozenset()
    return frozenset(str(entry.get("text")) for entry in entries if isinstance(entry, dict))
