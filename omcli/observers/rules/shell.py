"""Shell commands and their output: read-only commands, lost exit statuses, summary lines and error lines."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import filterfalse, islice
from operator import itemgetter

from omcli.base import lazily
from omcli.observers.rules.sentences import cut
from omcli.text.clean import one_line

_READ_ONLY = frozenset(
    (
        "[ awk basename bat cat cd column cut date df diff dirname du echo env false fd file find grep head "
        "hexdump jq less ls lsof nl od pgrep printenv printf ps pwd readlink realpath rg set sleep sort stat "
        "tail test tr tree true type uname uniq wc which whoami xargs xxd yq "
    ).split()
)
_READ_ONLY_GIT = frozenset(
    (
        "blame branch cat-file describe diff fetch grep log ls-files ls-remote ls-tree merge-base reflog "
        "remote rev-list rev-parse shortlog show status "
    ).split()
)
_SEPARATOR = lazily(r"\s*(?:&&|\|\|?|;|\n)\s*")
# An escaped quote does not open a string. Skipping it also keeps the search linear.
_QUOTED = lazily(r"(\\.)|'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_ASSIGNMENT = lazily(r"^(?:\w+=\S*\s+)+")
_CHANGES_DIRECTORY = lazily(r"^\s*cd\s+('[^']*'|\"[^\"]*\"|\S+)\s*(?:&&|;|\n)\s*")
_DIRECTORY_ARGUMENTS = ("workdir", "cwd", "directory", "dir_path")
_WRAPPED = lazily(r"""^(?:/\S*/)?(?:ba|z)?sh -l?c (['"])(.*)\1$""", re.DOTALL)
_TRIMS_OUTPUT = lazily(r"(?:\s+(?:2>&1|[12]?>\s*/dev/null|\|\s*(?:tail|head)(?:\s+-(?:n\s*)?\d+)?))+\s*$")
_MASKS_STATUS = lazily(r"(?<!\|)\|(?!\|)|\|\|\s*(?:true|echo|:)|;\s*\S")
_NAME = lazily(r"[\w.@+~-]+(?:/[\w.@+~-]+)*")
_WRITES = lazily(r"(?<![0-9&>-])>>?\s*(?!&|/dev/null)\S|(?:^|\s)(?:-i\b|--in-place|-delete\b|-exec\b)")

# Summary lines: 12 passed, 1 failed in 3.2s - Tests: 2 failed, 10 total - Build succeeded - Found 3 errors.
_SUMMARY = lazily(
    r"\b\d+ (?:tests? )?(?:passed|failed|passing|failing|failures?|errors?|warnings?|skipped|pass|fail)\b"
    r"|^(?:Tests?|Test Suites|Ran \d+ tests?|test result|Build|BUILD|Finished|Compiled|Found \d+ (?:errors?|issues?))\b"
    r"|\b(?:no issues found|all checks passed|already exists)\b|^\s*(?:\d+ files? changed|already up to date)\b",
    re.IGNORECASE,
)
_COUNTS_FAILURES = lazily(r"\b[1-9]\d{0,8} (?:tests? )?(?:failed|failing|failures?|errors?)\b", re.IGNORECASE)
_ERROR = lazily(
    r"^\s*(?:E \S|\S*(?:Error|Exception|Panic|panic)\b.*|error(?:\[\w+\])?[:\s].*|fatal:.*|"
    r"FAIL(?:ED)?\b.*|npm ERR!.*|"
    r"ERROR\b.*|.*\berror (?:TS|CS|C)\d+.*|.*: (?:command not found|No such file or directory|Permission denied).*|"
    r"\S+:\d+(?::\d+)?:.*|--- FAIL.*|✗.*|×.*|.*\bcannot find\b.*|.*\bundefined: .*|usage:.*)",
)
# A line with only a location: a stack frame, the heading of a report.
_LOCATION = lazily(r"\S+:\d+(?::\d+)?:\s*(?:in \S+|\w+)?\s*$|FAIL(?:ED)?\b[^:]*$|-{3} FAIL|usage:")
_COMMIT = lazily(r"^\[(?P<branch>[^\]\s]+)(?: \([^)]*\))? (?P<sha>[0-9a-f]{7,40})\] (?P<subject>.+)$", re.MULTILINE)
_PUBLISHED = lazily(r"https://[\w.\-]+/[\w.\-]+/[\w.\-]+/(?:pull|merge_requests|releases/tag)/[\w.\-]+")

_RELATIVE = frozenset({".", ".."})
_LINE_START = itemgetter(slice(2000))
"""Getter for the part of a line that is searched for errors."""
_COMMAND_WIDTH = 160
"""Maximum number of characters of a command in a row."""


def command_of(arguments: Mapping[str, object], raw: str) -> str:
    """Return a run tool's command line: the one in its arguments, without a leading `cd`, or `raw` if there are no
    arguments. Return an empty string if the arguments contain no command.
    """
    line = _command_line(arguments)
    return _CHANGES_DIRECTORY.sub("", line).strip() if line else "" if arguments else raw.strip()


def directory_of(arguments: Mapping[str, object]) -> str | None:
    """Return a command's working directory as written, with a leading `cd` applied, or None if it is not given."""
    named = next(
        (place for name in _DIRECTORY_ARGUMENTS if isinstance(place := arguments.get(name), str) and place), None
    )
    changed = _CHANGES_DIRECTORY.match(_command_line(arguments))
    if changed is None:
        return named
    return posixpath.join(named or "", changed[1].strip("'\""))


def same_directory(one: str | None, other: str | None) -> bool:
    """Return True if two directories may be the same.

    A relative path matches any path that ends with it, and None matches any path.
    """
    if one is None or other is None:
        return True
    steps = [filterfalse(_RELATIVE.__contains__, posixpath.normpath(path).split("/")) for path in (one, other)]
    shorter, longer = sorted(map(list, steps), key=len)
    return longer[len(longer) - len(shorter) :] == shorter


def _command_line(arguments: Mapping[str, object]) -> str:
    """Return the command line without the shell that wraps it (`bash -lc`), or "" if the arguments contain none."""
    for name in ("command", "cmd", "script", "code", "input", "action"):
        value = arguments.get(name)
        if isinstance(value, dict):
            value = value.get("command")
        if isinstance(value, list):
            words = [
                word for word in value if isinstance(word, str)
            ]  # bash, -lc and the command, or the words of a command
            value = words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
        if isinstance(value, str) and value.strip():
            return _WRAPPED.sub(r"\2", value.strip())
    return ""


def short(command: str, width: int = _COMMAND_WIDTH) -> str:
    """Return a command's first line, without redirections and pipes that only trim its output. An ellipsis marks
    further lines.

    If the line is too long, its middle is cut, and the last word, usually a file, is kept if possible.
    """
    lines = [line for line in command.splitlines() if line.strip()]
    first = one_line(lines[0]) if lines else ""
    first = _TRIMS_OUTPUT.sub("", first) or first
    if len(first) <= width:
        return f"{first} …" if len(lines) > 1 else first
    last = first.rpartition(" ")[2]
    last = last if len(last) <= width // 2 else last.rpartition("/")[2]
    if not last or len(last) > width // 2 or not _NAME.fullmatch(last):
        return cut(first, width)
    return f"{cut(first, width - len(last) - 1)} {last}"


def is_status_lost(command: str) -> bool:
    """Return True if the exit status may not be the command's own, because of something such as a pipe, `|| true` or `;
    echo`.
    """
    return bool(_MASKS_STATUS.search(_without_quotes(command)))


def is_read_only(command: str) -> bool:
    """Return True if every part of a command only reads (lists, prints, searches, compares and the like) and no output
    goes to a file.
    """
    bare = _without_quotes(command)
    if "<<" in bare or _WRITES.search(bare):
        return False
    return all(map(_is_read_only_part, filter(str.strip, _SEPARATOR.split(bare))))


def _without_quotes(command: str) -> str:
    """Return a command with its quoted strings emptied."""
    pieces = _QUOTED.split(command)  # text, then an escaped character or None for a string, then text …
    for at in range(1, len(pieces), 2):
        pieces[at] = pieces[at] or "''"
    return "".join(pieces)


def _is_read_only_part(part: str) -> bool:
    words = _ASSIGNMENT.sub("", part.strip().lstrip("(").strip()).split()
    if not words:
        return True
    name = words[0].rsplit("/", 1)[-1]
    if name == "git":
        for word in words[1:]:
            if not word.startswith("-") and "/" not in word:
                return word in _READ_ONLY_GIT and "-D" not in words and "-d" not in words
        return False
    if name == "sed":
        return "-n" in words
    if name == "gh" and len(words) > 2:
        asks_api = words[1] == "api" and not {"-X", "--method", "-f", "-F", "--field"} & set(words)
        return asks_api or words[2] in ("view", "list", "status", "diff", "checks")
    return name in _READ_ONLY or words[-1] in ("--version", "--help")


def summary_line(output: str) -> str:
    """Return the last line that sums up the output ("12 passed, 1 failed in 3.2s"), or an empty string."""
    for line in reversed(output.splitlines()[-60:]):
        if len(line) <= 300 and _SUMMARY.search(line):
            return cut(one_line(line).strip("= -"), 160)
    return ""


def has_failures(output: str) -> bool:
    return bool(_COUNTS_FAILURES.search(summary_line(output)))


def has_error(output: str) -> bool:
    return any(map(_ERROR.match, map(_LINE_START, map(one_line, output.splitlines()))))


def error_lines(output: str, limit: int) -> str:
    """Return the first error lines of the output, or otherwise its last line, within `limit` characters. The result is
    empty if the output is blank.
    """
    kept: dict[str, str] = {}
    room = limit
    for line in _errors_or_last(output.splitlines()):
        if line in kept:
            continue
        part = cut(line, room)
        if part == "…" or (kept and len(line) > room):
            break
        kept[line] = part
        room -= len(part) + 3
        if room < 20:
            break
    return " | ".join(kept.values())


def _errors_or_last(lines: Sequence[str]) -> Iterator[str]:
    has_errors = False
    places: list[str] = []
    for line in map(one_line, lines):
        if not _ERROR.match(_LINE_START(line)):
            continue
        has_errors = True
        # Errors come before locations, because stack frames only name places.
        if _LOCATION.match(_LINE_START(line)):
            places.append(line)
        else:
            yield line
    yield from places if has_errors else islice(filter(None, map(one_line, reversed(lines))), 1)


def commit_in(output: str) -> tuple[str, str, str] | None:
    """Return branch, id and subject of the commit reported by `git commit`, or None."""
    match = _COMMIT.search(output)
    return (match["branch"], match["sha"], one_line(match["subject"])) if match else None


def request_url(output: str) -> str:
    """Return the URL of a pull request, merge request or release in the output, or an empty string."""
    match = _PUBLISHED.search(output)
    return match.group() if match else ""
