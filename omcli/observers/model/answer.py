"""What a model answered, as rows that nobody believes yet."""

from __future__ import annotations

from omcli.memory.record import record


@record
class Row:
    """A row of a reply, as it was given."""

    text: str
    priority: str = ""
    kind: str = ""
    status: str = ""
    at: str = ""
    """`YYYY-MM-DD HH:MM`, or the part of it that a text gave."""
    refers_to: str = ""
    is_estimate: bool = False
    sources: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    under: int | None = None


@record
class Answer:
    """A reply."""

    rows: tuple[Row, ...]
    used: tuple[str, ...] = ()
    current_task: str = ""
    next_step: str = ""
    title: str = ""
    cites: bool = True
    """False for a reply in text, whose rows need not say which messages they come from."""
