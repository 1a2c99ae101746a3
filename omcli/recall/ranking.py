"""Ranking of messages and rows that match a query.

The weight of a word is the square root of its rarity (its inverse document frequency), times 0.7 if the word is common.
The score of a message is the sum over the words of the query. A turn may borrow a word from a turn among the four
messages on either side, because a question and its answer rarely share their words. A borrowed word counts less, the
more tokens lie between the two; of several occurrences, the best one counts. Calls and results of tools neither lend
nor borrow. Words in long texts count less, as in BM25. The sum for a message of an agent or tool counts half, and so do
its words, except those that an agent says in a session in which it used tools: it tells what it found and did.

The best row of a message adds 0.3 of its own score to the message. Rows score four times as much if they are lasting
wishes or rules, decisions when the query asks why, or failures and blockers when it asks what went wrong; but not for a
word such as "fail", which any failure may contain, if others say what failed. A row is shown in place of its only
message, or of the call that it is about, if it contains the same words of the query.

If there are vectors, the 20 messages and the 20 rows nearest to the query in meaning have a nearness, from 1 for the
first to 0 for the last. Messages lend it to their neighbours if the query is a question. The ranking by nearness and
the ranking by words are merged by reciprocal rank fusion.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import accumulate, groupby
from math import log, sqrt
from typing import TypeVar

from omcli.base import lazily
from omcli.base.record import record, replace
from omcli.memory.observation import FAILURES, PINNED, TOOL_EVENTS, Logged, Priority, Type
from omcli.memory.search import MessagePlace, Nearest, WordMatch
from omcli.text.terms import COMMON_WORDS, FUNCTION_WORDS, NAME_LIKE, split_cjk

REACH = 4
"""Number of neighbours on either side from which a message borrows words."""
_COMMON = 0.7
"""Weight of a common word, relative to others."""
_NEAR = 65
"""Distance between the middles of two messages, in tokens, at which a borrowed word counts half: a few turns of a chat,
but less than a long answer.
"""
_USUAL_TOKENS = 200
"""Length of a text, in tokens, at which a word has its own weight: more in a shorter text, less in a longer one."""
_SATURATION, _BY_LENGTH = 0.6, 0.75
"""The parameters k1 and b of BM25 (Robertson and Zaragoza 2009), for words that are either present or absent."""
_OF_AGENT = 0.5
"""Weight of the words, and of the messages, of agents and tools. People say what matters in fewer words."""
_OF_ROW = 0.3
"""Share of its best row's score that a message gets."""
_OF_RULE = 4
"""Weight of a wish or rule of the user, relative to other rows: a rule holds for every task that it matches. Rows of
the other types in `Query.telling` have this weight, too.
"""
_RULES = frozenset({Type.INSTRUCTION, Type.PREFERENCE, Type.CORRECTION})
_TROUBLE = FAILURES | {Type.BLOCKER}
_OF_CALLS = TOOL_EVENTS - {Type.EXCERPT}
"""Types of rows that tell what a call did. Their first source is the call."""
_FIRST_SOURCES = 4
"""A row adds to the score of its first source messages, at most this many. A row with more sources is a summary."""
_DAY = len("YYYY-MM-DD")
INEXACT = 0.5
"""Factor on the score of a match for each quotation or name of the query that it doesn't contain exactly."""


FUSION = 60
"""The usual parameter k of reciprocal rank fusion (Cormack et al. 2009). With a lower one, first places count more."""
_STEEPER = 20
"""The k that recall uses. With 60, the first places by words hardly differ, and recall finds less."""
OF_VECTORS = 0.4
"""Weight of the ranking by vectors, relative to the one by words. With equal weights, less is found than by words."""
NEAREST = 20
"""Number of messages, and of rows, that count as near. Further ones are near by chance."""
_OF_PINNED, _OF_HIGH = 1.5, 1.2
"""Factors for pinned rows and rows of high priority in a fused ranking."""


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
    row: Logged | None
    nearness: float | None = None
    """Similarity of meaning to the query, from 1 for the nearest to 0 for the farthest of the nearest. None unless the
    match, a row about it or a neighbouring message is one of these.
    """


def weight(query: Query, matches: Sequence[WordMatch], *, size: int) -> tuple[Word, ...]:
    """Weigh each word by the square root of its inverse document frequency among `size` messages and rows. A common
    word weighs less (`_COMMON`).
    """

    def word_weight(word: str, match: WordMatch) -> Word:
        rarity = log(1 + max(0.0, size - match.count + 0.5) / (match.count + 0.5))
        weight = sqrt(rarity) * (_COMMON if word in COMMON_WORDS else 1)
        return Word(text=word, weight=weight, messages=match.messages, rows=match.rows)

    return tuple(word_weight(word, match) for word, match in zip(query.words, matches, strict=True))


def candidates(words: Sequence[Word], *, most: int) -> tuple[list[int], list[int]]:
    """Return the numbers of the messages and of the rows that have the most weight, at most `most` of each, the
    heaviest first and, among equals, the newest.
    """

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
    nearest: Nearest | None = None,
) -> list[Match]:
    """Rank messages and rows, the best first, and the newest message first among equals.

    Only messages that are wanted (`is_wanted`) are matches; the others lend them words. A row adds to the score of its
    first source messages. It is shown in place of its only message, or of its call, if it contains all words of the
    query that the message contains. A row without messages among `places` is a match of its own, and so is every row
    unless `with_messages`. What contains no word of the query is a match only if the query is a question, or if the
    match has a nearness.
    """
    worths = {logged.position: _row_worth(words, logged, query) for logged in rows}
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
    near = (
        Nearest(messages={}, rows={})
        if nearest is None
        else _shared(nearest, places, rows, with_neighbours=query.is_question)
    )
    ranked = [_row_match(words, score, logged, near) for score, logged in found]
    if with_messages:
        ranked += (
            _message_match(words, messages[seq], seq, of_message.get(seq, ()), worths, nearness=near.messages.get(seq))
            for seq in (place.seq for place in places if place.is_wanted)
            if messages[seq] > 0 or seq in near.messages
        )
    if not query.is_question:
        ranked = [match for match in ranked if match.words or match.nearness is not None]
    ranked.sort(key=lambda match: (match.score, match.seq or 0), reverse=True)
    return ranked if nearest is None else _merged(ranked)


Key = TypeVar("Key", bound=Hashable)


def merged(
    *rankings: Sequence[Key],
    weights: Sequence[float] = (1, 1),
    prior: Callable[[Key], float] = lambda _: 1,
    k: int = FUSION,
) -> dict[Key, float]:
    """Return the scores of everything in several rankings, the best first: the sum of `weight / (k + place)` times
    `prior`. Places are counted from 0. Among equals, the one that is seen first comes first.
    """
    scores: dict[Key, float] = defaultdict(float)
    for ranking, weight in zip(rankings, weights, strict=True):
        for place, key in enumerate(ranking):
            scores[key] += weight / (k + place)
    totals = {key: score * prior(key) for key, score in scores.items()}
    return dict(sorted(totals.items(), key=lambda each: each[1], reverse=True))


def worth(match: Match) -> float:
    """Return the factor for a match in a merged ranking. A row shown in place of its message counts like a message."""
    if match.row is None or match.seq is not None:
        return 1
    row = match.row.observation
    return (_OF_PINNED if PINNED in row.tags else 1) * (_OF_HIGH if row.priority is Priority.HIGH else 1)


def _merged(ranked: Sequence[Match]) -> list[Match]:
    """Return the matches in the order of the fused rankings by words and by vectors. The first place by words alone has
    the score 1, unless `worth` raises it.
    """
    by_words = [at for at, match in enumerate(ranked) if match.score > 0]
    by_vectors = [at for at, match in enumerate(ranked) if match.nearness is not None]
    by_vectors.sort(key=lambda at: ranked[at].nearness or 0, reverse=True)
    scores = merged(by_words, by_vectors, weights=(1, OF_VECTORS), prior=lambda at: worth(ranked[at]), k=_STEEPER)
    return [replace(ranked[at], score=score * _STEEPER) for at, score in scores.items()]


def _shares(cosines: Mapping[int, float]) -> dict[int, float]:
    """Return numbers from 1 for the nearest to 0 for the farthest of some messages or rows."""
    least, most = min(cosines.values(), default=0), max(cosines.values(), default=0)
    return {number: (cosine - least) / (most - least) if most > least else 1.0 for number, cosine in cosines.items()}


def _shared(
    nearest: Nearest, places: Sequence[MessagePlace], rows: Iterable[Logged], *, with_neighbours: bool
) -> Nearest:
    """Return the nearness of rows, of messages and, if asked for, of their neighbours. Calls and results, which have no
    vectors, are as near as the rows about them.
    """
    own, of_rows = _shares(nearest.messages), _shares(nearest.rows)
    events = {place.seq for place in places if not place.is_turn}
    for logged in rows:
        if logged.position in of_rows:
            for seq in events.intersection(logged.observation.sources[:_FIRST_SOURCES]):
                own[seq] = max(of_rows[logged.position], own.get(seq, 0))
    lent = dict(own)
    for day in _days(places if with_neighbours else ()):
        for at, near, part in _near(day, [place.seq in own for place in day]):
            seq = day[near].seq
            lent[seq] = max(part * own[day[at].seq], lent.get(seq, 0))
    return Nearest(messages=lent, rows=of_rows)


def _row_match(words: Sequence[Word], score: float, logged: Logged, near: Nearest) -> Match:
    matched = tuple(word.text for word in words if logged.position in word.rows)
    nearness = near.rows.get(logged.position)
    return Match(score=score, words=matched, seq=None, row=logged, nearness=nearness)


def _message_match(
    words: Sequence[Word],
    score: float,
    seq: int,
    evidence: Iterable[Logged],
    worths: Mapping[int, float],
    *,
    nearness: float | None,
) -> Match:
    matched = [word for word in words if seq in word.messages]
    standing = [
        logged
        for logged in evidence
        if logged.observation.sources[: 1 if logged.observation.type in _OF_CALLS else None] == (seq,)
        and all(logged.position in word.rows for word in matched)
    ]
    row = max(standing, key=lambda logged: worths[logged.position]) if standing else None
    found = tuple(word.text for word in matched)
    return Match(score=score, words=found, seq=seq, row=row, nearness=nearness)


def _row_worth(words: Sequence[Word], logged: Logged, query: Query) -> float:
    row = logged.observation
    times = _OF_RULE if row.type in query.telling else 1
    once = query.failing_words if row.type in _TROUBLE else ()
    said = (word for word in words if logged.position in word.rows)
    return sum(word.weight * (1 if word.text in once else times) for word in said) * _length_weight(row.tokens)


def _worth_of_messages(words: Sequence[Word], places: Sequence[MessagePlace]) -> dict[int, float]:
    """Return the score of each message by `seq`: the sum of the highest score that each word has in the message or,
    reduced by the distance, in a neighbour, times the weight of the role.
    """
    worths: dict[int, float] = {}
    working = {place.session for place in places if not place.is_turn}
    for day in _days(places):
        said = [_said(words, place, full=place.is_turn and place.session in working) for place in day]
        best: list[dict[str, float]] = [{} for _ in day]
        for at, near, share in _near(day, said):
            found = best[near]
            for word, worth in said[at].items():
                if share * worth > found.get(word, 0):
                    found[word] = share * worth
        for place, found in zip(day, best, strict=True):
            worths[place.seq] = sum(found.values()) * _role_weight(place)
    return worths


def _days(places: Sequence[MessagePlace]) -> Iterator[list[MessagePlace]]:
    """Yield the messages of each session and day."""
    for _, group in groupby(places, key=lambda place: (place.session, place.at and place.at[:_DAY])):
        yield list(group)


def _near(day: Sequence[MessagePlace], lent: Sequence[object]) -> Iterator[tuple[int, int, float]]:
    """Yield the index of a message with something to lend, the index of a message that gets it, and the share that
    counts there. A message gets all of its own and, if it is a turn, a share from each turn near it.
    """
    offset = _offset(day)
    for at in filter(lent.__getitem__, range(len(day))):
        for near in range(max(0, at - REACH), min(len(day), at + REACH + 1)):
            is_answer = day[at].is_turn and day[near].is_turn
            if at == near or (is_answer and abs(day[near].seq - day[at].seq) <= REACH):
                yield at, near, _NEAR / (_NEAR + abs(offset[at] - offset[near]))


def _said(words: Sequence[Word], place: MessagePlace, *, full: bool) -> dict[str, float]:
    """Return the score of each word that a message contains. Words of agents and tools count half, unless `full`."""
    seq = place.seq
    found = {word.text: word.weight for word in words if seq in word.messages}
    if found:
        factor = _length_weight(place.tokens) * (1 if full else _role_weight(place))
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


# ---- queries


MOST_MATCHES = 10_000
"""Maximum number of matches to read for each word, the newest ones."""
_WORD = lazily(r"[^\W_]+")
_ENDING = lazily(r"(?<=[^\W_])['’](?:s|t|d|m|ll|re|ve)\b")
"""Matches the end of an English word from its apostrophe on, which has no meaning of its own."""
_EXACT = lazily(r'["“]([^"“”]+)["”]|(?<![^\W_])([^\W_]++(?:[-_./:#@]++[^\W_]++)+)')
"""Matches a quotation, or a name that consists of several words: a path, an identifier, a version."""
_WHY = frozenset({"why", "warum", "wieso", "weshalb", "pourquoi", "perché", "waarom", "varför"})
_WRONG = lazily(
    r"\b(?:fail(?:s|ed|ing|ures?)?|errors?|problems?|wrong|broken?|breaks?|crash(?:es|ed)?|bugs?|fehler|erreurs?)\b"
    r"|(?:\bnot|n['’]t) works?\b"
)
_SHORTEST_QUESTION = 3
_MOST_WORDS = 64
"""Maximum number of words in a query. Of a longer text, the first ones are used."""
_SYMBOLS = frozenset({"So", "Sm", "Sc"})
"""Categories of Unicode: emoji and other symbols, arrows and signs of mathematics, currencies."""
_MOST_SYMBOLS = 4
"""Maximum number of symbols in a query. They are not indexed, so all texts are read for each (0.1 s for 100 MB)."""
_LONGEST_PIECE = 1_000
"""Maximum number of characters of a part: about 250 tokens, as many as small models take, and one subject."""
_MOST_PIECES = 2
"""Maximum number of parts of a text that have a vector. More parts did not improve the results. Words are found in the
whole text.
"""
_ENDS = ("\n\n", "\n", ". ", "? ", "! ", " ")
"""Ends of paragraphs, lines, sentences and words. A part is cut at the first kind that occurs in its second half, after
the last occurrence.
"""
_SPACE = " \t\n\r"


@record
class Query:
    words: tuple[str, ...]
    """The words to search for, in order, each once and in lower case. Function words are left out (see `of`)."""
    exact: tuple[str, ...] = ()
    """Quotations and names, in lower case. Each that a text doesn't contain exactly halves the text's score."""

    telling: Collection[Type] = _RULES
    """Types of rows that count more: wishes and rules; decisions if the text asks why; failures and blockers if it asks
    what went wrong.
    """

    @property
    def is_question(self) -> bool:
        """True if messages next to a match may be the answer. A query of one or two words, or with a name or quotation,
        only looks for texts that contain these.
        """
        return len(self.words) >= _SHORTEST_QUESTION and not self.exact

    @property
    def asks_why(self) -> bool:
        return Type.DECISION in self.telling

    @property
    def failing_words(self) -> frozenset[str]:
        """Words such as "fail", which any failure may contain; none if the query doesn't say what failed."""
        found = frozenset(filter(_WRONG.fullmatch, self.words))
        return frozenset() if COMMON_WORDS.issuperset(set(self.words) - found) else found

    def missing(self, text: str) -> int:
        """Return the number of names and quotations (`exact`) that a text doesn't contain."""
        folded = " ".join(_folded(text).split()) if self.exact else ""
        return sum(name not in folded for name in self.exact)

    def is_in(self, text: str) -> bool:
        """Return True if a text contains each word, even inside a longer one, and the names and quotations exactly."""
        folded = _folded(text)
        return all(word in folded for word in self.words) and not self.missing(text)

    @classmethod
    def of(cls, text: str) -> Query:
        """Return the query for a text. If the text has only function words, these are searched for; if it has neither
        letters nor digits, its symbols are, such as emoji. The query may have no words at all.
        """
        folded = _folded(text)
        found = list(dict.fromkeys(_WORD.findall(split_cjk(_ENDING.sub(" ", folded)))))
        words = [word for word in found if word not in FUNCTION_WORDS] or found or _marks_of(folded)
        exact = (
            " ".join((quotation or name).split())
            for quotation, name in _EXACT.findall(folded)
            if quotation or NAME_LIKE.search(name)
        )
        return cls(
            words=tuple(words[:_MOST_WORDS]),
            exact=tuple(dict.fromkeys(exact)),
            telling=_RULES.union(
                () if _WHY.isdisjoint(found) else (Type.DECISION,), _TROUBLE if _WRONG.search(folded) else ()
            ),
        )


def _marks_of(text: str) -> list[str]:
    """Return the first symbols in a text, each once. Those of ASCII are left out, because they are part of code."""
    found = (char for char in text if not char.isascii() and unicodedata.category(char) in _SYMBOLS)
    return list(dict.fromkeys(found))[:_MOST_SYMBOLS]


def pieces(text: str) -> Iterator[str]:
    """Yield the first parts of a text, at most `_MOST_PIECES`. Each is cut at the end of a paragraph, line, sentence or
    word in its second half, if there is one.

    Nothing is yielded for a text of spaces.
    """
    text = text.strip(_SPACE)
    ends = 0
    for _ in range(_MOST_PIECES):
        begins, ends = ends, ends + _LONGEST_PIECE
        if ends < len(text):
            half = begins + _LONGEST_PIECE // 2
            found = (at + len(end) for end in _ENDS if (at := text.rfind(end, half, ends)) >= 0)
            ends = min(next(found, ends), ends)
        if piece := text[begins:ends].strip(_SPACE):
            yield piece


def _folded(text: str) -> str:
    """Return text in lower case, with each accent as part of its letter: there are two ways to encode an "é"."""
    return unicodedata.normalize("NFC", text).lower()
