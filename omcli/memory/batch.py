"""A batch: messages observed together, where it ends, its slices, and what an observer makes of it."""

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
    """Messages of one session that no observation covers yet, with the two ends they were read between."""

    session: str
    after: int
    """The cursor when the batch was read: everything up to this `seq` is covered, or was observed ahead."""
    through: int
    """Where the cursor will be when the batch is recorded."""
    messages: tuple[KeptMessage, ...]
    earlier_calls: tuple[KeptMessage, ...] = ()
    """Calls before the batch whose results are in it: for reading along, already covered. Of several with one call id,
    the latest."""
    last_said: KeptMessage | None = None
    """The main thread's last assistant text before the batch: what its first prompt may answer. Already covered."""
    cwd: str | None = None
    """The session's working directory."""
    context_rows: tuple[Observation, ...] = ()
    """Visible observations of the session, oldest first, that the batch may settle, overrule or repeat."""
    deferred_through: int = 0
    """Up to which `seq` the messages were offered before, from the same cursor, without giving anything yet."""
    is_late: bool = False
    """Whether the cursor has passed the messages: they were put aside while they waited, and came back."""

    def follows(self, row: Observation) -> bool:
        """Whether a row is of messages that were said before those of the batch."""
        return bool(row.sources) and max(row.sources) <= self.after


class BatchOutcome(StrEnum):
    """What became of a batch."""

    OBSERVED = "observed"
    EMPTY = "empty"
    """Nothing worth noting: covered all the same."""
    DEFERRED = "deferred"
    """Nothing worth noting yet: the cursor stays, and what follows may give it a meaning."""
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
    """What an observer makes of a batch."""

    drafts: tuple[Draft, ...]
    """What is worth keeping, oldest first."""
    used: tuple[str, ...] = ()
    """Ids of context rows that mattered for what was said."""
    title: str | None = None
    """What the session is about, where that is new."""
    waits_after: int | None = None
    """What the batch says behind this `seq` gave nothing yet, but what follows may give it a meaning; None: all of it
    counts."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """What had to be put right in a reply, by kind: rows rejected, trimmed, added back."""
    stopped: Stopped | None = None
    """None if the observer read all of the batch."""

    @property
    def is_whole(self) -> bool:
        """True if all of the batch was read, and none of it waits for more."""
        return self.stopped is None and self.waits_after is None


class Observer(Protocol):
    """Messages to observations."""

    def observe(self, batch: Batch) -> Observed:
        """What is worth keeping of a batch. Raises ProviderFailed, NotAllowed, BadConfiguration."""


class BatchReader(Protocol):
    """A batch on its way through a model, which is shown one slice of it after the other."""

    def read(self, part: Batch, *, warmer: bool = False) -> None:
        """Asks about the next slice; `warmer` after a reply that ran into a loop.

        Raises ProviderFailed, NotAllowed, BadConfiguration: the slice counts as not read then. After CutOff, and after
        PromptTooLong, a smaller one may do; after Looped, which is a CutOff, best one that is asked for `warmer`.
        """

    def skip(self, part: Batch) -> None:
        """Leaves the next slice to the rules."""

    def observed(self) -> Observed:
        """What is worth keeping of all that was read so far."""


class SlicedObserver(Observer, Protocol):
    """A model, which is not shown all of a batch at once."""

    def begin(self, batch: Batch) -> BatchReader:
        """Begins to read a batch."""


# ---- where a batch ends


class MessageSize(NamedTuple):
    """What has to be known of a waiting message to place the end of a batch."""

    tokens: int
    role: str
    """One of `Role`."""
    call_id: str | None


def batch_length(waiting: Iterable[MessageSize], *, max_tokens: int, max_messages: int | None = None) -> int:
    """How many of the waiting messages, oldest first, make the next batch: at most `max_tokens` and `max_messages`, at
    least one if any.

    A batch does not end between a call and its result where the two, and what stands between them, fit into one batch:
    it then ends before the call. Reads no further than twice `max_tokens`.
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
    """The length, shortened until no pair is parted; 0 where the pairs interlock from the first message on."""
    for call, result in sorted(pairs, reverse=True):
        if call < length <= result:
            length = call
    return length


# ---- slices


def next_slice(batch: Batch, *, after: int, max_tokens: int, max_messages: int | None = None) -> Batch:
    """What follows a message of a batch, as much as `batch_length` allows; at least one message has to follow it."""
    left = [kept for kept in batch.messages if kept.seq > after]
    waiting = (MessageSize(kept.tokens, kept.message.role, kept.message.call_id) for kept in left)
    length = batch_length(waiting, max_tokens=max_tokens, max_messages=max_messages)
    return between(batch, after, left[length - 1].seq)


def between(batch: Batch, after: int, through: int) -> Batch:
    """The messages of a batch behind one `seq` up to another, as a batch: what goes before is there to read along."""
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
    """The calls of before whose results are among the messages: of several with one call id, the latest."""
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
