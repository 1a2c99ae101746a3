"""Workers that are killed, ended and raced: nothing is lost, doubled or left lying, and nobody is locked out."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from omcli.memory.ports import Lane
from tests.conftest import Om
from tests.e2e.background import EAGER, at_work, begun, codes, is_any_left, stop, wait_for_workers, wait_until
from tests.e2e.contents import assert_covered_once, beside, contents, is_writable, number_of
from tests.e2e.scripts import UNTIL, always, pending, rows, script
from tests.e2e.transcripts import Talk, tide_story
from tests.soak import first_only

NOW, LATER = "2026-02-10T12:00:00Z", "2100-01-01T00:00:00.000Z"


def buoys(number: int, *, session: str = "buoys") -> Talk:
    """So many messages, each worth a row of its own."""
    talk = Talk(session=session)
    for at in range(number):
        talk.user(f"We decided that buoy {at} of {session} lies {at} metres from the pier.")
    return talk


def starting(om: Om, transcript: Path, model: str, **env: str) -> subprocess.Popen[bytes]:
    """A caller in a process group of its own, as a shell makes one."""
    return subprocess.Popen(
        om.command("observe", "--background", "--now", NOW, transcript, "--model", model),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=om.environment({**EAGER, **env}), cwd=om.folder, start_new_session=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[bytes]) -> int:
    """The code of a caller that nobody disturbed."""
    _, stderr = process.communicate(timeout=120)
    assert b"Traceback" not in stderr, stderr
    return process.returncode


def assert_free(om: Om, *sessions: str) -> None:
    """No lane is held by anybody."""
    with om.open(wait=0) as store:
        for session in sessions:
            for lane in (Lane.WORK, Lane.OBSERVE, Lane.REFLECT):
                store.leases.claim(session, lane, owner="somebody:1:1", now=LATER[:-5] + "000Z", expires_at=LATER)


@pytest.fixture
def undisturbed(new_om: Callable[[], Om]) -> dict[str, list[tuple[object, ...]]]:
    """What the whole conversation leaves where nobody disturbs it."""
    om = new_om()
    om("observe", "-q", "--now", NOW, om.write("t.jsonl", buoys(60).text()), "--model", always(om, "echo").model)
    return contents(om.place)


# Kills


@pytest.mark.parametrize("kills", first_only([1, 4, 5]))
def test_callers_and_workers_that_are_killed_anywhere_lose_and_double_nothing(
    kills: int, om: Om, undisturbed: dict[str, list[tuple[object, ...]]], chance: random.Random
) -> None:
    """F22, F24, F25: kill -9 of `om observe --background` and of its workers while a conversation grows."""
    thinks = 0.3
    model = always(om, {"text": "echo", "sleep": thinks})
    killed = {"caller": 0, "worker": 0}
    number, seconds = 0, 0.3
    while min(killed.values()) < kills and number < 58:
        number += 2
        done = len(codes(om))
        caller = starting(om, om.write("t.jsonl", buoys(number).text()), model.model)
        if killed["caller"] < kills and chance.random() < 0.5:
            time.sleep(chance.random() * seconds)
            os.killpg(caller.pid, signal.SIGKILL)
            seconds *= 0.9  # the quicker it is, the earlier; so in the end there are enough
        if ended(caller) == -signal.SIGKILL:
            killed["caller"] += 1
        else:
            wait_until(lambda: at_work(om) or len(codes(om)) > done)  # noqa: B023
        time.sleep(chance.random() * (0.2 + thinks))
        for worker in at_work(om):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
                killed["worker"] += 1
    assert min(killed.values()) >= min(kills, 3)
    wait_for_workers(om, 0)  # one whose caller was killed may not have come to begin before
    before = len(begun(om))
    assert ended(starting(om, om.write("t.jsonl", buoys(60).text()), model.model)) == 0
    wait_for_workers(om, before + 1)
    assert pending(om) == 0
    assert_covered_once(om.place)
    left = contents(om.place)
    assert left["messages"] == undisturbed["messages"]
    assert left["identities"] == undisturbed["identities"]
    texts = [row["text"] for row in rows(om)]
    assert len(texts) == len(set(texts)) == 60
    assert_free(om, "buoys")
    assert beside(om.place) == []


def open_by(pid: int) -> dict[int, str]:
    """What a program has open, by its numbers. Linux."""
    found = {}
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            found[int(each.name)] = str(each.readlink())
    return found


class TestAtWork:
    """A worker whose model thinks for long."""

    @pytest.fixture
    def worker(self, om: Om) -> Iterator[int]:
        model = always(om, {"text": "echo", **UNTIL}, name="slow.json")
        assert ended(starting(om, om.write("t.jsonl", buoys(6).text()), model.model)) == 0
        wait_until(lambda: model.asked)
        (pid,) = at_work(om)
        yield pid
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def test_a_terminal_that_closes_does_not_reach_it(self, om: Om, worker: int) -> None:
        """S0.3: it is in a session of its own, with nothing of its caller's open."""
        assert os.getsid(worker) == worker != os.getsid(0)
        if sys.platform == "linux":
            streams = open_by(worker)
            assert streams[0] == os.devnull
            assert streams[1] == streams[2] == str(om.home / ".local/state/om/background.log")
            own = (str(om.db), str(om.home), *(["socket:"] if om.url else []))
            # What its model was asked may not be closed yet.
            wait_until(lambda: all(name.startswith(own) for at, name in open_by(worker).items() if at > 2))

    def test_the_next_run_takes_over_from_one_that_was_killed(self, om: Om, worker: int) -> None:
        """T75, F23, F24: at once, by hand or in the background: its lease names it, and it is gone."""
        os.kill(worker, signal.SIGKILL)
        wait_for_workers(om, 1)
        quick = always(om, "echo", name="quick.json")
        assert ended(starting(om, om.write("t.jsonl", buoys(7).text()), quick.model)) == 0
        wait_for_workers(om, 2)
        assert (pending(om), codes(om), len(quick.asked)) == (0, [0], 1)
        assert_covered_once(om.place)
        assert number_of(om.place, "leases") == 0

    def test_one_that_is_asked_to_end_gives_everything_back(self, om: Om, worker: int) -> None:
        """F93, F23: at once, with 143, and its lane is free."""
        os.kill(worker, signal.SIGTERM)
        wait_for_workers(om, 1)
        assert (codes(om), number_of(om.place, "leases")) == ([143], 0)
        om("observe", "-q", om.folder / "t.jsonl", "--observer", "rules")
        assert_covered_once(om.place)

    def test_who_comes_second_leaves(self, om: Om, worker: int) -> None:
        """F21, T75: quietly and without a model call; its messages are kept. Another session is not kept waiting."""
        quick = always(om, "echo", name="quick.json")
        transcript = om.write("t.jsonl", buoys(8).text())
        told = om("observe", "--background", "--now", NOW, transcript, "--model", quick.model, env=EAGER)
        assert "1 session left to running workers" in told.stderr
        assert begun(om) == [f"{os.uname().nodename}:{worker}:{begun(om)[0].split(':')[2]}"]
        om("tick", "--worker", "--now", NOW, "--session", "buoys", "--model", quick.model, env=EAGER, code=75)
        assert quick.asked == []
        assert ended(starting(om, om.write("o.jsonl", tide_story(session="other").text()), quick.model)) == 0
        wait_until(lambda: codes(om) == [0] and at_work(om) == [worker])
        assert (pending(om), len(quick.asked)) == (8, 1)

    def test_a_lease_of_before_a_restart_holds_up_nobody(self, om: Om, worker: int) -> None:
        """F23, F24: the pid is another program's now, or nobody's; the lease has long to go."""
        os.kill(worker, signal.SIGKILL)
        wait_for_workers(om, 1)
        host = os.uname().nodename
        quick = always(om, "echo", name="quick.json")
        for number, owner in enumerate((f"{host}:{os.getpid()}:1", f"{host}:4194305:77")):
            with om.open(wait=0) as store:
                store.leases.claim("buoys", Lane.OBSERVE, owner=owner, now=NOW, expires_at=LATER)
            if sys.platform != "linux" and not number:
                continue  # where nobody tells when a program began
            before = len(begun(om))
            assert ended(starting(om, om.write("t.jsonl", buoys(8 + number).text()), quick.model)) == 0
            wait_for_workers(om, before + 1)
            assert pending(om) == 0
        assert_covered_once(om.place)


class TestHung:
    """A worker that stands still, with all that it holds, and goes on when everybody has done without it."""

    OVER, SOON = "2026-02-10T12:10:01Z", "2026-02-10T12:09:59Z"
    """Ten minutes after a worker's last sign of life, and just before."""

    def test_one_that_wakes_up_too_late_writes_nothing(self, om: Om) -> None:
        """T75, F24, F28: it has thought for ten minutes; another one was started, and has done all of it."""
        slow = script(om, {"text": "echo", **UNTIL}, "echo", name="slow.json")
        transcript = om.write("t.jsonl", buoys(6).text())
        assert ended(starting(om, transcript, slow.model)) == 0
        wait_until(lambda: slow.asked)
        (hung,) = at_work(om)
        stop(hung)
        try:
            quick = always(om, "echo", name="quick.json")
            command = ("observe", "--background", transcript, "--model", quick.model)
            told = om(*command, "--now", self.SOON, env=EAGER).stderr
            assert "left to running workers" in told
            om(*command, "--now", self.OVER, env=EAGER)
            wait_until(lambda: codes(om))
            assert (codes(om), pending(om)) == ([0], 0)
            before = contents(om.place)
            slow.answers()
        finally:
            os.kill(hung, signal.SIGCONT)
        wait_for_workers(om, 2)
        after = contents(om.place)
        assert len(after.pop("calls")) > len(before.pop("calls")), "what it has cost"
        assert after == before
        assert_covered_once(om.place)
        texts = [row["text"] for row in rows(om)]
        assert len(texts) == len(set(texts)) == 6
        assert_free(om, "buoys")

    @pytest.mark.soak
    def test_one_that_stands_still_anywhere_holds_nobody_up_for_longer_than_its_lease(
        self, om: Om, chance: random.Random
    ) -> None:
        """F24: wherever that is: starting, observing, between two looks, ending; a run by hand and a worker go on."""
        stopped, number, model = list[int](), 0, always(om, {"text": "echo", "sleep": 0.15})
        try:
            while number < 8 or len(stopped) < 2:  # one may be quicker than who wants to stop it
                number += 1
                day = ("--now", f"2026-03-{number:02}")
                transcript = om.write("t.jsonl", buoys(2 * number).text())
                began = len(begun(om))
                om("observe", "--background", *day, transcript, "--model", model.model, env=EAGER)
                wait_until(lambda: len(begun(om)) > began)  # noqa: B023
                time.sleep(0.5 * chance.random())
                while running_on := set(at_work(om)) - set(stopped):
                    with suppress(ProcessLookupError):
                        stop(worker := running_on.pop())
                        if is_writable(om.place):
                            stopped += {worker} & set(at_work(om))
                        else:  # nobody can write while it does
                            os.kill(worker, signal.SIGCONT)
                            wait_until(lambda: is_writable(om.place))
            quick = always(om, "echo", name="quick.json")
            last = ("--now", "2026-04-01", transcript, "--model", quick.model)
            om("observe", "--background", *last, env=EAGER)
            wait_until(lambda: pending(om) == 0)
            before = [row["text"] for row in rows(om)]
        finally:
            for worker in stopped:
                os.kill(worker, signal.SIGCONT)
        wait_for_workers(om, 0)
        assert [row["text"] for row in rows(om)] == before
        assert len(set(before)) == len(before) == 2 * number
        assert_covered_once(om.place)
        assert_free(om, "buoys")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_child_of_a_worker_survives_it(om: Om, number: signal.Signals) -> None:
    """F23: nor what that has started, in a pipe; whatever ends the worker."""
    script = om.write("model.sh", f"echo $$ > {om.folder}/child; cat >/dev/null; sleep 600 | cat")
    assert ended(starting(om, om.write("t.jsonl", buoys(6).text()), f"command/sh {script}")) == 0
    wait_until(lambda: (om.folder / "child").exists() and (om.folder / "child").read_text().strip())
    group = int((om.folder / "child").read_text())
    (worker,) = at_work(om)
    os.kill(worker, number)
    wait_for_workers(om, 1)
    wait_until(lambda: not is_any_left(group))
    om("observe", "-q", om.folder / "t.jsonl", "--observer", "rules")
    assert_covered_once(om.place)


# Races


@pytest.mark.parametrize("groups", first_only([1, 3]))
def test_eight_callers_on_one_growing_session_strand_nothing(om: Om, groups: int) -> None:
    """T75, F20, F21: whoever comes while a worker is at it leaves its messages to that one, which looks again."""
    model = always(om, {"text": "echo", "sleep": 0.15})
    for group in range(groups):
        numbers = range(8 * group + 1, 8 * group + 9)
        paths = [om.write(f"{number}.jsonl", buoys(number).text()) for number in numbers]
        processes = [starting(om, path, model.model, OM_WAIT="60") for path in paths]
        assert [ended(process) for process in processes] == [0] * 8
    wait_until(lambda: pending(om) == 0)  # nothing that came is stranded
    wait_for_workers(om, 1)
    assert set(codes(om)) <= {0, 1, 75}
    texts = [row["text"] for row in rows(om)]
    assert len(texts) == len(set(texts)) == 8 * groups
    assert_covered_once(om.place)
    assert_free(om, "buoys")


def test_eight_callers_on_eight_sessions_do_not_get_in_each_other_s_way(om: Om) -> None:
    """F20, F26: each has a worker of its own."""
    model = always(om, {"text": "echo", "sleep": 0.2})
    names = "abcdefgh"
    processes = [
        starting(om, om.write(f"{name}.jsonl", buoys(5, session=name).text()), model.model, OM_WAIT="60")
        for name in names
    ]
    assert [ended(process) for process in processes] == [0] * 8
    wait_for_workers(om, 8)
    assert (codes(om), pending(om)) == ([0] * 8, 0)
    assert len({row["text"] for row in rows(om)}) == len(rows(om)) == 40
    assert_covered_once(om.place)


def test_what_comes_while_somebody_works_by_hand_is_waited_for(om: Om) -> None:
    """T75: by the one worker of the session, since whoever works by hand may have had its last look."""
    slow = always(om, {"text": "echo", **UNTIL}, name="slow.json")
    by_hand = om.start("observe", "-q", om.write("t.jsonl", buoys(4).text()), "--model", slow.model)
    wait_until(lambda: slow.asked)
    assert ended(starting(om, om.write("t.jsonl", buoys(5).text()), slow.model)) == 0
    wait_until(lambda: begun(om))
    slow.answers()
    assert by_hand.communicate(timeout=120)[1] == b""
    wait_for_workers(om, 1)
    assert pending(om) == 0
    assert codes(om) in ([0], [1]), "who works by hand may have had a look after that, and left nothing"
    assert len(rows(om)) == 5
    assert json.dumps(rows(om)).count("buoy 4 of") == 1
    assert_covered_once(om.place)
