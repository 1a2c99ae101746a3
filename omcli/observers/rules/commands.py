"""Rows about commands (including commits, pushes and pull requests) and failed tool calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from omcli.base import lazily
from omcli.memory.observation import Draft, Priority, Status, Type
from omcli.observers.rules import shell
from omcli.observers.rules.failures import command_key, tool_key
from omcli.observers.rules.sentences import cut, first_lines
from omcli.observers.rules.status import Succeeded
from omcli.observers.rules.tool_events import Paths, ToolEvent, ToolKind, event_draft, process_fields, target_of
from omcli.text.phrases import first_of, with_times

_FOLDED_CHARACTERS = 70
"""Maximum number of characters of each command if several share a row."""
_FAILURE_CHARACTERS = 200
"""Maximum length of a failure's row, in characters. The error itself is in the metadata."""
_FAILED_COMMAND_CHARACTERS = 100
_ERROR_CHARACTERS = 1000
_ANSWER_CHARACTERS = 300
_OPENS_REQUEST = lazily(r"\b(?:pr|mr|release|pull-request)\s+create\b")
# The effect of these shows in later commands, so they are listed with the commands that only read.
_PREPARES = lazily(r"(?:git add|mkdir|touch|chmod|sleep|cd|export|source)\b[^;&|\n]*\Z")
_PUSHES = lazily(r"\bgit push\b")
_INLINE = lazily(
    r"(?:\S*/)?(?:python[\d.]*|node|bun|deno|ruby|perl|php|tsx)(?: -[\w=-]*){0,5}?"
    r"(?: -[cep]\b| --(?:eval|print)\b| -? ?<<)"
)
_ERROR_LABEL = lazily(r"\W*(?:the )?(?:tool )?(?:errors?|failed|failure|exception|result)\W*", re.IGNORECASE)
"""A line that only says that the next one is an error."""


# ---- commands


def command_drafts(events: Sequence[ToolEvent]) -> Iterator[Draft]:
    """Yield a row per commit, push, pull request or release, a row per other distinct command and outcome, and one row
    for all commands that only read or prepare something.
    """
    read_only: list[tuple[str, ToolEvent]] = []
    others: dict[tuple[str, str], list[ToolEvent]] = {}
    for event in events:
        command = event.command
        if not command:
            continue
        if (draft := _outcome_draft(command, event)) is not None:
            yield draft
        elif shell.is_read_only(command) or _PREPARES.match(command):
            read_only.append((shell.short(command), event))
        else:
            others.setdefault((shell.short(command), _outcome(event)), []).append(event)
    for (command, outcome), repeats in others.items():
        yield _command_draft(command, outcome, repeats)
    if read_only:
        yield _read_only_draft(read_only)


def _command_draft(
    command: str, outcome: str, events: Sequence[ToolEvent], *, priority: Priority | None = None
) -> Draft:
    return event_draft(
        events,
        with_times(f"Ran: {command}{outcome}", len(events)),
        Type.COMMAND_RUN,
        4,
        priority=priority,
        status=Status.OPEN if events[-1].process else None if _is_failure_lost(events[-1]) else Status.DONE,
        metadata={
            "command": command,
            "exit_code": events[-1].exit_code,
            "times": _times(events),
            **process_fields(events[-1]),
        },
    )


def _read_only_draft(commands_run: Sequence[tuple[str, ToolEvent]]) -> Draft:
    events = [event for _, event in commands_run]
    commands = list(dict.fromkeys(command for command, _ in commands_run))
    if len(commands) == 1 and (outcome := _outcome(events[-1])):
        return _command_draft(commands[0], outcome, events, priority=Priority.LOW)
    names = list(dict.fromkeys(shell.short(command, _FOLDED_CHARACTERS) for command in commands))
    return event_draft(
        events,
        f"Ran: {first_of(names, '; ') if len(commands) > 1 else commands[0]}",
        Type.COMMAND_RUN,
        2,
        status=Status.DONE,
        metadata={"commands": commands},
    )


def _times(events: Sequence[ToolEvent]) -> int | None:
    return len(events) if len(events) > 1 else None


def _outcome(event: ToolEvent) -> str:
    """Return how a command ended, as in ` → exit 0: 12 passed`, or "" if nothing is known about it.

    Without an exit code, a success is given as "ok", unless the command hides its exit status (`make | tail`). Errors
    that are hidden in this way replace the summary line. The result for a running command is ` (still running)`.
    """
    if event.process:
        return " (still running)"
    code, masked = event.exit_code, shell.is_status_lost(event.command)
    detail = (
        shell.error_lines(event.output, _ANSWER_CHARACTERS)
        if _is_failure_lost(event)
        else shell.summary_line(event.output)
    )
    succeeded = not masked and event.result is not None and event.result.message.failed is False
    status = f"exit {code}" if code is not None else "ok" if succeeded else ""
    return f" → {status}{': ' if status and detail else ''}{detail}" if status or detail else ""


def _is_failure_lost(event: ToolEvent) -> bool:
    """Return True if the output reports errors that the exit status hides (`make | tail`)."""
    if not shell.is_status_lost(event.command) or shell.is_read_only(event.command):
        return False
    return shell.has_error(event.output[-8000:]) or shell.has_failures(event.output)


def _outcome_draft(command: str, event: ToolEvent) -> Draft | None:
    """Return the row for a commit, push, pull request or release, or None."""
    shown = shell.short(command)
    sha = None
    if ("commit" in command or "merge" in command) and (commit := shell.commit_in(event.output)):
        branch, sha, title = commit
        text = f"Committed {sha} on {branch}: {title}"
    elif _OPENS_REQUEST.search(command) and (address := shell.request_url(event.output)):
        text = f"Opened {address} with: {shown}"
    elif _PUSHES.search(command) and not shell.is_read_only(command):
        text = f"Pushed: {shown}{_outcome(event)}"
    else:
        return None
    return event_draft(
        [event],
        text,
        Type.OUTCOME,
        7,
        priority=Priority.MEDIUM,
        status=Status.DONE,
        metadata={"commit": sha, "command": shown},
    )


# ---- failures


def succeeded(events: Iterable[ToolEvent]) -> Iterator[Succeeded]:
    """Yield the calls that succeeded, which `status` uses to resolve earlier failures."""
    for event in events:
        if event.result is not None and not event.failed and not event.process and not _is_failure_lost(event):
            yield Succeeded(
                targets=_target_keys(event),
                command=event.command,
                proven=shell.has_successes(event.output),
                directory=_directory(event),
                sources=event.sources,
                at=event.at,
            )


def failure_draft(event: ToolEvent, paths: Paths) -> Draft:
    """Return an open row for one failure. The module `status` counts repeats of the failure and resolves it."""
    metadata: dict[str, object] = {"error": _error_text(event), "tool": event.name, "exit_code": event.exit_code}
    if directory := _directory(event):
        metadata["directory"] = directory
    if event.kind is ToolKind.RUN:
        command = event.command
        code = f"exit {event.exit_code}" if event.exit_code else "failed"
        return event_draft(
            [event],
            _failure_text(f"Ran: {shell.short(command, _FAILED_COMMAND_CHARACTERS) or event.name} → {code}", event),
            Type.COMMAND_ERROR,
            # A mistyped listing or search is minor, and a script in the command line is an experiment.
            5 if shell.is_read_only(command) or _INLINE.match(command) else 8,
            status=Status.OPEN,
            metadata=metadata | {"command": shell.short(command) or event.name},
        )
    doing = " ".join(part for part in (event.name, paths(target_of(event))) if part)
    return event_draft(
        [event],
        _failure_text(f"{doing} failed", event),
        Type.TOOL_ERROR,
        # A read or search of something that does not exist is minor.
        8 if event.kind in (ToolKind.EDIT, ToolKind.WRITE, ToolKind.DELEGATE, ToolKind.REMOTE) else 4,
        status=Status.OPEN,
        metadata=metadata | {"target": target_of(event) or None},
    )


def _failure_text(subject_text: str, event: ToolEvent) -> str:
    """Return a failure and its reason, short enough to append a count."""
    limit = _FAILURE_CHARACTERS - len(" (× 99)")
    room = limit - len(subject_text) - len(": ")
    reason = _reason(event, room) if room > 0 else ""
    return cut(f"{subject_text}{f': {reason}' if reason else ''}", limit)


def _error_text(event: ToolEvent) -> str:
    said = event.output
    return said if len(said) <= _ERROR_CHARACTERS else _reason(event, _ERROR_CHARACTERS)


def _reason(event: ToolEvent, limit: int) -> str:
    if event.kind is ToolKind.RUN:
        return shell.error_lines(shell.without_exit_lines(event.output), limit)
    lines = first_lines(event.output, 2)
    is_label = len(lines) > 1 and _ERROR_LABEL.fullmatch(lines[0])
    return cut(lines[1] if is_label else lines[0] if lines else "", limit)


def _target_keys(event: ToolEvent) -> tuple[str, ...]:
    """Return the keys of an event's command or target. For `a && b`, add the keys of `a` and `b`."""
    if event.kind is not ToolKind.RUN:
        return (tool_key(event.kind, target_of(event)),)
    command = event.command
    return tuple(dict.fromkeys(command_key(shell.short(part.strip())) for part in (command, *command.split("&&"))))


def _directory(event: ToolEvent) -> str | None:
    return shell.directory_of(event.arguments) if event.kind is ToolKind.RUN else None


def is_answer(event: ToolEvent) -> bool:
    """Return True if exit code 1 is a result, not an error: `grep` without a match, `diff` with a difference."""
    if event.kind is not ToolKind.RUN or event.exit_code != 1:
        return False
    command = event.command
    return shell.is_read_only(command) and not shell.error_lines(event.output, 80).lower().count("error")
