"""`om history`, `om undo`, `om replay`, `om backup` and `om restore`: the past of the memory, and going back to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.base import lazily
from omcli.base.errors import BadInput, BadUsage, NoInput
from omcli.base.record import replace
from omcli.cli.command import Run, with_shared
from omcli.cli.commands.context import CrossOption, FormatOption, SessionOption, TailOption, TierOption, context
from omcli.cli.console import counted, size
from omcli.cli.options import (
    DryRunOption,
    NotationOption,
    ScopeOption,
    SinceOption,
    StreamOption,
    UntilOption,
    YesOption,
    argument,
    backup_days,
    is_within,
    last_option,
    operation_numbers,
    option,
    project_option,
    project_path,
    session_option,
    tokens_option,
    within_limit,
)
from omcli.cli.reports import ask_first, has_authors, operation_as_dict, operation_summary, store_file
from omcli.memory.message import message_fields
from omcli.memory.observation import full_row
from omcli.operations.clock import period
from omcli.operations.context import Place, session_of_pack
from omcli.pack.layouts import PackFormat
from omcli.settings.settings import expanded
from omcli.text.instants import minute, parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from omcli.memory.changes import Operation, UndoPreview
    from omcli.operations.forget import UndoReport
    from omcli.sqlite.backups import StoreCopy

_HISTORY_EXAMPLES = """\b
om history -n 5
om history --jsonl | jq -r 'select(.can_be_undone) | .number'
"""


@with_shared(examples=_HISTORY_EXAMPLES, without=["counter"])
def history(
    run: Run,
    *,
    session: Annotated[str | None, session_option()] = None,
    project: Annotated[str | None, project_option()] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    last: Annotated[int | None, last_option("Only the last N operations.")] = None,
    jsonl: StreamOption = False,
) -> None:
    """List operations on the memory, the newest first.

    `om undo NUMBER` reverses reflect, compact, prune, forget and notes that resolve rows, until the rows that they hid
    are permanently deleted. An undo is listed as an operation, too. The column BY is printed if several people have
    written to the store.
    """
    run.output.open_pager()
    run.check_stream(jsonl=jsonl)
    session = run.session(session)
    begins, ends = period(since, until, now=run.wiring.clock.now())
    is_filtered = any(each is not None for each in (session, project, begins, ends))
    listed = run.wiring.reading.operations.history(last=None if is_filtered else within_limit(last))
    scoped = (each for each in listed if session in (None, each.scope.session))
    scoped = (each for each in scoped if project_path(project) in (None, each.scope.project))
    found = [each for each in scoped if is_within(each.at, begins, ends)][:last]
    if run.json:
        run.output.document({"operations": [operation_as_dict(done) for done in found]})
    elif jsonl:
        for done in found:
            run.output.json_line(operation_as_dict(done))
    elif found:
        with_author = has_authors(run)
        rows = [_cells(done, with_author=with_author) for done in found]
        run.output.table(list(rows[0]), [list(row.values()) for row in rows], wrapped=("WHERE", "RESULT"))
    elif last != 0:
        run.console.note("no operations yet")


def _cells(done: Operation, *, with_author: bool) -> dict[str, str]:
    """Return the cells of an operation by column."""
    return {
        "NUMBER": str(done.number),
        "WHEN": minute(done.at),
        "WHAT": str(done.verb),
        **({"BY": str(done.author or "-")} if with_author else {}),
        "WHERE": done.scope.session or done.scope.project or "-",
        "RESULT": operation_summary(done),
        "STATE": _state(done),
    }


def _state(done: Operation) -> str:
    if done.undone_by is not None:
        return f"undone by {done.undone_by}"
    return "final" if done.final_at is not None else ""


_UNDO_EXAMPLES = """\b
om undo
om undo --dry-run
om history && om undo 12
"""


@with_shared(examples=_UNDO_EXAMPLES, without=["counter"])
def undo(
    run: Run,
    number: Annotated[
        int | None,
        argument(
            metavar="[N]",
            at_least=1,
            help="Number of the operation, as in `om history`. Default: the last one that is not undone.",
            autocompletion=operation_numbers,
        ),
    ] = None,
    *,
    dry_run: DryRunOption = False,
) -> None:
    """Undo an operation: restore what it hid, and hide what it made.

    Rows that another operation hid as well stay hidden until both operations are undone, in either order. Messages that
    were pending when they were forgotten become pending again. If a later operation builds on a reflection, undo that
    operation first. Permanently deleted rows cannot be restored.
    """
    from omcli.operations.forget import undo

    if run.is_read_only("nothing is undone"):
        return
    store = run.wiring.reading if dry_run else run.wiring.store_or_empty
    undone = undo(store.operations, within_limit(number), clock=run.wiring.clock, dry_run=dry_run)
    if run.json:
        run.output.document(_as_dict(undone, dry_run=dry_run))
        return
    found = undone.undoing
    run.output.line(f"{found.undone.number}  {found.undone.verb}  {operation_summary(found.undone)}")
    if dry_run:
        _show(run, found)
    verb = "would be undone" if dry_run else "undone"
    run.console.report(f"operation {found.undone.number} {verb}")
    if found.held_by:
        numbers = " ".join(map(str, found.held_by))
        run.console.note(f"some rows stay hidden by later operations; undo those as well ({numbers})")


def _show(run: Run, found: UndoPreview) -> None:
    for row in found.rows:
        run.output.row(replace(row, superseded_by=None, dropped_at=None))  # print it as a visible row
    for kept in found.messages:
        run.output.line(f"{kept.key} {kept.session}: {kept.message.role}")
    for session, title in found.titles:
        run.output.line(f"{session}: title {title}")
    for row in found.gone:
        run.output.row(row, remark="will be hidden")


def _as_dict(undone: UndoReport, *, dry_run: bool) -> dict[str, object]:
    found = undone.undoing
    return {
        "undone": operation_as_dict(found.undone),
        **({"operation": undone.by.number} if undone.by else {}),
        "rows": [full_row(row) for row in found.rows],
        "gone": [full_row(row) for row in found.gone],
        "messages": [message_fields(kept) for kept in found.messages],
        "titles": [titled.session for titled in found.titles],
        "held_by": list(found.held_by),
        "dry_run": dry_run,
    }


# ---- packs of the past

_REPLAY_EXAMPLES = """\b
om replay --session ID --at 2026-03-12T14:00
om replay --session ID --at 2026-03-12T14:00 --working-memory
om replay --session ID --at 2026-03-12T14:00 --json | jq .tokens
"""
_BUDGET = tokens_option("--budget", "Maximum number of tokens to print.  [env: OM_CONTEXT_BUDGET]")


@with_shared(examples=_REPLAY_EXAMPLES, without=["now"])
def replay(
    run: Run,
    *,
    at: Annotated[str, option("--at", metavar="TIME", help="Time to go back to, such as 2026-03-12T14:00 (UTC).")],
    session: Annotated[str | None, session_option("Session to print. Default: the current or last one.")] = None,
    budget: Annotated[int | None, _BUDGET] = None,
    tier: TierOption = None,
    cross_budget: CrossOption = None,
    session_budget: SessionOption = None,
    tail_budget: TailOption = None,
    scope: ScopeOption = None,
    to: FormatOption = PackFormat.TEXT,
    notation: NotationOption = None,
    working_memory: Annotated[
        bool, option("--working-memory", aliases=["--block"], help="Print the session's state at that time instead.")
    ] = False,
) -> None:
    """Print the pack of a session as it was at an earlier time.

    Prints what `om context` would have printed then. Nothing is changed: `om` works on a private copy of the store. It
    removes from the copy the messages after that time, the rows observed from them and the notes written since,
    restores the rows that these had replaced, and undoes later operations. Messages that were observed together with
    later ones count as not observed yet, so rules make `provisional` rows from them if the last messages don't reach
    back that far.

    A message counts from its own date, even if it was ingested later; without a date, it gets the date of the message
    before it. Four things cannot be restored: messages and rows that were permanently deleted, the settings and presets
    of that time, when rows had last been used, and where a frozen pack began (the freeze point is ignored).

    If the pack could be wrong, nothing is printed and the exit code is 65: if messages of the session have no dates, if
    an operation in force at that time was undone later, or if a later operation can no longer be undone.
    """
    moment = parse_time(at, option="--at ")
    if moment is None:
        raise BadUsage("`--at` is empty")
    run.apply_options({"scope": scope and scope.setting})
    session = run.session(session) or run.active_session
    with run.as_of(moment) as earlier:
        place = Place(project=run.project, above=run.folders, session=session)
        found, _ = session_of_pack(run.wiring.reading, place)
        if found is not None and found.id in earlier.undated:
            unknown = f"its pack at {minute(moment)} is unknown"
            raise BadInput(f"messages of session `{found.id}` have no dates, so {unknown}")
        parts = [f"{counted(earlier.messages, 'message')} and {counted(earlier.operations, 'operation')} came later"]
        if earlier.lost:
            parts.append(f"without what operations {', '.join(map(str, sorted(earlier.lost)))} permanently deleted")
        run.console.note(f"as of {minute(moment)}: {'; '.join(parts)}")
        context.call(
            run,
            session=session,
            budget=budget,
            tier=tier,
            cross_budget=cross_budget,
            session_budget=session_budget,
            tail_budget=tail_budget,
            to=to,
            notation=notation,
            working_memory=working_memory,
            refresh=True,
        )


# ---- backups

_BACKUP_EXAMPLES = """\b
om backup
cp "$(om backup -q)" /media/usb/
"""


@with_shared(examples=_BACKUP_EXAMPLES, without=["counter"])
def backup(run: Run) -> None:
    """Copy the store to a backup beside it, and print its path.

    The copy is checked, and other programs may use the store meanwhile. `om consolidate` makes a backup a day and keeps
    the newest `consolidate.backups`, including those made by this command. `om restore` puts a backup back.
    """
    if run.is_read_only("nothing is copied"):
        return
    store = store_file(run, "om backup", hint=f"`pg_dump` copies a database; {_EXPORT}")
    if not run.wiring.has_store:
        raise NoInput(f"{store}: there is nothing to copy yet")
    path = run.wiring.reading.backups.snapshot(now=run.wiring.clock.now())
    if run.json:
        run.output.document({"path": path})
    else:
        run.output.line(str(path))


_EXPORT = "`om export --to jsonl` writes the whole memory into a file, which `om import` reads"
_DAY = lazily(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])")
_RESTORE_EXAMPLES = """\b
om restore --list
om restore --dry-run
om restore 2026-11-20 --dry-run
"""


@with_shared(examples=_RESTORE_EXAMPLES, without=["counter"])
def restore(
    run: Run,
    which: Annotated[
        str | None,
        argument(
            metavar="[DAY|FILE]",
            help="A backup: the last one of a day (UTC), or a file. Default: the last one.",
            autocompletion=backup_days,
        ),
    ] = None,
    *,
    list_: Annotated[bool, option("--list", help="List the backups, the newest first.")] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Put a backup in the place of the store.

    The current store is kept: as another backup or, if it is damaged, as a file beside it, which the output names. So
    the restored backup can be replaced by what was there before. Messages that the backup lacks are stored again when
    their transcripts are read, as by `om consolidate`.

    A backup is checked first, also with --dry-run. Other programs may use the store meanwhile: they see either the old
    or the restored store. A store that proves damaged or empty while a command writes to it is replaced by its last
    backup at once; that command fails, and can be run again. A backup dated in the future counts as the oldest.
    """
    from omcli.sqlite.backups import backup_files, by_age
    from omcli.sqlite.restore import check_backup
    from omcli.sqlite.restore import restore as put_back
    from omcli.wiring.policies import with_key

    store = store_file(run, "om restore", hint=f"`pg_restore` puts back a copy by `pg_dump`; {_EXPORT}")
    found = by_age(backup_files(store), run.wiring.clock.now())
    if list_:
        _list_backups(run, found)
        return
    chosen = _chosen(which, found, store)
    if run.is_read_only("nothing is restored"):
        return
    if dry_run:
        with_key(run.settings, lambda: check_backup(store, chosen, wait=run.settings.wait))
        _report(run, chosen, None, dry_run=True)
        return
    if not yes:
        hint = "add `--yes`, or `--dry-run` to see by what"
        needed = BadUsage(f"`om restore` replaces {store}", hint=hint)
        ask_first(run, f"Replace the store by {chosen.name}?", needed=needed, refused="nothing was restored")
    now, wait = run.wiring.clock.now(), run.settings.wait
    done = with_key(run.settings, lambda: put_back(store, chosen, now=now, wait=wait))
    _report(run, chosen, done.kept, dry_run=False)


def _report(run: Run, backup: Path, kept: Path | None, *, dry_run: bool) -> None:
    if run.json:
        run.output.document({"restored": str(backup), "kept": kept and str(kept), "dry_run": dry_run})
        return
    run.output.line(str(backup))
    aside = f"; what the store was before is kept as {kept}" if kept else ""
    run.console.report("would be restored" if dry_run else f"restored to {run.settings.db}{aside}")


def _list_backups(run: Run, found: Sequence[StoreCopy]) -> None:
    newest_first = list(reversed(found))
    if run.json:
        shown = [{"path": str(each.path), "at": f"{each.at.isoformat()}Z", "bytes": each.size} for each in newest_first]
        run.output.document({"backups": shown})
    elif found:
        rows = [(minute(each.at.isoformat()), size(each.size), str(each.path)) for each in newest_first]
        run.output.table(("WHEN", "SIZE", "FILE"), rows, wrapped=("FILE",))
    else:
        run.console.note("no backups yet; `om backup` makes one")


def _chosen(which: str | None, found: Sequence[StoreCopy], store: Path) -> Path:
    """Return the backup that `which` names: a file, the last one of a day (or of an hour, minute or second in it), or
    by default the last one. Raise NoInput if there is none.
    """
    if which is not None and (file := expanded(which)).is_file():
        return file
    days = [each.path for each in found if which is None or _is_of(each, which)]
    if not days:
        what = "no backup" if which is None else f"no backup of `{which}`"
        raise NoInput(f"{store}: {what}", hint="`om restore --list` lists the backups")
    return days[-1]


def _is_of(backup: StoreCopy, which: str) -> bool:
    """Return True if a backup was made on a day or, if a time is given as well, in that hour, minute or second."""
    return _DAY.match(which) is not None and backup.at.isoformat().startswith(which.rstrip("Zz").replace(" ", "T"))
