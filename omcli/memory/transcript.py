"""Transcripts as they are read, and bookmarks that let a later reading resume."""

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
"""A reader's state in a file, to resume from there: JSON, and `hashes.Packed`."""
STAMP = "stamp"
"""Key of the file's stamp in the notes of its last bookmark."""
_SMALL = 1 << 16
"""Size in bytes that is acceptable for any file."""


@record
class Origin:
    """A file that can be read again, and the terms of reading it."""

    path: str
    """Absolute, links resolved."""
    terms: str
    """Everything that decides the result of reading: program version, format and requested session."""


@record
class IngestedFile:
    """A file that was ingested."""

    origin: Origin
    stamp: str | None
    """Size and time of the file when all of it had been ingested; None if unknown."""


@record
class Bookmark:
    """A place in a file before which everything was ingested.

    Only a hint: it holds while the file begins with the same bytes, and may be discarded at any time.
    """

    offset: int
    """Bytes before the place, which is the end of a line or of the file."""
    digest: bytes
    """Digest of those bytes (`Beginning`)."""
    found: str
    """JSON of what was found in them."""
    carried: bytes | None = None
    """State for resuming here; None if it can only show that a file ending here is unchanged."""

    @classmethod
    def at(cls, offset: int, digest: bytes, *, found: Notes, carried: Notes | None) -> Self:
        """Build a bookmark for this place."""
        content = None if carried is None else zlib.compress(as_json(carried).encode("ascii"), level=1)
        if content is not None and len(content) > max(offset // 8, _SMALL):
            content = None  # not worth its place in the store
        return cls(offset=offset, digest=digest, found=as_json(found), carried=content)

    @property
    def stamp(self) -> str | None:
        """Size and time of the file when all of it had been ingested, if known."""
        stamp: str | None = json.loads(self.found).get(STAMP)
        return stamp

    def with_stamp(self, stamp: str | None) -> Bookmark:
        """Return the bookmark with the size and time of a fully ingested file."""
        found = {name: value for name, value in json.loads(self.found).items() if name != STAMP}
        return replace(self, found=as_json({**found, STAMP: stamp} if stamp else found))

    def earlier(self, *, goes_on: bool) -> IngestedPart:
        """Return the point to resume from, with the reader's state if the reading continues."""
        carried = json.loads(zlib.decompress(self.carried)) if goes_on and self.carried is not None else None
        return IngestedPart(unread_bytes=self.offset, found=json.loads(self.found), carried=carried)


@record
class IngestedPart:
    """Part of a file that was ingested before and is not read again."""

    unread_bytes: int
    found: Notes
    carried: Notes | None = None
    """None if nothing follows."""


def as_json(notes: Notes, *, hashes: bool = True) -> str:
    """Return notes as ASCII JSON; without `hashes` only text that may come from messages. Raises RecursionError."""
    return json.dumps(notes, separators=(",", ":"), default=lambda packed: packed.text if hashes else None)


class Beginning:
    """The start of an input: its length and digest.

    SHA-256 reads 20 MB in 11 ms here, BLAKE2 in 16 and CRC-32 in 3; but equal CRCs don't prove equal bytes.
    """

    def __init__(self, length: int = 0, sha256: hashlib._Hash | None = None) -> None:
        self.length = length
        """In bytes."""
        self._hash = sha256 or hashlib.sha256()

    def add(self, content: bytes) -> None:
        """Extend it by the bytes that follow."""
        self.length += len(content)
        self._hash.update(content)

    @property
    def digest(self) -> bytes:
        """32 bytes."""
        return self._hash.digest()

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self)(self.length, self._hash.copy())


class Reason(StrEnum):
    """Reason for skipping a record, or a part of one."""

    NOT_JSON = "not-json"
    TOO_DEEP = "too-deep"
    NOT_AN_OBJECT = "not-an-object"
    UNKNOWN_TYPE = "unknown-type"
    MALFORMED = "malformed"
    """A known type without its required fields."""
    TRUNCATED = "truncated"
    """Last line of a file that is still being written; complete next time."""
    NOISE = "noise"
    """Bookkeeping: progress, snapshots, token counts, settings."""
    INJECTED = "injected"
    """Text added by a program: reminders, instruction files, memory, including `om`'s own."""
    REPEATED = "repeated"
    """Written twice by the producer."""

    @property
    def is_fault(self) -> bool:
        """True if something may have been missed; other records are skipped by design."""
        return self in _FAULTS


_FAULTS = frozenset({Reason.NOT_JSON, Reason.TOO_DEEP, Reason.NOT_AN_OBJECT, Reason.UNKNOWN_TYPE, Reason.MALFORMED})


@positional_record
class Skip:
    """A record that gave no message. `detail` names its type, never its content."""

    reason: Reason
    detail: str = ""


@record
class Facts:
    """Facts about the session from a record, None if absent. `session` assigns the messages that follow."""

    session: str | None = None
    cwd: str | None = None
    branch: str | None = None
    title: str | None = None
    model: str | None = None
    parent: str | None = None


@positional_record
class NewConversation:
    """Start of another conversation in the same input, which voids everything known of the session."""


@record
class Abandoned:
    """Ids of messages on branches that the conversation left, as given by the producer."""

    ids: frozenset[str]


ReaderState = Notes
"""A reader's state at some place of an input, to resume from there."""


@record
class Checkpoint:
    """A place in the input: all items so far come from before it, all others from after."""

    offset: int
    """Bytes before it."""
    digest: bytes
    """Digest of those bytes (`Beginning`)."""
    reader_state: ReaderState | None = None
    """State for resuming here; None at the end of the input."""


Item = Message | Facts | Skip | NewConversation | Abandoned | Checkpoint


@record
class Transcript:
    """An opened transcript."""

    format: str | None
    """Name of its format; None for an empty input."""
    items: Iterable[Item]
    """Its contents in file order, read lazily."""
    copies: bool = False
    """True if its sessions copy messages of earlier ones (`memory.identity`)."""
    origin: Origin | None = None
    """The file, if it can be read again; None for a pipe."""
    stamp: str | None = None
    """Size and time of the file when it was opened; None if it is so new that it could change without changing these.
    """
    earlier: IngestedPart | None = None
    """Part of the file that was ingested before, and is not among the items."""
