"""Updating the status of rows: resolving failures, answering questions, closing requests and counting repeats.

Context rows and new rows form one list, so a failure is resolved no matter which batch it is in. A changed row is
written again and replaces the stored one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType

from omcli.base import lazily
from omcli.base.record import field, mutable_record, record, replace
from omcli.memory.observation import ASKED, FAILURES, FILE_CHANGES, SETTLED, Draft, Observation, Priority, Status, Type
from omcli.observers.rules import cues
from omcli.observers.rules.row_table import (
    RowTable,
    is_empty_todo,
    merged,
    todo_texts,
)
from omcli.observers.rules.sentences import shared_words
from omcli.text.clean import AGENT, one_line


@record
class TurnAnswered:
    """A person replied after an agent's text, which may have asked something."""

    seq: int
    asked: int
    """`seq` of the agent's text."""


@record
class TurnDone:
    """An agent's turn ended with a text or a tool result to which the person has not objected so far."""

    seq: int
    """`seq` of the text or result."""
    at: str | None
    since: int | None
    """`seq` of the prompt or slash command that began the turn, or None if that is in an earlier batch."""
    is_complete: bool
    """True if nothing is asked, missing or failing."""
    asks: bool
    reports: bool
    explains: bool
    """True if the text has at least three sentences that say something."""
    accepted: bool
    """True if the person went on to something else."""


@record
class TurnUnfinished:
    """The turn before the batch has not ended: it continues, or the person complained."""

    seq: int
    """`seq` of the agent's text that seemed to end the turn."""


@record
class Succeeded:
    """A successful tool call, which may resolve earlier failures."""

    targets: tuple[str, ...]
    """Keys from `failures.command_key` and `tool_key`."""
    command: str = ""
    """Command line, if any. It resolves failures of commands that it covers (`failures.covers`)."""
    proven: bool = False
    """True if the output says that the command succeeded, whatever its exit status is."""
    directory: str | None = None
    sources: tuple[int, ...]
    at: str | None

    @property
    def seq(self) -> int:
        """`seq` of the result."""
        return self.sources[-1]


StatusEvent = Succeeded | TurnAnswered | TurnDone | TurnUnfinished

_CHANGES = FILE_CHANGES | {Type.COMMAND_RUN, Type.OUTCOME}
_CLOSED_BY_TEXT = FAILURES | ASKED | {Type.BLOCKER, Type.PLAN}
"""Types of rows that are closed by the text that ends a turn, and reopened if the turn turns out to be unfinished."""
# Commands that do what people ask for in a word.
_DEEDS = MappingProxyType({
    "commit": lazily(r"\bgit (?:\S+ )*?commit\b"), "push": lazily(r"\bgit (?:\S+ )*?push\b"),
    "merge": lazily(r"\b(?:git|pr|mr) merge\b"), "pr": lazily(r"\b(?:pr|mr) create\b"),
    "tests": lazily(r"\b(?:tests?|spec|pytest|jest|vitest|mocha|rspec|phpunit|tox|nox)\b"),
})  # fmt: skip
_DEED_WORDS = MappingProxyType({
    "commit": "commit", "committed": "commit", "commits": "commit", "push": "push", "pushed": "push", "merge": "merge",
    "pr": "pr", "mr": "pr", "test": "tests", "tests": "tests",
})  # fmt: skip
_OPENS_REQUEST = frozenset({"create", "make", "open", "raise"})
_FILLERS = frozenset(
    (
        "a again all also an and branch can changes could create do everything file files for go good great in into it "
        "let lets main make me my new nice now of ok okay on once open perfect please pull raise remote request run s "
        "so suite that the them then these this those to up upstream us we with work yes you your"
    ).split()
)
"""Words that may stand beside the name of a deed (`_DEEDS`) in a request that asks for nothing else."""
_DONE_BESIDES = 3
"""A todo list is no longer open once this many requests were made and done after its last change."""
_SERIOUS = 7
"""Minimum importance of a failure that keeps a request from being done."""
_LEFT, _SKIPPED = "left", "passed over"
"""Metadata key and value that mark a question, request or todo list as passed over."""
_PREVIOUS = "leaves"
"""Metadata key for the `seq` of the previous request, if its turn ended without a result."""
# The question quoted in a row about a bare yes or a short answer.
_NAMED_QUESTION = lazily(r"(?:\(answering|\) to): ([^?)]{8,80})")
_QUOTED_QUESTION, _MOST_QUOTED = 200, 2
"""Maximum length, in characters, of a question that is appended to its answer, and maximum number of such questions."""
_FEW_WORDS = 3
"""A request of at most this many words is too short to be recognised as repeated."""
_RANKS = {Draft: 0, Succeeded: 1, TurnAnswered: 2, TurnDone: 3, TurnUnfinished: 4}


def open_if_asked(draft: Draft) -> Draft:
    """Return a row, open if it is a question or request without a status. `TurnDone` closes it."""
    return replace(draft, status=Status.OPEN) if draft.type in ASKED and draft.status is None else draft


def update_rows(
    context_rows: Iterable[Observation], drafts: Iterable[Draft], events: Iterable[StatusEvent]
) -> tuple[Draft, ...]:
    """Return a batch's new and changed rows, oldest first."""
    tracker = _StatusWriter()
    for row in context_rows:
        tracker.table.add(_as_draft(row))
    tracker.table.start_batch()
    for step in sorted((*drafts, *events), key=_order):
        match step:
            case Draft():
                tracker.write(replace(step, text=one_line(step.text)))
                tracker.close_done(step)
            case Succeeded():
                tracker.resolve_failures(step)
            case TurnAnswered():
                tracker.answer_question(step)
            case TurnDone():
                tracker.close_turn(step)
            case TurnUnfinished():
                tracker.open_again(step)
    return tracker.table.changed_rows()


def _order(step: Draft | StatusEvent) -> tuple[int, int]:
    return step.sources[-1] if isinstance(step, Draft) else step.seq, _RANKS[type(step)]


def _as_draft(row: Observation) -> Draft:
    return Draft(
        text=row.text,
        type=row.type,
        importance=row.importance,
        sources=row.sources,
        priority=row.priority,
        status=row.status,
        event_at=row.event_at,
        refers_to=row.refers_to,
        tags=row.tags,
        metadata=row.metadata,
        replaces=(row.id,),
        source=row.source,
    )


@mutable_record
class _StatusWriter:
    """Applies a batch's drafts and events, in order, to a table of rows."""

    table: RowTable = field(default_factory=RowTable)
    _unanswered: int | None = None
    """`seq` of the last request, if its turn ended without a result."""

    def write(self, draft: Draft) -> None:
        """Add a new row, replacing the rows that it continues, repeats or supersedes. An empty todo list is left out if
        the list before it is completed.
        """
        for number in self.table.running(draft.sources):
            draft = self.table.replace(number, draft, reason="ended")
        listed = self.table.rows.get(self.table.todo_list)
        if listed is not None and is_empty_todo(draft, listed):
            if listed.status in SETTLED:
                return
            draft = self.table.replace(self.table.todo_list, draft, reason="cleared")
        elif todo_texts(draft) & todo_texts(listed):
            draft = self.table.replace(self.table.todo_list, draft, reason="updated")
        if (asked_before := self._asked_before(draft)) is not None:
            draft = self.table.replace(asked_before, draft, reason="said again")
        self.table.add(self.table.replace_claims(self.table.merge_repeats(self._note_earlier(draft))))

    def close_done(self, done: Draft) -> None:
        """Close the person's requests that ask for nothing but what commands have done since: "commit and push"."""
        if done.status is not Status.DONE or not _done_by(done):
            return
        for number, row in self.table.remaining(self._open_asked()):
            asked = _done_named(row.text)
            is_meant = row.type is Type.REQUEST and not row.text.startswith(AGENT) and asked and _is_command(row.text)
            if is_meant and asked <= self._done_since(row.sources[-1], done.sources[-1]):
                self._settle(number, row, Status.DONE, done.sources, position=self.table.position(number))

    def _done_since(self, since: int, end: int) -> set[str]:
        """Return the deeds (see `_DEEDS`) of finished commands after the message `since`, up to the message `end`."""
        rows = (self.table.rows[number] for number in self.table.within(since, end))
        return {deed for row in rows if row.status is Status.DONE for deed in _done_by(row)}

    def _note_earlier(self, draft: Draft) -> Draft:
        """Move `_unanswered` to the metadata of a person's new question or request, and return the row. Other rows are
        returned unchanged.
        """
        left = self._unanswered
        if left is None or draft.type not in ASKED or draft.text.startswith(AGENT) or draft.sources[-1] <= left:
            return draft
        self._unanswered = None
        return replace(draft, metadata=MappingProxyType({**draft.metadata, _PREVIOUS: left}))

    def _asked_before(self, draft: Draft) -> int | None:
        """Return the number of the person's last question or request if a new one repeats all its words, otherwise
        None. The last one must be open and have more than `_FEW_WORDS` words.
        """
        if draft.type not in ASKED or draft.text.startswith(AGENT):
            return None
        last = next((n for n in reversed(self.table.asked) if not self.table.rows[n].text.startswith(AGENT)), None)
        if last is None or self.table.rows[last].status is not Status.OPEN:
            return None
        asked = _words(self.table.rows[last].text)
        said_before = self.table.rows[last].sources[-1] < draft.sources[0]
        return last if said_before and len(asked) > _FEW_WORDS and asked <= _words(draft.text) else None

    def resolve_failures(self, success: Succeeded) -> None:
        """Resolve the open failures of a command or tool that has now succeeded."""
        if self.table.failures is not None:
            for number in self.table.failures.resolved_by(
                success.targets, success.command, success.directory, proven=success.proven
            ):
                self._settle(number, self.table.rows[number], Status.RESOLVED, success.sources, at=success.at)

    def answer_question(self, reply: TurnAnswered) -> None:
        """Replace the agent's open questions with the row that seems to answer them, if any, and quote short questions
        in it.
        """
        questions = [
            n
            for n in self._open_asked()
            if _is_open_question(self.table.rows[n]) and reply.asked in self.table.rows[n].sources
        ]
        answer = self._answer_row(reply.seq) if questions else None
        if answer is None:
            return
        for number, question in self.table.remaining(questions):
            draft = _with_question(self.table.rows[answer], question.text.removeprefix(AGENT))
            if draft is not None:
                self.table.remove(answer)
                draft = self.table.replace(number, draft, reason="answered")
                answer = self.table.add(self.table.merge_repeats(draft))

    def _answer_row(self, prompt: int) -> int | None:
        new = self.table.new_numbers()
        return next((number for number in new if self.table.rows[number].sources[-1] == prompt), None)

    def close_turn(self, ended: TurnDone) -> None:
        """Close a turn's questions and finished requests, and todo lists that are out of date. If the agent reports a
        result, also close the failures, blockers and plans since each finished request (see `_done_work`).

        Minor failures are also resolved if the person went on to something else, or if the agent reports a complete
        result. Nothing is closed if rows from later messages exist.
        """
        if self.table.latest > ended.seq:
            return  # the turn continued, or was stopped
        for number, status in self._ends(ended):
            row, position = self.table.rows[number], self.table.position(number)
            closed = row if status else _with_note(row, _SKIPPED)
            self._settle(number, closed, status, (ended.seq,), position=position)
            if status is Status.DONE:
                since = row.sources[-1] if ended.reports else ended.seq
                for settled, work, result in self._done_work(since, ended.seq):
                    self._settle(settled, work, result, (ended.seq,), at=ended.at)
        if ended.accepted or (ended.is_complete and ended.reports):
            for number, row in self.table.remaining(self.table.open):
                is_minor = row.type in FAILURES and row.importance < _SERIOUS
                if is_minor and row.sources[-1] < ended.seq:
                    self._settle(number, row, Status.RESOLVED, (ended.seq,), at=ended.at)

        self._close_todo(ended)

    def _close_todo(self, ended: TurnDone) -> None:
        """Remove the open status of todo lists that nobody changed while several later requests were done."""
        for number, row in self.table.remaining(self.table.open):
            if row.type is not Type.TODO_UPDATED:
                continue
            later = (self.table.rows[each] for each in self.table.within(row.sources[-1], self.table.latest))
            done = (one for one in later if one.type is Type.REQUEST and one.status is Status.DONE)
            if sum(one.sources[0] > row.sources[-1] for one in done) >= _DONE_BESIDES:
                position = self.table.position(number)
                self._settle(number, _with_note(row, _SKIPPED), None, (ended.seq,), position=position)

    def _ends(self, ended: TurnDone) -> Iterator[tuple[int, Status | None]]:
        """Yield the number of each question and request that a turn closes, with its status, or None if it was passed
        over.

        The caller must close each before taking the next. A request whose turn ended without a result is remembered.
        """
        asked = self._asked_since(ended.since)
        start = min((self.table.rows[number].sources[-1] for number in asked), default=ended.seq)
        for number, row in self.table.remaining(asked):
            if row.status is not Status.OPEN:
                continue
            if _is_question(row) or self._is_done(row, ended):
                yield number, Status.DONE
            elif ended.accepted and not ended.asks:
                self._unanswered = row.sources[-1]
        before = [number for number in self._open_asked() if self.table.rows[number].sources[-1] < start]
        unanswered = {self.table.rows[each].metadata.get(_PREVIOUS) for each in self.table.asked if before}
        for number, row in self.table.remaining(before):
            if row.text.startswith(AGENT):
                yield number, None  # the question had a reply and was not repeated
            elif row.sources[-1] not in unanswered and self._is_done(row, ended):
                yield number, None if self._changed_since(row, ended) else Status.DONE

    def _open_asked(self) -> list[int]:
        """Return the numbers of the open questions and requests, in order."""
        return [number for number in self.table.open if number in self.table.asked]

    def _changed_since(self, asked: Draft, ended: TurnDone) -> bool:
        """Return True if the person corrected something after asking."""
        later = (self.table.rows[number] for number in self.table.within(asked.sources[-1], self.table.latest))
        return any(row.type is Type.CORRECTION and asked.sources[-1] < row.sources[0] <= ended.seq for row in later)

    def _done_work(self, since: int, end: int) -> Iterator[tuple[int, Draft, Status]]:
        """Yield the open failures, blockers and plans between two messages, each with its number and new status.

        Failed checks are left out, because only the same check resolves them.
        """
        checks = self.table.failures.check_numbers() if self.table.failures else ()
        for number, row in self.table.remaining(self.table.open):
            is_obstacle = row.type is Type.BLOCKER or (row.type in FAILURES and number not in checks)
            if is_obstacle and since < row.sources[-1] < end:
                yield number, row, Status.RESOLVED
        for number, row in self.table.remaining(self.table.open):
            if row.type is Type.PLAN and since < row.sources[-1] < end:
                yield number, row, Status.DONE

    def open_again(self, resumed: TurnUnfinished) -> None:
        """Reopen the rows that were closed when the turn seemed to end."""
        for number, row in self.table.remaining(self.table.within(resumed.seq - 1, resumed.seq)):
            if row.type not in _CLOSED_BY_TEXT:
                continue
            position = self.table.position(number)
            if row.type in ASKED and row.status is not Status.OPEN and not row.text.startswith(AGENT):
                self.table.remove(number)
                reopened = replace(_with_note(row, None), status=Status.OPEN, priority=None, reason="taken up again")
                self.table.add(replace(reopened, sources=row.sources[:-1]), position)
            elif row.status in SETTLED:
                self.table.remove(number)
                self.table.add(replace(row, status=Status.OPEN, priority=None, reason="taken up again"), position)

    def _is_done(self, asked: Draft, ended: TurnDone) -> bool:
        """Return True if the request seems done.

        The turn must have ended with nothing asked, missing or failing (`TurnDone.is_complete`). If the agent reports a
        result or changed files, or commands did what the request names, no serious open failure may follow the last
        change. Otherwise there must be no serious open failure; and the person must have gone on to something else, the
        text must explain something, or the request must be one that an answer fulfils. A turn with open todos goes on
        until the agent reports something or the person goes on to something else.
        """
        start = asked.sources[-1]
        later = {number: self.table.rows[number] for number in self.table.within(start, ended.seq)}
        failures = self.table.failures or ()
        serious = (row for number, row in later.items() if number in failures and row.importance >= _SERIOUS)
        last_failure = max((row.sources[-1] for row in serious), default=0)
        changes = (row for row in later.values() if row.type in _CHANGES and not row.text.startswith(AGENT))
        last_change = max((row.sources[-1] for row in changes), default=0)
        named = _done_named(asked.text)
        is_worked_on = any(row.type in FILE_CHANGES and not row.text.startswith(AGENT) for row in later.values())
        reports = ended.reports or is_worked_on or (bool(named) and named <= self._done_since(start, ended.seq))
        listed = later.get(self.table.todo_list)
        goes_on = listed and listed.status is Status.OPEN and not (ended.reports or ended.accepted)
        if goes_on or not ended.is_complete:
            return False
        answers = ended.accepted or ended.explains or cues.asks_to_look(asked.text.partition(": ")[2])
        return last_failure <= last_change if reports else answers and not last_failure

    def _asked_since(self, since: int | None) -> list[int]:
        """Return the numbers of the person's questions and requests since the turn began. Without any, or if `since` is
        None, return those of the latest message that has any.
        """
        found: list[int] = []
        last = 0
        for seq, number in reversed(self.table.by_seq):
            if number not in self.table.asked or self.table.rows[number].text.startswith(AGENT):
                continue
            if found and seq != last and (since is None or seq < since):
                break
            found.append(number)
            last = seq
        return sorted(found)

    def _settle(
        self,
        number: int,
        row: Draft,
        status: Status | None,
        by: Sequence[int],
        *,
        at: str | None = None,
        position: tuple[int, int] | None = None,
    ) -> None:
        """Set the status of a row and cite the messages (`by`) that settle it. None removes the status and gives as the
        reason that the row was passed over. A row of high importance gets medium priority if it is resolved, or if it
        is a request or question.
        """
        self.table.remove(number)
        is_over = (status is Status.RESOLVED or row.type in ASKED) and row.importance >= _SERIOUS
        settled = replace(
            row,
            status=status,
            priority=Priority.MEDIUM if is_over else row.priority,
            sources=merged(row.sources, by),
            event_at=at or row.event_at,
            reason=status.value if status else _SKIPPED,
        )
        self.table.add(self.table.merge_repeats(settled), position)


def _done_by(row: Draft) -> frozenset[str]:
    """Return the deeds (see `_DEEDS`) of the command in a row: a commit, a push, a merge, a pull request, tests."""
    command = row.metadata.get("command")
    if row.type not in (Type.COMMAND_RUN, Type.OUTCOME) or not isinstance(command, str):
        return frozenset()
    found = {deed for deed, pattern in _DEEDS.items() if pattern.search(command)}
    return frozenset(found | {"commit"} if row.metadata.get("commit") else found)


def _done_named(text: str) -> frozenset[str]:
    words = _words(text)
    found = frozenset(_DEED_WORDS[word] for word in words if word in _DEED_WORDS)
    return found if words & _OPENS_REQUEST else found - {"pr"}  # "merge the PR"


def _is_command(text: str) -> bool:
    return all(word in _DEED_WORDS or word in _FILLERS for word in _words(text))


def _with_note(row: Draft, note: str | None) -> Draft:
    known = {name: value for name, value in row.metadata.items() if name != _LEFT}
    return replace(row, metadata=MappingProxyType({**known, _LEFT: note} if note else known))


def _is_question(row: Draft) -> bool:
    """Return True for a question, and for a prompt that ends with one and asks for no work."""
    return row.type is Type.QUESTION or (cues.has_question_mark(row.text) and not cues.is_work_request(row.text))


def _is_open_question(row: Draft) -> bool:
    return row.type is Type.QUESTION and row.status is Status.OPEN and row.text.startswith(AGENT)


def _with_question(answer: Draft, question: str) -> Draft | None:
    """Return the answer, with its question quoted if that is short, or None if the row does not seem to answer the
    question.
    """
    quoted = _NAMED_QUESTION.search(answer.text)
    if f": {question[:_QUOTED_QUESTION]}" in answer.text or (quoted and quoted[1] in question):
        return answer
    if answer.type is Type.QUESTION or " | " in question or not shared_words(answer.text, question):
        return None
    is_quoted = len(question) <= _QUOTED_QUESTION and answer.text.count(" (answering: ") < _MOST_QUOTED
    suffix = f" (answering: {question})" if is_quoted else ""
    return replace(answer, text=f"{answer.text}{suffix}")


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.partition(": ")[2].lower()))
