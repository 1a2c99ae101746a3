"""What workers leave on the disk: their log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from platformdirs import user_state_path

from omcli.base.errors import CannotCreate
from omcli.workers import WorkerRun, last_run, line, log_file, start

STORE = Path("/data/memory.db")


def test_a_folder_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotCreate, match=r"background\.log"):
        start(["--version"], tmp_path / "file" / "background.log")


def written(log: Path, *lines: WorkerRun | str, store: Path = STORE) -> None:
    with log.open("a") as stream:
        stream.writelines(f"{said if isinstance(said, str) else line(said, store)}\n" for said in lines)


def test_the_log_tells_of_the_last_worker_on_a_store(tmp_path: Path) -> None:
    """F97: of its end, where it has come to one; not of those that had nothing to do, nor of other stores."""
    log = tmp_path / "background.log"
    assert last_run(log, STORE) is None
    first, second = WorkerRun(at="1", owner="host:1:1"), WorkerRun(at="2", owner="host:2:1")
    written(log, "om: warning: …", first, '{"at":', '{"at":1}', '{"at":"0","store":"/data/memory.db"}', second)
    assert last_run(log, STORE) == second
    failed = WorkerRun(at="3", owner="host:1:1", ended=69, error="it is down")
    written(log, failed, WorkerRun(at="4", owner="host:2:1", ended=75))
    written(log, WorkerRun(at="5", owner="host:3:1", ended=0), store=STORE.with_name("other.db"))
    written(log, WorkerRun(at="6", owner="host:4:1", ended=1), "b: 2 observations")
    assert last_run(log, STORE) == failed
    written(log, *["said " * 100] * 1_000)
    assert last_run(log, STORE) is None


def test_the_log_lies_where_the_system_keeps_such_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As platformdirs says, which takes its time."""
    for said in ("", "/elsewhere/state", " "):
        monkeypatch.setenv("XDG_STATE_HOME", said)
        assert log_file(os.environ) == user_state_path("om", appauthor=False) / "background.log"
