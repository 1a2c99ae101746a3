"""In whatever order a store is used: file and memory hold the same, and the answers are those of the oracle."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from omcli.base.errors import OmError
from omcli.base.record import replace
from omcli.memory.batch import Batch, BatchOutcome, Observed, Pending
from omcli.memory.buffer import BufferedBatch
from omcli.memory.changes import Operation, OperationKind, OperationWrite, SessionTitle
from omcli.memory.message import Incoming, KeptMessage, MessageKind, Role
from omcli.memory.observation import (
    Draft,
    Dropped,
    Kind,
    Logged,
    LogQuery,
    Observation,
    Priority,
    Replacement,
    Source,
    Status,
    Type,
)
from omcli.memory.ports import Appended, Lane, Store
from omcli.memory.reflection import ReflectionOutcome, ReflectionWrite, Scope, fingerprint
from omcli.memory.session import EvictionPolicy, Session
from omcli.sqlite import SqliteStore
from tests.contract import oracle
from tests.fakes import MemoryStore, empty_store
from tests.material import COUNTER, call, result, row, row_id, said
from tests.strategies import examples

# Hundreds of stores are opened and closed; on a disk each close is synchronised, which takes 20 times as long.
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

NAMES = st.sampled_from(["a", "b", "ü:2"])
OWNERS = st.sampled_from(["host:1:1", "host:2:1", "host:3:1"])
TIMES = st.integers(0, 20).map(lambda minute: f"2026-03-02T10:{minute:02}:00.000Z")
LANES = st.sampled_from([Lane.OBSERVE, Lane.OBSERVE, Lane.REFLECT, Lane.PRUNE])
BUDGETS = st.integers(0, 60)

MESSAGES = st.one_of(
    st.builds(
        said,
        st.text(max_size=4) | st.sampled_from(["half \ud800", "\udfff", "a\0b"]),
        tokens=st.integers(0, 30),
        at=st.none() | TIMES,
        agent=st.sampled_from([None, None, "side"]),
        kind=st.sampled_from([None, None, MessageKind.QUEUED]),
        role=st.sampled_from([Role.USER, Role.ASSISTANT, Role.EVENT]),
    ),
    st.builds(call, st.sampled_from("xyz"), tokens=st.integers(0, 30), text=st.sampled_from(["{}", "{}1", "{}2"])),
    st.builds(result, st.sampled_from("xyz"), tokens=st.integers(0, 30)),
)

SESSIONS = st.builds(
    Session,
    id=NAMES,
    agent=st.sampled_from(["claude-code", "codex"]),
    cwd=st.sampled_from([None, "/p", "/q"]),
    branch=st.sampled_from([None, "main", "topic"]),
    title=st.sampled_from([None, "Tides", "\ud800"]),
    model=st.sampled_from([None, "m"]),
    parent=st.sampled_from([None, "a", "elsewhere"]),
)

QUERIES = st.builds(
    LogQuery,
    session=st.none() | NAMES,
    other_than=st.none() | NAMES,
    project=st.none() | st.sampled_from(["/p", "/q"]),
    kinds=st.sets(st.sampled_from(Kind), max_size=2).map(tuple),
    types=st.sets(st.sampled_from([Type.FACT, Type.DECISION, Type.EVENT]), max_size=2).map(tuple),
    priorities=st.sets(st.sampled_from(Priority), max_size=2).map(tuple),
    since=st.none() | TIMES,
    until=st.none() | TIMES,
    hidden=st.booleans(),
    after=st.integers(0, 5),
    last=st.none() | st.integers(0, 4),
    best=st.integers(0, 3),
    as_of=st.none() | st.integers(0, 9),
    bare=st.booleans(),
)


CUTTINGS = st.builds(EvictionPolicy, most=st.integers(1, 60), left=st.integers(0, 60))

SOME = st.lists(st.integers(1, 9), max_size=3)
"""Numbers of rows, messages or operations."""

TITLES_GIVEN = st.sampled_from([None, None, "Tides", "Waves"])

TITLES = st.sets(st.builds(SessionTitle, NAMES, st.sampled_from(["Tides", "\ufffd"]))).map(tuple)


def foreseen(store: Store, number: int | None) -> object:
    """What an undoing would come to, with rows by their ids."""
    found = store.operations.preview_undo(number)
    return replace(found, rows=(), gone=()), [[row.id for row in rows] for rows in (found.rows, found.gone)]


class TwoStores(RuleBasedStateMachine):
    readings = Bundle("readings")
    batches = Bundle("batches")
    wholes = Bundle("wholes")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=IN_MEMORY)
        self.rows = 0
        self.covered: dict[str, list[int]] = defaultdict(list)
        self.owners = oracle.Owners()
        self.sent: set[str] = set()
        """Identities of all messages that were appended."""

    @initialize()
    def open(self) -> None:
        (Path(self.folder.name) / "om.db").write_bytes(empty_store())
        self.file = SqliteStore.open(Path(self.folder.name) / "om.db", wait=1, is_gone=lambda owner: "host:3" in owner)
        self.reader = SqliteStore.open(Path(self.folder.name) / "om.db", wait=1, read_only=True)
        self.memory = MemoryStore(is_gone=lambda owner: "host:3" in owner)

    def both(self, act: Callable[[Store], object]) -> object:
        """Return the answer of the file, or the kind of error it raises; the store in memory has to do the same."""
        answers: list[object] = []
        for store in (self.file, self.memory):
            try:
                answers.append(act(store))
            except OmError as error:
                answers.append(type(error))
        assert answers[0] == answers[1], "the file (first) and the store in memory (second) disagree"
        return answers[0]

    @rule(
        known=SESSIONS,
        messages=st.lists(MESSAGES, max_size=6),
        counter=st.sampled_from([COUNTER, COUNTER, "chars-4"]),
        now=TIMES,
    )
    def append(self, known: Session, messages: list[Incoming], counter: str, now: str) -> None:
        appended = self.both(lambda store: store.messages.append(known, messages, counter=counter, now=now))
        new = []
        for incoming in messages:
            new.append(incoming.identity not in self.sent)
            self.sent.add(incoming.identity)
        assert appended == Appended(new=tuple(new)), "each message is kept once"

    @rule(name=NAMES, messages=st.lists(MESSAGES, max_size=3))
    def begins_with(self, name: str, messages: list[Incoming]) -> None:
        self.both(lambda store: store.messages.begins_with(name, [incoming.identity for incoming in messages]))

    @rule(
        target=batches, name=NAMES, max_tokens=BUDGETS, most=st.none() | st.integers(1, 3),
        context_rows=st.integers(0, 4), ahead=st.booleans(),
    )  # fmt: skip
    def read(self, name: str, max_tokens: int, most: int | None, context_rows: int, ahead: bool) -> object:
        batch = self.both(
            lambda store: store.batches.unobserved(
                name, max_tokens=max_tokens, max_messages=most, context_rows=context_rows, ahead=ahead
            )
        )
        return multiple() if batch is None else batch

    @rule(batch=batches, now=TIMES, source=st.sampled_from([Source.RULES, Source.MODEL]))
    def put_block(self, batch: Batch, now: str, source: Source) -> None:
        """What was read is kept as a block; late, or beside others that have some of it."""
        self.rows += 1
        draft = Draft(text=f"row {self.rows}", type=Type.FACT, importance=5, sources=(batch.messages[0].seq,))
        block = BufferedBatch(
            batch=batch, begins=batch.after, observed=Observed(drafts=(draft,)), ids=(row_id(self.rows),),
            source=source, at=now,
        )  # fmt: skip
        self.both(lambda store: store.batches.buffer(block))

    @rule(name=NAMES, now=TIMES)
    def activate(self, name: str, now: str) -> None:
        """The first block is written down."""
        for block in self.memory.batches.buffered(name)[:1]:
            self.both(lambda store: store.batches.record(block.batch, [], outcome=BatchOutcome.EMPTY, now=now))  # noqa: B023
            self.covered[name] += [message.seq for message in block.batch.messages]

    @rule(name=NAMES, max_tokens=BUDGETS, outcome=st.sampled_from(BatchOutcome), rows=st.integers(0, 2), now=TIMES)
    def observe(self, name: str, max_tokens: int, **result: object) -> None:
        batch = self.memory.batches.unobserved(name, max_tokens=max_tokens, context_rows=2)
        if batch is not None:
            self.record(batch, **result)  # type: ignore[arg-type]

    @rule(batch=batches, outcome=st.sampled_from(BatchOutcome), rows=st.integers(0, 2), now=TIMES, title=TITLES_GIVEN)
    def record_late(self, batch: Batch, **result: object) -> None:
        """The batch was read some time ago, and may have been recorded since."""
        self.record(batch, **result)  # type: ignore[arg-type]

    def record(self, batch: Batch, outcome: BatchOutcome, rows: int, now: str, title: str | None = None) -> None:
        observed = [self.new_row(batch.session, batch.messages[0].seq) for _ in range(rows)]
        kept = observed if outcome is BatchOutcome.OBSERVED else []
        gone = [
            Replacement(row=old.id, by=new.id, reason="again")
            for old, new in zip(batch.context_rows, kept, strict=False)
        ]
        used = [old.id for old in batch.context_rows[:1]]
        raised = self.both(
            lambda store: store.batches.record(
                batch, kept, outcome=outcome, now=now, replaced=gone, used=used, title=title
            )
        )
        if raised is None and outcome not in (BatchOutcome.FAILED, BatchOutcome.DEFERRED):
            self.covered[batch.session] += [message.seq for message in batch.messages]

    @rule(
        target=readings,
        name=st.none() | NAMES,
        project=st.sampled_from([None, "/p"]),
    )
    def read_to_fold(self, name: str | None, project: str | None) -> object:
        """What a reflection is made from; it may be written down later, or never."""
        found = [logged.observation for logged in self.memory.rows.log(LogQuery(session=name, project=project))]
        return multiple() if not found else (Scope(session=name, project=project), tuple(found))

    @rule(target=wholes, name=NAMES, now=TIMES)
    def begin(self, name: str, now: str) -> object:
        """An operation that others are a part of."""
        done = self.both(
            lambda store: store.operations.change(
                OperationWrite(verb=OperationKind.COMPACT, scope=Scope(session=name)), now=now
            )
        )
        assert isinstance(done, Operation)
        return done.number

    @rule(
        reading=readings, ending=st.sampled_from(ReflectionOutcome), now=TIMES, dropping=st.booleans(),
        part_of=st.none() | wholes,
    )  # fmt: skip
    def fold(
        self, reading: tuple[Scope, tuple[Observation, ...]], ending: ReflectionOutcome, now: str, dropping: bool,
        part_of: int | None,
    ) -> None:  # fmt: skip
        """Rows become one; where one of them has gone meanwhile, nothing happens."""
        scope, rows = reading
        self.rows += 1
        made = row(
            self.rows, text="folded", session=scope.session, kind=Kind.REFLECTION, generation=1,
            supports=tuple(old.id for old in rows),
        )  # fmt: skip
        hidden = rows if ending is ReflectionOutcome.DONE else ()
        folding = ReflectionWrite(
            scope=scope, fingerprint=fingerprint(rows), ending=ending, read=tuple(old.id for old in rows),
            rows=(made,) if ending is ReflectionOutcome.DONE else (),
            replaced=tuple(Replacement(row=old.id, by=made.id, reason="folded") for old in hidden[1:]),
            dropped=tuple(Dropped(row=old.id, reason="trivial") for old in hidden[:1] if dropping),
            error="no answer" if ending is ReflectionOutcome.FAILED else None, figures={"rows": len(rows)},
            part_of=part_of,
        )  # fmt: skip
        self.both(lambda store: store.reflections.fold(folding, now=now))
        self.both(lambda store: store.reflections.last_attempt(scope))
        self.both(lambda store: store.reflections.last_attempt(scope, fingerprint(rows)))
        self.both(lambda store: [store.reflections.support(old.id) for old in rows])
        assert self.both(lambda store: store.reflections.supports()) == oracle.supports(self.everything()[1])

    @rule(
        verb=st.sampled_from([OperationKind.PRUNE, OperationKind.FORGET, OperationKind.FORGET]),
        dropped=SOME, forgotten=SOME, replaced=SOME, seqs=SOME, titles=TITLES,
        for_good=st.sampled_from([False, False, True]), now=TIMES,
    )  # fmt: skip
    def change(
        self, verb: OperationKind, dropped: list[int], forgotten: list[int], replaced: list[int], seqs: list[int],
        titles: tuple[SessionTitle, ...], for_good: bool, now: str,
    ) -> None:  # fmt: skip
        """Rows and messages are taken out of sight; of messages, what waits is only forgotten."""
        covered = {seq for some in self.covered.values() for seq in some}
        is_pruning = verb is OperationKind.PRUNE
        change = OperationWrite(
            verb=verb,
            dropped=tuple(Dropped(row=row_id(number), reason="pruned") for number in dropped),
            messages=tuple(seq for seq in seqs if not is_pruning or seq in covered),
            forgotten=tuple(map(row_id, forgotten)),
            replaced=tuple(map(row_id, replaced)),
            titles=titles,
            figures={"asked": len(seqs)},
        )
        self.both(lambda store: store.operations.change(change, now=now, for_good=for_good))

    @rule(number=st.none() | st.integers(1, 9), now=TIMES)
    def undo(self, number: int | None, now: str) -> None:
        self.both(lambda store: foreseen(store, number))
        self.both(lambda store: store.operations.undo(number, now=now))

    @rule(numbers=SOME, now=TIMES)
    def erase(self, numbers: list[int], now: str) -> None:
        self.both(lambda store: (found := store.operations.preview_erase(numbers)) and (found.rows, found.messages))
        self.both(lambda store: (found := store.operations.erase(numbers, now=now)) and (found.rows, found.messages))

    @rule(number=st.integers(1, 12), last=st.none() | st.integers(0, 3), name=NAMES)
    def look_back(self, number: int, last: int | None, name: str) -> None:
        self.both(lambda store: store.operations.history(last=last))
        self.both(lambda store: store.operations.traces(row_id(number)))
        self.both(lambda store: store.search.messages(""))
        self.both(lambda store: store.search.messages("b"))
        messages, rows = self.everything()
        for text in ("b", str(number)):
            said, written = oracle.saying(messages, rows, text)
            assert said <= {kept.seq for kept in self.file.search.messages(text)}
            assert written <= {found.id for found in self.file.search.rows(text)}
        self.both(lambda store: store.search.rows(str(number)))
        self.both(lambda store: store.messages.named("k-"))
        self.both(lambda store: store.tombstones.match_texts([f"row {number}", "Tides", "folded"]))
        self.both(lambda store: store.search.related([row_id(number), row_id(number // 2)], [number]))
        self.both(lambda store: store.messages.outline(name))
        self.both(lambda store: store.tombstones.match([row(1, text=f"row {number}"), row(1, text="folded")]))

    @rule(name=NAMES)
    def pending(self, name: str) -> None:
        messages, rows = self.everything()
        pending = self.both(lambda store: store.batches.pending(name))
        assert isinstance(pending, Pending)
        waiting = oracle.waiting(messages, name, self.covered[name])
        assert (pending.messages, pending.tokens) == (len(waiting), oracle.tokens(waiting))
        visible = [
            each.observation for each in rows if each.observation.is_visible and each.observation.session == name
        ]
        assert self.file.rows.tokens(name) == oracle.tokens(visible)
        assert self.file.messages.tokens(name) == oracle.tokens(oracle.thread(messages, name))
        self.both(lambda store: store.batches.pending(name, ahead=True))
        self.both(lambda store: store.batches.buffered(name))
        self.both(lambda store: store.rows.tokens(name))
        self.both(lambda store: store.messages.tokens(name))

    def new_row(self, name: str, *sources: int) -> Observation:
        self.rows += 1
        return row(self.rows, text=f"row {self.rows}", session=name, sources=sources)

    @rule(
        name=st.none() | NAMES,
        project=st.sampled_from([None, "/p", "/q"]),
        kind=st.sampled_from(Kind),
        priority=st.sampled_from(Priority),
        type=st.sampled_from([Type.FACT, Type.QUESTION, Type.FILE_READ]),
        status=st.sampled_from([None, Status.OPEN, Status.DONE]),
        event_at=st.none() | TIMES,
        hidden=st.booleans(),
        sources=st.lists(st.integers(1, 8), max_size=3),
    )
    def add(self, name: str | None, sources: list[int], hidden: bool, **columns: object) -> None:
        self.rows += 1
        dropped_at = "2026-03-02T10:00:00.000Z" if hidden else None
        note = row(self.rows, session=name, sources=tuple(sources), dropped_at=dropped_at, **columns)  # type: ignore[arg-type]
        self.both(lambda store: store.rows.add(note))

    @rule(batch=batches, now=TIMES, error=st.sampled_from(["no answer", ""]))
    def fail(self, batch: Batch, now: str, error: str) -> None:
        self.both(lambda store: store.batches.record(batch, [], outcome=BatchOutcome.FAILED, now=now, error=error))

    @rule(query=QUERIES)
    def log(self, query: LogQuery) -> None:
        found = self.both(lambda store: list(store.rows.log(query)))
        if query.as_of is None:
            expected = oracle.log(self.everything()[1], query)
            bare: dict[str, object] = (
                {"sources": (), "message_ids": (), "supports": (), "metadata": {}} if query.bare else {}
            )
            assert found == [replace(each, observation=replace(each.observation, **bare)) for each in expected]

    @rule(name=NAMES, max_tokens=BUDGETS, after=st.just(0) | st.integers(0, 9))
    def tail(self, name: str, max_tokens: int, after: int) -> None:
        found = self.both(
            lambda store: [kept.seq for kept in store.messages.tail(name, max_tokens=max_tokens, after=after)]
        )
        assert found == oracle.tail(self.everything()[0], name, max_tokens=max_tokens, after=after)

    @rule(name=NAMES, project=st.sampled_from([None, "/p", "/q", "/r"]), eviction=CUTTINGS, further=st.integers(0, 2))
    def freeze_point(self, name: str, project: str | None, eviction: EvictionPolicy, further: int) -> None:
        self.both(
            lambda store: store.sessions.freeze_point(
                name, own=project or "/p", project=project, eviction=eviction, further=further
            )
        )

    @rule(name=NAMES, lane=LANES, owner=OWNERS, now=TIMES, until=TIMES)
    def claim(self, name: str, lane: Lane, owner: str, now: str, until: str) -> None:
        taken = self.both(lambda store: store.leases.claim(name, lane, owner=owner, now=now, expires_at=until))
        assert taken == self.owners.claim(name, lane, owner=owner, now=now, until=until)

    @rule(name=NAMES, lane=LANES, owner=OWNERS)
    def release(self, name: str, lane: Lane, owner: str) -> None:
        self.both(lambda store: store.leases.release(name, lane, owner=owner))
        self.owners.release(name, lane, owner=owner)

    @rule(number=st.integers(1, 12), key=st.sampled_from(["k-", "call-x", "result-y"]))
    def look_up(self, number: int, key: str) -> None:
        self.both(lambda store: store.rows.find(f"{number:08x}"))
        self.both(lambda store: store.messages.by_key(key))
        self.both(lambda store: store.messages.by_seq([number, number - 1]))

    @rule(
        name=NAMES | st.just("nobody"),
        project=st.sampled_from([None, "/p", "/nowhere"]),
        last=st.none() | st.integers(0, 3),
    )
    def list_(self, name: str, project: str | None, last: int | None) -> None:
        self.both(lambda store: store.sessions.find(name))
        self.both(lambda store: store.batches.covered(name))
        self.both(lambda store: store.sessions.summaries(project=project, last=last))
        self.both(lambda store: list(store.messages.all()))

    @rule()
    def reopen(self) -> None:
        self.file.close()
        self.file = SqliteStore.open(Path(self.folder.name) / "om.db", wait=1, is_gone=lambda owner: "host:3" in owner)

    @invariant()
    def the_numbers_agree(self) -> None:
        status = self.both(lambda store: store.sessions.status())
        self.both(lambda store: store.sessions.summaries())
        assert self.reader.sessions.status() == status, "who only reads sees the same"

    @invariant()
    def the_numbers_are_right(self) -> None:
        messages, rows = self.everything()
        status = self.file.sessions.status()
        visible = [each.observation for each in rows if each.observation.is_visible]
        assert status.messages == sum(kept.message.is_counted for kept in messages)
        assert (status.observations, status.hidden) == (len(visible), len(rows) - len(visible))
        assert (status.message_tokens, status.observation_tokens) == (oracle.tokens(messages), oracle.tokens(visible))
        for summary in self.file.sessions.summaries():
            name = summary.session.id
            waiting = oracle.waiting(messages, name, self.covered[name])
            assert summary.pending == sum(kept.message.is_counted for kept in waiting)
            assert summary.is_observed == (not waiting)
            assert summary.observations == sum(each.session == name for each in visible)
            for kind in Kind:
                of_kind = [each for each in visible if each.session == name and each.kind is kind]
                assert self.file.rows.tokens(name, [kind]) == oracle.tokens(of_kind)
        for lane, least in (("pending", 0), ("pending", 25), ("rows", 0), ("rows", 25), ("reflections", 1)):
            found = self.file.sessions.with_work(COUNTER, **{lane: least})
            names = [summary.session.id for summary in self.file.sessions.summaries()]
            of_name = {name: oracle.waiting(messages, name, self.covered[name]) for name in names}
            of_it = {name: [each for each in visible if each.session == name] for name in names}
            has_work = partial(oracle.has_work, lane, least, COUNTER)
            assert found == tuple(name for name in names if has_work(of_name[name], of_it[name]))

    def everything(self) -> tuple[list[KeptMessage], list[Logged]]:
        return oracle.everything(self.memory)

    @invariant()
    def the_index_of_words_is_whole(self) -> None:
        self.file.index.check(thoroughly=True)

    @invariant()
    def nothing_is_covered_twice(self) -> None:
        for name, seqs in self.covered.items():
            assert len(seqs) == len(set(seqs)), f"session {name} was covered as {seqs}"

    def teardown(self) -> None:
        if hasattr(self, "file"):
            for summary in self.memory.sessions.summaries():
                self.drain(summary.session.id)
            self.reader.close()
            self.file.close()
        self.folder.cleanup()

    def drain(self, name: str) -> None:
        """Every message ends up in one batch."""
        while batch := self.file.batches.unobserved(name, max_tokens=20):
            self.file.batches.record(batch, [], outcome=BatchOutcome.EMPTY, now="2026-03-02T11:00:00.000Z")
            self.covered[name] += [message.seq for message in batch.messages]
        everything = {kept.seq for kept in self.memory.messages.by_seq(range(1, 1000)) if kept.session == name}
        assert everything <= set(self.covered[name]), "what is there is covered"
        self.nothing_is_covered_twice()


TwoStores.TestCase.settings = settings(
    examples(60),
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestTwoStores = TwoStores.TestCase
