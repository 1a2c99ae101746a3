"""`om prune`: hide old or surplus rows and messages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage
from omcli.base.record import replace
from omcli.cli import reports
from omcli.cli.command import Run, with_shared
from omcli.cli.console import counted
from omcli.cli.options import DryRunOption, YesOption, option, session_option, tokens_option, within_limit
from omcli.clients.prepared import clear
from omcli.memory.changes import EraseResult
from omcli.memory.retention import RetentionRules
from omcli.operations.clock import before

if TYPE_CHECKING:
    from omcli.memory.observation import Observation
    from omcli.memory.retention import RetentionRules
    from omcli.operations.prune import PruneReport

_EXAMPLES = """\b
om prune --older-than 90d --keep-last 200 --dry-run
om prune --raw --older-than 30d --dry-run
om prune --keep-sessions 20
om prune --hard --dry-run
"""


@with_shared(examples=_EXAMPLES)
def prune(
    run: Run,
    *,
    older_than: Annotated[
        str | None, option("--older-than", metavar="TIME", help="Prune rows older than TIME: 90d, 6w, 3mo, 2026-01-01.")
    ] = None,
    keep_last: Annotated[
        int | None, option("--keep-last", metavar="N", at_least=0, help="Keep the last N rows of each session.")
    ] = None,
    budget: Annotated[
        int | None,
        tokens_option("--budget", "Tokens of each session to keep (see above).", aliases=("--max-tokens",)),
    ] = None,
    keep_sessions: Annotated[
        int | None, option("--keep-sessions", metavar="N", at_least=0, help="Keep the N most recently active sessions.")
    ] = None,
    raw: Annotated[bool, option("--raw", help="With --older-than: prune observed messages instead of rows.")] = False,
    session: Annotated[str | None, session_option()] = None,
    cross: Annotated[bool, option("--cross", help="Prune only cross-session rows (kept by default).")] = False,
    protected: Annotated[
        bool, option("--protected", help="Also prune rows that are otherwise protected (see above).")
    ] = False,
    hard: Annotated[
        bool, option("--hard", help="Delete permanently, without undo. Alone: everything pruned or forgotten.")
    ] = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Hide old or surplus rows or messages.

    A row is pruned if any of the limits (--older-than, --keep-last, --budget, --keep-sessions) applies to it and it is
    not protected. Pinned rows, and instructions and preferences in force, are protected. --keep-last and --budget also
    protect tasks, blockers and failures that are open; --budget all open rows, and decisions and corrections in force.

    --budget first prunes rows from which several reflections were made, then rows from which one was made, then the
    others. In each group, rows of low priority come before rows of medium priority, and old rows before new ones.
    --budget never prunes rows of high priority, even with --protected, so more may be left. Cross-session rows (items,
    and notes of a project) are kept unless you give --cross.

    `om undo` restores what was pruned, but not what --hard deletes. Pending messages and the agent's last message stay.
    """
    at = None if older_than is None else _instant(run, older_than)
    rules = RetentionRules(
        before=None if raw else at,
        keep_last=within_limit(keep_last),
        max_tokens=within_limit(budget),
        keep_sessions=within_limit(keep_sessions),
        messages_before=at if raw else None,
        session=session,
        is_across=cross,
        spares_none=protected,
    )
    _check(rules, is_raw=raw, for_good=hard)
    if run.is_read_only("nothing is pruned"):
        return
    rules = replace(rules, session=run.session(session))
    if rules.is_empty:
        _erase(run, is_sure=yes, dry_run=dry_run)
    else:
        _prune(run, rules, for_good=hard, is_sure=yes, dry_run=dry_run)


def _instant(run: Run, older_than: str) -> str:
    return before(older_than, now=run.wiring.clock.now(), option="--older-than")


def _check(rules: RetentionRules, *, is_raw: bool, for_good: bool) -> None:
    """Raise BadUsage if options contradict each other, or if neither a rule nor `for_good` is given."""
    if is_raw and (rules.messages_before is None or rules.is_about_rows or rules.is_across or rules.spares_none):
        raise BadUsage("`--raw` takes only `--older-than` and `--session`", hint="`om prune --raw --older-than 30d`")
    if rules.keep_sessions is not None and (rules.session is not None or rules.is_across):
        raise BadUsage("`--keep-sessions` excludes `--session` and `--cross`")
    if rules.is_across and rules.session is not None:
        raise BadUsage("`--cross` and `--session` exclude each other")
    if rules.is_empty and not for_good:
        raise BadUsage("no rule given", hint="`--older-than 90d`, `--keep-last N`, `--budget N` or `--keep-sessions N`")
    if rules.is_empty and (rules.session is not None or rules.is_across or rules.spares_none):
        raise BadUsage("`--hard` alone deletes everything pruned and forgotten", hint="add a rule to prune by")


def _prune(run: Run, rules: RetentionRules, *, for_good: bool, is_sure: bool, dry_run: bool) -> None:
    from omcli.operations.prune import prune

    def print_row(row: Observation, reason: str) -> None:
        if dry_run:
            run.output.row(row, remark=reason)

    def prune_rows(*, dry_run: bool) -> PruneReport:
        store = run.wiring.reading if dry_run else run.wiring.store_or_empty
        return prune(
            store,
            rules,
            counter=run.counter,
            clock=run.wiring.clock,
            dry_run=dry_run,
            for_good=for_good,
            in_full=run.json,
            tell=None if run.json else print_row,
        )

    if rules.session is not None and run.wiring.reading.sessions.find(rules.session) is None:
        run.note_unknown_session(rules.session)
    found = prune_rows(dry_run=dry_run or for_good)
    if for_good and not (dry_run or found.is_empty):
        reports.ask_to_erase(run, _in_words(found), is_sure=is_sure)
        found = prune_rows(dry_run=False)
        clear(os.environ)
    if run.json:
        erased = {} if found.erased is None else reports.erase_as_dict(run, found.erased)
        run.output.document({**reports.prune_as_dict(found), **erased, "dry_run": dry_run})
        return
    reasons = {dropped.row: dropped.reason for dropped in found.dropped}
    for row in found.rows:
        run.output.row(row, remark=reasons[row.id])
    for name, messages in found.counted.items():
        run.output.line(f"{name}: {counted(messages, 'message')}")
    _report(run, found, dry_run=dry_run)


def _report(run: Run, found: PruneReport, *, dry_run: bool) -> None:
    if found.is_empty:
        run.console.note("nothing to prune")
    elif dry_run:
        run.console.report(f"would prune: {_in_words(found)}")
    elif found.erased is not None:
        run.console.report(f"{_in_words(found)} deleted")
        reports.report_erase(run, found.erased, besides=reports.other_rows(found.done, found.count))
    else:
        number = found.done.number if found.done else ""
        run.console.report(f"{_in_words(found)} pruned; `om undo {number}` reverses that")


def _in_words(found: PruneReport) -> str:
    messages = sum(found.counted.values())
    parts = [f"{counted(found.count, 'row')} with {found.tokens} tokens"] if found.count or not found.messages else []
    parts += [counted(messages, "message")] if found.messages else []
    where = f" in {counted(found.sessions, 'session')}" if found.sessions else ""
    return f"{', '.join(parts)}{where}"


def _erase(run: Run, *, is_sure: bool, dry_run: bool) -> None:
    """Delete everything that was pruned or forgotten, after asking unless `is_sure`. With `dry_run`, only report how
    much that is.
    """
    from omcli.operations.prune import erase, preview_erase

    found, gone = preview_erase(run.wiring.reading.operations)
    told = f"{counted(gone.rows, 'row')} and {counted(gone.messages, 'message')}"
    what = f"{told} of {counted(len(found), 'operation')}"
    counts: dict[str, object] = {
        "operations": [done.number for done in found],
        "deleted": gone.rows,
        "messages": gone.messages,
    }
    if dry_run:
        if run.json:
            run.output.document({**counts, "dry_run": True})
        run.console.report(f"would be deleted: {what}")
        return
    if not found:
        run.console.note("nothing to delete: nothing was pruned or forgotten since the last time")
    else:
        reports.ask_to_erase(run, what, is_sure=is_sure)
        clear(os.environ)
    erased = (
        erase(run.wiring.store_or_empty.operations, clock=run.wiring.clock) if run.wiring.has_store else EraseResult()
    )
    counts |= {"deleted": erased.rows, "messages": erased.messages}
    if run.json:
        run.output.document({**counts, **reports.erase_as_dict(run, erased), "dry_run": False})
        return
    if found:
        run.console.report(f"{counted(erased.rows, 'row')} and {counted(erased.messages, 'message')} deleted")
    if found or erased.bytes_after < erased.bytes_before:
        reports.report_erase(run, erased)
