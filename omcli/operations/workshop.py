"""What taking transcripts in works with: a store, a token counter, an observer, a clock."""

from __future__ import annotations

from collections.abc import Callable

from omcli.base.record import record
from omcli.memory.ports import Store, TokenCounter
from omcli.memory.roles import Observer, SlicedObserver
from omcli.operations.clock import Clock
from omcli.operations.tally import Tally

BATCH_TOKENS = 35_000


def _unheard(said: str) -> None:
    """Nobody is told."""


def _silent(name: str, tally: Tally) -> None:
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
    progress: Callable[[str, Tally], None] = _silent
    """Told an input's name and its counts from time to time."""

    @property
    def is_model(self) -> bool:
        """Whether a model observes."""
        return self.model is not None

    @property
    def store(self) -> Store:
        """Where messages and rows are kept. Raises what opening it raises, when it is first asked for."""
        return self.open_store()
