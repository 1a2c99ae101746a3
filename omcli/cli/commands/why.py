"""`om why` and `om trace`: where a change or a rule comes from, and where a text was lost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from omcli.base import lazily
from omcli.cli.command import Run, with_shared
from omcli.cli.commands.recall import note_unknown
from omcli.cli.console import Exit, counted
from omcli.cli.options import LARGEST, RowFilter, argument, option, session_option, tokens_option
from omcli.cli.output import row_line, state
from omcli.cli.reports import has_authors, operation_as_dict
from omcli.memory.message import UNLIMITED, KeptMessage, message_fields
from omcli.memory.observation import Observation, full_row, handle
from omcli.memory.search import Passage
from omcli.memory.session import author_fields
from omcli.operations import lookup
from omcli.operations.context import Place, context
from omcli.operations.trace import BatchTrace, LostAt, PackTrace, RowTrace, TextTrace
from omcli.operations.trace import trace as traced
from omcli.operations.why import FileAnswer, FileReason, FileTarget, RuleReason, Standing, why_file, why_rule
from omcli.pack.budget import Tier
from omcli.pack.layouts import PackFormat
from omcli.settings.settings import expanded
from omcli.text.clean import one_line, single_line
from omcli.text.instants import minute

if TYPE_CHECKING:
    from omcli.memory.session import Session
    from omcli.observers.rules.files import FileLine
    from omcli.pack.context_pack import ContextPack

_WHY_EXAMPLES = """\b
om why src/auth.py
om why src/auth.py:120
om why "make lint" --json | jq -r '.rules[0].said.text'
"""
_TRACE_EXAMPLES = """\b
om trace E1234
om trace "instead of redis" --session ID --budget 4000
om trace E1234 --json | jq -r .lost_at
"""

_NOTHING = 1
_NEIGHBOURS = 5
"""Number of lines to read on either side of a line, in case it says too little by itself."""
_LONGEST_TEXT = 200
"""Maximum number of characters of a message's line that are printed."""
_BEFORE = 40
"""Characters of a long line that are printed before the first word that was searched for."""
_WITH_LINE = lazily(r"(.+?):([0-9]{1,9})(?::[0-9]{1,9})?")

LimitOption = Annotated[int, option("--limit", "-n", at_least=1, metavar="N", help="At most N of each kind.")]


@with_shared(RowFilter, examples=_WHY_EXAMPLES, without=["counter", "last", "tag", "author", "all_"])
def why(
    run: Run,
    rows: RowFilter,
    target: Annotated[
        str, argument(metavar="TARGET", help="A file, a line of it as FILE:LINE, or the words of a rule.")
    ],
    *,
    limit: LimitOption = 8,
) -> None:
    """Show which session, request and decision changed a file or set a rule.

    If TARGET is a file, its remembered edits are printed, the newest first. Each comes with the person's last request
    before it (and the agent's proposal, if the request says little), with the decisions and rules since that request,
    and with earlier ones that name the file or share words with the edit. If no edit of that very file is remembered,
    edits of files whose path ends with TARGET are printed.

    With FILE:LINE, the line is read from disk, and only the edit that wrote it is printed, or else the edit that wrote
    the most similar line. If no line is similar, all edits are printed.

    If no edit of such a file is remembered, TARGET is taken as the text of a rule. The decisions, instructions,
    preferences and corrections with more than half of its words are printed, each with the message that set the rule,
    and the row that replaced or repeats it.

    Rows are printed as by `om log`, messages as ID [DATE TIME] ROLE: LINE. The exit code is 1 if nothing was found.
    """
    run.output.open_pager()
    store, query = run.wiring.reading, rows.query(run)
    note_unknown(run, query)
    limit = min(limit, LARGEST)
    file = _file_target(run, target)
    answer = why_file(store, file, query, limit=limit)
    rules = () if answer.count else why_rule(store, target, query, limit=limit)
    handles = lookup.session_handles(store.sessions.ids())
    if run.json:
        run.output.document(
            {"target": target, **_line_as_dict(file, answer)}
            | {"edits": [_file_reason_as_dict(each) for each in answer.reasons]}
            | {"rules": [_rule_reason_as_dict(each) for each in rules]}
        )
    for reason in () if run.json else answer.reasons:
        _print_file_reason(run, reason, answer, handles, number=file.number)
    for rule in () if run.json else rules:
        _print_rule_reason(run, rule, handles)
    _note_line(run, file, answer)
    if not (answer.reasons or rules):
        run.console.note("nothing found")
        raise Exit(_NOTHING)


@with_shared(
    RowFilter, examples=_TRACE_EXAMPLES, without=["counter", "session", "scope", "last", "tag", "author", "all_"]
)
def trace(
    run: Run,
    rows: RowFilter,
    text: Annotated[str, argument(metavar="TEXT", help='Words, a name such as `E1234`, or a "quotation".')],
    *,
    session: Annotated[
        str | None, session_option("Session whose pack is checked. Default: the last one with such a row or message.")
    ] = None,
    budget: Annotated[
        int | None, tokens_option("--budget", "Maximum number of tokens in the pack.  [env: OM_CONTEXT_BUDGET]")
    ] = None,
    limit: LimitOption = 8,
) -> None:
    """Follow a text from messages through rows into a pack, and show where it was lost.

    A message or row has the text if it contains all words of TEXT, in any form, and its names and quotations as
    written. A row that cites such a message needs only three quarters of the words. There are four stages: observing
    makes rows from messages (if no row has the text, the batches that left it out are printed), reflecting folds rows
    into fewer, editing hides rows (by pruning, or by a note that resolves them), and packing chooses the rows and
    messages that `om context` prints.

    The last line is `not lost` if the pack has the text, otherwise `lost at: STAGE`. The exit code is 1 if no message
    and no row has the text.
    """
    run.output.open_pager()
    store, query = run.wiring.reading, rows.query(run)
    note_unknown(run, query)
    limit = min(limit, LARGEST)
    found = traced(
        store,
        text,
        query,
        place=Place(
            project=run.project,
            above=run.folders,
            session=run.session(session, may_be_new=True),
            is_everywhere=run.settings.scope == "global",
        ),
        pack_of=partial(_pack, run, budget),
    )
    if run.json:
        run.output.document(_trace_as_dict(found, limit))
    elif found.is_found:
        _print_trace(run, found, limit=limit)
    if not found.is_found:
        run.console.note("nothing found")
        raise Exit(_NOTHING)


# ---- why


def _file_target(run: Run, target: str) -> FileTarget:
    """Return the file that a target names, with the line that it asks for."""
    named = _WITH_LINE.fullmatch(target)
    path, number = (named[1], int(named[2])) if named else (target, None)
    full = os.path.normpath(Path(run.project) / expanded(path))
    line = None if number is None else _read_line(Path(full), number)
    return FileTarget(path=path, full=full, number=number, line=line)


def _read_line(file: Path, number: int) -> FileLine | None:
    """Return a line with its neighbours, or None if there is no such line or file, or the file cannot be read."""
    from omcli.observers.rules.files import FileLine

    start = max(0, number - 1 - _NEIGHBOURS)
    try:
        if not file.is_file():
            return None
        with file.open(encoding="utf-8", errors="replace") as opened:
            lines = [line.rstrip("\n") for line in islice(opened, start, number + _NEIGHBOURS)]
    except (OSError, ValueError):
        return None
    place = number - 1 - start
    return FileLine(lines=tuple(lines), place=place) if 0 <= place < len(lines) else None


def _note_line(run: Run, file: FileTarget, answer: FileAnswer) -> None:
    """Print a note if the line is unknown, if no edit wrote it, or if other edits are not shown."""
    if file.number is None or not answer.count:
        return
    if file.line is None:
        run.console.note(f"line {file.number} is unknown: {file.path} has no such line here, or cannot be read")
    elif answer.match is None:
        text = f" `{_cut(file.line.text)}`" if file.line.text.strip() else ", which is empty"
        run.console.note(f"no remembered edit wrote line {file.number}{text}")
    elif answer.count > 1:
        run.console.note(f"{counted(answer.count, 'edit')} remembered; `om why {file.path}` shows all")


def _print_file_reason(
    run: Run, reason: FileReason, answer: FileAnswer, handles: Mapping[str, str], *, number: int | None
) -> None:
    if reason.row is not None:
        run.output.row(reason.row)
    else:
        last = reason.edits[-1]
        run.output.entry(single_line(last.key), single_line(f"{_head(last)} {reason.path} (not observed yet)"))
    if answer.match is not None and (edit := answer.edit) is not None:
        how = "" if answer.match.is_exact else ", most like this"
        _print_field(run, f"line {number}", f"{edit.key} {_head(edit)} {_cut(answer.match.text)}{how}")
    _print_session(run, reason.session, handles)
    if reason.asked.answers is not None:
        _print_field(run, "proposed", _entry(reason.asked.answers))
    if reason.asked.said is not None:
        _print_field(run, "asked", _entry(reason.asked.said))
    for rule in reason.decided:
        _print_field(run, "decided", row_line(rule.row))
        _print_replacement(run, rule)


def _print_rule_reason(run: Run, rule: RuleReason, handles: Mapping[str, str]) -> None:
    run.output.row(rule.rule.row)
    if rule.said is not None:
        _print_field(run, "said", _message_line(rule.said, rule.passage))
    _print_session(run, rule.session, handles)
    reason = f" ({rule.rule.row.reason})" if rule.rule.row.reason else ""
    _print_field(run, "state", f"{rule.rule.state}{reason}")
    _print_replacement(run, rule.rule)


def _print_replacement(run: Run, rule: Standing) -> None:
    if rule.successor is not None:
        _print_field(run, "now" if rule.is_kept else "replaced by", row_line(rule.successor))


def _print_session(run: Run, session: Session | None, handles: Mapping[str, str]) -> None:
    if session is not None:
        by = f"by {session.author}" if session.author and has_authors(run) else None
        about = (handles.get(session.id, session.id), session.project, session.title, by)
        _print_field(run, "session", " · ".join(part for part in about if part))


def _print_field(run: Run, name: str, text: str) -> None:
    run.output.fields([(f"  {name}:", single_line(text))], width=14, gap=1)


def _entry(said: Observation | KeptMessage) -> str:
    """Return a row as `om log` prints it, or a message as ID [DATE TIME] ROLE: LINE."""
    if isinstance(said, Observation):
        return row_line(said)
    return _message_line(said, Passage(text=said.message.text.strip().partition("\n")[0]))


def _message_line(kept: KeptMessage, passage: Passage) -> str:
    """Return a message as ID [DATE TIME] ROLE: LINE."""
    return f"{kept.key} {_head(kept)} {_passage(passage)}"


def _head(kept: KeptMessage) -> str:
    """Return `[DATE TIME] SPEAKER:` for a message. The speaker of a call is its tool."""
    said = kept.message
    return f"[{minute(said.at) if said.at else 'undated'}] {said.name or said.tool or said.role}:"


def _cut(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


def _passage(passage: Passage) -> str:
    """Return a line or, if it is long, the part that begins shortly before the first word that was searched for."""
    first = passage.words[0][0] if passage.words else 0
    if len(passage.text) <= _LONGEST_TEXT or first < _LONGEST_TEXT // 2:
        return _cut(passage.text)
    return f"…{_cut(passage.text[min(first - _BEFORE, len(passage.text) - _LONGEST_TEXT) :])}"


def _line_as_dict(file: FileTarget, answer: FileAnswer) -> dict[str, object]:
    if file.number is None or not answer.count:
        return {}
    about: dict[str, object] = {"number": file.number}
    if file.line is not None:
        about |= {"text": file.line.text}
    if (match := answer.match) is not None and answer.edit is not None:
        about |= {"edit": answer.edit.key, "written": match.text, "exact": match.is_exact}
    return {"line": about}


def _file_reason_as_dict(reason: FileReason) -> dict[str, object]:
    asked, answers = reason.asked.said, reason.asked.answers
    found: dict[str, object] = {
        "path": reason.path,
        "row": full_row(reason.row) if reason.row else None,
        "message_ids": [kept.key for kept in reason.edits],
        "session": _session_as_dict(reason.session),
        "asked": full_row(asked) if isinstance(asked, Observation) else message_fields(asked) if asked else None,
        "proposed": message_fields(answers) if answers else None,
        "decided": [_standing_as_dict(rule) for rule in reason.decided],
    }
    return {name: value for name, value in found.items() if value is not None}


def _rule_reason_as_dict(rule: RuleReason) -> dict[str, object]:
    said = {"said": message_fields(rule.said) | {"line": rule.passage.text}} if rule.said else {}
    session = {"session": _session_as_dict(rule.session)} if rule.session else {}
    return {**_standing_as_dict(rule.rule), **said, **session}


def _standing_as_dict(rule: Standing) -> dict[str, object]:
    by = {"now" if rule.is_kept else "replaced_by": full_row(rule.successor)} if rule.successor else {}
    return {"row": full_row(rule.row), "state": rule.state, **by}


def _session_as_dict(session: Session | None) -> dict[str, object] | None:
    if session is None:
        return None
    about = {"id": session.id, "project": session.project, "title": session.title, **author_fields(session.author)}
    return {name: value for name, value in about.items() if value is not None}


# ---- trace


def _pack(run: Run, budget: int | None, place: Place) -> ContextPack:
    """Return the pack that `om context` prints."""
    if run.settings.context.block:
        run.console.note("`om context` prints the working-memory block (context.block); this is about the pack")
    total = budget if budget is not None else run.settings.context.budget
    return context(
        run.wiring.reading,
        place,
        budgets=run.wiring.budgets({**dict.fromkeys(Tier), "total": total}),
        counter=run.counter,
        now=run.wiring.clock.now(),
        to=PackFormat.TEXT,
        notation=run.notation(None),
        choice=run.wiring.choice,
        eviction=run.wiring.eviction,
        rules=lambda: run.deps(open_store=lambda: run.wiring.reading),
    ).pack


def _print_trace(run: Run, found: TextTrace, *, limit: int) -> None:
    sessions = len({each.kept.session for each in found.messages})
    pending = sum(each.is_pending for each in found.messages)
    waiting = f", {pending} not observed yet" if pending else ""
    held = f"{counted(len(found.messages), 'message')} in {counted(sessions, 'session')}{waiting}"
    lines = (_message_line(each.kept, each.passage) for each in found.messages[-limit:])
    _print_part(run, "messages", held if found.messages else "none", lines)
    _print_part(run, LostAt.OBSERVING, _says(len(found.rows)), _observed(found, limit))
    _print_part(run, LostAt.REFLECTING, _folded(found), _reflected(found, limit))
    if found.packed is not None:
        handles = lookup.session_handles(run.wiring.reading.sessions.ids())
        _print_part(run, LostAt.PACKING, _summary(found.packed, handles), _packed(found.packed, limit))
    run.output.line(f"lost at: {found.lost_at}" if found.lost_at else "not lost")


def _print_part(run: Run, name: str, text: str, lines: Iterable[str]) -> None:
    run.output.fields([(f"{name}:", text)], width=11, gap=1)
    for line in lines:
        run.output.fields([("", single_line(line))], width=1, gap=1)


def _says(rows: int) -> str:
    return f"{counted(rows, 'row')} {'says' if rows == 1 else 'say'} it" if rows else "no row says it"


def _folded(found: TextTrace) -> str:
    if found.folded:
        return _says(len(found.folded))
    return "no reflection or item says it" if found.hidden else "nothing was folded or hidden"


def _observed(found: TextTrace, limit: int) -> Iterator[str]:
    yield from (row_line(each.row) for each in found.rows[-limit:])
    for batch in found.left_out[-limit:]:
        yield (
            f"left out by the batch of {counted(batch.messages, 'message')} from {batch.first} to {batch.last},"
            f" which has {counted(batch.rows, 'row')}"
        )
    yield from (f"made of it instead: {row_line(row)}" for row in found.instead[-limit:])


def _reflected(found: TextTrace, limit: int) -> Iterator[str]:
    """Yield the reflections and items that say the text, then the outcome (`_outcome`) of each hidden row that does."""
    yield from (row_line(each.row) for each in found.folded[-limit:])
    for each in found.hidden[-limit:]:
        yield from _outcome(each)


def _outcome(traced: RowTrace) -> Iterator[str]:
    """Yield the rows that a hidden row was made into or replaced by, or the reason why it was dropped."""
    done = traced.history.hidden_by
    by = f" by {done.verb} {done.number}" if done else ""
    reason = f" ({traced.row.reason})" if traced.row.reason else ""
    fate = f"{handle(traced.row.id)} {state(traced.row)}{by}{reason}"
    if not traced.rows_made:
        yield fate
    for row in traced.rows_made:
        yield f"{fate}, now {row_line(row)} [{'says it' if row.id in traced.said_by else 'does not say it'}]"


def _summary(found: PackTrace, handles: Mapping[str, str]) -> str:
    pack = found.pack
    has_it = "has it" if found.is_printed else "does not have it"
    session = f"session {handles.get(pack.session, pack.session)}" if pack.session else "no session"
    of_budget = f" of {pack.budgets.total:,}" if pack.budgets.total < UNLIMITED else ""
    return f"the pack of {session} {has_it} ({pack.total:,}{of_budget} tokens)"


def _packed(found: PackTrace, limit: int) -> Iterator[str]:
    pack = found.pack
    cross = {row.id for row in pack.cross}
    names = {
        Tier.CROSS: [handle(row.id) for row in found.rows if row.id in cross],
        Tier.SESSION: [handle(row.id) for row in found.rows if row.id not in cross],
        Tier.TAIL: [kept.key for kept in found.messages],
    }
    yield from (f"in tier {tier}: {' '.join(some[-limit:])}" for tier, some in names.items() if some)
    chosen = {Tier.CROSS: pack.cross, Tier.SESSION: pack.observations}
    for tier in () if found.is_printed else (Tier.CROSS, Tier.SESSION, None):
        if missing := [handle(row.id) for row, place in found.missing if place is tier]:
            of_tier = f"not among the {counted(len(chosen[tier]), 'row')} of tier {tier}" if tier else ""
            yield f"{of_tier or 'belongs in no tier of this pack'}: {' '.join(missing[-limit:])}"


def _trace_as_dict(found: TextTrace, limit: int) -> dict[str, object]:
    """Return a trace for JSON. Messages, batches and rows are the newest `limit`; `count` says how many there are."""
    counts = Counter(each.kept.session for each in found.messages)
    pending = Counter(each.kept.session for each in found.messages if each.is_pending)
    rows = {"observations": found.rows, "reflections": found.folded}
    return {
        "text": found.query,
        "sessions": [{"id": name, "messages": count, "pending": pending[name]} for name, count in counts.items()],
        "count": {"messages": len(found.messages), **{name: len(some) for name, some in rows.items()}},
        "messages": [
            message_fields(each.kept) | {"line": each.passage.text, "pending": each.is_pending}
            for each in found.messages[-limit:]
        ],
        "left_out": [_batch_as_dict(batch) for batch in found.left_out[-limit:]],
        "instead": [full_row(row) for row in found.instead[-limit:]],
        **{name: [_row_trace_as_dict(each) for each in some[-limit:]] for name, some in rows.items()},
        "pack": _pack_as_dict(found.packed) if found.packed else None,
        "lost_at": found.lost_at,
    }


def _batch_as_dict(batch: BatchTrace) -> dict[str, object]:
    return {
        "session": batch.session,
        "first": batch.first,
        "last": batch.last,
        "messages": batch.messages,
        "rows": batch.rows,
    }


def _row_trace_as_dict(traced: RowTrace) -> dict[str, object]:
    made = [full_row(row) | {"says_it": row.id in traced.said_by} for row in traced.rows_made]
    by = {"hidden_by": operation_as_dict(traced.history.hidden_by)} if traced.history.hidden_by else {}
    return {**full_row(traced.row), "state": state(traced.row), **by, **({"made_into": made} if made else {})}


def _pack_as_dict(found: PackTrace) -> dict[str, object]:
    pack = found.pack
    return {
        "session": pack.session,
        "budget": pack.budgets.total,
        "tokens": pack.total,
        "printed": found.is_printed,
        "rows": [row.id for row in found.rows],
        "messages": [kept.key for kept in found.messages],
        "missing": [{"id": row.id, "tier": tier} for row, tier in found.missing],
    }
