"""Crashes and races: whatever happens, every message is kept once and observed once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from omcli.memory.ports import Lane
from tests.conftest import Om
from tests.e2e.background import wait_until
from tests.e2e.contents import (
    Contents,
    assert_covered_once,
    beside,
    contents,
    held,
    is_writable,
    number_of,
    phase,
    remove,
    users,
)
from tests.e2e.scripts import UNTIL, always
from tests.e2e.transcripts import Talk, long_talk, tide_story
from tests.soak import first_only

NOW, LATER = "2026-02-10T12:00:00Z", "2026-02-10T12:00:01.000Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undisturbed:
    """A run that nobody disturbs: how large the store gets while it works, and what it leaves."""

    command: list[str]
    size: int
    """Bytes, with the log beside it, at the end when the one is written into the other."""
    left: Contents


@pytest.fixture(scope="module")
def undisturbed(new_om: Callable[[], Om]) -> Undisturbed:
    """Two sessions: one of two chunks and two batches, and a small one."""
    om = new_om()
    transcripts = [
        om.write(f"{name}.jsonl", long_talk(name, size, lines=40).text()) for name, size in (("a", 600), ("b", 80))
    ]
    # The time is pinned: two stores are then the same to the instant.
    command = ["observe", "-q", "--now", NOW, *map(str, transcripts)]
    om(*command, "--db", om.folder / "first.db")  # compiles, and fills the caches
    process, largest = om.start(*command), 0
    while process.poll() is None:
        largest = max(largest, size(om))
    assert process.communicate()[1] == b""
    return Undisturbed(command=command, size=largest, left=contents(om.place))


def size(om: Om) -> int:
    """Bytes of the store and of the log beside it."""
    total = 0
    for file in (om.db, om.db.with_name(f"{om.db.name}-wal")):
        with suppress(FileNotFoundError):  # it may go at any moment
            total += file.stat().st_size
    return total


def killed(om: Om, command: list[str], *, when: Callable[[Om], bool] = lambda _: True, after: float) -> bool:
    """Kills a run some seconds after its store has come so far. Whether it was still there to be killed."""
    process = om.start(*command)
    while not when(om) and process.poll() is None:
        time.sleep(0.0002)
    time.sleep(after)
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


def is_of(om: Om, *, least: float) -> bool:
    """Whether the store is that large."""
    return size(om) >= least


def has_any(om: Om, *, table: str) -> bool:
    """Whether there is a row in a table."""
    return om.has_store and number_of(om.place, table) > 0


@pytest.mark.parametrize("kills", first_only([2, *range(10, 16)]))
def test_a_run_killed_anywhere_and_repeated_leaves_what_an_undisturbed_one_does(
    kills: int, undisturbed: Undisturbed, new_om: Callable[[], Om], chance: random.Random
) -> None:
    """F22: kill -9 at random points; nothing lost, nothing doubled, no file left behind, no lane held."""
    phases = list[str]()
    while len(phases) < kills or not {"starting", "appending", "observing"} <= set(phases):
        om = new_om()
        # By what is in the store, not by the time: then it is spread over all that a run does, however slow it is.
        if len(phases) < 2:
            when, after = partial(is_of, least=0), len(phases) * chance.uniform(0, 0.15)
        elif len(phases) < kills:
            so_far = (len(phases) + chance.random() - 2) / (kills - 2)
            when = partial(is_of, least=so_far * undisturbed.size)
            after = chance.choice([0, 0.01]) * chance.random()
        else:  # where all were killed too late, or too early, as on a busy machine
            when, after = partial(has_any, table=chance.choice(["messages", "cursors"])), 0
        if not killed(om, undisturbed.command, when=when, after=after):
            continue  # it was quicker
        phases.append(phase(om.place))
        if chance.random() < 0.3:
            killed(om, undisturbed.command, after=chance.random())
        om(*undisturbed.command)
        assert contents(om.place) == undisturbed.left, f"killed at {when}, {phases[-1]}"
        assert_covered_once(om.place)
        assert beside(om.place) == []
        with om.open(wait=0) as store:
            for session in "ab":
                store.leases.claim(session, Lane.OBSERVE, owner="somebody:1:1", now=LATER, expires_at=LATER)


def test_eight_runs_on_one_session_lose_and_double_nothing(new_om: Callable[[], Om]) -> None:
    """F20, F21, T75: one observes, the others wait for it or leave with 75, and their messages are kept."""
    alone, together = new_om(), new_om()
    talk = long_talk("one", 600)
    whole = alone.write("whole.jsonl", talk.text())
    half = alone.write("half.jsonl", "".join(f"{line}\n" for line in talk.lines[:300]))
    alone("observe", "-q", "--now", NOW, whole)

    command = ("observe", "--json", "--now", NOW, "--wait", "60")
    processes = [together.start(*command, path) for path in (whole, half, whole, half) * 2]
    ended = [(process.communicate(timeout=120), process.returncode) for process in processes]

    for (stdout, stderr), code in ended:
        assert code in (0, 75), stderr
        assert b"Traceback" not in stderr
        assert stdout
    new = [json.loads(stdout)["files"][0]["new_messages"] for (stdout, _), _ in ended]
    assert sum(new) == 600, f"every message is new exactly once: {new}"
    together("observe", "-q", "--now", NOW, whole)
    assert_covered_once(together.place)
    left, expected = contents(together.place), contents(alone.place)
    # Where one run had observed a half before another brought the rest, the batches end elsewhere.
    assert {table: left[table] for table in ("messages", "identities", "cursors")} == {
        table: expected[table] for table in ("messages", "identities", "cursors")
    }


def test_eight_runs_on_eight_sessions_do_not_get_in_each_other_s_way(new_om: Callable[[], Om]) -> None:
    """F20, F26: all of them end well, and each session is what it would be in a store of its own."""
    together, alone = new_om(), new_om()
    names = "abcdefgh"
    paths = [together.write(f"{name}.jsonl", long_talk(name, 80).text()) for name in names]
    processes = [together.start("observe", "-q", "--wait", "60", path) for path in paths]
    for process in processes:
        _, stderr = process.communicate(timeout=120)
        assert (process.returncode, stderr) == (0, b"")
    alone("observe", "-q", *paths)
    assert_covered_once(together.place)
    for name in names:
        of_session = ("log", "--jsonl", "--session", name)
        told = [
            [(row["type"], row["text"], row["message_ids"]) for row in om(*of_session).lines]
            for om in (together, alone)
        ]
        assert told[0] == told[1] != []


@pytest.mark.parametrize("rounds", first_only([1, 5]))
def test_eight_conversations_that_begin_alike_stay_apart_also_when_they_come_at_once(
    new_om: Callable[[], Om], rounds: int
) -> None:
    """F20, F21: the same prompt in eight places at night, each piped in when it ends; and all of them once more."""
    for _ in range(rounds):
        om = new_om()
        paths = [
            om.write(
                f"{number}.json",
                json.dumps(
                    [
                        {"role": "user", "content": "Run the nightly tests."},
                        {"role": "assistant", "content": f"{number} failed."},
                        {"role": "user", "content": f"We decided to keep test {number}."},
                    ]
                ),
            )
            for number in range(8)
        ]
        om("note", "The store is there.")
        processes = [om.start("observe", "-q", "--wait", "60", path) for path in paths]
        for process in processes:
            _, stderr = process.communicate(timeout=120)
            assert (process.returncode, stderr) == (0, b"")
        assert [row["messages"] for row in om("sessions", "--jsonl").lines] == [3] * 8
        again = om("observe", "--json", *paths).document["files"]
        assert [report["new_messages"] for report in again] == [0] * 8
        assert_covered_once(om.place)


class TestAtWork:
    """While a run holds the lane of its session: stopped where it stands, as if it thought for very long."""

    TALK = long_talk("slow", 600, lines=40)

    @pytest.fixture
    def thinking(self, om: Om) -> Iterator[subprocess.Popen[bytes]]:
        process = stopped_at_work(om, om.write("slow.jsonl", self.TALK.text()))
        yield process
        process.kill()
        process.communicate()

    def test_what_is_said_while_an_observer_thinks_is_kept_and_observed_next_time(
        self, om: Om, thinking: subprocess.Popen[bytes]
    ) -> None:
        """F1, F21, T75: seven others come meanwhile; they leave with 75 and their messages are kept."""
        for number in range(7):
            talk = Talk(session="slow", begin=datetime(2026, 3, 1 + number, tzinfo=UTC))
            path = om.write(f"{number}.jsonl", talk.user(f"We decided to paint door {number} red.").text())
            run = om("observe", path, "--now", NOW, "--wait", "0.2", code=75)
            assert "1 message (1 new)" in run.stderr
            assert f"process {thinking.pid} is at the observe lane of session slow" in run.stderr
        thinking.send_signal(signal.SIGCONT)
        _, stderr = thinking.communicate(timeout=120)
        assert (thinking.returncode, stderr) == (0, b"")
        om("observe", "-q", "--now", NOW, path)
        assert_covered_once(om.place)
        doors = [row["text"] for row in om("log", "--jsonl").lines if "door" in row["text"]]
        assert len(doors) == len(set(doors)) == 7
        assert number_of(om.place, "messages") == 607

    def test_a_run_killed_at_work_holds_up_nobody_however_far_off_the_end_of_its_lease_is(
        self, om: Om, thinking: subprocess.Popen[bytes]
    ) -> None:
        """F23, F24, T75: also where the clock has gone back a year since."""
        assert om("observe", om.folder / "slow.jsonl", "--now", NOW, "--wait", "0", code=75).stdout == ""
        thinking.kill()
        thinking.wait()
        om("observe", "-q", "--now", "2025-02-10T12:00:00Z", om.folder / "slow.jsonl")
        assert_covered_once(om.place)
        assert number_of(om.place, "leases") == 0

    def test_a_run_that_is_ended_while_it_waits_to_write_gives_its_lane_back(
        self, om: Om, thinking: subprocess.Popen[bytes]
    ) -> None:
        """F23, F93: also where it gets the write lock between the signal and its end."""
        with held(om.place):
            thinking.send_signal(signal.SIGCONT)
            time.sleep(1)  # by now it waits
            thinking.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        assert (thinking.communicate(timeout=120), thinking.returncode) == ((b"", b""), 143)
        assert number_of(om.place, "leases") == 0
        om("observe", "-q", "--now", NOW, om.folder / "slow.jsonl")
        assert_covered_once(om.place)


def test_a_result_that_comes_too_late_is_not_written_over_a_newer_one(om: Om) -> None:
    """F28, F24, T75: the lease has expired, another has done the work; the late one is told so, with 75."""
    slow = always(om, {"text": "echo", **UNTIL})
    path = om.write("slow.jsonl", tide_story().text())
    late = om.start("observe", "-q", "--now", NOW, path, "--model", slow.model)
    wait_until(lambda: slow.asked)
    om("observe", "-q", "--now", "2026-02-10T12:10:01Z", path)
    before = contents(om.place)
    assert_covered_once(om.place)
    slow.answers()
    _, stderr = late.communicate(timeout=120)
    assert late.returncode == 75, stderr
    assert b"was worked on by another process meanwhile\nhint: nothing was lost" in stderr
    after = contents(om.place)
    assert len(after.pop("calls")) == 1, "which has cost what it has cost"
    assert after == {table: rows for table, rows in before.items() if table != "calls"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_waits_to_write_can_be_ended(om: Om, number: signal.Signals, code: int) -> None:
    """F93, T67: at once, however long it would wait, and it still waits that long for the lock otherwise."""
    om("note", "The store is there.")
    with held(om.place):
        processes = [om.start("note", f"note {number}", "--wait", "600") for number in range(2)]
        wait_until(lambda: all(has_open(om, process) for process in processes))
        time.sleep(0.5)  # by now they wait
        processes[0].send_signal(number)
        assert (processes[0].communicate(timeout=120), processes[0].returncode) == ((b"", b""), code)
        time.sleep(0.5)
    processes[1].communicate(timeout=120)
    assert processes[1].returncode == 0
    assert number_of(om.place, "observations") == 2


def has_open(om: Om, process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has opened the store; where that is not told, a few seconds are enough."""
    if om.url is not None:
        return users(om.url) == 3  # both processes and who holds the lock
    files = Path(f"/proc/{process.pid}/fd")
    if not files.exists():
        time.sleep(2)
        return True
    return any(file.is_symlink() and file.resolve() == om.db for file in files.iterdir())


def stopped_at_work(om: Om, transcript: Path) -> subprocess.Popen[bytes]:
    """A run that takes the transcript in, stopped while it holds the lane and no transaction is open."""
    for _ in range(20):
        process = om.start("observe", "-q", "--now", NOW, transcript)
        while process.poll() is None:
            if om.has_store and number_of(om.place, "leases"):
                process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                if is_writable(om.place) and number_of(om.place, "leases"):
                    return process
                process.send_signal(signal.SIGCONT)
        process.communicate()
        remove(om.place)  # it was done before anybody looked
    raise AssertionError("was never seen at work")
