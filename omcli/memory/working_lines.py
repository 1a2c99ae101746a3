"""The lines of the working-memory block: a session's rows, those about one thing on one line, section by section."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from omcli.memory.headings import HEADINGS
from omcli.memory.notation import as_line, fenced
from omcli.memory.observation import (
    FAILURES,
    FILE_CHANGES,
    IN_FORCE,
    SETTLED,
    Kind,
    Observation,
    Priority,
    Status,
    Type,
)
from omcli.memory.ranking import WEIGHTS
from omcli.memory.record import field, mutable_record, record
from omcli.memory.speakers import AGENT
from omcli.memory.text import below
from omcli.memory.worth import PINNED

_LINE_CHARACTERS = 300
"""A longer line is cut between words; `om show` prints the whole row."""
_CHANGE_CHARACTERS = 120
_RUNS = frozenset({Type.COMMAND_RUN, Type.TOOL_USED})
_NOISE = 3
"""Commands and tools up to this importance only looked around."""
_RESOLVED = " (resolved)"
_DONE_BESIDES = 3
"""Requests asked and done since a list of todos was touched, from which on it is an old one."""
_NEAR = 3
"""Decisions before and after one that may say the same in more words."""


@record
class Entry:
    """A line of the block, without its dash, and the ids of the rows it was made of."""

    text: str
    rows: tuple[str, ...]


@record
class _Fact:
    """A row, its place among the rows of the session, and whether another one settled it."""

    place: int
    row: Observation
    is_settled: bool

    def known(self, name: str) -> str:
        """What the metadata says, where it is a text."""
        value = self.row.metadata.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str, default: int) -> int:
        """What the metadata says, where it is a count."""
        value = self.row.metadata.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default

    def objects(self, name: str) -> list[Mapping[str, object]]:
        """What the metadata says, where it is a list of objects."""
        value = self.row.metadata.get(name)
        return [part for part in value if isinstance(part, dict)] if isinstance(value, (list, tuple)) else []


@mutable_record
class _Line:
    """Rows about one thing, the latest last."""

    facts: list[_Fact]
    text: str
    is_settled: bool = False

    @property
    def order(self) -> tuple[bool, bool, int, int]:
        """Pinned lines first, then what is not settled, then by priority, then the newest."""
        last = self.facts[-1]
        return (PINNED not in last.row.tags, self.is_settled, -WEIGHTS[last.row.priority], -last.place)


def sections_of(rows: Iterable[Observation], *, cwd: str | None) -> dict[str, tuple[Entry, ...]]:
    """Headings and their lines, the most important line first; empty where there is nothing to go on from.

    What was only read, asked and reported is nothing to go on from. `rows` are a session's, in the order they were
    added.
    """
    facts = list(_standing(list(rows)))
    failures = _failures(facts, cwd=cwd)
    lines = {
        "Current Task": _tasks(facts),
        "Modified Files": _ranked(_files(facts, cwd=cwd)),
        "Recent Errors": _ranked(failures.values()),
        "Key Decisions": _persons_first(_ranked(_decisions(facts))),
        "Blockers": _ranked(_of(facts, lambda fact: fact.row.type is Type.BLOCKER and _is_open(fact))),
        "Notes": _ranked(_of(facts, _is_other_note)),
        "Commands": _ranked(_commands(facts, besides=failures)),
        "Delegated Tasks": _ranked(_delegations(facts)),
        "Searches": _ranked(_searches(facts)),
    }
    if not any(lines.values()) and not any(map(_is_landmark, facts)):
        return {}
    lines["Current Task"] += _request(facts)
    lines["Outcomes"] = _ranked(_of(facts, lambda fact: _is_landmark(fact) or _is_result(fact)))
    lines["Open Questions"] = _ranked(_of(facts, lambda fact: fact.row.type is Type.QUESTION and _is_open(fact)))
    return {heading: tuple(map(_entry, lines[heading])) for heading in HEADINGS if lines[heading]}


def _standing(rows: Sequence[Observation]) -> Iterator[_Fact]:
    """Rows that were observed or noted, but for those that another such row took the place of.

    A failure that a note answers stays, settled; the row of the same failure that says so takes its place.
    """
    own = {row.id: row for row in rows if row.kind in (Kind.OBSERVATION, Kind.NOTE)}
    for place, row in enumerate(rows):
        if row.id not in own:
            continue
        successor = own.get(row.superseded_by or "")
        answered = successor is not None and row.type in FAILURES and successor.type not in FAILURES
        if successor is None or answered:
            yield _Fact(place=place, row=row, is_settled=answered or row.status in SETTLED)


def _entry(line: _Line) -> Entry:
    text = fenced(_short(as_line(line.text).strip(), _LINE_CHARACTERS))
    return Entry(text=text, rows=tuple(fact.row.id for fact in line.facts))


def _ranked(lines: Iterable[_Line]) -> list[_Line]:
    return sorted(lines, key=lambda line: line.order)


def _persons_first(lines: Iterable[_Line]) -> list[_Line]:
    """What a person decided before what an agent did, which follows from it; what is pinned before both."""
    return sorted(lines, key=lambda line: line.text.startswith(AGENT) and PINNED not in line.facts[-1].row.tags)


def _of(facts: Iterable[_Fact], belongs: Callable[[_Fact], bool]) -> Iterator[_Line]:
    """A line for each of these rows; the same words again are the same line."""
    lines: dict[str, _Line] = {}
    for fact in facts:
        if belongs(fact):
            _put(lines, fact.row.text, fact, fact.row.text)
    yield from lines.values()


def _put(lines: dict[str, _Line], key: str, fact: _Fact, text: str) -> _Line:
    """The line of a thing, with one more row about it: what that says is what holds now."""
    line = lines.setdefault(key, _Line(facts=[], text=text))
    line.facts.append(fact)
    line.text, line.is_settled = text, fact.is_settled
    return line


def _is_open(fact: _Fact) -> bool:
    """Whether a matter is known to be open; what was noted by hand is until something settles it."""
    return not fact.is_settled and (fact.row.status is Status.OPEN or fact.row.kind is Kind.NOTE)


def _is_other_note(fact: _Fact) -> bool:
    return fact.row.kind is Kind.NOTE and fact.row.type in (Type.FACT, Type.EVENT, Type.REQUEST)


def _is_landmark(fact: _Fact) -> bool:
    """Whether it is a commit, a release or the like, or an outcome that was noted by hand."""
    return fact.row.type is Type.OUTCOME and (fact.row.kind is Kind.NOTE or bool(fact.known("command")))


def _is_result(fact: _Fact) -> bool:
    """Whether an agent reported it as what its work came to."""
    return fact.row.type is Type.OUTCOME and fact.row.priority is Priority.HIGH


# ---- the current task


def _tasks(facts: Sequence[_Fact]) -> list[_Line]:
    """What is being done: the entry of the todos that is in progress, tasks that were noted, the approved plan."""
    by_hand = [
        fact
        for fact in facts
        if fact.row.kind is Kind.NOTE and fact.row.type in (Type.TASK, Type.PLAN) and not fact.is_settled
    ]
    observed = [fact for fact in facts if fact.row.kind is not Kind.NOTE and not fact.is_settled]
    task = [fact for fact in observed if fact.row.type is Type.TASK][-1:]
    plan = [fact for fact in observed if fact.row.type is Type.PLAN and fact.row.priority is Priority.HIGH][-1:]
    return [*_todos(facts), *(_Line(facts=[fact], text=fact.row.text) for fact in (*by_hand[::-1], *task, *plan))]


def _request(facts: Sequence[_Fact]) -> list[_Line]:
    """What was asked for last, unless it is settled or was let go: what the rest of the block is about."""
    asked = [fact for fact in facts if fact.row.type is Type.REQUEST and fact.row.kind is not Kind.NOTE][-1:]
    return [_Line(facts=[fact], text=fact.row.text) for fact in asked if not (fact.is_settled or _is_let_go(fact))]


def _is_let_go(fact: _Fact) -> bool:
    """Whether the talk went past a request: then nothing is known of what became of it."""
    return fact.row.status is None and bool(fact.known("left"))


def _todos(facts: Sequence[_Fact]) -> list[_Line]:
    """The todos as they stand, on one line; once all are completed, only until something else is asked for.

    A list that nobody touched while one request after the other was done is not what is being done.
    """
    todos: dict[str, tuple[str, str]] = {}
    latest: _Fact | None = None
    for fact in facts:
        if fact.row.type is Type.TODO_UPDATED and not fact.known("agent"):
            if not fact.row.metadata.get("partial"):
                todos.clear()
            for number, entry in enumerate(fact.objects("todos")):
                key = str(entry.get("id") or f"{number}.")
                known = todos.get(key, ("", f"#{key}"))[1]
                todos[key] = (str(entry.get("state") or "pending"), str(entry.get("text") or known))
            latest = fact
    if latest is None:
        return []
    text = _todo_text([(state, text) for state, text in todos.values() if state != "deleted"]) or latest.row.text
    is_done = all(state in ("completed", "deleted") for state, _ in todos.values()) if todos else latest.is_settled
    if is_done and any(fact.row.type in (Type.REQUEST, Type.TASK) for fact in facts if fact.place > latest.place):
        return []
    if sum(_is_done_since(fact, latest) for fact in facts) >= _DONE_BESIDES:
        return []
    return [_Line(facts=[latest], text=text)]


def _is_done_since(fact: _Fact, latest: _Fact) -> bool:
    """Whether a request was asked after the messages of another row, and is done."""
    asked, touched = fact.row.sources[:1], latest.row.sources[-1:]
    return fact.row.type is Type.REQUEST and fact.row.status is Status.DONE and bool(touched) and asked > touched


def _todo_text(todos: Sequence[tuple[str, str]]) -> str:
    """`write the parser (1 completed, 1 in progress, 2 pending; next: test it)`."""
    if not todos:
        return ""
    states = ["completed", "in_progress", "pending", *(state for state, _ in todos)]
    counts = ", ".join(
        f"{sum(one == state for one, _ in todos)} {state.replace('_', ' ')}"
        for state in dict.fromkeys(states)
        if any(one == state for one, _ in todos)
    )
    now = "; ".join(text for state, text in todos if state == "in_progress")
    following = next((f"; next: {text}" for state, text in todos if state == "pending"), "")
    return f"{now} ({counts}{following})" if now else f"Todos: {counts}{following}"


# ---- files


@mutable_record
class _File:
    """What became of a file."""

    facts: list[_Fact] = field(default_factory=list)
    is_created: bool = False
    is_deleted: bool = False
    edits: int = 0
    moved_from: str = ""

    @property
    def became(self) -> str:
        """`created, modified × 2`."""
        if self.is_deleted:
            return "deleted"
        parts = [f"moved from {self.moved_from}"] if self.moved_from else []
        if self.is_created:
            parts.append("created")
        if self.edits:
            parts.append(f"modified × {self.edits}" if self.edits > 1 else "modified")
        return ", ".join(parts or ["modified"])


def _files(facts: Iterable[_Fact], *, cwd: str | None) -> Iterator[_Line]:
    """A line per file: what became of it in the session, and what the last change was."""
    files: dict[str, _File] = {}
    for fact in facts:
        if fact.row.type not in FILE_CHANGES:
            continue
        path = below(cwd, fact.known("path"))
        if not path:
            yield _Line(facts=[fact], text=fact.row.text)
            continue
        file = files.setdefault(path, _File())
        _change(file, fact)
        if moved_to := below(cwd, fact.known("moved_to")):
            files[moved_to] = files.pop(path)
            files[moved_to].moved_from = path
    for path, file in files.items():
        what = "" if file.is_deleted else _short(file.facts[-1].row.text.partition(": ")[2], _CHANGE_CHARACTERS)
        yield _Line(facts=file.facts, text=f"{path} ({file.became}){f': {what}' if what else ''}")


def _change(file: _File, fact: _Fact) -> None:
    created = fact.row.type is Type.FILE_CREATED
    file.facts.append(fact)
    if fact.known("change") == "deleted":
        file.is_deleted, file.is_created, file.edits = True, False, 0
        return
    if file.is_deleted:
        file.is_deleted, file.edits = False, 0
    # What is written anew over a file that is there is one more change of it.
    again = created and len(file.facts) > 1 and (file.is_created or file.edits > 0)
    file.is_created = file.is_created or (created and not again)
    file.edits += again + fact.number("edits", 0 if created else 1)


# ---- failures and commands


def _failures(facts: Iterable[_Fact], *, cwd: str | None) -> dict[str, _Line]:
    """A line per command or tool and target that failed, resolved where it worked later, by what it was."""
    lines: dict[str, _Line] = {}
    times: dict[str, int] = {}
    for fact in facts:
        if fact.row.type in FAILURES:
            key = _failed_at(fact, cwd=cwd)
            if key in lines and fact.is_settled and _is_earlier(fact, lines[key].facts[-1]):
                continue  # that it works was known before it failed again
            before = 0 if key in lines and lines[key].is_settled else times.get(key, 0)
            times[key] = before + fact.number("times", 1)
            count = f" (× {times[key]})" if times[key] > 1 else ""
            line = _put(lines, key, fact, f"{_plain(fact)}{count}")
        else:
            for key in _worked(fact, cwd=cwd):
                if key in lines:
                    lines[key].is_settled = True
    for line in lines.values():
        if line.is_settled:
            line.text = f"{_short(line.text, _LINE_CHARACTERS - len(_RESOLVED))}{_RESOLVED}"
    return lines


def _is_earlier(fact: _Fact, other: _Fact) -> bool:
    return bool(fact.row.event_at and other.row.event_at and fact.row.event_at < other.row.event_at)


def _failed_at(fact: _Fact, *, cwd: str | None) -> str:
    if command := fact.known("command"):
        return f"run {command}"
    target = below(cwd, fact.known("target"))
    return f"use {target}" if target else fact.row.text


def _worked(fact: _Fact, *, cwd: str | None) -> Iterator[str]:
    """What a row says to have worked: a command, `a && b` with its parts, or a change of a file."""
    if fact.row.type in FILE_CHANGES:
        yield f"use {below(cwd, fact.known('path'))}"
    if fact.row.status is not Status.DONE:
        return
    commands = fact.row.metadata.get("commands")
    for command in (fact.known("command"), *(commands if isinstance(commands, list) else ())):
        if command and isinstance(command, str):
            yield f"run {command}"
            yield from (f"run {part.strip()}" for part in command.split("&&"))


def _commands(facts: Iterable[_Fact], *, besides: Mapping[str, _Line]) -> Iterator[_Line]:
    """A line per command, with what came of it last; those that failed have theirs already."""
    lines: dict[str, _Line] = {}
    for fact in facts:
        if fact.row.type in _RUNS and not _is_noise(fact):
            key = f"run {fact.known('command')}" if fact.known("command") else fact.row.text
            if key not in besides:
                _put(lines, key, fact, _plain(fact))
    yield from lines.values()


def _is_noise(fact: _Fact) -> bool:
    return fact.row.kind is Kind.OBSERVATION and fact.row.importance <= _NOISE


def _plain(fact: _Fact) -> str:
    """A row's text without what its section says of all its lines, and without its own count."""
    count = fact.number("times", 1)
    return fact.row.text.removeprefix("Ran: ").removesuffix(f" (× {count})")


# ---- decisions, delegations, searches


def _decisions(facts: Iterable[_Fact]) -> list[_Line]:
    """A line per decision, instruction, correction and preference; a sentence of another one has none of its own."""
    lines = list(_of(facts, lambda fact: fact.row.type in IN_FORCE))
    said = [line.text.partition(": ")[2] or line.text for line in lines]
    return [
        line
        for place, line in enumerate(lines)
        if not any(
            other != place and len(said[other]) > len(said[place]) and said[place] in said[other]
            for other in range(max(0, place - _NEAR), min(len(lines), place + _NEAR + 1))
        )
    ]


def _delegations(facts: Iterable[_Fact]) -> Iterator[_Line]:
    """A line per delegated task, with what came of it last."""
    lines: dict[str, _Line] = {}
    for fact in facts:
        if fact.row.type is Type.TASK_DELEGATED:
            text = fact.row.text.removeprefix("Delegated: ")
            _put(lines, fact.known("task") or text, fact, text)
    yield from lines.values()


def _searches(facts: Iterable[_Fact]) -> Iterator[_Line]:
    """A line per pattern, with what was found last."""
    lines: dict[str, _Line] = {}
    for fact in facts:
        if fact.row.type is not Type.SEARCH_PERFORMED:
            continue
        searches = fact.objects("searches")
        for search in searches:
            pattern = f'"{search.get("pattern")}"'
            _put(lines, pattern, fact, f"{pattern} → {search.get('matches')} {search.get('unit')}")
        if not searches:
            text = fact.row.text.removeprefix("Searched ")
            _put(lines, text, fact, text)
    yield from lines.values()


def _short(text: str, limit: int) -> str:
    """A text of at most `limit` characters, cut between words where it is longer."""
    if len(text) <= limit:
        return text
    end = text.rfind(" ", 0, limit - 1)
    return f"{text[:end].rstrip()} …" if end > 0 else f"{text[: limit - 1]}…"
