"""What an agent makes of rows, before it is written down."""

from __future__ import annotations

from typing import Any

import pytest

from omcli.base.errors import BadInput
from omcli.memory.observation import Priority, Source
from omcli.memory.reflection import Reflected
from omcli.observers.agent_reply import parse_agent_reply
from omcli.operations.apply import reflected
from omcli.tokenizers import counter
from tests.material import NOW, row, row_id

OLD = row(1, text="pnpm 9.1 builds the app", event_at="2026-03-01T10:00:00.000Z", sources=(1, 4))
NEW = row(2, text="the app is tested with vitest", event_at="2026-03-02T10:00:00.000Z", sources=(3, 4))
PINNED = row(3, text="never use npm", tags=("pinned",))
ROWS = {"o1": OLD, "o2": NEW, "o3": PINNED, row_id(1): OLD}


def made(**document: Any) -> Any:
    return reflected(parse_agent_reply({"token": "t", **document}), ROWS, counter=counter("chars-4"), now=NOW)


def test_reflections_stand_for_the_rows_they_cite_each_once() -> None:
    reflections = [{"text": "pnpm builds,\nvitest tests", "from": ["o2", "o1", row_id(1)], "priority": "high"}]
    (draft,) = made(reflections=reflections).reflections
    assert draft.text == "pnpm builds, vitest tests"
    assert draft.supports == draft.replaces == (row_id(1), row_id(2))
    assert (draft.sources, draft.event_at) == ((1, 3, 4), "2026-03-02T10:00:00.000Z")
    assert (draft.priority, draft.source) == (Priority.HIGH, Source.AGENT)


def test_what_a_person_pinned_supports_and_stays() -> None:
    (draft,) = made(reflections=[{"text": "pnpm, not npm", "from": ["o1", "o3"]}]).reflections
    assert (set(draft.supports), draft.replaces) == ({row_id(1), row_id(3)}, (row_id(1),))


@pytest.mark.parametrize("text", ["pnpm 9.1 and yarn.lock", "<private>all of it</private>"])
def test_a_text_that_does_not_hold_is_refused_by_its_place(text: str) -> None:
    """T49: what no cited row names is not to be had from them."""
    fine = {"text": "pnpm 9.1", "from": ["o1"]}
    with pytest.raises(BadInput, match=r"reflections\[1\]\.text"):
        made(reflections=[fine, {"text": text, "from": ["o1"]}])
    with pytest.raises(BadInput, match=r"items\[1\]\.text"):
        made(items=[fine, {"text": text, "from": ["o1"]}])


def test_a_reflection_has_to_be_shorter_than_its_rows() -> None:
    with pytest.raises(BadInput, match=r"^reflections: they have 6 tokens, and the rows they are made of 6$"):
        made(reflections=[{"text": "the app: built by pnpm.", "from": ["o1"]}])


def test_items_of_unknown_types_are_knowledge() -> None:
    """T40."""
    given = [{"text": f"pnpm {kind}", "type": kind, "from": ["o1"], "tags": ["ci", "ci"]} for kind in ("skill", "x")]
    found = made(items=given)
    assert [item.type for item in found.items] == ["skill", "knowledge"]
    assert all("ci" in item.tags and item.source is Source.AGENT for item in found.items)
    assert made(items=given[:1] * 2).findings == {"duplicates": 1}


def test_nothing_given_is_nothing_made() -> None:
    assert made() == Reflected()


def test_a_row_does_not_make_itself_superfluous() -> None:
    with pytest.raises(BadInput, match=r"retire\[0\]\.by"):
        made(retire=[{"row": "o1", "reason": "duplicate", "by": row_id(1)}])
    with pytest.raises(BadInput, match="a person wrote or pinned it"):
        made(retire=[{"row": "o3", "reason": "duplicate"}])
