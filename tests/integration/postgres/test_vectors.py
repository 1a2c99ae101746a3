"""Vectors on a server: its index finds what comparing all of them finds, and a server without one compares all."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from omcli.base.errors import BadConfiguration
from omcli.memory.observation import LogQuery
from omcli.memory.ports import Store
from omcli.postgres import PostgresStore
from omcli.postgres.roles import roles
from omcli.postgres.vectors import PostgresVectors
from omcli.sqlite.vectors import SqliteVectors
from tests.conftest import Om
from tests.contract.keeping import keep
from tests.fake_provider import KEY, FakeModel
from tests.material import COUNTER, NOW, row, said, session
from tests.postgres_server import PostgresServer

MODEL = "test/eight"
INDEXES = "SELECT relname FROM pg_class WHERE relname LIKE 'vectors_near_%' ORDER BY 1"
_random = random.Random(7)


def vector() -> list[float]:
    return [_random.gauss(0, 1) for _ in range(8)]


def fill(store: Store, number: int) -> None:
    """Add messages with vectors, and half as many rows."""
    keep(store, *(said(f"message {each}") for each in range(number)))
    store.rows.add(*(row(each, text=f"row {each}") for each in range(1, number // 2 + 1)))
    embed(store)


def embed(store: Store) -> None:
    places = store.vectors.missing(MODEL)
    texts = {part for parts in store.vectors.texts(places).values() for part in parts}
    store.vectors.put(MODEL, places, {text: vector() for text in sorted(texts)})


def database(url: str) -> str:
    return urlsplit(url).path[1:]


def scans(server: PostgresServer, url: str) -> int:
    """How often an index of vectors was read. Sessions that have ended are counted."""
    ((number,),) = server.run(
        "SELECT coalesce(sum(idx_scan), 0)::integer FROM pg_stat_user_indexes WHERE indexrelname LIKE 'vectors_near_%'",
        database=database(url),
    )
    return int(number)


def test_the_index_finds_the_nearest(postgres_server: PostgresServer, postgres_store_url: str) -> None:
    found = wanted = 0
    with PostgresStore.open(postgres_store_url, wait=1) as store:
        fill(store, 400)
        by_index, by_all = PostgresVectors(store.database, few=10), SqliteVectors(store.database)
        for _ in range(30):
            of = vector()
            ours, theirs = (each.nearest(MODEL, of, LogQuery(), most=10) for each in (by_index, by_all))
            for some, all_ in ((ours.messages, theirs.messages), (ours.rows, theirs.rows)):
                found += len(some.keys() & all_.keys())
                wanted += len(all_)
                assert all(abs(some[number] - all_[number]) < 1e-6 for number in some.keys() & all_.keys())
                assert list(some.values()) == sorted(some.values(), reverse=True)
        assert store.vectors.nearest(MODEL, of, LogQuery(), most=10) == theirs
    assert wanted > 300
    assert found / wanted > 0.95
    assert scans(postgres_server, postgres_store_url) >= 60


def test_what_few_of_many_selects_is_found(postgres_store_url: str) -> None:
    with PostgresStore.open(postgres_store_url, wait=1) as store:
        fill(store, 300)
        store.messages.append(session("other"), [said(f"other {n}") for n in range(20)], counter=COUNTER, now=NOW)
        embed(store)
        for few in (0, 10, 1000):
            found = PostgresVectors(store.database, few=few).nearest(MODEL, vector(), LogQuery(session="other"), most=5)
            assert found.messages
            assert min(found.messages) > 300
            assert not found.rows


@pytest.fixture
def without_extension(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a database for its owner, who may not add the extension."""
    owner = f"om_owner_{uuid.uuid4().hex}"
    postgres_server.run(f"CREATE ROLE {owner} LOGIN")
    with postgres_server.database() as url:
        postgres_server.run(f"ALTER DATABASE {database(url)} OWNER TO {owner}")
        yield postgres_server.url_of(database(url), user=owner)
    postgres_server.run(f"DROP ROLE {owner}")


def test_without_the_extension_all_are_compared_until_it_is_there(
    postgres_server: PostgresServer, without_extension: str
) -> None:
    name = database(without_extension)
    with PostgresStore.open(without_extension, wait=1) as store:
        assert isinstance(store, PostgresStore)
        fill(store, 20)
        of = vector()
        before = PostgresVectors(store.database, few=0).nearest(MODEL, of, LogQuery(), most=5)
        assert before == SqliteVectors(store.database).nearest(MODEL, of, LogQuery(), most=5)
        assert postgres_server.run(INDEXES, database=name) == []
        assert not store.vectors.has_index()
        with pytest.raises(BadConfiguration, match="no pgvector"):
            store.vectors.renew()
        postgres_server.run("CREATE EXTENSION vector", database=name)
        store.vectors.renew()
        assert store.vectors.has_index()
        assert postgres_server.run(INDEXES, database=name) == [("vectors_near_1",)]
        after = PostgresVectors(store.database, few=0).nearest(MODEL, of, LogQuery(), most=5)
        assert after.messages == pytest.approx(before.messages)
    assert scans(postgres_server, without_extension) > 0


@pytest.fixture
def shared(postgres_server: PostgresServer, postgres_store_url: str) -> Iterator[dict[str, str]]:
    """The URLs of a store for its owner, a writer, and a reader of one of two projects."""
    name, db = f"v{uuid.uuid4().hex[:12]}", database(postgres_store_url)
    urls = {"owner": postgres_store_url}
    postgres_server.run("CREATE EXTENSION vector SCHEMA pg_catalog", database=db)
    postgres_server.run(roles(name), database=db)
    for role in ("writer", "reader"):
        postgres_server.run(f"CREATE ROLE {name}_a_{role} LOGIN IN ROLE {name}_{role}")
        urls[role] = postgres_server.url_of(db, user=f"{name}_a_{role}")
    postgres_server.run(f"INSERT INTO om.access VALUES ('{name}_a_reader', '/work/app')", database=db)
    yield urls
    postgres_server.drop(db)
    for role in ("a_writer", "a_reader", "writer", "reader", "owner"):
        postgres_server.run(f"DROP ROLE {name}_{role}")


def test_a_writer_needs_no_more_rights_and_a_reader_finds_its_own(
    postgres_server: PostgresServer, shared: dict[str, str]
) -> None:
    with PostgresStore.open(shared["writer"], wait=1) as store:
        for project in ("app", "secret"):
            texts = [said(f"{project} {number}") for number in range(100)]
            store.messages.append(session(project, cwd=f"/work/{project}"), texts, counter=COUNTER, now=NOW)
        embed(store)
        everything = PostgresVectors(store.database, few=0).nearest(MODEL, vector(), LogQuery(), most=20).messages
        assert min(everything) <= 100 < max(everything)
    with PostgresStore.open(shared["reader"], wait=1, read_only=True) as store:
        for few in (0, 1000):
            found = PostgresVectors(store.database, few=few).nearest(MODEL, vector(), LogQuery(), most=20).messages
            assert found
            assert max(found) <= 100
    assert scans(postgres_server, shared["owner"]) > 1


@pytest.mark.parametrize("kind", ["postgres_url", "without_extension"])
def test_another_word_with_the_same_meaning_is_recalled(
    kind: str, request: pytest.FixtureRequest, postgres_server: PostgresServer, tmp_path: Path, fake_model: FakeModel
) -> None:
    """C14"""
    url = request.getfixturevalue(kind)
    om = Om(tmp_path, url)
    fake_model.synonyms = {"truck": "lorry"}
    env = {
        "OM_EMBEDDINGS_PROVIDER": "openai",
        "OM_EMBEDDINGS_MODEL": "made-up",
        "OM_EMBEDDINGS_BASE_URL": fake_model.url,
        "OPENAI_API_KEY": KEY,
    }
    talk = [*(f"tide {number}" for number in range(20)), "the tide took the lorry"]
    lines = (json.dumps({"role": "user", "content": text}) for text in talk)
    om("observe", "-q", om.write("talk.jsonl", "\n".join(lines)))
    assert om("recall", "truck", env=env, code=1).stdout == ""
    om("embed", env=env)
    # As if the text had so many parts that not all vectors are compared.
    parts = "SELECT seq, 1 + n, model, vector FROM om.message_vectors, generate_series(1, 2000) AS n WHERE seq = 1"
    postgres_server.run(f"INSERT INTO om.message_vectors {parts}", database=database(url))
    (best, *_) = om("recall", "truck", "--json", env=env).document["results"]
    assert best["text"].endswith("the tide took the lorry")
    assert bool(scans(postgres_server, url)) == (kind == "postgres_url")
    said = om("doctor", "-v", code=None).stdout
    assert ("reads all vectors" in said) == (kind == "without_extension")
    postgres_server.run("CREATE EXTENSION IF NOT EXISTS vector", database=database(url))
    om("doctor", "--fix", code=None)
    assert "reads all vectors" not in om("doctor", "-v", code=None).stdout
