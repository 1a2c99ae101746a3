"""`om pending` and `om apply`: using an agent as the observer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from omcli.base.errors import BadInput, BadUsage
from omcli.cli.command import Run, is_terminal_input, with_shared
from omcli.cli.console import counted, named, unknown_session
from omcli.cli.options import LARGEST, DryRunOption, argument, session_option, tokens_option
from omcli.memory.message import message_fields
from omcli.memory.observation import full_row
from omcli.text.instants import minute
from omcli.wiring.inputs import STDIN, content

if TYPE_CHECKING:
    from omcli.observers.model.evidence import Evidence
    from omcli.operations.apply import ApplyReport, PendingMessages, PendingView

_PENDING_EXAMPLES = """\b
om pending --json | my-agent | om apply -
om pending --session ID --budget 3000
"""


@with_shared(examples=_PENDING_EXAMPLES, without=["now"])
def pending(
    run: Run,
    *,
    session: Annotated[
        str | None, session_option("Session to show. Default: the last one with pending messages.")
    ] = None,
    budget: Annotated[
        int | None,
        tokens_option(
            "--budget",
            "Approximate number of tokens to show.  [env: OM_OBSERVE_BATCH_TOKENS]",
            aliases=("--limit",),
            at_least=1,
        ),
    ] = None,
) -> None:
    """Show pending messages to an agent that acts as the observer.

    Prints the oldest pending messages of a session with labels (m1, m2, …), context rows (o1, o2, …), instructions for
    the reply, and a token that identifies this output. Paste all of it into a chat or pipe it to a program, and pass
    the reply to `om apply`. Nothing is written. Times are in the transcript's time zone.
    """
    from omcli.operations import apply

    session = run.session(session)
    tokens = min(budget or run.settings.observe.batch_tokens, LARGEST)
    waiting = apply.pending(run.wiring.reading, session=session, tokens=tokens, counter=run.counter)
    if waiting.messages == 0:
        run.console.note(_empty_note(session, waiting))
    elif waiting.pending_view is not None and not waiting.pending_view.evidence.shown.new:
        run.console.note("the next messages are only summaries, which are not shown; reply with empty `observations`")
    if run.json:
        run.output.document(_as_dict(waiting, tokens))
    elif waiting.pending_view is not None and waiting.messages:
        run.output.line(_as_text(waiting.pending_view, left=_left(waiting)))


def _empty_note(session: str | None, waiting: PendingMessages) -> str:
    if session is not None and waiting.pending_view is None:
        return unknown_session(session)
    return f"nothing is pending in session {session}" if session is not None else "nothing is pending"


def _left(waiting: PendingMessages) -> int:
    """Return the number of pending messages that come after those shown."""
    shown = waiting.pending_view
    return waiting.messages - len(shown.batch.messages) if shown and shown.batch else 0


def _as_text(shown: PendingView, *, left: int) -> str:
    """Return the prompt as text to paste into a chat."""
    from omcli.llm.prompts import prompt
    from omcli.observers.model.prompt import without_token

    fence = shown.ticket.shown[:12]
    said = "".join(part for part in shown.evidence.shown.content if isinstance(part, str))
    recorded = "".join(f"{line}\n" for line in shown.evidence.recorded.lines)
    more = f"\n{left} more messages wait behind these.\n" if left else ""
    return (
        f"{prompt('agent_reply')}\n\nToken: {shown.ticket.encode()}\n"
        + (f"\nAlready recorded:\n{recorded}" if recorded else "")
        + f"\n<<< transcript {fence}\n{without_token(fence, said)}>>> transcript {fence}\n{more}"
    ).rstrip("\n")


def _as_dict(waiting: PendingMessages, tokens: int) -> dict[str, object]:
    shown = waiting.pending_view
    if shown is None:
        return {"pending": 0, "left": 0, "messages": [], "recorded": []}
    from omcli.llm.prompts import prompt
    from omcli.observers.agent_reply import SCHEMA

    project = {"project": shown.session.project} if shown.session.project else {}
    return {
        "session": shown.session.id,
        **project,
        "token": shown.ticket.encode(),
        "pending": waiting.messages,
        "left": _left(waiting),
        "messages": _messages(shown.evidence, tokens),
        "recorded": _recorded(shown.evidence),
        "instructions": prompt("agent_reply"),
        "reply_schema": SCHEMA,
    }


def _messages(evidence: Evidence, tokens: int) -> list[dict[str, object]]:
    from omcli.operations.apply import excerpt_of

    shown = evidence.shown
    told: list[dict[str, object]] = []
    for label, kept in shown.labels.items():
        text, at = excerpt_of(kept, tokens), shown.minutes.get(label)
        marks = {"before": label not in shown.new, "cut": len(text) < len(kept.message.text)}
        told.append(
            {
                "label": label,
                **message_fields(kept, text=text),
                **({"at": at} if at else {}),
                **{name: True for name, holds in marks.items() if holds},
            }
        )
    return told


def _recorded(evidence: Evidence) -> list[dict[str, object]]:
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


_APPLY_EXAMPLES = """\b
om pending --json | my-agent | om apply -
om apply answer.json --dry-run
"""


@with_shared(examples=_APPLY_EXAMPLES)
def apply(
    run: Run,
    file: Annotated[str | None, argument(metavar="[FILE]", help="Reply as JSON; `-` is stdin.")] = None,
    *,
    dry_run: DryRunOption = False,
) -> None:
    """Store the observations in an agent's reply to `om pending`.

    The reply is a JSON object with `token`, `observations`, `reflections`, `items`, `retire`, `used`, `current_task`,
    `next_step` and `title`; `om pending --json` prints its schema. Either all of it is written or nothing. The exit
    code is 65 if the reply has an error, whose position in the reply is printed, and 75 if the token is stale, because
    another process has changed the session. An empty `observations` list marks the messages as observed. Leave out tool
    calls: rules record them.
    """
    from omcli.operations import apply

    if file is None and is_terminal_input():
        raise BadUsage("no reply given", hint="`om apply FILE`, or `om apply -` to read it from stdin")
    if run.is_read_only("nothing was written"):
        return
    name = file or STDIN
    with named(name):
        document = _document(name)
    deps = run.deps()
    applied = apply.apply(document, deps, counters=run.wiring.counter, dry_run=dry_run)
    with run.output.optional():  # store rows even if the reader of stdout goes away
        _print(run, applied, dry_run=dry_run)


def _document(name: str) -> Any:
    from omcli.llm.replies import is_cut_off, json_in

    text = content(name).decode("utf-8", "replace")
    document = json_in(text)
    if document is None:
        raise BadInput("the reply is cut off" if is_cut_off(text) else "the reply is not JSON")
    return document


def _print(run: Run, applied: ApplyReport, *, dry_run: bool) -> None:
    if run.json:
        run.output.document(
            {
                "session": applied.session,
                "dry_run": dry_run,
                "messages": applied.messages,
                "rows": [full_row(row) for row in applied.rows],
                "hidden": list(applied.hidden),
                "findings": dict(applied.findings),
            }
        )
        return
    for row in applied.rows:
        run.output.row(row)
    run.console.report(_summary(applied))
    if dry_run:
        run.console.note("dry run: nothing was written")


def _summary(applied: ApplyReport) -> str:
    parts = [f"{counted(applied.messages, 'message')} covered", f"{counted(len(applied.rows), 'row')} written"]
    if applied.hidden:
        parts.append(f"{counted(len(applied.hidden), 'row')} hidden")
    parts += [f"{finding.replace('_', ' ')} {count}" for finding, count in sorted(applied.findings.items())]
    return f"session {applied.session}: {', '.join(parts)}"
