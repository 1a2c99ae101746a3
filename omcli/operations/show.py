"""One row in full, with the messages it came from."""

from __future__ import annotations

from omcli.base.errors import UnknownId
from omcli.base.record import record
from omcli.memory.changes import Traces
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Observation
from omcli.memory.ports import Store
from omcli.memory.retention import Coverage


@record
class Shown:
    """A row with its messages, or a message alone."""

    observation: Observation | None
    messages: tuple[KeptMessage, ...]
    coverage: Coverage | None = None
    """Of a row."""
    traces: Traces | None = None
    """What became of it and how it came to be, where that was asked for."""


def show(store: Store, reference: str, *, with_traces: bool = False) -> Shown:
    """What an id or its short form names: a row, else a message. Raises UnknownId for none and for several."""
    try:
        observation = store.observation(reference)
    except UnknownId as no_row:
        try:
            return Shown(observation=None, messages=(store.message(reference),))
        except UnknownId as no_message:
            raise no_message if len(store.messages_named(reference)) > 1 else no_row from None
    return Shown(
        observation=observation,
        messages=store.messages(observation.sources),
        coverage=Coverage.of(store.support(observation.id)),
        traces=store.traces(observation.id) if with_traces else None,
    )
