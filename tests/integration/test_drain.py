"""Workers that come and go while messages arrive: whatever the order, nothing that is due is left lying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import LaneTaken, NotAllowed, OmError, Refused, StaleBatch, Unreachable
from omcli.base.record import replace
from omcli.memory.batch import Batch, BatchOutcome, Observed, Observer
from omcli.memory.buffer import BufferPolicy
from omcli.memory.observation import LogQuery
from omcli.memory.ports import Lane
from omcli.operations.background import record_missing, run_due
from omcli.operations.deps import LEASE_SECONDS, Policy
from omcli.operations.observe.session import observe_session
from omcli.operations.tick import Due, TickReport, Trigger, due, overdue, tick
from omcli.reflectors.rules import RuleReflector
from omcli.sqlite.dialect import Database
from omcli.sqlite.lanes import SqliteLeases
from tests.fakes import MemoryStore
from tests.fakes.deps import by_observer, by_reflector
from tests.integration.test_operations import NOW, EchoObserver, SteppingClock
from tests.integration.test_operations import deps as made_deps
from tests.material import said, session

WHEN = Due(tokens=1)


class Silent:
    """An observer that makes nothing of anything yet, or fails."""

    def __init__(self, error: OmError | None = None) -> None:
        self.asked = 0
        self._error = error

    def observe(self, batch: Batch) -> Observed:
        self.asked += 1
        if self._error is not None:
            raise self._error
        return Observed(drafts=(), waits_after=batch.after)


class Moorings(SqliteLeases):
    """Leases during whose change something may happen: whenever a worker takes its place, or gives it back."""

    def __init__(self, database: Database, meanwhile: Callable[[], None]) -> None:
        super().__init__(database, is_gone=lambda _: False)
        self._meanwhile = meanwhile
        self.held_by: set[str] = set()
        """Owners that have a place."""

    def claim(self, session: str, lane: Lane, *, owner: str, now: str, expires_at: str) -> None:
        if lane is not Lane.WORK:
            super().claim(session, lane, owner=owner, now=now, expires_at=expires_at)
            return
        self._meanwhile()
        super().claim(session, lane, owner=owner, now=now, expires_at=expires_at)
        self.held_by.add(owner)
        self._meanwhile()

    def release(self, session: str, lane: Lane, *, owner: str) -> None:
        if lane is not Lane.WORK:
            super().release(session, lane, owner=owner)
            return
        self._meanwhile()  # the last look at what waits has been had
        super().release(session, lane, owner=owner)
        self.held_by.discard(owner)
        self._meanwhile()


class Quay(MemoryStore):
    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    @cached_property
    def leases(self) -> Moorings:
        return Moorings(self.database, self._meanwhile)


class Harbour:
    """One session, workers on it, and what arrives between their steps."""

    def __init__(self, arrivals: Sequence[bool], *, when: Due = WHEN) -> None:
        self.store = Quay(self.something_may_arrive)
        self.when = when
        self.asked: list[int] = []
        self.left: list[TickReport] = []
        self._arrivals = iter(arrivals)
        self.arrived = 0
        self._ids = made_deps(self.store).new_id

    def arrive(self) -> None:
        """A caller: keeps a message, and starts a worker."""
        number = self.arrived
        self.arrived += 1
        self.store.messages.append(session(), [said(f"keep {number}", at=NOW)], counter="chars-4", now=NOW)
        self.work(f"worker {number}")

    def work(self, owner: str) -> None:
        observer = EchoObserver(meanwhile=lambda _: self.something_may_arrive())
        work = replace(made_deps(self.store, observer), owner=owner, new_id=self._ids)
        self.left += run_due(work, self.when, ["s"])
        self.asked += [len(batch.messages) for batch in observer.batches]

    def something_may_arrive(self) -> None:
        if next(self._arrivals, False):
            self.arrive()


@given(arrivals=st.lists(st.booleans(), max_size=25), batches=st.sampled_from([None, 1]))
def test_what_arrives_at_any_moment_is_observed_by_whoever_is_at_it(arrivals: list[bool], batches: int | None) -> None:
    """T75, F25: between any two steps of a worker another caller may come, and while that one works a third."""
    harbour = Harbour(arrivals, when=Due(tokens=1, batches=batches))
    harbour.arrive()
    assert harbour.store.batches.pending("s").messages == 0
    assert harbour.store.leases.held_by == set()
    texts = [logged.observation.text for logged in harbour.store.rows.log(LogQuery())]
    assert sorted(texts) == sorted(f"keep {number}" for number in range(len(texts)))
    assert len(texts) == sum(harbour.asked) == harbour.arrived
    assert all(isinstance(ticked.error, LaneTaken | None) for ticked in harbour.left)


def test_a_worker_looks_again_when_it_has_given_its_place_back() -> None:
    """T75: the caller that comes just then finds it taken, leaves, and does not come again."""
    harbour = Harbour([False, False, False, True])  # not before its place, in it or at work; when it is done there
    harbour.arrive()
    assert [type(ticked.error) for ticked in harbour.left] == [LaneTaken, type(None), type(None)]
    assert (harbour.asked, harbour.store.batches.pending("s").messages) == ([1, 1], 0)


class Berth(MemoryStore):
    """A store in which another worker is at a session, and done with it before it can be claimed."""

    def __init__(self, meanwhile: Callable[[MemoryStore], None]) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    @cached_property
    def leases(self) -> LateLeases:
        return LateLeases(self.database, lambda: self._meanwhile(self))


class LateLeases(SqliteLeases):
    def __init__(self, database: Database, meanwhile: Callable[[], None]) -> None:
        super().__init__(database, is_gone=lambda _: False)
        self._meanwhile = [meanwhile]

    def claim(self, session: str, lane: Lane, *, owner: str, now: str, expires_at: str) -> None:
        if lane is Lane.OBSERVE and self._meanwhile:
            self._meanwhile.pop()()
        super().claim(session, lane, owner=owner, now=now, expires_at=expires_at)


@pytest.mark.parametrize("ahead", [None, BufferPolicy(every=50)])
def test_who_waited_for_another_does_only_what_is_due_still(ahead: BufferPolicy | None) -> None:
    """T75: what that one has left is too little, and it is not shown to anybody."""

    def other(store: MemoryStore) -> None:
        list(observe_session("s", replace(made_deps(store, EchoObserver()), owner="other")))
        store.messages.append(session("s"), [said("ok", at=NOW, tokens=1)], counter="chars-4", now=NOW)

    store, observer = Berth(other), EchoObserver()
    store.messages.append(session("s"), [said("keep it in mind", at=NOW, tokens=60)], counter="chars-4", now=NOW)
    deps = made_deps(store, observer)
    when = Due(tokens=50 if ahead is None else 500, ahead=ahead)
    assert list(due(deps, when))
    assert list(tick(deps, when)) == []
    assert (observer.batches, store.batches.pending("s").messages) == ([], 1)


def drained(
    observer: Observer, *sessions: str, clock: SteppingClock | None = None, store: MemoryStore, tokens: int = 1
) -> list[TickReport]:
    """What a worker that nobody disturbs comes to."""
    work = made_deps(store, clock=clock)
    deps = replace(work, observer=by_observer(observer))
    return list(run_due(deps, Due(tokens=tokens), sessions))


def holding(*sessions: str) -> MemoryStore:
    """A store with a message in each of the sessions."""
    store = MemoryStore()
    for name in sessions:
        store.messages.append(session(name), [said(f"keep it in {name}", at=NOW)], counter="chars-4", now=NOW)
    return store


def test_who_works_by_hand_is_waited_for_as_long_as_a_lease_lasts() -> None:
    """T75, F24: and then it is left to whoever that is."""
    store = holding("s")
    store.leases.claim("s", Lane.OBSERVE, owner="by hand", now=NOW, expires_at="2100-01-01T00:00:00.000Z")
    given_back = SteppingClock(
        lambda step: store.leases.release("s", Lane.OBSERVE, owner="by hand") if step == 900 else None
    )
    (ticked,) = drained(EchoObserver(), "s", clock=given_back, store=store)
    assert (ticked.error, len(ticked.rows)) == (None, 1)
    store = holding("s")
    store.leases.claim("s", Lane.OBSERVE, owner="by hand", now=NOW, expires_at="2100-01-01T00:00:00.000Z")
    clock = SteppingClock()
    (ticked,) = drained(EchoObserver(), "s", clock=clock, store=store)
    assert isinstance(ticked.error, LaneTaken)
    assert clock.slept == pytest.approx(LEASE_SECONDS, abs=1)


def test_a_worker_goes_on_where_somebody_was_quicker() -> None:
    """F28: what has come since is its to do."""
    store = holding("s")

    def meanwhile(batch: Batch) -> None:
        if batch.after == 0:
            store.messages.append(session("s"), [said("keep this as well", at=NOW)], counter="chars-4", now=NOW)
            store.batches.record(batch, (), outcome=BatchOutcome.EMPTY, now=NOW)

    stale, done = drained(EchoObserver(meanwhile=meanwhile), "s", store=store)
    assert isinstance(stale.error, StaleBatch)
    assert [row.text for row in done.rows] == ["keep this as well"]


def test_what_gives_nothing_yet_is_not_asked_for_over_and_over() -> None:
    """F17: also where anything that waits is due."""
    store = holding("s")
    observer = Silent()
    drained(observer, "s", store=store, tokens=0)
    assert (observer.asked, store.batches.pending("s").messages) == (1, 1)


def test_an_endpoint_that_is_down_is_asked_once() -> None:
    """F73: and not for each session; what a model will not do of one keeps no other waiting."""
    store = holding("a", "b", "c")
    down = Silent(Unreachable("it is down"))
    (ticked,) = drained(down, "a", "b", "c", store=store)
    assert (str(ticked.error), down.asked) == ("it is down", 1)
    unwilling = Silent(Refused("no"))
    assert [str(ticked.error) for ticked in drained(unwilling, "a", "b", "c", store=store)] == ["no"] * 3


def test_that_nobody_could_be_asked_is_noted_where_something_is_due() -> None:
    """F97: in each lane, until something succeeds there; it is no reason to ask less."""
    store = holding("a", "b")
    work = made_deps(store)
    deps = replace(work, reflector=by_reflector(RuleReflector(work.counter), Policy(tokens=1)))
    (row,) = drained(EchoObserver(), "b", store=store)[0].rows
    record_missing(deps, WHEN, NotAllowed("there is no key"))
    told = {(error.session, error.lane, error.error) for error in store.sessions.status().errors}
    assert told == {("a", Lane.OBSERVE, "there is no key"), ("b", Lane.REFLECT, "there is no key")}
    assert {found.session for found in due(deps, WHEN)} == {"a", "b"}
    assert row.is_visible
    drained(EchoObserver(), "a", store=store)
    assert {error.session for error in store.sessions.status().errors} == {"b"}


@pytest.mark.parametrize(
    ("when", "tokens"),
    [
        (Due(tokens=3, block_after=6), 6),
        (Due(tokens=3, block_after=6, inclusive=False), None),
        (Due(tokens=3, block_after=7), None),
        (Due(tokens=3), None),
        (Due(trigger=Trigger.TURN, block_after=5), 6),
        (Due(trigger=Trigger.MANUAL, block_after=5), None),
    ],
)
def test_a_session_is_overdue_from_so_many_tokens_on(when: Due, tokens: int | None) -> None:
    """T77, S0.22."""
    store = MemoryStore()
    store.messages.append(session("s"), [said("x" * 24, tokens=6)], counter="chars-4", now=NOW)
    assert overdue("s", made_deps(store), when) == tokens
