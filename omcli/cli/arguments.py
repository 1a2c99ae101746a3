"""What a command takes, declared once; a plain command line is read here, any other by Typer.

Importing Typer takes four times as long as starting Python, and an agent starts `om` at every turn. So a line that
holds nothing but known options, spelt out, with values as they should be, is read without it. Help, completion,
abbreviations and everything that is wrong are left to Typer, which reads every plain line the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from omcli.base.record import record

Values = dict[str, object]
"""What a command line says, by the names of the command's parameters."""

_LONGEST_NUMBER = 15
"""Digits of a number that every reader reads alike."""


@record
class Declared:
    """How a parameter is given: an option by its `names`, an argument, which has none, by its place."""

    names: tuple[str, ...]
    settings: Mapping[str, object]
    """What Typer is told of it: help, metavar, bounds, completion."""


def option(*names: str, **settings: object) -> Declared:
    """An option, for `Annotated`; the settings are those of `typer.Option`."""
    return Declared(names=names, settings=settings)


def argument(**settings: object) -> Declared:
    """An argument, for `Annotated`; the settings are those of `typer.Argument`."""
    return Declared(names=(), settings=settings)


@record
class Parameter:
    """A parameter of a command."""

    name: str
    kind: Any
    """The type it is annotated with: one of `str`, `int`, `float`, `bool`, `Path` or an enumeration, a list of it, or
    None beside it."""
    default: object
    """`...` where it has to be given."""
    declared: Declared

    @property
    def is_list(self) -> bool:
        """Whether it may be given several times."""
        return get_origin(_without_none(self.kind)) is list

    def value(self, text: str) -> object:
        """What a text means for it, or None where that is not plain to see."""
        kind = _without_none(self.kind)
        if get_origin(kind) is list:
            (kind,) = get_args(kind)
        if not text:
            return None
        if issubclass(kind, Enum):
            return next((member for member in kind if member.value == text), None)
        if kind in (int, float):
            return _number(text, kind, self.declared.settings.get("min"))
        return kind(text)


def parameters(function: Callable[..., None]) -> tuple[Parameter, ...]:
    """The parameters of a function that are declared with `option` or `argument`, in order."""
    return tuple(_parameters(function))


def _parameters(function: Callable[..., None]) -> Iterator[Parameter]:
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    defaults = dict(zip(reversed(positional), reversed(function.__defaults__ or ()), strict=False))
    defaults |= function.__kwdefaults__ or {}
    for name, hint in get_type_hints(function, include_extras=True).items():
        for declared in getattr(hint, "__metadata__", ()):
            yield Parameter(name=name, kind=get_args(hint)[0], default=defaults.get(name, ...), declared=declared)


def plain(wanted: Sequence[Parameter], words: Sequence[str]) -> Values | None:
    """What the words after a command say, or None where they are not plain."""
    options = {name: parameter for parameter in wanted for name in parameter.declared.names}
    places = [parameter for parameter in wanted if not parameter.declared.names]
    given: Values = {}
    rest = iter(words)
    for word in rest:
        name, has_value, value = word.partition("=")
        parameter = options.get(name if name.startswith("--") else word)
        if parameter is None:
            # `-` is a word like others; whatever else begins so is an option.
            if not places or (word.startswith("-") and word != "-"):
                return None
            parameter, value = (places[0] if places[0].is_list else places.pop(0)), word
        elif parameter.kind is bool:
            if has_value:
                return None
            given[parameter.name] = True
            continue
        elif not has_value or not name.startswith("--"):
            value = next(rest, "-")
            if value.startswith("-"):
                return None
        meant = parameter.value(value)
        if meant is None:
            return None
        if parameter.is_list:
            meant = [*given.get(parameter.name, ()), meant]  # type: ignore[misc]
        given[parameter.name] = meant
    found = {parameter.name: given.get(parameter.name, parameter.default) for parameter in wanted}
    return None if ... in found.values() else found


def _without_none(kind: Any) -> Any:
    kinds = [each for each in get_args(kind) if each is not NoneType]
    return kinds[0] if NoneType in get_args(kind) else kind


def _number(text: str, kind: type[int | float], least: object) -> float | None:
    digits = text.replace(".", "", 1) if kind is float else text
    if not digits.isdecimal() or not digits.isascii() or len(text) > _LONGEST_NUMBER:
        return None
    number = kind(text)
    return number if least is None or number >= least else None  # type: ignore[operator]
