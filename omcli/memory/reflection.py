"""Reflections: rows folded into fewer, what a reflector makes of them, and attempts at it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from omcli.base.record import field, record
from omcli.memory.observation import Draft, Dropped, Observation, Replacement


@record
class Material:
    """Rows to fold into fewer."""

    rows: tuple[Observation, ...]
    """Visible rows, oldest first, at least one."""
    target: int
    """Tokens the remaining rows may have, by the reflector's counter."""
    now: str
    protected: frozenset[str] = frozenset()
    """Ids of rows that must stay visible, or be repeated word for word."""
    most_rows: int = 0
    """Limit on the number of reflections; 0 for none."""
    project: str | None = None


@record
class Reflected:
    """Result of reflecting on rows."""

    reflections: tuple[Draft, ...] = ()
    """Rows that replace those in `replaces` and were made from those in `supports`."""
    dropped: tuple[Dropped, ...] = ()
    items: tuple[Draft, ...] = ()
    """Lasting facts for later sessions; they replace nothing."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """Corrections to a reply, by kind."""
    attempts: int = 1
    """Number of requests to a model."""


class Reflector(Protocol):
    """Rows in, fewer rows out."""

    def reflect(self, material: Material) -> Reflected:
        """Fold rows into fewer; the result is empty if they can't be made shorter.

        Raises ProviderFailed, NotAllowed, BadConfiguration.
        """


class ReflectionOutcome(StrEnum):
    """Outcome of a reflection."""

    DONE = "done"
    EMPTY = "empty"
    """The rows could not be made shorter."""
    FAILED = "failed"


@record
class Scope:
    """Rows of a session, of a project across sessions, or of no project."""

    session: str | None = None
    project: str | None = None


@record
class ReflectionWrite:
    """A reflection to write in one transaction."""

    scope: Scope
    fingerprint: str
    """`fingerprint` of the rows it was made from."""
    ending: ReflectionOutcome
    read: tuple[str, ...] = ()
    """Ids of the rows it was made from; it is stale if any of them was hidden since."""
    rows: tuple[Observation, ...] = ()
    """Reflections and items."""
    replaced: tuple[Replacement, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    error: str | None = None
    figures: Mapping[str, object] = field(default_factory=dict)
    """Counts for people."""
    part_of: int | None = None
    """Number of the operation it is a part of."""


@record
class ReflectionAttempt:
    """A reflection that was made or tried."""

    scope: Scope
    at: str
    ending: ReflectionOutcome
    fingerprint: str
    error: str | None
    figures: Mapping[str, object]
    is_undone: bool = False
    """True if it was undone."""

    @property
    def is_empty(self) -> bool:
        """True if nothing came of these rows, and nothing would next time; a model that failed may work next time."""
        return self.ending is ReflectionOutcome.EMPTY or bool(self.figures.get("in_vain"))

    def is_about(self, mark: str) -> bool:
        """True if it was made from rows of this fingerprint, or left them."""
        return mark in (self.fingerprint, self.figures.get("left"))

    def why_not(self, mark: str) -> str | None:
        """Reason for not retrying rows of this fingerprint; None if they may be retried."""
        if self.fingerprint == mark and self.is_undone:
            return f"the reflection of {self.at} on these rows was undone; `--again` makes another"
        if self.fingerprint == mark and self.is_empty:
            return f"nothing has changed since {self.at}, when nothing could be made of these rows"
        if self.figures.get("left") == mark:
            return f"nothing has changed since {self.at}, when these rows were left as they are"
        return None


def fingerprint(rows: Iterable[Observation], *how: str) -> str:
    """Return a digest of rows and of the way to fold them. Rows are never edited, so their ids are enough."""
    from omcli.memory.message import digest  # noqa: PLC0415 - for reflections only

    ids: Sequence[str] = sorted(row.id for row in rows)
    return digest(*how, *ids)
