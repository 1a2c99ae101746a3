"""Models that nobody would choose, as a program: a prompt on stdin, a reply on stdout.

Run as `python -m tests.benchmarks.made_up NAME`. All make their rows of those that a diligent model would give
(`providers.scripted_echo`), and a reflector's reply is that of such a model.

`high`    calls every row high
`terse`   keeps the first words of every message, and calls them high
`kinds`   keeps every third row, of kinds and priorities that have nothing to do with what it says
`vague`   says of every message only that something was said
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from itertools import cycle
from typing import Any

from omcli.llm.model import Prompt
from omcli.providers.scripted import echo

_Rows = list[dict[str, Any]]
_FIRST_WORDS = 8
_KINDS = (("decision", "high"), ("outcome", "medium"), ("preference", "high"), ("question", "low"), ("fact", "medium"))


def _high(rows: _Rows) -> _Rows:
    return [{**row, "priority": "high"} for row in rows]


def _terse(rows: _Rows) -> _Rows:
    return [{**row, "text": " ".join(row["text"].split()[:_FIRST_WORDS])} for row in _high(rows)]


def _kinds(rows: _Rows) -> _Rows:
    named = zip(rows[::3], cycle(_KINDS), strict=False)
    return [{**row, "kind": kind, "priority": priority} for row, (kind, priority) in named]


def _vague(rows: _Rows) -> _Rows:
    return [{**row, "text": f"Something was said about the work, part {place}"} for place, row in enumerate(rows)]


MADE_UP: Mapping[str, Callable[[_Rows], _Rows]] = {"high": _high, "terse": _terse, "kinds": _kinds, "vague": _vague}


def reply(name: str, asked: str) -> str:
    """What a model of this name says to a whole prompt."""
    is_observer = "\n<<< transcript " in asked
    schema: Mapping[str, object] = {"properties": {"observations" if is_observer else "reflections": {}}}
    said = json.loads(echo(Prompt(system="", content=(asked,), schema=schema, name="reply")))
    if is_observer:
        said["observations"] = MADE_UP[name](said["observations"])
    return json.dumps(said, ensure_ascii=False)


if __name__ == "__main__":
    sys.stdout.write(reply(sys.argv[1], sys.stdin.read()))
