"""Crashes and races: whatever happens, every message is kept once and observed once."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.conftest import Om
from tests.e2e.transcripts import PROJECT, Talk

KILLS = 12


def long_talk(session: str, messages: int) -> Talk:
    """Prompts and commands, each with something of its own to keep."""
    # Equal words at the same instant would be taken for a copy that a resumed session made.
    talk = Talk(session=session, begin=datetime(2026, 2, 10, 9, 0, sum(session.encode()) % 60, tzinfo=UTC))
    for number in range(messages // 4):
        talk.user(f"We decided that rule {number} of {session} is to use port {8000 + number}.")
        talk.call("Bash", {"command": f"make target-{number}", "cwd": PROJECT})
        talk.result(f"built target-{number}\n" + "compiling something long\n" * 20)
        talk.assistant(f"Target {number} is built.")
    return talk


def content(om: Om) -> tuple[list[dict[str, Any]], list[tuple[str, ...]]]:
    """What the store holds, without ids and times of the run: sessions, and rows with their sources."""
    sessions = om("sessions", "--jsonl").lines
    for session in sessions:
        del session["seen_at"]
    rows = [(row["session"], row["type"], row["text"], *row["message_ids"]) for row in om("log", "--jsonl").lines]
    return sorted(sessions, key=lambda session: str(session["id"])), sorted(rows)


def test_a_run_killed_anywhere_and_repeated_leaves_what_an_undisturbed_one_does(new_om: Callable[[], Om]) -> None:
    """F22: kill -9 at random points; nothing lost, nothing doubled, no file left behind."""
    undisturbed, killed = new_om(), new_om()
    transcripts = [killed.write(f"{name}.jsonl", long_talk(name, 1600).text()) for name in ("one", "two")]
    begun = time.monotonic()
    undisturbed("observe", "-q", *transcripts)
    duration = time.monotonic() - begun
    chance = random.Random(20260210)

    died = 0
    for _ in range(KILLS):
        process = killed.start("observe", "-q", *map(str, transcripts))
        time.sleep(chance.uniform(0.05, duration))
        process.kill()
        process.communicate()
        died += process.returncode == -signal.SIGKILL
    killed("observe", "-q", *transcripts)

    assert died > 0, "some runs must have been killed before their end"
    assert content(killed) == content(undisturbed)
    assert sorted(path.name for path in killed.db.parent.iterdir() if path.suffix == ".db") == ["memory.db"]
    assert killed("status", "--json").document["pending"] == 0


def test_two_runs_on_one_session_lose_and_double_nothing(new_om: Callable[[], Om]) -> None:
    """F21, T75: one observes, the others wait for it or leave with 75, and their messages are kept."""
    alone, together = new_om(), new_om()
    talk = long_talk("one", 1200)
    whole = alone.write("whole.jsonl", talk.text())
    half = alone.write("half.jsonl", "".join(f"{line}\n" for line in talk.lines[:600]))
    alone("observe", "-q", whole)

    processes = [together.start("observe", "--json", "--wait", "20", str(path)) for path in (whole, half, whole, half)]
    ended = [(process.communicate(timeout=60), process.returncode) for process in processes]

    for (stdout, stderr), code in ended:
        assert code in (0, 75), stderr
        assert b"Traceback" not in stderr
        assert stdout
    new = [json.loads(stdout)["files"][0]["new_messages"] for (stdout, _), _ in ended]
    assert sum(new) == 1200, f"every message is new exactly once: {new}"
    together("observe", "-q", whole)
    assert content(together) == content(alone)


def test_four_runs_on_four_sessions_do_not_get_in_each_other_s_way(new_om: Callable[[], Om]) -> None:
    """F20, F26."""
    together = new_om()
    paths: list[Path] = [together.write(f"{name}.jsonl", long_talk(name, 400).text()) for name in "abcd"]
    processes = [together.start("observe", "-q", str(path)) for path in paths]
    for process in processes:
        _, stderr = process.communicate(timeout=60)
        assert (process.returncode, stderr) == (0, b"")
    found = {row["id"]: (row["messages"], row["pending"]) for row in together("sessions", "--jsonl").lines}
    assert found == dict.fromkeys("abcd", (400, 0))
