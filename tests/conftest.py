"""Fixtures that several rings share."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

import pytest
from hypothesis import HealthCheck, Phase, settings

import omcli
from omcli.settings.settings import ServerUrl
from omcli.sqlite import SqliteStore
from omcli.wiring.policies import StoreOnServer
from tests.command_line import Ended, run_here
from tests.e2e.contents import exists
from tests.fake_provider import FakeModel
from tests.postgres_server import (
    PostgresServer,
    choose_folder,
    postgres_server,
    postgres_store_url,
    postgres_template,
    postgres_url,
    stop_at_end,
)

__all__ = ["Om", "postgres_server", "postgres_store_url", "postgres_template", "postgres_url"]

# How long an example takes says more about the machine, where programs are killed and raced beside it. Every run has
# the same examples, so that it tells of what was changed. A failing one is only made smaller by
# `--hypothesis-profile=shrink`, which may take minutes; `search` looks for other examples as well, five times as many.
settings.register_profile(
    "search", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True, max_examples=300
)
settings.register_profile("shrink", settings.get_profile("search"), derandomize=True, max_examples=100)
settings.register_profile(
    "om",
    settings.get_profile("shrink"),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    max_examples=60,
    report_multiple_bugs=False,
)
settings.load_profile("om")

_IN_MEMORY = "/dev/shm"
"""Where the tests' folders are, if it is there: on a disk every commit and every close of a store waits."""
_ROOM = 2 * 1024**3
_GARBAGE = 50_000
"""Number of new objects after which garbage is collected between tests."""

STORE = "OM_TEST_STORE"
"""Variable that, if it is `postgres`, has the stores of `Om` in databases of a server."""
SEED = "OM_TEST_SEED"
"""Variable with the seed of `chance` in soak tests; they print theirs."""

# Where the tests run in the background of a shell, Ctrl-C is ignored from birth, by the programs they start as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_FEW_AUTHORITIES = {"SSL_CERT_FILE": str(Path(__file__).parent / "integration" / "certificates" / "nobody.pem")}
"""The one authority that certificates are checked by. All those of the machine would be read for each request, which
takes longer than a whole run.
"""

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


class Om:
    """Runs `om` commands in a clean environment, with a store of its own."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        """With a `url`, the store is in that database, and not in the file `db`. `place` is the one where it is."""
        self.folder = folder
        self.url = url
        self.db = folder / "store" / "memory.db"
        self.place = url or self.db
        self.home = folder / "home"
        self.home.mkdir()
        self.program = [sys.executable, "-m", "omcli"]
        self.argv0 = str(Path(omcli.__file__).with_name("__main__.py"))
        self._kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_CLEARED) and name not in _CLEARED_NAMES
        }

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a run sees, and nothing of the machine's settings."""
        return {
            **self._kept,
            "HOME": str(self.home),
            "TERM": "dumb",
            "PAGER": "",
            "OM_DB": str(self.place),
            **_FEW_AUTHORITIES,
            **(extra or {}),
        }

    def command(self, *arguments: str | Path) -> list[str]:
        """The command line of a process."""
        return [*self.program, *map(str, arguments)]

    def __call__(
        self,
        *arguments: str | Path,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        code: int | None = 0,
        stdout: TextIO | None = None,
    ) -> Ended:
        """Run a command in this process, as `omcli.__main__` does; `code` is the exit code expected, None for any."""
        return run_here(
            self.argv0,
            list(map(str, arguments)),
            stdin=stdin,
            env=self.environment(env),
            cwd=cwd or self.folder,
            stdout=stdout,
        ).expected(code)

    def process(
        self,
        *arguments: str | Path,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        code: int | None = 0,
        seconds: float = 300,
    ) -> Ended:
        """Run a command in a process of its own, which may take so many seconds."""
        ended = subprocess.run(
            self.command(*arguments),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            env=self.environment(env),
            cwd=cwd or self.folder,
            timeout=seconds,
            check=False,
        )
        return Ended(
            words=tuple(map(str, arguments)),
            code=ended.returncode,
            stdout=ended.stdout.decode(),
            stderr=ended.stderr.decode(),
        ).expected(code)

    @property
    def has_store(self) -> bool:
        """Whether a store was made, even an empty one."""
        return exists(self.place)

    @property
    def spool(self) -> Path:
        """The folder of what could not be stored."""
        if self.url is None:
            return self.db.with_name(f"{self.db.name}.spool")
        place = StoreOnServer(ServerUrl(self.url), wait=0).spool_path
        return self.home / ".local" / "state" / "om" / "servers" / f"{place.name}.spool"

    def open(self, *, wait: float = 1) -> SqliteStore:
        """Open the store."""
        if self.url is None:
            return SqliteStore.open(self.db, wait=wait)
        from omcli.postgres import PostgresStore

        return PostgresStore.open(self.url, wait=wait)

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
def om(tmp_path: Path, request: pytest.FixtureRequest) -> Om:
    """The `om` command, with its own store."""
    return Om(tmp_path, request.getfixturevalue("postgres_url") if _is_on_server() else None)


@pytest.fixture(scope="session")
def new_om(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Callable[[], Om]]:
    """Makes `om` commands with a new store each, for tests that share nothing and need many."""
    with ExitStack() as used:

        def make() -> Om:
            folder = tmp_path_factory.mktemp("om")
            if not _is_on_server():
                return Om(folder)
            server: PostgresServer = request.getfixturevalue("postgres_server")
            return Om(folder, used.enter_context(server.database()))

        yield make


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is about a file if the stores are on a server."""
    if _is_on_server():
        for item in items:
            if (mark := item.get_closest_marker("file_store")) is not None:
                item.add_marker(pytest.mark.skip(reason=f"about a store in a file: {mark.args[0]}"))


def _is_on_server() -> bool:
    return os.environ.get(STORE) == "postgres"


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers: other ones in every run of a soak test, the same in every run of another test."""
    seed = os.environ[SEED] if request.node.get_closest_marker("soak") else "0"
    print(f"{SEED}={seed}")
    return random.Random(f"{seed} {request.node.name}")


def pytest_configure() -> None:
    """Choose a seed and a place for the tests' folders, for the workers of this run as well."""
    os.environ.setdefault(SEED, str(random.SystemRandom().randrange(10**9)))
    if _is_suitable(_IN_MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _IN_MEMORY)
        tempfile.tempdir = os.environ["PYTEST_DEBUG_TEMPROOT"]
    choose_folder()


def pytest_unconfigure() -> None:
    stop_at_end()


def _is_suitable(folder: str) -> bool:
    """True if a folder can be written, has room for all that the tests leave, and starts programs."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK) and found.f_bavail * found.f_frsize > _ROOM and not found.f_flag & os.ST_NOEXEC


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are processors, since some tests wait for a deadline."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Keep thousands of tests out of every later search for garbage. None is collected while a test runs: a finalizer
    that happens to run at the bottom of a deep recursion fails.
    """
    gc.freeze()
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Search for garbage as rarely as `om` does, between tests."""
    if gc.get_count()[0] > _GARBAGE:
        gc.collect()


def pytest_report_header() -> str:
    return f"soak tests: {SEED}={os.environ[SEED]}"


@pytest.fixture
def fake_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeModel]:
    """A model endpoint on the loopback that speaks both wires; the machine's keys and proxies are out of the way."""
    for name in (name for name in os.environ if name.startswith(_CLEARED) or name in _CLEARED_NAMES):
        monkeypatch.delenv(name)
    for name, value in _FEW_AUTHORITIES.items():
        monkeypatch.setenv(name, value)
    with FakeModel() as fake:
        yield fake
