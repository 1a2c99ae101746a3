"""A memory that several people share: who stored a session, wrote a row and did an operation."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from omcli.sqlite.connection import migrate, steps
from omcli.sqlite.dialect import prepare
from tests.command_line import Ended
from tests.conftest import Om

HERE = os.uname().nodename
BEFORE = 19
"""The last schema without authors."""
TALK = "User: Deploy the ferry app with `make ship` only, never by hand.\nAssistant: Understood.\n"
OLD = (
    "INSERT INTO sessions (id, agent, seen_at) VALUES ('old', 'pi', '2026-03-02T09:00:00.000Z')",
    """INSERT INTO operations (verb, at, outcome, fingerprint, figures)
        VALUES ('prune', '2026-03-02T09:00:00.000Z', 'done', '', '{}')""",
)


class Team:
    """People who run `om` on one store."""

    def __init__(self, om: Om) -> None:
        self.om = om

    def __call__(self, name: str, *words: str | Path, **more: Any) -> Ended:
        return self.om(*words, env={"OM_AUTHOR": name}, **more)


@pytest.fixture(params=["file", "server"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Team:
    return Team(Om(tmp_path, None if request.param == "file" else request.getfixturevalue("postgres_url")))


def names(rows: list[dict[str, Any]]) -> list[str | None]:
    assert all(("author" in row) == ("machine" in row) for row in rows)
    assert {row["machine"] for row in rows if "machine" in row} <= {HERE}
    return [row.get("author") for row in rows]


def test_what_is_written_names_its_author(team: Team) -> None:
    om = team.om
    talk = om.write("talk.txt", TALK)
    team("ann", "observe", talk, "--session", "ferry-talk")
    team("bob", "note", "The depot closes at noon.", "--session", "bobs-notes")
    team("bob", "observe", talk, "--session", "ferry-talk")
    rows = om("log", "--json").document["observations"]
    assert names(rows) == ["ann"] * (len(rows) - 1) + ["bob"]
    found = {each["id"]: each for each in om("sessions", "--json").document["sessions"]}
    assert names([found["ferry-talk"], found["bobs-notes"]]) == ["ann", "bob"]
    rule = om("why", "make ship", "--json").document["rules"][0]
    assert names([rule["row"], rule["session"]]) == ["ann", "ann"]


def test_forgetting_is_for_everyone_and_says_who_did_it(team: Team) -> None:
    noted = team("ann", "note", "The depot closes at noon.", "--json").document["observation"]
    assert "1 row forgotten" in team("bob", "forget", noted["id"], "--yes").stderr
    assert team.om("log").stdout == ""
    team("ann", "undo")
    assert names(team.om("history", "--json").document["operations"]) == ["ann", "bob"]
    assert names(team.om("log", "--json").document["observations"]) == ["ann"]


def test_text_names_authors_once_there_are_several(team: Team) -> None:
    om = team.om
    talk = om.write("talk.txt", TALK)
    team("ann", "observe", talk, "--session", "ferry-talk")
    team("ann", "forget", "--match", "never by hand", "--yes")
    commands = (("history",), ("sessions",), ("why", "make ship"), ("show", om("log").stdout[:8]))
    team("ann", "undo")
    for words in commands:
        assert "ann" not in om(*words, code=None).stdout
    team("bob", "note", "The depot closes at noon.")
    by = f"ann at {HERE}"
    assert om("history").stdout.splitlines()[0].split() == ["NUMBER", "WHEN", "WHAT", "BY", "WHERE", "RESULT", "STATE"]
    assert om("history").stdout.count(by) == 2
    assert by in om("sessions").stdout
    assert f"by {by}" in om("why", "make ship").stdout
    assert f"author        {by}" in om("show", om("log").stdout[:8]).stdout


def test_only_what_one_author_stored(team: Team) -> None:
    om = team.om
    talk = om.write("talk.txt", TALK)
    team("ann", "observe", talk, "--session", "ferry-talk")
    team("ann", "observe", "-", "--later", "--session", "later-talk", stdin="User: The ferry to Ostend is late.")
    team("bob", "note", "The ferry depot closes at noon.", "--session", "bobs-notes")
    assert "depot" not in om("log", "--author", "ann").stdout
    assert om("log", "--author", "bob", "-n", "5").stdout.count("\n") == 1
    found = om("sessions", "--author", "ann", "--json").document["sessions"]
    assert {each["id"] for each in found} == {"ferry-talk", "later-talk"}
    assert om("sessions", "--author", "ann", "-n", "1").stdout.count("\n") == 2
    recalled = om("recall", "ferry", "--author", "ann").stdout
    assert [word in recalled for word in ("make ship", "Ostend", "depot")] == [True, True, False]
    recalled = om("recall", "ferry", "--author", "bob").stdout
    assert [word in recalled for word in ("make ship", "Ostend", "depot")] == [False, False, True]
    for words in (("log",), ("recall", "ferry")):
        run = om(*words, "--author", "cid", code=None)
        assert (run.stdout, "nothing here was stored by cid" in run.stderr) == ("", True)
    assert "no sessions by cid" in om("sessions", "--author", "cid").stderr


def test_a_store_from_before_has_no_authors_until_somebody_writes(om: Om) -> None:
    om.db.parent.mkdir()
    with closing(prepare(sqlite3.connect(om.db, isolation_level=None))) as connection:
        migrate(connection, steps()[:BEFORE], path=om.db)
        for statement in OLD:
            connection.execute(statement)
    for _ in range(2):
        assert names(om("sessions", "--json").document["sessions"]) == [None]
        assert names(om("history", "--json").document["operations"]) == [None]
        om("note", "The depot closes at noon.", "--session", "old")
    assert names(om("sessions", "--json").document["sessions"]) == [None], "who first stored it is not known"
    assert "BY" not in om("history").stdout


def test_a_server_from_before_has_no_authors_until_somebody_writes(tmp_path: Path, postgres_url: str) -> None:
    from omcli.postgres.connection import MIGRATIONS, connect  # noqa: PLC0415 - psycopg may be missing
    from omcli.postgres.connection import migrate as migrate_server  # noqa: PLC0415

    folder = tmp_path / "steps"
    folder.mkdir()
    for step in MIGRATIONS.glob(f"00{BEFORE}_*.sql"):
        (folder / step.name).write_bytes(step.read_bytes())
    with closing(connect(postgres_url)) as connection:
        migrate_server(connection, name="", wait=5, folder=folder)
        for statement in OLD:
            connection.execute(statement)
    team = Team(Om(tmp_path, postgres_url))
    team("ann", "note", "The depot closes at noon.")
    assert names(team.om("sessions", "--json").document["sessions"]) == [None]
    assert names(team.om("history", "--json").document["operations"]) == [None]
    assert names(team.om("log", "--json").document["observations"]) == ["ann"]


# ---- who


def author(om: Om, **env: str) -> str:
    om("note", "The depot closes at noon.", env=env)
    found: str = om("log", "-n", "1", "--json").document["observations"][0]["author"]
    return found


def test_the_author_is_the_user_unless_it_is_set(om: Om) -> None:
    assert author(om, LOGNAME="dora", USER="emil") == "dora"
    assert author(om, LOGNAME="", USER="emil") == "emil"
    assert author(om, LOGNAME="", USER="")
    assert author(om, LOGNAME="dora", OM_AUTHOR="night  shift\n") == "night shift"
    om("config", "set", "author", "fleet-7")
    assert author(om, LOGNAME="dora") == "fleet-7"
    assert om("config", "get", "author").stdout == "fleet-7\n"


def test_a_project_cannot_say_who_writes(om: Om) -> None:
    om.write(".om.toml", 'author = "mallory"\n')
    run = om("note", "The depot closes at noon.", env={"LOGNAME": "dora"})
    assert "a project file may not set `author`" in run.stderr
    assert om("log", "--json").document["observations"][0]["author"] == "dora"


# ---- other machines


def at(om: Om, place: str, *words: str | Path, stdin: str = "") -> str:
    """Run a command on the store of a machine, and return its output. Each is used by one person."""
    return om(*words, "--db", om.folder / f"{place}.db", env={"OM_AUTHOR": place}, stdin=stdin).stdout


def exported(om: Om, place: str) -> str:
    return at(om, place, "export", "--to", "jsonl")


@pytest.fixture
def exports(om: Om) -> tuple[str, str]:
    """What Ann and Bob export, who observed the same talk and did something of their own."""
    talk = om.write("talk.txt", TALK)
    for name in ("bob", "ann"):
        at(om, name, "observe", talk, "--session", "ferry-talk")
        at(om, name, "note", f"The depot of {name} closes at noon.")
        at(om, name, "forget", "--match", f"depot of {name}", "--yes")
    return exported(om, "ann"), exported(om, "bob")


def without_authors(export: str) -> str:
    """An export as earlier versions wrote it."""
    records = [json.loads(line) for line in export.splitlines()]
    kept = ({name: value for name, value in each.items() if name not in ("author", "machine")} for each in records)
    return "".join(f"{json.dumps(each, ensure_ascii=False, separators=(',', ':'))}\n" for each in kept)


def test_an_export_keeps_authors(om: Om, exports: tuple[str, str]) -> None:
    ann, bob = exports
    written = [each for each in map(json.loads, ann.splitlines()) if each["record"] in ("session", "row", "operation")]
    assert set(names(written)) == {"ann"}
    at(om, "cid", "import", "-", stdin=ann)
    assert exported(om, "cid") == ann
    at(om, "cid", "import", "-", stdin=bob)
    history = json.loads(at(om, "cid", "history", "--json"))["operations"]
    assert names(history) == ["ann", "bob"]


def test_stores_that_import_each_other_agree_on_authors(om: Om, exports: tuple[str, str]) -> None:
    ann, bob = exports
    at(om, "ann", "import", "-", stdin=bob)
    at(om, "bob", "import", "-", stdin=ann)
    assert exported(om, "ann") == exported(om, "bob")
    for place, other in (("cid", bob), ("dora", ann)):
        for text in (other, ann, bob):
            at(om, place, "import", "-", stdin=text)
    assert exported(om, "cid") == exported(om, "dora") == exported(om, "ann")
    (session,) = json.loads(at(om, "cid", "sessions", "--json"))["sessions"]
    assert session["author"] == "ann", "both stored it"


def test_an_export_of_an_earlier_version_has_none(om: Om, exports: tuple[str, str]) -> None:
    old = without_authors(exports[0])
    at(om, "cid", "import", "-", stdin=old)
    assert exported(om, "cid") == old
    at(om, "cid", "import", "-", stdin=exports[0])
    assert exported(om, "cid") == exports[0]
    at(om, "ann", "import", "-", stdin=old)
    assert exported(om, "ann") == exports[0]


@pytest.mark.parametrize("name", ["", "two  spaces", "a\nline", 7])
def test_an_author_that_cannot_be_printed_is_refused(om: Om, exports: tuple[str, str], name: object) -> None:
    wrong = exports[0].replace('"author":"ann"', f'"author":{json.dumps(name)}')
    run = om("import", "-", "--db", om.folder / "cid.db", stdin=wrong, code=65)
    assert "is not a record" in run.stderr
