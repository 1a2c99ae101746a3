"""Records: classes like the ones made by `dataclass(frozen=True, slots=True, kw_only=True)`, without the start-up cost.

Importing `dataclasses` takes as long as starting Python, and each dataclass adds half a millisecond. Together that was
a third of `om context`. A record costs no more than a plain class, and its `__init__` is compiled after a few
instances. `dataclasses.replace`, `asdict` and `fields` accept records. Copying or unpickling builds a new record.

Every annotation of the class is a field. Records cannot be subclassed and do not inherit fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from dataclasses import Field

T = TypeVar("T")
_FEW = 40
"""Number of instances created before a class's `__init__` is compiled."""


class _Default:
    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], T]) -> T:
    """Declare a field whose default is created separately for each record."""
    return cast("T", _Default(default_factory))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a class an immutable record. Its annotations are the fields, which are passed by keyword."""
    return _made(cls, {"__setattr__": _refuse, "__delattr__": _refuse, "__hash__": _hash})


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def positional_record(cls: type[T]) -> type[T]:
    """Make a class an immutable record whose fields may be passed by position."""
    return _made(cls, {"__setattr__": _refuse, "__delattr__": _refuse, "__hash__": _hash}, in_order=True)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def mutable_record(cls: type[T]) -> type[T]:
    """Make a class a record whose fields can be reassigned. Its instances are not hashable."""
    return _made(cls, {"__hash__": None})


def replace(of: T, **changes: object) -> T:
    """Return a copy of the record with some fields changed."""
    cls: Any = type(of)
    fields = dict(zip(cls.__slots__, cls._values_of(of), strict=False))
    fields.update(changes)
    made: T = cls(**fields)
    return made


def fields_of(of: object) -> dict[str, Any]:
    """Return the fields of a record by name."""
    cls: Any = type(of)
    return dict(zip(cls.__slots__, cls._values_of(of), strict=False))


def _made(cls: type[T], methods: Mapping[str, object], *, in_order: bool = False) -> type[T]:
    """Return a new class with slots and the methods of a record, because slots cannot be added to an existing class.

    Raise ValueError if a default is not hashable: it is probably mutable, and all records would share it.
    """
    names = tuple(cls.__annotations__)
    defaults = {name: value for name, value in vars(cls).items() if name in names}
    for name, default in defaults.items():
        if type(default).__hash__ is None:
            raise ValueError(f"`{name}` of {cls.__name__}: all records would share its default; use `field`")
    # `attrgetter` needs at least one name and returns a tuple only for two or more, so a single name is given twice.
    read = names if len(names) > 1 else 2 * (names or ("__slots__",))
    own = {name: value for name, value in vars(cls).items() if name not in {*names, "__dict__", "__weakref__"}}
    common = {
        "__slots__": names,
        "_values_of": attrgetter(*read),
        "__qualname__": cls.__qualname__,
        "__init__": _lazily_compiled_init(names, defaults, in_order=in_order),
        "__eq__": _same_values,
        "__repr__": _text,
        "__reduce__": _copy,
        "__init_subclass__": _refuse_subclass,
        "__dataclass_fields__": _Fields(defaults),
    }
    made: type[T] = type(cls.__name__, cls.__bases__, {**own, **common, **methods})
    return made


def _lazily_compiled_init(
    names: tuple[str, ...], defaults: Mapping[str, object], *, in_order: bool
) -> Callable[..., None]:
    """Return an `__init__` that sets fields one by one and replaces itself with a compiled one after `_FEW` records, or
    when arguments are positional, missing or unknown.

    Compiling takes as long as setting a hundred records field by field, and most classes have only a few instances.
    """
    all_names = frozenset(names)
    required = {name for name in names if name not in defaults}
    made = 0

    def __init__(self: object, *first: object, **given: object) -> None:  # noqa: N807
        nonlocal made
        made += 1
        if made <= _FEW and not first and required <= given.keys() <= all_names:
            for name in names:
                value = given[name] if name in given else defaults[name]
                object.__setattr__(self, name, value.make() if isinstance(value, _Default) else value)
            return
        cls: Any = type(self)
        parameters, body = ["self"] if in_order or not names else ["self", "*"], [] if names else [" pass"]
        scope: dict[str, Any] = {}
        for name in names:
            scope[f"set_{name}"] = vars(cls)[name].__set__
            parameters.append(f"{name}=default_{name}" if name in defaults else name)
            scope[f"default_{name}"] = default = defaults.get(name)
            is_made = isinstance(default, _Default)
            taken = f"default_{name}.make() if {name} is default_{name} else {name}" if is_made else name
            body.append(f" set_{name}(self, {taken})")
        exec("\n".join([f"def __init__({', '.join(parameters)}):", *body]), scope)  # noqa: S102 - names from our own source
        cls.__init__ = scope["__init__"]
        cls.__init__.__qualname__ = f"{cls.__qualname__}.__init__"  # shown in a TypeError
        cls.__init__(self, *first, **given)

    return __init__


class _Fields:
    """Descriptor that builds `__dataclass_fields__` on first access."""

    def __init__(self, defaults: Mapping[str, object]) -> None:
        self._defaults = defaults

    def __get__(self, _record: object, cls: type) -> dict[str, Field[Any]]:
        import dataclasses  # noqa: PLC0415

        fields: list[tuple[str, Any, Any]] = []
        for name, kind in cls.__annotations__.items():
            default: Any = self._defaults.get(name, dataclasses.MISSING)
            if isinstance(default, _Default):
                fields.append((name, kind, dataclasses.field(default_factory=default.make)))
            else:
                fields.append((name, kind, dataclasses.field(default=default)))
        made: Any = dataclasses.make_dataclass(cls.__name__, fields, kw_only=True)
        found: dict[str, Field[Any]] = made.__dataclass_fields__
        cls.__dataclass_fields__ = found  # type: ignore[attr-defined]
        return found


def _refuse(self: object, name: str, *_value: object) -> NoReturn:
    raise AttributeError(f"`{name}` of a {type(self).__name__} cannot be changed")


def _refuse_subclass(cls: type) -> NoReturn:
    raise TypeError(f"{cls.__name__} cannot be made of a record: it would not have its fields")


def _copy(self: object) -> tuple[Callable[..., object], tuple[type, dict[str, Any]]]:
    return _again, (type(self), fields_of(self))


def _again(cls: Callable[..., T], fields: Mapping[str, Any]) -> T:
    return cls(**fields)


def _same_values(self: object, other: object) -> bool:
    cls: Any = type(self)
    same: bool = cls._values_of(self) == cls._values_of(other) if type(self) is type(other) else NotImplemented
    return same


def _hash(self: object) -> int:
    cls: Any = type(self)
    return hash(cls._values_of(self))


def _text(self: object) -> str:
    shown = ", ".join(f"{name}={value!r}" for name, value in fields_of(self).items())
    return f"{type(self).__name__}({shown})"
