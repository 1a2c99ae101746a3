"""Recurring rows: the key that makes two rows the same, their count, and the key of a failure."""

from __future__ import annotations

from types import MappingProxyType

from omcli.base.patterns import lazily
from omcli.base.record import replace
from omcli.memory.observation import FAILURES, FILE_CHANGES, Draft, Status, Type
from omcli.observers.rules.tools.commands import command_key, tool_key
from omcli.observers.rules.tools.events import tool_kind
from omcli.text.phrases import times_in, with_times, without_times

# A failed check is only resolved by the same check.
_CHECKS = lazily(
    r"\b(?:tests?|spec|lint|check|typecheck|build|compile|verify|validate|deploy|publish|release|push|migrate|make|"
    r"tsc|mypy|pyright|pytest|jest|vitest|mocha|rspec|phpunit|ruff|eslint|clippy|vet|gradlew?|mvn|tox|nox)\b"
)


def row_key(draft: Draft) -> tuple[Type, str, str | None]:
    """Return what makes two rows the same: the text without its count, for failures the directory too."""
    return draft.type, without_times(draft.text) if _is_counted(draft) else draft.text, failure_directory(draft)


def _is_counted(draft: Draft) -> bool:
    return draft.type in FAILURES or (draft.type is Type.COMMAND_RUN and "command" in draft.metadata)


def with_count(old: Draft, new: Draft) -> Draft:
    """Return the new row with the total number of occurrences, if they are counted."""
    if new.type in FILE_CHANGES:
        edits = _edits(old) + _edits(new) + (new.type is Type.FILE_CREATED)  # it existed already
        return replace(new, metadata=MappingProxyType({**new.metadata, "edits": edits}))
    if not _is_counted(new) or is_running(new):
        return new
    times = times_in(old.text) + times_in(new.text)
    metadata = MappingProxyType({**new.metadata, "times": times})
    return replace(new, text=with_times(without_times(new.text), times), metadata=metadata)


def _edits(draft: Draft) -> int:
    """Number of edits of a file in a row."""
    edits = draft.metadata.get("edits")
    return edits if isinstance(edits, int) else 1


def failure_key(draft: Draft) -> str:
    """Return the key of what failed; empty for other rows."""
    if draft.type not in FAILURES:
        return ""
    command, tool, target = (draft.metadata.get(name) for name in ("command", "tool", "target"))
    if isinstance(command, str):
        return command_key(command)
    kind = tool_kind(tool) if isinstance(tool, str) else None
    return tool_key(kind, target) if kind and isinstance(target, str) else ""


def failure_directory(draft: Draft) -> str | None:
    """Return the directory a failed command ran in, if known."""
    directory = draft.metadata.get("directory") if draft.type in FAILURES else None
    return directory if isinstance(directory, str) else None


def is_check(draft: Draft) -> bool:
    """Return True if a failed command tested, built or published something, so that no other command replaces it."""
    command = draft.metadata.get("command")
    return isinstance(command, str) and bool(_CHECKS.search(command))


def is_running(draft: Draft) -> bool:
    """Return True if a row is of a process that has not ended."""
    return draft.status is Status.OPEN and isinstance(draft.metadata.get("process"), str)


def todo_texts(row: Draft | None) -> frozenset[str]:
    """Return the entries of a row with a whole todo list."""
    entries = row.metadata.get("todos") if row and row.type is Type.TODO_UPDATED else None
    if row is None or not isinstance(entries, list | tuple) or row.metadata.get("partial"):
        return frozenset()
    return frozenset(str(entry.get("text")) for entry in entries if isinstance(entry, dict))
