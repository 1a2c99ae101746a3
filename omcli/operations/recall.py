"""Recalling: finding messages and rows that say something about a query, and rows to review."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from omcli.base.errors import BadUsage, IndexDamaged, OmError
from omcli.base.record import record, replace
from omcli.memory.message import KeptMessage, Role
from omcli.memory.observation import TOOL_EVENTS, Logged, LogQuery, Observation, Type
from omcli.memory.ports import Store
from omcli.memory.search import Nearest, Passage
from omcli.operations.clock import Clock
from omcli.recall import ranking, review
from omcli.recall.ranking import MOST_MATCHES, Match, Query, Word
from omcli.text.terms import FUNCTION_WORDS

_CANDIDATES = 300
"""Maximum number of messages, and of rows, to rank at first."""
_WIDER = 8
"""Factor by which `_CANDIDATES` grows if a filter leaves too few results."""
_COMPARED = 3
"""Number of results to read for each one returned, if the query has names or quotations: results that contain these
exactly may be further down.
"""
_MOST_ROWS = 100
"""Maximum number of matching rows to return. More would fill a pack alone."""
_CLOSE = 0.4
"""Share of the best score that a row needs in order to match a text. With a lower share, rows that contain only common
words of the text fill a small pack; with a higher one, the pack lacks half of the answers.
"""
_LAST = 0.5
"""The answer is the last reply with at least this share of the best reply's weight, because earlier replies often only
announce what will be done.
"""


class FindNearest(Protocol):
    """Finds messages and rows that mean the same as a query."""

    def __call__(self, text: str, query: LogQuery, *, most: int) -> Nearest | None:
        """Return up to `most` messages and up to `most` rows that `query` selects; None if vectors are unavailable."""


@record
class RecallFilter:
    """The rows and messages among which to search."""

    log: LogQuery = LogQuery()
    """For messages, the fields that only rows have are ignored."""
    tags: tuple[str, ...] = ()
    """Only rows that have all of these tags, ignoring case."""
    rows: bool = True
    messages: bool = True
    only: Callable[[Observation], bool] | None = None
    """Only rows for which this is true."""

    def is_wanted(self, row: Observation) -> bool:
        """Return True if rows are searched for, and a row that `log` selects has the tags and satisfies `only`."""
        has_tags = {tag.casefold() for tag in self.tags} <= {tag.casefold() for tag in row.tags}
        return self.rows and has_tags and (self.only is None or self.only(row))


@record
class RecallResult:
    """A row or message that matches a query, with its best line."""

    score: float
    words: tuple[str, ...]
    """The words of the query that it contains. Others may be in neighbouring messages, or nowhere."""
    row: Observation | None
    position: int
    """Position of the row in the log, or 0 without a row."""
    message: KeptMessage | None
    """The message, also if a row is shown in its place. None for a row that matches by itself."""
    passage: Passage = Passage(text="")
    answer: RecallResult | None = None
    """The agent's answer to a person's message, or the result of a call."""
    around: tuple[KeptMessage, ...] = ()
    """The message with its neighbours, if they were asked for."""
    contradicted_by: str | None = None
    """Id of the later row among the results that contradicts the row, if there is one."""

    @property
    def is_call(self) -> bool:
        """True for a tool call that no row describes."""
        return self.row is None and self.message is not None and self.message.message.role is Role.CALL


def recall(
    store: Store,
    text: str,
    wanted: RecallFilter,
    *,
    limit: int,
    around: int = 0,
    with_answers: bool = True,
    nearest: FindNearest | None = None,
    renew: Callable[[], None] | None = None,
) -> tuple[RecallResult, ...]:
    """Return the best `limit` results for a query, the best first.

    `around` is the number of neighbours to return on either side of each message; unless it is 0, no answers are
    returned. `nearest` finds texts that mean the same in other words. If the index of words is damaged, `renew` makes
    it again before another search. Raise BadUsage if the query has no words, and IndexDamaged if the index is damaged
    and `renew` is None.
    """
    query = Query.of(text)
    if not query.words:
        raise BadUsage("the query has no words (expected letters, digits or symbols)")
    find = partial(_find, store, query, wanted, limit=limit, nearest=nearest and partial(nearest, text))
    try:
        found, words = find()
        if not {*query.words}.issubset(word for match in found for word in match.words):
            store.index.check()  # a damaged index may have lost the others
    except IndexDamaged:
        if renew is None:
            raise
        renew()
        found, words = find()
    results = _with_later(
        _results(store, query, words, found[: limit * (_COMPARED if query.exact else 1)], limit=limit)
    )
    if around:
        return tuple(_with_context(store, each, around) for each in results)
    return _answer_all(store, query, words, results) if with_answers else results


def each_once(results: Iterable[RecallResult]) -> tuple[RecallResult, ...]:
    """Return the results, each followed by its answer, and every message once."""
    found: dict[object, RecallResult] = {}
    for result in results:
        name = result.row.id if result.row is not None else None
        found.setdefault(_seq(result) or name, replace(result, answer=None))
        if result.answer is not None:
            found.setdefault(_seq(result.answer), result.answer)
    return tuple(found.values())


def mark_used(results: Iterable[RecallResult], *, open_store: Callable[[], Store], clock: Clock) -> None:
    """Record that the rows were used. If another process is writing, or the store cannot be written, do nothing."""
    used = list(dict.fromkeys(result.row.id for result in results if result.row is not None))
    if used:
        with suppress(OmError):
            open_store().index.mark_used(used, now=clock.now())


@record
class MatchingRow:
    """A row that matches a text."""

    row: Logged
    share: float
    """Its score, relative to the best one's."""
    words: tuple[str, ...]
    """The words of the text that it contains."""


def matching_rows(store: Store, text: str, wanted: Iterable[RecallFilter]) -> tuple[MatchingRow, ...]:
    """Return at most `_MOST_ROWS` rows that match a text, of all filters together, the best first. There are none if
    all words of the text are function words. Raise IndexDamaged if the index of words is damaged.
    """
    query = Query.of(text)
    if FUNCTION_WORDS.issuperset(query.words):
        return ()
    found = [
        (match.score * ranking.INEXACT ** query.missing(match.row.observation.text), match.words, match.row)
        for each in wanted
        for match in _find(store, query, replace(each, messages=False), limit=_MOST_ROWS, nearest=None)[0]
        if match.row is not None
    ]
    found.sort(key=lambda each: (each[0], each[2].position), reverse=True)
    best = max((score for score, _, _ in found), default=0)
    return tuple(
        MatchingRow(row=row, share=score / best, words=words)
        for score, words, row in found[:_MOST_ROWS]
        if score >= _CLOSE * best > 0
    )


def _find(
    store: Store,
    query: Query,
    wanted: RecallFilter,
    *,
    limit: int,
    nearest: Callable[..., Nearest | None] | None,
) -> tuple[list[Match], tuple[Word, ...]]:
    """Return the matches, the best first, and the weighed words. If the filter leaves fewer than `limit`, read more."""
    index, most_matches, most = store.index, MOST_MATCHES, _CANDIDATES
    size = index.size(wanted.log)
    near = nearest(wanted.log, most=ranking.NEAREST) if nearest else None
    while True:
        matches = index.match(query.words, wanted.log, most=most_matches)
        words = ranking.weight(query, matches, size=size)
        messages, positions = ranking.candidates(words, most=most)
        if near is not None:
            messages, positions = [*messages, *near.messages], [*positions, *near.rows]
        rows = [logged for logged in index.rows(positions, wanted.log) if wanted.is_wanted(logged.observation)]
        cited = (seq for logged in rows for seq in logged.observation.sources)
        places = index.around({*messages, *cited}, wanted.log, reach=ranking.REACH)
        found = ranking.rank(query, words, places, rows, with_messages=wanted.messages, nearest=near)
        has_all = all(max(len(match.messages), len(match.rows)) < most_matches for match in matches)
        if len(found) >= limit or (has_all and max(len(messages), len(positions)) < most):
            return found, words
        most_matches, most = most_matches * _WIDER, most * _WIDER


def _results(
    store: Store, query: Query, words: Sequence[Word], found: Sequence[Match], *, limit: int
) -> tuple[RecallResult, ...]:
    """Return the best `limit` matches as results, the best first. Each name or quotation of the query that a match
    doesn't contain exactly halves the match's score.
    """
    messages = {kept.seq: kept for kept in store.messages.by_seq(match.seq for match in found if match.seq is not None)}
    results = []
    for match in found:
        kept = messages.get(match.seq or 0)
        row, position = (match.row.observation, match.row.position) if match.row is not None else (None, 0)
        text = row.text if row is not None else kept.message.text if kept is not None else None
        if text is not None:
            score = match.score * ranking.INEXACT ** query.missing(text)
            results.append(
                (text, RecallResult(score=score, words=match.words, row=row, position=position, message=kept))
            )
    best = sorted(results, key=lambda each: each[1].score, reverse=True)[:limit]
    passages = _passages(store, query, words, [text for text, _ in best])
    return tuple(replace(result, passage=passage) for (_, result), passage in zip(best, passages, strict=True))


def _passages(store: Store, query: Query, words: Sequence[Word], texts: Sequence[str]) -> tuple[Passage, ...]:
    weights = {word.text: word.weight for word in words}
    return store.index.passages(texts, query.words, weights=weights, why=query.asks_why)


def _with_later(results: Sequence[RecallResult]) -> tuple[RecallResult, ...]:
    """Return the results, each row with the id of the later row that contradicts it, if any (`contradicted_by`)."""
    logged = sorted(results, key=lambda each: each.position)
    later = {row.id: by.id for row, by in review.contradicted(each.row for each in logged if each.row is not None)}
    return tuple(replace(each, contradicted_by=later.get(each.row.id)) if each.row else each for each in results)


def _answer_all(
    store: Store, query: Query, words: Sequence[Word], results: Sequence[RecallResult]
) -> tuple[RecallResult, ...]:
    """Return the results with their answers. A person's message is answered by the last reply with enough of the words
    (see `_LAST`), if any reply has some. A call without a row is answered by its result, even if
    the result has none.
    """
    asked = {result.message.seq: result for result in results if result.message is not None}
    chosen: dict[int, int] = {}
    for seq, replies in store.index.answered(asked).items():
        weights = {reply: sum(word.weight for word in words if reply in word.messages) for reply in replies}
        most = max(weights.values())
        if most or asked[seq].is_call:
            chosen[seq] = max(reply for reply in replies if weights[reply] >= most * _LAST)
    found = store.messages.by_seq(chosen.values())
    passages = _passages(store, query, words, [kept.message.text for kept in found])
    answers = {kept.seq: (kept, passage) for kept, passage in zip(found, passages, strict=True)}
    return tuple(_answered(result, words, answers.get(chosen.get(_seq(result), 0))) for result in results)


def _seq(result: RecallResult) -> int:
    return result.message.seq if result.message is not None else 0


def _answered(result: RecallResult, words: Sequence[Word], answer: tuple[KeptMessage, Passage] | None) -> RecallResult:
    if answer is None:
        return result
    kept, passage = answer
    matched = tuple(word.text for word in words if kept.seq in word.messages)
    found = RecallResult(score=result.score, words=matched, row=None, position=0, message=kept, passage=passage)
    return replace(result, answer=found)


def _with_context(store: Store, result: RecallResult, around: int) -> RecallResult:
    if result.message is None:
        return result
    places = store.index.around([result.message.seq], LogQuery(), reach=around)
    return replace(result, around=store.messages.by_seq(place.seq for place in places))


def to_review(
    store: Store, query: LogQuery, *, tags: Collection[str] = (), before: str
) -> tuple[review.ReviewEntry, ...]:
    """Return the rows to review that a query and all of these tags select, and those that a selected row contradicts.
    `review.to_review` gives the order, and the meaning of `before`.
    """
    wanted = RecallFilter(tags=tuple(tags))
    chosen = {row.id for row in _log(store, replace(query, bare=True)) if wanted.is_wanted(row)}
    types = tuple(each for each in Type if each not in TOOL_EVENTS)
    found = review.to_review(tuple(_log(store, LogQuery(types=types, bare=True))), before=before)
    return tuple(each for each in found if each.row.id in chosen or (each.by and each.by.id in chosen))


def _log(store: Store, query: LogQuery) -> Iterator[Observation]:
    for logged in store.rows.log(query):
        yield logged.observation
