"""A transcript as it is read: messages, what it says about its session, and what was left out and why."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from omcli.base.record import positional_record, record
from omcli.memory.bookmark import Earlier, Notes, Origin
from omcli.memory.message import Message


class Reason(StrEnum):
    """Why a record, or part of one, gave no message."""

    NOT_JSON = "not-json"
    TOO_DEEP = "too-deep"
    NOT_AN_OBJECT = "not-an-object"
    UNKNOWN_TYPE = "unknown-type"
    MALFORMED = "malformed"
    """An object of a known type without what its type must have."""
    TRUNCATED = "truncated"
    """The last line of a file that is still being written; it will be whole next time."""
    NOISE = "noise"
    """Bookkeeping of the program: progress, snapshots, token counts, settings."""
    INJECTED = "injected"
    """Words put into the conversation by a program: reminders, instruction files, memory - our own included."""
    REPEATED = "repeated"
    """Written a second time by the producer."""

    @property
    def is_fault(self) -> bool:
        """Whether something may have been missed; the others are left out by design."""
        return self in _FAULTS


_FAULTS = frozenset({Reason.NOT_JSON, Reason.TOO_DEEP, Reason.NOT_AN_OBJECT, Reason.UNKNOWN_TYPE, Reason.MALFORMED})


@positional_record
class Skipped:
    """A record that gave no message. `detail` names what was found (an unknown type's name), never its content."""

    reason: Reason
    detail: str = ""


@record
class Facts:
    """What a record says about the session; None where it is silent. `session` routes the messages that follow."""

    session: str | None = None
    cwd: str | None = None
    branch: str | None = None
    title: str | None = None
    model: str | None = None
    parent: str | None = None


@positional_record
class NewConversation:
    """The input holds several conversations, and here the next one begins. What was known of the session is void."""


@record
class Abandoned:
    """Messages that were said on branches which the conversation did not go on from, by the producer's ids."""

    ids: frozenset[str]


Carried = Notes
"""What a reader knows at some place of an input and needs to go on from there."""


@record
class Pause:
    """A place in the input that all items so far come from before, and all others after."""

    offset: int
    """Bytes before it."""
    digest: bytes
    """Of those bytes (`bookmark.Extent`)."""
    carried: Carried | None = None
    """What the reader needs to go on from here; None for the end of the input."""


Item = Message | Facts | Skipped | NewConversation | Abandoned | Pause


@record
class Transcript:
    """An opened transcript."""

    format: str | None
    """The name of its format; None for an empty input."""
    items: Iterable[Item]
    """What it holds, in file order, read while it is asked for."""
    copies: bool = False
    """Whether its sessions copy messages of earlier ones (`memory.identity`)."""
    origin: Origin | None = None
    """The file it is, where it can be read again; None for a pipe."""
    stamp: str | None = None
    """The file's size and time when it was opened; None where it was so young that it may change without either."""
    earlier: Earlier | None = None
    """What was taken in of the file before and is not among the items; they go on from there."""
