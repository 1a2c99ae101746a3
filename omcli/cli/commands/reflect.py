"""`om reflect`: fold observations into fewer rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import OF_MODELS, BadUsage
from omcli.cli.command import Run, with_shared
from omcli.cli.console import Exit, counted, unknown_session
from omcli.cli.options import (
    BaseUrlOption,
    BestEffortOption,
    DryRunOption,
    ModelOption,
    ReflectorOption,
    apply_model_options,
    option,
    session_option,
)
from omcli.cli.reports import across_as_dict, reflection_as_dict, reflection_summary, report_projects
from omcli.memory.reflection import Scope
from omcli.operations.clock import days
from omcli.operations.context import Place, session_of_pack
from omcli.text.instants import minute

if TYPE_CHECKING:
    from omcli.operations.deps import Deps
    from omcli.operations.reflect.cross_session import GlobalPlan
    from omcli.operations.reflect.session import Reflection

_EXAMPLES = """\b
om reflect --session ID
om reflect --session ID --dry-run
om reflect --global --dry-run
om log --session ID --all
"""


@with_shared(examples=_EXAMPLES)
def reflect(
    run: Run,
    *,
    session: Annotated[str | None, session_option("Session to reflect on. Default: the current or last one.")] = None,
    across: Annotated[bool, option("--global", help="Reflect across sessions, on rows older than a few days.")] = False,
    meta: Annotated[bool, option("--meta", help="Fold the session's reflections.")] = False,
    dry_run: DryRunOption = False,
    again: Annotated[
        bool, option("--again", help="Retry rows that yielded no reflection before, and ask a model that failed.")
    ] = False,
    min_age: Annotated[
        str | None, option("--min-age", metavar="AGE", help="With --global: skip rows younger than this: 3d, 12h.")
    ] = None,
    reflector: ReflectorOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    tolerant: BestEffortOption = False,
) -> None:
    """Fold observations into fewer rows and extract lasting facts.

    Folded rows are hidden, never deleted: `om log --all` shows them. By default, high-priority rows that are open, or
    are decisions, facts, instructions or preferences, keep their exact words. Rules do the folding unless you choose a
    model; an API key alone chooses none. Prints the new rows. --dry-run asks the model too, except with --global.
    """
    apply_model_options(run, "reflector", provider=reflector, model=model, base_url=base_url, again=again)
    if across and (session is not None or meta):
        raise BadUsage(
            "`--global` and `--session` or `--meta` exclude each other",
            hint="`om reflect --session ID`, or `om reflect --global`",
        )
    if min_age is not None and not across:
        raise BadUsage("`--min-age` needs `--global`")
    if run.is_read_only("nothing is reflected on"):
        return
    session = run.session(session) or run.active_session
    with _model_errors(run, is_tolerant=tolerant):
        if across:
            _across(run, min_age, dry_run=dry_run, again=again)
        else:
            deps = run.deps_or_empty(reflector=run.reflector())
            reflection = _reflected(run, deps, session, meta=meta, dry_run=dry_run, again=again)
            _show(run, reflection, dry_run=dry_run)


@contextmanager
def _model_errors(run: Run, *, is_tolerant: bool) -> Iterator[None]:
    """Print errors of models that are raised in the block, and raise Exit. If `is_tolerant`, print them as warnings and
    go on.
    """
    try:
        yield
    except OF_MODELS as error:
        if not is_tolerant:
            run.console.error(error)
            raise Exit(error.exit_code) from None
        run.console.warn_of(error)


def _reflected(run: Run, deps: Deps, session: str | None, *, meta: bool, dry_run: bool, again: bool) -> Reflection:
    from omcli.operations.reflect.session import Reflection, reflect_session

    place = Place(project=run.project, session=session)
    found, note = session_of_pack(run.wiring.store_or_empty, place)
    if found is None:
        nothing = unknown_session(session) if session else "nothing to reflect on"
        return Reflection(scope=Scope(session=session), ending=None, note=nothing)
    if note:
        run.console.note(note)
    return reflect_session(found.id, deps, meta=meta, dry_run=dry_run, again=again)


def _across(run: Run, min_age: str | None, *, dry_run: bool, again: bool) -> None:
    from omcli.operations.reflect.cross_session import ids_of, kept_ids, reflect_cross_session

    said = run.settings.reflect
    found = reflect_cross_session(
        run.deps_or_empty(reflector=None if dry_run else run.reflector()),
        min_age=said.min_age if min_age is None else days(min_age),
        batch_tokens=said.batch_tokens,
        dry_run=dry_run,
        again=again,
    )
    if found.snapshot:
        run.console.note(f"backup of the store: {found.snapshot}")
    if run.json:
        store = run.wiring.store_or_empty
        plan = {
            "keep": kept_ids(found, store),
            "batches": [
                {"project": batch.project, "tokens": batch.tokens, "rows": ids_of(batch, store)}
                for batch in found.plan.batches
            ],
        }
        run.output.document({**across_as_dict(found), "plan": plan, "snapshot": found.snapshot, "dry_run": dry_run})
    elif dry_run:
        _print_plan(run, found.plan)
    else:
        report_projects(run, found)
        _show(run, found.reflection)


def _print_plan(run: Run, plan: GlobalPlan) -> None:
    for batch in plan.batches:
        ends = f"{minute(batch.begins)} to {minute(batch.ends)}"
        run.output.line(
            f"fold  {counted(len(batch.rows), 'row')} of {batch.project or 'no project'}, {ends}, {batch.tokens} tokens"
        )
    run.output.line(f"keep  {counted(plan.kept, 'row')}")
    if not plan.batches:
        run.console.note("nothing to reflect on")


def _show(run: Run, reflection: Reflection, *, dry_run: bool = False) -> None:
    """Print the new rows, and report the result on stderr."""
    if run.json:
        run.output.document({**reflection_as_dict(reflection), "dry_run": dry_run})
        return
    for row in reflection.made:
        run.output.row(row)
    if reflection.note:
        run.console.note(reflection.note)
    if reflection.ending is not None:
        run.console.report(f"{'would be: ' if dry_run else ''}{reflection_summary(reflection)}")
