"""Several processes on one store, and processes that die in the middle."""

from __future__ import annotations

import random
import resource
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from omcli.base.errors import LaneTaken
from omcli.memory.observation import LogQuery
from omcli.memory.ports import Lane
from omcli.sqlite import SqliteStore
from omcli.sqlite.lanes import current_process, is_gone, owner_name
from tests.integration.sqlite.running import run, run_at_once, start
from tests.material import COUNTER, NOW, said, session
from tests.soak import first_only


def sound(path: Path) -> str:
    """What SQLite says of the file."""
    with closing(sqlite3.connect(path)) as connection, connection:
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
        broken_links = connection.execute("PRAGMA foreign_key_check").fetchall()
    return str(verdict) if not broken_links else f"broken links: {broken_links}"


def test_eight_programs_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    """F20, F26, S1.16: every write of every one is there, in the order of its session."""
    path = tmp_path / "om.db"
    run_at_once([("append", path, f"session {number}", 100) for number in range(8)])
    with SqliteStore.open(path, wait=1) as store:
        for number in range(8):
            batch = store.batches.unobserved(f"session {number}", max_tokens=10_000)
            assert batch is not None
            assert [kept.key for kept in batch.messages] == [f"k-session {number} {index}" for index in range(100)]
        assert store.sessions.status().messages == 800
    assert sound(path) == "ok"


def test_programs_that_observe_one_session_at_once_cover_each_message_once(tmp_path: Path) -> None:
    """T75: each batch has one winner, the others are told, and nothing is written twice."""
    path = tmp_path / "om.db"
    with SqliteStore.open(path, wait=1) as store:
        store.messages.append(session(), [said(f"{number}") for number in range(60)], counter=COUNTER, now=NOW)
    answers = run_at_once([("observe", path, "s", 1000 * number) for number in range(1, 5)])
    lines = [line.split() for answer in answers for line in answer.splitlines()]
    assert {words[0] for words in lines} <= {"covered", "StaleBatch"}
    covered = [int(seq) for words in lines if words[0] == "covered" for seq in words[1:]]
    assert sorted(covered) == list(range(1, 61))
    with SqliteStore.open(path, wait=1) as store:
        rows = [logged.observation for logged in store.rows.log(LogQuery())]
    assert [row.sources for row in rows] == [(seq,) for seq in range(1, 61)]
    assert [row.text for row in rows] == [f"{number}" for number in range(60)]


@pytest.mark.parametrize("lives", first_only([8, 40]))
def test_programs_killed_at_any_moment_leave_a_sound_store(tmp_path: Path, lives: int) -> None:
    """F22: what was said to be kept is kept, and every message before the cursor has its row, once."""
    path, chance, kept_first = tmp_path / "om.db", random.Random(22), 0
    for life in range(lives):
        with start("work", path, "s", life * 1000) as program:
            assert program.stdout is not None
            assert program.stdout.readline(), program.stderr and program.stderr.read()
            time.sleep(chance.random() * 0.02)
            program.kill()
            numbers = [life * 1000, *(int(line.split()[1]) for line in program.stdout if line.endswith("\n"))]
        with SqliteStore.open(path, wait=1) as store:
            said_in = [kept.message.text for kept in store.messages.all()]
            texts = [text.split()[1] for text in said_in if text.startswith("s ")]
            rows = [logged.observation.sources for logged in store.rows.log(LogQuery())]
            (summary,) = store.sessions.summaries()
        missing = {str(number) for number in numbers} - set(texts)
        assert not missing, f"life {life}: said to be kept and gone"
        assert summary.messages == len(texts) > kept_first
        assert rows == [(seq,) for seq in range(1, summary.messages - summary.pending + 1)], f"life {life}"
        kept_first = len(texts)
    assert sound(path) == "ok"


def test_a_full_disk_is_said_and_the_store_stays_sound(tmp_path: Path) -> None:
    """F32: exit 74; what was kept before is all there, and writing goes on once there is room."""
    path = tmp_path / "om.db"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (900_000, 900_000))

    number, error, exit_code = run("fill", path, prepare=limit).split()
    assert (error, exit_code) == ("CannotWrite", "74")
    with SqliteStore.open(path, wait=1) as store:
        assert store.sessions.status().messages == int(number) > 5
        assert store.messages.append(session(), [said("room again")], counter=COUNTER, now=NOW).new == (True,)
    assert sound(path) == "ok"


class TestOwners:
    def test_this_program_is_not_gone(self) -> None:
        assert not is_gone(current_process())

    def test_a_lane_is_held_by_the_program_that_claimed_it_until_that_ends(self, tmp_path: Path) -> None:
        """F23, F24, T75: the lease names its real holder; killed, it holds nothing, however far off the expiry is."""
        path = tmp_path / "om.db"
        with start("claim", path, "s") as program, SqliteStore.open(path, wait=10) as store:
            assert program.stdout is not None
            assert program.stdout.readline() == "claimed\n"
            me = current_process()
            with pytest.raises(LaneTaken, match=rf"process {program.pid}\b"):
                store.leases.claim("s", Lane.OBSERVE, owner=me, now=NOW, expires_at="2100-01-01T00:00:00.000Z")
            program.kill()
            program.wait()
            store.leases.claim("s", Lane.OBSERVE, owner=me, now=NOW, expires_at="2100-01-01T00:00:00.000Z")

    def test_a_program_that_ended_is_gone_also_before_its_parent_notices(self, tmp_path: Path) -> None:
        """F23."""
        host = current_process().rsplit(":", 2)[0]
        with start("read", tmp_path / "none.db") as program:
            assert program.stdout is not None
            assert program.stdout.read() == "0 messages\n"
            deadline = time.monotonic() + 60
            while not is_gone(f"{host}:{program.pid}:-") and time.monotonic() < deadline:
                time.sleep(0.01)  # between its last word and its end
            assert is_gone(f"{host}:{program.pid}:-")
            program.wait()
            assert is_gone(f"{host}:{program.pid}:-")

    def test_another_program_with_the_same_number_is_not_the_owner(self) -> None:
        host, pid, start_of_it = current_process().rsplit(":", 2)
        assert is_gone(f"{host}:{pid}:{start_of_it}1")
        assert not is_gone(f"{host}:{pid}:-"), "without a start there is only the number to go by"

    @pytest.mark.parametrize("owner", ["elsewhere.example:1:1", "", "me", "a:b:c", "::", "host:0:1", "host:-1:1"])
    def test_of_what_cannot_be_known_nobody_says_that_it_is_gone(self, owner: str) -> None:
        host = current_process().rsplit(":", 2)[0]
        assert not is_gone(owner.replace("host", host))
        assert not is_gone(f"{host}:{10**30}:1")

    def test_owners_are_named_for_people(self) -> None:
        host, pid, _ = current_process().rsplit(":", 2)
        assert owner_name(current_process()) == f"process {pid}"
        assert owner_name(f"x{host}:7:1") == f"process 7 on x{host}"
        assert owner_name("something") == "something"
