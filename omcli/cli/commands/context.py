"""`om context`: print what an agent should know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage
from omcli.cli.arguments import option
from omcli.cli.command import with_shared
from omcli.cli.options import named_notation, named_session, named_tokens
from omcli.cli.run import Run
from omcli.pack.budget import Tier
from omcli.pack.layouts import To

if TYPE_CHECKING:
    from omcli.memory.notation import Notation
    from omcli.operations.context import Place

_EXAMPLES = """\b
om context --session "$CLAUDE_CODE_SESSION_ID" --budget 8000
om context --tier session --to markdown
om context --json | jq .tokens
OM_CONTEXT_FREEZE=1 om context --tier cross --tier session
om context --working-memory --session "$CLAUDE_CODE_SESSION_ID"
"""


@with_shared(examples=_EXAMPLES)
def context(
    run: Run,
    *,
    session: Annotated[
        str | None,
        named_session("Whose context. The last one's if left out."),
    ] = None,
    budget: Annotated[int | None, named_tokens("--budget", "The most to print.  [env: OM_CONTEXT_BUDGET]")] = None,
    tier: Annotated[list[Tier] | None, option("--tier", help="Only this part. Repeat it for several.")] = None,
    cross_budget: Annotated[int | None, named_tokens("--cross-budget", "For what other sessions left behind.")] = None,
    session_budget: Annotated[
        int | None, named_tokens("--session-budget", "For what was observed in this one.")
    ] = None,
    tail_budget: Annotated[int | None, named_tokens("--tail-budget", "For the last messages.")] = None,
    to: Annotated[To, option("--to", help="How to print it.")] = To.TEXT,
    notation: Annotated[str | None, named_notation("How rows are marked")] = None,
    working_memory: Annotated[
        bool,
        option(
            "--working-memory",
            "--block",
            help="The session's working memory instead: task, files, errors, decisions; at most 800 tokens.",
        ),
    ] = False,
    refresh: Annotated[
        bool, option("--refresh", help="The pack as of now, where the settings freeze it (`context.freeze`).")
    ] = False,
) -> None:
    """Print what an agent should know, within a token budget.

    Lasting facts of other sessions, then what was observed in this one, then its last messages. The pack never has
    more tokens than its budget, and the same memory gives the same bytes.

    Without --session it is for $CLAUDE_CODE_SESSION_ID, else for the session last seen in this directory, else for
    the last one of all.

    --working-memory prints what the session is at instead: its current task, the files it modified, errors and
    whether they are resolved, decisions, and then commands, delegated tasks and searches, with a line for each. It is
    made of all that was observed in the session, so that no compaction changes it.

    With the setting context.freeze (preset duet) a session's pack is of a horizon and stays the same to the byte, for
    the host's prompt cache: what came after is told by messages, which are only added to it, or with --tier cross
    --tier session by those that the host has. The horizon moves when rows were folded or that was undone, something was
    noted by hand, or the messages behind it are more than context.evict tokens, or than find room. --refresh prints the
    pack as of now, which it is for no session, and which --working-memory always is.
    """
    asked = {Tier.CROSS: cross_budget, Tier.SESSION: session_budget, Tier.TAIL: tail_budget}
    has_tiers = bool(tier) or any(tokens is not None for tokens in asked.values())
    if working_memory and has_tiers:
        raise BadUsage("`--working-memory` has no tiers", hint="`--budget` lowers its 800 tokens")
    said = run.settings.context
    total = budget if budget is not None else said.budget
    if working_memory:
        _print_block(run, session, budget=total, to=to)
    elif said.block and not (has_tiers or run.json) and to in (To.TEXT, To.MARKDOWN):
        _print_block(run, session, budget=said.session if total is None else total, to=to)
    else:
        most = {name.value: 0 if tier and name not in tier else tokens for name, tokens in asked.items()}
        most = {**most, "total": total}
        _print_pack(run, session, most=most, to=to, notation=run.notation(notation), refresh=refresh)


def _print_pack(
    run: Run,
    session: str | None,
    *,
    most: Mapping[str, int | None],
    to: To,
    notation: Notation,
    refresh: bool,
) -> None:
    """The pack, within a budget for each tier and for the whole."""
    from omcli.operations.context import context as pack

    layout = run.layout(to)
    contexted = pack(
        run.wiring.reading,
        _place(run, session),
        budgets=run.wiring.budgets(most),
        counter=run.counter,
        now=run.wiring.clock.now(),
        to=layout,
        notation=notation,
        choice=run.wiring.choice,
        cutting=None if refresh else run.wiring.cutting,
    )
    if contexted.note:
        run.console.note(contexted.note)
    run.output.text(contexted.pack.printed)


def _print_block(run: Run, session: str | None, *, budget: int | None, to: To) -> None:
    """The working-memory block: Markdown, or one JSON document."""
    from omcli.operations.context import working_block
    from omcli.pack.working_block import CAP, document

    if to not in (To.TEXT, To.MARKDOWN, To.JSON) or (run.json and to is To.MARKDOWN):
        raise BadUsage(f"`--working-memory` is printed as Markdown or JSON, not `--to {to}`")
    blocked = working_block(
        run.wiring.reading, _place(run, session), budget=CAP if budget is None else budget, counter=run.counter
    )
    if blocked.note:
        run.console.note(blocked.note)
    if run.json or to is To.JSON:
        run.output.document(document(blocked.block, session=blocked.session))
    else:
        run.output.text(blocked.block.printed)


def _place(run: Run, session: str | None) -> Place:
    from omcli.operations.context import Place

    return Place(
        project=run.project,
        session=session,
        current=run.current_session,
        is_everywhere=run.settings.scope == "global",
    )
