"""The memory of a project as Markdown: a file for people, or a section of a file that agents read, such as `AGENTS.md`.

It is enclosed like a pack, so that om recognises it in transcripts. Rows are list items that begin with their date.
Their text can neither open a heading nor close the pack or the section.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omcli.base.record import record, replace
from omcli.exchange.marks import section, without_marks
from omcli.memory.notation import NONE, PREAMBLE, TAG, escape_tags, full_text, line
from omcli.memory.observation import Observation, handle
from omcli.text.clean import USER, one_line

RULES, DECISIONS, FACTS, OPEN, SESSIONS = PARTS = (
    "Rules and Preferences", "Decisions", "Lasting Facts", "Open Work", "Recent Sessions",
)  # fmt: skip
"""The headings, in order."""
SECTION = "memory"
"""Name of the section in `AGENTS.md`."""


@record
class Document:
    """A form in which the memory of a project is written."""

    name: str
    budget: int
    """Usual number of tokens."""
    title: str
    parts: tuple[str, ...]
    level: str
    """Beginning of the headings of parts."""
    is_section: bool = False
    """True if it is a section of a file, whose other lines are kept."""

    def render(self, project: str, rows: Mapping[str, Sequence[str]]) -> str:
        """Return the document with the written rows of its parts. Without rows, a file is empty, and a section has only
        its marks.
        """
        told = [
            f"\n{self.level} {part}\n\n" + "".join(f"{row}\n" for row in rows[part])
            for part in self.parts
            if rows.get(part)
        ]
        title = self.title.format(project=_shown(project))
        text = f"<{TAG}>\n{PREAMBLE}\n\n{title}\n{''.join(told)}\n</{TAG}>\n" if told else ""
        return section(SECTION, text) if self.is_section else text


DOCUMENTS = {
    "markdown": Document(name="markdown", budget=6_000, title="# Memory of {project}", parts=PARTS, level="##"),
    "agents-md": Document(
        name="agents-md",
        budget=1_500,
        title="## Memory of Earlier Sessions",
        parts=(RULES, DECISIONS, FACTS, OPEN),
        level="###",
        is_section=True,
    ),
}


def written(row: Observation, part: str) -> str:
    """Return a row as a list item: its date, text and handle. In rules and decisions, `User:` is left out."""
    text = full_text(row)
    shown = replace(line(row), text=text.removeprefix(USER) if part in (RULES, DECISIONS) else text)
    return f"- {row.dated[:10]}: {without_marks(one_line(NONE.words(shown, '')))} ({handle(row.id)})"


def written_session(session: str, title: str, at: str) -> str:
    """Return a session as a list item: its date, title and id."""
    return f"- {at[:10]}: {_shown(title)} ({_shown(session)})"


def _shown(text: str) -> str:
    return without_marks(escape_tags(one_line(text)))
