"""`om recall`: searching the memory."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from omcli.base.errors import BadUsage, NoInput
from omcli.base.record import replace
from omcli.cli.command import Run, with_shared
from omcli.cli.console import Exit
from omcli.cli.options import LARGEST, RowFilter, StreamOption, argument, option
from omcli.memory.message import message_fields
from omcli.memory.observation import Kind, Priority, Type, handle
from omcli.operations.recall import RecallFilter, mark_used
from omcli.operations.recall import recall as search
from omcli.text.instants import minute

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omcli.memory.message import KeptMessage
    from omcli.memory.observation import LogQuery
    from omcli.operations.recall import RecallResult

_EXAMPLES = """\b
om recall "why did we drop redis"
om recall E1234 -C 2
om recall "how do we deploy" --project . --since 2w --type decision
om recall --queries-file questions.txt --jsonl | jq -c '.results[0].text'
"""


_NOTHING = 1
USUAL = 8
"""Number of results that are printed unless another is asked for."""
_LONGEST_LINE = 200
"""Characters of a neighbouring message that are printed."""


class Answer(NamedTuple):
    query: str
    results: Sequence[RecallResult]


class ResultKind(StrEnum):
    """A kind of result: a kind of row, or a message."""

    OBSERVATION = Kind.OBSERVATION
    REFLECTION = Kind.REFLECTION
    NOTE = Kind.NOTE
    ITEM = Kind.ITEM
    MESSAGE = "message"


@with_shared(RowFilter, examples=_EXAMPLES, without=["counter", "directory", "last"])
def recall(
    run: Run,
    rows: RowFilter,
    query: Annotated[
        str | None, argument(metavar="QUERY", help="Words, a question, or a name such as `src/auth.py` or `E1234`.")
    ] = None,
    *,
    limit: Annotated[int, option("--limit", "-n", at_least=1, metavar="N", help="At most N results.")] = USUAL,
    context: Annotated[
        int, option("--context", "-C", at_least=0, metavar="N", help="Show N messages before and after each result.")
    ] = 0,
    priority: Annotated[
        list[Priority] | None, option("--priority", help="Only rows of this priority. May be repeated.")
    ] = None,
    type_: Annotated[
        list[Type] | None,
        option("--type", metavar="TYPE", help="Only rows of this type: decision, preference, … May be repeated."),
    ] = None,
    kind: Annotated[
        list[ResultKind] | None,
        option("--kind", metavar="KIND", help=f"Only results of this kind: {', '.join(ResultKind)}. May be repeated."),
    ] = None,
    queries_file: Annotated[
        Path | None, option("--queries-file", metavar="FILE", help="Read queries from a file, one per line.")
    ] = None,
    jsonl: StreamOption = False,
) -> None:
    """Search rows and messages, the best result first.

    A result need not contain all words of the query, and word forms may differ. Rare words count most, and words in
    neighbouring messages count too. Results with names and "quoted words" exactly as written come first. Rows are
    printed as by `om log`, messages as ID [DATE TIME] ROLE: LINE, with the line that fits best. If a later result
    contradicts a row, the row names it.

    After the command, -C means --context; to search from another directory, use `om -C DIR recall`. The exit code is 1
    if nothing was found.
    """
    run.check_stream(jsonl=jsonl)
    if (query is None) is (queries_file is None):
        raise BadUsage("no query given (expected a text or `--queries-file FILE`)", hint='`om recall "why redis"`')
    wanted = recall_filter(run, rows, kinds=kind or (), types=type_ or (), priorities=priority or ())
    note_unknown(run, wanted.log)
    limit, context = min(limit, LARGEST), min(context, LARGEST)
    queries = _query_lines(queries_file) if query is None else [query]
    answers = [Answer(text, search(run.wiring.reading, text, wanted, limit=limit, around=context)) for text in queries]
    _print_all(run, answers, from_file=queries_file is not None, jsonl=jsonl, with_context=bool(context))
    if not run.settings.disabled:
        found = [result for answer in answers for result in answer.results]
        mark_used(found, open_store=lambda: run.wiring.store_at_once, clock=run.wiring.clock)
    if not any(answer.results for answer in answers):
        run.console.note("nothing found")
        raise Exit(_NOTHING)


def note_unknown(run: Run, query: LogQuery) -> None:
    """Print a note if nothing is known of the session or project of a query."""
    if query.session is None and query.project is None:
        return
    from omcli.operations.lookup import unknown  # loads much that a search does not need

    if found := unknown(run.wiring.reading, query):
        run.console.note(found)


def _query_lines(file: Path | None) -> list[str]:
    """Return the lines of a file that are not empty. `-` is stdin. Raise NoInput if it cannot be read or has none."""
    try:
        text = sys.stdin.read() if str(file) == "-" else Path(file or "").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise NoInput(f"cannot read {file}: {error.strerror}") from None
    if not (found := [line.strip() for line in text.splitlines() if line.strip()]):
        raise NoInput(f"{file} has no queries", hint="one query per line")
    return found


def recall_filter(
    run: Run,
    rows: RowFilter,
    *,
    kinds: Sequence[ResultKind] = (),
    types: Sequence[Type] = (),
    priorities: Sequence[Priority] = (),
) -> RecallFilter:
    """Return the filter for the options. Types, priorities and tags are those of rows, so they exclude messages."""
    of_rows = tuple(Kind(each) for each in kinds if each is not ResultKind.MESSAGE)
    return RecallFilter(
        log=replace(rows.query(run), kinds=of_rows, types=tuple(types), priorities=tuple(priorities)),
        tags=tuple(rows.tags),
        rows=bool(of_rows) or not kinds,
        messages=not (types or priorities or rows.tags) and (not kinds or ResultKind.MESSAGE in kinds),
    )


# ---- output


def _print_all(run: Run, answers: Sequence[Answer], *, from_file: bool, jsonl: bool, with_context: bool) -> None:
    if run.json:
        documents = [_as_dict(answer) for answer in answers]
        run.output.document({"queries": documents} if from_file else documents[0])
    elif jsonl:
        for each in answers if from_file else ():
            run.output.json_line(_as_dict(each))
        for result in () if from_file else answers[0].results:
            run.output.json_line(result_as_dict(result))
    else:
        for answer in answers:
            if from_file:
                run.output.paragraph(answer.query)
            print_results(run, answer.results, with_context=with_context)


def print_results(run: Run, results: Sequence[RecallResult], *, with_context: bool = False) -> None:
    """Print rows as `om log` does, and messages with their best line."""
    for number, result in enumerate(results):
        if with_context and number:
            run.output.line("--")
        seq = result.message.seq if result.message is not None else 0
        for kept in result.around:
            if kept.seq < seq:
                _print_near(run, kept)
        _print_result(run, result)
        for kept in result.around:
            if kept.seq > seq:
                _print_near(run, kept)


def _print_result(run: Run, result: RecallResult) -> None:
    marked, kept = result.passage.words, result.message
    if result.row is not None:
        later = result.contradicted_by
        remark = f"contradicted by {handle(later)}" if later else ""
        run.output.row(result.row, remark=remark, marked=marked if result.passage.text == result.row.text else ())
    elif kept is not None:
        head = _head(kept)
        shift = len(head) + 1
        spans = [(begins + shift, ends + shift) for begins, ends in marked]
        run.output.entry(kept.key, f"{head} {result.passage.text}", marked=spans)


def _print_near(run: Run, kept: KeptMessage) -> None:
    first = kept.message.text.strip().partition("\n")[0]
    run.output.line(f"  {_head(kept)} {first if len(first) <= _LONGEST_LINE else f'{first[:_LONGEST_LINE]}…'}")


def _head(kept: KeptMessage) -> str:
    """Return `[DATE TIME] SPEAKER:` for a message."""
    said = kept.message
    return f"[{minute(said.at) if said.at else 'undated'}] {said.name or said.role}:"


def _as_dict(answer: Answer) -> dict[str, object]:
    return {
        "query": answer.query,
        "vectors": "off",
        "results": [result_as_dict(result) for result in answer.results],
    }


def result_as_dict(result: RecallResult) -> dict[str, object]:
    """Return a result for JSON: the row or message that it is, its best line, its score, and the words it contains."""
    row, kept = result.row, result.message
    about: dict[str, object] = {}
    if row is not None:
        about |= {"id": row.id, "kind": row.kind, "type": row.type, "priority": row.priority, "at": row.dated}
        about |= {"session": row.session, "project": row.project, "text": row.text}
        about |= {"contradicted_by": result.contradicted_by}
        message_ids = list(row.message_ids)
    elif kept is not None:
        said = kept.message
        about |= {"id": kept.key, "kind": ResultKind.MESSAGE, "role": said.role, "name": said.name, "at": said.at}
        about |= {"session": kept.session, "text": result.passage.text}
        message_ids = [kept.key]
    around = {"context": [message_fields(each) for each in result.around]} if result.around else {}
    return {
        **{name: value for name, value in about.items() if value is not None},
        "message_ids": message_ids,
        "score": round(result.score, 3),
        "words": list(result.words),
        **around,
    }
