"""Rows about conversations between people, as short notes of what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat

from omcli.base.record import replace
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Draft, Type
from omcli.observers.rules import cues, people_cues
from omcli.observers.rules.people import question_of
from omcli.observers.rules.sentences import RowText, cut, text_draft, text_of, text_parts, word_count

_ANSWER_TERMS = (1, 2)
"""Minimum number of uncommon words with which the first and the second sentence of a message answer a question."""
_JOINED_WORDS = 60
"""A row made of several messages has fewer words than this."""
_GOES_ON = 4
"""Maximum distance, in messages, at which a person's message continues an earlier one of the same person. If two people
alternate, the other one spoke at most twice in between.
"""
_ROW_CHARACTERS = 1600
_ROW_ENDS = " !.,;:-–—…"
_MIN_CHAT_IMPORTANCE = 5
"""Minimum importance of the best sentence of a message. A message between people without such a sentence gives no row.
"""


def chat_drafts(kept: KeptMessage, previous: KeptMessage | None) -> Iterator[Draft]:
    """Yield rows for a message between people: one for its facts, and one for each preference, decision or rule, which
    keeps its wording. A message without a sentence of `_MIN_CHAT_IMPORTANCE` gives none.

    If the message before it (`previous`) is by another person and asks something, the first row names the subject of
    the question, provided that the row begins with one of the first two sentences and does not name the subject itself.
    Everything but preferences and decisions is a fact, even a rule, because people do not instruct each other.
    """
    speaker = kept.message.name or "User"
    other = previous.message.name or "" if previous and previous.message.name != kept.message.name else ""
    asked = question_of(previous) if other else ""
    parts = map(text_of, text_parts(cues.without_notes(kept.message.text)))
    said = [told for part in parts if (told := _told(part, other))]
    topic = people_cues.question_label(asked, speaker)
    names = people_cues.distinctive_terms(f"{speaker} {other}")
    weights = _importance_of_each(said, names, asked=asked)
    if max(weights, default=0) < _MIN_CHAT_IMPORTANCE:
        return
    for row, places in _chat_rows(said, weights):
        answers = topic if places[0] < len(_ANSWER_TERMS) and not _repeats(row.text, topic) else ""
        importance = max(weights[place] or _MIN_CHAT_IMPORTANCE for place in places)
        text = cut(": ".join(filter(None, (speaker, answers, row.text))), _ROW_CHARACTERS)
        yield text_draft(kept, text, row.kind or Type.FACT, importance, also=previous if answers else None)
        topic = ""


def _repeats(text: str, topic: str) -> bool:
    """Return True if a text has all the words of a topic."""
    said = frozenset(word.strip(cues.MARKS) for word in cues.plain(text).split())
    return said.issuperset(word.strip(cues.MARKS) for word in cues.plain(topic).split())


def _importance_of_each(said: Sequence[str], names: frozenset[str], *, asked: str) -> list[int]:
    """Return the importance of each sentence of a message, or 0 if it says nothing. `asked` may be empty."""
    if not people_cues.is_known_language(" ".join((asked, *said))):
        return [_MIN_CHAT_IMPORTANCE * (len(people_cues.distinctive_terms(told)) >= people_cues.TELLS) for told in said]
    return [
        people_cues.chat_importance(told, names, answers=least if asked else 0)
        for told, least in zip(said, chain(_ANSWER_TERMS, repeat(0)), strict=False)
    ]


def _told(sentence: str, other: str) -> str:
    """Return a sentence without its opening and the name `other`, or "" for courtesies, questions and reactions."""
    said = cues.without_opening(sentence, other)
    is_empty = not said or cues.has_question_mark(said) or cues.is_courtesy(said)
    return "" if is_empty or any(map(people_cues.is_reaction, (sentence, said))) else said


def _chat_rows(said: Sequence[str], weights: Sequence[int]) -> Iterator[tuple[RowText, list[int]]]:
    """Yield rows for the sentences that say something, each with the places of its sentences. If the first of these
    sentences needs a subject, the one before it is kept as well.
    """
    places = [place for place, weight in enumerate(weights) if weight]
    if places[0] and cues.follows_on(said[places[0]]):
        places.insert(0, places[0] - 1)
    facts: list[int] = []
    rows: list[tuple[RowText, list[int]]] = []
    for place in places:
        kind = people_cues.user_type(said[place])
        if kind in people_cues.LASTING:
            kept = RowText(said[place].rstrip(_ROW_ENDS), kind if kind in people_cues.CHAT_TYPES else None)
            rows.append((kept, [place]))
        else:
            facts.append(place)
    if facts:
        text = "; ".join(cues.short_sentence(said[place]) for place in facts)
        rows.append((RowText(text, None), facts))
    yield from sorted(rows, key=lambda row: row[1])


def joined_turns(drafts: Iterable[Draft], places: Mapping[int, int]) -> list[Draft]:
    """Join a fact with the one before it if the same person goes on that day, and others only ask or react in between.

    `places` has the place of each message in the conversation, by `seq`. A joined row has fewer than `_JOINED_WORDS`
    words and refers to at most one date. Rules, preferences and decisions stay in rows of their own.
    """
    joined: list[Draft] = []
    for draft in drafts:
        last = joined[-1] if joined else None
        if last and _goes_on(last, draft) and places[draft.sources[-1]] - places[last.sources[-1]] <= _GOES_ON:
            joined[-1] = replace(
                last,
                text=f"{last.text}; {draft.text.partition(': ')[2]}",
                importance=max(last.importance, draft.importance),
                refers_to=last.refers_to or draft.refers_to,
                sources=tuple(sorted({*last.sources, *draft.sources})),
            )
        else:
            joined.append(draft)
    return joined


def _goes_on(last: Draft, draft: Draft) -> bool:
    speaker, _, text = draft.text.partition(": ")
    before, _, told = last.text.partition(": ")
    return (
        last.type is draft.type is Type.FACT
        and before == speaker
        and (last.event_at or "")[:10] == (draft.event_at or "")[:10]
        and not (last.refers_to and draft.refers_to)
        and word_count(told) + word_count(text) < _JOINED_WORDS
        and not any(people_cues.user_type(said) in people_cues.LASTING for said in (told, text))
    )
