"""What watching puts off when a model fails: sessions wait each for itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from omcli.base.errors import OmError, Unreachable, Waiting
from omcli.memory.batch import Batch, Observed
from omcli.memory.observation import LogQuery
from omcli.operations.deps import Deps
from omcli.operations.tick import Due
from omcli.operations.watch import FoundFiles, RoundDeps, Watch
from tests.fakes import MemoryStore
from tests.integration.test_operations import EchoObserver, SteppingClock, deps, made_of, user


@dataclass(slots=True)
class _Failing(EchoObserver):
    """Raises an error for batches with its word."""

    errors: dict[str, OmError] = field(default_factory=dict)

    def observe(self, batch: Batch) -> Observed:
        for word, error in self.errors.items():
            if any(word in kept.message.text for kept in batch.messages):
                raise error
        return EchoObserver.observe(self, batch)


class _Watched:
    """A file for each session, and the store they are observed in. Rounds follow one another at once."""

    def __init__(self, **errors: OmError) -> None:
        self.store, self.clock = MemoryStore(), SteppingClock()
        self.observer = _Failing(errors=errors)
        self.waiting: set[str] = set()
        self.files = dict.fromkeys(("one", "two"), (1,))
        self.watch = Watch(self, self._opened, clock=self.clock, at_most_every=0)

    def look(self) -> FoundFiles:
        return FoundFiles(files=dict(self.files), faults={})

    def is_guess(self, path: str) -> bool:
        return False

    def exists(self, path: str) -> bool:
        return True

    @property
    def deps(self) -> Deps:
        usual = deps(self.store, self.observer, self.clock)
        return replace(usual, observer=replace(usual.observer, waits=lambda _: bool(self.waiting)))

    @property
    def rows(self) -> list[str]:
        return sorted(logged.observation.text for logged in self.store.rows.log(LogQuery()))

    def looks(self) -> None:
        list(self.watch.round())

    @contextmanager
    def _opened(self) -> Iterator[RoundDeps]:
        yield RoundDeps(
            deps=self.deps,
            when=Due(tokens=1),
            transcript=lambda path: replace(made_of([user(f"keep {path}")]), name=path),
        )


def test_one_session_that_waits_keeps_no_other_from_its_model() -> None:
    """XA4: the model failed for that session alone; where it cannot be reached, none is asked for a minute."""
    watched = _Watched(one=Waiting("asked again at noon"))
    watched.looks()
    assert watched.rows == ["keep two"]
    watched = _Watched(one=Unreachable("no route"))
    watched.looks()
    assert watched.rows == []
    watched.clock.sleep(61)
    watched.observer.errors.clear()
    watched.looks()
    assert watched.rows == ["keep one", "keep two"]


def test_a_session_whose_wait_is_over_is_asked_for_without_new_messages() -> None:
    """XA4."""
    watched = _Watched()
    watched.waiting.add("all")
    for _ in range(3):
        watched.looks()
        watched.clock.sleep(61)
    assert (watched.rows, watched.observer.batches) == ([], [])
    watched.waiting.clear()
    watched.looks()
    assert watched.rows == ["keep one", "keep two"]
