"""One worker at a time for each session: whoever comes second leaves, and whoever was first looks again."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from omcli.memory.errors import CannotCreate

_TAKEN = frozenset({errno.EACCES, errno.EAGAIN})


class Slots:
    """A place per session of a store, each for one process. The system takes it back when that ends, however it ends.

    A place is a byte of one empty file, far behind its end, under a record lock. A process that this one starts does
    not get it.
    """

    def __init__(self, folder: Path, store: Path) -> None:
        """Of a store; `folder` is where the file lies. Raises CannotCreate."""
        self._store = os.path.realpath(store)
        file = folder / "workers.lock"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CannotCreate(f"cannot create {file}: {error.strerror}") from error

    def close(self) -> None:
        """Gives everything back."""
        os.close(self._file)

    @contextmanager
    def taken(self, session: str) -> Iterator[bool]:
        """Whether the place of a session was free; then it is ours inside. Where nothing can be locked it always is:
        the lease on the lane still keeps two from doing the same."""
        place = self._place(session)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError as error:
            yield error.errno not in _TAKEN
            return
        try:
            yield True
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def is_free(self, session: str) -> bool:
        """Whether no worker is at a session. Who asks must start one where none is: it is in the way while it asks."""
        with self.taken(session) as is_ours:
            return is_ours

    def _place(self, session: str) -> int:
        digest = sha256(f"{self._store}\0{session}".encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") >> 2  # an offset has 63 bits, and one more byte has to fit
