"""The log of hooks: a line for each hook that a client ran, and for each worker that had a transcript to observe.

A hook that the environment turns off logs nothing. A hook never disturbs its client, so this log is the only place
where its errors are reported.
"""

import json
import os

from omcli.processes import open_log, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_END = 200_000
"""Number of bytes to read from the end of the log to find the last runs."""
_TEXT, _NUMBER, _TEXT_OR_NONE = (str,), (int,), (str, type(None))
_KEYS: "Mapping[str, tuple[type, ...]]" = {
    "at": _TEXT, "client": _TEXT, "event": _TEXT, "ended": _NUMBER, "session": _TEXT_OR_NONE, "error": _TEXT_OR_NONE,
    "ms": _NUMBER,
}  # fmt: skip
WORKER, RETIRED = "worker", "retired"
"""Values of `HookRun.event` for runs of workers, and for runs of hooks that the retired program `om` installed."""


class HookRun:
    """A run of a hook or of its worker. It is a plain class, because a hook does not wait until records are loaded."""

    def __init__(
        self,
        *,
        at: str,
        client: str,
        event: str,
        ended: int = 0,
        session: str | None = None,
        error: str | None = None,
        ms: int = 0,
    ) -> None:
        """`at` is the time of its end, `event` the client's name for the event, WORKER or RETIRED, `ended` the exit
        code of the work (the process of a hook itself always exits 0), and `ms` its duration in milliseconds.
        """
        self.at, self.client, self.event, self.ended = at, client, event, ended
        self.session, self.error, self.ms = session, error, ms


def log_path(environment: "Mapping[str, str]") -> str:
    """Return the path of the log."""
    return os.path.join(state_folder(environment), "hooks.log")


def append(path: str, run: HookRun) -> None:
    """Append a run. Raise OSError if the log cannot be written."""
    told = {key: value for key in _KEYS if (value := getattr(run, key)) is not None}
    line = f"{json.dumps(told, ensure_ascii=False)}\n"
    stream = open_log(path)
    try:
        os.write(stream, line.encode("utf-8", "backslashreplace"))
    finally:
        os.close(stream)


def has_told(path: str, event: str, client: str | None = None) -> bool:
    """Return True if a run of the event, by the client or (None) any client, is near the end of the log."""
    return any(run.event == event and client in (None, run.client) for run in _all(path))


def last_run_by_client(path: str) -> "Mapping[str, HookRun]":
    """Return the last run of each client's hooks according to the end of the log. Runs of workers, and of hooks of the
    retired program, are left out.
    """
    return {run.client: run for run in _all(path) if run.event not in (WORKER, RETIRED)}


def last_errors(path: str) -> "Mapping[str, HookRun]":
    """Return the last failed run of each client, workers included.

    A failure no longer counts after a run of the same event has succeeded or, if its event is unknown, after any run of
    a hook.
    """
    failed: dict[tuple[str, str], HookRun] = {}
    for run in _all(path):
        failed.pop((run.client, run.event), None)
        if run.event != WORKER:
            failed.pop((run.client, ""), None)
        if run.ended:
            failed[run.client, run.event] = run
    return {run.client: run for run in sorted(failed.values(), key=lambda run: run.at)}


def _all(path: str) -> list[HookRun]:
    """Return the runs near the end of the log, oldest first. Lines that cannot be read are skipped."""
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _END))
            lines = stream.read().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            told = json.loads(line)
            run = HookRun(**{key: told[key] for key in _KEYS if key in told})
        except (ValueError, TypeError):
            continue
        if all(isinstance(getattr(run, key), kinds) for key, kinds in _KEYS.items()):
            found.append(run)
    return found
