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
from omcli.text.clean import json_line

_LARGEST = 1_000_000
"""Maximum size of the log in bytes before it is rotated. One old log is kept."""
_IDLE = (1, 75)
"""Exit codes of a worker that did nothing."""
_END = 200_000
"""Number of bytes to read from the end of a log to find the last run."""


@record
class WorkerRun:
    """A worker's run, according to the log."""

    at: str
    """Time of its start, or of its end if it has ended."""
    owner: str
    """Name of the process (`sqlite.lanes.current_process`)."""
    ended: int | None = None
    """Exit code, or None if the log does not contain one."""
    error: str | None = None
    is_gone: bool = False
    """True if the process has ended without logging its end."""


def state_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's folder for state and logs."""
    if sys.platform == "linux" and "ANDROID_ROOT" not in environment:
        # The same result as platformdirs, which would delay the caller by 3 ms.
        folder = environment.get("XDG_STATE_HOME", "").strip() or os.path.expanduser("~/.local/state")  # noqa: PTH111
        return Path(folder, "om")
    from platformdirs import user_state_path  # noqa: PLC0415

    return user_state_path("om", appauthor=False)


def log_file(environment: Mapping[str, str]) -> Path:
    return state_folder(environment) / "background.log"


def opened(log: Path) -> int:
    """Open the log for appending, readable only by the user, and return its descriptor. A full log is rotated first.
    Raise CannotCreate on failure.
    """
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
    """Rotate a full log under a lock, so that only one process does so."""
    fcntl.flock(stream, fcntl.LOCK_EX)
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(stream), log.stat()):
            log.replace(log.with_name(f"{log.name}.1"))


def line(ran: WorkerRun, store: Path) -> str:
    """Return a line for the log about the start or end of a run."""
    told = {"at": ran.at, "worker": ran.owner, "store": str(store), "ended": ran.ended, "error": ran.error}
    return json_line({name: value for name, value in told.items() if value is not None})


def last_run(log: Path, store: Path) -> WorkerRun | None:
    """Return the last run on a store, according to the end of the log, or None if there is none. An unfinished run has
    no `ended`.

    Runs that did nothing are ignored.
    """
    runs = {ran.owner: ran for ran in _told(log, str(store))}
    return next((ran for ran in reversed(runs.values()) if ran.ended not in _IDLE), None)


def _told(log: Path, store: str) -> Iterator[WorkerRun]:
    """Yield the store's runs recorded near the end of the log. Other lines are messages from workers."""
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
"""Program that runs this installation of om. With `-P`, modules in the current directory are not found."""
_STREAMS = 3
"""Number of standard streams: stdin, stdout and stderr."""
_MOST = 1024


def start(words: Sequence[str], log: Path) -> None:
    """Start `om` with these arguments and return at once.

    The process runs in its own session, so it survives a closed terminal. It reads nothing and writes to the log. It
    inherits the current directory, environment and umask but no open files, so that readers of our output do not wait
    for it to end. Raise CannotCreate if it cannot be started.
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
            # The log first, because its descriptor is 0 if we were started without stdin.
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
    """Make the new process inherit no descriptors. Only descriptors that Python did not open need this."""
    try:
        numbers = list(map(int, os.listdir("/dev/fd")))  # noqa: PTH208 - only names are needed
    except OSError:  # this system has no such folder
        numbers = list(range(_MOST))
    for number in numbers:
        if number >= _STREAMS:
            with suppress(OSError):  # closed since, like the descriptor used for listing
                os.set_inheritable(number, False)  # noqa: FBT003
