"""Leaving what is due to a worker, unless so much waits that it is done at once; and being that worker."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from omcli.base.errors import OF_MODELS, OF_ONE_SESSION, CannotCreate, InputOutput, OmError, TryAgain
from omcli.base.record import record, replace
from omcli.cli.console import Exit, counted
from omcli.cli.reports import report_tick
from omcli.memory.ports import Lane
from omcli.text.clean import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from omcli.cli.run import Run
    from omcli.operations.background import Able
    from omcli.operations.deps import Deps
    from omcli.operations.tick import Due
    from omcli.wiring import Wiring
    from omcli.workers import Ran

_MOST_NAMED, _LONGEST_NAME = 500, 500
"""Sessions that a worker is told by name, and characters of a name: a command line has an end."""


@record
class Left:
    """What became of what is due."""

    sessions: tuple[str, ...] = ()
    """Those that were left to a worker."""
    at_once: tuple[str, ...] = ()
    """Those that were worked on at once, since too much waited."""
    log: Path | None = None
    """Where workers write; None where nothing was left to one."""
    is_started: bool = False
    """Whether one was started: another one may be at it."""
    error: OmError | None = None
    """What kept it from being left to one; it was told, and what is due still is."""


def leave(
    run: Run,
    deps: Deps,
    sessions: Sequence[str] | None,
    words: Sequence[str],
    *,
    unable: OmError | None,
) -> Left:
    """Leaves what is due, of some sessions or of all, to a worker; where too much waits, it is done at once.

    `words` are the command's own options that a worker is to be given as well. Where the observer is known to be
    `unable` only what is to be reflected on is left to one. What goes wrong is a warning: the messages are kept.
    """
    if sessions is not None and not sessions:
        return Left()  # nothing was taken in, and no store is made for that
    try:
        when, rules = run.wiring.due(), run.wiring.checking(deps)
        if unable is not None:
            can = able(run.wiring, deps)
            can.note(sessions)
            policy, when = can.deps.reflector.policy, can.when
            rules = replace(rules, reflector=replace(rules.reflector, policy=policy))
        due = _due(rules, when, sessions)
        overdue = [session for session in due if _is_overdue(run, session, deps, when)]
        failed = _at_once(run, overdue, deps)
        rest = [session for session in due if session not in overdue]
        rest += _due(rules, when, [session for session in overdue if session not in failed])
        left = _started(run, deps, rest, words) if rest else Left()
        return replace(left, at_once=tuple(overdue))
    except (TryAgain, CannotCreate, InputOutput) as error:
        run.console.warn(f"{error.message}; `om tick` does what is due")
        return Left(error=error)


def model_argv(*, observer: str | None, model: str | None, base_url: str | None, verify: bool) -> list[str]:
    """The options for a model as a worker is given them again."""
    given = {"--observer": observer, "--model": model, "--base-url": base_url}
    return [f"{name}={value}" for name, value in given.items() if value is not None] + ["--verify"] * verify


def able(wiring: Wiring, deps: Deps) -> Able:
    """What the models of the settings can be asked to do, and what keeps them from the rest."""
    from omcli.operations import background

    return background.able(wiring.checking(deps), wiring.due(), wiring.observing, wiring.reflecting)


def delegated_as_dict(left: Left) -> dict[str, object]:
    """The worker as JSON output has it."""
    told = {"log": str(left.log)} if left.log else {}
    return {"started": left.is_started, "sessions": list(left.sessions), "at_once": list(left.at_once), **told}


def _due(deps: Deps, when: Due, sessions: Sequence[str] | None) -> list[str]:
    from omcli.operations import tick

    return [found.session for found in tick.due(deps, when, sessions=sessions)]


def _is_overdue(run: Run, session: str, deps: Deps, when: Due) -> bool:
    from omcli.operations.tick import overdue

    tokens = overdue(session, deps, when)
    if tokens:
        run.console.note(
            f"{session}: {tokens} tokens wait, and from {when.block_after} on the background is not enough"
            " (observe.block_after): observing at once"
        )
    return tokens is not None


def _at_once(run: Run, sessions: Sequence[str], deps: Deps) -> set[str]:
    """Does what is due of sessions, and gives those of which a model failed: a worker's would as well."""
    from omcli.operations.tick import tick

    if not sessions:
        return set()
    can = able(run.wiring, deps)
    for error in can.errors:
        run.console.warn_of(error)
    failed = set(sessions) if can.missing else set[str]()
    for ticked in tick(can.deps, can.when, sessions=sessions):
        report_tick(run, ticked)
        if ticked.error is not None:
            run.console.warn_of(ticked.error, about=ticked.session)
            if not isinstance(ticked.error, OF_ONE_SESSION):
                return set(sessions)
            failed |= {ticked.session} if isinstance(ticked.error, OF_MODELS) else set()
    return failed


def _started(run: Run, deps: Deps, sessions: Sequence[str], words: Sequence[str]) -> Left:
    """Starts a worker for the sessions that no other is at: that one looks again when it is done with what it knows.

    The messages are kept by now; so none is left that neither of the two has seen.
    """
    from omcli.operations.leases import is_free
    from omcli.workers import log_file, start

    log = log_file(os.environ)
    free = [session for session in sessions if is_free(session, Lane.WORK, deps)]
    if free:
        start(["tick", "--worker", *run.shared_argv, *words, *_named(free)], log)
        run.console.note(f"{counted(len(free), 'session')} left to a worker in the background; it writes to {log}")
    if others := len(sessions) - len(free):
        run.console.note(f"{counted(others, 'session')} left to the workers that are at it")
    return Left(sessions=tuple(sessions), log=log, is_started=bool(free))


def _named(sessions: Sequence[str]) -> list[str]:
    """The options that name sessions; none where a command line cannot hold them: it is all of the store's then.

    What a session is called is for a transcript to say.
    """
    can_be = len(sessions) <= _MOST_NAMED and all(
        len(name) <= _LONGEST_NAME and printable(name) == name for name in sessions
    )
    return [f"--session={name}" for name in sessions] if can_be else []


def last_worker(run: Run) -> tuple[Path, Ran | None]:
    """Where workers write, and how the last one on this store fared."""
    from omcli.workers import last_run, log_file

    log = log_file(os.environ)
    ran = last_run(log, _store(run))
    if ran is not None and ran.ended is None:
        ran = replace(ran, is_gone=run.wiring.is_gone(ran.owner))
    return log, ran


def _store(run: Run) -> Path:
    return Path(os.path.abspath(run.settings.db))  # noqa: PTH100 - it need not be there to be named


# ---- being the worker


@contextmanager
def at_work(run: Run) -> Iterator[Callable[[OmError], None]]:
    """For a worker: who is told what goes wrong.

    The log tells when it began and how it ended, whatever ended it.
    """
    from omcli.operations.clock import Clock
    from omcli.workers import Ran, line

    store, owner, clock = _store(run), run.wiring.owner, Clock()
    failures: list[OmError] = []
    run.console.report(line(Ran(at=clock.now(), owner=owner), store))
    try:
        yield failures.append
    finally:
        error = sys.exception()
        said = error if isinstance(error, OmError) else failures[-1] if failures else None
        ran = Ran(at=clock.now(), owner=owner, ended=_code(error), error=said.message if said else None)
        run.console.report(line(ran, store))


def _code(error: BaseException | None) -> int:
    """What the process is about to end with."""
    if error is None:
        return 0
    if isinstance(error, Exit | OmError):
        return error.exit_code
    return error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else OmError.exit_code
