"""Short ways to append to a store and to read from it, for tests of every store."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.memory.batch import Batch
from omcli.memory.message import Incoming
from omcli.memory.observation import LogQuery
from omcli.memory.ports import Store
from tests.material import COUNTER, NOW, session


def keep(store: Store, *messages: Incoming, to: str = "s", now: str = NOW, counter: str = COUNTER) -> tuple[bool, ...]:
    return store.messages.append(session(to), messages, counter=counter, now=now).new


def texts(messages: Sequence[object]) -> list[str]:
    return [kept.message.text for kept in messages]  # type: ignore[attr-defined]


def next_batch(store: Store, name: str = "s", *, max_tokens: int = 1000) -> Batch:
    batch = store.batches.unobserved(name, max_tokens=max_tokens)
    assert batch is not None, f"session {name} has messages that nothing covers"
    return batch


def logged(store: Store, **narrowed: object) -> list[str]:
    return [entry.observation.text for entry in store.rows.log(LogQuery(**narrowed))]  # type: ignore[arg-type]
