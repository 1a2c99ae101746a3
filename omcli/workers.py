"""The log of workers: what they say, when each began and how it ended."""

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
"""Bytes from which on a log gives way to a new one; of the older ones the last is kept."""
_IDLE = (1, 75)
"""What a worker ends with that has done nothing."""
_END = 200_000
"""Bytes of a log that are read to see how the last worker ended."""


@record
class Ran:
    """A worker's run, as the log tells it."""

    at: str
    """Instant at which it began, or ended where it has."""
    owner: str
    """The process (`sqlite.owner`)."""
    ended: int | None = None
    """Its exit code; None where it has not said how it ended."""
    error: str | None = None
    """What went wrong last."""
    is_gone: bool = False
    """It is no longer there, and has not said how it ended."""


def state_folder(environment: Mapping[str, str]) -> Path:
    """The user's folder for what `om` says while nobody looks."""
    if sys.platform == "linux" and "ANDROID_ROOT" not in environment:
        # What platformdirs comes to as well, but that takes 3 ms of a caller that is not to wait.
        folder = environment.get("XDG_STATE_HOME", "").strip() or os.path.expanduser("~/.local/state")  # noqa: PTH111
        return Path(folder, "om")
    from platformdirs import user_state_path  # noqa: PLC0415

    return user_state_path("om", appauthor=False)


def log_file(environment: Mapping[str, str]) -> Path:
    """Where workers write what they say."""
    return state_folder(environment) / "background.log"


def opened(log: Path) -> int:
    """The log to be written to, for the user alone, made where there is none; a descriptor. Raises CannotCreate."""
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        stream = _appending(log)
        if os.fstat(stream).st_size < _LARGEST:
            return stream
        try:
            _make_way(log, stream)
        finally:
            os.close(stream)
        return _appending(log)
    except OSError as error:
        raise CannotCreate(f"the log of workers cannot be written: {log}: {error.strerror}") from error


def _appending(log: Path) -> int:
    return os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _make_way(log: Path, stream: int) -> None:
    """Puts a full log beside the new one. Of several that find it full, under a lock, one does that."""
    fcntl.flock(stream, fcntl.LOCK_EX)
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(stream), log.stat()):
            log.replace(log.with_name(f"{log.name}.1"))


def line(ran: Ran, store: Path) -> str:
    """A worker's beginning or end as a line of the log."""
    told = {"at": ran.at, "worker": ran.owner, "store": str(store), "ended": ran.ended, "error": ran.error}
    return json_line({name: value for name, value in told.items() if value is not None})


def last_run(log: Path, store: Path) -> Ran | None:
    """How the last worker on a store fared that the end of the log tells of; one that is not done has no `ended`.

    One that only left the work to another, or found it done, is passed over.
    """
    runs = {ran.owner: ran for ran in _told(log, str(store))}
    return next((ran for ran in reversed(runs.values()) if ran.ended not in _IDLE), None)


def _told(log: Path, store: str) -> Iterator[Ran]:
    """The lines of the log's end that tell of a beginning or an end; others are what workers said."""
    with suppress(OSError), log.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - _END))
        for text in stream:
            if text.startswith(b'{"at":'):
                with suppress(ValueError, KeyError):
                    told: dict[str, Any] = json.loads(text)
                    if told["store"] == store:
                        yield Ran(at=told["at"], owner=told["worker"], ended=told.get("ended"), error=told.get("error"))


_PROGRAM = (
    "import sys; root = sys.argv.pop(1); root in sys.path or sys.path.insert(0, root);"
    " from omcli.__main__ import main; main()"
)
"""The same `om` as this one, wherever it lies; `-P` keeps out what lies in the current directory."""
_STREAMS = 3
"""What is open by these numbers is stdin, stdout and stderr."""
_MOST = 1024


def start(words: Sequence[str], log: Path) -> None:
    """Starts `om` with these words, and comes back at once.

    It is in a session of its own, where no terminal that closes reaches it; reads nothing, and writes to the log. The
    current directory, the environment and the umask are ours. Of what we, or who started us, have open it gets nothing:
    who reads what we print until the end is not kept waiting. Raises CannotCreate.
    """
    root = str(Path(omcli.__file__).parents[1])
    command = [sys.executable, "-P", "-c", _PROGRAM, root, *words]
    stream = opened(log)
    try:
        _keep_to_oneself()
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


def _keep_to_oneself() -> None:
    """Marks what was inherited as not to be inherited further; what Python opens is so from the beginning."""
    try:
        numbers = list(map(int, os.listdir("/dev/fd")))  # noqa: PTH208 - names are all that is wanted
    except OSError:  # a system without
        numbers = list(range(_MOST))
    for number in numbers:
        if number >= _STREAMS:
            with suppress(OSError):  # no longer open, as the one that they were listed with
                os.set_inheritable(number, False)  # noqa: FBT003
