"""Files and folders to follow."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from fnmatch import translate

from omcli.base.errors import NoInput, OmError
from omcli.formats import TRANSCRIPTS
from omcli.operations.watch import FoundFiles, Stamp
from omcli.wiring.inputs import log_of

_USUAL = (*(f"*{ending}" for ending in TRANSCRIPTS), "*.json", "*.txt", "*.md", "opencode*.db")
"""Usual names of transcripts. Files with the last four names are ignored if they turn out to be something else.
"""


class Folders:
    """The named files, and the files in the named folders and their subfolders.

    In folders, files are found by a pattern or by the usual names of transcripts. Hidden files and folders are skipped
    there. Links are followed, and each file is found once.
    """

    def __init__(self, paths: Iterable[str], patterns: Iterable[str] = ()) -> None:
        """`patterns` match file names in folders. The default is the usual names of transcripts."""
        self._paths = tuple(paths)
        patterns = tuple(patterns)
        self._is_guessing = not patterns
        self._names = re.compile("|".join(map(translate, patterns or _USUAL)))

    def look(self) -> FoundFiles:
        """Return all files and errors. Each file costs one `stat` call, a database two."""
        look = _Look(self._names)
        for path in self._paths:
            look.at(path)
        return FoundFiles(files=look.files, faults=look.faults)

    def is_guess(self, path: str) -> bool:
        """Return True if the file was found only by a usual name and may not be a transcript."""
        return self._is_guessing and not path.endswith(TRANSCRIPTS) and path not in self._paths

    def exists(self, path: str) -> bool:
        """Return True for any existing path, even a broken link."""
        return os.path.lexists(path)


class _Look:
    def __init__(self, names: re.Pattern[str]) -> None:
        self.files: dict[str, Stamp] = {}
        self.faults: dict[str, OmError] = {}
        self._names = names
        self._seen: set[tuple[int, int]] = set()

    def at(self, path: str) -> None:
        try:
            found = os.stat(path)  # noqa: PTH116 - saves an object for each of thousands of paths
        except FileNotFoundError:
            return  # it may be created later
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
                pass  # it has just been deleted
            except OSError as error:
                self.faults[folder] = NoInput(f"cannot be looked at: {error.strerror}")

    def _folder(self, folder: str) -> Iterator[str]:
        """Look at the files in a folder, and yield its subfolders. Raise OSError if the folder cannot be read."""
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
                    elif self._names.match(entry.name) and entry.is_file():
                        self._file(entry.path, entry.stat())
                except OSError:
                    continue  # deleted, or a broken link

    def _file(self, path: str, found: os.stat_result) -> None:
        if self._is_first(found):
            log = log_of(path) if path.endswith(".db") else None
            logged = () if log is None else (log.st_size, log.st_mtime_ns)
            state = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            self.files[path] = (*state, *logged)

    def _is_first(self, found: os.stat_result) -> bool:
        """Record that a file or folder was seen. Return False if it was seen before, even under another name."""
        key = (found.st_dev, found.st_ino)
        is_first = key not in self._seen
        self._seen.add(key)
        return is_first
