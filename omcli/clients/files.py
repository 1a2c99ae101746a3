"""Files of clients that om changes: each is written in one step, and its earlier content can be put back.

Originals are kept in a folder that only the user can read, because settings may contain keys.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from omcli.base.errors import CannotCreate, NoInput, OmError, TryAgain
from omcli.base.record import record

_MEMORY = "files.json"
_LOCK = "lock"


class FileStep(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    KEEP = "keep"
    """The file needs no change."""
    RESTORE = "restore"
    """The file gets back the content that it had before `om install`."""
    REMOVE = "remove"


@record
class ClientFile:
    """A change of a file, made or planned."""

    path: Path
    step: FileStep
    before: bytes | None
    """Content that the file has now; None if it is missing."""
    after: bytes | None
    original: bytes | None = None
    """Content that `om uninstall` will put back; None if it will remove the file."""
    events: tuple[str, ...] = ()
    """Events whose entries are added or removed."""
    replaced: tuple[str, ...] = ()
    """Commands of former entries that are removed."""


@record
class KeptFile:
    """A file before `om install` changed it."""

    content: bytes | None
    """None if the file was missing."""
    left: str
    """Hash of the content that `om install` wrote."""
    folders: tuple[str, ...]
    """Folders that were created for the file, outermost first."""

    def is_as_left(self, content: bytes | None) -> bool:
        """Return True if nobody has changed the file since `om install`."""
        return content is not None and _hash(content) == self.left


class KeptFiles:
    """The files that `om install` has changed, as they were before, in a folder of the user's state."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let other runs of `om install` or `om uninstall` wait. Raise CannotCreate if the folder cannot be written."""
        try:
            for folder in (self._folder.parent, self._folder):  # the mode is that of the last folder made
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CannotCreate(f"{self._folder}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def find(self, path: Path) -> KeptFile | None:
        """Return the original of a file, or None if none was kept or its content is lost."""
        found: Any = self._read_memory().get(str(target(path)))
        try:
            name = found["original"]
            content = None if name is None else read(self._folder / name)
            if content is None and name is not None:
                return None
            return KeptFile(content=content, left=found["left"], folders=tuple(found["folders"]))
        except (TypeError, KeyError):
            return None

    def paths(self) -> tuple[Path, ...]:
        """Return the files that `om install` has changed."""
        return tuple(map(Path, self._read_memory()))

    def install(self, changes: Iterable[ClientFile]) -> None:
        """Write files, and keep their originals. If one cannot be written, none is.

        Raise CannotCreate or NoInput if a file cannot be written or read, and TryAgain if another program has just
        changed one.
        """
        with self._all_or_nothing() as done:
            for change in changes:
                _clear_unfinished(target(change.path))
                if change.step is FileStep.KEEP or change.after is None:
                    continue
                known = self.find(change.path)
                folders = (*(known.folders if known else ()), *_missing_folders(target(change.path)))
                self._remember(change, folders)
                replace_content(change.path, change.before, change.after)
                done.append(change)

    def uninstall(self, changes: Collection[ClientFile]) -> None:
        """Write or remove files, and forget them. Folders that were created for the files are removed if they are
        empty. Raise the errors of `install`.
        """
        with self._all_or_nothing() as done:
            for change in changes:
                _clear_unfinished(target(change.path))
                if change.step is not FileStep.KEEP:
                    replace_content(change.path, change.before, change.after)
                    done.append(change)
        known = [found for change in changes if (found := self.find(change.path))]
        gone = {str(target(change.path)) for change in changes}
        self._write_memory({path: kept for path, kept in self._read_memory().items() if path not in gone})
        for folder in sorted({folder for found in known for folder in found.folders}, key=len, reverse=True):
            with suppress(OSError):  # not empty
                Path(folder).rmdir()

    @contextmanager
    def _all_or_nothing(self) -> Iterator[list[ClientFile]]:
        """Collect the changes that are made. If an error is raised, undo them."""
        done: list[ClientFile] = []
        before = self._read_memory()
        try:
            yield done
        except (OmError, OSError) as error:
            for change in reversed(done):
                write(target(change.path), change.before)
            self._write_memory(before)
            if isinstance(error, OSError):
                raise CannotCreate(f"{error.filename}: {error.strerror}") from error
            raise

    def _remember(self, change: ClientFile, folders: Sequence[str]) -> None:
        name = None
        if change.original is not None:
            name = _hash(change.original)
            write(self._folder / name, change.original, mode=0o600)
        kept = {"original": name, "left": _hash(change.after or b""), "folders": list(folders)}
        self._write_memory({**self._read_memory(), str(target(change.path)): kept})

    def _read_memory(self) -> dict[str, Any]:
        """Return the kept files by path, or an empty dict if the list cannot be read, because files can be mended
        without it.
        """
        try:
            found = json.loads(read(self._folder / _MEMORY) or b"{}")
        except (ValueError, NoInput):
            return {}
        return found if isinstance(found, dict) else {}

    def _write_memory(self, remembered: dict[str, Any]) -> None:
        write(self._folder / _MEMORY, json.dumps(remembered, indent=1).encode(), mode=0o600)
        used = {_MEMORY, _LOCK, *(str(kept.get("original")) for kept in remembered.values())}
        for file in self._folder.iterdir():
            if file.name not in used:
                file.unlink(missing_ok=True)


def target(path: Path) -> Path:
    """Return a path with links resolved, so that a link is kept when its target is written."""
    return Path(os.path.realpath(path))


def read(path: Path) -> bytes | None:
    """Return the content of a file, or None if it is missing. Raise NoInput if it cannot be read or is not a regular
    file: reading a pipe, for example, might never end.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise NoInput(f"{path}: cannot be read: not a regular file", hint="move it out of the way")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NoInput(f"{path}: cannot be read: {error.strerror}") from error


def write(path: Path, content: bytes | None, *, mode: int | None = None) -> None:
    """Write a file in one step, and keep its mode and owner; a new file gets `mode`. If `content` is None, remove the
    file. Raise CannotCreate if that fails.
    """
    try:
        if content is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_pieces(path, [content], mode=mode)
    except OSError as error:
        raise CannotCreate(f"{path}: {error.strerror}", hint="check the permissions of its folder") from error


def write_pieces(path: Path, pieces: Iterable[bytes], *, mode: int | None = None) -> None:
    """Write a file in one step, as `write` does, from pieces that need not fit into memory. If that fails, or the
    pieces end with an error, the file stays as it was. Raise OSError if the file cannot be written.
    """
    with new_file(path, mode=mode) as stream:
        stream.writelines(pieces)


@contextmanager
def new_file(path: Path, *, mode: int | None = None) -> Iterator[BinaryIO]:
    """Yield an empty file beside another one, whose place it takes at the end of the block, unless there is an error.
    It gets the mode and owner of the other one or, if there is none, `mode`. Raise OSError on failure.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)  # of a process with the same number that was killed
    try:
        with beside.open("xb") as stream:
            _take_after(path, stream.fileno(), mode)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    _settle(path.parent)


def replace_content(name: Path, before: bytes | None, after: bytes | None, *, mode: int | None = None) -> None:
    """Write a file, or remove it if `after` is None. An old file keeps its mode, a new one gets `mode`.

    Raise CannotCreate if it is read-only or cannot be written, NoInput if it cannot be read, and TryAgain if its
    content is no longer `before`.
    """
    path = target(name)
    if path.exists() and not (path.stat().st_mode & 0o222 and os.access(path, os.W_OK)):
        raise CannotCreate(f"{name} is read-only", hint="make it writable, or change its source by hand")
    if read(path) != before:
        raise TryAgain(f"{name} has just been changed by another program", hint="run the command again")
    write(path, after, mode=mode)


@contextmanager
def locked(name: Path) -> Iterator[None]:
    """Create a file's folder, and make other processes that lock the file wait. Raise CannotCreate on failure.

    The lock is the folder's, because the file is replaced. Without locks, as on some network file systems, two changes
    at the same moment are found by `replace_content`.
    """
    folder = target(name).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotCreate(f"{name}: {error.strerror}", hint="check the permissions of its folder") from error
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _clear_unfinished(path: Path) -> None:
    """Remove the unfinished files beside a file, left by processes that were killed during `write`."""
    with suppress(OSError):
        for file in path.parent.glob(f".{escape(path.name)}.*"):
            number = file.suffix[1:]
            if number.isascii() and number.isdecimal() and not _is_running(int(number)):
                file.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # of another user
        return True
    return True


def _take_after(path: Path, descriptor: int, mode: int | None) -> None:
    """Give a new file the mode and the owner of the one that it will replace. If it replaces none, give it `mode`."""
    try:
        found = path.stat()
    except FileNotFoundError:
        if mode is not None:
            os.fchmod(descriptor, mode)
        return
    with suppress(PermissionError):
        os.fchown(descriptor, found.st_uid, found.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(found.st_mode))


def _missing_folders(path: Path) -> tuple[str, ...]:
    """Return the folders above a file that do not exist, outermost first."""
    return tuple(str(folder) for folder in reversed(path.parents) if not folder.exists())


def _settle(folder: Path) -> None:
    """Flush a folder's entries to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some file systems do not support this
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()
