"""A session's cursor moves only from where a batch begins: nothing is covered twice, and nothing is left out."""

from __future__ import annotations

import pytest

from omcli.base.errors import StaleBatch
from omcli.base.record import replace
from omcli.memory.batch import Batch, BatchOutcome, Observed
from omcli.memory.buffer import BufferedBatch
from omcli.memory.observation import Source
from omcli.memory.ports import Store
from tests.contract.keeping import keep, logged, next_batch, texts
from tests.material import LATER, NOW, row, said

COVERING = [BatchOutcome.OBSERVED, BatchOutcome.EMPTY]


def record(store: Store, batch: Batch, outcome: BatchOutcome, *, number: int) -> None:
    """Record a batch with a row of its last message."""
    rows = [row(number, text=f"row {number}", sources=(batch.through,))] if outcome is BatchOutcome.OBSERVED else []
    store.batches.record(batch, rows, outcome=outcome, now=LATER, error="late")


def buffered(store: Store, *, max_tokens: int) -> Batch:
    """Observe the oldest messages ahead, and return the batch behind them."""
    first = next_batch(store, max_tokens=max_tokens)
    observed = Observed(drafts=(), used=(), title=None, findings={})
    store.batches.buffer(BufferedBatch(batch=first, begins=0, observed=observed, ids=(), source=Source.RULES, at=NOW))
    behind = store.batches.unobserved("s", max_tokens=1000, ahead=True)
    assert behind is not None
    assert behind.after == first.through
    return behind


@pytest.mark.parametrize("outcome", list(BatchOutcome))
@pytest.mark.parametrize("first", COVERING)
def test_a_larger_batch_that_begins_where_the_cursor_was_is_refused(
    store: Store, first: BatchOutcome, outcome: BatchOutcome
) -> None:
    """T75, F28: two observe from one place, the second as far again; nothing is covered twice, and the rest waits."""
    keep(store, said("one"), said("two"), said("three"))
    small, large = next_batch(store, max_tokens=10), next_batch(store)
    assert (small.after, large.after, small.through < large.through) == (0, 0, True)
    record(store, small, first, number=1)
    before = logged(store)
    with pytest.raises(StaleBatch):
        record(store, large, outcome, number=2)
    assert logged(store) == before
    assert store.sessions.status().errors == ()
    assert store.batches.pending("s").messages == len(large.messages) - len(small.messages)
    rest = next_batch(store)
    assert (rest.after, texts(rest.messages)) == (small.through, texts(large.messages)[len(small.messages) :])


@pytest.mark.parametrize("outcome", COVERING)
def test_a_batch_that_begins_behind_the_cursor_is_refused(store: Store, outcome: BatchOutcome) -> None:
    """T75, T16: what lies between them would be covered by nothing; it is observed first."""
    keep(store, said("one"), said("two"), said("three"))
    behind = buffered(store, max_tokens=10)
    with pytest.raises(StaleBatch):
        record(store, behind, outcome, number=1)
    assert logged(store) == []
    assert store.batches.pending("s").messages == 3
    assert next_batch(store).after == 0


@pytest.mark.parametrize("outcome", [BatchOutcome.FAILED, BatchOutcome.DEFERRED])
def test_what_was_only_tried_may_begin_behind_the_cursor_and_moves_it_nowhere(
    store: Store, outcome: BatchOutcome
) -> None:
    """S0.18: where a buffered batch ends; anywhere else it is refused."""
    keep(store, said("one"), said("two"), said("three"))
    behind = buffered(store, max_tokens=10)
    record(store, behind, outcome, number=1)
    assert next_batch(store).after == 0
    with pytest.raises(StaleBatch):
        record(store, replace(behind, after=behind.messages[0].seq), outcome, number=2)
