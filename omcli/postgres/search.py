"""Search by words in arrays of stems, and search in all text for `om forget`.

A word is what FTS5 makes one of: a run of letters and digits, in lower case and without diacritics, of the text that
`index_text` returns. So both engines find the same messages and rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from unicodedata import combining, normalize

from omcli.sqlite import dialect, search
from omcli.sqlite.search import Lookup, SqliteSearchIndex, SqliteTextSearch

if TYPE_CHECKING:
    from omcli.postgres.dialect import Connection

_WORD = re.compile(r"[^\W_]+")
_AT_ONCE = 500
_LONGEST = 400
"""Maximum number of characters of a word. An entry of the index may have 2,700 bytes."""
_TABLES = {"messages": ("message_words", "seq"), "observations": ("row_words", "position")}
_TEXTS = {
    "messages": f"SELECT seq, coalesce(name || ' ', '') || text FROM messages WHERE {dialect.among('seq')}",
    "observations": f"SELECT position, text FROM observations WHERE {dialect.among('position')}",
}


def words_of(text: str) -> list[str]:
    """Return the words of a text, each once. A word that begins with a character outside ASCII comes with this
    character by itself, because such a character is also searched for alone.
    """
    folded = dialect.index_text(text).lower()
    if not folded.isascii():
        folded = "".join(each for each in normalize("NFKD", folded) if not combining(each))
        folded = normalize("NFC", folded)
    words = dict.fromkeys(word[:_LONGEST] for word in _WORD.findall(folded))
    if not folded.isascii():
        words |= dict.fromkeys(word[0] for word in words if not word[0].isascii())
    return list(words)


def index_new(connection: Connection) -> None:
    """Index the texts that this transaction has added."""
    for source in _TABLES:
        new = connection.execute("DELETE FROM unindexed WHERE source = ? RETURNING number", (source,)).fetchall()
        _index(connection, source, [number for (number,) in new])


def renew(connection: Connection) -> None:
    """Make the index again from the messages and rows."""
    for source, (table, number) in _TABLES.items():
        connection.execute(f"DELETE FROM {table}")
        found = connection.execute(f"SELECT {number} FROM {source} ORDER BY 1").fetchall()
        _index(connection, source, [each for (each,) in found])


def _index(connection: Connection, source: str, numbers: Sequence[int]) -> None:
    table, key = _TABLES[source]
    for at in range(0, len(numbers), _AT_ONCE):
        which = dialect.as_list(numbers[at : at + _AT_ONCE])
        found = connection.execute(_TEXTS[source], (which,)).fetchall()
        connection.executemany(
            f"INSERT INTO {table} ({key}, words) VALUES (?, stems(?)) ON CONFLICT ({key}) DO UPDATE"
            " SET words = excluded.words",
            [(number, words_of(text)) for number, text in found],
        )


class PostgresSearchIndex(SqliteSearchIndex):
    """The index in the tables `message_words` and `row_words`."""

    def _lookup(self, source: str, word: str) -> Lookup:
        table, number = _TABLES[source]
        (found, *_) = words_of(word) or [""]
        return Lookup(table, number, "words && stems(ARRAY[?])", found)

    def check(self, *, thoroughly: bool = False) -> None:
        with self._database.reading() as connection:
            for source, (table, number) in _TABLES.items():
                (differ,) = connection.execute(
                    f"SELECT count(*) FROM {source} AS s FULL JOIN {table} AS w ON w.{number} = s.{number}"
                    f" WHERE s.{number} IS NULL OR w.{number} IS NULL"
                ).fetchone()
                if differ:
                    raise dialect.index_damaged(self._database.path)


class PostgresTextSearch(SqliteTextSearch):
    """Search that reads all text, because the index finds words, and not parts of them."""

    def _may_match(self, columns: Sequence[str], text: str) -> tuple[str, dict[str, str]]:
        words = sorted(search.SEARCHABLE.findall(text), key=len)
        if not words and text.isascii():
            return "TRUE", {}
        match = "octet_length({0}) > length({0})"
        if words:  # `lower` changes the letters of ASCII alone, because texts are compared by their bytes
            match = "(strpos(lower({0}), :word) > 0 OR ({0} ~ :folded))"
        values = {"word": words[-1] if words else "", "folded": f"[{search.FOLDED}]"}
        return f"({' OR '.join(match.format(column) for column in columns)})", values
