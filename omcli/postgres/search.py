"""Search by words in arrays of words, and search in all text for `om forget`.

The words of a text are those that FTS5 makes of it in memory, so that both engines find the same messages and rows.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from threading import local
from typing import TYPE_CHECKING

from omcli.sqlite import codec, dialect, search
from omcli.sqlite.search import IndexQuery, SqliteSearchIndex, SqliteTextSearch

if TYPE_CHECKING:
    from omcli.postgres.dialect import Connection

_LONGEST = 400
"""Maximum number of characters of a word. An entry of the index may have 2,700 bytes."""
_TOKENIZER = "porter unicode61 remove_diacritics 2"
"""That of SQLite's index."""
_TABLES = {"messages": ("message_words", "seq"), "observations": ("row_words", "position")}
"""The indexes, by the table of their texts, with the column that both have."""
_TEXTS = {
    "messages": f"SELECT seq, coalesce(name || ' ', '') || text FROM messages WHERE {dialect.among('seq')}",
    "observations": f"SELECT position, text FROM observations WHERE {dialect.among('position')}",
}
_INDEXES = """
    SELECT indrelid::regclass::text AS indrelid, relname, indisvalid, pg_has_role(relowner, 'USAGE'), indisprimary,
        pg_get_indexdef(indexrelid)
    FROM pg_index JOIN pg_class ON oid = indexrelid
    WHERE indrelid IN ('message_words'::regclass, 'row_words'::regclass)
"""
"""The indexes with their tables: if they are whole, if the user may rebuild them, and what makes them."""
_DIFFER = """
    SELECT count(*) > 0 FROM {source} AS s FULL JOIN {table} AS w ON w.{number} = s.{number}
    WHERE s.{number} IS NULL OR w.{number} IS NULL
"""
_NEWEST_DIFFER = """
    SELECT ARRAY(SELECT {number} FROM {source} ORDER BY {number} DESC LIMIT 1000)
        <> ARRAY(SELECT {number} FROM {table} ORDER BY {number} DESC LIMIT 1000)
"""
_made = local()


# ---- words


def words_of(texts: Iterable[str], *, indexed: bool = True) -> list[list[str]]:
    """Return the words of each text, each once, in the form in which FTS5 indexes them, or looks them up."""
    connection = _memory_index()
    found: dict[int, list[str]] = defaultdict(list)
    given = list(enumerate(texts))
    connection.execute("BEGIN")
    try:
        connection.executemany(
            f"INSERT INTO texts (rowid, text) VALUES (?, {'om_words(?)' if indexed else '?'})", given
        )
        for number, word in connection.execute("SELECT doc, term FROM words"):
            found[number].append(word[:_LONGEST])
    except sqlite3.Error as error:
        if (interrupt := dialect.interrupt_of(error)) is not None:
            raise interrupt from None
        raise
    finally:
        connection.rollback()
    return [found[number] for number, _ in given]


def _memory_index() -> sqlite3.Connection:
    """Return this thread's connection to an index in memory that has no texts between two transactions."""
    connection: sqlite3.Connection | None = getattr(_made, "connection", None)
    if connection is None:
        connection = dialect.prepare(sqlite3.connect(":memory:", isolation_level=None))
        connection.execute(
            "CREATE VIRTUAL TABLE texts USING fts5"
            f" (text, content = '', detail = none, columnsize = 0, tokenize = '{_TOKENIZER}')"
        )
        connection.execute("CREATE VIRTUAL TABLE words USING fts5vocab (texts, instance)")
        _made.connection = connection
    return connection


def _entries(words: Sequence[str]) -> list[str]:
    """Return the words under which a text is indexed: its own, and the first character of each that begins outside
    ASCII, because such a character is also searched for alone.
    """
    return list(dict.fromkeys((*words, *(word[0] for word in words if not word[0].isascii()))))


# ---- keeping the index


def index_new(connection: Connection) -> None:
    """Index the texts that this transaction has added."""
    settings = ", ".join(f"current_setting('om.unindexed_{source}', TRUE)" for source in _TABLES)
    noted = connection.execute(f"SELECT {settings}").fetchone() or ()
    for source, numbers in zip(_TABLES, noted, strict=True):
        if numbers:
            _index(connection, source, [*map(int, numbers.split(","))])


def renew(connection: Connection) -> None:
    """Make the index again from the messages and rows. Only the owner of its tables can mend a damaged file.

    What finds words is made when all words are there, which takes a fraction of the time.
    """
    owned = [index for index in connection.execute(_INDEXES) if index["pg_has_role"]]
    for source, (table, number) in _TABLES.items():
        connection.execute(f"DELETE FROM {table}")
        indexes = [index for index in owned if index["indrelid"] == table]
        for index in indexes:
            connection.execute(f"{'REINDEX' if index['indisprimary'] else 'DROP'} INDEX {index['relname']}")
        found = connection.execute(f"SELECT {number} FROM {source} ORDER BY 1").fetchall()
        for words in _words_at(connection, source, [each for (each,) in found]):
            connection.copy(table, (number, "words"), ((at, _list_value(each)) for at, each in words))
        for index in indexes:
            if not index["indisprimary"]:
                connection.execute(index["pg_get_indexdef"])


def _list_value(words: Iterable[str]) -> str:
    """Return words as PostgreSQL reads an array. They have letters and digits alone."""
    return "{" + ",".join(f'"{word}"' for word in words) + "}"


def _words_at(connection: Connection, source: str, numbers: Sequence[int]) -> Iterator[list[tuple[int, list[str]]]]:
    """Yield the words of texts by their numbers, as far as the texts are still there, page by page."""
    for at in range(0, len(numbers), dialect.PAGE):
        which = dialect.as_list(numbers[at : at + dialect.PAGE])
        found = connection.execute(_TEXTS[source], (which,)).fetchall()
        words = map(_entries, words_of(text for _, text in found))
        yield list(zip((number for number, _ in found), words, strict=True))


def _index(connection: Connection, source: str, numbers: Sequence[int]) -> None:
    """Index texts by their numbers."""
    table, key = _TABLES[source]
    for words in _words_at(connection, source, numbers):
        connection.execute(
            f"INSERT INTO {table} ({key}, words) SELECT number, string_to_array(words, ' ')"
            " FROM unnest(?::bigint[], ?::text[]) AS new (number, words)"
            f" ON CONFLICT ({key}) DO UPDATE SET words = excluded.words",
            ([number for number, _ in words], [" ".join(each) for _, each in words]),
        )


class PostgresSearchIndex(SqliteSearchIndex):
    """The index in the tables `message_words` and `row_words`. A word is cut after `_LONGEST` characters."""

    def _index_query(self, source: str, word: str) -> IndexQuery:
        table, number = _TABLES[source]
        [words] = words_of([word], indexed=False)
        if len(word) == 1 and not word.isascii() and words and words[0].isascii():  # as FTS5 looks for `ö`
            return IndexQuery(
                table, number, "EXISTS (SELECT 1 FROM unnest(words) AS one WHERE starts_with(one, ?))", words[0]
            )
        return IndexQuery(table, number, "words @> string_to_array(?, ' ')", " ".join(words) or " ")

    def check(self, *, thoroughly: bool = False) -> None:
        """See SearchIndex. Only the numbers of the newest texts are compared, unless it is `thoroughly`."""
        differ = _DIFFER if thoroughly else _NEWEST_DIFFER
        with self._database.reading() as connection:
            are_valid = all(index["indisvalid"] for index in connection.execute(_INDEXES))
            lost = (
                connection.execute(differ.format(source=source, table=table, number=number)).fetchone()[0]
                for source, (table, number) in _TABLES.items()
            )
            if not are_valid or any(lost):
                raise dialect.index_damaged(self._database.path)


# ---- all text

_STEPS = f"""
    SELECT o.position, o.superseded_by FROM of_it CROSS JOIN LATERAL (
        SELECT position, superseded_by FROM observations WHERE position IN
            (SELECT observation FROM observation_supports WHERE supported = of_it.position)
        UNION ALL SELECT position, superseded_by FROM observations AS n WHERE {codec.same_id("n.id", "of_it.successor")}
    ) AS o
"""
"""See `search.DERIVED`. PostgreSQL allows only one reference to the rows found so far."""


class PostgresTextSearch(SqliteTextSearch):
    """Search that reads all text, because the index finds words, and not parts of them."""

    _derived = search.DERIVED % _STEPS

    def _may_match(self, columns: Sequence[str], text: str) -> tuple[str, dict[str, str]]:
        words = sorted(search.SEARCHABLE.findall(text), key=len)
        if not words and text.isascii():
            return "TRUE", {}
        match = "octet_length({0}) > length({0})"
        if words:  # `lower` changes the letters of ASCII alone, because texts are compared by their bytes
            match = f"(strpos(lower({{0}}), :word) > 0 OR {match} AND {{0}} ~ :folded)"
        values = {"word": words[-1] if words else "", "folded": f"[{search.FOLDED}]"}
        return f"({' OR '.join(match.format(column) for column in columns)})", values
