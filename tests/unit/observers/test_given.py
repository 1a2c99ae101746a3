"""What an agent hands in, before anything is looked up."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.errors import BadInput
from omcli.memory.observation import Priority
from omcli.observers.given.checking import reflected
from omcli.observers.given.document import handed
from omcli.observers.given.schema import schema
from omcli.observers.given.ticket import Ticket, digest_of, ticket
from tests.material import row, row_id

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)
KEYS = st.sampled_from(sorted(schema()["properties"]))  # type: ignore[call-overload]


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


def test_the_schema_asks_for_every_field_and_states_no_lengths() -> None:
    """T26, F41: what strict endpoints refuse is not in it."""
    written = json.dumps(schema())
    assert not any(word in written for word in ("minLength", "maxItems", "\\d", "oneOf"))

    def check(node: Any) -> None:
        if isinstance(node, dict):
            if node.get("type") == "object":
                assert node["required"] == list(node["properties"])
                assert node["additionalProperties"] is False
            for inner in node.values():
                check(inner)

    check(schema())


def test_a_document_as_the_schema_wants_it_with_nothing_in_it_is_read() -> None:
    lists = ("observations", "used", "reflections", "items", "retire")
    empty: dict[str, object] = {
        "token": "t",
        "current_task": None,
        "next_step": None,
        "title": None,
        **{name: [] for name in lists},
    }
    assert set(empty) == set(schema()["properties"])  # type: ignore[call-overload]
    assert not handed(empty).is_of_messages
    assert list(handed(empty).rows()) == []


def test_labels_are_read_however_they_are_bracketed() -> None:
    document = {"token": "t", "observations": [{"text": "x", "sources": [" [M2]", "m2", "(m1)"], "replaces": ["O3"]}]}
    found = handed(document)
    assert list(found.messages()) == [("observations[0].sources", "m2"), ("observations[0].sources", "m1")]
    assert list(found.rows()) == [("observations[0].replaces", "o3")]


OLD = row(1, text="pnpm 9.1 builds the app", event_at="2026-03-01T10:00:00.000Z", sources=(1, 4))
NEW = row(2, text="the app is tested with vitest", event_at="2026-03-02T10:00:00.000Z", sources=(3, 4))
PINNED = row(3, text="never use npm", tags=("pinned",))
ROWS = {"o1": OLD, "o2": NEW, "o3": PINNED, row_id(1): OLD}


class TestReflections:
    def made(self, **document: Any) -> Any:
        return reflected(handed({"token": "t", **document}), ROWS)

    def test_they_stand_for_the_rows_they_cite_each_once(self) -> None:
        reflections = [{"text": "pnpm builds,\nvitest tests", "from": ["o2", "o1", row_id(1)], "priority": "high"}]
        (draft,) = self.made(reflections=reflections).reflections
        assert draft.text == "pnpm builds, vitest tests"
        assert draft.supports == draft.replaces == (row_id(2), row_id(1))
        assert (draft.sources, draft.event_at) == ((1, 3, 4), "2026-03-02T10:00:00.000Z")
        assert Priority.of_importance(draft.importance) is Priority.HIGH

    def test_what_a_person_pinned_supports_and_stays(self) -> None:
        (draft,) = self.made(reflections=[{"text": "use pnpm, not npm", "from": ["o1", "o3"]}]).reflections
        assert (draft.supports, draft.replaces) == ((row_id(1), row_id(3)), (row_id(1),))

    def test_names_that_no_cited_row_has_make_them_unverified(self) -> None:
        found = self.made(reflections=[{"text": "pnpm 9.1 and yarn.lock", "from": ["o1"]}])
        assert found.reflections[0].tags == ("unverified",)
        assert found.reflections[0].metadata == {"unverified": ["yarn.lock"]}
        assert found.findings == {"unverified": 1}

    @pytest.mark.parametrize(
        ("first", "last", "told", "wrong"),
        [
            ("2026-02-01", "2026-02-10", "2026-02-01/2026-02-10", 0),
            ("2026-02-01", "2026-02-01", "2026-02-01", 0),
            ("2026-02-30", "2026-02-10", "2026-02-10", 1),
            ("2026-02-10", "2026-02-01", None, 1),
            ("yesterday", None, None, 1),
            (None, None, None, 0),
        ],
    )
    def test_dates_are_real_and_in_order(self, first: str | None, last: str | None, told: str, wrong: int) -> None:
        found = self.made(reflections=[{"text": "pnpm", "from": ["o1"], "first": first, "last": last}])
        assert found.reflections[0].refers_to == told
        assert found.findings.get("dates", 0) == wrong

    def test_items_of_unknown_types_are_knowledge(self) -> None:
        """T40."""
        given = [{"text": "pnpm builds", "type": kind, "from": ["o1"], "tags": ["ci", "ci"]} for kind in ("skill", "x")]
        found = self.made(items=given)
        assert [(item.type, item.tags) for item in found.items] == [("skill", ("ci",)), ("knowledge", ("ci",))]
        assert found.findings == {"types": 1}

    def test_a_row_does_not_make_itself_superfluous(self) -> None:
        with pytest.raises(BadInput, match=r"retire\[0\]\.by"):
            self.made(retire=[{"row": "o1", "reason": "duplicate", "by": row_id(1)}])
        with pytest.raises(BadInput, match="a person wrote or pinned it"):
            self.made(retire=[{"row": "o3", "reason": "duplicate"}])

    def test_a_text_of_nothing_but_secrets_is_refused_by_its_place(self) -> None:
        with pytest.raises(BadInput, match=r"reflections\[0\]\.text"):
            self.made(reflections=[{"text": "<private>all of it</private>", "from": ["o1"]}])
