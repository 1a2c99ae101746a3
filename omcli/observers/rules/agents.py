"""Rows about an agent's text: the report that ends a turn, and findings before it.

A turn's last text is its report. From earlier texts, only findings, decisions, blockers and sentences with anchors are
kept. In a chat without tools, little of each answer is kept. Patterns match lower-case text, which is three times as
fast as ignoring case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from omcli.base import lazily
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Draft, Priority, Status, Type
from omcli.observers.rules import cues
from omcli.observers.rules.cues import CACHE_SIZE, has_question_mark, is_courtesy, plain
from omcli.observers.rules.sentences import (
    MIN_CHARACTERS,
    TextPart,
    cut,
    group_sentences,
    joined_sentences,
    text_draft,
    text_length,
    text_of,
    text_parts,
)
from omcli.text.phrases import agent_name, anchors

_FINDING = lazily(
    r"\b(?:root cause|the (?:real |actual |main |underlying )?(?:issue|problem|bug|cause|culprit|reason|difference|"
    r"catch) (?:is|was|here)|turns out|caused by|due to|i (?:found|discovered|noticed|confirmed)|"
    r"found (?:it|that|the (?:issue|bug|problem|cause))|this (?:means|explains|is because)|that'?s (?:why|because)|"
    r"never (?:called|set|used)|doesn'?t (?:exist|handle|support|actually)|already (?:exists?|has|handled)|"
    r"conflicts? with)\b",
)
_AGENT_DECISION = lazily(
    r"\b(?:decided (?:to|on|against)|we(?:'ll| will) (?:use|go with|keep|drop)|going with|"
    r"i(?:'ll| will) (?:go with|use|keep|stick)|chose|chosen|opted|settled on|recommend(?:ation|ed)?|trade-?off|"
    r"out of scope|(?:we|i) (?:deferred|rejected)|won'?t (?:be|do|add|support)|my (?:take|pick|choice)|"
    r"i'?d (?:go with|recommend|suggest))\b",
)
_DONE = (
    r"(?:done|fixed|implemented|added|created|updated|removed|deleted|refactored|renamed|migrated|committed|pushed|"
    r"merged|"
    r"released|deployed|published|rewrote|replaced|extracted|moved|completed?|resolved|verified|wrote|written|"
    r"successful(?:ly)?|works|now (?:works|supports|uses|shows|returns|handles|reads|has|is))"
)
_RESULT = lazily(rf"\b{_DONE}\b")
_RESULT_WITHIN = 50
"""Number of characters at the start of a sentence that are searched for a result."""
_NOT_DONE = lazily(
    r"\b(?:you|if|when|once|until|unless|because|should|could|would|will|must|not|never|who|\w+n't|to be)\b",
)
_I_DID = lazily(
    rf"\b(?:i|we)(?:'ve| have)? (?:\w+ )?{_DONE}\b|"
    r"\b(?:tests?|checks?|lint|build|ci)\b.{0,30}\b(?:pass(?:es|ed|ing)?|green|clean|succeed(?:s|ed)?)\b",
)
_BLOCKER = lazily(
    r"\b(?:(?<!was )(?<!just )(?<!be )(?<!been )blocked (?:by|on)|"
    r"i (?:can'?t|cannot|couldn'?t|am unable|was unable)|unable to|not possible|"
    r"(?:still|keeps?) fail(?:s|ing)?|fails? with|permission denied|requires? (?:you|your|access|manual|approval|"
    r"credentials)|needs? (?:your|you to|access|credentials|approval)|waiting (?:for|on)"
    r" (?:you|your|approval|access|review|credentials)|"
    r"(?:i|we)(?:'m|'re| am| are)(?: still)? stuck|not (?:working|available|installed|configured)|"
    r"out of (?:memory|disk|quota)|rate.limit)\b",
)
_GUESS = lazily(
    r"\b(?:maybe|perhaps|possibly|probably|might|may be|could be|seems? (?:to|like|that)|looks like|"
    r"i (?:think|suspect|guess|assume|believe)|likely|not sure|unclear|hypothesis|presumably)\b",
)
_ONGOING = lazily(r"\b(?:underway|still|in progress|so far|keep (?:monitoring|watching)|is running|continuing)\b")
# Progress of a task, unlike "is running on port 80", which describes a server.
_PROGRESS = lazily(
    r"\b(?:still|is|are|is now|are now) (?:(?:running|building)(?! (?:on|at|in|under|with|from|as)\b)|compiling|"
    r"continuing|progressing|finishing|underway|under way|in progress)\b|"
    r"\bwaiting (?:for|on) [^.;]{1,60} to (?:finish|end|complete|exit)\b|"
    r"\bnear(?:ing)? the end\b",
)
_NEXT = lazily(
    r"^(?:(?:optional |suggested |recommended |possible )?next(?: (?:steps?|options?|up|actions?|suggestions?))?|"
    r"to ?-?do|remaining|follow-?ups?|still (?:to do|open|missing)|not (?:yet )?done|"
    r"what(?:'s| is) (?:left|next|missing)|left to do|open (?:questions?|items?|issues?))\b",
)
_NARRATION = lazily(
    r"^(?:now,? |then |next,? |first,? |ok(?:ay)?,? |good[,.] |great[,.!] |perfect[,.!] |alright,? |so )*"
    r"(?:let me|let'?s|i(?:'ll| will|'m (?:now |also |just |still )?\w+ing| need to| want to| should|'m now|'m also|"
    r"'m just)|now (?:i|let|add|update|run|fix|create)|checking|looking|running|reading|searching|updating|adding|"
    r"creating|starting|using the)\b",
)
# A choice with its reason or the alternative, unlike "I'll use grep to find it", which announces a step.
_CHOSEN = lazily(
    r"\b(?:i|we)(?:'ll| will) (?:(?:go|stick) with|(?:use|keep|take) .{1,200}\b(?:because|since|rather than|instead of|"
    r"as (?:it|they|that)(?:'s|'re| is| are| has| have| does)))\b",
)
_OPTION = lazily(r"^(?:option|alternative|approach|variant|choice|plan) (?:[a-h]|\d)\b")
_CHOICE = lazily(r"\b(?:which|prefer|choose|pick|what (?:do|would|should) (?:you|we|i))\b")
_PLAIN_REQUEST = lazily(r"^please (?:confirm|provide|share|specify|tell|choose|pick|clarify)\b")
_OFFER = lazily(
    r"^(?:(?:sure|of course|absolutely|certainly)[,!] )?(?:i(?:'d be happy to| can| will|'ll)"
    r"(?: certainly| gladly| also)? (?:help|assist)|would you like|do you want|want (?:me )?to|shall i|should i|"
    r"let me know|feel free|if you(?:'d like| want| need| have)\b(?=[^,]*$|.*\b(?:i|i'[a-z]+|me|we|ask|say|reply|"
    r"happy|free|questions?|anything)\b)|is there anything|anything else|happy to|i can also|"
    r"ready (?:to|for|when)|how (?:can|may) i (?:help|assist))\b",
)


@lru_cache(maxsize=CACHE_SIZE)
def agent_type(sentence: str) -> Type | None:
    """Return the type of an agent's sentence, or None for narration, offers and sentences without a cue."""
    sentence = plain(sentence)
    if _OFFER.match(sentence) or _is_plan(sentence):
        return None
    if has_question_mark(sentence) or _PLAIN_REQUEST.match(sentence):
        return Type.QUESTION
    if _BLOCKER.search(sentence):
        return Type.BLOCKER
    if _FINDING.search(sentence):
        return Type.FACT
    if _AGENT_DECISION.search(sentence) and not _ONGOING.search(sentence):
        return Type.DECISION
    if _is_report(sentence) and not _ONGOING.search(sentence):
        return Type.OUTCOME
    if _NEXT.match(sentence):
        return Type.PLAN
    return None


def _is_report(sentence: str) -> bool:
    """Return True if a sentence starts with a result, or contains one such as "I fixed" or "tests pass".

    Table rows, and conditional or negated results at the start, do not count.
    """
    if " | " in sentence:
        return False
    done = _RESULT.search(sentence, 0, _RESULT_WITHIN)
    return bool(_I_DID.search(sentence)) or (done is not None and not _NOT_DONE.search(sentence, 0, done.start()))


@lru_cache(maxsize=CACHE_SIZE)
def says_nothing(sentence: str) -> bool:
    """Return True if a sentence begins like an announcement (`is_plan`) or an offer, or is a courtesy."""
    return is_plan(sentence) or is_offer(sentence) or is_courtesy(sentence)


def is_plan(sentence: str) -> bool:
    """Return True if a sentence begins by announcing the next action: "Let me look at the parser"."""
    return _is_plan(plain(sentence))


def _is_plan(sentence: str) -> bool:
    return bool(_NARRATION.match(sentence)) and not _CHOSEN.search(sentence)


def is_progress(sentence: str) -> bool:
    """Return True if a sentence only reports progress: "The build is still running"."""
    return bool(_PROGRESS.search(plain(sentence))) and agent_type(sentence) not in (Type.FACT, Type.DECISION)


def is_guess(sentence: str) -> bool:
    """Return True if a sentence expresses doubt: "It might be the cache"."""
    return bool(_GUESS.search(plain(sentence)))


def is_offer(sentence: str) -> bool:
    """Return True if a sentence begins like an offer of more work: "Would you like me to …"."""
    return bool(_OFFER.match(plain(sentence)))


def opens_next_steps(sentence: str) -> bool:
    """Return True if a heading introduces remaining work: "Next steps"."""
    return bool(_NEXT.match(plain(sentence)))


_OUTCOME_CHARACTERS = 1800
"""Number of characters kept from a turn's report."""
_ANSWER_CHARACTERS = 320
"""Number of characters kept from an answer in a chat without tools."""
_ROW_CHARACTERS = 500
_NOTABLE = frozenset({Type.FACT, Type.DECISION, Type.BLOCKER})
_MIN_PROGRESS = 30
_UNNAMED_IMPORTANCE = 4
"""Importance of a sentence that has neither an anchor nor a type, and is not a guess."""
_STATUS: Mapping[Type, Status] = MappingProxyType({
    Type.OUTCOME: Status.DONE, Type.BLOCKER: Status.OPEN, Type.QUESTION: Status.OPEN,
})  # fmt: skip
_AGENT_IMPORTANCE: Mapping[Type, int] = MappingProxyType({
    Type.BLOCKER: 7, Type.OUTCOME: 7, Type.DECISION: 6, Type.QUESTION: 5, Type.PLAN: 4,
})  # fmt: skip


def progress_drafts(texts: Sequence[KeptMessage]) -> Iterator[Draft]:
    """Yield rows for findings, decisions, blockers and sentences with anchors, in texts other than a turn's report."""
    for text in texts:
        content = list(filter(_is_kept, text_parts(text.message.text)))
        for row in group_sentences(content, list(map(_progress_type, map(text_of, content)))):
            kind = row.kind or Type.FACT
            status = Status.OPEN if kind is Type.BLOCKER else None
            importance = _agent_importance(row.text, row.kind) - 1
            yield text_draft(text, f"Agent: {cut(row.text, _ROW_CHARACTERS)}", kind, importance, status=status)


def _is_kept(part: TextPart) -> bool:
    if part.is_heading or text_length(part.text) < _MIN_PROGRESS:
        return False
    if is_offer(part.text) or is_progress(part.text):
        return False
    return agent_type(part.text) in _NOTABLE or bool(anchors(part.text))


def _progress_type(sentence: str) -> Type | None:
    kind = agent_type(sentence)
    return kind if kind in _NOTABLE else Type.PLAN if is_plan(sentence) else None


def report_drafts(text: KeptMessage, *, worked: bool, in_chat: bool = False) -> Iterator[Draft]:
    """Yield rows for a turn's report.

    `worked` means that the turn used tools, `in_chat` that the whole batch has no tool calls.
    """
    speaker = agent_name(text.message.name)
    parts = [part for part in text_parts(text.message.text) if not says_nothing(part.text)]
    content = select_sentences(parts, _ANSWER_CHARACTERS if in_chat else _OUTCOME_CHARACTERS)
    for row in group_sentences(content, _report_kinds(content)):
        if text_length(row.text) < MIN_CHARACTERS and not anchors(row.text):
            continue
        kind = row.kind or Type.FACT
        if kind is Type.OUTCOME and not worked:
            kind = Type.FACT
        status = _STATUS.get(kind)
        importance = _agent_importance(row.text, kind if row.kind else None)
        importance += worked and kind is not Type.OUTCOME and importance > _UNNAMED_IMPORTANCE
        yield text_draft(
            text,
            f"{speaker}: {cut(row.text, _ROW_CHARACTERS)}",
            kind,
            importance - 2 * in_chat,
            priority=Priority.MEDIUM if kind is Type.OUTCOME else None,
            status=status,
        )


def _report_kinds(parts: Sequence[TextPart]) -> list[Type | None]:
    """Return each sentence's type. A heading such as "Next steps" and the items under it are plans. Other headings have
    no type. Options, such as the items of a report that ends by asking to choose, are facts if they read like results.
    """
    kinds: list[Type | None] = []
    is_next = False
    offers_choice = bool(parts) and has_question_mark(parts[-1].text) and _CHOICE.search(plain(parts[-1].text))
    for part in parts:
        is_next = opens_next_steps(part.text) if part.is_heading else is_next and part.is_item
        kind = Type.PLAN if is_next else None if part.is_heading else agent_type(part.text)
        is_option = (offers_choice and part.is_item) or _OPTION.match(plain(part.text))
        kinds.append(Type.FACT if is_option and kind is Type.OUTCOME else kind)
    return kinds


def _agent_importance(text: str, kind: Type | None) -> int:
    if kind is None or kind is Type.FACT:
        named = bool(anchors(text))
        return 3 if is_guess(text) and not named else _UNNAMED_IMPORTANCE + (kind is Type.FACT or named)
    return _AGENT_IMPORTANCE.get(kind, 4)


_MAX_WEIGHT = 3
"""A sentence is dropped if its weight is minus this number or lower. Such a sentence has at least 900 characters and
few anchors.
"""


def report_summary(parts: Sequence[TextPart], limit: int) -> str:
    """Return the most informative statements of a report on one line of about `limit` characters."""
    return joined_sentences([part for part in select_sentences(parts, limit) if not cues.has_question_mark(part.text)])


def select_sentences(parts: Sequence[TextPart], limit: int) -> list[TextPart]:
    """Return the most informative sentences of a report in order, within `limit` characters plus headings.

    Anchors (up to three), a type (`agent_type`), the first position and a place under "Next steps" add weight; length
    reduces it. Announcements, offers, courtesies and introductions without a list are left out.
    """
    weights: list[tuple[float, int]] = []
    under = ""
    for index, part in enumerate(parts):
        under = part.text if part.is_heading else under
        opens_nothing = part.text.endswith(":") and not any(after.is_item for after in parts[index + 1 : index + 2])
        if part.is_heading or opens_nothing or says_nothing(part.text):
            continue
        value = min(len(anchors(part.text)), 3) - len(part.text) / 300
        value += 2 * bool(agent_type(part.text)) + 2 * (index == 0) + opens_next_steps(under)
        weights.append((-value, index))
    kept: list[int] = []
    room = limit
    for value, index in sorted(weights):
        if value < _MAX_WEIGHT and len(parts[index].text) <= room:
            kept.append(index)
            room -= len(parts[index].text) + 3
    return [parts[index] for index in _with_headings(parts, sorted(kept))]


def _with_headings(parts: Sequence[TextPart], kept: Sequence[int]) -> list[int]:
    """Return the indexes of the kept sentences, with each informative heading before the first sentence under it."""
    found: list[int] = []
    under = -1
    chosen = set(kept)
    for index in range(kept[-1] + 1 if kept else 0):
        if parts[index].is_heading:
            under = index
        elif index in chosen:
            heading = parts[under].text if under >= 0 else ""
            if heading and (anchors(heading) or opens_next_steps(heading) or agent_type(heading)):
                found.append(under)
            found.append(index)
            under = -1
    return found
