"""Inputs without an end: refused, or heeding signals with bounded memory (XE6)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Om
from tests.e2e.background import wait_until
from tests.soak import first_only

LIMIT = 64 << 20
"""Bytes of a line that are read as one."""
MEGABYTE = b"x" * (1 << 20)
OPENING = '{"role":"user","content":"Use port 5433."}\n{"role":"user","content":"'


@pytest.mark.parametrize("command", [["observe"], ["observe", "--format", "text"], ["compact"]], ids=" ".join)
def test_an_endless_first_line_is_refused(om: Om, command: list[str]) -> None:
    """XE6, in a process, which would take all memory."""
    run = om.process(*command, "/dev/zero", code=65)
    assert "/dev/zero: its first line is longer than 64 MB" in run.stderr


@pytest.mark.parametrize("command", [["import", "--format", "zora"], ["apply"], ["tokens"]], ids=" ".join)
def test_an_endless_document_is_refused(om: Om, command: list[str]) -> None:
    """XE6."""
    run = om.process(*command, "/dev/zero", code=65)
    assert "/dev/zero: it is larger than 256 MB" in run.stderr


def test_an_endless_note_is_refused(om: Om) -> None:
    """XE6."""
    with Path("/dev/zero").open("rb") as zeros:
        ended = subprocess.run(
            om.command("note", "-"), stdin=zeros, capture_output=True, env=om.environment(), check=False
        )
    assert ended.returncode == 65
    assert b"it is larger than 256 MB" in ended.stderr


@pytest.mark.parametrize(
    ("command", "sent", "code", "limits"),
    [
        (["observe", "-"], signal.SIGINT, 130, 4),
        (["observe", "--later", "-"], signal.SIGTERM, 143, 1.2),
        (["compact", "-"], signal.SIGINT, 130, 1.2),
    ],
)
def test_signals_are_heeded_within_an_endless_line(
    om: Om, command: list[str], sent: signal.Signals, code: int, limits: float
) -> None:
    """XE6: when the last byte is in the pipe, om has read so many times the limit, and has not kept it."""
    process = om.start(*command)
    assert process.stdin is not None
    process.stdin.write(OPENING.encode())
    for _ in range(round(limits * (LIMIT >> 20))):
        process.stdin.write(MEGABYTE)
    process.stdin.flush()
    peak = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    process.send_signal(sent)
    assert process.wait(timeout=60) == code
    assert peak is None or int(peak[1]) << 10 < 4 * LIMIT
    process.communicate()


@pytest.mark.parametrize("times", first_only([1, 30]))
def test_a_signal_is_heeded_while_there_is_something_to_read(om: Om, times: int) -> None:
    """XE6: it comes while om reads what is in the pipe, and then nothing more does."""
    for _ in range(times):
        feeding = subprocess.Popen(["sh", "-c", f"printf '%s' '{OPENING}'; exec cat /dev/zero"], stdout=subprocess.PIPE)
        process = subprocess.Popen(om.command("compact", "-"), stdin=feeding.stdout, env=om.environment())
        counts = Path(f"/proc/{process.pid}/io")
        wait_until(lambda: not counts.exists() or int(counts.read_text().split()[1]) > 1.2 * LIMIT)  # noqa: B023
        for each in (process, feeding):
            each.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, each.pid, os.WSTOPPED | os.WNOWAIT)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        assert process.wait(timeout=60) == 130
        feeding.kill()
        feeding.communicate()


def test_a_line_that_is_too_long_is_told_of_and_costs_nothing_else(om: Om) -> None:
    """XE6, invariant 10."""
    path = om.folder / "t.jsonl"
    with path.open("wb") as file:
        file.write(json.dumps({"role": "user", "content": "Use port 5433."}).encode() + b'\n{"role":"user","content":"')
        for _ in range((LIMIT >> 20) + 1):
            file.write(MEGABYTE)
        file.write(b'"}\n' + json.dumps({"role": "user", "content": "Use port 5434."}).encode() + b"\n")
    for new in (2, 0):
        run = om("observe", path, "--json")
        report = run.document["files"][0]
        assert (report["messages"], report["new_messages"], report["skipped"]) == (2, new, {"too-long": 1})
    assert "1 line skipped: too-long 1" in om("observe", path, "--strict", code=65).stderr
    assert "5434" in om("log").stdout
