"""Explaining changed files and rules: the sessions, requests and decisions that they came from."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from omcli.base import lazily
from omcli.base.errors import BadUsage, UnknownId
from omcli.base.record import record, replace
from omcli.memory.changes import UNDONE
from omcli.memory.message import KeptMessage, Role
from omcli.memory.observation import ASKED, FILE_CHANGES, IN_FORCE, SETTLED, Kind, LogQuery, Observation
from omcli.memory.search import Passage
from omcli.operations.recall import RecallFilter, recall
from omcli.recall.ranking import MOST_MATCHES, Query
from omcli.text.clean import AGENT
from omcli.text.phrases import words_of
from omcli.text.similarity import SPEAKERS, content_terms, is_distinctive, says, weight
from omcli.text.terms import folded_words

if TYPE_CHECKING:
    from omcli.memory.ports import Store
    from omcli.memory.session import Session
    from omcli.observers.rules.files import FileLine, LineMatch
    from omcli.observers.rules.tool_events import FileChange

_WAITING, _WAITING_TOKENS = 4, 50_000
"""Number of newest sessions whose unobserved messages are searched for edits, and maximum tokens to read of each."""
_NOW = "9999"
"""Time given to unobserved edits that have none. It sorts after all others."""
_MOST_DECIDED, _MOST_RELATED = 5, 2
"""Maximum numbers of decisions and rules to show with an edit. The first number is for those since the request, and
again for those that name the file; the second is for those that share words with the edit.
"""
_ALIKE = 2
"""Minimum number of uncommon words that an earlier decision or rule shares with the edit."""
_READ_CHARACTERS = 4_000
"""Number of characters of an edit that are compared with decisions. Long files share words with everything."""
_USUAL = SPEAKERS | folded_words()
_SAID = (Kind.OBSERVATION, Kind.NOTE)
_SAME = ("said again", "duplicate")
"""Reasons that rules and reflectors give for replacing a row by one that says the same."""
_RULES = tuple(sorted(IN_FORCE))


# ---- records


@record
class FileTarget:
    """The file that is asked about."""

    path: str
    """As it was given."""
    full: str
    """The absolute path."""
    number: int | None = None
    """Number of the line that is asked about, from 1."""
    line: FileLine | None = None
    """None if no line is asked about, or if the file has no such line."""


class RuleState(StrEnum):
    """Fate of a decision or rule."""

    IN_FORCE = "in force"
    SETTLED = "settled"
    REPLACED = "replaced"
    DROPPED = "dropped"


@record
class Standing:
    """A decision or rule, with the last row that replaced it, if any."""

    row: Observation
    successor: Observation | None = None
    is_kept: bool = False
    """True if the successor says the same: the rule was said again, or folded."""

    @property
    def state(self) -> RuleState:
        if self.row.superseded_by and not self.is_kept:
            return RuleState.REPLACED
        last = self.successor or self.row
        if last.dropped_at:
            return RuleState.DROPPED
        return RuleState.SETTLED if last.status in SETTLED else RuleState.IN_FORCE


@record
class Asked:
    """A person's last request before an edit."""

    seq: int = 0
    """`seq` of the message; 0 if none is known."""
    said: Observation | KeptMessage | None = None
    """A row, or the message itself (see `_SessionView.asked`). None if there is no request."""
    answers: KeptMessage | None = None
    """The agent's last message before the request, if the request says little by itself, or if no row reports it."""


@record
class FileReason:
    """Edits of a file that one row reports, or one edit that is not observed yet."""

    row: Observation | None
    edits: tuple[KeptMessage, ...]
    """The calls that are still stored, in order."""
    path: str
    session: Session | None
    asked: Asked
    decided: tuple[Standing, ...]
    """Decisions and rules before the edits, the oldest first: the session's last ones since the request, the session's
    ones that share the most words with the edits, and the project's last ones that name the file."""


@record
class FileAnswer:
    reasons: tuple[FileReason, ...]
    """The newest first. If an edit with the line was found, only that one."""
    count: int
    """Number of all remembered edits and rows about edits of the file."""
    match: LineMatch | None = None
    """The edit that wrote the line that is asked about."""
    edit: KeptMessage | None = None
    """The call of that edit."""


@record
class RuleReason:
    """A rule with the message that set it."""

    rule: Standing
    said: KeptMessage | None
    """None if the message is not visible, or if the row has none."""
    passage: Passage
    """The line of the message that fits best."""
    session: Session | None


# ---- rules


def why_rule(store: Store, text: str, query: LogQuery, *, limit: int) -> tuple[RuleReason, ...]:
    """Return the decisions, instructions, preferences and corrections that say a text, best first.

    Each contains more than half of the text's words or of their total weight, where a common word weighs a quarter.
    Raise BadUsage if the text has no words, and IndexDamaged if the index of words is damaged.
    """
    asked = Query.of(text).words
    if not asked:
        raise BadUsage("the target has no words", hint="try `om why src/auth.py`")
    wanted = RecallFilter(log=replace(query, types=_RULES, kinds=_SAID, hidden=True), messages=False)
    found = [
        result.row
        for result in recall(store, text, wanted, limit=limit * 4, with_answers=False)
        if result.row is not None and _says_most(asked, result.words) and result.row.reason != UNDONE
    ]
    rules = list({rule.row.id: rule for row in found for rule in (_standing(store, row),)}.values())
    return tuple(_rule_reason(store, rule, asked) for rule in rules[:limit])


def _says_most(asked: Sequence[str], words: Sequence[str]) -> bool:
    return 2 * len(words) > len(asked) or 2 * weight(words) > weight(asked)


def _rule_reason(store: Store, rule: Standing, asked: Sequence[str]) -> RuleReason:
    messages = store.messages.by_seq(rule.row.sources)
    said = next((kept for kept in messages if kept.message.role is Role.USER), messages[0] if messages else None)
    passage = store.index.passages([said.message.text], asked)[0] if said else Passage(text="")
    session = store.sessions.find(rule.row.session) if rule.row.session else None
    return RuleReason(rule=rule, said=said, passage=passage, session=session)


def _standing(store: Store, row: Observation) -> Standing:
    """Return a row with its successor: the last row of the chain of rows that replaced it. There is no successor if one
    row of the chain was forgotten. If the chain begins with rows of the same kind, type and text, the last of these is
    returned as the row.
    """
    latest, is_kept = row, True
    while latest.superseded_by:
        try:
            later = store.rows.find(latest.superseded_by)
        except UnknownId:  # it was forgotten
            return Standing(row=row)
        if latest is row and (later.kind, later.type, later.text) == (row.kind, row.type, row.text):
            row = later
        else:
            is_same = later.kind is Kind.REFLECTION or latest.reason in _SAME
            is_kept = is_kept and is_same and says(later.text, words_of(latest.text))
        latest = later
    return Standing(row=row) if latest is row else Standing(row=row, successor=latest, is_kept=is_kept)


# ---- files


def why_file(store: Store, target: FileTarget, query: LogQuery, *, limit: int) -> FileAnswer:
    """Return the remembered edits of a file that a query selects, with their reasons.

    The file is the one with the absolute path or, if that is not known, any whose path ends with the given one.
    """
    view = _FileView(store, target)
    edits = view.edits(query)
    match = call = None
    if target.line is not None:
        from omcli.observers.rules.files import line_match  # noqa: PLC0415 - only for lines

        made = [each for edit in reversed(edits) for each in zip(edit.calls, edit.changes, strict=True)]
        match = line_match(target.line, [changes for _, changes in made])
        call = made[match.edit][0] if match else None
    chosen = edits if call is None else [edit for edit in edits if call in edit.calls]
    reasons = tuple(view.reason(edit) for edit in chosen[:limit])
    return FileAnswer(reasons=reasons, count=len(edits), match=match, edit=call)


@record
class _Edits:
    """Edits of one file that one row reports, or one call, with the changes that each call made."""

    row: Observation | None
    session: str | None
    path: str
    is_exact: bool
    calls: tuple[KeptMessage, ...]
    changes: tuple[tuple[FileChange, ...], ...]

    @property
    def at(self) -> str:
        return (self.row.dated if self.row else self.calls[-1].message.at) or _NOW

    @property
    def through(self) -> int:
        """`seq` of the last message of the edits, or 0 if none is known."""
        seqs = [kept.seq for kept in self.calls] or (list(self.row.sources) if self.row else [])
        return max(seqs, default=0)


class _FileView:
    """A file as the store knows it. Each session is read once."""

    def __init__(self, store: Store, target: FileTarget) -> None:
        self._store = store
        self._target = target
        self._name = posixpath.basename(target.full)
        self._sessions: dict[str, _SessionView] = {}

    @cached_property
    def _word_rows(self) -> frozenset[int]:
        """Positions of the rows that have the rarest word of the file's name."""
        words = Query.of(self._name).words
        matches = self._store.index.match(words, LogQuery(), most=MOST_MATCHES) if words else ()
        return min(matches, key=lambda match: match.count).rows if matches else frozenset()

    @cached_property
    def _rules(self) -> tuple[Observation, ...]:
        """Decisions and rules that may name the file."""
        query = LogQuery(types=_RULES, kinds=_SAID, hidden=True)
        rows = (logged.observation for logged in self._store.index.rows(self._word_rows, query))
        return tuple(row for row in rows if row.reason != UNDONE)

    def edits(self, query: LogQuery) -> list[_Edits]:
        """Return the edits of the file, the newest first."""
        changes = replace(query, kinds=(Kind.OBSERVATION,), types=tuple(sorted(FILE_CHANGES)), hidden=True)
        rows = self._store.index.rows(self._word_rows, changes)
        reported = (self._of_row(logged.observation) for logged in rows if logged.observation.reason != UNDONE)
        found = [*filter(None, reported), *self._unobserved(query)]
        exact = [edits for edits in found if edits.is_exact]
        return sorted(exact or found, key=lambda edits: (edits.at, edits.through), reverse=True)

    def reason(self, edits: _Edits) -> FileReason:
        session = self._session(edits.session) if edits.session else None
        asked = session.asked(edits) if session else Asked()
        said = session.in_force(asked.seq, edits)[-_MOST_DECIDED:] if session else []
        said += session.related(_text_of(edits, asked), edits) if session else []
        project = session.known.project if session and session.known else None
        full = posixpath.join(project or "", edits.path)
        naming = [
            row for row in self._rules if row.dated <= edits.at and row.project == project and _names(row.text, full)
        ]
        rows = sorted({row.id: row for row in (*naming[-_MOST_DECIDED:], *said)}.values(), key=lambda row: row.dated)
        decided = {rule.row.id: rule for row in rows for rule in (_standing(self._store, row),)}
        return FileReason(
            row=edits.row,
            edits=edits.calls,
            path=edits.path,
            session=session.known if session else None,
            asked=asked,
            decided=tuple(decided.values()),
        )

    def _of_row(self, row: Observation) -> _Edits | None:
        paths = [path for name in ("path", "moved_to") if isinstance(path := row.metadata.get(name), str)]
        found = [(path, place) for path in paths if (place := self._place(path, row.project))]
        if not found:
            return None
        calls = [
            (kept, changes)
            for kept in self._store.messages.by_seq(row.sources)
            if kept.message.role is Role.CALL and (changes := self._changes(kept, row.project))
        ]
        path, place = max(found, key=lambda each: each[1])
        return _edits_of(calls, row=row, session=row.session, path=path, is_exact=place > 1)

    def _unobserved(self, query: LogQuery) -> Iterator[_Edits]:
        """Yield edits that did not fail, in the newest messages that no batch covers yet (`_WAITING_TOKENS`). If the
        query names no session, only the `_WAITING` newest sessions are read.
        """
        from omcli.memory.message import results_by_call  # noqa: PLC0415 - often nothing is pending
        from omcli.observers.rules.tool_events import tool_event  # noqa: PLC0415

        last = _WAITING if query.session is None else None
        for summary in self._store.sessions.summaries(project=query.project or None, last=last):
            session = summary.session
            if summary.is_observed or query.session not in (None, session.id):
                continue
            batch = self._store.batches.newest_unobserved(session.id, max_tokens=_WAITING_TOKENS)
            messages = batch.messages if batch else ()
            results = results_by_call([kept.message for kept in messages])
            for index, replies in results.items():
                call = messages[index]
                event = tool_event(call, messages[replies[0]] if replies else None)
                changes = self._changes(call, session.cwd)
                if event is None or event.failed or not changes or not _is_within(call, query):
                    continue
                path = changes[0].path
                place = self._place(path, call.message.cwd or session.cwd)
                yield _edits_of([(call, changes)], row=None, session=session.id, path=path, is_exact=place > 1)

    def _changes(self, call: KeptMessage, cwd: str | None) -> tuple[FileChange, ...]:
        """Return the changes that an edit makes to the file."""
        from omcli.observers.rules.tool_events import ToolKind, changed_files, tool_event  # noqa: PLC0415

        event = tool_event(call, None)
        if event is None or event.kind not in (ToolKind.EDIT, ToolKind.WRITE):
            return ()
        cwd = call.message.cwd or cwd
        return tuple(
            replace(change, creates=change.creates or event.kind is ToolKind.WRITE)
            for change in changed_files(event.arguments, event.raw)
            if self._place(change.path, cwd) or (change.moved_to and self._place(change.moved_to, cwd))
        )

    def _place(self, path: str, cwd: str | None) -> int:
        """Return 2 if a path is the file's, 1 if it ends with the relative path that was given, otherwise 0."""
        full = posixpath.normpath(posixpath.join(cwd or "", path))
        if full == self._target.full:
            return 2
        return int(not posixpath.isabs(self._target.path) and _ends_with(full, self._target.path))

    def _session(self, session: str) -> _SessionView:
        if session not in self._sessions:
            self._sessions[session] = _SessionView(self._store, session)
        return self._sessions[session]


class _SessionView:
    """The requests, decisions and prompts of a session."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self.known = store.sessions.find(session)
        query = LogQuery(session=session, kinds=(Kind.OBSERVATION,), types=(*sorted(ASKED), *_RULES), hidden=True)
        rows = [logged.observation for logged in store.rows.log(query)]
        told = [row for row in rows if row.sources and row.reason != UNDONE]
        self._rows = sorted(told, key=lambda row: (row.sources[0], row.is_visible))
        said = [each for each in store.messages.outline(session) if each.is_main]
        self._prompts = {each.seq for each in said if each.role is Role.USER}
        self._replies = [each.seq for each in said if each.role is Role.ASSISTANT]
        self._unobserved = {each.seq for each in said if not each.is_covered}
        self._times = {each.seq: each.at for each in said}

    def asked(self, edits: _Edits) -> Asked:
        """Return the person's last request or question before edits: its row, or its message if the row cites
        several prompts. If the last prompt is not observed yet, or no row reports a request, return that prompt.
        """
        asked = [row for row in self._rows if row.type in ASKED and not row.text.startswith(AGENT)]
        said_at = ((row, self._prompts.intersection(row.sources) or row.sources[:1]) for row in asked)
        earlier = [
            (seq, row.is_visible, row.id, row) for row, seqs in said_at for seq in seqs if self._is_before(seq, edits)
        ]
        at, _, _, row = max(earlier, key=lambda each: each[:3], default=(0, False, "", None))
        last = max((seq for seq in self._prompts if self._is_before(seq, edits)), default=0)
        if row is None or last in self._unobserved:
            return Asked(seq=last, said=self._message(last), answers=self._before(last))
        is_repeated = len(self._prompts.intersection(row.sources)) > 1
        said = self._message(at) if is_repeated else None
        text = row.text if said is None else said.message.text
        answers = None if is_distinctive(words_of(text)) else self._before(at)
        return Asked(seq=at, said=said or row, answers=answers)

    def _before(self, seq: int) -> KeptMessage | None:
        """Return the agent's last message before a message."""
        return self._message(max((each for each in self._replies if each < seq), default=0))

    def _message(self, seq: int) -> KeptMessage | None:
        return next(iter(self._store.messages.by_seq([seq])), None)

    def _is_before(self, seq: int, edits: _Edits) -> bool:
        """Return True if a message arrived before edits and is not dated later: a history of prompts may arrive before
        the session itself.
        """
        at = self._times.get(seq)
        return seq < edits.through and not (at and edits.at and at > edits.at)

    def in_force(self, since: int, edits: _Edits) -> list[Observation]:
        """Return the decisions and rules stated in a message or after it, but before edits."""
        rows = (row for row in self._rows if row.type in IN_FORCE)
        return [row for row in rows if since <= row.sources[0] and self._is_before(row.sources[0], edits)]

    def related(self, text: str, edits: _Edits) -> list[Observation]:
        """Return up to `_MOST_RELATED` decisions and rules before edits, those that share the most uncommon words with
        a text (at least `_ALIKE`).
        """
        words = content_terms(text)
        shared = [(len(words & (content_terms(row.text) - _USUAL)), row) for row in self.in_force(0, edits)]
        alike = sorted((each for each in shared if each[0] >= _ALIKE), key=lambda each: each[0])
        return [row for _, row in alike[-_MOST_RELATED:]]


def _text_of(edits: _Edits, asked: Asked) -> str:
    """Return the beginning of the text that was replaced and written, with the path and the request."""
    said = asked.said.message.text if isinstance(asked.said, KeptMessage) else asked.said.text if asked.said else ""
    changes = (change for changes in edits.changes for change in changes)
    written = "\n".join((edits.path, *(f"{each.old}\n{each.new}" for each in changes)))
    return f"{said}\n{written[:_READ_CHARACTERS]}"


def _edits_of(
    calls: Sequence[tuple[KeptMessage, tuple[FileChange, ...]]],
    *,
    row: Observation | None,
    session: str | None,
    path: str,
    is_exact: bool,
) -> _Edits:
    messages, changes = tuple(kept for kept, _ in calls), tuple(change for _, change in calls)
    return _Edits(row=row, session=session, path=path, is_exact=is_exact, calls=messages, changes=changes)


def _is_within(call: KeptMessage, query: LogQuery) -> bool:
    at = call.message.at or ""
    return (query.since is None or query.since <= at) and (query.until is None or at < query.until)


_AROUND_NAMES = lazily(r"[\s`'\"()\[\]{}<>,;:]+")
_UPWARDS = lazily(r"(?:\.{0,2}/)+")


def _names(text: str, full: str) -> bool:
    """Return True if text names a file by its path, or by the end of its path."""
    return any(_ends_with(full, name.rstrip(".!?")) for name in _AROUND_NAMES.split(text))


def _ends_with(full: str, path: str) -> bool:
    """Return True if an absolute path ends with `path`, apart from any `./`, `../` or `/` that `path` begins with."""
    upwards = _UPWARDS.match(path)
    path = posixpath.normpath(path[upwards.end() :] if upwards else path)
    return path != "." and f"/{full}".endswith(f"/{path}")
