"""Who writes memory: an observer makes observations of messages, a reflector fewer rows of many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from omcli.base.record import field, record
from omcli.memory.observation import Draft, Observation
from omcli.memory.ports import Batch


@record
class Observed:
    """What an observer makes of a batch."""

    drafts: tuple[Draft, ...]
    """What is worth keeping, oldest first."""
    used: tuple[str, ...] = ()
    """Ids of standing rows that mattered for what was said."""
    title: str | None = None
    """What the session is about, where that is new."""
    waits_after: int | None = None
    """What the batch says behind this `seq` gave nothing yet, but what follows may give it a meaning; None: all of it
    counts."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """What had to be put right in a reply, by kind: rows rejected, trimmed, added back."""

    @property
    def is_final(self) -> bool:
        """Whether all of the batch counts."""
        return self.waits_after is None


class Observer(Protocol):
    """Messages to observations."""

    def observe(self, batch: Batch) -> Observed:
        """What is worth keeping of a batch. Raises ProviderFailed, NotAllowed, BadConfiguration."""


class Reading(Protocol):
    """A batch on its way through a model, which is shown one slice of it after the other."""

    def read(self, part: Batch, *, warmer: bool = False) -> None:
        """Asks about the next slice; `warmer` after a reply that ran into a loop.

        Raises ProviderFailed, NotAllowed, BadConfiguration: the slice counts as not read then. After CutOff, and after
        PromptTooLong, a smaller one may do; after Looped, which is a CutOff, best one that is asked for `warmer`.
        """

    def skip(self, part: Batch) -> None:
        """Leaves the next slice to the rules."""

    def observed(self) -> Observed:
        """What is worth keeping of all that was read so far."""


class SlicedObserver(Observer, Protocol):
    """A model, which is not shown all of a batch at once."""

    def begin(self, batch: Batch) -> Reading:
        """Begins to read a batch."""


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
class Dropped:
    """A row that goes out of sight, with nothing in its place but what is known already."""

    row: str
    """Its id."""
    reason: str
    """`duplicate`, `superseded`, `resolved` or `trivial`, or in words."""
    by: str | None = None
    """The id of the row that makes it superfluous, where one does."""


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
