"""Background workers: leaving due work to a worker or doing it at once, and running as a worker."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from omcli.base.errors import (
    ELSEWHERE,
    OF_MODELS,
    OF_ONE_SESSION,
    CannotCreate,
    InputOutput,
    OmError,
    TryAgain,
    Waiting,
)
from omcli.base.record import record, replace
from omcli.cli.console import Exit, counted
from omcli.cli.reports import report_tick
from omcli.memory.ports import Lane
from omcli.operations.clock import Clock
from omcli.settings.settings import ServerUrl
from omcli.text.clean import printable
from omcli.workers import WorkerRun, full_name, last_run, line, log_file, start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from omcli.cli.command import Run
    from omcli.operations.background import CheckedModels, MakeDeps
    from omcli.operations.deps import Deps
    from omcli.operations.tick import Due
    from omcli.wiring import Wiring
    from omcli.workers import WorkerRun

_MOST_NAMED, _LONGEST_NAME = 500, 500
"""Maximum number of sessions passed to a worker, and of characters in a session's name, because command lines are
limited in length.
"""


@record
class Left:
    """Due work that was left to a worker or done at once."""

    sessions: tuple[str, ...] = ()
    """Sessions left to a new worker, or to running workers that already hold them."""
    at_once: tuple[str, ...] = ()
    """Sessions that were worked on at once, because rules observe or because too much was pending."""
    log: Path | None = None
    """The workers' log, or None if no work was left to a worker."""
    is_started: bool = False
    """True if a worker was started. False if no work was left to one, if running workers already hold the sessions, or
    if none could be started (see `error`).
    """
    error: OmError | None = None
    """Error of the store or of starting a worker, if there was one. It has been printed, and work that was not done is
    still due.
    """


def leave(
    run: Run,
    deps: Deps,
    sessions: Sequence[str] | None,
    words: Sequence[str],
    *,
    unable: OmError | None,
) -> Left:
    """Leave the due work of the given sessions to a worker. None means all sessions. A session is worked on at once if
    too much is pending in it, or if rules observe and no other process is observing it.

    `words` are command-line options to pass to the worker. If the observer is unavailable, `unable` is its error: it is
    recorded, and the worker only reflects. Errors of the store or of starting a worker are printed as warnings, because
    the messages are already stored.
    """
    if sessions is not None and not sessions:
        return Left()  # nothing was stored, so no store is created
    done: tuple[str, ...] = ()
    try:
        when = run.wiring.due()
        rules = run.deps(open_store=deps.open_store, reflector=run.wiring.named_reflector(run.counter))
        if unable is not None:
            can = checked_models(run, partial(run.deps, open_store=deps.open_store))
            can.note(rules, when, sessions)
            when = can.when
        due = _due(rules, when, sessions)
        overdue = [
            session for session in due if _is_short(session, deps, when) or _is_overdue(run, session, deps, when)
        ]
        failed = _at_once(run, overdue, deps)
        done = tuple(overdue)
        rest = [session for session in due if session not in overdue]
        rest += _due(rules, when, [session for session in overdue if session not in failed])
        left = _started(run, deps, rest, words) if rest else Left()
        return replace(left, at_once=done)
    except (TryAgain, CannotCreate, InputOutput) as error:
        run.console.warn(f"{error.message}; `om tick` does what is due")
        return Left(at_once=done, error=error)


def model_arguments(
    *, observer: str | None, model: str | None, base_url: str | None, verify: bool, again: bool
) -> list[str]:
    """Return the command-line options that pass these model options on to a worker."""
    given = {"--observer": observer, "--model": model, "--base-url": base_url}
    return [f"{name}={value}" for name, value in given.items() if value is not None] + [
        *["--verify"] * verify,
        *["--again"] * again,
    ]


def checked_models(run: Run, make: MakeDeps, wiring: Wiring | None = None) -> CheckedModels:
    """Return the dependencies of the roles whose models are available, and the errors of the other roles."""
    from omcli.operations import background

    observer, reflector = partial(run.observer, wiring), partial(run.reflector, wiring)
    return background.check_models(make, (wiring or run.wiring).due(), observer=observer, reflector=reflector)


def worker_as_dict(left: Left) -> dict[str, object]:
    told = {"log": str(left.log)} if left.log else {}
    return {"started": left.is_started, "sessions": list(left.sessions), "at_once": list(left.at_once), **told}


def _due(deps: Deps, when: Due, sessions: Sequence[str] | None) -> list[str]:
    from omcli.operations import tick

    return [found.session for found in tick.due(deps, when, sessions=sessions)]


def _is_short(session: str, deps: Deps, when: Due) -> bool:
    """Return True if rules can observe the session without waiting for another process."""
    from omcli.operations.deps import is_free

    return when.is_free and is_free(session, Lane.OBSERVE, deps)


def _is_overdue(run: Run, session: str, deps: Deps, when: Due) -> bool:
    from omcli.operations.tick import overdue

    tokens = overdue(session, deps, when)
    if tokens:
        run.console.note(
            f"{session}: {tokens} tokens are pending (observe.block_after is {when.block_after}): observing now"
        )
    return tokens is not None


def _at_once(run: Run, sessions: Sequence[str], deps: Deps) -> set[str]:
    """Do the due work of the sessions. Return the sessions for which a worker would fail too.

    These are the sessions whose model failed, or all sessions if a model is unavailable or an error affects every
    session.
    """
    from omcli.operations.tick import tick

    if not sessions:
        return set()
    can = checked_models(run, partial(run.deps, open_store=deps.open_store))
    for error in can.errors:
        run.console.warn_of(error)
    failed = set(sessions) if can.missing else set[str]()
    # Rules are quick, but the reflector may be a model: then a worker reflects.
    when = replace(can.when, reflects=False) if can.when.is_free and can.deps.reflector.is_model else can.when
    for ticked in tick(can.deps, when, sessions=sessions):
        report_tick(run, ticked)
        if ticked.error is not None:
            run.console.warn_of(ticked.error, about=ticked.session)
            if not isinstance(ticked.error, OF_ONE_SESSION):
                return set(sessions)
            failed |= {ticked.session} if isinstance(ticked.error, OF_MODELS) else set()
    return failed


def _started(run: Run, deps: Deps, sessions: Sequence[str], words: Sequence[str]) -> Left:
    """Start a worker for the sessions that no worker holds, and leave the others to the workers that hold them.

    Those workers check for new messages when they finish. The messages are stored before this is called, so none is
    missed.
    """
    from omcli.operations.deps import is_free

    log = log_file(os.environ)
    free = [session for session in sessions if is_free(session, Lane.WORK, deps)]
    if free:
        start(["tick", "--worker", *_shared_arguments(run), *words, *_named(free)], log)
        run.console.note(f"{counted(len(free), 'session')} left to a background worker; its log is {log}")
    if others := len(sessions) - len(free):
        run.console.note(f"{counted(others, 'session')} left to running workers")
    return Left(sessions=tuple(sessions), log=log, is_started=bool(free))


def _shared_arguments(run: Run) -> list[str]:
    """Return the shared options for a worker. The URL of a server, which may have a password, becomes a variable: all
    users see the command lines of processes.
    """
    if not isinstance(run.settings.db, ServerUrl):
        return run.shared_arguments
    os.environ["OM_DB"] = run.settings.db.url
    return [each for each in run.shared_arguments if not each.startswith("--db=")]


def _named(sessions: Sequence[str]) -> list[str]:
    """Return the command-line options that name the sessions. Return none, which means all sessions, if there are too
    many, or if a name is too long or not printable: names come from transcripts.
    """
    can_be = len(sessions) <= _MOST_NAMED and all(
        len(name) <= _LONGEST_NAME and printable(name) == name for name in sessions
    )
    return [f"--session={name}" for name in sessions] if can_be else []


def last_worker(run: Run) -> tuple[Path, WorkerRun | None]:
    """Return the path of the workers' log, and the last run on this store that did something, or None."""
    from omcli.sqlite.lanes import is_gone

    log = log_file(os.environ)
    ran = last_run(log, _store(run))
    if ran is not None and ran.ended is None:
        ran = replace(ran, is_gone=is_gone(ran.owner))
    return log, ran


def _store(run: Run) -> str:
    return full_name(run.settings.db)


# ---- new vectors

_MOST_VECTORS = 200
"""Maximum number of messages and rows that a run embeds beside its own work. `om embed` makes all vectors."""


def embed_new(run: Run) -> None:
    """Make the missing vectors, if a model for vectors is chosen. Print errors as warnings, except if the model is
    waiting after failures or another process does the work.
    """
    if not (run.settings.embeddings.is_set and run.wiring.has_store):
        return
    from omcli.operations.embed import embed

    try:
        embedder = run.wiring.embedder(warn=run.console.warn)
        embed(run.deps(wait=0.0), embedder, most=_MOST_VECTORS, progress=lambda _: None)
    except (Waiting, *ELSEWHERE):
        return
    except OmError as error:
        run.console.warn_of(error)


# ---- running as a worker


@contextmanager
def at_work(run: Run) -> Iterator[Callable[[OmError], None]]:
    """Log when the worker starts and how it ends, and yield a function that records the worker's errors."""
    store, owner, clock = _store(run), run.wiring.owner, Clock()
    failures: list[OmError] = []
    run.console.report(line(WorkerRun(at=clock.now(), owner=owner), store))
    try:
        yield failures.append
    finally:
        error = sys.exception()
        said = error if isinstance(error, OmError) else failures[-1] if failures else None
        ran = WorkerRun(at=clock.now(), owner=owner, ended=_code(error), error=said.message if said else None)
        run.console.report(line(ran, store))


def _code(error: BaseException | None) -> int:
    """Return the exit code with which the process will end."""
    if error is None:
        return 0
    if isinstance(error, Exit | OmError):
        return error.exit_code
    return error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else OmError.exit_code
