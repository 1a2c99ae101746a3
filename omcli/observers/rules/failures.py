"""Open failures of commands and tools, and the successes that resolve them.

A success also resolves the failures of narrower commands: `npm test` resolves `npm test -- parser`. It resolves the
failure of a wider command if it ran everything that the wider command's error names as failed.
"""

from __future__ import annotations

import re
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
_COMMIT, _FETCH = "git commit", "git fetch"
_ANY_TARGET = frozenset({_COMMIT, _FETCH, "git push", "git pull"})
"""Commands whose arguments are ignored in comparisons."""
_SEPARATORS = lazily(r"&&|\|\||;")
_PARENTS = ("/", "::", "#", ":")
"""Characters between a target and a part of it: a file in a folder, a test in a file."""
_NAMES_FAILED = lazily(r"^\W{0,3}(?:FAIL(?:ED)?|not ok)\b.*|^\W{0,3}-{3} FAIL.*|^\s*[✗×✕●].*", re.MULTILINE)
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
# A failed check is only resolved by the same check.
_CHECKS = lazily(
    r"\b(?:tests?|spec|lint|check|typecheck|build|compile|verify|validate|deploy|publish|release|push|migrate|make|"
    r"tsc|mypy|pyright|pytest|jest|vitest|mocha|rspec|phpunit|ruff|eslint|clippy|vet|gradlew?|mvn|tox|nox)\b"
)
_TYPE_ERROR = lazily(r"\berror TS\d+\b|\berror\[E\d+\]")
"""Matches the errors of compilers that report on a whole program, whatever tests are chosen."""
_TYPE_CHECK = lazily(r"\b(?:tsc|check-?types?|type-?check|types)$")
_TESTS = lazily(r"\btests?$")
_NO_EFFECT_FLAG = lazily(r"--?(?:help|version|dry-run|list\S*|collect-only|show-config)")


@positional_record
class ParsedCommand:
    """A command's program, arguments and flags."""

    program: str
    """Program and subcommand, if any: `npm test`."""
    arguments: frozenset[str]
    flags: frozenset[str]


def covers(succeeded: Iterable[ParsedCommand], failed: ParsedCommand) -> bool:
    """Return True if one of the successful commands does everything that the failed one should have done.

    A successful command without arguments covers all arguments. Otherwise each of its arguments must equal an argument
    of the failed command or be wider (`_is_within`), and each argument of the failed command must have such a
    counterpart, unless it is the value of a narrowing flag. The narrowing flags of the successful command must be among
    those of the failed one: `npm test` covers `npm run test -- parser`, but not the other way round. Flags such as
    `--verbose`, which do not change what is checked, are ignored. Any other flag must be in both commands or in
    neither. A command with a flag such as `--dry-run` covers nothing.
    """
    for one in succeeded:
        if one.program != failed.program or any(map(_NO_EFFECT_FLAG.fullmatch, one.flags)):
            continue
        pairs = [(each, wider) for each in failed.arguments for wider in one.arguments if _is_within(each, wider)]
        missing = failed.flags - one.flags
        narrowing = list(filter(_NARROWING_FLAG.fullmatch, missing))
        if (
            {wider for _, wider in pairs} == one.arguments
            and (not pairs or len(failed.arguments - {each for each, _ in pairs}) <= len(narrowing))
            and all(map(_SAME_EFFECT_FLAG.fullmatch, one.flags - failed.flags))
            and all(flag in narrowing or _SAME_EFFECT_FLAG.fullmatch(flag) for flag in missing)
        ):
            return True
    return False


def _is_within(target: str, wider: str) -> bool:
    """Return True if a target equals the wider one or is a part of it: `tests/tides.py::test_high` is in `tests`."""
    wider = wider.removesuffix("...").rstrip("/")
    return target == wider or any(target.startswith(wider + mark) for mark in _PARENTS)


def covers_failed(succeeded: Iterable[ParsedCommand], failed: ParsedCommand, error: str) -> bool:
    """Return True if one of the successful commands ran all that the failed one named as failed in its `error`."""
    for one in succeeded:
        names = [name.strip("'\"").rsplit("/", 1)[-1] for name in one.arguments - failed.arguments]
        flags = filterfalse(_SAME_EFFECT_FLAG.fullmatch, one.flags ^ failed.flags)
        if one.program != failed.program or not names or not all(map(_NARROWING_FLAG.fullmatch, flags)):
            continue
        reported = _NAMES_FAILED.findall(error) or [error]
        if all(any(name in line for name in names) for line in reported):
            return True
    return False


def covers_run(succeeded: Iterable[ParsedCommand], failed: ParsedCommand, error: str) -> bool:
    """Return True if the failure is a compiler's error, and one of the successful commands compiled the program again:
    a check of all types, or the same test command, whatever tests it chose.
    """
    if not _TYPE_ERROR.search(error):
        return False
    for one in succeeded:
        is_all = not one.arguments and all(map(_SAME_EFFECT_FLAG.fullmatch, one.flags - {"--noEmit"}))
        flags = filterfalse(_SAME_EFFECT_FLAG.fullmatch, one.flags | failed.flags)
        is_test = one.program == failed.program and _TESTS.search(one.program)
        if (_TYPE_CHECK.search(one.program) and is_all) or (is_test and all(map(_NARROWING_FLAG.fullmatch, flags))):
            return True
    return False


def is_same(succeeded: Iterable[ParsedCommand], failed: ParsedCommand) -> bool:
    """Return True if one of the successful commands is the same program with the same arguments, whatever the flags.
    Without any arguments, return False.
    """
    return any(
        one.program == failed.program and one.arguments == failed.arguments and one.arguments for one in succeeded
    )


def parse_parts(command: str, *, proven: bool = False) -> tuple[ParsedCommand, ...]:
    """Parse those parts of a command such as `a && b` that are not read-only, or fetch from a remote, which may fail.

    Return an empty tuple for commands that are shortened, too long or on several lines (apart from commits), and for
    those whose exit status is lost, unless their success is `proven` in another way.
    """
    if len(command) > _MAX_CHARACTERS or "\n" in command or "…" in command:
        before, commit, _ = command.partition(_COMMIT)
        command = before + commit
        if not commit or len(before) > _MAX_CHARACTERS or "\n" in before or "…" in before:
            return ()
    command = shell.short(command, _MAX_CHARACTERS)
    if not proven and shell.is_status_lost(command):
        return ()
    parsed: list[ParsedCommand] = []
    for part in map(str.strip, _SEPARATORS.split(command)):
        if shell.is_read_only(part) and not part.startswith(_FETCH):
            continue
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
        program = f"{'npm' if program in _SCRIPTS else program} {verb}".strip()
        if program in _ANY_TARGET:
            named, flags = [], list(filter(_NO_EFFECT_FLAG.fullmatch, flags))
        parsed.append(ParsedCommand(program, frozenset(named), frozenset(flags)))
    return tuple(parsed)


@record
class _OpenFailure:
    key: str
    directory: str | None
    command: ParsedCommand | None
    """Last part of the command that is not read-only. None means that there is no such part, or that the command cannot
    be parsed.
    """
    error: str
    is_check: bool

    def is_resolved_by(self, succeeded: Iterable[ParsedCommand]) -> bool:
        """Return True if one of these commands does everything that the failed one should have done, or that the error
        names as failed, or compiles what the error says does not compile. Unless the failed command is a check, the
        same program with the same arguments is enough.
        """
        if self.command is None:
            return False
        if covers(succeeded, self.command) or covers_run(succeeded, self.command, self.error):
            return True
        if self.error and covers_failed(succeeded, self.command, self.error):
            return True
        return not self.is_check and is_same(succeeded, self.command)


@mutable_record
class OpenFailures:
    """Open failures by row number, oldest row first."""

    _failures: dict[int, _OpenFailure] = field(default_factory=dict)

    def add(self, number: int, row: Draft, directory: str | None) -> None:
        """Add a failure if its row is open and has a key (`failure_key`)."""
        if row.status is Status.OPEN and (key := failure_key(row)):
            command = str(row.metadata.get("command", ""))
            parts = parse_parts(command, proven=True)
            self._failures[number] = _OpenFailure(
                key=key,
                directory=directory,
                command=parts[-1] if parts else None,
                error=str(row.metadata.get("error") or ""),
                is_check=bool(_CHECKS.search(command)),
            )

    def remove(self, number: int) -> None:
        """Remove a failure, if present."""
        self._failures.pop(number, None)

    def __contains__(self, number: int) -> bool:
        return number in self._failures

    def check_numbers(self) -> frozenset[int]:
        """Return the row numbers of failed checks, such as tests and builds, which only the same check resolves."""
        return frozenset(number for number, failure in self._failures.items() if failure.is_check)

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

    def resolved_by(
        self, targets: Iterable[str], command: str, directory: str | None, *, proven: bool
    ) -> Iterator[int]:
        """Yield the row numbers of failures that a success resolves: for each of its keys (`targets`) the last failure
        with that key, then those that its command resolves. The caller must remove each before taking the next.
        """
        for target in targets:
            if failed := self.matching(target, directory):
                yield failed[-1]
        succeeded = parse_parts(command, proven=proven) if self._failures else ()
        for number, failure in list(self._failures.items()) if succeeded else ():
            is_open = number in self._failures and shell.same_directory(failure.directory, directory)
            if is_open and failure.is_resolved_by(succeeded):
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
