"""What models have cost: the ledger in sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from omcli.base.record import mutable_record, record
from omcli.llm.model import Call, Ledger
from omcli.operations.limits import Limit

_DAY = len("2026-02-10")


class By(StrEnum):
    """What calls are summed up by."""

    DAY = "day"
    MODEL = "model"
    LANE = "lane"
    SESSION = "session"


@mutable_record
class Sum:
    """What some calls came to. Sums count what is known: `untold` and `unpriced` say of how many calls it is not."""

    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    untold: int = 0
    """Calls of which the endpoint did not tell the tokens."""
    cost: float = 0.0
    """US dollars."""
    unpriced: int = 0
    """Calls for which no price is known."""
    duration: int = 0
    """Milliseconds."""

    def add(self, call: Call) -> None:
        """Counts a call."""
        is_ok = call.outcome == "ok"
        told = (call.input_tokens, call.output_tokens)
        self.calls += 1
        self.failed += not is_ok
        self.input_tokens += call.input_tokens or 0
        self.output_tokens += call.output_tokens or 0
        self.cached_tokens += call.cached_tokens or 0
        # A call that failed without a reply has no tokens to tell.
        self.untold += is_ok and None in told
        self.cost += call.cost or 0.0
        self.unpriced += call.cost is None and (is_ok or told != (None, None))
        self.duration += call.duration


@record
class UsedUp:
    """A limit, and how much of it is used."""

    limit: Limit
    used: float
    """Tokens or US dollars, as the limit is."""


@record
class Usage:
    """What models have cost in a period."""

    sums: Mapping[str, Sum]
    """By day, model, lane or session, in the order of their names."""
    total: Sum
    limits: tuple[UsedUp, ...]


def usage(ledger: Ledger, *, since: str | None, until: str | None, by: By, limits: Sequence[Limit], now: str) -> Usage:
    """What calls of a period come to; `limits` are of today and this month, whatever the period."""
    sums: dict[str, Sum] = {}
    total = Sum()
    for call in ledger.calls(since=since, until=until):
        sums.setdefault(_named(call, by), Sum()).add(call)
        total.add(call)
    return Usage(
        sums=dict(sorted(sums.items())),
        total=total,
        limits=tuple(UsedUp(limit=one, used=one.used(ledger.spent(since=one.since(now)))) for one in limits),
    )


def _named(call: Call, by: By) -> str:
    match by:
        case By.DAY:
            return call.at[:_DAY]
        case By.MODEL:
            return f"{call.provider}/{call.model}"
        case By.LANE:
            return call.lane
        case By.SESSION:
            return call.session or "(none)"
