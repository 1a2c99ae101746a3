"""Stores that keep the same promises: over a file, over an encrypted one, in memory, and on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from omcli.memory.ports import Store
from omcli.postgres import PostgresStore
from omcli.postgres.vectors import PostgresVectors
from omcli.sqlite import SqliteStore
from tests.fakes import MemoryStore, empty_store, encrypted_store

MakeStore = Callable[[Callable[[str], bool]], Store]


KINDS = ("file", "encrypted", "memory", "postgres")


@pytest.fixture(params=KINDS)
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeStore]:
    """Make a store that asks the given function if the owner of a lease is gone. That of the kind "pgvector" compares
    no vectors without the index.
    """
    with ExitStack() as opened:

        def make(is_gone: Callable[[str], bool]) -> Store:
            if request.param == "memory":
                return opened.enter_context(MemoryStore(is_gone=is_gone))
            if request.param in ("postgres", "pgvector"):
                url = request.getfixturevalue("postgres_url")
                store = opened.enter_context(PostgresStore.open(url, wait=1, is_gone=is_gone))
                if isinstance(store, PostgresStore) and request.param == "pgvector":
                    store.vectors = PostgresVectors(store.database, few=0)
                return store
            if request.param == "encrypted":
                pytest.importorskip("sqlcipher3")
            empty = encrypted_store() if request.param == "encrypted" else empty_store()
            (tmp_path / "om.db").write_bytes(empty)
            return opened.enter_context(SqliteStore.open(tmp_path / "om.db", wait=1, is_gone=is_gone))

        yield make


@pytest.fixture
def store(make_store: MakeStore) -> Store:
    return make_store(lambda _: False)


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[Store]:
    """Make a store over a file: only that has copies beside it."""
    (tmp_path / "om.db").write_bytes(empty_store())
    with SqliteStore.open(tmp_path / "om.db", wait=1) as opened:
        yield opened
