"""SQL that only SQLite understands is in one place, so that a store on another engine knows what to replace."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from omcli import sqlite
from omcli.sqlite.dialect import interrupt_of, prepare

FOLDER = Path(sqlite.__file__).parent
ITS_OWN = {"dialect.py", "connection.py", "backups.py", "cipher.py", "restore.py"}
"""Modules about SQLite itself: its SQL, transactions, files and pragmas."""
ONLY_SQLITE = re.compile(
    r"json_each|json_group|json_extract|->>|pragma|PRAGMA|OR IGNORE|OR REPLACE|\biif\(|\bGLOB\b|INDEXED BY|\bIS \?"
    r"|\btotal\(|lower\(hex|char\(0\)|\browid\b|lastrowid|AND \+|VACUUM|sqlite_schema|BEGIN|user_version"
)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_the_roles_speak_plain_sql(path: Path) -> None:
    if path.name not in ITS_OWN:
        found = ONLY_SQLITE.findall(path.read_text(encoding="utf-8"))
        assert not found, f"{path.name} uses {found}, which belongs into dialect.py"


def test_an_error_with_a_cause_of_its_own_is_not_taken_for_an_interrupt() -> None:
    with closing(prepare(sqlite3.connect(":memory:"))) as connection:
        connection.execute("CREATE TABLE words (word UNIQUE)")
        with pytest.raises(sqlite3.OperationalError):
            connection.execute("SELECT om_words(1)")
        connection.execute("INSERT INTO words VALUES ('tide')")
        with pytest.raises(sqlite3.IntegrityError) as repeated:
            connection.execute("INSERT INTO words VALUES ('tide')")
    assert interrupt_of(repeated.value) is None
