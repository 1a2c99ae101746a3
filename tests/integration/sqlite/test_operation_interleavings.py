"""Pruning, forgetting and undoing while others observe and reflect: nothing is lost, and each message observed once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from omcli.base.errors import LaneTaken, NotUndoable, StaleBatch, UnknownId
from omcli.memory.batch import Batch, Observed
from omcli.memory.observation import Draft, LogQuery, Type
from omcli.memory.reflection import Material, Reflected, Scope
from omcli.memory.retention import RetentionRules
from omcli.operations.clock import id_at
from omcli.operations.deps import Deps, Meta, Policy
from omcli.operations.forget import ForgetRequest, forget
from omcli.operations.observe.session import observe_session
from omcli.operations.prune import prune
from omcli.operations.reflect.session import reflect_session, rows_are_due, rows_to_fold, skip_reason
from omcli.operations.tick import Due
from omcli.operations.tick import due as all_due
from omcli.reflectors.rules import RuleReflector
from omcli.sqlite import SqliteStore
from omcli.tokenizers import counter
from tests.fakes.deps import by_observer, by_reflector
from tests.integration.sqlite.watching import SetClock, happened_often, word_for_word
from tests.material import COUNTER, row, said, session
from tests.soak import first_only

SEEDS, STEPS, DEEPEST = 160, 24, 3
PARTS = first_only([range(0, SEEDS, 8), *(range(part, SEEDS, 4) for part in range(4))])
"""Seeds that are tried together."""
COUNTS = counter("chars-4")
EAGER = Due(tokens=1)


@dataclass(slots=True)
class Thinking:
    """Observes each message as a row, and folds all rows into one, or three into none; while it thinks, something else
    happens.
    """

    meanwhile: Callable[[], None]

    def observe(self, batch: Batch) -> Observed:
        self.meanwhile()
        return word_for_word(batch)

    def reflect(self, material: Material) -> Reflected:
        self.meanwhile()
        if len(material.rows) % 3 == 0:
            return Reflected()
        ids = tuple(row.id for row in material.rows)
        text = " and ".join(row.text for row in material.rows)
        sources = tuple(sorted({seq for row in material.rows for seq in row.sources}))
        folded = Draft(
            text=text, type=Type.FACT, importance=5, sources=sources, replaces=ids, supports=ids, reason="folded"
        )
        return Reflected(reflections=(folded,))


@dataclass(slots=True)
class Play:
    """One seed: two connections, and what is done through them in turn and while the other thinks."""

    chance: random.Random
    stores: tuple[SqliteStore, ...]
    clock: SetClock = field(default_factory=SetClock)
    said: list[str] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    owners: Iterator[int] = field(default_factory=count)
    depth: int = 0

    def step(self) -> None:
        acts = (
            self.append, self.append, self.observe, self.observe, self.reflect, self.prune, self.prune_messages,
            self.forget, self.undo,
        )  # fmt: skip
        act = self.chance.choice(acts)
        self.clock.moment += timedelta(seconds=1)
        self.happened[act.__name__] += 1
        try:
            act(self.chance.choice(self.stores), self.chance.choice("ab"))
        except (LaneTaken, StaleBatch, NotUndoable, UnknownId) as error:
            self.happened[f"{act.__name__} {type(error).__name__}"] += 1
        self.look()

    def append(self, store: SqliteStore, name: str) -> None:
        texts = [f"{name} {len(self.said) + number}" for number in range(self.chance.randint(1, 3))]
        now = self.clock.now()
        again = self.chance.sample(self.said, min(1, len(self.said)))
        messages = [said(text, at=now, tokens=9000) for text in (*again, *texts)]
        new = store.messages.append(session(name), messages, counter=COUNTER, now=now).new
        assert new == (*[False] * len(again), *[True] * len(texts)), "what was put aside is not taken in again"
        self.said += texts

    def observe(self, store: SqliteStore, name: str) -> None:
        for number, _ in enumerate(observe_session(name, self.deps(store))):
            if number == self.chance.choice([1, 2, 9]):
                break

    def reflect(self, store: SqliteStore, name: str) -> None:
        reflect_session(name, self.deps(store), again=True)

    def prune(self, store: SqliteStore, _name: str) -> None:
        rules = self.chance.choice(
            [RetentionRules(keep_last=3), RetentionRules(max_tokens=5), RetentionRules(keep_sessions=1)]
        )
        prune(store, rules, counter=COUNTS, clock=self.clock)

    def prune_messages(self, store: SqliteStore, name: str) -> None:
        before = self.clock.after(-self.chance.randint(0, 9))
        prune(store, RetentionRules(messages_before=before, session=name), counter=COUNTS, clock=self.clock)

    def forget(self, store: SqliteStore, _name: str) -> None:
        if not self.said:
            return
        text = self.chance.choice(self.said)
        forget(store, ForgetRequest(match=text), clock=self.clock)

    def undo(self, store: SqliteStore, _name: str) -> None:
        numbers = [done.number for done in store.operations.history()]
        store.operations.undo(self.chance.choice([None, *numbers]), now=self.clock.now())

    def deps(self, store: SqliteStore, *, meta: Meta = Meta.NEVER) -> Deps:
        return Deps(
            open_store=lambda: store, counter=COUNTS, observer=by_observer(Thinking(self.think)), clock=self.clock,
            reflector=by_reflector(Thinking(self.think), Policy(tokens=1, meta=meta)),
            new_id=lambda: id_at(0, self.chance.getrandbits(80)), owner=f"owner {next(self.owners)}", wait=0,
        )  # fmt: skip

    def think(self) -> None:
        self.depth += 1
        while self.depth < DEEPEST and self.chance.random() < 0.6:
            self.step()
        self.depth -= 1

    def look(self) -> None:
        """Fails where a message is in two places, or two batches; or where one that waits was pruned."""
        store = self.stores[0]
        texts = [kept.message.text for kept in store.search.messages("")]
        assert texts == self.said, "all there is was said once, in its order"
        connection = store.database.connection
        reached: dict[int, int] = {}
        for number, after, through in connection.execute(
            "SELECT session, after, through FROM batches"
            " WHERE outcome IN ('observed', 'empty') AND NOT late ORDER BY number"
        ):
            assert reached.get(number, 0) == after, "batches leave a gap, or overlap"
            reached[number] = through
        (pruned,) = connection.execute(
            "SELECT count(*) FROM aside_messages AS m JOIN message_holds AS h ON h.message = m.seq"
            " JOIN operations AS o ON o.number = h.operation WHERE o.verb = 'prune' AND m.seq >"
            " coalesce((SELECT covers_up_to FROM cursors AS c WHERE c.session = m.session), 0)"
        ).fetchone()
        assert pruned == 0, "what waits is never pruned"
        for meta in (Meta.NEVER, Meta.WHOLE):
            deps = self.deps(store, meta=meta)
            for name in "ab":
                rows = rows_to_fold(name, deps)
                is_due = bool(rows) and not skip_reason(Scope(session=name), deps.reflector.mark(rows), deps)
                assert rows_are_due(name, deps) == is_due, "counts and marks say what reading all rows says"
            waiting = {each.session.id for each in store.sessions.summaries() if each.pending}
            due = {each.session: (each.observe, each.reflect) for each in all_due(deps, EAGER)}
            assert due == {name: found for name in "ab" if any(found := (name in waiting, rows_are_due(name, deps)))}

    def finish(self) -> None:
        """Everything is taken back and the rest observed: each message has its row in sight, and no other row is."""
        self.depth = DEEPEST
        store = self.stores[0]
        with suppress(NotUndoable):
            while True:
                store.operations.undo(now=self.clock.now())
        for name in "ab":
            for _ in observe_session(name, self.deps(store)):
                pass
        self.look()
        rows = Counter(logged.observation.text for logged in store.rows.log(LogQuery()))
        assert rows == dict.fromkeys(self.said, 1)
        there = [kept.message.text for name in "ab" for kept in store.messages.tail(name, max_tokens=10**9)]
        assert sorted(there) == sorted(self.said)


@contextmanager
def play(path: Path, seed: int) -> Iterator[Play]:
    with ExitStack() as opened:
        stores = tuple(opened.enter_context(closing(SqliteStore.open(path, wait=0))) for _ in range(2))
        yield Play(random.Random(seed), stores)


@pytest.mark.parametrize("seeds", PARTS)
def test_whatever_is_pruned_forgotten_and_undone_meanwhile_each_message_is_observed_once(
    folder: Path, seeds: range
) -> None:
    """F25, F16: and when all is taken back, all is there as if nothing had been done but observing."""
    happened: Counter[str] = Counter()
    for seed in seeds:
        with play(folder / f"{seed}.db", seed) as acting:
            for _ in range(STEPS):
                acting.step()
            acting.finish()
            happened += acting.happened
    happened_often(happened, ["prune", "prune_messages", "forget", "undo", "reflect", "undo NotUndoable"], times=10)
    happened_often(happened, ["observe StaleBatch", "reflect StaleBatch"], times=1)


class Interrupted(SetClock):
    """While somebody asks for the time, something else happens, so many times."""

    def __init__(self, meanwhile: Callable[[], object], *, times: int) -> None:
        super().__init__()
        self.meanwhile, self.times = meanwhile, times

    def now(self) -> str:
        if self.times:
            self.times -= 1
            self.meanwhile()
        return super().now()


def _waiting(folder: Path, words: str) -> SqliteStore:
    store = SqliteStore.open(folder / "memory.db", wait=0)
    store.messages.append(session(), [said(words)], counter=COUNTER, now=SetClock().now())
    return store


def test_what_is_written_down_of_it_while_it_is_looked_for_is_forgotten_as_well(folder: Path) -> None:
    """F25: the messages were found, then a batch of them was recorded, then they were put aside."""
    with closing(_waiting(folder, "the harbour code is 4711")) as store:
        deps = Deps(
            open_store=lambda: store, counter=COUNTS, observer=by_observer(Thinking(lambda: None)), clock=SetClock(),
            reflector=by_reflector(RuleReflector(COUNTS)),
            new_id=lambda: id_at(0, 1), owner="another", wait=0,
        )  # fmt: skip
        clock = Interrupted(lambda: list(observe_session("s", deps)), times=1)
        found = forget(store, ForgetRequest(match="harbour code"), clock=clock)
        assert ([row.text for row in found.rows], len(found.messages)) == (["the harbour code is 4711"], 1)
        assert list(store.rows.log(LogQuery(hidden=True))) == []
        assert [done.hidden for done in store.operations.history()] == [1], "in one operation"


def test_it_ends_where_others_write_without_end(folder: Path) -> None:
    with closing(_waiting(folder, "the harbour code is 4711")) as store:
        ids = count(1)
        clock = Interrupted(lambda: store.rows.add(row(next(ids))), times=1000)
        with pytest.raises(StaleBatch):
            forget(store, ForgetRequest(match="harbour code"), clock=clock)
        assert store.operations.history() == (), "nothing has changed"
