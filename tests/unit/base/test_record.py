"""Records behave as frozen dataclasses with slots do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest

from omcli.base.record import field, fields_of, mutable_record, positional_record, record, replace


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


@positional_record
class Cause:
    """Why something is, and since when."""

    reason: str
    since: int = 0


@record
class Quay:
    """A record with one field."""

    name: str


@positional_record
class Nothing:
    """A record without fields."""


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


def test_a_positional_record_takes_its_fields_in_their_order_or_by_name() -> None:
    assert Cause("fog", 3) == Cause("fog", since=3) == Cause(since=3, reason="fog") == Cause("fog", 3)
    assert Cause("fog").since == 0
    assert Nothing() == Nothing()
    with pytest.raises(TypeError):
        Cause("fog", 3, 4)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Cause("fog").since = 1  # type: ignore[misc]


def test_the_fields_of_a_record_are_had_by_name() -> None:
    assert fields_of(Place(name="a", notes=["x"])) == {"name": "a", "depth": 3, "notes": ["x"]}
    assert fields_of(Nothing()) == {}


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
@pytest.mark.parametrize("each", [Place(name="a", notes=["x"]), Cause("fog", 3), Nothing(), Tally(number=2)])
def test_a_record_can_be_copied_and_pickled(again: Callable[[object], object], each: object) -> None:
    assert again(each) == each
    assert type(again(each)) is type(each)


def test_a_deep_copy_shares_nothing() -> None:
    place = Place(name="a", notes=["x"])
    copy.deepcopy(place).notes.append("y")
    assert place.notes == ["x"]


def test_records_of_different_classes_are_never_equal() -> None:
    @record
    class Harbour:
        """Holds what `Place` holds."""

        name: str
        depth: int = 3
        notes: list[str] = field(default_factory=list)

    place: object = Place(name="a")
    assert Harbour(name="a") != place


def test_nothing_is_made_of_a_record() -> None:
    """Its fields would be missing in silence."""
    with pytest.raises(TypeError, match="Deeper cannot be made of a record"):

        class Deeper(Place):
            """A place with one more field."""

            more: int = 0


def test_a_default_that_all_records_would_share_is_refused() -> None:
    with pytest.raises(ValueError, match="`notes` of Pier"):

        @record
        class Pier:
            """Where ships lie."""

            notes: list[str] = []  # noqa: RUF012


def test_a_wrong_call_names_the_record() -> None:
    """The first call, which compiles the `__init__`, as well as those after it."""

    @record
    class Quay:
        """Where ships lie."""

        name: str

    for _ in range(2):
        with pytest.raises(TypeError, match=r"Quay\.__init__\(\) takes 1 positional argument but 2 were given"):
            Quay("a")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"Quay\.__init__\(\) missing 1 required keyword-only argument: 'name'"):
            Quay()  # type: ignore[call-arg]


@pytest.mark.parametrize("each", [Place(name="a"), Cause("fog", 3), Quay(name="a"), Nothing()])
def test_records_of_any_number_of_fields_are_compared_hashed_and_replaced(each: Any) -> None:
    assert replace(each) == each
    assert fields_of(replace(each)) == fields_of(each)
    if not isinstance(each, Place):  # whose notes are a list
        assert len({each, replace(each)}) == 1
    assert Quay(name="a") != Quay(name="b")


def test_nothing_but_the_record_itself_is_called_to_replace_and_compare_it() -> None:
    """They are called at the bottom of everything, thousands of times."""
    place = Place(name="a", notes=[])
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        _ = replace(place, depth=4) == place, fields_of(place)
    finally:
        sys.setprofile(None)
    assert [name for name in called if name != "<lambda>"] == ["replace", "__init__", "_same_values", "fields_of"]
