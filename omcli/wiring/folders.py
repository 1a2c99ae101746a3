"""Files and folders that are followed: what lies there, by a look at names and times."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch

from omcli.memory.errors import NoInput, OmError
from omcli.operations.pace import Stamp
from omcli.operations.watch import Looked

_TRANSCRIPTS = ("*.jsonl", "*.ndjson")
_GUESSES = ("*.json", "*.txt", "*.md")
"""What may be a transcript: a reader decides, and says nothing where it is none."""


class Folders:
    """Files that were named, and those in folders that were named and below them.

    Of a folder the files count that are called like transcripts, or match a pattern that was given; what begins with
    a dot does not. Links are followed, each file once.
    """

    def __init__(self, paths: Iterable[str], patterns: Iterable[str] = ()) -> None:
        """`patterns` are those of file names in folders; without any, those that transcripts usually have."""
        self._paths = tuple(paths)
        self._patterns = tuple(patterns)

    def look(self) -> Looked:
        """All of them, for the cost of a `stat` each."""
        look = _Look(self._patterns)
        for path in self._paths:
            look.at(path)
        return Looked(files=look.files, guesses=frozenset(look.guesses), faults=look.faults)

    def is_there(self, path: str) -> bool:
        """Whether there is something by this name."""
        return os.path.lexists(path)


class _Look:
    """One look."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self.files: dict[str, Stamp] = {}
        self.guesses: set[str] = set()
        self.faults: dict[str, OmError] = {}
        self._patterns = patterns
        self._seen: set[tuple[int, int]] = set()

    def at(self, path: str) -> None:
        """Looks at what was named, be it a file or a folder."""
        try:
            found = os.stat(path)  # noqa: PTH116 - thousands of paths need no object each
        except FileNotFoundError:
            return  # it may come
        except OSError as error:
            self.faults[path] = NoInput(f"cannot be looked at: {error.strerror}")
            return
        if stat.S_ISDIR(found.st_mode):
            self._below(path)
        elif stat.S_ISREG(found.st_mode):
            self._file(path, found)
        else:
            self.faults[path] = NoInput("is neither a file nor a folder")

    def _below(self, folder: str) -> None:
        left = [folder]
        while left:
            folder = left.pop()
            try:
                left += self._folder(folder)
            except FileNotFoundError:
                pass  # it has gone meanwhile
            except OSError as error:
                self.faults[folder] = NoInput(f"cannot be looked at: {error.strerror}")

    def _folder(self, folder: str) -> Iterator[str]:
        """Looks at what lies in a folder, and gives the folders in it. Raises OSError."""
        here = os.stat(folder)  # noqa: PTH116
        if not self._is_first(here):
            return
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                try:
                    if entry.is_dir():
                        yield entry.path
                    elif self._is_wanted(entry.name) and entry.is_file():
                        self._file(entry.path, entry.stat())
                        if not self._patterns and not _is_one(entry.name, _TRANSCRIPTS):
                            self.guesses.add(entry.path)
                except OSError:
                    continue  # gone, or a link that leads nowhere

    def _is_wanted(self, name: str) -> bool:
        return _is_one(name, self._patterns or (*_TRANSCRIPTS, *_GUESSES))

    def _file(self, path: str, found: os.stat_result) -> None:
        if self._is_first(found):
            self.files[path] = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def _is_first(self, found: os.stat_result) -> bool:
        """Whether it has not been met under another name."""
        key = (found.st_dev, found.st_ino)
        is_first = key not in self._seen
        self._seen.add(key)
        return is_first


def _is_one(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)
