"""`om context`: print what an agent should know."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage
from omcli.base.record import replace
from omcli.cli.command import Run, with_shared
from omcli.cli.console import counted
from omcli.cli.options import NotationOption, ScopeOption, option, session_option, tokens_option
from omcli.memory.observation import handle
from omcli.operations.context import Place
from omcli.operations.context import context as pack
from omcli.pack.budget import Tier
from omcli.pack.layouts import PackFormat
from omcli.pack.salience import ChoiceReason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omcli.operations.context import ContextResult, Place
    from omcli.operations.deps import Deps
    from omcli.pack.budget import Budgets
    from omcli.pack.context_pack import ContextPack
    from omcli.pack.selection import RowReason

_EXAMPLES = """\b
om context --session "$CLAUDE_CODE_SESSION_ID" --budget 8000
om context --budget 8000 --for "the notifier loses events after a restart"
om context --tier session --to markdown
om context --json | jq .tokens
om context --budget 2000 --explain
OM_CONTEXT_FREEZE=1 om context --tier cross --tier session
om context --working-memory --session "$CLAUDE_CODE_SESSION_ID"
"""

TierOption = Annotated[list[Tier] | None, option("--tier", help="Only this tier. May be repeated.")]
CrossOption = Annotated[int | None, tokens_option("--cross-budget", "Maximum number of tokens for other sessions.")]
SessionOption = Annotated[int | None, tokens_option("--session-budget", "Maximum number of tokens for this session.")]
TailOption = Annotated[int | None, tokens_option("--tail-budget", "Maximum number of tokens for the last messages.")]
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

_BLOCK_HINT = "`--budget` limits it, to 800 tokens at most"
_LEFT_OUT = 5
"""Maximum number of rows left out of a tier that `--explain` prints for each reason."""
_SHOWN_WORDS = 3
"""Maximum number of matching words that `--explain` prints for a row."""


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
    explain: Annotated[bool, option("--explain", help="Print why each row is in the pack, or why not.")] = False,
) -> None:
    """Print what an agent should know, within a token budget.

    The output has three tiers: rows of other sessions, rows of this session, and its last messages. It never exceeds
    its budget, and the same memory gives the same bytes, apart from ages. With --json it is in `text`, beside its rows.

    Messages that are not observed yet are printed among the last messages, as far as the budget allows. If the pack has
    the tiers `session` and `tail`, rules turn the remaining messages into rows for this pack only (`provisional` in
    --json). Unless the pack is frozen, they also add high-priority rows from pending messages of the last few other
    sessions. `gap` in --json counts the messages that are neither printed nor in such a row.

    --for brings what a task needs. Rows that match its words, ranked as by om recall, are chosen right after pinned
    rows and open requests, even old ones. A row that only repeats the last messages or another row is left out.
    --scope chooses the sessions whose facts are in the first tier; sessions without a project share theirs with each
    other. --session defaults to $CLAUDE_CODE_SESSION_ID or, if that is not set, to the last session of this directory,
    then of all. A session without messages must be named by its whole id (16 characters or more).

    --working-memory prints the current task, modified files, errors, decisions, outcomes, commands, delegated tasks and
    searches (800 tokens at most; nothing if there are only requests). Of a long session, it uses the newest 1,250 rows.

    --explain prints rows in the order chosen, with tokens, the reason and, for other sessions, the score (importance
    that fades with age), then the best rows left out. Of a long session, only its newest and best rows are ranked.

    With context.freeze (preset duet), the output stays the same up to a freeze point, which keeps prompt caches valid,
    and newer messages are appended. The point moves when rows are folded, when that is undone, when you write notes or
    import rows, or when the messages after it exceed context.evict tokens or their budget. --refresh ignores it, and so
    does --for with a match.
    """
    run.apply_options({"scope": scope and scope.setting})
    asked = {Tier.CROSS: cross_budget, Tier.SESSION: session_budget, Tier.TAIL: tail_budget}
    has_tiers = bool(tier) or any(tokens is not None for tokens in asked.values())
    if working_memory and (has_tiers or for_ is not None or explain):
        raise BadUsage("`--working-memory` excludes tiers, `--for` and `--explain`", hint=_BLOCK_HINT)
    said = run.settings.context
    total = budget if budget is not None else said.budget
    is_plain = to in (PackFormat.TEXT, PackFormat.MARKDOWN) and not (has_tiers or run.json or explain)
    if working_memory or (said.block and is_plain and for_ is None):
        most = total if working_memory or total is not None else said.session
        _print_block(run, session, budget=most, to=to)
        return
    tiers = {name.value: 0 if tier and name not in tier else tokens for name, tokens in asked.items()}
    budgets = run.wiring.budgets({**tiers, "total": total})
    made = _packed(run, session, for_ or "", budgets, to=to, notation=notation, refresh=refresh, explain=explain)
    _print_why(run, made, to) if explain else _print_pack(run, made.pack, to)


def _packed(
    run: Run,
    session: str | None,
    task: str,
    budgets: Budgets,
    *,
    to: PackFormat,
    notation: str | None,
    refresh: bool,
    explain: bool,
) -> ContextResult:
    """Return the pack, after printing notes about its session and about the messages that the pack lacks."""
    made = pack(
        run.wiring.reading,
        _place(run, session),
        budgets=budgets,
        counter=run.counter,
        now=run.wiring.clock.now(),
        to=run.layout(to),
        notation=run.notation(notation),
        choice=replace(run.wiring.choice, is_explained=explain),
        eviction=None if refresh else run.wiring.eviction,
        rules=partial(_rules, run),
        task=task,
    )
    if made.note:
        run.console.note(made.note)
    if task and not made.matches:
        run.console.note("no row matches `--for`")
    if made.pack.gap and made.pack.budgets.tail > 0:
        run.console.note(f"{counted(made.pack.gap, 'message')} in no tier; `om tick` observes what is pending")
    return made


def _print_pack(run: Run, made: ContextPack, to: PackFormat) -> None:
    if run.layout(to) is PackFormat.JSON:
        from omcli.pack.document import document

        run.output.text(document(made))
    else:
        run.output.text(made.printed)


def _print_why(run: Run, made: ContextResult, to: PackFormat) -> None:
    """Print why each row is in a pack or not: first its rows in the order in which they were chosen, then the best rows
    that were left out, a few for each reason.
    """
    from omcli.pack.document import reason_document
    from omcli.text.instants import minute

    words = {match.row.observation.id: match.words for match in made.matches}
    if run.layout(to) is PackFormat.JSON:
        run.output.document(reason_document(made.pack, words))
        return
    packed = made.pack
    rows = [_cells(each, words) for each in packed.reasons if each.is_chosen]
    if packed.turns:
        said = counted(len(packed.turns), "last message")
        begins = packed.turns[0].message.at
        rows.append((Tier.TAIL, str(packed.tokens[Tier.TAIL]), "", said, f"from {minute(begins)} on" if begins else ""))
    rows.append(("total", str(packed.total), "", f"of {packed.budgets.total} at most, with headings", ""))
    run.output.table(["TIER", "TOKENS", "ID", "WHY", "TEXT"], rows, cut="TEXT")
    shown: Counter[tuple[str, str]] = Counter()
    left_out = []
    for each in packed.reasons:
        shown[each.tier, each.reason] += not each.is_chosen
        if not each.is_chosen and shown[each.tier, each.reason] <= _LEFT_OUT:
            left_out.append(_cells(each, words))
    if left_out:
        run.output.line("")
        run.output.table(["LEFT OUT", "TOKENS", "ID", "WHY NOT", "TEXT"], left_out, cut="TEXT")
    if more := shown.total() - len(left_out):
        run.console.note(f"{counted(more, 'more row')} left out; `--json` has all")


def _cells(each: RowReason, words: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    reason = str(each.reason)
    if each.reason is ChoiceReason.MATCH:
        found = words[each.row.id]
        more = f" +{len(found) - _SHOWN_WORDS}" if len(found) > _SHOWN_WORDS else ""
        reason = f"{reason}: {', '.join(found[:_SHOWN_WORDS])}{more}"
    elif each.room is not None:
        reason = f"{reason} ({each.room} left)"
    elif each.score is not None and each.reason in (ChoiceReason.IMPORTANT, ChoiceReason.FULL):
        reason = f"{reason} ({each.score:.2g})"
    return (each.tier, str(each.tokens), handle(each.row.id), reason, each.row.text)


def _print_block(run: Run, session: str | None, *, budget: int | None, to: PackFormat) -> None:
    """Print the working-memory block as Markdown or as one JSON document. Raise BadUsage for any other format, and for
    `--json` with `--to markdown`.
    """
    from omcli.operations.working_block import working_block
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
        is_strict=run.is_for_agent,
    )
