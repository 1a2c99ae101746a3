"""Status of rows: failures resolved, questions answered, requests done, repeats counted, statements superseded.

Context rows and new rows form one list, so it makes no difference if a command failed in this batch or an earlier one:
a row that changes is written anew and replaces the stored one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType

from omcli.base.patterns import lazily
from omcli.base.record import field, mutable_record, replace
from omcli.memory.observation import FAILURES, FILE_CHANGES, SETTLED, Draft, Observation, Priority, Status, Type
from omcli.observers.rules.shell import same_directory
from omcli.observers.rules.status import supersede as overruling
from omcli.observers.rules.status.command_aliases import ParsedCommand, covers, last_command, parse_parts
from omcli.observers.rules.status.recurrence import (
    failure_directory,
    failure_key,
    is_check,
    is_running,
    row_key,
    todo_texts,
    with_count,
)
from omcli.observers.rules.status.turn_events import StatusEvent, TurnAnswered, TurnEnded, TurnUnfinished
from omcli.observers.rules.tools.commands import Succeeded
from omcli.text.clean import one_line
from omcli.text.phrases import AGENT

_CHANGES = FILE_CHANGES | {Type.COMMAND_RUN, Type.OUTCOME}
_ASKED = frozenset({Type.REQUEST, Type.QUESTION})
_CLOSED_BY_TEXT = FAILURES | {Type.REQUEST, Type.BLOCKER, Type.PLAN}
"""Types that the text at the end of a turn closes; open again if the turn continues after all."""
_SERIOUS = 7
"""Least importance of a failure that speaks against a request being done."""
_LEFT, _SKIPPED = "left", "passed over"
"""Metadata key of a request that the conversation passed over."""
_PREVIOUS = "leaves"
"""Metadata key of a request: the earlier request it was made after, if that turn ended without a result."""
# The question quoted in the row of a bare yes or a short answer.
_NAMED_QUESTION = lazily(r"(?:\(answering|\) to): (.{8,80})")
_QUOTED_QUESTION = 200
"""Characters up to which a question is repeated in the row of a long answer."""
_FEW_WORDS = 3
"""Words up to which a request is too short to recognise when repeated."""
_SHARED_LETTERS = 5
"""First letters by which words of question and answer are compared: report, reports, reporting."""
_RANKS = {Draft: 0, Succeeded: 1, TurnAnswered: 2, TurnEnded: 3, TurnUnfinished: 4}


def open_if_asked(draft: Draft) -> Draft:
    """Open a question or request; a turn that answers it closes it (`turn_events`)."""
    return replace(draft, status=Status.OPEN) if draft.type in _ASKED and draft.status is None else draft


def update_rows(
    context_rows: Iterable[Observation], drafts: Iterable[Draft], events: Iterable[StatusEvent]
) -> tuple[Draft, ...]:
    """Return the new and changed rows of a batch, oldest first, given the rows stored so far."""
    tracker = _StatusTracker()
    for row in context_rows:
        tracker.add(_as_draft(row))
    tracker.start_batch()
    for step in sorted((*drafts, *events), key=lambda step: (_seq(step), _RANKS[type(step)])):
        match step:
            case Draft():
                tracker.write(replace(step, text=one_line(step.text)))
            case Succeeded():
                tracker.resolve_failures(step)
            case TurnAnswered():
                tracker.answer_question(step)
            case TurnEnded():
                tracker.close_turn(step)
            case TurnUnfinished():
                tracker.open_again(step)
    return tracker.changed_rows()


def _seq(step: Draft | StatusEvent) -> int:
    return step.sources[-1] if isinstance(step, Draft) else step.seq


def _as_draft(row: Observation) -> Draft:
    """Turn a stored row into the draft that replaces it when it changes."""
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
class _StatusTracker:
    """Rows by number, in the order of writing; a row that changes gets a new number."""

    rows: dict[int, Draft] = field(default_factory=dict)
    _lines: dict[tuple[Type, str, str | None], int] = field(default_factory=dict)
    _failed: dict[str, list[int]] = field(default_factory=dict)
    """Open failures by key."""
    _failed_effects: dict[int, ParsedCommand] = field(default_factory=dict)
    """Last command of each open failure."""
    _running: dict[int, int] = field(default_factory=dict)
    """Running commands and subagents by the messages that started them."""
    _asked: set[int] = field(default_factory=set)
    """Questions and requests."""
    _positions: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Original positions of rows that were closed later."""
    _claims: dict[int, overruling.Claim | None] = field(default_factory=dict)
    """Claims of rows, computed when needed."""
    _todo_list: int = -1
    """Latest todo list."""
    _unanswered: int | None = None
    """`seq` of a request whose turn ended without a result, until the next request."""
    _latest: int = 0
    """`seq` of the latest message of any row."""
    _next: int = 0
    _first: int = 0

    def start_batch(self) -> None:
        """Mark the end of the context rows."""
        self._first = self._next

    def changed_rows(self) -> tuple[Draft, ...]:
        """Return the rows that are new or changed."""
        new = [number for number in self.rows if number >= self._first]
        new.sort(key=self._position)
        rows = (self.rows[number] for number in new)
        return tuple(row if row.replaces else replace(row, reason=None) for row in rows)

    def _position(self, number: int) -> tuple[int, int]:
        """Return the sort key of a row: its last message; a question stays before its answer."""
        return self._positions.get(number) or (self.rows[number].sources[-1], number)

    def add(self, draft: Draft) -> None:
        """Add a row as it is."""
        number = self._next
        self._next += 1
        self.rows[number] = draft
        self._lines[row_key(draft)] = number
        if (target := failure_key(draft)) and draft.status is Status.OPEN:
            self._failed.setdefault(target, []).append(number)
            if aim := last_command(str(draft.metadata.get("command", ""))):
                self._failed_effects[number] = aim
        if is_running(draft):
            self._running |= dict.fromkeys(draft.sources, number)
        if draft.type in _ASKED and draft.sources:
            self._asked.add(number)
        if todo_texts(draft):
            self._todo_list = number
        self._latest = max(self._latest, *draft.sources[-1:], 0)

    def write(self, draft: Draft) -> None:
        """Add a new row in place of those it continues, repeats or supersedes."""
        for number in {self._running[seq] for seq in draft.sources if seq in self._running}:
            draft = self._replace(number, draft, reason="ended")
        if todo_texts(draft) & todo_texts(self.rows.get(self._todo_list)):
            draft = self._replace(self._todo_list, draft, reason="updated")
        if (asked_before := self._asked_before(draft)) is not None:
            draft = self._replace(asked_before, draft, reason="said again")
        self.add(self._apply_replacement(self._merge_repeats(self._note_earlier(draft))))

    def _note_earlier(self, draft: Draft) -> Draft:
        """Note in a request the unanswered one before it."""
        left = self._unanswered
        if left is None or draft.type not in _ASKED or draft.text.startswith(AGENT) or draft.sources[-1] <= left:
            return draft
        self._unanswered = None
        return replace(draft, metadata=MappingProxyType({**draft.metadata, _PREVIOUS: left}))

    def _asked_before(self, draft: Draft) -> int | None:
        """Return a person's last open request if a new one repeats it and adds words."""
        if draft.type not in _ASKED or draft.text.startswith(AGENT):
            return None
        last = max((n for n in self._asked if not self.rows[n].text.startswith(AGENT)), default=None)
        if last is None or self.rows[last].status is not Status.OPEN:
            return None
        asked = _words(self.rows[last].text)
        said_before = self.rows[last].sources[-1] < draft.sources[0]
        return last if said_before and len(asked) > _FEW_WORDS and asked <= _words(draft.text) else None

    def _merge_repeats(self, draft: Draft) -> Draft:
        """Merge a row with open failures of the same thing and with a row of the same text."""
        for number, row in self._remaining(self._failures(failure_key(draft), failure_directory(draft))):
            draft = self._replace(number, with_count(row, draft), reason="failed again")
        if (same := self._lines.get(row_key(draft))) is not None:
            draft = self._replace(same, with_count(self.rows[same], draft), reason="said again")
        return draft

    def resolve_failures(self, passed: Succeeded) -> None:
        """Resolve the open failures of something that now worked."""
        for target in passed.targets:
            if failed := self._failures(target, passed.directory):
                self._resolve(failed[-1], passed)
        done = parse_parts(passed.command)
        for number, row in self._remaining(
            [number for number, aim in self._failed_effects.items() if covers(done, aim)]
        ):
            if same_directory(failure_directory(row), passed.directory):
                self._resolve(number, passed)

    def _failures(self, target: str, directory: str | None) -> list[int]:
        """Return open failures with this key in the same, or an unknown, directory."""
        failed = self._failed.get(target, ())
        return [number for number in failed if same_directory(failure_directory(self.rows[number]), directory)]

    def _resolve(self, number: int, by: Succeeded) -> None:
        row = self.rows[number]
        priority = Priority.MEDIUM if row.importance >= _SERIOUS else row.priority
        self._settle(number, replace(row, priority=priority), by, Status.RESOLVED)

    def answer_question(self, reply: TurnAnswered) -> None:
        """Replace open questions of the agent by the row that answers them, quoting the question."""
        questions = [
            n for n in sorted(self._asked) if _is_open_question(self.rows[n]) and reply.asked in self.rows[n].sources
        ]
        answer = self._answer_row(reply.seq) if questions else None
        if answer is None:
            return
        for number, question in self._remaining(questions):
            draft = _with_question(self.rows[answer], question.text.removeprefix(AGENT))
            if draft is not None:
                self._remove(answer)
                self.add(self._replace(number, draft, reason="answered"))
                answer = self._next - 1

    def _answer_row(self, prompt: int) -> int | None:
        """Return the first row of a prompt, which represents all of it."""
        new = (number for number in range(self._first, self._next) if number in self.rows)
        return next((number for number in new if self.rows[number].sources[-1] == prompt), None)

    def close_turn(self, ended: TurnEnded) -> None:
        """Close the requests and questions of a turn, unless a failure speaks against it."""
        if self._latest > ended.seq:
            return  # the turn continued, or was stopped
        asked = self._asked_since(ended.since)
        began = min((self.rows[number].sources[-1] for number in asked), default=ended.seq)
        for number, row in self._remaining(asked):
            self._close_request(number, row, ended)
        left = {row.metadata.get(_PREVIOUS) for row in self.rows.values()}
        for number, row in self._remaining(self._open_before(began)):
            if row.text.startswith(AGENT):
                self._close(number, ended, None)  # it had a reply and was not repeated
            elif row.sources[-1] not in left and self._is_done(row, ended):
                self._close(number, ended, None if self._changed_since(row, ended) else Status.DONE)
        if ended.accepted or (ended.is_complete and ended.reports):
            self._resolve_minor_failures(ended)

    def _close_request(self, number: int, asked: Draft, ended: TurnEnded) -> None:
        """Close a request or question of the turn; remember it if the turn ended without a result."""
        if asked.status is not Status.OPEN:
            return
        if asked.type is Type.QUESTION or self._is_done(asked, ended):
            self._close(number, ended, Status.DONE)
        elif ended.accepted and not ended.asks:
            self._unanswered = asked.sources[-1]

    def _open_before(self, began: int) -> list[int]:
        """Return what was asked before this turn and is still open."""
        asked = ((number, self.rows[number]) for number in sorted(self._asked))
        return [number for number, row in asked if row.status is Status.OPEN and row.sources[-1] < began]

    def _changed_since(self, asked: Draft, ended: TurnEnded) -> bool:
        """Return True if the person corrected something after asking."""
        return any(
            row.type is Type.CORRECTION and asked.sources[-1] < row.sources[0] <= ended.seq
            for row in self.rows.values()
        )

    def _close(self, number: int, ended: TurnEnded, status: Status | None) -> None:
        """Close a row; without a status if it is unknown whether the request was done."""
        row, said = self.rows[number], self._position(number)
        asked = row if status else _with_note(row, _SKIPPED)
        end = Succeeded(targets=(), sources=(ended.seq,), at=ended.at)
        self._settle(number, asked, replace(end, at=asked.event_at), status)
        self._positions[self._next - 1] = said
        if status is Status.DONE:
            since = asked.sources[-1] if ended.reports else ended.seq
            self._resolve_blockers(end, since=since)
            self._finish_plan(end, since=since)

    def _resolve_blockers(self, end: Succeeded, *, since: int) -> None:
        """Resolve blockers and failures met on the way to something that is done."""
        for number, row in self._remaining(self.rows):
            stood = row.type is Type.BLOCKER or (row.type in FAILURES and not is_check(row))
            if stood and row.status is Status.OPEN and since < row.sources[-1] < end.seq:
                self._resolve(number, end)

    def _resolve_minor_failures(self, ended: TurnEnded) -> None:
        """Resolve the minor failures of a turn that is over."""
        end = Succeeded(targets=(), sources=(ended.seq,), at=ended.at)
        for number, row in self._remaining(self.rows):
            detour = row.type in FAILURES and row.importance < _SERIOUS and row.status is Status.OPEN
            if detour and row.sources[-1] < ended.seq:
                self._resolve(number, end)

    def _finish_plan(self, end: Succeeded, *, since: int) -> None:
        """Close the approved plans of something that is done."""
        for number, row in self._remaining(self.rows):
            if row.type is Type.PLAN and row.status is Status.OPEN and since < row.sources[-1] < end.seq:
                self._settle(number, row, end, Status.DONE)

    def open_again(self, resumed: TurnUnfinished) -> None:
        """Undo what the end of a turn closed."""
        for number, row in self._remaining(self.rows):
            if row.sources[-1:] != (resumed.seq,) or row.type not in _CLOSED_BY_TEXT:
                continue
            if row.type is Type.REQUEST and row.status is not Status.OPEN:
                self._update(number, replace(_with_note(row, None), status=Status.OPEN), reason="taken up again")
            elif row.status in SETTLED:
                self._update(number, replace(row, status=Status.OPEN, priority=None), reason="taken up again")

    def _update(self, number: int, row: Draft, *, reason: str) -> None:
        """Replace a row by a changed copy at the same position."""
        said = self._position(number)
        self._remove(number)
        self.add(replace(row, reason=reason))
        self._positions[self._next - 1] = said

    def _is_done(self, asked: Draft, ended: TurnEnded) -> bool:
        """Return True if a request is done.

        With a report the last change must come after the last failure; without one nothing may have failed, and the
        person must have gone on to something else.
        """
        began = asked.sources[-1]
        later = [row for row in self.rows.values() if row.sources and began < row.sources[-1] <= ended.seq]
        broke = max(
            (
                row.sources[-1]
                for row in later
                if failure_key(row) and row.status is Status.OPEN and row.importance >= _SERIOUS
            ),
            default=0,
        )
        changes = (row for row in later if row.type in _CHANGES and not row.text.startswith(AGENT))
        worked = max((row.sources[-1] for row in changes), default=0)
        return ended.is_complete and (broke <= worked if ended.reports else ended.accepted and not broke)

    def _asked_since(self, since: int | None) -> list[int]:
        """Return the requests since the turn began; if none or unknown, the latest one."""
        rows = {number: self.rows[number] for number in sorted(self._asked)}
        asked = {n: row.sources[-1] for n, row in rows.items() if not row.text.startswith(AGENT)}
        in_turn = [number for number, seq in asked.items() if since is not None and seq >= since]
        last = max(asked.values(), default=0)
        return in_turn or [number for number, seq in asked.items() if seq == last]

    def _apply_replacement(self, draft: Draft) -> Draft:
        """Put a row in place of the claims it supersedes."""
        change = overruling.replacement_of(draft)
        for number, anew in self._replaced_claims(change) if change else ():
            claim = self._claims[number]
            assert claim is not None
            draft = replace(draft, text=overruling.with_earlier(draft.text, claim, anew=anew))
            draft = self._replace(number, draft, reason="overruled")
        return draft

    def _replaced_claims(self, change: overruling.Replacement) -> list[tuple[int, bool]]:
        """Return the superseded rows, each with True if only the value differs."""
        claims = [(number, claim) for number, claim in self._each_claim() if overruling.may_replace(change, claim)]
        if change.takes_back:
            said = [number for number, row in self.rows.items() if row.text.startswith(f"{change.speaker}: ")]
            return [(n, False) for n, claim in claims if n in said[-1:] and claim.kind not in (Type.FACT, Type.REQUEST)]
        for named, about in change.given_up:
            if held := [number for number, claim in claims if overruling.is_dropped(claim, named, about)]:
                return [(held[-1], False)]
        return [(number, True) for number, claim in claims if overruling.has_new_value(claim, change)]

    def _each_claim(self) -> Iterator[tuple[int, overruling.Claim]]:
        """Yield every row with a claim; each is parsed once, when first needed."""
        for number, row in self.rows.items():
            if number not in self._claims:
                self._claims[number] = overruling.claim_of(row)
            if claim := self._claims[number]:
                yield number, claim

    def _remaining(self, numbers: Iterable[int]) -> Iterator[tuple[int, Draft]]:
        """Yield the rows not replaced meanwhile: settling a row replaces any other of the same text."""
        for number in tuple(numbers):
            if number in self.rows:
                yield number, self.rows[number]

    def _settle(self, number: int, row: Draft, by: Succeeded, status: Status | None) -> None:
        """Set the status of a row by a later message; None if the request was only passed over."""
        self._remove(number)
        sources = _merged(row.sources, by.sources)
        reason = status.value if status else _SKIPPED
        self.add(
            self._merge_repeats(
                replace(row, status=status, sources=sources, event_at=by.at or row.event_at, reason=reason)
            )
        )

    def _replace(self, number: int, draft: Draft, *, reason: str) -> Draft:
        """Remove a row and return the draft that takes its place."""
        old = self._remove(number)
        replaces = (*old.replaces, *(one for one in draft.replaces if one not in old.replaces))
        return replace(draft, sources=_merged(old.sources, draft.sources), replaces=replaces, reason=reason)

    def _remove(self, number: int) -> Draft:
        draft = self.rows.pop(number)
        self._asked.discard(number)
        if self._lines.get(row_key(draft)) == number:
            del self._lines[row_key(draft)]
        if number in (failed := self._failed.get(failure_key(draft), [])):
            failed.remove(number)
            self._failed_effects.pop(number, None)
        self._running = {seq: running for seq, running in self._running.items() if running != number}
        return draft


def _merged(old: Sequence[int], new: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({*old, *new}))


def _with_note(row: Draft, how: str | None) -> Draft:
    """Return a row with a note on how it was left, or without one."""
    known = {name: value for name, value in row.metadata.items() if name != _LEFT}
    return replace(row, metadata=MappingProxyType({**known, _LEFT: how} if how else known))


def _is_open_question(row: Draft) -> bool:
    return row.type is Type.QUESTION and row.status is Status.OPEN and row.text.startswith(AGENT)


def _with_question(answer: Draft, question: str) -> Draft | None:
    """Return an answer with its question; None if the row may not be the answer."""
    named = _NAMED_QUESTION.search(answer.text)
    if f": {question[:_QUOTED_QUESTION]}" in answer.text or (named and named[1] in question):
        return answer
    if answer.type is Type.QUESTION or " | " in question or not _shares_word(answer.text, question):
        return None
    about = f" (answering: {question})" if len(question) <= _QUOTED_QUESTION else ""
    return replace(answer, text=f"{answer.text}{about}")


def _shares_word(answer: str, question: str) -> bool:
    """Return True if a text repeats a word of a question."""
    words = {word[:_SHARED_LETTERS].lower() for word in re.findall(rf"\w{{{_SHARED_LETTERS},}}", question)}
    return bool(words & {word[:_SHARED_LETTERS].lower() for word in re.findall(r"\w+", answer)})


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.partition(": ")[2].lower()))
