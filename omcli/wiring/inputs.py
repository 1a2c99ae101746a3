"""Inputs: files and standard input, opened as bytes or as transcripts."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from omcli import __version__
from omcli.base import ignore
from omcli.base.errors import PASSING, BadInput, CannotWrite, InputOutput, NoInput, NoKey, OmError
from omcli.base.record import replace
from omcli.settings.settings import ServerUrl

if TYPE_CHECKING:
    from omcli.exchange.groups import Exchange
    from omcli.formats import Format
    from omcli.formats.source import RecordStream
    from omcli.memory.transcript import Bookmark, IngestedPart, Item, Origin, Transcript
    from omcli.operations.deps import Deps
    from omcli.operations.ingest.files import FileInput
    from omcli.settings.settings import Settings
    from omcli.sqlite import SqliteStore
    from omcli.sqlite.spool import SpoolFile
    from omcli.wiring import Wiring

STDIN = "-"
"""Name that means standard input."""


@contextmanager
def transcript(
    name: str, bookmarks: Callable[[Origin], Iterable[Bookmark]], *, format_name: str | None, session: str | None
) -> Iterator[Transcript]:
    """Open a file or standard input as a transcript in the given or detected format.

    `bookmarks` returns the bookmarks of a file that was ingested by the same version of om with the same format and
    session options. Only the part after the last valid one is read. Raise NoInput if reading fails, BadUsage if the
    given format is unknown, BadInput for a directory or if no format is detected, and the errors of `bookmarks`.
    """
    with _opened(name) as stream, ExitStack() as stack:
        origin = _origin(name, stream, terms=terms(format_name, session))
        stamp = None if origin is None else _settled_file_stamp(origin.path, os.fstat(stream.fileno()))
        read = None
        if origin is not None and _is_database(stream):
            read = stack.enter_context(_database(origin, bookmarks(origin), format_name))
        elif origin is not None:
            read = _resume(stream, origin, bookmarks(origin))
        read = read or transcript_in(stream, format_name=format_name, origin=origin)
        with _input_errors():
            yield replace(read, stamp=stamp)


def _is_database(stream: BinaryIO) -> bool:
    """Return True if a file begins like an SQLite database. The stream is left at its beginning."""
    from omcli.formats.source import SQLITE

    with _input_errors():
        begins = stream.read(len(SQLITE))
        stream.seek(0)
    return begins == SQLITE


@contextmanager
def _database(origin: Origin, bookmarks: Iterable[Bookmark], format_name: str | None) -> Iterator[Transcript | None]:
    """Open OpenCode's database, with the sessions that changed since the last bookmark. Yield None if it belongs to
    another program.

    The bookmark of such a database holds the state of each session that was read, and no offset.
    """
    from omcli.formats.opencode.database import opened
    from omcli.memory.transcript import Checkpoint, Transcript

    known = next(iter(bookmarks), None)
    carried = known.earlier(goes_on=True).carried if known else None
    with opened(origin.path, carried["reader"] if carried else None) as database:
        if database is None:
            yield None
            return
        read = transcript_in(database.stream, format_name=format_name, origin=origin)
        end = Checkpoint(offset=0, digest=bytes(32), reader_state=database.state)  # a digest that no file has
        items = (item for item in read.items if not isinstance(item, Checkpoint))
        yield Transcript(format=read.format or "opencode", items=chain(items, (end,)), origin=origin)


def _resume(stream: BinaryIO, origin: Origin, bookmarks: Iterable[Bookmark]) -> Transcript | None:
    """Return the part of a file after its last valid bookmark, or None if there is no valid bookmark."""
    from omcli.formats.source import known_part
    from omcli.memory.transcript import Transcript

    with _input_errors():
        known = known_part(stream, bookmarks)
    if known is None:
        return None
    earlier = known.bookmark.earlier(goes_on=not known.is_all)
    if earlier.carried is None:
        return Transcript(format=earlier.found["format"], items=(), origin=origin, earlier=earlier)

    from omcli.formats import named
    from omcli.formats.source import RecordStream

    source = RecordStream(stream, extent=known.extent, state=earlier.carried["reader"])
    return _read(source, named(earlier.found["format"]), origin=origin, earlier=earlier)


@contextmanager
def read_ahead(
    wiring: Wiring, inputs: Sequence[FileInput], deps: Deps, *, observes: bool
) -> Iterator[Sequence[FileInput]]:
    """Yield the inputs. Inside the block other processes read them ahead if that saves time, and apply the rules if
    `observes`. Models observe in order.
    """
    if wiring.settings.jobs == 1 or deps.observer.is_model or _size(inputs[1:]) < _LONG:
        yield inputs
        return
    from omcli.wiring.ahead import reading_ahead

    with reading_ahead(wiring, inputs, deps, observes=observes) as given:
        yield given


_LONG = 2_000_000
"""Number of bytes that are read in about the time in which other processes start."""


def _size(inputs: Iterable[FileInput]) -> int:
    size = 0
    for entry in inputs:
        if entry.file is not None:
            with suppress(OSError, ValueError):
                size += os.stat(entry.file.path).st_size  # noqa: PTH116
    return size


def content(name: str) -> bytes:
    """Return all bytes of a file or standard input. Raise NoInput if reading fails, BadInput for a directory or if
    there are too many.
    """
    with _opened(name) as stream:
        return _whole(stream)


def _whole(stream: BinaryIO) -> bytes:
    from omcli.formats.source import read_whole

    with _input_errors():
        return read_whole(stream)


@contextmanager
def lines_of(name: str, settings: Settings, *, key_command: str | None = None) -> Iterator[Iterable[bytes]]:
    """Open a file or standard input as lines, which can be read without waiting: a pipe is read to its end first, into
    an encrypted file if the store is encrypted. An encrypted export is decrypted, with the key that the command prints
    or that is where the store's is.

    Raise NoInput if reading fails, BadInput for a directory, and the errors of `policies.learn_key`.
    """
    with _input_errors():
        if name != STDIN and Path(name).is_dir():
            raise BadInput("it is a directory", hint=f"name its format: `om import --format NAME {name}`")
    with _opened(name) as stream, _input_errors():
        if _is_file(name, stream):
            yield _lines_with_key(Path(name), settings, key_command) or stream
            return
        from shutil import copyfileobj
        from tempfile import NamedTemporaryFile, TemporaryFile

        from omcli.sqlite.cipher import MARK, known_key, write_lines
        from omcli.wiring.policies import with_key

        begin, db = stream.read(len(MARK)), settings.db
        key = None if isinstance(db, ServerUrl) else with_key(settings, partial(known_key, db))
        is_secret = begin == MARK or key is not None
        with NamedTemporaryFile() if is_secret else TemporaryFile() as copy:
            if key is not None and begin != MARK:
                write_lines(Path(copy.name), chain((begin + stream.readline(),), stream), key=key)
            else:
                copy.write(begin)
                copyfileobj(stream, copy)
                copy.seek(0)
            yield (_lines_with_key(Path(copy.name), settings, key_command) if is_secret else None) or copy


def _lines_with_key(file: Path, settings: Settings, key_command: str | None) -> Iterable[bytes] | None:
    """Return the lines of a file that is encrypted, or None if it is not."""
    from omcli.sqlite.cipher import key_name, known_key, read_lines
    from omcli.wiring.policies import learn_key

    if key_name(file) is None:
        return None
    try:
        known_key(file)
    except NoKey as error:
        learn_key(settings, error.name, of="the file", command=key_command)
    return read_lines(file)


def _is_file(name: str, stream: BinaryIO) -> bool:
    """Return True for a named file, and False for standard input, a pipe or a device, which may be read only once."""
    return name != STDIN and stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


def memory_text(name: str, exchange: Exchange) -> str:
    """Return the text of an input that `exchange` reads: a file or standard input, all files that `exchange` names in a
    folder, or the rows of a database as lines of JSON.

    Raise NoInput if reading fails, BadInput if a folder or database has nothing of this format.
    """
    with _input_errors():
        is_folder = name != STDIN and Path(name).is_dir()
        found = [path for each in exchange.files if is_folder and (path := Path(name) / each).exists()]
    if is_folder and not found:
        lacks = f"there is not any {' or '.join(exchange.files)} in it" if exchange.files else "it is a directory"
        raise BadInput(lacks, hint=exchange.hint or "name a file in it")
    if is_folder:
        return "\n\n".join(memory_text(str(path), exchange) for path in found)
    with _opened(name) as stream:
        if not (exchange.tables and _is_file(name, stream) and _is_database(stream)):
            return _whole(stream).decode("utf-8", "replace")
    return _rows_of(name, exchange)


def _rows_of(path: str, exchange: Exchange) -> str:
    from omcli.formats.tables import lines

    if (found := lines(path, exchange.tables)) is None:
        raise BadInput(f"this database lacks tables of `{exchange.name}`", hint=exchange.hint)
    return "\n".join(found)


def transcript_in(stream: BinaryIO, *, format_name: str | None = None, origin: Origin | None = None) -> Transcript:
    """Return a stream as a transcript in the given or detected format, or without a format if it is empty. A
    stream also counts as empty if no format is given and it has no messages, such as `[]`.

    Raise NoInput if reading fails, BadUsage if the given format is unknown, and UnknownFormat if none is detected or
    the given one does not fit.
    """
    from omcli.formats import chosen, detect
    from omcli.formats.source import InputShape, RecordStream
    from omcli.memory.transcript import Transcript

    with _input_errors():
        source = RecordStream(stream)
        if source.shape is InputShape.EMPTY or (format_name is None and source.has_no_messages):
            return Transcript(format=None, items=())
        found = chosen(format_name, source) if format_name else detect(source)
    return _read(source, found, origin=origin)


def _read(
    source: RecordStream, chosen: Format, *, origin: Origin | None, earlier: IngestedPart | None = None
) -> Transcript:
    from omcli.memory.transcript import Transcript

    return Transcript(
        format=chosen.name,
        copies=chosen.copies,
        items=chain(chosen.read(source), _end_of(source)),
        origin=origin,
        earlier=earlier,
    )


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    """Open a file or standard input. Raise NoInput if this fails, BadInput for a directory."""
    if name == STDIN:
        if sys.stdin is None:
            raise NoInput("standard input is closed")
        yield sys.stdin.buffer
        return
    try:
        stream = Path(name).open("rb")  # noqa: SIM115 - catches only errors of opening
    except FileNotFoundError:
        raise NoInput("no such file", hint="check the path; `-` is standard input") from None
    except PermissionError:
        raise NoInput("the file may not be read") from None
    except IsADirectoryError:
        raise BadInput("it is a directory", hint=f"name the transcripts in it: `om observe {name}/*.jsonl`") from None
    except OSError as error:
        raise NoInput(f"it cannot be opened: {error.strerror}") from error
    with stream:
        yield stream


def _origin(name: str, stream: BinaryIO, *, terms: str) -> Origin | None:
    """Return the origin of a stream, or None for standard input and pipes, which cannot be read again."""
    if name == STDIN or not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return None
    from omcli.memory.transcript import Origin

    return Origin(path=os.path.realpath(name), terms=terms)


def _end_of(source: RecordStream) -> Iterator[Item]:
    if source.end is not None:
        yield source.end


@contextmanager
def _input_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NoInput(f"it cannot be read: {error.strerror}") from error


_TICK_NS = 2_000_000_000
"""Coarsest resolution of file times on common file systems, in nanoseconds."""


def stamp(of: os.stat_result) -> str:
    """Return a file's size, modification time and inode as text. A file with an unchanged stamp is not read again."""
    return f"{of.st_size}-{of.st_mtime_ns}-{of.st_ino}"


def settled_stamp(of: os.stat_result) -> str | None:
    """Return the stamp, or None if the file is so recent that it could change again without changing its time."""
    return stamp(of) if time.time_ns() - of.st_mtime_ns > _TICK_NS else None


def file_stamp(path: str) -> str:
    """Return the stamp of a file, with its log's stamp if it is a database. Raise OSError if the file is missing."""
    of = os.stat(path)  # noqa: PTH116
    log = log_of(path)
    return stamp(of) if log is None else f"{stamp(of)}+{stamp(log)}"


def log_of(path: str) -> os.stat_result | None:
    """Return the state of the log in which SQLite keeps the latest changes to a database, or None without one."""
    try:
        return os.stat(f"{path}-wal")  # noqa: PTH116
    except OSError:
        return None


def _settled_file_stamp(path: str, of: os.stat_result) -> str | None:
    """Return the stamp of an open file, or None if it or its log could change again without changing its time."""
    log = log_of(path)
    if log is None or settled_stamp(of) is None:
        return settled_stamp(of)
    return settled_stamp(log) and f"{stamp(of)}+{stamp(log)}"


def terms(format_name: str | None, session: str | None) -> str:
    """Return everything besides a file's bytes that determines the result of reading it (`Origin.terms`)."""
    import json

    return json.dumps([__version__, _format_version(), format_name, session])


def asked(terms: str) -> tuple[str | None, str | None]:
    """Return the format and the session that were requested when a file was read, from its `terms`. Each is None if it
    was not requested.
    """
    import json

    _, _, format_name, session = json.loads(terms)
    return format_name, session


@cache
def _format_version() -> int:
    """Return the time of the last change to a module of `formats/`: a changed reader may read a file differently."""
    return max(module.stat().st_mtime_ns for module in (Path(__file__).parents[1] / "formats").rglob("*.py"))


# ---- the spool


def open_spool(wiring: Wiring, error: OmError) -> SpoolFile:
    """Return a new file of the spool for an input that the store cannot take. On a full disk, try to empty the store's
    log first. Raise the store's error if no file can be created.
    """
    from omcli.sqlite.checks import compact_log
    from omcli.sqlite.spool import SpoolFile

    is_on_server = isinstance(wiring.settings.db, ServerUrl)
    if is_on_server:
        with suppress(OSError):
            wiring.spool_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if isinstance(error, CannotWrite) and not is_on_server:
        with suppress(OmError):
            compact_log(wiring.store.database)  # it holds what could not be stored, and takes up space
    return SpoolFile(wiring.spool_path, error, make_store=wiring.temporary)


def take_in(wiring: Wiring, store: SqliteStore) -> None:
    """Store the inputs that wait in the spool, and report this. If the disk is full or fails, the rest goes on waiting,
    because the run may free space.

    Raise TryAgain if another process writes for too long.
    """
    from omcli.operations.ingest.files import append_again
    from omcli.sqlite import spool

    deps, seen = wiring.deps(wiring.counter_or_default(ignore), open_store=lambda: store), set[str]()

    def read(path: str) -> int:
        is_new = path not in seen  # several hooks may have left the same transcript
        seen.add(path)
        return _read_left(path, deps, wiring.tell) if is_new else 0

    with suppress(InputOutput):
        taken = spool.take_in(store, partial(append_again, deps=deps), read, place=wiring.spool_path)
        for file in taken.invalid:
            wiring.tell(f"a file of the spool cannot be read and is kept as {file}")
        if taken.in_words:
            wiring.tell(f"stored what was in the spool: {taken.in_words}")


def _read_left(path: str, deps: Deps, tell: Callable[[str], None]) -> int:
    """Store the messages of a transcript that a hook left, and return the number of new ones. Raise an error in
    `PASSING`, after which the transcript can be stored later; `tell` reports any other error.
    """
    from omcli.operations.ingest.files import FileInput, ingest_files

    opened = partial(transcript, path, deps.store.bookmarks.find, format_name=None, session=None)
    [report] = ingest_files([FileInput(name=path, open=opened)], deps)
    if isinstance(report.error, PASSING):
        raise report.error
    if report.error is not None:
        tell(f"{path}: {report.error.message}")
    return report.new_messages
