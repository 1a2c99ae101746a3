"""Rows about changed files, reads, searches and read-only remote tools, and excerpts from tool output.

The last section of this module finds the edit that wrote a line, for `om why`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain, filterfalse
from math import fsum, sqrt
from operator import attrgetter

from omcli.base import lazily
from omcli.base.record import positional_record, record, replace
from omcli.memory.message import KeptMessage, Role
from omcli.memory.observation import Draft, Priority, Type
from omcli.observers.rules import shell
from omcli.observers.rules.sentences import cut, first_lines
from omcli.observers.rules.tool_events import (
    FileChange,
    Paths,
    ToolEvent,
    ToolKind,
    changed_files,
    event_draft,
    target_of,
)
from omcli.text.clean import one_line
from omcli.text.phrases import counted, first_of

_ROW_CHARACTERS = 900


def file_change_drafts(events: Sequence[ToolEvent], interest: IdentifierCounts, paths: Paths) -> Iterator[Draft]:
    """Yield one row per changed file, citing all its edits, and rows that quote more of its new lines.

    Unless the file was deleted, its row has a summary (`change_summary`), and quotes the new lines that `interest`
    selects.
    """
    by_path: dict[str, list[tuple[ToolEvent, FileChange]]] = {}
    for event in events:
        for change in changed_files(event.arguments, event.raw):
            creates = change.creates or (event.kind is ToolKind.WRITE and " updated" not in event.output[:200])
            by_path.setdefault(change.path, []).append((event, replace(change, creates=creates)))
    for path, changes in by_path.items():
        cited, of_file = [event for event, _ in changes], [change for _, change in changes]
        draft = _file_draft(path, cited, of_file, interest, paths)
        yield draft
        if not of_file[-1].deletes:
            more = interest.select_lines(new_lines(of_file), most=_MOST_QUOTED)
            unquoted = [line for line in more if line not in draft.text]
            yield from _excerpt_rows(cited, paths(path), unquoted, _CHANGE_IMPORTANCE)


def _file_draft(
    path: str, events: Sequence[ToolEvent], changes: list[FileChange], interest: IdentifierCounts, paths: Paths
) -> Draft:
    created, deleted = changes[0].creates, changes[-1].deletes
    edits = len(changes) - created - deleted
    verb = "Deleted" if deleted else "Created" if created else "Modified"
    moved_to = next((change.moved_to for change in changes if change.moved_to), None)
    moved = f" → {paths(moved_to)}" if moved_to else ""
    summary = "" if deleted else _change_text(change_summary(changes), interest.select_lines(new_lines(changes)))
    return event_draft(
        events,
        cut(
            f"{verb} {paths(path)}{moved}{_edits_text(edits, created=created)}" + (f": {summary}" if summary else ""),
            _ROW_CHARACTERS,
        ),
        Type.FILE_CREATED if created else Type.FILE_MODIFIED,
        7,
        priority=Priority.MEDIUM,
        metadata={"path": path, "change": verb.lower(), "edits": edits, "moved_to": moved_to},
    )


def _change_text(names: str, lines: Sequence[str]) -> str:
    return " · ".join(filter(None, (names, *(line for line in lines if line not in names))))


def _edits_text(edits: int, *, created: bool) -> str:
    if created:
        return f" ({edits} edit{'s' if edits > 1 else ''} since)" if edits else ""
    return f" ({edits} edits)" if edits > 1 else ""


_DEFINES = lazily(
    r"^[ \t]*(?:export\s+|default\s+|public\s+|private\s+|protected\s+|static\s+|async\s+|"
    r"pub(?:\([a-z]+\))?\s+|abstract\s+)*"
    r"(?:def|class|func|fn|function\*?|interface|type|struct|enum|trait|impl|module|macro_rules!)\s+"
    r"(?:\([^)\n]*\)\s*)?([A-Za-z_]\w+)",
    re.MULTILINE,
)
# Only unindented constants: indented ones are local.
_CONSTANT = lazily(r"^(?:export\s+)?const\s+([A-Za-z_]\w+)", re.MULTILINE)
_HEADING = lazily(r"^#{1,3} +(.+)$", re.MULTILINE)

_WORD_CHARACTERS = lazily(r"\w{3}")

_NAMES_SHOWN = 6
_CHANGE_CHARACTERS = 90


def change_summary(changes: list[FileChange]) -> str:
    """Return a summary of the changes to one file, or "" if there is nothing to name.

    It names the added and removed definitions and headings, or else shows a changed line, or else names the edited
    definitions. Edited headings are not named, because "Added" in a changelog says nothing about the new entry.
    """
    old, new = "\n".join(change.old for change in changes), "\n".join(change.new for change in changes)
    old_names, new_names = _names_in(old), _names_in(new)
    added = [name for name in new_names if name not in old_names]
    removed = [name for name in old_names if name not in new_names]
    parts = [f"{verb} {_list_names(names)}" for verb, names in (("adds", added), ("removes", removed)) if names]
    if not parts:
        parts = [text for text in (_line_change(old, new),) if text]
    if not parts and (kept := [name for name in _names_in(new, with_headings=False) if name in old_names]):
        parts = [f"in {_list_names(kept)}"]
    return "; ".join(parts)


def _line_change(old: str, new: str) -> str:
    """Return a one-line change as `old` → `new`, otherwise the first added line or, if no added line can be shown, the
    first removed one. Long lines are not shown, and code is preferred to comments. Return "" if no line is left.
    """
    old_lines = [line.strip() for line in old.splitlines() if line.strip()]
    new_ones = [line.strip() for line in new.splitlines() if line.strip()]
    removed = [line for line in old_lines if line not in new_ones]
    added = [line for line in new_ones if line not in old_lines]
    if len(removed) == len(added) == 1 and max(len(removed[0]), len(added[0])) <= _CHANGE_CHARACTERS:
        return f"`{one_line(removed[0])}` → `{one_line(added[0])}`"
    for verb, lines in (("+", added), ("-", removed)):
        candidates = [line for line in lines if len(line) <= _CHANGE_CHARACTERS and _WORD_CHARACTERS.search(line)]
        if candidates:
            code = [line for line in candidates if not line.startswith(("//", "#", "/*", "*", "--", "<!--"))]
            return f"{verb} `{one_line((code or candidates)[0])}`"
    return ""


def _names_in(code: str, *, with_headings: bool = True) -> list[str]:
    headings = map(one_line, _HEADING.findall(code)) if with_headings else ()
    return list(dict.fromkeys([*_DEFINES.findall(code), *_CONSTANT.findall(code), *headings]))


def _list_names(names: list[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" (+{more} more)" if more > 0 else "")


_LINES = 4
"""Maximum number of new lines quoted in the row of a changed file."""
_EXCERPT_LINES, _MOST_QUOTED = 4, 12
"""Maximum number of lines in an excerpt, and in all excerpts of one output or changed file. Lines that stand together
explain each other; a pack takes the excerpts that it has room for.
"""
_CHANGE_IMPORTANCE, _OUTPUT_IMPORTANCE = 5, 4
"""Importance of lines that the agent wrote into a file, and of lines that it only read."""
_SHORTEST, _LONGEST = 10, 200
"""Minimum and maximum length of lines to quote, in characters. Longer lines are usually data."""
_LINE_CHARACTERS = 140
_MOST_LINES = 2000
"""Maximum number of lines examined in one text."""
_READ_CHARACTERS = 20_000
"""Number of characters read per message to count identifiers."""
_RESULT_SHARE = 0.4
"""Weight of a mention in tool output, which names many irrelevant things. Mentions in other messages count as 1."""
_SUBJECT_CHARACTERS = 60
_SHORT_PATH = 40
"""Maximum length, in characters, of a path that each row of excerpts names in full."""
# A command that only shows a part of a file, which names its output better.
_SHOWS_FILE = lazily(
    r"(?:cat|nl|head|tail|bat|sed -n ['\"]?[\d,$]+p['\"]?)(?: -[\w=]+(?: \d+)?)* (?P<file>[\w.~/@+-]+\.\w+)"
    r"(?: \| (?:sed -n ['\"]?[\d,$]+p['\"]?|(?:head|tail)(?: -[\w=]+(?: \d+)?)*))?"
)

_WORD = lazily(r"[A-Za-z_][A-Za-z0-9_]{3,}")
_IDENTIFIER = lazily(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]")
# More than a bare name, which is only an entry in a list of exports, fields or arguments.
_PROSE_OR_CODE = lazily(r"\w[^\w.:/-]+\w|\w(?:: |::)\w|[/.:-]\w+[/.:-]\w")
_LETTERS = lazily(r"(?<![\w./-])[^\W\d_]{3,}(?![\w/-]|\.\w)")
_FEW_WORDS = 3
"""Number of ordinary words that say something about a name. A line with fewer of them is worth proportionally less."""
# Line numbers added by agents: `   12→`, `12:`, `src/a.py:12:`.
_NUMBERED = lazily(r"\s*\d{1,6}(?:→|\t|: ?|- ?)")


@positional_record
class IdentifierCounts:
    """Weights of the identifiers in a batch's messages: the square root of the number of mentions."""

    counts: Mapping[str, float]

    @classmethod
    def of(cls, messages: Iterable[KeptMessage]) -> IdentifierCounts:
        """Count each identifier once per message."""
        said, shown = Counter[str](), Counter[str]()
        for kept in messages:
            named = shown if kept.message.role is Role.RESULT else said
            named.update(set(_WORD.findall(kept.message.text[:_READ_CHARACTERS])))
        identifiers = filter(_is_identifier, shown.keys() | said.keys())
        return cls({word: sqrt(said[word] + _RESULT_SHARE * shown[word]) for word in identifiers})

    def select_lines(self, lines: Sequence[str], *, most: int = _LINES) -> list[str]:
        """Return at most `most` lines that mention these identifiers, in order, preferring those that add the most
        weight per character. A line with few other words says little about the identifiers, so it weighs less.
        """
        named = ((place, self.counts.keys() & _WORD.findall(line)) for place, line in enumerate(lines))
        queue = [(-self._weight(names, lines[place]), place, names) for place, names in named if names]
        heapify(queue)
        kept: list[int] = []
        mentioned: set[str] = set()
        while queue and len(kept) < most:
            _, place, names = heappop(queue)
            unmentioned = names - mentioned
            if len(unmentioned) == len(names):
                kept.append(place)
                mentioned |= names
            elif unmentioned:  # its weight has dropped, so it is queued again
                heappush(queue, (-self._weight(unmentioned, lines[place]), place, unmentioned))
        return [cut(lines[place], _LINE_CHARACTERS) for place in sorted(kept)]

    def _weight(self, names: Iterable[str], line: str) -> float:
        # `set - dict.keys()` would look at all keys, which took a fifth of `om observe`.
        words = len(set(_LETTERS.findall(line)).difference(self.counts))
        told = min(1.0, (words + 1) / (_FEW_WORDS + 1))
        return told * fsum(map(self.counts.__getitem__, names)) / (len(line) + 16)


def _is_identifier(word: str) -> bool:
    """Return True if a word looks like an identifier, such as one in camelCase, two-part PascalCase or snake_case."""
    return not (word.isalpha() and word.islower()) and _IDENTIFIER.search(word) is not None


def new_lines(changes: Sequence[FileChange]) -> list[str]:
    """Return the lines that a file's changes add and that an excerpt may quote, without duplicates."""
    before = set(chain.from_iterable(map(_lines, map(attrgetter("old"), changes))))
    after = chain.from_iterable(map(_lines, map(attrgetter("new"), changes)))
    return list(dict.fromkeys(filterfalse(before.__contains__, after)))


def excerpt_drafts(events: Sequence[ToolEvent], interest: IdentifierCounts, paths: Paths) -> Iterator[Draft]:
    """Yield rows that quote the lines which `interest` selects from the output of reads, searches and commands, each
    line only once.
    """
    quoted: set[str] = set()
    for event in reversed(events):  # a repeated line is quoted from its last output
        if event.kind not in (ToolKind.READ, ToolKind.SEARCH, ToolKind.RUN):
            continue
        command = event.command
        shown = _SHOWS_FILE.fullmatch(command)
        place = paths(shown["file"] if shown else target_of(event))
        if command and not shown:
            place = f"`{shell.short(command, _SUBJECT_CHARACTERS)}`"
        lines = [line for line in _lines(event.output) if _PROSE_OR_CODE.search(line)]
        picked = [line for line in interest.select_lines(lines, most=_MOST_QUOTED) if line not in quoted]
        quoted.update(picked)
        if place:
            yield from _excerpt_rows([event], place, picked, _OUTPUT_IMPORTANCE, Priority.LOW)


def _excerpt_rows(
    events: Sequence[ToolEvent], place: str, lines: Sequence[str], importance: int, priority: Priority | None = None
) -> Iterator[Draft]:
    """Yield rows that quote these lines, `_EXCERPT_LINES` in each. Only the first names a long path in full."""
    for start in range(0, len(lines), _EXCERPT_LINES):
        quoted = " · ".join(lines[start : start + _EXCERPT_LINES])
        yield event_draft(events, f"In {place}: {quoted}", Type.EXCERPT, importance, priority=priority)
        place = place if place.startswith("`") or len(place) <= _SHORT_PATH else place.rpartition("/")[2] or place


def _lines(text: str) -> list[str]:
    """Return the lines that an excerpt may quote, without line numbers."""
    lines: list[str] = []
    for written in text.splitlines()[:_MOST_LINES]:
        number = _NUMBERED.match(written)
        line = one_line(written[number.end() :] if number else written)
        if _SHORTEST <= len(line) <= _LONGEST:
            lines.append(line)
    return lines


_COUNT_LINE = lazily(r"^(?:Found )?(\d{1,9}) (files?|match(?:es)?|results?|lines?)\b", re.IGNORECASE)
_NAMES_FILES = frozenset("glob ls find list_dir list_directory list_files file_search".split())
_NOTHING = lazily(r"^(?:no (?:files|matches|results)|\(no output\)|nothing found)", re.IGNORECASE)
_FIRST_MATCHES = 3
_MATCH_CHARACTERS = 200


def read_only_drafts(events: Sequence[ToolEvent], paths: Paths) -> Iterator[Draft]:
    """Yield one row each for a turn's reads, searches and read-only remote tools, if any."""
    read = [(paths(target_of(event)), event) for event in events if event.kind is ToolKind.READ and target_of(event)]
    if read:
        names = list(dict.fromkeys(name for name, _ in read))
        yield event_draft(
            (event for _, event in read), f"Read {first_of(names, ', ')}", Type.FILE_READ, 3, metadata={"paths": names}
        )
    searched = [event for event in events if event.kind is ToolKind.SEARCH and target_of(event)]
    if searched:
        yield _searches_draft(searched)
    remote = [event for event in events if event.kind is ToolKind.REMOTE and event.is_read_only]
    if remote:
        names = list(dict.fromkeys(event.name for event in remote))
        yield event_draft(remote, f"Used {first_of(names, ', ')}", Type.TOOL_USED, 3)


def _searches_draft(events: Sequence[ToolEvent]) -> Draft:
    """Return one row for a turn's searches. Repeated searches count once, with the last result."""
    found: dict[str, tuple[str, dict[str, object]]] = {}
    for event in events:
        pattern, (number, noun, matches) = one_line(target_of(event)), _found(event)
        first = [cut(line, _MATCH_CHARACTERS) for line in matches[:_FIRST_MATCHES]]
        details = {"pattern": pattern, "matches": number, "unit": noun, "first_matches": first}
        found[pattern] = (f'"{pattern}" → {counted(number)} {noun}', details)
    lines = [line for line, _ in found.values()]
    return event_draft(
        events,
        f"Searched {first_of(lines, '; ')}",
        Type.SEARCH_PERFORMED,
        3,
        metadata={"searches": [details for _, details in found.values()]},
    )


def _found(event: ToolEvent) -> tuple[int, str, list[str]]:
    """Return the number of matches, its unit, and the matching lines. A number stated by the tool is preferred."""
    lines = first_lines(event.output, None)
    if lines and (stated := _COUNT_LINE.match(lines[0])):
        return int(stated[1]), stated[2].lower(), lines[1:]
    if not lines or _NOTHING.match(lines[0]):
        lines = []
    one, several = ("file", "files") if event.name.lower() in _NAMES_FILES else ("match", "matches")
    return len(lines), one if len(lines) == 1 else several, lines


# ---- the edit that wrote a line

_TELLING = 2
"""Minimum number of words in a line that may be taken for a later form of another line."""
_TELLS = lazily(r"\w\W+\w|\w_\w|[a-z][A-Z]|\w{9}")
"""Matches two words, a name made of several, or a long word. A line without them, such as `return`, is looked up only
together with its neighbours.
"""
_FARTHEST = 8
"""Maximum number of neighbours that a line is looked up with."""
_NEAR = 0.6
"""Minimum share of words that two lines have in common if one is taken for a later form of the other."""
_ALL_WORDS = lazily(r"\w+")


@record
class FileLine:
    """A line of a file with its neighbours."""

    lines: tuple[str, ...]
    place: int
    """Index of the line in `lines`."""

    @property
    def text(self) -> str:
        return self.lines[self.place]


@record
class LineMatch:
    """The edit that wrote a line."""

    edit: int
    """Index of the edit."""
    text: str
    """The line as the edit wrote it."""
    is_exact: bool


def line_match(line: FileLine, edits: Sequence[Sequence[FileChange]]) -> LineMatch | None:
    """Return the last edit of a file that wrote a line or, if none did, the edit with the most similar line, the last
    among equals.

    `edits` has the changes of each edit, in order. Return None if no edit has a similar line.
    """
    for wanted in _lines_around(line):
        if (writer := _writer(edits, wanted)) is not None:
            return LineMatch(edit=writer, text=line.text.strip(), is_exact=True)
    words = frozenset(_ALL_WORDS.findall(line.text))
    if len(words) < _TELLING:
        return None
    best, found = _NEAR, None
    for number, changes in enumerate(edits):
        for written in dict.fromkeys(text for change in changes for text in _code_lines(change.new)):
            others = frozenset(_ALL_WORDS.findall(written))
            share = len(words & others) / max(len(words), len(others))
            if share >= best and len(others) >= _TELLING:
                best, found = share, LineMatch(edit=number, text=written, is_exact=False)
    return found


def _lines_around(line: FileLine) -> Iterator[list[str]]:
    """Yield the line with its neighbours: first the groups of lines that occur only once in the file, smaller ones
    first, then the other groups, larger ones first. Groups that match nothing in `_TELLS` are left out.
    """
    file, others = _code_lines("\n".join(line.lines)), []
    for reach in range(_FARTHEST + 1):
        for before in range(reach, -1, -1):
            around = line.lines[max(0, line.place - before) : line.place + reach - before + 1]
            lines = _code_lines("\n".join(around))
            if not _TELLS.search(" ".join(lines)):
                continue
            if sum(1 for _ in _starts(file, lines)) == 1:
                yield lines
            else:
                others.append(lines)
    yield from reversed(others)


def _writer(edits: Sequence[Sequence[FileChange]], wanted: Sequence[str]) -> int | None:
    """Return the index of the edit that brought in these lines: the last that added them or, if none did, the last that
    contained them.

    An edit that wrote the whole file again added only lines that the file did not have before.
    """
    found = had_them = None
    for number, changes in enumerate(edits):
        for change in changes:
            before, after = _has(change.old, wanted), _has(change.new, wanted)
            is_whole = change.creates and not change.old
            if after:
                had_them = number
            if after and not before and not (is_whole and found is not None):
                found = number
            elif not after and (before or is_whole):
                found = None
    return had_them if found is None else found


def _has(text: str, wanted: Sequence[str]) -> bool:
    """Return True if a text has these lines, one after the other."""
    return wanted[0] in text and any(True for _ in _starts(_code_lines(text), wanted))


def _starts(lines: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    """Yield the places among lines at which the wanted ones begin."""
    starts = (place for place, line in enumerate(lines) if line == wanted[0])
    return (place for place in starts if lines[place : place + len(wanted)] == wanted)


def _code_lines(text: str) -> list[str]:
    """Return the lines that are not empty, without white space around them."""
    return [line.strip() for line in text.splitlines() if line.strip()]
