"""An agent's reply to `om pending`: token, schema, parsing and validation."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from omcli.base.errors import BadInput, Unusable
from omcli.base.record import positional_record, record, replace
from omcli.llm.replies import label_in
from omcli.llm.schema import (
    LONGEST_TAG,
    MOST_REPLACED,
    MOST_ROWS,
    MOST_SOURCES,
    MOST_TAGS,
    PRIORITIES,
    STATED,
    STATUSES,
    TEXT,
    TEXTS,
    list_of,
    object_of,
    one_of,
    optional,
)
from omcli.memory.batch import Batch, Observed, Observer
from omcli.memory.message import digest
from omcli.memory.observation import ITEM_TYPES, TOOL_EVENTS, Source
from omcli.observers.model.evidence import Evidence
from omcli.observers.model.merge import merge_rows
from omcli.observers.model.reply import FIELDS, ObserverReply, ReplyRow
from omcli.observers.model.validation import validate

_MARK = "om1."
_COPY_HINT = "copy the `token` that `om pending` printed, as it is"


@record
class PendingToken:
    """Identity of the messages and rows shown to an agent."""

    session: str
    after: int
    """`seq` of the last observed message (the cursor), or 0 if no message is pending."""
    through: int
    """`seq` of the last pending message, or 0 without one."""
    counter: str
    """Name of the token counter used to choose the rows."""
    shown: str
    """`shown_digest` of the messages and rows."""

    def encode(self) -> str:
        """Return the token as letters, digits, `-`, `_` and a dot."""
        content = json.dumps([self.session, self.after, self.through, self.counter, self.shown], separators=(",", ":"))
        return f"{_MARK}{base64.urlsafe_b64encode(content.encode()).decode().rstrip('=')}"


def parse_token(token: str) -> PendingToken:
    """Decode a token. Raise BadInput if it is not valid."""
    mark, _, code = token.strip().partition(".")
    try:
        content = json.loads(base64.b64decode(code + "=" * (-len(code) % 4), altchars=b"-_", validate=True))
        session, after, through, counter, shown = content
    except (ValueError, TypeError, RecursionError):
        raise BadInput("token: not a valid token (expected the one from `om pending`)", hint=_COPY_HINT) from None
    are_numbers = all(type(number) is int and 0 <= number < 1 << 63 for number in (after, through))
    if f"{mark}." != _MARK or not are_numbers or not all(isinstance(text, str) for text in (session, counter, shown)):
        raise BadInput("token: not a valid token (expected the one from `om pending`)", hint=_COPY_HINT)
    return PendingToken(session=session, after=after, through=through, counter=counter, shown=shown)


def shown_digest(session: str, messages: Iterable[int], rows: Iterable[str]) -> str:
    """Return a digest of the session, the messages' `seq` and the rows' ids, both in the order of their labels."""
    return digest(session, " ".join(map(str, messages)), *rows)


SCHEMA = object_of({
    "token": TEXT,
    **FIELDS,
    "reflections": list_of(object_of({**STATED, "from": TEXTS})),
    "items": list_of(object_of({"text": TEXT, "type": one_of(*ITEM_TYPES), "tags": TEXTS, "from": TEXTS})),
    "retire": list_of(object_of({"row": TEXT, "reason": TEXT, "by": optional(TEXT)})),
})  # fmt: skip

_CERTAINTIES = ("exact", "estimated")


@record
class ReplyReflection:
    """A reflection that the agent wrote to replace rows."""

    text: str
    priority: str
    kind: str
    status: str
    made_of: tuple[str, ...]
    """Labels, ids or handles of at least one row."""


@record
class ReplyItem:
    """A lasting fact."""

    text: str
    type: str
    tags: tuple[str, ...]
    made_of: tuple[str, ...]


@record
class RetiredRow:
    """A row to drop, with the reason."""

    row: str
    reason: str
    by: str
    """Row that makes this one superfluous, or empty."""


@record
class AgentReply:
    """A parsed reply whose labels are not resolved yet."""

    token: str
    answer: ObserverReply
    """Observations, used rows, task and title."""
    lacks_observations: bool
    """True if the `observations` key is missing or null. An empty list counts as present."""
    reflections: tuple[ReplyReflection, ...]
    items: tuple[ReplyItem, ...]
    retired: tuple[RetiredRow, ...]

    @property
    def is_about_messages(self) -> bool:
        """True if any part of an observer's answer, such as its observations or title, is given and not empty."""
        reply = self.answer
        return bool(reply.rows or reply.used or reply.current_task or reply.next_step or reply.title)

    def messages(self) -> Iterator[tuple[str, str]]:
        """Yield the place, such as `observations[0].sources`, and the label of each cited message."""
        for number, row in enumerate(self.answer.rows):
            yield from ((f"observations[{number}].sources", label) for label in row.sources)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the place and the reference (label, id or handle) of each cited row, except in `used`."""
        for number, row in enumerate(self.answer.rows):
            yield from ((f"observations[{number}].replaces", reference) for reference in row.replaces)
        for number, reflection in enumerate(self.reflections):
            yield from ((f"reflections[{number}].from", reference) for reference in reflection.made_of)
        for number, item in enumerate(self.items):
            yield from ((f"items[{number}].from", reference) for reference in item.made_of)
        for number, retired in enumerate(self.retired):
            yield f"retire[{number}].row", retired.row
            if retired.by:
                yield f"retire[{number}].by", retired.by


def parse_agent_reply(document: object) -> AgentReply:
    """Parse a reply. Raise BadInput with the place of the first error if the document is not a valid reply."""
    top = _JsonObject.of(document, "")
    top.check(
        "schema",
        "token",
        "observations",
        "used",
        "current_task",
        "next_step",
        "title",
        "reflections",
        "items",
        "retire",
    )
    rows = tuple(_row(entry) for entry in top.entries("observations"))
    for number, row in enumerate(rows):
        if row.under is not None and not 0 <= row.under < number:
            raise _fault(
                f"observations[{number}].under", "not a valid position (expected that of an earlier row, from 0)"
            )
    return AgentReply(
        token=top.text("token", required=True),
        answer=ObserverReply(
            rows=rows,
            used=top.label_list("used"),
            current_task=top.text("current_task"),
            next_step=top.text("next_step"),
            title=top.text("title"),
        ),
        lacks_observations=top.content.get("observations") is None,
        reflections=tuple(_reflection(entry) for entry in top.entries("reflections")),
        items=tuple(_item(entry) for entry in top.entries("items")),
        retired=tuple(_retired_row(entry) for entry in top.entries("retire")),
    )


def _row(entry: _JsonObject) -> ReplyRow:
    entry.check(
        "text", "priority", "kind", "status", "at", "refers_to", "refers_to_kind", "sources", "replaces", "under"
    )
    return ReplyRow(
        text=entry.text("text", required=True),
        priority=entry.word("priority", PRIORITIES),
        kind=entry.word("kind"),
        status=entry.word("status", STATUSES),
        at=entry.text("at").replace("T", " ")[:16],
        refers_to=entry.text("refers_to"),
        is_estimate=entry.word("refers_to_kind", _CERTAINTIES) == "estimated",
        sources=entry.label_list("sources", required=True, most=MOST_SOURCES),
        replaces=entry.label_list("replaces", most=MOST_REPLACED),
        under=entry.position("under"),
    )


def _reflection(entry: _JsonObject) -> ReplyReflection:
    # `first` and `last` are ignored, because the days come from the rows.
    entry.check("text", "priority", "kind", "status", "from", "first", "last")
    return ReplyReflection(
        text=entry.text("text", required=True),
        priority=entry.word("priority", PRIORITIES),
        kind=entry.word("kind"),
        status=entry.word("status", STATUSES),
        made_of=entry.label_list("from", required=True),
    )


def _item(entry: _JsonObject) -> ReplyItem:
    entry.check("text", "type", "tags", "from")
    tags = tuple(dict.fromkeys(tag.strip() for tag in entry.texts("tags") if tag.strip()))
    if len(tags) > MOST_TAGS or any(len(tag) > LONGEST_TAG for tag in tags):
        raise _fault(f"{entry.place}.tags", f"at most {MOST_TAGS} tags of {LONGEST_TAG} characters are allowed")
    return ReplyItem(
        text=entry.text("text", required=True),
        type=entry.word("type"),
        tags=tags,
        made_of=entry.label_list("from", required=True),
    )


def _retired_row(entry: _JsonObject) -> RetiredRow:
    entry.check("row", "reason", "by")
    return RetiredRow(
        row=label_in(entry.text("row", required=True)),
        reason=entry.text("reason", required=True),
        by=label_in(entry.text("by")),
    )


@positional_record
class _JsonObject:
    """A JSON object and its place in the reply, such as `items[0]`."""

    content: Mapping[str, object]
    place: str

    @classmethod
    def of(cls, value: object, place: str) -> _JsonObject:
        if not isinstance(value, Mapping):
            raise _fault(place or "the document", "not a valid object")
        return cls(value, place)

    def check(self, *known: str) -> None:
        """Raise BadInput if an unknown key has a value other than null."""
        unknown = [key for key, value in self.content.items() if key not in known and value is not None]
        if unknown:
            raise _fault(self._at(unknown[0]), f"not a valid key (expected one of {', '.join(known)})")

    def text(self, key: str, *, required: bool = False) -> str:
        value = self.content.get(key)
        if value is not None and not isinstance(value, str):
            raise _fault(self._at(key), "not a valid string")
        text = (value or "").strip()
        if required and not text:
            raise _fault(self._at(key), "missing")
        return text

    def word(self, key: str, known: Collection[str] = ()) -> str:
        word = self.text(key).lower()
        if word and known and word not in known:
            raise _fault(self._at(key), f"`{word[:40]}` is not valid (expected one of {', '.join(known)})")
        return word

    def position(self, key: str) -> int | None:
        value = self.content.get(key)
        if value is not None and type(value) is not int:
            raise _fault(self._at(key), "not a valid integer")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        texts: list[str] = []
        for text in self._list(key):
            if not isinstance(text, str):
                raise _fault(self._at(key), "not a valid list of strings")
            texts.append(text)
        return tuple(texts)

    def label_list(self, key: str, *, required: bool = False, most: int | None = None) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(label_in(text) for text in self.texts(key)))
        if required and not found:
            raise _fault(self._at(key), "empty (expected at least one)")
        if most is not None and len(found) > most:
            raise _fault(self._at(key), f"{len(found)} given (at most {most} allowed)")
        return found

    def entries(self, key: str) -> tuple[_JsonObject, ...]:
        found = self._list(key)
        if len(found) > MOST_ROWS:
            hint = "`om pending --limit` shows less at once"
            raise _fault(self._at(key), f"{len(found)} given (at most {MOST_ROWS} allowed)", hint=hint)
        return tuple(_JsonObject.of(value, f"{self._at(key)}[{number}]") for number, value in enumerate(found))

    def _list(self, key: str) -> list[object]:
        value = self.content.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise _fault(self._at(key), "not a valid list")
        return value

    def _at(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def _fault(place: str, what: str, *, hint: str = "") -> BadInput:
    return BadInput(f"{place}: {what}", hint=hint or "`om pending --json` has the schema, under `reply_schema`")


def check_messages(handed: AgentReply, evidence: Evidence) -> None:
    """Raise BadInput if a message's label is unknown, or if a row cites no pending message."""
    for place, label in handed.messages():
        if label not in evidence.shown.labels:
            raise BadInput(f"{place}: `{label}` is not a valid message (expected a label from `om pending`)")
    for number, row in enumerate(handed.answer.rows):
        if not evidence.shown.new.intersection(row.sources):
            raise BadInput(f"observations[{number}].sources: all of them are observed already")


def observe_reply(answer: ObserverReply, evidence: Evidence, batch: Batch, *, rules: Observer) -> Observed:
    """Return a batch's observations: the agent's rows and task, with the tool events that the rules find.

    Raise BadInput if more than half of the agent's rows have a fault: no text, an unknown label, or no new message
    among their sources.
    """
    try:
        reply = validate(answer, evidence, batch, token="", most_rows=MOST_ROWS, verify=False)
    except Unusable as error:
        raise BadInput(f"observations: {error.message}") from None
    by_rules = [draft for draft in rules.observe(batch).drafts if draft.type in TOOL_EVENTS]
    roles = {kept.seq: kept.message.role for kept in evidence.shown.labels.values()}
    rows = merge_rows(reply.drafts, by_rules, roles)
    drafts = (*rows.drafts, *([reply.task] if reply.task else []))
    return Observed(
        drafts=tuple(
            replace(draft, source=Source.AGENT) if draft.source is Source.MODEL else draft for draft in drafts
        ),
        used=reply.used,
        title=reply.title,
        findings=dict(+(reply.findings + Counter(recorded_by_rules=rows.recorded_by_rules))),
    )
