"""What taking transcripts in works with: a store, a token counter, an observer, a clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from omcli.base.record import record
from omcli.memory.batch import Observer, SlicedObserver
from omcli.memory.observation import Observation, Priority, Status
from omcli.memory.ports import Store
from omcli.memory.reflection import Reflector, fingerprint
from omcli.memory.tokens import TokenCounter
from omcli.operations.clock import Clock
from omcli.operations.ingest.counts import TranscriptCounts
from omcli.pack.budget import reaches

BATCH_TOKENS = 35_000


def _unheard(said: str) -> None:
    """Nobody is told."""


def _silent(name: str, tally: TranscriptCounts) -> None:
    """No progress is shown."""


@record
class Workshop:
    """Everything from outside that `observe` uses."""

    open_store: Callable[[], Store]
    """Gives the store, always the same one; it is made when there is something to put into it."""
    counter: TokenCounter
    observer: Observer | None
    """None: messages are only kept, and wait for one."""
    clock: Clock
    new_id: Callable[[], str]
    """Makes UUIDv7s."""
    owner: str
    """Who holds the leases."""
    wait: float
    """Seconds to wait for a lane that somebody else works on."""
    model: SlicedObserver | None = None
    """The observer where it is a model, whose calls take time and money; None: it is none."""
    keeps_pictures: bool = False
    """Whether images are kept until they are observed: for a model that takes some."""
    batch_tokens: int = BATCH_TOKENS
    """What is observed at once, at most."""
    batch_messages: int | None = None
    ahead: bool = False
    """Whether what waits behind the last pending block is observed, and what comes of it kept as a block."""
    slice_tokens: int | None = None
    """What of that a model is shown at once; None: all of it."""
    rules_stand_in: bool = False
    """Whether rules observe what the model fails at; else the failure is raised."""
    warn: Callable[[str], None] = _unheard
    """Told what people should know and nothing ends for."""
    busy: Callable[[str], None] = _unheard
    """Told what is being waited for, where that takes long."""
    progress: Callable[[str, TranscriptCounts], None] = _silent
    """Told an input's name and its counts from time to time."""

    @property
    def is_model(self) -> bool:
        """Whether a model observes."""
        return self.model is not None

    @property
    def store(self) -> Store:
        """Where messages and rows are kept. Raises what opening it raises, when it is first asked for."""
        return self.open_store()


class Verbatim(StrEnum):
    """Which rows of high priority stay word for word."""

    NONE = "none"
    OPEN = "open"
    """Those that are open, or hold until somebody says otherwise."""
    HIGH = "high"


class Meta(StrEnum):
    """What becomes of reflections when there is more to reflect on."""

    NEVER = "never"
    """They stay as they are."""
    GENERATIONS = "generations"
    """Several of one generation are folded into one of the next."""
    WHOLE = "whole"
    """They are folded again, together with what is new."""


@record
class Policy:
    """When a session is reflected on, and what is to come of it."""

    tokens: int | None = 20_000
    """As many of its rows are due; None: they never are."""
    inclusive: bool = True
    target: float = 0.5
    """What should remain: a share of what is read (up to 1), or tokens."""
    rows: int = 0
    """The most reflections that may come of it; 0: as many as it takes."""
    verbatim: Verbatim = Verbatim.OPEN
    meta: Meta = Meta.NEVER
    meta_at: int = 5
    """How many reflections of a generation are folded by themselves."""

    def is_due(self, tokens: int) -> bool:
        """Whether so many tokens of rows are to be folded."""
        return self.tokens is not None and reaches(tokens, self.tokens, inclusive=self.inclusive)

    def target_of(self, tokens: int) -> int:
        """What should remain of so many tokens."""
        return int(self.target * tokens) if self.target <= 1 else int(self.target)

    def protects(self, row: Observation) -> bool:
        """Whether a row has to stay word for word."""
        if row.priority is not Priority.HIGH or self.verbatim is Verbatim.NONE:
            return False
        return self.verbatim is Verbatim.HIGH or row.status is Status.OPEN or row.is_mutable


@record
class Studio:
    """What reflecting works with, beside what observing does."""

    workshop: Workshop
    reflector: Reflector
    policy: Policy
    name: str = "rules"
    """Who reflects, for the ledger of what was tried: another one may do better."""
    is_model: bool = False
    stand_in: Reflector | None = None
    """Who reflects where the reflector fails; None: nobody does."""

    def mark(self, rows: Sequence[Observation]) -> str:
        """The fingerprint of rows, and of how they are folded here: told otherwise, more may come of them."""
        policy = self.policy
        return fingerprint(rows, self.name, str(policy.target), str(policy.rows), policy.verbatim, policy.meta)
