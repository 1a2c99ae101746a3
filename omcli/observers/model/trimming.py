"""Replies that are too long, made as long as they may be."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.memory.budget import largest
from omcli.memory.observation import Draft
from omcli.memory.ports import TokenCounter
from omcli.memory.record import replace
from omcli.observers.model.believing import Believed


def size_of(drafts: Sequence[Draft], counter: TokenCounter) -> int:
    """Tokens of the texts of rows, as one text."""
    return counter.text("\n".join(draft.text for draft in drafts))


def trimmed(reply: Believed, most: int, counter: TokenCounter) -> Believed:
    """A reply without its last rows, as many as `most` tokens demand; at least one is left, cut where it must be."""
    kept = len(reply.drafts)
    while kept > 1 and size_of(reply.drafts[:kept], counter) > most:
        kept -= 1
    drafts = reply.drafts[:kept]
    if size_of(drafts, counter) > most:
        drafts = (replace(drafts[0], text=_beginning(drafts[0].text, most, counter)),)
    reply.findings["trimmed"] += len(reply.drafts) - kept
    reply.findings["cut"] += drafts != reply.drafts[:kept]
    return replace(reply, drafts=drafts)


def _beginning(text: str, most: int, counter: TokenCounter) -> str:
    """The longest beginning of a text that fits, at least a character."""
    fitting = largest(lambda chars: counter.text(_marked(text, chars)) <= most, 1, len(text))
    return _marked(text, max(1, fitting))


def _marked(text: str, chars: int) -> str:
    return f"{text[:chars].rstrip()}…"
