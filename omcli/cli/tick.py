"""`om tick`: do what is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.cli.arguments import option
from omcli.cli.background import able, at_work, in_background, leave
from omcli.cli.background import as_dict as background_as_dict
from omcli.cli.diagnostics import Ended, counted
from omcli.cli.diagnostics import as_dict as error_as_dict
from omcli.cli.model_options import (
    as_words,
    best_effort,
    named_model,
    named_provider,
    named_url,
    say,
    verified,
)
from omcli.cli.options import Run, named_session, with_shared
from omcli.memory.errors import ELSEWHERE, OF_MODELS, BadUsage, OmError
from omcli.memory.rows import full_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from omcli.operations.studio import Studio
    from omcli.operations.tick import Due, Ticked

EXAMPLES = """\b
om tick
om tick --check && echo "something is due"
om --preset zora tick --session ID
om tick --background
"""

_NOT_DUE = 1


@with_shared()
def tick(
    run: Run,
    *,
    session: Annotated[list[str] | None, named_session("Only this session. Repeat it for several.")] = None,
    check: Annotated[bool, option("--check", help="Only say what is due.")] = False,
    background: Annotated[bool, in_background("Leave what is due to a worker, and come back at once.")] = False,
    observer: Annotated[str | None, named_provider("observer")] = None,
    model: Annotated[str | None, named_model()] = None,
    base_url: Annotated[str | None, named_url()] = None,
    verify: Annotated[bool, verified()] = False,
    tolerant: Annotated[bool, best_effort()] = False,
    worker: Annotated[bool, option("--worker", hidden=True)] = False,
) -> None:
    """Observe and reflect where that is due by the preset.

    Everything else is left alone. A session is due to be observed when enough of it waits (`observe.trigger`,
    `observe.tokens`), and to be reflected on when its rows have grown enough (`reflect.tokens`). A model may
    observe ahead of that (`observe.precompute`): what it said is written down when the session is due, without
    asking it again.

    Where the one who observes can't be asked (no key), what is due is reflected on all the same, and the other way
    round; the run ends with 77 or 78 then.

    Ends with 0 when something was done, or left to a worker (73, 74 or 75 where it can't be); with 1 when nothing was
    due, and with 75 when somebody else is at all that was. One that hangs holds others up for ten minutes after its
    last sign of life, at most.
    """
    if check and background:
        raise BadUsage("`--check` and `--background` exclude each other")
    say(run, "observer", provider=observer, model=model, base_url=base_url, verify=verify)
    if run.is_disabled("nothing is done"):
        return
    sessions = session or None
    if check:
        _check(run, sessions)
    elif background:
        words = as_words(observer=observer, model=model, base_url=base_url, verify=verify)
        _leave(run, sessions, words)
    elif worker:
        with at_work(run) as note:
            _work(run, sessions, is_worker=True, note=note)
    else:
        _work(run, sessions, is_tolerant=tolerant)


def _check(run: Run, sessions: Sequence[str] | None) -> None:
    from omcli.operations import tick

    studio = run.wiring.studio_to_check(run.existing_workshop())
    when = run.wiring.due()
    due = list(tick.due(studio, when, sessions=sessions))
    if run.json:
        run.output.document({"due": [_due_as_dict(found) for found in due]})
    for found in due if not run.json else ():
        dues = {"observe": found.observe, "ahead": found.ahead, "reflect": found.reflect}
        lanes = [name for name, is_due in dues.items() if is_due]
        run.output.line(f"{found.session}  {' '.join(lanes)}")
    if not due:
        _note_unknown(run, sessions)
        raise Ended(_NOT_DUE)


def _leave(run: Run, sessions: Sequence[str] | None, words: Sequence[str]) -> None:
    workshop, unable = run.existing_workshop(), None
    try:
        run.wiring.observing(workshop)
    except OF_MODELS as error:
        run.talk.warn_of(error)
        unable = error
    left = leave(run, workshop, sessions, words, unable=unable)
    if run.json:
        run.output.document({"background": background_as_dict(left)})
    if left.error is not None:
        raise Ended(left.error.exit_code)
    if not (left.sessions or left.at_once or unable):
        _say_nothing_is_due(run, sessions)
        raise Ended(_NOT_DUE)


def _work(
    run: Run,
    sessions: Sequence[str] | None,
    *,
    is_tolerant: bool = False,
    is_worker: bool = False,
    note: Callable[[OmError], None] = lambda _: None,
) -> None:
    """Does what is due; as a worker, nobody reads the rows of it. Raises Ended."""
    done: list[Ticked] = []
    can = able(run.wiring, run.existing_workshop())
    for error in can.errors:
        note(error)
        tell = run.talk.warn_of if is_tolerant else run.talk.error
        tell(error)
    for ticked in _ticks(can.studio, can.when, sessions, is_worker=is_worker):
        if ticked.error is not None:
            note(ticked.error)
            is_warning = isinstance(ticked.error, ELSEWHERE) or (is_tolerant and isinstance(ticked.error, OF_MODELS))
            tell = run.talk.warn_of if is_warning else run.talk.error
            tell(ticked.error, about=ticked.session)
        if not (is_worker or run.json):
            _print(run, ticked)
        if not run.json:
            report(run, ticked)
        done.append(ticked)
    can.note(sessions)
    code = _code(done, can.errors, is_tolerant=is_tolerant)
    if run.json:
        run.output.document(_document(done))
    elif code == _NOT_DUE:
        _say_nothing_is_due(run, sessions)
    if code:
        raise Ended(code)


def _ticks(studio: Studio, when: Due, sessions: Sequence[str] | None, *, is_worker: bool) -> Iterator[Ticked]:
    """Does what is due, session by session; a worker until nothing is."""
    from omcli.operations import drain, tick

    if is_worker:
        named = sessions or [found.session for found in tick.due(studio, when)]
        yield from drain.drain(studio, when, named)
    else:
        yield from tick.tick(studio, when, sessions=sessions)


def _code(done: Sequence[Ticked], unable: Sequence[OmError], *, is_tolerant: bool) -> int:
    """What a run ends with that did this, and could not have the rest done."""
    failures = [ticked.error for ticked in done if ticked.error is not None]
    if is_tolerant:
        failures = [error for error in failures if not isinstance(error, OF_MODELS)]
    decisive = [error for error in failures if not isinstance(error, ELSEWHERE)]
    decisive += unable if not is_tolerant else ()
    if decisive:
        return decisive[0].exit_code
    if failures and not any(ticked.error is None or ticked.rows or ticked.blocks for ticked in done):
        return failures[0].exit_code
    return 0 if done or unable else _NOT_DUE


def _print(run: Run, ticked: Ticked) -> None:
    for row in ticked.made:
        run.output.row(row)


def report(run: Run, ticked: Ticked) -> None:
    """Says what was done in a session."""
    from omcli.cli.reflect import summary

    parts = [counted(len(ticked.rows), "observation")] if ticked.observe else []
    if ticked.activated:
        parts[0] += f", of {counted(ticked.activated, 'block')} observed ahead"
    parts += [f"{counted(sum(ticked.blocks), 'message')} observed ahead"] if ticked.blocks else []
    parts += [summary(ticked.reflection)] if ticked.reflection else []
    if ticked.error is None or ticked.rows or ticked.blocks:
        run.talk.report(f"{ticked.session}: {'; '.join(parts) or 'nothing came of it'}")


def _say_nothing_is_due(run: Run, sessions: Sequence[str] | None) -> None:
    if not _note_unknown(run, sessions):
        run.talk.note("nothing is due")


def _note_unknown(run: Run, sessions: Sequence[str] | None) -> bool:
    unknown = [one for one in sessions or () if run.wiring.reading.session(one) is None]
    for one in unknown:
        run.note_unknown(one)
    return bool(unknown)


def _document(done: Sequence[Ticked]) -> dict[str, object]:
    return {
        "observations": sum(len(ticked.rows) for ticked in done),
        "reflections": sum(len(ticked.reflection.rows) for ticked in done if ticked.reflection),
        "blocks": sum(len(ticked.blocks) for ticked in done),
        "due": [as_dict(ticked) for ticked in done],
    }


def _due_as_dict(found: Ticked) -> dict[str, object]:
    return {"session": found.session, "observe": found.observe, "ahead": found.ahead, "reflect": found.reflect}


def as_dict(ticked: Ticked) -> dict[str, object]:
    """What was due of a session, and what came of it, as JSON output has it."""
    from omcli.cli.reflect import as_dict as reflection_as_dict

    error = {"error": error_as_dict(ticked.error)} if ticked.error else {}
    reflection = {"reflection": reflection_as_dict(ticked.reflection)} if ticked.reflection else {}
    return {
        **_due_as_dict(ticked),
        **error,
        "activated": ticked.activated,
        "blocks": [{"messages": messages} for messages in ticked.blocks],
        "observations": [full_row(row) for row in ticked.rows],
        "reflections": [full_row(row) for row in ticked.reflection.rows] if ticked.reflection else [],
        **reflection,
    }
