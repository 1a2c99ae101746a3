"""`om context`: print what an agent should know."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage
from omcli.cli.command import Run, with_shared
from omcli.cli.console import counted
from omcli.cli.options import NotationOption, ScopeOption, option, session_option, tokens_option
from omcli.operations.context import Place, working_block
from omcli.operations.context import context as pack
from omcli.pack.budget import Tier
from omcli.pack.layouts import PackFormat

if TYPE_CHECKING:
    from omcli.memory.notation import Notation
    from omcli.operations.context import Place
    from omcli.operations.deps import Deps

_EXAMPLES = """\b
om context --session "$CLAUDE_CODE_SESSION_ID" --budget 8000
om context --tier session --to markdown
om context --json | jq .tokens
OM_CONTEXT_FREEZE=1 om context --tier cross --tier session
om context --working-memory --session "$CLAUDE_CODE_SESSION_ID"
"""

TierOption = Annotated[list[Tier] | None, option("--tier", help="Only this tier. May be repeated.")]
CrossOption = Annotated[int | None, tokens_option("--cross-budget", "Maximum number of tokens for other sessions.")]
SessionOption = Annotated[int | None, tokens_option("--session-budget", "Maximum number of tokens for this session.")]
TailOption = Annotated[int | None, tokens_option("--tail-budget", "Maximum number of tokens for the last messages.")]
FormatOption = Annotated[PackFormat, option("--to", help="Output format.")]


@with_shared(examples=_EXAMPLES)
def context(
    run: Run,
    *,
    session: Annotated[str | None, session_option("Session to print. Default: the current or last one.")] = None,
    budget: Annotated[
        int | None, tokens_option("--budget", "Maximum number of tokens to print.  [env: OM_CONTEXT_BUDGET]")
    ] = None,
    tier: TierOption = None,
    cross_budget: CrossOption = None,
    session_budget: SessionOption = None,
    tail_budget: TailOption = None,
    scope: ScopeOption = None,
    to: FormatOption = PackFormat.TEXT,
    notation: NotationOption = None,
    working_memory: Annotated[
        bool,
        option(
            "--working-memory",
            aliases=["--block"],
            help="Print the session's current state instead: task, files, errors, decisions.",
        ),
    ] = False,
    refresh: Annotated[bool, option("--refresh", help="Ignore the freeze point (`context.freeze`).")] = False,
) -> None:
    """Print what an agent should know, within a token budget.

    The output has three tiers: lasting facts from other sessions, observations of this session, and its last messages.
    It never exceeds its budget, and the same memory gives the same bytes. With --json it is in `text`, beside its rows.

    Messages that are not observed yet are printed among the last messages, as far as the budget allows. From the rest,
    and from pending messages of the most recent other sessions (only high-priority rows, and not with a freeze point),
    rules make `provisional` rows, if the pack has the tiers `session` and `tail`. `gap` in --json counts messages left.

    --scope says whose facts the first tier has; sessions without a project share their facts with each other. --session
    defaults to $CLAUDE_CODE_SESSION_ID or, if that is not set, to the last session of this directory, then of all. A
    session without messages is named by its whole id (16 characters or more); its pack has rows of other sessions only.

    --working-memory prints the session's current task, modified files, errors, decisions and outcomes, then commands,
    delegated tasks and searches (800 tokens at most). Folding keeps it. If there are only requests, nothing is printed.

    With context.freeze (preset duet), the output stays the same up to a freeze point, which keeps prompt caches valid,
    and newer messages are appended. The point moves when rows are folded or unfolded, when you write a note, or when
    the messages after it exceed context.evict tokens or their budget. --refresh and --working-memory ignore it.
    """
    run.apply_options({"scope": scope and scope.setting})
    asked = {Tier.CROSS: cross_budget, Tier.SESSION: session_budget, Tier.TAIL: tail_budget}
    has_tiers = bool(tier) or any(tokens is not None for tokens in asked.values())
    if working_memory and has_tiers:
        raise BadUsage("`--working-memory` excludes tiers", hint="`--budget` limits it, to 800 tokens at most")
    said = run.settings.context
    total = budget if budget is not None else said.budget
    if working_memory:
        _print_block(run, session, budget=total, to=to)
    elif said.block and not (has_tiers or run.json) and to in (PackFormat.TEXT, PackFormat.MARKDOWN):
        _print_block(run, session, budget=said.session if total is None else total, to=to)
    else:
        tiers = {name.value: 0 if tier and name not in tier else tokens for name, tokens in asked.items()}
        _print_pack(
            run, session, most={**tiers, "total": total}, to=to, notation=run.notation(notation), refresh=refresh
        )


def _print_pack(
    run: Run,
    session: str | None,
    *,
    most: Mapping[str, int | None],
    to: PackFormat,
    notation: Notation,
    refresh: bool,
) -> None:
    """Print the pack. `most` has the maximum number of tokens for each tier and, as `total`, for the whole pack; None
    leaves a limit to the settings.
    """
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
        eviction=None if refresh else run.wiring.eviction,
        rules=partial(_rules, run),
    )
    if contexted.note:
        run.console.note(contexted.note)
    if contexted.pack.gap and contexted.pack.budgets.tail > 0:
        run.console.note(f"{counted(contexted.pack.gap, 'message')} in no tier; `om tick` observes what is pending")
    if layout is PackFormat.JSON:
        from omcli.pack.document import document

        run.output.text(document(contexted.pack))
    else:
        run.output.text(contexted.pack.printed)


def _print_block(run: Run, session: str | None, *, budget: int | None, to: PackFormat) -> None:
    """Print the working-memory block as Markdown or as one JSON document. Raise BadUsage for any other format, and for
    `--json` with `--to markdown`.
    """
    from omcli.pack.working_block import CAP, document

    if to not in (PackFormat.TEXT, PackFormat.MARKDOWN, PackFormat.JSON) or (run.json and to is PackFormat.MARKDOWN):
        raise BadUsage(f"`--working-memory` is printed as Markdown or JSON, not `--to {to}`")
    blocked = working_block(
        run.wiring.reading,
        _place(run, session),
        budget=CAP if budget is None else budget,
        counter=run.counter,
        rules=partial(_rules, run),
    )
    if blocked.note:
        run.console.note(blocked.note)
    if run.json or to is PackFormat.JSON:
        run.output.document(document(blocked.block, session=blocked.session))
    else:
        run.output.text(blocked.block.printed)


def _rules(run: Run) -> Deps:
    """Return dependencies with rules as the observer of a store that is only read."""
    return run.deps(open_store=lambda: run.wiring.reading)


def _place(run: Run, session: str | None) -> Place:
    run.is_read_only("nothing new is remembered")
    return Place(
        project=run.project,
        above=run.folders,
        session=run.session(session, may_be_new=True) or run.active_session,
        is_everywhere=run.settings.scope == "global",
    )
