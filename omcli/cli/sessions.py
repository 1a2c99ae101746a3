"""`om sessions`: what has been taken in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.cli.arguments import option
from omcli.cli.options import LARGEST, Run, resolved, with_shared
from omcli.memory.dates import minute

if TYPE_CHECKING:
    from omcli.memory.ports import SessionSummary

EXAMPLES = """\b
om sessions -n 10
om sessions --jsonl | jq -r 'select(.pending > 0) | .id'
"""


@with_shared(without=["counter", "now"])
def sessions(
    run: Run,
    *,
    project: Annotated[str | None, option("--project", metavar="DIR", help="Sessions of this project.")] = None,
    last: Annotated[int | None, option("--last", "-n", min=0, metavar="N", help="Only the last N.")] = None,
    jsonl: Annotated[bool, option("--jsonl", help="Print one JSON object per session.")] = False,
) -> None:
    """List the sessions, the most recently seen first."""
    run.check_stream(jsonl=jsonl)
    found = run.wiring.reading.sessions(project=resolved(project), last=None if last is None else min(last, LARGEST))
    if run.json:
        run.output.document({"sessions": [_as_dict(summary) for summary in found]})
    elif jsonl:
        for summary in found:
            run.output.json_line(_as_dict(summary))
    elif found:
        header = ("SESSION", "AGENT", "MESSAGES", "OBSERVATIONS", "PENDING", "LAST", "PROJECT", "TITLE")
        rows = [_cells(summary) for summary in found]
        run.output.table(header, rows, cut=("SESSION", "AGENT", "TITLE"), cut_in_front=("PROJECT",))
    elif project is not None:
        run.talk.note(f"there is no session of project {resolved(project)}; `om sessions` lists all there are")
    elif last != 0:
        run.talk.note("no sessions yet; `om observe FILE` takes one in")


def _cells(summary: SessionSummary) -> tuple[str, ...]:
    session = summary.session
    return (
        session.id,
        session.agent,
        str(summary.messages),
        str(summary.observations),
        str(summary.pending),
        minute(summary.last_at or summary.seen_at),
        session.project or "-",
        session.title or "",
    )


def _as_dict(summary: SessionSummary) -> dict[str, object]:
    session = summary.session
    columns = {
        "id": session.id,
        "agent": session.agent,
        "project": session.project,
        "branch": session.branch,
        "title": session.title,
        "model": session.model,
        "parent": session.parent,
        "messages": summary.messages,
        "observations": summary.observations,
        "pending": summary.pending,
        "first_at": summary.first_at,
        "last_at": summary.last_at,
        "seen_at": summary.seen_at,
    }
    return {name: value for name, value in columns.items() if value is not None}
