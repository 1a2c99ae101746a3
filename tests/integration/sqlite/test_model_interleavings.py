"""Models at work on one store, in every order that chance brings, and dying anywhere: nothing is lost or doubled."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import cast

import pytest

from omcli.base.errors import LaneTaken, ProviderFailed, Refused, StaleBatch, Unreachable, Unusable
from omcli.llm.model import EndReason, Prompt, Reply
from omcli.memory.buffer import BufferPolicy
from omcli.memory.message import Role
from omcli.memory.ports import Lane, Store
from omcli.observers.model import ModelObserver
from omcli.observers.rules import RuleObserver
from omcli.operations.clock import id_at
from omcli.operations.deps import Deps, Meta, ObserverDeps, Policy
from omcli.operations.model_calls import CountedProvider, Patience
from omcli.operations.observe.session import observe_session
from omcli.operations.reflect.session import reflect_session
from omcli.operations.tick import Due, TickReport, tick
from omcli.providers.scripted import echo
from omcli.reflectors.model import Compression, ModelReflector
from omcli.reflectors.rules import RuleReflector
from omcli.sqlite import SqliteStore
from omcli.tokenizers import counter
from tests.fakes import empty_store
from tests.fakes.deps import by_reflector
from tests.integration.sqlite.watching import SetClock, Watcher, happened_often
from tests.material import COUNTER, said, session
from tests.soak import first_only

SEEDS, STEPS, DEEPEST = 160, 24, 3
PARTS = first_only([range(0, SEEDS, 8), *(range(part, SEEDS, 6) for part in range(6))])
"""Seeds that are tried together."""
LONGEST_LIFE = 14
"""Calls of the store after which somebody dies, at most."""
COUNTS = counter("chars-4")


class Died(BaseException):
    """A process is no more: nothing of it runs after this, no matter what it meant to tidy up."""


class Mortal:
    """A store whose user dies at one of its calls: before it, or when all is written and nobody has been told yet."""

    def __init__(self, store: SqliteStore, *, calls: int | None, is_told: bool = False) -> None:
        """`calls` are those that go well; None: all of them. `is_told` says that the last one was still done."""
        self._store = store
        self._left = calls
        self._is_told = is_told
        self.made = 0

    def __getattr__(self, role: str) -> MortalRole:
        return MortalRole(self, getattr(self._store, role))

    def call(self, method: Callable[..., object], *arguments: object, **options: object) -> object:
        self.made += 1
        if self._left is None:
            return method(*arguments, **options)
        self._left -= 1
        if self._left < 0:
            if self._left == -1 and self._is_told:
                method(*arguments, **options)
            raise Died
        return method(*arguments, **options)


class Copied(Mortal):
    """A store that is copied at every call, as a process that dies there leaves it: `0.db`, `1.db`, …"""

    def __init__(self, store: SqliteStore, folder: Path, *, is_told: bool) -> None:
        """`is_told` copies it after the call instead of before."""
        super().__init__(store, calls=None)
        self._path = store.database.path
        self._folder = folder
        self._is_after = is_told

    def call(self, method: Callable[..., object], *arguments: object, **options: object) -> object:
        copy = self._folder / f"{self.made}.db"
        if self._is_after:
            result = super().call(method, *arguments, **options)
            self._copy(copy)
            return result
        self._copy(copy)
        return super().call(method, *arguments, **options)

    def _copy(self, copy: Path) -> None:
        for suffix in ("", "-wal"):
            if (path := Path(f"{self._path}{suffix}")).exists():
                shutil.copyfile(path, f"{copy}{suffix}")


class MortalRole:
    """A role of such a store."""

    def __init__(self, store: Mortal, role: object) -> None:
        self._store = store
        self._role = role

    def __getattr__(self, name: str) -> Callable[..., object]:
        return partial(self._store.call, getattr(self._role, name))


@dataclass(slots=True)
class Thinking:
    """A model that repeats what it is shown; while it thinks, something else happens."""

    meanwhile: Callable[[], None]
    mood: Callable[[], str]
    """How it answers: `echo`, `nothing`, `half`, `prose`, `refusal` or `down`."""
    name: str = "thinking"
    model: str = "echo"
    takes_images: bool = False
    shown_in_vain: Callable[[int], None] = lambda _messages: None
    """Told how many messages it finds nothing in."""
    asked: Counter[str] = field(default_factory=Counter)

    def ask(self, prompt: Prompt) -> Reply:
        self.meanwhile()
        mood = self.mood()
        self.asked[mood] += 1
        if mood == "nothing":
            self.shown_in_vain(sum(part.count(" said number ") for part in prompt.content if isinstance(part, str)))
        if mood == "down":
            raise Unreachable("nobody there")
        if mood == "refusal":
            raise Refused("no")
        text = {"nothing": '{"observations": [], "reflections": []}', "prose": "I would say: it depends."}
        stop = EndReason.LENGTH if mood == "half" else EndReason.END
        return Reply(text=text.get(mood, echo(prompt)), stop=stop, model=self.model)


@dataclass(slots=True, kw_only=True)
class Actor:
    """Somebody who observes and reflects, by what the program is made of."""

    store: Store
    owner: str
    clock: SetClock
    new_id: Callable[[], str]
    model: Thinking
    by_rules: bool = False
    """Whether rules reflect."""
    meta: Meta = Meta.NEVER
    batch_tokens: int = 80
    """Two slices of a model, unless another number is given."""

    @property
    def deps(self) -> Deps:
        observer = ModelObserver(
            self._counted(Lane.OBSERVE), rules=RuleObserver(), counter=COUNTS, new_token=lambda: "5f0e8d31",
            now=self.clock.now,
        )  # fmt: skip
        by_model = ModelReflector(self._counted(Lane.REFLECT), COUNTS, compression=Compression())
        policy = Policy(tokens=20, meta=self.meta, meta_at=2)
        reflector = RuleReflector(COUNTS) if self.by_rules else by_model
        return Deps(
            open_store=lambda: self.store, counter=COUNTS, clock=self.clock,
            observer=ObserverDeps(
                open=RuleObserver, model=observer, batch_tokens=self.batch_tokens, slice_tokens=40
            ),
            reflector=by_reflector(reflector, policy, is_model=not self.by_rules),
            new_id=self.new_id, owner=self.owner, wait=0,
        )  # fmt: skip

    def append(self, name: str, texts: list[str]) -> None:
        """Rules keep what `a`, a person, asks for, also where a model leaves it out; they keep nothing of `b`."""
        now = self.clock.now()
        role = Role.USER if name == "a" else Role.ASSISTANT
        self.store.messages.append(
            session(name), [said(text, role=role, at=now) for text in texts], counter=COUNTER, now=now
        )

    def observe(self, name: str, batches: int | None = None) -> None:
        for _ in observe_session(name, self.deps, batches=batches):
            pass

    def reflect(self, name: str) -> None:
        reflect_session(name, self.deps)

    def tick(self) -> None:
        for _ in tick(self.deps, Due(tokens=30, floor=15)):
            pass

    def ahead(self) -> list[TickReport]:
        return list(tick(self.deps, Due(tokens=100, ahead=BufferPolicy(every=20), floor=15)))

    def _counted(self, lane: Lane) -> CountedProvider:
        ledger = cast("SqliteStore", self.store).ledger
        return CountedProvider(
            self.model, lane=lane, ledger=lambda: ledger, limits=(), cost=lambda _: None, clock=self.clock,
            patience=Patience(longest=0, clock=self.clock), warn=lambda _: None,
        )  # fmt: skip


@dataclass(slots=True)
class Play:
    """One seed: whoever works, through one of two connections, and what is done in turn and while others think."""

    chance: random.Random
    stores: tuple[SqliteStore, ...]
    watcher: Watcher
    gone: set[str]
    clock: SetClock = field(default_factory=SetClock)
    said: list[str] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    owners: Iterator[int] = field(default_factory=count)
    depth: int = 0
    meta: Meta = Meta.NEVER
    looks_ahead: bool = False
    is_over: bool = False

    def step(self) -> None:
        """Anything, by anybody, who may die of it."""
        acts = [self.append, self.append, self.observe, self.observe, self.reflect, self.tick, self.turn_clock]
        if self.looks_ahead:
            acts[3:6] = [self.ahead, self.ahead, self.ahead, self.reflect]
        act = self.chance.choice(acts)
        self.happened[act.__name__] += 1
        actor = self.actor()
        try:
            act(actor, self.chance.choice("ab"))
        except (LaneTaken, StaleBatch, ProviderFailed) as error:
            self.happened[f"{act.__name__} {type(error).__name__}"] += 1
        except Died:
            self.happened[f"{act.__name__} Died"] += 1
            if self.chance.random() < 0.7:  # the others are on another host, and nobody knows
                self.gone.add(actor.owner)
        self.watcher.look()

    def append(self, actor: Actor, name: str) -> None:
        """New messages, and some that came before."""
        more = " of what there is to say" if name == "a" else ""
        texts = [f"{name} said number {len(self.said) + number}{more}" for number in range(self.chance.randint(1, 4))]
        known = [text for text in self.said if text.startswith(name)]
        again = self.chance.sample(known, min(2, len(known)))
        try:
            actor.append(name, [*again, *texts])
        finally:
            kept = self.watcher.texts()
            assert kept in (self.said, [*self.said, *texts]), "all of them are kept, or none"
            self.said = kept

    def observe(self, actor: Actor, name: str) -> None:
        actor.observe(name, self.chance.choice([1, 2, None]))

    def reflect(self, actor: Actor, name: str) -> None:
        actor.reflect(name)

    def tick(self, actor: Actor, _name: str) -> None:
        actor.tick()

    def ahead(self, actor: Actor, _name: str) -> None:
        """Observes ahead, or activates."""
        for ticked in actor.ahead():
            self.happened["activated"] += ticked.activated
            self.happened[f"ahead {type(ticked.error).__name__}"] += 1

    def turn_clock(self, _actor: Actor, _name: str) -> None:
        self.clock.moment += timedelta(seconds=self.chance.choice([1, 601, 601, 601, -300, -86_400]))

    def actor(self) -> Actor:
        """Somebody new, who may have only so many calls of the store to live."""
        store = self.chance.choice(self.stores)
        is_mortal = not self.is_over and self.chance.random() < 0.4
        life = self.chance.randrange(LONGEST_LIFE) if is_mortal else None
        mortal = Mortal(store, calls=life, is_told=self.chance.random() < 0.5)
        return Actor(
            store=cast("Store", mortal),
            owner=f"owner {next(self.owners)}",
            clock=self.clock,
            new_id=lambda: id_at(0, self.chance.getrandbits(80)),
            model=Thinking(self.think, self.mood, shown_in_vain=self.in_vain),
            by_rules=self.chance.random() < 0.3,
            meta=self.meta,
            batch_tokens=self.chance.choice([20, 40, 80, 120]),
        )

    def mood(self) -> str:
        moods = ["echo"] * 9 + ["nothing"] * 3 + ["half", "prose", "refusal", "down"]
        mood = "echo" if self.is_over else self.chance.choice(moods)
        self.happened[mood] += 1
        return mood

    def in_vain(self, messages: int) -> None:
        self.watcher.in_vain += messages

    def think(self) -> None:
        self.depth += 1
        while not self.is_over and self.depth < DEEPEST and self.chance.random() < 0.6:
            self.happened["meanwhile"] += 1
            self.step()
        self.depth -= 1

    def finish(self) -> None:
        """Whatever happened, the next runs do the rest; at the latest when the leases of the lost have ended."""
        self.is_over = True
        for _ in range(3):
            for name in "ab":
                self.append(self.actor(), name)  # what was given no meaning so far is offered again with what follows
                for work in (self.actor().observe, self.actor().reflect):
                    with suppress(LaneTaken, Unusable):  # one short row cannot be made shorter
                        work(name)
                    self.watcher.look()
            self.clock.moment += timedelta(seconds=601)
        assert self.watcher.texts() == self.said
        assert self.watcher.untold() == []
        without_rows = self.watcher.outcomes()
        assert without_rows["observe empty"] + without_rows["observe deferred"] <= self.happened["nothing"]
        status = self.stores[0].sessions.status()
        assert (status.pending, status.blocks) == (0, 0)
        now, later = self.clock.now(), self.clock.after(1)
        for name in "ab":
            for lane in (Lane.OBSERVE, Lane.REFLECT):
                self.stores[0].leases.claim(name, lane, owner="anybody", now=now, expires_at=later)


@contextmanager
def play(path: Path, seed: int, *, looks_ahead: bool = False) -> Iterator[Play]:
    gone, chance = set[str](), random.Random(f"models {seed}")
    path.write_bytes(empty_store())
    with ExitStack() as opened:
        stores = tuple(
            opened.enter_context(SqliteStore.open(path, wait=0, is_gone=gone.__contains__)) for _ in range(2)
        )
        watcher = opened.enter_context(closing(Watcher(path)))
        meta = chance.choice(list(Meta))
        yield Play(chance, stores, watcher, gone, meta=meta, looks_ahead=looks_ahead)


@pytest.mark.parametrize("seeds", PARTS)
def test_whatever_happens_while_models_think_nothing_is_lost_or_doubled(folder: Path, seeds: range) -> None:
    """F25, F1, F21, F24, F28, T75: appends, observers, reflectors, ticks, failures, deaths and a clock that jumps."""
    happened: Counter[str] = Counter()
    for seed in seeds:
        with play(folder / f"{seed}.db", seed) as acting:
            for _ in range(STEPS):
                acting.step()
            acting.finish()
            happened += acting.happened + acting.watcher.outcomes()
    often = (
        "append observe reflect tick turn_clock meanwhile echo nothing half prose refusal down".split(),
        ["append Died", "observe Died", "reflect Died", "tick Died"],
        ["observe LaneTaken", "observe StaleBatch", "reflect LaneTaken", "observe Unreachable"],
        ["observe observed", "observe empty", "observe deferred", "observe failed", "reflect done", "reflect failed"],
    )
    happened_often(happened, [what for each in often for what in each], times=1)


@pytest.mark.parametrize("seeds", PARTS)
def test_what_is_observed_ahead_is_written_down_once_whatever_happens(folder: Path, seeds: range) -> None:
    """F14, T76, F25, T75: blocks, activation, reflections meanwhile, observers that come in between."""
    happened: Counter[str] = Counter()
    for seed in seeds[: len(seeds) // 2]:
        with play(folder / f"{seed}.db", seed, looks_ahead=True) as acting:
            for _ in range(STEPS):
                acting.step()
            acting.finish()
            happened += acting.happened + acting.watcher.outcomes()
    often = [
        "ahead", "activated", "reflect", "ahead Died", "ahead LaneTaken", "observe ahead",
        "observe observed", "observe failed", "reflect done",
    ]  # fmt: skip
    happened_often(happened, often, times=1)


class Life:
    """What an undisturbed process does from its beginning to its end; the next one does the same, and finds it done."""

    def __init__(self, path: Path, *, number: int = 0) -> None:
        """`number` is that of its first id."""
        self._store = SqliteStore.open(path, wait=0, is_gone=lambda _: True)
        self._clock = SetClock()
        self._numbers = count(number)

    def close(self) -> None:
        self._store.close()

    def live(self, *, by_rules: bool, copies: Path | None = None, is_told: bool = False) -> int:
        """Lives, and leaves copies of its store in a folder; how many calls of the store there were."""
        mortal = Copied(self._store, copies, is_told=is_told) if copies else Mortal(self._store, calls=None)
        actor = Actor(
            store=cast("Store", mortal),
            owner=f"owner {next(self._numbers)}",
            clock=self._clock,
            new_id=lambda: id_at(0, next(self._numbers) << 62),
            model=Thinking(lambda: None, lambda: "echo"),
            by_rules=by_rules,
        )
        actor.append("a", [f"a said number {number} of what there is to say" for number in range(6)])
        actor.observe("a")
        actor.reflect("a")
        actor.append("a", [f"a said number {number} of what there is to say" for number in range(6, 14)])
        actor.ahead()
        actor.tick()
        actor.observe("a")
        return mortal.made


@pytest.mark.parametrize(
    ("is_told", "by_rules", "first"),
    [
        (False, False, 0),
        (True, True, 1),
        *(
            pytest.param(*each, marks=pytest.mark.soak)
            for each in product((False, True), (False, True), (0, 1))
            if each not in ((False, False, 0), (True, True, 1))
        ),
    ],
)
def test_who_dies_at_any_call_of_the_store_and_begins_again_comes_to_the_same(
    folder: Path, *, is_told: bool, by_rules: bool, first: int
) -> None:
    """F22, F24: before the call, and when it was done; the lane is free at once, and nothing is written twice.

    Every second call is tried here, and the others in a test of their own.
    """
    copies = folder / "copies"
    copies.mkdir()
    with closing(Life(folder / "undisturbed.db")) as life, closing(Watcher(folder / "undisturbed.db")) as watcher:
        calls = life.live(by_rules=by_rules, copies=copies, is_told=is_told)
        watcher.look()
        expected = watcher.texts(), watcher.observed()
    assert calls > 30
    left = set()
    for call in range(first, calls, 2):
        path = copies / f"{call}.db"
        with closing(Life(path, number=10_000)) as life, closing(Watcher(path)) as watcher:
            watcher.look()
            left.add(f"{watcher.texts()} {watcher.observed()}")
            life.live(by_rules=by_rules)
            watcher.look()
            assert (watcher.texts(), watcher.observed()) == expected, call
    assert len(left) > 4, "work was cut off at several places"


@pytest.fixture
def two(folder: Path) -> Iterator[Callable[..., Actor]]:
    """Makes people at work on one store, each through a connection of their own."""
    clock, numbers = SetClock(), count()
    with ExitStack() as opened:

        def make(meanwhile: Callable[[], None] = lambda: None) -> Actor:
            return Actor(
                store=opened.enter_context(SqliteStore.open(folder / "om.db", wait=0, is_gone=lambda _: False)),
                owner=f"owner {next(numbers)}",
                clock=clock,
                new_id=lambda: id_at(0, next(numbers) << 62),
                model=Thinking(meanwhile, lambda: "echo"),
            )

        yield make


def test_what_is_said_while_a_model_thinks_is_observed_next_time(two: Callable[..., Actor]) -> None:
    """F1, T75: exactly what was shown is covered, and the one who comes meanwhile keeps the messages all the same."""
    other, thoughts = two(), count()

    def meanwhile() -> None:
        if next(thoughts) == 0:
            other.append("a", ["a said number 2", "a said number 3"])
            with pytest.raises(LaneTaken):
                other.observe("a")

    me = two(meanwhile)
    me.append("a", ["a said number 0", "a said number 1"])
    steps = [[row.sources for row in step.rows] for step in observe_session("a", me.deps)]
    assert steps == [[(1,), (2,)], [(3,), (4,)]]


def test_a_reflection_that_comes_too_late_changes_nothing(two: Callable[..., Actor], folder: Path) -> None:
    """F28: while a model thought its lease ended, and another folded the rows."""
    other = two()

    def meanwhile() -> None:
        me.clock.moment += timedelta(seconds=601)
        other.reflect("a")

    me = two(meanwhile)
    other.append("a", [f"a said number {number} of what there is to say" for number in range(12)])
    other.observe("a")
    with pytest.raises(StaleBatch):
        me.reflect("a")
    with closing(Watcher(folder / "om.db")) as watcher:
        watcher.look()
        assert watcher.outcomes()["reflect done"] == 1


def test_what_gave_nothing_yet_is_offered_again_with_what_follows_also_where_it_fills_a_batch(folder: Path) -> None:
    """T13, F17: it had the size of a whole batch when nothing followed, and stays one when something does."""
    moods = iter(["nothing", "nothing", "echo"])
    with SqliteStore.open(folder / "om.db", wait=0) as store:
        thinking = Thinking(lambda: None, lambda: next(moods))
        actor = Actor(
            store=store, owner="me", clock=SetClock(), new_id=lambda: id_at(0, 7 << 62), model=thinking,
        )  # fmt: skip
        actor.append("b", [f"b said number {number}" for number in range(4)])
        actor.observe("b")
        assert store.batches.pending("b").messages == 4
        actor.observe("b")
        assert thinking.asked.total() == 1, "not before something follows"
        actor.append("b", ["b said number 4"])
        actor.observe("b")
        assert store.batches.pending("b").messages == 0
        assert store.sessions.status().observations == 1
