"""Exports of an encrypted store: encrypted files, and what `om import` makes of them."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from omcli.sqlite.cipher import connect as open_encrypted
from omcli.sqlite.cipher import key_name, learn, read_lines
from tests.conftest import Om
from tests.fakes import KEY
from tests.soak import more_in_soak

pytest.importorskip("sqlcipher3")
pytestmark = pytest.mark.file_store("encryption")

OTHER = "c" * 64
WORDS = ("quokkafell", "wombatstein", "numbatgate")
LINES = "".join(
    json.dumps({"role": "user", "content": f"From now on always ask {word} before release {number}."}) + "\n"
    for number, word in enumerate(WORDS * 200)
)


@pytest.fixture
def secret(om: Om) -> Om:
    """An encrypted store with three words that are nowhere else, in 600 messages."""
    om._kept["OM_KEY"] = KEY
    om("observe", "-q", "--session", "s", stdin=LINES)
    om("store", "encrypt")
    return om


@pytest.fixture
def exported(secret: Om) -> Path:
    file = secret.folder / "memory.jsonl"
    secret("export", "--to", "jsonl", str(file))
    return file


def memory(om: Om, db: Path | None = None) -> str:
    """The whole memory as text."""
    return om("export", "--to", "jsonl", *(["--db", str(db)] if db else [])).stdout


def test_the_export_of_an_encrypted_store_has_no_word_of_it(secret: Om, exported: Path) -> None:
    content = exported.read_bytes()
    assert not [word for word in (*WORDS, "content", "record") if word.encode() in content.lower()]
    assert key_name(exported) == key_name(secret.db)
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    assert [each.name for each in exported.parent.iterdir() if "memory.jsonl" in each.name] == ["memory.jsonl"]


def test_the_user_is_told_and_text_is_a_choice(secret: Om, exported: Path) -> None:
    text = secret.folder / "text.jsonl"
    run = secret("export", "--to", "jsonl", "--json", str(text))
    assert run.document["encrypted"] is True
    assert "`--plain` writes text" in run.stderr
    run = secret("export", "--to", "jsonl", "--plain", str(text))
    assert run.stderr == ""
    assert text.read_text() == memory(secret)
    learn(KEY)
    assert b"".join(line + b"\n" for line in read_lines(exported)) == text.read_bytes()


@pytest.mark.parametrize("to", ["zora-jsonl", "markdown", "agents-md"])
def test_files_for_people_and_other_programs_are_text(secret: Om, to: str) -> None:
    file = secret.folder / "AGENTS.md"
    run = secret("export", "--to", to, "--session", "s", str(file))
    assert "encrypted" not in run.stderr
    assert WORDS[0] in file.read_text()


def test_a_pipe_gets_text(secret: Om) -> None:
    """Also a pipe with a name."""
    assert WORDS[0] in memory(secret)
    fifo = secret.folder / "pipe"
    subprocess.run(["mkfifo", fifo], check=True)
    copy = secret.folder / "copy"
    with copy.open("wb") as stream, subprocess.Popen(["cat", fifo], stdout=stream):
        secret("export", "--to", "jsonl", str(fifo))
    assert copy.read_text() == memory(secret)


def test_the_export_of_a_plain_store_is_text(om: Om) -> None:
    om("observe", "-q", "--session", "s", stdin=LINES)
    file = om.folder / "memory.jsonl"
    run = om("export", "--to", "jsonl", "--json", str(file))
    assert run.document == {"schema": 1, "format": "jsonl", "path": str(file)}
    assert file.read_text() == memory(om)


def test_it_is_merged_into_a_plain_store_and_one_with_the_same_key(secret: Om, exported: Path) -> None:
    plain, same = secret.folder / "plain.db", secret.folder / "same.db"
    secret("store", "encrypt", "--db", str(same))
    for db in (plain, same):
        run = secret("import", "--db", str(db), str(exported))
        assert "1 new session, 600 new messages" in run.stderr
        assert memory(secret, db) == memory(secret)
    assert key_name(plain) is None
    assert "nothing new" in secret("import", str(exported)).stderr


def test_it_is_merged_into_a_store_with_another_key(secret: Om, exported: Path) -> None:
    """`--key-command` prints the key of the file, and OM_KEY is that of the store."""
    db, keyed = str(secret.folder / "other.db"), {"OM_KEY": OTHER}
    secret("store", "encrypt", "--db", db, env=keyed)
    run = secret.process("import", "--db", db, str(exported), env=keyed, code=77)
    assert "memory.jsonl: the key in OM_KEY is not that of the file" in run.stderr
    assert "--key-command" in run.stderr
    assert "nothing" not in run.stdout
    run = secret.process("import", "--db", db, "--key-command", f"echo {OTHER}", str(exported), env=keyed, code=77)
    assert "the key in `--key-command` is not that of the file" in run.stderr
    run = secret.process("import", "--db", db, "--key-command", "echo nonsense", str(exported), env=keyed, code=77)
    assert "no valid key" in run.stderr
    secret.process("import", "--db", db, "--key-command", f"echo {KEY}", str(exported), env=keyed)
    assert secret("export", "--to", "jsonl", "--db", db, env=keyed).stdout == memory(secret)


def test_a_missing_key_is_told(secret: Om, exported: Path) -> None:
    file = secret.folder / "no.key"
    given = {"OM_KEY": "", "OM_STORE_KEY_FILE": str(file), "OM_DB": str(secret.folder / "plain.db")}
    run = secret.process("import", "--json", str(exported), env=given, code=77)
    assert json.loads(run.stderr)["error"]["slug"] == "no-key"
    assert not (secret.folder / "plain.db").exists()


def test_the_key_of_a_file_is_only_for_the_format_of_om(secret: Om, exported: Path) -> None:
    secret("import", "--format", "mem0", "--key-command", "echo", str(exported), code=2)


def test_it_can_be_piped_to_om(secret: Om, exported: Path) -> None:
    run = secret.start("import", "-", env={"OM_DB": str(secret.folder / "plain.db")})
    _, said = run.communicate(exported.read_bytes(), timeout=60)
    assert (run.returncode, b"600 new messages" in said) == (0, True)


def test_a_pipe_into_an_encrypted_store_is_not_kept_as_text(secret: Om) -> None:
    """What waits until all of it is there is encrypted as well."""
    text, db, kept = memory(secret), str(secret.folder / "same.db"), secret.folder / "tmp"
    kept.mkdir()
    secret("store", "encrypt", "--db", db)
    found: list[bytes] = []
    process = secret.start("import", "--db", db, "-", env={"TMPDIR": str(kept)})
    assert process.stdin is not None
    process.stdin.write(text[: len(text) // 2].encode())
    process.stdin.flush()
    found += [each.read_bytes() for each in kept.iterdir()]
    _, said = process.communicate(text[len(text) // 2 :].encode(), timeout=60)
    assert b"600 new messages" in said
    assert not [each for each in found if WORDS[0].encode() in each.lower()]
    assert not list(kept.iterdir())


@pytest.mark.parametrize("share", more_in_soak(0.0, 0.1, 0.5, 0.9, 0.999))
def test_what_was_cut_is_refused_as_a_whole(secret: Om, exported: Path, share: float) -> None:
    content, db = exported.read_bytes(), secret.folder / "plain.db"
    exported.write_bytes(content[: int(len(content) * share)])
    secret("import", "--db", str(db), str(exported), code=65)
    assert not db.exists() or not secret("sessions", "--db", str(db)).stdout


@pytest.mark.parametrize("place", more_in_soak(20, 4095, 4096, 20_000, -1))
def test_a_byte_that_is_another_is_found(secret: Om, exported: Path, place: int) -> None:
    content, db = bytearray(exported.read_bytes()), secret.folder / "plain.db"
    content[place] ^= 1
    exported.write_bytes(content)
    run = secret("import", "--db", str(db), str(exported), code=65)
    assert "it is damaged" in run.stderr
    assert not db.exists() or not secret("sessions", "--db", str(db)).stdout


def test_a_byte_of_its_beginning_that_is_another_is_found(secret: Om, exported: Path) -> None:
    content = exported.read_bytes()
    exported.write_bytes(b"x" + content[1:])
    secret("import", "--db", str(secret.folder / "plain.db"), str(exported), code=65)
    exported.write_bytes(content[:8] + b"xyz" + content[11:])
    secret("import", "--db", str(secret.folder / "plain.db"), str(exported), code=77)


def test_lines_that_are_missing_are_found(secret: Om, exported: Path) -> None:
    """The key alone makes no memory whole."""
    uri = f"{exported.as_uri()}?mode=rw"
    with closing(open_encrypted(uri, KEY, wait=0)) as connection:
        connection.execute("DELETE FROM lines WHERE number = 7")
    assert "lines are missing" in secret("import", "--db", "plain.db", str(exported), code=65).stderr


def test_an_encrypted_store_is_no_export(secret: Om) -> None:
    assert "not an export" in secret("import", "--db", str(secret.folder / "plain.db"), str(secret.db), code=65).stderr


def test_without_the_driver_an_encrypted_file_says_what_to_install(secret: Om, exported: Path) -> None:
    code = "import sys; sys.modules['sqlcipher3'] = None; from omcli.__main__ import main; main()"
    secret.program = [sys.executable, "-c", code]
    run = secret.process("import", "--db", str(secret.folder / "plain.db"), str(exported), code=78)
    assert "pip install 'omcli[encryption]'" in run.stderr


@contextmanager
def with_content(file: Path) -> Iterator[bytes]:
    """A file that may not change inside the block."""
    before = file.read_bytes()
    yield before
    assert file.read_bytes() == before


def test_a_file_that_cannot_be_replaced_stays_as_it_was(secret: Om, exported: Path) -> None:
    with with_content(exported):
        secret("export", "--to", "jsonl", f"{secret.db}-x", code=2)
        secret.process("export", "--to", "jsonl", str(exported), env={"OM_KEY": OTHER}, code=77)
    assert [each.name for each in exported.parent.iterdir() if "memory.jsonl" in each.name] == ["memory.jsonl"]
