"""PendingMessages messages, for an agent that observes for itself."""

from __future__ import annotations

from omcli.base.record import record
from omcli.memory.batch import Batch
from omcli.memory.message import Image, KeptMessage, Role
from omcli.memory.observation import Observation
from omcli.memory.ports import LogQuery, Store
from omcli.memory.session import Session
from omcli.memory.tokens import UNLIMITED, TokenCounter
from omcli.observers.agent_reply import PendingToken, shown_digest
from omcli.observers.model.evidence import Evidence, select_context_rows
from omcli.observers.model.transcript import ObserverLimits, TranscriptView, view_transcript
from omcli.operations.observe.sources import CONTEXT_ROWS
from omcli.pack.tail import TOOL_CHARS, excerpt


@record
class PendingMessages:
    """The oldest of what waits."""

    pending_view: PendingView | None
    """None without a session."""
    messages: int
    """Messages waiting in the session, including those shown."""


def pending(store: Store, *, session: str | None, tokens: int, counter: TokenCounter) -> PendingMessages:
    """The oldest messages of a session that no observation covers yet, about so many tokens of them. Only reads.

    Where none is named it is the session seen last of those that wait.
    """
    meant = store.sessions.find(session) if session is not None else _waiting(store)
    if meant is None:
        return PendingMessages(pending_view=None, messages=0)
    messages = store.batches.pending(meant.id).messages
    while True:
        batch = store.batches.unobserved(meant.id, max_tokens=tokens, context_rows=CONTEXT_ROWS)
        shown = pending_view(store, meant, batch, counter=counter, tokens=tokens)
        # Summaries of what was said before are not shown: a batch of nothing else would look as if nothing waited.
        if batch is None or shown.evidence.shown.new or len(batch.messages) >= messages:
            return PendingMessages(pending_view=shown, messages=messages)
        tokens *= 2


def _waiting(store: Store) -> Session | None:
    return next((summary.session for summary in store.sessions.summaries() if summary.pending), None)


_ROWS = 600
"""The newest rows of a session among which some are chosen to be shown."""
_ROOM = 2_000
"""Tokens of the rows shown."""
_CHARS_PER_TOKEN = 4
_BESIDE = 30
"""Tokens on a line besides the text, at most: label, time and speaker."""


@record
class PendingView:
    """The messages and rows shown to an agent."""

    session: Session
    batch: Batch | None
    """None if no message waits."""
    evidence: Evidence
    ticket: PendingToken


def pending_view(
    store: Store, session: Session, batch: Batch | None, *, counter: TokenCounter, tokens: int | None = None
) -> PendingView:
    """Return the messages of a batch and the rows of its session to show. To fit `tokens`, messages are shortened.

    The labels depend only on the store, and on the counter, which decides how many rows fit.
    """
    rows = [logged.observation for logged in store.rows.log(LogQuery(session=session.id, last=_ROWS))]
    recorded = select_context_rows(rows, room=_ROOM, counter=counter)
    shown = _shown(batch, counter, tokens)
    ids = [row.id for row in recorded.labels.values()]
    ticket = PendingToken(
        session=session.id,
        after=batch.after if batch else 0,
        through=batch.through if batch else 0,
        counter=counter.name,
        shown=shown_digest(session.id, [kept.seq for kept in shown.labels.values()], ids),
    )
    evidence = Evidence(shown=shown, recorded=recorded, cwd=session.cwd)
    return PendingView(session=session, batch=batch, evidence=evidence, ticket=ticket)


def _shown(batch: Batch | None, counter: TokenCounter, tokens: int | None) -> TranscriptView:
    if batch is None:
        return TranscriptView(content=(), labels={}, new=frozenset(), utc_offset=None, tokens=0, minutes={})
    room = UNLIMITED if tokens is None else tokens + _BESIDE * (len(batch.messages) + 2)
    return view_transcript(batch, limits=ObserverLimits(transcript=room), counter=counter, pictures=_no_image)


def _no_image(_image: Image) -> bytes | None:
    """Return no image: images are described in words."""
    return None


def excerpt_of(kept: KeptMessage, tokens: int) -> str:
    """The text of a message, of what tools take and give and of what alone is longer than `tokens` an excerpt."""
    said = kept.message
    return excerpt(said.text, TOOL_CHARS if said.role in (Role.CALL, Role.RESULT) else _CHARS_PER_TOKEN * tokens)


def belongs(row: Observation, session: Session) -> bool:
    """True if a row may be changed along with a session: it belongs to the session, or to its project alone."""
    return row.session == session.id or (row.session is None and row.project in (None, session.project))
