"""Two at work on one store, in every order that chance brings: each message is covered once, no cursor goes back."""

from __future__ import annotations

import random
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from omcli.base.errors import LaneTaken, StaleBatch
from omcli.memory.batch import Batch, Observed
from omcli.memory.message import Incoming
from omcli.memory.ports import Lane
from omcli.operations.clock import Clock, id_at
from omcli.operations.deps import Deps
from omcli.operations.observe.session import observe_session
from omcli.reflectors.rules import RuleReflector
from omcli.sqlite import SqliteStore
from omcli.tokenizers import counter
from tests.fakes import empty_store
from tests.fakes.deps import by_observer, by_reflector
from tests.integration.sqlite.running import start
from tests.integration.sqlite.watching import SetClock, Watcher, word_for_word
from tests.material import COUNTER, NOW, said, session
from tests.soak import first_only

SEEDS, STEPS, DEEPEST = 400, 25, 4
PARTS = first_only([range(0, SEEDS, 10), *(range(part, SEEDS, 4) for part in range(4))])
"""Seeds that are tried together."""


@dataclass(slots=True)
class ThinkingObserver:
    """Writes every message down; while it thinks, something else happens."""

    meanwhile: Callable[[], None]

    def observe(self, batch: Batch) -> Observed:
        self.meanwhile()
        return word_for_word(batch)


@dataclass(slots=True)
class Play:
    """One seed: two actors, each with a connection of its own, and what they do in turn and while the other thinks."""

    chance: random.Random
    stores: tuple[SqliteStore, ...]
    watcher: Watcher
    clock: SetClock = field(default_factory=SetClock)
    gone: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    owners: Iterator[int] = field(default_factory=count)
    depth: int = 0

    def step(self) -> None:
        """Anything, by anybody."""
        act = self.chance.choice([self.append, self.append, self.observe, self.observe, self.die, self.turn_clock])
        self.happened[act.__name__] += 1
        act(self.chance.choice(self.stores), self.chance.choice("ab"))
        self.watcher.look()

    def append(self, store: SqliteStore, name: str) -> None:
        """New messages, and some that came before."""
        texts = [f"{name} {len(self.said) + number}" for number in range(self.chance.randint(1, 3))]
        again = self.chance.sample(self.said, min(2, len(self.said)))
        new = store.messages.append(
            session(name), [self.message(text) for text in (*again, *texts)], counter=COUNTER, now=self.clock.now()
        ).new
        assert new == (*[False] * len(again), *[True] * len(texts))
        self.said += texts

    def message(self, text: str) -> Incoming:
        return said(text, tokens=int(text.split()[1]) % 4 * 6000)

    def observe(self, store: SqliteStore, name: str) -> None:
        """To the end, or left after a batch or two."""
        owner = f"owner {next(self.owners)}"
        try:
            for number, _ in enumerate(observe_session(name, self.workshop(store, owner))):
                if number == self.chance.choice([1, 2, 9]):
                    break
        except (LaneTaken, StaleBatch) as error:
            self.happened[type(error).__name__] += 1

    def workshop(self, store: SqliteStore, owner: str) -> Deps:
        return workshop(
            store,
            clock=self.clock,
            owner=owner,
            meanwhile=self.think,
            new_id=lambda: id_at(0, self.chance.getrandbits(80)),
        )

    def think(self) -> None:
        self.depth += 1
        while self.depth < DEEPEST and self.chance.random() < 0.7:
            self.step()
        self.depth -= 1

    def die(self, store: SqliteStore, name: str) -> None:
        """Somebody who holds the lane is no more; where they were on another host, nobody knows."""
        owner = f"owner {next(self.owners)}"
        try:
            store.leases.claim(name, Lane.OBSERVE, owner=owner, now=self.clock.now(), expires_at=self.clock.after(600))
        except LaneTaken:
            return
        store.batches.unobserved(name, max_tokens=1000)
        if self.chance.random() < 0.7:
            self.gone.add(owner)

    def turn_clock(self, _store: SqliteStore, _name: str) -> None:
        self.clock.moment += timedelta(seconds=self.chance.choice([1, 601, 601, 601, -300, -86_400]))

    def finish(self) -> None:
        """Whatever happened, the next runs cover the rest; at the latest when the leases of the lost have ended."""
        self.depth = DEEPEST
        for _ in range(2):
            for name in "ab":
                for _ in observe_or_not(name, self.workshop(self.stores[0], "the last")):
                    self.watcher.look()
            self.clock.moment += timedelta(seconds=601)
        assert self.watcher.texts() == self.said
        assert self.stores[0].sessions.status().pending == 0


def observe_or_not(name: str, workshop: Deps) -> Iterator[object]:
    """To the end, unless somebody is at it."""
    with suppress(LaneTaken):
        yield from observe_session(name, workshop)


@contextmanager
def play(path: Path, seed: int) -> Iterator[Play]:
    gone = set[str]()
    path.write_bytes(empty_store())
    with ExitStack() as opened:
        stores = tuple(
            opened.enter_context(SqliteStore.open(path, wait=0, is_gone=gone.__contains__)) for _ in range(2)
        )
        watcher = opened.enter_context(closing(Watcher(path)))
        yield Play(random.Random(seed), stores, watcher, gone=gone)


def workshop(
    store: SqliteStore, *, clock: Clock, owner: str, meanwhile: Callable[[], None], new_id: Callable[[], str]
) -> Deps:
    return Deps(
        open_store=lambda: store,
        counter=counter("chars-4"),
        observer=by_observer(ThinkingObserver(meanwhile)),
        reflector=by_reflector(RuleReflector(counter("chars-4"))),
        clock=clock,
        new_id=new_id,
        owner=owner,
        wait=0,
    )


def ids() -> Callable[[], str]:
    numbers = count()
    return lambda: id_at(0, next(numbers))


def test_a_message_that_arrives_while_an_observer_thinks_is_observed_next_time(folder: Path) -> None:
    """F1: and it can arrive, since no transaction is open meanwhile."""
    path = folder / "om.db"
    with SqliteStore.open(path, wait=0) as store, SqliteStore.open(path, wait=0) as other:
        store.messages.append(session(), [said("one"), said("two")], counter=COUNTER, now=NOW)
        thoughts = iter(range(2))

        def meanwhile() -> None:
            for number in thoughts:
                assert other.messages.append(
                    session(), [said(f"meanwhile {number}")], counter=COUNTER, now=NOW
                ).new == (True,)
                return

        thinking = workshop(store, clock=SetClock(), owner="me", meanwhile=meanwhile, new_id=ids())
        covered = [[row.sources for row in step.rows] for step in observe_session("s", thinking)]
        assert covered == [[(1,), (2,)], [(3,)], [(4,)]], "exactly what was shown is covered each time"
        assert store.sessions.status().pending == 0


def test_a_lane_that_cannot_be_given_back_makes_no_failure_of_what_is_done(folder: Path) -> None:
    """T67, F24: it ends with its owner."""
    path = folder / "om.db"
    with SqliteStore.open(path, wait=0) as store, closing(sqlite3.connect(path, isolation_level=None)) as holder:
        store.messages.append(session(), [said("one")], counter=COUNTER, now=NOW)
        observing = observe_session(
            "s", workshop(store, clock=SetClock(), owner="me", meanwhile=lambda: None, new_id=ids())
        )
        assert len(next(observing).rows) == 1
        holder.execute("BEGIN IMMEDIATE")
        assert list(observing) == []
        holder.rollback()
        assert store.sessions.status().pending == 0


@pytest.mark.parametrize("seeds", PARTS)
def test_whatever_happens_while_an_observer_thinks_each_message_is_covered_once(folder: Path, seeds: range) -> None:
    """F25, F1, F24, T75: appends, observes, deaths and a clock that jumps, over two connections and into each other."""
    happened: Counter[str] = Counter()
    for seed in seeds:
        with play(folder / f"{seed}.db", seed) as acting:
            for _ in range(STEPS):
                acting.step()
            acting.finish()
        happened += acting.happened
    assert min(happened[name] for name in ("append", "observe", "die", "LaneTaken", "StaleBatch")) > 8, happened


@pytest.mark.parametrize("plays", first_only([25, 400]))
def test_two_programs_that_append_and_observe_at_random_cover_each_message_once(folder: Path, plays: int) -> None:
    """F25, F20, F28: at the same time, on the same two sessions; the late one writes nothing."""
    happened: Counter[str] = Counter()
    with start("mix", folder, 1) as one, start("mix", folder, 2) as other:
        for program in (one, other):
            assert answer(program) == ["ready"]
        for seed in range(10 * plays):
            if seed >= plays and happened["late"]:
                break
            for program in (one, other):
                assert program.stdin is not None
                program.stdin.write(f"{seed}\n")
                program.stdin.flush()
            told: Counter[str] = Counter()
            for program in (one, other):
                words = answer(program)
                for what, number in zip(words[::2], words[1::2], strict=True):
                    told[what] += int(number)
            with closing(Watcher(folder / f"{seed}.db")) as watcher:
                watcher.look()
                assert sorted(watcher.texts()) == sorted(set(watcher.texts()))
                assert len(watcher.texts()) == told["kept"]
                assert watcher.covered == told["covered"]
            happened += told
        for program in (one, other):
            assert program.stdin is not None
            program.stdin.close()
    assert happened["late"] > 0, happened


def answer(program: subprocess.Popen[str]) -> list[str]:
    assert program.stdout is not None
    words = program.stdout.readline().split()
    assert words, program.stderr and program.stderr.read()
    return words
