"""An input as records: JSON Lines, one JSON document or plain text, told apart by content and read as a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cached_property
from typing import BinaryIO

from omcli.base.patterns import lazily
from omcli.base.record import record
from omcli.memory.transcript import Bookmark, Carried, Extent, Pause, Reason, Skipped

_HEAD = 1 << 20
"""How much is looked at before anything is read: a transcript's first line is often a side record."""
_BEGINNING = 1000
_VOTERS = 60
"""Records that vote on the format."""
_CLEAN = 0.8
"""The share of lines that must be objects. Markdown exports embed JSON lines: it is not enough that some are."""
_RESYNCHRONISE = 64
"""How many places of a broken line are tried as the start of the next object."""
_BOM = b"\xef\xbb\xbf"
_SPACE = " \t\r\n"

# A log may begin with `[12:03]`, prose with `{note}`: only this is worth reading to the end as one JSON document.
_DOCUMENT = lazily(rb"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\]])")
# Where it turns out not to be one, its lines may be; a cut-off transcript is no prose in any case.
_BROKEN = lazily(rb'\s*\[?\s*\{\s*"')
_OBJECT = lazily(r'\{\s*"')
_BETWEEN_OBJECTS = 8
"""Characters that may stand between two objects: a comma and some space."""
_SURROGATE = lazily(rb"\\u[dD][89a-fA-F]")
# `\\` and pairs of surrogates are matched so that they are passed over; group 1 is half a pair.
_HALF_PAIR = lazily(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_DECODER = json.JSONDecoder()

Record = dict[str, object]


class Shape(Enum):
    """How the bytes are laid out."""

    EMPTY = "empty"
    LINES = "lines"
    """JSON Lines: an object per line."""
    DOCUMENT = "document"
    """One JSON value over many lines, or a list on one. An object on one line is LINES with a single record."""
    TEXT = "text"


@record
class Sample:
    """What a format is recognised by."""

    shape: Shape
    records: tuple[Record, ...]
    """LINES: the first objects. DOCUMENT: the document itself if it is an object, else the first objects in it."""
    is_list: bool
    """DOCUMENT: whether it is a list."""
    text: str
    """TEXT: the beginning."""


class Source:
    """A binary stream, read once. Memory is bounded by the longest line, or by the document where it is only one."""

    def __init__(self, stream: BinaryIO, *, extent: Extent | None = None, carried: Carried | None = None) -> None:
        """The stream from its beginning; or the rest of one that was read up to the end of a line.

        Then `extent` is what was read, and `carried` what its reader knew there: the rest is JSON Lines as well.
        """
        self.carried = carried
        self._extent = extent or Extent()
        self._stream = stream
        self._head = self._opened() if carried is None else b""
        self._is_read = False

    def _opened(self) -> bytes:
        """The first bytes, without a byte order mark and blank megabytes before them."""
        head = self._stream.read(_HEAD)
        content = head.removeprefix(_BOM)
        self._extent.add(head[: len(head) - len(content)])
        while content.isspace() and (more := self._stream.read(_HEAD)):
            self._extent.add(content)
            content = more
        if b"\n" not in content:
            content += self._stream.readline()  # the first line is longer than the head
        return content

    @property
    def beginning(self) -> str:
        """The first characters; asked for before anything is read."""
        return self._head[:_BEGINNING].decode("utf-8", "replace")

    @cached_property
    def shape(self) -> Shape:
        """How the bytes are laid out, from their beginning."""
        if self.carried is not None:
            return Shape.LINES
        if not self._head.strip():
            return Shape.EMPTY
        voters, clean = self._voters, self._clean
        if clean >= _CLEAN:
            return Shape.LINES
        first_is_json = Skipped(Reason.NOT_JSON) not in voters[0]
        if clean < 0.5 and _DOCUMENT.match(self._head) and (len(voters) == 1 or not first_is_json):
            if self._document_value is not None:
                return Shape.DOCUMENT
            if _BROKEN.match(self._head):
                return Shape.LINES
        too_deep = Skipped(Reason.TOO_DEEP) in voters[0]
        is_lines = clean >= 0.5 or too_deep or (first_is_json and any(map(_records, voters)))
        return Shape.LINES if is_lines else Shape.TEXT

    @cached_property
    def sample(self) -> Sample:
        """What a format is recognised by."""
        records: list[Record] = []
        is_list = False
        if self.shape is Shape.DOCUMENT:
            value = self._document_value
            is_list = isinstance(value, list)
            records = [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, dict)]
        elif self.shape is Shape.LINES:
            records = [record for line in self._voters for record in _records(line)]
        text = self._head.decode("utf-8", "replace") if self.shape is Shape.TEXT else ""
        return Sample(shape=self.shape, records=tuple(records[:_VOTERS]), is_list=is_list, text=text)

    def records(self) -> Iterator[Record | Skipped | Pause]:
        """Objects in file order, and what was no object. A document yields itself, or its elements if it is a list.

        Where the last whole line ends, a pause: what follows may be a line that is still being written. There is none
        where more of the input could make it something else.
        """
        if self.shape is Shape.DOCUMENT:
            value = self._document_value
            self._extent.add(self._head)
            self._is_read = True
            for entry in value if isinstance(value, list) else [value]:
                yield entry if isinstance(entry, dict) else Skipped(Reason.NOT_AN_OBJECT)
            return
        settled_after = self._settled_after
        parsed = iter(self._opening)
        last = b""
        for line in self._lines():
            if not line.endswith(b"\n"):
                last = line
                break
            self._extent.add(line)
            if not line.isspace():
                yield from next(parsed, None) or parse_line(line)
        if settled_after is not None and self._extent.length >= settled_after:
            yield self._pause
        self._extent.add(last)
        self._is_read = True
        if last and not last.isspace():
            yield from parse_line(last, last=True)

    def text_lines(self) -> Iterator[str]:
        """Decoded lines without their line ends; bytes that are no UTF-8 become U+FFFD."""
        for line in self._lines():
            self._extent.add(line)
            yield line.decode("utf-8", "replace").rstrip("\r\n")
        self._is_read = True

    @property
    def end(self) -> Pause | None:
        """The end of the input; None while it is not read to there."""
        return self._pause if self._is_read else None

    @property
    def _pause(self) -> Pause:
        return Pause(offset=self._extent.length, digest=self._extent.digest)

    @property
    def _settled_after(self) -> int | None:
        """After how many bytes nothing that follows can make this anything but JSON Lines of the same format.

        Asked for before anything is read. None where not all that has a vote on it is there yet.
        """
        if self.carried is not None:
            return 0
        if self.shape is not Shape.LINES or self._clean < _CLEAN:
            return None
        if len(self._opening) == _VOTERS:
            return 0
        return self._extent.length + len(self._head) if len(self._head) >= _HEAD else None

    @cached_property
    def _clean(self) -> float:
        """The share of the voting lines that hold objects and nothing else."""
        voters = self._voters
        return sum(all(isinstance(entry, dict) for entry in line) for line in voters) / len(voters)

    @cached_property
    def _opening(self) -> list[tuple[Record | Skipped, ...]]:
        """What is on each of the first lines that are not blank and that the head has whole."""
        lines = [line for line in self._head.split(b"\n")[:-1] if line.strip()]
        return [tuple(parse_line(line)) for line in lines[:_VOTERS]]

    @cached_property
    def _voters(self) -> list[tuple[Record | Skipped, ...]]:
        """The opening lines, and the line after them if nothing of it is cut off or nothing else is there."""
        rest = self._head.rpartition(b"\n")[2]
        if len(self._opening) == _VOTERS or not rest.strip():
            return self._opening
        entries = tuple(parse_line(rest))
        is_whole = all(isinstance(entry, dict) for entry in entries)
        return [*self._opening, entries] if is_whole or not self._opening else self._opening

    def _lines(self) -> Iterator[bytes]:
        *whole, rest = self._head.split(b"\n")
        self._head = b""
        for line in whole:
            yield line + b"\n"
        rest += self._stream.readline() if rest else b""
        if rest:
            yield rest
        yield from self._stream

    @cached_property
    def _document_value(self) -> object:
        """The input as one JSON value, or None. Called once at most, for input that begins like one."""
        self._head += self._stream.read()
        try:
            value: object = json.loads(_text(self._head))
        except (ValueError, RecursionError):
            return None
        return value


def parse_line(line: bytes, *, last: bool = False) -> Iterator[Record | Skipped]:
    """The objects on a line: usually one, two after a crash of the producer, none where it is no JSON.

    A `last` line (without a line end) that stops inside an object is still being written: TRUNCATED, which is no fault.
    """
    text = _text(line)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield from _parse_pieces(text.strip(_SPACE), last=last)
    else:
        yield value if isinstance(value, dict) else Skipped(Reason.NOT_AN_OBJECT)


def _parse_pieces(text: str, *, last: bool) -> Iterator[Record | Skipped]:
    """The objects of a line that is not one JSON value, found again after broken stretches; one fault at most."""
    fault: Reason | None = None
    at = tries = 0
    while at < len(text) and tries < _RESYNCHRONISE:
        piece, end = _piece(text, at)
        if isinstance(piece, dict):
            yield piece
        elif piece is Reason.TOO_DEEP:
            fault = piece
        else:
            is_cut_off = last and end == len(text) and text[at] == "{"
            fault = fault or (Reason.TRUNCATED if is_cut_off else piece)
        at = _past_space(text, end)
        tries += 1
    if fault is not None:
        yield Skipped(fault)


def _piece(text: str, at: int) -> tuple[Record | Reason, int]:
    """The object at a place and where it ends; or what is wrong there, and where to try next."""
    # Only brackets: a quote is as likely the end of a broken text as the beginning of one.
    if text[at] in "{[":
        try:
            value, end = _DECODER.raw_decode(text, at)
        except RecursionError:
            return Reason.TOO_DEEP, _next_object(text, at)
        except ValueError:
            return Reason.NOT_JSON, _next_object(text, at)
        return (value if isinstance(value, dict) else Reason.NOT_JSON), end
    return Reason.NOT_JSON, _next_object(text, at)


def _next_object(text: str, broken: int) -> int:
    """Where the next record may begin after a broken stretch, or the end of the text.

    Inside a record an object stands after `:`, `,` or `[`. Those are parts of what is broken, not records: taken for
    records, the inner message of a line that was cut off would be read as a message of its own.
    """
    for match in _OBJECT.finditer(text, broken + 1):
        at = match.start()
        before = text[max(broken, at - _BETWEEN_OBJECTS) : at].strip(_SPACE)
        is_separator = before == "," and at - broken <= _BETWEEN_OBJECTS
        if is_separator or (before and before[-1] not in ":,["):
            return at
    return len(text)


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _text(content: bytes) -> str:
    """Bytes as text that can be stored: what is no UTF-8, or would become half a surrogate pair, is U+FFFD."""
    text = content.decode("utf-8", "replace")
    if _SURROGATE.search(content):
        return _HALF_PAIR.sub(lambda match: "\\ufffd" if match[1] else match[0], text)
    return text


def _records(line: tuple[Record | Skipped, ...]) -> list[Record]:
    return [entry for entry in line if isinstance(entry, dict)]


_BLOCK = 1 << 18


@record
class Known:
    """The part of a file that need not be read again."""

    bookmark: Bookmark
    extent: Extent
    is_all: bool
    """Nothing follows."""


def known_part(stream: BinaryIO, bookmarks: Iterable[Bookmark]) -> Known | None:
    """The longest part that is still the same and that a reader can go on from; the stream is right behind it.

    None where there is none; the stream is then at its beginning. `bookmarks` are those of the file, in its order.
    """
    known = None
    extent = Extent()
    for bookmark in bookmarks:
        _extend(extent, stream, bookmark.offset)
        if extent.digest != bookmark.digest:
            break
        is_all = not stream.read(1)
        stream.seek(bookmark.offset)
        if is_all or bookmark.carried is not None:
            known = Known(bookmark=bookmark, extent=extent.copy(), is_all=is_all)
    stream.seek(known.bookmark.offset if known else 0)
    return known


def _extend(extent: Extent, stream: BinaryIO, end: int) -> None:
    while extent.length < end and (block := stream.read(min(_BLOCK, end - extent.length))):
        extent.add(block)
