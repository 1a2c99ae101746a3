"""Tool events to drafts: what was changed, run, searched, planned and delegated, and what failed.

One row per fact: edits of one file in a turn are one fact, and so is a turn's looking around. Importances are those of
the coding-agent design: edits 7, failures 8, commands 4, todos and delegations 5, reading and searching 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from omcli.memory.observation import Draft, Priority, Status, Type
from omcli.memory.text import one_line
from omcli.observers.rules import shell
from omcli.observers.rules.edits import Change, changes_of, what_changed
from omcli.observers.rules.salience import told_most
from omcli.observers.rules.sentences import segments
from omcli.observers.rules.tools import ToolEvent, ToolKind

_SHOWN = 8
"""Names a folded row lists before it counts the rest."""
_FOLDED_CHARACTERS = 70
"""How much of a command is shown where several share a row."""
_TROUBLE_CHARACTERS = 200
_ANSWER_CHARACTERS = 300
_REFUSED = re.compile(
    r"^(?:User (?:denied|rejected|declined)|BLOCKED|The user doesn't want to|patch rejected|aborted by user)",
    re.IGNORECASE,
)


def drafts_of(events: Sequence[ToolEvent], *, cwd: str | None, mended: Mapping[str, int]) -> Iterator[Draft]:
    """What the tool events of one turn come to, unordered.

    `cwd` shortens paths below it; `mended` says what worked when (`worked`), so that failures are known to be resolved.
    """
    near = _Paths(cwd)
    done = [event for event in events if event.result is not None and not _REFUSED.match(event.output)]
    fine = [event for event in done if not event.failed]
    yield from _failures(done, near, mended)
    yield from _file_changes([event for event in fine if event.kind in (ToolKind.EDIT, ToolKind.WRITE)], near)
    yield from _commands([event for event in fine if event.kind is ToolKind.RUN])
    yield from _looks(fine, near)
    yield from _last_todos([event for event in fine if event.kind is ToolKind.TODO])
    for event in fine:
        if (single := _SINGLE.get(event.kind)) and (draft := single(event)):
            yield draft


@dataclass(frozen=True, slots=True)
class _Paths:
    """Paths as rows name them: below the working directory without it."""

    cwd: str | None

    def __call__(self, path: str) -> str:
        base = (self.cwd or "").rstrip("/")
        return one_line(path.removeprefix(f"{base}/") if base else path)


def _draft(
    events: Iterable[ToolEvent],
    text: str,
    kind: Type,
    importance: int,
    *,
    status: Status | None = None,
    metadata: Mapping[str, object] | None = None,
) -> Draft:
    """A row of these events. A failure that was mended is worth knowing, and no more than that."""
    told = list(events)
    return Draft(
        text=text,
        type=kind,
        importance=importance,
        status=status,
        priority=Priority.MEDIUM if status is Status.RESOLVED and importance >= 7 else None,
        sources=tuple(sorted({seq for event in told for seq in event.sources})),
        event_at=told[-1].at,
        metadata=MappingProxyType(dict(metadata or {})),
    )


# ---- files


def _file_changes(events: Sequence[ToolEvent], near: _Paths) -> Iterator[Draft]:
    """One row per file: edits of the same file are one fact with all its sources."""
    by_path: dict[str, list[tuple[ToolEvent, Change]]] = {}
    for event in events:
        for change in changes_of(event.arguments, event.raw):
            creates = change.creates or (event.kind is ToolKind.WRITE and " updated" not in event.output[:200])
            by_path.setdefault(change.path, []).append((event, replace(change, creates=creates)))
    for path, made in by_path.items():
        changes = [change for _, change in made]
        created = changes[0].creates
        verb = "Deleted" if changes[-1].deletes else "Created" if created else "Modified"
        moved = next((f" → {near(change.moved_to)}" for change in changes if change.moved_to), "")
        what = "" if changes[-1].deletes else what_changed(changes)
        yield _draft(
            (event for event, _ in made),
            shell.cut(
                f"{verb} {near(path)}{moved}{_times(len(changes), created=created)}" + (f": {what}" if what else ""),
                400,
            ),
            Type.FILE_CREATED if created else Type.FILE_MODIFIED,
            7,
            status=Status.DONE,
            metadata={"path": path},
        )


def _times(changes: int, *, created: bool) -> str:
    """How often a file was edited: since it was created, or where it was more than once."""
    edits = changes - created
    if created:
        return f" ({edits} edit{'s' if edits > 1 else ''} since)" if edits else ""
    return f" ({edits} edits)" if edits > 1 else ""


# ---- commands


def _commands(events: Sequence[ToolEvent]) -> Iterator[Draft]:
    """One row per command and outcome; those that only look are folded into one row."""
    looked: list[tuple[str, ToolEvent]] = []
    ran: dict[tuple[str, str], list[ToolEvent]] = {}
    for event in events:
        command = shell.command_of(event.arguments, event.raw)
        if not command:
            continue
        if (told := _landmark(command, event)) is not None:
            yield told
        elif shell.only_looks(command):
            looked.append((shell.shown(command), event))
        else:
            ran.setdefault((shell.shown(command), _outcome(event)), []).append(event)
    for (command, outcome), same in ran.items():
        times = f" (× {len(same)})" if len(same) > 1 else ""
        yield _draft(
            same,
            f"Ran: {command}{outcome}{times}",
            Type.COMMAND_RUN,
            4,
            status=None if same[-1].process or _hides_trouble(same[-1]) else Status.DONE,
            metadata={"command": command},
        )
    if looked:
        width = shell.COMMAND_CHARACTERS if len(looked) == 1 else _FOLDED_CHARACTERS
        names = list(dict.fromkeys(shell.shown(command, width) for command, _ in looked))
        outcome = _outcome(looked[0][1]) if len(looked) == 1 else ""
        yield _draft(
            (event for _, event in looked),
            f"Ran: {_folded(names, '; ')}{outcome}",
            Type.COMMAND_RUN,
            4 if len(names) == 1 and outcome else 2,
            status=Status.DONE,
        )


def _outcome(event: ToolEvent) -> str:
    """` → exit 0: 12 passed`: the exit code where the transcript gives one, and the line that sums up.

    Nothing is said to be ok where the status is that of another command (`make | tail`); then error lines are told.
    """
    if event.process:
        return " (still running)"
    code, masked = event.exit_code, shell.masks_status(shell.command_of(event.arguments, event.raw))
    told = shell.trouble(event.output, _ANSWER_CHARACTERS) if _hides_trouble(event) else shell.summary(event.output)
    succeeded = not masked and event.result is not None and event.result.message.failed is False
    how = f"exit {code}" if code is not None else "ok" if succeeded else ""
    return f" → {how}{': ' if how and told else ''}{told}" if how or told else ""


def _hides_trouble(event: ToolEvent) -> bool:
    """Whether a command reports errors although the status that is given, another command's, is good."""
    if event.kind is not ToolKind.RUN:
        return False
    command = shell.command_of(event.arguments, event.raw)
    return (
        shell.masks_status(command) and not shell.only_looks(command) and bool(shell.error_lines(event.output[-8000:]))
    )


def _landmark(command: str, event: ToolEvent) -> Draft | None:
    """Commits, pull requests and releases: finished, state-changing, and what a later session asks about."""
    commit = shell.committed(event.output) if "commit" in command or "merge" in command else None
    if commit:
        branch, sha, subject = commit
        return _draft(
            [event],
            f"Committed {sha} on {branch}: {subject}",
            Type.OUTCOME,
            7,
            status=Status.DONE,
            metadata={"commit": sha},
        )
    address = shell.published(event.output)
    if address and re.search(r"\b(?:pr|mr|release|pull-request)\s+create\b", command):
        return _draft([event], f"Opened {address} with: {shell.shown(command)}", Type.OUTCOME, 7, status=Status.DONE)
    if re.search(r"\bgit push\b", command) and not shell.only_looks(command):
        return _draft([event], f"Pushed: {shell.shown(command)}{_outcome(event)}", Type.OUTCOME, 7, status=Status.DONE)
    return None


# ---- failures


def worked(events: Iterable[ToolEvent]) -> dict[str, int]:
    """What worked, and the `seq` of the last time it did: commands, and edits of files."""
    last: dict[str, int] = {}
    for event in events:
        if event.result is not None and not event.failed and not event.process and not _hides_trouble(event):
            for target in (_target(event), *_parts_that_worked(event)):
                last[target] = max(event.result.seq, last.get(target, 0))
    return last


def _failures(events: Sequence[ToolEvent], near: _Paths, mended: Mapping[str, int]) -> Iterator[Draft]:
    """One row per failed target; resolved where the same command, or an edit of the same file, works later."""
    failed: dict[str, list[ToolEvent]] = {}
    for event in events:
        if event.failed and not _is_no_answer(event):
            failed.setdefault(_target(event), []).append(event)
    for target, same in failed.items():
        is_mended = mended.get(target, 0) > same[-1].sources[-1]
        yield _failure(same, near, Status.RESOLVED if is_mended else Status.OPEN)


def _failure(same: list[ToolEvent], near: _Paths, status: Status) -> Draft:
    last = same[-1]
    times = f" (× {len(same)})" if len(same) > 1 else ""
    metadata = {"error": last.output[:1000], "tool": last.name}
    if last.kind is ToolKind.RUN:
        command = shell.shown(shell.command_of(last.arguments, last.raw)) or last.name
        code = f"exit {last.exit_code}" if last.exit_code else "failed"
        why = _why(last)
        text = f"Ran: {command} → {code}{f': {why}' if why else ''}{times}"
        # A listing or search that was mistyped is a detour, not a problem.
        importance = 5 if shell.only_looks(shell.command_of(last.arguments, last.raw)) else 8
        return _draft(
            same, text, Type.COMMAND_ERROR, importance, status=status, metadata=metadata | {"command": command}
        )
    doing = " ".join(part for part in (last.name, near(_subject(last))) if part)
    text = f"{doing} failed: {_why(last)}{times}"
    # A read or search that found nothing to read is a detour, not a problem.
    importance = 8 if last.kind in (ToolKind.EDIT, ToolKind.WRITE, ToolKind.DELEGATE, ToolKind.REMOTE) else 4
    return _draft(same, text, Type.TOOL_ERROR, importance, status=status, metadata=metadata)


def _why(event: ToolEvent) -> str:
    """What went wrong: a command says it in its error lines, any other tool in its first."""
    if event.kind is ToolKind.RUN:
        return shell.trouble(re.sub(r"^(?:Error: )?Exit code \d+\s*", "", event.output), _TROUBLE_CHARACTERS)
    return shell.cut(next(iter(_first_lines(event.output, 1)), ""), _TROUBLE_CHARACTERS)


def _target(event: ToolEvent) -> str:
    if event.kind is ToolKind.RUN:
        return f"run {shell.shown(shell.command_of(event.arguments, event.raw))}"
    return f"{event.kind.value} {_subject(event)}"


def _parts_that_worked(event: ToolEvent) -> list[str]:
    """`a && b` worked only if a worked and b did."""
    if event.kind is not ToolKind.RUN:
        return []
    command = shell.command_of(event.arguments, event.raw)
    return [f"run {shell.shown(part.strip())}" for part in command.split("&&")]


def _subject(event: ToolEvent) -> str:
    """What a tool was used on: the file, the pattern, the address."""
    if event.kind in (ToolKind.EDIT, ToolKind.WRITE) and (changes := changes_of(event.arguments, event.raw)):
        return changes[0].path
    if event.kind is ToolKind.SEARCH:
        return event.argument("pattern", "query", "glob", "path", "file_path", "directory", "dir_path")
    return event.argument("file_path", "path", "filePath", "absolute_path", "target_file", "url", "description")


def _is_no_answer(event: ToolEvent) -> bool:
    """`grep` without a hit, `diff` with a difference, `test` that says no: exit 1 is their answer."""
    if event.kind is not ToolKind.RUN or event.exit_code != 1:
        return False
    command = shell.command_of(event.arguments, event.raw)
    return shell.only_looks(command) and not shell.trouble(event.output, 80).lower().count("error")


# ---- looking around


def _looks(events: Sequence[ToolEvent], near: _Paths) -> Iterator[Draft]:
    read = [(near(_subject(event)), event) for event in events if event.kind is ToolKind.READ and _subject(event)]
    if read:
        names = list(dict.fromkeys(name for name, _ in read))
        yield _draft(
            (event for _, event in read), f"Read {_folded(names, ', ')}", Type.FILE_READ, 3, metadata={"paths": names}
        )
    searched = [event for event in events if event.kind is ToolKind.SEARCH and _subject(event)]
    if searched:
        found = {f'"{one_line(_subject(event))}"{_hits(event)}': event for event in searched}
        yield _draft(
            searched,
            f"Searched {_folded(list(found), '; ')}",
            Type.SEARCH_PERFORMED,
            3,
            metadata={"first_matches": _first_lines(searched[0].output, 3)},
        )
    remote = [event for event in events if event.kind is ToolKind.REMOTE and event.looks_only]
    if remote:
        names = list(dict.fromkeys(event.name for event in remote))
        yield _draft(remote, f"Used {_folded(names, ', ')}", Type.TOOL_USED, 3)


_COUNT_LINE = re.compile(r"^(?:Found )?(\d+) (files?|matches|results?|lines?)\b", re.IGNORECASE)
_NAMES_FILES = frozenset("glob ls find list_dir list_directory list_files file_search".split())
_NOTHING = re.compile(r"^(?:no (?:files|matches|results)|\(no output\)|nothing found)", re.IGNORECASE)


def _hits(event: ToolEvent) -> str:
    """` → 3 files`, ` → 5 matches`: what the tool says it found, else how many lines it printed."""
    names_files = event.name.lower() in _NAMES_FILES
    noun = "files" if names_files else "matches"
    lines = _first_lines(event.output, None)
    if lines and (told := _COUNT_LINE.match(lines[0])):
        return f" → {told[1]} {told[2]}"
    if not lines or _NOTHING.match(lines[0]):
        return f" → 0 {noun}"
    if len(lines) == 1:
        return f" → 1 {noun.removesuffix('es' if noun == 'matches' else 's')}"
    return f" → {shell.counted(len(lines))} {noun}"


def _first_lines(text: str, count: int | None) -> list[str]:
    return [one_line(line) for line in text.splitlines() if line.strip()][:count]


def _folded(names: Sequence[str], joint: str) -> str:
    more = len(names) - _SHOWN
    return joint.join(names[:_SHOWN]) + (f"{joint}+{shell.counted(more)} more" if more > 0 else "")


# ---- plans, todos, delegations, other tools


def _last_todos(events: Sequence[ToolEvent]) -> Iterator[Draft]:
    """The state of the list after the turn: earlier states of it are of no use to anybody."""
    lists = [(event, todos) for event in events if (todos := _todos(event))]
    if not lists:
        return
    event, todos = lists[-1]
    counts = [
        f"{sum(state == wanted for state, _ in todos)} {wanted.replace('_', ' ')}"
        for wanted in ("completed", "in_progress", "pending")
        if any(state == wanted for state, _ in todos)
    ]
    now = "; ".join(what for state, what in todos if state == "in_progress")
    left = [what for state, what in todos if state == "pending"]
    text = (
        f"Todos: {', '.join(counts)}"
        + (f"; now: {now}" if now else "")
        + (f"; next: {_folded(left, ' · ')}" if left else "")
    )
    status = Status.OPEN if now or left else Status.DONE
    yield _draft([event], shell.cut(text, 500), Type.TODO_UPDATED, 5, status=status, metadata={"current_task": now})


def _todos(event: ToolEvent) -> list[tuple[str, str]]:
    """State and text of each entry, whichever of the known shapes the list has."""
    listed = event.arguments.get("todos", event.arguments.get("plan", event.arguments.get("items")))
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    if not entries and event.argument("subject"):
        entries = [{"content": event.argument("subject"), "status": event.argument("status") or "pending"}]
    found = []
    for entry in entries:
        what = next((entry[key] for key in ("content", "step", "text", "title", "description") if entry.get(key)), "")
        state = str(entry.get("status") or ("completed" if entry.get("completed") is True else "pending"))
        if isinstance(what, str) and what:
            found.append((state, one_line(what)))
    return found


def _delegation(event: ToolEvent) -> Draft | None:
    task = event.argument("description", "task_name", "summary") or shell.cut(
        one_line(event.argument("prompt", "message", "task")), 100
    )
    if not task:
        return None
    answer = (
        "" if event.output.lstrip()[:1] in ("{", "[") else told_most(list(segments(event.output)), _ANSWER_CHARACTERS)
    )
    outcome = f" → {answer}" if answer else ""
    return _draft([event], f"Delegated: {one_line(task)}{outcome}", Type.TASK_DELEGATED, 5, status=Status.DONE)


def _approved_plan(event: ToolEvent) -> Draft | None:
    plan = event.argument("plan")
    lines = [segment.text for segment in segments(plan)]
    if not lines:
        return None
    return _draft(
        [event], shell.cut(f"Plan approved by the user: {' · '.join(lines)}", 700), Type.PLAN, 8, status=Status.OPEN
    )


def _remote(event: ToolEvent) -> Draft | None:
    """A connector's tool that changes something: its name and its short arguments."""
    if event.looks_only:
        return None
    given = [
        f"{name}={one_line(value)}"
        for name, value in event.arguments.items()
        if isinstance(value, str) and len(value) <= 80
    ]
    address = shell.published(event.output)
    text = f"Used {event.name}: {', '.join(given)}" + (f" → {address}" if address else "")
    return _draft([event], shell.cut(text.rstrip(": "), 300), Type.TOOL_USED, 4, status=Status.DONE)


_SINGLE: Mapping[ToolKind, Callable[[ToolEvent], Draft | None]] = MappingProxyType(
    {ToolKind.DELEGATE: _delegation, ToolKind.PLAN: _approved_plan, ToolKind.REMOTE: _remote}
)
