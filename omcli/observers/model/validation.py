"""Validation of a model's reply: labels must exist, anchors must occur in the sources, and dates must be valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from omcli.base import lazily
from omcli.base.errors import Unusable
from omcli.base.record import field, mutable_record, record, replace
from omcli.llm.replies import LONGEST_ROW, row_text
from omcli.llm.schema import IDENTITY, KINDS, MOST_REPLACED, MOST_SOURCES, ONLY_HEARD, PRIORITIES, RULED, STATUSES
from omcli.memory.batch import Batch
from omcli.memory.message import Message, Role
from omcli.memory.observation import (
    CURRENT,
    FAILURES,
    IN_FORCE,
    NEXT_STEP,
    OVERRULED,
    PINNED,
    SETTLED,
    UNVERIFIED,
    Draft,
    Observation,
    Priority,
    Source,
    Status,
    Type,
)
from omcli.observers.model.authority import Authority, is_from_user
from omcli.observers.model.evidence import Evidence
from omcli.observers.model.prompt import without_token
from omcli.observers.model.reply import ObserverReply, ReplyRow
from omcli.observers.rules.sentences import text_parts
from omcli.pack.tail import excerpt
from omcli.text import calendar
from omcli.text.clean import AGENT, clean, one_line
from omcli.text.phrases import OUTPUT_OF, with_times
from omcli.text.redaction import redact
from omcli.text.similarity import is_repeated, says, without_numbers, without_repeats
from omcli.text.spoken_dates import each_spoken_date, spoken_date
from omcli.text.terms import terms_of

_WITHOUT_STATUS = frozenset({Type.FACT, Type.PREFERENCE})
_MOST_READ, _MOST_USED = 200, 50
_LONGEST_TASK, _LONGEST_PARENT = 400, 80
_TITLE = (3, 60)
_MINUTE = lazily(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}")


@record
class ValidatedReply:
    """The valid part of a reply."""

    drafts: tuple[Draft, ...]
    """Rows in the order of the reply."""
    used: tuple[str, ...]
    """Ids of the context rows that the reply cited as used, or repeated."""
    task: Draft | None
    """The current task, if it changed."""
    title: str | None
    is_empty: bool
    """True if the reply had no rows, not even invalid ones."""
    findings: Counter[str]
    """Number of corrections, by kind."""


def validate(
    answer: ObserverReply, evidence: Evidence, batch: Batch, *, token: str, most_rows: int, verify: bool
) -> ValidatedReply:
    """Return the valid part of a reply, at most `most_rows` rows, without the fence's `token` in its texts. With
    `verify`, reject rows that would otherwise be marked as unverified.

    Raise Unusable if more than half of the rows have a fault: they lack text, use unknown labels, or cite no new
    message.
    """
    authority = Authority(evidence=evidence, earlier=batch.context_rows)
    trial = _CheckedReply(
        evidence=evidence, batch=batch, token=token, verify=verify, cites=answer.cites, authority=authority
    )
    drafts = [trial.draft(row) for row in answer.rows[:_MOST_READ]]
    if trial.rejected * 2 > len(drafts):
        raise Unusable(f"{trial.rejected} of {len(drafts)} rows have no text, or cite labels that do not exist")
    named = [_under(place, answer.rows[place].under, drafts) for place, draft in enumerate(drafts) if draft]
    once = merge_repeated(named)
    kept, used = trial.without_known(once)
    trial.findings["duplicates"] += len(named) - len(once)
    trial.findings["rows_left_out"] = len(kept[most_rows:])
    return ValidatedReply(
        drafts=kept[:most_rows],
        used=tuple(dict.fromkeys((*trial.used(answer.used), *used))),
        task=trial.task(answer),
        title=trial.title(answer.title),
        is_empty=not answer.rows,
        findings=+trial.findings,
    )


@mutable_record
class _CheckedReply:
    """A reply during validation, with counts of its faults."""

    evidence: Evidence
    batch: Batch
    token: str
    verify: bool
    cites: bool
    authority: Authority
    rejected: int = 0
    findings: Counter[str] = field(default_factory=Counter)

    def draft(self, row: ReplyRow) -> Draft | None:
        text = self.text(row.text)
        sources = row.sources or (() if self.cites else self.evidence.nearest_message(text, row.at))
        fault = self._fault(row, text, sources)
        if fault:
            self.findings[fault] += 1
            self.rejected += 1
            return None
        return self._checked_draft(row, text, self.evidence.in_order(sources)[:MOST_SOURCES])

    def _checked_draft(self, row: ReplyRow, text: str, sources: Sequence[str]) -> Draft | None:
        """Return the draft for a row whose labels exist, or None if it is unverified and `verify` is set."""
        kind, is_identity = self._type(row, sources), row.kind == IDENTITY
        attribution = self.authority.attribution(text, kind, sources, is_identity=is_identity)
        sources = attribution.sources
        if attribution.prefix:
            text, kind, status, is_identity = row_text(f"{attribution.prefix}{text}"), Type.FACT, None, False
        else:
            status = self._status(row, kind)
        is_ruling = (is_identity or kind in IN_FORCE) and self._is_asked(sources)
        status = None if is_ruling and status in SETTLED else status  # only a later row retires it
        self.findings["attributed"] += bool(attribution.prefix)
        priority = PRIORITIES.get(row.priority, Priority.MEDIUM)
        refers_to, is_estimate = self._row_date(row, text, sources)
        dates = self._said_date_list(sources, refers_to or "")
        recorded = self.evidence.recorded
        cited = self.evidence.rows(label for label in row.replaces if not recorded.is_shared(label))
        supporting, missing = self.evidence.support(text, sources, (*_texts_of(cited), *dates))
        self.findings["sources_added"] += len(supporting) > len(sources)
        may_go = [old for old in cited if self.authority.may_replace(old, text, attribution, status)]
        replaced = [] if missing else rows_to_replace(may_go, text, status)[:MOST_REPLACED]
        self.findings["not_replaced"] += len(cited) - len(replaced)
        heard = attribution.prefix or ("" if attribution.also else self.authority.heard_from(text, supporting))
        named = text if text.startswith((OUTPUT_OF, heard)) else row_text(f"{heard}{text}")
        draft = Draft(
            text=with_earlier(named, replaced),
            type=kind,
            importance=min(priority.importance, Priority.MEDIUM.importance) if heard else priority.importance,
            sources=tuple(sorted({*attribution.also, *(kept.seq for kept in self.evidence.messages(supporting))})),
            status=status,
            event_at=self._event_at(row.at, sources),
            refers_to=refers_to,
            tags=(IDENTITY,) if is_identity else (),
            metadata={
                **({"refers_to_kind": "estimated"} if is_estimate else {}),
                **({ONLY_HEARD: True} if heard and attribution.prefix != AGENT else {}),
                **({RULED: True} if is_ruling and kind is Type.DECISION else {}),
            },
            replaces=tuple(old.id for old in replaced),
            reason="replaced" if replaced else None,
            source=Source.MODEL,
        )
        return self._mark_missing(draft, missing) if missing else draft

    def text(self, given: str) -> str:
        """Return text on one line, cleaned, without secrets, cut to the length of a row and, if it is a loop, without
        the repetitions. Count these corrections.
        """
        line = one_line(clean(without_token(self.token, given)))
        redacted = redact(line)
        once = without_repeats(redacted.text)
        self.findings["cleaned"] += line != given.strip()
        self.findings["redacted"] += sum(redacted.counts.values())
        self.findings["collapsed"] += once != redacted.text
        self.findings["cut"] += len(once) > LONGEST_ROW
        return row_text(once)

    def without_known(self, drafts: Sequence[Draft]) -> tuple[tuple[Draft, ...], tuple[str, ...]]:
        """Return the drafts, except those that replace nothing and have the text of a context row. Also return the ids
        of these context rows.
        """
        standing = {row.text: row.id for row in self.batch.context_rows}
        known = [draft for draft in drafts if draft.text in standing and not draft.replaces]
        self.findings["duplicates"] += len(known)
        return tuple(draft for draft in drafts if draft not in known), tuple(standing[draft.text] for draft in known)

    def used(self, labels: Sequence[str]) -> tuple[str, ...]:
        known = [label for label in labels if label in self.evidence.recorded.labels]
        return tuple(row.id for row in self.evidence.rows(known[:_MOST_USED]))

    def task(self, answer: ObserverReply) -> Draft | None:
        """Return a row for the current task, or None: if the reply names no task, if neither the task nor the next step
        has changed, if one of them contains unknown anchors, or if the task has no sources (see
        `Authority.task_sources`).

        A next step that is only heard is left out.
        """
        texts = (self.text(answer.current_task), self.text(answer.next_step))
        text, step = (each[:_LONGEST_TASK].rstrip() for each in texts)
        if step and self.authority.is_only_heard(step):
            self.findings["attributed"] += 1
            step = ""
        earlier = [row for row in self.batch.context_rows if CURRENT in row.tags]
        if not text or any(row.text == text and row.metadata.get(NEXT_STEP, "") == step for row in earlier):
            return None
        everything = tuple(self.evidence.shown.labels)
        _, missing = self.evidence.support(f"{text}\n{step}", everything, _texts_of(self.batch.context_rows))
        if missing:
            self.findings[UNVERIFIED] += 1
            return None
        own = self.authority.task_sources(f"{text}\n{step}")
        if not own:
            self.findings["attributed"] += 1
            return None
        last = self.evidence.in_order(self.evidence.shown.new)[-1]
        kept = self.evidence.shown.labels[last]
        return Draft(
            text=text,
            type=Type.TASK,
            importance=Priority.MEDIUM.importance,
            sources=own,
            status=Status.OPEN,
            event_at=kept.message.at,
            tags=(CURRENT,),
            metadata={NEXT_STEP: step} if step else {},
            replaces=tuple(row.id for row in earlier),
            reason="the task changed" if earlier else None,
            source=Source.MODEL,
        )

    def title(self, given: str) -> str | None:
        text = self.text(given)
        return text if _TITLE[0] <= len(text) <= _TITLE[1] else None

    def _fault(self, row: ReplyRow, text: str, sources: Sequence[str]) -> str | None:
        """Return the name of the fault for which a row is rejected, or None if it has none."""
        if not text:
            return "without_text"
        if not sources:
            return "without_sources"
        known = self.evidence.shown.labels
        if any(label not in known for label in sources) or any(
            label not in self.evidence.recorded.labels for label in row.replaces
        ):
            return "unknown_labels"
        return None if any(label in self.evidence.shown.new for label in sources) else "said_before"

    def _type(self, row: ReplyRow, sources: Sequence[str]) -> Type:
        if row.kind == "" and row.status == "done":
            return Type.OUTCOME
        kind = KINDS.get(row.kind, Type.FACT)
        return Type.PLAN if kind is Type.REQUEST and not self._is_asked(sources) else kind

    def _is_asked(self, sources: Sequence[str]) -> bool:
        """Return True if the user wrote one of these messages."""
        return any(is_from_user(kept.message) for kept in self.evidence.messages(sources))

    def _status(self, row: ReplyRow, kind: Type) -> Status | None:
        status = STATUSES.get(row.status)
        if status is Status.RESOLVED and not (row.replaces or kind is Type.BLOCKER):
            self.findings["status"] += 1
            return None
        if status is Status.OPEN and kind in _WITHOUT_STATUS:
            return None
        return Status.OPEN if status is None and kind is Type.BLOCKER else status

    def _event_at(self, given: str, sources: Sequence[str]) -> str | None:
        """Return the time of the message that a row is about, or None if no time is known.

        A row is about the message at the given minute, preferably a cited one, or otherwise about the last new message
        before that minute. If the minute is missing or outside the batch, it is about the last cited message with a
        time.
        """
        shown = self.evidence.shown
        minutes = {label: shown.minutes[label] for label in (*sources, *shown.new) if label in shown.minutes}
        same = [label for label, minute in minutes.items() if minute == given]
        times = sorted((minutes[label], label) for label in minutes if label in shown.new)
        if not same and times and _MINUTE.fullmatch(given) and times[0][0] <= given <= times[-1][0]:
            same = [max(entry for entry in times if entry[0] <= given)[1]]
        self.findings["times"] += not same and bool(given) and bool(times)
        labels = same or [label for label in sources if label in minutes][-1:]
        return shown.labels[labels[0]].message.at if labels else None

    def _row_date(self, row: ReplyRow, text: str, sources: Sequence[str]) -> tuple[str | None, bool]:
        """Return the date that a row refers to, and True if it is an estimate."""
        messages = [kept.message for kept in self.evidence.messages(sources)]
        spoken = row_date(text, row.refers_to, messages)
        self.findings["dates"] += spoken.is_unreal or (spoken.is_other and not row.is_estimate)
        return spoken.date, bool(spoken.date) and (spoken.is_other or row.is_estimate)

    def _said_date_list(self, sources: Sequence[str], date: str) -> list[str]:
        """Return the first date in each sentence of the sources, and `date` if it overlaps one of them."""
        said = [each for kept in self.evidence.messages(sources) for each in _date_list(kept.message)]
        return [*said, date] if date and any(_overlap(date, each) for each in said) else said

    def _mark_missing(self, draft: Draft, missing: Sequence[str]) -> Draft | None:
        """Mark a row as unverified and give it low priority and no status. Return None instead if `verify` is set."""
        self.findings[UNVERIFIED] += 1
        if self.verify:
            return None
        return replace(
            draft,
            importance=Priority.LOW.importance,
            status=None,
            tags=(*draft.tags, UNVERIFIED),
            metadata={**draft.metadata, UNVERIFIED: list(missing)},
        )


def _texts_of(rows: Iterable[Observation]) -> list[str]:
    """Return the text of verified rows. New rows may use the anchors in it."""
    return [row.text for row in rows if UNVERIFIED not in row.tags]


def _under(place: int, under: int | None, drafts: Sequence[Draft | None]) -> Draft:
    """Return a draft with the beginning of its parent row's text as `under`, or unchanged if it has no parent."""
    draft = drafts[place]
    assert draft is not None
    parent = drafts[under] if under is not None and 0 <= under < place else None
    return replace(draft, under=parent.text[:_LONGEST_PARENT]) if parent else draft


_Drafts = list[Draft]


def merge_repeated(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Merge rows with the same text and type, and join their sources.

    If the reply repeats itself, also merge rows with the same sources that differ only in numbers, and add the number
    of rows to the text.
    """
    loops = is_repeated([draft.text for draft in drafts])
    groups = _group_by([[draft] for draft in drafts], lambda group: (group[0].text, group[0].type))
    if loops:
        groups = _group_by(groups, lambda group: (without_numbers(group[0].text), group[0].type, _sources(group)))
    return tuple(_as_one(group, is_counted=loops) for group in groups)


def _group_by(groups: Sequence[_Drafts], key: Callable[[_Drafts], object]) -> list[_Drafts]:
    found: dict[object, _Drafts] = {}
    for group in groups:
        found.setdefault(key(group), []).extend(group)
    return list(found.values())


def _sources(group: _Drafts) -> tuple[int, ...]:
    return tuple(sorted({seq for draft in group for seq in draft.sources}))


def _as_one(group: _Drafts, *, is_counted: bool) -> Draft:
    first = group[0]
    if len(group) == 1:
        return first
    return replace(
        first,
        text=with_times(first.text, len(group)) if is_counted else first.text,
        importance=max(draft.importance for draft in group),
        sources=_sources(group),
        replaces=tuple(dict.fromkeys(row for draft in group for row in draft.replaces)),
    )


_SAID = OVERRULED | {
    Type.REQUEST, Type.QUESTION, Type.PLAN, Type.TASK, Type.OUTCOME, Type.BLOCKER, Type.EVENT, Type.CORRECTION,
}  # fmt: skip
_PROBLEMS = FAILURES | {Type.BLOCKER}
_EARLIER_CHARS = 400


def rows_to_replace(rows: Sequence[Observation], text: str, status: Status | None) -> list[Observation]:
    """Return the rows that a new row with this text and status may replace.

    A row may be replaced if it is mutable, not written by the user, not pinned, and shares a word with the new text.
    Failures and blockers may be replaced only by a settled row. Other tool events are never replaced.
    """
    new, *old = terms_of([text, *(row.text for row in rows)])
    return [row for row, terms in zip(rows, old, strict=True) if terms & new and _may_replace(row, status)]


def with_earlier(text: str, replaced: Sequence[Observation]) -> str:
    """Append to `text` the replaced decisions, facts, instructions and preferences that it does not contain."""
    held = [row.text for row in replaced if row.type in OVERRULED and not says(text, row.text)]
    return f"{text} (earlier: {excerpt('; '.join(held), _EARLIER_CHARS)})" if held else text


def _may_replace(row: Observation, status: Status | None) -> bool:
    if not row.is_mutable or row.source is Source.USER or PINNED in row.tags:
        return False
    return status in SETTLED if row.type in _PROBLEMS else row.type in _SAID


_DAY = lazily(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_MONTH = lazily(r"([0-9]{4})-(0[1-9]|1[0-2])")
_SAID_ROLES = frozenset({Role.USER, Role.ASSISTANT})
_REMEMBERED_DATES = 512
"""Number of messages whose dates are cached. The rows of a reply often cite the same messages."""


@record
class RowDate:
    """The date that a row refers to, and any doubts about it."""

    date: str | None
    """The date in the notation of `text.calendar`, or None."""
    is_unreal: bool = False
    """True if the model gave an invalid date."""
    is_other: bool = False
    """True if the row's text or its messages name dates, and none of the first dates that they name overlaps `date`."""


def row_date(text: str, given: str, messages: Sequence[Message]) -> RowDate:
    """Return the date that a row refers to.

    There is none if the row's text names several dates. Otherwise it is the model's date if that is valid, or else the
    date in the text, provided that its words mean the same date for all messages.
    """
    date = _checked_date(given)
    # All messages of a day give the same reading.
    days = {(message.at and calendar.day_of(message.at, message.utc_offset)): message for message in messages}
    each = [set(each_spoken_date(text, at=message.at, utc_offset=message.utc_offset)) for message in days.values()]
    if any(len(dates) > 1 for dates in each):
        return RowDate(date=None, is_unreal=bool(given) and date is None)
    of_row = {next(iter(dates), None) for dates in each}
    if date is None:
        return RowDate(date=of_row.pop() if len(of_row) == 1 else None, is_unreal=bool(given))
    spoken = (message for message in messages if message.role in _SAID_ROLES)
    readings = (of_row | {_date_in(message) for message in spoken}) - {None}
    return RowDate(
        date=date, is_other=bool(readings) and not any(_overlap(date, reading or "") for reading in readings)
    )


@lru_cache(maxsize=_REMEMBERED_DATES)
def _date_in(message: Message) -> str | None:
    return spoken_date(message.text, at=message.at, utc_offset=message.utc_offset)


@lru_cache(maxsize=_REMEMBERED_DATES)
def _date_list(message: Message) -> frozenset[str]:
    """Return the first date that each sentence of a message names."""
    parts = (part.text for part in text_parts(message.text))
    return frozenset(filter(None, (spoken_date(part, at=message.at, utc_offset=message.utc_offset) for part in parts)))


def _checked_date(given: str) -> str | None:
    if found := _DAY.fullmatch(given):
        return calendar.day(*map(int, found.groups()))
    if found := _MONTH.fullmatch(given):
        return calendar.month(*map(int, found.groups()))
    return None


def _overlap(date: str, reading: str) -> bool:
    """Return True if a date overlaps with a reading, which may be a range. Either may be less precise than a day."""
    first, _, last = reading.partition("/")
    last = last or first
    return first[: len(date)] <= date[: len(first)] and date[: len(last)] <= last[: len(date)]
