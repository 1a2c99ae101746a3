"""Reflections: rows folded into fewer, the result of a reflector, and earlier attempts."""

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
    """Maximum tokens of the rows that remain, by the reflector's counter."""
    now: str
    protected: frozenset[str] = frozenset()
    """Ids of rows that must stay visible or be repeated word for word."""
    most_rows: int = 0
    """Limit on the number of reflections; 0 for none."""
    project: str | None = None


@record
class Reflected:
    """Result of reflecting on rows."""

    reflections: tuple[Draft, ...] = ()
    """Drafts that hide the rows in their `replaces`; `supports` names the rows they were made from."""
    dropped: tuple[Dropped, ...] = ()
    items: tuple[Draft, ...] = ()
    """Lasting facts for later sessions; they replace nothing."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """Number of corrections to a model's reply, by kind."""
    attempts: int = 1
    """Number of attempts it took."""


class Reflector(Protocol):
    """Port for folding rows into fewer, by rules or with a model."""

    def reflect(self, material: Material) -> Reflected:
        """Fold rows into fewer. The result is empty if they can't be made shorter.

        May raise ProviderFailed, NotAllowed or BadConfiguration.
        """


class ReflectionOutcome(StrEnum):
    """Outcome of a reflection."""

    DONE = "done"
    EMPTY = "empty"
    """The rows could not be made shorter."""
    FAILED = "failed"


@record
class Scope:
    """The rows to reflect on: those of a session, or cross-session rows of a project or of none."""

    session: str | None = None
    project: str | None = None


@record
class ReflectionWrite:
    """A reflection to write in one transaction."""

    scope: Scope
    fingerprint: str
    """`fingerprint` of the rows that were read."""
    ending: ReflectionOutcome
    read: tuple[str, ...] = ()
    """Ids of the rows that were read. The reflection is stale if any of them has been hidden since."""
    rows: tuple[Observation, ...] = ()
    """Reflections and items."""
    replaced: tuple[Replacement, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    error: str | None = None
    figures: Mapping[str, object] = field(default_factory=dict)
    """Counts for display."""
    part_of: int | None = None
    """Number of the operation it is part of, if any."""


@record
class ReflectionAttempt:
    """A past reflection, successful or not."""

    scope: Scope
    at: str
    ending: ReflectionOutcome
    fingerprint: str
    error: str | None
    figures: Mapping[str, object]
    is_undone: bool = False
    """True if its operation was undone."""

    @property
    def is_empty(self) -> bool:
        """True if these rows could not be made shorter and trying again is pointless. A failed model may be retried."""
        return self.ending is ReflectionOutcome.EMPTY or bool(self.figures.get("in_vain"))

    def is_about(self, mark: str) -> bool:
        """Return True if this is the fingerprint of the rows it read, or of those it left."""
        return mark in (self.fingerprint, self.figures.get("left"))

    def why_not(self, mark: str) -> str | None:
        """Return the reason not to reflect on rows with this fingerprint again; None if there is none."""
        if self.fingerprint == mark and self.is_undone:
            return f"the reflection of {self.at} on these rows was undone; `--again` makes another"
        if self.fingerprint == mark and self.is_empty:
            return f"nothing has changed since {self.at}, when nothing could be made of these rows"
        if self.figures.get("left") == mark:
            return f"nothing has changed since {self.at}, when these rows were left as they are"
        return None


def fingerprint(rows: Iterable[Observation], *how: str) -> str:
    """Return a digest of the rows and of `how` they are folded. Ids are enough, since rows are never edited."""
    from omcli.memory.message import digest  # noqa: PLC0415 - for reflections only

    ids: Sequence[str] = sorted(row.id for row in rows)
    return digest(*how, *ids)
