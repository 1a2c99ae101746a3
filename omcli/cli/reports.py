"""Reports that several commands print, as text and as JSON, and the question before a permanent deletion."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from omcli.base.errors import BadUsage, InputOutput, TryAgain
from omcli.cli.command import is_terminal_input
from omcli.cli.console import Exit, counted, error_as_dict, size
from omcli.memory.observation import full_row
from omcli.memory.session import author_fields
from omcli.settings.settings import ServerUrl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from omcli.base.errors import OmError
    from omcli.cli.command import Run
    from omcli.memory.changes import EraseResult, Operation
    from omcli.memory.observation import Observation
    from omcli.operations.estimate import CallList
    from omcli.operations.ingest.files import FileReport
    from omcli.operations.model_calls import CallSum
    from omcli.operations.prune import PruneReport
    from omcli.operations.reflect.cross_session import GlobalReflection
    from omcli.operations.reflect.session import Reflection
    from omcli.operations.tick import TickReport


def file_summary(report: FileReport, *, is_verbose: bool) -> str:
    """Return the report of an input in one line. Unknown record types are named only if `is_verbose`."""
    if report.format is None:
        return f"{report.path}: no messages"
    counts = report.counts
    main = f"{counted(counts.messages, 'message')} ({report.new_messages} new)" if counts.messages else "no messages"
    parts = [
        report.format,
        f"{main} and {report.side_messages} in side chains" if report.side_messages else main,
        counted(report.observations, "observation"),
    ]
    if report.pending:
        parts.append(f"{counted(report.pending, 'message')} pending")
    if report.spooled:
        parts.append(f"{counted(report.spooled, 'message')} spooled")
    if report.findings.get("unverified"):
        parts.append(f"{counted(report.findings['unverified'], 'row')} unverified")
    if report.findings.get("attributed"):
        parts.append(f"{counted(report.findings['attributed'], 'row')} not said by the user")
    return f"{report.path}: {', '.join([*parts, *missing_parts(report, is_verbose=is_verbose)])}"


def missing_parts(report: FileReport, *, is_verbose: bool) -> Iterator[str]:
    """Yield the numbers of messages left out or forgotten, secrets redacted and lines skipped of an input, in words."""
    if off := report.skipped.get("off"):
        yield f"{counted(off, 'message')} left out, because memory is off in their project"
    if forgotten := report.skipped.get("forgotten"):
        yield f"{counted(forgotten, 'message')} forgotten"
    if secrets := sum(report.redactions.values()):
        yield f"{counted(secrets, 'secret')} redacted"
    if is_verbose and (injected := report.skipped.get("injected")):
        yield f"{injected} injected left out"
    if report.faults:
        reasons = Counter[str]()
        for reason, number in report.faults.items():
            reasons[reason if is_verbose else reason.partition(":")[0]] += number
        yield f"{counted(reasons.total(), 'line')} skipped: {_numbers(reasons)}"


def warn_of_spool(run: Run, error: OmError, *, about: str = "") -> None:
    """Warn that an input waits in the spool because of an error of the store."""
    named = f"{about}: " if about else ""
    run.console.warn(f"{named}{error.message}; kept in the spool until the next command that writes to the store")


def file_as_dict(report: FileReport, rows: Iterable[Observation]) -> dict[str, object]:
    """Return the report of an input as JSON, with its rows."""
    counts = report.counts
    optional: dict[str, object] = {"format": report.format, "session_id": report.session_id, "cwd": report.cwd}
    if report.observation_tokens:
        optional["ratio"] = round(report.message_tokens / report.observation_tokens, 2)
    return {
        "path": report.path,
        **{name: value for name, value in optional.items() if value is not None},
        "sessions": list(report.sessions),
        "messages": counts.messages,
        "human_messages": counts.human_messages,
        "assistant_messages": counts.assistant_messages,
        "tool_calls": counts.tool_calls,
        "tool_results": counts.tool_results,
        "errors": counts.errors,
        "compactions": counts.compactions,
        "new_messages": report.new_messages,
        "known_messages": report.known_messages,
        **({"spooled": report.spooled} if report.spooled_for is not None else {}),
        "asides": counts.asides,
        "side_messages": report.side_messages,
        "images": report.images,
        "skipped": dict(report.skipped),
        "redactions": dict(report.redactions),
        "unread_bytes": report.unread_bytes,
        "observations": report.observations,
        "message_tokens": report.message_tokens,
        "observation_tokens": report.observation_tokens,
        "pending": report.pending,
        "findings": dict(report.findings),
        "rows": [full_row(observation) for observation in rows],
        **({"error": error_as_dict(report.error)} if report.error is not None else {}),
    }


def _numbers(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(numbers.items(), key=lambda pair: -pair[1]))


def report_tick(run: Run, ticked: TickReport) -> None:
    """Print the work done in a session on stderr. Print nothing if an error stopped it before any work was done."""

    parts = [counted(len(ticked.rows), "observation")] if ticked.observe else []
    if ticked.activated:
        parts[0] += f", of {counted(ticked.activated, 'buffered batch')}"
    parts += [f"{counted(sum(ticked.blocks), 'message')} buffered"] if ticked.blocks else []
    parts += [reflection_summary(ticked.reflection)] if ticked.reflection else []
    if ticked.error is None or ticked.rows or ticked.blocks:
        run.console.report(f"{ticked.session}: {'; '.join(parts) or 'no result'}")


def tick_as_dict(ticked: TickReport) -> dict[str, object]:
    """Return the due work of a session and its result as JSON."""

    error = {"error": error_as_dict(ticked.error)} if ticked.error else {}
    reflection = {"reflection": reflection_as_dict(ticked.reflection)} if ticked.reflection else {}
    return {
        **due_as_dict(ticked),
        **error,
        "activated": ticked.activated,
        "blocks": [{"messages": messages} for messages in ticked.blocks],
        "observations": [full_row(row) for row in ticked.rows],
        "reflections": [full_row(row) for row in ticked.reflection.rows] if ticked.reflection else [],
        **reflection,
    }


def due_as_dict(found: TickReport) -> dict[str, object]:
    return {"session": found.session, "observe": found.observe, "ahead": found.ahead, "reflect": found.reflect}


_FINDINGS = {
    "kept_back": "kept, because the reply leaves them out",
    "unreached": "left for the next run, because the model failed",
    "unaccounted": "kept, because the reply does not mention them",
}
"""Wording of some findings in a model's reply. The others are printed by name."""


def reflection_summary(reflection: Reflection) -> str:
    """Return the result of a reflection in one line."""
    folded = len({each for row in reflection.rows for each in row.supports} - {row.id for row in reflection.left})
    rows = f"{counted(reflection.read, 'row')} read, {folded} folded into {len(reflection.rows)}"
    if folded < reflection.condensed:
        rows += f", {reflection.condensed - folded} hidden"
    tokens = f"{reflection.tokens_before} → {reflection.tokens_after} tokens"
    findings = (
        f"{number} {_FINDINGS.get(name, name.replace('_', ' '))}"
        for name, number in sorted(reflection.findings.items())
    )
    return "; ".join((f"{rows}, {counted(len(reflection.items), 'item')}", tokens, *findings))


def reflection_as_dict(reflection: Reflection) -> dict[str, object]:
    """Return a reflection as JSON."""
    found = {
        "session": reflection.scope.session,
        "project": reflection.scope.project,
        "outcome": reflection.ending,
        "read": reflection.read,
        "observations_condensed": reflection.condensed,
        "kept": reflection.read - reflection.condensed,
        "reflections_created": len(reflection.rows),
        "items_created": len(reflection.items),
        "tokens_before": reflection.tokens_before,
        "tokens_after": reflection.tokens_after,
        "attempts": reflection.attempts,
        "findings": dict(reflection.findings),
        "note": reflection.note,
        "reflections": [full_row(row) for row in reflection.rows],
        "items": [full_row(row) for row in reflection.items],
    }
    return {name: value for name, value in found.items() if value is not None}


def report_projects(run: Run, across: GlobalReflection) -> None:
    """Print on stderr what was done to the rows of each project, unless all stay."""
    for each in across.projects:
        if each.condensed:
            run.console.report(f"{each.scope.project or 'no project'}: {reflection_summary(each)}")


def across_as_dict(across: GlobalReflection) -> dict[str, object]:
    """Return a reflection across sessions as JSON, with the figures of each project."""
    projects = [_without_rows(reflection_as_dict(each)) for each in across.projects]
    return {**reflection_as_dict(across.reflection), "projects": projects}


def _without_rows(found: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in found.items() if name not in ("reflections", "items")}


def prune_as_dict(found: PruneReport) -> dict[str, object]:
    """Return the report of pruning as JSON."""
    reasons = {dropped.row: dropped.reason for dropped in found.dropped}
    operation = {"operation": found.done.number} if found.done else {}
    return {
        **operation,
        "pruned": found.count,
        "messages": sum(found.counted.values()),
        "sessions": found.sessions,
        "tokens": found.tokens,
        "rows": [full_row(row) | {"reason": reasons[row.id]} for row in found.rows],
        "messages_by_session": dict(found.counted),
    }


def operation_summary(done: Operation) -> str:
    """Return the changes that an operation made when it was done, in words."""
    if parts := list(_operation_parts(done)):
        return ", ".join(parts)
    uncounted = done.figures.get("uncounted", done.uncounted)
    return counted(uncounted, "uncounted message") if isinstance(uncounted, int) and uncounted else "nothing"


def _operation_parts(done: Operation) -> Iterator[str]:
    if done.undoes is not None:
        yield f"undid {done.undoes}"
        return
    if done.made:
        yield f"{counted(done.made, 'row')} made"
    counts = {name: number for name, number in done.figures.items() if isinstance(number, int)}
    hidden = counts.get("rows", counts.get("condensed", done.hidden))
    if hidden:
        yield f"{counted(hidden, 'row')} hidden"
    if messages := counts.get("messages", done.messages):
        yield counted(messages, "message")
    if titles := counts.get("titles"):
        yield counted(titles, "title")
    if ahead := counts.get("ahead"):
        yield f"{counted(ahead, 'buffered row')}"


def operation_as_dict(done: Operation) -> dict[str, object]:
    """Return an operation as JSON."""
    found = {
        "number": done.number,
        "verb": done.verb,
        "at": done.at,
        "session": done.scope.session,
        "project": done.scope.project,
        "made": done.made,
        "hidden": done.hidden,
        "messages": done.messages,
        "figures": dict(done.figures),
        "undoes": done.undoes,
        "undone_by": done.undone_by,
        "final_at": done.final_at,
        "can_be_undone": done.can_be_undone,
        **author_fields(done.author),
    }
    return {name: value for name, value in found.items() if value is not None}


def has_authors(run: Run) -> bool:
    """Return True if several have written to the store, so that text says who did."""
    return len(run.wiring.reading.sessions.authors()) > 1


def report_estimate(run: Run, calls: CallList) -> None:
    """Print the estimated calls of each lane and model, and their sum."""
    from omcli.operations.model_calls import CallSum

    total, sums = CallSum(), dict[tuple[str, str], CallSum]()
    for call in calls.calls():
        total.add(call)
        sums.setdefault((call.lane, f"{call.provider}/{call.model}"), CallSum()).add(call)
    if not sums:
        run.console.note("no model would be asked: none is chosen (`--model NAME`), or nothing is pending or due")
    if run.json:
        models = [{"lane": lane, "model": model, **_estimate_as_dict(one)} for (lane, model), one in sums.items()]
        run.output.document({"estimate": {**_estimate_as_dict(total), "models": models}})
        return
    for (lane, model), one in sums.items():
        run.output.line(f"{lane}  {model}  {_estimate_in_words(one)}")
    run.output.line(f"total  {_estimate_in_words(total)}")


def _estimate_in_words(one: CallSum) -> str:
    cost = "unknown price" if one.unpriced else f"about {dollars(one.cost)}"
    return f"{counted(one.calls, 'call')}  {one.input_tokens} tokens in, {one.output_tokens} out  {cost}"


def _estimate_as_dict(one: CallSum) -> dict[str, object]:
    cost = {} if one.unpriced else {"cost": round(one.cost, 6)}
    return {"calls": one.calls, "input_tokens": one.input_tokens, "output_tokens": one.output_tokens, **cost}


def dollars(cost: float) -> str:
    """Format an amount in US dollars with two decimals, or with four if it is below one dollar but not 0."""
    return f"${cost:.2f}" if cost >= 1 or not cost else f"${cost:.4f}"


_KEY_NOTICE = "unused-key"


def note_unused_key(run: Run) -> None:
    """Print once per store, unless quiet, that an API key is set although no model is chosen, how to choose one, and
    its cost if known.

    Call this after rules have observed.
    """
    key = run.unused_key
    if key is None or not key.tokens or run.console.is_quiet:
        return
    with suppress(TryAgain, InputOutput):  # the messages are observed, and the next run prints it
        if not run.wiring.store.ledger.is_first(_KEY_NOTICE, now=run.wiring.clock.now()):
            return
        cost = key.cost(run.settings)
        price = "" if cost is None else f", about {dollars(cost)} for what was observed now"
        run.console.note(
            f"{key.variable} is set, but no model is chosen, so rules observed; `--observer {key.provider}` or"
            f" OM_OBSERVER_PROVIDER={key.provider} chooses {key.model}{price}; `--estimate` tells more"
        )


# ---- permanent deletion

_REFUSED = 1


def ask_to_erase(run: Run, what: str, *, is_sure: bool) -> None:
    """Ask before permanently deleting `what`, unless `is_sure`. Raise BadUsage if stdin or stderr is not a terminal,
    and Exit if the answer is not yes.
    """
    if not is_sure:
        needed = BadUsage(f"`--hard` permanently deletes {what}", hint="add `--yes`, or `--dry-run` to list them")
        ask_first(run, f"Permanently delete {what}?", needed=needed, refused="nothing was deleted")


def ask_first(run: Run, question: str, *, needed: BadUsage, refused: str) -> None:
    """Ask a question. Raise `needed` if stdin or stderr is not a terminal, and Exit with the note `refused` if the
    answer is not yes.
    """
    answer = run.console.ask(f"{question} [y/N]") if is_terminal_input() else None
    if answer is None:
        raise needed
    if answer.lower() not in {"y", "yes"}:
        run.console.note(refused)
        raise Exit(_REFUSED)


def report_erase(run: Run, erased: EraseResult, *, besides: int = 0) -> None:
    """Report the freed space, and the backups that may still contain what was deleted.

    `besides` is the number of deleted rows that have not been printed.
    """
    if besides:
        run.console.report(f"{counted(besides, 'hidden row')} deleted as well, replaced by those")
    freed = max(0, erased.bytes_before - erased.bytes_after)
    was, now = size(erased.bytes_before), size(erased.bytes_after)
    run.console.report(f"{size(freed)} freed: {was} before, {now} now")
    if copies := _backup_files(run):
        names = ", ".join(path.name for path in copies)
        run.console.note(f"{counted(len(copies), 'backup')} beside the store may still contain it: {names}")


def other_rows(done: Operation | None, rows: int) -> int:
    """Return the number of rows that an operation deleted in addition to the `rows` printed."""
    deleted = done.figures.get("rows") if done else None
    return max(0, deleted - rows) if isinstance(deleted, int) else 0


def erase_as_dict(run: Run, erased: EraseResult) -> dict[str, object]:
    return {
        "bytes_before": erased.bytes_before,
        "bytes_after": erased.bytes_after,
        "bytes_freed": max(0, erased.bytes_before - erased.bytes_after),
        "backups": [str(path) for path in _backup_files(run)],
    }


def store_file(run: Run, command: str, *, hint: str) -> Path:
    """Return the path of the store's file. Raise BadUsage with the hint if the store is on a server, where the command
    has nothing to work on.
    """
    if isinstance(run.settings.db, ServerUrl):
        raise BadUsage(f"`{command}` is about a file, but the store is {run.settings.db}", hint=hint)
    return run.settings.db


def _backup_files(run: Run) -> list[Path]:
    """Return the files beside the store that may contain what was deleted: backups, and damaged stores kept aside."""
    from glob import escape

    from omcli.wiring.policies import backups

    db = run.wiring.spool_path
    return [*backups(db), *sorted(db.parent.glob(f"{escape(db.name)}.corrupted-*"))]
