"""`om review`: contradictions, and rows that are unverified or old, one after the other."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadInput, OmError, UnknownId
from omcli.base.record import replace
from omcli.cli.command import Run, is_terminal_input, with_shared
from omcli.cli.console import counted
from omcli.cli.options import RowFilter, StreamOption, option, within_limit
from omcli.memory.observation import PINNED, Type, full_row, handle
from omcli.operations.clock import before
from omcli.recall.review import CONFIRMED, ReviewEntry, ReviewReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omcli.cli.terminal import KeyReader
    from omcli.memory.observation import Observation

_EXAMPLES = """\b
om review
om review --project . --type decision --older-than 2w
om review --jsonl | jq -r 'select(.by) | .row.text'
"""

_QUESTION = "[k]eep, [p]in, [f]orget, [e]dit, [s]kip or [q]uit?"
_QUESTION_OF_TWO = "[k]eep the later, keep [b]oth, [p]in the later, [f]orget the earlier, [e]dit, [s]kip or [q]uit?"
_KEYS, _BOTH, _QUIT = "kpfes", "b", "q"


@with_shared(RowFilter, examples=_EXAMPLES, without=["last", "author", "all_"])
def review(
    run: Run,
    rows: RowFilter,
    *,
    type_: Annotated[
        list[Type] | None,
        option("--type", metavar="TYPE", help="Only rows of this type: decision, preference, … May be repeated."),
    ] = None,
    older_than: Annotated[
        str, option("--older-than", metavar="TIME", help="Rows not used since TIME are old: 30d, 2026-01-28.")
    ] = "30d",
    limit: Annotated[int, option("--limit", "-n", at_least=1, metavar="N", help="At most N rows.")] = 20,
    jsonl: StreamOption = False,
) -> None:
    """Go through contradictions, unverified rows and old rows, the most important first.

    A row is old if it has been neither used nor repeated since --older-than, and is not pinned. This applies to items,
    to instructions, preferences, corrections and decisions in force, and to open requests, questions and blockers;
    other rows never get old. Unverified rows that were used since then are left out.

    On a terminal each row is shown, and one key decides: k keeps it (it counts as used now), p pins it, f forgets it, e
    edits it in $VISUAL or $EDITOR, s skips it, and q quits. Of two rows that contradict each other the later one holds:
    k, p and e hide the earlier one, f forgets it, and b keeps both.

    To pin or edit a row, or to keep both, `om` writes a note in place of a row. `om undo` reverses each step, except
    that a row counts as used. In a pipe, and with --json, the rows are only listed, each with its reason.
    """
    from omcli.operations.recall import to_review

    run.check_stream(jsonl=jsonl)
    at = before(older_than, now=run.wiring.clock.now(), option="--older-than")
    query = replace(rows.query(run), types=tuple(type_ or ()))
    entries = to_review(run.wiring.reading, query, tags=rows.tags, before=at)
    counts = {reason: sum(entry.reason is reason for entry in entries) for reason in ReviewReason}
    chosen = entries[: within_limit(limit)]
    if run.json:
        shown = [_as_dict(run, entry) for entry in chosen]
        run.output.document({"counts": {str(reason): count for reason, count in counts.items()}, "entries": shown})
    elif jsonl:
        for entry in chosen:
            run.output.json_line(_as_dict(run, entry))
    elif not entries:
        run.console.note("nothing to review")
    elif _can_ask(run):
        _ask(run, chosen)
    else:
        for entry in chosen:
            run.output.row(entry.row, remark=_reason(entry))
        found = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count)
        more = len(entries) - len(chosen)
        run.console.note(f"{found}{f'; {more} more with `--limit {len(entries)}`' if more else ''}")


def _reason(entry: ReviewEntry) -> str:
    if entry.by is not None:
        return f"contradicted by {handle(entry.by.id)}: {entry.by.text}"
    used = entry.row.last_used_at
    return f"{entry.reason}, last used {used[:10]}" if used else str(entry.reason)


def _as_dict(run: Run, entry: ReviewEntry) -> dict[str, object]:
    find = run.wiring.reading.rows.find
    by = {} if entry.by is None else {"by": full_row(find(entry.by.id))}
    return {"reason": entry.reason, "row": full_row(find(entry.row.id)), **by}


# ---- asking


def _can_ask(run: Run) -> bool:
    is_terminal = run.output.terminal is not None and is_terminal_input() and run.console.can_ask
    return is_terminal and not run.is_read_only("rows are only listed")


def _ask(run: Run, entries: Sequence[ReviewEntry]) -> None:
    """Show one row after the other, and do what the pressed key says."""
    from omcli.cli.terminal import KeyReader

    keys, done = KeyReader(), Counter[str]()
    with keys.reading():
        for number, entry in enumerate(entries, start=1):
            if not _is_current(run, entry):
                continue
            run.output.line(f"{number}/{len(entries)} {entry.reason}")
            for row in _rows(entry):
                run.output.row(row)
            run.output.flush()
            if entry.by is None:
                key = run.console.ask_key(_QUESTION, keys, f"{_KEYS}{_QUIT}")
            else:
                key = run.console.ask_key(_QUESTION_OF_TWO, keys, f"{_KEYS}{_BOTH}{_QUIT}")
            if key in (None, _QUIT):
                break
            done[_apply_key(run, entry, key, keys)] += 1
    run.console.report(", ".join(f"{count} {what}" for what, count in done.items()) or "nothing changed")


def _rows(entry: ReviewEntry) -> tuple[Observation, ...]:
    return (entry.row,) if entry.by is None else (entry.row, entry.by)


def _is_current(run: Run, entry: ReviewEntry) -> bool:
    """Return True unless one of the rows was hidden after they were read, perhaps by an earlier answer."""
    try:
        return all(run.wiring.store.rows.find(row.id).is_visible for row in _rows(entry))
    except UnknownId:
        return False


def _apply_key(run: Run, entry: ReviewEntry, key: str | None, keys: KeyReader) -> str:
    """Do what a key says, and return what was done, in a word."""
    try:
        done, operation = _change(run, entry, key, keys)
    except OmError as error:
        run.console.error(error)
        return "skipped"
    if operation is not None:
        run.console.report(f"{done}; `om undo {operation}` reverses that")
    return done


def _change(run: Run, entry: ReviewEntry, key: str | None, keys: KeyReader) -> tuple[str, int | None]:
    """Change a row or two as a key says. Return the change in a word, and its number if it is an operation."""
    from omcli.operations.forget import ForgetRequest, forget
    from omcli.operations.note import resolve_by

    store, clock = run.wiring.store, run.wiring.clock
    if key == "k":
        store.index.mark_used([_rows(entry)[-1].id], now=clock.now())
        by = entry.by
        return "kept", None if by is None else resolve_by(entry.row, by, store=store, clock=clock)
    if key == _BOTH:
        return "confirmed", _note(run, (entry.row,), tag=CONFIRMED)
    if key == "p":
        return "pinned", _note(run, _rows(entry), tag=PINNED)
    if key == "f":
        done = forget(store, ForgetRequest(ids=(entry.row.id,)), clock=clock).done
        return "forgotten", None if done is None else done.number
    if key == "e":
        with keys.reading(by_line=True):
            text = _new_text(run, _rows(entry)[-1].text)
        if text is not None:
            return "edited", _note(run, _rows(entry), text=text)
    return "skipped", None


def _note(run: Run, rows: tuple[Observation, ...], *, text: str | None = None, tag: str | None = None) -> int | None:
    """Write a note in place of the rows, and return the number of the operation."""
    from omcli.operations.note import replace_rows

    wiring = run.wiring
    noted = replace_rows(
        rows,
        store=wiring.store,
        counter=run.counter,
        clock=wiring.clock,
        new_id=wiring.new_id,
        text=text,
        tag=tag,
    )
    if noted.redactions:
        run.console.note(f"{counted(sum(noted.redactions.values()), 'secret')} redacted")
    return noted.operation


def _new_text(run: Run, text: str) -> str | None:
    """Ask for another text, in an editor if the environment names one. Return None if it is empty or the same."""
    from omcli.cli.terminal import edit_file

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "row.txt"
        file.write_text(f"{text}\n", encoding="utf-8")
        editor = edit_file(file)
        if editor is None:
            new = run.console.ask("new text (empty: leave it):") or ""
        else:
            try:
                new = file.read_text(encoding="utf-8", errors="replace").strip()
            except OSError as error:
                raise BadInput(f"cannot read what the editor `{editor}` wrote: {error.strerror}") from None
    return new if new not in ("", text) else None
