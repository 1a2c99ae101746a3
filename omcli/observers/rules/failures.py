"""Open failures of commands and tools, and the successes that resolve them.

A success also resolves the failures of narrower commands: `npm test` resolves `npm test -- parser`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import filterfalse

from omcli.base import lazily
from omcli.base.record import field, mutable_record, positional_record, record
from omcli.memory.observation import Draft, Status
from omcli.observers.rules import shell
from omcli.observers.rules.tool_events import ToolKind, tool_kind

_MAX_CHARACTERS = 300
"""Maximum number of characters of a command to parse. Longer commands are usually scripts."""
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
"""Programs whose first argument is a subcommand."""
_RUNS_BY_NAME = frozenset({*_SCRIPTS, "bun", "mise"})
_ANY_TARGET = frozenset({"git push", "git pull", "git fetch"})
"""Commands whose arguments are ignored in comparisons."""
# Flags for verbosity, speed, early exit and automatic fixes, which do not change what is checked.
_SAME_EFFECT_FLAG = lazily(
    r"--?(?:v+|verbose|q+|quiet|s|silent|x|exitfirst|fail-?fast|bail|colou?rs?|no-colou?r|ci|run|runInBand|no-?watch|"
    r"watch(?:All)?=false|cov(?:erage)?|no-cov|json|no-header|fix|write|force|force-with-lease|f|u|set-upstream|d|"
    r"detach|[nj]\d*|(?:colou?r|tb|count|durations|reporters?|maxfail|timeout|cov|p)=\S+|)"
)
# Flags that narrow the check.
_NARROWING_FLAG = lazily(
    r"--?(?:k|m|t|g|run|only|grep|filter|lf|last-failed|testNamePattern|test-name-pattern|tests?)(?:=\S+)?"
)
_NO_EFFECT_FLAG = lazily(r"--?(?:help|version|dry-run|list\S*|collect-only|show-config)")


@positional_record
class ParsedCommand:
    """A command's program (`does`), arguments (`on`) and flags."""

    does: str
    """Program and subcommand, if any: `npm test`."""
    on: frozenset[str]
    flags: frozenset[str]


def covers(succeeded: Iterable[ParsedCommand], failed: ParsedCommand) -> bool:
    """Return True if one of the successful commands does everything that the failed one should have done.

    The arguments and narrowing flags of the successful command must be among those of the failed one: `npm test` covers
    `npm run test -- parser`, but not the other way round. Flags such as `--verbose`, which do not change what is
    checked, are ignored. Any other flag must be in both commands or in neither. A command with a flag such as
    `--dry-run` covers nothing.
    """
    for one in succeeded:
        if one.does != failed.does or not one.on <= failed.on or any(map(_NO_EFFECT_FLAG.fullmatch, one.flags)):
            continue
        missing = filterfalse(_SAME_EFFECT_FLAG.fullmatch, failed.flags - one.flags)
        if all(map(_SAME_EFFECT_FLAG.fullmatch, one.flags - failed.flags)) and all(
            map(_NARROWING_FLAG.fullmatch, missing)
        ):
            return True
    return False


def parse_parts(command: str) -> tuple[ParsedCommand, ...]:
    """Parse those parts of `a && b` that are not read-only.

    Return an empty tuple for commands that are shortened, too long or on several lines, or whose exit status is lost.
    """
    if len(command) > _MAX_CHARACTERS or "\n" in command or "…" in command:
        return ()
    command = shell.short(command, _MAX_CHARACTERS)
    if shell.is_status_lost(command):
        return ()
    parsed: list[ParsedCommand] = []
    for part in filterfalse(shell.is_read_only, map(str.strip, command.split("&&"))):
        words = _WORD.findall(_REDIRECTS.sub("", _RUNS_ANOTHER.sub("", part.split(" | ", maxsplit=1)[0])))
        if not words:
            continue
        program = words[0].rsplit("/", 1)[-1]
        named: list[str] = []
        flags: list[str] = []
        for word in words[1:]:
            (flags if word.startswith("-") else named).append(word)
        verb = ""
        if program in _WITH_VERBS and named:
            verb = named.pop(0)
            if program in _RUNS_BY_NAME and verb in ("run", "run-script") and named:
                verb = named.pop(0)
        does = f"{'npm' if program in _SCRIPTS else program} {verb}".strip()
        parsed.append(ParsedCommand(does, frozenset(() if does in _ANY_TARGET else named), frozenset(flags)))
    return tuple(parsed)


@record
class _OpenFailure:
    key: str
    directory: str | None
    command: ParsedCommand | None
    """Last part of the command that is not read-only. None means that there is no such part, or that the command cannot
    be parsed.
    """


@mutable_record
class OpenFailures:
    """Open failures by row number, oldest row first."""

    _failures: dict[int, _OpenFailure] = field(default_factory=dict)

    def add(self, number: int, row: Draft, directory: str | None) -> None:
        """Add a failure if its row is open and has a key (`failure_key`)."""
        if row.status is Status.OPEN and (key := failure_key(row)):
            parts = parse_parts(str(row.metadata.get("command", "")))
            self._failures[number] = _OpenFailure(key=key, directory=directory, command=parts[-1] if parts else None)

    def remove(self, number: int) -> None:
        """Remove a failure, if present."""
        self._failures.pop(number, None)

    def __contains__(self, number: int) -> bool:
        return number in self._failures

    def repeated_by(self, row: Draft, directory: str | None) -> list[int]:
        """Return the row numbers of the failures that a new row repeats."""
        key = failure_key(row)
        return self.matching(key, directory) if key else []

    def matching(self, key: str, directory: str | None) -> list[int]:
        """Return the row numbers of failures with this key, in the same or an unknown directory."""
        found: list[int] = []
        for number, failure in self._failures.items():
            if failure.key == key and shell.same_directory(failure.directory, directory):
                found.append(number)
        return found

    def resolved_by(self, targets: Iterable[str], command: str, directory: str | None) -> Iterator[int]:
        """Yield the row numbers of failures that a success resolves. The caller must remove each before taking the
        next.
        """
        for target in targets:
            if failed := self.matching(target, directory):
                yield failed[-1]
        parsed = {number: failure.command for number, failure in self._failures.items() if failure.command}
        succeeded = parse_parts(command) if parsed else ()
        for number in [number for number, failed_command in parsed.items() if covers(succeeded, failed_command)]:
            if number in self._failures and shell.same_directory(self._failures[number].directory, directory):
                yield number


def failure_key(row: Draft) -> str:
    """Return the key of the failed command or tool, or an empty string if it is unknown."""
    command, tool, target = map(row.metadata.get, ("command", "tool", "target"))
    if isinstance(command, str):
        return command_key(command)
    kind = tool_kind(tool) if isinstance(tool, str) else None
    return tool_key(kind, target) if kind and isinstance(target, str) else ""


def command_key(command: str) -> str:
    """Return the key of a command as shown in rows (`shell.short`)."""
    return f"run {command}"


def tool_key(kind: ToolKind, target: str) -> str:
    """Return the key of a tool used on a target. RUN counts as EDIT, because a shell call has a target only if it is a
    patch.
    """
    return f"{ToolKind.EDIT if kind is ToolKind.RUN else kind} {target}"
