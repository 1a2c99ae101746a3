"""`om context`: print what an agent should know."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from omcli.cli.completion import session_ids
from omcli.cli.options import LARGEST, Run, with_shared
from omcli.memory.budget import budgets
from omcli.memory.errors import BadUsage
from omcli.memory.layouts import To
from omcli.memory.tier import Tier

EXAMPLES = """\b
om context --session "$CLAUDE_CODE_SESSION_ID" --budget 8000
om context --tier session --to markdown
om context --json | jq .tokens
"""


@with_shared()
def context(
    run: Run,
    *,
    session: Annotated[
        str | None,
        typer.Option(
            "--session", metavar="ID", help="Whose context. The last one's if left out.", autocompletion=session_ids
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", metavar="TOKENS", min=0, help="The most to print.  [env: OM_CONTEXT_BUDGET]"),
    ] = None,
    tier: Annotated[list[Tier] | None, typer.Option("--tier", help="Only this part. Repeat it for several.")] = None,
    cross_budget: Annotated[
        int | None, typer.Option("--cross-budget", metavar="TOKENS", min=0, help="For what other sessions left behind.")
    ] = None,
    session_budget: Annotated[
        int | None, typer.Option("--session-budget", metavar="TOKENS", min=0, help="For what was observed in this one.")
    ] = None,
    tail_budget: Annotated[
        int | None, typer.Option("--tail-budget", metavar="TOKENS", min=0, help="For the last messages.")
    ] = None,
    to: Annotated[To, typer.Option("--to", help="How to print it.")] = To.TEXT,
) -> None:
    """Print what an agent should know, within a token budget.

    Lasting facts of other sessions, then what was observed in this one, then its last messages. The pack never has
    more tokens than its budget, and the same memory gives the same bytes.

    Without --session it is for $CLAUDE_CODE_SESSION_ID, else for the session last seen in this directory, else for
    the last one of all.
    """
    from omcli.operations.context import Place
    from omcli.operations.context import context as pack

    if run.json and to not in (To.TEXT, To.JSON):
        raise BadUsage(f"`--json` and `--to {to}` exclude each other")
    asked = {Tier.CROSS: cross_budget, Tier.SESSION: session_budget, Tier.TAIL: tail_budget}
    most = {name.value: 0 if tier and name not in tier else tokens for name, tokens in asked.items()}
    most["total"] = budget if budget is not None else run.settings.budget
    contexted = pack(
        run.wiring.reading,
        Place(project=run.project, session=session, current=os.environ.get("CLAUDE_CODE_SESSION_ID")),
        budgets=budgets(**{name: tokens if tokens is None else min(tokens, LARGEST) for name, tokens in most.items()}),
        counter=run.counter,
        now=run.wiring.clock.now(),
        to=To.JSON if run.json else to,
    )
    if contexted.note:
        run.talk.note(contexted.note)
    run.output.text(contexted.pack.printed)
