"""Moving a whole memory between stores: `om export --to jsonl` and `om import`.

Each line is a record in JSON (om-store(5) describes them). Lines from another machine are checked like any input, and
recognised secrets are removed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from omcli.base.errors import BadInput
from omcli.base.record import record
from omcli.memory.changes import RECORDS_HEADER, MemoryRecord, OperationKind
from omcli.memory.message import Image, Message, MessageKind, Role
from omcli.memory.observation import Kind, Priority, Source, Status, Type
from omcli.memory.ports import Store
from omcli.memory.reflection import ReflectionOutcome
from omcli.operations.deps import Deps
from omcli.text.clean import clean, json_line, printed_name, single_line
from omcli.text.instants import instant
from omcli.text.redaction import redact

_LARGEST = 2**63 - 1
_DEEPEST = 20
_END = "end"
_OFTEN = 1000
"""Number of lines between two reports of progress."""
_AGAIN = "export it again; nothing of it was imported"
_Check = Callable[[Any], bool]


def export_records(store: Store) -> Iterator[str]:
    """Yield the whole memory as lines of JSON. The last line gives the number of lines before it."""
    number = 0
    for each in store.records.read():
        number += 1
        yield f"{json_line(each)}\n"
    yield f"{json_line({'record': _END, 'lines': number})}\n"


@record
class MergeReport:
    """The outcome of merging one file."""

    path: str
    counts: Mapping[str, int]
    """Numbers of new sessions, messages, rows and operations, of erased messages and rows together (`erased`), and of
    rows hidden as repeated.
    """
    redactions: Mapping[str, int]


def import_records(path: str, lines: Iterable[bytes], deps: Deps, *, backups: int) -> MergeReport:
    """Merge a file into the store, all of it or nothing. If `backups` is not 0, make a backup first if one is due, and
    keep the newest `backups`.

    Raise BadInput if the file is not an exported memory, is not whole and in order, or was written by a later version.
    """
    reader, now = _Reader(path, lines, deps), deps.clock.now()
    reader.check_header()
    if backups:
        deps.store.backups.back_up(keep=backups, now=now)
    counts = deps.store.records.merge(reader.records(), counter=deps.counter.name, now=now)
    if counts.get("erased"):
        deps.store.operations.erase((), now=now)  # frees the space, so that none of the words stays in the file
    return MergeReport(path=path, counts=counts, redactions=reader.redactions)


class _Reader:
    """Reads records from lines, and counts the removed secrets."""

    def __init__(self, path: str, lines: Iterable[bytes], deps: Deps) -> None:
        self._path = path
        self._lines = iter(lines)
        self._deps = deps
        self.redactions: Counter[str] = Counter()

    def check_header(self) -> None:
        """Read the first line. Raise BadInput unless this version of om can read what follows."""
        header = _parsed(next(self._lines, b"")) or {}
        version = header.get("version")
        if header.get("record") != RECORDS_HEADER["record"] or not _is_count(version) or version == 0:
            raise BadInput(
                "`om export --to jsonl` did not write it", hint="name its format: `om import --format NAME FILE`"
            )
        if version != RECORDS_HEADER["version"]:
            raise BadInput("a later version of om wrote it", hint="update om on this machine")

    def records(self) -> Iterator[MemoryRecord]:
        """Yield the records below the header, without secrets. Raise BadInput for a line that is not a record, for
        kinds of records in another order than that of `_SHAPES`, and for missing lines or lines below the end.
        """
        kinds, number, ended = tuple(_SHAPES), 1, None
        last = kinds[0]
        for line in filter(bytes.strip, self._lines):
            found = _parsed(line) or {}
            number += 1
            if number % _OFTEN == 0:
                self._deps.busy(f"{self._path}: {number} lines")
            if ended is not None:
                raise BadInput("there are lines below its end", hint="import each export by itself")
            if found.get("record") == _END:
                ended = found.get("lines")
            elif not _is_record(found):
                raise BadInput(f"line {number} is not a record", hint=_AGAIN)
            elif kinds.index(found["record"]) < kinds.index(last):
                raise BadInput(f"line {number} is not in its place", hint=_AGAIN)
            else:
                last = found["record"]
                yield self._safe(found)
        if ended != number - 1:
            raise BadInput("lines are missing from it", hint=_AGAIN)

    def _safe(self, found: dict[str, Any]) -> MemoryRecord:
        """Return a record without secrets in its words (`_WORDS`). A message or row gets its number of tokens."""
        kind = found["record"]
        safe = {**found, **{name: self._safe_words(found[name]) for name in _WORDS[kind] if found.get(name)}}
        if kind == "message":
            if images := found.get("images"):
                safe["images"] = [{**each, "media_type": self._redacted(each["media_type"])} for each in images]
            return {**safe, "tokens": self._deps.counter.message(_message(safe))}
        if kind == "row":
            text = single_line(safe["text"])
            return {"metadata": {}, **safe, "text": text, "tokens": self._deps.counter.text(text)}
        return safe

    def _safe_words(self, value: Any) -> Any:
        """Return a text, an object or a list without secrets. In a list of pairs, each begins with an id, which stays
        as it is.
        """
        if isinstance(value, str):
            return self._redacted(value)
        if isinstance(value, dict):
            return json.loads(self._redacted(json.dumps(value, ensure_ascii=False)))
        return [
            [each[0], self._redacted(each[1])] if isinstance(each, list) else self._redacted(each) for each in value
        ]

    def _redacted(self, text: str) -> str:
        redacted = redact(clean(text))
        self.redactions.update(redacted.counts)
        return redacted.text


def _message(found: Mapping[str, Any]) -> Message:
    return Message(
        role=Role(found["role"]),
        text=found["text"],
        tool=found.get("tool"),
        call_id=found.get("call_id"),
        images=tuple(Image(**image) for image in found.get("images", ())),
    )


def _not_json(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


# ---- valid records


def _is_record(found: Mapping[str, Any]) -> bool:
    """Return True if a record has the fields of its kind, each with a valid value. Other fields are ignored."""
    shape = _SHAPES.get(found.get("record", "")) if isinstance(found.get("record"), str) else None
    if shape is None:
        return False
    return all(
        check(found[name]) if name in found else name not in _REQUIRED[found["record"]] for name, check in shape.items()
    )


def _is_text(value: object) -> bool:
    """Return True for text that can be stored, which has no half of a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_name(value: object) -> bool:
    """Return True for text that can be the id of a session or an author: not empty, and printed as it is."""
    return isinstance(value, str) and bool(value) and printed_name(value) == value


def _is_number(value: object) -> bool:
    return isinstance(value, int) and -_LARGEST <= value <= _LARGEST


def _is_count(value: object) -> bool:
    return _is_number(value) and not isinstance(value, bool) and value >= 0  # type: ignore[operator]


def _is_instant(value: object) -> bool:
    return isinstance(value, str) and instant(value) == value


def _of_shape(pattern: str) -> _Check:
    compiled = re.compile(pattern, re.ASCII)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def _one_of(kind: type[StrEnum]) -> _Check:
    words = frozenset(map(str, kind))
    return lambda value: isinstance(value, str) and value in words


def _list_of(*checks: _Check) -> _Check:
    """Return a check for a list whose items all pass the check. Given several checks, each item must be a list with as
    many parts, which pass one check each, in order.
    """

    def check(value: object) -> bool:
        if not isinstance(value, list):
            return False
        if len(checks) == 1:
            return all(map(checks[0], value))
        return all(_items_of(*checks)(item) for item in value)

    return check


def _items_of(*checks: _Check) -> _Check:
    return lambda value: (
        isinstance(value, list)
        and len(value) == len(checks)
        and all(check(item) for check, item in zip(checks, value, strict=True))
    )


def _is_object(value: object) -> bool:
    """Return True for an object of at most `_DEEPEST` levels, so that it can be written as JSON again."""
    level: list[object] = [value]
    for _ in range(_DEEPEST):
        level = [
            each
            for part in level
            for each in (part.values() if isinstance(part, dict) else part if isinstance(part, list) else ())
        ]
    return isinstance(value, dict) and not level


_HOST = r"[0-9a-f]{16}"
_is_host = _of_shape(_HOST)
_is_digest = _of_shape("[0-9a-f]{32}")
_is_id = _of_shape("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_is_operation = _of_shape(rf"{_HOST}\.[0-9]{{1,18}}\.\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{3}}Z")
_is_stamp = _items_of(_is_instant, _is_host)
_AUTHOR: dict[str, _Check] = dict.fromkeys(("author", "machine"), _is_name)


def _is_image(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"media_type", "size", "sha256"}
        and isinstance(value["media_type"], str)
        and _is_count(value["size"])
        and _of_shape("[0-9a-f]{64}")(value["sha256"])
    )


_SHAPES: dict[str, dict[str, _Check]] = {
    "session": {
        "id": _is_name,
        **dict.fromkeys(("agent", "cwd", "branch", "title", "model", "parent"), _is_text),
        **dict.fromkeys(("first_at", "last_at", "seen_at"), _is_instant),
        **_AUTHOR,
    },
    "operation": {
        "id": _is_operation,
        "verb": _one_of(OperationKind),
        "at": _is_instant,
        "outcome": _one_of(ReflectionOutcome),
        "fingerprint": _is_text,
        "figures": _is_object,
        "session": _is_text,
        "project": _is_text,
        "error": _is_text,
        "final_at": _is_instant,
        **_AUTHOR,
        "part_of": _is_operation,
        "undoes": _is_operation,
        "tombstones": _list_of(_is_digest),
        "titles": _list_of(_is_name, _is_text),
    },
    "message": {
        "identity": _is_digest,
        "session": _is_name,
        "host": _is_host,
        "number": _is_count,
        "role": _one_of(Role),
        "text": _is_text,
        "counted": lambda value: value in (0, 1),
        "aside": _one_of(MessageKind),
        **dict.fromkeys(("id", "key", "name", "agent", "cwd", "tool", "call_id"), _is_text),
        "at": _is_instant,
        "utc_offset": _is_number,
        "failed": lambda value: value in (0, 1),
        "exit_code": _is_number,
        "images": _list_of(_is_image),
        "observed": _is_stamp,
        "erased": lambda value: value is True,
        "holds": _list_of(_is_operation),
    },
    "row": {
        "id": _is_id,
        "host": _is_host,
        "number": _is_count,
        "kind": _one_of(Kind),
        "type": _one_of(Type),
        "priority": _one_of(Priority),
        "importance": lambda value: _is_count(value) and value <= 10,
        "text": _is_text,
        "observed_at": _is_instant,
        "source": _one_of(Source),
        "generation": _is_count,
        "status": _one_of(Status),
        "session": _is_name,
        **dict.fromkeys(("project", "refers_to", "reason"), _is_text),
        **dict.fromkeys(("event_at", "last_used_at", "dropped_at"), _is_instant),
        **_AUTHOR,
        "tags": _list_of(_is_text),
        "metadata": _is_object,
        "batch": _is_stamp,
        "sources": _list_of(_is_digest),
        "supports": _list_of(_is_id),
        "superseded_by": _is_id,
        "hidden_by": _is_operation,
        "made_by": _is_operation,
        "holds": _list_of(_is_operation),
        "successors": _list_of(_is_id, _is_text),
    },
    "erased": {"id": _is_id},
}
_REQUIRED: dict[str, frozenset[str]] = {
    "session": frozenset({"id"}),
    "operation": frozenset({"id", "verb", "at", "outcome", "fingerprint", "figures"}),
    "message": frozenset({"identity", "session", "host", "number", "role", "text", "counted"}),
    "row": frozenset(
        {"id", "host", "number", "kind", "type", "priority", "importance", "text", "observed_at", "source"}
    ),
    "erased": frozenset({"id"}),
}
_WORDS: dict[str, tuple[str, ...]] = {
    "session": ("agent", "branch", "title", "model"),
    "operation": ("fingerprint", "figures", "error", "titles"),
    "message": ("text", "name", "tool"),
    "row": ("text", "tags", "reason", "refers_to", "metadata", "successors"),
    "erased": (),
}
"""Fields by kind of record that may have a secret. Those with ids and directories are kept as they are, and no other
valid value is one.
"""
