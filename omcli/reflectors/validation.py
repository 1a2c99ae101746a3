"""What a model's answer comes to: every label and every name in it is checked before any row gives way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from omcli.base.record import field, mutable_record, record, replace
from omcli.llm.json_reply import row_text
from omcli.llm.schema import KINDS, LONGEST_TAG, MOST_TAGS, PRIORITIES, STATUSES
from omcli.memory.observation import (
    FAILURES,
    ITEM_TYPES,
    SETTLED,
    Draft,
    Dropped,
    Kind,
    Observation,
    Priority,
    Source,
    Status,
    Type,
)
from omcli.memory.reflection import Material, Reflected
from omcli.memory.tokens import TokenCounter, rows_tokens
from omcli.reflectors.drafts import LASTING_TYPES, folded, in_rows
from omcli.reflectors.prompt import rows_by_label
from omcli.reflectors.reply import ProposedItem, ProposedRow, ReflectorReply
from omcli.text.anchors import searchable, unsupported
from omcli.text.dates.instants import minute
from omcli.text.redaction import redact
from omcli.text.similarity import LEAST_TOUCHED, share, touches, wording

_ITEM_KINDS = {each.value: each for each in ITEM_TYPES}
_MOST_REJECTED = 0.5
"""The part of an answer's reflections that may fail; of a worse answer nothing is believed, and of a text without
labels, which says of no row what became of it, nothing already where one fails."""
_LEAST_REPEATED = 0.6
"""The part of its words that a text has at least of a row that matters and is said to be no more than a repetition."""


@record
class ValidatedReflection:
    """What would be done, and what would then be in sight."""

    reflected: Reflected
    tokens: int
    """Of everything in sight afterwards."""
    written: int
    """Of the reflections alone."""
    holds: bool
    """Whether enough of the answer stood the checks to believe any of it."""


def validate(
    answer: ReflectorReply, material: Material, counter: TokenCounter, *, trims: bool = False, retires: bool = False
) -> ValidatedReflection:
    """The answer as far as it holds. Rows that it does not account for stay in sight, and so do protected ones, and
    those that matter and that it only claims to tell.

    `trims` says that its last reflections are given up, with what they tell, until the target holds; one stays.
    `retires` says that a reason is enough for a row to go that holds or is open; else a newer one has to be named.
    """
    checked = _Checked(material=material, rows=rows_by_label(material), counter=counter, retires=retires)
    checked.keep(answer)
    for merged in answer.merged:
        checked.merge(merged)
    checked.drop(answer)
    if trims:
        checked.trim()
    items = checked.items(answer)
    whole = any(merged.rows is None for merged in answer.merged)
    bearable = 0 if whole else _MOST_REJECTED * len(answer.merged)
    return checked.validate(items, holds=checked.found["rejected"] <= bearable)


@mutable_record
class _Checked:
    """An answer on its way to be believed, part by part."""

    material: Material
    rows: Mapping[str, Observation]
    """By their labels."""
    counter: TokenCounter
    retires: bool
    kept: set[str] = field(default_factory=set)
    """Ids of rows that the answer wants to stay."""
    drafts: list[Draft] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    """Ids of rows that give way."""
    told: set[str] = field(default_factory=set)
    """Ids of rows that the answer accounts for."""
    back: set[str] = field(default_factory=set)
    """Ids of rows that a text which was to take their place does not tell."""
    found: Counter[str] = field(default_factory=Counter)

    def keep(self, answer: ReflectorReply) -> None:
        """Takes down which rows stay."""
        self.kept = {self.rows[label].id for label in answer.keep if label in self.rows}
        self.told |= self.kept
        self.found["unknown"] += sum(label not in self.rows for label in answer.keep)

    def merge(self, merged: ProposedRow) -> None:
        """A reflection in the place of the rows it cites, where it cites nothing else and adds nothing."""
        text = self._clean(merged.text)
        ground = self._ground(merged.rows, text)
        if not ground:
            self.found["rejected"] += 1
            return
        self.told |= {row.id for row in ground}
        if any(draft.text == text for draft in self.drafts):
            self.found["duplicates"] += 1
        elif merged.rows is not None and (same := next((row for row in self.material.rows if row.text == text), None)):
            self._repeat(same, ground)
        else:
            replaced = [row for row in ground if self._may_go(row, text)]
            if replaced or merged.rows is None:
                self.gone |= {row.id for row in replaced}
                self.drafts.append(_reflection(merged, text, ground, replaced))
            else:
                self.found["idle"] += 1  # all that it tells stays in sight

    def _ground(self, labels: Sequence[str] | None, text: str) -> list[Observation]:
        """The rows that a text is made of; none where it cites what was not shown, or names what they do not."""
        wanted = self.rows.keys() if labels is None else set(labels)
        ground = [row for label, row in self.rows.items() if label in wanted]
        if not text or not wanted <= self.rows.keys() or unsupported(text, map(_grounds, ground)):
            return []
        return ground

    def _may_go(self, row: Observation, text: str) -> bool:
        """Whether a row gives way to a text that is made of it. One that must not be lost has to be told in full."""
        if row.id in self.gone or row.id in self.kept:
            return False
        if row.id in self.material.protected and row_text(row.text) not in text:
            self.found["restored"] += 1
            return False
        if _matters(row) and not touches(text, row.text):
            self.back.add(row.id)
            return False
        return True

    def _repeat(self, same: Observation, ground: Sequence[Observation]) -> None:
        """A text that a row has already: those of the others that it repeats give way to that row."""
        self.found["duplicates"] += 1
        if same.id not in self.gone:
            self.kept.add(same.id)
            for row in ground:
                if self._may_go(row, same.text):
                    if share(same.text, row.text) >= (_LEAST_REPEATED if _matters(row) else LEAST_TOUCHED):
                        self._out(row, "duplicate", by=same.id)
                    else:
                        self.back.add(row.id)

    def drop(self, answer: ReflectorReply) -> None:
        """Rows that go untold, where the answer says why and they are not protected."""
        for gone in answer.gone:
            row = self.rows.get(gone.row)
            if row is None or not gone.reason:
                self.found["unknown" if row is None else "rejected_drops"] += 1
                continue
            self.told.add(row.id)
            if row.id in self.material.protected:
                self.found["restored"] += row.id not in self.kept
            elif row.id not in self.gone and row.id not in self.kept:
                by = self.rows.get(gone.by)
                by = None if by is row else by
                if by is None and _stands(row) and not self.retires:
                    self.back.add(row.id)
                else:
                    self._out(row, gone.reason, by=by.id if by else None)

    def _out(self, row: Observation, reason: str, *, by: str | None = None) -> None:
        self.gone.add(row.id)
        self.dropped.append(Dropped(row=row.id, reason=reason, by=by))

    def trim(self) -> None:
        """Gives up the last reflections until the target holds."""
        while len(self.drafts) > 1 and self.tokens > self.material.target:
            told = frozenset(self.drafts.pop().replaces)
            self.gone -= told & self.material.protected
            self.dropped += [Dropped(row=row, reason="trimmed") for row in sorted(told - self.material.protected)]
            self.found["trimmed"] += 1

    def items(self, answer: ReflectorReply) -> tuple[Draft, ...]:
        """ProposedItem facts, each once, that hold nothing their rows do not hold."""
        known = {wording(row.text) for row in self.material.rows if row.kind is Kind.ITEM}
        drafts: dict[str, Draft] = {}
        for item in answer.items:
            text = self._clean(item.text)
            ground = self._ground(item.rows, text)
            if not ground or (item.rows is not None and _is_foreign(text, ground)):
                self.found["rejected_items"] += 1
            elif wording(text) in known or wording(text) in drafts:
                self.found["duplicates"] += 1
            else:
                drafts[wording(text)] = _item(item, text, ground)
        return tuple(drafts.values())

    @property
    def tokens(self) -> int:
        """Of what would be in sight."""
        left = (row for row in self.material.rows if row.id not in self.gone)
        return rows_tokens(left, self.counter) + self.written

    @property
    def written(self) -> int:
        """Tokens of the reflections."""
        return sum(self.counter.text(draft.text) for draft in self.drafts)

    def validate(self, items: tuple[Draft, ...], *, holds: bool) -> ValidatedReflection:
        """What comes of it."""
        self.found["kept_back"] += len(self.back - self.gone)
        self.found["unaccounted"] += sum(row.id not in self.told for row in self.material.rows)
        self.drafts = _joined(self.drafts, self.material.most_rows)
        anything = bool(self.drafts) or len(self.gone) < len(self.material.rows)
        return ValidatedReflection(
            reflected=Reflected(
                reflections=tuple(self.drafts),
                dropped=tuple(self.dropped),
                items=items,
                findings={name: number for name, number in self.found.items() if number},
            ),
            tokens=self.tokens,
            written=self.written,
            holds=holds and anything,
        )

    def _clean(self, text: str) -> str:
        redacted = redact(text)
        self.found["redacted"] += sum(redacted.counts.values())
        return row_text(redacted.text)


def _holds(row: Observation) -> bool:
    """Whether a row says what holds until somebody says otherwise, or what went wrong and was not mended."""
    return row.is_in_force or (row.type in FAILURES and row.status is Status.OPEN)


def _stands(row: Observation) -> bool:
    """Whether a row holds, or is high and not over: rules alone never let it out of sight."""
    return _holds(row) or (row.priority is Priority.HIGH and row.status not in SETTLED)


def _matters(row: Observation) -> bool:
    return row.priority is Priority.HIGH or _holds(row)


def _is_foreign(text: str, rows: Sequence[Observation]) -> bool:
    """Whether a text that cites rows has not a word of theirs."""
    return not any(share(row.text, text) for row in rows)


def _grounds(row: Observation) -> str:
    """What a reflection on a row may name: what it says, and when that was."""
    return searchable(f"{row.text} {minute(row.dated)} {row.refers_to or ''}")


def _reflection(
    merged: ProposedRow, text: str, ground: Sequence[Observation], replaced: Sequence[Observation]
) -> Draft:
    """A row of what a model wrote. It matters no less than what it cites, and what was open is not closed unsaid."""
    draft = folded(ground, text, reason="reflected")
    said = PRIORITIES.get(merged.priority)
    cited = draft.priority if merged.rows is not None else None
    told = [priority for priority in (said, cited) if priority]
    still_open = Status.OPEN if draft.status is Status.OPEN else None
    return replace(
        draft,
        type=_type(merged, draft, ground),
        priority=max(told, key=lambda priority: priority.importance, default=Priority.MEDIUM),
        status=STATUSES.get(merged.status, still_open),
        metadata={"folded": len(ground), "first": ground[0].dated[:10], "last": ground[-1].dated[:10]},
        replaces=tuple(row.id for row in replaced),
        source=Source.MODEL,
    )


def _type(merged: ProposedRow, draft: Draft, ground: Sequence[Observation]) -> Type:
    if merged.kind == "error":
        return next((row.type for row in ground if row.type in FAILURES), Type.BLOCKER)
    return KINDS.get(merged.kind, Type.FACT if merged.rows is None else draft.type)


def combined(parts: Sequence[Reflected], most_rows: int) -> Reflected:
    """What came of rows that were folded part by part, of at most so many reflections where a number is given."""
    findings = sum((Counter(part.findings) for part in parts), Counter[str]())
    return Reflected(
        reflections=tuple(_joined([draft for part in parts for draft in part.reflections], most_rows)),
        dropped=tuple(dropped for part in parts for dropped in part.dropped),
        items=tuple({wording(item.text): item for part in parts for item in part.items}.values()),
        findings=dict(findings),
        attempts=sum(part.attempts for part in parts),
    )


def _joined(drafts: Sequence[Draft], most: int) -> list[Draft]:
    """Reflections as so many rows, where a number is given."""
    if not most or len(drafts) <= most:
        return list(drafts)
    return [_one(some) for some in in_rows(drafts, most_rows=most)]


def _one(drafts: Sequence[Draft]) -> Draft:
    strongest = max(drafts, key=lambda draft: ((draft.priority or Priority.LOW).importance, draft.importance))
    return replace(
        strongest,
        text=" · ".join(draft.text for draft in drafts),
        sources=tuple(sorted({seq for draft in drafts for seq in draft.sources})),
        event_at=max((draft.event_at for draft in drafts if draft.event_at), default=None),
        refers_to=None,
        status=None,
        supports=tuple(dict.fromkeys(row for draft in drafts for row in draft.supports)),
        replaces=tuple(row for draft in drafts for row in draft.replaces),
    )


def _item(item: ProposedItem, text: str, ground: Sequence[Observation]) -> Draft:
    kind = _ITEM_KINDS.get(item.kind, Type.KNOWLEDGE)
    were = (row.type.value for row in ground if row.type in LASTING_TYPES) if item.rows else ()
    told = (row_text(tag)[:LONGEST_TAG] for tag in item.tags)
    draft = folded(ground, text, reason="reflected")
    return replace(
        draft,
        type=kind,
        status=None,
        tags=tuple(dict.fromkeys(filter(None, (*were, *told))))[:MOST_TAGS],
        metadata={"category": item.category} if item.category else {},
        replaces=(),
        reason=None,
        source=Source.MODEL,
    )
