"""Promises of every store about buffered batches: invisible, and kept until they are written or superfluous."""

from __future__ import annotations

import pytest

from omcli.base.errors import StaleBatch
from omcli.base.record import replace
from omcli.memory.batch import Batch, BatchOutcome, Observed
from omcli.memory.buffer import BufferedBatch
from omcli.memory.changes import OperationKind, OperationWrite
from omcli.memory.coverage import tombstone, tombstone_of
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Draft, LogQuery, Source, Type
from omcli.memory.ports import Store
from omcli.memory.reflection import Scope
from tests.material import COUNTER, LATER, NOW, row, row_id, said, session


def keep(store: Store, *words: str, to: str = "s") -> None:
    messages = [said(word, tokens=10) for word in words]
    store.messages.append(session(to), messages, counter=COUNTER, now=NOW)


def block(batch: Batch, *, name: int = 1) -> BufferedBatch:
    """A block with a row for each message of a batch."""
    drafts = tuple(
        Draft(text=f"noted {kept.message.text}", type=Type.FACT, importance=5, sources=(kept.seq,))
        for kept in batch.messages
    )
    ids = tuple(row_id(100 * name + kept.seq) for kept in batch.messages)
    observed = Observed(drafts=drafts, used=(row_id(7),), title="Tides", findings={"trimmed": 1})
    return BufferedBatch(batch=batch, begins=batch.after, observed=observed, ids=ids, source=Source.MODEL, at=NOW)


def part(store: Store, after: int, through: int) -> Batch:
    """A batch as it was read when the cursor, or a block, ended there."""
    messages = tuple(kept for kept in store.messages.by_seq(range(after + 1, through + 1)) if kept.session == "s")
    return Batch(session="s", after=after, through=through, messages=messages, cwd="/src/app")


def put(store: Store, *ends: tuple[int, int]) -> None:
    for after, through in ends:
        store.batches.buffer(block(part(store, after, through)))


def cover(store: Store, tokens: int) -> None:
    batch = store.batches.unobserved("s", max_tokens=tokens)
    assert batch is not None
    store.batches.record(batch, [], outcome=BatchOutcome.EMPTY, now=NOW)


def ends(store: Store) -> list[tuple[int, int]]:
    return [(block.batch.after, block.batch.through) for block in store.batches.buffered("s")]


def texts(messages: tuple[KeptMessage, ...]) -> list[str]:
    return [kept.message.text for kept in messages]


@pytest.fixture
def store(store: Store) -> Store:
    """A store with a session of nine messages, `a` to `i`."""
    keep(store, *"abcdefghi")
    return store


def test_a_block_comes_back_as_it_was_put(store: Store) -> None:
    """S0.21: who made it, when, and all that was observed."""
    kept = block(part(store, 0, 3))
    store.batches.buffer(kept)
    assert store.batches.buffered("s") == (kept,)


def test_nothing_of_a_block_is_in_sight_and_its_messages_wait_still(store: Store) -> None:
    """S0.21, S0.17: no row, no cursor; the count that waits is what no observation covers."""
    before = store.sessions.status()
    put(store, (0, 3), (3, 5))
    assert list(store.rows.log(LogQuery(hidden=True))) == []
    assert store.batches.covered("s") == ()
    status = store.sessions.status()
    assert (status.pending, status.observations, status.hidden) == (9, 0, 0)
    assert (status.blocks, status.ahead) == (2, 5)
    assert replace(status, blocks=0, ahead=0) == before
    (summary,) = store.sessions.summaries()
    assert (summary.pending, summary.observations) == (9, 0)


def test_what_waits_behind_the_last_block_is_told_apart(store: Store) -> None:
    put(store, (0, 3), (3, 5))
    waiting, left = store.batches.pending("s"), store.batches.pending("s", ahead=True)
    assert (waiting.messages, waiting.tokens, waiting.blocks) == (9, {COUNTER: 90}, 2)
    assert (left.messages, left.tokens, left.fresh_tokens, left.blocks) == (4, {COUNTER: 40}, {COUNTER: 40}, 2)
    batch = store.batches.unobserved("s", max_tokens=20, ahead=True)
    assert batch is not None
    assert (batch.after, batch.through, texts(batch.messages)) == (5, 7, ["f", "g"])
    assert store.batches.pending("other", ahead=True).blocks == 0


def test_without_blocks_everything_that_waits_is_ahead(store: Store) -> None:
    assert store.batches.pending("s", ahead=True) == store.batches.pending("s")
    assert store.batches.unobserved("s", max_tokens=30, ahead=True) == store.batches.unobserved("s", max_tokens=30)
    cover(store, 50)
    assert store.batches.unobserved("s", max_tokens=30, ahead=True) == store.batches.unobserved("s", max_tokens=30)
    assert store.batches.buffered("s") == store.batches.buffered("nowhere") == ()


def test_a_block_is_gone_once_its_batch_is_recorded(store: Store) -> None:
    """Exactly once: in the same transaction."""
    put(store, (0, 3), (3, 5))
    first, second = store.batches.buffered("s")
    store.batches.record(first.batch, [row(1, sources=(1,))], outcome=BatchOutcome.OBSERVED, now=LATER)
    assert store.batches.buffered("s") == (second,)
    with pytest.raises(StaleBatch):
        store.batches.record(first.batch, [row(2, sources=(1,))], outcome=BatchOutcome.OBSERVED, now=LATER)
    store.batches.record(second.batch, [], outcome=BatchOutcome.EMPTY, now=LATER)
    assert (store.batches.buffered("s"), store.batches.pending("s").messages, store.sessions.status().blocks) == (
        (),
        4,
        0,
    )


def test_a_second_block_is_not_recorded_before_the_first(store: Store) -> None:
    put(store, (0, 3), (3, 5))
    _, second = store.batches.buffered("s")
    with pytest.raises(StaleBatch):
        store.batches.record(second.batch, [], outcome=BatchOutcome.EMPTY, now=LATER)
    assert ends(store) == [(0, 3), (3, 5)]


def test_a_block_that_the_cursor_has_passed_is_discarded_and_one_that_it_straddles_begins_there(store: Store) -> None:
    """T76."""
    put(store, (0, 3), (3, 7))
    cover(store, 50)
    (left,) = store.batches.buffered("s")
    assert (left.batch.after, left.batch.through, left.begins) == (5, 7, 3)
    assert texts(left.batch.messages) == ["f", "g"]
    assert len(left.observed.drafts) == 4, "what of them is left out is for whoever writes them down"
    assert (store.sessions.status().blocks, store.sessions.status().ahead) == (1, 2)
    store.batches.record(left.batch, [], outcome=BatchOutcome.EMPTY, now=LATER)
    assert store.batches.pending("s").messages == 2


def test_a_block_inside_another_is_discarded_whichever_comes_first(store: Store) -> None:
    """T76: {10, 11} of {10..13}; two who observed ahead at once keep one of what both saw."""
    put(store, (0, 2))
    put(store, (0, 4))
    assert ends(store) == [(0, 4)]
    for inner in ((0, 4), (0, 2), (1, 3)):
        with pytest.raises(StaleBatch):
            put(store, inner)
    put(store, (4, 6))
    assert ends(store) == [(0, 4), (4, 6)]
    assert store.sessions.status().blocks == 2


def test_blocks_that_overlap_cover_each_message_once(store: Store) -> None:
    put(store, (0, 2), (2, 6), (0, 4))
    assert ends(store) == [(0, 4), (4, 6)]
    assert (store.sessions.status().blocks, store.sessions.status().ahead) == (2, 6)


def test_a_block_that_comes_too_late_is_not_kept(store: Store) -> None:
    """T76: somebody has covered its messages meanwhile."""
    late, straddling = block(part(store, 0, 3)), block(part(store, 0, 5))
    cover(store, 30)
    with pytest.raises(StaleBatch):
        store.batches.buffer(late)
    assert store.sessions.status().blocks == 0
    store.batches.buffer(straddling)
    assert ends(store) == [(3, 5)]


def test_each_session_has_blocks_of_its_own(store: Store) -> None:
    keep(store, "x", "y", to="other")
    put(store, (0, 3))
    assert store.batches.buffered("other") == ()
    assert store.batches.pending("other").blocks == 0
    batch = store.batches.unobserved("other", max_tokens=100, ahead=True)
    assert batch is not None
    store.batches.buffer(block(batch, name=2))
    cover(store, 100)
    assert ends(store) == []
    assert len(store.batches.buffered("other")) == 1


@pytest.mark.parametrize("outcome", [BatchOutcome.FAILED, BatchOutcome.DEFERRED])
def test_what_was_tried_behind_a_block_moves_nothing(store: Store, outcome: BatchOutcome) -> None:
    """S0.21: a failure ahead is noted as any other, and what gave nothing yet counts as offered."""
    put(store, (0, 3))
    ahead = store.batches.unobserved("s", max_tokens=40, ahead=True)
    assert ahead is not None
    store.batches.record(
        ahead, [], outcome=outcome, now=LATER, error="the tide is out" if outcome is BatchOutcome.FAILED else None
    )
    assert ends(store) == [(0, 3)]
    assert store.batches.pending("s").messages == 9
    left = store.batches.pending("s", ahead=True)
    assert left.fresh_tokens == {COUNTER: 60 if outcome is BatchOutcome.FAILED else 20}
    assert [error.error for error in store.sessions.status().errors] == ["the tide is out"] * (
        outcome is BatchOutcome.FAILED
    )
    again = store.batches.unobserved("s", max_tokens=40, ahead=True)
    assert again is not None
    assert again.deferred_through == (0 if outcome is BatchOutcome.FAILED else 7)


def test_a_block_answers_a_failure(store: Store) -> None:
    ahead = part(store, 0, 3)
    store.batches.record(ahead, [], outcome=BatchOutcome.FAILED, now=NOW, error="the tide is out")
    store.batches.buffer(block(ahead))
    assert store.sessions.status().errors == ()


def test_what_was_tried_elsewhere_is_stale(store: Store) -> None:
    put(store, (0, 3))
    for after in (1, 4):
        with pytest.raises(StaleBatch):
            store.batches.record(part(store, after, 6), [], outcome=BatchOutcome.FAILED, now=LATER, error="late")


def test_messages_that_are_put_aside_are_left_out_of_a_block(store: Store) -> None:
    """A block may end with one of them, or have no other."""
    put(store, (0, 3), (3, 5))
    change = OperationWrite(verb=OperationKind.FORGET, scope=Scope(session="s"), messages=(2, 3, 4, 5))
    done = store.operations.change(change, now=LATER)
    first, second = store.batches.buffered("s")
    assert (texts(first.batch.messages), second.batch.messages) == (["a"], ())
    assert (store.sessions.status().blocks, store.sessions.status().ahead) == (2, 1)
    store.operations.undo(done.number, now=LATER)
    assert [texts(one.batch.messages) for one in store.batches.buffered("s")] == [["a", "b", "c"], ["d", "e"]]
    again = store.operations.change(change, now=LATER)
    for one in store.batches.buffered("s"):
        store.batches.record(one.batch, [], outcome=BatchOutcome.EMPTY, now=LATER)
    assert store.batches.pending("s").messages == 4
    assert again.messages == 4


def test_a_title_goes_with_a_message_that_is_put_aside(store: Store) -> None:
    """F25: it may tell what was forgotten; and it comes back with that."""
    put(store, (0, 3), (3, 5))
    done = store.operations.change(
        OperationWrite(verb=OperationKind.FORGET, scope=Scope(session="s"), messages=(2,)), now=LATER
    )
    assert [one.observed.title for one in store.batches.buffered("s")] == [None, "Tides"]
    store.operations.undo(done.number, now=LATER)
    assert [one.observed.title for one in store.batches.buffered("s")] == ["Tides", "Tides"]


def test_a_message_that_is_brought_back_waits_also_where_a_block_was_made_around_it(store: Store) -> None:
    """S0.21: whoever made the block has not seen it; nobody would, if the block were written down."""
    put(store, (0, 2))
    done = store.operations.change(
        OperationWrite(verb=OperationKind.FORGET, scope=Scope(session="s"), messages=(4,)), now=LATER
    )
    store.batches.buffer(replace(block(part(store, 2, 5)), at=LATER))
    store.operations.undo(done.number, now=LATER)
    assert ends(store) == [(0, 2)], "made before, of other messages"
    batch = store.batches.unobserved("s", max_tokens=30, ahead=True)
    assert batch is not None
    assert texts(batch.messages) == ["c", "d", "e"]


def test_a_block_is_not_kept_where_a_message_of_it_went_or_came_back_while_it_was_made(store: Store) -> None:
    made = block(part(store, 0, 3))
    done = store.operations.change(
        OperationWrite(verb=OperationKind.FORGET, scope=Scope(session="s"), messages=(2,)), now=LATER
    )
    without = block(part(store, 0, 3))
    with pytest.raises(StaleBatch):
        store.batches.buffer(made)
    store.operations.undo(done.number, now=LATER)
    with pytest.raises(StaleBatch):
        store.batches.buffer(without)
    store.batches.buffer(made)
    assert ends(store) == [(0, 3)]


def test_what_a_block_says_of_messages_that_are_deleted_is_deleted_with_them(store: Store) -> None:
    """The other messages of it wait, and are observed again."""
    put(store, (0, 3), (3, 5))
    done = store.operations.change(
        OperationWrite(verb=OperationKind.FORGET, scope=Scope(session="s"), messages=(2,)), now=LATER
    )
    store.operations.erase([done.number], now=LATER)
    assert store.batches.buffered("s") == (), "behind a gap"
    assert store.sessions.status().blocks == 1
    batch = store.batches.unobserved("s", max_tokens=20)
    assert batch is not None
    assert texts(batch.messages) == ["a", "c"]
    store.batches.record(batch, [], outcome=BatchOutcome.EMPTY, now=LATER)
    assert ends(store) == [(3, 5)]


def test_what_is_deleted_of_one_session_leaves_the_blocks_of_others(store: Store) -> None:
    """Also where messages of both came in turns."""
    keep(store, "x", to="other")
    keep(store, "j")
    put(store, (0, 11))
    done = store.operations.change(
        OperationWrite(verb=OperationKind.FORGET, scope=Scope(session="other"), messages=(10,)), now=LATER
    )
    store.operations.erase([done.number], now=LATER)
    assert ends(store) == [(0, 11)]


def test_blocks_behind_a_gap_are_among_all_there_are(store: Store) -> None:
    """Each without its messages, as it was put."""
    keep(store, "x", to="other")
    put(store, (0, 3), (5, 7))
    every = store.batches.all_buffered()
    assert ends(store) == [(0, 3)]
    assert [(one.begins, one.batch.through, one.batch.messages) for one in every] == [(0, 3, ()), (5, 7, ())]
    assert every[1].observed == block(part(store, 5, 7)).observed


@pytest.mark.parametrize("title", [False, True])
def test_what_a_block_says_that_was_forgotten_is_passed_over_and_deleted_with_it(store: Store, *, title: bool) -> None:
    """D6: a further tombstone, as long as its operation stands; and the block goes with it for good."""
    put(store, (0, 3), (3, 5))
    said = store.batches.buffered("s")[0].observed.drafts[1]
    digest = tombstone_of("Tides") if title else tombstone(said, session="s")
    row_to_be = row(1, text=said.text)
    done = store.operations.change(OperationWrite(verb=OperationKind.FORGET, digests=(digest,)), now=LATER)
    assert (done.figures["ahead"], done.can_be_undone) == (1, True)
    assert store.tombstones.match([row_to_be]) == (not title,)
    store.operations.undo(done.number, now=LATER)
    assert store.tombstones.match([row_to_be]) == (False,)
    store.operations.erase([done.number], now=LATER)
    assert store.sessions.status().blocks == 2, "it was taken back"
    store.operations.change(OperationWrite(verb=OperationKind.FORGET, digests=(digest,)), now=LATER, for_good=True)
    assert [one.begins for one in store.batches.all_buffered()] == ([] if title else [3])
