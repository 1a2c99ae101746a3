"""A program as a model: what programs do, and what becomes of those that do not end."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from omcli.base.errors import BadConfiguration, OmError, Unreachable, Unusable
from omcli.llm.model import Prompt, Reply
from omcli.providers.command import command

needs_realtime_signals = pytest.mark.skipif(sys.platform != "linux", reason="numbers of signals are Linux's")
PROMPT = Prompt(system="Rules.", content=("m1 14:32 user: low tide",), schema={"type": "object"}, name="n")


def ask(line: str, *, seconds: float = 60) -> Reply:
    return command(line, seconds=seconds).ask(PROMPT)


def shell(script: str) -> str:
    return shlex.join(["sh", "-c", script])


def test_the_prompt_is_text_rules_first() -> None:
    said = ask("cat").text
    assert said.startswith("Rules.\n\nReply with one JSON document")
    assert said.endswith('{"type":"object"}\n\nm1 14:32 user: low tide')


def test_no_shell_reads_the_command() -> None:
    assert ask("echo '$HOME' ; `x` | y").text == "$HOME ; `x` | y"


def test_a_program_need_not_read_what_it_is_told() -> None:
    """A pipe that nobody reads takes the writer with it."""
    large = Prompt(system="", content=("x" * 5_000_000,), schema={}, name="n")
    assert command("echo {}", seconds=60).ask(large).text == "{}"


def test_the_program_goes_by_its_name_and_its_arguments_are_not_told() -> None:
    """There may be a key among them."""
    program = command(shell("echo oops >&2; exit 3"), seconds=60)
    assert (program.name, program.model, program.takes_images) == ("command", "sh", False)
    with pytest.raises(Unreachable) as failed:
        program.ask(PROMPT)
    assert failed.value.message == "sh ended with exit code 3: oops"


@pytest.mark.parametrize("line", ["true", "false", "true 'a\0b'", "sh -c 'kill $$'"])
def test_whatever_becomes_of_it_signals_do_what_they_did(line: str) -> None:
    """Also in a program of somebody else's, which goes on afterwards."""
    before = [signal.getsignal(number) for number in signal.valid_signals()]
    with pytest.raises(OmError):
        ask(line)
    assert [signal.getsignal(number) for number in signal.valid_signals()] == before


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("exit 1", Unreachable, "exit code 1"),
        ("kill -9 $$", Unreachable, "SIGKILL"),
        pytest.param("kill -40 $$", Unreachable, "signal 40", marks=needs_realtime_signals),
        ("yes '' | head -c 5000 >&2; echo the cause >&2; echo >&2; exit 2", Unreachable, "exit code 2: the cause"),
        ("echo sk-ant-api03-Ab1-Ab1-Ab1-Ab1-Ab1-Ab1-Ab1-Ab1-Ab1-Ab1 >&2; exit 1", Unreachable, "[redacted:"),
        ("yes | head -c 900 | tr -d '\\n' >&2; exit 1", Unreachable, "…"),
        ("true", Unusable, "without a reply"),
        ("printf ' \\n\\n'", Unusable, "without a reply"),
        ("yes", Unusable, "more than 16777216 bytes"),
    ],
)
def test_a_program_that_fails_is_told_in_a_line(script: str, kind: type[OmError], said: str) -> None:
    """F73, S3.17."""
    with pytest.raises(kind) as failed:
        ask(shell(script))
    assert said in failed.value.message
    assert len(failed.value.message) <= 200
    assert "\n" not in failed.value.message
    assert failed.value.hint


@pytest.mark.parametrize("line", ["", "   ", "no-such-program-of-this-name --x", "'unclosed", "/etc/passwd"])
def test_a_command_that_is_none_is_told_before_it_is_needed(line: str) -> None:
    with pytest.raises(BadConfiguration):
        command(line, seconds=5)


def test_a_program_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    program = tmp_path / "model"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    with pytest.raises(BadConfiguration, match="model cannot be started"):
        ask(str(program))


@pytest.mark.parametrize(
    "script",
    [
        "sleep 300 & echo $! >{pid}; wait",
        "sleep 300 & echo $! >{pid}; exit 0",
        "trap '' TERM INT HUP; sleep 300 & echo $! >{pid}; echo half; wait",
        "sleep 300 >/dev/null 2>&1 & echo $! >{pid}; exec >&-; wait",
    ],
    ids=["waits", "leaves another", "ignores signals", "closes its stdout"],
)
def test_at_the_deadline_the_program_and_all_it_started_are_killed(tmp_path: Path, script: str) -> None:
    """F74."""
    pid = tmp_path / "pid"
    for seconds in (1, 10, 60):  # until it has come to start something, on a machine that is busy
        with pytest.raises(Unreachable, match=f"within {seconds} s"):
            ask(shell(script.replace("{pid}", str(pid))), seconds=seconds)
        if pid.exists() and pid.read_text().endswith("\n"):
            break
    until(lambda: not is_alive(int(pid.read_text())))


_ASKS = """
import signal, sys
from omcli.llm.model import Prompt
from omcli.providers.command import command
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
try:
    command(LINE, seconds=60).ask(Prompt(system="", content=("x",), schema={}, name="n"))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_ended_takes_its_program_with_it(tmp_path: Path, number: signal.Signals) -> None:
    """F93: nothing goes on behind the user's back."""
    pid = tmp_path / "pid"
    line = shell(f"trap '' INT; sleep 300 & echo $! >{pid}.new; mv {pid}.new {pid}; wait")
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", _ASKS.replace("LINE", repr(line))], cwd=root) as asking:
        until(pid.exists)
        asking.send_signal(number)
        assert asking.wait(timeout=60) == (0 if number is signal.SIGINT else 143)
    until(lambda: not is_alive(int(pid.read_text())))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")
    except (ProcessLookupError, FileNotFoundError):
        return False


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def test_children_that_a_program_leaves_behind_end_with_it(tmp_path: Path) -> None:
    """Also those that have closed the stdout of a program that ended well."""
    pid = tmp_path / "pid"
    child = f"sh -c 'echo $$ > {pid}; exec sleep 600' >/dev/null 2>&1 &"
    script = f"{child} while [ ! -s {pid} ]; do sleep 0.01; done; echo hello"
    assert ask(shell(script)).text == "hello"
    left, deadline = int(pid.read_text()), time.monotonic() + 60
    while _runs(left):
        assert time.monotonic() < deadline, "the child lives on"
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    """Whether a process runs. One that has ended and waits for its parent to notice does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
