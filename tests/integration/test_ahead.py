"""Observing ahead over a store in memory: when, of what, and what becomes of it when it is due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import pytest

from omcli.base.errors import StaleBatch, Unreachable
from omcli.base.record import replace
from omcli.memory.batch import Batch, BatchOutcome, Observed
from omcli.memory.buffer import BufferPolicy
from omcli.memory.changes import OperationKind, OperationWrite
from omcli.memory.observation import Draft, Kind, LogQuery, Source, Type
from omcli.memory.reflection import Reflected, Scope
from omcli.operations.clock import Clock, id_at
from omcli.operations.deps import Deps, Policy
from omcli.operations.observe.buffer import waiting_messages
from omcli.operations.observe.session import observe_session, write_buffered
from omcli.operations.reflect.session import reflect_session
from omcli.operations.tick import Due, TickReport, Trigger, overdue, tick
from tests.fakes import MemoryStore, WordCounter
from tests.fakes.deps import by_model, by_reflector
from tests.material import COUNTER, NOW, said, session

STEPS = Due(tokens=100, ahead=BufferPolicy(every=20), floor=30)


def noted(batch: Batch) -> Observed:
    """A row for each message, in its words."""
    drafts = tuple(
        Draft(text=kept.message.text, type=Type.FACT, importance=5, sources=(kept.seq,), source=Source.MODEL)
        for kept in batch.messages
    )
    return Observed(drafts=drafts)


@dataclass(slots=True)
class Thinking:
    """An observer that counts what it is shown, and does something meanwhile."""

    make: Callable[[Batch], Observed] = noted
    meanwhile: Callable[[], None] = lambda: None
    shown: list[Batch] = field(default_factory=list)

    def observe(self, batch: Batch) -> Observed:
        self.shown.append(batch)
        self.meanwhile()
        return self.make(batch)


@dataclass(slots=True)
class Desk:
    """A session of messages of ten tokens each, and who observes it."""

    store: MemoryStore = field(default_factory=MemoryStore)
    observer: Thinking = field(default_factory=Thinking)
    numbers: count[int] = field(default_factory=count)
    said: int = 0

    @property
    def deps(self) -> Deps:
        return Deps(
            open_store=lambda: self.store, counter=WordCounter(), observer=by_model(self.observer), clock=Clock(NOW),
            reflector=by_reflector(Folding(), Policy(tokens=None, target=0.5)),
            new_id=lambda: id_at(1_770_714_000_000, next(self.numbers)), owner="me", wait=0,
        )  # fmt: skip

    def say(self, messages: int, *, counter: str = COUNTER, tokens: int = 10) -> None:
        words = [f"number {self.said + number}" + " word" * 8 for number in range(messages)]
        self.said += messages
        self.store.messages.append(session(), [said(text, tokens=tokens) for text in words], counter=counter, now=NOW)

    def tick(self, when: Due = STEPS) -> TickReport | None:
        done = list(tick(self.deps, when))
        return done[0] if done else None

    def observe(self) -> None:
        list(observe_session("s", self.deps))

    @property
    def rows(self) -> list[str]:
        """In sight."""
        return [logged.observation.text.split(" word")[0] for logged in self.store.rows.log(LogQuery())]

    @property
    def covered(self) -> int:
        return self.said - self.store.batches.pending("s").messages


class Folding:
    """A reflector that makes one row of all."""

    def reflect(self, material: object) -> Reflected:
        rows = material.rows  # type: ignore[attr-defined]
        ids = tuple(row.id for row in rows)
        sources = tuple(sorted({seq for row in rows for seq in row.sources}))
        folded = Draft(
            text="folded", type=Type.FACT, importance=5, sources=sources, replaces=ids, supports=ids,
        )  # fmt: skip
        return Reflected(reflections=(folded,))


def names(*numbers: int) -> list[str]:
    return [f"number {number}" for number in numbers]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_what_waits_is_observed_ahead_in_steps_and_nothing_of_it_is_seen(desk: Desk) -> None:
    """S0.21: each step once, of as much as a step has."""
    desk.say(1)
    assert desk.tick() is None
    desk.say(4)
    ticked = desk.tick()
    assert ticked is not None
    assert (ticked.ahead, ticked.observe, ticked.blocks, ticked.rows) == (True, False, (2, 2), ())
    assert [len(batch.messages) for batch in desk.observer.shown] == [2, 2]
    assert desk.tick() is None
    assert (desk.rows, desk.covered) == ([], 0)


def test_what_was_observed_ahead_is_written_down_when_it_is_due_without_asking(desk: Desk) -> None:
    """S0.21, T78: down to the floor; what is left waits."""
    for _ in range(9):
        desk.say(1)
        desk.tick()
    asked = len(desk.observer.shown)
    assert asked == 4
    desk.say(1)
    ticked = desk.tick()
    assert ticked is not None
    assert (ticked.observe, ticked.activated, ticked.blocks) == (True, 3, ())
    assert (desk.rows, desk.covered, len(desk.observer.shown)) == (names(*range(6)), 6, asked)
    desk.observe()
    assert (desk.rows, desk.covered) == (names(*range(10)), 10)
    assert [len(batch.messages) for batch in desk.observer.shown[asked:]] == [2], "one block was left"


def test_without_enough_blocks_the_rest_is_observed_where_it_is_due_all_the_same(desk: Desk) -> None:
    desk.say(3)
    desk.tick()
    desk.say(20)
    ticked = desk.tick()
    assert ticked is not None
    assert (ticked.activated, desk.covered) == (1, 23)
    assert desk.rows == names(*range(23))
    assert [len(batch.messages) for batch in desk.observer.shown] == [2, 21]


def test_a_share_of_the_threshold_makes_one_block_of_a_chunk(desk: Desk) -> None:
    """S0.18, S0.21: as `zora` says it: the oldest few, once, and not before there are so many."""
    when = Due(
        tokens=100, inclusive=False, batches=1, ahead=BufferPolicy.of(0.7, tokens=100, late=0, late_from=0, messages=7)
    )
    chunks = replace(desk.deps, observer=replace(desk.deps.observer, batch_messages=3))

    def go() -> TickReport | None:
        return next(iter(tick(chunks, when)), None)

    desk.say(6)
    assert go() is None
    desk.say(1)
    made = go()
    assert made is not None
    assert made.blocks == (3,)
    desk.say(3)
    assert go() is None, "one is in flight"
    desk.say(1)
    assert len(desk.observer.shown) == 1
    activated = go()
    assert activated is not None
    assert (activated.activated, desk.rows, desk.covered, len(desk.observer.shown)) == (
        1,
        names(0, 1, 2),
        3,
        1,
    )


def test_rows_of_one_block_stand_when_the_next_is_observed_and_may_be_replaced(desk: Desk) -> None:
    """As if they were written down: under the ids they will have."""

    def settling(batch: Batch) -> Observed:
        (first, *_), standing = batch.messages, batch.context_rows
        done = Draft(
            text=f"done {first.seq}", type=Type.FACT, importance=5, sources=(first.seq,),
            replaces=tuple(row.id for row in standing[-1:]),
        )  # fmt: skip
        return Observed(drafts=(done,), used=tuple(row.id for row in standing))

    desk.observer.make = settling
    desk.say(6)
    desk.tick()
    assert [[row.text for row in batch.context_rows] for batch in desk.observer.shown] == [[], ["done 1"], ["done 3"]]
    desk.say(4)
    desk.tick(replace(STEPS, floor=0))
    everything = [logged.observation for logged in desk.store.rows.log(LogQuery(hidden=True))]
    assert [(row.text, row.is_visible) for row in everything] == [
        ("done 1", False),
        ("done 3", False),
        ("done 5", True),
    ]
    assert [row.last_used_at for row in everything] == [NOW, NOW, None]
    assert everything[0].superseded_by == everything[1].id
    assert everything[2].message_ids == ("k-number 4" + " word" * 8,)


def test_a_forced_observation_takes_what_fits_first_and_observes_the_rest(desk: Desk) -> None:
    """S0.21: nothing is asked twice, and no floor is kept."""
    desk.say(7)
    desk.tick()
    desk.observe()
    assert [len(batch.messages) for batch in desk.observer.shown] == [2, 2, 2, 1]
    assert (desk.rows, desk.covered, desk.store.sessions.status().blocks) == (names(*range(7)), 7, 0)


def test_a_block_that_the_cursor_came_into_gives_the_rows_that_nothing_tells_yet(desk: Desk) -> None:
    """T76: and the batch begins at the cursor."""

    def pairs(batch: Batch) -> Observed:
        rows = noted(batch).drafts
        both = replace(rows[0], text="both", sources=tuple(kept.seq for kept in batch.messages[:2]))
        return Observed(drafts=(both, *rows))

    desk.observer.make = pairs
    desk.say(4)
    desk.tick(replace(STEPS, ahead=BufferPolicy(every=40)))
    batch = desk.store.batches.unobserved("s", max_tokens=10)
    assert batch is not None
    desk.store.batches.record(batch, [], outcome=BatchOutcome.EMPTY, now=NOW)
    desk.observe()
    assert desk.rows == ["both", *names(1, 2, 3)]
    assert len(desk.observer.shown) == 1
    assert [(one.start, one.end) for one in desk.store.batches.covered("s")] == [(0, 1), (1, 4)]


def test_rows_that_cite_what_was_said_before_are_not_left_out_for_it(desk: Desk) -> None:
    """Only the cursor's coming into a block makes rows superfluous."""
    desk.say(2)
    desk.observe()
    desk.observer.make = lambda _: Observed(drafts=(Draft(text="again", type=Type.FACT, importance=5, sources=(2,)),))
    desk.say(2)
    desk.tick()
    desk.observe()
    assert desk.rows == [*names(0, 1), "again"]


@pytest.mark.parametrize(("gone", "left"), [((1,), names(1)), ((2,), names(0)), ((1, 2), [])])
def test_rows_whose_messages_are_gone_are_left_out(desk: Desk, gone: tuple[int, ...], left: list[str]) -> None:
    """What was forgotten between observing and activation is not told after all."""
    desk.say(2)
    desk.tick()
    desk.say(1)
    desk.store.operations.change(
        OperationWrite(verb=OperationKind.FORGET, scope=Scope(session="s"), messages=gone), now=NOW
    )
    desk.observe()
    assert desk.rows == [*left, *names(2)]
    assert desk.store.batches.pending("s").messages == 0
    assert [len(batch.messages) for batch in desk.observer.shown] == [2, 1]


def test_all_late_messages_are_measured_wherever_they_are(desk: Desk) -> None:
    """They were counted by another counter, so all are counted again: not only those before the first covered one."""
    desk.say(5, counter="other", tokens=1)
    for seq in (1, 3):
        desk.store.operations.change(OperationWrite(verb=OperationKind.FORGET, messages=(seq,)), now=NOW)
    desk.observe()
    for done in desk.store.operations.history():
        desk.store.operations.undo(done.number, now=NOW)
    late = waiting_messages("s", desk.deps)
    desk.say(1, counter="other", tokens=1)
    both = waiting_messages("s", desk.deps)
    assert (late.messages, late.tokens, late.fresh) == (2, 20, 20)
    assert (both.messages, both.tokens, both.fresh) == (3, 30, 30)


def test_reflecting_leaves_blocks_and_they_are_activated_later(desk: Desk) -> None:
    """F14."""
    desk.say(3)
    desk.observe()
    desk.say(4)
    desk.tick()
    before = desk.store.batches.buffered("s")
    assert len(before) == 2
    reflect_session("s", desk.deps)
    assert desk.store.batches.buffered("s") == before
    assert desk.rows == ["folded"]
    desk.observe()
    assert desk.rows == ["folded", *names(3, 4, 5, 6)]


def test_a_row_that_is_folded_meanwhile_is_not_replaced_again(desk: Desk) -> None:
    """F28: its reflection stays, and what settles it is written down beside that."""
    desk.say(1)
    desk.observe()
    desk.observer.make = lambda batch: Observed(
        drafts=(
            Draft(
                text="done", type=Type.FACT, importance=5, sources=(batch.through,),
                replaces=tuple(row.id for row in batch.context_rows),
            ),
        )
    )  # fmt: skip
    desk.say(2)
    desk.tick()
    desk.store.rows.add(row := replace(next(desk.store.rows.log(LogQuery())).observation, id=id_at(5, 5), text="other"))
    reflect_session("s", desk.deps)
    desk.observe()
    assert desk.rows == ["folded", "done"]
    first = next(desk.store.rows.log(LogQuery(hidden=True))).observation
    folded = next(desk.store.rows.log(LogQuery(kinds=(Kind.REFLECTION,)))).observation
    assert first.superseded_by == folded.id
    assert row.id in folded.supports


def test_a_failure_ahead_moves_nothing_and_is_asked_again(desk: Desk) -> None:
    """S0.21: as with any batch."""

    def down(_: Batch) -> Observed:
        raise Unreachable("the tide is out")

    desk.observer.make = down
    desk.say(3)
    ticked = desk.tick()
    assert ticked is not None
    assert isinstance(ticked.error, Unreachable)
    assert (desk.covered, desk.store.sessions.status().blocks) == (0, 0)
    assert [error.error for error in desk.store.sessions.status().errors] == ["the tide is out"]
    desk.observer.make = noted
    assert desk.tick() is not None
    assert (desk.store.sessions.status().blocks, desk.store.sessions.status().errors) == (1, ())


def test_what_gave_nothing_yet_is_offered_again_when_as_much_has_come(desk: Desk) -> None:
    """T14, S0.21: the end of what waits may be given a meaning; with more behind it, it is covered without a row."""
    desk.observer.make = lambda batch: Observed(drafts=(), waits_after=batch.after)
    desk.say(2)
    desk.tick()
    assert (desk.store.sessions.status().blocks, desk.covered, len(desk.observer.shown)) == (0, 0, 1)
    assert desk.tick() is None
    desk.say(1)
    assert desk.tick() is None
    desk.say(2)
    ticked = desk.tick()
    assert ticked is not None
    assert ticked.blocks == (2, 2)
    assert desk.rows == []
    desk.say(5)
    activated = desk.tick()
    assert activated is not None
    assert (activated.activated, activated.rows, desk.covered) == (2, (), 4)


def test_the_end_of_what_waits_may_be_given_a_meaning_behind_a_block_as_well(desk: Desk) -> None:
    """T14: it is no block before something follows it."""
    desk.say(2)
    desk.tick()
    desk.observer.make = lambda batch: Observed(drafts=(), waits_after=batch.after)
    desk.say(2)
    desk.tick()
    assert (desk.store.sessions.status().blocks, len(desk.observer.shown)) == (1, 2)
    assert desk.tick() is None
    desk.observe()
    assert (desk.covered, len(desk.observer.shown)) == (2, 2), "it was offered, and nothing has followed"


def test_blocks_that_are_not_due_any_more_are_left(desk: Desk) -> None:
    """T75: another tick activated some while this one waited for the lane."""
    desk.say(2)
    desk.tick()
    assert list(write_buffered("s", desk.deps, floor=0, is_due=lambda: False)) == []
    assert len(list(write_buffered("s", desk.deps, floor=0, is_due=lambda: True))) == 1


def test_somebody_who_was_quicker_makes_a_block_stale(desk: Desk) -> None:
    """F25: while the model thinks its lease is taken over, and the messages are covered."""
    other = Desk(store=desk.store, said=2)
    desk.say(2)

    def meanwhile() -> None:
        desk.store.database.connection.execute("DELETE FROM leases")
        other.observe()

    desk.observer.meanwhile = meanwhile
    ticked = desk.tick()
    assert ticked is not None
    assert isinstance(ticked.error, StaleBatch)
    assert (desk.store.sessions.status().blocks, desk.rows) == (0, names(0, 1))


def test_tokens_of_another_counter_are_counted_again(desk: Desk) -> None:
    """D2: units never mix, neither for what is due nor for what stays."""
    desk.say(10, counter="chars-4", tokens=7)
    assert desk.tick(replace(STEPS, tokens=101)) is not None
    assert [len(batch.messages) for batch in desk.observer.shown] == [2, 2, 2, 2, 2]
    ticked = desk.tick(replace(STEPS, tokens=100))
    assert ticked is not None
    assert (ticked.activated, desk.covered) == (3, 6)


@pytest.mark.parametrize("trigger", ["manual", "turn", "tool"])
def test_who_waits_for_something_else_than_tokens_observes_nothing_ahead(desk: Desk, trigger: str) -> None:
    desk.say(5)
    assert desk.tick(replace(STEPS, trigger=Trigger(trigger))) is None


@pytest.mark.parametrize(("waiting", "blocks", "is_overdue"), [(37, 0, True), (37, 1, False), (35, 0, False)])
def test_what_was_observed_ahead_keeps_nobody_waiting(
    desk: Desk, waiting: int, blocks: int, *, is_overdue: bool
) -> None:
    """T77: preset `mastra`, `block_after` at 36,000: 37k without blocks, with one, 35k."""
    when = Due(
        tokens=30_000, block_after=36_000, ahead=BufferPolicy.of(6_000, tokens=30_000, late=0, late_from=0, messages=0)
    )
    for number in range(waiting):
        desk.say(1, tokens=1_000)
        if blocks and number == 6:
            desk.tick(when)
    assert desk.store.sessions.status().blocks == blocks
    assert (overdue("s", desk.deps, when) is not None) is is_overdue
