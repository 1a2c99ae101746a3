"""`om tick`: do what is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import ELSEWHERE, OF_MODELS, BadUsage, OmError
from omcli.cli.background import at_work, checked_models, embed_new, leave, model_arguments, worker_as_dict
from omcli.cli.command import Run, with_shared
from omcli.cli.console import Exit
from omcli.cli.options import (
    AgainOption,
    BaseUrlOption,
    BestEffortOption,
    EstimateOption,
    ModelOption,
    ObserverOption,
    VerifyOption,
    apply_model_options,
    option,
    session_option,
)
from omcli.cli.reports import due_as_dict, note_unused_key, report_estimate, report_tick, tick_as_dict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from omcli.operations.deps import Deps
    from omcli.operations.tick import Due, TickReport

_EXAMPLES = """\b
om tick
om tick --check && echo "something is due"
om --preset zora tick --session ID
om tick --background
"""

_NOT_DUE = 1


@with_shared(examples=_EXAMPLES)
def tick(
    run: Run,
    *,
    session: Annotated[list[str] | None, session_option("Only this session. May be repeated.")] = None,
    check: Annotated[bool, option("--check", help="Show what is due without doing it.")] = False,
    background: Annotated[bool, option("--background", help="Leave what a model has to do to a worker.")] = False,
    observer: ObserverOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    verify: VerifyOption = False,
    again: AgainOption = False,
    estimate: EstimateOption = False,
    tolerant: BestEffortOption = False,
    worker: Annotated[bool, option("--worker", hidden=True)] = False,
) -> None:
    """Observe and reflect on the sessions where this is due.

    A session is due to be observed when enough messages are pending for a model (`observe.trigger`, `observe.tokens`),
    or any messages if rules observe. It is due to be reflected on when it has enough rows (`reflect.tokens`). A model
    may observe earlier (`observe.precompute`): its observations are buffered, and written when the session is due.

    If a model fails several times in a row for a session, the session waits before the model is asked again, longer
    each time (`provider.longest_wait`). Nothing that needs the model is due until then, except with --again.

    If the observer cannot be used (for example without an API key), sessions are still reflected on. If the reflector
    cannot be used, they are still observed. A process that hangs blocks others for at most ten minutes.

    --estimate prints the calls, tokens and dollars that the chosen models would take. No model is called: rules do the
    work on a private copy of the store.

    \b
    The exit code is
      0           if something was done or left, due (--check), or estimated,
      1           if nothing was due,
      69          if a model failed,
      73, 74, 75  if no worker could be started,
      75          if other processes are working on everything that is due,
      77, 78      if the observer or the reflector cannot be used.
    """
    if check and background:
        raise BadUsage("`--check` and `--background` exclude each other")
    apply_model_options(run, "observer", provider=observer, model=model, base_url=base_url, verify=verify, again=again)
    if estimate and (check or background):
        raise BadUsage("`--estimate` excludes `--check` and `--background`")
    sessions = [found for each in session or () if (found := run.session(each, may_be_new=True))] or None
    if estimate:
        _estimate(run, sessions)
        return
    if run.is_read_only("nothing is done"):
        return
    if check:
        _check(run, sessions)
    elif background:
        words = model_arguments(observer=observer, model=model, base_url=base_url, verify=verify, again=again)
        _leave(run, sessions, words)
    elif worker:
        with at_work(run) as note:
            _work(run, sessions, is_worker=True, note=note)
    else:
        _work(run, sessions, is_tolerant=tolerant)


def _estimate(run: Run, sessions: Sequence[str] | None) -> None:
    """Print what the due work would cost."""
    with run.estimating() as calls:
        deps = run.deps_or_empty(observer=run.observer(), reflector=run.reflector())
        for ticked in _tick_sessions(deps, run.wiring.due(), sessions, is_worker=False):
            if ticked.error is not None:
                run.console.error(ticked.error, about=ticked.session)
        _note_unknown(run, sessions)
    report_estimate(run, calls)


def _check(run: Run, sessions: Sequence[str] | None) -> None:
    from omcli.operations import tick

    checked = checked_models(run, run.deps_or_empty)
    deps = checked.deps
    if checked.errors:  # what would be due if the models were available
        deps = run.deps_or_empty(reflector=run.wiring.named_reflector(run.counter))
    due = list(tick.due(deps, run.wiring.due(), sessions=sessions))
    if run.json:
        run.output.document({"due": [due_as_dict(found) for found in due]})
    for found in due if not run.json else ():
        dues = {"observe": found.observe, "ahead": found.ahead, "reflect": found.reflect}
        lanes = [name for name, is_due in dues.items() if is_due]
        run.output.line(f"{found.session}  {' '.join(lanes)}")
    if not due:
        _note_unknown(run, sessions)
        raise Exit(_NOT_DUE)


def _leave(run: Run, sessions: Sequence[str] | None, words: Sequence[str]) -> None:
    deps, unable = run.deps_or_empty(), None
    try:
        run.observer()
    except OF_MODELS as error:
        run.console.warn_of(error)
        unable = error
    left = leave(run, deps, sessions, words, unable=unable)
    if run.json:
        run.output.document({"background": worker_as_dict(left)})
    if left.error is not None:
        raise Exit(left.error.exit_code)
    if not (left.sessions or left.at_once or unable):
        _note_nothing_due(run, sessions)
        raise Exit(_NOT_DUE)


def _work(
    run: Run,
    sessions: Sequence[str] | None,
    *,
    is_tolerant: bool = False,
    is_worker: bool = False,
    note: Callable[[OmError], None] = lambda _: None,
) -> None:
    """Do the due work, and print new rows unless this is a worker. Raise Exit if the exit code is not 0."""
    done: list[TickReport] = []
    can = checked_models(run, run.deps_or_empty)
    for error in can.errors:
        note(error)
        tell = run.console.warn_of if is_tolerant else run.console.error
        tell(error)
    for ticked in _tick_sessions(can.deps, can.when, sessions, is_worker=is_worker):
        if ticked.error is not None:
            note(ticked.error)
            is_warning = isinstance(ticked.error, ELSEWHERE) or (is_tolerant and isinstance(ticked.error, OF_MODELS))
            tell = run.console.warn_of if is_warning else run.console.error
            tell(ticked.error, about=ticked.session)
        if not (is_worker or run.json):
            _print(run, ticked)
        if not run.json:
            report_tick(run, ticked)
        done.append(ticked)
    embed_new(run)
    can.note(run.deps_or_empty(reflector=run.wiring.named_reflector(run.counter)), run.wiring.due(), sessions)
    if not is_worker:
        note_unused_key(run)
    code = _code(done, can.errors, is_tolerant=is_tolerant)
    if run.json:
        run.output.document(_document(done))
    elif code == _NOT_DUE:
        _note_nothing_due(run, sessions)
    if code:
        raise Exit(code)


def _tick_sessions(deps: Deps, when: Due, sessions: Sequence[str] | None, *, is_worker: bool) -> Iterator[TickReport]:
    """Do the due work of each session: once or, as a worker, as often as `run_due` repeats it."""
    from omcli.operations import background, tick

    if is_worker:
        named = sessions or [found.session for found in tick.due(deps, when)]
        yield from background.run_due(deps, when, named)
    else:
        yield from tick.tick(deps, when, sessions=sessions)


def _code(done: Sequence[TickReport], unable: Sequence[OmError], *, is_tolerant: bool) -> int:
    """Return the exit code for the work done and for the errors of unavailable models."""
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


def _print(run: Run, ticked: TickReport) -> None:
    for row in ticked.made:
        run.output.row(row)


def _note_nothing_due(run: Run, sessions: Sequence[str] | None) -> None:
    if _note_unknown(run, sessions):
        return
    run.console.note("nothing is due")
    for waiting in run.wiring.waiting_models():
        if sessions is None or waiting.session in sessions:
            run.console.note(f"{waiting.reason}; `--again` asks now")


def _note_unknown(run: Run, sessions: Sequence[str] | None) -> bool:
    unknown = [one for one in sessions or () if run.wiring.reading.sessions.find(one) is None]
    for one in unknown:
        run.note_unknown_session(one)
    return bool(unknown)


def _document(done: Sequence[TickReport]) -> dict[str, object]:
    return {
        "observations": sum(len(ticked.rows) for ticked in done),
        "reflections": sum(len(ticked.reflection.rows) for ticked in done if ticked.reflection),
        "blocks": sum(len(ticked.blocks) for ticked in done),
        "due": [tick_as_dict(ticked) for ticked in done],
    }
