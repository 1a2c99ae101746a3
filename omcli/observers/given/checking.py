"""What an agent handed in, as drafts: what it says of messages is checked like a model's reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from omcli.memory import calendar
from omcli.memory.anchors import searchable, unsupported
from omcli.memory.errors import BadInput, Unusable
from omcli.memory.observation import ITEM_TYPES, Draft, Observation, Source, Status, Type
from omcli.memory.patterns import lazily
from omcli.memory.ports import Batch, Dropped, Observed, Observer, Reflected
from omcli.memory.record import field, mutable_record, replace
from omcli.memory.redaction import redact
from omcli.memory.replies import row_text
from omcli.memory.worth import PINNED
from omcli.observers.given.document import MOST_ROWS, Handed, Item, Reflection
from omcli.observers.model.answer import Answer
from omcli.observers.model.believing import IMPORTANCE, TYPES, believed
from omcli.observers.model.evidence import Evidence
from omcli.observers.model.merging import merged
from omcli.observers.model.standing import TOOL_EVENTS, UNVERIFIED

_DAY = lazily(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")


def check_messages(handed: Handed, evidence: Evidence) -> None:
    """Raises BadInput for a message that was not shown, and for a row that is about none of the waiting ones."""
    for place, label in handed.messages():
        if label not in evidence.shown.labels:
            raise BadInput(f"{place}: there is no message `{label}`", hint="labels are those that `om pending` printed")
    for number, row in enumerate(handed.answer.rows):
        if not evidence.shown.new.intersection(row.sources):
            raise BadInput(f"observations[{number}].sources: all of them were observed before")


def observed(answer: Answer, evidence: Evidence, batch: Batch, *, rules: Observer) -> Observed:
    """What a batch gives: of what was said the agent's rows, of what tools did those of the rules.

    Raises BadInput where most of the rows have no text once secrets are out.
    """
    try:
        told = believed(answer, evidence, batch, token="", most_rows=MOST_ROWS, verify=False)
    except Unusable as error:
        raise BadInput(f"observations: {error.message}") from None
    by_rules = [draft for draft in rules.observe(batch).drafts if draft.type in TOOL_EVENTS]
    roles = {kept.seq: kept.message.role for kept in evidence.shown.labels.values()}
    rows = merged(told.drafts, by_rules, roles)
    drafts = (*rows.drafts, *([told.task] if told.task else []))
    return Observed(
        drafts=tuple(
            replace(draft, source=Source.AGENT) if draft.source is Source.MODEL else draft for draft in drafts
        ),
        used=told.used,
        title=told.title,
        findings=dict(+(told.findings + Counter(recorded_by_rules=rows.recorded_by_rules))),
    )


def reflected(handed: Handed, rows: Mapping[str, Observation]) -> Reflected:
    """What becomes of rows. `rows` has every one that is referred to.

    A row that a person wrote or pinned stays in sight, whatever is made of it. Raises BadInput where it is retired, and
    for a reflection without text once secrets are out.
    """
    checking = _Checking(rows=rows)
    dropped = tuple(
        Dropped(row=rows[one.row].id, reason=checking.line(one.reason, ""), by=rows[one.by].id if one.by else None)
        for one in handed.retired
    )
    for number, one in enumerate(handed.retired):
        if _is_protected(rows[one.row]):
            raise BadInput(f"retire[{number}].row: a person wrote or pinned it, and only a person takes it back")
        if one.by and rows[one.by].id == rows[one.row].id:
            raise BadInput(f"retire[{number}].by: a row does not take its own place")
    reflections = tuple(checking.reflection(one, f"reflections[{n}]") for n, one in enumerate(handed.reflections))
    items = tuple(checking.item(one, f"items[{number}]") for number, one in enumerate(handed.items))
    return Reflected(reflections=reflections, dropped=dropped, items=items, findings=dict(+checking.findings))


@mutable_record
class _Checking:
    """Texts being checked, and what was found wrong with them."""

    rows: Mapping[str, Observation]
    findings: Counter[str] = field(default_factory=Counter)

    def reflection(self, given: Reflection, place: str) -> Draft:
        """The row that takes the place of others."""
        made_of = self._all(given.made_of)
        draft = self._draft(
            given.text,
            place,
            made_of,
            type_=TYPES.get(given.kind, Type.FACT),
            importance=IMPORTANCE[given.priority or "medium"],
        )
        return replace(
            draft,
            status=Status(given.status) if given.status else None,
            refers_to=self._stretch(given.first, given.last),
            replaces=tuple(row.id for row in made_of if not _is_protected(row)),
            reason="reflected",
        )

    def item(self, given: Item, place: str) -> Draft:
        """The lasting fact."""
        known = {str(kind): kind for kind in ITEM_TYPES}
        self.findings["types"] += given.type not in known
        draft = self._draft(
            given.text,
            place,
            self._all(given.made_of),
            type_=known.get(given.type, Type.KNOWLEDGE),
            importance=IMPORTANCE["medium"],
        )
        return replace(draft, tags=(*(self.line(tag, f"{place}.tags") for tag in given.tags), *draft.tags))

    def line(self, text: str, place: str) -> str:
        """A text as a row has it: one line, without secrets. Raises BadInput where nothing is left of it."""
        redacted = redact(text)
        line = redact(row_text(redacted.text))
        self.findings["redacted"] += sum((*redacted.counts.values(), *line.counts.values()))
        if place and not line.text:
            raise BadInput(f"{place}: nothing is left of it once secrets are out")
        return line.text

    def _draft(self, text: str, place: str, made_of: tuple[Observation, ...], *, type_: Type, importance: int) -> Draft:
        line = self.line(text, f"{place}.text")
        missing = unsupported(line, [searchable(f"{row.dated[:10]} {row.text}") for row in made_of])
        self.findings[UNVERIFIED] += bool(missing)
        return Draft(
            text=line,
            type=type_,
            importance=importance,
            sources=tuple(sorted({seq for row in made_of for seq in row.sources})),
            event_at=max(row.dated for row in made_of),
            tags=(UNVERIFIED,) if missing else (),
            metadata={UNVERIFIED: list(missing)} if missing else {},
            supports=tuple(row.id for row in made_of),
            source=Source.AGENT,
        )

    def _all(self, references: Iterable[str]) -> tuple[Observation, ...]:
        return tuple({row.id: row for row in (self.rows[reference] for reference in references)}.values())

    def _stretch(self, first: str, last: str) -> str | None:
        """The days from one to the other; what is no day, or runs backwards, is left out."""
        days = [day for given in (first, last) if given and (day := _day(given))]
        self.findings["dates"] += bool(first) + bool(last) - len(days)
        if len(days) < 2 or days[0] == days[1]:
            return days[0] if days else None
        if days[0] > days[1]:
            self.findings["dates"] += 1
            return None
        return "/".join(days)


def _day(given: str) -> str | None:
    found = _DAY.fullmatch(given)
    return calendar.day(*map(int, found.groups())) if found else None


def _is_protected(row: Observation) -> bool:
    return row.source is Source.USER or PINNED in row.tags
