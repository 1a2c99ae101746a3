"""Background workers: starting a process that outlives its caller, and its log."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import omcli
from omcli.base.errors import CannotCreate
from omcli.base.record import record
from omcli.memory.row_json import json_line

_LARGEST = 1_000_000
"""Bytes at which a log is replaced by a new one; the last old one is kept."""
_IDLE = (1, 75)
"""Exit codes of a worker that has done nothing."""
_END = 200_000
"""Bytes read from the end of a log to find the last run."""


@record
class WorkerRun:
    """A worker's run, as the log tells it."""

    at: str
    """Instant at which it began, or ended."""
    owner: str
    """The process (`sqlite.owner`)."""
    ended: int | None = None
    """Its exit code; None if unknown."""
    error: str | None = None
    """Its last error."""
    is_gone: bool = False
    """The process is gone, and has not logged its end."""


def state_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's folder for state and logs."""
    if sys.platform == "linux" and "ANDROID_ROOT" not in environment:
        # What platformdirs comes to as well, but that takes 3 ms of a caller that is not to wait.
        folder = environment.get("XDG_STATE_HOME", "").strip() or os.path.expanduser("~/.local/state")  # noqa: PTH111
        return Path(folder, "om")
    from platformdirs import user_state_path  # noqa: PLC0415

    return user_state_path("om", appauthor=False)


def log_file(environment: Mapping[str, str]) -> Path:
    """Return the path of the log."""
    return state_folder(environment) / "background.log"


def opened(log: Path) -> int:
    """Open the log for appending, for the user alone, and return a descriptor. Raises CannotCreate."""
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        stream = _open_log(log)
        if os.fstat(stream).st_size < _LARGEST:
            return stream
        try:
            _move_full_log(log, stream)
        finally:
            os.close(stream)
        return _open_log(log)
    except OSError as error:
        raise CannotCreate(f"the log of workers cannot be written: {log}: {error.strerror}") from error


def _open_log(log: Path) -> int:
    return os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _move_full_log(log: Path, stream: int) -> None:
    """Move a full log aside. Of several processes that find it full, one does that, under a lock."""
    fcntl.flock(stream, fcntl.LOCK_EX)
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(stream), log.stat()):
            log.replace(log.with_name(f"{log.name}.1"))


def line(ran: WorkerRun, store: Path) -> str:
    """A worker's beginning or end as a line of the log."""
    told = {"at": ran.at, "worker": ran.owner, "store": str(store), "ended": ran.ended, "error": ran.error}
    return json_line({name: value for name, value in told.items() if value is not None})


def last_run(log: Path, store: Path) -> WorkerRun | None:
    """Return the last run on a store in the end of the log; a run that is not done has no `ended`.

    Runs that did nothing are left out.
    """
    runs = {ran.owner: ran for ran in _told(log, str(store))}
    return next((ran for ran in reversed(runs.values()) if ran.ended not in _IDLE), None)


def _told(log: Path, store: str) -> Iterator[WorkerRun]:
    """The lines of the log's end that tell of a beginning or an end; others are what workers said."""
    with suppress(OSError), log.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - _END))
        for text in stream:
            if text.startswith(b'{"at":'):
                with suppress(ValueError, KeyError):
                    told: dict[str, Any] = json.loads(text)
                    if told["store"] == store:
                        yield WorkerRun(
                            at=told["at"], owner=told["worker"], ended=told.get("ended"), error=told.get("error")
                        )


_PROGRAM = (
    "import sys; root = sys.argv.pop(1); root in sys.path or sys.path.insert(0, root);"
    " from omcli.__main__ import main; main()"
)
"""This same `om`, wherever it is installed; `-P` keeps out modules in the current directory."""
_STREAMS = 3
"""File descriptors of stdin, stdout and stderr."""
_MOST = 1024


def start(words: Sequence[str], log: Path) -> None:
    """Start `om` with these arguments, and return at once.

    The process has a session of its own, so that closing a terminal does not reach it; it reads nothing and writes to
    the log. It inherits the current directory, the environment and the umask, but no open file: a reader of our output
    is not kept waiting for its end. Raises CannotCreate.
    """
    root = str(Path(omcli.__file__).parents[1])
    command = [sys.executable, "-P", "-c", _PROGRAM, root, *words]
    stream = opened(log)
    try:
        _keep_private()
        os.posix_spawn(
            command[0],
            command,
            os.environ,
            # The log first: its number is 0 where we were started without a stdin.
            file_actions=[
                (os.POSIX_SPAWN_DUP2, stream, 1),
                (os.POSIX_SPAWN_DUP2, stream, 2),
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            ],
            setsid=True,
            setsigdef=[signal.SIGINT, signal.SIGPIPE],
        )
    except OSError as error:
        raise CannotCreate(f"no worker can be started: {error.strerror}", hint="`om tick` does what is due") from error
    finally:
        os.close(stream)


def _keep_private() -> None:
    """Keep inherited descriptors from the new process; those opened by Python are kept from it anyway."""
    try:
        numbers = list(map(int, os.listdir("/dev/fd")))  # noqa: PTH208 - names are all that is wanted
    except OSError:  # a system without
        numbers = list(range(_MOST))
    for number in numbers:
        if number >= _STREAMS:
            with suppress(OSError):  # no longer open, as the one that they were listed with
                os.set_inheritable(number, False)  # noqa: FBT003
