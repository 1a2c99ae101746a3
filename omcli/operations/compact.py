"""Compacting a transcript: it is taken in, and what an agent needs to go on from it is packed into a target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from omcli.memory.budget import Budgets
from omcli.memory.context_pack import ContextPack, pack
from omcli.memory.layouts import To
from omcli.memory.message import KeptMessage, Role
from omcli.memory.observation import Kind, Observation, Priority, Source, Type
from omcli.memory.ports import LogQuery, Store, TokenCounter
from omcli.memory.record import record
from omcli.observers.rules.sentences import segments
from omcli.operations.observe import FileReport, Input, observe_files
from omcli.operations.workshop import Workshop

_TAIL_SHARE = 0.1
"""Of the target, for the last messages as they were said."""
_REACH = 100
"""How far back messages are quoted, in tokens for each token of the target."""
_QUOTE_CHARACTERS = 400
_QUOTE_IMPORTANCE = 6
_SAID = frozenset({Role.USER, Role.ASSISTANT})


@record
class Compacted:
    """What became of a transcript."""

    report: FileReport
    """How it was taken in."""
    pack: ContextPack | None
    """What it comes to; None where nothing of it could be taken in."""


def compact(
    transcript: Input, workshop: Workshop, *, target_tokens: int, session: str | None = None, to: To = To.TEXT
) -> Compacted:
    """Takes a transcript in and packs its session - the first one, where it holds several - into `target_tokens`.

    Nothing of other sessions is in the pack. Where the transcript was compacted before and has grown, only what is new
    is taken in. `session` overrides what the transcript says about its session.
    """
    [report] = observe_files([transcript], workshop, session=session)
    if report.session_id is None or (report.error is not None and not report.sessions):
        return Compacted(report=report, pack=None)
    remains = what_remains(
        workshop.store,
        report.session_id,
        target_tokens=target_tokens,
        counter=workshop.counter,
        now=workshop.clock.now(),
        to=to,
    )
    return Compacted(report=report, pack=remains)


def what_remains(
    store: Store, session_id: str, *, target_tokens: int, counter: TokenCounter, now: str, to: To = To.TEXT
) -> ContextPack:
    """What a session comes to in `target_tokens`: its rows, passages of what its agent said, and what was said last.

    The passages are quoted from the messages, and take the place of rows that only report what the agent said. The
    last tool events are left out: what came of them stands in the rows.
    """
    tail = int(target_tokens * _TAIL_SHARE)
    messages = store.tail(session_id, max_tokens=_REACH * target_tokens)
    said = [kept for kept in messages if kept.message.role in _SAID]
    spoken = {kept.seq for kept in said if kept.message.role is Role.ASSISTANT}
    rows = [logged.observation for logged in store.log(LogQuery(session=session_id))]
    kept_rows = [row for row in rows if not (row.sources and spoken.issuperset(row.sources))]
    to_quote = [kept for kept in said[: len(said) - _last_shown(said, tail)] if kept.seq in spoken]
    quotes = [quote for kept in to_quote for quote in _quotes(kept, session_id, counter, now)]
    return pack(
        session=store.session(session_id),
        observations=sorted([*kept_rows, *quotes], key=_place),
        messages=said,
        budgets=Budgets(total=target_tokens, cross=0, session=target_tokens, tail=tail),
        counter=counter,
        now=now,
        to=to,
    )


def _last_shown(messages: Sequence[KeptMessage], tokens: int) -> int:
    """How many of the last messages will be shown as they were said, and need no quoting."""
    for shown, kept in enumerate(reversed(messages)):
        tokens -= kept.tokens
        if tokens < 0:
            return shown
    return len(messages)


def _place(row: Observation) -> int:
    """The message at which a row came true; what was asked stands before its answer, which is its source as well."""
    if not row.sources:
        return 0
    return row.sources[0] if row.type in (Type.REQUEST, Type.QUESTION) else row.sources[-1]


def _quotes(kept: KeptMessage, session_id: str, counter: TokenCounter, now: str) -> Iterator[Observation]:
    """A message of an agent in passages: sentences that follow each other, without code."""
    for passage in _passages(segment.text for segment in segments(kept.message.text)):
        text = f"{kept.message.name or 'Agent'}: {passage}"
        yield Observation(
            id=kept.key,
            session=session_id,
            project=None,
            kind=Kind.OBSERVATION,
            type=Type.EXCERPT,
            priority=Priority.of_importance(_QUOTE_IMPORTANCE),
            importance=_QUOTE_IMPORTANCE,
            status=None,
            text=text,
            observed_at=kept.message.at or now,
            event_at=kept.message.at,
            refers_to=None,
            message_ids=(kept.key,),
            sources=(kept.seq,),
            tokens=counter.text(text),
            counter=counter.name,
            source=Source.AGENT,
        )


def _passages(sentences: Iterable[str]) -> Iterator[str]:
    passage = ""
    for sentence in sentences:
        passage = f"{passage} {sentence}".lstrip()
        if len(passage) > _QUOTE_CHARACTERS:
            yield passage
            passage = ""
    if passage:
        yield passage
