"""What workers leave on the disk: their places, and their log."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from platformdirs import user_state_path

from omcli.memory.errors import CannotCreate
from omcli.workers.log import Ran, last_run, line, log_file, opened
from omcli.workers.slots import Slots

STORE = Path("/data/memory.db")
HOLD = """
import subprocess, sys
from pathlib import Path
from omcli.workers.slots import Slots
with Slots(Path(sys.argv[1]), Path(sys.argv[2])).taken("s") as is_ours:
    child = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
    print(int(is_ours), child.pid, flush=True)
    sys.stdin.read()
"""


@contextmanager
def holding(folder: Path, store: Path) -> Iterator[tuple[subprocess.Popen[str], bool]]:
    """Another process at the place of session `s`, and whether it got that; a program that it has started stays."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    is_held, child = map(int, process.stdout.readline().split())
    try:
        yield process, bool(is_held)
    finally:
        os.kill(child, 9)
        process.kill()
        process.communicate()


def test_a_place_is_one_process_s_and_free_when_that_is_gone(tmp_path: Path) -> None:
    """F23, F24: killed as well, and although what it has started is still there; of that session of that store."""
    with closing(Slots(tmp_path / "state", STORE)) as slots, holding(tmp_path / "state", STORE) as (process, is_first):
        assert is_first
        assert not slots.is_free("s")
        assert slots.is_free("another session")
        with closing(Slots(tmp_path / "state", STORE.with_name("other.db"))) as others:
            assert others.is_free("s")
        process.kill()
        process.wait()
        with slots.taken("s") as is_ours:
            assert is_ours
            with holding(tmp_path / "state", STORE) as (_, is_second):
                assert not is_second
        with holding(tmp_path / "state", STORE) as (_, is_third):
            assert is_third
    assert (tmp_path / "state" / "workers.lock").stat().st_size == 0


def test_a_store_has_one_name(tmp_path: Path) -> None:
    """However it is spelt, and through links."""
    store = tmp_path / "memory.db"
    link = tmp_path / "link.db"
    link.symlink_to(store)
    with closing(Slots(tmp_path, link)) as slots, holding(tmp_path, store):
        assert not slots.is_free("s")


def test_a_folder_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotCreate, match=r"workers\.lock"):
        Slots(tmp_path / "file", STORE)
    with pytest.raises(CannotCreate, match=r"background\.log"):
        opened(tmp_path / "file" / "background.log")


def written(log: Path, *lines: Ran | str, store: Path = STORE) -> None:
    with log.open("a") as stream:
        stream.writelines(f"{said if isinstance(said, str) else line(said, store)}\n" for said in lines)


def test_the_log_tells_of_the_last_worker_on_a_store(tmp_path: Path) -> None:
    """F97: of its end, where it has come to one; not of those that had nothing to do, nor of other stores."""
    log = tmp_path / "background.log"
    assert last_run(log, STORE) is None
    first, second = Ran(at="1", owner="host:1:1"), Ran(at="2", owner="host:2:1")
    written(log, "om: warning: …", first, '{"at":', '{"at":1}', '{"at":"0","store":"/data/memory.db"}', second)
    assert last_run(log, STORE) == second
    failed = Ran(at="3", owner="host:1:1", ended=69, error="it is down")
    written(log, failed, Ran(at="4", owner="host:2:1", ended=75))
    written(log, Ran(at="5", owner="host:3:1", ended=0), store=STORE.with_name("other.db"))
    written(log, Ran(at="6", owner="host:4:1", ended=1), "b: 2 observations")
    assert last_run(log, STORE) == failed
    written(log, *["said " * 100] * 1_000)
    assert last_run(log, STORE) is None


def test_the_log_lies_where_the_system_keeps_such_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As platformdirs says, which takes its time."""
    for said in ("", "/elsewhere/state", " "):
        monkeypatch.setenv("XDG_STATE_HOME", said)
        assert log_file(os.environ) == user_state_path("om", appauthor=False) / "background.log"
