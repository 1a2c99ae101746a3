"""`om sessions` and `om status`: contents of the store."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage, OmError
from omcli.base.record import fields_of, record
from omcli.cli.background import last_worker
from omcli.cli.command import Run, with_shared
from omcli.cli.console import counted, size
from omcli.cli.options import (
    AuthorOption,
    SinceOption,
    StreamOption,
    UntilOption,
    is_within,
    last_option,
    option,
    project_option,
    project_path,
    within_limit,
)
from omcli.cli.reports import dollars, has_authors
from omcli.memory.observation import Kind
from omcli.memory.session import author_fields
from omcli.operations import lookup, sizes
from omcli.operations.clock import period
from omcli.text.clean import one_line
from omcli.text.instants import minute

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omcli.clients.log import HookRun
    from omcli.memory.ports import Sessions
    from omcli.memory.session import SessionSummary
    from omcli.operations.sizes import StoreCounts
    from omcli.sqlite.spool import SpoolState
    from omcli.workers import WorkerRun

_SESSIONS_EXAMPLES = """\b
om sessions -n 10
om sessions --since 7d --sort messages
om sessions --jsonl | jq -r 'select(.pending > 0) | .id'
"""

_LONGEST_TITLE = 60
_LONGEST_PROJECT = 14


class SessionOrder(StrEnum):
    """Order of sessions: times and numbers descending, except for the earliest message."""

    LAST = "last"
    FIRST = "first"
    MESSAGES = "messages"
    ROWS = "rows"
    PENDING = "pending"
    PROJECT = "project"

    def key(self, summary: SessionSummary) -> str | int:
        """Return the sort key of a session. Sessions with the same key keep their order, the latest first."""
        if self is SessionOrder.LAST:
            return 0
        if self is SessionOrder.FIRST:
            return summary.first_at or summary.seen_at
        if self is SessionOrder.PROJECT:
            return summary.session.project or ""
        return -{"messages": summary.messages, "rows": summary.observations, "pending": summary.pending}[self]


@with_shared(examples=_SESSIONS_EXAMPLES, without=["counter"])
def sessions(
    run: Run,
    *,
    project: Annotated[str | None, project_option()] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    author: AuthorOption = None,
    last: Annotated[int | None, last_option("At most N sessions, from the top of the list.")] = None,
    sort: Annotated[
        SessionOrder,
        option(
            "--sort",
            help="Order: by latest or earliest message, number of messages, rows or pending messages, or project.",
        ),
    ] = SessionOrder.LAST,
    jsonl: StreamOption = False,
) -> None:
    """List sessions, the one with the latest message first and empty ones last.

    The first column is a handle: the first 8 characters of the session's id, or more if another id begins with the same
    ones. Every --session accepts a handle, the whole id (printed by --json), any unique beginning of at least 4
    characters, or `last`, the session with the latest message. Commands that store messages or notes accept a beginning
    only if it is a handle, or at least 8 digits of a UUID; any other text is a whole id, perhaps of a new session. A
    session without a title is listed with its first prompt. The column BY, with who first stored the session, is
    printed if several people have written to the store.
    """
    run.output.open_pager()
    run.check_stream(jsonl=jsonl)
    begins, ends = period(since, until, now=run.wiring.clock.now())
    is_whole = bool(begins or ends or author) or sort is not SessionOrder.LAST
    store = run.wiring.reading.sessions
    listed = store.summaries(project=project_path(project), last=None if is_whole else within_limit(last))
    found = [each for each in listed if is_within(each.last_at or each.seen_at, begins, ends)]
    if author is not None:
        found = [each for each in found if each.session.author and each.session.author.name == author]
    rows = [_ListedSession.of(each, store) for each in sorted(found, key=sort.key)[:last]]
    handles = lookup.session_handles(store.ids()) if rows else {}
    if run.json:
        run.output.document({"sessions": [_session_as_dict(each, handles) for each in rows]})
    elif jsonl:
        for each in rows:
            run.output.json_line(_session_as_dict(each, handles))
    elif rows:
        _print_table(run, rows, handles)
    elif author is not None:
        run.console.note(f"no sessions by {author}; `om sessions` lists all")
    elif project is not None:
        run.console.note(f"no sessions of project {project_path(project)}; `om sessions` lists all")
    elif last != 0:
        run.console.note("no sessions yet; `om observe FILE` adds one")


@record
class _ListedSession:
    """A session and, if it has no title, the beginning of its first prompt."""

    summary: SessionSummary
    prompt: str | None

    @classmethod
    def of(cls, summary: SessionSummary, store: Sessions) -> _ListedSession:
        return cls(summary=summary, prompt=None if summary.session.title else store.prompt(summary.session.id))


def _print_table(run: Run, rows: Sequence[_ListedSession], handles: Mapping[str, str]) -> None:
    """Print one line per session. The pending messages have a column only if there are any."""
    columns = {
        "SESSION": [handles[each.summary.session.id] for each in rows],
        "LAST": [minute(each.summary.last_at or each.summary.seen_at) for each in rows],
        "MESSAGES": [str(each.summary.messages) for each in rows],
        "ROWS": [str(each.summary.observations) for each in rows],
        "PENDING": [str(each.summary.pending) for each in rows],
        "BY": [str(each.summary.session.author or "-") for each in rows],
        "PROJECT": [_cut(_folder(each.summary.session.project), _LONGEST_PROJECT) for each in rows],
        "TITLE": [_cut(one_line(each.summary.session.title or each.prompt or ""), _LONGEST_TITLE) for each in rows],
    }
    if set(columns["PENDING"]) == {"0"}:
        del columns["PENDING"]
    if not has_authors(run):
        del columns["BY"]
    run.output.table(list(columns), list(zip(*columns.values(), strict=True)), cut="TITLE")


def _folder(project: str | None) -> str:
    """Return the last part of a path with slashes or backslashes, or `-` without a path."""
    return re.split(r"[/\\]", project.rstrip("/\\"))[-1] or project if project else "-"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _session_as_dict(listed: _ListedSession, handles: Mapping[str, str]) -> dict[str, object]:
    summary = listed.summary
    session = summary.session
    columns = {
        "id": session.id,
        "handle": handles[session.id],
        "agent": session.agent,
        "project": session.project,
        "branch": session.branch,
        "title": session.title,
        "prompt": listed.prompt,
        "model": session.model,
        "parent": session.parent,
        "messages": summary.messages,
        "observations": summary.observations,
        "pending": summary.pending,
        "first_at": summary.first_at,
        "last_at": summary.last_at,
        "seen_at": summary.seen_at,
        **author_fields(session.author),
    }
    return {name: value for name, value in columns.items() if value is not None}


_STATUS_EXAMPLES = """\b
om status
om status --line
om status --counter chars-4 --json | jq .message_tokens
"""


@with_shared(examples=_STATUS_EXAMPLES)
def status(
    run: Run,
    *,
    line: Annotated[
        bool,
        option(
            "--line",
            help="Print one line for a status bar: waiting messages, open errors, use of the limits of models.",
        ),
    ] = False,
) -> None:
    """Show the store, its contents, and pending work.

    --line is quick, waits for no lock, and exits with 0 whatever is wrong with the store. It counts all messages that
    wait, also those that `pending` does not count, such as interruptions. The line is `up to date` if there is nothing
    to tell, `memory unavailable` if the store cannot be read, and empty if there is none.
    """
    if line:
        _print_line(run)
        return
    from omcli.sqlite.spool import state_of
    from omcli.wiring.policies import store_version

    run.is_read_only("nothing new is remembered")
    numbers = sizes.status(run.wiring.reading, run.counter)
    log, ran = last_worker(run)
    spooled = state_of(run.wiring.spool_path)
    if run.json:
        worker = {"log": str(log), "last": _worker(ran)} if ran else {}
        waiting = [fields_of(each) for each in run.wiring.waiting_models()]
        hooks = [_hook_as_dict(*each) for each in _hooks()]
        spool = {"spool": _spool_as_dict(spooled)} if spooled else {}
        used = [fields_of(each) for each in _usage(run)]
        told = {"waiting": waiting, **spool, "background": worker, "hooks": hooks, "usage": used}
        run.output.document({**_status_as_dict(run, numbers), **told})
        return
    rows = [
        ("store", f"{run.settings.db}{' (encrypted)' if run.wiring.reading.key else ''}"),
        ("size", _size(run.wiring.store_size)),
        ("schema", str(store_version(run.settings))),
        ("sessions", str(numbers.sessions)),
        ("messages", f"{numbers.messages} ({numbers.message_tokens} tokens by {numbers.counter})"),
        ("observations", f"{numbers.observations} ({numbers.observation_tokens} tokens by {numbers.counter})"),
        ("hidden", str(numbers.hidden)),
        ("pending", _pending(numbers)),
        ("observer", _observer(run)),
        ("reflector", run.wiring.model_names[1]),
    ]
    for error in numbers.errors:
        of = error.session or "all sessions"
        rows.append(("last error", f"{error.at} {error.lane} of {of}: {error.error}"))
    rows += [("waiting", f"{each.lane}: {each.reason}") for each in run.wiring.waiting_models()]
    if spooled:
        rows.append(("spool", spooled.in_words))
    if ran:
        rows.append(("background", f"{log}: {ran.at} {_worker_result(ran)}"))
    rows += [("hooks", _hook_result(*each)) for each in _hooks()]
    run.output.fields(rows)
    run.output.shares([(each.name, each.in_words, each.share) for each in _usage(run)])


@record
class _Usage:
    """The used part of a limit, at which work becomes due, models are no longer called, or a warning is printed."""

    name: str
    used: float
    most: float
    unit: str
    """Unit of `used` and `most`: `tokens` or `usd`."""
    of: str
    """The session, or the period."""

    @property
    def share(self) -> float:
        return self.used / self.most if self.most else 1.0

    @property
    def in_words(self) -> str:
        if self.unit == "usd":
            return f"{dollars(self.used)} of {dollars(self.most)} {self.of}"
        return f"{self.used:.0f} of {self.most:.0f} tokens {self.of}"


def _usage(run: Run) -> Iterator[_Usage]:
    """Yield the tokens of the last session's pending messages and of its observations, if a number of tokens decides
    when these are observed or folded, and the use of each limit of models.
    """
    from omcli.operations.context import last_session

    store, said = run.wiring.reading, run.settings
    if (last := last_session(store)) is not None:
        of = "in the last session"
        if said.observe.trigger == "tokens" and run.wiring.model_names[0] != "rules":
            waits = sum(store.batches.pending(last.id).tokens.values())
            yield _Usage(name="to observe", used=waits, most=said.observe.tokens, unit="tokens", of=of)
        if said.reflect.tokens is not None:
            rows = sum(store.rows.tokens(last.id, (Kind.OBSERVATION,)).values())
            yield _Usage(name="to fold", used=rows, most=said.reflect.tokens, unit="tokens", of=of)
    for limit in run.wiring.limits:
        used = limit.used(store.ledger.spent(since=limit.since(run.wiring.clock.now())))
        name, unit = limit.name.removeprefix("limits."), "usd" if limit.is_cost else "tokens"
        yield _Usage(name=name, used=used, most=limit.most, unit=unit, of=limit.period)


def _spool_as_dict(found: SpoolState) -> dict[str, object]:
    told = fields_of(found) | {"folder": str(found.folder)}
    return {name: value for name, value in told.items() if value is not None}


def _hooks() -> Sequence[tuple[HookRun, HookRun | None]]:
    """Return the last hook that each client ran, and the client's last error that is still open (see `last_errors`)."""
    from omcli.clients.log import last_errors, last_run_by_client, log_path

    path = log_path(os.environ)
    errors = last_errors(path)
    return [(run, errors.get(client)) for client, run in last_run_by_client(path).items()]


def _hook_result(run: HookRun, error: HookRun | None) -> str:
    """Return the result of a client's hooks in words."""
    failed = f"; {error.event or 'a hook'} failed at {error.at}: {error.error}" if error is not None else ""
    return f"{run.client}: {run.event or 'a hook'} at {run.at}{failed}"


def _print_line(run: Run) -> None:
    run.apply_options({"wait": 0.0})
    told: dict[str, object] = {}
    try:
        if run.settings.disabled:
            shown = "off"
        elif not run.wiring.has_store:
            shown = ""
        else:
            told = _counts(run)
            shown = " · ".join(_in_words(told)) or "up to date"
    except BadUsage:
        raise
    except OmError:
        shown = "memory unavailable"
    if run.json:
        run.output.document({"line": shown, **told})
    else:
        run.output.line(shown)


def _counts(run: Run) -> dict[str, object]:
    """Return the numbers of waiting messages and open errors, and the highest used share of a limit, if any."""
    from omcli.clients.log import last_errors, log_path
    from omcli.sqlite.checks import any_error, waiting_counts

    with any_error(run.wiring.spool_path):
        store, now = run.wiring.reading, run.wiring.clock.now()
        found = waiting_counts(store.database)
        limits = run.wiring.limits if set(fields_of(run.settings.limits).values()) - {None} else ()
        used = [limit.share(store.ledger.spent(since=limit.since(now))) for limit in limits]
    errors = found.errors + len(last_errors(log_path(os.environ)))
    return {"waiting": found.messages, "errors": errors, **({"budget": round(max(used), 4)} if used else {})}


def _in_words(told: Mapping[str, object]) -> Iterator[str]:
    if told["waiting"]:
        yield f"{told['waiting']} waiting"
    if told["errors"]:
        yield f"{told['errors']} open error{'' if told['errors'] == 1 else 's'}"
    if "budget" in told:
        yield f"{told['budget']:.0%} of budget".replace("%", " %")


def _observer(run: Run) -> str:
    """Return the name of the observer, and the API key that is not used, if there is one."""
    observer, _ = run.wiring.model_names
    return f"{observer} ({run.unused_key.variable} is set, but no model is chosen)" if run.unused_key else observer


def _worker_result(ran: WorkerRun) -> str:
    """Return the result of the last worker in words."""
    if ran.ended is None:
        return "a worker was killed" if ran.is_gone else "a worker is running"
    return "a worker did what was due" if not ran.ended else f"a worker ended with {ran.ended}: {ran.error or ''}"


def _hook_as_dict(run: HookRun, error: HookRun | None) -> dict[str, object]:
    told = {"client": run.client, "event": run.event, "at": run.at, "session": run.session}
    failed = {"error": error.error, "failed_at": error.at} if error is not None else {}
    return {name: value for name, value in (told | failed).items() if value is not None}


def _worker(ran: WorkerRun) -> dict[str, object]:
    told = {"at": ran.at, "ended": ran.ended, "error": ran.error, "killed": ran.is_gone or None}
    return {name: value for name, value in told.items() if value is not None}


def _pending(numbers: StoreCounts) -> str:
    if not numbers.blocks:
        return str(numbers.pending)
    return f"{numbers.pending} ({numbers.ahead} buffered, in {counted(numbers.blocks, 'batch')})"


def _size(number: int | None) -> str:
    if number is None:
        return "not created yet"
    return size(number)


def _status_as_dict(run: Run, numbers: StoreCounts) -> dict[str, object]:
    from omcli.wiring.policies import store_version

    size = run.wiring.store_size
    return {
        "store": str(run.settings.db),
        **({"size": size} if size is not None else {}),
        "encrypted": run.wiring.reading.key is not None,
        "schema_version": store_version(run.settings),
        "sessions": numbers.sessions,
        "messages": numbers.messages,
        "observations": numbers.observations,
        "hidden": numbers.hidden,
        "pending": numbers.pending,
        "ahead": numbers.ahead,
        "blocks": numbers.blocks,
        "message_tokens": numbers.message_tokens,
        "observation_tokens": numbers.observation_tokens,
        "counter": numbers.counter,
        "observer": run.wiring.model_names[0],
        "reflector": run.wiring.model_names[1],
        "errors": [
            {"session": error.session, "lane": error.lane, "at": error.at, "error": error.error}
            for error in numbers.errors
        ],
    }
