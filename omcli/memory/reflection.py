"""What a reflection does with rows, as it is written down: in one piece, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from omcli.base.record import field, record
from omcli.memory.observation import Draft, Dropped, Observation, Replacement


@record
class Material:
    """Rows to be folded into fewer."""

    rows: tuple[Observation, ...]
    """In sight, oldest first, at least one."""
    target: int
    """Tokens that the rows which remain should have at most, by the reflector's counter."""
    now: str
    protected: frozenset[str] = frozenset()
    """Ids of rows that have to stay in sight, or come back word for word."""
    most_rows: int = 0
    """How many reflections may come out; 0: as many as needed."""
    project: str | None = None


@record
class Reflected:
    """What a reflector makes of rows."""

    reflections: tuple[Draft, ...] = ()
    """Rows that take the place of those they `replaces`, and were made of those they `supports`."""
    dropped: tuple[Dropped, ...] = ()
    items: tuple[Draft, ...] = ()
    """Lasting facts for later sessions; they replace nothing."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """What had to be put right in a reply, by kind."""
    attempts: int = 1
    """How often a model was asked."""


class Reflector(Protocol):
    """Observations to fewer rows."""

    def reflect(self, material: Material) -> Reflected:
        """What the rows come to. Nothing at all where they can't be made shorter.

        Raises ProviderFailed, NotAllowed, BadConfiguration.
        """


class ReflectionOutcome(StrEnum):
    """What came of it."""

    DONE = "done"
    EMPTY = "empty"
    """Nothing: the rows could not be made shorter."""
    FAILED = "failed"


@record
class Scope:
    """Which rows are meant: those of a session, or of a project across sessions, or of no project."""

    session: str | None = None
    project: str | None = None


@record
class ReflectionWrite:
    """A reflection to be written down."""

    scope: Scope
    fingerprint: str
    """`fingerprint` of the rows it was made from."""
    ending: ReflectionOutcome
    read: tuple[str, ...] = ()
    """Ids of the rows it was made from: it holds only while all of them are in sight."""
    rows: tuple[Observation, ...] = ()
    """Reflections and items."""
    replaced: tuple[Replacement, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    error: str | None = None
    figures: Mapping[str, object] = field(default_factory=dict)
    """What it came to, for people."""
    part_of: int | None = None
    """The number of the operation that it is a part of."""


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
    """Whether it was taken back."""

    @property
    def is_in_vain(self) -> bool:
        """Whether nothing came of these rows, and nothing would the next time: a model that is down may be up again."""
        return self.ending is ReflectionOutcome.EMPTY or bool(self.figures.get("in_vain"))

    def is_about(self, mark: str) -> bool:
        """Whether it was made from rows of this fingerprint, or left them."""
        return mark in (self.fingerprint, self.figures.get("left"))

    def why_not(self, mark: str) -> str | None:
        """Why rows of this fingerprint need not be tried again; None where they may be."""
        if self.fingerprint == mark and self.is_undone:
            return f"the reflection of {self.at} on these rows was undone; `--again` makes another"
        if self.fingerprint == mark and self.is_in_vain:
            return f"nothing has changed since {self.at}, when nothing could be made of these rows"
        if self.figures.get("left") == mark:
            return f"nothing has changed since {self.at}, when these rows were left as they are"
        return None


def fingerprint(rows: Iterable[Observation], *how: str) -> str:
    """A digest of rows and of how they are to be folded. Rows are never edited, so their ids tell all of them."""
    from omcli.memory.message import digest  # noqa: PLC0415 - for reflections only

    ids: Sequence[str] = sorted(row.id for row in rows)
    return digest(*how, *ids)
