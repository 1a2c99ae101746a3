"""Frozen packs, whatever happens to a store: what is said and observed only adds to them, within the budget."""

from __future__ import annotations

from functools import cache
from itertools import count
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from omcli import ContextCompressor
from omcli.base.record import replace
from omcli.memory.batch import BatchOutcome
from omcli.memory.changes import OperationKind, OperationWrite
from omcli.memory.message import Role
from omcli.memory.observation import Kind, LogQuery, Observation, Replacement, Type
from omcli.memory.reflection import ReflectionOutcome, ReflectionWrite, Scope, fingerprint
from omcli.memory.session import EvictionPolicy
from omcli.operations.context import Place, context
from omcli.pack.budget import Budgets, Tier, budgets
from omcli.pack.context_pack import Choice, ContextPack
from omcli.pack.layouts import PackFormat
from omcli.settings import resolve
from omcli.sqlite import SqliteStore
from omcli.wiring.policies import eviction
from tests.fakes import WordCounter
from tests.material import COUNTER, call, result, row, said, session
from tests.strategies import examples

PROJECT = "/src/app"
WORDS = WordCounter()
APPENDING = ("say", "use a tool", "observe", "observe the other", "settle", "use")
CHANGING = ("reflect", "undo", "prune", "forget", "note")
STEPS = st.lists(st.tuples(st.sampled_from((*APPENDING * 3, *CHANGING)), st.integers(1, 30)), max_size=40)
ROOMS = st.one_of(
    st.just(budgets(total=100_000)),
    st.integers(0, 500).map(lambda total: budgets(total=total)),
    st.builds(
        Budgets,
        total=st.integers(0, 500),
        cross=st.integers(0, 80),
        session=st.integers(0, 300),
        tail=st.integers(0, 300),
    ),
)
CUTTINGS = st.integers(20, 300).flatmap(
    lambda most: st.builds(EvictionPolicy, most=st.just(most), left=st.integers(0, most))
)


class Memory:
    """A store in which two sessions of a project go on."""

    def __init__(self) -> None:
        self.store = SqliteStore.temporary()
        self.numbers = count(1)
        for name in "st":
            self.store.messages.append(session(name), [], counter=COUNTER, now=self.now())

    def now(self) -> str:
        """Later than ever before."""
        minutes, seconds = divmod(next(self.numbers), 60)
        return f"2026-03-02T{10 + minutes // 60:02}:{minutes % 60:02}:{seconds:02}.000Z"

    def do(self, step: str, size: int) -> None:
        getattr(self, step.replace(" ", "_"))(size)

    def say(self, size: int) -> None:
        words = " ".join(f"word{next(self.numbers)}" for _ in range(size))
        self.store.messages.append(session(), [said(words, tokens=size)], counter=COUNTER, now=self.now())

    def use_a_tool(self, size: int) -> None:
        name = f"call{next(self.numbers)}"
        used = [call(name, tokens=1, text="{} " + "x " * size), result(name, tokens=size)]
        self.store.messages.append(session(), used, counter=COUNTER, now=self.now())

    def row(self, name: str, now: str, seq: int) -> Observation:
        number = next(self.numbers)
        text = f"row{number} tells message {seq} in some {number % 7 * 'more '}words than one"
        told = row(number, text=text, session=name, type=Type.DECISION, sources=(seq,), observed_at=now)
        return replace(told, tokens=WORDS.text(text))

    def observe(self, size: int, *, replaced: tuple[Observation, ...] = (), name: str = "s") -> None:
        batch = self.store.batches.unobserved(name, max_tokens=4 * size)
        if batch is None:
            return
        now = self.now()
        rows = [self.row(name, now, kept.seq) for kept in batch.messages]
        gone = [Replacement(row=old.id, by=rows[0].id, reason="resolved") for old in replaced]
        self.store.batches.record(batch, rows, outcome=BatchOutcome.OBSERVED, now=now, replaced=gone)

    def observe_the_other(self, size: int) -> None:
        words = f"elsewhere{next(self.numbers)}"
        self.store.messages.append(session("t"), [said(words, tokens=size)], counter=COUNTER, now=self.now())
        self.observe(size, replaced=self.some(size, "t", Kind.OBSERVATION), name="t")

    def settle(self, size: int) -> None:
        self.observe(size, replaced=self.some(size, "s", Kind.OBSERVATION))

    def use(self, size: int) -> None:
        if batch := self.store.batches.unobserved("t", max_tokens=size):
            used = [old.id for old in self.some(size, "t")]
            self.store.batches.record(batch, (), outcome=BatchOutcome.EMPTY, now=self.now(), used=used)

    def some(self, size: int, name: str, *kinds: Kind) -> tuple[Observation, ...]:
        rows = [logged.observation for logged in self.store.rows.log(LogQuery(session=name, kinds=kinds))]
        return tuple(rows[size % len(rows) :][:2]) if rows else ()

    def reflect(self, size: int) -> None:
        name = "st"[size % 2]
        old = self.some(size, name)
        made = row(number := next(self.numbers), text=f"row{number}", session=name, kind=Kind.REFLECTION, generation=1)
        if old:
            folding = ReflectionWrite(
                scope=Scope(session=name),
                fingerprint=fingerprint(old),
                ending=ReflectionOutcome.DONE,
                read=tuple(each.id for each in old),
                rows=(replace(made, supports=tuple(each.id for each in old)),),
                replaced=tuple(Replacement(row=each.id, by=made.id, reason="reflected") for each in old),
            )
            self.store.reflections.fold(folding, now=self.now())

    def undo(self, _size: int) -> None:
        if any(done.can_be_undone for done in self.store.operations.history(last=1)):
            self.store.operations.undo(now=self.now())

    def prune(self, size: int) -> None:
        prompts = [
            kept.seq for kept in self.store.messages.newest("s", 20) if kept.message.role is Role.USER
        ]  # parts no call
        messages = tuple(seq for seq in prompts if seq % 7 == size % 7)
        self.store.operations.change(
            OperationWrite(verb=OperationKind.PRUNE, scope=Scope(session="s"), messages=messages), now=self.now()
        )

    def forget(self, size: int) -> None:
        old = tuple(each.id for each in self.some(size, "st"[size % 2]))
        self.store.operations.change(OperationWrite(verb=OperationKind.FORGET, forgotten=old), now=self.now())

    def note(self, size: int) -> None:
        number = next(self.numbers)
        name = "s" if size % 2 else None
        self.store.rows.add(row(number, text=f"row{number} by hand", session=name, kind=Kind.NOTE))

    def covered(self) -> set[int]:
        """The messages of the session that observations cover, but for results."""
        batch = self.store.batches.unobserved("s", max_tokens=1)
        said = (kept for kept in self.store.messages.newest("s", 1000) if kept.message.role is not Role.RESULT)
        return {kept.seq for kept in said if batch is None or kept.seq <= batch.after}

    def pack(
        self,
        most: Budgets,
        eviction: EvictionPolicy | None,
        to: PackFormat = PackFormat.TEXT,
        choice: Choice = Choice(),  # noqa: B008
    ) -> ContextPack:
        place = Place(project=PROJECT, session="s")
        return context(
            self.store, place, budgets=most, counter=WORDS, now=self.now(), to=to, choice=choice, eviction=eviction
        ).pack


@cache
def begun() -> tuple[Memory, int]:
    """What all stores begin with, and the next number."""
    memory = Memory()
    for _ in range(9):
        memory.say(6)
        memory.observe(6)
        memory.observe_the_other(3)
    return memory, next(memory.numbers)


def gone_on() -> Memory:
    """A store of its own that begins like all others."""
    made, (first, number) = Memory(), begun()
    first.store.database.connection.backup(made.store.database.connection)
    made.numbers = count(number)
    return made


def opened(pack: ContextPack) -> str:
    """A pack in text up to where it may go on."""
    return pack.printed.removesuffix("</om-memory>\n").rstrip("\n")


@given(steps=STEPS, most=ROOMS, eviction=CUTTINGS)
@examples(60)
def test_messages_and_observations_only_add_to_a_frozen_pack_until_its_horizon_moves_on(
    steps: list[tuple[str, int]], most: Budgets, eviction: EvictionPolicy
) -> None:
    """T62, S2.34, F50: the text is a prefix of the next one, or the tail begins later than before."""
    memory = gone_on()
    before = memory.pack(most, eviction)
    for step, size in steps:
        memory.do(step, size)
        pack = memory.pack(most, eviction)
        assert memory.pack(most, eviction).printed == pack.printed, "whatever time it is"
        assert WORDS.text(pack.printed) <= most.total
        assert all(pack.tokens[tier] <= most.limits[tier] for tier in most.limits)
        assert pack.freeze_point is not None
        untold = memory.covered() - {turn.kept.seq for turn in pack.turns} if most.limits[Tier.TAIL] else set()
        assert max(untold, default=0) <= pack.freeze_point.message, "what finds no room in the tail is told by rows"
        assert before.freeze_point is not None
        if step in APPENDING:
            assert pack.freeze_point.message >= before.freeze_point.message, step
            moved = pack.freeze_point.message > before.freeze_point.message
            assert moved or pack.freeze_point.position == before.freeze_point.position, step
        if step in APPENDING and pack.freeze_point == before.freeze_point:
            assert (pack.cross, pack.observations) == (before.cross, before.observations), step
            assert not pack.is_tail_whole or opened(pack).startswith(opened(before)), step
        before = pack
    memory.store.close()


GROWTHS = st.lists(st.tuples(st.sampled_from(APPENDING), st.integers(1, 30)), max_size=30)
OWN_ROWS = Budgets(total=100_000, cross=0, session=100_000, tail=0)


@given(steps=GROWTHS, eviction=st.none() | CUTTINGS, to=st.sampled_from(PackFormat))
@examples(60)
def test_the_rows_of_a_session_only_grow_at_the_end_where_it_was_asked_for(
    steps: list[tuple[str, int]], eviction: EvictionPolicy | None, to: PackFormat
) -> None:
    """XB11, S0.5: byte for byte, frozen (wherever the freeze point moves) or not."""
    memory = gone_on()
    choice = Choice(is_append_only=eviction is None)
    before = memory.pack(OWN_ROWS, eviction, to, choice)
    for step, size in steps:
        memory.do(step, size)
        pack = memory.pack(OWN_ROWS, eviction, to, choice)
        assert not pack.left_out
        assert pack.observations[: len(before.observations)] == before.observations
        if to is PackFormat.TEXT:
            assert opened(pack).startswith(opened(before)), step
        before = pack
    memory.store.close()


@given(steps=GROWTHS)
@examples(60)
def test_a_growth_only_appends_unless_rows_were_superseded(steps: list[tuple[str, int]]) -> None:
    """XB11, S0.5: what stays keeps its place, and what settles it comes later."""
    memory = gone_on()
    before = memory.pack(OWN_ROWS, None).observations
    for step, size in steps:
        memory.do(step, size)
        rows = memory.pack(OWN_ROWS, None).observations
        stays = tuple(row for row in before if row in rows)
        assert rows[: len(stays)] == stays
        replaced = {row.id: row.superseded_by for row in logged(memory)}
        assert all(replaced[row.id] in {each.id for each in rows} for row in before if row not in rows)
        before = rows
    memory.store.close()


def logged(memory: Memory) -> list[Observation]:
    """All rows, hidden ones too."""
    return [each.observation for each in memory.store.rows.log(LogQuery(hidden=True))]


@given(steps=STEPS, most=ROOMS)
@examples(60)
def test_what_an_operation_hid_is_in_no_append_only_pack(steps: list[tuple[str, int]], most: Budgets) -> None:
    """XB11, T54: nor is a row that such a row had replaced; and no budget is exceeded."""
    memory = gone_on()
    for step, size in steps:
        memory.do(step, size)
    pack = memory.pack(most, None, choice=Choice(is_append_only=True))
    assert WORDS.text(pack.printed) <= most.total
    log = {row.id: row for row in logged(memory)}
    for shown in pack.observations:
        stored = log[shown.id]
        while stored.superseded_by is not None:
            assert stored.reason == "resolved", "by an observation"
            stored = log[stored.superseded_by]
        assert stored.dropped_at is None
    memory.store.close()


@given(steps=STEPS, eviction=CUTTINGS, to=st.sampled_from(PackFormat))
@examples(40)
def test_what_was_said_is_told_by_rows_or_by_messages_and_what_was_forgotten_by_none(
    steps: list[tuple[str, int]], eviction: EvictionPolicy, to: PackFormat
) -> None:
    """S2.34, S2.12, T54, T56: nothing falls between the rows before the freeze point and the tail behind it."""
    memory = gone_on()
    for step, size in steps:
        memory.do(step, size)
    pack = memory.pack(budgets(total=100_000), eviction, to)
    log = {logged.observation.id: logged.observation for logged in memory.store.rows.log(LogQuery(hidden=True))}
    rows = [*pack.cross, *pack.observations]
    assert {each.id for each in rows} <= set(log), "what is in no log was forgotten"
    shown = {turn.kept.seq for turn in pack.turns}
    told = {each.text for each in rows}
    for each in log.values():
        if each.session == "s" and each.is_visible and not shown.intersection(each.sources):
            assert each.text in told or not memory.store.messages.by_seq(each.sources)
    memory.store.close()


def test_the_python_api_gives_the_frozen_pack_where_the_settings_ask_for_that(tmp_path: Path) -> None:
    """S2.34, S0.19: a turn that is observed changes nothing before the last messages."""
    asked = {"context.freeze": True, "context.evict": 60, "context.tail": 20}
    with ContextCompressor("s", db=tmp_path / "om.db", settings=asked) as compressor:
        before: list[str] = []
        for number in range(12):
            compressor.ingest({"role": "user", "content": f"We decided to print chart {number} on blue paper."})
            compressor.flush()
            before.append(compressor.build_context().session)
            assert compressor.build_context().session == before[-1]
    assert "chart 0" in before[-1]
    assert 2 <= len(set(before)) <= 6, "not with every turn"


@given(evict=st.integers(4, 10**9), tail=st.none() | st.integers(0, 10**9))
def test_a_cut_makes_room_for_some_turns_whatever_is_to_be_left(evict: int, tail: int | None) -> None:
    """T62, S2.34: cut back by a token, a pack would change with every turn, its freeze point have countless places."""
    kept = "unlimited" if tail is None else tail
    made = eviction(resolve({"context.freeze": True, "context.evict": evict, "context.tail": kept}, {}))
    assert made is not None
    assert made.most == evict
    assert made.left == tail or made.left == evict * 3 // 4 < (evict if tail is None else tail)
