"""Edits to drafts: a row for each file that a turn created, modified, moved or deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omcli.memory.observation import Draft, Type
from omcli.memory.record import replace
from omcli.observers.rules.drafting import Paths, draft_of
from omcli.observers.rules.edits import Change, changes_of, what_changed
from omcli.observers.rules.excerpts import Interest, new_lines
from omcli.observers.rules.tools import ToolEvent, ToolKind
from omcli.observers.rules.wording import cut

_ROW_CHARACTERS = 900


def file_changes(events: Sequence[ToolEvent], interest: Interest, near: Paths) -> Iterator[Draft]:
    """One row per file: edits of the same file are one fact with all its sources. `events` are those that worked.

    With what the edits define or remove stand the new lines that name what the work comes back to.
    """
    by_path: dict[str, list[tuple[ToolEvent, Change]]] = {}
    for event in events:
        for change in changes_of(event.arguments, event.raw):
            creates = change.creates or (event.kind is ToolKind.WRITE and " updated" not in event.output[:200])
            by_path.setdefault(change.path, []).append((event, replace(change, creates=creates)))
    for path, made in by_path.items():
        yield _file(path, [event for event, _ in made], [change for _, change in made], interest, near)


def _file(path: str, events: Sequence[ToolEvent], changes: list[Change], interest: Interest, near: Paths) -> Draft:
    created, deleted = changes[0].creates, changes[-1].deletes
    edits = len(changes) - created - deleted
    verb = "Deleted" if deleted else "Created" if created else "Modified"
    moved_to = next((change.moved_to for change in changes if change.moved_to), None)
    moved = f" → {near(moved_to)}" if moved_to else ""
    what = "" if deleted else _told(what_changed(changes), interest.lines(new_lines(changes)))
    return draft_of(
        events,
        cut(
            f"{verb} {near(path)}{moved}{_times(edits, created=created)}" + (f": {what}" if what else ""),
            _ROW_CHARACTERS,
        ),
        Type.FILE_CREATED if created else Type.FILE_MODIFIED,
        7,
        metadata={"path": path, "change": verb.lower(), "edits": edits, "moved_to": moved_to},
    )


def _told(names: str, lines: Sequence[str]) -> str:
    """What changed, in names, then in lines as they stand in the file; a line that is told already is left out."""
    return " · ".join(filter(None, (names, *(line for line in lines if line not in names))))


def _times(edits: int, *, created: bool) -> str:
    """How often a file was edited: since it was created, or where it was more than once."""
    if created:
        return f" ({edits} edit{'s' if edits > 1 else ''} since)" if edits else ""
    return f" ({edits} edits)" if edits > 1 else ""
