"""Reflections: folding rows into fewer, the result of a reflector, and earlier attempts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import chain
from typing import NamedTuple, Protocol

from omcli.base.record import field, record
from omcli.memory.observation import Draft, Dropped, Observation, Replacement


@record
class Material:
    rows: tuple[Observation, ...]
    """Visible rows, oldest first; at least one."""
    target: int
    """Maximum number of tokens in the remaining rows, by the reflector's counter."""
    now: str
    protected: frozenset[str] = frozenset()
    """Ids of rows that must stay visible or be repeated word for word."""
    most_rows: int = 0
    """Maximum number of a model's reflections; more are made if so few would each be too long. 0 means no limit."""
    project: str | None = None
    session: str | None = None
    """Session that is reflected on, or None across sessions."""


@record
class Reflected:
    reflections: tuple[Draft, ...] = ()
    """Drafts that hide the rows named in `replaces` and were made from those named in `supports`."""
    dropped: tuple[Dropped, ...] = ()
    items: tuple[Draft, ...] = ()
    """Lasting facts for later sessions. They replace nothing."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """Number of corrections to a model's reply, by kind."""
    attempts: int = 1


class Reflector(Protocol):
    """Port for folding rows into fewer, by rules or with a model."""

    def reflect(self, material: Material) -> Reflected:
        """Fold rows into fewer. The result is empty if the rows cannot be made shorter. May raise ProviderFailed,
        NotAllowed or BadConfiguration.
        """


class ReflectionOutcome(StrEnum):
    DONE = "done"
    EMPTY = "empty"
    """The rows could not be made shorter."""
    FAILED = "failed"


@record
class Scope:
    """The rows to reflect on: those of one session, or the cross-session rows of one project or of no project."""

    session: str | None = None
    project: str | None = None


@record
class ReflectionWrite:
    """A reflection to write in one transaction."""

    scope: Scope
    fingerprint: str
    """Result of `fingerprint` for the rows that were read."""
    ending: ReflectionOutcome
    read: tuple[str, ...] = ()
    """Ids of the rows that were read. If any of them has been hidden since, the reflection is rejected as stale."""
    rows: tuple[Observation, ...] = ()
    """Reflections and items."""
    replaced: tuple[Replacement, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    error: str | None = None
    figures: Mapping[str, object] = field(default_factory=dict)
    """Counts to display, and `left`: the fingerprint of remaining rows that are not worth another reflection."""
    part_of: int | None = None
    """Number of the operation that this reflection is part of, if any."""
    seen: tuple[str, int] | None = None
    """If all rows of a session were read, and the rest is not worth another reflection: a digest of the settings for
    folding, and `Rows.changes` before the rows were read.
    """


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

    def is_about(self, mark: str) -> bool:
        """Return True if `mark` is the fingerprint of the rows that the attempt read, or of those that it left."""
        return mark in (self.fingerprint, self.figures.get("left"))

    def why_not(self, mark: str) -> str | None:
        """Return the reason not to reflect again on rows with the fingerprint `mark`, or None if there is none."""
        if self.fingerprint == mark and self.is_undone:
            return f"the reflection of {self.at} on these rows was undone; `--again` makes another"
        if self.fingerprint == mark and self.ending is ReflectionOutcome.EMPTY:
            return f"nothing has changed since {self.at}, when nothing could be made of these rows"
        if self.figures.get("left") == mark:
            return f"nothing has changed since {self.at}, when these rows were left as they are"
        return None


def fingerprint(rows: Iterable[Observation], *how: str) -> str:
    """Return a digest of the rows and of `how` they are folded. Row ids suffice because rows are never edited."""
    return fingerprint_of(sorted(row.id for row in rows), *how)


def fingerprint_of(ids: Iterable[str], *how: str) -> str:
    """Return the `fingerprint` of rows by their sorted ids."""
    from omcli.memory.message import digest_of  # noqa: PLC0415 - for reflections only

    return digest_of(chain(how, ids))


class RowOutline(NamedTuple):
    """The columns of a row that are needed to plan a fold across sessions. A whole row would take longer to read."""

    project: str | None
    dated: str
    position: int
    tokens: int | str
    """Its tokens, or its text if another counter counted them."""
