"""A folder of daily notes (`YYYY-MM-DD.md`), with `archive` and `MEMORY.md`."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path

from omcli.base.errors import CannotCreate, InputOutput, NoInput
from omcli.exchange.daily_notes import FORMAT, Note, pieces, session_of, with_section, without_facts
from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.transcript import Beginning, Checkpoint, Facts, IngestedFile, Item, Origin, Transcript
from omcli.text.similarity import folded_text

_SUFFIX = ".md"
_MEMORY = "MEMORY.md"
_ARCHIVE = "archive"
_PARTIAL = ".MEMORY.md.om-partial"
_TRIES = 5
"""Maximum number of attempts to write `MEMORY.md` while another program writes it."""


class NotesFolder:
    """A notebook on disk (`exchange.daily_notes.Notebook`)."""

    def __init__(
        self,
        folder: Path,
        *,
        terms: Callable[[str], str],
        stamp: Callable[[os.stat_result], str],
        settled: Callable[[os.stat_result], str | None],
    ) -> None:
        """`terms` returns `Origin.terms` for a session, and `stamp` the stamp of a file.

        `settled` returns the stamp too, or None if the file is so new that it could change again without changing its
        stamp.
        """
        self._folder = Path(os.path.realpath(folder))
        self._terms, self._stamp, self._settled = terms, stamp, settled

    @property
    def path(self) -> str:
        return str(self._folder)

    def notes(self) -> tuple[Note, ...]:
        """Return the notes, oldest first."""
        with _reading(self._folder):
            names = [file.name for file in os.scandir(self._folder) if _is_note(file)]
        return tuple(Note(day=name.removesuffix(_SUFFIX), path=str(self._folder / name)) for name in sorted(names))

    def as_it_is(self, note: Note) -> IngestedFile:
        """Return the origin and current stamp of a note."""
        with _reading(Path(note.path)):
            return IngestedFile(origin=self._origin(note), stamp=self._stamp(Path(note.path).stat()))

    def _origin(self, note: Note) -> Origin:
        return Origin(path=note.path, terms=self._terms(session_of(self.path, note.day)))

    @contextmanager
    def opened(self, note: Note) -> Iterator[Transcript]:
        """Open a note as a transcript."""
        with _reading(Path(note.path)), Path(note.path).open("rb") as stream:
            of = os.fstat(stream.fileno())
            content = stream.read()
        extent = Beginning()
        extent.add(content)
        session, project = session_of(self.path, note.day), str(_project(self._folder))
        facts = Facts(session=session, cwd=project, title=f"notes of {note.day}")
        items = _items(note, facts, content.decode("utf-8", "replace"), extent)
        yield Transcript(format=FORMAT, items=items, origin=self._origin(note), stamp=self._settled(of))

    def remember(self, note: Note, section: str) -> None:
        """Write the section of the note's day to `MEMORY.md`, in place of an older section of that day."""
        target = Path(os.path.realpath(self._folder / _MEMORY))
        with _writing(target):
            for _ in range(_TRIES):
                before = _content(target)
                after = with_section(before or b"", note.day, section)
                if after == before or self._replaced(target, before, after):
                    return
        raise InputOutput(f"{target} is being written by another program", hint="try again later; nothing was moved")

    def forget(self, are_gone: Callable[[Sequence[str]], Sequence[bool]]) -> int:
        """Remove from `MEMORY.md` the facts that `are_gone` selects, and return their number."""
        target = Path(os.path.realpath(self._folder / _MEMORY))
        with _writing(target):
            for _ in range(_TRIES):
                before = _content(target)
                after, gone = without_facts(before or b"", are_gone)
                if not gone or self._replaced(target, before, after):
                    return gone
        raise InputOutput(f"{target} is being written by another program", hint="try again later; nothing was changed")

    def _replaced(self, target: Path, before: bytes | None, after: bytes) -> bool:
        """Replace the content atomically. Return False if another program has changed it since `before` was read."""
        partial = target.with_name(_PARTIAL)
        mode = stat.S_IMODE(target.stat().st_mode) if before is not None else 0o600
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                os.fchmod(stream.fileno(), mode)
                stream.write(after)
                stream.flush()
                os.fsync(stream.fileno())
            if _content(target) != before:
                return False
            partial.replace(target)
        finally:
            with suppress(FileNotFoundError):
                partial.unlink()
        _settle(target.parent)
        return True

    def archive(self, note: Note, known: IngestedFile) -> str | None:
        """Move a note to `archive` and return its new path, or None if it has changed since `known`."""
        source, archive = Path(note.path), self._folder / _ARCHIVE
        with _writing(archive):
            archive.mkdir(exist_ok=True)
        with _writing(source):
            if self._stamp(source.stat()) != known.stamp:
                return None
            target = _free(archive, note.day)
            source.rename(target)
            _settle(archive)
            _settle(self._folder)
        return str(target)


def _project(folder: Path) -> Path:
    """Return the project of the notes: the nearest Git repository above the folder, otherwise the folder's parent."""
    return next((above for above in folder.parents if os.path.lexists(above / ".git")), folder.parent)


def _is_note(file: os.DirEntry[str]) -> bool:
    day = file.name.removesuffix(_SUFFIX)
    if f"{day}{_SUFFIX}" != file.name or len(day) != len("2026-01-05"):
        return False
    try:
        return date.fromisoformat(day).isoformat() == day and file.is_file()
    except (ValueError, OSError):  # not a day, or a circular link
        return False


def _items(note: Note, facts: Facts, text: str, extent: Beginning) -> Iterator[Item]:
    yield facts
    for piece in pieces(text):
        yield Message(role=Role.USER, kind=MessageKind.NOTE, text=piece, at=f"{note.day}T12:00:00.000Z")
    yield Checkpoint(offset=extent.length, digest=extent.digest)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _free(archive: Path, day: str) -> Path:
    number, target = 1, archive / f"{day}{_SUFFIX}"
    while os.path.lexists(target):
        number += 1
        target = archive / f"{day}-{number}{_SUFFIX}"
    return target


def _settle(folder: Path) -> None:
    """Flush a folder's entries to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some file systems do not support this
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NoInput(f"{path}: cannot be read: {error.strerror}") from None


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise CannotCreate(f"{path}: {error.strerror}", hint="check the permissions of its folder") from None
    except OSError as error:
        raise InputOutput(f"{path}: {error.strerror}") from None


# ---- notes that still contain forgotten text: om does not change them


def find_stale_notes(texts: Iterable[str], *, taken_in: Iterable[IngestedFile], notes: Path | None) -> tuple[Path, ...]:
    """Return the daily notes, archived notes and `MEMORY.md` files that contain one of `texts`, ignoring case and
    differences in white space.

    The folder `notes` and every folder from which a note was ingested are searched. Unreadable files are skipped.
    """
    wanted = {folded_text(text) for text in texts} - {""}
    folders = {Path(taken.origin.path).parent for taken in taken_in if _is_dated(Path(taken.origin.path))}
    folders |= set() if notes is None else {Path(os.path.realpath(notes))}
    return tuple(sorted(path for folder in folders for path in _note_files(folder) if _contains(path, wanted)))


def _note_files(folder: Path) -> Iterator[Path]:
    yield folder / _MEMORY
    for place in (folder, folder / _ARCHIVE):
        yield from filter(_is_dated, place.glob(f"*{_SUFFIX}"))


def _is_dated(path: Path) -> bool:
    try:
        date.fromisoformat(path.stem[: len("YYYY-MM-DD")])
    except ValueError:
        return False
    return path.suffix == _SUFFIX


def _contains(path: Path, wanted: set[str]) -> bool:
    try:
        said = folded_text(path.read_text("utf-8", "replace"))
    except OSError:
        return False
    return any(text in said for text in wanted)
