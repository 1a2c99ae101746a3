"""A long session in our own words: somebody and an agent build a tide table, over a hundred messages of chat."""

from __future__ import annotations

import json
from typing import Any

_Entry = dict[str, Any]
STANDING = "Always write heights in metres with two decimals."
LASTING = (
    STANDING,
    "I prefer plain CSV over spreadsheets.",
    "We decided to keep station ids in lower case.",
    "Never push to the release branch without asking me.",
)
"""What the person says once, and later sessions should know."""
_STATIONS = (
    "cuxhaven", "bremerhaven", "husum", "norderney", "borkum", "wittduen", "list", "buesum", "emden", "helgoland",
    "stade", "glueckstadt",
)  # fmt: skip
_TROUBLES = (
    ("KeyError: '{name}'", "the id was looked up in upper case"),
    ("ValueError: height '-' of {name} is no number", "gaps in the gauge's data are written as a dash"),
    ("AssertionError: 13 tides on one day at {name}", "summer time was counted twice"),
)


def long_work() -> list[_Entry]:
    """The whole conversation in OpenAI's chat shape; the same every time."""
    entries: list[_Entry] = [{"role": "system", "content": "You are a careful programmer."}]
    for number, name in enumerate(_STATIONS):
        entries += _station(number, name)
    return [*entries, {"role": "user", "content": "Thanks. What is left before we can release the table?"}]


def _station(number: int, name: str) -> list[_Entry]:
    """Ten messages: a request, what was looked at, an edit, a test that fails and is mended, how it ended."""
    path = f"stations/{name}.csv"
    wish = LASTING[number // 2] if number % 2 == 0 and number // 2 < len(LASTING) else ""
    error, cause = _TROUBLES[number % len(_TROUBLES)]
    rows = "\n".join(f"2026-03-{day:02},{4 + day % 3}:{day:02},{day % 5}.{day:02}" for day in range(1, 29))
    test = {"command": f"pytest -q tests/test_{name}.py"}
    return [
        _said("user", f"Please add {name} to the tide table, its data is in {path}. {wish}".rstrip()),
        _said("assistant", f"I will read the data of {name} first."),
        *_tool(number, 1, "read_file", {"path": path}, rows),
        *_tool(number, 2, "bash", test, f"Error: exit code 1\nE   {error.format(name=name)}"),
        _said("assistant", f"The test of {name} fails: {cause}. I am mending that in tides/{name}.py."),
        *_tool(number, 3, "bash", test, "Exit code: 0\n7 passed"),
        _said("assistant", f"{name.capitalize()} is in the table now, and all 7 tests of it pass."),
    ]


def _said(role: str, text: str) -> _Entry:
    return {"role": role, "content": text}


def _tool(number: int, nth: int, name: str, arguments: dict[str, str], output: str) -> list[_Entry]:
    call_id = f"call_{number}_{nth}"
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": output},
    ]
