"""The layers of settings, one over the other, and what is wrong in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from omcli.base.errors import BadConfiguration, BadUsage
from omcli.base.record import record, replace
from omcli.settings.settings import FLAG, PREFIX, Files, Settings
from omcli.settings.values import DEFAULTS, KEYS, SECTIONS, InvalidValue, is_private, parse_value

PRESETS = ("default", "zora", "lango", "duet", "pi", "coding", "mastra")
_LARGEST = 1_000_000
"""Bytes of a file that somebody may have written by hand."""
_NO_MODELS = ("command", "scripted")
"""Providers that run a program, or read a file, of whoever names them."""
_SHOWN = 60
"""Characters of a wrong value that are shown."""
_OPPOSITES = {"enabled": "disabled"}
"""Keys that say what another one says, the other way round."""
_OF_A_PROVIDER = ("model", "base_url", "command", "fallback_model", "max_output")
"""What is said of a provider's models means nothing for another one's."""


@record
class GivenValue:
    """What somebody says that a key is."""

    value: object
    by: str
    """A flag, a variable, a file or a preset."""
    folder: Path | None = None
    """What a path starts from."""
    opposite: bool = False
    """It says the opposite."""

    def spelt(self, key: str) -> str:
        """As it was written down."""
        if self.by.startswith(PREFIX):
            return f"`{self.by}={str(self.value)[:_SHOWN]}`"
        return f"`{key} = {repr(self.value)[:_SHOWN]}` in {self.by}"


class Layers:
    """All that is said, and what it comes to."""

    def __init__(self, *, flags: Mapping[str, object], variables: Mapping[str, str], files: Files) -> None:
        """Reads the files. Raises BadConfiguration."""
        self._warnings: list[str] = []
        layers = (
            self._of_user(files) if files.user_is_there else {},
            self._of_project(files.project) if files.project else {},
            _of_variables(variables),
            {key: GivenValue(value=value, by=FLAG) for key, value in flags.items()},
        )
        self._said: dict[str, GivenValue] = {}
        for layer in layers:
            self._said = {**_kept(self._said, under=layer), **layer}
        self._preset = _kept(self._of_preset(), under=self._said)

    def settings(self, *, default_store: Callable[[], Path]) -> Settings:
        """Everything settled. Raises BadUsage for a flag that makes no sense, or that there is no key for."""
        for key in self._said.keys() - KEYS.keys():
            raise BadUsage(f"there is no key `{key}`{_meant(key)}")
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for key in sorted(KEYS, key=lambda key: key != "effective_context"):  # shares are of that
            for said in (self._said.get(key), self._preset.get(key)):
                if said and self._take(key, said, values):
                    origins[key] = said.by
                    break
        _follow(values, origins)
        if "db" not in values:
            values["db"] = default_store()
        return _made(values, origins, self._warnings)

    def _take(self, key: str, said: GivenValue, values: dict[str, Any]) -> bool:
        """Puts a value where it belongs; where it makes none, that is said."""
        whole = values.get("effective_context", DEFAULTS.effective_context)
        if said.by == FLAG and isinstance(said.value, Path):
            values[key] = said.value
            return True
        try:
            value = parse_value(key, said.value, whole=whole, folder=said.folder)
        except InvalidValue as error:
            if said.by == FLAG:
                raise BadUsage(f"`{said.value}` is {error} for `{key}`") from None
            self._warnings.append(f"{said.spelt(key)} is {error}, and is ignored")
            return False
        values[key] = not value if said.opposite else value
        return True

    def _of_preset(self) -> dict[str, GivenValue]:
        said = self._said.get("preset")
        if said is None or said.value == PRESETS[0]:
            return {}
        if said.value in PRESETS:
            name = str(said.value)
            return {key: GivenValue(value=value, by=f"preset {name}") for key, value in _flat(read(preset_file(name)))}
        if said.by == FLAG:
            raise BadConfiguration(f"there is no preset `{said.value}`", hint=f"one of: {', '.join(PRESETS)}")
        self._warnings.append(f"{said.spelt('preset')} is none of {', '.join(PRESETS)}, and is ignored")
        del self._said["preset"]
        return {}

    def _of_user(self, files: Files) -> dict[str, GivenValue]:
        try:
            return self._of_file(files.user)
        except BadConfiguration as error:
            if files.is_named:
                raise
            self._warnings.append(f"{error.message}; it is ignored")
            return {}

    def _of_project(self, path: Path) -> dict[str, GivenValue]:
        try:
            said = self._of_file(path)
        except BadConfiguration as error:
            self._warnings.append(f"{error.message}; it is ignored")
            return {}
        refused = [key for key in said if _is_refused(key, said[key].value)]
        for key in refused:
            self._warnings.append(
                f"{path}: a project may not say what `{key}` is (your own configuration, a variable or a flag may), "
                "and it is ignored"
            )
            del said[key]
        return said

    def _of_file(self, path: Path) -> dict[str, GivenValue]:
        """What a file says, by key. Raises BadConfiguration where it cannot be read."""
        said = {}
        for name, value in _flat(read(path)):
            key = _OPPOSITES.get(name, name)
            if key in KEYS:
                said[key] = GivenValue(value=value, by=str(path), folder=path.parent, opposite=key != name)
            else:
                self._warnings.append(f"{path}: there is no key `{name}`{_meant(name)}; it is ignored")
        return said


def read(path: Path) -> dict[str, Any]:
    """What a file says. Raises BadConfiguration where it cannot be read or is no TOML."""
    import tomllib  # noqa: PLC0415 - variables need none

    try:
        if not path.is_file():
            raise BadConfiguration(f"{path}: there is no such file")
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise BadConfiguration(f"{path}: it has more than {_LARGEST} bytes")
        return tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise BadConfiguration(f"{path}: it cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BadConfiguration(f"{path}: it is no TOML: {error}") from None


def preset_file(name: str) -> Path:
    """The file of a preset."""
    return Path(__file__).with_name("presets") / f"{name}.toml"


def variable_name(key: str) -> str:
    """The environment variable that says what a key is."""
    return PREFIX + key.replace(".", "_").upper()


def _of_variables(variables: Mapping[str, str]) -> dict[str, GivenValue]:
    said = {}
    for name in (*KEYS, *_OPPOSITES):
        if variable_name(name) in variables:
            key = _OPPOSITES.get(name, name)
            said[key] = GivenValue(value=variables[variable_name(name)], by=variable_name(name), opposite=key != name)
    return said


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The values of a file by their keys, a section's name before a dot."""
    for name, value in table.items():
        if name in SECTIONS and isinstance(value, dict):
            yield from ((f"{name}.{inner}", said) for inner, said in value.items())
        else:
            yield name, value


def _kept(said: Mapping[str, GivenValue], *, under: Mapping[str, GivenValue]) -> dict[str, GivenValue]:
    """What still holds under a stronger layer: nothing of a provider's models where that names another provider."""
    gone: set[str] = set()
    for role in ("observer", "reflector"):
        below, above = (layer.get(f"{role}.provider") for layer in (said, under))
        if below and above and below.value != above.value:
            gone |= {f"{role}.{name}" for name in _OF_A_PROVIDER}
    return {key: value for key, value in said.items() if key not in gone}


def _is_refused(key: str, value: object) -> bool:
    """Whether this is not for a project to say: what is private, and a program or a file in the place of a model."""
    whose = str(value).strip().lower().partition("/")[0]
    stands_in = key.endswith((".provider", ".model", ".fallback_model")) and whose in _NO_MODELS
    return stands_in or is_private(key)


def _meant(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name, KEYS, n=1, cutoff=0.8)
    return f" (did you mean `{near[0]}`?)" if near else ""


def _follow(values: dict[str, Any], origins: dict[str, str]) -> None:
    """Fills in what is said elsewhere: whose model reflects, and what is reflected at once."""
    if values.get("reflect.tokens") and "reflect.batch_tokens" not in values:
        values["reflect.batch_tokens"] = values["reflect.tokens"]
        origins["reflect.batch_tokens"] = origins["reflect.tokens"]
    if values.get("reflector.provider") is None:
        for name in ("provider", *_OF_A_PROVIDER):
            mine, theirs = f"reflector.{name}", f"observer.{name}"
            if theirs in values and values.get(mine) is None:
                values[mine], origins[mine] = values[theirs], origins[theirs]


def _made(values: Mapping[str, Any], origins: Mapping[str, str], warnings: list[str]) -> Settings:
    parts: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for key, value in values.items():
        section, dot, name = key.partition(".")
        if dot:
            parts[section][name] = value
    sections = {section: replace(default, **parts[section]) for section, default in SECTIONS.items()}
    plain = {key: value for key, value in values.items() if "." not in key}
    return Settings(**plain, **sections, origins=dict(origins), warnings=tuple(warnings))
