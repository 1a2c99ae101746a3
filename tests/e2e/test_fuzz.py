"""Hostile input: whatever is fed to `om observe`, nothing breaks and no good line is lost."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.formats import NAMES
from omcli.memory.transcript import Transcript
from omcli.observers.rules import RuleObserver
from omcli.operations.clock import Clock, id_at
from omcli.operations.deps import Deps
from omcli.operations.ingest.files import FileInput, FileReport
from omcli.operations.observe.session import observe_files
from omcli.reflectors.rules import RuleReflector
from omcli.tokenizers import counter
from omcli.wiring.inputs import transcript_in
from tests.conftest import Om
from tests.fakes import MemoryStore
from tests.fakes.deps import by_observer, by_reflector
from tests.strategies import examples

STORIES = sorted((Path(__file__).parents[1] / "stories").glob("*.json*"))
LINES = {path.name: path.read_bytes().splitlines(keepends=True) for path in STORIES if path.suffix == ".jsonl"}

Kept = Counter[tuple[str, str]]

GARBAGE = st.sampled_from(
    [
        b"null", b"[]", b"[1, 2]", b'"str"', b"{}", b"12", b"{", b'{"a": ', b"\xff\xfe\x00", b"[" * 5000, b"{]",
        b'{"type": "user", "message": null}', b'{"type": "user", "message": "str"}', b'{"role": "user"}',
        b'{"type": "assistant", "message": {"content": [{"type": "tool_use", "input": null}]}}',
        b'{"type": "event_msg", "payload": 7}', b'{"type": 7}',
        b'{"role": "assistant", "content": [null, {"type": "text"}, {"type": "tool_use", "id": {}}]}',
        b'{"type": "message", "id": [], "message": {"role": "user", "content": [{"type": "image", "data": 5}]}}',
    ]
) | st.binary(max_size=80).map(lambda noise: noise.replace(b"\n", b" ").replace(b"\r", b" "))  # fmt: skip


def observed(content: bytes, format_name: str | None = None) -> tuple[FileReport, Kept]:
    """What `om observe` makes of an input, without the process around it; and what is in the store afterwards."""

    @contextmanager
    def opened() -> Iterator[Transcript]:
        yield transcript_in(BytesIO(content), format_name=format_name)

    store, clock = MemoryStore(), Clock("2026-02-10T09:00:00.000Z")
    workshop = Deps(
        open_store=lambda: store,
        counter=counter(),
        observer=by_observer(RuleObserver()),
        reflector=by_reflector(RuleReflector(counter())),
        clock=clock,
        new_id=lambda: id_at(clock.milliseconds(), random.getrandbits(80)),
        owner="test",
        wait=0,
    )
    (report,) = observe_files([FileInput(name="input", open=opened)], workshop)
    messages = store.messages.by_seq(range(1, 1_000))
    assert not any(store.batches.unobserved(session, max_tokens=10**9) for session in report.sessions)
    return report, Counter((kept.message.role, kept.message.text) for kept in messages)


@cache
def undisturbed(story: str) -> Kept:
    """Messages of a story as it is."""
    return observed(b"".join(LINES[story]))[1]


@cache
def without_line(story: str, at: int) -> Kept:
    """Messages of a story that lacks a line."""
    return observed(b"".join(LINES[story][:at] + LINES[story][at + 1 :]))[1]


@cache
def whole_lines(story: str, end: int) -> Kept:
    """Messages of a story up to the end of a line."""
    return observed((STORIES[0].parent / story).read_bytes()[:end])[1]


def is_refused_politely(report: FileReport) -> bool:
    return report.error is not None and report.error.exit_code == 65 and bool(report.error.message)


@pytest.mark.parametrize("story", LINES)
@given(data=st.data())
@examples(12)
def test_rubbish_between_good_lines_costs_no_good_line(story: str, data: st.DataObject) -> None:
    lines, clean = list(LINES[story]), undisturbed(story)
    for _ in range(data.draw(st.integers(1, 5), label="pieces")):
        at = data.draw(st.integers(1, len(lines)), label="at")
        lines.insert(at, data.draw(GARBAGE, label="rubbish") + b"\n")
    report, kept = observed(b"".join(lines))
    assert report.error is None
    assert clean <= kept, f"lost: {clean - kept}"


@pytest.mark.parametrize("story", LINES)
@given(data=st.data())
@examples(12)
def test_a_line_cut_short_costs_that_line_alone(story: str, data: st.DataObject) -> None:
    lines = list(LINES[story])
    at = data.draw(st.integers(1, len(lines) - 1), label="line")
    without = without_line(story, at)
    cut = data.draw(st.integers(1, len(lines[at]) - 2), label="cut")
    lines[at] = lines[at][:cut] + b"\n"
    report, kept = observed(b"".join(lines))
    assert report.error is None
    assert without <= kept, f"lost: {without - kept}"


@pytest.mark.parametrize("story", [path.name for path in STORIES])
@given(data=st.data())
@examples(12)
def test_bytes_changed_anywhere_break_nothing(story: str, data: st.DataObject) -> None:
    content = bytearray((STORIES[0].parent / story).read_bytes())
    for _ in range(data.draw(st.integers(1, 20), label="changes")):
        at = data.draw(st.integers(0, len(content) - 1), label="at")
        content[at : at + data.draw(st.integers(0, 3), label="length")] = data.draw(st.binary(max_size=3), label="by")
    report, kept = observed(bytes(content))
    assert report.error is None or is_refused_politely(report)
    assert report.new_messages + report.known_messages == report.counts.messages
    assert kept or report.error or not report.counts.messages


@pytest.mark.parametrize("story", [path.name for path in STORIES])
@given(data=st.data())
@examples(12)
def test_a_file_cut_short_anywhere_loses_only_its_end(story: str, data: st.DataObject) -> None:
    """F59: what was whole before the cut is kept, and the rest comes when the file is whole."""
    content = (STORIES[0].parent / story).read_bytes()
    cut = data.draw(st.integers(0, len(content)), label="cut")
    report, kept = observed(content[:cut])
    if story in LINES:
        assert whole_lines(story, content.rfind(b"\n", 0, cut) + 1) <= kept
    assert report.error is None or is_refused_politely(report)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("story", LINES)
@given(data=st.data())
@examples(12)
def test_values_of_any_type_anywhere_break_nothing(story: str, data: st.DataObject) -> None:
    """F58: producers write strings for objects, null for lists, numbers for texts."""
    lines = list(LINES[story])
    at = data.draw(st.integers(0, len(lines) - 1), label="line")
    record = json.loads(lines[at])
    spot = record
    while True:
        key = data.draw(st.sampled_from(sorted(spot) if isinstance(spot, dict) else range(len(spot))), label="key")
        deeper = isinstance(spot[key], dict | list) and spot[key] and data.draw(st.booleans(), label="deeper")
        if not deeper:
            break
        spot = spot[key]
    spot[key] = data.draw(values, label="value")
    lines[at] = json.dumps(record).encode() + b"\n"
    report, _ = observed(b"".join(lines))
    assert report.error is None, report.error


@pytest.mark.parametrize("name", [None, *NAMES])
@given(
    content=st.binary(max_size=400) | values.map(lambda value: json.dumps(value).encode()) | st.text().map(str.encode)
)
@examples(20)
def test_anything_is_read_or_refused(name: str | None, content: bytes) -> None:
    """F60, F61."""
    report, _ = observed(content, name)
    assert report.error is None or is_refused_politely(report)


NESTED = {
    "claude_code_refactor.jsonl": '{"type":"assistant","uuid":"%s","sessionId":"s","message":{"role":"assistant",'
    '"content":[{"type":"tool_use","id":"t%s","name":"X","input":%s}]}}',
    "chat_openai.jsonl": '{"role":"assistant","tool_calls":[{"id":"%s","function":{"name":"f%s","arguments":%s}}]}',
    "codex_release.jsonl": '{"type":"response_item",'
    '"payload":{"type":"function_call_output","call_id":"%s%s","output":%s}}',
    "pi_bugfix.jsonl": '{"type":"message","id":"%s","message":{"role":"assistant",'
    '"content":[{"type":"toolCall","id":"t%s","name":"x","arguments":%s}]}}',
}


@pytest.mark.parametrize("story", NESTED)
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_of_any_depth_costs_no_good_line(story: str, opening: str, closing: str) -> None:
    """F61: also where it is just shallow enough to be parsed, and too deep to be written again."""
    depths = (50, 500, *range(900, 1000, 9), 100_000)
    nested = [NESTED[story] % (depth, depth, f"{opening * depth}1{closing * depth}") for depth in depths]
    report, kept = observed(b"".join(LINES[story]) + "\n".join(nested).encode())
    assert report.error is None
    assert undisturbed(story) <= kept


def test_a_few_dozen_hostile_files_as_a_user_would_feed_them(new_om: Callable[[], Om]) -> None:
    """F57, F60, F66: several to a process, and never a traceback."""
    om = new_om()
    chance = random.Random(11)
    for round_ in range(6):
        paths = []
        for number, (name, lines) in enumerate(LINES.items()):
            content = bytearray(b"".join(lines))
            for _ in range(30):
                content[chance.randrange(len(content))] = chance.randrange(256)
            paths.append(om.write(f"{round_}-{number}-{name}", bytes(content[: chance.randrange(1, len(content))])))
        paths.append(om.write(f"{round_}.bin", chance.randbytes(20_000)))
        run = om("observe", "--json", *paths, code=None)
        assert run.code in (0, 65)
        assert len(run.document["files"]) == len(paths)
