"""Editing a configuration file, with its comments and order kept, and the JSON Schema of such a file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, get_args

import tomlkit
from tomlkit.exceptions import TOMLKitError

from omcli.base.errors import BadConfiguration, BadUsage
from omcli.settings import settings
from omcli.settings.layers import OPPOSITES, PRESETS, nearest, preset_file
from omcli.settings.settings import ServerUrl
from omcli.settings.values import (
    DEFAULTS,
    KEYS,
    MOST,
    NO,
    NUMBER,
    SECTIONS,
    SHARE,
    SPAN,
    UNSET,
    WHOLE,
    YES,
    BadValue,
    as_json,
    may_be_file,
    parse_value,
)


def _words_format(words: Iterable[str]) -> str:
    """Return a pattern that matches these words in any case. It uses no flags, because not all programs know them."""
    letters = ("".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in word) for word in sorted(words))
    return "|".join(letters)


_NO_COMMA = r"[^,]*[^,\s][^,]*"
_FORMS = {
    "str": _NO_COMMA,
    "Path": _NO_COMMA,
    "bool": _words_format(YES | NO),
    "int": WHOLE,
    "float": NUMBER,
    "Tokens": f"{WHOLE}|{SHARE}",
    "Amount": f"{NUMBER}|{SHARE}",
    "Days": rf"(?:{NUMBER})\s*d?",
    "Span": SPAN,
}
"""Patterns of a value given as text, by the annotation of its setting. Those for `str` and `Path` match a list item."""
_COUNT = {"type": "integer", "minimum": 0, "maximum": MOST}
_AMOUNT = {"type": "number", "minimum": 0, "maximum": MOST}
_PLAIN: Mapping[str, dict[str, Any]] = {
    "bool": {"anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 0, "maximum": 1}]},
    **dict.fromkeys(("int", "Tokens"), _COUNT),
    **dict.fromkeys(("float", "Amount", "Days"), _AMOUNT),
}
"""JSON Schema of a value that is not given as text, by the annotation of its setting."""


def known_key(name: str) -> str:
    """Return the key, or the key that it negates. Raise BadUsage if it is unknown."""
    key = OPPOSITES.get(name, name)
    if key not in KEYS:
        raise BadUsage(f"unknown key `{name}`{nearest(name)}", hint="`om config` prints all keys")
    return key


def value_from(name: str, text: str) -> object:
    """Return the value to write into a file for a text: the value that the text is in TOML, if that is valid for the
    key, otherwise the text. Words for yes and no become booleans, and relative paths absolute. Raise BadUsage if the
    key is unknown or the value is not valid for it.
    """
    key = known_key(name)
    if not text.isprintable():
        raise BadUsage(f"the value of `{name}` has characters that cannot be written")
    expected = f"one of {', '.join(PRESETS)}"
    for value in (*_as_toml(text), text):
        try:
            parsed = parse_value(key, value, whole=DEFAULTS.effective_context)
        except BadValue as error:
            expected = str(error)
        else:
            if key != "preset" or parsed in PRESETS:
                if isinstance(parsed, ServerUrl):
                    return _checked(parsed, name)
                if key == "db" and not may_be_file(value):
                    raise BadUsage(f"`{name}` must be the path of a file, or postgresql://user@host/database")
                if "Path" in KEYS[key]:
                    is_list = KEYS[key].startswith("tuple") and isinstance(value, str)
                    return _full_path(str(value).split(",") if is_list else value)
                return parsed if KEYS[key] == "bool" else value
    raise BadUsage(f"`{text}` is not a valid `{name}` (expected {expected})")


def _checked(url: ServerUrl, name: str) -> str:
    if url.fault:
        raise BadUsage(f"`{name}` {url.fault}")
    return url.url


def _full_path(value: object) -> object:
    if isinstance(value, list):
        return list(map(_full_path, value))
    path = str(value).strip()
    return path if path.startswith("~") or path.lower() in UNSET else str(Path(path).absolute())


def _as_toml(text: str) -> tuple[object, ...]:
    """Return the value of a text as TOML, in a tuple that is empty if the text is not valid TOML."""
    try:
        return (tomllib.loads(f"value = {text}")["value"],)
    except ValueError:
        return ()


def with_value(content: str, name: str, value: object) -> str:
    """Return the content of a file with a key set, and without the key that is its negation. Raise BadConfiguration if
    the content is not valid TOML, or if the key cannot be set in it without changing others.
    """
    for opposite in (key for pair in OPPOSITES.items() if name in pair for key in pair if key != name):
        content = without_value(content, opposite)
    document = _parsed(content)
    section, _, inner = name.rpartition(".")
    if not section:
        document[inner] = value
    else:
        table = document.setdefault(section, tomlkit.table())
        if not isinstance(table, MutableMapping):
            raise BadConfiguration(f"`{section}` is not a table, so `{name}` cannot be set in it")
        table[inner] = value
    written = tomlkit.dumps(document)
    expected = tomllib.loads(content)
    (expected.setdefault(section, {}) if section else expected)[inner] = value
    if tomllib.loads(written) != expected:
        raise BadConfiguration(f"`{name}` cannot be set without changing other keys")
    return written


def without_value(content: str, name: str) -> str:
    """Return the content of a file without a key, and without its section if nothing else is in it. Raise
    BadConfiguration if the content is not valid TOML.
    """
    document = _parsed(content)
    section, _, inner = name.rpartition(".")
    holder: Any = document.get(section) if section else document
    if isinstance(holder, Mapping) and inner in holder:
        holder.pop(inner)  # type: ignore[attr-defined]
        if section and not holder:
            document.pop(section)
    text = tomlkit.dumps(document).rstrip("\n")
    return f"{text}\n" if text else ""


def _parsed(content: str) -> tomlkit.TOMLDocument:
    try:
        tomllib.loads(content)  # its errors name the line
        return tomlkit.parse(content)
    except (ValueError, TOMLKitError) as error:
        raise BadConfiguration(f"not valid TOML: {error}") from None


# ---- schema


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a configuration file, for editors."""
    about = _notes_of(preset_file(PRESETS[0]))
    properties: dict[str, Any] = {"enabled": {"type": "boolean", "description": "false: same as `disabled = true`"}}
    for section in SECTIONS:
        properties[section] = {"type": "object", "properties": {}, "additionalProperties": False}
    for key, default in as_json(DEFAULTS).items():
        section, _, name = key.rpartition(".")
        into = properties[section]["properties"] if section else properties
        into[name] = {
            **_type(key, KEYS[key]),
            **({"description": about[key]} if key in about else {}),
            **({} if default is None or key == "db" else {"default": default}),
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of om",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _type(key: str, kind: str) -> dict[str, Any]:
    """Return the schema of the values of a key with this annotation. It accepts what `parse_value` does."""
    optional = kind.removesuffix(" | None")
    if optional != kind:
        return {"anyOf": [_type(key, optional), *_one_of(UNSET)]}
    if key == "preset":
        return {"enum": list(PRESETS)}
    if kind == "Mapping[str, Price]":
        return {"type": "object", "additionalProperties": _price()}
    if kind.startswith("tuple["):
        each = kind.removeprefix("tuple[").removesuffix(", ...]")
        form = _FORMS.get(each) or _words_format(_words(each))
        listed = _text(rf"(?:{form})\s*(?:,\s*(?:{form})\s*)*")
        return {"anyOf": [{"type": "array", "items": _type(key, each)}, listed]}
    if kind in {"str", "Path"}:
        return {"type": "string", "pattern": r"\S"}
    if kind in _FORMS:
        return {"anyOf": [*([_PLAIN[kind]] if kind in _PLAIN else []), _text(_FORMS[kind])]}
    return {"anyOf": _one_of(_words(kind))}


def _words(kind: str) -> tuple[str, ...]:
    return get_args(getattr(settings, kind))


def _one_of(words: Iterable[str]) -> list[dict[str, Any]]:
    """Return two schemas of words: a list, from which editors complete them, and a pattern that allows any case."""
    return [{"enum": sorted(words)}, _text(_words_format(words))]


def _text(form: str) -> dict[str, Any]:
    return {"type": "string", "pattern": rf"^\s*(?:{form})\s*$"}


def _price() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict.fromkeys(("input", "output", "cached"), _type("", "float")),
        "required": ["input", "output"],
        "additionalProperties": False,
    }


def _notes_of(path: Path) -> dict[str, str]:
    """Return the comment behind each key of a file."""
    found, section = {}, ""
    for line in path.read_text("utf-8").splitlines():
        given, _, comment = line.partition("  # ")
        name, is_set, _ = given.removeprefix("# ").partition(" = ")
        if line.startswith("["):
            section = line.strip("[]") + "."
        elif is_set and comment:
            found[section + name] = comment.strip()
    return found
