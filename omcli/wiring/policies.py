"""Policies of operations, from the settings: budgets, selection, thresholds and retention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omcli.base.record import fields_of, replace

if TYPE_CHECKING:
    from omcli.memory.retention import RetentionRules
    from omcli.memory.session import EvictionPolicy
    from omcli.operations.clock import Clock
    from omcli.operations.deps import ObserverDeps
    from omcli.operations.model_calls import Limit, Patience
    from omcli.operations.tick import Due
    from omcli.pack.budget import Budgets
    from omcli.pack.context_pack import Choice
    from omcli.settings.settings import ObserveSettings, Settings

_LONGEST_AGO = 30_000
"""Maximum age in days. It reaches back before 1970, the earliest time in a store; much longer ones would overflow."""
_TOKENS = 100
"""`block_after` is a number of tokens if it is at least this, otherwise a multiple of the threshold."""
_MUCH = 10
"""Tokens observed at once per token shown to a model, if it is shown only the newest messages."""


def budgets(settings: Settings, asked: Mapping[str, int | None]) -> Budgets:
    """Return the budgets of a pack (`total`) and its tiers: the requested ones, otherwise those in the settings.

    By default, a tier that is not printed gets nothing, and neither do other sessions if the scope is one session. The
    tail of a frozen pack may grow until it is cut.
    """
    from omcli.memory.message import UNLIMITED
    from omcli.pack.budget import Tier, budgets

    tiers = settings.context
    grown = tiers.evict if tiers.freeze and tiers.evict is not None else tiers.tail
    usual = {Tier.CROSS: tiers.cross, Tier.SESSION: tiers.session, Tier.TAIL: grown}
    if settings.scope == "session":
        usual[Tier.CROSS] = 0
    defaults = {tier: most if tier in tiers.order else 0 for tier, most in usual.items()}
    most = {name: tokens if tokens is None else min(tokens, UNLIMITED) for name, tokens in asked.items()}
    return budgets(**most, defaults=defaults)


def observer_deps(said: ObserveSettings, usual: ObserverDeps, *, most: int | None = None) -> ObserverDeps:
    """Return `usual` with the limits for a model. If given, `most` also limits the tokens in a batch."""
    longest = said.max_transcript or usual.batch_tokens
    at_once = min(said.batch_tokens, longest)
    batch = _MUCH * longest if said.newest_only else at_once if said.chunk_messages else longest
    return replace(
        usual,
        batch_tokens=batch if most is None else min(batch, most),
        batch_messages=said.chunk_messages or None,
        slice_tokens=None if said.newest_only else at_once,
    )


def eviction(settings: Settings) -> EvictionPolicy | None:
    """Return the eviction policy, or None if packs are not frozen."""
    from omcli.memory.message import UNLIMITED
    from omcli.memory.session import EvictionPolicy

    said = settings.context
    if not said.freeze:
        return None
    if said.evict is None:
        return EvictionPolicy(most=UNLIMITED, left=UNLIMITED // 2)
    # A cut makes room for several turns, because otherwise nearly every turn would change the pack.
    return EvictionPolicy(
        most=said.evict, left=min(said.evict if said.tail is None else said.tail, said.evict * 3 // 4)
    )


def choice(settings: Settings) -> Choice:
    from omcli.pack.budget import Tier
    from omcli.pack.context_pack import Choice
    from omcli.pack.cross_session import HALF_LIFE, TIME_CONSTANT

    said = settings.context
    order = tuple(map(Tier, said.order))
    return Choice(
        reflections=said.reflections,
        others=said.observations,
        is_recent=said.select == "recent",
        is_descending=said.render == "desc",
        result_chars=said.result_chars,
        is_append_only=said.append_only,
        fading=TIME_CONSTANT if said.rank == "time-constant" else HALF_LIFE,
        order=(*order, *(tier for tier in Tier if tier not in order)),
    )


def due(settings: Settings, *, has_model: bool) -> Due:
    """Return the conditions under which observing is due. Without a model, any number of pending tokens is enough."""
    from omcli.memory.buffer import BufferPolicy
    from omcli.operations.tick import Due, Trigger

    said = settings.observe
    if not has_model:
        return Due(trigger=Trigger(said.trigger), tokens=1, is_free=True)
    ahead = BufferPolicy.of(
        said.precompute,
        tokens=said.tokens,
        late=said.precompute_late,
        late_from=said.precompute_late_from,
        messages=said.chunk_messages,
    )
    return Due(
        trigger=Trigger(said.trigger),
        tokens=said.tokens,
        inclusive=said.inclusive,
        batches=1 if said.chunk_messages else None,
        block_after=_block_after(said),
        ahead=ahead if said.precompute > 0 else None,
        floor=said.floor,
    )


def _block_after(said: ObserveSettings) -> int:
    most = said.block_after
    return int(most * said.tokens if most < _TOKENS else most)


def retention(settings: Settings, clock: Clock) -> RetentionRules:
    """Return the retention rules, which are empty if the settings contain none."""
    from omcli.memory.retention import RetentionRules

    said = settings.retention
    return RetentionRules(
        before=_days_ago(said.older_than, clock),
        keep_last=said.keep_last,
        max_tokens=said.max_tokens,
        keep_sessions=said.keep_sessions,
        messages_before=_days_ago(said.raw_older_than, clock),
    )


def _days_ago(days: float | None, clock: Clock) -> str | None:
    return None if days is None else clock.after(-min(days, _LONGEST_AGO) * 86_400)


def patience(settings: Settings, clock: Clock) -> Patience:
    from omcli.operations.model_calls import Patience

    return Patience(longest=settings.provider.longest_wait, clock=clock)


def limits(settings: Settings) -> tuple[Limit, ...]:
    from omcli.operations.model_calls import Limit

    return tuple(
        Limit(
            name=f"limits.{name}",
            most=most,
            is_cost=name.endswith("_cost"),
            of_month="month_" in name,
            is_hard=not name.startswith("soft_"),
        )
        for name, most in fields_of(settings.limits).items()
        if most is not None
    )
