"""A store that is shared by project: what its roles may read and write."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from omcli.base.errors import BadUsage, NotAllowed
from omcli.base.record import replace
from omcli.memory.message import Incoming
from omcli.memory.observation import LogQuery
from omcli.postgres import PostgresStore
from omcli.postgres.roles import POLICIES, UNCOUNTED, WITHHELD, roles
from tests.conftest import Om
from tests.material import COUNTER, NOW, row, row_id, said, session
from tests.postgres_server import PostgresServer

psycopg = pytest.importorskip("psycopg")

STORIES = Path(__file__).parents[2] / "stories"
SHARED = "/home/ada/src/parcel"
SESSION = "5f0c3c1e-7b1d-4e0a-9a57-2f6f5d1b8c44"
"""The session in the shared project."""
FOR_ALL = {table for table, condition in POLICIES.items() if condition == "TRUE"}
PASSWORD = "of-the-tests"
MODEL = "test/two"
TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'om'::regnamespace AND relkind = 'r' ORDER BY 1"
CATALOG = """
    SELECT 'table', oid::regclass::text, relowner::regrole::text, relacl::text, relrowsecurity::text FROM pg_class
        WHERE relnamespace = 'om'::regnamespace
    UNION ALL SELECT 'routine', oid::regprocedure::text, proowner::regrole::text, proacl::text, provolatile::text
        FROM pg_proc WHERE pronamespace = 'om'::regnamespace
    UNION ALL SELECT 'policy', tablename, policyname, roles::text || cmd, qual FROM pg_policies WHERE schemaname = 'om'
    UNION ALL SELECT 'column', attrelid::regclass::text, attname, atttypid::regtype::text, attstattarget::text
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace = 'om'::regnamespace
"""


class Shared:
    """A store in a new database, with its roles and users, who may log in."""

    def __init__(self, server: PostgresServer, database: str) -> None:
        self.server = server
        self.database = database
        self.name = f"t{uuid.uuid4().hex[:12]}"
        self.users: list[str] = []

    def url(self, user: str | None = None) -> str:
        """The URL for a user; the owner's without one."""
        return self.server.url_of(self.database, user=user, password=user and PASSWORD)

    def run(self, sql: str, *values: object, user: str | None = None) -> list[tuple[Any, ...]]:
        """Run SQL outside of om."""
        with closing(psycopg.connect(self.url(user), autocommit=True)) as to:
            done = to.execute(sql, values or None)
            return done.fetchall() if done.description else []

    def share(self) -> None:
        self.run(roles(self.name))

    def user(self, role: str | None = None, *projects: str, rights: str = "") -> str:
        """Make a user with a role, and with access to projects."""
        user = f"{self.name}_{uuid.uuid4().hex[:8]}"
        self.users.append(user)
        self.run(f"CREATE ROLE {user} LOGIN {rights} PASSWORD '{PASSWORD}'")
        if role is not None:
            self.run(f"GRANT {self.name}_{role} TO {user}")
        for project in projects:
            self.run("INSERT INTO om.access VALUES (%s::regrole, %s)", user, project)
        return user

    def tables(self) -> list[str]:
        return [table for (table,) in self.run(TABLES)]

    def seen(self, user: str | None = None) -> dict[str, list[str]]:
        """All rows of all tables as text, as far as the user sees them."""
        found = {
            table: self.run(f"SELECT t::text FROM om.{table} AS t ORDER BY 1", user=user) for table in self.tables()
        }
        return {table: [text for (text,) in rows] for table, rows in found.items()}


@contextmanager
def sharing(server: PostgresServer, template: str) -> Iterator[Shared]:
    name = server.create(template=template)
    shared = Shared(server, name)
    try:
        yield shared
    finally:
        server.drop(name)
        for role in (*shared.users, *(f"{shared.name}_{each}" for each in ("reader", "writer", "owner"))):
            server.run(f"DROP ROLE IF EXISTS {role}")


@pytest.fixture
def shared(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Shared]:
    """An empty store that is shared."""
    with sharing(postgres_server, postgres_template) as found:
        found.share()
        yield found


@pytest.fixture(scope="module")
def lived(
    postgres_server: PostgresServer, postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    """A shared store in which everything has happened, in several projects. What its users do leaves nothing."""
    with sharing(postgres_server, postgres_template) as found:
        found.share()
        om = Om(tmp_path_factory.mktemp("lived"), found.url(found.user("writer")))
        for story in sorted(STORIES.glob("*.json*")):
            om("observe", story)
        om("note", "The depot closes at noon.", "--type", "fact")
        om("reflect", "--global", code=None)
        om("forget", "--match", "lint", "--yes", code=None)
        om("prune", "--keep-last", "5", "--yes", code=None)
        om("undo")
        with PostgresStore.open(found.url(), wait=5) as store:
            places = store.vectors.missing(MODEL)
            parts = {part for parts in store.vectors.texts(places).values() for part in parts}
            store.vectors.put(MODEL, places, {part: [1.0, len(part)] for part in parts})
        yield found


# ---- reading


def test_each_table_is_shared_or_withheld(lived: Shared) -> None:
    assert sorted([*POLICIES, *WITHHELD, "access"]) == lived.tables()


def test_a_reader_sees_of_each_table_what_is_of_the_shared_project(lived: Shared) -> None:
    reader = lived.user("reader", SHARED)
    sessions = {n for (n,) in lived.run("SELECT number FROM om.sessions WHERE cwd = %s", SHARED)}
    (project,) = lived.run("SELECT number FROM om.projects WHERE path = %s", SHARED)[0]
    messages = {n for (n,) in lived.run("SELECT seq FROM om.messages WHERE session = ANY(%s)", list(sessions))}
    rows = {n for (n,) in lived.run("SELECT position FROM om.observations WHERE project = %s", project)}
    assert sessions
    assert len(messages) > 10
    assert len(rows) > 5

    def has(query: str) -> set[Any]:
        return {value for (value,) in lived.run(query, user=reader)}

    assert has("SELECT number FROM om.sessions") == sessions
    assert has("SELECT path FROM om.projects") == {SHARED}
    assert has("SELECT seq FROM om.messages") == has("SELECT seq FROM om.message_words") == messages
    assert has("SELECT message FROM om.identities") == messages
    assert set() < has("SELECT seq FROM om.message_vectors") <= messages
    assert set() < has("SELECT position FROM om.row_vectors") <= rows
    linked = "SELECT vector FROM om.message_vectors UNION SELECT vector FROM om.row_vectors"
    assert set() < has("SELECT number FROM om.vectors") == has(linked)
    assert len(has(linked)) < len(lived.run("SELECT 1 FROM om.vectors"))
    assert has("SELECT position FROM om.observations") == has("SELECT position FROM om.row_words") == rows
    assert has("SELECT observation FROM om.observation_sources") <= rows
    assert has("SELECT message FROM om.observation_sources") <= messages
    assert has("SELECT observation FROM om.observation_supports") <= rows
    for table in ("batches", "cursors", "message_counts"):
        assert has(f"SELECT session FROM om.{table}") == sessions
    for table in ("calls", "leases", "passed_over", "row_counts"):
        assert has(f"SELECT session FROM om.{table}") <= sessions
    assert has("SELECT author FROM om.observations") == has("SELECT number FROM om.authors") == {1}
    assert lived.run("SELECT 1 FROM om.operations")
    assert has("SELECT coalesce(session, project) FROM om.operations") <= {*sessions, project}


def test_nothing_of_other_projects_is_in_any_table(lived: Shared) -> None:
    texts = [
        text
        for (text,) in lived.run(
            "SELECT text FROM om.messages AS m JOIN om.sessions AS s ON s.number = m.session"
            " WHERE s.cwd IS DISTINCT FROM %s AND length(text) > 12"
            " UNION SELECT text FROM om.aside_messages WHERE length(text) > 12"
            " UNION SELECT o.text FROM om.observations AS o LEFT JOIN om.projects AS p ON p.number = o.project"
            " WHERE p.path IS DISTINCT FROM %s"
            " EXCEPT SELECT text FROM om.messages AS m JOIN om.sessions AS s ON s.number = m.session WHERE s.cwd = %s"
            " EXCEPT SELECT o.text FROM om.observations AS o JOIN om.projects AS p ON p.number = o.project"
            " WHERE p.path = %s",
            *(SHARED,) * 4,
        )
    ]
    assert len(texts) > 30
    found = "\n".join(line for rows in lived.seen(lived.user("reader", SHARED)).values() for line in rows)
    assert len(found) > 5000
    assert [text for text in texts if text.replace('"', '""') in found] == []


def test_a_reader_sees_nothing_that_was_forgotten_or_that_only_writers_need(lived: Shared) -> None:
    all_of_it, seen = lived.seen(), lived.seen(lived.user("reader", "/*", ""))
    assert [table for table in WITHHELD if seen[table]] == []
    assert all(all_of_it[table] for table in ("aside_messages", "tombstones", "message_holds", "bookmarks"))
    assert len(seen["messages"]) == len(all_of_it["messages"])
    assert len(seen["observations"]) == len(all_of_it["observations"])


def test_a_reader_to_whom_nothing_is_shared_sees_nothing(lived: Shared) -> None:
    seen = lived.seen(lived.user("reader"))
    assert {table for table, rows in seen.items() if rows} <= FOR_ALL


def test_others_see_not_even_the_schema(lived: Shared) -> None:
    with pytest.raises(NotAllowed):
        PostgresStore.open(lived.url(lived.user()), wait=1, read_only=True)


def test_the_verbs_that_read_work_for_a_reader(lived: Shared, tmp_path: Path) -> None:
    (tmp_path / "owner").mkdir()
    reader, owner = Om(tmp_path, lived.url(lived.user("reader", SHARED))), Om(tmp_path / "owner", lived.url())
    # Rows came from messages that are hidden from readers, because they were pruned.
    ours = [{**line, "message_ids": []} for line in owner("log", "--project", SHARED, "--jsonl").lines]
    assert len(ours) > 5
    assert [{**line, "message_ids": []} for line in reader("log", "--all", "--jsonl").lines] == ours
    assert "Redis" in reader("context", "--session", SESSION).stdout
    assert "tern" in owner("recall", "release", "--json").stdout
    assert "tern" not in reader("recall", "release", "--json", code=None).stdout
    assert "Redis" in reader("recall", "Redis").stdout
    assert reader("status", "--json").document["sessions"] == 1
    reader("history")


def test_figures_are_those_of_the_shared_project(lived: Shared) -> None:
    with PostgresStore.open(lived.url(lived.user("reader", SHARED)), wait=1, read_only=True) as store:
        status = store.sessions.status()
        assert (status.sessions, status.blocks) == (1, 0)
        assert status.messages < len(list(store.messages.all()))
        assert list(store.batches.all_buffered()) == []
        store.index.check(thoroughly=True)


SEEN = (
    ("/src/app", {"/src/app"}),
    ("/src/app/*", {"/src/app", "/src/app/sub"}),
    ("/src/*", {"/src/app", "/src/app/sub", "/src/apple"}),
    ("/*", {"/src/app", "/src/app/sub", "/src/apple"}),
    ("/src/ap_", set[str]()),
    ("/src/%", set[str]()),
    ("\\", set[str]()),
    ("*", set[str]()),
    ("", {None}),
)


@pytest.mark.parametrize(("project", "seen"), SEEN)
def test_a_project_is_a_folder_or_all_folders_below_one(shared: Shared, project: str, seen: set[str | None]) -> None:
    with PostgresStore.open(shared.url(), wait=1) as store:
        for cwd in ("/src/app", "/src/app/sub", "/src/apple", None):
            store.messages.append(session(str(cwd), cwd=cwd), [said(f"in {cwd}")], counter=COUNTER, now=NOW)
        store.rows.add(row(1, session=None, project=None))
    reader = shared.user("reader", project)
    assert {cwd for (cwd,) in shared.run("SELECT cwd FROM om.sessions", user=reader)} == seen
    assert {text for (text,) in shared.run("SELECT text FROM om.messages", user=reader)} == {
        f"in {cwd}" for cwd in seen
    }
    assert bool(shared.run("SELECT 1 FROM om.observations", user=reader)) is (None in seen)


def test_a_row_belongs_to_its_project_and_a_message_to_its_session_and_its_folder(shared: Shared) -> None:
    def said_in(cwd: str) -> Incoming:
        incoming = said(f"in {cwd}")
        return replace(incoming, message=replace(incoming.message, cwd=cwd))

    with PostgresStore.open(shared.url(), wait=1) as store:
        those = [said_in(cwd) for cwd in ("/src/app/sub", "/src/other", "/src/apple")]
        store.messages.append(session(), those, counter=COUNTER, now=NOW)
        store.rows.add(row(1), row(2, project="/src/other"), row(3, project=None), row(4, session=None))
        store.rows.add(row(5, session=None, project="/src/other"))

    def seen(*projects: str) -> tuple[list[str], list[int]]:
        with PostgresStore.open(shared.url(shared.user("reader", *projects)), wait=1, read_only=True) as store:
            texts = [kept.message.text for kept in store.messages.all()]
            ids = [logged.observation.id for logged in store.rows.log(LogQuery())]
            return texts, [number for number in range(9) if row_id(number) in ids]

    assert seen("/src/app") == (["in /src/app/sub"], [1, 3, 4])
    assert seen("/src/other") == ([], [2, 5])
    assert seen("/src/app", "/src/other") == (["in /src/app/sub", "in /src/other"], [1, 2, 3, 4, 5])


# ---- what is not asked for directly


def test_a_function_in_a_query_gets_only_rows_that_the_reader_sees(lived: Shared) -> None:
    heard: list[str] = []
    with closing(psycopg.connect(lived.url(lived.user("reader", SHARED)), autocommit=True)) as to:
        to.add_notice_handler(lambda notice: heard.append(str(notice.message_primary)))
        to.execute(
            "CREATE FUNCTION pg_temp.tell(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001"
            " AS $$BEGIN RAISE NOTICE '%', $1; RETURN FALSE; END$$"
        )
        to.execute("SELECT 1 FROM om.messages WHERE pg_temp.tell(text)")
        to.execute("SELECT 1 FROM om.message_words WHERE pg_temp.tell(words::text)")
        to.execute("SELECT 1 FROM om.sessions WHERE pg_temp.tell(cwd)")
        to.execute("SELECT 1 FROM om.row_words JOIN om.observations USING (position) WHERE pg_temp.tell(text)")
    mine = {text for (text,) in lived.run("SELECT text FROM om.messages", user=lived.users[-1])}
    assert SHARED in heard
    assert {text for text in heard if text in mine} == mine - {""}
    assert not any("tern" in text for text in heard if text.startswith("/"))


def test_estimates_do_not_tell_what_others_wrote(shared: Shared) -> None:
    with PostgresStore.open(shared.url(), wait=1) as store:
        those = [said("the plan is secret", identity=str(each), key=f"k{each}") for each in range(300)]
        store.messages.append(session(cwd="/src/other"), those, counter=COUNTER, now=NOW)
        store.vectors.put(MODEL, store.vectors.missing(MODEL), {"the plan is secret": [1.0, 2.0]})
    for table, columns in UNCOUNTED.items():  # as a store that was in use before
        for column in columns:
            shared.run(f"ALTER TABLE om.{table} ALTER COLUMN {column} SET STATISTICS -1")
    shared.run("ANALYZE")
    reader = shared.user("reader", "/src/app")

    def estimates(condition: str, *, table: str = "messages") -> Any:
        [(found,)] = shared.run(f"EXPLAIN (FORMAT JSON) SELECT * FROM om.{table} WHERE {condition}", user=reader)
        return found[0]["Plan"]["Plan Rows"]

    def differ() -> list[bool]:
        return [
            estimates("text = 'the plan is secret'") != estimates("text = 'the plan is public'"),
            estimates("text < 'the plan is'") != estimates("text < 'zzz'"),
            estimates("words @> '{secret}'", table="message_words")
            != estimates("words @> '{public}'", table="message_words"),
        ]

    assert any(differ())
    shared.share()
    for _ in range(2):
        assert not any(differ())
        shared.run("ANALYZE")
    assert shared.run("SELECT 1 FROM pg_stats WHERE schemaname = 'om'", user=reader) == []
    named = {(table, column) for table, columns in UNCOUNTED.items() for column in columns}
    kept = set(shared.run("SELECT tablename, attname FROM pg_stats WHERE schemaname = 'om'"))
    assert kept
    assert not kept & named
    assert "vectors_near_1" not in {table for table, _ in kept}
    assert shared.run("SELECT to_regclass('om.vectors_near_1') IS NOT NULL") == [(True,)]


# ---- writing


def test_a_reader_can_change_nothing(lived: Shared) -> None:
    reader = lived.user("reader", "/*", "")
    before = lived.seen()
    for table in lived.tables():
        (column,) = lived.run(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum = 1", f"om.{table}"
        )[0]
        for sql in (
            f"INSERT INTO om.{table} SELECT * FROM om.{table}",
            f"INSERT INTO om.{table} DEFAULT VALUES",
            f"UPDATE om.{table} SET {column} = {column}",
            f"DELETE FROM om.{table}",
            f"TRUNCATE om.{table}",
            f"SELECT * FROM om.{table} FOR UPDATE",
            f"ALTER TABLE om.{table} DISABLE ROW LEVEL SECURITY",
            f"DROP TABLE om.{table} CASCADE",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                lived.run(sql, user=reader)
    for sql in (
        "CREATE TABLE om.more ()",
        "SELECT om.note_unindexed()",
        "SELECT setval('om.messages_seq_seq', 1)",
        "SELECT nextval('om.messages_seq_seq')",
        f"SET ROLE {lived.name}_owner",
        f"SET ROLE {lived.name}_writer",
        f"GRANT {lived.name}_writer TO {reader}",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            lived.run(sql, user=reader)
    volatile = (
        "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'om'::regnamespace AND provolatile = 'v'"
    )
    functions = [function for (function,) in lived.run(volatile)]
    assert functions
    allowed = "SELECT has_function_privilege(%s, 'EXECUTE')"
    assert not any(lived.run(allowed, each, user=reader)[0][0] for each in functions)
    with PostgresStore.open(lived.url(reader), wait=1) as store, pytest.raises(NotAllowed):
        store.rows.add(row(1))
    assert lived.seen() == {**before, "access": lived.seen()["access"]}


def test_a_writer_can_do_everything_but_share_and_migrate(shared: Shared, tmp_path: Path) -> None:
    writer = shared.user("writer")
    om = Om(tmp_path, shared.url(writer))
    om("observe", STORIES / "claude_code_refactor.jsonl")
    om("note", "The depot closes at noon.")
    assert "Redis" in om("context", "--session", SESSION).stdout
    assert om("forget", "--match", "Redis", "--yes")
    assert "Redis" not in om("log", "--all").stdout
    om("undo")
    assert "Redis" in om("log", "--all").stdout
    om("reflect", "--global", code=None)
    om("consolidate", code=None)
    om("forget", "--match", "depot", "--yes", "--hard")
    om("prune", "--keep-last", "5", "--yes")
    om("doctor", code=None)
    with PostgresStore.open(shared.url(writer), wait=1) as store:
        store.index.check(thoroughly=True)
        store.database.renew_index()
        assert store.sessions.status().observations == len(list(store.rows.log(LogQuery())))
    for sql in (
        "INSERT INTO om.access VALUES (current_user::regrole, '/')",
        "UPDATE om.schema_version SET number = 1",
        "TRUNCATE om.messages",
        "ALTER TABLE om.messages DISABLE ROW LEVEL SECURITY",
        "DROP TABLE om.notices",
        "CREATE TABLE om.more ()",
        f"SET ROLE {shared.name}_owner",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            shared.run(sql, user=writer)


def test_who_reads_and_writes_sees_everything(shared: Shared) -> None:
    user = shared.user("writer")
    shared.run(f"GRANT {shared.name}_reader TO {user}")
    with PostgresStore.open(shared.url(user), wait=1) as store:
        store.messages.append(session(), [said("tide")], counter=COUNTER, now=NOW)
        assert store.sessions.status().messages == 1


# ---- giving and taking access


def test_running_it_again_changes_nothing(lived: Shared) -> None:
    reader = lived.user("reader", SHARED)
    before, seen = sorted(map(repr, lived.run(CATALOG))), lived.seen(reader)
    lived.share()
    assert sorted(map(repr, lived.run(CATALOG))) == before
    assert lived.seen(reader) == seen


def test_access_is_taken_away_at_once(lived: Shared) -> None:
    reader = lived.user("reader", SHARED)
    with PostgresStore.open(lived.url(reader), wait=1, read_only=True) as store:
        assert list(store.rows.log(LogQuery()))
        lived.run("DELETE FROM om.access WHERE member = %s::regrole", reader)
        assert list(store.rows.log(LogQuery())) == []
        lived.run(f"REVOKE {lived.name}_reader FROM {reader}")
        with pytest.raises(NotAllowed):
            list(store.rows.log(LogQuery()))
    with pytest.raises(NotAllowed):
        PostgresStore.open(lived.url(reader), wait=1, read_only=True)


def test_a_group_gives_access_to_its_members(lived: Shared) -> None:
    member, group = lived.user("reader"), lived.user(None, SHARED)
    count: Callable[[], int] = lambda: len(lived.run("SELECT 1 FROM om.messages", user=member))  # noqa: E731
    assert count() == 0
    lived.run(f"GRANT {group} TO {member}")
    assert count() > 10
    assert lived.run("SELECT member::text, project FROM om.access", user=member) == [(group, SHARED)]
    lived.run(f"REVOKE {group} FROM {member}")
    assert count() == 0


def test_access_of_a_user_who_is_gone_is_removed(shared: Shared) -> None:
    reader, other = shared.user("reader", "/src/app"), shared.user("reader", "/src/app")
    shared.run(f"DROP ROLE {reader}")
    assert shared.run("SELECT 1 FROM om.sessions", user=other) == []
    shared.share()
    assert shared.run("SELECT member::text FROM om.access") == [(other,)]


@pytest.mark.parametrize("project", ["/src/app/", "//"])
def test_a_project_that_no_session_can_have_is_refused(shared: Shared, project: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        shared.user("reader", project)


def test_an_owner_need_not_be_a_superuser(postgres_server: PostgresServer, postgres_template: str) -> None:
    with sharing(postgres_server, postgres_template) as shared:
        shared.run("DROP SCHEMA om CASCADE")
        owner = shared.user(rights="CREATEROLE")
        shared.run(f"ALTER DATABASE {shared.database} OWNER TO {owner}")
        with PostgresStore.open(shared.url(owner), wait=1) as store:
            store.messages.append(session(), [said("tide")], counter=COUNTER, now=NOW)
        for _ in range(2):
            shared.run(roles(shared.name), user=owner)
        with PostgresStore.open(shared.url(owner), wait=1) as store:
            assert store.sessions.status().messages == 1
        reader = shared.user("reader")
        shared.run("ALTER TABLE om.notices ADD COLUMN more text", user=owner)
        shared.run("INSERT INTO om.access VALUES (%s::regrole, '/src/app')", reader, user=owner)
        assert shared.run("SELECT text FROM om.messages", user=reader) == [("tide",)]
        shared.run(f"REVOKE {shared.name}_owner FROM {owner} GRANTED BY {owner} CASCADE")
        shared.run(f"ALTER DATABASE {shared.database} OWNER TO CURRENT_USER")


def test_without_a_store_nothing_is_done(postgres_server: PostgresServer, postgres_url: str) -> None:
    name = f"t{uuid.uuid4().hex[:12]}"
    with closing(psycopg.connect(postgres_url, autocommit=True)) as to:
        with pytest.raises(psycopg.errors.RaiseException, match="there is no memory"):
            to.execute(roles(name))
        to.execute("ROLLBACK")
    assert postgres_server.run(f"SELECT 1 FROM pg_roles WHERE rolname LIKE '{name}%'") == []


@pytest.mark.parametrize("name", ["", "a b", "x" * 57, "a'b", 'a"b', "Om", "a$$"])
def test_a_name_that_no_role_can_have_is_refused(name: str) -> None:
    with pytest.raises(BadUsage):
        roles(name)


def test_a_name_with_a_hyphen_is_quoted() -> None:
    assert 'GRANT "om-team_reader" TO bob' in roles("om-team")
