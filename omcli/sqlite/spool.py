"""The spool: a folder beside the store with messages and notes that the store could not take, until it can.

Each file is one input: lines of JSON, each with the arguments of one call that stores messages or a note, or with the
name of a hook's transcript. Secrets were removed before, and messages keep their identities. Writing a line to the
store a second time changes nothing. So a file is deleted after all of it was stored, and it does not matter how many
processes read it, or if one is killed. Of an encrypted store, only names of transcripts wait.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from omcli.base.errors import OmError, SessionTaken, UnknownId
from omcli.base.record import fields_of, record
from omcli.memory.message import Image, Incoming, Message, MessageKind, Role
from omcli.memory.observation import Kind, Observation, Priority, Source, Status, Type
from omcli.memory.session import Session
from omcli.sqlite import rows
from omcli.sqlite.backups import flush
from omcli.sqlite.connection import connect, key_of, keys, spool_folder
from omcli.sqlite.lanes import current_process, is_gone
from omcli.text.instants import format_time, minute

if TYPE_CHECKING:
    from omcli.memory.ports import Store
    from omcli.sqlite import SqliteStore

_LARGEST = 256_000_000
"""Maximum size of all files in a spool, in bytes."""
_WHOLE, _UNFINISHED, _INVALID = ".jsonl", ".partial", ".invalid"
"""Suffixes of files: complete, still being written or left by a process that was killed, and not readable."""
_BAD = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, sqlite3.Error)
"""Errors of a line that is not what this version of om writes. SQLite's own mean a value of another type."""
_SECOND = 1_000_000_000  # in nanoseconds
_DEAD_AFTER = 86_400
"""Seconds without a write after which the process that was writing a file is considered dead. Processes of this host
are seen to end before that.
"""
_DIGITS = 19
"""Number of digits of a time in nanoseconds, with which the name of a file begins."""


# ---- writing


class SpoolFile:
    """A file that takes one input in place of the store. It is complete once `keep` has returned."""

    def __init__(self, store: Path, reason: OmError, *, make_store: Callable[[], Store]) -> None:
        """`reason` is the error of the store. It is raised, here and later, if the file cannot be written either."""
        self._store, self._reason = store, reason
        self._make_store = make_store
        try:
            self._folder = spool_folder(store)
            self._path = self._folder / f"{time.time_ns()}.{current_process()}{_UNFINISHED}"
            self._room = _LARGEST - sum(map(_size, _files(self._folder) + _files(self._folder, invalid=True)))
            self._stream = _opened(self._path)
        except OSError as error:
            raise reason from error

    def empty_store(self) -> Store:
        """Return an empty store, to be read in place of one that cannot be opened."""
        return self._make_store()

    def append(
        self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int = 0
    ) -> None:
        """Keep the arguments of a call of `MessageLog.append`."""
        said = [fields_of(each) | {"message": _message_fields(each.message)} for each in messages]
        self._write(
            {"session": fields_of(session), "messages": said, "counter": counter, "now": now, "opening": opening}
        )

    def add(self, row: Observation) -> None:
        """Keep a row for `Rows.add`, which writes its author."""
        self._write({"row": {name: value for name, value in fields_of(row).items() if name != "author"}})

    def add_transcript(self, path: str) -> None:
        """Have a transcript read later."""
        self._write({"transcript": path})

    def keep(self) -> None:
        """Finish the file, so that it outlives a crash of the machine."""
        with self._or_reason():
            os.fsync(self._stream.fileno())
            self._stream.close()
            self._path.rename(self._path.with_suffix(_WHOLE))
        with suppress(OSError):  # some file systems cannot do that
            flush(self._folder)

    def _write(self, part: dict[str, object]) -> None:
        line = _line_of(part)
        self._room -= len(line)
        if self._room < 0:
            hint = f"the spool, {self._folder}, may not exceed {_LARGEST // 1_000_000} MB"
        elif "transcript" not in part and _is_secret(self._store):
            hint = "try again: the store is encrypted and the spool is not, so nothing is kept there"
        else:
            hint = ""
        if hint:
            self._drop()
            raise type(self._reason)(self._reason.message, hint=hint)
        with self._or_reason():
            self._stream.write(line)
            self._stream.flush()

    @contextmanager
    def _or_reason(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._drop()
            raise self._reason from error

    def _drop(self) -> None:
        """Delete the file, and the folder if nothing else waits in it."""
        with suppress(OSError):
            self._path.unlink()
        with suppress(OSError):
            self._stream.close()
        with suppress(OSError):
            self._folder.rmdir()


def _opened(path: Path) -> BinaryIO:
    for _ in range(2):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):  # another process has just deleted the empty folder
            return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
    raise FileNotFoundError(path)


def _message_fields(message: Message) -> dict[str, object]:
    images = [
        fields_of(image) | {"content": image.content and b64encode(image.content).decode("ascii")}
        for image in message.images
    ]
    return fields_of(message) | {"images": images}


# ---- lines: the only place that decides in which form the content of a store may be on disk outside it


def _is_secret(store: Path) -> bool:
    """Return True if a store is encrypted. This ends no lock of the process, because it leaves reading to SQLite."""
    if keys.get(store) is not None:
        return True
    with suppress(sqlite3.Error):  # it is missing or damaged
        try:
            with closing(connect(store, "ro", wait=0, immutable=True)) as connection:
                return key_of(connection) is not None
        except OmError:  # its key is missing
            return True
    return False


def _line_of(part: dict[str, object]) -> bytes:
    return f"{json.dumps(part, separators=(',', ':'))}\n".encode("ascii")


def _part_of(line: bytes) -> dict[str, Any]:
    """Return the part on a line. Raise one of `_BAD` if it cannot be read."""
    part: dict[str, Any] = json.loads(line)
    return part


# ---- reading


@record
class SpoolState:
    """The files that wait in a spool, and those that could not be read."""

    folder: Path
    files: int
    size: int
    """In bytes, with the files that could not be read."""
    since: str | None
    """Instant at which the oldest file was begun, if any waits."""
    invalid: int

    @property
    def in_words(self) -> str:
        waiting, invalid = _counted(self.files, "input"), _counted(self.invalid, "file")
        parts = [f"{waiting} since {minute(self.since)}, for the next command that writes"] if self.since else []
        parts += [f"{invalid} that cannot be read"] if self.invalid else []
        return f"{', '.join(parts)} ({self.size / 1000:.0f} kB)"


def state_of(store: Path) -> SpoolState | None:
    """Return the state of the store's spool, or None if it is empty."""
    folder = spool_folder(store)
    files, invalid = _files(folder), _files(folder, invalid=True)
    if not files and not invalid:
        return None
    begun = min((int(file.name[:_DIGITS]) for file in files), default=None)
    return SpoolState(
        folder=folder,
        files=len(files),
        size=sum(map(_size, (*files, *invalid))),
        since=None if begun is None else format_time(datetime.fromtimestamp(begun / _SECOND, UTC)),
        invalid=len(invalid),
    )


@record
class TakenIn:
    """Numbers of new messages and notes from a spool, and its files that could not be read."""

    messages: int
    notes: int
    invalid: tuple[Path, ...]

    @property
    def in_words(self) -> str:
        """The numbers, or an empty text if nothing was new."""
        counts = ((self.messages, "message"), (self.notes, "note"))
        return " and ".join(_counted(number, noun) for number, noun in counts if number)


def take_in(
    store: SqliteStore,
    again: Callable[[Session, Sequence[Message]], int],
    read: Callable[[str], int],
    *,
    place: Path,
) -> TakenIn:
    """Store what waits in the spool beside `place`, the oldest file first, and delete each file once all of it is
    stored. If a process was killed while it wrote a file, the complete lines are stored.

    A file with a line that cannot be read is kept under another name, and its other lines are stored. `again` stores
    the messages of a session if another conversation has taken the session's id. `read` stores the messages of a
    transcript. Both return the number of new messages. Raise StoreLocked or InputOutput if storing fails.
    """
    folder = spool_folder(place)
    counts, invalid = Counter[str](), list[Path]()
    for file in _files(folder):
        with suppress(OSError):  # another process has stored all of it, or it belongs to another user
            if file.suffix == _UNFINISHED and not _is_left(file):
                continue
            reader = _SpoolReader(file, store, again, read)
            counts += reader.store_all()
            if reader.is_valid:
                file.unlink()
            else:
                invalid.append(file.rename(file.with_suffix(_INVALID)))
    with suppress(OSError):
        folder.rmdir()
    return TakenIn(messages=counts["messages"], notes=counts["notes"], invalid=tuple(invalid))


def _is_left(file: Path) -> bool:
    """Return True if the process that was writing a file has ended or is considered dead."""
    return is_gone(file.stem[_DIGITS + 1 :]) or file.stat().st_mtime < time.time() - _DEAD_AFTER


class _SpoolReader:
    def __init__(
        self,
        file: Path,
        store: SqliteStore,
        again: Callable[[Session, Sequence[Message]], int],
        read: Callable[[str], int],
    ) -> None:
        self.is_valid = True
        """False once a line could not be read."""
        self._file, self._store, self._again, self._read = file, store, again, read
        self._moved: set[str] = set()

    def store_all(self) -> Counter[str]:
        """Store each line, and return the number of new messages and notes."""
        counts = Counter[str]()
        with self._file.open("rb") as stream:
            for line in stream:
                if self._file.suffix == _UNFINISHED and not line.endswith(b"\n"):
                    break  # the process was killed while it wrote this line
                try:
                    counts.update(self._store_part(_part_of(line)))
                except _BAD:
                    self.is_valid = False
        return counts

    def _store_part(self, part: dict[str, Any]) -> dict[str, int]:
        if "row" in part:
            return {"notes": self._add(_row(part["row"]))}
        if "transcript" in part:
            return {"messages": self._read(str(part["transcript"]))}
        session, messages = _session_part(part)
        if session.id in self._moved:
            return {}
        try:
            appended = self._store.messages.append(
                session, messages, counter=part["counter"], now=part["now"], opening=part["opening"]
            )
        except SessionTaken:
            self._moved.add(session.id)
            return {"messages": self._again(*self._conversation(session.id))}
        new = zip(messages, appended.new, strict=True)
        return {"messages": sum(is_new and incoming.message.is_counted for incoming, is_new in new)}

    def _add(self, row: Observation) -> bool:
        """Add a row, and return True, unless it was added before."""
        with self._store.database.writing() as connection:
            try:
                rows.find(connection, row.id)
            except UnknownId:
                rows.add(connection, (row,), author=self._store.database.author)
                return True
        return False

    def _conversation(self, session_id: str) -> tuple[Session, list[Message]]:
        """Return a session as the file's last line about it describes it, and its messages on all lines."""
        session, said = None, list[Message]()
        for line in self._file.read_bytes().splitlines():
            with suppress(*_BAD):
                found, messages = _session_part(_part_of(line))
                if found.id == session_id:
                    session = found
                    said += [incoming.message for incoming in messages]
        assert session is not None
        return session, said


def _session_part(part: dict[str, Any]) -> tuple[Session, list[Incoming]]:
    said = [Incoming(**{**each, "message": _message(each["message"])}) for each in part["messages"]]
    return Session(**part["session"]), said


def _message(fields: dict[str, Any]) -> Message:
    images = [
        Image(**{**image, "content": image["content"] and b64decode(image["content"])}) for image in fields["images"]
    ]
    kind = None if fields["kind"] is None else MessageKind(fields["kind"])
    return Message(**{**fields, "role": Role(fields["role"]), "kind": kind, "images": tuple(images)})


def _row(fields: dict[str, Any]) -> Observation:
    words = {"kind": Kind, "type": Type, "priority": Priority, "status": Status, "source": Source}
    read = {name: None if fields[name] is None else of(fields[name]) for name, of in words.items()}
    lists = {name: tuple(fields[name]) for name in ("message_ids", "sources", "tags", "supports")}
    return Observation(**{**fields, **read, **lists})


def _files(folder: Path, *, invalid: bool = False) -> list[Path]:
    """Return the files that wait, the oldest first, or those that could not be read."""
    suffixes = (_INVALID,) if invalid else (_WHOLE, _UNFINISHED)
    try:
        found = sorted(os.listdir(folder))  # noqa: PTH208 - lists no entries of a missing folder
    except OSError:
        return []
    named = [name for name in found if name[:_DIGITS].isdecimal() and name[_DIGITS:].startswith(".")]
    return [folder / name for name in named if name.endswith(suffixes) and _is_own(folder / name)]


def _is_own(file: Path) -> bool:
    """Return True for a regular file of this user. A link or a pipe is not from om, and other users may not add to the
    memory.
    """
    try:
        found = file.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # stored meanwhile
        return 0
