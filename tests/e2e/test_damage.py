"""Backups, putting one back, and stores that prove damaged."""

from __future__ import annotations

import json
import platform
import shlex
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from omcli.sqlite.connection import APPLICATION_ID
from tests.conftest import Om
from tests.e2e import without_links
from tests.e2e.background import wait_until
from tests.e2e.transcripts import Talk, tide_story

pytestmark = pytest.mark.file_store("damage")

PAGE = 4096


def damage(om: Om) -> None:
    """Overwrites most pages behind the header, as a failing disk may."""
    with closing(sqlite3.connect(om.db)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with om.db.open("r+b") as stream:
        stream.seek(2 * PAGE)
        stream.write(b"\xff" * (om.db.stat().st_size - 2 * PAGE))


def kept(om: Om) -> list[Path]:
    return [path for path in om.db.parent.glob("*.corrupted-*") if not path.name.endswith(("-wal", "-shm"))]


def texts(om: Om) -> list[str]:
    return [row["text"] for row in om("log", "--jsonl").lines]


def test_a_backup_is_made_listed_and_put_back(om: Om) -> None:
    """And what it replaces is a backup, too, so that nothing is lost by it."""
    om("note", "first")
    first = Path(om("backup", "--now", "2026-11-20T10:00Z").stdout.strip())
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    om("note", "second")
    second = om("backup", "--now", "2026-11-21T10:00Z", "--json").document["path"]
    om("note", "third")
    listed = om("restore", "--list", "--json").document["backups"]
    assert [(each["path"], each["at"]) for each in listed] == [
        (second, "2026-11-21T10:00:00Z"),
        (str(first), "2026-11-20T10:00:00Z"),
    ]
    for which in ("2026-11-20", "2026-11-20T10:00", "2026-11-20 10:00", "2026-11-20T10:00:00Z"):
        assert om("restore", which, "--dry-run").stdout.strip() == str(first)
    assert om("restore", "--dry-run", "--json").document == {
        "schema": 1,
        "restored": second,
        "kept": None,
        "dry_run": True,
    }
    assert texts(om) == ["first", "second", "third"]
    run = om("restore", "2026-11-20", "--yes", "--json", "--now", "2026-11-22T10:00Z")
    assert texts(om) == ["first"]
    assert run.document["restored"] == str(first)
    om("restore", "--yes", "--now", "2026-11-23T10:00Z")
    assert texts(om) == ["first", "second", "third"], "the last backup is what the store was before"
    om("restore", second, "--yes")
    assert texts(om) == ["first", "second"]


def test_nothing_is_restored_unless_it_is_certain(om: Om) -> None:
    assert "there is nothing to copy yet" in om("backup", code=66).stderr
    assert "no backups yet" in om("restore", "--list").stderr
    assert "no backup" in om("restore", "--yes", code=66).stderr
    om("note", "first")
    om("backup", "--now", "2026-11-20T10:00Z")
    om("note", "second")
    for which in ("2026-11-19", "2026-11-20T11", "2", "2026", "2026-11-2", ""):
        assert f"no backup of `{which}`" in om("restore", which, "--yes", code=66).stderr
    assert "add `--yes`" in om("restore", code=2).stderr
    for command in ("restore --yes", "backup"):
        run = om(*command.split(), env={"OM_DISABLED": "1"})
        assert (run.stdout, "disabled by OM_DISABLED: nothing is" in run.stderr) == ("", True)
    assert texts(om) == ["first", "second"]
    assert len(om("restore", "--list", "--json").document["backups"]) == 1


def test_only_a_sound_store_of_om_is_put_back(om: Om) -> None:
    om("note", "first")
    backup = Path(om("backup").stdout.strip())
    other = om.folder / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE theirs (x)")
    newer = om.folder / "newer.db"
    newer.write_bytes(backup.read_bytes())
    with closing(sqlite3.connect(newer)) as connection, connection:
        connection.execute("PRAGMA user_version = 999")
    backup.write_bytes(backup.read_bytes()[: 3 * PAGE])
    for how in ("--yes", "--dry-run"):
        assert "cannot be restored" in om("restore", backup, how, code=65).stderr
    assert "a database of another program" in om("restore", other, "--yes", code=78).stderr
    assert "schema version 999" in om("restore", newer, "--yes", code=78).stderr
    assert texts(om) == ["first"]


def test_a_reader_sees_the_store_before_or_after_it_is_restored(om: Om) -> None:
    om("note", "first")
    backup = om("backup").stdout.strip()
    om("note", "second")
    with closing(sqlite3.connect(om.db, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        before = reader.execute("SELECT count(*) FROM observations").fetchone()
        om("restore", backup, "--yes")
        assert reader.execute("SELECT count(*) FROM observations").fetchone() == before == (2,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM observations").fetchone() == (1,)


def test_a_store_in_use_is_not_restored(om: Om) -> None:
    """T67: another process that writes is waited for as long as `--wait` says."""
    om("note", "first")
    backup = om("backup").stdout.strip()
    om("note", "second")
    with closing(sqlite3.connect(om.db, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        om("restore", backup, "--yes", "--wait", "0", code=75)
    assert texts(om) == ["first", "second"]


def test_a_damaged_store_is_replaced_by_its_backup_and_read_again(om: Om) -> None:
    """S2.40, T68: the damaged one is kept; the messages come from their transcript again, each once."""
    transcript = om.write("tide.jsonl", tide_story().text())
    om("note", "a fact")
    om("backup")
    whole = om("observe", "--json", transcript).document["files"][0]["observations"]
    assert whole > 1
    damage(om)
    before = om.db.read_bytes()
    assert om("log", code=74).stdout == ""
    assert om.db.read_bytes() == before, "a command that only reads replaces nothing"
    run = om("observe", "-q", transcript, code=74)
    (aside,) = kept(om)
    assert f"was damaged: it is kept as {aside}, and its backup {om.db.name}." in run.stderr
    assert aside.read_bytes() == before
    assert "a damaged store was replaced by its backup" in om("doctor", code=None).stdout
    again = om("observe", "--json", transcript).document["files"][0]
    assert again["observations"] == whole
    assert om("observe", "--json", transcript).document["files"][0]["new_messages"] == 0
    assert len(texts(om)) == whole + 1
    assert len(kept(om)) == 1


def test_a_damaged_store_without_a_backup_is_kept_and_a_new_one_begins(om: Om) -> None:
    """S2.40, T68."""
    transcript = om.write("tide.jsonl", tide_story().text())
    om("observe", "-q", transcript)
    rows = len(texts(om))
    damage(om)
    assert "a new one will be created" in om("observe", transcript, code=74).stderr
    om("observe", "-q", transcript)
    assert len(texts(om)) == rows
    assert len(kept(om)) == 1


def test_the_error_says_what_became_of_the_store(om: Om) -> None:
    """And nothing else: neither to restore by hand what is restored, nor anything twice."""
    for _ in range(2):
        om("note", "first", code=None)
        om("backup")
        damage(om)
        lines = om("note", "second", code=74).stderr.splitlines()
        assert [line.partition(": ")[0] for line in lines] == ["om", "hint"]
        assert "is in its place" in lines[0]
    damage(om)
    error = om("note", "second", "--json", code=74).stderr
    assert "is in its place" in json.loads(error)["error"]["message"]


def test_a_replaced_store_keeps_its_mode(om: Om) -> None:
    """With a backup and without one. A group may share it."""
    om("note", "first")
    backup = Path(om("backup").stdout.strip())
    for is_kept in (True, False):
        om.db.chmod(0o660)
        if not is_kept:
            backup.unlink()
        damage(om)
        om("note", "second", code=74)
        assert stat.S_IMODE(om.db.stat().st_mode) == 0o660
        assert texts(om) == ["first"] * is_kept


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in without_links.CALLS, reason="no calls to refuse are known"
)
def test_a_damaged_store_is_replaced_where_files_have_one_name(om: Om) -> None:
    """As on exFAT, which has no hard links."""
    om("note", "first")
    om("backup")
    damage(om)
    before = om.db.read_bytes()
    refused = [sys.executable, without_links.__file__, *om.command("note", "second")]
    ended = subprocess.run(refused, env=om.environment(), capture_output=True, text=True, check=False)
    assert ended.returncode == 74
    assert "is in its place" in ended.stderr
    assert [path.read_bytes() for path in kept(om)] == [before]
    assert texts(om) == ["first"]


def back_up_twice(om: Om) -> None:
    """Two notes with a backup after each, the later of which is damaged."""
    om("note", "first")
    om("backup", "--now", "2026-11-20T10:00Z")
    om("note", "second")
    last = Path(om("backup", "--now", "2026-11-21T10:00Z").stdout.strip())
    last.write_bytes(last.read_bytes()[: 3 * PAGE])


def test_a_store_that_was_cut_is_filled_with_its_backup(om: Om) -> None:
    """Reading tells, writing restores. Nothing is kept of it."""
    back_up_twice(om)
    for words in (("note", "third"), ("restore", "2026-11-20", "--yes")):
        om.db.write_bytes(b"")
        assert f"{om.db} is empty, although it has a backup" in om("log", code=74).stderr
        assert "is empty" in om("doctor", code=1).stdout
        run = om(*words, code=None)
        assert run.code == (74 if words[0] == "note" else 0)
        assert ("was empty: its backup" in run.stderr) == (words[0] == "note")
        assert texts(om) == ["first"]
        assert kept(om) == []
    assert len(om("restore", "--list", "--json").document["backups"]) == 2


def test_an_empty_file_without_a_sound_backup_becomes_a_store(om: Om) -> None:
    """As made by `mktemp`."""
    om.db.parent.mkdir(exist_ok=True)
    om.db.write_bytes(b"")
    om.db.with_name(f"{om.db.name}.2026-11-20T100000Z.bak").write_bytes(b"")
    assert texts(om) == []
    om("note", "first")
    assert texts(om) == ["first"]


def test_several_processes_fill_an_empty_store_once(om: Om) -> None:
    om("note", "first")
    om("backup")
    om.db.write_bytes(b"")
    runs = [om.start("note", f"note {number}") for number in range(6)]
    for run in runs:
        run.communicate(timeout=60)
    codes = [run.returncode for run in runs]
    assert set(codes) <= {0, 74, 75}
    assert 74 in codes
    found = texts(om)
    assert found[0] == "first"
    assert sorted(found[1:]) == sorted(f"note {number}" for number, code in enumerate(codes) if code == 0)


def test_a_backup_dated_in_the_future_is_not_the_last(om: Om) -> None:
    """A clock was wrong once; another backup is due, and put back before it."""
    om("note", "first")
    future = om("backup", "--now", "2031-01-01").stdout.strip()
    om("note", "second")
    last = om("consolidate", "--json", "--now", "2026-11-20T10:00Z").document["backup"]
    listed = om("restore", "--list", "--json", "--now", "2026-11-21").document["backups"]
    assert [each["path"] for each in listed] == [last, future]
    assert om("restore", "--dry-run", "--now", "2026-11-21").stdout.strip() == last
    assert "the newest of 2026-11-20 10:00" in om("doctor", "--now", "2026-11-21", code=None).stdout
    damage(om)
    om("note", "third", "--now", "2026-11-21", code=74)
    assert texts(om) == ["first", "second"]


def test_a_damaged_store_behind_a_link_stays_behind_it(om: Om) -> None:
    om("note", "first")
    om("backup")
    om("note", "second")
    moved = om.folder / "elsewhere" / "memory.db"
    moved.parent.mkdir()
    om.db.rename(moved)
    om.db.symlink_to(moved)
    damage(om)
    om("note", "third", code=74)
    assert om.db.is_symlink()
    assert texts(om) == ["first"]
    assert len(list(moved.parent.glob("*.corrupted-*Z"))) == 1


def test_a_damaged_backup_is_passed_over(om: Om) -> None:
    back_up_twice(om)
    damage(om)
    om("note", "third", code=74)
    assert texts(om) == ["first"]


@pytest.mark.parametrize("content", [b"not a database " * 400, None], ids=["text", "other program"])
def test_the_file_of_another_program_stays_where_it_is(om: Om, content: bytes | None) -> None:
    om.db.parent.mkdir(exist_ok=True)
    if content is None:
        with closing(sqlite3.connect(om.db)) as connection, connection:
            connection.execute("CREATE TABLE theirs (x)")
    else:
        om.db.write_bytes(content)
    before = om.db.read_bytes()
    om("note", "x", code=78)
    assert om.db.read_bytes() == before
    assert [path.name for path in om.db.parent.glob(f"{om.db.name}*")] == [om.db.name]


def test_odd_files_among_the_backups_are_passed_over(om: Om) -> None:
    """An empty one, one of a later version, one of another program, and a broken link; the last sound one is used."""
    om("note", "first")
    backup = Path(om("backup", "--now", "2026-11-01T10:00Z").stdout.strip())
    om("note", "second")
    odd = [om.db.with_name(f"{om.db.name}.2026-11-0{day}T100000Z.bak") for day in range(2, 6)]
    odd[0].write_bytes(b"")
    odd[1].write_bytes(backup.read_bytes())
    with closing(sqlite3.connect(odd[1])) as connection, connection:
        connection.execute("PRAGMA user_version = 999")
    with closing(sqlite3.connect(odd[2])) as connection, connection:
        connection.execute("CREATE TABLE theirs (x)")
    odd[3].symlink_to("nowhere")
    assert "cannot be restored: it is empty" in om("restore", odd[0], "--yes", code=65).stderr
    assert "cannot be restored: it is the store itself" in om("restore", om.db, "--yes", code=65).stderr
    damage(om)
    om("note", "third", code=74)
    assert texts(om) == ["first"]


def test_a_text_with_backups_beside_it_stays_where_it_is(om: Om) -> None:
    om("note", "first")
    backup = om("backup").stdout.strip()
    for path in om.db.parent.glob(f"{om.db.name}-*"):
        path.unlink()
    om.db.write_text("my notes\n" * 40)
    om("note", "second", code=78)
    om("restore", backup, "--yes", code=78)
    assert om.db.read_text().startswith("my notes")


def test_the_header_of_a_store_names_om(om: Om) -> None:
    """It is what tells a damaged store from a file of another program."""
    om("note", "x")
    assert int.from_bytes(om.db.read_bytes()[68:72], "big") == APPLICATION_ID


def test_a_full_disk_is_no_damage(om: Om) -> None:
    """F32: exit code 74 as well, and nothing is moved. Here, no file may grow beyond 500 kB."""
    om("note", "x")
    om("backup")
    talk = Talk(session="long")
    for number in range(700):
        talk.user(f"prompt number {number}: {'very ' * 60}long")
    transcript = om.write("long.jsonl", talk.text())
    command = shlex.join(om.command("observe", "-q", transcript))
    limited = subprocess.run(
        ["bash", "-c", f"ulimit -f 500; {command}"],
        env=om.environment(),
        cwd=om.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert limited.returncode == 74, limited.stderr
    assert kept(om) == []
    assert texts(om)[0] == "x"


def test_several_processes_replace_a_damaged_store_once(om: Om) -> None:
    """The others find a sound one; no note of theirs goes to the damaged file."""
    om("note", "first")
    om("backup")
    damage(om)
    runs = [om.start("note", f"note {number}") for number in range(6)]
    for run in runs:
        run.communicate(timeout=60)
    codes = [run.returncode for run in runs]
    assert set(codes) <= {0, 74, 75}
    assert 74 in codes
    assert len(kept(om)) == 1
    found = texts(om)
    assert found[0] == "first"
    assert sorted(found[1:]) == sorted(f"note {number}" for number, code in enumerate(codes) if code == 0)


def test_hooks_live_through_a_damaged_store(om: Om) -> None:
    """S2.40: the call after the one that finds the damage takes in what both were about."""
    transcript = om.write("tide.jsonl", tide_story().text())
    called = {"hook_event_name": "Stop", "session_id": tide_story().session, "cwd": str(om.folder)}
    stdin = json.dumps({**called, "transcript_path": str(transcript)})
    om("note", "first")
    om("backup")
    damage(om)
    assert om.process("hook", "claude-code", stdin=stdin).stderr == ""
    wait_until(lambda: kept(om))

    def is_taken_in() -> bool:
        om.process("hook", "claude-code", stdin=stdin)
        return bool(om("status", "--json").document["messages"] == 8)

    wait_until(is_taken_in)
    assert "first" in texts(om)
