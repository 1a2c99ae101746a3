"""Files that other processes read ahead: the result is that of one process, whatever happens to the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture.hot_path import loaded
from tests.benchmarks import transcripts
from tests.conftest import Om
from tests.e2e.background import wait_until
from tests.e2e.contents import Contents, assert_covered_once, contents
from tests.e2e.transcripts import tide_story
from tests.soak import more_in_soak

NOW = "2026-02-10T12:00:00Z"
TOLD = [("user", "We always use metric units."), ("assistant", "Noted: metric units."), ("user", "Thanks.")]


def chat() -> str:
    """A short talk without tools."""
    return "\n".join(json.dumps({"role": role, "content": text}) for role, text in TOLD)


def made(om: Om, name: str, *, seed: int, size: int = 550_000) -> Path:
    """A session with tools."""
    path = om.folder / name
    transcripts.write(path, size, seed=seed, session=f"{seed:08}-0000-4000-8000-000000000001")
    return path


def several(om: Om) -> list[str]:
    """A chat, and so much more that it is worth while to start processes."""
    return [str(om.write("chat.jsonl", chat())), *(str(made(om, f"{seed}.jsonl", seed=seed)) for seed in range(1, 5))]


def observing(*files: str | Path, jobs: int) -> list[str]:
    return ["observe", "--now", NOW, "--jobs", str(jobs), *map(str, files)]


def said(text: str) -> list[str]:
    """Lines of rows without their handles, which are random."""
    return [line.partition(" ")[2] for line in text.splitlines()]


def children(pid: int) -> list[int]:
    """The processes that a process has started and that are still running."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] not in "ZX":
            found.append(int(stat.parent.name))
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")


@pytest.fixture(name="alone", scope="module")
def alone_run(new_om: Callable[[], Om]) -> tuple[Om, list[str], Contents]:
    """The files, and what a single process makes of them."""
    om = new_om()
    files = several(om)
    om(*observing("-q", *files, jobs=1))
    return om, files, contents(om.place)


def test_other_processes_change_nothing(alone: tuple[Om, list[str], Contents], om: Om) -> None:
    """Messages, rows, their numbers, batches, bookmarks and the index are the same."""
    _, files, expected = alone
    om(*observing("-q", *files, jobs=3))
    assert contents(om.place) == expected


def test_whatever_is_wrong_with_an_input_is_said_in_its_place(om: Om, new_om: Callable[[], Om]) -> None:
    """Bad and missing files, a folder, stdin, a file that is named twice, and a session in two files."""
    first, *others = several(om)
    om.write("bad.jsonl", "{}\n" * 5000 + "nonsense" * 90_000)
    om.write("story.jsonl", tide_story().text())
    grown = Path(others[0]).read_text(encoding="utf-8")
    om.write("grown.jsonl", grown + Path(others[1]).read_text(encoding="utf-8").replace("00000002-", "00000001-"))
    inputs = [
        *(first, others[0], "bad.jsonl", others[1], "missing.jsonl", "-", str(om.folder), others[2]),
        *(others[2], "grown.jsonl", "story.jsonl", others[3], first),
    ]  # fmt: skip
    ended, left = [], []
    for jobs in (1, 3):
        db = new_om().db
        for more in (["--json", "--strict"], []):
            run = om(*observing(*inputs, "--db", db, *more, jobs=jobs), stdin=tide_story().text(), code=None)
            rows = run.stdout if more else "\n".join(said(run.stdout))
            ended.append((run.code, run.stderr, len(rows)))
        left.append(contents(db))
    assert ended[:2] == ended[2:]
    assert left[0] == left[1]
    assert ended[0][0] == 65
    assert all(name in ended[0][1] for name in ("bad.jsonl", "missing.jsonl", str(om.folder)))


def test_rows_are_printed_in_the_order_of_the_files(alone: tuple[Om, list[str], Contents], om: Om) -> None:
    _, files, _ = alone
    printed = [om(*observing(*files, "--db", om.folder / f"{jobs}.db", jobs=jobs)) for jobs in (1, 2)]
    assert said(printed[0].stdout) == said(printed[1].stdout)
    assert printed[0].stderr == printed[1].stderr


def test_the_writing_process_looks_up_what_the_others_found(alone: tuple[Om, list[str], Contents], om: Om) -> None:
    """It reads only the first file, which has no tools, so it needs no rules for tools."""
    _, files, _ = alone
    tools = "omcli.observers.rules.tools"
    assert tools in loaded(om, *observing("-q", *files, jobs=1))
    assert tools not in loaded(om, *observing("-q", *files, "--db", om.folder / "other.db", jobs=2))


@pytest.mark.parametrize(
    "words", [["chat.jsonl"], ["chat.jsonl", "story.jsonl"], ["story.jsonl", "large.jsonl", "--jobs=1"]]
)
def test_little_to_read_starts_no_process(om: Om, words: list[str]) -> None:
    om.write("chat.jsonl", chat())
    om.write("story.jsonl", tide_story().text())
    om.write("large.jsonl", "\n".join(json.dumps({"role": "user", "content": "ok " * 400_000}) for _ in range(2)))
    tools = {"omcli.wiring.ahead"} if om.url else {"subprocess", "omcli.wiring.ahead"}  # psycopg loads it
    assert not tools & loaded(om, "observe", "-q", *words)


def test_files_that_were_read_before_are_not_read_ahead(alone: tuple[Om, list[str], Contents], om: Om) -> None:
    _, files, _ = alone
    om(*observing("-q", *files, jobs=2))
    (*_, last) = om(*observing("--json", *files, jobs=2)).document["files"]
    assert last["unread_bytes"] == Path(files[-1]).stat().st_size
    assert last["new_messages"] == 0


def test_messages_that_are_only_stored_are_the_same(alone: tuple[Om, list[str], Contents], om: Om) -> None:
    _, files, expected = alone
    om(*observing("-q", "--later", *files, jobs=2))
    stored = contents(om.place)
    assert stored["messages"] == expected["messages"]
    assert stored["identities"] == expected["identities"]
    assert not stored["observations"]


def test_om_consolidate_reads_ahead_too(alone: tuple[Om, list[str], Contents], om: Om) -> None:
    elsewhere, _, _ = alone
    place = ["consolidate", "-q", "--now", "2027-02-10T12:00:00Z", "--place", str(elsewhere.folder)]
    left = []
    for jobs in (1, 3):
        db = om.folder / f"{jobs}.db"
        om(*place, "--db", db, "--jobs", str(jobs), env={"OM_CONSOLIDATE_BACKUPS": "0"})
        left.append(contents(db))
    assert left[0]["observations"] == left[1]["observations"]
    assert left[0]["messages"] == left[1]["messages"]
    assert left[0]["batches"] == left[1]["batches"]


def test_the_number_of_processes_is_checked(om: Om) -> None:
    assert "--jobs" in om("observe", "--jobs", "0", stdin=chat(), code=2).stderr
    assert "OM_JOBS" in om("config", "get", "jobs", env={"OM_JOBS": "-1"}).stderr


def started(om: Om, files: list[str]) -> tuple[subprocess.Popen[bytes], list[int]]:
    """A run whose other processes have begun."""
    process = om.start(*observing("-q", *files, jobs=3))
    found = set[int]()

    def have_begun() -> bool:
        found.update(children(process.pid))
        return len(found) > 1 or process.poll() is not None

    wait_until(have_begun)
    return process, sorted(found)


@needs_proc
@pytest.mark.parametrize("which", [slice(1), *more_in_soak(slice(None), slice(1, None))], ids=str)
def test_what_a_killed_process_leaves_is_done_without_it(
    alone: tuple[Om, list[str], Contents], om: Om, which: slice
) -> None:
    _, files, expected = alone
    process, others = started(om, files)
    for pid in others[which]:
        os.kill(pid, signal.SIGKILL)
    _, stderr = process.communicate(timeout=300)
    assert (process.returncode, stderr) == (0, b"")
    assert contents(om.place) == expected


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=str)
def test_the_others_end_with_the_one_that_writes(
    alone: tuple[Om, list[str], Contents], om: Om, number: signal.Signals
) -> None:
    """Nothing is lost: the next run goes on, and every message is observed once."""
    _, files, expected = alone
    process, others = started(om, files)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=300)
    code = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    assert (process.returncode, stderr) in ((code, b""), (0, b""))
    wait_until(lambda: not any(map(is_running, others)))
    om(*observing("-q", *files, jobs=2))
    assert_covered_once(om.place)
    assert len(contents(om.place)["messages"]) == len(expected["messages"])
