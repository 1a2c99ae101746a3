"""Rows and messages as JSON: stable keys, nothing null, nothing a terminal would act on."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.message import KeptMessage, message_fields
from omcli.memory.observation import Observation, row
from omcli.text.clean import json_line
from tests.strategies import kept_messages, observations, texts

ALWAYS = {"id", "kind", "type", "priority", "importance", "text", "observed_at", "message_ids", "source", "tokens"}
SOMETIMES = {"session", "status", "event_at", "refers_to"}
MORE = {"counter", "tags", "generation", "superseded_by", "dropped_at", "reason"}


@given(observation=observations())
def test_a_row_has_the_keys_of_the_log(observation: Observation) -> None:
    """Every column that a row has, by name; optional ones are left out and never null."""
    columns = row(observation)
    assert columns.keys() >= ALWAYS
    assert columns.keys() <= ALWAYS | SOMETIMES | MORE
    assert None not in columns.values()
    assert json.loads(json_line(columns))["text"] == observation.text


@given(messages=kept_messages(max_size=3))
def test_a_message_has_its_text_exactly(messages: tuple[KeptMessage, ...]) -> None:
    for kept in messages:
        fields = json.loads(json_line(message_fields(kept)))
        assert fields["text"] == kept.message.text
        assert fields["id"] == kept.key
        assert None not in fields.values()


@given(text=texts | st.text(st.characters()))
def test_json_is_exact_on_one_line_and_safe_for_a_terminal(text: str) -> None:
    """F40: lone surrogates, controls and direction marks are escaped, and come back as they were."""
    line = json_line({"text": text})
    assert len(line.splitlines()) == 1
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", line)
    assert line.encode()
    assert json.loads(line) == {"text": text}
