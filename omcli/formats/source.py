"""A stream of records from JSON Lines, one JSON document or plain text, detected by content and read as it arrives."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cached_property
from typing import BinaryIO

from omcli.base import lazily
from omcli.base.errors import BadInput
from omcli.base.record import record, replace
from omcli.memory.transcript import Beginning, Bookmark, Checkpoint, Item, ReaderState, Reason, Skip

_HEAD = 1 << 20
"""Number of bytes inspected for detection. The first line of a transcript alone is often a side record."""
_BEGINNING = 1000
_VOTERS = 60
"""Maximum number of lines and records that determine the shape and the format."""
_CLEAN = 0.8
"""Minimum share of lines that must be objects. A lower one would match Markdown exports with embedded JSON lines."""
_RESYNCHRONISE = 64
"""Maximum number of offsets in a broken line that are tried as the start of an object."""
LONGEST_LINE = 64 << 20
"""Maximum length of a line, in bytes. A longer line is skipped, because it may have no end."""
LARGEST_DOCUMENT = 256 << 20
"""Maximum size of an input that is read as a whole, in bytes. Parsing takes several times as much memory."""
_BLOCK = io.DEFAULT_BUFFER_SIZE
"""Number of bytes read at once, if signals must be handled in between. To read more than its buffer holds, a stream
asks the system repeatedly, and handles a signal only after the last of these requests has data.
"""
_MANY = 1 << 20
"""Number of bytes read at once from a file on a disk, which never waits for more."""
_BOM = b"\xef\xbb\xbf"
SQLITE = b"SQLite format 3\0"
"""Beginning of a database."""
_SPACE = " \t\r\n"

# Only input that begins like this is parsed as one document. Logs may begin with `[12:03]`, and prose with `{note}`.
_DOCUMENT = lazily(rb"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\]])")
# Input like this that is not a valid document counts as JSON Lines, because even a cut-off transcript is not prose.
_BROKEN = lazily(rb'\s*\[?\s*\{\s*"')
_OBJECT = lazily(r'\{\s*"')
_BETWEEN_OBJECTS = 8
"""Maximum number of characters between two objects: a comma and some space."""
_SURROGATE = lazily(rb"\\u[dD][89a-fA-F]")
# Matches `\\` and whole surrogate pairs in order to skip them; group 1 is half a pair.
_HALF_PAIR = lazily(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_DECODER = json.JSONDecoder()

Record = dict[str, object]
_Lines = list[tuple[Record | Skip, ...]]


class InputShape(Enum):
    """Layout of the input."""

    EMPTY = "empty"
    LINES = "lines"
    """JSON Lines: one object per line."""
    DOCUMENT = "document"
    """One JSON value on several lines, or a list on one line. A single object on one line counts as LINES."""
    TEXT = "text"


@record
class Sample:
    """The part of an input from which its format is detected."""

    shape: InputShape
    records: tuple[Record, ...]
    """For LINES, the first objects. For a DOCUMENT, the document itself or, if it is a list, its first objects."""
    is_list: bool
    """True for a DOCUMENT that is a list."""
    text: str
    """For TEXT, the beginning of the input, otherwise empty."""


class RecordStream:
    """A binary stream, read once. Memory use is bounded by `LONGEST_LINE`, or by `LARGEST_DOCUMENT`."""

    def __init__(self, stream: BinaryIO, *, extent: Beginning | None = None, state: ReaderState | None = None) -> None:
        """Open a stream at its start, or where an earlier reader stopped (always after a line end).

        To resume, pass the earlier reader's `state` and an `extent` that covers what it read. The rest is read as JSON
        Lines.
        """
        self.state = state
        self._extent = extent or Beginning()
        self._stream = stream
        self._skipped_first = 0
        """Number of lines at the start that are too long."""
        self._head = self._opened() if state is None else b""
        self._is_read = False
        self.left_out = 0
        """Number of lines that `text_lines` left out."""

    def _opened(self) -> bytes:
        """Read the first bytes, including a whole line, after any byte order mark and leading blocks of white space.

        Raise BadInput if the first line is too long, unless it may be a document or JSON Lines follow it.
        """
        head = self._stream.read(_HEAD)
        content = head.removeprefix(_BOM)
        self._extent.add(head[: len(head) - len(content)])
        while content.isspace() and (more := self._stream.read(_HEAD)):
            self._extent.add(content)
            content = more
        while b"\n" not in content:
            content += self._stream.readline(LONGEST_LINE + 1 - len(content))  # the first line is longer than the head
            start = content.lstrip()[:1]
            if len(content) <= LONGEST_LINE or start == b"[":
                break
            is_passed = start == b"{" and self._pass_over(content)
            content = self._stream.read(_HEAD)
            if not is_passed or not content:
                raise BadInput(
                    f"its first line is longer than {LONGEST_LINE >> 20} MB",
                    hint="is it a transcript? Its line ends may be missing",
                )
            self._skipped_first += 1
        return content

    @property
    def beginning(self) -> str:
        """First characters of the input. Only valid before reading."""
        return self._head[:_BEGINNING].decode("utf-8", "replace")

    @cached_property
    def shape(self) -> InputShape:
        """Layout of the input, judged by its first bytes. Input that looks like a document is read whole."""
        if self.state is not None:
            return InputShape.LINES
        if not self._head.strip():
            return InputShape.EMPTY
        if len(self._head) > LONGEST_LINE:
            return InputShape.LINES if self._document_value is None else InputShape.DOCUMENT
        (_, voters), clean = self._head_lines, self._clean
        if clean >= _CLEAN:
            return InputShape.LINES
        first_is_json = Skip(Reason.NOT_JSON) not in voters[0]
        if clean < 0.5 and _DOCUMENT.match(self._head) and (len(voters) == 1 or not first_is_json):
            if self._document_value is not None:
                return InputShape.DOCUMENT
            if _BROKEN.match(self._head):
                return InputShape.LINES
        too_deep = Skip(Reason.TOO_DEEP) in voters[0]
        is_lines = clean >= 0.5 or too_deep or (first_is_json and any(map(_records, voters)))
        return InputShape.LINES if is_lines else InputShape.TEXT

    @property
    def has_no_messages(self) -> bool:
        """True if the input is blank, an empty list, or an object with an empty list of messages."""
        if self.shape is InputShape.DOCUMENT and self._document_value == []:
            return True
        records = self.sample.records
        return self.shape is InputShape.EMPTY or (len(records) == 1 and records[0].get("messages") == [])

    @cached_property
    def sample(self) -> Sample:
        records: list[Record] = []
        is_list = False
        if self.shape is InputShape.DOCUMENT:
            value = self._document_value
            is_list = isinstance(value, list)
            records = [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, dict)]
        elif self.shape is InputShape.LINES:
            records = [record for line in self._head_lines[1] for record in _records(line)]
        text = self._head.decode("utf-8", "replace") if self.shape is InputShape.TEXT else ""
        return Sample(shape=self.shape, records=tuple(records[:_VOTERS]), is_list=is_list, text=text)

    def records(self) -> Iterator[Record | Skip | Checkpoint]:
        """Yield objects in file order (a list's elements one by one), and a `Skip` for anything else.

        Also yield a checkpoint after the last complete line, because the line after it may still be growing. The
        checkpoint is omitted if more input could change the detected layout.
        """
        if self.shape is InputShape.DOCUMENT:
            value = self._document_value
            self._extent.add(self._head)
            self._is_read = True
            for entry in value if isinstance(value, list) else [value]:
                yield entry if isinstance(entry, dict) else Skip(Reason.NOT_AN_OBJECT)
            return
        settled_after = self._settled_after
        parsed = iter(self._head_lines[0])
        yield from (Skip(Reason.TOO_LONG) for _ in range(self._skipped_first))
        last = b""
        for line in self._lines():
            if len(line) > LONGEST_LINE:
                settled_after = settled_after if self._pass_over(line) else None
                yield from next(parsed, (Skip(Reason.TOO_LONG),))
                continue
            if not line.endswith(b"\n"):
                last = line
                break
            self._extent.add(line)
            if not line.isspace():
                yield from next(parsed, None) or parse_line(line)
        if settled_after is not None and self._extent.length >= settled_after:
            yield self._checkpoint
        self._extent.add(last)
        self._is_read = True
        if last and not last.isspace():
            yield from parse_line(last, last=True)

    def text_lines(self) -> Iterator[str]:
        """Yield decoded lines without line ends. Invalid UTF-8 becomes U+FFFD. A line that is too long is left out."""
        for line in self._lines():
            if len(line) > LONGEST_LINE:
                self._pass_over(line)
                self.left_out += 1
                continue
            self._extent.add(line)
            yield line.decode("utf-8", "replace").rstrip("\r\n")
        self._is_read = True

    @property
    def end(self) -> Checkpoint | None:
        """Checkpoint at the end of the input, or None before the end is reached."""
        return self._checkpoint if self._is_read else None

    @property
    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(offset=self._extent.length, digest=self._extent.digest)

    @property
    def _settled_after(self) -> int | None:
        """Number of bytes after which no further input can change the detected shape or format.

        Only valid before reading. None if the deciding lines are not complete yet.
        """
        if self.state is not None:
            return 0
        if self.shape is not InputShape.LINES or self._clean < _CLEAN:
            return None
        if len(self._head_lines[0]) == _VOTERS:
            return 0
        return self._extent.length + len(self._head) if len(self._head) >= _HEAD else None

    @cached_property
    def _clean(self) -> float:
        """Share of the voting lines that contain only objects."""
        _, voters = self._head_lines
        return sum(all(isinstance(entry, dict) for entry in line) for line in voters) / len(voters)

    @cached_property
    def _head_lines(self) -> tuple[_Lines, _Lines]:
        """Parsed content of the first complete, non-blank lines in the head, and of the lines that determine the shape:
        the same, and an incomplete line after them if it is valid or the only one.
        """
        *whole, rest = self._head.split(b"\n")
        opening: _Lines = []
        for line in whole:
            if len(opening) == _VOTERS:
                break
            if line.strip():
                opening.append(tuple(parse_line(line)))
        if len(opening) == _VOTERS or not rest.strip():
            return opening, opening
        entries = tuple(parse_line(rest))
        is_whole = all(isinstance(entry, dict) for entry in entries)
        return opening, [*opening, entries] if is_whole or not opening else opening

    def _lines(self) -> Iterator[bytes]:
        *whole, rest = self._head.split(b"\n")
        self._head = b""
        for line in whole:
            yield line + b"\n"
        rest += self._stream.readline(max(0, LONGEST_LINE + 1 - len(rest))) if rest else b""
        if rest:
            yield rest
        while line := self._stream.readline(LONGEST_LINE + 1):
            yield line

    def _pass_over(self, line: bytes) -> bool:
        """Read the rest of a line that is too long, block by block. Return False if the input ends without a line end.

        Signals are handled between the blocks.
        """
        while line and not line.endswith(b"\n"):
            self._extent.add(line)
            line = self._stream.readline(_BLOCK)
        self._extent.add(line)
        return bool(line)

    @cached_property
    def _document_value(self) -> object:
        """The whole input, read as one JSON value, or None if it is invalid. Raise BadInput if it is too large."""
        self._head = read_whole(self._stream, self._head)
        try:
            value: object = json.loads(_text(self._head))
        except (ValueError, RecursionError):
            return None
        return value


def read_whole(stream: BinaryIO, beginning: bytes = b"") -> bytes:
    """Return the beginning and the rest of a stream. Raise BadInput if that is more than `LARGEST_DOCUMENT`.

    The stream is read block by block, because signals are handled only between calls.
    """
    blocks, size = [beginning], len(beginning)
    while block := stream.read(_BLOCK):
        blocks.append(block)
        size += len(block)
        if size > LARGEST_DOCUMENT:
            raise BadInput(
                f"it is larger than {LARGEST_DOCUMENT >> 20} MB",
                hint="split it; only transcripts in JSON Lines may be larger",
            )
    return b"".join(blocks)


def parse_line(line: bytes, *, last: bool = False) -> Iterator[Record | Skip]:
    """Yield the objects on a line: usually one, or more after the producer crashed. Anything else yields a `Skip`.

    If the `last` line (without a line end) stops inside an object, it is TRUNCATED, because it may still be growing.
    """
    if len(line) > LONGEST_LINE:
        yield Skip(Reason.TOO_LONG)
        return
    text = _text(line)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield from _parse_objects(text.strip(_SPACE), last=last)
    else:
        yield value if isinstance(value, dict) else Skip(Reason.NOT_AN_OBJECT)


_SPOKEN = lazily(r'"role"\s*:\s*"(?:user|human|assistant|ai)"')
"""In broken text, the beginning of a message."""
_MACHINES = frozenset({"system", "developer", "tool", "function"})


def with_speaker(item: Item, entry: Record) -> Item:
    """Return an item of a record. A fault gets `is_message` if a user or an agent clearly wrote the skipped part: the
    record, or the object that it wraps, has their role, and the part is text or other content, but not a tool's.
    """
    if not isinstance(item, Skip) or not item.reason.is_fault or item.is_message:
        return item
    for held in (entry, *map(entry.get, ("message", "payload", "item"))):
        if isinstance(held, dict) and _is_said(held, item):
            return replace(item, is_message=True)
    return item


def _is_said(message: Record, skipped: Skip) -> bool:
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or role in _MACHINES:
        return False
    is_unknown = skipped.reason is Reason.UNKNOWN_TYPE
    if isinstance(content, str):
        return is_unknown and bool(content.strip())
    if not isinstance(content, list):
        return isinstance(content, dict) and bool(content)
    parts = [(part, str(part.get("type") or "")) for part in content if isinstance(part, dict)]
    of_its_type = [(part, kind) for part, kind in parts if kind[:40] == skipped.detail]
    return any(
        part.get("text") or ("tool" not in kind and len(part) > 1)
        for part, kind in of_its_type or (parts if is_unknown else ())
    )


def _parse_objects(text: str, *, last: bool) -> Iterator[Record | Skip]:
    """Yield the objects on a line that is not one JSON value, and at most one `Skip` for broken text between them."""
    fault: Reason | None = None
    is_message = False
    at = tries = 0
    while at < len(text) and tries < _RESYNCHRONISE:
        tries += 1
        piece: object = Reason.NOT_JSON
        end = None
        # Only brackets, because a quote may as well end a broken string as begin a value.
        if text[at] in "{[":
            try:
                piece, end = _DECODER.raw_decode(text, at)
            except RecursionError:
                piece = Reason.TOO_DEEP
            except ValueError:
                pass
        if end is None:
            end = _next_object(text, at)
        if isinstance(piece, dict):
            yield piece
        elif piece is Reason.TOO_DEEP:
            fault = Reason.TOO_DEEP
        else:
            is_cut_off = last and end == len(text) and text[at] == "{"
            fault = fault or (Reason.TRUNCATED if is_cut_off else Reason.NOT_JSON)
            is_message = is_message or (not is_cut_off and bool(_SPOKEN.search(text, at, end)))
        at = end
        while at < len(text) and text[at] in _SPACE:
            at += 1
    if fault is not None:
        yield Skip(fault, is_message=is_message)


def _next_object(text: str, broken: int) -> int:
    """Return the offset after broken text at which the next record may begin, or the end of the text.

    An object after `:`, `,` or `[` belongs to the broken record. A message inside a cut-off line is thus not read as a
    record.
    """
    for match in _OBJECT.finditer(text, broken + 1):
        at = match.start()
        before = text[max(broken, at - _BETWEEN_OBJECTS) : at].strip(_SPACE)
        is_separator = before == "," and at - broken <= _BETWEEN_OBJECTS
        if is_separator or (before and before[-1] not in ":,["):
            return at
    return len(text)


def _text(content: bytes) -> str:
    """Decode bytes to text that can be stored. Invalid UTF-8 and halves of surrogate pairs become U+FFFD."""
    text = content.decode("utf-8", "replace")
    if _SURROGATE.search(content):
        return _HALF_PAIR.sub(lambda match: "\\ufffd" if match[1] else match[0], text)
    return text


def _records(line: tuple[Record | Skip, ...]) -> list[Record]:
    return [entry for entry in line if isinstance(entry, dict)]


@record
class KnownPart:
    """The unchanged part of a file, which need not be read again."""

    bookmark: Bookmark
    extent: Beginning
    is_all: bool
    """True if nothing follows this part."""


def known_part(stream: BinaryIO, bookmarks: Iterable[Bookmark]) -> KnownPart | None:
    """Return the part of a file before the last bookmark up to which it is unchanged, and move the stream there. If
    anything follows, the bookmark must have the state of a reader.

    If there is none, return None and move the stream to its beginning. `bookmarks` must be in file order.
    """
    known = None
    extent = Beginning()
    for bookmark in bookmarks:
        _extend(extent, stream, bookmark.offset)
        if extent.digest != bookmark.digest:
            break
        is_all = not stream.read(1)
        stream.seek(bookmark.offset)
        if is_all or bookmark.carried is not None:
            known = KnownPart(bookmark=bookmark, extent=extent.copy(), is_all=is_all)
    stream.seek(known.bookmark.offset if known else 0)
    return known


def _extend(extent: Beginning, stream: BinaryIO, end: int) -> None:
    while extent.length < end and (block := stream.read(min(_MANY, end - extent.length))):
        extent.add(block)
