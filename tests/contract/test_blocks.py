"""What every store promises of blocks: kept until they are written down or superfluous, and in nobody's sight."""

from __future__ import annotations

import pytest

from omcli.base.errors import StaleBatch
from omcli.base.record import replace
from omcli.memory.buffer import Block
from omcli.memory.changes import Change, Verb, tombstone_of, tombstone_to_be
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Draft, Source, Type
from omcli.memory.ports import Batch, LogQuery, Outcome, Store
from omcli.memory.reflection import Scope
from omcli.memory.roles import Observed
from tests.material import COUNTER, LATER, NOW, row, row_id, said, session


def keep(store: Store, *words: str, to: str = "s") -> None:
    messages = [said(word, tokens=10) for word in words]
    store.append(session(to), messages, counter=COUNTER, now=NOW)


def block(batch: Batch, *, name: int = 1) -> Block:
    """A block with a row for each message of a batch."""
    drafts = tuple(
        Draft(text=f"noted {kept.message.text}", type=Type.FACT, importance=5, sources=(kept.seq,))
        for kept in batch.messages
    )
    ids = tuple(row_id(100 * name + kept.seq) for kept in batch.messages)
    observed = Observed(drafts=drafts, used=(row_id(7),), title="Tides", findings={"trimmed": 1})
    return Block(batch=batch, begins=batch.after, observed=observed, ids=ids, source=Source.MODEL, at=NOW)


def part(store: Store, after: int, through: int) -> Batch:
    """A batch as it was read when the cursor, or a block, ended there."""
    messages = tuple(kept for kept in store.messages(range(after + 1, through + 1)) if kept.session == "s")
    return Batch(session="s", after=after, through=through, messages=messages, cwd="/src/app")


def put(store: Store, *ends: tuple[int, int]) -> None:
    for after, through in ends:
        store.put_block(block(part(store, after, through)))


def cover(store: Store, tokens: int) -> None:
    batch = store.unobserved("s", max_tokens=tokens)
    assert batch is not None
    store.record(batch, [], outcome=Outcome.EMPTY, now=NOW)


def ends(store: Store) -> list[tuple[int, int]]:
    return [(block.batch.after, block.batch.through) for block in store.blocks("s")]


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
    store.put_block(kept)
    assert store.blocks("s") == (kept,)


def test_nothing_of_a_block_is_in_sight_and_its_messages_wait_still(store: Store) -> None:
    """S0.21, S0.17: no row, no cursor; the count that waits is what no observation covers."""
    before = store.status()
    put(store, (0, 3), (3, 5))
    assert list(store.log(LogQuery(hidden=True))) == []
    assert store.covered("s") == ()
    status = store.status()
    assert (status.pending, status.observations, status.hidden) == (9, 0, 0)
    assert (status.blocks, status.ahead) == (2, 5)
    assert replace(status, blocks=0, ahead=0) == before
    (summary,) = store.sessions()
    assert (summary.pending, summary.observations) == (9, 0)


def test_what_waits_behind_the_last_block_is_told_apart(store: Store) -> None:
    put(store, (0, 3), (3, 5))
    waiting, left = store.pending("s"), store.pending("s", ahead=True)
    assert (waiting.messages, waiting.tokens, waiting.blocks) == (9, {COUNTER: 90}, 2)
    assert (left.messages, left.tokens, left.fresh_tokens, left.blocks) == (4, {COUNTER: 40}, {COUNTER: 40}, 2)
    batch = store.unobserved("s", max_tokens=20, ahead=True)
    assert batch is not None
    assert (batch.after, batch.through, texts(batch.messages)) == (5, 7, ["f", "g"])
    assert store.pending("other", ahead=True).blocks == 0


def test_without_blocks_everything_that_waits_is_ahead(store: Store) -> None:
    assert store.pending("s", ahead=True) == store.pending("s")
    assert store.unobserved("s", max_tokens=30, ahead=True) == store.unobserved("s", max_tokens=30)
    cover(store, 50)
    assert store.unobserved("s", max_tokens=30, ahead=True) == store.unobserved("s", max_tokens=30)
    assert store.blocks("s") == store.blocks("nowhere") == ()


def test_a_block_is_gone_once_its_batch_is_recorded(store: Store) -> None:
    """Exactly once: in the same transaction."""
    put(store, (0, 3), (3, 5))
    first, second = store.blocks("s")
    store.record(first.batch, [row(1, sources=(1,))], outcome=Outcome.OBSERVED, now=LATER)
    assert store.blocks("s") == (second,)
    with pytest.raises(StaleBatch):
        store.record(first.batch, [row(2, sources=(1,))], outcome=Outcome.OBSERVED, now=LATER)
    store.record(second.batch, [], outcome=Outcome.EMPTY, now=LATER)
    assert (store.blocks("s"), store.pending("s").messages, store.status().blocks) == ((), 4, 0)


def test_a_second_block_is_not_recorded_before_the_first(store: Store) -> None:
    put(store, (0, 3), (3, 5))
    _, second = store.blocks("s")
    with pytest.raises(StaleBatch):
        store.record(second.batch, [], outcome=Outcome.EMPTY, now=LATER)
    assert ends(store) == [(0, 3), (3, 5)]


def test_a_block_that_the_cursor_has_passed_is_discarded_and_one_that_it_straddles_begins_there(store: Store) -> None:
    """T76."""
    put(store, (0, 3), (3, 7))
    cover(store, 50)
    (left,) = store.blocks("s")
    assert (left.batch.after, left.batch.through, left.begins) == (5, 7, 3)
    assert texts(left.batch.messages) == ["f", "g"]
    assert len(left.observed.drafts) == 4, "what of them is left out is for whoever writes them down"
    assert (store.status().blocks, store.status().ahead) == (1, 2)
    store.record(left.batch, [], outcome=Outcome.EMPTY, now=LATER)
    assert store.pending("s").messages == 2


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
    assert store.status().blocks == 2


def test_blocks_that_overlap_cover_each_message_once(store: Store) -> None:
    put(store, (0, 2), (2, 6), (0, 4))
    assert ends(store) == [(0, 4), (4, 6)]
    assert (store.status().blocks, store.status().ahead) == (2, 6)


def test_a_block_that_comes_too_late_is_not_kept(store: Store) -> None:
    """T76: somebody has covered its messages meanwhile."""
    late, straddling = block(part(store, 0, 3)), block(part(store, 0, 5))
    cover(store, 30)
    with pytest.raises(StaleBatch):
        store.put_block(late)
    assert store.status().blocks == 0
    store.put_block(straddling)
    assert ends(store) == [(3, 5)]


def test_each_session_has_blocks_of_its_own(store: Store) -> None:
    keep(store, "x", "y", to="other")
    put(store, (0, 3))
    assert store.blocks("other") == ()
    assert store.pending("other").blocks == 0
    batch = store.unobserved("other", max_tokens=100, ahead=True)
    assert batch is not None
    store.put_block(block(batch, name=2))
    cover(store, 100)
    assert ends(store) == []
    assert len(store.blocks("other")) == 1


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.DEFERRED])
def test_what_was_tried_behind_a_block_moves_nothing(store: Store, outcome: Outcome) -> None:
    """S0.21: a failure ahead is noted as any other, and what gave nothing yet counts as offered."""
    put(store, (0, 3))
    ahead = store.unobserved("s", max_tokens=40, ahead=True)
    assert ahead is not None
    store.record(ahead, [], outcome=outcome, now=LATER, error="the tide is out" if outcome is Outcome.FAILED else None)
    assert ends(store) == [(0, 3)]
    assert store.pending("s").messages == 9
    left = store.pending("s", ahead=True)
    assert left.fresh_tokens == {COUNTER: 60 if outcome is Outcome.FAILED else 20}
    assert [error.error for error in store.status().errors] == ["the tide is out"] * (outcome is Outcome.FAILED)
    again = store.unobserved("s", max_tokens=40, ahead=True)
    assert again is not None
    assert again.deferred_through == (0 if outcome is Outcome.FAILED else 7)


def test_a_block_answers_a_failure(store: Store) -> None:
    ahead = part(store, 0, 3)
    store.record(ahead, [], outcome=Outcome.FAILED, now=NOW, error="the tide is out")
    store.put_block(block(ahead))
    assert store.status().errors == ()


def test_what_was_tried_elsewhere_is_stale(store: Store) -> None:
    put(store, (0, 3))
    for after in (1, 4):
        with pytest.raises(StaleBatch):
            store.record(part(store, after, 6), [], outcome=Outcome.FAILED, now=LATER, error="late")


def test_messages_that_are_put_aside_are_left_out_of_a_block(store: Store) -> None:
    """A block may end with one of them, or have no other."""
    put(store, (0, 3), (3, 5))
    change = Change(verb=Verb.FORGET, scope=Scope(session="s"), messages=(2, 3, 4, 5))
    done = store.change(change, now=LATER)
    first, second = store.blocks("s")
    assert (texts(first.batch.messages), second.batch.messages) == (["a"], ())
    assert (store.status().blocks, store.status().ahead) == (2, 1)
    store.undo(done.number, now=LATER)
    assert [texts(one.batch.messages) for one in store.blocks("s")] == [["a", "b", "c"], ["d", "e"]]
    again = store.change(change, now=LATER)
    for one in store.blocks("s"):
        store.record(one.batch, [], outcome=Outcome.EMPTY, now=LATER)
    assert store.pending("s").messages == 4
    assert again.messages == 4


def test_a_title_goes_with_a_message_that_is_put_aside(store: Store) -> None:
    """F25: it may tell what was forgotten; and it comes back with that."""
    put(store, (0, 3), (3, 5))
    done = store.change(Change(verb=Verb.FORGET, scope=Scope(session="s"), messages=(2,)), now=LATER)
    assert [one.observed.title for one in store.blocks("s")] == [None, "Tides"]
    store.undo(done.number, now=LATER)
    assert [one.observed.title for one in store.blocks("s")] == ["Tides", "Tides"]


def test_a_message_that_is_brought_back_waits_also_where_a_block_was_made_around_it(store: Store) -> None:
    """S0.21: whoever made the block has not seen it; nobody would, if the block were written down."""
    put(store, (0, 2))
    done = store.change(Change(verb=Verb.FORGET, scope=Scope(session="s"), messages=(4,)), now=LATER)
    store.put_block(replace(block(part(store, 2, 5)), at=LATER))
    store.undo(done.number, now=LATER)
    assert ends(store) == [(0, 2)], "made before, of other messages"
    batch = store.unobserved("s", max_tokens=30, ahead=True)
    assert batch is not None
    assert texts(batch.messages) == ["c", "d", "e"]


def test_a_block_is_not_kept_where_a_message_of_it_went_or_came_back_while_it_was_made(store: Store) -> None:
    made = block(part(store, 0, 3))
    done = store.change(Change(verb=Verb.FORGET, scope=Scope(session="s"), messages=(2,)), now=LATER)
    without = block(part(store, 0, 3))
    with pytest.raises(StaleBatch):
        store.put_block(made)
    store.undo(done.number, now=LATER)
    with pytest.raises(StaleBatch):
        store.put_block(without)
    store.put_block(made)
    assert ends(store) == [(0, 3)]


def test_what_a_block_says_of_messages_that_are_deleted_is_deleted_with_them(store: Store) -> None:
    """The other messages of it wait, and are observed again."""
    put(store, (0, 3), (3, 5))
    done = store.change(Change(verb=Verb.FORGET, scope=Scope(session="s"), messages=(2,)), now=LATER)
    store.erase([done.number], now=LATER)
    assert store.blocks("s") == (), "behind a gap"
    assert store.status().blocks == 1
    batch = store.unobserved("s", max_tokens=20)
    assert batch is not None
    assert texts(batch.messages) == ["a", "c"]
    store.record(batch, [], outcome=Outcome.EMPTY, now=LATER)
    assert ends(store) == [(3, 5)]


def test_what_is_deleted_of_one_session_leaves_the_blocks_of_others(store: Store) -> None:
    """Also where messages of both came in turns."""
    keep(store, "x", to="other")
    keep(store, "j")
    put(store, (0, 11))
    done = store.change(Change(verb=Verb.FORGET, scope=Scope(session="other"), messages=(10,)), now=LATER)
    store.erase([done.number], now=LATER)
    assert ends(store) == [(0, 11)]


def test_blocks_behind_a_gap_are_among_all_there_are(store: Store) -> None:
    """Each without its messages, as it was put."""
    keep(store, "x", to="other")
    put(store, (0, 3), (5, 7))
    every = store.every_block()
    assert ends(store) == [(0, 3)]
    assert [(one.begins, one.batch.through, one.batch.messages) for one in every] == [(0, 3, ()), (5, 7, ())]
    assert every[1].observed == block(part(store, 5, 7)).observed


@pytest.mark.parametrize("title", [False, True])
def test_what_a_block_says_that_was_forgotten_is_passed_over_and_deleted_with_it(store: Store, *, title: bool) -> None:
    """D6: a further tombstone, as long as its operation stands; and the block goes with it for good."""
    put(store, (0, 3), (3, 5))
    said = store.blocks("s")[0].observed.drafts[1]
    digest = tombstone_of("Tides") if title else tombstone_to_be(said, session="s")
    row_to_be = row(1, text=said.text)
    done = store.change(Change(verb=Verb.FORGET, digests=(digest,)), now=LATER)
    assert (done.figures["ahead"], done.can_be_undone) == (1, True)
    assert store.are_forgotten([row_to_be]) == (not title,)
    store.undo(done.number, now=LATER)
    assert store.are_forgotten([row_to_be]) == (False,)
    store.erase([done.number], now=LATER)
    assert store.status().blocks == 2, "it was taken back"
    store.change(Change(verb=Verb.FORGET, digests=(digest,)), now=LATER, for_good=True)
    assert [one.begins for one in store.every_block()] == ([] if title else [3])
