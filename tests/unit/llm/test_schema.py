"""What models and agents are asked for: a structure that every wire accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from omcli.llm.schema import Schema
from omcli.observers import agent_reply as of_agents
from omcli.observers.model import reply as of_observers
from omcli.reflectors import model as asking


@pytest.mark.parametrize(
    ("schema", "objects"),
    [(of_observers.SCHEMA, 2), (of_agents.SCHEMA, 5), (asking.SCHEMA, 4)],
    ids=["observer", "agent", "reflector"],
)
def test_a_schema_says_nothing_that_a_wire_may_refuse(schema: Schema, objects: int) -> None:
    """T26, F41: all fields required, no others allowed, no lists of types, no lengths, no `\\d`."""
    found = list(_objects(schema))
    assert sum(each.get("type") == "object" for each in found) == objects
    for each in found:
        assert isinstance(each.get("type", ""), str)
        if each.get("type") == "object":
            assert each["required"] == list(each["properties"])
            assert each["additionalProperties"] is False
    written = json.dumps(schema)
    refused = r"\\\\d|minLength|maxLength|maxItems|minItems|minimum|maximum|format|oneOf|\$ref"
    assert not re.search(refused, written)
    for pattern in re.findall(r'"pattern": "([^"]*)"', written):
        assert re.fullmatch(pattern, "2026-02-10 14:32")


def _objects(schema: object) -> Iterator[Mapping[str, Any]]:
    """All schemas within one, but no mappings of names to schemas."""
    if isinstance(schema, Mapping):
        yield schema
        for key in ("items", "anyOf"):
            yield from _objects(schema.get(key))
        for field in schema.get("properties", {}).values():
            yield from _objects(field)
    elif isinstance(schema, list):
        for value in schema:
            yield from _objects(value)
