"""Parameters of a command, declared once; a plain command line is parsed here, any other by Typer.

An agent starts `om` at every turn, and importing Typer takes four times as long as starting Python. So a command line
with known options, spelled out, and valid values is parsed without it. Help, completion, hidden spellings and all
errors are left to Typer, which parses every plain line to the same values (tests/unit/cli/test_arguments.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from omcli.base.record import record

Values = dict[str, object]
"""Values of a command's parameters by name."""

_LONGEST_NUMBER = 15
"""Largest number of digits that every parser reads alike."""


@record
class ParameterOptions:
    """The spelling of a parameter: the `names` of an option; an argument has none and goes by its position."""

    names: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    """Former names, which still work but are not shown in help or completion."""
    at_least: int | None = None
    """The smallest number allowed."""
    settings: Mapping[str, object]
    """Further settings for Typer: help, metavar, completion."""


def option(
    *names: str, aliases: Sequence[str] = (), at_least: int | None = None, **settings: object
) -> ParameterOptions:
    """An option, for `Annotated`; the settings are those of `typer.Option`."""
    return ParameterOptions(names=names, aliases=tuple(aliases), at_least=at_least, settings=settings)


def argument(*, at_least: int | None = None, **settings: object) -> ParameterOptions:
    """An argument, for `Annotated`; the settings are those of `typer.Argument`."""
    return ParameterOptions(names=(), at_least=at_least, settings=settings)


@record
class Parameter:
    """A parameter of a command."""

    name: str
    kind: Any
    """Its annotation: `str`, `int`, `float`, `bool`, `Path` or an enumeration, or a list of one of these; either may be
    `| None`.
    """
    default: object
    """`...` if it is required."""
    declared: ParameterOptions

    @property
    def is_list(self) -> bool:
        """True if it may be given several times."""
        return get_origin(_value_kind(self.kind)) is list

    @property
    def number(self) -> type[int | float] | None:
        """`int` or `float` if its value is one number."""
        kind = _value_kind(self.kind)
        return kind if kind in (int, float) else None

    def value(self, text: str) -> object:
        """The value of an argument, or None if only Typer can parse it."""
        kind = _value_kind(self.kind)
        if get_origin(kind) is list:
            (kind,) = get_args(kind)
        if not text:
            return None
        if issubclass(kind, Enum):
            return next((member for member in kind if member.value == text), None)
        if kind in (int, float):
            return _number(text, kind, self.declared.at_least)
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
    """The values of the words after a command, or None if they are not plain."""
    options = {name: parameter for parameter in wanted for name in parameter.declared.names}
    places = [parameter for parameter in wanted if not parameter.declared.names]
    given: Values = {}
    rest = iter(words)
    for word in rest:
        name, has_value, value = word.partition("=")
        parameter = options.get(name if name.startswith("--") else word)
        if parameter is None:
            # `-` is an argument; anything else that begins with it is an option.
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


def _value_kind(kind: Any) -> Any:
    kinds = [each for each in get_args(kind) if each is not NoneType]
    return kinds[0] if NoneType in get_args(kind) else kind


def _number(text: str, kind: type[int | float], at_least: int | None) -> float | None:
    digits = text.replace(".", "", 1) if kind is float else text
    if not digits.isdecimal() or not digits.isascii() or len(text) > _LONGEST_NUMBER:
        return None
    number = kind(text)
    return number if at_least is None or number >= at_least else None
