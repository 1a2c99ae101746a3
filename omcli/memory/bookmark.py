"""A bookmark: how far a file has been taken in, so that what was read of it need not be read again."""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any, Self

from omcli.base.record import record, replace

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
class TakenIn:
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
    """Of those bytes (`Extent`)."""
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

    def earlier(self, *, goes_on: bool) -> Earlier:
        """What it tells; what is carried as well where the reading goes on."""
        carried = json.loads(zlib.decompress(self.carried)) if goes_on and self.carried is not None else None
        return Earlier(unread_bytes=self.offset, found=json.loads(self.found), carried=carried)


@record
class Earlier:
    """What was taken in of a file earlier, and is not read again."""

    unread_bytes: int
    found: Notes
    carried: Notes | None = None
    """None where nothing follows."""


def as_json(notes: Notes, *, hashes: bool = True) -> str:
    """Notes as JSON in ASCII; without `hashes`, only what may have been said. Raises RecursionError."""
    return json.dumps(notes, separators=(",", ":"), default=lambda packed: packed.text if hashes else None)


class Extent:
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
