"""`om tokens` and `om usage`: counting the tokens of text, and what models cost."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage, UnknownFormat
from omcli.cli.command import Run, is_terminal_input, with_shared
from omcli.cli.console import named
from omcli.cli.options import SinceOption, UntilOption, argument, format_option, option
from omcli.cli.reports import dollars
from omcli.operations import model_calls
from omcli.operations.clock import period
from omcli.operations.model_calls import By
from omcli.operations.sizes import CountUnit, count_items, count_text
from omcli.wiring import check_format
from omcli.wiring.inputs import STDIN, content, transcript_in

if TYPE_CHECKING:
    from omcli.operations.model_calls import CallSum, LimitUsage
    from omcli.operations.sizes import TokenCount


_EXAMPLES = """\b
om tokens transcript.jsonl
printf 'Hello world' | om tokens --counter chars-4-cjk-2
om tokens README.md --as text --json
"""


@with_shared(examples=_EXAMPLES, without=["db", "wait", "now"])
def tokens(
    run: Run,
    file: Annotated[str, argument(metavar="FILE", help="File to count; `-` is stdin.")] = "-",
    *,
    unit: Annotated[
        CountUnit | None,
        option("--as", help="How to count FILE. Default: as a transcript if recognised, otherwise as text."),
    ] = None,
    format_: Annotated[str | None, format_option("Transcript format. Detected from content if omitted.")] = None,
) -> None:
    """Count the tokens of text or of a transcript.

    A transcript is counted message by message, including the counter's overhead per message and per conversation. With
    --as event, the latter is left out.

    Counters: o200k-approx (within 20 % of o200k); chars-2.5, chars-3.2, chars-3.5-3, chars-4 and chars-4-cjk-2
    (characters divided by that number; chars-3.5-3 divides those of tool calls and results by 3, and chars-4-cjk-2
    Chinese and Korean ones by 2); o200k and cl100k (exact, if their rank files are on disk).
    """
    if file == STDIN and is_terminal_input():
        raise BadUsage("nothing to count", hint="`om tokens FILE`, or `om tokens < FILE`")
    if format_:
        check_format(format_)
    with named(file):
        counted = _count(run, content(file), unit, format_)
    if run.json:
        optional = {"format": counted.format, "messages": counted.messages}
        run.output.document(
            {
                "tokens": counted.tokens,
                "counter": counted.counter,
                "unit": counted.unit,
                **{name: value for name, value in optional.items() if value is not None},
            }
        )
        return
    run.output.line(str(counted.tokens))
    run.console.note(f"{file}: {counted.format or counted.unit}, counted with {counted.counter}")


def _count(run: Run, content: bytes, unit: CountUnit | None, format_name: str | None) -> TokenCount:
    if unit is not CountUnit.TEXT:
        try:
            transcript = transcript_in(BytesIO(content), format_name=format_name)
        except UnknownFormat:
            if unit is not None:
                raise
        else:
            if transcript.format is not None or unit is not None:
                return count_items(
                    transcript.items, run.counter, format_name=transcript.format, unit=unit or CountUnit.TRANSCRIPT
                )
    return count_text(content.decode("utf-8", "replace"), run.counter)


# ---- usage

_USAGE_EXAMPLES = """\b
om usage --since 7d
om usage --by model --json | jq .total.cost
"""
_UNKNOWN = "–"


@with_shared(examples=_USAGE_EXAMPLES, without=["counter"])
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
