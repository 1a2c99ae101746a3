"""Changes of JSON text that leave every other byte as it is: a value is added, replaced or removed.

Comments (`//` and `/* */`), trailing commas and a byte order mark are allowed, because settings of clients have them.
An added value has the indentation and the line ends of the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from omcli.base import lazily
from omcli.base.errors import BadConfiguration
from omcli.base.record import record

_SPACE = lazily(r"[ \t\r\n]*")
_COMMENT = lazily(r"//[^\r\n]*|/\*(?s:.*?)\*/")
_SCALAR = lazily(r'"(?:[^"\\\x00-\x1f]|\\.)*+"|true|false|null|-?[0-9][0-9.eE+-]*')
_REST_OF_LINE = lazily(r"(?:[ \t]*+/\*[^\r\n]*?\*/)*+(?:[ \t]*+//[^\r\n]*)?")
"""Comments on the rest of a line."""
_INDENT = lazily(r"[ \t]*")
_DEEPEST = 100
"""Maximum depth of objects and arrays. Settings have about five levels."""
_MARK = "\ufeff"
_SPACES = " \t\r\n"


@record
class Part:
    """A value in JSON text; in an object, with its key."""

    value: Any
    key: str | None
    space: int
    """Position of the space before it."""
    is_below_comment: bool
    """True if the space before it ends a line with a `//` comment."""
    start: int
    """Position of its key, or of its value if it has no key."""
    begin: int
    """Position of its value."""
    end: int
    parts: tuple[Part, ...] = ()
    """Members of an object, or elements of an array."""
    last_space: int = 0
    """Position of the space before its closing bracket."""
    comma: int | None = None
    """Position of the comma after it, or None."""

    def part_named(self, key: str) -> Part | None:
        """Return the member with this key; of several, the last one, which is the one that counts."""
        return next((part for part in reversed(self.parts) if part.key == key), None)


def parse(text: str) -> Part:
    """Return the value of JSON text. Raise BadConfiguration with the line and the column if it is not valid."""
    return _Reader(text).document()


def insert(text: str, keys: Sequence[str], value: object) -> str:
    """Add a value at the end of the array at these keys. Objects and the array are created if they are missing.

    Raise BadConfiguration if something else is there.
    """
    root = node = parse(text)
    for depth, key in enumerate(keys):
        if not isinstance(node.value, dict):
            raise _refused(keys[:depth], "an object")
        found = node.part_named(key)
        if found is None:
            made: object = [value]
            for missing in reversed(keys[depth + 1 :]):
                made = {missing: made}
            return _with(text, root, node, made, key=key)
        node = found
    if not isinstance(node.value, list):
        raise _refused(keys, "an array")
    return _with(text, root, node, value)


def add_key(text: str, key: str, value: object) -> str:
    """Add a member, whose key must be new, to the outermost object. Raise BadConfiguration if that is not an object."""
    root = parse(text)
    if not isinstance(root.value, dict):
        raise _refused((), "an object")
    return _with(text, root, root, value, key=key)


def replace_part(text: str, node: Part, value: object) -> str:
    """Return the text with the value of a part replaced."""
    layout = _layout(text, parse(text))
    return f"{text[: node.begin]}{layout.shown(value, layout.line(text, node.start))}{text[node.end :]}"


def remove(text: str, container: Part, part: Part) -> str:
    """Remove a part of an object or array, with its comma and the space before it. An array or object without any
    other part or comment becomes `[]` or `{}`.
    """
    around = text[container.begin + 1 : part.start] + text[part.end : container.end - 1]
    if len(container.parts) == 1 and not around.strip(f"{_SPACES},"):
        return f"{text[: container.begin + 1]}{text[container.end - 1 :]}"
    at = next(number for number, each in enumerate(container.parts) if each.start == part.start)
    comma = part.comma if part.comma is not None or at == 0 else container.parts[at - 1].comma
    follows = part.end + 1 if part.comma == part.end else part.end
    has_to_stay = part.is_below_comment and text[follows : follows + 1] not in ("\r", "\n")  # or the comment goes on
    start = part.start if has_to_stay else part.space
    cuts = [(start, part.end), *([] if comma is None else [(comma, comma + 1)])]
    for begin, end in sorted(cuts, reverse=True):
        text = text[:begin] + text[end:]
    return text


def _with(text: str, root: Part, container: Part, value: object, *, key: str | None = None) -> str:
    """Return the text with a value behind the last part of an object or array."""
    layout = _layout(text, root)
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}:{layout.space}"
    if not container.parts:
        outer = layout.line(text, container.begin)
        indent = f"{outer}{layout.unit}" if outer else ""
        item = f"{indent}{name}{layout.shown(value, indent)}"
        if container.last_space == container.begin + 1:
            return f"{text[: container.begin + 1]}{item}{outer}{text[container.end - 1 :]}"
        at = container.last_space if outer else container.end - 1  # a comment may end with its line
        return f"{text[:at]}{item}{text[at:]}"
    last = container.parts[-1]
    indent = layout.line(text, last.start) if _has_lines(text, container) else ""
    at = place = last.end if last.comma is None else last.comma + 1
    if indent and (rest := _REST_OF_LINE.match(text, at)):
        place = rest.end()
    item = f"{indent or layout.space}{name}{layout.shown(value, indent)}"
    if last.comma is not None:
        return f"{text[:place]}{item},{text[place:]}"
    return f"{text[:at]},{text[at:place]}{item}{text[place:]}"


@record
class _Layout:
    newline: str
    """The end of a line; "" if the text is on one line."""
    unit: str
    """Indentation of one level."""
    space: str
    """Space behind a comma or colon on one line."""

    def line(self, text: str, at: int) -> str:
        """Return a line break and the indentation of the line at a position, or "" if the text is on one line."""
        found = _INDENT.match(text, _line_start(text, at))
        return f"{self.newline}{found[0]}" if found and self.newline else ""

    def shown(self, value: object, indent: str) -> str:
        """Return a value as JSON. `indent` stands between lines; "" for one line."""
        if not indent:
            return json.dumps(value, ensure_ascii=False, separators=(f",{self.space}", f":{self.space}"))
        return json.dumps(value, ensure_ascii=False, indent=self.unit).replace("\n", indent)


def _layout(text: str, root: Part) -> _Layout:
    if root.parts and not _has_lines(text, root):
        return _Layout(newline="", unit="", space="" if text[root.parts[0].begin - 1] == ":" else " ")
    found = _INDENT.match(text, _line_start(text, root.parts[0].start)) if root.parts else None
    end = text.find("\n")
    is_dos = end > 0 and text[end - 1] == "\r"
    return _Layout(newline="\r\n" if is_dos else "\n", unit=(found and found[0]) or "  ", space=" ")


def _has_lines(text: str, container: Part) -> bool:
    """Return True if the first part of an object or array is on another line than the opening bracket."""
    return not {"\n", "\r"}.isdisjoint(text[container.begin : container.parts[0].start])


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _refused(keys: Sequence[str], expected: str) -> BadConfiguration:
    place = f"`{'.'.join(keys)}`" if keys else "the outermost value"
    return BadConfiguration(f"{place} is not {expected}", hint="mend the file, or move it out of the way")


class _Reader:
    """Reads JSON text and notes the position of each part."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._space = len(_MARK) if text.startswith(_MARK) else 0
        self._is_below_comment = False

    def document(self) -> Part:
        self._skip()
        node = self._part(0)
        if self._at < len(self._text):
            raise self._error("nothing more")
        return node

    def _part(self, depth: int, *, is_member: bool = False) -> Part:
        start, key = self._at, None
        space, is_below_comment = self._space, self._is_below_comment
        if is_member:
            if not self._is_at('"'):
                raise self._error("a key in double quotes or `}`")
            key = self._value()
            self._skip()
            self._take(":")
            self._skip()
        begin = self._at
        parts: tuple[Part, ...] = ()
        if self._is_at("{"):
            parts = self._parts("}", depth + 1)
            value: Any = {part.key: part.value for part in parts}
        elif self._is_at("["):
            parts = self._parts("]", depth + 1)
            value = [part.value for part in parts]
        else:
            value = self._value()
        end, last_space = self._at, self._space
        self._skip()
        comma = self._at if depth and self._is_at(",") else None
        if comma is not None:
            self._take(",")
            self._skip()
        return Part(
            value=value,
            key=key,
            space=space,
            is_below_comment=is_below_comment,
            start=start,
            begin=begin,
            end=end,
            parts=parts,
            last_space=last_space,
            comma=comma,
        )

    def _parts(self, closing: str, depth: int) -> tuple[Part, ...]:
        if depth > _DEEPEST:
            raise self._error(f"at most {_DEEPEST} levels")
        self._at += 1
        self._skip()
        found: list[Part] = []
        while not self._is_at(closing):
            if found and found[-1].comma is None:
                raise self._error(f"`,` or `{closing}`")
            found.append(self._part(depth, is_member=closing == "}"))
        self._at += 1
        return tuple(found)

    def _value(self) -> Any:
        found = _SCALAR.match(self._text, self._at)
        if found is None:
            raise self._error("a value")
        try:
            value = json.loads(found[0])
        except ValueError:
            raise self._error("a valid value") from None
        self._at = found.end()
        return value

    def _skip(self) -> None:
        """Go past space and comments."""
        self._is_below_comment = False
        while True:
            self._space = self._at
            if space := _SPACE.match(self._text, self._at):
                self._at = space.end()
            comment = _COMMENT.match(self._text, self._at)
            if comment is None:
                return
            self._at = comment.end()
            self._is_below_comment = comment[0].startswith("//")

    def _is_at(self, character: str) -> bool:
        return self._text.startswith(character, self._at)

    def _take(self, character: str) -> None:
        if not self._is_at(character):
            raise self._error(f"`{character}`")
        self._at += 1

    def _error(self, expected: str) -> BadConfiguration:
        before = self._text[: self._at]
        lines = re.split(r"\r\n|\r|\n", before)
        return BadConfiguration(
            f"line {len(lines)}, column {len(lines[-1].lstrip(_MARK)) + 1}: not valid JSON (expected {expected})",
            hint="mend the file, or move it out of the way",
        )
