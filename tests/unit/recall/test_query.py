"""The words of a query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.recall.ranking import Query


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Why did we drop Redis?", ("drop", "redis")),
        ("redis redis REDIS", ("redis",)),
        ("what is it", ("what", "is", "it")),
        ("auth_token in src/auth.py", ("auth", "token", "src", "py")),
        ('"; DROP TABLE -- OR NEAR(', ("drop", "table", "near")),
        ("数据库", ("数据", "据库", "库")),
        ("cafe\u0301", ("café",)),
        ("what's Ada’s crane, and why doesn't it move", ("ada", "crane", "doesn", "move")),
        ("l'eau d'Ada", ("l", "eau", "d", "ada")),
        ("?!", ()),
        ("", ()),
    ],
)
def test_words_are_what_a_text_says_without_function_words(text: str, words: tuple[str, ...]) -> None:
    assert Query.of(text).words == words


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("where is auth_token set", ("auth_token",)),
        ('the "Outbox   table" please', ("outbox table",)),
        ("src/Auth.py:12 and v1.2.3", ("src/auth.py:12", "v1.2.3")),
        ("the “outbox table”", ("outbox table",)),
        ("plain words", ()),
        ("a well-known real-time feed", ()),
    ],
)
def test_names_and_quotations_are_kept_as_they_are_written(text: str, exact: tuple[str, ...]) -> None:
    assert Query.of(text).exact == exact


@pytest.mark.parametrize(
    ("text", "is_question"),
    [
        ("E1234", False),
        ("redis cache", False),
        ("why does src/auth.py fail today", False),
        ("when does the tide turn back", True),
    ],
)
def test_neighbours_answer_questions_but_are_no_match_for_a_name(text: str, is_question: bool) -> None:
    assert Query.of(text).is_question is is_question


@given(st.text(max_size=300))
def test_any_text_has_words_that_are_in_it(text: str) -> None:
    query = Query.of(text)
    assert len(query.words) <= 64
    assert all(map(str.isalnum, query.words)) or not any(map(str.isalnum, text))


@pytest.mark.parametrize("part", ["a", "1", "数", "a-", "a'", '"a'])
def test_a_long_text_without_spaces_takes_no_longer_than_one_with_them(part: str) -> None:
    """Such as base64: were the time quadratic, this would not end."""
    assert Query.of(part * 300_000).words
