"""What is shown of what waits, where a store alone decides it."""

from __future__ import annotations

from omcli.memory.message import MessageKind, Role
from omcli.operations.apply import pending
from omcli.tokenizers import counter
from tests.fakes import MemoryStore
from tests.material import COUNTER, NOW, said, session

SUMMARY = said("What was said before.", role=Role.EVENT, kind=MessageKind.COMPACTION)


def shown(store: MemoryStore, name: str | None = None, *, tokens: int = 10) -> tuple[list[str], int]:
    """The texts that are shown, and how many messages wait."""
    waiting = pending(store, session=name, tokens=tokens, counter=counter("chars-4"))
    if waiting.pending_view is None:
        return [], waiting.messages
    return [kept.message.text for kept in waiting.pending_view.evidence.shown.labels.values()], waiting.messages


def test_what_is_not_shown_does_not_hide_what_waits_behind_it() -> None:
    """A summary may fill a batch: an agent that is shown nothing would believe that nothing waits."""
    store = MemoryStore()
    store.messages.append(session(), [SUMMARY, said("one"), said("two")], counter=COUNTER, now=NOW)
    assert shown(store) == (["one"], 3)


def test_a_summary_alone_is_waited_for_and_not_shown() -> None:
    store = MemoryStore()
    store.messages.append(session(), [SUMMARY], counter=COUNTER, now=NOW)
    assert shown(store) == ([], 1)


def test_without_a_name_it_is_the_session_seen_last_of_those_that_wait() -> None:
    store = MemoryStore()
    store.messages.append(session("old"), [said("old")], counter=COUNTER, now="2026-03-01T00:00:00.000Z")
    store.messages.append(session("new"), [said("new")], counter=COUNTER, now="2026-03-02T00:00:00.000Z")
    store.messages.append(session("latest"), [], counter=COUNTER, now="2026-03-03T00:00:00.000Z")
    assert shown(store) == (["new"], 1)
    assert shown(store, "old") == (["old"], 1)
    assert shown(store, "nobody") == ([], 0)
