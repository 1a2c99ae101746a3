"""`om import` from other tools' memory: their folders, databases, exports and copied lists."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from omcli.exchange import INPUT_NAMES, OUTPUT_NAMES
from tests.conftest import Om
from tests.e2e.transcripts import PROJECT, tide_story

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
OBSERVATIONS = """\
# Observations

## 2026-03-11

### Current Context
- **Active task:** Moving the tide tables to PostgreSQL

### Observations
- \U0001f534 09:15 Ada decided to keep heights in centimetres,
  because the sensors report them so
  - \U0001f7e1 09:20 `src/heights.py` converts on the way out
- \U0001f7e2 10:02 Greeted
- A remark without time

---

## 2026-03-10

a paragraph from before

* \U0001f534 14:00 - Release on Fridays only
"""
REFLECTIONS = f"""\
# Reflections — Long-Term Memory

*Last updated: 2026-03-12 08:30 UTC*
*Last reflected: 2026-03-11*

## Core Identity
<!--om-section: last_reflected=2026-03-12 derived_from_obs_window=2026-03-10..2026-03-11-->
- **Name:** Ada <!--om: id=ome_0011 kind=identity last_seen=2026-03-01T09:00:00Z node=laptop scope=cluster-->

## Active Projects

### Tide Tables
- **Status:** active <!--om: id=ome_0012 kind=snapshot last_seen=2026-03-02T10:00:00Z-->
- **Key decisions:**
  - PostgreSQL 16 for the heights <!--om: id=ome_0013 kind=decision-->
- Uses Python 3.11 (as of 2026-02-20 — verify)

## Preferences & Opinions
- \U0001f534 Prefers pnpm; the token is {SECRET}

## Archive

<details>
<summary>Archived items</summary>

- [2026-01-05] Tried MySQL first

</details>
"""


def rows(om: Om, *filters: str) -> list[dict[str, Any]]:
    return om("log", "--jsonl", *filters).lines


def told(om: Om) -> list[tuple[str, str, str, str]]:
    return [(row["kind"], row["priority"], row.get("event_at", "")[:16], row["text"]) for row in rows(om)]


def summary(om: Om, *arguments: str | Path, stdin: str = "") -> dict[str, Any]:
    found: dict[str, Any] = om("import", "--json", *arguments, stdin=stdin).document["files"][0]
    return found


@pytest.fixture
def retired(om: Om) -> Path:
    """The folder of `observational-memory`."""
    folder = om.folder / "observational-memory"
    folder.mkdir()
    om.write("observational-memory/observations.md", OBSERVATIONS)
    om.write("observational-memory/reflections.md", REFLECTIONS)
    om.write("observational-memory/profile.md", "# Startup Profile\n\n## Core Identity\n- **Name:** An old one\n")
    om.write("observational-memory/active.md", "# Active Context\n\n- An old task\n")
    om.write("observational-memory/.cursor.json", "{}")
    om.write("observational-memory/usage.sqlite", b"SQLite format 3\0")
    return folder


def test_the_folder_of_the_retired_tool_becomes_observations_and_items(om: Om, retired: Path) -> None:
    """Its marks, dates and times are kept; what it generated from these two files is not read again."""
    run = om("import", "--format", "observational-memory", retired)
    assert "observational-memory, 13 new, 1 secret redacted" in run.stderr
    assert told(om) == [
        ("observation", "low", "2026-03-11T12:00", "**Active task:** Moving the tide tables to PostgreSQL"),
        ("observation", "high", "2026-03-11T09:15",
         "Ada decided to keep heights in centimetres, because the sensors report them so"),
        ("observation", "medium", "2026-03-11T09:20", "`src/heights.py` converts on the way out"),
        ("observation", "low", "2026-03-11T10:02", "Greeted"),
        ("observation", "medium", "2026-03-11T12:00", "A remark without time"),
        ("observation", "medium", "2026-03-10T12:00", "a paragraph from before"),
        ("observation", "high", "2026-03-10T14:00", "Release on Fridays only"),
        ("item", "medium", "2026-03-01T09:00", "**Name:** Ada"),
        ("item", "medium", "2026-03-02T10:00", "Tide Tables: **Status:** active"),
        ("item", "medium", "2026-03-12T08:30", "Tide Tables: Key decisions: PostgreSQL 16 for the heights"),
        ("item", "medium", "2026-02-20T00:00", "Tide Tables: Uses Python 3.11 (as of 2026-02-20 — verify)"),
        ("item", "high", "2026-03-12T08:30", "Prefers pnpm; the token is [redacted:github-token]"),
        ("item", "low", "2026-01-05T00:00", "Tried MySQL first"),
    ]  # fmt: skip
    assert {row["source"] for row in rows(om)} == {"import"}
    by_text = {row["text"]: row for row in rows(om)}
    name = by_text["**Name:** Ada"]
    assert name["type"] == "profile"
    assert name["metadata"]["original_id"] == "ome_0011"
    assert name["metadata"]["original_section"] == "Core Identity"
    detail, above = by_text["`src/heights.py` converts on the way out"], rows(om)[1]
    assert detail["metadata"]["under"] == above["id"]
    assert above["metadata"]["mark"] == "\U0001f534"
    assert "session" not in above


def test_nothing_of_it_is_imported_twice_even_if_it_is_wrapped_or_seen_later(om: Om, retired: Path) -> None:
    om("import", "-q", "--format", "observational-memory", retired)
    before = rows(om)
    observations = retired / "observations.md"
    wrapped = OBSERVATIONS.replace("centimetres,\n  because the", "centimetres, because\n  the")
    observations.write_text(wrapped, encoding="utf-8")
    later = REFLECTIONS.replace("last_seen=2026-03-02", "last_seen=2026-04-02").replace(
        "2026-03-12 08:30", "2026-05-01 10:00"
    )
    (retired / "reflections.md").write_text(later, encoding="utf-8")
    report = summary(om, "--format", "observational-memory", retired)
    assert (report["observations"], report["known"]) == (0, len(before))
    assert rows(om) == before


def test_its_files_are_read_alone_as_well_and_never_changed(om: Om, retired: Path) -> None:
    files = {path: path.read_bytes() for path in retired.iterdir()}
    assert summary(om, "--format", "observational-memory", retired / "reflections.md")["observations"] == 6
    om("import", "-q", "--format", "observational-memory", stdin=OBSERVATIONS)
    assert {path: path.read_bytes() for path in retired.iterdir()} == files
    report = summary(om, "--format", "observational-memory", stdin="- no heading\n\nabove\n## A heading\n- fact\n")
    assert (report["observations"], report["skipped"]) == (1, {"no section": 2})
    (retired / "reflections.md").unlink()
    assert summary(om, "--format", "observational-memory", retired)["observations"] == 0


CLAUDE_MEM = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, {client} TEXT NOT NULL, {session} TEXT UNIQUE, project TEXT);
CREATE TABLE observations (id INTEGER PRIMARY KEY, {session} TEXT NOT NULL, project TEXT NOT NULL, text TEXT,
  type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,
  files_modified TEXT, prompt_number INTEGER, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, {session} TEXT NOT NULL, project TEXT NOT NULL, request TEXT,
  investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT,
  created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, {client} TEXT NOT NULL, prompt_text TEXT NOT NULL);
"""
NOW = {"memory_session_id": "mem-1", "created_at": "2026-02-10T14:32:00.000Z", "created_at_epoch": 1770733920000}
HEIGHTS: dict[str, Any] = {
    **NOW,
    "id": 1,
    "project": "tide",
    "type": "decision",
    "title": "Heights are kept in centimetres",
    "subtitle": "No floats anywhere",
    "facts": json.dumps(["The sensors report centimetres", f"The key is {SECRET}"]),
    "narrative": "The team compared\nunits.",
    "concepts": json.dumps(["why-it-exists"]),
    "files_read": "[]",
    "files_modified": json.dumps(["/home/ada/tide/src/heights.py"]),
    "prompt_number": 2,
}
OLD = {**NOW, "id": 2, "memory_session_id": "mem-2", "project": "harbour", "type": "change", "text": "Plain words"}
BROKEN = {**NOW, "id": 3, "project": "tide", "type": "discovery"}
DONE = {**NOW, "id": 1, "project": "tide", "request": "Store tides", "learned": "SQLite has no floats of its own",
        "next_steps": "Write the tests", "files_edited": "not JSON"}  # fmt: skip
SESSION = {"content_session_id": "cc-1", "memory_session_id": "mem-1", "project": "tide"}


def database(path: Path, *, session: str = "memory_session_id", client: str = "content_session_id") -> Path:
    """claude-mem's database, with these names of columns."""
    path.parent.mkdir(exist_ok=True)
    renamed = {"memory_session_id": session, "content_session_id": client}
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(CLAUDE_MEM.format(session=session, client=client))
    for table, found in (("sdk_sessions", SESSION), ("observations", HEIGHTS), ("observations", OLD),
                         ("observations", BROKEN), ("session_summaries", DONE)):  # fmt: skip
        fields = {renamed.get(name, name): value for name, value in found.items()}
        names, marks = ", ".join(fields), ", ".join("?" * len(fields))
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(fields.values()))
    connection.commit()
    connection.close()
    return path


TITLE = "Heights are kept in centimetres"
OF_DATABASE = [
    (TITLE, "high"), ("The sensors report centimetres", "medium"), ("The key is [redacted:github-token]", "medium"),
    ("The team compared units.", "low"), ("No floats anywhere", "low"),
    ("Files modified: /home/ada/tide/src/heights.py", "low"), ("Plain words", "medium"),
    ("Request: Store tides", "medium"), ("Learned: SQLite has no floats of its own", "medium"),
    ("Next steps: Write the tests", "medium"), ("Files modified: not JSON", "low"),
]  # fmt: skip


@pytest.mark.parametrize("columns", [{}, {"session": "sdk_session_id", "client": "claude_session_id"}])
def test_claude_mem_s_database_is_read_and_left_as_it_is(om: Om, columns: dict[str, str]) -> None:
    """Of any version: each observation with its facts below it, in the session of the client."""
    file = database(om.folder / "claude-mem" / "claude-mem.db", **columns)
    content, beside = file.read_bytes(), sorted(file.parent.iterdir())
    run = om("import", "--format", "claude-mem", file.parent)
    assert "claude-mem, 11 new, 1 secret redacted, 1 line skipped: no observation" in run.stderr
    assert (file.read_bytes(), sorted(file.parent.iterdir())) == (content, beside)
    found = rows(om)
    assert [(row["text"], row["priority"]) for row in found] == OF_DATABASE
    title, fact, *_ = found
    assert (title["session"], title["tags"], title["event_at"]) == (
        "cc-1", ["decision", "why-it-exists"], "2026-02-10T14:32:00.000Z",
    )  # fmt: skip
    assert fact["metadata"]["under"] == title["id"]
    assert title["metadata"]["original_type"] == "decision"
    assert (found[6]["session"], found[6]["metadata"]["original_project"]) == ("mem-2", "harbour")
    assert summary(om, "--format", "claude-mem", file)["observations"] == 0
    listed = om("log", "--project", "/home/ada/tide", "--jsonl").lines
    assert {row["text"] for row in listed} == {text for text, _ in OF_DATABASE if text != "Plain words"}


def test_claude_mem_s_export_gives_the_same_rows_as_its_database(om: Om) -> None:
    exported = {"observations": [HEIGHTS, OLD, 7], "sessions": [SESSION], "summaries": [DONE], "prompts": [{"id": 1}]}
    file = om.write("memories.json", json.dumps(exported, indent=2))
    report = summary(om, "--format", "claude-mem", file)
    assert (report["observations"], report["skipped"]) == (11, {"no observation": 1})
    assert [(row["text"], row["priority"]) for row in rows(om)] == OF_DATABASE
    assert summary(om, "--format", "claude-mem", database(om.folder / "claude-mem.db"))["observations"] == 0


def test_a_project_known_by_its_last_name_is_found_among_the_sessions(om: Om) -> None:
    """claude-mem stores `tide` of `/home/ada/tide`, and `tide/branch` of a worktree with this name."""
    om("observe", "-q", stdin=tide_story().text())
    last = PROJECT.rpartition("/")[2]
    found = [
        {**OLD, "id": number, "project": project, "text": f"Said in {project}"}
        for number, project in enumerate((last, f"main/{last}", "elsewhere"))
    ]
    om("import", "-q", "--format", "claude-mem", stdin=json.dumps({"observations": found}))
    here = [row["text"] for row in rows(om, "--project", PROJECT) if row["source"] == "import"]
    assert here == [f"Said in {last}", f"Said in main/{last}"]
    assert [row["text"] for row in rows(om)][-1] == "Said in elsewhere"


MEMORIES = [
    {"id": "892db2ae", "memory": "Alex prefers\n vegan food", "hash": "x", "metadata": {"source": "chat", "n": [1]},
     "created_at": "2026-02-10T01:02:03.123456-07:00", "updated_at": None, "user_id": "alex", "run_id": "r1",
     "categories": ["food", "user_preferences"]},
    {"id": "e4", "memory": "Runs on Fly.io", "createdAt": "2026-01-01T00:00:00Z", "userId": "alex"},
]  # fmt: skip
PAGE = {"count": 2, "next": None, "results": [*MEMORIES, {"id": "5", "memory": ""}, 7], "relations": []}


@pytest.mark.parametrize(
    ("text", "skipped"),
    [
        (json.dumps(PAGE, indent=1), 2),
        (json.dumps(MEMORIES), 0),
        ("\n".join(map(json.dumps, MEMORIES)), 0),
        (json.dumps({"memories": MEMORIES}), 0),
    ],
)
def test_what_mem0_returns_becomes_items(om: Om, text: str, skipped: int) -> None:
    report = summary(om, "--format", "mem0", stdin=text)
    assert (report["observations"], report["skipped"]) == (2, {"no memory": skipped} if skipped else {})
    first, second = rows(om)
    assert (first["kind"], first["text"], first["tags"]) == (
        "item",
        "Alex prefers vegan food",
        ["food", "user_preferences"],
    )
    assert first["event_at"] == "2026-02-10T08:02:00.000Z"
    assert first["metadata"] == {
        "imported_from": "mem0", "original_id": "892db2ae", "written_at": "2026-02-10T08:02:03.123Z",
        "category": "food",
        "original_user_id": "alex", "original_run_id": "r1", "original_metadata": '{"source":"chat","n":[1]}',
    }  # fmt: skip
    assert (second["text"], second["metadata"]["original_user_id"]) == ("Runs on Fly.io", "alex")
    again = text.replace("prefers\\n vegan", "prefers vegan").replace(
        '"updated_at": null', '"updated_at": "2026-03-01T00:00:00Z"'
    )
    assert summary(om, "--format", "mem0", stdin=again)["observations"] == 0


def test_a_memory_that_has_changed_replaces_what_it_said_before(om: Om) -> None:
    """By its id; an older export changes nothing, and the change can be undone."""
    old = {"id": "m1", "memory": "Likes tea", "created_at": "2026-01-01T00:00:00Z"}
    new = {**old, "memory": "Likes green tea", "updated_at": "2026-02-01T00:00:00Z"}
    om("import", "-q", "--format", "mem0", stdin=json.dumps([old]))
    run = om("import", "--format", "mem0", stdin=json.dumps([new]))
    assert "mem0, 1 new, 1 replaced" in run.stderr
    assert [row["text"] for row in rows(om)] == ["Likes green tea"]
    assert [row.get("reason") for row in rows(om, "--all")] == ["changed", None]
    for again in ([new], [old], [new, old], [old, new]):
        report = summary(om, "--format", "mem0", stdin=json.dumps(again))
        assert (report["observations"], report.get("replaced", 0)) == (0, 0)
    assert [row["text"] for row in rows(om)] == ["Likes green tea"]
    om("undo")
    assert [row["text"] for row in rows(om)] == ["Likes tea", "Likes green tea"]
    assert summary(om, "--format", "mem0", stdin=json.dumps([new]))["replaced"] == 1
    assert [row["text"] for row in rows(om)] == ["Likes green tea"]


def test_the_last_of_two_texts_with_the_same_date_counts_however_often_they_are_read(om: Om) -> None:
    text = json.dumps([{"id": "m1", "memory": "Likes tea"}, {"id": "m1", "memory": "Likes green tea"}])
    for expected in ((2, 1), (0, 0), (0, 0)):
        report = summary(om, "--format", "mem0", stdin=text)
        assert (report["observations"], report.get("replaced", 0)) == expected
        assert [row["text"] for row in rows(om)] == ["Likes green tea"]


def test_a_memory_that_changed_back_says_again_what_it_said_first(om: Om) -> None:
    states = [
        {"id": "m1", "memory": memory, "updated_at": f"2026-0{month}-01T00:00:00Z"}
        for month, memory in ((1, "Likes tea"), (2, "Likes green tea"), (3, "Likes tea"))
    ]
    for _ in range(2):
        for state in states:
            om("import", "-q", "--format", "mem0", stdin=json.dumps([state]))
    assert [(row["text"], row["event_at"][:7]) for row in rows(om)] == [("Likes tea", "2026-03")]
    assert len(rows(om, "--all")) == 3


@pytest.mark.parametrize("options", [[], ["--hard"]])
def test_what_was_forgotten_does_not_come_back(om: Om, options: list[str]) -> None:
    memory = {"id": "m1", "memory": "Likes tea", "created_at": "2026-01-01T00:00:00Z"}
    om("import", "-q", "--format", "mem0", stdin=json.dumps([memory]))
    om("forget", "-y", *options, rows(om)[0]["id"])
    for state in (memory, {**memory, "updated_at": "2026-03-01T00:00:00Z"}, {**memory, "id": "m2"}):
        report = summary(om, "--format", "mem0", stdin=json.dumps([state]))
        assert (report["observations"], report["skipped"]) == (0, {"forgotten": 1})
    assert rows(om) == []


def test_the_markdown_of_mem0_s_plugin_is_read(om: Om) -> None:
    text = (
        "---\nid: abc123\ncreated_at: 2026-01-01T00:00:00Z\ntype: task_learnings\nconfidence: 0.9\nbranch: main\n"
        "files: src/foo.py, src/bar.py\ncategories: coding, learnt\n---\nUse pnpm here:\nnever npm\n\n"
        "---\nid: abc124\ncreated_at: \ntype: \ncategories: \n---\nSecond\n"
    )
    om("import", "-q", "--format", "mem0", stdin=text)
    first, second = rows(om)
    assert (first["text"], first["tags"], first["metadata"]["original_id"]) == (
        "Use pnpm here: never npm", ["coding", "learnt"], "abc123",
    )  # fmt: skip
    assert "src/bar.py" in first["metadata"]["original_metadata"]
    assert (second["text"], "event_at" in second) == ("Second", False)


def test_the_history_of_mem0_gives_the_last_state_of_each_memory(om: Om) -> None:
    file = om.folder / "history.db"
    connection = sqlite3.connect(file)
    connection.execute(
        "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,"
        " created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)"
    )
    for change in (
        ("1", "m1", None, "Likes tea", "ADD", "2026-01-01T00:00:00+00:00", None, 0),
        (
            "2",
            "m1",
            "Likes tea",
            "Likes green tea",
            "UPDATE",
            "2026-01-01T00:00:00+00:00",
            "2026-01-02T00:00:00+00:00",
            0,
        ),
        ("3", "m2", None, "Likes rain", "ADD", "2026-01-01T00:00:00+00:00", None, 0),
        ("4", "m2", "Likes rain", None, "DELETE", None, None, 1),
    ):
        connection.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)", change)
    connection.commit()
    connection.close()
    om("import", "-q", "--format", "mem0", om.folder)
    assert told(om) == [("item", "medium", "2026-01-02T00:00", "Likes green tea")]


COPIED = f"""\
Saved memories:

User's name is Ada and she lives in Lund.
User prefers short answers,
with metric units.

1. [2025-03-01]. User is building om
[2025-04-02] - Always answer in Swedish
[unknown] - Works at a harbour
- Has two cats, and the key {SECRET}
```
"""


def test_a_copied_list_of_chatgpt_s_memories_becomes_items(om: Om) -> None:
    """As its settings show them, and as it writes them when asked to: dated, numbered, in a code block."""
    om("import", "-q", "--format", "chatgpt", stdin=COPIED)
    assert told(om) == [
        ("item", "medium", "", "User's name is Ada and she lives in Lund."),
        ("item", "medium", "", "User prefers short answers, with metric units."),
        ("item", "medium", "2025-03-01T00:00", "User is building om"),
        ("item", "medium", "2025-04-02T00:00", "Always answer in Swedish"),
        ("item", "medium", "", "Works at a harbour"),
        ("item", "medium", "", "Has two cats, and the key [redacted:github-token]"),
    ]
    again = COPIED.replace("answers,\nwith", "answers, with").replace("- Has", "\n* Has")
    assert summary(om, "--format", "chatgpt", stdin=again)["observations"] == 0
    assert "Always answer in Swedish" in om("context").stdout


@pytest.mark.parametrize(
    "memories",
    [
        {"memories": [{"id": "m1", "content": "User likes tides", "created_timestamp": 1770733920.5}], "max_tokens": 5},
        [{"id": "m1", "content": "User likes tides", "updated_at": "2026-02-10T14:32:00Z"}],
    ],
)
def test_the_memories_that_chatgpt_s_website_loads_are_read(om: Om, memories: object) -> None:
    om("import", "-q", "--format", "chatgpt", stdin=json.dumps(memories))
    [row] = rows(om)
    assert (row["text"], row["event_at"][:16], row["metadata"]["original_id"]) == (
        "User likes tides", "2026-02-10T14:32", "m1",
    )  # fmt: skip


@pytest.mark.parametrize("name", [name for name in INPUT_NAMES if name not in OUTPUT_NAMES])
def test_a_wrong_input_is_one_error_with_a_hint(om: Om, name: str) -> None:
    """Another tool's database, JSON or page is refused whole, and nothing of it is stored."""
    other = om.folder / "other.db"
    for store in (om.place, other):
        om("note", "of om itself", "-q", "--db", store)
    before = rows(om)
    folder = om.folder / "empty"
    folder.mkdir()
    page = om.write("page.html", "<!DOCTYPE html>\n<p>- [2026-03-01] no memory</p>\n")
    talks = om.write("conversations.json", '[{"title": "A talk", "mapping": {"1": {"message": null}}}]')
    for wrong in (other, folder, page, talks):
        run = om("import", "--format", name, wrong, code=65)
        first, second = run.stderr.splitlines()
        assert first.startswith(f"om: error: {wrong}: "), run.stderr
        assert second.startswith("hint: ")
    assert "no such file" in om("import", "--format", name, "missing", code=66).stderr
    assert rows(om) == before
    assert "memory is not written as" in om("export", "--to", name, code=2).stderr


def test_a_damaged_database_is_refused(om: Om) -> None:
    file = database(om.folder / "claude-mem.db")
    damaged = om.write("damaged.db", file.read_bytes()[:5000])
    assert "the database cannot be read" in om("import", "--format", "claude-mem", damaged, code=66).stderr
    assert rows(om) == []


def test_a_pipe_with_a_name_is_read_once(om: Om) -> None:
    pipe = om.folder / "pipe"
    os.mkfifo(pipe)
    writing = Thread(target=pipe.write_text, args=[json.dumps(MEMORIES)])
    writing.start()
    assert summary(om, "--format", "mem0", pipe)["observations"] == 2
    writing.join()


def test_binary_data_and_folders_are_no_memory(om: Om) -> None:
    picture = om.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    assert "nothing in it is memory" in om("import", "--format", "chatgpt", picture, code=65).stderr
    assert "name its format" in om("import", om.folder, code=65).stderr
    assert rows(om) == []


def test_what_two_stores_imported_is_there_once_after_the_next_import(om: Om) -> None:
    memory = om.write("mem0.json", json.dumps(MEMORIES))
    there = ("--db", om.folder / "there.db")
    for place in ((), there):
        om("import", "-q", "--format", "mem0", memory, *place)
    om("import", "-q", stdin=om("export", "--to", "jsonl", *there).stdout)
    assert len(rows(om)) == 4
    for replaced in (2, 0):
        report = summary(om, "--format", "mem0", memory)
        assert (report["observations"], report.get("replaced", 0)) == (0, replaced)
        assert [row["text"] for row in rows(om)] == ["Alex prefers vegan food", "Runs on Fly.io"]


@pytest.mark.parametrize("name", [name for name in INPUT_NAMES if name not in OUTPUT_NAMES])
def test_imported_memory_moves_to_another_machine_and_is_known_there(om: Om, retired: Path, name: str) -> None:
    memory = {
        "observational-memory": retired,
        "claude-mem": database(om.folder / "claude-mem.db"),
        "mem0": om.write("mem0.json", json.dumps(PAGE)),
        "chatgpt": om.write("copied.txt", COPIED),
    }[name]
    om("import", "-q", "--format", name, memory)
    exported = om("export", "--to", "jsonl").stdout
    there = ("--db", om.folder / "there.db")
    om("import", "-q", *there, stdin=exported)
    assert om("export", "--to", "jsonl", *there).stdout == exported
    assert summary(om, "--format", name, memory, *there)["observations"] == 0
    assert om("export", "--to", "jsonl", *there).stdout == exported
