"""`om tick`: do what is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.cli.arguments import option
from omcli.cli.diagnostics import Ended, counted
from omcli.cli.diagnostics import as_dict as error_as_dict
from omcli.cli.model_options import (
    best_effort,
    failing,
    named_model,
    named_provider,
    named_url,
    say,
    tell,
)
from omcli.cli.options import Run, named_session, with_shared
from omcli.memory.errors import OF_MODELS
from omcli.memory.rows import full_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omcli.operations.tick import Ticked

EXAMPLES = """\b
om tick
om tick --check && echo "something is due"
om --preset zora tick --session ID
"""

_NOT_DUE = 1


@with_shared()
def tick(
    run: Run,
    *,
    session: Annotated[str | None, named_session("Only this session.")] = None,
    check: Annotated[bool, option("--check", help="Only say what is due; exit 1 if nothing is.")] = False,
    observer: Annotated[str | None, named_provider("observer")] = None,
    model: Annotated[str | None, named_model()] = None,
    base_url: Annotated[str | None, named_url()] = None,
    tolerant: Annotated[bool, best_effort()] = False,
) -> None:
    """Observe and reflect where that is due by the preset, and leave everything else alone.

    A session is due to be observed when enough of it waits (`observe.trigger`, `observe.tokens`), and to be reflected
    on when its rows have grown enough (`reflect.tokens`).
    """
    say(run, "observer", provider=observer, model=model, base_url=base_url)
    if run.is_disabled("nothing is done"):
        return
    from omcli.operations import tick

    when = run.wiring.due()
    done: list[Ticked] = []
    with failing(run, is_tolerant=tolerant):
        if check:
            studio = run.wiring.studio_of_rules(run.wiring.workshop(run.counter))
            done += tick.due(studio, when, session=session)
        else:
            workshop = run.wiring.workshop(run.counter, warn=run.talk.warn, busy=run.talk.progress)
            studio = run.wiring.studio(run.wiring.observing(workshop))
            for ticked in tick.tick(studio, when, session=session):
                _tell(run, ticked, is_tolerant=tolerant)
                done.append(ticked)
        _finish(run, done, session, check=check)
    failures = [ticked.error for ticked in done if ticked.error is not None]
    for error in failures:
        if not (tolerant and isinstance(error, OF_MODELS)):
            raise Ended(error.exit_code)


def _tell(run: Run, ticked: Ticked, *, is_tolerant: bool) -> None:
    if ticked.error is not None:
        tell(run, ticked.error, about=ticked.session, is_tolerant=is_tolerant and isinstance(ticked.error, OF_MODELS))
    if run.json:
        return
    from omcli.cli.reflect import summary

    reflection = ticked.reflection
    for row in (*ticked.rows, *(reflection.rows if reflection else ()), *(reflection.items if reflection else ())):
        run.output.row(row)
    parts = [counted(len(ticked.rows), "observation")] if ticked.observe else []
    parts += [summary(reflection)] if reflection else []
    if ticked.error is None or ticked.rows:
        run.talk.report(f"{ticked.session}: {'; '.join(parts) or 'nothing came of it'}")


def _finish(run: Run, done: Iterable[Ticked], session: str | None, *, check: bool) -> None:
    done = list(done)
    if run.json:
        totals = {
            "observations": sum(len(ticked.rows) for ticked in done),
            "reflections": sum(len(ticked.reflection.rows) for ticked in done if ticked.reflection),
        }
        run.output.document({**({} if check else totals), "due": [_as_dict(ticked, check=check) for ticked in done]})
    elif check:
        for ticked in done:
            lanes = [name for name, is_due in (("observe", ticked.observe), ("reflect", ticked.reflect)) if is_due]
            run.output.line(f"{ticked.session}  {' '.join(lanes)}")
    elif not done:
        is_unknown = session is not None and run.wiring.reading.session(session) is None
        run.talk.note(f"there is no session `{session}`; `om sessions` lists them" if is_unknown else "nothing is due")
    if check and not done:
        raise Ended(_NOT_DUE)


def _as_dict(ticked: Ticked, *, check: bool) -> dict[str, object]:
    found: dict[str, object] = {"session": ticked.session, "observe": ticked.observe, "reflect": ticked.reflect}
    if check:
        return found
    from omcli.cli.reflect import as_dict

    if ticked.error is not None:
        found["error"] = error_as_dict(ticked.error)
    found["observations"] = [full_row(row) for row in ticked.rows]
    found["reflections"] = [full_row(row) for row in ticked.reflection.rows] if ticked.reflection else []
    if ticked.reflection:
        found["reflection"] = as_dict(ticked.reflection)
    return found
