"""Parsing values of settings from files, variables and presets, and printing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from omcli.base import lazily
from omcli.base.errors import BadConfiguration
from omcli.base.record import fields_of
from omcli.settings import settings
from omcli.settings.settings import ServerUrl, Settings, expanded, place_of

if TYPE_CHECKING:
    import re

    from omcli.llm.model import Price

DEFAULTS = Settings(db=Path())
"""Built-in defaults. The store is a placeholder."""
SECTIONS: Mapping[str, Any] = {
    name: getattr(DEFAULTS, name)
    for name in (
        *("observe", "reflect", "context", "retention", "consolidate"),
        *("observer", "reflector", "embeddings", "tools", "provider", "limits", "hook", "store"),
    )
}
"""Default settings by section (the part of a key before its dot)."""
_NO_KEYS = {*SECTIONS, "origins", "warnings", "notes", "reflector.images"}
_LARGEST = 1_000_000
"""Maximum size of a configuration file, in bytes."""
UNSET = frozenset({"unlimited", "unset"})
"""Words for no value."""
YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"", "0", "false", "no", "off"})
MOST = 1e15
"""Maximum of any number."""
# Forms of values given as text. `om config schema` prints them, too.
WHOLE = r"[0_]*(?:[0-9]_*){1,15}"
NUMBER = rf"(?:{WHOLE}(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE]-[0-9]+)?"
SHARE = r"(0*(?:[0-9]{1,2}(?:\.[0-9]*)?|100(?:\.0*)?|\.[0-9]+))\s*%"
SPAN = r"[1-9][0-9]{0,2}-[1-9][0-9]{0,2}"
_WHOLE, _NUMBER, _SHARE, _SPAN = lazily(WHOLE), lazily(NUMBER), lazily(SHARE), lazily(SPAN)


def as_json(of: Settings) -> dict[str, object]:
    """Return all settings as JSON values by key."""
    return {key: _plain(value_of(of, key)) for key in KEYS}


def toml(key: str, value: object) -> str:
    """Return a value of `as_json`, or a plain value, as TOML. None becomes `"unlimited"` for a limit, otherwise
    `"unset"`.
    """
    if value is None:
        is_limit = KEYS[key].startswith(("int", "Tokens", "Days")) or key.startswith("limits.")
        return '"unlimited"' if is_limit else '"unset"'
    return _toml(value)


def value_of(of: Settings, key: str) -> object:
    """Return the value of a key."""
    section, _, name = key.rpartition(".")
    return getattr(getattr(of, section) if section else of, name)


def _plain(value: object) -> object:
    if isinstance(value, Path | ServerUrl):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {
            model: {n: cost for n, cost in fields_of(price).items() if cost is not None}
            for model, price in value.items()
        }
    return value


def _toml(value: object) -> str:
    import json  # noqa: PLC0415

    if isinstance(value, dict) and value:
        return f"{{ {', '.join(f'{json.dumps(name)} = {_toml(inner)}' for name, inner in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)  # the same as TOML, except for tables


class BadValue(Exception):
    """An invalid value. The message names the expected value, such as `a whole number from 0`."""


def _kinds() -> dict[str, str]:
    kinds = dict(Settings.__annotations__)
    for section, default in SECTIONS.items():
        kinds |= {f"{section}.{name}": kind for name, kind in type(default).__annotations__.items()}
    kinds["db"] = "Path"  # it may also be a URL (see `parse_value`)
    return {key: kind for key, kind in kinds.items() if key not in _NO_KEYS}


KEYS: Mapping[str, str] = _kinds()
"""Type annotation of each key, as text."""


# ---- what a project's file may set

RULES = "rules"
"""The only provider that a project's file may choose, because it sends nothing anywhere and costs nothing."""


def _size(most: int | None) -> float:
    return float("inf") if most is None else most


_REACHES: Mapping[str, Callable[[Any], float]] = {
    "disabled": lambda is_off: -is_off,
    "scope": get_args(settings.Scope).index,
    "observe.trigger": ("manual", "tokens", "turn", "tool").index,
    "observe.tokens": lambda tokens: -tokens,
    "observe.verify": lambda is_strict: -is_strict,
    **dict.fromkeys(("observer.provider", "reflector.provider"), lambda name: name not in (None, RULES)),
    "observer.images": int,
    **dict.fromkeys(("tools.args_chars", "tools.result_chars"), _size),
    **{f"context.{name}": _size for name in ("budget", "cross", "session", "tail", "evict", "result_chars")},
    **{f"context.{name}": _size for name in ("reflections", "observations")},
    "context.order": lambda tiers: len(set(tiers)),
    "context.block": lambda is_only_block: -is_only_block,
    "context.freeze": lambda is_frozen: -is_frozen,
    "context.select": ("recent", "worth").index,
    **dict.fromkeys(("hook.tokens", "hook.prompt", "hook.prompt_tokens"), int),
    "hook.opt_in": lambda is_asked: -is_asked,
}
"""Functions that return the reach of a key's value: greater if more is remembered, printed or sent to a model."""
_FREE = frozenset({"notation", "context.rank", "context.render", "context.append_only"})
"""Keys that change how memory is printed within a budget, and not the budget or how it is counted."""


class ProjectRule(StrEnum):
    """Values of a key that a project's file may set. A repository may come from anybody, so it must not read more of
    the user's memory, send it elsewhere or cost money.
    """

    ANY = "any"
    """Any value, unless the user has set the key: then only values that reach no further."""
    NARROWER = "narrower"
    """Only values that reach no further than the user's."""
    NONE = "none"


PROJECT_RULES: Mapping[str, ProjectRule] = {
    key: ProjectRule.ANY
    if key in _FREE or (key in _REACHES and key.startswith("context."))
    else ProjectRule.NARROWER
    if key in _REACHES
    else ProjectRule.NONE
    for key in KEYS
}
"""The rule for each key. New keys are the user's own until they are listed above."""


def project_may_set(key: str, value: object) -> bool:
    """Return True if a project's file may set this value, at least for some values of the user's own."""
    is_model = key.endswith(".provider") and str(value).strip().lower() != RULES
    return PROJECT_RULES[key] is not ProjectRule.NONE and not is_model


def reaches_further(key: str, value: object, than: object) -> int:
    """Compare two parsed values of a key: 1 if the first reaches further, -1 if less far, otherwise 0. Keys that are
    not in `_REACHES` always give 0.
    """
    if key not in _REACHES:
        return 0
    far, own = _REACHES[key](value), _REACHES[key](than)
    return (far > own) - (far < own)


def parse_value(key: str, value: object, *, whole: int, folder: Path | None = None) -> object:
    """Parse the value of a key. Percentages are shares of `whole`, and relative paths start from `folder`.

    Raise BadValue if the value is invalid.
    """
    kind = KEYS[key]
    optional = kind.removesuffix(" | None")
    if optional != kind and isinstance(value, str) and value.strip().lower() in UNSET:
        return None
    if key == "db" and not may_be_file(value):
        return place_of(_text(value))  # as it is: `resolve` refuses what is neither by its name
    return _one(optional, value, whole, folder)


_NO_FILE = lazily(r"[A-Za-z][A-Za-z0-9+.-]+:/|:memory:$|file:|~")


def may_be_file(value: object) -> bool:
    """Return False for a URL, SQLite's names of databases that are no files, and the home of an unknown user."""
    return not (isinstance(value, str) and value.strip() and _NO_FILE.match(str(expanded(value.strip()))))


def _one(kind: str, value: object, whole: int, folder: Path | None) -> object:
    if kind in {"Tokens", "Amount"} and isinstance(value, str) and value.strip().endswith("%"):
        return _share(value, whole) if kind == "Tokens" else float(_share(value, whole))
    if kind == "Path":
        return (folder or Path()) / expanded(_text(value))
    if kind in _READERS:
        return _READERS[kind](value)
    if kind.startswith("tuple["):
        each = kind.removeprefix("tuple[").removesuffix(", ...]")
        listed = value if isinstance(value, list | tuple) else [part.strip() for part in _text(value).split(",")]
        return tuple(_one(each, part, whole, folder) for part in listed)
    return _choice(value, get_args(getattr(settings, kind)))


def _share(value: str, whole: int) -> int:
    share = _SHARE.fullmatch(value.strip())
    if share is None:
        raise BadValue("a share between 0% and 100%")
    return round(float(share[1]) * whole / 100)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadValue("a text")
    return value.strip()


def _whole(value: object) -> int:
    number = _parsed(value, _WHOLE)
    if number is None or number % 1:
        raise BadValue("a whole number from 0")
    return int(number)


def _number(value: object) -> float:
    number = _parsed(value, _NUMBER)
    if number is None:
        raise BadValue("a number from 0")
    return number


def _parsed(value: object, form: re.Pattern[str]) -> float | None:
    """Return a number from 0 to `MOST`, also one given as a text of this form, or None for anything else."""
    if isinstance(value, str):
        value = float(value.replace("_", "")) if form.fullmatch(value.strip()) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MOST:
        return None
    return float(value)


def _days(value: object) -> float:
    try:
        return _number(value.strip().removesuffix("d") if isinstance(value, str) else value)
    except BadValue:
        raise BadValue("a number of days, such as 30d") from None


def _yes_or_no(value: object) -> bool:
    if isinstance(value, (int, float)) and value in {0, 1}:
        return bool(value)
    text = value.strip().lower() if isinstance(value, str) else None
    if text not in YES | NO:
        raise BadValue("yes or no")
    return text in YES


def _span(value: object) -> str:
    text = _text(value)
    if not _SPAN.fullmatch(text):
        raise BadValue("a range such as 2-5")
    return text


def _choice(value: object, choices: tuple[str, ...]) -> str:
    text = value.strip().lower() if isinstance(value, str) else None
    if text is None or text not in choices:
        raise BadValue(f"one of {', '.join(choices)}")
    return text


def _price_table(value: object) -> Mapping[str, Price]:
    if not isinstance(value, dict):
        raise BadValue("a table of models")
    return {model: _price(model, price) for model, price in value.items()}


def _price(model: str, value: Any) -> Price:
    if not isinstance(value, dict) or not {"input", "output"} <= value.keys() <= {"input", "output", "cached"}:
        raise BadValue(f"a table with `input`, `output` and optionally `cached` for `{model}`")
    from omcli.llm.model import Price  # noqa: PLC0415 - few users set prices

    return Price(**{name: _number(cost) for name, cost in value.items()})


_READERS: Mapping[str, Callable[[object], object]] = {
    "str": _text,
    "bool": _yes_or_no,
    "int": _whole,
    "Tokens": _whole,
    "float": _number,
    "Amount": _number,
    "Days": _days,
    "Span": _span,
    "Mapping[str, Price]": _price_table,
}


def content_of(path: Path) -> bytes:
    """Return the content of a configuration file. Raise BadConfiguration if it cannot be read or is too large."""
    try:
        if not path.is_file():  # opening a pipe might never end
            raise BadConfiguration(f"{path}: {'cannot be read: not a file' if path.exists() else 'no such file'}")
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except OSError as error:
        raise BadConfiguration(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise BadConfiguration(f"{path}: larger than {_LARGEST} bytes")
    return content
