"""The log of hooks: one line for each hook that a client ran, and for each worker that a hook started.

A hook never disturbs its client, so this log is the only place where its errors are told.
"""

import json
import os
from collections.abc import Mapping

from omcli.base.record import record

LARGEST = 1_000_000
"""Maximum size of the log in bytes before it is rotated. One old log is kept."""
_END = 200_000
"""Number of bytes to read from the end of the log to find the last runs."""


@record
class HookRun:
    """A run of a hook or of its worker."""

    at: str
    """Time of its end."""
    client: str
    event: str
    """The client's name of the event; `worker` for a worker."""
    ended: int
    """Exit code of the work; the process of a hook itself always exits 0."""
    session: str | None = None
    error: str | None = None
    ms: int = 0
    """Milliseconds from its start to its end."""


def log_path(environment: Mapping[str, str]) -> str:
    """Return the path of the log."""
    from omcli.workers import state_folder  # noqa: PLC0415 - imports pathlib, for which a hook does not wait

    return str(state_folder(environment) / "hooks.log")


def append(path: str, run: HookRun) -> None:
    """Append a run. If the log cannot be written, nothing happens: there is nobody to tell."""
    told = {"at": run.at, "client": run.client, "event": run.event, "session": run.session, "ended": run.ended}
    told |= {"error": run.error, "ms": run.ms}
    line = json.dumps({key: value for key, value in told.items() if value is not None}, ensure_ascii=False)
    data = f"{line}\n".encode("utf-8", "backslashreplace")
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
        stream = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(stream, data)
            if os.fstat(stream).st_size > LARGEST:
                os.replace(path, f"{path}.1")  # noqa: PTH105 - of several processes that do so, the last one wins
        finally:
            os.close(stream)
    except OSError:
        return


def last_runs(path: str) -> Mapping[str, HookRun]:
    """Return the last run of each client according to the end of the log, without those of workers."""
    return {run.client: run for run in _runs(path) if run.event != "worker"}


def last_errors(path: str) -> Mapping[str, HookRun]:
    """Return the last failed run of each client, workers included, unless a run of the same event succeeded since."""
    failed: dict[tuple[str, str], HookRun] = {}
    for run in _runs(path):
        failed.pop((run.client, run.event), None)
        if run.ended:
            failed[run.client, run.event] = run
    return {run.client: run for run in sorted(failed.values(), key=lambda run: run.at)}


def _runs(path: str) -> list[HookRun]:
    """Return the runs near the end of the log, oldest first. Lines that cannot be read are skipped."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _END))
            lines = stream.read().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            told = json.loads(line)
            found.append(HookRun(**{key: told[key] for key in _KEYS if key in told}))
        except (ValueError, TypeError, KeyError):
            continue
    return found


_KEYS = ("at", "client", "event", "ended", "session", "error", "ms")
