"""A piece of a transcript, read alone: its messages are those of the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from omcli.formats import named
from omcli.memory.message import Message
from omcli.memory.transcript import Identities
from tests.unit.formats.readings import items_of

STORIES = Path(__file__).parents[2] / "stories"


@pytest.mark.parametrize(
    ("story", "form"),
    [("claude_code_refactor", "claude-code"), ("codex_release", "codex"), ("pi_bugfix", "pi")],
)
def test_a_piece_gives_its_messages_the_identities_they_have_in_the_whole(story: str, form: str) -> None:
    """F68, F12: also a result whose call is in the piece before, which says what tool it was."""
    reader = named(form)
    lines = (STORIES / f"{story}.jsonl").read_bytes().splitlines(keepends=True)

    def identities(begin: int) -> set[str]:
        of_session = Identities("s", format_name=form, copies=reader.copies)
        return {of_session.of(item) for item in items_of(reader, b"".join(lines[begin:])) if isinstance(item, Message)}

    whole = identities(0)
    for begin in range(1, len(lines)):
        assert identities(begin) <= whole, f"from line {begin + 1} on"
