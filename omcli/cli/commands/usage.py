"""`om usage`: what models cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.cli.command import Run, with_shared
from omcli.cli.options import SinceOption, UntilOption, option
from omcli.cli.reports import dollars
from omcli.operations import model_calls
from omcli.operations.clock import period
from omcli.operations.model_calls import By

if TYPE_CHECKING:
    from omcli.operations.model_calls import CallSum, LimitUsage

_EXAMPLES = """\b
om usage --since 7d
om usage --by model --json | jq .total.cost
"""
_UNKNOWN = "–"


@with_shared(examples=_EXAMPLES, without=["counter"])
def usage(
    run: Run,
    *,
    since: SinceOption = None,
    until: UntilOption = None,
    by: Annotated[By, option("--by", help="How to group calls.")] = By.DAY,
) -> None:
    """Show what models cost: calls, tokens, dollars and time.

    Token counts are those of the providers; input tokens include cached ones. `–` means unknown, and a sum with unknown
    parts begins with `≥`. Days are UTC. Spending limits are printed below, with the amounts used today and this month.
    """
    now = run.wiring.clock.now()
    begins, ends = period(since, until, now=now)
    found = model_calls.usage(
        run.wiring.reading.ledger, since=begins, until=ends, by=by, limits=run.wiring.limits, now=now
    )
    if not found.sums:
        run.console.note("no model was called" + (" in this period" if since or until else ""))
    if run.json:
        run.output.document(
            {
                "by": by,
                "usage": [{by: name, **_as_dict(one)} for name, one in found.sums.items()],
                "total": _as_dict(found.total),
                "limits": [_limit_as_dict(limit) for limit in found.limits],
            }
        )
        return
    if found.sums:
        header = (by.upper(), "CALLS", "FAILED", "IN", "CACHED", "OUT", "COST", "TIME")
        cells = [_cells(name, one) for name, one in (*found.sums.items(), ("total", found.total))]
        run.output.table(header, cells)
    for limit in found.limits:
        run.output.line(_limit_line(limit))


def _cells(name: str, one: CallSum) -> tuple[str, ...]:
    told = one.calls - one.failed > one.untold or one.input_tokens or one.output_tokens
    tokens = [
        f"{'≥' if one.untold else ''}{number}" if told else _UNKNOWN
        for number in (one.input_tokens, one.cached_tokens, one.output_tokens)
    ]
    return (name, str(one.calls), str(one.failed), *tokens, _cost(one), _time(one.duration))


def _cost(one: CallSum) -> str:
    if not one.cost and one.unpriced:
        return _UNKNOWN
    return f"{'≥' if one.unpriced else ''}{dollars(one.cost)}"


def _time(milliseconds: int) -> str:
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def _limit_line(one: LimitUsage) -> str:
    limit = one.limit
    if limit.is_cost:
        return f"{limit.name}: {dollars(one.used)} of {dollars(limit.most)} {limit.period}"
    return f"{limit.name}: {one.used:.0f} of {limit.most:.0f} tokens {limit.period}"


def _as_dict(one: CallSum) -> dict[str, object]:
    tokens = {"input_tokens": one.input_tokens, "cached_tokens": one.cached_tokens, "output_tokens": one.output_tokens}
    is_priced = one.cost or not one.unpriced
    return {
        "calls": one.calls,
        "failed": one.failed,
        **tokens,
        "untold_calls": one.untold,
        **({"cost": round(one.cost, 6)} if is_priced else {}),
        "unpriced_calls": one.unpriced,
        "duration_ms": one.duration,
    }


def _limit_as_dict(one: LimitUsage) -> dict[str, object]:
    limit = one.limit
    return {
        "name": limit.name,
        "limit": limit.most,
        "used": one.used,
        "unit": "usd" if limit.is_cost else "tokens",
        "period": "month" if limit.of_month else "day",
        "soft": not limit.is_hard,
    }
