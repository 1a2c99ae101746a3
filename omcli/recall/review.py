"""Rows that a person should look at: contradicted ones, unverified ones, and old ones that nobody confirmed.

Two statements contradict each other if they have the same words except for one value, such as "the API listens on port
8123" and "the API now listens on port 9321". Two rules also do if only one of them is negated, or if they prefer the
same things in the opposite order. Words that say nothing about the subject ("the", "now", "set") don't count. If both
statements name the same things and an attribute that a thing has only once, such as a port, one of the statements may
have more words.

A false alarm costs more than a miss. So events, conditions, lists, measurements and outputs are left out. A fact counts
if it gives such an attribute, or if a person states it about something of their own or something named in two words.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from omcli.base import lazily
from omcli.base.record import record
from omcli.memory.observation import (
    ASKED,
    IN_FORCE,
    OVERRULED,
    PINNED,
    SETTLED,
    TOOL_EVENTS,
    UNVERIFIED,
    Kind,
    Observation,
    Source,
    Status,
    Type,
)
from omcli.text.phrases import HEARD_FROM, speaker, words_of
from omcli.text.similarity import says
from omcli.text.terms import NAME_LIKE, NEGATION, folded, folded_words, terms_of

CONFIRMED = "confirmed"
"""Tag of a row that a person confirmed in `om review`. Rows dated before that no longer contradict it."""


class ReviewReason(StrEnum):
    """Reasons to look at a row, the most important first."""

    CONTRADICTED = "contradicted"
    UNVERIFIED = "unverified"
    OLD = "old"


@record
class ReviewEntry:
    """A row to look at."""

    row: Observation
    reason: ReviewReason
    by: Observation | None = None
    """The later row that contradicts it."""


def to_review(rows: Sequence[Observation], *, before: str) -> tuple[ReviewEntry, ...]:
    """Return the rows to look at, each once, by reason and then by importance, given all visible rows in log order.

    Contradicted rows are always among them, unverified ones unless they were used since `before`. Rows dated before
    then are old if they have been neither used nor confirmed since, and no later row repeats them. Only rows in force,
    items, and open requests, questions and blockers get old, unless they are pinned.
    """
    entries = {row.id: ReviewEntry(row=row, reason=ReviewReason.OLD) for row in _stale(rows, before=before)}
    for row in rows:
        if UNVERIFIED in row.tags and (row.last_used_at or "") < before:
            entries[row.id] = ReviewEntry(row=row, reason=ReviewReason.UNVERIFIED)
    entries |= {row.id: ReviewEntry(row=row, reason=ReviewReason.CONTRADICTED, by=by) for row, by in contradicted(rows)}
    order = tuple(ReviewReason)
    return tuple(
        sorted(entries.values(), key=lambda each: (order.index(each.reason), -each.row.importance, each.row.dated))
    )


# ---- old and unconfirmed


def _stale(rows: Sequence[Observation], *, before: str) -> Iterator[Observation]:
    """Yield the old rows that no later row of the same project (or, without one, of the same session) repeats."""
    said = [row for row in rows if row.type not in TOOL_EVENTS]
    terms = [words - folded_words() for words in terms_of([words_of(row.text) for row in said])]
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, words in enumerate(terms):
        for word in words:
            places[_place(said[number]), word].append(number)
    for row, words in zip(said, terms, strict=True):
        noted = row.observed_at if CONFIRMED in row.tags else ""
        if not _can_be_stale(row) or max(row.dated, row.last_used_at or "", noted) >= before:
            continue
        alike = min((places[_place(row), word] for word in words), key=len, default=[])
        if not any(said[number].dated > row.dated and says(said[number].text, row.text) for number in alike):
            yield row


def _can_be_stale(row: Observation) -> bool:
    is_open = row.status is Status.OPEN and (row.type in ASKED or row.type is Type.BLOCKER)
    is_lasting = row.is_in_force or (row.kind is Kind.ITEM and row.status not in SETTLED)
    return PINNED not in row.tags and (is_open or is_lasting)


def _place(row: Observation) -> str:
    return row.project or row.session or ""


# ---- contradictions

_STATEMENTS = OVERRULED | {Type.CORRECTION, Type.KNOWLEDGE, Type.BEHAVIOR, Type.PROFILE, Type.TOOL}
_RULES = IN_FORCE | {Type.BEHAVIOR}
"""Types of statements about what to do or not to do. Such a statement contradicts another one that it negates."""
_LONGEST_ROW, _LONGEST_CLAUSE = 400, 160
"""Lengths in characters. Longer rows are reports, and longer clauses say several things."""
_MOST_ALIKE, _COMPARED = 6, 50
"""If a thing has more values than the first number, they are the lines of a list, and none is compared. Otherwise its
last statements are compared, at most the second number of them.
"""
_PERSON, _AGENT = "User", "Agent"

_CLAUSE_END = lazily(r"(?<=[.!?;])\s+|\s[\u2014\u2013]\s")
_REASON = lazily(
    r"[,;]? (?:because|since|so that|due to|which|but|whereas)\b.*|,? \(.*|, not .*| from [\w.`'-]+(?= to )"
    r"| from now on",
    re.IGNORECASE,
)
"""Parts of a clause that don't belong to its statement: a reason, a remark, the old value in "from 20 to 30"."""
_STATES = lazily(r"(?:the|our|my|i|we|its|his|her|their|all)\b", re.IGNORECASE)
_LIST = lazily(r" [\u00b7|] ")
_PASSING = lazily(
    r"[?\"\u201c\\]|^>|\b(?:if|when|whenever|unless|maybe|perhaps|might|may|could|would|whether|yet|for (?:example|now)"
    r"|such as|e\.g|assum\w+|either|or|around|about|roughly|there|yesterday|today|tomorrow|tonight|this|next|last"
    r"|first|second|third|another|also|too|again|try|trying|think|hope|hoping|wonder\w*)\b",
    re.IGNORECASE,
)
"""Signs of conditions, guesses, quotations, lists and passing moments."""
_CHANGES = (
    "bumped changed decided increased lowered migrated moved raised reduced renamed set switched updated upgraded"
)
_PAST = lazily(
    r"\b(?:was|were|went|had|did|bought|got|saw|took|ran|made|found|wrote|been|(?<!is )(?<!are )(?<!be )(?<!am )"
    rf"(?!(?:{_CHANGES.replace(' ', '|')}|need|feed|speed|embed|exceed|called|named|based|shared)\b)\w{{3,}}ed)\b",
    re.IGNORECASE,
)
"""Signs of an event. Verbs for changes of something lasting are left out."""

_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_VALUES: Mapping[str, re.Pattern[str]] = MappingProxyType({
    "code": lazily(r"`[^`\s]+`"),
    "place": lazily(r"(?<![\w`/.-])(?:https?://[^\s\"'<>)\]`]+|[a-z][a-z\d-]*(?:\.[a-z][a-z\d-]*)+(?::\d+)?)(?![\w/`])"),
    "date": lazily(
        rf"\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b|\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}(?: \d{{4}})?\b"
        r"|\b\d{4}-\d\d-\d\d\b"
    ),
    "weekday": lazily(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b"),
    "number": lazily(r"(?<![\w.`/:$#-])[$\u20ac\u00a3]?v?\d[\d.,:]*(?:%|[a-z]{1,3}\b)?(?![\w/`-])"),
    "name": lazily(r"(?<![.!?:] )(?<!^)(?<![\w`/.])[A-Z][\w\-]+(?: [A-Z][\w\-]+)*"),
})  # fmt: skip
"""Values by kind. A clause with two values of a kind is a list."""
_NAMES, _DAYS = frozenset({"code", "place", "name"}), frozenset({"date", "weekday"})
_BEFORE_NAME = lazily(
    r"(?:\b(?:is|are|be|called|named|(?:live|lives|based|work|works) in)|=) (?:now |still |at )?$"
    r"|\b(?:bump|chang|mov|migrat|point|renam|set|switch)\w*\b.* to $",
    re.IGNORECASE,
)
_BEFORE_NUMBER = lazily(
    r"(?:\b(?:is|are|be|to|at|on|by|until|within|under|over|above|below|of|use|uses|using|called|named)|[=:]) "
    r"(?:[\w'-]+ ){0,2}$",
    re.IGNORECASE,
)
_AFTER_NAME = lazily(r"(?: now)?(?:\W*$|,? (?:for|in|on|at|with|from|as)\b)")
_AFTER_NUMBER = lazily(r"(?: [a-z]+)?(?: now)?(?:\W*$|,? (?:for|in|on|at|with|from|per|each|of)\b)")
"""A value ends its statement, apart from a unit and a phrase. Followed by a verb, it is the subject."""
_APPOINTMENT = lazily(r"\b(?:an?|have|has)\b", re.IGNORECASE)
"""Words before a day that show it to be the day of one event (`a meeting on Friday`), not a value that holds until it
is changed.
"""
_OWN = lazily(r"\b(?:my|our|i|we|i'm|we're)\b", re.IGNORECASE)
"""Signs that a thing is the speaker's own. It has one name; "the cause" differs in every conversation."""

_WORD = lazily(r"`[^`]+`|[^\W_][\w'./+#\-]*[\w+#]|\w")
_EMPTY = frozenset(
    (
        f"{_CHANGES} a actually always an and are as at be by can currently do does for has have i i'm in instead is "
        "it it's its just keep let let's listen listens make move must my needs new now of on only our please run runs "
        "sets shall should so stay stays switch that the then to update upgrade us use uses using want wants we we're "
        "will with you your"
    ).split()
)
"""Words that two statements about the same thing need not share."""
_MANY = frozenset(
    map(
        folded,
        (
            "average bug cause change chapter column commit count coverage difference error example exercise failure "
            "figure file fix goal issue item lesson line milestone number output page part phase problem progress "
            "question reason result round row score section stage step sum table task test thing total"
        ).split(),
    )
)
"""Words for things that are numbered or measured, or differ between conversations."""
_ATTRIBUTES = frozenset(
    map(
        folded,
        (
            "address bucket budget channel deadline domain email endpoint host hostname interval limit maintainer "
            "owner phone port price region threshold timeout timezone url version"
        ).split(),
    )
)
"""Words for attributes that a thing has only once."""
_TELLING = frozenset({"live", "name", "work", *_ATTRIBUTES})
"""Common words that can be the subject of a statement nevertheless."""
_ORDER = lazily(
    r"\b(?:prefers?|use|uses|likes?|wants?|choose|chose|pick|go with) (?P<one>[\w`./+#-]+)(?: [\w`./+#-]+)? "
    r"(?:over|to|instead of|rather than|more than) [\w`./+#-]",
    re.IGNORECASE,
)
_AGAINST = frozenset({"not", "avoid", "stop"})


def contradicted(rows: Iterable[Observation]) -> tuple[tuple[Observation, Observation], ...]:
    """Return each row that a later row contradicts, together with the last such row, in order of time. The rows are
    passed in log order, which decides between rows with the same date.

    Only rows of the same project are compared or, if they have no project, of the same session. A later statement
    counts only if the same speaker makes it, or if the earlier one is an agent's. If the last that counts gives the old
    value again, the row is not contradicted.
    """
    said: dict[tuple[str, ...], list[_Statement]] = defaultdict(list)
    order: dict[str, tuple[str, int]] = {}
    for place, row in enumerate(rows):
        order[row.id] = row.dated, place  # ids of rows written in the same millisecond are in no order
        for statement in _each_statement(row):
            said[statement.key].append(statement)
    found: dict[str, tuple[Observation, Observation]] = {}
    for statements in said.values():
        if 1 < len({each.value for each in statements}) <= _MOST_ALIKE:
            same = sorted(statements, key=lambda each: order[each.row.id])[-_COMPARED:]
            for number, one in enumerate(same, start=1):
                later = [other for other in same[number:] if _may_replace(other, one)]
                if later and not _is_same_value(later[-1].value, one.value):
                    before = found.get(one.row.id, (one.row, one.row))[1]
                    last = max(later[-1].row, before, key=lambda row: order[row.id])
                    found[one.row.id] = one.row, last
    return tuple(sorted(found.values(), key=lambda pair: order[pair[0].id]))


@record
class _Statement:
    row: Observation
    key: tuple[str, ...]
    """Place, kind of value and subject. Only statements with the same key may contradict each other."""
    words: frozenset[str]
    """The words of the clause, without the value and the words that say nothing about the subject."""
    value: str


def _may_replace(later: _Statement, earlier: _Statement) -> bool:
    """Return True if a later statement may contradict an earlier one with the same key.

    Both must have the same speaker, or the earlier one must be an agent's. One of the two must have all words of the
    other. If the earlier one gives a date, that date must not be over before the later one is made. A row that was
    confirmed after the later one is not contradicted.
    """
    one, other = earlier.row, later.row
    is_over = earlier.key[1] in _DAYS and one.refers_to is not None and _end(one.refers_to) < other.dated
    is_over = is_over or (CONFIRMED in one.tags and other.dated <= one.observed_at)
    says_no_other = earlier.words <= later.words or later.words <= earlier.words
    return one.id != other.id and _speaker(one) in (_speaker(other), _AGENT) and says_no_other and not is_over


def _is_same_value(one: str, other: str) -> bool:
    """Return True if values are equal, or one is more precise: 1.4 and 1.4.2."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and not long[len(short) : len(short) + 1].isalnum()


def _end(day: str) -> str:
    """Return text that sorts after all times of the day, month or year with which a date or an interval ends."""
    return f"{day.rpartition('/')[2]}~"


def _speaker(row: Observation) -> str:
    """Return the speaker that a row names. If it names none, return the user if a person wrote it, else the agent."""
    return speaker(row.text) or (_PERSON if row.source is Source.USER else _AGENT)


def _each_statement(row: Observation) -> Iterator[_Statement]:
    is_request = row.type is Type.REQUEST  # what a person says first often is one, also if it only states something
    if not is_request and (row.type not in _STATEMENTS or row.status in SETTLED):
        return
    if not row.is_visible or len(row.text) > _LONGEST_ROW or HEARD_FROM.match(row.text) or _LIST.search(row.text):
        return
    for clause in _CLAUSE_END.split(words_of(row.text).replace("\u2019", "'")):
        short = _REASON.sub("", clause)
        is_long = len(short) > _LONGEST_CLAUSE
        if is_long or _PASSING.search(short) or _PAST.search(short) or (is_request and not _STATES.match(short)):
            continue
        for subject, words, value in _values(short, row):
            yield _Statement(row=row, key=(_place(row), *subject), words=words, value=value)
        if row.type in _RULES:
            for kind, words, value in _rule_values(short):
                yield _Statement(row=row, key=(_place(row), kind, *sorted(words)), words=words, value=value)


def _values(clause: str, row: Observation) -> Iterator[tuple[tuple[str, ...], frozenset[str], str]]:
    """Yield the kind and subject, the words and the value for each value that a clause gives to its subject."""
    for kind, pattern in _VALUES.items():
        matches = list(pattern.finditer(clause))
        if len(matches) != 1:
            continue
        before, value, after = clause[: matches[0].start()], matches[0][0], clause[matches[0].end() :]
        begins, ends = (_BEFORE_NAME, _AFTER_NAME) if kind in _NAMES else (_BEFORE_NUMBER, _AFTER_NUMBER)
        words = _words(f"{before} {after}")
        if not (begins.search(before) and ends.match(after) and _may_be_lasting(kind, words, before, row)):
            continue
        plain = value.strip("`.,:").lower().removeprefix("v").replace(",", "")
        form = re.sub(r"[\d.]+", "0", plain) if kind == "number" else kind
        attributes, names = words & _ATTRIBUTES, {word for word in words if _is_name(word)}
        subject = (*sorted(attributes | names), "", *sorted(_words(after))) if attributes and names else sorted(words)
        yield (form, *subject), words, plain


def _may_be_lasting(kind: str, words: frozenset[str], before: str, row: Observation) -> bool:
    """Return True if a value of this kind probably holds until it is changed."""
    if not _MANY.isdisjoint(_words(" ".join(before.split()[-1:]))) or (kind in _DAYS and _APPOINTMENT.search(before)):
        return False
    if row.type in _RULES:
        return _is_about(words)
    telling = words - _MANY
    if not _is_about(telling) or (row.type is Type.FACT and _speaker(row) == _AGENT):
        return bool(words & _ATTRIBUTES and telling - _ATTRIBUTES - folded_words())
    is_own = bool(_OWN.search(before)) if kind in _NAMES else kind in _DAYS or len(telling) > 1
    return is_own or bool(words & _ATTRIBUTES)


def _is_about(words: frozenset[str]) -> bool:
    return any(len(word) > 2 and (word not in folded_words() or word in _TELLING) for word in words)


def _rule_values(clause: str) -> Iterator[tuple[str, frozenset[str], str]]:
    """Yield kind, words and value of a rule. The value is the thing that the rule prefers. If it prefers nothing, the
    value is "yes" for a rule to do something, and "no" for a rule not to do it.
    """
    words = _words(clause)
    if order := _ORDER.search(clause):
        yield "order", words, order["one"].lower()
    elif len(subject := words - _AGAINST) > 1 and _is_about(subject):
        yield "rule", subject, "yes" if subject == words else "no"


def _words(text: str) -> frozenset[str]:
    """Return the words that say what a text is about, without endings, and with each negation as "not"."""
    found = (word.lower() for word in _WORD.findall(text))
    plain = (word.removesuffix("'s") for word in found if word not in _EMPTY)
    return frozenset("not" if NEGATION.match(word) else folded(word) for word in plain)


def _is_name(word: str) -> bool:
    return "-" in word or bool(NAME_LIKE.search(word))
