"""Compacting a session: what is printed holds the target, and can be gone on from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omcli.memory.message import Incoming, Message, Role
from omcli.memory.observation import LogQuery
from omcli.memory.session import Session
from omcli.observers.rules import RuleObserver
from omcli.operations.clock import Clock
from omcli.operations.compact.layouts import CompactFormat
from omcli.operations.compact.output import CompactRequest
from omcli.operations.compact.session import CompactLimits, CompactReport, RefuseReason, compact
from omcli.operations.deps import Deps
from omcli.reflectors.rules import RuleReflector
from omcli.sqlite import SqliteStore
from omcli.tokenizers import counter
from tests.fakes.deps import by_observer, by_reflector
from tests.strategies import examples, messages

NOW = "2026-03-02T12:00:00.000Z"
COUNTERS = ("o200k-approx", "chars-4", "chars-2.5")


@contextmanager
def deps(said: list[Message], name: str = "o200k-approx") -> Iterator[Deps]:
    """What compacts a session `s` of these messages by rules, in a store of its own."""
    count = counter(name)
    ids = iter(range(1, 1 << 30))
    with SqliteStore.temporary() as store:
        incoming = [
            Incoming(message=message, identity=f"{place:032x}", key=f"k{place:04}", tokens=count.message(message))
            for place, message in enumerate(said)
        ]
        store.messages.append(Session(id="s", agent="test"), incoming, counter=count.name, now=NOW)
        yield Deps(
            open_store=lambda: store,
            counter=count,
            observer=by_observer(RuleObserver()),
            reflector=by_reflector(RuleReflector(count, small=0)),
            clock=Clock(NOW),
            new_id=lambda: f"00000000-0000-7000-8000-{next(ids):012x}",
            owner="test",
            wait=0,
        )


def compacted(said: list[Message], shape: CompactFormat, target: int, keep: int | None, name: str) -> CompactReport:
    """What becomes of messages."""
    with deps(said, name) as made:
        return compact("s", made, CompactLimits(wanted=CompactRequest(target=target, keep=keep, shape=shape)))


def call_ids(found: list[dict[str, object]], shape: CompactFormat) -> tuple[list[object], list[object]]:
    """Ids of calls and of results in a list of messages, in order."""
    if shape is CompactFormat.MESSAGES:
        calls = [call["id"] for turn in found for call in turn.get("tool_calls", ())]  # type: ignore[attr-defined]
        return calls, [turn["tool_call_id"] for turn in found if turn["role"] == "tool"]
    blocks = [block for turn in found for block in turn["content"]]  # type: ignore[attr-defined]
    return (
        [block["id"] for block in blocks if block["type"] == "tool_use"],
        [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"],
    )


@pytest.mark.parametrize("shape", CompactFormat)
@settings(examples(25), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(
    said=st.lists(messages(), max_size=14),
    target=st.integers(0, 400) | st.integers(400, 5000),
    keep=st.none() | st.integers(0, 600),
    name=st.sampled_from(COUNTERS),
)
def test_no_shape_ever_exceeds_the_target(
    shape: CompactFormat, said: list[Message], target: int, keep: int | None, name: str
) -> None:
    """F50: by the counter that it is stated in, for any messages; and what it says of itself is true."""
    done = compacted(said, shape, target, keep, name)
    printed = done.pack.printed
    assert counter(name).text(printed) <= target
    result = done.result
    assert result.uncovered == 0
    assert result.tokens_after <= target
    assert result.rows_fitting <= result.rows
    assert result.tokens_before == sum(counter(name).message(one) for one in said if one.agent is None)
    if done.refusal is None:
        assert printed
        assert result.tokens_after <= result.tokens_before


@pytest.mark.parametrize("shape", [CompactFormat.MESSAGES, CompactFormat.ANTHROPIC])
@settings(examples(40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(said=st.lists(messages(), max_size=14), target=st.integers(100, 4000), keep=st.none() | st.integers(1, 2000))
def test_calls_and_results_come_in_pairs(
    shape: CompactFormat, said: list[Message], target: int, keep: int | None
) -> None:
    """T57: no result without its call, no call without a result, but for those that the list ends with; ids differ."""
    done = compacted(said, shape, target, keep, "o200k-approx")
    found = json.loads(done.pack.printed or "[]")
    if not found:
        return
    first = 1 if "<om-memory" in json.dumps(found[0]) else 0  # without rows, it begins with the messages
    assert len(found) <= first or found[first]["role"] != "tool"
    calls, results = call_ids(found, shape)
    assert len(set(map(str, calls))) == len(calls), "an endpoint takes an id once"
    assert Counter(map(str, results)) <= Counter(map(str, calls))
    if len(results) < len(calls):
        last_calls = max(place for place, turn in enumerate(found) if call_ids([turn], shape)[0])
        *_, answered = call_ids(found[last_calls:], shape)
        assert len(calls) - len(results) == len(call_ids([found[last_calls]], shape)[0]) - len(answered)
        assert all(call_ids([turn], shape)[1] for turn in found[last_calls + 1 :]), "nothing but results follows"


def test_messages_are_never_changed() -> None:
    """S4.14: to the byte."""
    said = [Message(role=Role.USER, text=f"Always use port {number}, please.") for number in range(200)]
    with deps(said) as made:
        store = made.store
        before = store.messages.tail("s", max_tokens=1 << 40)
        done = compact("s", made, CompactLimits(wanted=CompactRequest(target=600)))
        assert done.pack.printed
        assert store.messages.tail("s", max_tokens=1 << 40) == before


def test_all_folds_are_one_operation_and_undone_as_one() -> None:
    """C8: in chunks of a few rows; what was in sight is so again."""
    said = [
        Message(role=role, text=f"{'Ran' if role is Role.USER else 'Found'} that table {number} has {number} rows.")
        for number in range(150)
        for role in (Role.USER, Role.ASSISTANT)
    ]
    with deps(said) as made:
        store = made.store
        compact("s", made, CompactLimits(wanted=CompactRequest(target=1 << 20)))
        before = [logged.observation for logged in store.rows.log(LogQuery(session="s"))]
        done = compact("s", made, CompactLimits(wanted=CompactRequest(target=2600), rows_tokens=500))
        assert done.result.iterations > 3
        [operation] = store.operations.history()
        assert operation.verb == "compact"
        store.operations.undo(now=NOW)
        assert [logged.observation for logged in store.rows.log(LogQuery(session="s"))] == before


def test_what_is_reached_is_that_all_rows_in_sight_fit() -> None:
    """The contract: with the last messages, in one pack of the target."""
    said = [Message(role=Role.USER, text=f"Always use port {number} for service {number}.") for number in range(100)]
    for target in (300, 900, 2000, 8000):
        with deps(said) as made:
            done = compact("s", made, CompactLimits(wanted=CompactRequest(target=target)))
            in_sight = [logged.observation for logged in made.store.rows.log(LogQuery(session="s"))]
            again = compact("s", made, CompactLimits(wanted=CompactRequest(target=target), is_dry=True))
            assert done.result.reached == again.result.reached
            if done.result.reached:
                assert {row.id for row in in_sight} >= {row.id for row in again.pack.observations if row.sources}
    assert done.result.reached, "eight thousand tokens hold a hundred sentences"


def test_nothing_is_refused_in_silence() -> None:
    """T58, F8."""
    hush = [Message(role=Role.RESULT, text="nobody asked", call_id="x", tool="Bash")]
    assert compacted(hush, CompactFormat.TEXT, 1000, None, "chars-4").refusal is RefuseReason.EMPTY
    short = [Message(role=Role.USER, text="We decided to use port 8080.", id="e1")]
    assert compacted(short, CompactFormat.TEXT, 1000, None, "chars-4").refusal is RefuseReason.LARGER
    assert compacted(short, CompactFormat.PI, 1000, None, "chars-4").refusal is RefuseReason.EMPTY, "all of it stays"
