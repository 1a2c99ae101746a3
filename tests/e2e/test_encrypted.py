"""Encrypted stores: no text in any file, the same output, keys and their errors, and kills."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from omcli.base.errors import NoKey
from omcli.sqlite import SqliteStore, cipher
from omcli.sqlite.cipher import key_name, learn
from omcli.sqlite.connection import connect, steps
from omcli.sqlite.restore import change_key
from omcli.wiring.policies import key_printed
from tests.conftest import Om
from tests.e2e.transcripts import PROJECT, Talk
from tests.fakes import KEY
from tests.soak import more_in_soak

pytestmark = pytest.mark.file_store("encryption")

pytest.importorskip("sqlcipher3")

OTHER = "f" * 64
SESSION = "5d0c6e0a-0000-4000-8000-0000000000aa"
WORDS = ("quokkafell", "wombatstein", "numbatgate", "bilbyford", "quollmouth", "dingowick")
"""Words that are nowhere but in the transcripts."""


@pytest.fixture
def secret(om: Om) -> Om:
    """A store with a backup, encrypted with a key from the environment."""
    om._kept["OM_KEY"] = KEY
    om("observe", "-q", stdin=talk(WORDS[0], WORDS[1], folder=om.folder))
    om("backup", "--now", "2026-11-20T10:00Z")
    om("store", "encrypt", "--backups", "convert")
    return om


def talk(rule: str, question: str, session: str = SESSION, folder: Path | None = None) -> str:
    return (
        Talk(session=session, cwd=str(folder) if folder else PROJECT)
        .user(f"From now on always ask {rule} before a release.")
        .assistant("I will.")
        .user(f"Where is {question}?")
        .text()
    )


def found_in(files: Iterable[Path]) -> list[tuple[str, str]]:
    """The words that are in files, with the names of the files."""
    contents = [(file.name, file.read_bytes().lower()) for file in files if file.is_file()]
    return [(name, word) for name, content in contents for word in WORDS if word.encode() in content]


def files_of(om: Om) -> list[Path]:
    """Everything that om has written: the store's folder, and the user's folders."""
    return [*om.db.parent.rglob("*"), *om.home.rglob("*")]


def test_no_word_of_an_encrypted_store_is_in_any_file(secret: Om) -> None:
    assert not found_in(files_of(secret))
    secret("observe", "-q", stdin=talk(WORDS[2], WORDS[3], SESSION.replace("a", "b")))
    secret("backup")
    event = {"hook_event_name": "SessionStart", "source": "startup", "cwd": str(secret.folder), "session_id": "new"}
    assert "quokkafell" in secret("hook", "claude-code", stdin=json.dumps(event), cwd=secret.folder).stdout
    for _ in range(3):
        process = secret.start("observe", "-q", "-")
        assert process.stdin is not None
        process.stdin.write(talk(WORDS[4], WORDS[5], SESSION.replace("a", "c")).encode())
        process.stdin.flush()
        process.kill()
        process.communicate()
    assert not found_in(files_of(secret))
    assert secret("recall", "numbatgate").stdout
    assert len(list(secret.db.parent.glob("*.bak"))) == 2


def test_neither_the_log_of_an_open_store_nor_a_private_copy_has_text(secret: Om) -> None:
    learn(KEY)
    with secret.open() as store:
        store.sessions.status()
        secret("observe", "-q", stdin=talk(WORDS[2], WORDS[3], SESSION.replace("a", "b")))
        log = secret.db.with_name(f"{secret.db.name}-wal")
        assert log.stat().st_size > 0
        with SqliteStore.copy_of(secret.db, wait=1) as copy:
            opened = list(Path("/proc/self/fd").iterdir())
            assert copy.key == KEY
            assert not found_in([*files_of(secret), *(each for each in opened if each.is_file())])
            assert copy.sessions.status() == store.sessions.status()


def test_the_text_of_the_plain_file_is_overwritten(om: Om) -> None:
    om("observe", "-q", stdin=talk(WORDS[0], WORDS[1]))
    with om.db.open("rb") as before:
        assert WORDS[0].encode() in before.read().lower()
        om("store", "encrypt", env={"OM_KEY": KEY})
        before.seek(0)
        assert not before.read().strip(b"\0").removeprefix(b"another file is in the place of this one")


def test_an_encrypted_store_says_what_it_said_before(om: Om) -> None:
    keyed = {"OM_KEY": KEY}
    om("observe", "-q", stdin=talk(WORDS[0], WORDS[1]))
    om("observe", "-q", stdin=talk(WORDS[2], WORDS[3], SESSION.replace("a", "b")))
    commands = [
        ["recall", "release", "--json", "--now", "2026-11-22T10:00Z"],
        ["log", "--json"],
        ["context", "--session", SESSION, "--now", "2026-11-22T10:00Z"],
        ["sessions", "--json"],
        ["replay", "--session", SESSION, "--at", "2026-11-22T10:00Z"],
        ["export", "--to", "zora-jsonl"],
    ]
    before = [om(*each).stdout for each in commands]
    om("store", "encrypt", env=keyed)
    assert key_name(om.db)
    assert [om(*each, env=keyed).stdout for each in commands] == before
    om("forget", "nothing", "--dry-run", env=keyed, code=65)
    om("observe", "--estimate", "--model", "ollama/any", env=keyed, stdin=talk(WORDS[4], WORDS[5], SESSION[::-1]))
    om("undo", env=keyed, code=65)
    om("store", "decrypt", env=keyed)
    assert key_name(om.db) is None
    assert om.db.read_bytes().startswith(b"SQLite format 3\0")
    assert [om(*each).stdout for each in commands] == before


def test_backups_are_encrypted_or_deleted_only_if_asked(om: Om) -> None:
    keyed = {"OM_KEY": KEY}
    om("note", WORDS[0])
    backup = Path(om("backup").stdout.strip())
    damaged = om.db.with_name(f"{om.db.name}.corrupted-2026-11-20T100000Z")
    damaged.write_bytes(backup.read_bytes()[:8000])
    own = om.db.with_name(f"{om.db.name}.mine.bak")
    own.write_bytes(b"SQLite format 3\0")
    run = om("store", "encrypt", "--json", env=keyed)
    assert run.document == {"schema": 1, "store": str(om.db), "encrypted": True, "left": [str(backup), str(damaged)]}
    assert "are not encrypted with its key" in run.stderr
    assert "not encrypted with the store's key" in om("doctor", env=keyed, code=None).stdout
    run = om("store", "encrypt", "--backups", "convert", env=keyed)
    assert "encrypted already" in run.stderr
    assert key_name(backup) == key_name(om.db)
    assert str(damaged) in run.stderr
    om("store", "encrypt", "--backups", "delete", env=keyed, code=2)
    om("store", "encrypt", "--backups", "delete", "--yes", env=keyed)
    assert backup.exists()
    assert own.exists(), "only files of om are deleted"
    assert not damaged.exists()
    om("note", "second", env=keyed)
    om("restore", backup, "--yes", env=keyed)
    assert [row["text"] for row in om("log", "--jsonl", env=keyed).lines] == [WORDS[0]]
    plain = om.folder / "plain.db"
    om("note", "elsewhere", "--db", plain)
    assert "not encrypted with the same key" in om("restore", plain, "--yes", env=keyed, code=65).stderr
    om.db.unlink()
    om("restore", backup, "--yes", env=keyed)
    assert key_name(om.db), "a missing store becomes as its backup"
    om("store", "decrypt", "--backups", "convert", env=keyed)
    assert not any(map(key_name, om.db.parent.iterdir()))


# ---- keys


@pytest.mark.parametrize(
    ("key", "slug", "said"),
    [
        (None, "no-key", "its key is not in"),
        (OTHER, "bad-key", "is not that of the store"),
        ("abc", "bad-key", "expected 64 hexadecimal digits"),
    ],
)
def test_a_store_without_its_key_is_neither_read_nor_taken_for_damaged(
    secret: Om, key: str | None, slug: str, said: str
) -> None:
    del secret._kept["OM_KEY"]
    given = {"OM_KEY": key} if key else {"OM_STORE_KEY_FILE": str(secret.folder / "missing")}
    before = {file: file.read_bytes() for file in secret.db.parent.iterdir()}
    for command in (["log"], ["note", "hello"], ["backup"], ["restore", "--yes"], ["store", "decrypt"]):
        run = secret.process(*command, env=given, code=77)
        assert said in run.stderr
        assert "om-store(5)" in run.stderr
    error = json.loads(secret.process("status", "--json", env=given, code=77).stderr)["error"]
    assert (error["slug"], error["exit_code"]) == (slug, 77)
    assert "memory unavailable" in secret.process("status", "--line", env=given).stdout
    assert said in secret.process("doctor", env=given, code=1).stdout
    assert {file: file.read_bytes() for file in secret.db.parent.iterdir()} == before


def test_hooks_without_a_key_are_silent_and_logged(secret: Om) -> None:
    del secret._kept["OM_KEY"]
    given = {"OM_STORE_KEY_FILE": str(secret.folder / "missing")}
    event = {"hook_event_name": "SessionStart", "source": "startup", "cwd": str(secret.folder), "session_id": SESSION}
    run = secret.process("hook", "claude-code", stdin=json.dumps(event), env=given)
    assert (run.stdout, run.stderr) == ("", "")
    assert "its key is not in" in (secret.home / ".local" / "state" / "om" / "hooks.log").read_text()


def test_without_the_driver_an_encrypted_store_says_what_to_install(secret: Om) -> None:
    code = "import sys; sys.modules['sqlcipher3'] = None; from omcli.__main__ import main; main()"
    secret.program = [sys.executable, "-c", code]
    for command in ("log", "note"):
        run = secret.process(command, *(["hello"] if command == "note" else []), code=78)
        assert "sqlcipher3 is not installed" in run.stderr
        assert "pip install 'omcli[encryption]'" in run.stderr
    other = {"OM_DB": str(secret.folder / "plain.db")}
    secret.process("note", "hello", env=other)
    assert "sqlcipher3" in secret.process("store", "encrypt", env=other, code=78).stderr
    assert "hello" in secret.process("log", env=other).stdout


def test_without_a_keyring_a_store_says_what_to_install_or_to_set(secret: Om) -> None:
    code = "import sys; sys.modules['keyring'] = None; from omcli.__main__ import main; main()"
    secret.program = [sys.executable, "-c", code]
    assert WORDS[0] in secret.process("log").stdout
    run = secret.process("log", env={"OM_KEY": ""}, code=77)
    assert "keyring is not installed" in run.stderr
    assert "pip install 'omcli[encryption]'" in run.stderr


def test_a_key_is_kept_in_a_file_that_only_its_user_reads(om: Om) -> None:
    file = om.folder / "keys" / "om.key"
    given = {"OM_STORE_KEY_FILE": str(file)}
    om("note", WORDS[0])
    om("store", "encrypt", env=given)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = file.read_text().strip()
    assert om("store", "key", env=given).stdout.strip() == key
    assert WORDS[0] in om.process("log", env=given).stdout
    assert WORDS[0] in om.process("log", env=given | {"OM_KEY": key.upper()}).stdout
    file.chmod(0o644)
    assert "others may read the key" in om.process("log", env=given, code=77).stderr


def test_a_command_prints_the_key(om: Om) -> None:
    script = om.write("key.sh", f"#!/bin/sh\necho {KEY}\n")
    script.chmod(0o700)
    om("note", WORDS[0])
    assert "cannot be run" not in om("store", "encrypt", "--key-command", "false", code=77).stderr
    assert "`echo x` has no valid key" in om("store", "encrypt", "--key-command", "echo x", code=77).stderr
    om("config", "get", "store.key_command", code=1)
    om("store", "encrypt", "--key-command", str(script))
    assert om("config", "get", "store.key_command").stdout.strip() == str(script)
    assert WORDS[0] in om.process("log").stdout
    script.write_text("#!/bin/sh\nexit 3\n")
    assert "ended with 3" in om.process("log", code=77).stderr
    script.write_text(f"#!/bin/sh\ncat > /dev/null\necho {KEY}\n")
    om.process("observe", "-q", stdin=talk(WORDS[2], WORDS[3]))
    assert om.process("recall", WORDS[2]).stdout, "the command does not read the transcript"
    script.unlink()
    om.process("log", code=78)


def test_a_command_that_hangs_is_ended() -> None:
    with pytest.raises(NoKey, match=r"the key command `sleep` took longer than 0\.01 s"):
        key_printed("sleep 100", seconds=0.01)


def test_a_pack_that_was_prepared_for_a_hook_is_deleted(om: Om) -> None:
    om("observe", "-q", stdin=talk(WORDS[0], WORDS[1], folder=om.folder))
    event = {"hook_event_name": "SessionStart", "source": "startup", "cwd": str(om.folder), "session_id": "new"}
    om("hook", "claude-code", stdin=json.dumps(event))
    assert found_in(om.home.rglob("*"))
    om("store", "encrypt", env={"OM_KEY": KEY})
    assert not found_in(om.home.rglob("*"))


def test_a_project_cannot_name_a_command_for_the_key(secret: Om) -> None:
    del secret._kept["OM_KEY"]
    ran = secret.folder / "ran"
    (secret.folder / ".om.toml").write_text(f'[store]\nkey_command = "touch {ran}"\n')
    run = secret.process("log", env={"OM_STORE_KEY_FILE": str(secret.folder / "missing")}, code=77)
    assert "a project file may not set `store.key_command`" in run.stderr
    assert not ran.exists()


def test_the_keyring_keeps_a_new_key(om: Om) -> None:
    given = {"PYTHON_KEYRING_BACKEND": "tests.fakes.keys.FileKeyring", "PYTHONPATH": str(Path(__file__).parents[2])}
    om("note", WORDS[0])
    none = given | {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    assert "the keyring cannot be read" in om.process("store", "encrypt", env=none, code=77).stderr
    forgetful = given | {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    assert "has not kept the key" in om.process("store", "encrypt", env=forgetful, code=77).stderr
    assert key_name(om.db) is None
    om.process("store", "encrypt", env=given)
    assert WORDS[0] in om.process("log", env=given).stdout
    assert len(om.process("store", "key", env=given).stdout.strip()) == 64
    assert "the keyring cannot be read" in om.process("log", env=none, code=77).stderr


# ---- the spool, which is plain text

AT_ONCE = {"OM_WAIT": "0.1"}


@contextmanager
def locked(om: Om) -> Iterator[None]:
    """Another process writes to the store inside the block, and takes its time."""
    learn(KEY)
    with closing(connect(om.db, "rw", wait=1)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield


def spool_of(om: Om) -> Path:
    return om.db.with_name(f"{om.db.name}.spool")


def texts(om: Om) -> list[str]:
    return [record["text"] for record in om("export", "--to", "jsonl").lines if record.get("record") == "message"]


def test_of_an_encrypted_store_no_message_and_no_note_is_spooled(secret: Om) -> None:
    with locked(secret):
        for told in (
            secret("observe", stdin=talk(WORDS[2], WORDS[3]), env=AT_ONCE, code=75),
            secret("observe", "--later", "-", stdin=talk(WORDS[2], WORDS[3]), env=AT_ONCE, code=75),
            secret.process("note", "-", stdin=WORDS[4], env=AT_ONCE, code=75),
        ):
            assert "another process is writing" in told.stderr
            assert "the store is encrypted and the spool is not" in told.stderr
            assert not spool_of(secret).exists()
    assert secret("note", "later").stderr == ""


def test_a_store_that_cannot_even_be_opened_is_known_to_be_encrypted(secret: Om) -> None:
    learn(KEY)
    with closing(cipher.connect(f"{secret.db.as_uri()}?mode=rw", KEY, wait=1)) as holder:
        holder.execute("PRAGMA journal_mode = DELETE")
        holder.execute("BEGIN EXCLUSIVE")
        secret.process("observe", stdin=talk(WORDS[2], WORDS[3]), env=AT_ONCE, code=75)
        secret.process("note", WORDS[4], env=AT_ONCE, code=75)
        assert not spool_of(secret).exists()


@pytest.mark.parametrize("place", [100, 2 * 4096])
def test_nothing_for_a_damaged_encrypted_store_is_spooled(secret: Om, place: int) -> None:
    with secret.db.open("r+b") as stream:
        stream.seek(place)
        stream.write(b"\xff" * (secret.db.stat().st_size - place))
    assert "was damaged" in secret("observe", "-", stdin=talk(WORDS[2], WORDS[3]), code=74).stderr
    assert not found_in(files_of(secret))
    secret("observe", stdin=talk(WORDS[2], WORDS[3]))
    assert key_name(secret.db)


def test_the_transcript_of_a_hook_waits_beside_an_encrypted_store(secret: Om) -> None:
    path = secret.write("t.jsonl", talk(WORDS[2], WORDS[3], SESSION.replace("a", "b")))
    left = {"event": "SessionEnd", "session": "s", "transcript": str(path), "folder": str(secret.folder)}
    with locked(secret):
        secret("hook", "claude-code", "--worker", json.dumps(left), env=AT_ONCE)
    assert [json.loads(file.read_text()) for file in spool_of(secret).iterdir()] == [{"transcript": str(path)}]
    assert secret("note", "later").stderr == "om: stored what was in the spool: 3 messages\n"
    assert not spool_of(secret).exists()
    assert not found_in(files_of(secret))
    assert secret("recall", WORDS[3]).stdout


def test_encrypting_first_stores_what_waits(om: Om) -> None:
    om._kept["OM_KEY"] = KEY
    om("note", "first")
    with closing(connect(om.db, "rw", wait=1)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        om("observe", stdin=talk(WORDS[0], WORDS[1]), env=AT_ONCE)
        om("observe", stdin=talk(WORDS[2], WORDS[3], SESSION.replace("a", "b")), env=AT_ONCE)
        om("note", WORDS[4], env=AT_ONCE)
    assert len(list(spool_of(om).iterdir())) == 3
    shutil.copytree(spool_of(om), om.folder / "copy")
    assert "stored what was in the spool: 6 messages and 1 note" in om("store", "encrypt").stderr
    assert not found_in(files_of(om))
    assert not spool_of(om).exists()
    assert {word for word in WORDS if any(word in text for text in texts(om))} == set(WORDS[:4])
    assert WORDS[4] in om("log").stdout
    (om.folder / "copy").rename(spool_of(om))
    om("note", "last")
    assert not spool_of(om).exists(), "a spool beside an encrypted store is stored as well"
    assert len(texts(om)) == 6


def test_encrypting_fails_while_a_file_of_the_spool_is_left(om: Om) -> None:
    om._kept["OM_KEY"] = KEY
    om("note", "first")
    spool_of(om).mkdir()
    file = spool_of(om) / "1795000000000000000.none.jsonl"
    file.write_text(f"{WORDS[0]}\n")
    run = om("store", "encrypt", code=74)
    assert "is not encrypted, and has 1 file that cannot be read" in run.stderr
    assert "delete files that cannot be read" in run.stderr
    assert key_name(om.db) is None
    shutil.rmtree(spool_of(om))
    om("store", "encrypt")
    assert key_name(om.db)


# ---- damage, kills and other processes


def test_two_that_encrypt_at_once_leave_one_whole_store(om: Om) -> None:
    om._kept["OM_KEY"] = KEY
    om("note", "first")
    for task in ("encrypt", "decrypt") * 3:
        both = [om.start("store", task) for _ in range(2)]
        errors = [process.communicate()[1] for process in both]
        assert {process.returncode for process in both} <= {0, 75}, errors
        assert [row["text"] for row in om("log", "--jsonl").lines] == ["first"]
        assert (key_name(om.db) is None) == (task == "decrypt")
        assert not list(om.db.parent.glob("*.partial*"))


@pytest.mark.parametrize(("place", "code", "said"), [(0, 78, "is not a store"), (8, 77, "is not that of the store")])
def test_a_damaged_name_of_the_key_moves_nothing_aside(secret: Om, place: int, code: int, said: str) -> None:
    with secret.db.open("r+b") as stream:
        stream.seek(place)
        stream.write(b"????")
    before = {file: file.read_bytes() for file in secret.db.parent.iterdir()}
    for command in (["log"], ["note", "hello"], ["restore", "--yes"]):
        assert said in secret.process(*command, code=code).stderr
    assert {file: file.read_bytes() for file in secret.db.parent.iterdir()} == before


def test_an_older_encrypted_store_is_migrated_and_its_copy_is_encrypted(om: Om, tmp_path: Path) -> None:
    learn(KEY)
    om._kept["OM_KEY"] = KEY
    older = tmp_path / "steps"
    older.mkdir()
    for step in steps()[:-1]:
        (older / step.name).write_bytes(step.read_bytes())
    SqliteStore.open(om.db, wait=1, migrations=older).close()
    change_key(om.db, KEY, wait=1)
    assert om("sessions", "--json").document["sessions"] == []
    assert om("note", WORDS[0]).stdout
    (copy,) = om.db.parent.glob("*.bak")
    assert copy.name.endswith(f".v{len(steps()) - 1}.bak")
    assert key_name(copy) == key_name(om.db)


def test_a_copy_that_a_killed_run_left_is_named_and_removed(secret: Om) -> None:
    left = secret.db.with_name(f"{secret.db.name}.partial")
    left.write_text(WORDS[0])
    assert left.name in secret("store", "encrypt").stderr
    assert left.name in secret("doctor", code=None).stdout
    secret("store", "encrypt", "--backups", "convert")
    assert not left.exists()


def test_a_backup_with_an_earlier_key_gets_that_of_the_store(om: Om) -> None:
    keys = {"PYTHON_KEYRING_BACKEND": "tests.fakes.keys.FileKeyring", "PYTHONPATH": str(Path(__file__).parents[2])}
    om("note", WORDS[0])
    om("backup")
    for task in ("encrypt", "decrypt", "encrypt"):
        run = om.process("store", task, *(["--backups", "convert"] if task == "encrypt" else []), env=keys)
        if task == "decrypt":
            assert "still encrypted" in run.stderr
    (backup,) = om.db.parent.glob("*.bak")
    assert key_name(backup) == key_name(om.db)


def test_a_damaged_encrypted_store_is_replaced_by_its_backup(secret: Om) -> None:
    secret("note", "later")
    with secret.db.open("r+b") as stream:
        stream.seek(2 * 4096)
        stream.write(b"\xff" * (secret.db.stat().st_size - 2 * 4096))
    assert "was damaged" in secret("note", "again", code=74).stderr
    assert WORDS[0] in secret("log").stdout
    assert key_name(secret.db)
    assert not found_in(files_of(secret))


def test_an_encrypted_store_that_was_cut_is_no_new_one(secret: Om) -> None:
    secret.db.write_bytes(b"")
    missing = {"OM_KEY": "", "OM_STORE_KEY_FILE": str(secret.folder / "missing")}
    for command in (["log"], ["note", "again"]):
        assert "its key is not in" in secret.process(*command, env=missing, code=77).stderr
        assert not secret.db.stat().st_size
    assert "its backup" in secret("note", "again", code=74).stderr
    assert WORDS[0] in secret("log").stdout
    assert key_name(secret.db)


@pytest.mark.parametrize("has_backup", [True, False])
def test_what_replaces_a_damaged_encrypted_store_is_encrypted(om: Om, *, has_backup: bool) -> None:
    om._kept["OM_KEY"] = KEY
    om("note", WORDS[0])
    if has_backup:
        om("backup")
    om("store", "encrypt")
    with om.db.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"\xff" * (om.db.stat().st_size - 4096))
    om("note", "again", code=74)
    assert key_name(om.db)
    om("note", "once more")
    assert [row["text"] for row in om("log", "--jsonl").lines] == [*[WORDS[0]] * has_backup, "once more"]
    assert len(list(om.db.parent.glob("*.corrupted-*Z"))) == 1


def test_a_full_disk_leaves_the_store_as_it_was(om: Om) -> None:
    om("note", WORDS[0])
    limited = f"ulimit -f 100; exec '{sys.executable}' -m omcli store encrypt"
    om.program = ["bash", "-c", limited]
    run = om.process(env={"OM_KEY": KEY}, code=74)
    assert "cannot be written" in run.stderr
    assert [each.name for each in om.db.parent.iterdir()] == [om.db.name]
    assert WORDS[0] in om("log").stdout


@pytest.mark.parametrize("task", ["encrypt", "decrypt"])
@pytest.mark.parametrize("times", [3, *more_in_soak(60)])
def test_a_killed_run_leaves_the_old_store_or_the_new_one(om: Om, task: str, times: int, chance: random.Random) -> None:
    om._kept["OM_KEY"] = KEY
    om("observe", "-q", stdin=talk(WORDS[0], WORDS[1]))
    log = om("log", "--json").stdout
    for _ in range(times):
        om("store", "decrypt" if task == "encrypt" else "encrypt")
        process = om.start("store", task)
        unfinished = om.db.with_name(f"{om.db.name}.partial")
        while not unfinished.exists() and process.poll() is None:
            time.sleep(0.0002)
        time.sleep(0.02 * chance.random())
        process.kill()
        process.communicate()
        assert om("log", "--json").stdout == log
        om("store", task)
        assert not unfinished.exists()
        assert om("log", "--json").stdout == log
        assert (key_name(om.db) is None) == (task == "decrypt")


def test_a_store_in_use_is_left_as_it_is(om: Om) -> None:
    om("note", "first")
    with om.open() as store:
        run = om.process("store", "encrypt", "--wait", "0.2", env={"OM_KEY": KEY}, code=75)
        assert "another process uses" in run.stderr
        assert store.sessions.status().observations == 1
    assert key_name(om.db) is None
    assert "first" in om("log").stdout


def test_nothing_is_lost_by_those_who_write_meanwhile(om: Om) -> None:
    """Those that wait for the lock write into the new file, not into the old one."""
    om._kept["OM_KEY"] = KEY
    om("note", "first")
    told = ["first"]
    for task in ("encrypt", "decrypt"):
        writers = {f"{task} {number}": om.start("note", f"{task} {number}") for number in range(4)}
        changing = om.start("store", task)
        for text, process in writers.items():
            _, stderr = process.communicate()
            told += [text] if process.returncode == 0 else []
            assert process.returncode in (0, 75), stderr
        _, stderr = changing.communicate()
        assert changing.returncode == 0, stderr
        assert sorted(row["text"] for row in om("log", "--jsonl").lines) == sorted(told)


def test_a_store_with_a_second_name_is_not_encrypted(om: Om) -> None:
    om("note", "first")
    os.link(om.db, om.folder / "second")
    assert "several names" in om("store", "encrypt", env={"OM_KEY": KEY}, code=78).stderr
