"""Changes of JSON text: the value is there, and nothing else is different."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import BadConfiguration
from omcli.clients.json_edit import Part, add_key, insert, parse, remove, replace_part

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|(//[^\r\n]*|/\*(?s:.*?)\*/)')
_HOOK = {"matcher": "a|b", "hooks": [{"type": "command", "command": "/opt/om hook codex", "timeout": 5}]}


def comments(text: str) -> list[str]:
    return [found[1] for found in _TOKENS.finditer(text) if found[1]]


@st.composite
def laid_out(draw: st.DrawFn, *, odd: bool) -> str:
    """A settings file as people and programs write them: comments, trailing commas, tabs, any ends of lines.

    Unless it is `odd`, an empty object or array has no space inside.
    """
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    unit = draw(st.sampled_from(["  ", "    ", "\t", ""]))
    is_plain = draw(st.booleans())
    names = st.sampled_from(["hooks", "Stop", "a", 'q"uo', "é", "//", "env"])
    scalars = st.sampled_from(['"x // y"', '"\\u00e9\\""', "-1.5e3", "true", "null", '"/* no */"', "12"])

    def gap(indent: str) -> str:
        if is_plain:
            return f"{newline}{indent}"
        return draw(
            st.sampled_from(
                ["", " ", f"{newline}{indent}", f" // why, {{[ {newline}{indent}", "/* so */", f"{newline}"]
            )
        )

    def value(depth: int, kind: str) -> str:
        if kind == "scalar" or depth > 3:
            return draw(scalars)
        opening, closing = ("{", "}") if kind == "object" else ("[", "]")
        count = draw(st.integers(0, 3))
        if not count:
            inside = draw(st.sampled_from(["", " ", newline])) if odd else ""
            return f"{opening}{inside}{closing}"
        parts = []
        keys = draw(st.lists(names, min_size=count, max_size=count, unique=True))
        for name in keys:
            chosen = draw(st.sampled_from(["scalar", "object", "array"]))
            name_of = "array" if name == "Stop" else "object" if name == "hooks" else chosen
            made = value(depth + 1, name_of if kind == "object" else chosen)
            key = f"{json.dumps(name, ensure_ascii=False)}:{draw(st.sampled_from(['', ' ']))}"
            parts.append(f"{gap(unit * (depth + 1))}{key if kind == 'object' else ''}{made}")
        comma = "," if not is_plain and draw(st.booleans()) else ""
        return f"{opening}{','.join(parts)}{comma}{gap(unit * depth)}{closing}"

    mark = "\ufeff" if draw(st.booleans()) else ""
    return f"{mark}{value(0, 'object')}{draw(st.sampled_from(['', newline, '// end']))}"


def parts_of(node: Part) -> list[tuple[Part, Part]]:
    """Every part in it, with the object or array it is in."""
    return [pair for part in node.parts for pair in ((node, part), *parts_of(part))]


def inserted(value: Any, keys: Sequence[str], new: object) -> Any:
    value = copy.deepcopy(value)
    at = value
    for key in keys[:-1]:
        at = at.setdefault(key, {})
    at.setdefault(keys[-1], []).append(new)
    return value


@pytest.mark.parametrize("indent", [None, 0, 2, 4, "\t"])
def test_plain_json_is_read_as_json_does(indent: int | str | None) -> None:
    value = {"a": [1, -2.5, {"b": None, "c": [[], {}]}], "é\n": '\u2028\\"', "": [True, False]}
    assert parse(json.dumps(value, indent=indent)).value == value
    assert parse(f"\ufeff{json.dumps(value, ensure_ascii=False, indent=indent)}\r\n").value == value


@given(laid_out(odd=True))
def test_what_is_inserted_is_there_and_everything_else_as_well(text: str) -> None:
    changed = insert(text, ("hooks", "Stop"), _HOOK)
    assert parse(changed).value == inserted(parse(text).value, ("hooks", "Stop"), _HOOK)
    assert comments(changed) == comments(text)
    rest = iter(changed)
    assert all(character in rest for character in "".join(text.split())), "nothing was taken out or moved"


@given(laid_out(odd=False), st.sampled_from([("hooks", "Stop"), ("hooks", "New"), ("new", "New")]))
def test_what_is_inserted_can_be_removed_byte_for_byte(text: str, keys: tuple[str, str]) -> None:
    changed = insert(text, keys, _HOOK)
    root, before = parse(changed), parse(text)
    path = [root, *(node for key in keys[:1] if (node := root.part_named(key)))]
    array = path[-1].part_named(keys[1])
    assert array is not None
    old = before.part_named(keys[0])
    if old is None:
        container, part = root, path[-1]
    elif old.part_named(keys[1]) is None:
        container, part = path[-1], array
    else:
        container, part = array, array.parts[-1]
    assert remove(changed, container, part) == text


@given(laid_out(odd=True), st.data())
def test_a_part_is_removed_and_nothing_else(text: str, data: st.DataObject) -> None:
    pairs = parts_of(parse(text))
    if not pairs:
        return
    container, part = data.draw(st.sampled_from(pairs))
    changed = remove(text, container, part)
    same = [pair for pair in pairs if pair[0].start == container.start]
    left = [(each.key, each.value) for _, each in same if each.start != part.start]
    found = next(
        node
        for node in (parse(changed), *(each for _, each in parts_of(parse(changed))))
        if node.start == container.start
    )
    assert [(each.key, each.value) for each in found.parts] == left
    assert changed[: container.begin] == text[: container.begin]
    gone = comments(text[part.start : part.end])
    assert sorted([*comments(changed), *gone]) == sorted(comments(text))


@given(laid_out(odd=True), st.data())
def test_a_value_is_replaced_in_its_place(text: str, data: st.DataObject) -> None:
    pairs = parts_of(parse(text))
    if not pairs:
        return
    _, part = data.draw(st.sampled_from(pairs))
    changed = replace_part(text, part, _HOOK)
    assert changed.startswith(text[: part.begin])
    assert changed.endswith(text[part.end :])
    assert json.loads(changed[part.begin : len(changed) - len(text) + part.end]) == _HOOK
    assert parse(changed)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{}\n", '{\n  "k": [\n    1\n  ]\n}\n'),
        ('{"a":1}', '{"a":1,"k":[1]}'),
        ('{"a": 1}', '{"a": 1, "k": [1]}'),
        ('{\r\n\t"a": 1 // one\r\n}', '{\r\n\t"a": 1, // one\r\n\t"k": [\r\n\t\t1\r\n\t]\r\n}'),
        ('{\n    "a": 1,\n}', '{\n    "a": 1,\n    "k": [\n        1\n    ],\n}'),
        ('{\n  "k": []\n}', '{\n  "k": [\n    1\n  ]\n}'),
        ('{\n  "k": [\n    0\n  ]\n}', '{\n  "k": [\n    0,\n    1\n  ]\n}'),
        ("{\n  // nothing yet\n}", '{\n  // nothing yet\n  "k": [\n    1\n  ]\n}'),
    ],
)
def test_what_is_inserted_is_laid_out_like_the_rest(text: str, shown: str) -> None:
    assert insert(text, ("k",), 1) == shown


def test_a_member_is_added_to_the_outermost_object() -> None:
    assert add_key('{"hooks": {}}', "version", 1) == '{"hooks": {}, "version": 1}'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        ('\ufeff{"a" 1}', "line 1, column 6"),
        ("{'a': 1}", "line 1, column 2"),
        ('{"a": 01}', "line 1, column 7"),
        ('{"a": nul}', "line 1, column 7"),
        ('{"a": "x\n"}', "line 1, column 7"),
        ('{"a": 1} x', "line 1, column 10"),
        ('{"a": [1, , 2]}', "line 1, column 11"),
        ('{\r\n\r\n"a": /* ', "line 3, column 6"),
        ("", "line 1, column 1"),
        ("[" * 5000, "line 1, column 101"),
        (f'{{"a": {"9" * 5000}}}', "line 1, column 7"),
    ],
)
def test_invalid_json_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(BadConfiguration, match=f"^{place}: not valid JSON"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"hooks": []}', "`hooks` is not an object"),
        ('{"hooks": {"Stop": {}}}', "`hooks.Stop` is not an array"),
        ("[]", "the outermost value is not an object"),
    ],
)
def test_another_structure_is_not_changed(text: str, told: str) -> None:
    with pytest.raises(BadConfiguration, match=told):
        insert(text, ("hooks", "Stop"), _HOOK)


def test_of_members_with_the_same_key_the_last_counts() -> None:
    """It is the one that clients read."""
    changed = insert('{"hooks": {"Stop": [1]}, "hooks": {"Stop": [2]}}', ("hooks", "Stop"), 3)
    assert changed == '{"hooks": {"Stop": [1]}, "hooks": {"Stop": [2, 3]}}'


@pytest.mark.parametrize("text", ["/*" * 50_000, '"' + "\\" * 50_001, "{" + " // x" * 20_000, '{"a": ' + "1e" * 30_000])
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    with pytest.raises(BadConfiguration):
        parse(text)
