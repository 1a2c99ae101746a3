"""Opening a store: permissions, refusals, and that readers leave no trace."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from omcli.base.errors import CannotCreate, InputOutput, NewerStore, OmError, StoreLocked, UnusableStore
from omcli.memory.batch import BatchOutcome
from omcli.memory.observation import LogQuery, Observation
from omcli.sqlite import SqliteStore
from omcli.sqlite.connection import APPLICATION_ID, steps
from omcli.sqlite.dialect import prepare
from tests.integration.sqlite.running import heed_permissions, run
from tests.material import COUNTER, NOW, result, row, row_id, said, session


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a message and a row, closed."""
    path = tmp_path / "om.db"
    with SqliteStore.open(path, wait=1) as store:
        store.messages.append(session(), [said("hello")], counter=COUNTER, now=NOW)
        store.rows.add(row(1, text="a fact", sources=(1,)))
    return path


@pytest.fixture
def sealed(path: Path) -> Iterator[Path]:
    """The same in a folder nobody may write to."""
    path.chmod(0o400)
    path.parent.chmod(0o500)
    yield path
    path.parent.chmod(0o700)


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def read_all(path: Path, *, read_only: bool) -> None:
    with SqliteStore.open(path, wait=0.1, read_only=read_only) as store:
        list(store.rows.log(LogQuery()))
        list(store.messages.all())


def fails(path: Path, *, read_only: bool = False) -> OmError:
    """The error that opening the store and reading it gives."""
    with pytest.raises(OmError) as raised:
        read_all(path, read_only=read_only)
    assert raised.value.hint, "an error says what to try"
    return raised.value


class TestWriting:
    def test_the_store_and_its_folder_are_for_the_user_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "deep" / "om" / "om.db"
        before = os.umask(0)
        try:
            with SqliteStore.open(path, wait=1) as store:
                store.messages.append(session(), [said("hello")], counter=COUNTER, now=NOW)
                modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
        finally:
            os.umask(before)
        assert modes == {"om.db": 0o600, "om.db-wal": 0o600, "om.db-shm": 0o600}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    def test_a_folder_that_exists_keeps_its_permissions(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o755)
        SqliteStore.open(tmp_path / "om.db", wait=1).close()
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755

    def test_a_closed_store_is_one_file(self, path: Path) -> None:
        assert names(path.parent) == {"om.db"}

    def test_what_was_kept_is_there_after_reopening(self, path: Path) -> None:
        with SqliteStore.open(path, wait=1) as store:
            assert [entry.observation.message_ids for entry in store.rows.log(LogQuery())] == [("k-hello",)]

    def test_a_path_with_characters_of_addresses_is_a_path(self, tmp_path: Path) -> None:
        path = tmp_path / "a?mode=memory#b%20c ü.db"
        SqliteStore.open(path, wait=1).close()
        with SqliteStore.open(path, wait=1, read_only=True) as store:
            assert store.sessions.summaries() == ()
        assert path.name in names(tmp_path)

    def test_a_place_where_nothing_can_be_made_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        error = fails(tmp_path / "file" / "om.db")
        assert isinstance(error, CannotCreate)
        assert error.exit_code == 73

    def test_a_folder_is_no_store(self, tmp_path: Path) -> None:
        assert isinstance(fails(tmp_path), UnusableStore)

    def test_a_folder_that_may_not_be_written_is_refused(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        assert run("write", tmp_path / "om.db", prepare=heed_permissions) == "CannotCreate 73"
        tmp_path.chmod(0o700)

    def test_a_store_that_may_not_be_written_is_refused(self, sealed: Path) -> None:
        content = sealed.read_bytes()
        assert run("write", sealed, prepare=heed_permissions) == "InputOutput 74"
        assert sealed.read_bytes() == content

    def test_pruned_rows_do_not_bring_their_messages_back(self, path: Path) -> None:
        """F16: progress is not derived from rows."""
        with SqliteStore.open(path, wait=1) as store:
            batch = store.batches.unobserved("s", max_tokens=100)
            assert batch is not None
            store.batches.record(batch, [row(2, sources=(1,))], outcome=BatchOutcome.OBSERVED, now=NOW)
        with closing(prepare(sqlite3.connect(path))) as connection, connection:
            connection.execute("DELETE FROM observation_sources")
            connection.execute("DELETE FROM observations")
        with SqliteStore.open(path, wait=1) as store:
            assert store.batches.unobserved("s", max_tokens=100) is None


class TestReading:
    def test_where_there_is_no_store_a_reader_finds_an_empty_one_and_makes_nothing(self, tmp_path: Path) -> None:
        with SqliteStore.open(tmp_path / "none" / "om.db", wait=1, read_only=True) as store:
            assert store.sessions.summaries() == ()
            assert store.messages.tail("s", max_tokens=10) == ()
            assert store.sessions.status().messages == 0
        assert names(tmp_path) == set()

    def test_an_empty_file_is_an_empty_store_to_a_reader(self, tmp_path: Path) -> None:
        path = tmp_path / "om.db"
        path.touch()
        with SqliteStore.open(path, wait=1, read_only=True) as store:
            assert list(store.rows.log(LogQuery())) == []
        assert path.read_bytes() == b""

    def test_reading_leaves_every_byte_as_it_was(self, path: Path) -> None:
        """F51."""
        content, changed = path.read_bytes(), path.stat().st_mtime_ns
        with SqliteStore.open(path, wait=1, read_only=True) as store:
            assert [entry.observation.text for entry in store.rows.log(LogQuery())] == ["a fact"]
            store.sessions.status()
        assert (path.read_bytes(), path.stat().st_mtime_ns) == (content, changed)

    def test_what_sqlite_keeps_beside_the_file_for_readers_goes_with_the_next_writer(self, path: Path) -> None:
        with SqliteStore.open(path, wait=1, read_only=True) as store:
            store.sessions.status()
        assert names(path.parent) <= {"om.db", "om.db-wal", "om.db-shm"}
        SqliteStore.open(path, wait=1).close()
        assert names(path.parent) == {"om.db"}

    def test_a_store_in_a_folder_that_may_not_be_written_is_read(self, sealed: Path) -> None:
        """F51."""
        content = sealed.read_bytes()
        for _ in range(2):
            assert run("read", sealed, prepare=heed_permissions) == "1 messages"
        assert names(sealed.parent) == {"om.db"}
        assert sealed.read_bytes() == content

    def test_a_file_that_may_not_be_written_is_read_again_and_again(self, path: Path) -> None:
        path.chmod(0o400)
        for _ in range(3):
            assert run("read", path, prepare=heed_permissions) == "1 messages"

    def test_a_log_that_cannot_be_read_for_want_of_a_place_is_not_ignored(self, path: Path) -> None:
        with SqliteStore.open(path, wait=1) as store:
            store.messages.append(session(), [said("in the log only")], counter=COUNTER, now=NOW)
            copy = path.parent / "copy"
            copy.mkdir()
            for name in ("om.db", "om.db-wal"):
                (copy / name).write_bytes((path.parent / name).read_bytes())
        copy.chmod(0o500)
        assert run("read", copy / "om.db", prepare=heed_permissions) == "InputOutput 74"
        copy.chmod(0o700)
        assert run("read", copy / "om.db", prepare=heed_permissions) == "2 messages"

    def test_a_store_that_may_not_be_read_is_said_to_be_so(self, path: Path) -> None:
        path.chmod(0)
        assert run("read", path, prepare=heed_permissions) == "InputOutput 74"

    def test_a_folder_that_may_not_be_entered_is_not_an_empty_store(self, path: Path) -> None:
        path.parent.chmod(0)
        assert run("read", path, prepare=heed_permissions) == "InputOutput 74"
        path.parent.chmod(0o700)

    def test_a_reader_may_not_write(self, path: Path) -> None:
        with SqliteStore.open(path, wait=1, read_only=True) as store, pytest.raises(InputOutput):
            store.messages.append(session(), [said("no")], counter=COUNTER, now=NOW)

    def test_a_reader_sees_what_a_writer_keeps_meanwhile(self, path: Path) -> None:
        with (
            SqliteStore.open(path, wait=1) as writer,
            SqliteStore.open(path, wait=1, read_only=True) as reader,
        ):
            writer.messages.append(session(), [said("new")], counter=COUNTER, now=NOW)
            assert reader.sessions.status().messages == 2

    def test_a_log_that_is_being_read_does_not_hold_up_a_writer(self, path: Path) -> None:
        with SqliteStore.open(path, wait=0) as store:
            entries = store.rows.log(LogQuery())
            next(entries)
            store.rows.add(row(2))


class TestWaiting:
    @pytest.fixture
    def lock(self, path: Path) -> Iterator[sqlite3.Connection]:
        """Another program's write that takes its time."""
        connection = prepare(sqlite3.connect(path, isolation_level=None))
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.close()

    def test_a_locked_store_is_waited_for_and_then_given_up(self, path: Path, lock: sqlite3.Connection) -> None:
        """T67, F27, S2.39: exit 75 after the wait; reads still answer and nothing is dropped silently."""
        with SqliteStore.open(path, wait=0.3) as store:
            with pytest.raises(StoreLocked, match=r"0\.3 s") as raised:
                store.messages.append(session(), [said("later")], counter=COUNTER, now=NOW)
            assert raised.value.exit_code == 75
            assert "--wait" in raised.value.hint
            assert store.sessions.status().messages == 1
            with SqliteStore.open(path, wait=0, read_only=True) as reader:
                assert reader.sessions.status().messages == 1
            lock.execute("ROLLBACK")
            assert store.messages.append(session(), [said("later")], counter=COUNTER, now=NOW).new == (True,)

    def test_a_new_store_that_somebody_else_is_making_is_waited_for(self, tmp_path: Path) -> None:
        path = tmp_path / "om.db"
        other = prepare(sqlite3.connect(path, isolation_level=None))
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreLocked):
            SqliteStore.open(path, wait=0.1)
        other.close()
        SqliteStore.open(path, wait=0.1).close()


class TestWhatIsNoStore:
    def test_a_store_of_a_later_om_is_refused_and_stays_as_it_is(self, path: Path) -> None:
        """F30: both versions are named, exit 78, the file untouched."""
        with closing(prepare(sqlite3.connect(path))) as connection, connection:
            connection.execute("PRAGMA user_version = 4711")
        content, changed = path.read_bytes(), path.stat().st_mtime_ns
        for read_only in (False, True):
            error = fails(path, read_only=read_only)
            assert isinstance(error, NewerStore)
            assert error.exit_code == 78
            assert re.search(rf"4711.*\b{len(steps())}\b", error.message), error.message
            assert (path.read_bytes(), path.stat().st_mtime_ns) == (content, changed)

    @pytest.mark.parametrize("read_only", [False, True])
    def test_a_text_file_is_refused(self, tmp_path: Path, read_only: bool) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("not a database\n" * 100)
        assert isinstance(fails(path, read_only=read_only), UnusableStore)
        assert path.read_text() == "not a database\n" * 100

    @pytest.mark.parametrize("read_only", [False, True])
    def test_a_database_of_another_program_is_refused(self, tmp_path: Path, read_only: bool) -> None:
        path = tmp_path / "other.db"
        with closing(prepare(sqlite3.connect(path))) as connection, connection:
            connection.execute("CREATE TABLE cookies (a)")
        content = path.read_bytes()
        assert isinstance(fails(path, read_only=read_only), UnusableStore)
        assert path.read_bytes() == content

    @pytest.mark.parametrize("read_only", [False, True])
    def test_a_damaged_store_is_said_to_be_damaged(self, path: Path, read_only: bool) -> None:
        content = bytearray(path.read_bytes())
        content[4096:] = b"\xa5" * (len(content) - 4096)
        path.write_bytes(content)
        error = fails(path, read_only=read_only)
        assert isinstance(error, InputOutput)
        assert "damaged" in error.message

    @pytest.mark.parametrize("read_only", [False, True])
    def test_a_store_cut_short_is_said_to_be_damaged(self, path: Path, read_only: bool) -> None:
        path.write_bytes(path.read_bytes()[:5000])
        assert isinstance(fails(path, read_only=read_only), InputOutput)


class TestSchema:
    def test_the_file_says_whose_it_is(self, path: Path) -> None:
        assert path.read_bytes()[68:72] == b"omcl" == APPLICATION_ID.to_bytes(4, "big")

    def test_numbers_come_from_indexes_and_no_text_is_read(self, path: Path) -> None:
        with SqliteStore.open(path, wait=1) as store:
            asked: list[str] = []
            store.database.connection.set_trace_callback(asked.append)
            store.sessions.status()
            store.sessions.summaries()
            store.database.connection.set_trace_callback(None)
            plans = [
                line["detail"]
                for sql in asked
                if sql.lstrip().startswith("SELECT")
                for line in store.database.connection.execute(f"EXPLAIN QUERY PLAN {sql}")
            ]
        of_texts = [plan for plan in plans if re.match(r"(SCAN|SEARCH) (messages|m|observations|o)\b", plan)]
        assert of_texts
        assert [plan for plan in of_texts if "COVERING INDEX" not in plan] == []

    def test_calls_that_were_covered_are_looked_up_by_their_ids(self, path: Path) -> None:
        """However long a session is, a turn more costs what the turn takes."""
        with SqliteStore.open(path, wait=1) as store:
            store.messages.append(session("grown"), [result("of-another-batch")], counter=COUNTER, now=NOW)
            asked: list[str] = []
            store.database.connection.set_trace_callback(asked.append)
            assert store.batches.unobserved("grown", max_tokens=100) is not None
            store.database.connection.set_trace_callback(None)
            (sought,) = (sql for sql in asked if "max(seq)" in sql and "'call'" in sql)
            plan = [line["detail"] for line in store.database.connection.execute(f"EXPLAIN QUERY PLAN {sought}")]
        assert any(re.match(r"SEARCH messages USING INDEX messages_calls\b", step) for step in plan), plan

    def test_no_two_batches_cover_the_same_messages(self, path: Path) -> None:
        """The schema keeps what the cursor is there for, should the program ever fail to."""
        with closing(prepare(sqlite3.connect(path))) as connection, connection:
            batch = "INSERT INTO batches (session, lane, after, through, outcome, at, observations)"
            connection.execute(f"{batch} VALUES (1, 'observe', 0, 5, 'failed', '', 0)")
            connection.execute(f"{batch} VALUES (1, 'observe', 0, 5, 'observed', '', 0)")
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(f"{batch} VALUES (1, 'observe', 0, 3, 'empty', '', 0)")

    def test_the_number_of_a_deleted_message_or_row_is_not_given_again(self, path: Path) -> None:
        """A cursor or a follower that holds the number would take the new one for covered or seen."""
        with closing(prepare(sqlite3.connect(path))) as connection, connection:
            for table in ("observation_sources", "observations", "messages"):
                connection.execute(f"DELETE FROM {table}")
        with SqliteStore.open(path, wait=1) as store:
            store.messages.append(session(), [said("another")], counter=COUNTER, now=NOW)
            store.rows.add(row(2))
            assert [kept.seq for kept in store.messages.by_seq([1, 2])] == [2]
            assert [entry.position for entry in store.rows.log(LogQuery())] == [2]

    def test_a_message_that_was_taken_out_does_not_come_in_again(self, path: Path) -> None:
        """D6: what is left of it is its identity."""
        with closing(prepare(sqlite3.connect(path))) as connection, connection:
            connection.execute("DELETE FROM messages")
        with SqliteStore.open(path, wait=1) as store:
            assert store.messages.append(session(), [said("hello")], counter=COUNTER, now=NOW).new == (False,)
            found: Observation = store.rows.find(row_id(1))
            assert (found.sources, found.message_ids) == ((), ())
