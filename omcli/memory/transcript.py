"""Contents of a transcript as it is read, bookmarks from which a later reading resumes, and identities of messages."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Self

from omcli.base.record import positional_record, record, replace
from omcli.memory.message import Message, Role, content_digest, digest

Notes = dict[str, Any]
"""A reader's state at some point of a file, to resume from there: JSON values, and `hashes.Packed`."""
STAMP = "stamp"
"""Key for the file's stamp in `found` of its last bookmark."""
_SMALL = 1 << 16
"""Size in bytes that `carried` may have for any file; large files may have larger ones."""


@record
class Origin:
    """A file that can be read again, and the terms on which it is read."""

    path: str
    """Absolute path, links resolved."""
    terms: str
    """Everything besides the file that determines the result: program version, format and requested session."""


@record
class IngestedFile:
    """A file that was ingested."""

    origin: Origin
    stamp: str | None
    """Size and modification time of the file when all of it had been ingested; None if unknown."""


@record
class Bookmark:
    """A place in a file up to which everything was ingested.

    It is only a hint: valid while the file begins with the same bytes, and it may be discarded at any time.
    """

    offset: int
    """Number of bytes before the place, which is the end of a line or of the file."""
    digest: bytes
    """Digest of those bytes (`Beginning`)."""
    found: str
    """JSON of the reader's findings in those bytes."""
    carried: bytes | None = None
    """Compressed reader state to resume from here. None if the bookmark can only show that a file is unchanged."""

    @classmethod
    def at(cls, offset: int, digest: bytes, *, found: Notes, carried: Notes | None) -> Self:
        """Build a bookmark, without the reader state if it is too large."""
        content = None if carried is None else zlib.compress(as_json(carried).encode("ascii"), level=1)
        if content is not None and len(content) > max(offset // 8, _SMALL):
            content = None  # not worth its space in the store
        return cls(offset=offset, digest=digest, found=as_json(found), carried=content)

    @property
    def stamp(self) -> str | None:
        """Size and modification time of the file when all of it had been ingested, if known."""
        stamp: str | None = json.loads(self.found).get(STAMP)
        return stamp

    def with_stamp(self, stamp: str | None) -> Bookmark:
        """Return the bookmark with a different stamp; None removes it."""
        found = {name: value for name, value in json.loads(self.found).items() if name != STAMP}
        return replace(self, found=as_json({**found, STAMP: stamp} if stamp else found))

    def earlier(self, *, goes_on: bool) -> IngestedPart:
        """Return the part before the bookmark, with the reader's state if reading goes on after it."""
        carried = json.loads(zlib.decompress(self.carried)) if goes_on and self.carried is not None else None
        return IngestedPart(unread_bytes=self.offset, found=json.loads(self.found), carried=carried)


@record
class IngestedPart:
    """Start of a file that was ingested before and is not read again."""

    unread_bytes: int
    found: Notes
    carried: Notes | None = None
    """State to resume from; None if the file ends here."""


def as_json(notes: Notes, *, hashes: bool = True) -> str:
    """Return notes as ASCII JSON, with null for hashes unless `hashes`. Raise RecursionError if nested too deeply."""
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
        """Append the bytes that follow."""
        self.length += len(content)
        self._hash.update(content)

    @property
    def digest(self) -> bytes:
        """SHA-256 digest, 32 bytes."""
        return self._hash.digest()

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self)(self.length, self._hash.copy())


class Reason(StrEnum):
    """Reason for skipping a record or part of one."""

    NOT_JSON = "not-json"
    TOO_DEEP = "too-deep"
    NOT_AN_OBJECT = "not-an-object"
    UNKNOWN_TYPE = "unknown-type"
    MALFORMED = "malformed"
    """The type is known, but required fields are missing."""
    TRUNCATED = "truncated"
    """Incomplete last line of a file that is still being written; read next time."""
    NOISE = "noise"
    """Bookkeeping: progress, snapshots, token counts, settings."""
    INJECTED = "injected"
    """Text added by a program: reminders, instruction files, memory, including `om`'s own."""
    REPEATED = "repeated"
    """Written more than once by the producer."""

    @property
    def is_fault(self) -> bool:
        """True if content may have been missed. Other records are skipped by design."""
        return self in _FAULTS


_FAULTS = frozenset({Reason.NOT_JSON, Reason.TOO_DEEP, Reason.NOT_AN_OBJECT, Reason.UNKNOWN_TYPE, Reason.MALFORMED})


@positional_record
class Skip:
    """A skipped record. `detail` names its type, never its content."""

    reason: Reason
    detail: str = ""


@record
class Facts:
    """Facts about the session found in a record. Messages that follow belong to `session`, if given."""

    session: str | None = None
    cwd: str | None = None
    branch: str | None = None
    title: str | None = None
    model: str | None = None
    parent: str | None = None


@positional_record
class NewConversation:
    """Start of another conversation in the same input. Facts found before no longer apply."""


@record
class Abandoned:
    """Messages on branches that the conversation left."""

    ids: frozenset[str]
    """Ids given by the producer."""


ReaderState = Notes
"""State of a reader at a `Checkpoint`."""


@record
class Checkpoint:
    """A place in the input: earlier items come from before it, later items from after it."""

    offset: int
    """Number of bytes before it."""
    digest: bytes
    """Digest of those bytes (`Beginning`)."""
    reader_state: ReaderState | None = None
    """State to resume from here; None at the end of the input."""


Item = Message | Facts | Skip | NewConversation | Abandoned | Checkpoint


@record
class Transcript:
    """An opened transcript."""

    format: str | None
    """Name of its format; None for an empty input."""
    items: Iterable[Item]
    """Its contents in file order, read lazily."""
    copies: bool = False
    """True if its sessions copy messages from earlier ones (`Identities`)."""
    origin: Origin | None = None
    """The file, if it can be read again; None for a pipe."""
    stamp: str | None = None
    """Size and modification time of the file when opened; None if it was just modified and could change unnoticed."""
    earlier: IngestedPart | None = None
    """Start of the file that was ingested before and is not among the items."""


# ---- identities: equal if a message is read again from the same file, a grown one, or a resumed session's copy

_SECOND = len("2026-01-25T10:47:18")
_SHORT = 16
"""Digits of a digest that are kept to count messages: a long transcript has many."""
_TWINS = {"openai": "anthropic", "anthropic": "openai"}
"""Plain turns look the same in both formats; only a tool call tells them apart."""
_OF_BOTH = (Role.USER, Role.ASSISTANT)


class Identities:
    """Identities of the messages of one session, in transcript order.

    The content always counts, since producers repeat ids (as in exports with masked ids) and rewrite messages under the
    same id. The producer's id counts too. Without one, the second of writing and the number of equal messages before it
    count instead; that number stays the same when the transcript grows.

    `copies` is True if the format's sessions copy messages from earlier ones (after a resume). Ids and instants then
    identify messages across sessions. Content alone never does, since two sessions may both say "ok".
    """

    def __init__(self, session: str, *, format_name: str, copies: bool, before: Counter[int] | None = None) -> None:
        """To continue an earlier reading, pass its `counted()` as `before`."""
        self._session = digest("session", format_name, session)
        twin = _TWINS.get(format_name)
        self._twin = twin and digest("session", twin, session)
        self._anywhere = digest("format", format_name) if copies else None
        self._before = before or Counter[int]()

    def counted(self) -> Counter[int]:
        """Return the number of times each message without an id has occurred, by `short` key."""
        return self._before

    def of(self, message: Message) -> str:
        """Return the identity of the next message, 32 hex digits."""
        identity, _ = self.with_earlier(message)
        return identity

    def with_earlier(self, message: Message, *, before: int | None = None) -> tuple[str, str | None]:
        """Return the identity of the next message, and the one it may have been stored under before, else None.

        Stores of schema 1 had others, and so has a message list that was taken for the other of two similar formats.
        With `before`, the message counts as one with this number of equal ones before it, and is not counted itself.
        """
        content = content_digest(message)
        placed, formerly = self._placed(message, content, self._session), None
        if message.role is Role.RESULT and message.tool is not None:
            formerly = self._placed(message, content_digest(message, tool_of_result=True), self._session)
        elif self._twin is not None and message.role in _OF_BOTH:
            formerly = self._placed(message, content, self._twin)
        if message.id is not None:
            return placed, formerly
        if before is None:
            short = int(placed[:_SHORT], 16)
            before = self._before[short]
            self._before[short] += 1
        return digest(placed, str(before)), formerly and digest(formerly, str(before))

    def short(self, message: Message) -> int:
        """Return the key for counting messages without an id: equal for those that differ only in that count."""
        return int(self._placed(message, content_digest(message), self._session)[:_SHORT], 16)

    def _placed(self, message: Message, content: str, session: str) -> str:
        """Return a digest of the content with its session, and with its id or second of writing."""
        anywhere = self._anywhere or session
        if message.id is not None:
            return digest(anywhere, "id", message.id, message.at, content)
        scope = anywhere if message.at else session
        # To the second, since the prompt history of some programs is no more precise than that.
        return digest(scope, message.at and message.at[:_SECOND], content)


def printed_key(message: Message, identity: str) -> str:
    """Return the printed id of a message: the producer's, or `m` and the first 11 digits of its identity."""
    return message.id or f"m{identity[:11]}"


def derived_session(format_name: str, opening: Message) -> str:
    """Return a session id derived from the first prompt, for a transcript without one. It stays the same if the file
    grows or is piped."""
    return f"{format_name}-{digest(opening.id, opening.at, opening.name, opening.text)[:12]}"
