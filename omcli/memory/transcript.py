"""A transcript as it is read: messages, what it says about its session, and what was left out and why."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Self

from omcli.base.record import positional_record, record, replace
from omcli.memory.message import Message

Notes = dict[str, Any]
"""What a reading knows at some place and has to know there again: JSON, and `hashes.Packed`."""
STAMP = "stamp"
"""What the stamp of a file is called among the notes of its last bookmark."""
_SMALL = 1 << 16
"""Bytes that are worth it for every file."""


@record
class Origin:
    """A file that can be read again, and in which way it is read."""

    path: str
    """Absolute, links resolved."""
    terms: str
    """All that decides what a reading of it gives: the program, the format and the session asked for."""


@record
class IngestedFile:
    """A file that was taken in."""

    origin: Origin
    stamp: str | None
    """Its size and time when all of it was; None where that was not noted."""


@record
class Bookmark:
    """A place in a file before which everything was taken in.

    A hint, never a promise: it holds while the file begins with the same bytes, and may be thrown away at any time.
    """

    offset: int
    """Bytes before the place: the end of a line, or the end of the file."""
    digest: bytes
    """Of those bytes (`Prefix`)."""
    found: str
    """What was found in them, as JSON."""
    carried: bytes | None = None
    """What going on from here needs to know; None where it only tells that a file which ends here has not changed."""

    @classmethod
    def at(cls, offset: int, digest: bytes, *, found: Notes, carried: Notes | None) -> Self:
        """One at this place."""
        content = None if carried is None else zlib.compress(as_json(carried).encode("ascii"), level=1)
        if content is not None and len(content) > max(offset // 8, _SMALL):
            content = None  # not worth its place in the store
        return cls(offset=offset, digest=digest, found=as_json(found), carried=content)

    @property
    def stamp(self) -> str | None:
        """The size and time of the file when all of it had been taken in, where that was noted."""
        stamp: str | None = json.loads(self.found).get(STAMP)
        return stamp

    def stamped(self, stamp: str | None) -> Bookmark:
        """The same, with the size and time of a file all of which has been taken in."""
        found = {name: value for name, value in json.loads(self.found).items() if name != STAMP}
        return replace(self, found=as_json({**found, STAMP: stamp} if stamp else found))

    def earlier(self, *, goes_on: bool) -> ResumePoint:
        """What it tells; what is carried as well where the reading goes on."""
        carried = json.loads(zlib.decompress(self.carried)) if goes_on and self.carried is not None else None
        return ResumePoint(unread_bytes=self.offset, found=json.loads(self.found), carried=carried)


@record
class ResumePoint:
    """What was taken in of a file earlier, and is not read again."""

    unread_bytes: int
    found: Notes
    carried: Notes | None = None
    """None where nothing follows."""


def as_json(notes: Notes, *, hashes: bool = True) -> str:
    """Notes as JSON in ASCII; without `hashes`, only what may have been said. Raises RecursionError."""
    return json.dumps(notes, separators=(",", ":"), default=lambda packed: packed.text if hashes else None)


class Prefix:
    """A beginning of an input: how long it is, and its digest.

    SHA-256 reads 20 MB in 11 ms here, BLAKE2 in 16 and CRC-32 in 3; but what has the same CRC need not be the same.
    """

    def __init__(self, length: int = 0, sha256: hashlib._Hash | None = None) -> None:
        self.length = length
        """In bytes."""
        self._hash = sha256 or hashlib.sha256()

    def add(self, content: bytes) -> None:
        """Makes it longer by the bytes that follow."""
        self.length += len(content)
        self._hash.update(content)

    @property
    def digest(self) -> bytes:
        """32 bytes."""
        return self._hash.digest()

    def copy(self) -> Self:
        """One that grows on its own."""
        return type(self)(self.length, self._hash.copy())


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


ReaderState = Notes
"""What a reader knows at some place of an input and needs to go on from there."""


@record
class Checkpoint:
    """A place in the input that all items so far come from before, and all others after."""

    offset: int
    """Bytes before it."""
    digest: bytes
    """Of those bytes (`Prefix`)."""
    reader_state: ReaderState | None = None
    """What the reader needs to go on from here; None for the end of the input."""


Item = Message | Facts | Skipped | NewConversation | Abandoned | Checkpoint


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
    earlier: ResumePoint | None = None
    """What was taken in of the file before and is not among the items; they go on from there."""
