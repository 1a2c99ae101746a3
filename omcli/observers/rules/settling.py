"""What becomes of what was written down: failures mended, questions answered, requests done, repeats counted.

Rows that stand and rows of the batch are one list here, so that it makes no difference whether a command failed a
moment ago or in an earlier run: what changes is written anew, and replaces what the store holds of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType

from omcli.memory.observation import FAILURES, FILE_CHANGES, Draft, Observation, Priority, Status, Type
from omcli.memory.patterns import lazily
from omcli.memory.record import field, mutable_record, record, replace
from omcli.memory.speakers import AGENT
from omcli.memory.text import one_line
from omcli.observers.rules import overruling
from omcli.observers.rules.shell import same_place
from omcli.observers.rules.tools import ToolKind, tool_kind

_CHANGES = FILE_CHANGES | {Type.COMMAND_RUN, Type.OUTCOME}
_ASKED = frozenset({Type.REQUEST, Type.QUESTION})
_MATTERS = 7
"""Importance of a failure from which on it speaks against a job being done: others are detours."""
_TIMES = lazily(r" \(× (\d{1,9})\)$")
_QUOTED_QUESTION = 200
"""Characters up to which a question is repeated in the row of a long answer."""
_FEW_WORDS = 3
"""Words of which no more tell whether the same is asked."""
_SHARED_LETTERS = 5
"""Letters in which the words of a question and of its answer agree: report, reports, reporting."""


@record
class Passed:
    """Something worked that may have failed before."""

    targets: tuple[str, ...]
    """As `failed_run` and `failed_use` name them."""
    directory: str | None = None
    """Where a command ran, where that was said."""
    sources: tuple[int, ...]
    at: str | None

    @property
    def seq(self) -> int:
        """When it did."""
        return self.sources[-1]


@record
class Replied:
    """A person spoke next after a text of the agent, which may have asked something."""

    seq: int
    asked: int
    """`seq` of the agent's text."""


@record
class Ended:
    """An agent's turn ended with a text that says something, and the person did not object."""

    seq: int
    """Of the text."""
    at: str | None
    since: int | None
    """`seq` of the prompt that began the turn; None where that was in an earlier batch."""
    closes: bool
    """Whether it leaves nothing open: no question, and nothing that is missing or still fails."""
    reports: bool
    """Whether it reports a result."""
    accepted: bool
    """Whether the person went on to something else."""


@record
class Resumed:
    """What seemed to be the end of a turn was not: the agent went on, or the person was not content."""

    seq: int
    """Of the text that seemed to end it."""


Moment = Passed | Replied | Ended | Resumed
_RANKS = {Draft: 0, Passed: 1, Replied: 2, Ended: 3, Resumed: 4}


def failed_run(command: str) -> str:
    """What a command is known by, failed or not; as rows show it."""
    return f"run {command}"


def failed_use(kind: ToolKind, target: str) -> str:
    """What the use of a tool on something is known by. A patch that was handed to a shell is an edit."""
    return f"{ToolKind.EDIT if kind is ToolKind.RUN else kind} {target}"


def opened(draft: Draft) -> Draft:
    """What a person asks, or asks for, is open until a turn ends that answers it (`endings`)."""
    return replace(draft, status=Status.OPEN) if draft.type in _ASKED and draft.status is None else draft


def settled(standing: Iterable[Observation], drafts: Iterable[Draft], moments: Iterable[Moment]) -> tuple[Draft, ...]:
    """The rows of a batch, in the order they came true, with what they say of those that stand taken into account."""
    ledger = _Ledger()
    for row in standing:
        ledger.add(_as_draft(row))
    ledger.begin()
    for step in sorted((*drafts, *moments), key=lambda step: (_seq(step), _RANKS[type(step)])):
        match step:
            case Draft():
                ledger.write(replace(step, text=one_line(step.text)))
            case Passed():
                ledger.mend(step)
            case Replied():
                ledger.answer(step)
            case Ended():
                ledger.finish(step)
            case Resumed():
                ledger.reopen(step)
    return ledger.written()


def _seq(step: Draft | Moment) -> int:
    return step.sources[-1] if isinstance(step, Draft) else step.seq


def _as_draft(row: Observation) -> Draft:
    """A row that stands, as what is written in its place when it changes."""
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
class _Ledger:
    """Rows by number, in the order they were written; a row that changes gets a new number."""

    rows: dict[int, Draft] = field(default_factory=dict)
    _lines: dict[tuple[Type, str, str | None], int] = field(default_factory=dict)
    _failed: dict[str, list[int]] = field(default_factory=dict)
    """Open failures by what failed."""
    _running: dict[int, int] = field(default_factory=dict)
    """Commands and delegations that go on, by the messages they were started with."""
    _asked: set[int] = field(default_factory=set)
    """Questions and requests."""
    _said: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The places of rows that something later settled: where they were said."""
    _claims: dict[int, overruling.Claim | None] = field(default_factory=dict)
    """What rows hold to be so, as far as that was asked."""
    _listed: int = -1
    """The last list of todos."""
    _latest: int = 0
    """The last message that any row came from."""
    _next: int = 0
    _first: int = 0

    def begin(self) -> None:
        """What comes now is of the batch."""
        self._first = self._next

    def written(self) -> tuple[Draft, ...]:
        """The rows that are new or changed."""
        new = [number for number in self.rows if number >= self._first]
        new.sort(key=self._place)
        rows = (self.rows[number] for number in new)
        return tuple(row if row.replaces else replace(row, reason=None) for row in rows)

    def _place(self, number: int) -> tuple[int, int]:
        """Where a row comes: at the message it came true at. What was asked stays before its answer."""
        return self._said.get(number) or (self.rows[number].sources[-1], number)

    def add(self, draft: Draft) -> None:
        """Takes a row down as it is."""
        number = self._next
        self._next += 1
        self.rows[number] = draft
        self._lines[_line(draft)] = number
        if (target := _target(draft)) and draft.status is Status.OPEN:
            self._failed.setdefault(target, []).append(number)
        if _goes_on(draft):
            self._running |= dict.fromkeys(draft.sources, number)
        if draft.type in _ASKED and draft.sources:
            self._asked.add(number)
        if _todos(draft):
            self._listed = number
        self._latest = max(self._latest, *draft.sources[-1:], 0)

    def write(self, draft: Draft) -> None:
        """Takes a new row down in the place of those that it continues, repeats or overrules."""
        for number in {self._running[seq] for seq in draft.sources if seq in self._running}:
            draft = self._over(number, draft, reason="ended")
        if _todos(draft) & _todos(self.rows.get(self._listed)):
            draft = self._over(self._listed, draft, reason="updated")
        if (asked_before := self._restated(draft)) is not None:
            draft = self._over(asked_before, draft, reason="said again")
        self.add(self._overruling(self._repeated(draft)))

    def _restated(self, draft: Draft) -> int | None:
        """What a person asked last and did not get, where they ask it again and say more."""
        if draft.type not in _ASKED or draft.text.startswith(AGENT):
            return None
        last = max((n for n in self._asked if not self.rows[n].text.startswith(AGENT)), default=None)
        if last is None or self.rows[last].status is not Status.OPEN:
            return None
        asked = _words(self.rows[last].text)
        said_before = self.rows[last].sources[-1] < draft.sources[0]
        return last if said_before and len(asked) > _FEW_WORDS and asked <= _words(draft.text) else None

    def _repeated(self, draft: Draft) -> Draft:
        """The draft in the place of open failures of the same thing, and of a row that says the same."""
        for number in self._failures(_target(draft), _directory(draft)):
            draft = self._over(number, _counted(self.rows[number], draft), reason="failed again")
        if (same := self._lines.get(_line(draft))) is not None:
            draft = self._over(same, _counted(self.rows[same], draft), reason="said again")
        return draft

    def mend(self, passed: Passed) -> None:
        """Failures of what works now are resolved: worth knowing, and no more than that."""
        for target in passed.targets:
            if failed := self._failures(target, passed.directory):
                self._resolve(failed[-1], passed)

    def _failures(self, target: str, directory: str | None) -> list[int]:
        """Open failures of what ran there, or may have: the same command in another place is another thing."""
        failed = self._failed.get(target, ())
        return [number for number in failed if same_place(_directory(self.rows[number]), directory)]

    def _resolve(self, number: int, by: Passed) -> None:
        row = self.rows[number]
        priority = Priority.MEDIUM if row.importance >= _MATTERS else row.priority
        self._settle(number, replace(row, priority=priority), by, Status.RESOLVED)

    def answer(self, reply: Replied) -> None:
        """Open questions of the agent give way to the row that answers them, which says what it answers."""
        questions = [n for n in sorted(self._asked) if _asks(self.rows[n]) and reply.asked in self.rows[n].sources]
        answer = self._answer(reply.seq) if questions else None
        if answer is None:
            return
        for number in questions:
            draft = _answering(self.rows[answer], self.rows[number].text.removeprefix(AGENT))
            if draft is not None:
                self._take(answer)
                self.add(self._over(number, draft, reason="answered"))
                answer = self._next - 1

    def _answer(self, prompt: int) -> int | None:
        """The row of a prompt as a whole, which is the first that came from it."""
        new = (number for number in range(self._first, self._next) if number in self.rows)
        return next((number for number in new if self.rows[number].sources[-1] == prompt), None)

    def finish(self, ended: Ended) -> None:
        """What was asked for in the turn is done, and what a person asked is answered, unless a failure says no."""
        if self._latest > ended.seq:
            return  # the turn went on, or was stopped
        for number in self._asked_since(ended.since):
            asked = self.rows.get(number)
            if asked is None:
                continue  # the same was asked twice
            if asked.status is Status.OPEN and (asked.type is Type.QUESTION or self._is_done(asked, ended)):
                end = Passed(targets=(), sources=(ended.seq,), at=ended.at)
                said = self._place(number)
                self._settle(number, asked, replace(end, at=asked.event_at), Status.DONE)
                self._said[self._next - 1] = said
                since = asked.sources[-1] if ended.reports else ended.seq
                self._overcome(end, since=since)
                self._carry_out(end, since=since)

    def _overcome(self, end: Passed, *, since: int) -> None:
        """What stood in the way of something that is done stands there no longer."""
        for number, row in list(self.rows.items()):
            if row.type is Type.BLOCKER and row.status is Status.OPEN and since < row.sources[-1] < end.seq:
                self._resolve(number, end)

    def _carry_out(self, end: Passed, *, since: int) -> None:
        """Plans that were approved for something that is done are done with it."""
        for number, row in list(self.rows.items()):
            if row.type is Type.PLAN and row.status is Status.OPEN and since < row.sources[-1] < end.seq:
                self._settle(number, row, end, Status.DONE)

    def reopen(self, resumed: Resumed) -> None:
        """Takes back that a text settled what was asked."""
        for number in self._asked_since(None):
            asked = self.rows[number]
            if asked.status is Status.DONE and asked.sources[-1] == resumed.seq and asked.type is Type.REQUEST:
                said = self._place(number)
                self._take(number)
                self.add(replace(asked, status=Status.OPEN, reason="taken up again"))
                self._said[self._next - 1] = said

    def _is_done(self, asked: Draft, ended: Ended) -> bool:
        """A report counts where the last thing done did not fail; without one, nothing may have failed, and the
        person has to have gone on."""
        began = asked.sources[-1]
        later = [row for row in self.rows.values() if row.sources and began < row.sources[-1] <= ended.seq]
        broke = max(
            (
                row.sources[-1]
                for row in later
                if _target(row) and row.status is Status.OPEN and row.importance >= _MATTERS
            ),
            default=0,
        )
        changes = (row for row in later if row.type in _CHANGES and not row.text.startswith(AGENT))
        worked = max((row.sources[-1] for row in changes), default=0)
        return ended.closes and (broke <= worked if ended.reports else ended.accepted and not broke)

    def _asked_since(self, since: int | None) -> list[int]:
        """What a person asked since the turn began; where that is nothing, or not known, the last thing asked."""
        rows = {number: self.rows[number] for number in sorted(self._asked)}
        asked = {n: row.sources[-1] for n, row in rows.items() if not row.text.startswith(AGENT)}
        in_turn = [number for number, seq in asked.items() if since is not None and seq >= since]
        last = max(asked.values(), default=0)
        return in_turn or [number for number, seq in asked.items() if seq == last]

    def _overruling(self, draft: Draft) -> Draft:
        """The draft in the place of rows that it says hold no longer."""
        change = overruling.change_of(draft)
        for number, anew in self._overruled(change) if change else ():
            claim = self._claims[number]
            assert claim is not None
            draft = replace(draft, text=overruling.with_earlier(draft.text, claim, anew=anew))
            draft = self._over(number, draft, reason="overruled")
        return draft

    def _overruled(self, change: overruling.Change) -> list[tuple[int, bool]]:
        """Rows that a change concerns, and whether it says the same with another value."""
        claims = [(number, claim) for number, claim in self._all_claims() if overruling.may_overrule(change, claim)]
        if change.takes_back:
            said = [number for number, row in self.rows.items() if row.text.startswith(f"{change.speaker}: ")]
            return [(n, False) for n, claim in claims if n in said[-1:] and claim.kind not in (Type.FACT, Type.REQUEST)]
        for named, about in change.given_up:
            if held := [number for number, claim in claims if overruling.is_given_up(claim, named, about)]:
                return [(held[-1], False)]
        return [(number, True) for number, claim in claims if overruling.says_anew(claim, change)]

    def _all_claims(self) -> Iterator[tuple[int, overruling.Claim]]:
        """Every row that may be overruled; each is read once, and only when something is."""
        for number, row in self.rows.items():
            if number not in self._claims:
                self._claims[number] = overruling.claim_of(row)
            if claim := self._claims[number]:
                yield number, claim

    def _settle(self, number: int, row: Draft, by: Passed, status: Status) -> None:
        """The same row, settled by a later message."""
        self._take(number)
        sources = _union(row.sources, by.sources)
        self.add(
            self._repeated(
                replace(row, status=status, sources=sources, event_at=by.at or row.event_at, reason=status.value)
            )
        )

    def _over(self, number: int, draft: Draft, *, reason: str) -> Draft:
        """The draft, in the place of a row."""
        old = self._take(number)
        replaces = (*old.replaces, *(one for one in draft.replaces if one not in old.replaces))
        return replace(draft, sources=_union(old.sources, draft.sources), replaces=replaces, reason=reason)

    def _take(self, number: int) -> Draft:
        draft = self.rows.pop(number)
        self._asked.discard(number)
        if self._lines.get(_line(draft)) == number:
            del self._lines[_line(draft)]
        if number in (failed := self._failed.get(_target(draft), [])):
            failed.remove(number)
        self._running = {seq: running for seq, running in self._running.items() if running != number}
        return draft


def _union(old: Sequence[int], new: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({*old, *new}))


def _line(draft: Draft) -> tuple[Type, str, str | None]:
    """What makes two rows the same: commands and failures whatever their count, failures in one place."""
    return draft.type, _TIMES.sub("", draft.text) if _is_counted(draft) else draft.text, _directory(draft)


def _is_counted(draft: Draft) -> bool:
    return draft.type in FAILURES or (draft.type is Type.COMMAND_RUN and "command" in draft.metadata)


def _counted(old: Draft, new: Draft) -> Draft:
    """The new row with how often it happened in all, where that is counted."""
    if new.type in FILE_CHANGES:
        edits = _edits(old) + _edits(new) + (new.type is Type.FILE_CREATED)  # it was there already
        return replace(new, metadata=MappingProxyType({**new.metadata, "edits": edits}))
    if not _is_counted(new) or _goes_on(new):
        return new
    times = sum(int(found[1]) if (found := _TIMES.search(row.text)) else 1 for row in (old, new))
    metadata = MappingProxyType({**new.metadata, "times": times})
    return replace(new, text=f"{_TIMES.sub('', new.text)} (× {times})", metadata=metadata)


def _edits(draft: Draft) -> int:
    """How often a row says that a file was edited."""
    edits = draft.metadata.get("edits")
    return edits if isinstance(edits, int) else 1


def _target(draft: Draft) -> str:
    """What a failure's row says failed; empty for any other row."""
    if draft.type not in FAILURES:
        return ""
    command, tool, target = (draft.metadata.get(name) for name in ("command", "tool", "target"))
    if isinstance(command, str):
        return failed_run(command)
    kind = tool_kind(tool) if isinstance(tool, str) else None
    return failed_use(kind, target) if kind and isinstance(target, str) else ""


def _directory(draft: Draft) -> str | None:
    """Where the command of a failure's row ran, where that was said."""
    directory = draft.metadata.get("directory") if draft.type in FAILURES else None
    return directory if isinstance(directory, str) else None


def _goes_on(draft: Draft) -> bool:
    return draft.status is Status.OPEN and isinstance(draft.metadata.get("process"), str)


def _todos(row: Draft | None) -> frozenset[str]:
    """The entries of a row that holds a whole list of todos."""
    entries = row.metadata.get("todos") if row and row.type is Type.TODO_UPDATED else None
    if row is None or not isinstance(entries, list | tuple) or row.metadata.get("partial"):
        return frozenset()
    return frozenset(str(entry.get("text")) for entry in entries if isinstance(entry, dict))


def _asks(row: Draft) -> bool:
    return row.type is Type.QUESTION and row.status is Status.OPEN and row.text.startswith(AGENT)


def _answering(answer: Draft, question: str) -> Draft | None:
    """A row that answers a question, with the question; None where nothing tells that it does."""
    if f": {question[:_QUOTED_QUESTION]}" in answer.text:
        return answer
    if answer.type is Type.QUESTION or " | " in question or not _speaks_of(answer.text, question):
        return None
    about = f" (answering: {question})" if len(question) <= _QUOTED_QUESTION else ""
    return replace(answer, text=f"{answer.text}{about}")


def _speaks_of(answer: str, question: str) -> bool:
    """Whether a text takes up a word of a question."""
    words = {word[:_SHARED_LETTERS].lower() for word in re.findall(rf"\w{{{_SHARED_LETTERS},}}", question)}
    return bool(words & {word[:_SHARED_LETTERS].lower() for word in re.findall(r"\w+", answer)})


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.partition(": ")[2].lower()))
