"""How rows are worded: texts cut between words, and the lines a text begins with."""

from __future__ import annotations

from omcli.memory.patterns import lazily
from omcli.memory.text import one_line

_WIDE = lazily("[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]")


def cut(text: str, limit: int) -> str:
    """A text of at most `limit` characters, cut between words and marked with an ellipsis; never inside a name."""
    if len(text) <= limit:
        return text
    end = text.rfind(" ", 0, limit - 1)
    if end <= 0:  # a script without spaces, or one long run of characters, which is no name
        wide = [] if text.isascii() else list(_WIDE.finditer(text, 0, max(0, limit - 1)))
        end = wide[-1].end() if wide else 0
    return f"{text[:end].rstrip()} …" if end > 0 else "…"


def first_lines(text: str, count: int | None) -> list[str]:
    """The first lines of a text that hold anything, each on one line; all of them where `count` is None."""
    return [one_line(line) for line in text.splitlines() if line.strip()][:count]
