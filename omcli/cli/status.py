"""`om status`: the store in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omcli.cli.options import Run, with_shared

if TYPE_CHECKING:
    from omcli.operations.status import Status

EXAMPLES = """\b
om status
om status --counter chars-4 --json | jq .message_tokens
"""


@with_shared(without=["now"])
def status(run: Run) -> None:
    """Show where the store is and what it holds."""
    from omcli.operations import status

    numbers = status.status(run.wiring.reading, run.counter)
    if run.json:
        run.output.document(_as_dict(run, numbers))
        return
    rows = [
        ("store", str(run.settings.db)),
        ("size", _size(run.wiring.store_size)),
        ("schema", str(run.wiring.schema_version)),
        ("sessions", str(numbers.sessions)),
        ("messages", f"{numbers.messages} ({numbers.message_tokens} tokens by {numbers.counter})"),
        ("observations", f"{numbers.observations} ({numbers.observation_tokens} tokens by {numbers.counter})"),
        ("hidden", str(numbers.hidden)),
        ("pending", str(numbers.pending)),
    ]
    for name, value in rows:
        run.output.line(f"{name:<12}  {value}")
    for error in numbers.errors:
        of = error.session or "all sessions"
        run.output.line(f"{'last error':<12}  {error.at} {error.lane} of {of}: {error.error}")


def _size(size: int | None) -> str:
    if size is None:
        return "there is no store yet"
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


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
        "message_tokens": numbers.message_tokens,
        "observation_tokens": numbers.observation_tokens,
        "counter": numbers.counter,
        "errors": [
            {"session": error.session, "lane": error.lane, "at": error.at, "error": error.error}
            for error in numbers.errors
        ],
    }
