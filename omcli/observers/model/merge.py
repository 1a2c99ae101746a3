"""Merging the model's rows and the rules' rows into one list."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate

from omcli.base.record import record, replace
from omcli.memory.message import Role
from omcli.memory.observation import ASKED, HIGH_FROM, IN_FORCE, TOOL_EVENTS, UNVERIFIED, Draft, Priority, Status, Type
from omcli.text.phrases import HEARD_FROM, anchors
from omcli.text.similarity import SPEAKERS, content_terms, says

_CERTAIN = IN_FORCE | ASKED | {Type.BLOCKER}
"""Types that the rules recognise reliably by their wording."""
_VAGUE = frozenset({Type.EVENT, Type.FACT})
"""Types that may be replaced with a more specific type."""
_HIGH_SHARE = 3
"""At most one in this many rows may have high priority."""
_FEW_HIGH = 3
"""Number of high-priority rows that is always allowed."""
_WORDS_REPEATED = 0.75


@record
class MergedRows:
    """The rows of a batch after merging, with counts of what each side added or repeated."""

    drafts: tuple[Draft, ...]
    """All rows, oldest first."""
    added_back: int
    """Number of rows about speech that the rules found and the model left out. Rows from messages that the model was
    not shown do not count.
    """
    recorded_by_rules: int
    """Number of the model's rows that were left out because the rules' rows already contain them."""


def limit_priority(rows: Sequence[Draft], roles: Mapping[int, Role]) -> list[Draft]:
    """Limit the importance that a model gave to its rows. Rules may raise the importance later.

    High priority is limited to the lowest importance that counts as high. If more than three rows and more than a third
    of the verified rows have high priority, all of them become medium. A row whose sources are all tool calls and
    results is lowered by one priority, because the output can be read again.
    """
    verified = [row for row in rows if UNVERIFIED not in row.tags]
    is_flood = sum(row.importance >= HIGH_FROM for row in verified) > max(_FEW_HIGH, len(verified) / _HIGH_SHARE)
    most = Priority.MEDIUM.importance if is_flood else HIGH_FROM
    limited = [replace(row, importance=min(row.importance, most)) for row in rows]
    return [
        replace(row, importance=min(row.importance, _importance_below(row.importance)))
        if _is_tool_output(row, roles)
        else row
        for row in limited
    ]


def _importance_below(importance: int) -> int:
    return (Priority.MEDIUM if importance >= HIGH_FROM else Priority.LOW).importance


def merge_rows(
    by_model: Sequence[Draft],
    by_rules: Sequence[Draft],
    roles: Mapping[int, Role],
    *,
    unread: Collection[int] = (),
) -> MergedRows:
    """Merge the rules' rows with the model's. The rules' rows for tool events and for people's words are always kept.

    A row from rules about an agent's words is dropped if model rows from the same messages cover it without being
    longer, or make its replacements (see `_is_replaced`). A row from rules that is kept may take its type, importance,
    status, date and replacements from model rows that cover it. A verified model row is added if it says something new
    (see `_is_new`), an unverified one always; but no row is added that only repeats tool output. `unread` contains the
    `seq` of messages that were not shown to the model.
    """
    tools = [draft for draft in by_rules if draft.type in TOOL_EVENTS]
    speech = [draft for draft in by_rules if draft.type not in TOOL_EVENTS]
    new = [draft for draft in by_model if not _only_repeats(draft, tools, roles)]
    unverified = [draft for draft in new if UNVERIFIED in draft.tags]
    verified = [draft for draft in new if UNVERIFIED not in draft.tags]
    shown = [draft for draft in speech if draft.sources[-1] not in unread]
    dropped = [draft for draft in shown if _is_replaced(draft, verified, roles)]
    kept = [draft for draft in speech if draft not in dropped]
    added = [draft for draft in verified if _is_new(draft, kept, dropped)]
    rows = [
        _with_model_facts(draft, verified) if draft in kept else draft for draft in by_rules if draft not in dropped
    ]
    rows = _take_replacements(rows, [draft for draft in verified if draft not in added])
    settled = {row for draft in rows for row in draft.replaces}
    new_rows = [_with_rule_facts(_without_settled(draft, settled), speech, dropped) for draft in added]
    return MergedRows(
        drafts=tuple(_in_order(rows, [*new_rows, *unverified])),
        added_back=sum(draft not in dropped and not covers(verified, draft) for draft in shown),
        recorded_by_rules=len(by_model) - len(new_rows) - len(unverified),
    )


def _is_replaced(draft: Draft, by_model: Sequence[Draft], roles: Mapping[int, Role]) -> bool:
    """Return True if model rows make a row from rules redundant. The row must cite only messages of the agent, and must
    not be a request.

    A row that replaces older rows is redundant if the model's rows replace all of these. Any other must be covered by
    model rows from the same messages that together are not longer. If the row is an open question, only open model rows
    count.
    """
    if draft.type is Type.REQUEST or any(roles.get(seq, Role.ASSISTANT) is not Role.ASSISTANT for seq in draft.sources):
        return False
    if draft.replaces:
        return {row for other in by_model for row in other.replaces}.issuperset(draft.replaces)
    related = [other for other in by_model if _shares_message(other, [draft])]
    if draft.type in ASKED and draft.status is Status.OPEN:
        related = [other for other in related if other.status is Status.OPEN]
    return covers(related, draft) and sum(len(other.text) for other in related) <= len(draft.text)


def _is_new(draft: Draft, kept: Sequence[Draft], dropped: Sequence[Draft]) -> bool:
    """Return True if a model row should be added to the rules' rows: if it replaces older rows and covers no kept row
    that could take over its replacements, if it shares a message with a dropped row, or if the kept rows do not repeat
    it.
    """
    if draft.replaces and not any(covers([draft], rule) for rule in kept):
        return True  # no kept row can take over the replacements
    return _shares_message(draft, dropped) or not repeats(draft, kept)


def _shares_message(draft: Draft, others: Sequence[Draft]) -> bool:
    return any(set(draft.sources) & set(other.sources) for other in others)


def _without_settled(draft: Draft, settled: Collection[str]) -> Draft:
    """Return a model row without the replacements that the rules' rows already make."""
    replaces = tuple(row for row in draft.replaces if row not in settled)
    return replace(draft, replaces=replaces, reason=draft.reason if replaces else None)


def _take_replacements(rows: Sequence[Draft], repeating: Sequence[Draft]) -> list[Draft]:
    """Return the rules' rows. A left-out model row (`repeating`) gives its replacements, and with them its sources, to
    the first of these rows that it covers.

    Each older row is replaced only once.
    """
    settled = {row for draft in rows for row in draft.replaces}
    settling = list(rows)
    for draft in repeating:
        left = tuple(row for row in draft.replaces if row not in settled)
        place = next((at for at, row in enumerate(settling) if left and covers([draft], row)), None)
        if place is not None:
            taking = settling[place]
            sources = tuple(sorted({*taking.sources, *draft.sources}))
            settling[place] = replace(taking, sources=sources, replaces=(*taking.replaces, *left))
            settled.update(left)
    return settling


def _with_model_facts(rule: Draft, by_model: Sequence[Draft]) -> Draft:
    """Return a row from rules, completed from the model rows that cover it.

    A vague type may become one of `_CERTAIN`, the importance may be raised, and a missing date is filled in. So is a
    missing status, unless the row is a rule, preference, correction or decision.
    """
    same = [draft for draft in by_model if covers([draft], rule)]
    certain = [draft for draft in same if draft.type in _CERTAIN]
    kind = max(certain, key=lambda draft: draft.importance, default=rule).type if rule.type in _VAGUE else rule.type
    high = [draft.importance for draft in same if draft.importance >= HIGH_FROM]
    known = (draft.status for draft in same if draft.status and draft.type is kind)
    dates = (draft.refers_to for draft in same if draft.refers_to)
    return replace(
        rule,
        type=kind,
        importance=max([rule.importance, *high]),
        status=rule.status if kind in IN_FORCE else rule.status or next(known, None),
        refers_to=rule.refers_to or next(dates, None),
    )


def _with_rule_facts(draft: Draft, by_rules: Sequence[Draft], dropped: Sequence[Draft]) -> Draft:
    """Return a row of the model, completed from the rules' rows that it covers. A dropped one of high importance may
    raise the importance of the model's row.

    Rules' rows with a type in `_CERTAIN` that were dropped, or that the model's row repeats, can give it two things. If
    the model's row has a vague type and names no output or pasted text as its speaker, it gets the type of such a row
    with the same sources. If it then has no status, it gets that of such a row with the same type.
    """
    covered = [rule for rule in by_rules if covers([draft], rule)]
    matters = [rule.importance for rule in covered if rule in dropped and rule.importance >= HIGH_FROM]
    importance = max([draft.importance, *matters])
    certain = [rule for rule in covered if rule.type in _CERTAIN and (rule in dropped or repeats(rule, [draft]))]
    if draft.type in _VAGUE and not HEARD_FROM.match(draft.text):
        same = [rule for rule in certain if rule.sources == draft.sources]
        draft = replace(draft, type=max(same, key=lambda rule: rule.importance, default=draft).type)
    known = [rule.status for rule in certain if rule.type is draft.type]
    status = draft.status or next((status for status in known if status), None)
    return replace(draft, importance=importance, status=status)


def _only_repeats(draft: Draft, tools: Sequence[Draft], roles: Mapping[int, Role]) -> bool:
    """Return True if a model row only repeats tool output that the rules have recorded."""
    return _is_tool_output(draft, roles) and not draft.replaces and covers(tools, draft)


def _is_tool_output(draft: Draft, roles: Mapping[int, Role]) -> bool:
    return all(roles.get(seq) in (Role.CALL, Role.RESULT) for seq in draft.sources)


def _in_order(by_rules: Sequence[Draft], by_model: Sequence[Draft]) -> Iterator[Draft]:
    """Yield all rows, oldest first. The rules' rows keep their order, so that a question precedes its answer."""
    left = sorted(by_model, key=lambda draft: draft.sources[-1])[::-1]
    places = list(accumulate((draft.sources[-1] for draft in reversed(by_rules)), min))[::-1]
    for draft, place in zip(by_rules, places, strict=True):
        while left and left[-1].sources[-1] < place:
            yield left.pop()
        yield draft
    yield from reversed(left)


def covers(rows: Sequence[Draft], draft: Draft) -> bool:
    """Return True if the rows that share a message with `draft`, taken together, say what `draft` says (see
    `similarity.says`).

    They are taken together because one message may yield several rows.
    """
    about = [row.text for row in rows if set(row.sources) & set(draft.sources)]
    return bool(about) and says("\n".join(about), draft.text)


def repeats(draft: Draft, rows: Sequence[Draft]) -> bool:
    """Return True if the rows that share a message with `draft` make it redundant.

    This is stricter than `covers`, because a redundant draft is dropped: the rows must contain all of its anchors and
    at least three quarters of its words.
    """
    told = "\n".join(row.text for row in rows if set(row.sources) & set(draft.sources))
    words = content_terms(draft.text) - SPEAKERS
    lower = told.lower()
    known = sum(word.lower() in lower for word in words - content_terms(told)) + len(words & content_terms(told))
    is_named = all(name.lower() in lower for name in anchors(draft.text))
    return bool(told) and is_named and known >= _WORDS_REPEATED * len(words)
