"""`om context`: print what an agent should know."""

from __future__ import annotations

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
    from omcli.pack.budget import Budgets

_EXAMPLES = """\b
om context --session "$CLAUDE_CODE_SESSION_ID" --budget 8000
om context --budget 8000 --for "the notifier loses events after a restart"
om context --tier session --to markdown
om context --json | jq .tokens
OM_CONTEXT_FREEZE=1 om context --tier cross --tier session
om context --working-memory --session "$CLAUDE_CODE_SESSION_ID"
"""

TierOption = Annotated[list[Tier] | None, option("--tier", help="Only this tier. May be repeated.")]
CrossOption = Annotated[int | None, tokens_option("--cross-budget", "Tokens for other sessions.")]
SessionOption = Annotated[int | None, tokens_option("--session-budget", "Tokens for this session.")]
TailOption = Annotated[int | None, tokens_option("--tail-budget", "Tokens for the last messages.")]
FormatOption = Annotated[PackFormat, option("--to", help="Output format.")]
_BudgetOption = Annotated[
    int | None, tokens_option("--budget", "Maximum number of tokens to print.  [env: OM_CONTEXT_BUDGET]")
]
_TaskOption = Annotated[
    str | None,
    option("--for", metavar="TEXT", help="The task at hand. Rows that match this text are chosen before others."),
]
_BlockOption = Annotated[
    bool,
    option(
        "--working-memory",
        aliases=["--block"],
        help="Print the session's current state instead: task, files, errors, decisions.",
    ),
]


@with_shared(examples=_EXAMPLES)
def context(
    run: Run,
    *,
    session: Annotated[str | None, session_option("Session to print. Default: the current or last one.")] = None,
    budget: _BudgetOption = None,
    for_: _TaskOption = None,
    tier: TierOption = None,
    cross_budget: CrossOption = None,
    session_budget: SessionOption = None,
    tail_budget: TailOption = None,
    scope: ScopeOption = None,
    to: FormatOption = PackFormat.TEXT,
    notation: NotationOption = None,
    working_memory: _BlockOption = False,
    refresh: Annotated[bool, option("--refresh", help="Ignore the freeze point (`context.freeze`).")] = False,
) -> None:
    """Print what an agent should know, within a token budget.

    The output has three tiers: lasting facts from other sessions, observations of this session, and its last messages.
    It never exceeds its budget, and the same memory gives the same bytes. --json has it as `text`, with its rows.

    Messages that are not observed yet are printed among the last messages, as far as the budget allows. For the others,
    and for messages that wait in the last few other sessions (high-priority rows only, and not with a freeze point),
    rules make `provisional` rows for this pack, if it has both tiers of the session. `gap` in --json counts the rest.

    --for brings what a task needs. Rows that match its words, ranked as by om recall, are chosen right after pinned
    rows and open requests, even old ones. What the last messages or another row say is not printed again. If nothing
    matches, the pack is the usual one.

    --scope says whose facts the first tier has; sessions without a project share with each other. --session defaults to
    $CLAUDE_CODE_SESSION_ID or, if that is not set, to the last session of this directory, then of all. For a session
    without messages yet (the variable's, a UUID, or at least 16 characters), the pack has only rows of other sessions.

    --working-memory prints the session's current task, modified files, errors, decisions and outcomes, then commands,
    delegated tasks and searches, in at most 800 tokens. Compaction does not change them. Requests alone print nothing.

    With context.freeze (preset duet), the output stays the same up to a freeze point, which keeps prompt caches valid,
    and newer messages are appended. The point moves when rows are folded or unfolded, when you write a note, or when
    the messages after it exceed context.evict tokens or their budget. --refresh, --for and --working-memory ignore it.
    """
    run.apply_options({"scope": scope and scope.setting})
    asked = {Tier.CROSS: cross_budget, Tier.SESSION: session_budget, Tier.TAIL: tail_budget}
    has_tiers = bool(tier) or any(tokens is not None for tokens in asked.values())
    if working_memory and (has_tiers or for_ is not None):
        other = "tiers" if has_tiers else "`--for`"
        raise BadUsage(f"`--working-memory` excludes {other}", hint="`--budget` limits it, to 800 tokens at most")
    said = run.settings.context
    total = budget if budget is not None else said.budget
    is_plain = to in (PackFormat.TEXT, PackFormat.MARKDOWN) and not (has_tiers or run.json or for_ is not None)
    if working_memory or (said.block and is_plain):
        most = total if working_memory or total is not None else said.session
        _print_block(run, session, budget=most, to=to)
        return
    tiers = {name.value: 0 if tier and name not in tier else tokens for name, tokens in asked.items()}
    budgets = run.wiring.budgets({**tiers, "total": total})
    _print_pack(run, session, for_ or "", budgets, to=to, notation=run.notation(notation), refresh=refresh)


def _print_pack(
    run: Run,
    session: str | None,
    task: str,
    budgets: Budgets,
    *,
    to: PackFormat,
    notation: Notation,
    refresh: bool,
) -> None:
    layout = run.layout(to)
    contexted = pack(
        run.wiring.reading,
        _place(run, session),
        budgets=budgets,
        counter=run.counter,
        now=run.wiring.clock.now(),
        to=layout,
        notation=notation,
        choice=run.wiring.choice,
        eviction=None if refresh else run.wiring.eviction,
        rules=partial(_rules, run),
        task=task,
    )
    if contexted.note:
        run.console.note(contexted.note)
    if task and not contexted.matches:
        run.console.note("no row matches `--for`")
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
