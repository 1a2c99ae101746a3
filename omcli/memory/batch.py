"""Batches: messages observed together, where a batch ends, its slices, and the result of observing it."""

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
    """Messages of one session that no observation covers yet, with the `seq` before the first and of the last."""

    session: str
    after: int
    """Cursor when the batch was read: everything up to this `seq` is covered, or buffered."""
    through: int
    """Position of the cursor after the batch is recorded."""
    messages: tuple[KeptMessage, ...]
    earlier_calls: tuple[KeptMessage, ...] = ()
    """Calls before the batch whose results are in it, for context only. Of several with one call id, the latest."""
    last_said: KeptMessage | None = None
    """Last assistant text of the main thread before the batch, which its first prompt may reply to. For context only.
    """
    cwd: str | None = None
    """Working directory of the session."""
    context_rows: tuple[Observation, ...] = ()
    """Visible observations of the session, oldest first, that the batch may settle, supersede or repeat."""
    deferred_through: int = 0
    """Last `seq` that was offered before, from the same cursor, without giving anything yet."""
    is_late: bool = False
    """True if the cursor is past the messages: they were hidden while they waited, and restored later."""

    def follows(self, row: Observation) -> bool:
        """Return True if all messages of a row precede the batch."""
        return bool(row.sources) and max(row.sources) <= self.after


class BatchOutcome(StrEnum):
    """Result of observing a batch."""

    OBSERVED = "observed"
    EMPTY = "empty"
    """Nothing worth noting; the batch is covered all the same."""
    DEFERRED = "deferred"
    """Nothing worth noting yet: the cursor stays, since later messages may give these a meaning."""
    FAILED = "failed"
    """The observer failed: nothing was written and the cursor stayed."""


@record
class Stopped:
    """The early end of an observer in a batch."""

    through: int
    """The `seq` of the last message it read; the `after` of the batch if it read none."""
    error: BaseException
    """Raised when the part that it read is written."""


@record
class Observed:
    """Observations made of a batch."""

    drafts: tuple[Draft, ...]
    """Rows to keep, oldest first."""
    used: tuple[str, ...] = ()
    """Ids of context rows that were relevant."""
    title: str | None = None
    """Title of the session, if the batch gives it a new one."""
    waits_after: int | None = None
    """Messages after this `seq` gave nothing yet, but later ones may give them a meaning; None if the whole batch
    counts."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """Corrections to a reply, by kind: rows rejected, trimmed, added back."""
    stopped: Stopped | None = None
    """None if the observer read all of the batch."""

    @property
    def is_whole(self) -> bool:
        """True if all of the batch was read, and none of it waits for more."""
        return self.stopped is None and self.waits_after is None


class Observer(Protocol):
    """Messages in, observations out."""

    def observe(self, batch: Batch) -> Observed:
        """Return the rows worth keeping. Raises ProviderFailed, NotAllowed, BadConfiguration."""


class BatchReader(Protocol):
    """Port for reading a batch with a model, slice by slice."""

    def read(self, part: Batch, *, warmer: bool = False) -> None:
        """Ask about the next slice; `warmer` after a reply that ran into a loop.

        Raises ProviderFailed, NotAllowed, BadConfiguration, and the slice counts as unread. After CutOff or
        PromptTooLong, retry with a smaller one; after Looped, which is a CutOff, also `warmer`.
        """

    def skip(self, part: Batch) -> None:
        """Leave the next slice to the rules."""

    def observed(self) -> Observed:
        """Return the rows of all slices read so far."""


class SlicedObserver(Observer, Protocol):
    """A model that reads a batch in slices."""

    def begin(self, batch: Batch) -> BatchReader:
        """Start reading a batch."""


# ---- where a batch ends


class MessageSize(NamedTuple):
    """Size and role of a waiting message, to decide where a batch ends."""

    tokens: int
    role: str
    """A value of `Role`."""
    call_id: str | None


def batch_length(waiting: Iterable[MessageSize], *, max_tokens: int, max_messages: int | None = None) -> int:
    """Return the number of waiting messages, oldest first, in the next batch: at most `max_tokens` and `max_messages`,
    but at least one.

    A batch does not end between a call and its result if the two and everything between them fit into one batch: it
    then ends before the call. Reads at most twice `max_tokens`.
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
    """Shorten the length until no pair is split; 0 if the pairs interlock from the first message on."""
    for call, result in sorted(pairs, reverse=True):
        if call < length <= result:
            length = call
    return length


# ---- slices


def next_slice(batch: Batch, *, after: int, max_tokens: int, max_messages: int | None = None) -> Batch:
    """Return the next slice after a message, as long as `batch_length` allows; at least one message has to follow."""
    left = [kept for kept in batch.messages if kept.seq > after]
    waiting = (MessageSize(kept.tokens, kept.message.role, kept.message.call_id) for kept in left)
    length = batch_length(waiting, max_tokens=max_tokens, max_messages=max_messages)
    return part_of_batch(batch, after, left[length - 1].seq)


def part_of_batch(batch: Batch, after: int, through: int) -> Batch:
    """Return the messages after one `seq` up to another as a batch, with those before as context."""
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
    """Return the earlier calls whose results are among the messages; of several with one call id, the latest."""
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
