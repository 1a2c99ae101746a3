"""The output of a compaction: rows of a session, quotes from its agent, and its last messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from omcli.base.record import record, replace
from omcli.memory.message import KeptMessage, Message, MessageKind, Role, TokenCounter, message_tokens
from omcli.memory.notation import WORDS, Notation
from omcli.memory.observation import ASKED, CURRENT, FILE_CHANGES, Draft, Kind, Observation, Source, Type
from omcli.memory.ports import Store
from omcli.memory.session import Session
from omcli.memory.transcript import Handover
from omcli.observers.rules.sentences import text_parts
from omcli.operations.compact.layouts import CompactFormat, CompactHead, layout
from omcli.operations.observe.rows import as_row
from omcli.pack import tail
from omcli.pack.budget import Budgets, Tier
from omcli.pack.context_pack import Choice, ContextPack, pack
from omcli.pack.layouts.layout import Head
from omcli.pack.selection import PackMeter
from omcli.pack.tail import TurnGroup
from omcli.text.clean import below, one_line
from omcli.text.phrases import agent_name

_TAIL_SHARE = 0.15
"""Share of the target for the last messages."""
_REACH = 100
"""Tokens of messages that may be quoted, per token of the target."""
_QUOTE_CHARACTERS = 100
"""A quote ends with the sentence that makes it longer than this, so that sentences are chosen one by one unless they
are short.
"""
_QUOTE_IMPORTANCE = 6
_LISTED_PART = 10
"""The list of files whose rows do not fit has at most the target's tokens divided by this number."""
_LIST_IMPORTANCE = 10
_SAID = frozenset({Role.USER, Role.ASSISTANT})
_OF_NO_ENTRY = frozenset({MessageKind.COMPACTION, MessageKind.INTERRUPT})
"""Events without their own entry in the host's transcript."""


@record
class CompactRequest:
    """The requested output."""

    target: int
    """Maximum number of tokens in the printed text."""
    keep: int | None = None
    """Tokens of last messages to keep verbatim. None means a share of the target."""
    shape: CompactFormat = CompactFormat.TEXT
    is_kept: bool = True
    """True if the session is in a store, so that omitted messages can be looked up."""
    notation: Notation = WORDS
    result_chars: int | None = tail.TOOL_CHARS
    """See `Choice.result_chars`."""
    abandoned: frozenset[str] = frozenset()
    """Ids of messages on abandoned branches. They are never among the last messages."""
    handover: Handover | None = None
    """The host's request, if there is one. The host then decides which messages remain: none of those in its request.
    """


@record
class TailPlan:
    """The last messages of a session, oldest first."""

    messages: tuple[KeptMessage, ...]
    """All messages read: as far back as quotes may reach."""
    shown: tuple[KeptMessage, ...]
    """Messages that may be printed."""
    budgets: Budgets
    unquoted: frozenset[int]
    """`seq` of messages not to quote, because they will be shown verbatim or remain in the host's own transcript."""
    staying: tuple[KeptMessage, ...] = ()
    """Messages that remain in the host's own transcript, if any."""

    @property
    def first_kept(self) -> KeptMessage | None:
        return self.staying[0] if self.staying else None


def plan_tail(store: Store, session_id: str, wanted: CompactRequest, counter: TokenCounter) -> TailPlan:
    """Read the last messages, and decide which of them are kept and how many tokens they get.

    If the output has no tail, the kept messages are those that remain in the host's own transcript. Otherwise, if a
    number of tokens was requested, keep as many messages as fit into it when printed, but at least one unless the
    number is 0. If none was requested, the messages share the target with the rows.
    """
    share = int(wanted.target * _TAIL_SHARE)
    keep = share if wanted.keep is None else wanted.keep
    messages = store.messages.tail(session_id, max_tokens=max(_REACH * wanted.target, 2 * keep))
    live = tuple(kept for kept in messages if kept.message.id not in wanted.abandoned)
    budgets = Budgets(total=wanted.target, cross=0, session=wanted.target, tail=share)
    if not wanted.shape.has_tail:
        staying = () if wanted.handover else _last_kept(live, keep, counter)
        return TailPlan(
            messages=messages,
            shown=(),
            budgets=replace(budgets, tail=0),
            unquoted=frozenset(kept.seq for kept in staying),
            staying=staying,
        )
    shown = tuple(kept for kept in live if wanted.shape.has_calls or kept.message.role in _SAID)
    if wanted.keep is None:
        return TailPlan(messages=messages, shown=shown, budgets=budgets, unquoted=_fitting(shown, share))
    units, cost = _kept(shown, keep, wanted, counter)
    places = sorted(place for unit in units for place in unit.places)
    return TailPlan(
        messages=messages,
        shown=tuple(shown[place] for place in places),
        budgets=replace(budgets, session=wanted.target - cost, tail=cost),
        unquoted=frozenset(shown[place].seq for place in places),
    )


def _last_kept(messages: Sequence[KeptMessage], keep: int, counter: TokenCounter) -> tuple[KeptMessage, ...]:
    """Return the newest messages of about `keep` tokens, beginning with one that starts an entry of the session. Return
    none if no entry has an id.
    """
    tokens = partial(message_tokens, counter=counter)
    staying = tuple(messages[tail.beginning(messages, room=keep, tokens=tokens, may_begin=_is_entry) :])
    return staying if staying and _is_entry(staying[0].message) else ()


def _fitting(messages: Sequence[KeptMessage], tokens: int) -> frozenset[int]:
    """Return the `seq` of the newest messages that fit into this many tokens."""
    fitting: list[int] = []
    for kept in reversed(messages):
        tokens -= kept.tokens
        if tokens < 0:
            break
        fitting.append(kept.seq)
    return frozenset(fitting)


def _kept(
    messages: Sequence[KeptMessage], keep: int, wanted: CompactRequest, counter: TokenCounter
) -> tuple[tuple[TurnGroup, ...], int]:
    """Return the newest messages that fit into `keep` tokens when printed, and their tokens. Unless `keep` is 0, at
    least one message is returned if it fits into the target.
    """
    budgets = Budgets(total=wanted.target, cross=0, session=0, tail=wanted.target)
    nothing = CompactHead(is_kept=wanted.is_kept)
    head = Head(session=None, counter=counter.name, budgets=budgets, pending=0, notation=wanted.notation)
    meter = PackMeter(layout=layout(wanted.shape, nothing, counter)(head), counter=counter)

    def newest(room: int) -> tuple[TurnGroup, ...]:
        return tail.newest(
            messages, room=room, cost=lambda turn: meter.turn(turn, room=room), chars=wanted.result_chars
        )

    units = (newest(keep) or newest(wanted.target)[:1]) if keep else ()
    cost = sum(unit.cost for unit in units) + (meter.overhead(Tier.TAIL) if units else 0)
    return units, min(wanted.target, cost)


def compact_output(
    session: Session | None,
    rows: Sequence[Observation],
    tail_plan: TailPlan,
    wanted: CompactRequest,
    figures: CompactHead,
    *,
    counter: TokenCounter,
    now: str,
    most: int = 0,
    pending: int = 0,
    is_quoted: bool = True,
) -> ContextPack:
    """Return the pack of a session within the target: rows, quotes from its agent, and the last messages.

    Quotes replace rows that only report the agent's words, except the current task. One row then names the changed
    files whose rows do not fit. If `is_quoted` is False, rows are neither replaced nor added. Unless a number of tokens
    was requested for the last messages, more of these use the tokens that rows leave unused, until the whole pack has
    `most` tokens. With 0, they do so only back to the first unobserved message.
    """
    packed = partial(
        pack,
        session=session,
        messages=tail_plan.shown,
        budgets=tail_plan.budgets,
        counter=counter,
        now=now,
        layout=layout(wanted.shape, figures, counter),
        notation=wanted.notation,
        pending=pending,
        choice=Choice(result_chars=wanted.result_chars, max_tokens=most if wanted.keep is None else 0),
    )
    if not is_quoted:
        return packed(observations=rows)
    rows = _with_quotes(rows, tail_plan, session, counter, now)
    made = packed(observations=rows)
    shown = {row.id for row in made.observations}
    changes = [row for row in rows if row.type in FILE_CHANGES and row.id not in shown]
    if listed := _list_of(changes, session, counter, most=wanted.target // _LISTED_PART):
        rest = [row for row in rows if row not in changes]
        made = packed(observations=sorted([*rest, listed], key=_place))
    return made


def _list_of(
    changes: Sequence[Observation], session: Session | None, counter: TokenCounter, *, most: int
) -> Observation | None:
    """Return one row that names the newest of the changed files whose rows do not fit, in at most `most` tokens, or
    None if it can name none.
    """
    cwd = session.cwd if session else None
    paths = (row.metadata.get("path") for row in reversed(changes))
    names = list(dict.fromkeys(one_line(below(cwd, path)) for path in paths if isinstance(path, str)))
    while names and counter.text(text := f"Also changed: {', '.join(reversed(names))}") > most:
        names.pop()
    if not names:
        return None
    return replace(
        changes[-1],
        text=text,
        importance=_LIST_IMPORTANCE,
        tokens=counter.text(text),
        counter=counter.name,
        sources=tuple(sorted({seq for row in changes for seq in row.sources})),
        message_ids=tuple(dict.fromkeys(key for row in changes for key in row.message_ids)),
    )


def _is_entry(message: Message) -> bool:
    """Return True if the message begins an entry in the host's transcript and has its id.

    Calls and results are parts of other entries, and some events have no entry.
    """
    is_entry = message.role not in (Role.CALL, Role.RESULT) and message.kind not in _OF_NO_ENTRY
    return is_entry and message.id is not None


def _with_quotes(
    rows: Sequence[Observation], tail_plan: TailPlan, session: Session | None, counter: TokenCounter, now: str
) -> list[Observation]:
    said = [kept for kept in tail_plan.messages if kept.message.role in _SAID]
    spoken = {kept.seq for kept in said if kept.message.role is Role.ASSISTANT}
    kept_rows = [row for row in rows if CURRENT in row.tags or not (row.sources and spoken.issuperset(row.sources))]
    to_quote = [kept for kept in said if kept.seq in spoken and kept.seq not in tail_plan.unquoted]
    quotes = [quote for kept in to_quote for quote in _quotes(kept, session, counter, now)]
    return sorted([*kept_rows, *quotes], key=_place)


def _place(row: Observation) -> int:
    """Return the `seq` by which a row is sorted, or 0 if it has no sources. For a request or question it is the first
    source, so that the row precedes the answer even if it cites the answer too.
    """
    if not row.sources:
        return 0
    return row.sources[0] if row.type in ASKED else row.sources[-1]


def _quotes(kept: KeptMessage, session: Session | None, counter: TokenCounter, now: str) -> Iterator[Observation]:
    """Yield passages from an agent's message as rows: consecutive sentences, without code."""
    for passage in _passages(part.text for part in text_parts(kept.message.text)):
        text = f"{agent_name(kept.message.name)}: {passage}"
        draft = Draft(
            text=text,
            type=Type.EXCERPT,
            importance=_QUOTE_IMPORTANCE,
            sources=(kept.seq,),
            event_at=kept.message.at,
            source=Source.AGENT,
        )
        yield as_row(
            draft,
            row_id=kept.key,
            kind=Kind.OBSERVATION,
            session=session.id if session else None,
            project=None,
            keys={kept.seq: kept.key},
            at=kept.message.at or now,
            tokens=counter.text(text),
            counter=counter.name,
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
