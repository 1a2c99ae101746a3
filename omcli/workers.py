"""Background workers: starting one, and its runs in the log."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from omcli import processes
from omcli.base.errors import CannotCreate
from omcli.base.record import record
from omcli.processes import state_folder
from omcli.text.clean import json_line

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


def log_file(environment: Mapping[str, str]) -> Path:
    return Path(state_folder(environment), "background.log")


def full_name(store: object) -> str:
    """Return the name of a store in the log: the full path of its file, which need not be there, or its URL."""
    return os.path.abspath(store) if isinstance(store, Path) else str(store)  # noqa: PTH100


def line(ran: WorkerRun, store: str | Path) -> str:
    """Return a line for the log about the start or end of a run on the store with this full name."""
    told = {"at": ran.at, "worker": ran.owner, "store": str(store), "ended": ran.ended, "error": ran.error}
    return json_line({name: value for name, value in told.items() if value is not None})


def last_run(log: Path, store: str | Path) -> WorkerRun | None:
    """Return the run on a store that began last, according to the end of the log, or None if there is none. A run
    without a logged end has no `ended`, even if its process is gone.

    Runs that did nothing are ignored.
    """
    runs = {ran.owner: ran for ran in _told(log, str(store))}
    return next((ran for ran in reversed(runs.values()) if ran.ended not in _IDLE), None)


def _told(log: Path, store: str) -> Iterator[WorkerRun]:
    """Yield the starts and ends of a store's runs near the end of the log. Other lines are messages of workers."""
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


def start(words: Sequence[str], log: Path) -> None:
    """Start `om` with these arguments and return at once (see `processes.start`). Raise CannotCreate if it cannot be
    started or the log cannot be written.
    """
    try:
        stream = processes.open_log(str(log))
    except OSError as error:
        raise CannotCreate(f"the log of workers cannot be written: {log}: {error.strerror}") from error
    try:
        processes.start(words, stream)
    except OSError as error:
        raise CannotCreate(f"no worker can be started: {error.strerror}", hint="`om tick` does what is due") from error
    finally:
        os.close(stream)
