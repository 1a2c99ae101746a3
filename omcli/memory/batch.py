"""Batches: messages observed together, the choice of where a batch ends, its slices, and the result of observing it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from math import inf
from typing import NamedTuple, Protocol

from omcli.base.record import field, record, replace
from omcli.memory.message import KeptMessage, Role
from omcli.memory.observation import Draft, Observation


@record
class Batch:
    """Successive pending messages of one session, to be observed together."""

    session: str
    after: int
    """`seq` after which the batch begins, such as the cursor, or the end of a buffered batch or of an earlier slice."""
    through: int
    """`seq` of the last message. Recording the batch moves the cursor here (exceptions: see `Batches.record`)."""
    messages: tuple[KeptMessage, ...]
    earlier_calls: tuple[KeptMessage, ...] = ()
    """Earlier tool calls whose results are in the batch, for context only. If several share a call id, the latest one.
    """
    last_said: KeptMessage | None = None
    """Last assistant text of the main thread before the batch, for context, because the first prompt may reply to it.
    """
    cwd: str | None = None
    context_rows: tuple[Observation, ...] = ()
    """Visible or buffered observations of the session that the batch may settle, supersede or repeat, oldest first."""
    shared_rows: tuple[Observation, ...] = ()
    """The session's newest notes, items and reflections, and rows of the project's other sessions, best first. No model
    replaces them.
    """
    deferred_through: int = 0
    """Last `seq` of an earlier batch with the same `after` that an observer deferred. 0 means none."""
    is_late: bool = False
    """True if the cursor has already passed these messages: an undo or another store brought them later."""

    def follows(self, row: Observation) -> bool:
        """Return True if the row has source messages and all of them precede the batch."""
        return bool(row.sources) and max(row.sources) <= self.after


class BatchOutcome(StrEnum):
    OBSERVED = "observed"
    EMPTY = "empty"
    """Nothing was worth noting. The messages still count as covered."""
    DEFERRED = "deferred"
    """Nothing is worth noting yet. The cursor does not move, because later messages may add meaning to these."""
    FAILED = "failed"
    """The observer failed. No rows were written, and the cursor did not move."""


@record
class Pending:
    """Numbers and tokens of a session's messages that no batch covers yet."""

    messages: int
    counted: int
    """Number of these messages that are counted (see `Message.is_counted`)."""
    tokens: Mapping[str, int]
    """Tokens by counter. Numbers from different counters are never added."""
    fresh_tokens: Mapping[str, int]
    """Tokens, by counter, of the messages that no observer has deferred."""
    blocks: int = 0
    """Number of buffered batches."""
    after: int = 0
    late: frozenset[int] = frozenset()
    """Pending are all messages with a `seq` above `after`, and those whose `seq` is in `late` (see `Batch.is_late`)."""

    @property
    def first(self) -> int:
        return min(self.late, default=self.after + 1)

    def besides(self, seqs: Iterable[int]) -> int:
        """Return the number of pending messages without those with these `seq`, which must all be of this session."""
        return self.messages - sum(1 for seq in set(seqs) if seq > self.after or seq in self.late)


@record
class Covered:
    """The messages of a session that one batch covered, and the rows observed in them."""

    first: str
    """Printed id of the first message."""
    last: str
    """Printed id of the last message."""
    start: int
    """Index of the first message, counting all messages the session ever had."""
    end: int
    """Index of the last message, plus one."""
    positions: tuple[int, ...]
    """Log positions of the rows (`Logged.position`), including superseded and dropped rows but not forgotten ones."""


@record
class Stopped:
    """The point at which an observer stopped before the end of a batch, and the cause."""

    through: int
    """`seq` of the last message that was read, or the batch's `after` if none was."""
    error: BaseException
    """Error to raise after writing the rows of the part that was read."""


@record
class Observed:
    """Result of observing a batch: its rows and session title, and how far the observer got."""

    drafts: tuple[Draft, ...]
    """Rows to keep, oldest first."""
    used: tuple[str, ...] = ()
    """Ids of context rows that the observer found relevant."""
    title: str | None = None
    """New title of the session, if the batch suggests one."""
    waits_after: int | None = None
    """Messages after this `seq` gave no rows yet, and are observed again with later ones. None if there are none."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """Number of corrections to a model's reply, by kind: rows rejected, trimmed, added back and others."""
    stopped: Stopped | None = None
    """None if the observer read the whole batch."""

    @property
    def is_whole(self) -> bool:
        """True if the whole batch was read and no message is to be observed again."""
        return self.stopped is None and self.waits_after is None


class Observer(Protocol):
    """Port for turning messages into observations, by rules or with a model."""

    def observe(self, batch: Batch) -> Observed:
        """Return the rows worth keeping. May raise ProviderFailed, NotAllowed or BadConfiguration."""


class BatchReader(Protocol):
    """Port for reading a batch with a model, slice by slice."""

    def read(self, part: Batch, *, warmer: bool = False) -> None:
        """Ask the model about the next slice. `warmer` raises the temperature, for use after a looping reply. If
        ProviderFailed, NotAllowed or BadConfiguration is raised, the slice counts as unread. After CutOff or
        PromptTooLong, retry with a smaller slice while `may_ask`. After Looped, a kind of CutOff, also pass `warmer`.
        """

    @property
    def may_ask(self) -> bool:
        """True if a call is left to ask the model about the next slice."""

    def skip(self, part: Batch) -> None:
        """Let rules, instead of the model, observe the next slice."""

    def observed(self) -> Observed:
        """Return the rows of all slices read or skipped so far."""


class SlicedObserver(Observer, Protocol):
    """An observer that shows a batch to a model in slices."""

    def begin(self, batch: Batch) -> BatchReader:
        """Return a new reader for the batch, which has not read any slice yet."""


# ---- length of a batch


class MessageSize(NamedTuple):
    """The properties of a pending message that decide where a batch ends."""

    tokens: int
    role: str
    call_id: str | None


def batch_length(waiting: Iterable[MessageSize], *, max_tokens: int, max_messages: int | None = None) -> int:
    """Return the number of messages in the next batch: as many as the limits allow, but at least one if any is pending.

    `waiting` lists the pending messages, oldest first, and is read only up to about twice `max_tokens`. If the batch
    would end between a call and its result, it ends before the call, and so on back through overlapping calls, unless
    nothing would be left. A call that does not fit into one batch with its result is disregarded.
    """
    starts: list[int] = []
    calls: dict[str, int] = {}
    fitting_pairs: list[tuple[int, int]] = []
    length = end = 0
    most = max_messages or inf
    for index, (tokens, role, call_id) in enumerate(waiting):
        starts.append(end)
        end += tokens
        if index == 0 or (index == length and end <= max_tokens and index < most):
            length += 1
        elif end - starts[length - 1] > max_tokens:
            break
        if call_id is None:
            continue
        if role == Role.CALL:
            calls[call_id] = index
        elif role == Role.RESULT and call_id in calls:
            call = calls[call_id]
            fits = end - starts[call] <= max_tokens and index - call < most
            fitting_pairs += [(call, index)] if fits else []
    return _before_open_calls(length, fitting_pairs) or length


def _before_open_calls(length: int, pairs: list[tuple[int, int]]) -> int:
    """Return `length`, reduced until no pair is split, or 0 if overlapping pairs reach back to the first message."""
    for call, result in sorted(pairs, reverse=True):
        if call < length <= result:
            length = call
    return length


# ---- slices


def next_slice(batch: Batch, *, after: int, max_tokens: int, max_messages: int | None = None) -> Batch:
    """Return the next slice: the messages whose `seq` is greater than `after`, as many as `batch_length` allows.

    At least one message of the batch must follow `after`.
    """
    left = [kept for kept in batch.messages if kept.seq > after]
    waiting = (MessageSize(kept.tokens, kept.message.role, kept.message.call_id) for kept in left)
    length = batch_length(waiting, max_tokens=max_tokens, max_messages=max_messages)
    return part_of_batch(batch, after, left[length - 1].seq)


def part_of_batch(batch: Batch, after: int, through: int) -> Batch:
    """Return the messages with `after < seq <= through` as a batch, with earlier calls and the last reply before it."""
    before = [kept for kept in batch.messages if kept.seq <= after]
    messages = tuple(kept for kept in batch.messages if after < kept.seq <= through)
    said = (kept for kept in reversed(before) if kept.message.agent is None and kept.message.role is Role.ASSISTANT)
    return replace(
        batch,
        after=after,
        through=through,
        messages=messages,
        earlier_calls=_answered((*batch.earlier_calls, *before), messages),
        last_said=next(said, batch.last_said),
    )


def _answered(before: Sequence[KeptMessage], messages: Sequence[KeptMessage]) -> tuple[KeptMessage, ...]:
    """Return the earlier calls whose results are among the messages, the latest of each call id."""
    called: set[str] = set()
    missing: set[str] = set()
    for kept in messages:
        call_id = kept.message.call_id
        if call_id is None:
            continue
        if kept.message.role is Role.RESULT and call_id not in called:
            missing.add(call_id)
        called.add(call_id)
    calls = {kept.message.call_id: kept for kept in before if kept.message.role is Role.CALL}
    return tuple(sorted((calls[call_id] for call_id in missing & calls.keys()), key=lambda kept: kept.seq))
