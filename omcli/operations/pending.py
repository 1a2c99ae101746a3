"""What waits to be observed, for an agent that observes for itself."""

from __future__ import annotations

from omcli.base.record import record
from omcli.memory.ports import Store, TokenCounter
from omcli.memory.session import Session
from omcli.operations.observe_session import STANDING_ROWS
from omcli.operations.showing import Showing, showing


@record
class Waiting:
    """The oldest of what waits."""

    showing: Showing | None
    """None where no session is meant."""
    messages: int
    """How many wait in the session, those that are shown included."""


def pending(store: Store, *, session: str | None, tokens: int, counter: TokenCounter) -> Waiting:
    """The oldest messages of a session that no observation covers yet, about so many tokens of them. Only reads.

    Where none is named it is the session seen last of those that wait.
    """
    meant = store.session(session) if session is not None else _waiting(store)
    if meant is None:
        return Waiting(showing=None, messages=0)
    messages = store.pending(meant.id).messages
    while True:
        batch = store.unobserved(meant.id, max_tokens=tokens, standing=STANDING_ROWS)
        shown = showing(store, meant, batch, counter=counter, tokens=tokens)
        # Summaries of what was said before are not shown: a batch of nothing else would look as if nothing waited.
        if batch is None or shown.evidence.shown.new or len(batch.messages) >= messages:
            return Waiting(showing=shown, messages=messages)
        tokens *= 2


def _waiting(store: Store) -> Session | None:
    return next((summary.session for summary in store.sessions() if summary.pending), None)
