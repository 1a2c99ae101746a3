"""Parts of a batch: each message in one of them, each with what goes before it to read along."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.batch import next_slice, part_of_batch
from tests.batches import Talk


@given(kinds=st.lists(st.sampled_from("uats"), min_size=1, max_size=30), tokens=st.integers(1, 200))
def test_slices_follow_each_other_to_the_end_of_their_batch(kinds: list[str], tokens: int) -> None:
    """F65, T18: none is empty, each message is in one, and a result has its call at hand."""
    talk = Talk()
    for kind in kinds:
        match kind:
            case "u":
                talk.user("please look")
            case "a":
                talk.agent("I looked")
            case _:
                talk.tool("Bash", {"command": "ls"}, "x" * (5 if kind == "t" else 150))
    batch = talk.batch()
    after, seen = batch.after, list[int]()
    while after < batch.through:
        part = next_slice(batch, after=after, max_tokens=tokens)
        assert (part.after, part.through) == (after, part.messages[-1].seq)
        known = {kept.message.call_id for kept in (*part.earlier_calls, *part.messages) if kept.message.tool}
        assert known >= {kept.message.call_id for kept in part.messages if kept.message.call_id}
        said = [kept for kept in batch.messages if kept.seq <= after and kept.message.role == "assistant"]
        assert part.last_said == (said[-1] if said else None)
        seen += [kept.seq for kept in part.messages]
        after = part.through
    assert seen == [kept.seq for kept in batch.messages]
    assert part_of_batch(batch, batch.after, batch.through) == batch
