"""One row in full, with the messages it came from."""

from __future__ import annotations

from enum import StrEnum

from omcli.memory.errors import UnknownId
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Observation
from omcli.memory.ports import Store
from omcli.memory.record import record


class Coverage(StrEnum):
    """How well a row is covered by reflections: by none, by one, or by several."""

    NONE = "none"
    PARTIAL = "partial"
    STRONG = "strong"

    @classmethod
    def of(cls, reflections: int) -> Coverage:
        """The coverage by so many."""
        return (cls.NONE, cls.PARTIAL, cls.STRONG)[min(reflections, 2)]


@record
class Shown:
    """A row with its messages, or a message alone."""

    observation: Observation | None
    messages: tuple[KeptMessage, ...]
    coverage: Coverage | None = None
    """Of a row."""


def show(store: Store, reference: str) -> Shown:
    """What an id or its short form names: a row, else a message. Raises UnknownId for none and for several."""
    try:
        observation = store.observation(reference)
    except UnknownId as no_row:
        try:
            return Shown(observation=None, messages=(store.message(reference),))
        except UnknownId:
            raise no_row from None
    return Shown(
        observation=observation,
        messages=store.messages(observation.sources),
        coverage=Coverage.of(store.support(observation.id)),
    )
