"""A file that grows, shrinks and changes: reading on from a bookmark comes to what reading the whole file comes to."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omcli.memory.batch import Batch, Observed
from omcli.operations.ingest.files import FileInput, FileReport
from omcli.operations.observe.session import observe_files
from omcli.settings.settings import Settings
from omcli.sqlite.dialect import prepare
from omcli.wiring import Wiring
from tests.fakes import empty_store
from tests.fakes.deps import by_observer
from tests.strategies import examples

STORIES = Path(__file__).parent.parent / "stories"
NOW = "2026-02-10T09:00:00.000Z"
OPENING = 60
"""Lines that decide what a file is: before they are all there, nobody goes on."""

# Most stories are too short to be told apart for good, so they are told again, with other ids and other words.
_BARE_CODEX = [
    {"id": "0198c6a0-0000-7000-8000-00000000bare", "timestamp": "2025-06-01T10:00:00.000Z", "instructions": None},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Count the terns."}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "There are nine."}]},
    {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": '{"command":["ls"]}'},
    {"type": "function_call_output", "call_id": "c1", "output": "nest"},
    {"record_type": "state"},
]
_CODEX_EXEC = [
    {"type": "thread.started", "thread_id": "0198c6a0-0000-7000-8000-00000000exec"},
    {"type": "item.started", "item": {"id": "item_0", "type": "command_execution", "command": "ls"}},
    {"type": "item.completed", "item": {"id": "item_0", "type": "command_execution", "command": "ls", "exit_code": 0}},
    {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "One nest."}},
    {"session_id": "0198c6a0-0000-7000-8000-00000000hist", "ts": 1770714000, "text": "How many eggs?"},
    {"type": "turn.completed"},
]
_DATA_SET = [
    {"messages": [{"role": "user", "content": "Is it ebb?"}, {"role": "assistant", "content": "Flood."}]},
    {"id": "row-b", "messages": [{"role": "user", "content": "Is it ebb?"}, {"role": "assistant", "content": "Yes."}]},
    {"role": "user", "content": "And tomorrow?"},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "tide", "arguments": "{}"}}]},
    {"role": "tool", "content": "low at six"},
]
_TURNS = [
    {"role": "user", "content": "Where is the wall text?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "find", "input": {"name": "wall"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "wall.md"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "In wall.md."}], "session_id": "museum"},
]
_QUEUED: list[dict[str, Any]] = [
    {"type": "queue-operation", "operation": "enqueue", "content": "And the docs", "timestamp": "2026-02-03T10:00:00Z",
     "sessionId": "q"},
    {"type": "queue-operation", "operation": "remove", "timestamp": "2026-02-03T10:00:09Z", "sessionId": "q"},
    {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "And the docs"}, "uuid": "q1",
     "timestamp": "2026-02-03T10:00:10Z", "sessionId": "q"},
]  # fmt: skip
_IN_PIECES = [
    {"type": "assistant", "uuid": f"pieces-{number}", "sessionId": "q", "timestamp": "2026-02-03T10:00:20Z",
     "message": {"id": "msg_pieces", "role": "assistant", "content": [{"type": "text", "text": f"Piece {number}."}]}}
    for number in range(3)
]  # fmt: skip
_TITLES = [
    {"type": "custom-title", "customTitle": "Nests", "sessionId": "q"},
    {"type": "ai-title", "aiTitle": "Counting nests", "sessionId": "q"},
]
_ELSEWHERE = [
    {"timestamp": "2026-03-04T10:00:00Z", "type": "turn_context", "payload": {"cwd": "/elsewhere", "model": "m"}},
    {"timestamp": "2026-03-04T10:00:01Z", "type": "compacted", "payload": {"message": "So far: eggs."}},
    {"timestamp": "2026-03-04T10:00:02Z", "type": "event_msg", "payload": {"type": "context_compacted"}},
    {"timestamp": "2026-03-04T10:00:03Z", "type": "event_msg", "payload": {"type": "user_message", "message": "Go on"}},
    {"timestamp": "2026-03-04T10:00:03Z", "type": "event_msg", "payload": {"type": "item_completed", "item": {
        "type": "UserMessage", "content": [{"type": "text", "text": "Go on"}]}}},
    {"timestamp": "2026-03-04T10:00:04Z", "type": "response_item", "payload": {
        "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "There are ten."}]}},
]  # fmt: skip


def lines_of(name: str) -> list[bytes]:
    return (STORIES / name).read_bytes().splitlines()


def written(records: Sequence[object]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


KINDS = {
    "claude-code": [
        *lines_of("claude_code_refactor.jsonl"),
        *written(_QUEUED),
        *written(_IN_PIECES),
        *written(_TITLES),
    ],
    "codex": [*lines_of("codex_release.jsonl"), *written(_ELSEWHERE)],
    "bare codex": written(_BARE_CODEX),
    "codex exec": written(_CODEX_EXEC),
    "pi": lines_of("pi_bugfix.jsonl"),
    "openai": lines_of("chat_openai.jsonl"),
    "data set": written(_DATA_SET),
    "old openai": written(_DATA_SET[2:]),
    "anthropic": written(_TURNS),
    "text": lines_of("chat.txt"),
}
ODD = [b"", b"   ", b"{", b'{"type":', b"[1, 2]", b"null", b"\xff\xfe", b'{"type":"mystery"}', b'{"a":1}{"b":2}']


@st.composite
def transcripts(draw: st.DrawFn, kind: str) -> bytes:
    """A file: the story in order, then any of its lines again and again, as they are or of another time."""
    lines = KINDS[kind]
    again = draw(st.lists(st.tuples(st.integers(0, len(lines) - 1), st.integers(0, 9)), max_size=30))
    repeats = OPENING // len(lines) + 1 if draw(st.booleans()) else 1
    found = [retold(line, number) for number in range(repeats) for line in lines]
    found += [retold(lines[place], number) for place, number in again]
    for place, odd in draw(st.lists(st.tuples(st.integers(0, len(found)), st.sampled_from(ODD)), max_size=4)):
        found.insert(place, odd)
    return b"\n".join(found) + draw(st.sampled_from([b"", b"\n", b"\r\n", b"\n\n"]))


def retold(line: bytes, number: int) -> bytes:
    """The line with a number in its ids and words; 0 leaves it as it is, and 1 changes only words."""
    if not number:
        return line
    words = line.replace(b" the ", f" the {number}th ".encode())
    return words if number == 1 else words.replace(b'id":"', f'id":"{number}'.encode())


class Silent:
    """An observer that finds nothing worth noting."""

    def observe(self, batch: Batch) -> Observed:
        return Observed(drafts=())


CONTENT = (
    "SELECT i.identity, m.* FROM messages AS m LEFT JOIN identities AS i ON i.message = m.seq",
    "SELECT * FROM sessions",
    "SELECT session, covers_up_to FROM cursors",
    "SELECT session, after, through, outcome FROM batches",
)


class Store:
    """A store on disk, and the file that is taken into it again and again."""

    def __init__(self, folder: Path) -> None:
        self.db = folder / "om.db"
        self.db.write_bytes(empty_store())
        self.file = folder / "transcript.jsonl"

    def observe(self, content: bytes, *, session: str | None = None, format_name: str | None = None) -> FileReport:
        """Takes the file in as it is now, in a run of its own."""
        self.file.write_bytes(content)
        configured = Settings(db=self.db, counter="chars-4", wait=1)
        wiring = Wiring(configured, now=NOW)
        deps = replace(wiring.deps(wiring.counter("chars-4"), lambda *_: None), observer=by_observer(Silent()))
        opened = partial(wiring.transcript, str(self.file), format_name=format_name, session=session)
        (report,) = observe_files([FileInput(name="file", open=opened)], deps, session=session)
        wiring.store.close()
        return report

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        with closing(prepare(sqlite3.connect(self.db))) as connection, connection:
            return list(connection.execute(sql))

    def forget_bookmarks(self) -> None:
        self.execute("DELETE FROM bookmarks")

    @property
    def content(self) -> list[list[tuple[object, ...]]]:
        """All messages with their identities in order, all sessions, and how far they are observed."""
        with closing(sqlite3.connect(self.db)) as connection:
            return [connection.execute(sql).fetchall() for sql in CONTENT]


@contextmanager
def stores() -> Iterator[tuple[Store, Store]]:
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        yield Store(Path(one)), Store(Path(other))


def told(report: FileReport) -> tuple[FileReport, str]:
    """What a report says of the file; of an error its words."""
    # Messages are observed once: a second reading has nothing to observe. Branches show only from the beginning.
    return replace(report, unread_bytes=0, message_tokens=0, abandoned=frozenset(), error=None), str(report.error)


STEPS = st.lists(
    st.tuples(st.sampled_from(["grow", "grow", "grow", "shrink", "flip", "other", "nothing"]), st.floats(0, 1)),
    min_size=2,
    max_size=5,
)


def states(whole: bytes, other: bytes, steps: list[tuple[str, float]]) -> Iterator[bytes]:
    """A file as it is found, time after time: cut anywhere, grown, changed in place, replaced."""
    length, content = 0, whole
    for step, share in steps:
        if step == "grow":
            length += round((len(content) - length) * share)
        elif step == "shrink":
            length = round(length * share)
        elif step == "flip" and content:
            at = min(round(length * share), len(content) - 1)
            content = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        elif step == "other":
            content = other
        yield content[:length]
    yield content
    yield content


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(examples(8), suppress_health_check=list(HealthCheck))
def test_with_bookmarks_a_file_is_taken_in_exactly_as_without(kind: str, data: st.DataObject) -> None:
    """S0.8, F2, F59, F63: whatever became of the file, what is stored and what is said is the same."""
    whole, other = data.draw(transcripts(kind)), data.draw(transcripts(kind))
    steps = data.draw(STEPS)
    with stores() as (going_on, reading_all):
        for content in states(whole, other, steps):
            reading_all.forget_bookmarks()
            found, wanted = going_on.observe(content), reading_all.observe(content)
            assert wanted.unread_bytes == 0
            assert told(found) == told(wanted)
            assert going_on.content == reading_all.content
        if found.format is not None and found.error is None and not found.redactions:
            assert found.unread_bytes == len(content), "what has not changed is not read again"


# The last turn of a text ends where the file does: cut there, it is another one.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "text"])
@pytest.mark.parametrize("lines", [1, 7])
def test_a_file_that_grows_line_by_line_is_read_on_from_its_end(kind: str, lines: int) -> None:
    """Every line may be the last one when om comes by, and what it needs of those before it must be carried along."""
    lap = KINDS[kind]
    whole = [retold(line, number) for number in range(2 + 2 * OPENING // len(lap)) for line in lap]
    whole = whole[: OPENING + max(40, len(lap))]
    with stores() as (stepwise, at_once):
        stepwise.observe(b"".join(line + b"\n" for line in whole[:OPENING]))
        read_on = []
        for end in range(OPENING + lines, len(whole) + 1, lines):
            content = b"".join(line + b"\n" for line in whole[:end])
            report = stepwise.observe(content)
            read_on.append(report.unread_bytes > 0)
        fresh = at_once.observe(content)
        as_fresh = replace(
            report,
            new_messages=fresh.new_messages,
            known_messages=fresh.known_messages,
            message_tokens=fresh.message_tokens,
        )
        assert told(as_fresh) == told(fresh)
        for found, wanted in zip(stepwise.content[:2], at_once.content[:2], strict=True):
            assert found == wanted, "the same messages, in the same order, and the same sessions"
        assert sum(read_on) >= 0.6 * len(read_on)


CLAUDE = b"".join(retold(line, number) + b"\n" for number in range(2) for line in KINDS["claude-code"])
ONE_MORE = json.dumps(
    {"type": "user", "uuid": "more", "sessionId": "q", "timestamp": "2026-02-03T12:00:00Z",
     "message": {"role": "user", "content": "One more thing."}}
).encode() + b"\n"  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_only_what_follows_is_read_of_a_file_that_has_grown(store: Store) -> None:
    """S0.8: and what is told of it is told of the whole file."""
    first = store.observe(CLAUDE)
    again = store.observe(CLAUDE)
    assert (first.unread_bytes, again.unread_bytes) == (0, len(CLAUDE))
    assert (again.new_messages, again.known_messages) == (0, first.new_messages + first.known_messages)
    assert replace(again, unread_bytes=0, new_messages=0, known_messages=0, message_tokens=0) == replace(
        first, message_tokens=0, new_messages=0, known_messages=0
    )
    grown = store.observe(CLAUDE + ONE_MORE)
    assert (grown.unread_bytes, grown.new_messages) == (len(CLAUDE), 1)
    assert grown.counts.messages == first.counts.messages + 1


def test_a_session_that_is_not_known_yet_is_not_carried_along(store: Store) -> None:
    """It is derived from what is said first, up to the answer."""
    lines = written([{"role": "system", "content": "Be brief."}] * OPENING + [{"role": "user", "content": "Ebb?"}])
    opening = b"".join(line + b"\n" for line in lines)
    asked = store.observe(opening)
    answered = store.observe(opening + written([{"role": "assistant", "content": "Flood."}])[0] + b"\n")
    assert (answered.unread_bytes, answered.new_messages) == (0, 1)
    assert answered.sessions == asked.sessions


def test_a_file_that_may_still_turn_out_to_be_another_format_is_read_whole(store: Store) -> None:
    """Chat messages, until a turn comes that only one interface has."""
    said = b"".join(json.dumps({"role": "user", "content": f"{number}?"}).encode() + b"\n" for number in range(20))
    assert store.observe(said).format == "openai"
    assert store.observe(said).unread_bytes == len(said), "that it has not changed may be known"
    grown = store.observe(said + written(_TURNS)[1] + b"\n")
    assert (grown.format, grown.unread_bytes) == ("anthropic", 0)


def test_a_line_that_is_still_being_written_is_read_again_when_it_is_whole(store: Store) -> None:
    """F59."""
    store.observe(CLAUDE)
    for end in (1, len(ONE_MORE) // 2, len(ONE_MORE) - 2):
        report = store.observe(CLAUDE + ONE_MORE[:end])
        assert (report.unread_bytes, report.new_messages, report.skipped["truncated"]) == (len(CLAUDE), 0, 1)
    report = store.observe(CLAUDE + ONE_MORE)
    assert (report.unread_bytes, report.new_messages) == (len(CLAUDE), 1)
    assert "truncated" not in report.skipped


def test_a_last_line_without_an_end_is_taken_at_once_and_its_end_adds_nothing(store: Store) -> None:
    store.observe(CLAUDE)
    assert store.observe(CLAUDE + ONE_MORE.rstrip()).new_messages == 1
    unchanged = store.observe(CLAUDE + ONE_MORE.rstrip())
    assert (unchanged.unread_bytes, unchanged.new_messages) == (len(CLAUDE + ONE_MORE.rstrip()), 0)
    assert store.observe(CLAUDE + ONE_MORE).new_messages == 0


@pytest.mark.parametrize("at", [0, 1000, len(CLAUDE) - 2])
def test_a_change_of_one_byte_anywhere_is_seen(store: Store, at: int) -> None:
    """F2."""
    store.observe(CLAUDE)
    changed = CLAUDE[:at] + bytes([CLAUDE[at] ^ 1]) + CLAUDE[at + 1 :]
    assert store.observe(changed).unread_bytes == 0
    assert store.observe(changed + ONE_MORE).unread_bytes == len(changed)


def test_a_file_whose_last_line_is_gone_is_read_whole_and_only_its_new_lines_are_new(store: Store) -> None:
    """F2: the line that everything before was taken in up to has vanished."""
    store.observe(CLAUDE)
    shorter = CLAUDE[: CLAUDE.rstrip().rindex(b"\n") + 1]
    report = store.observe(shorter + ONE_MORE)
    assert (report.unread_bytes, report.new_messages) == (0, 1)


def test_terms_decide_how_a_file_is_read_so_other_terms_read_it_whole(store: Store) -> None:
    store.observe(CLAUDE)
    assert store.observe(CLAUDE, session="given").unread_bytes == 0
    assert store.observe(CLAUDE, session="given").unread_bytes == len(CLAUDE)
    assert store.observe(CLAUDE, session="given", format_name="claude-code").unread_bytes == 0
    assert store.observe(CLAUDE).unread_bytes == 0


def test_whoever_takes_messages_out_of_the_store_takes_the_bookmarks_too(store: Store) -> None:
    store.observe(CLAUDE)
    before = store.content[0]
    store.execute("DELETE FROM identities WHERE message > 10")
    store.execute("DELETE FROM messages WHERE seq > 10")
    assert store.execute("SELECT * FROM bookmarks") == []
    report = store.observe(CLAUDE)
    assert (report.unread_bytes, report.new_messages > 0) == (0, True)
    assert [row[0] for row in store.content[0]] == [row[0] for row in before]


def test_what_was_forgotten_does_not_come_back(store: Store) -> None:
    """An identity without its message is what forgetting leaves."""
    store.observe(CLAUDE)
    store.execute("DELETE FROM messages WHERE seq > 10")
    assert store.observe(CLAUDE).new_messages == 0
    assert store.observe(CLAUDE + ONE_MORE).new_messages == 1


def test_a_file_with_faults_is_told_of_alike_every_time(store: Store) -> None:
    """F57."""
    faulty = CLAUDE + b"not json\n[1]\n"
    first, again, grown = store.observe(faulty), store.observe(faulty), store.observe(faulty + ONE_MORE)
    assert first.faults == again.faults == grown.faults == {"not-json": 1, "not-an-object": 1}
    assert again.unread_bytes == grown.unread_bytes == len(faulty)
    assert first.redactions == again.redactions == grown.redactions != {}


def test_a_file_that_was_refused_is_refused_again(store: Store) -> None:
    for _ in range(2):
        for refused in (b"\x00\xff" * 500, b'{"type":"mystery","sessionId":"s"}\n' * 100):
            report = store.observe(refused, format_name="claude-code")
            assert report.error is not None
            assert report.unread_bytes == 0


def test_a_secret_that_waits_in_a_queue_is_in_no_bookmark(store: Store) -> None:
    """F46: what is carried along was said, and nothing has taken secrets out of it."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    waiting = json.dumps({**_QUEUED[0], "content": f"Deploy with {secret}"}).encode() + b"\n"
    store.observe(CLAUDE + waiting)
    assert store.execute("SELECT carried FROM bookmarks") == [(None,)]
    assert store.observe(CLAUDE + waiting).unread_bytes == len(CLAUDE + waiting), "that it has not changed may be known"
    removed = json.dumps(_QUEUED[1]).encode() + b"\n"
    report = store.observe(CLAUDE + waiting + removed)
    assert (report.unread_bytes, report.new_messages, report.counts.asides > 0) == (0, 0, True)
    assert secret.encode() not in b"".join(
        path.read_bytes() for path in store.db.parent.iterdir() if path != store.file
    )


def test_what_is_nested_too_deep_to_be_written_down_is_read_again(store: Store) -> None:
    """F61."""
    deep = (
        b'{"type":"queue-operation","operation":"enqueue","sessionId":"q","content":' + b"[" * 900 + b"]" * 900 + b"}\n"
    )
    assert store.observe(CLAUDE + deep).error is None
    assert store.observe(CLAUDE + deep + ONE_MORE).new_messages == 1


def test_a_bookmark_that_costs_more_than_it_saves_is_not_kept(store: Store) -> None:
    """Short messages without ids, each told apart by 8 bytes: the file is as quick to read as the bookmark."""
    lines = b"".join(json.dumps({"role": "user", "content": f"{number}"}).encode() + b"\n" for number in range(12_000))
    store.observe(lines)
    assert store.execute("SELECT carried IS NULL FROM bookmarks") == [(1,)]
    assert store.observe(lines).unread_bytes == len(lines)
