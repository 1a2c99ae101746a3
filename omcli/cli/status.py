"""`om status`: the store in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omcli.cli.background import last_worker
from omcli.cli.diagnostics import counted
from omcli.cli.diagnostics import size as in_words
from omcli.cli.options import Run, with_shared

if TYPE_CHECKING:
    from omcli.operations.status import Status
    from omcli.workers.log import Ran

EXAMPLES = """\b
om status
om status --counter chars-4 --json | jq .message_tokens
"""


@with_shared(without=["now"])
def status(run: Run) -> None:
    """Show where the store is and what it holds."""
    from omcli.operations import status

    numbers = status.status(run.wiring.reading, run.counter)
    log, ran = last_worker(run)
    if run.json:
        worker = {"log": str(log), "last": _worker(ran)} if ran else {}
        run.output.document({**_as_dict(run, numbers), "background": worker})
        return
    rows = [
        ("store", str(run.settings.db)),
        ("size", _size(run.wiring.store_size)),
        ("schema", str(run.wiring.schema_version)),
        ("sessions", str(numbers.sessions)),
        ("messages", f"{numbers.messages} ({numbers.message_tokens} tokens by {numbers.counter})"),
        ("observations", f"{numbers.observations} ({numbers.observation_tokens} tokens by {numbers.counter})"),
        ("hidden", str(numbers.hidden)),
        ("pending", _pending(numbers)),
    ]
    for name, value in rows:
        run.output.line(f"{name:<12}  {value}")
    for error in numbers.errors:
        of = error.session or "all sessions"
        run.output.line(f"{'last error':<12}  {error.at} {error.lane} of {of}: {error.error}")
    if ran:
        run.output.line(f"{'background':<12}  {log}: {ran.at} {_fared(ran)}")


def _fared(ran: Ran) -> str:
    """How a worker fared, in words."""
    if ran.ended is None:
        return "a worker was killed" if ran.is_gone else "a worker is at it"
    return "a worker did what was due" if not ran.ended else f"a worker ended with {ran.ended}: {ran.error or ''}"


def _worker(ran: Ran) -> dict[str, object]:
    told = {"at": ran.at, "ended": ran.ended, "error": ran.error, "killed": ran.is_gone or None}
    return {name: value for name, value in told.items() if value is not None}


def _pending(numbers: Status) -> str:
    if not numbers.blocks:
        return str(numbers.pending)
    return f"{numbers.pending} ({numbers.ahead} observed ahead, in {counted(numbers.blocks, 'block')})"


def _size(size: int | None) -> str:
    if size is None:
        return "there is no store yet"
    return in_words(size)


def _as_dict(run: Run, numbers: Status) -> dict[str, object]:
    size = run.wiring.store_size
    return {
        "store": str(run.settings.db),
        **({"size": size} if size is not None else {}),
        "schema_version": run.wiring.schema_version,
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
        "errors": [
            {"session": error.session, "lane": error.lane, "at": error.at, "error": error.error}
            for error in numbers.errors
        ],
    }
