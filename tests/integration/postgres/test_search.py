"""Search on PostgreSQL: it finds what SQLite finds, and a lost index is noticed and mended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import IndexDamaged
from omcli.base.record import replace
from omcli.memory.observation import LogQuery
from omcli.memory.ports import Store
from omcli.postgres import PostgresStore
from omcli.postgres.search import words_of
from omcli.recall.ranking import Query
from tests.contract.keeping import keep
from tests.fakes import MemoryStore
from tests.material import row, said

TEXTS = (
    "We cached the caches while caching; a cacher.",
    "don't, can’t, l'été, rock'n'roll",
    "call auth_token() in src/foo/bar.py:12, or mail ada@example.org",
    "https://example.org/a-b?c=d&e=%20#f",
    "v1.2.3-rc1+build 0x1F -5 3.14 1,000 10²",
    "un café, ÅNGSTRÖM, Straße, STRASSE, naïve, Ελλάδα, ΕΛΛΆΔΑ",
    "e\u0301te\u0301 of combining marks, \ufb01ne of ligatures, \u0130stanbul, \u212aelvin",
    "class SqliteTextSearch, getUserName(), HTTPServer, iPhone",
    "数据库迁移 in 東京都, 한국어 문서, ひらがな カタカナ",
    "привет, мир; шёл, шел",
    "हिन्दी में लिखा, ไทย, עברית שָׁלוֹם, العَرَبِيَّة",
    "running runs ran runner easily generalizations relational conditional",
    "the a of and is not",
    "snake_case kebab-case CamelCase dotted.name path/to/file C:\\dir\\file",
    "🙂 emoji, ½ fractions, Ⅷ numerals, \ue000 of private use",
    "a NUL\0byte, \0alone\0 and last\0",
    f"{'x' * 500} {'ы' * 500} {'Qm9v' * 100}",
    "",
    "% _ \\ ' \" $1 :name ? {}",
)
WORDS = tuple(dict.fromkeys(word for text in TEXTS for word in (*text.split(), *Query.of(text or "-").words)))


@pytest.fixture
def store(postgres_store_url: str) -> Iterator[PostgresStore]:
    with PostgresStore.open(postgres_store_url, wait=1) as opened:
        assert isinstance(opened, PostgresStore)
        yield opened


def fill(store: Store) -> None:
    keep(store, *(said(text) for text in TEXTS))
    named = said("hello")
    keep(store, replace(named, message=replace(named.message, name="José")))
    store.rows.add(*(row(number, text=text or "-") for number, text in enumerate(TEXTS, start=1)))


class TestAsSqlite:
    def test_the_same_words_are_found(self, store: PostgresStore) -> None:
        fill(store)
        with MemoryStore() as other:
            fill(other)
            found, expected = (
                dict(zip(WORDS, each.index.match(WORDS, LogQuery(), most=100), strict=True)) for each in (store, other)
            )
        assert found == expected
        assert sum(bool(match.messages and match.rows) for match in found.values()) > 100

    @given(st.text())
    def test_a_text_has_the_words_of_sqlites_index(self, text: str) -> None:
        with MemoryStore() as other:
            keep(other, said(text or "-"))
            connection = other.database.connection
            connection.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab (main, message_words, row)")
            (stored,) = connection.execute("SELECT text FROM messages").fetchone()
            assert words_of([stored]) == [[word for (word,) in connection.execute("SELECT term FROM v")]]

    @pytest.mark.parametrize("text", [*TEXTS[:-2], "strasse", "fine", "istanbul", "kelvin", "%", "_", "\\", "'", "$1"])
    def test_the_same_text_is_found(self, store: PostgresStore, text: str) -> None:
        fill(store)
        text = " ".join(text.casefold().split())
        with MemoryStore() as other:
            fill(other)
            for part in dict.fromkeys((text, text[1:9], text[-3:])):
                assert [each.seq for each in store.search.messages(part)] == [
                    each.seq for each in other.search.messages(part)
                ]
                assert store.search.rows(part) == other.search.rows(part)


class TestIndex:
    def test_many_texts_has_index_in_one_transaction(self, store: PostgresStore) -> None:
        store.rows.add(*(row(number, text=f"tide {number}") for number in range(1, 1202)))
        [tide, last] = store.index.match(["tide", "1201"], LogQuery(), most=10_000)
        assert (len(tide.rows), [*last.rows]) == (1201, [1201])
        store.index.check(thoroughly=True)

    def test_a_text_with_very_many_words_is_indexed(self, store: PostgresStore) -> None:
        keep(store, said(" ".join(f"word{number}x{'y' * 30}" for number in range(50_000))))
        [match] = store.index.match([f"word49999x{'y' * 30}"], LogQuery(), most=10)
        assert match.messages == {1}

    def test_a_transaction_that_failed_leaves_nothing_to_index(self, store: PostgresStore) -> None:
        def add_and_fail() -> None:
            with store.database.writing() as connection:
                connection.execute(
                    "INSERT INTO messages (session, role, counted, tokens, counter, text)"
                    " SELECT number, 'user', TRUE, 1, 'words', 'tide' FROM sessions"
                )
                raise ZeroDivisionError

        keep(store, said("one"))
        with pytest.raises(ZeroDivisionError):
            add_and_fail()
        keep(store, said("two"))
        store.index.check(thoroughly=True)

    @pytest.mark.parametrize("table", ["message_words", "row_words"])
    @pytest.mark.parametrize("thoroughly", [False, True])
    def test_a_lost_entry_is_noticed_and_mended(self, store: PostgresStore, table: str, thoroughly: bool) -> None:
        fill(store)
        store.index.check(thoroughly=thoroughly)
        before = store.index.match(WORDS, LogQuery(), most=100)
        with store.database.writing() as connection:
            connection.execute(f"DELETE FROM {table} WHERE words @> ARRAY['cach']")
        with pytest.raises(IndexDamaged):
            store.index.check(thoroughly=thoroughly)
        store.index.renew()
        store.index.check(thoroughly=True)
        assert store.index.match(WORDS, LogQuery(), most=100) == before
