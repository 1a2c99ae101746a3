"""Reading JSON values that may be of any type: each function gives what was asked for, or nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from omcli.base.patterns import lazily
from omcli.formats.own_output import begins_line, printed
from omcli.formats.source import Record
from omcli.memory.notation import TAG

_EMPTY: Record = {}


def record(value: object) -> Record:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else _EMPTY


def string(value: object) -> str | None:
    """The text, or None for anything else and for the empty text."""
    return value if isinstance(value, str) and value else None


def text(value: object) -> str:
    """The text, or the empty text."""
    return value if isinstance(value, str) else ""


def objects(value: object) -> list[Record]:
    """The objects of a list; none for anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def exit_code(value: object) -> int | None:
    """The exit code of a command, as a number or its digits; None for what no command exits with."""
    if isinstance(value, str) and len(value) <= 11 and value.removeprefix("-").isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**32 else None


def compact_json(value: object) -> str:
    """A value as JSON on one line, non-ASCII as it is; a text is taken to be JSON already.

    What was parsed at the limit of nesting can be too deep to be written again; then a note stands for it.
    """
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return '"[nested too deep]"'


INJECTED_TAGS = ("system-reminder", TAG, "ide_opened_file", "ide_selection", "hook_context")
_TAG = lazily(rf"<(/?)({'|'.join(INJECTED_TAGS)})(?:\s[^<>]*)?>")


def without_injected(said: str) -> str:
    """What was said without the blocks that programs put into it: reminders, editor selections, memory, our own output.

    Blocks may be nested. One that is never closed (it was cut off) ends with the text, but only where its tag begins a
    line: elsewhere somebody is talking about the tag.
    """
    blocks = _injected_blocks(said)
    if not blocks:
        return said
    ends = [0, *(end for _, end in blocks)]
    starts = [*(start for start, _ in blocks), len(said)]
    kept = "".join(said[end:start] for end, start in zip(ends, starts, strict=True)).rstrip()
    return kept.lstrip() if not said[: blocks[0][0]].strip() else kept


def _injected_blocks(said: str) -> list[tuple[int, int]]:
    """Start and end of each outermost injected block."""
    blocks: list[tuple[int, int]] = []
    after = 0
    for start, end in sorted([*printed(said), *_tagged(said)]):
        if start >= after:
            blocks.append((start, end))
            after = end
    return blocks


def _tagged(said: str) -> Iterator[tuple[int, int]]:
    """Start and end of each block between tags."""
    tags = list(_TAG.finditer(said)) if "<" in said else []
    ends = _ends(tags)
    for tag in tags:
        start = tag.start()
        if not tag[1] and (start in ends or begins_line(said, start)):
            yield start, ends.get(start, len(said))


def _ends(tags: list[re.Match[str]]) -> dict[int, int]:
    """Where the block of each opening tag ends, by where the tag starts; unclosed ones are left out."""
    ends: dict[int, int] = {}
    opened: dict[str, list[int]] = {name: [] for name in INJECTED_TAGS}
    for tag in tags:
        if not tag[1]:
            opened[tag[2]].append(tag.start())
        elif opened[tag[2]]:
            ends[opened[tag[2]].pop()] = tag.end()
    return ends
