"""`om recall`: searching the memory; `om embed`: making the vectors that it searches."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from omcli.base.errors import BadUsage, NoInput, OmError
from omcli.base.record import replace
from omcli.cli.command import Run, with_shared
from omcli.cli.console import Exit, counted, error_as_dict, size
from omcli.cli.options import LARGEST, AgainOption, RowFilter, StreamOption, argument, option
from omcli.memory.message import message_fields
from omcli.memory.observation import Kind, Priority, Type, handle
from omcli.operations.recall import RecallFilter, mark_used
from omcli.operations.recall import recall as search
from omcli.recall.ranking import Query
from omcli.text.clean import one_line
from omcli.text.instants import minute

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from omcli.memory.message import KeptMessage
    from omcli.memory.observation import LogQuery
    from omcli.memory.search import Passage
    from omcli.operations.embed import EmbedDeps, EmbedReport, EmbedStatus, VectorSearch
    from omcli.operations.recall import RecallResult

_EXAMPLES = """\b
om recall "why did we drop redis"
om recall E1234 -C 2
om recall "how do we deploy" --project . --since 2w --type decision
om recall --queries-file questions.txt --jsonl | jq -c '.results[0].text'
"""


_NOTHING = 1
USUAL = 8
"""Maximum number of results, unless another is given."""
_MOST_NAMED = 10
"""Maximum number of lines without words that are named."""
_LONGEST_LINE = 200
"""Maximum number of characters printed of a neighbouring message."""


class Answer(NamedTuple):
    query: str
    results: Sequence[RecallResult]
    vectors: VectorSearch | None


class ResultKind(StrEnum):
    """A kind of result: a kind of row, or a message."""

    OBSERVATION = Kind.OBSERVATION
    REFLECTION = Kind.REFLECTION
    NOTE = Kind.NOTE
    ITEM = Kind.ITEM
    MESSAGE = "message"


@with_shared(RowFilter, examples=_EXAMPLES, without=["counter", "last"])
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
    neighbouring messages count too. Results that lack a name or "quoted words" as written rank lower. Rows are printed
    as by `om log`, messages as ID [DATE TIME] ROLE: LINE, with the line that fits best. The agent's answer (→) is
    printed below a person's message, and the result below a call. A row names a later one that contradicts it.

    With vectors (see `om embed`), other words of the same meaning are found, too. `vector` in --json is `on`, `off` or
    `unavailable`; if vectors are unavailable, only words are searched.

    To search from another directory, use --directory or `om -C DIR recall`. The exit code is 1 if nothing was found.
    """
    run.check_stream(jsonl=jsonl)
    if (query is None) is (queries_file is None):
        raise BadUsage("expected either a query or `--queries-file FILE`", hint='try `om recall "why redis"`')
    wanted = recall_filter(run, rows, kinds=kind or (), types=type_ or (), priorities=priority or ())
    note_unknown(run, wanted.log)
    limit, context = min(limit, LARGEST), min(context, LARGEST)
    queries = _query_lines(queries_file) if query is None else {1: query}
    vectors = run.wiring.vector_search(run.console.warn)
    nearest = vectors.nearest if vectors else None
    store, renew = run.wiring.reading, renew_index_of(run)
    find = partial(search, store, wanted=wanted, limit=limit, around=context, nearest=nearest, renew=renew)
    skipped = _without_words(run, queries_file, queries) if query is None else ()
    answers = [Answer(text, () if number in skipped else find(text), vectors) for number, text in queries.items()]
    _print_all(run, answers, from_file=queries_file is not None, jsonl=jsonl, with_context=bool(context))
    note_fallback(run, vectors)
    if not run.settings.disabled:
        found = [result for answer in answers for result in answer.results]
        mark_used(found, open_store=lambda: run.wiring.store_at_once, clock=run.wiring.clock)
    if not any(answer.results for answer in answers):
        run.console.note("nothing found")
        raise Exit(_NOTHING)


def renew_index_of(run: Run) -> Callable[[], None] | None:
    """Return a function that makes the index of words again and prints a note, or None if the settings disable
    writing.
    """

    def renew() -> None:
        run.wiring.store.index.renew()
        run.console.note("the index of words was damaged and has been rebuilt; nothing is lost")

    return None if run.settings.disabled else renew


def note_fallback(run: Run, vectors: VectorSearch | None) -> None:
    """Print a note if vectors were to be searched but could not be."""
    if vectors is not None and vectors.error is not None:
        error = vectors.error
        run.console.note(f"found by words alone: {error.message}{f' ({error.hint})' if error.hint else ''}")


def note_unknown(run: Run, query: LogQuery) -> None:
    """Print a note if nothing is known of the session, project or author of a query."""
    if query.session is query.project is query.author is None:
        return
    from omcli.operations.lookup import unknown  # loads much that a search does not need

    if found := unknown(run.wiring.reading, query):
        run.console.note(found)


def _without_words(run: Run, file: Path | None, queries: Mapping[int, str]) -> Collection[int]:
    """Return the numbers of the lines that have no words. If there are any, print a note with the first ones."""
    found = [number for number, text in queries.items() if not Query.of(text).words]
    if found:
        named = f"{', '.join(map(str, found[:_MOST_NAMED]))}{', …' if found[_MOST_NAMED:] else ''}"
        run.console.note(f"{file}: {counted(len(found), 'line')} skipped: no words in line {named}")
    return frozenset(found)


def _query_lines(file: Path | None) -> dict[int, str]:
    """Return the lines of a file that are not empty, by number. `-` is stdin. Raise NoInput if there are none, or if it
    cannot be read.
    """
    from omcli.wiring.inputs import STDIN, content

    try:
        read = content(STDIN) if str(file) == STDIN else Path(file or "").read_bytes()
    except OSError as error:
        raise NoInput(f"cannot read {file}: {error.strerror}") from None
    lines = enumerate(read.decode("utf-8", "replace").split("\n"), 1)
    if not (found := {number: line.strip() for number, line in lines if line.strip()}):
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
    """Return the filter for the options. Only rows have types, priorities and tags, so these exclude messages."""
    of_rows = tuple(Kind(each) for each in kinds if each is not ResultKind.MESSAGE)
    return RecallFilter(
        log=replace(rows.query(run), kinds=of_rows, types=tuple(types), priorities=tuple(priorities)),
        tags=tuple(rows.tags),
        rows=bool(of_rows) or not kinds,
        messages=not (types or priorities or rows.tags) and (not kinds or ResultKind.MESSAGE in kinds),
    )


# ---- output


def _print_all(run: Run, answers: Sequence[Answer], *, from_file: bool, jsonl: bool, with_context: bool) -> None:
    run.output.open_pager()
    if run.json:
        run.output.document({"queries": [*map(_as_dict, answers)]} if from_file else _as_dict(answers[0]))
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
    """Print rows as `om log` does, and messages with their best line, neighbours and answer. No result is repeated."""
    printed = set[int]()
    for number, result in enumerate(results):
        seq = result.message.seq if result.message is not None else 0
        if seq in printed:
            continue
        if with_context and number:
            run.output.line("--")
        for kept in result.around:
            if kept.seq < seq:
                _print_near(run, kept)
        _print_result(run, result)
        for kept in result.around:
            if kept.seq > seq:
                _print_near(run, kept)
        answer = result.answer.message if result.answer is not None else None
        if result.answer is not None and answer is not None and answer.seq not in printed:
            _print_message(run, f"  → {answer.key}", answer, result.answer.passage)
        printed.update(kept.seq for kept in (result.message, answer) if kept is not None)


def _print_result(run: Run, result: RecallResult) -> None:
    marked, kept = result.passage.words, result.message
    if result.row is not None:
        later = result.contradicted_by
        remark = f"contradicted by {handle(later)}" if later else ""
        run.output.row(result.row, remark=remark, marked=marked if result.passage.text == result.row.text else ())
    elif kept is not None:
        _print_message(run, kept.key, kept, result.passage)


def _print_message(run: Run, name: str, kept: KeptMessage, passage: Passage) -> None:
    beginning = head(kept)
    shift = len(beginning) + 1
    spans = [(begins + shift, ends + shift) for begins, ends in passage.words]
    run.output.entry(name, f"{beginning} {passage.text}", marked=spans)


def _print_near(run: Run, kept: KeptMessage) -> None:
    first = next(iter(kept.message.text.strip().splitlines()), "")
    run.output.line(f"  {head(kept)} {first if len(first) <= _LONGEST_LINE else f'{first[:_LONGEST_LINE]}…'}")


def head(kept: KeptMessage) -> str:
    """Return `[DATE TIME] SPEAKER:` for a message."""
    said = kept.message
    return f"[{minute(said.at) if said.at else 'undated'}] {one_line(said.name or said.role)}:"


def _as_dict(answer: Answer) -> dict[str, object]:
    return {
        "query": answer.query,
        **vectors_as_dict(answer.vectors),
        "results": [result_as_dict(result) for result in answer.results],
    }


def vectors_as_dict(vectors: VectorSearch | None) -> dict[str, object]:
    """Return the state of vectors for JSON: `off`, `on`, or `unavailable` with the reason."""
    if vectors is None:
        return {"vector": "off"}
    if vectors.error is None:
        return {"vector": "on"}
    return {"vector": "unavailable", "vector_error": error_as_dict(vectors.error)}


def result_as_dict(result: RecallResult) -> dict[str, object]:
    """Return a result for JSON: the row, or the message's best line and answer, its score, and the words found."""
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
    if result.answer is not None and result.answer.message is not None:
        about |= {"answer": message_fields(result.answer.message, text=result.answer.passage.text)}
    around = {"context": [message_fields(each) for each in result.around]} if result.around else {}
    return {
        **{name: value for name, value in about.items() if value is not None},
        "message_ids": message_ids,
        "score": round(result.score, 3),
        "words": list(result.words),
        **around,
    }


# ---- vectors

_EMBED_EXAMPLES = """\b
om embed --status
om embed --limit 500
om embed --watch
OM_EMBEDDINGS_MODEL=ollama/all-minilm om embed
"""
_INTERVAL = "10s"
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600}
_LONGEST_INTERVAL = 86_400.0


@with_shared(examples=_EMBED_EXAMPLES)
def embed(
    run: Run,
    interval: Annotated[
        str | None, argument(metavar="[INTERVAL]", help="Time between rounds of --watch, such as 10s or 5m.")
    ] = None,
    *,
    watch: Annotated[bool, option("--watch", help="Embed new texts until Ctrl-C, every INTERVAL (or 10s).")] = False,
    status: Annotated[bool, option("--status", help="Show how many messages and rows have vectors.")] = False,
    limit: Annotated[
        int | None, option("--limit", "-n", at_least=1, metavar="N", help="Embed at most N messages and rows.")
    ] = None,
    again: AgainOption = False,
) -> None:
    """Make vectors, so that `om recall` also finds texts that say the same in other words.

    The model is chosen by `embeddings.provider` and `embeddings.model`: one at an endpoint with OpenAI's protocol, or
    `local`, from an installed package. Without one, the exit code is 78, and nothing is sent anywhere.

    These are embedded: rows, and what people and agents say, but not tool calls or their results. Rows come first, by
    priority, then messages, the newest first. Of a long text, only the first 2000 characters are used, in two parts.
    The model is given up to 50 texts at a time, and each batch is stored at once, so that nothing is lost or paid twice
    if `om` is interrupted. Texts that are permanently deleted lose their vectors. After a change of the model, all are
    made again. `om tick` and `om consolidate` embed what is new as well.

    If the model fails, it is not called again for a minute, or for five minutes after three failures in a row, except
    with --again. `om usage --by lane` lists the calls.
    """
    seconds = _period(interval, watch=watch)
    if status and (watch or limit is not None):
        raise BadUsage("`--status` excludes `--watch` and `--limit`")
    if watch and (limit is not None or run.json):
        raise BadUsage(f"`--watch` and `{'--json' if run.json else '--limit'}` exclude each other")
    run.apply_options({"provider.longest_wait": 0 if again else None})
    if status:
        _print_status(run)
    elif run.is_read_only("nothing is embedded"):
        return
    elif watch:
        _watch(run, seconds)
    else:
        _embed(run, limit)


def _period(interval: str | None, *, watch: bool) -> float:
    """Return an interval in seconds. Raise BadUsage if it is not valid, or is given without `watch`."""
    if interval is not None and not watch:
        raise BadUsage(f"`{interval}` needs `--watch`", hint="`om embed --watch 10s`")
    text = (interval or _INTERVAL).strip()
    unit = text[-1:] if text[-1:] in _UNITS else ""
    try:
        seconds = float(text.removesuffix(unit)) * _UNITS[unit]
    except ValueError:
        seconds = -1.0
    if not 0.05 <= seconds <= _LONGEST_INTERVAL:
        raise BadUsage(f"`{interval}` is not a valid interval (expected such as 10s or 5m)")
    return seconds


def _embed(run: Run, limit: int | None) -> None:
    from omcli.operations.embed import EmbedReport, name_of
    from omcli.operations.embed import embed as make_vectors

    embedder = run.wiring.embedder(warn=run.console.warn)
    latest: EmbedReport | None = None
    failed: OmError | None = None

    def progress(report: EmbedReport) -> None:
        nonlocal latest
        latest = report
        run.console.progress(_in_words(report))

    try:
        latest = make_vectors(run.deps_or_empty(), embedder, most=limit, progress=progress)
    except OmError as error:
        failed = error
    found = latest or EmbedReport()
    if run.json and (latest is not None or failed is None):
        counts = {"embedded": found.places, "texts": found.texts, "calls": found.calls, "left": found.left}
        run.output.document({"model": name_of(embedder), **counts})
    elif found.places:
        run.console.report(_in_words(found))
    elif failed is None:
        run.console.note("nothing to embed")
    if failed is not None:
        run.console.error(failed)
        raise Exit(failed.exit_code)


def _in_words(report: EmbedReport) -> str:
    texts = f" ({counted(report.texts, 'text')})" if report.texts else ""
    places = "1 message or row" if report.places == 1 else f"{report.places} messages and rows"
    return f"{places} embedded{texts}, {report.left} left"


def _watch(run: Run, seconds: float) -> None:
    """Embed new texts until Ctrl-C. Each round opens the store again, because it may have been moved or restored."""
    from contextlib import closing, contextmanager

    from omcli.operations.embed import EmbedDeps, watch

    run.wiring.embedder()  # raises what no later round can mend

    @contextmanager
    def opened() -> Iterator[EmbedDeps]:
        with closing(run.new_wiring()) as wiring:
            deps = run.deps(wiring, open_store=lambda: wiring.store_or_empty, wait=0.0)
            yield EmbedDeps(deps=deps, embedder=wiring.embedder(warn=run.console.warn))

    for found in watch(
        opened,
        clock=run.wiring.clock,
        interval=seconds,
        progress=lambda report: run.console.progress(_in_words(report)),
    ):
        if isinstance(found, OmError):
            run.console.error(found)
        else:
            run.console.report(_in_words(found))


def _print_status(run: Run) -> None:
    from omcli.operations.embed import status

    if not run.settings.embeddings.is_set:
        if run.json:
            run.output.document({"model": None})
        run.console.note("no model for vectors is chosen; `embeddings.provider` chooses one: om-config(5)")
        return
    found = status(run.wiring.reading, run.wiring.reading.ledger, run.wiring.embedder(), clock=run.wiring.clock)
    if run.json:
        run.output.document(_status_as_dict(found))
        return
    vectors = found.vectors
    run.output.line(f"model     {found.name}, {vectors.dimensions or 'unknown'} dimensions")
    run.output.line(f"messages  {vectors.messages} embedded, {vectors.missing_messages} left")
    run.output.line(f"rows      {vectors.rows} embedded, {vectors.missing_rows} left")
    run.output.line(f"size      {size(vectors.size)}")
    if found.error:
        until = f"; called again at {minute(found.until)}" if found.until else ""
        run.output.line(f"failed    {counted(found.failures, 'time')}, last at {found.failed_at}: {found.error}{until}")


def _status_as_dict(found: EmbedStatus) -> dict[str, object]:
    vectors = found.vectors
    failed = {"failures": found.failures, "failed_at": found.failed_at, "error": found.error, "until": found.until}
    return {
        "model": found.name,
        "dimensions": vectors.dimensions,
        "messages": vectors.messages,
        "rows": vectors.rows,
        "missing_messages": vectors.missing_messages,
        "missing_rows": vectors.missing_rows,
        "bytes": vectors.size,
        **{name: value for name, value in failed.items() if value},
    }
