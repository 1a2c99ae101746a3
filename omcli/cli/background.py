"""Leaving what is due to a worker, unless so much waits that it is done at once; and being that worker."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from omcli.cli.arguments import Declared, option
from omcli.cli.diagnostics import Ended, counted
from omcli.memory.errors import OF_MODELS, OF_ONE_SESSION, CannotCreate, InputOutput, OmError, TryAgain
from omcli.memory.record import record, replace
from omcli.memory.text import printable

if TYPE_CHECKING:
    from omcli.cli.options import Run
    from omcli.operations.drain import Slot
    from omcli.operations.studio import Studio
    from omcli.operations.tick import Due
    from omcli.operations.workshop import Workshop
    from omcli.workers.log import Ran

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


def in_background(about: str) -> Declared:
    """`--background`; the text says what it leaves to a worker."""
    return option("--background", help=about)


def leave(
    run: Run,
    workshop: Workshop,
    sessions: Sequence[str] | None,
    words: Sequence[str],
    *,
    unable: OmError | None,
) -> Left:
    """Leaves what is due, of some sessions or of all, to a worker; where too much waits, it is done at once.

    `words` are the command's own options that a worker is to be given as well. Nobody is started where the observer is
    known to be `unable`. What goes wrong is a warning: the messages are kept.
    """
    from omcli.operations.unable import note_unable

    try:
        when, rules = run.wiring.due(), run.wiring.studio_to_check(workshop)
        due = _due(rules, when, sessions)
        if unable is not None:
            note_unable(rules, when, unable, due)
            return Left()
        overdue = [session for session in due if _is_overdue(run, session, workshop, when)]
        failed = _at_once(run, overdue, workshop, when)
        rest = [session for session in due if session not in overdue]
        rest += _due(rules, when, [session for session in overdue if session not in failed])
        left = _started(run, rest, words) if rest else Left()
        return replace(left, at_once=tuple(overdue))
    except (TryAgain, CannotCreate, InputOutput) as error:
        run.talk.warn(f"{error.message}; `om tick` does what is due")
        return Left()


def as_dict(left: Left) -> dict[str, object]:
    """The worker as JSON output has it."""
    told = {"log": str(left.log)} if left.log else {}
    return {"started": left.is_started, "sessions": list(left.sessions), "at_once": list(left.at_once), **told}


def _due(studio: Studio, when: Due, sessions: Sequence[str] | None) -> list[str]:
    from omcli.operations import tick

    return [found.session for found in tick.due(studio, when, sessions=sessions)]


def _is_overdue(run: Run, session: str, workshop: Workshop, when: Due) -> bool:
    from omcli.operations.tick import overdue

    tokens = overdue(session, workshop, when)
    if tokens:
        run.talk.note(
            f"{session}: {tokens} tokens wait, and from {when.block_after} on the background is not enough"
            " (observe.block_after): observing at once"
        )
    return tokens is not None


def _at_once(run: Run, sessions: Sequence[str], workshop: Workshop, when: Due) -> set[str]:
    """Does what is due of sessions, and gives those of which a model failed: a worker's would as well."""
    from omcli.cli.tick import report
    from omcli.operations.tick import tick

    failed: set[str] = set()
    if not sessions:
        return failed
    try:
        studio = run.wiring.studio(run.wiring.observing(workshop))
    except OF_MODELS as error:
        run.talk.warn_of(error)
        return set(sessions)
    for ticked in tick(studio, when, sessions=sessions):
        report(run, ticked)
        if ticked.error is not None:
            run.talk.warn_of(ticked.error, about=ticked.session)
            if not isinstance(ticked.error, OF_ONE_SESSION):
                return set(sessions)
            failed |= {ticked.session} if isinstance(ticked.error, OF_MODELS) else set()
    return failed


def _started(run: Run, sessions: Sequence[str], words: Sequence[str]) -> Left:
    """Starts a worker for the sessions that no other is at: that one looks again when it is done with what it knows.

    The messages are kept by now; so none is left that neither of the two has seen.
    """
    from omcli.workers.log import log_file
    from omcli.workers.slots import Slots
    from omcli.workers.starting import start

    log = log_file(os.environ)
    with closing(Slots(log.parent, _store(run))) as slots:
        free = [session for session in sessions if slots.is_free(session)]
    if free:
        start(["tick", "--worker", *run.words, *words, *_named(free)], log)
        run.talk.note(f"{counted(len(free), 'session')} left to a worker in the background; it writes to {log}")
    if others := len(sessions) - len(free):
        run.talk.note(f"{counted(others, 'session')} left to the workers that are at it")
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
    from omcli.workers.log import last_run, log_file

    log = log_file(os.environ)
    ran = last_run(log, _store(run))
    if ran is not None and ran.ended is None:
        ran = replace(ran, is_gone=run.wiring.is_gone(ran.owner))
    return log, ran


def _store(run: Run) -> Path:
    return Path(os.path.abspath(run.settings.db))  # noqa: PTH100 - it need not be there to be named


# ---- being the worker


@contextmanager
def at_work(run: Run) -> Iterator[tuple[Slot, Callable[[OmError], None]]]:
    """For a worker: the places that one at a time has, and who is told what goes wrong.

    The log tells when it began and how it ended, whatever ended it.
    """
    from omcli.operations.clock import Clock
    from omcli.workers.log import Ran, line, log_file
    from omcli.workers.slots import Slots

    store, owner, clock = _store(run), run.wiring.owner, Clock()
    failures: list[OmError] = []
    slots = Slots(log_file(os.environ).parent, store)
    run.talk.report(line(Ran(at=clock.now(), owner=owner), store))
    try:
        yield slots.taken, failures.append
    finally:
        error = sys.exception()
        said = error if isinstance(error, OmError) else failures[-1] if failures else None
        ran = Ran(at=clock.now(), owner=owner, ended=_code(error), error=said.message if said else None)
        run.talk.report(line(ran, store))
        slots.close()


def _code(error: BaseException | None) -> int:
    """What the process is about to end with."""
    if error is None:
        return 0
    if isinstance(error, Ended | OmError):
        return error.exit_code
    return error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else OmError.exit_code
