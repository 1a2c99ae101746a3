"""Records behave as frozen dataclasses with slots do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from omcli.memory.record import field, mutable_record, record, replace


@record
class Place:
    """Where something is."""

    name: str
    depth: int = 3
    notes: list[str] = field(default_factory=list)

    @property
    def is_deep(self) -> bool:
        """Whether a ship can lie there."""
        return self.depth > 5


@mutable_record
class Tally:
    """A count."""

    number: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What `Place` is held against."""

    name: str
    depth: int = 3
    notes: list[str] = dataclasses.field(default_factory=list)


GIVEN: list[dict[str, Any]] = [{"name": "a"}, {"name": "a", "depth": 9}, {"name": "b", "depth": 3, "notes": ["x"]}]


@pytest.mark.parametrize("given", GIVEN)
def test_a_record_holds_what_a_dataclass_holds(given: dict[str, Any]) -> None:
    assert dataclasses.asdict(Place(**given)) == dataclasses.asdict(Model(**given))
    assert repr(Place(**given)) == repr(Model(**given)).replace("Model", "Place")


@pytest.mark.parametrize("one", GIVEN)
@pytest.mark.parametrize("other", GIVEN)
def test_records_are_equal_where_dataclasses_are(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (Place(**one) == Place(**other)) is (Model(**one) == Model(**other))
    assert Place(**one) != object()


@pytest.mark.parametrize("call", [lambda: Place("a"), lambda: Place(name="a", width=1), lambda: Place(depth=1)])  # type: ignore[call-arg]
def test_what_does_not_fit_the_fields_is_refused(call: Callable[[], Place]) -> None:
    """Also by the first record of a class, which is where its `__init__` is compiled."""
    with pytest.raises(TypeError):
        call()
    with pytest.raises(TypeError):
        call()


def test_a_record_cannot_be_changed_and_has_nothing_but_its_fields() -> None:
    place = Place(name="a")
    changes: list[Callable[[], object]] = [
        lambda: setattr(place, "depth", 4),
        lambda: setattr(place, "width", 4),
        lambda: delattr(place, "name"),
    ]
    for change in changes:
        with pytest.raises(AttributeError):
            change()
    assert not hasattr(place, "__dict__")
    assert place == Place(name="a")


def test_a_mutable_record_can_be_changed_in_its_fields_alone() -> None:
    tally = Tally()
    tally.number += 1
    assert tally == Tally(number=1)
    with pytest.raises(AttributeError):
        tally.other = 2  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        hash(tally)


def test_a_default_that_is_made_is_made_anew() -> None:
    one, other = Place(name="a"), Place(name="a")
    one.notes.append("x")
    assert other.notes == []


@pytest.mark.parametrize("change", [replace, dataclasses.replace])
def test_a_record_is_replaced_field_by_field(change: Callable[..., Place]) -> None:
    place = Place(name="a", depth=9, notes=["x"])
    assert change(place, depth=6) == Place(name="a", depth=6, notes=["x"])
    assert change(place) == place
    with pytest.raises(TypeError):
        change(place, width=1)


def test_records_of_hashable_fields_are_hashed_by_them() -> None:
    @record
    class Point:
        """Where two lines meet."""

        x: int
        y: int

    assert {Point(x=1, y=2), Point(x=1, y=2), Point(x=2, y=1)} == {Point(x=1, y=2), Point(x=2, y=1)}


def test_methods_and_the_docstring_stay() -> None:
    assert Place(name="a", depth=6).is_deep
    assert (Place.__doc__, Place.__name__, Place.__qualname__) == ("Where something is.", "Place", "Place")
    assert [each.name for each in dataclasses.fields(Place)] == ["name", "depth", "notes"]
