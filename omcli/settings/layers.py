"""Layers of settings: each overrides those below it, and invalid values give warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from omcli.base import lazily
from omcli.base.errors import BadConfiguration, BadUsage
from omcli.base.record import record, replace
from omcli.settings.settings import FLAG, PREFIX, Files, ServerUrl, Settings
from omcli.settings.values import (
    DEFAULTS,
    KEYS,
    PROJECT_RULES,
    RULES,
    SECTIONS,
    BadValue,
    ProjectRule,
    content_of,
    parse_value,
    project_may_set,
    reaches_further,
    toml,
    value_of,
)

_PI = "pi"
PRESETS = ("default", "zora", "lango", "duet", "pi", "coding", "mastra")
_HEADER = lazily(r"\s*\[\s*([\w.-]+)\s*\]\s*(?:#.*)?")
_KEY = lazily(r"\s*([\w.-]+)\s*=")
_QUOTED = lazily(r""""{3}(?:[^\\]|\\[\s\S])*?"{3,5}|'{3}[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#.*""")
"""Texts, which may have several lines, and comments, which may contain quotes."""
_SHOWN = 60
"""Maximum number of characters of an invalid value that are printed."""
OPPOSITES = {"enabled": "disabled"}
"""Keys that are negations, and the keys that they negate."""
_PROVIDER_KEYS = ("model", "base_url", "command", "fallback_model", "max_output")
"""Keys that apply only to one provider."""


@record
class SourceValue:
    """A value given for a key, with its origin."""

    value: object
    by: str
    """`flag`, or the name of the variable, file or preset that gives the value."""
    file: Path | None = None
    """Configuration file that gives the value. Relative paths start from its folder, otherwise from the current one."""
    opposite: bool = False
    """True if the value was given under a key that is the negation of this one."""
    is_project: bool = False
    """True if the project's file gives it."""

    def as_written(self, key: str) -> str:
        """Return the setting as it is written in its source, with the name of the source. A long value is cut."""
        if self.by.startswith(PREFIX):
            return f"`{self.by}={str(self.value)[:_SHOWN]}`"
        return f"`{self._name(key)} = {repr(self.value)[:_SHOWN]}` in {self.place(key)}"

    def place(self, key: str) -> str:
        """Return the source that gives a value for the key, with the number of the line in a file."""
        return self.by if self.file is None else _place(self.file, self._name(key))

    def _name(self, key: str) -> str:
        return next((name for name, other in OPPOSITES.items() if self.opposite and other == key), key)

    @property
    def folder(self) -> Path | None:
        """Folder that relative paths start from; None for the current directory."""
        return self.file.parent if self.file else None


class Layers:
    """The values of each layer, and the settings that result."""

    def __init__(self, *, flags: Mapping[str, object], variables: Mapping[str, str], files: Files) -> None:
        """Read the files and the preset. Raise BadConfiguration if a file given explicitly cannot be read, or if a flag
        names an unknown preset.
        """
        self._warnings: list[str] = []
        self._narrowed: dict[str, list[str]] = {}
        self._user = self._of_user(files) if files.has_user_file else {}
        project = self._of_project(files.project) if files.project else {}
        above = _variable_values(variables), {key: SourceValue(value=value, by=FLAG) for key, value in flags.items()}
        layers: tuple[dict[str, SourceValue], ...] = (self._user, project, *above)
        if _PI in [layer["preset"].value for layer in layers if "preset" in layer][-1:]:
            pi_user = self._of_pi(files.pi_user)
            layers = (pi_user, self._user, self._allowed(self._of_pi(files.pi_project)), project, *above)
            self._user = {**pi_user, **self._user}
        self._values: dict[str, SourceValue] = {}
        for number, layer in enumerate(layers, 1):
            self._values = {**_kept(self._values, under=layer), **_without_rules(layer, above=layers[number:])}
        self._preset = _without_rules(_kept(self._of_preset(), under=self._values), above=(self._values,))

    def settings(self, *, default_store: Callable[[], Path]) -> Settings:
        """Return the resolved settings. Raise BadUsage if a flag has an invalid value or an unknown key."""
        for key in self._values.keys() - KEYS.keys():
            raise BadUsage(f"unknown key `{key}`{nearest(key)}")
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for key in sorted(KEYS, key=lambda key: key != "effective_context"):  # first, because shares of tokens need it
            for given in self._sources(key):
                if self._take(key, given, values):
                    origins[key] = given.by
                    break
        _follow(values, origins)
        if "db" not in values:
            values["db"] = default_store()
        return _made(values, origins, self._warnings, self._notes())

    def _sources(self, key: str) -> list[SourceValue]:
        """Return the values to try for a key, the strongest first: the value of the highest layer; if that is the
        project's file, the value in the user's file; and the preset's value.
        """
        strongest = self._values.get(key)
        below = self._user.get(key) if strongest and strongest.is_project else None
        return [given for given in (strongest, below, self._preset.get(key)) if given]

    def _notes(self) -> tuple[str, ...]:
        return tuple(f"{by} narrows memory here: {', '.join(changes)}" for by, changes in self._narrowed.items())

    def _take(self, key: str, given: SourceValue, values: dict[str, Any]) -> bool:
        """Parse a value into `values`. If it is invalid or a project's file may not set it, add a warning and return
        False; raise BadUsage if a flag gave an invalid value.
        """
        whole = values.get("effective_context", DEFAULTS.effective_context)
        if given.by == FLAG and isinstance(given.value, Path | ServerUrl):
            values[key] = given.value
            return True
        try:
            value = parse_value(key, given.value, whole=whole, folder=given.folder)
        except BadValue as error:
            if given.by == FLAG:
                raise BadUsage(f"`{given.value}` is not a valid `{key}` (expected {error})") from None
            self._warnings.append(f"{given.as_written(key)} is not valid (expected {error}); ignored")
            return False
        value = not value if given.opposite else value
        if given.is_project and not self._may_be(key, value, given, whole):
            return False
        values[key] = value
        return True

    def _may_be(self, key: str, value: object, given: SourceValue, whole: int) -> bool:
        """Return True if the project's file may set this value. Add a warning if not, and a note if it narrows memory.

        A key that the user has set, or that has the rule NARROWER, can only be narrowed. `disabled` gets no note,
        because commands report it themselves.
        """
        own = self._without_project(key, whole)
        if key.endswith(".provider"):
            own = own or self._without_project(key.replace("provider", "model"), whole)
        change = reaches_further(key, value, own)
        if change > 0 and (key in self._user or PROJECT_RULES[key] is ProjectRule.NARROWER):
            self._warnings.append(
                f"{given.place(key)}: a project file may only narrow `{key}` (yours is {toml(key, own)}); ignored"
            )
            return False
        if change < 0 and key != "disabled":
            change_in_words = f"{key} = {toml(key, value)} (yours: {toml(key, own)})"
            self._narrowed.setdefault(given.by, []).append(change_in_words)
        return True

    def _without_project(self, key: str, whole: int) -> object:
        """Return the value that a key would have without the project's file."""
        for given in (self._user.get(key), self._preset.get(key)):
            with suppress(BadValue):
                if given is not None:
                    value = parse_value(key, given.value, whole=whole, folder=given.folder)
                    return not value if given.opposite else value
        return value_of(DEFAULTS, key)

    def _of_preset(self) -> dict[str, SourceValue]:
        given = self._values.get("preset")
        if given is None or given.value == PRESETS[0]:
            return {}
        if given.value in PRESETS:
            name = str(given.value)
            return {
                key: SourceValue(value=value, by=f"preset {name}") for key, value in _by_key(read(preset_file(name)))
            }
        if given.by == FLAG:
            raise BadConfiguration(f"unknown preset `{given.value}`", hint=f"one of: {', '.join(PRESETS)}")
        self._warnings.append(
            f"{given.as_written('preset')} is not valid (expected one of {', '.join(PRESETS)}); ignored"
        )
        del self._values["preset"]
        return {}

    def _of_user(self, files: Files) -> dict[str, SourceValue]:
        try:
            return self._of_file(files.user)
        except BadConfiguration as error:
            if files.is_named:
                raise
            self._warnings.append(f"{error.message}; ignored")
            return {}

    def _of_project(self, path: Path) -> dict[str, SourceValue]:
        try:
            given = self._of_file(path)
        except BadConfiguration as error:
            self._warnings.append(f"{error.message}; ignored")
            return {}
        return self._allowed(given)

    def _allowed(self, given: dict[str, SourceValue]) -> dict[str, SourceValue]:
        """Return the values of a project's file that it may set. Add a warning for each other one."""
        for key in [key for key in given if not project_may_set(key, given[key].value)]:
            what = f"`{key}`" if PROJECT_RULES[key] is ProjectRule.NONE else f"`{key}` to anything but `rules`"
            self._warnings.append(
                f"{given[key].place(key)}: a project file may not set {what}"
                " (your own file, a variable or a flag may); ignored"
            )
            del given[key]
        return {key: replace(value, is_project=True) for key, value in given.items()}

    def _of_pi(self, path: Path | None) -> dict[str, SourceValue]:
        """Return the values of a `memory.json` of pi, and add a warning for each unknown key, or for the file."""
        from omcli.settings import pi  # noqa: PLC0415 - for one preset only

        given = {}
        try:
            for name, key, value in pi.read(path) if path else ():
                if key is None:
                    self._warnings.append(f"{path}: unknown key `{name}`; ignored")
                else:
                    given[OPPOSITES.get(key, key)] = SourceValue(
                        value=value, by=str(path), file=path, opposite=key in OPPOSITES
                    )
        except BadConfiguration as error:
            self._warnings.append(f"{error.message}; ignored")
            return {}
        return given

    def _of_file(self, path: Path) -> dict[str, SourceValue]:
        """Return the values of a file by key, and add a warning for each unknown key. Raise BadConfiguration if the
        file cannot be read.
        """
        given = {}
        for name, value in _by_key(read(path)):
            key = OPPOSITES.get(name, name)
            if key in KEYS:
                given[key] = SourceValue(value=value, by=str(path), file=path, opposite=key != name)
            else:
                self._warnings.append(f"{_place(path, name)}: unknown key `{name}`{nearest(name)}; ignored")
        return given


def read(path: Path) -> dict[str, Any]:
    """Return the content of a file. Raise BadConfiguration if it cannot be read, is too large or is not TOML."""
    import tomllib  # noqa: PLC0415 - not needed for variables

    try:
        return tomllib.loads(content_of(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadConfiguration(f"{path}: not valid TOML: {error}") from None


def _place(path: Path, name: str) -> str:
    """Return the path and the number of the line that sets a key, or the path alone if no such line is found."""
    section, dot = "", ""
    try:
        content = path.read_text("utf-8", errors="replace")
    except OSError:
        return str(path)
    lines = _QUOTED.sub(lambda found: "\n" * found[0].count("\n") or found[0], content).split("\n")
    for number, line in enumerate(lines, 1):
        if header := _HEADER.fullmatch(line):
            section, dot = header[1], "."
        elif (given := _KEY.match(line)) and f"{section}{dot}{given[1]}" == name:
            return f"{path}:{number}"
    return str(path)


def preset_file(name: str) -> Path:
    """Return the file of a preset."""
    return Path(__file__).with_name("presets") / f"{name}.toml"


def variable_name(key: str) -> str:
    """Return the environment variable of a key."""
    return PREFIX + key.replace(".", "_").upper()


def _variable_values(variables: Mapping[str, str]) -> dict[str, SourceValue]:
    given = {}
    for name in (*KEYS, *OPPOSITES):
        if variable_name(name) in variables:
            key = OPPOSITES.get(name, name)
            given[key] = SourceValue(value=variables[variable_name(name)], by=variable_name(name), opposite=key != name)
    return given


def _by_key(table: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield the values of a file by key. Keys in a section are named `section.name`."""
    for name, value in table.items():
        if name in SECTIONS and isinstance(value, dict):
            yield from ((f"{name}.{inner}", inner_value) for inner, inner_value in value.items())
        else:
            yield name, value


def _kept(given: Mapping[str, SourceValue], *, under: Mapping[str, SourceValue]) -> dict[str, SourceValue]:
    """Return the values that apply below a stronger layer. If that layer names another provider, keys of the old
    provider are dropped.
    """
    gone: set[str] = set()
    for role in ("observer", "reflector", "embeddings"):
        below, above = (layer.get(f"{role}.provider") for layer in (given, under))
        if below and above and below.value != above.value:
            gone |= {f"{role}.{name}" for name in _PROVIDER_KEYS}
    return {key: value for key, value in given.items() if key not in gone}


def _without_rules(
    given: Mapping[str, SourceValue], *, above: tuple[Mapping[str, SourceValue], ...]
) -> dict[str, SourceValue]:
    """Return the values of a layer, without its choice of rules if a stronger layer names a model and no provider."""
    gone: set[str] = set()
    for role in ("observer", "reflector"):
        provider, model = f"{role}.provider", f"{role}.model"
        is_named = any(layer[model].value for layer in above if model in layer)
        if provider in given and given[provider].value == RULES and is_named:
            gone.update(() if any(provider in layer for layer in above) else (provider,))
    return {key: value for key, value in given.items() if key not in gone}


def nearest(name: str) -> str:
    """Return a hint at the key that an unknown name resembles, or an empty text."""
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name, KEYS, n=1, cutoff=0.8)
    return f" (did you mean `{near[0]}`?)" if near else ""


def _follow(values: dict[str, Any], origins: dict[str, str]) -> None:
    """Fill in values that default to other values: the reflector's model and the batch size of reflecting. If rules
    observe, a model set for the reflector stays without the observer's values.
    """
    if values.get("reflect.tokens") and "reflect.batch_tokens" not in values:
        values["reflect.batch_tokens"] = values["reflect.tokens"]
        origins["reflect.batch_tokens"] = origins["reflect.tokens"]
    is_own = values.get("observer.provider") == RULES and values.get("reflector.model")
    if values.get("reflector.provider") is None and not is_own:
        for name in ("provider", *_PROVIDER_KEYS):
            mine, theirs = f"reflector.{name}", f"observer.{name}"
            if theirs in values and values.get(mine) is None:
                values[mine], origins[mine] = values[theirs], origins[theirs]


def _made(
    values: Mapping[str, Any], origins: Mapping[str, str], warnings: list[str], notes: tuple[str, ...]
) -> Settings:
    parts: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for key, value in values.items():
        section, dot, name = key.partition(".")
        if dot:
            parts[section][name] = value
    sections = {section: replace(default, **parts[section]) for section, default in SECTIONS.items()}
    plain = {key: value for key, value in values.items() if "." not in key}
    return Settings(**plain, **sections, origins=dict(origins), warnings=tuple(warnings), notes=notes)
