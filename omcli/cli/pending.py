"""`om pending`: what waits to be observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.cli.arguments import option
from omcli.cli.options import LARGEST, Run, named_session, with_shared

if TYPE_CHECKING:
    from omcli.observers.model.evidence import Evidence
    from omcli.operations.pending import Waiting
    from omcli.operations.showing import Showing

EXAMPLES = """\b
om pending --json | my-agent | om apply -
om pending --session ID --limit 3000
"""


@with_shared(without=["now"])
def pending(
    run: Run,
    *,
    session: Annotated[
        str | None, named_session("The session to look at. The one seen last of those where something waits.")
    ] = None,
    limit: Annotated[
        int | None,
        option("--limit", min=1, metavar="TOKENS", help="About how much to show.  [env: OM_OBSERVE_BATCH_TOKENS]"),
    ] = None,
) -> None:
    """Show what waits, for an agent that observes for itself.

    The oldest messages of a session, with labels (m1, m2, …), rows that stand (o1, o2, …), what an answer has to hold,
    and a token that says what was shown: to be pasted into a chat, or given to a program. The answer goes to
    `om apply`. Nothing is written. Times are as in the transcript.
    """
    from omcli.operations import pending

    tokens = min(limit or run.settings.observe.batch_tokens, LARGEST)
    waiting = pending.pending(run.wiring.reading, session=session, tokens=tokens, counter=run.counter)
    if waiting.messages == 0:
        run.talk.note(_nothing(session, waiting))
    if run.json:
        run.output.document(_as_dict(waiting, tokens))
    elif waiting.showing is not None and waiting.messages:
        run.output.line(_as_text(waiting.showing, left=_left(waiting)))


def _nothing(session: str | None, waiting: Waiting) -> str:
    if session is not None and waiting.showing is None:
        return f"there is no session `{session}`; `om sessions` lists them"
    return f"nothing of session {session} waits" if session is not None else "nothing waits to be observed"


def _left(waiting: Waiting) -> int:
    """How many messages wait behind those that are shown."""
    shown = waiting.showing
    return waiting.messages - len(shown.batch.messages) if shown and shown.batch else 0


def _as_text(shown: Showing, *, left: int) -> str:
    """All of it, as it can be pasted into a chat."""
    from omcli.observers.model.prompting import without
    from omcli.prompts import prompt

    fence = shown.ticket.shown[:12]
    said = "".join(part for part in shown.evidence.shown.content if isinstance(part, str))
    recorded = "".join(f"{line}\n" for line in shown.evidence.recorded.lines)
    more = f"\n{left} more messages wait behind these.\n" if left else ""
    return (
        f"{prompt('given')}\n\nToken: {shown.ticket.written()}\n"
        + (f"\nAlready recorded:\n{recorded}" if recorded else "")
        + f"\n<<< transcript {fence}\n{without(fence, said)}>>> transcript {fence}\n{more}"
    ).rstrip("\n")


def _as_dict(waiting: Waiting, tokens: int) -> dict[str, object]:
    shown = waiting.showing
    if shown is None:
        return {"pending": 0, "left": 0, "messages": [], "recorded": []}
    from omcli.observers.given.schema import SCHEMA
    from omcli.prompts import prompt

    project = {"project": shown.session.project} if shown.session.project else {}
    return {
        "session": shown.session.id,
        **project,
        "token": shown.ticket.written(),
        "pending": waiting.messages,
        "left": _left(waiting),
        "messages": _messages(shown.evidence, tokens),
        "recorded": _recorded(shown.evidence),
        "instructions": prompt("given"),
        "reply_schema": SCHEMA,
    }


def _messages(evidence: Evidence, tokens: int) -> list[dict[str, object]]:
    from omcli.memory.rows import message
    from omcli.operations.showing import excerpt_of

    shown = evidence.shown
    told: list[dict[str, object]] = []
    for label, kept in shown.labels.items():
        text, at = excerpt_of(kept, tokens), shown.minutes.get(label)
        marks = {"before": label not in shown.new, "cut": len(text) < len(kept.message.text)}
        told.append(
            {
                "label": label,
                **message(kept, text=text),
                **({"at": at} if at else {}),
                **{name: True for name, holds in marks.items() if holds},
            }
        )
    return told


def _recorded(evidence: Evidence) -> list[dict[str, object]]:
    from omcli.memory.dates import minute

    return [
        {
            "label": label,
            "id": row.id,
            "kind": row.kind,
            "type": row.type,
            "priority": row.priority,
            **({"status": row.status} if row.status else {}),
            "at": minute(row.dated),
            "text": row.text,
        }
        for label, row in evidence.recorded.labels.items()
    ]
