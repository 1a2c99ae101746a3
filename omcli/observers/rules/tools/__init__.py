"""Rows of what tools did in a turn. One row per fact: all edits of one file, and all reads of a turn, are one row.

Importances come from the coding-agent design: edits 7, failures 8, commands 4, todos and delegations 5, reading and
searching 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from omcli.base.patterns import lazily
from omcli.memory.observation import Draft
from omcli.observers.rules.tools.commands import command_drafts, failure_draft, is_answer
from omcli.observers.rules.tools.events import Paths, ToolEvent, ToolKind
from omcli.observers.rules.tools.files import IdentifierCounts, excerpt_drafts, file_change_drafts, read_only_drafts
from omcli.observers.rules.tools.tasks import DRAFTS, todo_draft

_REFUSED = lazily(
    r"^(?:User (?:denied|rejected|declined)|BLOCKED|The user doesn't want to|patch rejected|aborted by user|"
    r"\[Request interrupted by user|Operation aborted)",
    re.IGNORECASE,
)


def tool_drafts(events: Sequence[ToolEvent], *, cwd: str | None, interest: IdentifierCounts) -> Iterator[Draft]:
    """Yield the rows of one turn's tool events, unordered.

    Paths below `cwd` are shortened; `interest` chooses the lines quoted from files and output.
    """
    paths = Paths(cwd)
    finished = [event for event in events if event.result is not None and not _REFUSED.match(event.output)]
    successful = [event for event in finished if not event.failed]
    yield from (failure_draft(event, paths) for event in finished if event.failed and not is_answer(event))
    yield from file_change_drafts(
        [event for event in successful if event.kind in (ToolKind.EDIT, ToolKind.WRITE)], interest, paths
    )
    yield from command_drafts([event for event in successful if event.kind is ToolKind.RUN])
    yield from read_only_drafts(successful, paths)
    yield from excerpt_drafts(successful, interest, paths)
    if draft := todo_draft([event for event in successful if event.kind is ToolKind.TODO]):
        yield draft
    for event in successful:
        if (single := DRAFTS.get(event.kind)) and (draft := single(event)):
            yield draft
