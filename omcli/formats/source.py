"""An input as records: JSON Lines, one JSON document or plain text, told apart by content and read as a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import BinaryIO

from omcli.memory.transcript import Reason, Skipped

_HEAD = 1 << 20
"""How much is looked at before anything is read: a transcript's first line is often a side record."""
_BEGINNING = 1000
_VOTERS = 60
"""Records that vote on the format."""
_RESYNCHRONISE = 64
"""How many places of a broken line are tried as the start of the next object."""
_BOM = b"\xef\xbb\xbf"
_SPACE = " \t\r\n"

# A log may begin with `[12:03]`, prose with `{note}`: only this is worth reading to the end as one JSON document.
_DOCUMENT = re.compile(rb"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\]])")
# Where it turns out not to be one, its lines may be; a cut-off transcript is no prose in any case.
_BROKEN = re.compile(rb'\s*\[?\s*\{\s*"')
_OBJECT = re.compile(r'\{\s*"')
_BETWEEN_OBJECTS = 8
"""Characters that may stand between two objects: a comma and some space."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# `\\` and pairs of surrogates are matched so that they are passed over; group 1 is half a pair.
_HALF_PAIR = re.compile(
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


@dataclass(frozen=True, slots=True, kw_only=True)
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

    def __init__(self, stream: BinaryIO) -> None:
        head = stream.read(_HEAD).removeprefix(_BOM)
        while head.isspace() and (more := stream.read(_HEAD)):
            head = more
        if b"\n" not in head:
            head += stream.readline()  # the first line is longer than the head
        self._head = head
        self._stream = stream

    @property
    def beginning(self) -> str:
        """The first characters; asked for before anything is read."""
        return self._head[:_BEGINNING].decode("utf-8", "replace")

    @cached_property
    def shape(self) -> Shape:
        """How the bytes are laid out, from their beginning."""
        if not self._head.strip():
            return Shape.EMPTY
        voters = self._voters
        clean = sum(all(isinstance(entry, dict) for entry in line) for line in voters) / len(voters)
        # Markdown exports embed JSON lines: most of them must be objects, not just some.
        if clean >= 0.8:
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

    def records(self) -> Iterator[Record | Skipped]:
        """Objects in file order, and what was no object. A document yields itself, or its elements if it is a list."""
        if self.shape is Shape.DOCUMENT:
            value = self._document_value
            for entry in value if isinstance(value, list) else [value]:
                yield entry if isinstance(entry, dict) else Skipped(Reason.NOT_AN_OBJECT)
            return
        parsed = iter(self._opening)
        for line in self._lines():
            if line.isspace():
                continue
            if line.endswith(b"\n"):
                yield from next(parsed, None) or parse_line(line)
            else:
                yield from parse_line(line, last=True)

    def text_lines(self) -> Iterator[str]:
        """Decoded lines without their line ends; bytes that are no UTF-8 become U+FFFD."""
        for line in self._lines():
            yield line.decode("utf-8", "replace").rstrip("\r\n")

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
