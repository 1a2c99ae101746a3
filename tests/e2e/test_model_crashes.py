"""Models at work, and killed at it: nothing is lost, nothing doubled, and what is said meanwhile is observed next."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from omcli.memory.ports import Lane
from tests.conftest import Om
from tests.e2e.contents import assert_covered_once, number_of
from tests.e2e.scripts import UNTIL
from tests.e2e.transcripts import Talk
from tests.integration.sqlite.watching import Watcher, happened_often

GROUPS, KILLS = 4, 6
"""So many runs are killed: in groups, to be spread over the processor's cores."""
THINKS = 0.25
"""Seconds."""
LATER = "2100-01-01T00:00:00.000Z"
WAYS = {"OM_OBSERVE_BATCH_TOKENS": "150", "OM_OBSERVE_TOKENS": "100", "OM_REFLECT_TOKENS": "150"}
"""Batches of a few messages, and something due of hardly more."""
AHEAD = {"OM_OBSERVE_PRECOMPUTE": "40", "OM_OBSERVE_FLOOR": "20"}
"""The same, a message or two ahead."""


@dataclass(slots=True)
class Work:
    """A conversation that goes on, a model that repeats what it is shown, and runs that are killed."""

    om: Om
    chance: random.Random
    ways: Mapping[str, str] = field(default_factory=lambda: WAYS)
    talk: Talk = field(default_factory=lambda: Talk(session="buoys"))
    happened: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.om.write("echo.json", json.dumps({"text": "echo", "sleep": THINKS}))

    @property
    def model(self) -> str:
        """How it is named."""
        return f"scripted/{self.om.folder / 'echo.json'}"

    @property
    def asked(self) -> int:
        """How often the model was."""
        record = self.om.folder / "echo.json.asked.jsonl"
        return record.read_bytes().count(b"\n") if record.exists() else 0

    def say(self, messages: int) -> Path:
        """The conversation, with so many messages more."""
        for _ in range(messages):
            number = len(self.talk.lines)
            self.talk.user(f"The buoy {number} is where the chart has it, and painted as the chart says.")
        return self.om.write("buoys.jsonl", self.talk.text())

    def commands(self) -> dict[str, list[str | Path]]:
        """What may be run."""
        path = self.say(self.chance.randint(1, 5))
        return {
            "observe": ["observe", "-q", path, "--model", self.model],
            "reflect": ["reflect", "-q", "--session", "buoys", "--model", self.model],
            "tick": ["tick", "-q", "--model", self.model],
        }

    def killed(self) -> None:
        """Starts a run and kills it, before, while or after its model thinks."""
        commands = self.commands()
        name = self.chance.choice(list(commands)) if self.asked else "observe"
        if name == "tick":
            self.om("observe", "-q", "--later", *commands["observe"][2:3])
        asked, moment = self.asked, self.chance.choice(["early", "thinking", "writing"])
        process = self.om.start(*commands[name], env=self.ways)
        if moment == "early":
            time.sleep(self.chance.random() * 0.5)
        else:
            wait_until(lambda: self.asked > asked or process.poll() is not None)
            time.sleep(THINKS * (self.chance.random() if moment == "thinking" else 1 + self.chance.random() / 10))
        process.kill()
        process.communicate()
        if process.returncode == -signal.SIGKILL:
            self.happened[f"{name} killed"] += 1
            self.happened[moment] += 1

    def finish(self) -> None:
        """Whatever happened, the next runs do the rest, and no lane is held by the dead."""
        path = self.say(2)
        self.om("observe", "-q", path, "--model", self.model, env=self.ways)
        self.om("tick", "-q", "--model", self.model, env=self.ways)
        with self.om.open(wait=0) as store:
            for lane in (Lane.OBSERVE, Lane.REFLECT):
                store.leases.claim("buoys", lane, owner="somebody:1:1", now=LATER[:-5] + "000Z", expires_at=LATER)


def wait_until(is_so: Callable[[], bool], *, seconds: float = 60) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.002)


@pytest.mark.soak
@pytest.mark.parametrize("group", range(GROUPS))
def test_runs_that_are_killed_while_models_think_lose_and_double_nothing(
    group: int, new_om: Callable[[], Om], chance: random.Random
) -> None:
    """F22, F25, F24: kill -9 of `om observe`, `om reflect` and `om tick`, on one session that goes on all the time.

    Half of the groups observe ahead as well.
    """
    work = Work(new_om(), chance, ways=WAYS | (AHEAD if group % 2 else {}))
    work.om("observe", "-q", work.say(4), "--model", work.model, env=work.ways)
    with closing(Watcher(work.om.place)) as watcher:
        for _ in range(4 * KILLS):
            if work.happened.total() >= 2 * KILLS:
                break
            work.killed()
            watcher.look()
        work.finish()
        watcher.look()
        assert watcher.untold() == []
        assert len(watcher.texts()) == len(set(watcher.texts())) == len(work.talk.lines)
        assert watcher.covered == len(work.talk.lines)
        assert any(what.endswith("killed") for what in work.happened), work.happened
        happened_often(watcher.outcomes(), ["observe observed"], times=1)
    assert_covered_once(work.om.place)


class TestWhileAModelThinks:
    """A run that waits for its model."""

    @pytest.fixture
    def work(self, om: Om) -> Work:
        work = Work(om, random.Random(7))
        om.write("echo.json", json.dumps({"text": "echo", **UNTIL}))
        return work

    @pytest.fixture
    def thinking(self, work: Work) -> Iterator[subprocess.Popen[bytes]]:
        process = work.om.start("observe", "-q", work.say(4), "--model", work.model)
        wait_until(lambda: bool(work.asked))
        yield process
        process.kill()
        process.communicate()

    def test_what_is_said_meanwhile_is_kept_and_observed_next_time(
        self, work: Work, thinking: subprocess.Popen[bytes]
    ) -> None:
        """F1, F21, T75: another run leaves with 75, its message is kept; it is shown in a batch of its own."""
        run = work.om("observe", work.say(1), "--model", work.model, "--wait", "0", code=75)
        assert "5 messages (1 new)" in run.stderr
        (work.om.folder / "go").touch()
        assert thinking.communicate(timeout=120)[1] == b""
        assert thinking.returncode == 0
        assert work.asked == 2
        assert_covered_once(work.om.place)
        rows = work.om("log", "--jsonl").lines
        assert len({row["text"] for row in rows}) == len(rows) == 5

    def test_a_run_that_is_killed_leaves_its_messages_to_the_next(
        self, work: Work, thinking: subprocess.Popen[bytes]
    ) -> None:
        """T75, F23, F24: at once, since its lease names it and it is gone; the rules may be the next as well."""
        thinking.kill()
        thinking.wait()
        work.om("observe", "-q", work.say(0), "--observer", "rules")
        assert_covered_once(work.om.place)
        assert number_of(work.om.place, "leases") == 0
