"""Migrating stores: whole or not at all, once, and with a copy of the store as it was."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
import stat
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from omcli.base.errors import InputOutput, MigrationFailed
from omcli.memory.observation import LogQuery
from omcli.sqlite import SqliteStore
from omcli.sqlite.connection import MIGRATIONS, each_statement, migrate, open_temporary, steps, whole_file
from omcli.sqlite.dialect import columns_of, prepare
from omcli.sqlite.records import MESSAGE_COLUMNS, OPERATION_COLUMNS, ROW_COLUMNS, SESSION_COLUMNS
from tests.integration.sqlite.running import run_at_once, start
from tests.material import COUNTER, NOW, said, session
from tests.soak import first_only

NOW_AT = len(steps())
"""The schema of this program; the steps below are made up."""
NEXT = """
-- Another table; a comment; with semicolons.
CREATE TABLE step_log (step INTEGER NOT NULL) STRICT;   -- and one; more
CREATE TRIGGER noted AFTER INSERT ON step_log BEGIN
    UPDATE sessions SET title = 'step ' || new.step;
    UPDATE sessions SET branch = 'b; c';
END;
INSERT INTO step_log VALUES (2)
"""
AFTER_NEXT = "INSERT INTO step_log VALUES (3);\n-- the end\n"
SLOW = """
CREATE TABLE numbers AS
    WITH RECURSIVE counted (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM counted WHERE number < 100000)
    SELECT number FROM counted;
"""
Noted = tuple[int, int, str, str]
"""A batch as it is noted: the cursor before and after it, its outcome, and when."""
BROKEN = "INSERT INTO step_log VALUES (3);\nINSERT INTO step_log VALUES (NULL);\n"


def folder(place: Path, *more: str) -> Path:
    """A folder of steps: the real ones, and more."""
    place.mkdir()
    for number, sql in enumerate((*(step.read_text("utf-8") for step in steps()), *more), start=1):
        (place / f"{number:04}_step.sql").write_text(sql, encoding="utf-8")
    (place / "README").write_text("no step", encoding="utf-8")
    return place


def version(path: Path) -> int:
    with closing(prepare(sqlite3.connect(path))) as connection, connection:
        (number,) = connection.execute("PRAGMA user_version").fetchone()
    assert isinstance(number, int)
    return number


def step_log(path: Path) -> list[int]:
    with closing(prepare(sqlite3.connect(path))) as connection, connection:
        return [number for (number,) in connection.execute("SELECT step FROM step_log")]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store of the released schema, with a message."""
    path = tmp_path / "om.db"
    with SqliteStore.open(path, wait=1) as store:
        store.messages.append(session(), [said("hello")], counter=COUNTER, now=NOW)
    return path


def texts_of(store: SqliteStore) -> list[str]:
    """All messages, then all visible rows."""
    rows = [logged.observation.text for logged in store.rows.log(LogQuery())]
    return [*(kept.message.text for kept in store.messages.all()), *rows]


def texts(path: Path, migrations: Path, *, read_only: bool = False) -> list[str]:
    with SqliteStore.open(path, wait=1, migrations=migrations, read_only=read_only) as store:
        return texts_of(store)


def test_the_steps_are_numbered_without_a_gap() -> None:
    names = sorted(step.name for step in MIGRATIONS.glob("*.sql"))
    assert [name[:5] for name in names] == [f"{number:04}_" for number in range(1, len(names) + 1)]


def contents(migrations: Path) -> tuple[object, ...]:
    """The header, the schema and all rows of a new store, without its random id."""
    connection = prepare(sqlite3.connect(":memory:", isolation_level=None))
    with closing(connection):
        migrate(connection, steps(migrations), path=migrations)
        assert len(connection.execute("UPDATE hosts SET id = 'random' RETURNING number").fetchall()) == 1
        header = [connection.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")]
        schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").fetchall()
        tables = [name for kind, name, _, sql in schema if kind == "table" and "VIRTUAL" not in sql]
        return header, schema, {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}


def test_a_new_store_is_what_the_steps_make_of_it(tmp_path: Path) -> None:
    """It is made from the schema in one piece; a folder without that takes the steps."""
    assert [file.name for file in MIGRATIONS.glob("*.schema")] == [whole_file(steps()[-1]).name]
    assert contents(MIGRATIONS) == contents(folder(tmp_path / "steps"))


def test_a_script_is_taken_apart_into_statements() -> None:
    first, second, third, fourth = each_statement(NEXT + ";\nSELECT 1")
    assert "CREATE TABLE" in first
    assert "END" in second
    assert "VALUES (2)" in third
    assert fourth.strip() == "SELECT 1"


def test_an_old_store_is_brought_up_to_date_and_keeps_what_it_holds(old: Path, tmp_path: Path) -> None:
    """S1.18, T69: every step once, the old rows preserved."""
    migrations = folder(tmp_path / "steps", NEXT, AFTER_NEXT)
    for _ in range(2):
        assert texts(old, migrations) == ["hello"]
    assert (version(old), step_log(old)) == (NOW_AT + 2, [2, 3])


@pytest.mark.parametrize("released", range(1, NOW_AT))
def test_a_store_of_every_released_schema_is_brought_up_to_date(tmp_path: Path, released: int) -> None:
    """S1.18, T69: with a message that was written before later columns were there."""
    path = tmp_path / "om.db"
    connection = prepare(sqlite3.connect(path, isolation_level=None))
    migrate(connection, steps()[:released], path=path)
    connection.execute("INSERT INTO sessions (number, id, agent) VALUES (1, 's', 'pi')")
    connection.execute(
        "INSERT INTO messages (session, role, counted, id, at, tokens, counter, text)"
        " VALUES (1, 'user', 1, 'm', '2026-03-02T09:00:00.000Z', 1, 'words', 'hello')"
    )
    connection.close()
    for read_only in (True, False):
        with SqliteStore.open(path, wait=1, read_only=read_only) as store:
            (kept,) = store.messages.by_seq([1])
            assert (kept.message.text, kept.message.utc_offset) == ("hello", None)
    assert version(path) == NOW_AT
    assert version(tmp_path / f"om.db.v{released}.bak") == released


def before_holds(
    path: Path, *, messages: int, forgotten: Iterable[int], batches: Sequence[Noted]
) -> sqlite3.Connection:
    """A store of schema 9, of which operation 1 has forgotten some of the messages of a session at noon."""
    connection = prepare(sqlite3.connect(path, isolation_level=None))
    migrate(connection, steps()[:9], path=path)
    connection.execute("INSERT INTO sessions (number, id) VALUES (1, 's')")
    operation = (
        "INSERT INTO operations (number, verb, at, outcome, fingerprint, figures) VALUES (?, ?, ?, 'done', '', '{}')"
    )
    connection.executemany(operation, [(1, "forget", "12:00"), (2, "prune", "12:00")])
    said_then = "(seq, session, role, counted, tokens, counter, text{}) VALUES (?, 1, 'user', 1, 1, 'words', 'hello'{})"
    gone = set(forgotten)
    there = [(seq,) for seq in range(1, messages + 1) if seq not in gone]
    connection.executemany(f"INSERT INTO messages {said_then.format('', '')}", there)
    connection.executemany(
        f"INSERT INTO aside_messages {said_then.format(', put_by', ', 1')}", [(seq,) for seq in gone]
    )
    connection.executemany(
        "INSERT INTO batches (session, lane, after, through, outcome, at, observations)"
        " VALUES (1, 'observe', ?, ?, ?, ?, 0)",
        batches,
    )
    return connection


def test_of_what_was_forgotten_before_holds_that_waits_which_no_batch_covered_by_then(tmp_path: Path) -> None:
    """S4.16: what was covered first and forgotten later is not observed again when it comes back."""
    noted: list[Noted] = [
        (0, 5, "failed", "09:00"),
        (0, 10, "deferred", "09:30"),
        (0, 10, "observed", "10:00"),
        (10, 20, "ahead", "11:00"),
        (10, 20, "empty", "13:00"),
        (20, 30, "failed", "14:00"),
    ]
    path = tmp_path / "om.db"
    with closing(before_holds(path, messages=30, forgotten=(1, 10, 11, 20, 21, 22, 30), batches=noted)) as connection:
        connection.execute("UPDATE aside_messages SET put_by = 2 WHERE seq = 1")
        connection.execute("UPDATE aside_messages SET erased = 1 WHERE seq = 22")
        migrate(connection, steps(), path=path)
        waiting = connection.execute("SELECT message, since FROM passed_over").fetchall()
        held = connection.execute("SELECT message, operation FROM message_holds ORDER BY message").fetchall()
    assert waiting == [(seq, "12:00") for seq in (11, 20, 21, 30)]
    assert held == [(1, 2), *((seq, 1) for seq in (10, 11, 20, 21, 22, 30))]


def test_holds_take_no_longer_for_each_message_where_there_are_many_batches(tmp_path: Path) -> None:
    """A reader of an old store takes the steps whenever it looks: here it looked at every batch for every message."""
    count, path = 600, tmp_path / "om.db"
    noted: list[Noted] = [(seq, seq + 1, "observed", "13:00") for seq in range(count)]
    done = 0

    def work() -> None:
        nonlocal done
        done += 1

    with closing(before_holds(path, messages=count, forgotten=range(1, count + 1), batches=noted)) as connection:
        connection.set_progress_handler(work, 100)
        migrate(connection, steps(), path=path)
        assert connection.execute("SELECT count(*) FROM passed_over").fetchone() == (count,)
    assert done < 3 * count, "hundreds of instructions of SQLite"


WITH_SOME_ASIDE = """
    INSERT INTO sessions (number, id, agent) VALUES (1, 's', 'pi');
    INSERT INTO messages (seq, session, role, counted, id, tokens, counter, text)
    VALUES (3, 1, 'user', 1, 'm3', 1, 'words', 'three');
    INSERT INTO cursors VALUES (1, 'observe', 3, 3);
    INSERT INTO batches VALUES (1, 1, 'observe', 0, 1, 'observed', NULL, '2026-03-02T09:01:00.000Z', 1);
    INSERT INTO operations (number, verb, at, outcome, fingerprint, figures)
    VALUES (1, 'forget', '2026-03-02T09:02:00.000Z', 'done', '', '{}');
    INSERT INTO batches VALUES (2, 1, 'observe', 1, 3, 'empty', NULL, '2026-03-02T09:03:00.000Z', 0);
    INSERT INTO operations (number, verb, at, outcome, fingerprint, figures)
    VALUES (2, 'prune', '2026-03-02T09:04:00.000Z', 'done', '', '{}');
    INSERT INTO aside_messages (seq, session, role, counted, id, tokens, counter, text, put_by)
    VALUES (1, 1, 'user', 1, 'm1', 1, 'words', 'one', 2), (2, 1, 'user', 1, 'm2', 1, 'words', 'two', 1);
    INSERT INTO aside_observations (position, id, session, kind, type, priority, importance, text, observed_at, tokens,
        counter, source, batch, generation, visible, sources, supports, put_by)
    VALUES (1, x'00000000000070008000000000000001', 1, 'observation', 'fact', 'medium', 5, 'row',
        '2026-03-02T09:01:00.000Z', 1, 'words', 'rules', 1, 0, 1, '[1]', '[]', 1);
    INSERT INTO aside_titles VALUES (1, 'Tides', 1);
"""
"""In the ninth schema: the second message was forgotten while it waited, the first was pruned once it was observed."""


def test_what_was_put_aside_before_several_operations_could_do_so_comes_back(tmp_path: Path) -> None:
    """S1.18, S4.16: what waited then waits again, what was covered does not."""
    path = tmp_path / "om.db"
    connection = prepare(sqlite3.connect(path, isolation_level=None))
    migrate(connection, steps()[:9], path=path)
    connection.executescript(WITH_SOME_ASIDE)
    connection.close()
    with SqliteStore.open(path, wait=1) as store:
        assert [(done.number, done.hidden, done.messages) for done in store.operations.history()] == [
            (2, 0, 1),
            (1, 1, 1),
        ]
        store.operations.undo(1, now=NOW)
        late = store.batches.unobserved("s", max_tokens=10)
        assert late is not None
        assert [kept.message.text for kept in late.messages] == ["two"]
        store.operations.undo(2, now=NOW)
        assert store.batches.pending("s").messages == 1
        assert texts_of(store) == ["one", "two", "three", "row"]
        assert [logged.observation.sources for logged in store.rows.log(LogQuery())] == [(1,)]
        known = store.sessions.find("s")
        assert known is not None
        assert known.title == "Tides"


def test_a_migrated_store_has_the_schema_of_a_new_one(old: Path, tmp_path: Path) -> None:
    migrations = folder(tmp_path / "steps", NEXT)
    new = tmp_path / "new.db"
    schemas = []
    for path in (old, new):
        SqliteStore.open(path, wait=1, migrations=migrations).close()
        with closing(prepare(sqlite3.connect(path))) as connection, connection:
            schemas.append(connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall())
    assert schemas[0] == schemas[1]


def test_before_the_first_step_the_store_is_copied(old: Path, tmp_path: Path) -> None:
    SqliteStore.open(old, wait=1, migrations=folder(tmp_path / "steps", NEXT, AFTER_NEXT)).close()
    copy = tmp_path / f"om.db.v{NOW_AT}.bak"
    assert {entry.name for entry in tmp_path.glob("om.db*")} == {"om.db", copy.name}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert version(copy) == NOW_AT
    assert texts(copy, folder(tmp_path / "old steps")) == ["hello"]


def test_a_copy_that_was_cut_off_once_is_made_anew(old: Path, tmp_path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        (tmp_path / f"om.db.v{NOW_AT}.bak.partial{ending}").write_bytes(b"half a copy")
    SqliteStore.open(old, wait=1, migrations=folder(tmp_path / "steps", NEXT)).close()
    assert {entry.name for entry in tmp_path.glob("om.db*")} == {"om.db", f"om.db.v{NOW_AT}.bak"}


def test_a_store_that_gives_no_sound_copy_is_not_changed(old: Path, tmp_path: Path) -> None:
    """A damage that opening does not meet is met before the store is changed, and can still be read around."""
    with SqliteStore.open(old, wait=1) as store:
        store.messages.append(
            session(), [said(f"{number} " + "x" * 3000) for number in range(9)], counter=COUNTER, now=NOW
        )
    content = bytearray(old.read_bytes())
    page = content.index(b"5 xxx") // 4096 * 4096
    content[page : page + 4096] = b"\xa5" * 4096
    old.write_bytes(content)
    with pytest.raises(InputOutput, match=r"a copy of .* is damaged") as raised:
        SqliteStore.open(old, wait=1, migrations=folder(tmp_path / "steps", NEXT))
    assert "the store is as it was" in raised.value.hint
    assert old.read_bytes() == content
    assert {entry.name for entry in tmp_path.glob("om.db*")} == {"om.db"}


def test_a_row_that_leads_nowhere_does_not_keep_a_store_from_being_brought_up_to_date(
    old: Path, tmp_path: Path
) -> None:
    """F29: one bad row never blocks the start."""
    with closing(prepare(sqlite3.connect(old, isolation_level=None))) as connection:
        connection.execute("INSERT INTO cursors (session, lane) VALUES (4711, 'observe')")
    assert texts(old, folder(tmp_path / "steps", NEXT)) == ["hello"]


def test_a_new_store_needs_no_copy(tmp_path: Path) -> None:
    SqliteStore.open(tmp_path / "om.db", wait=1).close()
    assert {entry.name for entry in tmp_path.iterdir()} == {"om.db"}


def test_a_current_store_is_opened_without_taking_the_write_lock(old: Path) -> None:
    other = prepare(sqlite3.connect(old, isolation_level=None))
    other.execute("BEGIN IMMEDIATE")
    SqliteStore.open(old, wait=0).close()
    other.close()


def test_a_step_that_fails_half_way_leaves_the_store_as_it_was(old: Path, tmp_path: Path) -> None:
    """T69, F29: rolled back, the version named, exit 70; the steps before it stay done."""
    migrations = folder(tmp_path / "steps", NEXT, BROKEN)
    told = rf"from schema version {NOW_AT + 1} to {NOW_AT + 2}.*step_log\.step.*rolled back"
    for _ in range(2):
        with pytest.raises(MigrationFailed, match=told) as raised:
            SqliteStore.open(old, wait=1, migrations=migrations)
        assert raised.value.exit_code == 70
        assert raised.value.hint
        assert (version(old), step_log(old)) == (NOW_AT + 1, [2])
    mended = folder(tmp_path / "mended", NEXT, AFTER_NEXT)
    assert texts(old, mended) == ["hello"]
    assert step_log(old) == [2, 3]


@pytest.mark.parametrize("lives", first_only([6, 25]))
def test_a_program_killed_while_it_brings_a_store_up_to_date_leaves_it_to_the_next(
    old: Path, tmp_path: Path, lives: int
) -> None:
    """F22, F29: at any moment; the steps are all done once, and of the copies only a whole one is left."""
    migrations, chance, reached = folder(tmp_path / "steps", NEXT, SLOW, AFTER_NEXT), random.Random(29), set[int]()
    took = 0.2
    for life in range(10 * lives):
        if life >= lives and reached - {NOW_AT + 3}:
            break
        path = tmp_path / str(life) / "om.db"
        path.parent.mkdir()
        shutil.copy(old, path)
        with start("open", path, migrations) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            assert program.stdout.readline() == "ready\n"
            program.stdin.write("go\n")
            program.stdin.flush()
            begun = time.monotonic()
            if life:
                time.sleep(chance.random() * took)
                program.kill()
                if program.wait() == 0:
                    took /= 2  # it was quicker
            else:  # the first one lives, to tell how long the others may
                program.wait()
                took = time.monotonic() - begun
        reached.add(version(path))
        assert texts(path, migrations) == ["hello"]
        assert (version(path), step_log(path)) == (NOW_AT + 3, [2, 3])
        copies = list(path.parent.glob("om.db?*"))
        assert all(re.fullmatch(r"om\.db\.v\d+\.bak", copy.name) for copy in copies), copies
        assert [texts(copy, migrations, read_only=True) for copy in copies] == [["hello"]] * len(copies)
    assert reached - {NOW_AT + 3}, "some must have been killed before the end"


def test_a_new_store_whose_making_fails_is_an_empty_file(tmp_path: Path) -> None:
    """T69."""
    with pytest.raises(MigrationFailed):
        SqliteStore.open(tmp_path / "om.db", wait=1, migrations=folder(tmp_path / "steps", "CREATE nonsense;"))
    SqliteStore.open(tmp_path / "om.db", wait=1).close()


def test_a_reader_of_an_old_store_reads_and_leaves_it_old(old: Path, tmp_path: Path) -> None:
    migrations = folder(tmp_path / "steps", NEXT, AFTER_NEXT)
    content = old.read_bytes()
    assert texts(old, migrations, read_only=True) == ["hello"]
    assert old.read_bytes() == content
    assert not list(tmp_path.glob("*.bak"))


def test_many_that_open_a_new_store_at_the_same_moment_all_get_it(tmp_path: Path) -> None:
    """F29: also while its journal mode is being set, where SQLite by itself gives up at once."""
    together = threading.Barrier(8)

    def open_and_append(round_: int) -> bool:
        together.wait()
        with SqliteStore.open(tmp_path / f"{round_}.db", wait=60) as store:
            return store.messages.append(session(), [said("hello")], counter=COUNTER, now=NOW).new == (True,)

    for round_ in range(10):
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(open_and_append, [round_] * 8)) == 1


@pytest.mark.parametrize("existing", [False, True])
def test_of_several_that_open_a_store_at_once_one_brings_it_up_to_date(
    tmp_path: Path, old: Path, existing: bool
) -> None:
    """F29: one migrates, the others wait."""
    path = old if existing else tmp_path / "new.db"
    migrations = folder(tmp_path / "steps", NEXT, AFTER_NEXT)
    run_at_once([("open", path, migrations)] * 4)
    assert (version(path), step_log(path)) == (NOW_AT + 2, [2, 3])
    with SqliteStore.open(path, wait=1, migrations=migrations) as store:
        assert len(store.sessions.summaries()) == 4 + existing


def test_a_new_store_is_not_copied_on_its_way_through_the_steps(tmp_path: Path) -> None:
    path = tmp_path / "om.db"
    SqliteStore.open(path, wait=1, migrations=folder(tmp_path / "steps", NEXT, AFTER_NEXT)).close()
    assert [entry.name for entry in tmp_path.glob("om.db*")] == ["om.db"]


@pytest.mark.parametrize(
    ("table", "moved", "local"),
    [
        ("sessions", {*SESSION_COLUMNS, "id", "author"}, {"number"}),
        ("messages", {*MESSAGE_COLUMNS, "seq", "session"}, {"tokens", "counter"}),
        (
            "observations",
            {
                *ROW_COLUMNS,
                "superseded_by",
                "dropped_at",
                "reason",
                "hidden_by",
                "id",
                "position",
                "session",
                "project",
                "batch",
                "author",
                "made_by",
                "visible",
            },
            {"tokens", "counter"},
        ),
        (
            "operations",
            {*OPERATION_COLUMNS, "number", "session", "project", "part_of", "undone_by", "author"},
            {"unchanged"},
        ),
    ],
)
def test_a_new_column_moves_to_other_machines_or_is_meant_to_stay(table: str, moved: set[str], local: set[str]) -> None:
    """What `om export --to jsonl` writes of a table, by itself or in another form, and what it leaves out."""
    with closing(open_temporary(steps=steps())) as connection:
        assert set(columns_of(connection, table).split(", ")) == moved | local
