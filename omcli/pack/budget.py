"""Token budgets of a pack and its tiers, and the division of a small budget among the tiers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from enum import StrEnum

from omcli.base.record import record
from omcli.memory.message import UNLIMITED


class Tier(StrEnum):
    """Parts of a pack, in their default printing order."""

    CROSS = "cross"
    """Rows of other sessions or of none, such as lasting facts."""
    SESSION = "session"
    """Rows of this session."""
    TAIL = "tail"
    """The last messages, whole or as excerpts."""


DEFAULTS: Mapping[Tier, int] = {Tier.CROSS: 4000, Tier.SESSION: 8000, Tier.TAIL: 8000}

_SMALL = 4096
# Observations contain more per token than messages. So up to `_SMALL` tokens the session tier gets most of the budget,
# and messages are only a reminder of the current work. Above that, each tier's share grows linearly to its limit.
_SMALL_SHARES: Mapping[Tier, float] = {Tier.CROSS: 0.1, Tier.SESSION: 0.82, Tier.TAIL: 0.08}
_OVERFLOW = (Tier.SESSION, Tier.TAIL, Tier.CROSS)
"""Order in which tiers receive the tokens that other tiers cannot use."""


@record
class Budgets:
    """Token limits for a whole pack and for each tier. Negative limits count as zero."""

    total: int
    cross: int
    session: int
    tail: int
    is_tail_fixed: bool = False
    """True if the tail must not exceed its limit. Otherwise it may use free budget, for example to reach unobserved
    messages.
    """

    @property
    def limits(self) -> dict[Tier, int]:
        limits = {Tier.CROSS: self.cross, Tier.SESSION: self.session, Tier.TAIL: self.tail}
        return {tier: max(0, limit) for tier, limit in limits.items()}


def budgets(
    *,
    total: int | None = None,
    cross: int | None = None,
    session: int | None = None,
    tail: int | None = None,
    defaults: Mapping[Tier, int | None] = DEFAULTS,
) -> Budgets:
    """Return the token limits of a pack and of each tier, computed from the given options.

    A tier without an option gets its default; a default of None means no limit except the total. If no total is given,
    it is the sum of the tiers. If a given total exceeds this sum, tiers without an option grow in proportion to use all
    of it.
    """
    asked = {Tier.CROSS: cross, Tier.SESSION: session, Tier.TAIL: tail}
    unlimited = UNLIMITED if total is None else max(0, total)
    usual = {tier: unlimited if limit is None else limit for tier, limit in defaults.items()}
    limits = {tier: usual[tier] if limit is None else max(0, limit) for tier, limit in asked.items()}
    whole = sum(limits.values())
    free = sum(limits[tier] for tier, limit in asked.items() if limit is None)
    if total is not None and total > whole and free:
        grown = (free + total - whole) / free
        limits = {tier: int(limit * grown) if asked[tier] is None else limit for tier, limit in limits.items()}
    return Budgets(
        total=whole if total is None else total,
        cross=limits[Tier.CROSS],
        session=limits[Tier.SESSION],
        tail=limits[Tier.TAIL],
        is_tail_fixed=tail is not None or limits[Tier.TAIL] <= 0,
    )


def shares(total: int, limits: Mapping[Tier, int]) -> dict[Tier, int]:
    """Divide a total among the tiers before anything is chosen. No tier gets more than its limit.

    The whole total is divided unless it exceeds the sum of the limits.
    """
    total, whole = max(0, total), sum(limits.values())
    if total >= whole:
        return dict(limits)
    small = min(total, _SMALL)
    # Position of the total between `_SMALL` (0) and the sum of the limits (1). Up to `_SMALL`, shares are fixed.
    position = (total - small) / (whole - small)
    parts = {}
    for tier, limit in limits.items():
        share = _SMALL_SHARES[tier] * small
        parts[tier] = min(limit, int(share + position * (limit - share)))
    rest = total - sum(parts.values())
    for tier in _OVERFLOW:
        more = min(rest, limits[tier] - parts[tier])
        parts[tier] += more
        rest -= more
    return parts


def last_fitting(fits: Callable[[int], bool], least: int, most: int) -> int:
    """Return the largest number from `least` to `most` that fits, or `least - 1` if none does.

    If a number fits, all smaller numbers must fit too.
    """
    return least - 1 + bisect_left(range(least, most + 1), True, key=lambda number: not fits(number))  # noqa: FBT003
