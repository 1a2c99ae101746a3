"""Contents of a transcript as it is read, bookmarks from which reading can resume, and identities of messages."""

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
"""A reader's state at some point of a file, used to resume there: JSON values and `hashes.Packed`."""
STAMP = "stamp"
"""Key in `Bookmark.found` for the file's stamp. Only the last bookmark of a file has it."""
_SMALL = 1 << 16
"""Maximum size of `carried`, in bytes, unless an eighth of the bytes before the bookmark is more."""


@record
class Origin:
    """A file that can be read again, and the conditions under which it is read."""

    path: str  # absolute, with links resolved
    terms: str
    """Everything that determines the result besides the file: the version of om, the format, the requested session."""


@record
class IngestedFile:
    origin: Origin
    stamp: str | None
    """See `Bookmark.stamp`."""


@record
class Bookmark:
    """A place in a file up to which everything was ingested. A bookmark is only a hint. It is valid while the file
    begins with the same bytes, and may be discarded at any time.
    """

    offset: int
    """Number of bytes before the bookmark, which is at the end of a line or of the file."""
    digest: bytes
    """Digest of the bytes before the bookmark (see `Beginning`)."""
    found: str
    """The reader's findings in the bytes before the bookmark, as JSON."""
    carried: bytes | None = None
    """Compressed state with which a reader can resume here, or None if it can't."""

    @classmethod
    def at(cls, offset: int, digest: bytes, *, found: Notes, carried: Notes | None) -> Self:
        """Build a bookmark, leaving out the reader's state if it is too large."""
        content = None if carried is None else zlib.compress(as_json(carried).encode("ascii"), level=1)
        if content is not None and len(content) > max(offset // 8, _SMALL):
            content = None  # not worth the space in the store
        return cls(offset=offset, digest=digest, found=as_json(found), carried=content)

    @property
    def stamp(self) -> str | None:
        """Size, modification time and inode of the file when all of it had been ingested, or None if unknown."""
        stamp: str | None = json.loads(self.found).get(STAMP)
        return stamp

    def with_stamp(self, stamp: str | None) -> Bookmark:
        """Return the bookmark with another stamp, or without one if `stamp` is None."""
        found = {name: value for name, value in json.loads(self.found).items() if name != STAMP}
        return replace(self, found=as_json({**found, STAMP: stamp} if stamp else found))

    def earlier(self, *, goes_on: bool) -> IngestedPart:
        """Return the part before the bookmark, including the reader's state if reading continues after it."""
        carried = json.loads(zlib.decompress(self.carried)) if goes_on and self.carried is not None else None
        return IngestedPart(unread_bytes=self.offset, found=json.loads(self.found), carried=carried)


@record
class IngestedPart:
    """The start of a file, ingested earlier and not read again."""

    unread_bytes: int
    found: Notes
    carried: Notes | None = None
    """State from which to resume, or None if the file ends here."""


def as_json(notes: Notes, *, hashes: bool = True) -> str:
    """Return notes as ASCII JSON; hashes become null unless `hashes`. Raise RecursionError if nested too deeply."""
    return json.dumps(notes, separators=(",", ":"), default=lambda packed: packed.text if hashes else None)


class Beginning:
    """Length and digest of the start of an input. SHA-256 takes 11 ms for 20 MB. CRC-32 takes only 3, but equal CRCs do
    not prove equal bytes.
    """

    def __init__(self, length: int = 0, sha256: hashlib._Hash | None = None) -> None:
        self.length = length
        """In bytes."""
        self._hash = sha256 or hashlib.sha256()

    def add(self, content: bytes) -> None:
        self.length += len(content)
        self._hash.update(content)

    @property
    def digest(self) -> bytes:
        """SHA-256 digest, 32 bytes."""
        return self._hash.digest()

    def copy(self) -> Self:
        return type(self)(self.length, self._hash.copy())


class Reason(StrEnum):
    """Reason for skipping a record or a part of it."""

    NOT_JSON = "not-json"
    TOO_DEEP = "too-deep"
    TOO_LONG = "too-long"
    NOT_AN_OBJECT = "not-an-object"
    UNKNOWN_TYPE = "unknown-type"
    MALFORMED = "malformed"
    """The type is known, but required fields are missing."""
    TRUNCATED = "truncated"
    """The incomplete end of a file that is still being written, such as half a line. It is read next time."""
    NOISE = "noise"
    """Bookkeeping, such as progress, snapshots, token counts and settings."""
    INJECTED = "injected"
    """Text added by a program, such as system prompts, reminders, instruction files and memory (including om's)."""
    REPEATED = "repeated"
    """The producer wrote the record more than once."""

    @property
    def is_fault(self) -> bool:
        """True if content may have been missed. Other records are skipped on purpose."""
        return self not in _INTENDED


_INTENDED = frozenset({Reason.TRUNCATED, Reason.NOISE, Reason.INJECTED, Reason.REPEATED})


@positional_record
class Skip:
    """A skipped record. `detail` may name its type, but never its content. `is_message` is True if it contains a
    speaker's words.
    """

    reason: Reason
    detail: str = ""
    is_message: bool = False


@record
class Facts:
    """Facts about the session found in a record. If `session` is given, the messages that follow belong to it."""

    session: str | None = None
    cwd: str | None = None
    branch: str | None = None
    title: str | None = None
    model: str | None = None
    parent: str | None = None
    memory: str = ""  # the earlier memory from which the session goes on, which none of its messages repeats


@positional_record
class NewConversation:
    """Start of another conversation in the same input. Facts found earlier no longer apply."""


@record
class Abandoned:
    """The producer's ids of messages on abandoned branches of the conversation."""

    ids: frozenset[str]


@record
class Handover:
    """A host's request to replace all messages of a transcript, and its summary of others. None means unknown."""

    first_kept: str | None = None  # id of the host's first entry that remains
    tokens_before: int | None = None
    summary: str = ""


ReaderState = Notes


@record
class Checkpoint:
    """A place in the input between two items, with length and digest of the bytes before it (see `Beginning`)."""

    offset: int
    digest: bytes
    reader_state: ReaderState | None = None
    """State from which to resume here, or None at the end of the input."""


Item = Message | Facts | Skip | NewConversation | Abandoned | Handover | Checkpoint


@record
class Transcript:
    format: str | None
    """Name of the format, or None if the input is empty."""
    items: Iterable[Item]
    """Contents in file order, read lazily."""
    copies: bool = False
    """True if sessions of this format copy messages from earlier ones (see `Identities`)."""
    origin: Origin | None = None
    """The file, or None for input that cannot be read again, such as a pipe."""
    stamp: str | None = None
    """See `Bookmark.stamp`. None without a file, or if it changed so recently that another change may go unnoticed."""
    earlier: IngestedPart | None = None
    """Start of the file that was ingested earlier, not among the items."""


# ---- identities: the same for a message read again from its file, from a grown file, or from a resumed session's copy

_SECOND = len("2026-01-25T10:47:18")
_SHORT = 16
"""Length of the keys by which messages are counted, in hex digits. Short keys save memory in long transcripts."""
_TWINS = {"openai": "anthropic", "anthropic": "openai"}  # plain turns look alike, only a tool call distinguishes them
_OF_BOTH = (Role.USER, Role.ASSISTANT)


class Identities:
    """Identities of the messages of one session, in transcript order.

    An identity always depends on the content, because producers repeat ids (as in exports with masked ids) and rewrite
    messages under the same id. It also depends on the producer's id and the instant or, without an id, on the second of
    writing and the number of equal messages before it. That number does not change when the transcript grows.

    `copies` is True if the format's sessions copy messages from earlier ones (after a resume). Ids and instants then
    identify messages across sessions. Content alone never does, because two sessions may both contain "ok".
    """

    def __init__(self, session: str, *, format_name: str, copies: bool, before: Counter[int] | None = None) -> None:
        """Pass the `counted()` of an earlier reading as `before` to continue it."""
        self._session = digest("session", format_name, session)
        twin = _TWINS.get(format_name)
        self._twin = twin and digest("session", twin, session)
        self._anywhere = digest("format", format_name) if copies else None
        self._before = before or Counter[int]()

    def counted(self) -> Counter[int]:
        """Return the number of occurrences of each message without an id, by `short` key."""
        return self._before

    def of(self, message: Message) -> str:
        """Return the identity of the next message, 32 hex digits, and count the message if it has no id."""
        identity, _ = self.with_earlier(message)
        return identity

    def with_earlier(self, message: Message, *, before: int | None = None) -> tuple[str, str | None]:
        """Return the identity of the next message, and another one that may be stored for it already (or None).

        The other one is from schema 1 (for results), or from a format that is easily confused with this one (`_TWINS`).
        A message without an id is counted, unless the number of equal messages `before` it is given.
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
        """Return the key by which messages without an id are counted. Equal messages have the same key."""
        return int(self._placed(message, content_digest(message), self._session)[:_SHORT], 16)

    def _placed(self, message: Message, content: str, session: str) -> str:
        """Return a digest of the content together with the session and the message's id or second of writing."""
        anywhere = self._anywhere or session
        if message.id is not None:
            return digest(anywhere, "id", message.id, message.at, content)
        scope = anywhere if message.at else session
        # To the second, because the prompt history of some programs is no more precise.
        return digest(scope, message.at and message.at[:_SECOND], content)


def printed_key(message: Message, identity: str) -> str:
    """Return the printed id of a message: the producer's, or `m` and the first 11 digits of the message's identity."""
    return message.id or f"m{identity[:11]}"


def derived_session(format_name: str, opening: Message) -> str:
    """Return a session id derived from the first prompt (or message). It stays the same if a file grows or is piped."""
    return f"{format_name}-{digest(opening.id, opening.at, opening.name, opening.text)[:12]}"
