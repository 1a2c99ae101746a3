"""What models may cost, and what a reply has cost, by settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omcli.base.record import fields_of

if TYPE_CHECKING:
    from omcli.llm.model import Reply
    from omcli.operations.limits import Limit
    from omcli.settings.settings import Settings


def cost(reply: Reply, *, endpoint: str, settings: Settings) -> float | None:
    """What a reply of an endpoint has cost, in US dollars, by your prices before those that are known; None where
    neither has the model."""
    from omcli.providers import endpoints

    return endpoints.cost(
        reply.model,
        endpoint=endpoint,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        cached_tokens=reply.cached_tokens,
        own=settings.prices,
    )


def limits(settings: Settings) -> tuple[Limit, ...]:
    """What models may cost, the hard limits first."""
    from omcli.operations.limits import Limit

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
