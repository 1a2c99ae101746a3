"""`om forget`: remove content from the memory and keep it out. `om note`: write a row by hand."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage, InputOutput
from omcli.cli import reports
from omcli.cli.command import Run, with_shared
from omcli.cli.console import Exit, counted
from omcli.cli.options import (
    DryRunOption,
    YesOption,
    argument,
    option,
    project_option,
    project_path,
    row_ids,
    session_option,
)
from omcli.clients.prepared import clear
from omcli.memory.message import message_fields
from omcli.memory.observation import Priority, Type, full_row, handle, row
from omcli.text.clean import USER
from omcli.wiring.inputs import STDIN, content, open_spool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from omcli.memory.ports import Store
    from omcli.memory.transcript import IngestedFile
    from omcli.operations.deps import StoreOrSpool
    from omcli.operations.forget import ForgetReport, ForgetRequest
    from omcli.operations.note import KeptNote

_EXAMPLES = """\b
om forget 3f9a1c2e
om forget --match "the harbour code" --dry-run
om forget --match "the harbour code" --derived --hard --dry-run
"""

_NOTHING = 1
_MANY = 12


@with_shared(examples=_EXAMPLES, without=["counter"])
def forget(
    run: Run,
    ids: Annotated[
        list[str] | None,
        argument(metavar="[ID]...", help="Ids or handles of rows, or ids of messages.", autocompletion=row_ids),
    ] = None,
    *,
    match: Annotated[
        str | None, option("--match", metavar="TEXT", help="All rows and messages that contain TEXT, ignoring case.")
    ] = None,
    session: Annotated[str | None, session_option("With --match: only this session.")] = None,
    project: Annotated[str | None, project_option("With --match: only this project.")] = None,
    derived: Annotated[bool, option("--derived", help="Also forget rows made from them.")] = False,
    hard: Annotated[bool, option("--hard", help="Delete permanently, without undo.")] = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Forget rows and messages, and keep their content from coming back.

    Forgotten rows and messages are hidden, and their content is kept out of every session, daily note and import from
    then on: no message, row, title or next step with the same words is remembered. With --match, this also holds for
    each line and sentence that contains TEXT. Case, punctuation, emphasis, markup, list marks and the speaker make no
    difference. A longer message that contains the words is remembered.

    Words that many sessions share (`ok`, `run the tests`, a short command or its output) are kept out less widely: only
    of that message, if it is read again, and of rows of its session. Rows about what a tool did are kept out of their
    own session only. You can still write forgotten content by hand with `om note`.

    Titles and buffered observations with that content are forgotten too. `om undo` restores everything until --hard
    (here or in `om prune`) deletes it. --hard asks first, because it cannot be undone. Rows and messages that are
    already forgotten match as well, so that --hard can delete them.

    Rows made from forgotten rows or messages may still contain the content, and so may the messages that a forgotten
    row came from. Both are listed: --derived forgets such rows too, and you can forget the messages by their ids. Daily
    notes and MEMORY.md files that contain the content are listed, but they and the transcripts are not changed.

    The exit code is 1 if nothing matches.
    """
    from omcli.operations.forget import ForgetRequest

    if bool(ids) is (match is not None):
        raise BadUsage("nothing to forget given (expected ids or `--match TEXT`)", hint="`om forget 3f9a1c2e`")
    if match is None and (session is not None or project is not None):
        raise BadUsage("`--session` and `--project` need `--match`")
    if run.is_read_only("nothing is forgotten"):
        return
    session = run.session(session)
    taken_in = run.wiring.reading.bookmarks.files()  # read first: permanent deletion removes these as well
    wanted = ForgetRequest(
        ids=tuple(ids or ()), match=match, session=session, project=project_path(project), with_derived=derived
    )
    store = run.wiring.reading if dry_run or hard else run.wiring.store_or_empty
    found = _forget(run, store, wanted, dry_run=dry_run or hard)
    if hard and not (dry_run or found.is_empty):
        reports.ask_to_erase(run, _in_words(found), is_sure=yes)
        found = _forget(run, run.wiring.store_or_empty, wanted, dry_run=False, for_good=True)
    _print(run, found, _files(run, found, match, taken_in), dry_run=dry_run)
    if found.is_empty:
        raise Exit(_NOTHING)


def _forget(run: Run, store: Store, wanted: ForgetRequest, *, dry_run: bool, for_good: bool = False) -> ForgetReport:
    """Forget, and delete the prepared packs, which may contain what was forgotten."""
    from omcli.operations.forget import forget as hide

    found = hide(store, wanted, clock=run.wiring.clock, dry_run=dry_run, for_good=for_good)
    if not (dry_run or found.is_empty):
        clear(os.environ)
    return found


def _files(run: Run, found: ForgetReport, match: str | None, taken_in: Sequence[IngestedFile]) -> tuple[Path, ...]:
    """Return the files of notes that contain the forgotten content."""
    from omcli.notes import find_stale_notes

    said = (*(row.text.removeprefix(USER) for row in found.rows), *(kept.message.text for kept in found.messages))
    texts = said if match is None else (match,)
    return find_stale_notes(texts, taken_in=taken_in, notes=run.wiring.settings.consolidate.notes)


def _print(run: Run, found: ForgetReport, files: Sequence[Path], *, dry_run: bool) -> None:
    if run.json:
        erased = {} if found.erased is None else reports.erase_as_dict(run, found.erased)
        run.output.document({**_as_dict(found), "files": list(map(str, files)), **erased, "dry_run": dry_run})
    else:
        for row in found.rows:
            run.output.row(row)
        for kept in found.messages:
            run.output.line(f"{kept.key} {kept.session}: {kept.message.role}")
        for each in found.buffered:
            run.output.line(f"{each.session}: {each.text} (buffered)")
    _report(run, found, dry_run=dry_run)
    if files:
        run.console.note(
            f"{counted(len(files), 'file')} of notes still contain it: {_first_names(list(map(str, files)))}"
        )
    if found.erased is not None and not found.is_empty:
        rows = len(found.rows) + len(found.replaced)
        reports.report_erase(run, found.erased, besides=reports.other_rows(found.done, rows))


def _report(run: Run, found: ForgetReport, *, dry_run: bool) -> None:
    if found.is_empty:
        run.console.note("nothing matches")
        return
    if dry_run:
        run.console.report(f"would forget: {_in_words(found)}")
    elif found.erased is not None:
        run.console.report(f"{_in_words(found)} deleted")
    elif found.done is not None:
        run.console.report(f"{_in_words(found)} forgotten; `om undo {found.done.number}` reverses that")
    else:
        run.console.note("all of it is forgotten already; `--hard` deletes it")
    if found.derived:
        names = _first_names([handle(row.id) for row in found.derived])
        run.console.note(f"derived rows may still contain it (add `--derived`): {names}")
    if found.derived_buffered:
        ahead = counted(len(found.derived_buffered), "row")
        run.console.note(f"{ahead} buffered, derived from it, may still contain it (add `--derived`)")
    if found.sources:
        names = _first_names([kept.key for kept in found.sources])
        run.console.note(f"source messages may still contain it: {names}")


def _first_names(ids: Sequence[str]) -> str:
    """Return ids or paths as text. If there are many, only the first ones and the number of the others."""
    more = len(ids) - _MANY
    return " ".join(ids[:_MANY]) + (f" and {more} more (`--json` lists all)" if more > 0 else "")


def _in_words(found: ForgetReport) -> str:
    rows = len(found.rows) + len(found.replaced)
    messages = sum(kept.message.is_counted for kept in found.messages)
    counts = ((rows, "row"), (messages, "message"), (len(found.titles), "title"))
    parts = [counted(number, noun) for number, noun in counts if number]
    if found.buffered:
        parts.append(f"{counted(len(found.buffered), 'buffered row')}")
    return ", ".join(parts) or (counted(len(found.messages), "uncounted message") if found.messages else "nothing")


def _as_dict(found: ForgetReport) -> dict[str, object]:
    operation = {"operation": found.done.number} if found.done else {}
    return {
        **operation,
        "rows": [full_row(row) for row in found.rows],
        "along": [full_row(row) for row in found.replaced],
        "messages": [message_fields(kept) for kept in found.messages],
        "titles": [each.session for each in found.titles],
        "telling": [full_row(row) for row in found.derived],
        "ahead": [{"session": each.session, "text": each.text} for each in found.buffered],
        "telling_ahead": [{"session": each.session, "text": each.text} for each in found.derived_buffered],
        "sources": [kept.key for kept in found.sources],
    }


# ---- notes

_NOTE_EXAMPLES = """\b
om note "we ship on Friday" --type decision
om note "run make lint first" --type instruction --tag pinned
om note --item "releases are cut on Thursdays" --tag release
om note "it was the cache" --resolves 3f9a1c2e
git log -1 --format=%s | om note -
"""


@with_shared(examples=_NOTE_EXAMPLES)
def note(
    run: Run,
    text: Annotated[str | None, argument(metavar="TEXT", help="Text to remember; `-` is stdin.")] = None,
    *,
    type_: Annotated[
        Type | None,
        option(
            "--type",
            metavar="TYPE",
            help="Type: decision, preference, instruction, …; with --item as in `om items`."
            "  [default: fact, or knowledge with --item]",
        ),
    ] = None,
    item: Annotated[bool, option("--item", help="Write an item: a lasting fact for later sessions.")] = False,
    priority: Annotated[Priority, option("--priority", help="Priority of the note.")] = Priority.MEDIUM,
    tag: Annotated[list[str] | None, option("--tag", metavar="TAG", help="Add this tag. May be repeated.")] = None,
    session: Annotated[str | None, session_option("Session that the note belongs to, instead of the project.")] = None,
    resolves: Annotated[
        list[str] | None,
        option("--resolves", metavar="ID", help="Row that the note resolves. May be repeated.", autocompletion=row_ids),
    ] = None,
) -> None:
    """Write a note to the memory.

    A note belongs to the project of the current directory, or to a session if you name one. With --resolves it belongs
    to the session of the resolved row, unless you name another. The resolved row is hidden; `om undo` restores it and
    hides the note. A note that resolves nothing is not an operation; remove it with `om forget`.

    If the store is locked or its disk is full, the note waits in its spool for the next command that writes to it,
    unless it resolves a row or --strict is given.
    """
    from omcli.operations import note

    if text in (None, "-"):
        text = _read_text(text)
    if run.is_read_only("nothing was written"):
        return
    project, session = run.project, run.session_or_new(session)
    noted = note.note(
        text or "",
        target=_target(run, resolves=bool(resolves)),
        counter=run.counter,
        clock=run.wiring.clock,
        new_id=run.wiring.new_id,
        project=project,
        session=session,
        type_=type_,
        priority=priority,
        tags=tuple(tag or ()),
        is_item=item,
        resolves=tuple(resolves or ()),
    )
    _report_note(run, noted)
    try:
        _print_note(run, noted)
    except (OSError, InputOutput) as error:
        raise InputOutput(
            f"the note was stored but could not be printed: {getattr(error, 'strerror', None) or error}",
            hint="`om log --last 1` shows it",
        ) from None


def _target(run: Run, *, resolves: bool) -> StoreOrSpool:
    from omcli.operations.deps import StoreOrSpool

    # What a note resolves may have changed until it leaves the spool; with `--strict`, the caller tries again.
    spool = None if run.strict or resolves else partial(open_spool, run.wiring)
    return StoreOrSpool(lambda: run.wiring.store, spool)


def _report_note(run: Run, noted: KeptNote) -> None:
    if noted.redactions:
        run.console.note(f"{counted(sum(noted.redactions.values()), 'secret')} redacted")
    if noted.resolved:
        run.console.report(f"{counted(len(noted.resolved), 'row')} resolved; `om undo {noted.operation}` reverses that")
    if noted.spooled_for is not None:
        reports.warn_of_spool(run, noted.spooled_for)


def _print_note(run: Run, noted: KeptNote) -> None:
    if run.json:
        resolved = {"resolved": [each.id for each in noted.resolved]} if noted.resolved else {}
        spooled = {} if noted.spooled_for is None else {"spooled": True}
        told = {"observation": row(noted.observation), "redactions": noted.redactions, **resolved, **spooled}
        run.output.document(told)
    else:
        run.output.row(noted.observation)
    run.output.flush()


def _read_text(asked: str | None) -> str:
    if sys.stdin is None or (asked is None and sys.stdin.isatty()):
        raise BadUsage("no text given", hint="`om note TEXT`, or `om note -` to read it from stdin")
    return content(STDIN).decode("utf-8", "replace")
