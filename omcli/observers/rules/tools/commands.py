"""Rows of commands that ran, of commits and pull requests, and of every failed tool call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from omcli.base.patterns import lazily
from omcli.base.record import record
from omcli.memory.observation import Draft, Priority, Status, Type
from omcli.observers.rules import shell
from omcli.observers.rules.sentences import cut, first_lines
from omcli.observers.rules.tools.events import Paths, ToolEvent, ToolKind, draft_of, started, subject
from omcli.text.phrases import first_of, with_times


@record
class Passed:
    """Something worked that may have failed before."""

    targets: tuple[str, ...]
    """As `recurring.failed_run` and `failed_use` name them."""
    command: str = ""
    """The command that worked, where it was one: it may mend what was spelled otherwise (`spellings`)."""
    directory: str | None = None
    """Where a command ran, where that was said."""
    sources: tuple[int, ...]
    at: str | None

    @property
    def seq(self) -> int:
        """When it did."""
        return self.sources[-1]


_FOLDED_CHARACTERS = 70
"""How much of a command is shown where several share a row."""
_FAILURE_CHARACTERS = 200
"""A failure's whole row; the error stands in its metadata."""
_FAILED_COMMAND_CHARACTERS = 100
_ERROR_CHARACTERS = 1000
_ANSWER_CHARACTERS = 300
_OPENS = lazily(r"\b(?:pr|mr|release|pull-request)\s+create\b")
_PUSHES = lazily(r"\bgit push\b")
# What agents add to a command's output: the code that the row tells anyway.
_EXIT_HEAD = lazily(r"(?:Error: )?Exit code \d+\s*")
_EXIT_TAIL = lazily(r"Command exited with code \d+")


# ---- commands


def command_rows(events: Sequence[ToolEvent]) -> Iterator[Draft]:
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
        yield _ran(command, outcome, same)
    if looked:
        yield _looked(looked)


def _ran(command: str, outcome: str, same: Sequence[ToolEvent], *, priority: Priority | None = None) -> Draft:
    return draft_of(
        same,
        with_times(f"Ran: {command}{outcome}", len(same)),
        Type.COMMAND_RUN,
        4,
        priority=priority,
        status=Status.OPEN if same[-1].process else None if _hides_trouble(same[-1]) else Status.DONE,
        metadata={"command": command, "exit_code": same[-1].exit_code, "times": _count(same), **started(same[-1])},
    )


def _looked(looked: Sequence[tuple[str, ToolEvent]]) -> Draft:
    """The commands of a turn that only look, in one row; what came of it is told where it is but one."""
    events = [event for _, event in looked]
    commands = list(dict.fromkeys(command for command, _ in looked))
    if len(commands) == 1 and (outcome := _outcome(events[-1])):
        return _ran(commands[0], outcome, events, priority=Priority.LOW)
    names = list(dict.fromkeys(shell.shown(command, _FOLDED_CHARACTERS) for command in commands))
    return draft_of(
        events,
        f"Ran: {first_of(names, '; ') if len(commands) > 1 else commands[0]}",
        Type.COMMAND_RUN,
        2,
        status=Status.DONE,
        metadata={"commands": commands},
    )


def _count(same: Sequence[ToolEvent]) -> int | None:
    return len(same) if len(same) > 1 else None


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
    if not shell.masks_status(command) or shell.only_looks(command):
        return False
    return shell.reports_error(event.output[-8000:]) or shell.counts_failures(event.output)


def _landmark(command: str, event: ToolEvent) -> Draft | None:
    """Commits, pull requests and releases: finished, state-changing, and what a later session asks about."""
    shown = shell.shown(command)
    sha = None
    if ("commit" in command or "merge" in command) and (commit := shell.committed(event.output)):
        branch, sha, title = commit
        text = f"Committed {sha} on {branch}: {title}"
    elif _OPENS.search(command) and (address := shell.published(event.output)):
        text = f"Opened {address} with: {shown}"
    elif _PUSHES.search(command) and not shell.only_looks(command):
        text = f"Pushed: {shown}{_outcome(event)}"
    else:
        return None
    return draft_of([event], text, Type.OUTCOME, 7, status=Status.DONE, metadata={"commit": sha, "command": shown})


# ---- failures


def passes(events: Iterable[ToolEvent]) -> Iterator[Passed]:
    """What worked: commands, and edits of files. A failure of the same before is mended then (`settling`)."""
    for event in events:
        if event.result is not None and not event.failed and not event.process and not _hides_trouble(event):
            command = shell.command_of(event.arguments, event.raw) if event.kind is ToolKind.RUN else ""
            yield Passed(
                targets=_targets(event),
                command=command,
                directory=_directory(event),
                sources=event.sources,
                at=event.at,
            )


def failure(event: ToolEvent, near: Paths) -> Draft:
    """One failure, open; `settling` counts those of the same thing, and knows when it works."""
    metadata: dict[str, object] = {"error": _error(event), "tool": event.name, "exit_code": event.exit_code}
    if directory := _directory(event):
        metadata["directory"] = directory
    if event.kind is ToolKind.RUN:
        command = shell.command_of(event.arguments, event.raw)
        code = f"exit {event.exit_code}" if event.exit_code else "failed"
        return draft_of(
            [event],
            _failed(f"Ran: {shell.shown(command, _FAILED_COMMAND_CHARACTERS) or event.name} → {code}", event),
            Type.COMMAND_ERROR,
            # A listing or search that was mistyped is a detour, not a problem.
            5 if shell.only_looks(command) else 8,
            status=Status.OPEN,
            metadata=metadata | {"command": shell.shown(command) or event.name},
        )
    doing = " ".join(part for part in (event.name, near(subject(event))) if part)
    return draft_of(
        [event],
        _failed(f"{doing} failed", event),
        Type.TOOL_ERROR,
        # A read or search that found nothing to read is a detour, not a problem.
        8 if event.kind in (ToolKind.EDIT, ToolKind.WRITE, ToolKind.DELEGATE, ToolKind.REMOTE) else 4,
        status=Status.OPEN,
        metadata=metadata | {"target": subject(event) or None},
    )


def _failed(what: str, event: ToolEvent) -> str:
    """What failed and why, within the length of a row, which may get a count; the error text gives way first."""
    most = _FAILURE_CHARACTERS - len(" (× 99)")
    room = most - len(what) - len(": ")
    why = _why(event, room) if room > 0 else ""
    return cut(f"{what}{f': {why}' if why else ''}", most)


def _error(event: ToolEvent) -> str:
    """The error text, whole where it is not a long output; of one, the lines that report the error."""
    said = event.output
    return said if len(said) <= _ERROR_CHARACTERS else _why(event, _ERROR_CHARACTERS)


def _why(event: ToolEvent, limit: int) -> str:
    """What went wrong: a command says it in its error lines, any other tool in its first."""
    if event.kind is ToolKind.RUN:
        return shell.trouble(_without_exit_note(event.output), limit)
    return cut(next(iter(first_lines(event.output, 1)), ""), limit)


def _without_exit_note(output: str) -> str:
    if head := _EXIT_HEAD.match(output):
        output = output[head.end() :]
    before, _, last = output.rstrip().rpartition("\n")
    return before if before and _EXIT_TAIL.fullmatch(last.strip()) else output


def _targets(event: ToolEvent) -> tuple[str, ...]:
    """What an event worked on, as failures name it (`recurring`); `a && b` worked only if a worked and b did."""
    if event.kind is not ToolKind.RUN:
        return (failed_use(event.kind, subject(event)),)
    command = shell.command_of(event.arguments, event.raw)
    return tuple(dict.fromkeys(failed_run(shell.shown(part.strip())) for part in (command, *command.split("&&"))))


def _directory(event: ToolEvent) -> str | None:
    return shell.directory_of(event.arguments) if event.kind is ToolKind.RUN else None


def is_no_answer(event: ToolEvent) -> bool:
    """`grep` without a hit, `diff` with a difference, `test` that says no: exit 1 is their answer."""
    if event.kind is not ToolKind.RUN or event.exit_code != 1:
        return False
    command = shell.command_of(event.arguments, event.raw)
    return shell.only_looks(command) and not shell.trouble(event.output, 80).lower().count("error")


def failed_run(command: str) -> str:
    """What a command is known by, failed or not; as rows show it."""
    return f"run {command}"


def failed_use(kind: ToolKind, target: str) -> str:
    """What the use of a tool on something is known by. A patch that was handed to a shell is an edit."""
    return f"{ToolKind.EDIT if kind is ToolKind.RUN else kind} {target}"
