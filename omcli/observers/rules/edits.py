"""What an edit changed: which names it adds or removes, or the line itself where it is only one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from omcli.memory.patterns import lazily
from omcli.memory.record import record
from omcli.memory.text import one_line

_DEFINES = lazily(
    r"^[ \t]*(?:export\s+|default\s+|public\s+|private\s+|protected\s+|static\s+|async\s+|"
    r"pub(?:\([a-z]+\))?\s+|abstract\s+)*"
    r"(?:def|class|func|fn|function\*?|interface|type|struct|enum|trait|impl|module|macro_rules!)\s+"
    r"(?:\([^)\n]*\)\s*)?([A-Za-z_]\w+)",
    re.MULTILINE,
)
# Only at the margin is a constant somebody else's business.
_CONSTANT = lazily(r"^(?:export\s+)?const\s+([A-Za-z_]\w+)", re.MULTILINE)
_HEADING = lazily(r"^#{1,3} +(.+)$", re.MULTILINE)
PATCH = "*** Begin Patch"
_PATCH_FILE = lazily(r"^\*\*\* (Add|Update|Delete) File: (.+)$")
_PATCH_MOVE = lazily(r"^\*\*\* Move to: (.+)$")

_TELLING = lazily(r"\w{3}")

_NAMES_SHOWN = 6
_LINE_CHARACTERS = 90


@record
class Change:
    """One file's part of an edit: `old` was replaced by `new`; creating has no old, deleting no new."""

    path: str
    old: str = ""
    new: str = ""
    creates: bool = False
    deletes: bool = False
    moved_to: str = ""


def changes_of(arguments: Mapping[str, object], raw: str) -> list[Change]:
    """The changes that an edit tool was asked for, a file at a time. Empty where the arguments are none we know."""
    patch = arguments.get("patch") or arguments.get("input") or arguments.get("diff") or raw
    if isinstance(patch, str) and PATCH in patch:
        return list(_patch_changes(patch))
    if isinstance(listed := arguments.get("changes"), list):
        named = [(part.get("path"), part.get("kind")) for part in listed if isinstance(part, dict)]
        return [
            Change(path=path, creates=kind == "add", deletes=kind == "delete")
            for path, kind in named
            if isinstance(path, str)
        ]
    path = _text(
        arguments, "file_path", "path", "filePath", "filename", "notebook_path", "target_file", "absolute_path"
    )
    if not path:
        return []
    edits = arguments.get("edits")
    parts = [part for part in edits if isinstance(part, dict)] if isinstance(edits, list) else [arguments]
    return [
        Change(
            path=path,
            old=_text(part, "old_string", "oldText", "old_str", "old_text", "search"),
            new=_text(
                part, "new_string", "newText", "new_str", "new_text", "replace", "content", "new_source", "file_text"
            ),
        )
        for part in parts
    ]


def what_changed(changes: list[Change]) -> str:
    """A few words on what the changes of one file do, made only of names and lines that stand in them."""
    old, new = "\n".join(change.old for change in changes), "\n".join(change.new for change in changes)
    before, after = _defined(old), _defined(new)
    added = [name for name in after if name not in before]
    removed = [name for name in before if name not in after]
    parts = [f"{verb} {_listed(names)}" for verb, names in (("adds", added), ("removes", removed)) if names]
    if not parts:
        parts = [text for text in (_line_change(old, new),) if text]
    if not parts and (kept := [name for name in after if name in before]):
        parts = [f"in {_listed(kept)}"]
    return "; ".join(parts)


def _line_change(old: str, new: str) -> str:
    """`old` → `new` for a change within one line, else the first line added or removed."""
    before = [line.strip() for line in old.splitlines() if line.strip()]
    after = [line.strip() for line in new.splitlines() if line.strip()]
    gone = [line for line in before if line not in after]
    come = [line for line in after if line not in before]
    if len(gone) == len(come) == 1 and max(len(gone[0]), len(come[0])) <= _LINE_CHARACTERS:
        return f"`{one_line(gone[0])}` → `{one_line(come[0])}`"
    for verb, lines in (("+", come), ("-", gone)):
        telling = [line for line in lines if len(line) <= _LINE_CHARACTERS and _TELLING.search(line)]
        if telling:
            code = [line for line in telling if not line.startswith(("//", "#", "/*", "*", "--", "<!--"))]
            return f"{verb} `{one_line((code or telling)[0])}`"
    return ""


def _defined(code: str) -> list[str]:
    names = [*_DEFINES.findall(code), *_CONSTANT.findall(code), *(one_line(title) for title in _HEADING.findall(code))]
    return list(dict.fromkeys(names))


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" (+{more} more)" if more > 0 else "")


def _patch_changes(patch: str) -> Iterator[Change]:
    """The files of a patch in the `*** Begin Patch` notation."""
    verb, path, moved = "", "", ""
    old: list[str] = []
    new: list[str] = []

    def finished() -> Iterator[Change]:
        if path:
            creates, deletes = verb == "Add", verb == "Delete"
            texts = {"old": "\n".join(old), "new": "\n".join(new)}
            yield Change(path=path, creates=creates, deletes=deletes, moved_to=moved, **texts)

    for line in patch.splitlines():
        if heading := _PATCH_FILE.match(line):
            yield from finished()
            verb, path, moved = heading[1], heading[2].strip(), ""
            old, new = [], []
        elif move := _PATCH_MOVE.match(line):
            moved = move[1].strip()
        elif line.startswith("-"):
            old.append(line[1:])
        elif line.startswith("+"):
            new.append(line[1:])
    yield from finished()


def _text(arguments: Mapping[str, object], *names: str) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
    return ""
