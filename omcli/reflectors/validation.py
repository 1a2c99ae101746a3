"""Validation of a model's reply: which rows it may keep, drop or replace, given their labels and anchors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from omcli.base.record import field, mutable_record, record, replace
from omcli.llm.replies import row_text
from omcli.llm.schema import (
    IDENTITY,
    KINDS,
    LONGEST_TAG,
    MOST_TAGS,
    ONLY_FROM_USER,
    ONLY_HEARD,
    PRIORITIES,
    RULED,
    STATUSES,
    is_of_user,
    is_only_heard,
    repeated_rules,
    rules_of_user,
)
from omcli.memory.message import TokenCounter, rows_tokens
from omcli.memory.observation import (
    CURRENT,
    FAILURES,
    IN_FORCE,
    ITEM_TYPES,
    PINNED,
    SETTLED,
    UNVERIFIED,
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
from omcli.reflectors.drafts import (
    LASTING_TYPES,
    are_of_projects,
    folded,
    in_rows,
    is_newer_rule,
    is_trusted,
    repeats,
    rules_in,
    verbatim_texts,
)
from omcli.reflectors.reply import ProposedItem, ProposedRow, ReflectorReply, rows_by_label
from omcli.text.instants import instant, minute
from omcli.text.phrases import HEARD_FROM, OUTPUT_OF, searchable, speaks_for_user, unknown_anchors, words_of
from omcli.text.redaction import redact
from omcli.text.similarity import LEAST_TOUCHED, SPEAKERS, content_terms, folded_text, is_about, share, shares_nothing
from omcli.text.terms import folded_words

_ABOUT_USER = frozenset({Type.BEHAVIOR.value, Type.PROFILE.value})
_RESERVED_TAGS = frozenset({PINNED, CURRENT, IDENTITY, "user", *ONLY_FROM_USER})
"""Tags that a model may not choose, because they pin a row or make it the user's."""
_ITEM_KINDS = {each.value: each for each in ITEM_TYPES}
_MOST_REJECTED = 0.5
"""Maximum share of a reply's reflections that may be rejected before the whole reply is rejected. In a reply without
labels, none may be rejected, because such a reply does not account for single rows.
"""
_LEAST_REPEATED = 0.6
"""Minimum share of an important row's words that another row must contain to make it a duplicate."""


@record
class ValidatedReflection:
    """The valid part of a reply, with token counts."""

    reflected: Reflected
    tokens: int
    """Number of tokens in all rows that would be visible afterwards."""
    written: int
    """Number of tokens in the reflections alone."""
    holds: bool
    """True if enough of the reply is valid to use any of it, and any row would be left."""


def validate(
    reply: ReflectorReply, material: Material, counter: TokenCounter, *, trims: bool = False, retires: bool = False
) -> ValidatedReflection:
    """Return the valid part of a reply.

    Rows that the reply does not account for stay visible. So do protected rows and rules of the user that their
    reflection does not repeat, rows of which their reflection says nothing, and important rows that their reflection is
    not about. `trims` removes the last reflections until the others fit into the target or one is left; the rows that
    they would replace stay visible. Without `retires`, a row in force, an open failure or an unsettled high-priority
    row is dropped only if the reply names a row that makes it redundant; with `retires`, a reason is enough, except for
    rules of the user.
    """
    validator = _CheckedReply(material=material, rows=rows_by_label(material), counter=counter, retires=retires)
    validator.keep(reply)
    for proposed in reply.reflections:
        validator.reflect(proposed)
    validator.drop(reply)
    if trims:
        validator.trim()
    items = validator.items(reply)
    is_unlabelled = any(proposed.rows is None for proposed in reply.reflections)
    tolerated = 0 if is_unlabelled else _MOST_REJECTED * len(reply.reflections)
    return validator.result(items, holds=validator.findings["rejected"] <= tolerated)


_KEEP: Literal["keep"] = "keep"
_Verdict = Literal["keep"] | Dropped | Draft
"""Decision to keep a row, drop it, or replace it with a reflection. A row without a verdict stays visible."""


@mutable_record
class _CheckedReply:
    """A reply during validation. Once a row has a verdict, later ones are ignored."""

    material: Material
    rows: Mapping[str, Observation]
    """Rows by label."""
    counter: TokenCounter
    retires: bool
    verdicts: dict[str, _Verdict] = field(default_factory=dict)
    """Verdicts by row id."""
    reflections: list[Draft] = field(default_factory=list)
    accounted: set[str] = field(default_factory=set)
    """Ids of rows that the reply accounts for."""
    held_back: set[str] = field(default_factory=set)
    """Ids of rows that stay visible because the reply gave no sufficient reason to replace or drop them."""
    findings: Counter[str] = field(default_factory=Counter)

    def keep(self, reply: ReflectorReply) -> None:
        kept = {self.rows[label].id for label in reply.keep if label in self.rows}
        self.verdicts |= dict.fromkeys(kept, _KEEP)
        self.accounted |= kept
        self.findings["unknown"] += sum(label not in self.rows for label in reply.keep)

    def reflect(self, proposed: ProposedRow) -> None:
        """Replace the rows that a reflection cites, except for those that must stay (`_may_go`).

        Reject the reflection if `_source_rows` returns none, or if it says nothing of any. A wish, or text that speaks
        for the user, has to cite a trusted row of the user, and a wish may add no heard word (`_says_heard`).
        """
        text = self._clean(proposed.text)
        cited = self._source_rows(proposed.rows, text)
        is_wish = KINDS.get(proposed.kind) in ONLY_FROM_USER
        told = [row for row in cited if is_of_user(row) and is_trusted(row)]
        is_other = all(_says_nothing(text, row) for row in cited) or (is_wish and self._says_heard(text, told))
        if is_other or ((is_wish or speaks_for_user(text)) and not told):
            self.findings["rejected"] += 1
            return
        text = _with_speaker(text, cited)
        self.accounted |= {row.id for row in cited}
        if any(draft.text == text for draft in self.reflections):
            self.findings["duplicates"] += 1
        elif proposed.rows is not None and (
            same := next((row for row in self.material.rows if row.text == text), None)
        ):
            self._repeats(same, cited)
        else:
            replaced = [row for row in cited if self._may_go(row, text)]
            if replaced or proposed.rows is None:
                draft = _reflection(proposed, text, cited, replaced)
                self.verdicts |= dict.fromkeys((row.id for row in replaced), draft)
                self.reflections.append(draft)
            else:
                self.findings["idle"] += 1  # all rows it cites stay visible

    def _source_rows(self, labels: Sequence[str] | None, text: str) -> list[Observation]:
        """Return the rows with these labels, or all rows if `labels` is None.

        Return none if a label is unknown, if the text is empty or contains an anchor that the rows lack, or if the
        rows are of several projects.
        """
        wanted = self.rows.keys() if labels is None else set(labels)
        cited = [row for label, row in self.rows.items() if label in wanted]
        if not text or not wanted <= self.rows.keys() or _without_anchors(text, cited) or are_of_projects(cited):
            return []
        return cited

    def _may_go(self, row: Observation, text: str) -> bool:
        """Return True if text may replace a row, which must have no verdict yet. A protected row is replaced only by
        text that repeats it, and a row with rules of the user only by text that repeats these rules. Text that names an
        output or a paste as its speaker replaces neither.

        A protected row that stays is counted as restored. Three kinds of rows that stay are recorded as held back:
        those whose rules are not repeated, those of which the text says nothing, and important rows that the text is
        not about.
        """
        if row.id in self.verdicts:
            return False
        is_heard = bool(HEARD_FROM.match(text))
        is_lost = any(is_heard or not repeats(text, said) for said in verbatim_texts(row, self.material))
        if is_lost and row.id in self.material.protected:
            self.findings["restored"] += 1
        elif is_lost or _says_nothing(text, row) or (_has_priority(row) and not is_about(text, row.text)):
            self.held_back.add(row.id)
        else:
            return True
        return False

    def _repeats(self, same: Observation, cited: Sequence[Observation]) -> None:
        """Drop the cited rows that the row `same` repeats, instead of adding a reflection with the text of `same`.

        Nothing is dropped if `same` itself is dropped or replaced.
        """
        self.findings["duplicates"] += 1
        if self._goes(same):
            return
        self.verdicts[same.id] = _KEEP
        for row in cited:
            if self._may_go(row, same.text):
                if share(same.text, row.text) >= (_LEAST_REPEATED if _has_priority(row) else LEAST_TOUCHED):
                    self.verdicts[row.id] = Dropped(row=row.id, reason="duplicate", by=same.id)
                else:
                    self.held_back.add(row.id)

    def drop(self, reply: ReflectorReply) -> None:
        """Drop the rows that the reply lists with a sufficient reason, unless they are protected or have a verdict.

        A rule of the user is dropped only for a later rule of the user.
        """
        for proposed in reply.drops:
            row = self.rows.get(proposed.row)
            if row is None or not proposed.reason:
                self.findings["unknown" if row is None else "rejected_drops"] += 1
                continue
            self.accounted.add(row.id)
            by = self.rows.get(proposed.by)
            by = None if by is row else by
            if row.id in self.material.protected:
                self.findings["restored"] += self.verdicts.get(row.id) != _KEEP
            elif row.id not in self.verdicts:
                is_ruled = bool(rules_of_user(row)) and not (by and is_newer_rule(by, row))
                if is_ruled or (by is None and _is_open_or_active(row) and not self.retires):
                    self.held_back.add(row.id)
                else:
                    self.verdicts[row.id] = Dropped(row=row.id, reason=proposed.reason, by=by.id if by else None)

    def trim(self) -> None:
        """Remove the last reflections until the others fit into the target or one is left.

        The rows that a removed reflection would have replaced stay visible, because no other row repeats them.
        """
        while len(self.reflections) > 1 and self.written > self.material.target:
            for row in self.reflections.pop().replaces:
                del self.verdicts[row]
            self.findings["trimmed"] += 1

    def items(self, reply: ReflectorReply) -> tuple[Draft, ...]:
        """Return the valid lasting facts without duplicates.

        A fact is valid if it cites no heard row, and its sources (the trusted rows it cites) contain all of its
        anchors, at least one of its words, and all of its uncommon words that heard rows contain. For a fact about the
        user, only the user's rows count for words. In a reply without labels, all trusted rows are sources, and only
        facts about the user must share a word with them.
        """
        known = {folded_text(row.text) for row in self.material.rows if row.kind is Kind.ITEM}
        drafts: dict[str, Draft] = {}
        for item in reply.items:
            text = self._clean(item.text)
            named = self._source_rows(item.rows, text)
            is_heard = item.rows is not None and any(map(is_only_heard, named))
            cited = [] if is_heard else list(filter(is_trusted, named))
            is_claim = item.kind in _ABOUT_USER or speaks_for_user(text)
            told = list(filter(is_of_user, cited)) if is_claim else cited
            if (
                not told
                or self._says_heard(text, told)
                or _without_anchors(text, cited)
                or ((is_claim or item.rows is not None) and _shares_nothing(text, told))
            ):
                self.findings["rejected_items"] += 1
            elif folded_text(text) in known or folded_text(text) in drafts:
                self.findings["duplicates"] += 1
            else:
                drafts[folded_text(text)] = _item(item, text, cited)
        return tuple(drafts.values())

    def _says_heard(self, text: str, sources: Sequence[Observation]) -> bool:
        """Return True if the text has an uncommon word from a heard row that no row in `sources` has."""
        heard = (content_terms(HEARD_FROM.sub("", row.text, 1)) for row in self.material.rows if is_only_heard(row))
        added = content_terms(text).difference(folded_words(), SPEAKERS, *(content_terms(row.text) for row in sources))
        return not added.isdisjoint(frozenset[str]().union(*heard))

    def _goes(self, row: Observation) -> bool:
        return self.verdicts.get(row.id, _KEEP) != _KEEP

    @property
    def tokens(self) -> int:
        """Number of tokens in all rows that would be visible, including reflections."""
        left = (row for row in self.material.rows if not self._goes(row))
        return rows_tokens(left, self.counter) + self.written

    @property
    def written(self) -> int:
        return sum(self.counter.text(draft.text) for draft in self.reflections)

    def result(self, items: tuple[Draft, ...], *, holds: bool) -> ValidatedReflection:
        leaving = {row.id for row in self.material.rows if self._goes(row)}
        self.findings["kept_back"] += len(self.held_back - leaving)
        self.findings["unaccounted"] += sum(row.id not in self.accounted for row in self.material.rows)
        self.reflections = _joined(self.reflections, self.material.most_rows)
        return ValidatedReflection(
            reflected=Reflected(
                reflections=tuple(self.reflections),
                dropped=tuple(verdict for verdict in self.verdicts.values() if isinstance(verdict, Dropped)),
                items=items,
                findings={name: number for name, number in self.findings.items() if number},
            ),
            tokens=self.tokens,
            written=self.written,
            holds=holds and (bool(self.reflections) or len(leaving) < len(self.material.rows)),
        )

    def _clean(self, text: str) -> str:
        redacted = redact(text)
        self.findings["redacted"] += sum(redacted.counts.values())
        return row_text(redacted.text)


def _is_active(row: Observation) -> bool:
    return row.is_in_force or (row.type in FAILURES and row.status is Status.OPEN)


def _is_open_or_active(row: Observation) -> bool:
    return _is_active(row) or (row.priority is Priority.HIGH and row.status not in SETTLED)


def _has_priority(row: Observation) -> bool:
    return row.priority is Priority.HIGH or _is_active(row)


def _says_nothing(text: str, row: Observation) -> bool:
    return shares_nothing(text, content_terms(words_of(row.text)) - SPEAKERS)


def _shares_nothing(text: str, rows: Sequence[Observation]) -> bool:
    return not any(share(row.text, text) for row in rows)


def _without_anchors(text: str, rows: Sequence[Observation]) -> bool:
    """Return True if the text contains an anchor that none of the rows contains."""
    return bool(unknown_anchors(text, map(_searchable, rows)))


def _searchable(row: Observation) -> str:
    """Return the text and dates of a row, to search for the anchors in a reflection."""
    return searchable(f"{row.text} {minute(row.dated)} {row.refers_to or ''}")


def _reflection(
    proposed: ProposedRow, text: str, cited: Sequence[Observation], replaced: Sequence[Observation]
) -> Draft:
    """Return a model's reflection as a draft.

    The draft is at least as important as the rows it cites, unless the reply has no labels. If the reply gives no
    status, the draft is open if all cited rows are open. A rule of the user is never settled. The draft is unverified
    if no cited row is verified, or if the verified ones lack one of its anchors.
    """
    draft = folded(cited, text, reason="reflected")
    verified = [row for row in cited if UNVERIFIED not in row.tags]
    is_verified = bool(verified) and not _without_anchors(text, verified)
    inherited = draft.priority if proposed.rows is not None else None
    priorities = [priority for priority in (PRIORITIES.get(proposed.priority), inherited) if priority]
    still_open = Status.OPEN if draft.status is Status.OPEN else None
    status = STATUSES.get(proposed.status, still_open)
    return replace(
        draft,
        type=_type(proposed, draft, cited),
        priority=max(priorities, key=lambda priority: priority.importance, default=Priority.MEDIUM),
        status=None if RULED in draft.metadata and status in SETTLED else status,
        tags=tuple(tag for tag in draft.tags if tag != UNVERIFIED or not is_verified),
        event_at=_event_at(proposed.at, cited) or draft.event_at,
        metadata={
            "folded": len(cited),
            "first": cited[0].dated[:10],
            "last": cited[-1].dated[:10],
            **({ONLY_HEARD: True} if HEARD_FROM.match(text) else {}),
            **rules_in(text, cited),
        },
        replaces=tuple(row.id for row in replaced),
        source=Source.MODEL,
    )


def _with_speaker(text: str, cited: Sequence[Observation]) -> str:
    """Return the text of a reflection. If it has more words of the heard rows than of the other cited rows, put their
    speaker in front (`Output of tools` if there are several or none), unless it begins with one.
    """
    heard = [row.text for row in cited if is_only_heard(row)]
    others = "\n".join(row.text for row in cited if not is_only_heard(row))
    if not heard or HEARD_FROM.match(text) or (others and share(others, text) >= share("\n".join(heard), text)):
        return text
    speakers = {named[0] if (named := HEARD_FROM.match(each)) else "" for each in heard}
    speaker = speakers.pop() if len(speakers) == 1 else ""
    return row_text(f"{speaker or f'{OUTPUT_OF}tools says: '}{text}")


def _event_at(at: str, cited: Sequence[Observation]) -> str | None:
    """Return the event time of the last cited row whose time contains `at` (a minute, a day or a time of day), or `at`
    itself if it is a minute between the first and the last event. Otherwise return None.
    """
    dates = sorted(row.event_at for row in cited if row.event_at)
    if not at or not dates:
        return None
    same = [date for date in dates if at in minute(date)]
    between = len(at) > len("2026-02-10") and minute(dates[0]) <= at <= minute(dates[-1])
    return same[-1] if same else instant(f"{at}Z") if between else None


def _type(proposed: ProposedRow, draft: Draft, cited: Sequence[Observation]) -> Type:
    kind = KINDS.get(proposed.kind, Type.FACT if proposed.rows is None else draft.type)
    if RULED in draft.metadata:
        return kind if kind in IN_FORCE else draft.type
    if proposed.kind == "error":
        return next((row.type for row in cited if row.type in FAILURES), Type.BLOCKER)
    return kind


def joined(parts: Sequence[Reflected], most_rows: int) -> Reflected:
    """Combine the results for parts of the rows, with at most `most_rows` reflections unless these would be too long
    (see `in_rows`). 0 means no limit.
    """
    findings = sum((Counter(part.findings) for part in parts), Counter[str]())
    return Reflected(
        reflections=tuple(_joined([draft for part in parts for draft in part.reflections], most_rows)),
        dropped=tuple(dropped for part in parts for dropped in part.dropped),
        items=tuple({folded_text(item.text): item for part in parts for item in part.items}.values()),
        findings=dict(findings),
        attempts=sum(part.attempts for part in parts),
    )


def _joined(drafts: Sequence[Draft], most: int) -> list[Draft]:
    """Join reflections into at most `most` rows, or into more if these would be too long (see `in_rows`).

    0 means no limit.
    """
    if not most or len(drafts) <= most:
        return list(drafts)
    return [_one(some) for some in in_rows(drafts, most_rows=most)]


def _one(drafts: Sequence[Draft]) -> Draft:
    strongest = max(drafts, key=lambda draft: ((draft.priority or Priority.LOW).importance, draft.importance))
    ruled = [text for draft in drafts for text in repeated_rules(draft.metadata)]
    return replace(
        strongest,
        type=next((draft.type for draft in drafts if RULED in draft.metadata), strongest.type),
        text=" · ".join(draft.text for draft in drafts),
        sources=tuple(sorted({seq for draft in drafts for seq in draft.sources})),
        event_at=max((draft.event_at for draft in drafts if draft.event_at), default=None),
        refers_to=None,
        status=None,
        supports=tuple(dict.fromkeys(row for draft in drafts for row in draft.supports)),
        metadata={**strongest.metadata, **({RULED: ruled} if ruled else {})},
        replaces=tuple(row for draft in drafts for row in draft.replaces),
    )


def _item(item: ProposedItem, text: str, cited: Sequence[Observation]) -> Draft:
    kind = _ITEM_KINDS.get(item.kind, Type.KNOWLEDGE)
    types = (row.type.value for row in cited if row.type in LASTING_TYPES) if item.rows else ()
    tags = (tag for each in item.tags if (tag := row_text(each)[:LONGEST_TAG]).lower() not in _RESERVED_TAGS)
    draft = folded(cited, text, reason="reflected")
    return replace(
        draft,
        type=kind,
        status=None,
        tags=tuple(dict.fromkeys(filter(None, (*types, *tags))))[:MOST_TAGS],
        metadata={**({"category": item.category} if item.category else {}), **rules_in(text, cited)},
        replaces=(),
        reason=None,
        source=Source.MODEL,
    )
