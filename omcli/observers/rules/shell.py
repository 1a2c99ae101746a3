"""Shell commands and their output: read-only commands, lost exit statuses, summary lines and error lines."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import filterfalse, islice
from operator import itemgetter
from types import MappingProxyType

from omcli.base import lazily
from omcli.base.record import field, mutable_record
from omcli.observers.rules.sentences import cut
from omcli.text.clean import one_line

# An escaped quote does not open a string. Skipping it also keeps the search linear.
_QUOTED = lazily(r"(\\.)|'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_CHANGES_DIRECTORY = lazily(r"^\s*cd\s+('[^']*'|\"[^\"]*\"|\S+)\s*(?:&&|;|\n)\s*")
_DIRECTORY_ARGUMENTS = ("workdir", "cwd", "directory", "dir_path")
_WRAPPED = lazily(r"""^(?:/\S*/)?(?:ba|z)?sh -l?c (['"])(.*)\1$""", re.DOTALL)
_TRIMS_OUTPUT = lazily(r"(?:\s+(?:2>&1|[12]?>\s*/dev/null|\|\s*(?:tail|head)(?:\s+-(?:n\s*)?\d+)?))+\s*$")
_MASKS_STATUS = lazily(r"(?<!\|)\|(?!\|)|\|\|\s*(?:true|echo|:)|;\s*\S")
_NAME = lazily(r"[\w.@+~-]+(?:/[\w.@+~-]+)*")

# Summary lines: 12 passed, 1 failed in 3.2s - Tests: 2 failed, 10 total - Build succeeded - Found 3 errors.
_SUMMARY = lazily(
    r"\b\d+ (?:tests? )?(?:passed|failed|passing|failing|failures?|errors?|warnings?|skipped|pass|fail)\b"
    r"|^(?:Tests?|Test Suites|Ran \d+ tests?|test result|Build|BUILD|Finished|Compiled|Found \d+ (?:errors?|issues?))\b"
    r"|\b(?:no issues found|all checks passed|already exists)\b|^\s*(?:\d+ files? changed|already up to date)\b",
    re.IGNORECASE,
)
_COUNTS_FAILURES = lazily(r"\b[1-9]\d{0,8} (?:tests? )?(?:failed|failing|failures?|errors?)\b", re.IGNORECASE)
_COUNTS_SUCCESSES = lazily(
    r"\b[1-9]\d{0,8} (?:tests? )?pass(?:ed|ing)?\b|\b0 errors\b|\ball checks passed\b|\bno issues found\b",
    re.IGNORECASE,
)
_ERROR = lazily(
    r"^\s*(?:E \S|\S*(?:Error|Exception|Panic|panic)\b.*|error(?:\[\w+\])?[:\s].*|fatal:.*|"
    r"FAIL(?:ED)?\b.*|npm ERR!.*|"
    r"ERROR\b.*|.*\berror (?:TS|CS|C)\d+.*|.*: (?:command not found|No such file or directory|Permission denied).*|"
    r"\S+:\d+(?::\d+)?:.*|--- FAIL.*|✗.*|×.*|.*\bcannot find\b.*|.*\bundefined: .*|usage:.*)",
)
# The first or last line of what a failed command prints.
_FAILED = lazily(
    r"(?:E  +)?[\w.]*(?:Error|Exception|Panic)(?: \[\w+\])?: .*|error(?:\[\w+\])?: .*|fatal: .*|panic: .*|"
    r"Traceback \(most recent call last\):|npm ERR!.*|FAIL(?:ED)?(?:\W.*)?|-{3} FAIL.*|\w*make(?:\[\d+\])?: \*\*\* .*|"
    r".*\berror (?:TS|CS|C)\d+: .*|(?:\w+: )*command not found\b.*|"
    r".*: (?:(?:command )?not found|No such file or directory|Permission denied)"
)
_FRAME = lazily(r"\s+at \S")
# A line about the exit status, printed by an agent or a shell before or after the output.
_EXIT_LINE = lazily(
    r"\W{0,3}(?:(?:the|command|process|program|script|shell|task|has|failed|completed|finished|ended|error|with):? )"
    r"{0,6}(?:exit(?:ed)?|return(?:ed)?)[ _-]?(?:with )?(?:exit )?(?:code|status)\W{1,3}(?P<code>\d{1,3})"
    r"(?:\.?\W?|</\w{1,20}>)",
    re.IGNORECASE,
)
_EXIT_LINES = 6
"""Number of lines at the start of an output, and as many at its end, that may state its exit status."""
# A line with only a location: a stack frame, the heading of a report.
_LOCATION = lazily(r"\S+:\d+(?::\d+)?:\s*(?:in \S+|\w+)?\s*$|FAIL(?:ED)?\b[^:]*$|-{3} FAIL|usage:")
_FAILED_TEST = lazily(r"^[ \t]*-{3} FAIL: \S[^\n]*", re.MULTILINE)
_COMMIT = lazily(r"^\[(?P<branch>[^\]\s]+)(?: \([^)]*\))? (?P<sha>[0-9a-f]{7,40})\] (?P<subject>.+)$", re.MULTILINE)
_PUBLISHED = lazily(r"https://[\w.\-]+/[\w.\-]+/[\w.\-]+/(?:pull|merge_requests|releases/tag)/[\w.\-]+")

_LIST_MARKS = "|,"
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
        return _cut_command(first, width)
    return f"{_cut_command(first, width - len(last) - 1)} {last}"


def _cut_command(line: str, limit: int) -> str:
    """Return the start of a command. A long argument, such as a list or a pattern, is cut between its parts."""
    start = cut(line, limit)
    if len(start) >= limit // 2 or len(line) <= limit:
        return start
    end = max(line.rfind(mark, 0, limit - 2) for mark in _LIST_MARKS)
    return f"{line[:end]} …" if end > len(start) else start


def is_status_lost(command: str) -> bool:
    """Return True if the exit status may not be the command's own, because of something such as a pipe, `|| true` or `;
    echo`.
    """
    return bool(_MASKS_STATUS.search(_without_quotes(command)))


def _without_quotes(command: str) -> str:
    """Return a command with its quoted strings emptied."""
    pieces = _QUOTED.split(command)  # text, then an escaped character or None for a string, then text …
    for at in range(1, len(pieces), 2):
        pieces[at] = pieces[at] or "''"
    return "".join(pieces)


def summary_line(output: str) -> str:
    """Return the last line that sums up the output ("12 passed in 3.2s"), or "" if its last 60 lines have none."""
    for line in reversed(output.splitlines()[-60:]):
        if len(line) <= 300 and _SUMMARY.search(line):
            return cut(one_line(line).strip("= -"), 160)
    return ""


def has_failures(output: str) -> bool:
    return bool(_COUNTS_FAILURES.search(summary_line(output)))


def has_successes(output: str) -> bool:
    """Return True if the summary line of the output counts successes, and no failures."""
    line = summary_line(output)
    return bool(_COUNTS_SUCCESSES.search(line)) and not _COUNTS_FAILURES.search(line)


def is_failure(output: str) -> bool:
    """Return True if the output counts failures, or begins or ends with an error."""
    if has_failures(output):
        return True
    lines = [line for line in output.splitlines() if line.strip() and not _FRAME.match(line[:80])]
    return any(_FAILED.fullmatch(_LINE_START(line).strip()) for line in (*lines[:1], *lines[-1:]))


def exit_code_in(output: str) -> int | None:
    """Return the exit code that a line at the start or end of the output states, or None."""
    return next((int(stated["code"]) for _, stated in _exit_lines(output.splitlines())), None)


def without_exit_lines(output: str) -> str:
    """Return the output without the lines that state its exit code, unless there is nothing else in it."""
    lines = output.splitlines()
    stated = {number for number, _ in _exit_lines(lines)}
    return "\n".join(line for number, line in enumerate(lines) if number not in stated) or output


def _exit_lines(lines: Sequence[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the number of each line at the start or end that states an exit code, with its match."""
    numbers = range(len(lines))
    for number in (*numbers[:_EXIT_LINES], *numbers[_EXIT_LINES:][-_EXIT_LINES:]):
        if len(lines[number]) <= _COMMAND_WIDTH and (stated := _EXIT_LINE.fullmatch(lines[number].strip())):
            yield number, stated


def has_error(output: str) -> bool:
    return any(map(_ERROR.match, map(_LINE_START, map(one_line, output.splitlines()))))


def error_lines(output: str, limit: int) -> str:
    """Return the first error lines of the output, with the name of the first test that failed, or its last line if it
    has no error lines, within `limit` characters. Return an empty string if the output is blank.
    """
    kept: dict[str, str] = {}
    found = _FAILED_TEST.search(output)
    failed = one_line(found[0]) if found and len(found[0]) < limit // 2 else ""
    room = limit - len(failed)
    for line in _errors_or_last(output.splitlines()):
        if line in kept:
            continue
        part = failed if line == failed else cut(line, room)
        if part == "…" or (kept and len(part) < len(line)):
            break
        kept[line] = part
        room -= (0 if line == failed else len(part)) + 3
        if room < 20:
            break
    return " | ".join((kept | ({failed: failed} if failed else {})).values())


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


# ---- read-only commands

_TOKEN = lazily(
    r"(?P<blank>[ \t\r]+|\\\n|(?<![^\s;&|()])#[^\n]*)"
    r"|(?P<literal>'[^']*'|\$'(?:\\[^\n]|[^'\\])*'|\\.|\$\(\([^()]*\)\)|\$\{[^{}`$]*\})"
    r"|(?P<opens>[$<]?\(|\"|`)|(?P<closes>\))"
    r"|(?P<redirects>(?:[0-9]{1,4}|&)?(?:>>|>\||>&|<<<|<<|<&|<>|>|<))"
    r"|(?P<ends>&&|\|\||\|&|;;|[;&|\n])"
    r"|(?P<plain>(?:(?![0-9]{1,4}[<>])[^\s'\"\\$`();&|<>])+|\$)"
)
_QUOTED_TOKEN = lazily(
    r"(?P<literal>(?:\\[\s\S]|[^\"\\$`])+|\$\(\([^()]*\)\)|\$\{[^{}`$]*\})"
    r"|(?P<opens>\$\(|`)|(?P<closes>\")|(?P<plain>\$)"
)
_CLOSES = MappingProxyType({'"': '"', "`": "`"})
_DISCARDED = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_DEPTH = 20
"""Maximum depth of nested quotes and parentheses."""
_LONGEST = 20_000
"""Maximum length, in characters, of a command that is parsed. Longer ones contain files."""


@lru_cache  # several rules ask this about a command
def is_read_only(command: str) -> bool:
    """Return True if every part of a command, also in pipes and substitutions, only reads (lists, prints, searches,
    compares and the like) and no output goes to a file.

    Unknown commands do not count, nor does syntax that is not parsed, such as loops and here-documents.
    """
    parts = _parts(command) if len(command) <= _LONGEST else None
    return parts is not None and all(map(_is_read_only_part, parts))


@mutable_record
class _Scope:
    """A line of commands, or the inside of quotes or parentheses, as far as it is read."""

    opened: str
    words: list[str] = field(default_factory=list)
    word: str | None = None
    redirect: str = ""
    """The operator that the next word belongs to."""

    def add(self, text: str) -> None:
        self.word = (self.word or "") + text

    def end_word(self) -> bool:
        """Add the word to the command, or to a redirection. Return False for one to a file, or for a here-document."""
        word, redirect = self.word, self.redirect
        if word is None:
            return True
        self.word, self.redirect = None, ""
        if not redirect:
            self.words.append(word)
            return True
        if redirect.endswith("&"):
            return word == "-" or word.isdigit()
        return word in _DISCARDED if ">" in redirect else not redirect.endswith("<<") or redirect.endswith("<<<")


def _parts(line: str) -> list[list[str]] | None:
    """Return the words of each command in a line, without quotes. Return None if the line writes to a file, or is not
    understood.
    """
    found: list[list[str]] = []
    scopes, at = [_Scope(opened="")], 0
    while at < len(line):
        scope = scopes[-1]
        is_quoted = scope.opened == '"'
        token = (_QUOTED_TOKEN if is_quoted else _TOKEN).match(line, at)
        if token is None or len(scopes) > _DEPTH:
            return None
        at, kind, text = token.end(), token.lastgroup, token[0]
        if kind == "closes" or text == scope.opened == "`":
            if len(scopes) == 1 or _CLOSES.get(scope.opened, ")") != text or not (is_quoted or scope.end_word()):
                return None
            found.append(scope.words)
            del scopes[-1]
            if scope.opened != "(":
                scopes[-1].add(scope.word or "" if is_quoted else "$()")
        elif kind == "opens":
            scopes.append(_Scope(opened=text))
        elif kind in ("literal", "plain"):
            scope.add(text if is_quoted else _plain_text(text))
        elif not scope.end_word():
            return None
        elif kind == "redirects":
            scope.redirect = text
        elif kind == "ends":
            found.append(scope.words)
            scope.words = []
    return [*found, scopes[0].words] if len(scopes) == 1 and scopes[0].end_word() else None


def _plain_text(text: str) -> str:
    """Return a token without its single quotes or its backslash."""
    return text.strip("'") if text[0] == "'" else text[2:-1] if text[:2] == "$'" else text[text[0] == "\\" :]


_READ_ONLY = frozenset(
    (
        ": [ [[ basename bat cat cd cmp column comm cut df diff dirname du echo egrep false fgrep file grep head "
        "hexdump jq less ls lsof md5sum nl od pgrep printenv printf ps pwd readlink realpath rg set sha1sum sha256sum "
        "sleep stat tac tail test tr true type uname wc whereis which whoami zcat zgrep"
    ).split()
)
_WRITES = MappingProxyType({
    # Redirections and pipes of `print` outside of strings; other programs that are run.
    "awk": lazily(r"^(?:-[if]|--(?:include|file))|\bprintf?\b[^;}\n\"]*(?:\"[^\"]*\"[^;}\n\"]*)*[>|]|\bsystem\s*\("
                  r"|\|&?\s*getline"),
    "date": lazily(r"^(?:-[a-zA-Z]*s|--set)"),
    # The commands `w`, `W` and `e`, and the flags of `s`.
    "sed": lazily(r"^-[a-zA-Z]*[if]|^--(?:in-place|file)|(?:^|[;{}\n/|,#0-9$])\s*[gpiImM0-9]*[wWe](?:\s|$)"),
    "sort": lazily(r"^(?:-[a-zA-Z]*o|--output|--compress-program)"),
    "tree": lazily(r"^-[a-zA-Z]*o"),
    "yq": lazily(r"^(?:-[a-zA-Z]*i|--in-?place)"),
})  # fmt: skip
"""Patterns of words with which a command that otherwise only reads may write, or run another."""
_ONE_FILE = frozenset({"uniq", "xxd"})
"""Commands that write to their second file."""
_WRAPPERS = MappingProxyType({
    "env": ("-u", "-C"), "nice": ("-n",), "nohup": (), "sudo": ("-u", "-g"), "time": (), "timeout": ("-k", "-s"),
    "xargs": ("-I", "-n", "-P", "-L", "-d", "-a", "-s", "-E"),
})  # fmt: skip
"""Commands that run the rest of their words, with their options that have a value."""
_ASSIGNED = lazily(r"\w+\+?=")
_FINDS_AND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
_FINDS_AND_WRITES = frozenset({"-delete", "-fls", "-fprint", "-fprint0", "-fprintf"})
_READ_ONLY_GIT = frozenset(
    (
        "annotate blame cat-file check-ignore cherry count-objects describe diff diff-files diff-index diff-tree fetch "
        "for-each-ref grep help log ls-files ls-remote ls-tree merge-base name-rev range-diff rev-list rev-parse "
        "shortlog show show-branch show-ref status var version whatchanged"
    ).split()
)
_READ_ONLY_AFTER: Mapping[str, frozenset[str]] = MappingProxyType({
    "bisect": frozenset({"log", "view"}), "config": frozenset({"get", "list"}),
    "notes": frozenset({"", "list", "show"}), "reflog": frozenset({"", "show", "exists", "HEAD"}),
    "remote": frozenset({"", "show", "get-url"}), "stash": frozenset({"list", "show"}),
    "submodule": frozenset({"", "status", "summary"}), "worktree": frozenset({"list"}),
    "branch": frozenset({""}), "tag": frozenset({""}),
})  # fmt: skip
"""By git command, the next words with which it only reads. "" means that nothing but options follows."""
_LISTS = MappingProxyType({
    "branch": frozenset({"-a", "-r", "-l", "--all", "--remotes", "--list", "--contains", "--merged", "--no-merged"}),
    "tag": frozenset({"-l", "-n", "--list", "--contains", "--points-at", "--merged", "--no-merged"}),
    "config": frozenset({"-l", "--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch"}),
    "clean": frozenset({"-n", "--dry-run"}),
})  # fmt: skip
"""Options with which a git command only reads, whatever follows."""
_GIT_WRITES = frozenset(
    "-d -D -m -M -c -C -f -u --delete --move --copy --force --set-upstream-to --unset-upstream --edit-description "
    "--output --open-files-in-pager".split()
)
_UNSETS = frozenset({"--unset", "--unset-all", "--remove-section"})
_GIT_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace")
_API_WRITES = frozenset({"-X", "--method", "-f", "-F", "--field", "--raw-field", "--input"})
_READ_ONLY_GH = frozenset({"view", "list", "status", "diff", "checks"})


def _is_read_only_part(words: Sequence[str]) -> bool:
    """Return True if a command, given as its words, only reads. A command that consists of assignments counts, too."""
    start = next((at for at, word in enumerate(words) if word != "!" and not _ASSIGNED.match(word)), len(words))
    if start == len(words):
        return True
    name, given = words[start].rsplit("/", 1)[-1], words[start + 1 :]
    if name in _READ_ONLY or given[-1:] in (["--version"], ["--help"]):
        return True
    if name in _WRITES:
        return not any(map(_WRITES[name].search, given))
    if name in _ONE_FILE:
        return sum(not word.startswith("-") for word in given) < 2
    if name in _WRAPPERS:
        rest = _after_options(given, _WRAPPERS[name])
        return _is_read_only_part(rest[1:] if name == "timeout" else rest)
    if name in ("find", "fd"):
        return _FINDS_AND_WRITES.isdisjoint(given) and all(map(_is_read_only_part, _found_parts(given)))
    if name == "command":
        return given[:1] in (["-v"], ["-V"]) or _is_read_only_part(given)
    if name == "gh" and len(given) > 1:
        return _API_WRITES.isdisjoint(_options(given)) if given[0] == "api" else given[1] in _READ_ONLY_GH
    return name == "git" and _is_read_only_history(_after_options(given, _GIT_WITH_VALUE))


def _is_read_only_history(words: Sequence[str]) -> bool:
    name, given = words[0] if words else "", words[1:]
    options = _options(given)
    if options & _LISTS.get(name, frozenset()):
        return name == "clean" or options.isdisjoint(_GIT_WRITES)
    if name in _READ_ONLY_GIT:
        return options.isdisjoint({"--output", "--open-files-in-pager"})
    first, *more = [*(word for word in given if not word.startswith("-")), ""]
    is_key = name == "config" and "." in first and more == [""] and options.isdisjoint(_UNSETS)
    return is_key or (first in _READ_ONLY_AFTER.get(name, ()) and options.isdisjoint(_GIT_WRITES))


def _options(given: Sequence[str]) -> frozenset[str]:
    """Return the options, without their values, and each letter of combined ones (`-nd`) as an option."""
    long = {word.partition("=")[0] for word in given if word.startswith("-")}
    return frozenset(long | {f"-{letter}" for word in long if word[1:2] != "-" for letter in word[1:]})


def _after_options(given: Sequence[str], with_value: Sequence[str]) -> Sequence[str]:
    """Return the words after options and assignments."""
    at = 0
    while at < len(given) and (given[at].startswith("-") or _ASSIGNED.match(given[at])):
        at += 2 if given[at] in with_value else 1
    return given[at:]


def _found_parts(given: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the commands that `find` or `fd` runs for each file it finds. A command without words is unknown."""
    for start, word in enumerate(given):
        if word in _FINDS_AND_RUNS:
            rest = given[start + 1 :]
            end = next((at for at, word in enumerate(rest) if word in (";", "+")), len(rest))
            yield rest[:end] or ("",)
