"""Ranking of messages and rows that match a query.

The weight of a word is the square root of its rarity (its inverse document frequency), times 0.7 if the word is common.
The score of a message is the sum over the words of the query. A turn may borrow a word from a turn among the four
messages on either side, because a question and its answer rarely share their words. A borrowed word counts less, the
more tokens lie between the two; of several occurrences, the best one counts. Calls and results of tools neither lend
nor borrow. Words in long texts count less, as in BM25, and words of agents and tools count half.

A row adds 0.3 of its own score to its messages, and four times that if it is a lasting wish or rule, or a decision when
the query asks why. It is shown in place of its message if it contains the same words of the query.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import accumulate, groupby
from math import log, sqrt

from omcli.base.record import record
from omcli.memory.observation import Logged, Observation, Type
from omcli.memory.search import MessagePlace, WordMatch
from omcli.recall.query import Query
from omcli.text.terms import COMMON_WORDS

REACH = 4
"""Number of neighbours on either side from which a message borrows words."""
_COMMON = 0.7
"""Weight of a common word, relative to others."""
_NEAR = 65
"""Distance between the middles of two messages, in tokens, at which a borrowed word counts half: a few turns of a chat,
but less than a long answer.
"""
_USUAL_TOKENS = 200
"""Length of a text, in tokens, at which its words have their full weight. In shorter texts they weigh more."""
_SATURATION, _BY_LENGTH = 0.6, 0.75
"""The parameters k1 and b of BM25 (Robertson and Zaragoza 2009), for words that are either present or absent."""
_OF_AGENT = 0.5
"""Weight of the words, and of the messages, of agents and tools. People say what matters in fewer words."""
_OF_ROW = 0.3
"""Share of a row's score that is added to its messages."""
_OF_RULE = 4
"""Weight of a wish or rule of the user, relative to other rows. It holds for every task that it matches."""
_RULES = frozenset({Type.INSTRUCTION, Type.PREFERENCE, Type.CORRECTION})
_REASONS = frozenset({Type.DECISION, *_RULES})
"""Types of rows that weigh more if a query asks why."""
_FIRST_SOURCES = 4
"""Number of source messages to which a row adds, the first ones. A row with more sources is a summary."""
_DAY = len("YYYY-MM-DD")
INEXACT = 0.5
"""Factor of a match for each quotation or name of the query that it doesn't contain exactly."""


@record
class Word:
    """A word of a query with its matches."""

    text: str
    weight: float
    messages: frozenset[int]
    rows: frozenset[int]


@record
class Match:
    """A match: a message, a row, or a message with a row that is shown in its place."""

    score: float
    words: tuple[str, ...]
    """The words of the query that it contains, in order. Others may be in neighbouring messages, or nowhere."""
    seq: int | None
    row: Observation | None


def weight(query: Query, matches: Sequence[WordMatch], *, size: int) -> tuple[Word, ...]:
    """Weigh each word by the square root of its inverse document frequency among `size` messages and rows."""

    def word_weight(word: str, match: WordMatch) -> Word:
        rarity = log(1 + max(0.0, size - match.count + 0.5) / (match.count + 0.5))
        weight = sqrt(rarity) * (_COMMON if word in COMMON_WORDS else 1)
        return Word(text=word, weight=weight, messages=match.messages, rows=match.rows)

    return tuple(word_weight(word, match) for word, match in zip(query.words, matches, strict=True))


def candidates(words: Sequence[Word], *, most: int) -> tuple[list[int], list[int]]:
    """Return the numbers of at most `most` messages and as many rows that have the most weight, the newest first."""

    def best(of_each: Iterable[tuple[float, frozenset[int]]]) -> list[int]:
        totals: dict[int, float] = defaultdict(float)
        for weight, numbers in of_each:
            for number in numbers:
                totals[number] += weight
        return nlargest(most, totals, key=lambda number: (totals[number], number))

    return best((word.weight, word.messages) for word in words), best((word.weight, word.rows) for word in words)


def rank(
    query: Query,
    words: Sequence[Word],
    places: Sequence[MessagePlace],
    rows: Sequence[Logged],
    *,
    with_messages: bool,
) -> list[Match]:
    """Rank messages and rows, the best first and the newest first among equals.

    A row adds to the score of its source messages, and is shown in place of one that contains the same words of the
    query. A row without messages among `places` is a match of its own, and so is every row unless `with_messages`. A
    message without any word of the query is a match only if the query is a question.
    """
    telling = _REASONS if query.asks_why else _RULES
    worths = {logged.position: _row_worth(words, logged, telling) for logged in rows}
    messages = _worth_of_messages(words, places)
    of_message: dict[int, list[Logged]] = defaultdict(list)
    alone: list[Logged] = []
    for logged in rows:
        cited = [seq for seq in logged.observation.sources[:_FIRST_SOURCES] if seq in messages]
        for seq in cited:
            of_message[seq].append(logged)
        if not (cited and with_messages):
            alone.append(logged)
    for seq, evidence in of_message.items():
        messages[seq] += _OF_ROW * max(worths[logged.position] for logged in evidence)
    found = [
        (worths[logged.position] + max((messages.get(seq, 0) for seq in logged.observation.sources), default=0), logged)
        for logged in alone
    ]
    ranked = [_row_match(words, score, logged) for score, logged in found]
    if with_messages:
        ranked += (
            _message_match(words, messages[place.seq], place.seq, of_message.get(place.seq, ()), worths)
            for place in places
            if place.is_wanted and messages[place.seq] > 0
        )
    if not query.is_question:
        ranked = [match for match in ranked if match.words]
    return sorted(ranked, key=lambda match: (match.score, match.seq or 0), reverse=True)


def _row_match(words: Sequence[Word], score: float, logged: Logged) -> Match:
    matched = tuple(word.text for word in words if logged.position in word.rows)
    return Match(score=score, words=matched, seq=None, row=logged.observation)


def _message_match(
    words: Sequence[Word], score: float, seq: int, evidence: Iterable[Logged], worths: Mapping[int, float]
) -> Match:
    matched = [word for word in words if seq in word.messages]
    standing = [
        logged
        for logged in evidence
        if logged.observation.sources == (seq,) and all(logged.position in word.rows for word in matched)
    ]
    row = max(standing, key=lambda logged: worths[logged.position]).observation if standing else None
    return Match(score=score, words=tuple(word.text for word in matched), seq=seq, row=row)


def _row_worth(words: Sequence[Word], logged: Logged, telling: Collection[Type]) -> float:
    row = logged.observation
    weight = sum(word.weight for word in words if logged.position in word.rows)
    return weight * _length_weight(row.tokens) * (_OF_RULE if row.type in telling else 1)


def _worth_of_messages(words: Sequence[Word], places: Sequence[MessagePlace]) -> dict[int, float]:
    """Return the score of each message by `seq`: for each word, the most that it counts in it or in a neighbour."""
    worths: dict[int, float] = {}
    for _, group in groupby(places, key=lambda place: (place.session, place.at and place.at[:_DAY])):
        day = list(group)
        said = [_said(words, place) for place in day]
        offset = _offset(day)
        best: list[dict[str, float]] = [{} for _ in day]
        for at, own in enumerate(said):
            if not own:
                continue
            for near in range(max(0, at - REACH), min(len(day), at + REACH + 1)):
                is_answer = day[at].is_turn and day[near].is_turn
                if at == near or (is_answer and abs(day[near].seq - day[at].seq) <= REACH):
                    share = _NEAR / (_NEAR + abs(offset[at] - offset[near]))
                    found = best[near]
                    for word, worth in own.items():
                        if share * worth > found.get(word, 0):
                            found[word] = share * worth
        for place, found in zip(day, best, strict=True):
            worths[place.seq] = sum(found.values()) * _role_weight(place)
    return worths


def _said(words: Sequence[Word], place: MessagePlace) -> dict[str, float]:
    """Return the score of each word that a message contains."""
    seq = place.seq
    found = {word.text: word.weight for word in words if seq in word.messages}
    if found:
        factor = _length_weight(place.tokens) * _role_weight(place)
        found = {word: weight * factor for word, weight in found.items()}
    return found


def _offset(places: Sequence[MessagePlace]) -> list[float]:
    """Return the number of tokens before the middle of each message."""
    before = [0, *accumulate(place.tokens for place in places)]
    return [begins + place.tokens / 2 for begins, place in zip(before, places, strict=False)]


def _role_weight(place: MessagePlace) -> float:
    return 1 if place.is_person else _OF_AGENT


def _length_weight(tokens: int) -> float:
    """Return the weight of words in a text of this length."""
    return (_SATURATION + 1) / (1 + _SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * tokens / _USUAL_TOKENS))
