"""Replies of agents, before their labels are resolved."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import BadInput
from omcli.observers.agent_reply import SCHEMA, PendingToken, parse_agent_reply, parse_token, shown_digest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)
KEYS = st.sampled_from(sorted(SCHEMA["properties"]))  # type: ignore[call-overload]


@given(st.dictionaries(KEYS, JSON) | JSON)
def test_any_json_is_a_document_or_bad_input(document: Any) -> None:
    with suppress(BadInput):
        parse_agent_reply(document)


@given(st.text(), st.integers(0, 1 << 62), st.integers(0, 1 << 62), st.text())
def test_a_token_is_decoded_as_it_was_encoded(session: str, after: int, through: int, counter: str) -> None:
    shown = shown_digest(session, [1, 2], ["a"])
    made = PendingToken(session=session, after=after, through=through, counter=counter, shown=shown)
    assert parse_token(f" {made.encode()}\n") == made


@given(st.text() | st.from_regex(r"om1\.[A-Za-z0-9_-]{0,40}", fullmatch=True))
def test_an_invalid_token_is_bad_input(token: str) -> None:
    with pytest.raises(BadInput, match=r"^token: "):
        parse_token(token)


def test_the_digest_depends_on_messages_rows_and_their_order() -> None:
    seen = {
        shown_digest("s", [1, 2], ["a"]), shown_digest("s", [1], ["a"]), shown_digest("s", [1, 2], []),
        shown_digest("s", [1, 2], ["a", "b"]), shown_digest("s", [1, 2], ["b", "a"]), shown_digest("t", [1, 2], ["a"]),
    }  # fmt: skip
    assert len(seen) == 6


def test_a_document_as_the_schema_wants_it_with_nothing_in_it_is_read() -> None:
    lists = ("observations", "used", "reflections", "items", "retire")
    empty: dict[str, object] = {
        "token": "t",
        "current_task": None,
        "next_step": None,
        "title": None,
        **{name: [] for name in lists},
    }
    assert set(empty) == set(SCHEMA["properties"])  # type: ignore[call-overload]
    assert not parse_agent_reply(empty).is_about_messages
    assert list(parse_agent_reply(empty).rows()) == []


def test_labels_are_read_however_they_are_bracketed() -> None:
    document = {"token": "t", "observations": [{"text": "x", "sources": [" [M2]", "m2", "(m1)"], "replaces": ["O3"]}]}
    found = parse_agent_reply(document)
    assert list(found.messages()) == [("observations[0].sources", "m2"), ("observations[0].sources", "m1")]
    assert list(found.rows()) == [("observations[0].replaces", "o3")]
