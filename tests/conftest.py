"""Fixtures that several rings share."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.fake_provider import FakeModel

# How long an example takes says more about the machine, where programs are killed and raced beside it. A run tells of
# what was changed, so it has the same examples every time; `--hypothesis-profile=search` looks for others.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("om", settings.get_profile("search"), derandomize=True)
settings.load_profile("om")

# Where the tests run in the background of a shell, Ctrl-C is ignored from birth, by the programs they start as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_CLEARED = ("OM_", "ANTHROPIC_", "OPENAI_", "CLAUDE", "XDG_")
_CLEARED_NAMES = {
    "NO_COLOR", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "COLUMNS", "PYTHONUTF8", "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    # A proxy stands between a program and its model.
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
    # Hundreds of processes are faster when they need not compile.
    "PYTHONDONTWRITEBYTECODE",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a run of `om` left behind."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The JSON document on stdout."""
        document: dict[str, Any] = json.loads(self.stdout)
        return document

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The JSON Lines on stdout."""
        return [json.loads(line) for line in self.stdout.splitlines()]


class Om:
    """Runs `om` as a user does: one fresh process per command, in a clean environment, with a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / "store" / "memory.db"
        self.home = folder / "home"
        self.home.mkdir()

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a run sees, and nothing of the machine's settings."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_CLEARED) and name not in _CLEARED_NAMES
        }
        return {**kept, "HOME": str(self.home), "TERM": "dumb", "OM_DB": str(self.db), **(extra or {})}

    def command(self, *arguments: str | Path) -> list[str]:
        """The command line."""
        return [sys.executable, "-m", "omcli", *map(str, arguments)]

    def __call__(
        self,
        *arguments: str | Path,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        code: int | None = 0,
        seconds: float = 300,
    ) -> Ended:
        """Runs a command to its end; `code` is what it has to end with, None for whatever it likes.

        `seconds` is how long it may take.
        """
        ended = subprocess.run(
            self.command(*arguments),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            env=self.environment(env),
            cwd=cwd or self.folder,
            timeout=seconds,
            check=False,
        )
        run = Ended(code=ended.returncode, stdout=ended.stdout.decode(), stderr=ended.stderr.decode())
        told = f"om {' '.join(map(str, arguments))}\n{run.stdout[-2000:]}\n{run.stderr[-4000:]}"
        assert "Traceback" not in run.stderr, told
        assert code is None or run.code == code, f"ended with {run.code}, not {code}: {told}"
        return run

    def start(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Starts a command whose stdin, stdout and stderr are pipes."""
        return subprocess.Popen(
            self.command(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(env),
            cwd=self.folder,
        )

    def write(self, name: str, content: str | bytes) -> Path:
        """A file in the test's folder."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


@pytest.fixture
def om(tmp_path: Path) -> Om:
    """The `om` command, with its own store."""
    return Om(tmp_path)


@pytest.fixture(scope="session")
def new_om(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Om]:
    """Makes `om` commands with a new store each, for tests that share nothing and need many."""
    return lambda: Om(tmp_path_factory.mktemp("om"))


@pytest.fixture
def fake_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeModel]:
    """A model endpoint on the loopback that speaks both wires; the machine's keys and proxies are out of the way."""
    for name in (name for name in os.environ if name.startswith(_CLEARED) or name in _CLEARED_NAMES):
        monkeypatch.delenv(name)
    with FakeModel() as fake:
        yield fake
