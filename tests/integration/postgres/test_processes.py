"""Several processes on one server, processes that die, connections that are cut, and a server that is killed."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from omcli.memory.observation import LogQuery
from omcli.memory.ports import Store
from omcli.postgres import PostgresStore
from tests.integration.sqlite.running import run_at_once, start
from tests.material import COUNTER, NOW, said, session
from tests.postgres_server import PostgresServer, remove, started
from tests.soak import first_only


def check(store: Store, texts: list[str]) -> None:
    """Check that the store has each text once, and each observed message one row, and that none was passed over."""
    kept = list(store.messages.all())
    assert Counter(message.message.text for message in kept) == Counter(texts)
    sources = Counter(seq for logged in store.rows.log(LogQuery()) for seq in logged.observation.sources)
    assert set(sources.values()) <= {1}
    pending = 0
    for name in store.sessions.ids():
        found = store.batches.pending(name)
        pending += found.messages
        assert not found.late
        of_session = [message.seq for message in kept if message.session == name]
        assert sorted(sources.keys() & set(of_session)) == [seq for seq in of_session if seq <= found.after]
    assert len(sources) + pending == len(kept)


def test_eight_programs_that_write_at_once_lose_nothing(postgres_url: str) -> None:
    """F20, F26, S1.16: every write of every one is there, in the order of its session."""
    run_at_once([("append", postgres_url, f"session {number}", 50) for number in range(8)])
    with PostgresStore.open(postgres_url, wait=1) as store:
        for number in range(8):
            batch = store.batches.unobserved(f"session {number}", max_tokens=10_000)
            assert batch is not None
            assert [kept.key for kept in batch.messages] == [f"k-session {number} {index}" for index in range(50)]
        assert store.sessions.status().messages == 400


def test_programs_that_write_to_one_session_at_once_leave_no_message_behind_its_cursor(postgres_url: str) -> None:
    """Numbers are given before commit, but a cursor never passes one that is committed later."""
    told = run_at_once([("persist", postgres_url, f"s{number % 2}", number, 40) for number in range(4)])
    assert len(told) == 4
    with PostgresStore.open(postgres_url, wait=1) as store:
        check(store, [f"{me} {index}" for me in range(4) for index in range(40)])


def test_programs_that_observe_one_session_at_once_cover_each_message_once(postgres_url: str) -> None:
    """T75: each batch has one winner, the others are told, and nothing is written twice."""
    with PostgresStore.open(postgres_url, wait=1) as store:
        store.messages.append(session(), [said(f"{number}") for number in range(60)], counter=COUNTER, now=NOW)
    answers = run_at_once([("observe", postgres_url, "s", 1000 * number) for number in range(1, 5)])
    lines = [line.split() for answer in answers for line in answer.splitlines()]
    assert {words[0] for words in lines} <= {"covered", "StaleBatch"}
    covered = [int(seq) for words in lines if words[0] == "covered" for seq in words[1:]]
    assert sorted(covered) == list(range(1, 61))


@pytest.mark.parametrize("lives", first_only([6, 60]))
def test_programs_killed_at_any_moment_leave_a_sound_store(
    postgres_url: str, lives: int, chance: random.Random
) -> None:
    """F22: what was said to be kept is kept, and every message before the cursor has its row, once."""
    for life in range(lives):
        with start("work", postgres_url, "s", life * 1000) as program:
            assert program.stdout is not None
            assert program.stdout.readline(), program.stderr and program.stderr.read()
            time.sleep(chance.random() * 0.05)
            program.kill()
            numbers = [life * 1000, *(int(line.split()[1]) for line in program.stdout if line.endswith("\n"))]
        with PostgresStore.open(postgres_url, wait=10) as store:
            texts = [kept.message.text for kept in store.messages.all()]
            check(store, texts)
        missing = {str(number) for number in numbers} - {text.split()[1] for text in texts}
        assert not missing, f"life {life}: said to be kept and gone"


@pytest.mark.parametrize("cuts", first_only([8, 80]))
def test_a_connection_that_is_cut_loses_and_doubles_nothing(
    postgres_url: str, postgres_server: PostgresServer, cuts: int, chance: random.Random
) -> None:
    """The program cannot know if its last transaction was committed. It repeats it, and it counts once."""
    programs = [start("persist", postgres_url, f"s{me % 2}", me, cuts * 6) for me in range(3)]
    name = postgres_url.partition("?")[0].rpartition("/")[2]
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    for _ in range(cuts):
        time.sleep(chance.random() * 0.1)
        postgres_server.run(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' ORDER BY random() LIMIT 1"
        )
    for program in programs:
        told, complaints = program.communicate(timeout=120)
        assert program.returncode == 0, complaints
        assert told.startswith("ready\n")
    with PostgresStore.open(postgres_url, wait=1) as store:
        check(store, [f"{me} {index}" for me in range(3) for index in range(cuts * 6)])


@pytest.mark.parametrize("kills", first_only([2, 25]))
def test_a_server_that_is_killed_loses_and_doubles_nothing(tmp_path: Path, kills: int, chance: random.Random) -> None:
    """What was committed is there again when the server has recovered."""
    server = started(tmp_path / "server")
    url = server.url_of(server.create())
    programs = [start("persist", url, f"s{me % 2}", me, kills * 60) for me in range(3)]
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    try:
        for kill in range(kills):
            time.sleep(0.3 + chance.random() * 0.7)
            server.stop((signal.SIGKILL, signal.SIGQUIT)[kill % 2])
            server = started(tmp_path / "server")
        for program in programs:
            told, complaints = program.communicate(timeout=240)
            assert program.returncode == 0, complaints
            assert told.startswith("ready\n")
        with PostgresStore.open(url, wait=1) as store:
            check(store, [f"{me} {index}" for me in range(3) for index in range(kills * 60)])
    finally:
        remove(tmp_path / "server")
