"""What every scheduler does: write a job down, put it in its place, take it away."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from omcli.base.record import record
from omcli.schedules.job import Job


@record
class Part:
    """A text that a scheduler reads."""

    place: str
    """The file that it is, or what it is a line of."""
    text: str


class Step(StrEnum):
    """What becomes of a part."""

    CREATE = "create"
    REPLACE = "replace"
    KEEP = "keep"
    """It is there already."""
    REMOVE = "remove"


@record
class Change:
    """What becomes of one part."""

    place: str
    step: Step


@record
class Done:
    """What was done, or would be."""

    changes: tuple[Change, ...]
    """Nothing where there is nothing of ours to be removed."""
    said: str = ""
    """What the scheduler's own program said, where it did not take notice."""
    left: tuple[str, ...] = ()
    """Commands that are left to be typed then."""


class Scheduler(Protocol):
    """Something that runs programs by the clock. What is not ours stays as it is, to the byte."""

    name: str

    def parts(self, job: Job) -> tuple[Part, ...]:
        """The job as the scheduler reads it; nothing is looked at, and nothing done."""
        ...

    def install(self, job: Job, *, dry_run: bool = False) -> Done:
        """Puts it in its place, also in that of an earlier one. Raises CannotCreate, InputOutput."""
        ...

    def remove(self, name: str, *, dry_run: bool = False) -> Done:
        """Takes the entry of a job away, if there is one. Raises CannotCreate, InputOutput."""
        ...
