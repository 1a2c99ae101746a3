"""What the memory of a session comes to, as values: a context and its figures, and what was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omcli.base.errors import OmError
from omcli.base.record import record
from omcli.memory.observation import Observation

if TYPE_CHECKING:
    from omcli.memory.notation import Notation
    from omcli.pack.budget import Tier
    from omcli.pack.context_pack import ContextPack


@record
class Stats:
    """What a context comes to. All tokens are counted by `counter`."""

    working: int
    """Tokens of the last messages as printed."""
    session: int
    """Of what was observed in the session."""
    cross: int
    """Of what other sessions left behind, and of lasting items."""
    total: int
    """Of the three together."""
    pending: int
    """Messages of the session that no observation covers yet."""
    counter: str
    """The token counter, by name."""
    budget: int
    """The most tokens that `Context.text` may have."""


@record
class Context:
    """What an agent should know, at one moment."""

    text: str
    """All of it as `om context` prints it, at most `stats.budget` tokens; empty where there is nothing."""
    memory: str
    """The same without the last messages: for the system prompt of an agent that is given `messages` as well."""
    cross: str
    """The tier of other sessions, as it stands in `text`."""
    session: str
    """The tier of this session."""
    working: str
    """The last messages."""
    messages: tuple[Mapping[str, object], ...]
    """The last messages in OpenAI's chat shape, oldest first, each call with its result: an agent can go on from them.

    Long results and arguments are excerpts. `ingest` knows them again.
    """
    anthropic_messages: tuple[Mapping[str, object], ...]
    """The same in the shape of Anthropic's Messages."""
    stats: Stats


@record
class Worked:
    """What observing and reflecting have come to."""

    observations: tuple[Observation, ...] = ()
    """Rows written, oldest first."""
    reflections: tuple[Observation, ...] = ()
    """Rows that took the place of others."""
    items: tuple[Observation, ...] = ()
    """Lasting facts for later sessions."""
    pending: int = 0
    """Messages that no observation covers yet."""
    error: OmError | None = None
    """What kept the rest from being done; what had been done by then stays done."""
    warnings: tuple[str, ...] = ()
    """What people should know."""


def context_of(pack: ContextPack, notation: Notation, *, order: tuple[Tier, ...]) -> Context:
    """A pack as a value of the API; `order` is that of its tiers."""
    from omcli.pack.budget import Tier
    from omcli.pack.layouts.chat import ANTHROPIC, OPENAI
    from omcli.pack.layouts.layout import Head, PackContent
    from omcli.pack.layouts.text import Text

    head = Head(
        session=pack.session,
        counter=pack.counter,
        budgets=pack.budgets,
        pending=pack.pending,
        notation=notation,
        order=order,
    )
    layout = Text(head=head)
    shown = PackContent(cross=pack.cross, session=pack.observations, tail=pack.turns)
    parts = {tier: layout.part(tier, shown) for tier in Tier}
    return Context(
        text=pack.printed,
        memory=layout.block(parts[tier] for tier in head.order if tier is not Tier.TAIL),
        cross=parts[Tier.CROSS],
        session=parts[Tier.SESSION],
        working=parts[Tier.TAIL],
        messages=tuple(OPENAI.messages(pack.turns)),
        anthropic_messages=tuple(ANTHROPIC.messages(pack.turns)),
        stats=Stats(
            working=pack.tokens[Tier.TAIL],
            session=pack.tokens[Tier.SESSION],
            cross=pack.tokens[Tier.CROSS],
            total=sum(pack.tokens.values()),
            pending=pack.pending,
            counter=pack.counter,
            budget=pack.budgets.total,
        ),
    )
