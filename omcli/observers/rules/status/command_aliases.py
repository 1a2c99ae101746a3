"""Commands that do the same in other words: if one works, a failure of the other is resolved."""

from __future__ import annotations

from collections.abc import Iterable

from omcli.base.patterns import lazily
from omcli.base.record import positional_record
from omcli.observers.rules import shell

_MAX_CHARACTERS = 300
"""Characters beyond which a command is a script and is not parsed."""
_WORD = lazily(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\S+")
_RUNS_ANOTHER = lazily(
    r"^(?:(?:\w+=\S*|sudo|time|env|command|nice|npx|bunx|timeout \S+|(?:pnpm|npm|yarn|bundle|mise) (?:exec|dlx)|"
    r"(?:uv|poetry|pipenv|hatch|pdm) run|(?:\S*/)?python[\d.]* -m)(?: --)? +)+"
)
_REDIRECTS = lazily(r"\s+(?:[12&]?>+\s*(?:&[12]|\S+)|<\s*\S+)")
_SCRIPTS = frozenset({"npm", "pnpm", "yarn"})
"""Programs that run the same scripts."""
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
    """Return True if a command that worked does all that a failed one was to do.

    `npm test` covers `npm run test -- parser`, not the other way round. Unknown flags cover nothing.
    """
    return any(_covers_one(one, failed) for one in succeeded)


def last_command(failed: str) -> ParsedCommand | None:
    """Return the last part of a failed command (b of `a && b`); None if it cannot be parsed."""
    return next(reversed(parse_parts(failed)), None)


def parse_parts(command: str) -> tuple[ParsedCommand, ...]:
    """Parse the parts of a command that are not read-only; empty for complicated commands."""
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
