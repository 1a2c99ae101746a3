"""Lines of the working-memory block, by section. Rows about the same subject share a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import filterfalse, islice, takewhile

from omcli.base.record import record, replace
from omcli.memory.notation import NONE, WORKING_HEADINGS, PrintedRow, full_text
from omcli.memory.observation import (
    ASKED,
    FAILURES,
    IN_FORCE,
    PINNED,
    SETTLED,
    TOOL_EVENTS,
    UNVERIFIED,
    Kind,
    Observation,
    Priority,
    Status,
    Type,
)
from omcli.pack.working_changes import (
    LINE_CHARACTERS,
    Fact,
    FactLine,
    command_lines,
    failure_lines,
    file_lines,
    in_order,
    lines_of,
    put,
)
from omcli.text.clean import AGENT, PASTED, USER, short, single_line, word_end
from omcli.text.phrases import names_speaker, speaker
from omcli.text.terms import NAME_LIKE, folded_words, terms_of

_NEAR = 3
"""Number of neighbours on each side in which a decision's text is searched for."""


@record
class BlockLine:
    """A line of the block, without its leading dash, and the ids of its rows."""

    text: str
    rows: tuple[str, ...]


def sections_of(rows: Iterable[Observation], *, cwd: str | None) -> dict[str, Sequence[FactLine]]:
    """Return the lines of each section, most important first. `rows` are the session's rows in the order they were
    added.

    The result is empty if the session has nothing to continue from: only rows such as file reads and reports, and
    requests and questions that are settled or not worked on.
    """
    facts = list(_standing(list(rows)))
    failures = failure_lines(facts, cwd=cwd)
    lines = {
        "Current Task": task_lines(facts),
        "Modified Files": in_order(file_lines(facts, cwd=cwd)),
        "Recent Errors": in_order(failures.values()),
        "Key Decisions": _user_first(in_order(_lines_in_force(facts))),
        "Blockers": in_order(lines_of(facts, lambda fact: fact.row.type is Type.BLOCKER and _is_open(fact))),
        "Notes": in_order(lines_of(facts, _is_other_note)),
        "Commands": in_order(command_lines(facts, besides=failures)),
        "Delegated Tasks": in_order(_agent_lines(facts)),
        "Searches": in_order(_searches(facts)),
    }
    asked = request_lines(facts)
    is_worked_on = any(fact.row.type in TOOL_EVENTS for fact in facts)
    is_open = is_worked_on and any(fact.row.status is Status.OPEN for line in asked for fact in line.facts)
    if not (is_open or any(lines.values()) or any(map(_is_outcome, facts))):
        return {}
    after = [line for line in lines["Current Task"] if asked and _is_earlier(line.facts[-1], asked[0].facts[-1])]
    lines["Current Task"] = [*(line for line in lines["Current Task"] if line not in after), *asked, *after]
    asked_now = {fact.row.id for line in lines["Current Task"] for fact in line.facts}
    lines["Outcomes"] = in_order(lines_of(facts, lambda fact: _is_outcome(fact) or _is_result(fact)))
    lines["Open Questions"] = in_order(
        lines_of(facts, lambda fact: fact.row.type is Type.QUESTION and _is_open(fact) and fact.row.id not in asked_now)
    )
    return {heading: lines[heading] for heading in WORKING_HEADINGS if lines[heading]}


def _standing(rows: Sequence[Observation]) -> Iterator[Fact]:
    """Yield the observations and notes that no other observation or note replaced.

    A failure replaced by a row that is not a failure is still yielded, as settled.
    """
    own = {row.id: row for row in rows if row.kind in (Kind.OBSERVATION, Kind.NOTE)}
    for place, row in enumerate(rows):
        if row.id not in own:
            continue
        successor = own.get(row.superseded_by or "")
        answered = successor is not None and row.type in FAILURES and successor.type not in FAILURES
        if successor is None or answered:
            yield Fact(place=place, row=row, is_settled=answered or row.status in SETTLED)


_RESOLVED = " (resolved)"
_PLAIN = PrintedRow(dated="", priority=Priority.MEDIUM, status=None, text="")


def entry(line: FactLine) -> BlockLine:
    """Return a line as it is printed.

    A label such as `Ran: ` says that the words are not a person's. If the section's heading makes the label
    superfluous, it is left out, unless the words after it begin like a speaker's.
    """
    text = single_line(line.text).strip()
    said = text.removeprefix(line.label)
    end = _RESOLVED if line.is_settled and line.facts[-1].row.type in FAILURES else ""
    said = text if names_speaker(said[:LINE_CHARACTERS]) else said
    is_unverified = any(UNVERIFIED in fact.row.tags for fact in line.facts)
    limit = LINE_CHARACTERS
    while (
        len(printed := _words(_shortened(said, limit - len(end)) + end, is_unverified=is_unverified)) > LINE_CHARACTERS
    ):
        limit -= len(printed) - LINE_CHARACTERS
    return BlockLine(text=printed, rows=tuple(fact.row.id for fact in line.facts))


def _words(text: str, *, is_unverified: bool) -> str:
    """Return text as printed without marks: if it looks like a heading or a message, it is escaped."""
    return NONE.words(replace(_PLAIN, text=text, is_unverified=is_unverified), "")


def _shortened(text: str, limit: int) -> str:
    """Shorten a line to at most `limit` characters. Of a person's words, the end is kept too, about a third of the
    limit, because long prompts end with the request, and pasted test runs with the failures.
    """
    if len(text) <= limit or not text.startswith((USER, PASTED)):
        return short(text, limit)
    start = len(text) - limit // 3 - 1
    end = text[word_end(text, start, least=len(text) - 2 * (limit // 3)) or start :]
    return short(text, limit - len(end)) + end


def _user_first(lines: Iterable[FactLine]) -> list[FactLine]:
    """Return the lines with agents' decisions last, unless pinned, because they follow from people's decisions."""
    return sorted(lines, key=lambda line: line.text.startswith(AGENT) and PINNED not in line.facts[-1].row.tags)


def _is_open(fact: Fact) -> bool:
    """Return True if a row is open. A note counts as open until it is settled, even without a status."""
    return not fact.is_settled and (fact.row.status is Status.OPEN or fact.row.kind is Kind.NOTE)


def _is_other_note(fact: Fact) -> bool:
    return fact.row.kind is Kind.NOTE and fact.row.type in (Type.FACT, Type.EVENT, Type.REQUEST)


def _is_outcome(fact: Fact) -> bool:
    """Return True for the outcome of a command, such as a commit or release, and for an outcome noted by hand."""
    return fact.row.type is Type.OUTCOME and (fact.row.kind is Kind.NOTE or bool(fact.known("command")))


def _is_result(fact: Fact) -> bool:
    """Return True for an agent's report of its main result: an outcome with high priority."""
    return fact.row.type is Type.OUTCOME and fact.row.priority is Priority.HIGH


# ---- decisions, delegations, searches

_DELEGATED = "Delegated: "
_SEARCHED = "Searched "


def _lines_in_force(facts: Iterable[Fact]) -> list[FactLine]:
    """Return a line for each decision, instruction, correction and preference.

    A line is left out if a longer one by the same speaker, at most `_NEAR` lines away, contains its text.
    """
    lines = list(lines_of(facts, lambda fact: fact.row.type in IN_FORCE))
    said = [line.text.partition(": ")[2] or line.text for line in lines]
    speakers = [speaker(line.text) for line in lines]
    return [
        line
        for place, line in enumerate(lines)
        if not any(
            len(said[other]) > len(said[place]) and said[place] in said[other] and speakers[place] == speakers[other]
            for other in range(max(0, place - _NEAR), min(len(lines), place + _NEAR + 1))
        )
    ]


def _agent_lines(facts: Iterable[Fact]) -> Iterator[FactLine]:
    lines: dict[str, FactLine] = {}
    for fact in facts:
        if fact.row.type is Type.TASK_DELEGATED:
            put(lines, fact.known("task") or fact.row.text, fact, fact.row.text, label=_DELEGATED)
    yield from lines.values()


def _searches(facts: Iterable[Fact]) -> Iterator[FactLine]:
    lines: dict[str, FactLine] = {}
    for fact in facts:
        if fact.row.type is not Type.SEARCH_PERFORMED:
            continue
        searches = fact.objects("searches")
        for search in searches:
            pattern = f'"{search.get("pattern")}"'
            found = f"{pattern} → {search.get('matches')} {search.get('unit')}"
            put(lines, pattern, fact, f"{_SEARCHED}{found}", label=_SEARCHED)
        if not searches:
            put(lines, fact.row.text, fact, fact.row.text, label=_SEARCHED)
    yield from lines.values()


_TODO = "Todo: "
_LAST_DONE = "Last done: "
_PASTED_END = " pasted lines]"
"""End of a row about several pasted lines, which were the whole prompt."""
_REPLIES = ("User agreed ", "User declined ", "User answered: ", "User refused")
"""Beginnings of rows with a person's reply to a question or a call of an agent."""
_STATEMENTS = (USER, *_REPLIES)
"""Beginnings of rows with a person's statement or reply."""
_STATED = IN_FORCE | {Type.FACT}
_LASTING = frozenset({Type.INSTRUCTION, Type.PREFERENCE})
_MOST_ASKED = 3
_FEW_ROWS = 4
"""Maximum number of rows of a message that are all part of the task. A message with more rows is a plan or a paste."""
_FEW_WORDS = 5
"""An older request of at most this many words, the speaker included, is not worth a line."""
_TELLING = 4
"""Minimum number of uncommon words in a request that says what it is about. One with a name such as a path always does.
"""
_REMARK = 4
"""Maximum importance of a remark that an agent makes while it works."""
_DONE_BESIDES = 3
"""A todo list is obsolete once this many requests were made and completed after its last change."""


def task_lines(facts: Sequence[Fact]) -> list[FactLine]:
    """Return the lines of the current task.

    These are the todo list, tasks and plans noted by hand, the last observed task, and the last approved plan. Settled
    tasks and plans are left out.
    """
    by_hand = [
        fact
        for fact in facts
        if fact.row.kind is Kind.NOTE and fact.row.type in (Type.TASK, Type.PLAN) and not fact.is_settled
    ]
    observed = [fact for fact in facts if fact.row.kind is not Kind.NOTE and not fact.is_settled]
    task = [fact for fact in observed if fact.row.type is Type.TASK][-1:]
    plan = [fact for fact in observed if fact.row.type is Type.PLAN and fact.row.status is Status.OPEN][-1:]
    return [
        *_todo_lines(facts),
        *(FactLine(facts=[fact], text=full_text(fact.row)) for fact in (*by_hand[::-1], *task, *plan)),
    ]


def request_lines(facts: Sequence[Fact]) -> list[FactLine]:
    """Return the lines of the person's open requests and questions back to the last settled one, newest first. If the
    newest one is settled, return its line.

    There are at most three; all but the first are left out if they have only a few words. If the newest message has
    more than three, its first and its last two are taken. Other things said in that message are added (`_goes_with`).
    If no line says what it is about, the last request that does is added, with what the agent said before the first.

    A correction or an answer counts as a request while the agent works on it, and so does another statement if nothing
    is open. Pasted lines, requests that were passed over, and open questions before the person's last reply are
    left out.
    """
    replied = max((_said_at(fact) for fact in facts if fact.row.text.startswith(_REPLIES)), default=0)
    asked = [fact for fact in facts if _is_asked(fact) and not (_is_open_question(fact) and _asked_at(fact) < replied)]
    asked.sort(key=_asked_at, reverse=True)
    is_open = bool(asked) and not asked[0].is_settled
    asked = [*_last_statement(facts, after=_asked_at(asked[0]) if asked else 0, besides=is_open), *asked]
    current = list(takewhile(lambda fact: not fact.is_settled, asked))
    newest = [fact for fact in current if _asked_at(fact) == _asked_at(current[0])]
    current = [*newest[:1], *newest[1:][1 - _MOST_ASKED :], *current[len(newest) :]][:_MOST_ASKED]
    shown = [*current[:1], *filterfalse(_is_short, current[1:])] or asked[:1]
    if shown and not any(map(_has_terms, shown)):
        shown += islice((fact for fact in asked if _has_terms(fact) and fact not in shown), 1)
        shown += _said_before(facts, _asked_at(shown[0]))
    if current:
        message = [fact for fact in facts if fact == shown[0] or _goes_with(fact, shown[0])]
        if len(message) > _FEW_ROWS:
            message = [
                fact for fact in message if fact == shown[0] or fact.row.type is Type.CORRECTION or _is_pasted(fact)
            ]
        shown = [*message, *(fact for fact in shown if fact not in message)]
    return [FactLine(facts=[fact], text=f"{_LAST_DONE if _is_done(fact) else ''}{fact.row.text}") for fact in shown]


def _is_done(fact: Fact) -> bool:
    return fact.is_settled and not fact.row.text.startswith(AGENT)


def _said_before(facts: Sequence[Fact], at: int) -> list[Fact]:
    """Return a list with one row about the agent's last text before a message: the one with the most terms. It is empty
    if there is none.
    """
    said = [fact for fact in facts if fact.row.text.startswith(AGENT) and 0 < _said_at(fact) < at]
    last = max(map(_said_at, said), default=0)
    return sorted((fact for fact in said if _said_at(fact) == last), key=lambda fact: len(_terms(fact)))[-1:]


def _is_earlier(task: Fact, asked: Fact) -> bool:
    """Return True if a list of todos or a plan was last changed before an open request was made. A note or a stated
    task is never older.
    """
    is_stated = task.row.kind is Kind.NOTE or task.row.type is Type.TASK
    return not is_stated and not asked.is_settled and _asked_at(task) < _asked_at(asked)


def _goes_with(fact: Fact, asked: Fact) -> bool:
    """Return True if a fact is said or pasted in the message of a request, and is not a lasting rule or preference."""
    is_said = fact.row.type in _STATED | ASKED and fact.row.text.startswith(USER)
    return (is_said or _is_pasted(fact)) and _said_at(fact) == _asked_at(asked) and fact.row.type not in _LASTING


def _is_pasted(fact: Fact) -> bool:
    return fact.row.type is Type.FACT and fact.row.text.startswith(PASTED)


def _is_asked(fact: Fact) -> bool:
    row = fact.row
    is_request = row.type in ASKED and row.kind is not Kind.NOTE
    is_line = row.text.startswith(PASTED) and not row.text.endswith(_PASTED_END)
    return is_request and not row.text.startswith(AGENT) and not is_line and not _is_let_go(fact)


def _asked_at(fact: Fact) -> int:
    """Return the `seq` of a request's last source, without the answer with which the sources of a settled one end. If
    it has no sources, return 0.
    """
    sources = fact.row.sources[:-1] if fact.is_settled and len(fact.row.sources) > 1 else fact.row.sources
    return sources[-1] if sources else 0


def _last_statement(facts: Sequence[Fact], *, after: int, besides: bool) -> list[Fact]:
    """Return the statements of the last message of the person that has any.

    There are none if the first of them is a note, or if the message is not later than the one whose `seq` is `after`.
    They are settled once the agent has reported a result, or ended a turn with words after the last tool event.

    If the first is a correction, an answer or a question, and the statements are not settled, they are returned.
    Otherwise they are returned only if the agent has used tools since, and not `besides` an open request.
    """
    said = [fact for fact in facts if fact.row.type in _STATED and fact.row.text.startswith(_STATEMENTS)]
    last = max(said, key=_said_at, default=None)
    if last is None or last.row.kind is Kind.NOTE or _said_at(last) <= after:
        return []
    since = [fact.row for fact in facts if fact.row.sources and fact.row.sources[0] > _said_at(last)]
    newest = max(since, key=lambda row: row.sources[-1], default=None)
    is_over = any(row.type is Type.OUTCOME for row in since) or (newest is not None and _is_report(newest))
    directs = last.row.type is Type.CORRECTION or not last.row.text.startswith(USER) or last.row.text.endswith("?")
    if besides and (is_over or not directs):
        return []
    is_worked_on = any(row.type in TOOL_EVENTS for row in since) or (directs and not is_over)
    return (
        [replace(fact, is_settled=is_over) for fact in said if _said_at(fact) == _said_at(last)] if is_worked_on else []
    )


def _is_report(row: Observation) -> bool:
    """Return True for a row of the text that ends a turn, not of a remark while the agent works."""
    return row.text.startswith(AGENT) and row.type is not Type.PLAN and row.importance > _REMARK


def _said_at(fact: Fact) -> int:
    return fact.row.sources[-1] if fact.row.sources else 0


def _is_let_go(fact: Fact) -> bool:
    """Return True if the conversation moved on from a request or todo list and its outcome is unknown."""
    return fact.row.status is None and bool(fact.known("left"))


def _is_open_question(fact: Fact) -> bool:
    return fact.row.type is Type.QUESTION and not fact.is_settled


def _is_short(fact: Fact) -> bool:
    return len(fact.row.text.split()) <= _FEW_WORDS


def _has_terms(fact: Fact) -> bool:
    """Return True if a request says what it is about, unlike "commit and continue" and "yes, do it"."""
    terms = _terms(fact)
    has_name = any(NAME_LIKE.search(term) and not term.isdigit() for term in terms)
    return has_name or (len(terms) >= _TELLING and not fact.row.text.startswith(_REPLIES))


def _terms(fact: Fact) -> frozenset[str]:
    """Return the uncommon terms of a row, without its speaker and the name of a slash command."""
    said = fact.row.text.partition(": ")[2]
    return terms_of([said.partition(" ")[2] if said.startswith("/") else said])[0] - folded_words()


def _todo_lines(facts: Sequence[Fact]) -> list[FactLine]:
    """Return the todo list as one line; empty if there is no current list.

    An empty or completed list is not shown. Any list is obsolete once several later requests were completed without a
    change to it.
    """
    todos: dict[str, tuple[str, str]] = {}
    latest: Fact | None = None
    for fact in facts:
        if fact.row.type is Type.TODO_UPDATED and not fact.known("agent"):
            if not fact.row.metadata.get("partial"):
                todos.clear()
            for number, entry in enumerate(fact.objects("todos")):
                key = str(entry.get("id") or f"{number}.")
                known = todos.get(key, ("", f"#{key}"))[1]
                todos[key] = (str(entry.get("state") or "pending"), str(entry.get("text") or known))
            latest = fact
    if latest is None or _is_let_go(latest) or latest.row.metadata.get("todos") in ([], ()):
        return []
    text = _todo_text([(state, text) for state, text in todos.values() if state != "deleted"]) or latest.row.text
    is_done = all(state in ("completed", "deleted") for state, _ in todos.values()) if todos else latest.is_settled
    if is_done or sum(_is_done_since(fact, latest) for fact in facts) >= _DONE_BESIDES:
        return []
    return [FactLine(facts=[latest], text=text, label=_TODO)]


def _is_done_since(fact: Fact, latest: Fact) -> bool:
    """Return True if the fact is a completed request that was made after the messages of `latest`."""
    asked, touched = fact.row.sources[:1], latest.row.sources[-1:]
    return fact.row.type is Type.REQUEST and fact.row.status is Status.DONE and bool(touched) and asked > touched


def _todo_text(todos: Sequence[tuple[str, str]]) -> str:
    """Summarise todos, as in `Todo: write the parser (1 completed, 1 in progress, 2 pending; next: test it)`."""
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
    return f"{_TODO}{now} ({counts}{following})" if now else f"Todos: {counts}{following}"
