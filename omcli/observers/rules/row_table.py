"""A table of rows whose status may change, with indexes for repeats, failures and requests.

Equivalent commands count as one: if one succeeds, a failure of the other is resolved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType

from omcli.base.patterns import lazily
from omcli.base.record import field, mutable_record, positional_record, replace
from omcli.memory.observation import FAILURES, FILE_CHANGES, Draft, Status, Type
from omcli.observers.rules import shell
from omcli.observers.rules.commands import command_key, tool_key
from omcli.observers.rules.shell import same_directory
from omcli.observers.rules.tool_events import tool_kind
from omcli.text.phrases import times_in, with_times, without_times

_MAX_CHARACTERS = 300
"""Longest command to parse, in characters; a longer one is treated as a script."""
_WORD = lazily(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\S+")
_RUNS_ANOTHER = lazily(
    r"^(?:(?:\w+=\S*|sudo|time|env|command|nice|npx|bunx|timeout \S+|(?:pnpm|npm|yarn|bundle|mise) (?:exec|dlx)|"
    r"(?:uv|poetry|pipenv|hatch|pdm) run|(?:\S*/)?python[\d.]* -m)(?: --)? +)+"
)
_REDIRECTS = lazily(r"\s+(?:[12&]?>+\s*(?:&[12]|\S+)|<\s*\S+)")
_SCRIPTS = frozenset({"npm", "pnpm", "yarn"})
"""Package managers that run the same scripts."""
_WITH_VERBS = _SCRIPTS | frozenset(
    (
        "bun cargo composer deno docker docker-compose dotnet gh git go gradle gradlew helm just kubectl make mise "
        "mvn mvnw nx pip pip3 poetry rake rails task terraform turbo uv"
    ).split()
)
"""Programs with a subcommand."""
_RUNS_BY_NAME = frozenset({*_SCRIPTS, "bun", "mise"})
_ANY_TARGET = frozenset({"git push", "git pull", "git fetch"})
"""Subcommands whose arguments do not matter."""
# Verbosity, speed, when to stop, automatic fixes: the check stays the same.
_SAME_EFFECT_FLAG = lazily(
    r"--?(?:v+|verbose|q+|quiet|s|silent|x|exitfirst|fail-?fast|bail|colou?rs?|no-colou?r|ci|run|runInBand|no-?watch|"
    r"watch(?:All)?=false|cov(?:erage)?|no-cov|json|no-header|fix|write|force|force-with-lease|f|u|set-upstream|d|"
    r"detach|[nj]\d*|(?:colou?r|tb|count|durations|reporters?|maxfail|timeout|cov|p)=\S+|)"
)
# Narrows the check.
_NARROWING_FLAG = lazily(
    r"--?(?:k|m|t|g|run|only|grep|filter|lf|last-failed|testNamePattern|test-name-pattern|tests?)(?:=\S+)?"
)
_NO_EFFECT_FLAG = lazily(r"--?(?:help|version|dry-run|list\S*|collect-only|show-config)")


@positional_record
class ParsedCommand:
    """Program, arguments and flags of a command."""

    does: str
    """The program, with its subcommand if it has one: `npm test`."""
    on: frozenset[str]
    flags: frozenset[str]


def covers(succeeded: Iterable[ParsedCommand], failed: ParsedCommand) -> bool:
    """Return True if a command that succeeded does everything that a failed one should have done.

    `npm test` covers `npm run test -- parser`, but not the other way round. A command with other unknown flags covers
    nothing.
    """
    return any(_covers_one(one, failed) for one in succeeded)


def last_command(failed: str) -> ParsedCommand | None:
    """Return the last part of a failed command (`b` in `a && b`); None if it cannot be parsed."""
    return next(reversed(parse_parts(failed)), None)


def parse_parts(command: str) -> tuple[ParsedCommand, ...]:
    """Parse the parts of a command that are not read-only; return none if the command is too complicated."""
    if len(command) > _MAX_CHARACTERS or "\n" in command or "…" in command:
        return ()
    command = shell.short(command, _MAX_CHARACTERS)
    if shell.is_status_lost(command):
        return ()
    parts = (part.strip() for part in command.split("&&"))
    return tuple(parsed for part in parts if not shell.is_read_only(part) and (parsed := _parse_part(part)))


def _parse_part(part: str) -> ParsedCommand | None:
    words = _WORD.findall(_REDIRECTS.sub("", _RUNS_ANOTHER.sub("", part.split(" | ", maxsplit=1)[0])))
    if not words:
        return None
    program = words[0].rsplit("/", 1)[-1]
    flags = frozenset(word for word in words[1:] if word.startswith("-"))
    named = [word for word in words[1:] if not word.startswith("-")]
    verb = ""
    if program in _WITH_VERBS and named:
        verb = named.pop(0)
        if program in _RUNS_BY_NAME and verb in ("run", "run-script") and named:
            verb = named.pop(0)
    does = f"{'npm' if program in _SCRIPTS else program} {verb}".strip()
    return ParsedCommand(does, frozenset(() if does in _ANY_TARGET else named), flags)


def _covers_one(succeeded: ParsedCommand, failed: ParsedCommand) -> bool:
    if succeeded.does != failed.does or not succeeded.on <= failed.on:
        return False
    if any(_NO_EFFECT_FLAG.fullmatch(flag) for flag in succeeded.flags):
        return False
    more, less = succeeded.flags - failed.flags, failed.flags - succeeded.flags
    return all(_SAME_EFFECT_FLAG.fullmatch(flag) for flag in more) and all(
        _SAME_EFFECT_FLAG.fullmatch(flag) or _NARROWING_FLAG.fullmatch(flag) for flag in less
    )


ASKED = frozenset({Type.REQUEST, Type.QUESTION})
# A failed check is only resolved by the same check.
_CHECKS = lazily(
    r"\b(?:tests?|spec|lint|check|typecheck|build|compile|verify|validate|deploy|publish|release|push|migrate|make|"
    r"tsc|mypy|pyright|pytest|jest|vitest|mocha|rspec|phpunit|ruff|eslint|clippy|vet|gradlew?|mvn|tox|nox)\b"
)


@mutable_record
class RowTable:
    """Rows by number, in the order of writing; a row that changes gets a new number."""

    rows: dict[int, Draft] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    """Numbers of questions and requests."""
    failed_commands: dict[int, ParsedCommand] = field(default_factory=dict)
    """Last part of each open failure's command, by row number."""
    todo_list: int = -1
    """Number of the row with the latest todo list; -1 if there is none."""
    latest: int = 0
    """Largest `seq` among the rows' sources."""
    _by_key: dict[tuple[Type, str, str | None], int] = field(default_factory=dict)
    _failed: dict[str, list[int]] = field(default_factory=dict)
    """Numbers of open failures by key."""
    _running: dict[int, int] = field(default_factory=dict)
    """Numbers of rows about running commands and subagents, by `seq` of the messages that started them."""
    _positions: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Sort keys of rows that replaced others in place."""
    _next: int = 0
    _first: int = 0

    def start_batch(self) -> None:
        """Mark all rows added so far as context rows."""
        self._first = self._next

    def changed_rows(self) -> tuple[Draft, ...]:
        """Return the rows that are new or changed."""
        rows = (self.rows[number] for number in sorted(self.new_numbers(), key=self.position))
        return tuple(row if row.replaces else replace(row, reason=None) for row in rows)

    def new_numbers(self) -> list[int]:
        """Return the numbers of rows that are new or changed."""
        return [number for number in range(self._first, self._next) if number in self.rows]

    def position(self, number: int) -> tuple[int, int]:
        """Return the sort key of a row: its last source, then its number."""
        return self._positions.get(number) or (self.rows[number].sources[-1], number)

    def remaining(self, numbers: Iterable[int]) -> Iterator[tuple[int, Draft]]:
        """Yield the rows that are still in the table. Settling one may replace others with the same text."""
        for number in tuple(numbers):
            if number in self.rows:
                yield number, self.rows[number]

    def running(self, sources: Iterable[int]) -> set[int]:
        """Return the numbers of rows about running commands that these messages started."""
        return {self._running[seq] for seq in sources if seq in self._running}

    def failures(self, key: str, directory: str | None) -> list[int]:
        """Return the numbers of open failures with this key, in the same or an unknown directory."""
        failed = self._failed.get(key, ())
        return [number for number in failed if same_directory(failure_directory(self.rows[number]), directory)]

    def add(self, draft: Draft) -> int:
        """Add a row unchanged and return its number."""
        number = self._next
        self._next += 1
        self.rows[number] = draft
        self._by_key[row_key(draft)] = number
        if (key := failure_key(draft)) and draft.status is Status.OPEN:
            self._failed.setdefault(key, []).append(number)
            if command := last_command(str(draft.metadata.get("command", ""))):
                self.failed_commands[number] = command
        if is_running(draft):
            self._running |= dict.fromkeys(draft.sources, number)
        if draft.type in ASKED and draft.sources:
            self.asked.add(number)
        if todo_texts(draft):
            self.todo_list = number
        self.latest = max(self.latest, *draft.sources[-1:], 0)
        return number

    def add_at(self, position: tuple[int, int], draft: Draft) -> None:
        """Add a row at the position of one that was removed."""
        self._positions[self.add(draft)] = position

    def remove(self, number: int) -> Draft:
        """Remove a row and return it."""
        draft = self.rows.pop(number)
        self.asked.discard(number)
        if self._by_key.get(row_key(draft)) == number:
            del self._by_key[row_key(draft)]
        if number in (failed := self._failed.get(failure_key(draft), [])):
            failed.remove(number)
            self.failed_commands.pop(number, None)
        self._running = {seq: running for seq, running in self._running.items() if running != number}
        return draft

    def replace(self, number: int, draft: Draft, *, reason: str) -> Draft:
        """Remove a row; return the draft that replaces it, with the sources and replacements of both."""
        old = self.remove(number)
        replaces = (*old.replaces, *(one for one in draft.replaces if one not in old.replaces))
        return replace(draft, sources=merged(old.sources, draft.sources), replaces=replaces, reason=reason)

    def merge_repeats(self, draft: Draft) -> Draft:
        """Merge a row with open failures that it repeats, and with a row that has the same text."""
        for number, row in self.remaining(self.failures(failure_key(draft), failure_directory(draft))):
            draft = self.replace(number, with_count(row, draft), reason="failed again")
        if (same := self._by_key.get(row_key(draft))) is not None:
            draft = self.replace(same, with_count(self.rows[same], draft), reason="said again")
        return draft


def merged(old: Sequence[int], new: Sequence[int]) -> tuple[int, ...]:
    """Return the sources of both rows, sorted and without duplicates."""
    return tuple(sorted({*old, *new}))


def row_key(draft: Draft) -> tuple[Type, str, str | None]:
    """Return the key shared by repeated rows: type, text without its count, and a failure's directory."""
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
    """Return the number of edits that a row about a file stands for."""
    edits = draft.metadata.get("edits")
    return edits if isinstance(edits, int) else 1


def failure_key(draft: Draft) -> str:
    """Return the key of the failed command or tool; empty for other rows."""
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
    """Return True if a failed command tested, built or published something, so that only the same check resolves it."""
    command = draft.metadata.get("command")
    return isinstance(command, str) and bool(_CHECKS.search(command))


def is_running(draft: Draft) -> bool:
    """Return True if a row is about a process that is still running."""
    return draft.status is Status.OPEN and isinstance(draft.metadata.get("process"), str)


def todo_texts(row: Draft | None) -> frozenset[str]:
    """Return the entries of a complete todo list; empty for other rows."""
    entries = row.metadata.get("todos") if row and row.type is Type.TODO_UPDATED else None
    if row is None or not isinstance(entries, list | tuple) or row.metadata.get("partial"):
        return frozenset()
    return frozenset(str(entry.get("text")) for entry in entries if isinstance(entry, dict))
