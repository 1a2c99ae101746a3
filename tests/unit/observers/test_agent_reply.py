"""What an agent hands in, before anything is looked up."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import BadInput
from omcli.observers.agent_reply import SCHEMA, Ticket, digest_of, handed, ticket

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)
KEYS = st.sampled_from(sorted(SCHEMA["properties"]))  # type: ignore[call-overload]


@given(st.dictionaries(KEYS, JSON) | JSON)
def test_any_json_is_a_document_or_bad_input(document: Any) -> None:
    with suppress(BadInput):
        handed(document)


@given(st.text(), st.integers(0, 1 << 62), st.integers(0, 1 << 62), st.text())
def test_a_ticket_comes_back_from_its_token(session: str, after: int, through: int, counter: str) -> None:
    shown = digest_of(session, [1, 2], ["a"])
    made = Ticket(session=session, after=after, through=through, counter=counter, shown=shown)
    assert ticket(f" {made.written()}\n") == made


@given(st.text() | st.from_regex(r"om1\.[A-Za-z0-9_-]{0,40}", fullmatch=True))
def test_what_is_no_token_is_bad_input(token: str) -> None:
    with pytest.raises(BadInput, match=r"^token: "):
        ticket(token)


def test_what_is_shown_is_told_apart_by_messages_rows_and_their_order() -> None:
    seen = {
        digest_of("s", [1, 2], ["a"]), digest_of("s", [1], ["a"]), digest_of("s", [1, 2], []),
        digest_of("s", [1, 2], ["a", "b"]), digest_of("s", [1, 2], ["b", "a"]), digest_of("t", [1, 2], ["a"]),
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
    assert not handed(empty).is_of_messages
    assert list(handed(empty).rows()) == []


def test_labels_are_read_however_they_are_bracketed() -> None:
    document = {"token": "t", "observations": [{"text": "x", "sources": [" [M2]", "m2", "(m1)"], "replaces": ["O3"]}]}
    found = handed(document)
    assert list(found.messages()) == [("observations[0].sources", "m2"), ("observations[0].sources", "m1")]
    assert list(found.rows()) == [("observations[0].replaces", "o3")]
