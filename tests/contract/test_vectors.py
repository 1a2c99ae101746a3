"""Promises of every store about `Vectors`: what has some, what is found, and what goes with the texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import Unusable
from omcli.base.record import replace
from omcli.memory.changes import OperationKind, OperationWrite
from omcli.memory.message import Role
from omcli.memory.observation import Dropped, LogQuery, Priority
from omcli.memory.ports import Store
from omcli.memory.search import TextPlace
from omcli.memory.session import NO_PROJECT
from tests.contract.conftest import KINDS
from tests.contract.keeping import keep
from tests.fakes import MemoryStore
from tests.material import LATER, NOW, call, result, row, row_id, said, session

MODEL = "openai/m"
EVERY_KIND = pytest.mark.parametrize("make_store", [*KINDS, "pgvector"], indirect=True)


def message(number: int) -> TextPlace:
    return TextPlace(is_row=False, number=number)


def of_row(number: int) -> TextPlace:
    return TextPlace(is_row=True, number=number)


def embed(store: Store, vectors: Mapping[str, Sequence[float]], model: str = MODEL) -> int:
    """Give texts their vectors, wherever they are missing."""
    return store.vectors.put(model, store.vectors.missing(model), vectors)


def nearest(store: Store, vector: Sequence[float], *, most: int = 10, **narrowed: object) -> list[TextPlace]:
    """The places that are found, messages first."""
    found = store.vectors.nearest(MODEL, vector, LogQuery(**narrowed), most=most)  # type: ignore[arg-type]
    return [*map(message, found.messages), *map(of_row, found.rows)]


class TestMissing:
    def test_rows_by_priority_and_then_messages_the_newest_first(self, store: Store) -> None:
        """S2.30"""
        keep(store, said("one"), said("two", role=Role.ASSISTANT))
        for number, priority in enumerate((Priority.LOW, Priority.HIGH, Priority.MEDIUM, Priority.HIGH), start=1):
            store.rows.add(row(number, text=f"row {number}", priority=priority))
        assert store.vectors.missing(MODEL) == (*map(of_row, (4, 2, 3, 1)), message(2), message(1))

    def test_calls_results_empty_texts_and_hidden_rows_are_not_missing(self, store: Store) -> None:
        keep(store, call("c"), result("c"), said(" \n\t"), said("one"))
        store.rows.add(row(1, text="old", superseded_by=row_id(2)), row(2, text="new"))
        assert store.vectors.missing(MODEL) == (of_row(2), message(4))

    def test_what_has_vectors_of_another_model_is_missing(self, store: Store) -> None:
        """S2.33"""
        keep(store, said("one"))
        embed(store, {"one": [1, 0]})
        assert store.vectors.missing(MODEL) == ()
        assert store.vectors.missing("openai/other") == (message(1),)

    def test_the_texts_are_those_that_are_visible_with_the_speaker(self, store: Store) -> None:
        named = said("hello")
        keep(store, replace(named, message=replace(named.message, name="Caro")), said("a" * 2500))
        texts = store.vectors.texts([message(1), message(2), message(9), of_row(1)])
        assert texts == {message(1): ("Caro: hello",), message(2): ("a" * 1000, "a" * 1000)}


@EVERY_KIND
class TestPut:
    def test_a_text_that_is_known_needs_no_vector(self, store: Store) -> None:
        """S2.32"""
        keep(store, said("one", identity="a"))
        assert embed(store, {"one": [1, 0]}) == 1
        keep(store, said("one", identity="b"), said("two"))
        assert store.vectors.known(MODEL, ["one", "two"]) == {"one"}
        assert embed(store, {}) == 1
        assert store.vectors.missing(MODEL) == (message(3),)

    def test_a_place_is_missing_until_all_its_parts_have_vectors(self, store: Store) -> None:
        keep(store, said("a" * 1000 + "b" * 1000))
        assert embed(store, {"a" * 1000: [1, 0]}) == 0
        assert embed(store, {"b" * 1000: [0, 1]}) == 1

    def test_a_text_that_was_forgotten_meanwhile_gets_no_vector(self, store: Store) -> None:
        """S2.32"""
        keep(store, said("one"))
        places = store.vectors.missing(MODEL)
        store.operations.change(OperationWrite(verb=OperationKind.FORGET, messages=(1,)), now=NOW, for_good=True)
        assert store.vectors.put(MODEL, places, {"one": [1, 0]}) == 0
        assert store.vectors.status(MODEL).size == 0

    def test_another_number_of_dimensions_begins_again(self, store: Store) -> None:
        """S2.33"""
        keep(store, said("one"), said("two"))
        embed(store, {"one": [1, 0], "two": [0, 1]})
        for length in (3, 2):
            store.vectors.put(MODEL, [message(1)], {"one": [1] * length})
            assert store.vectors.length(MODEL) == length
            assert store.vectors.missing(MODEL) == (message(2),)
            assert nearest(store, [1] * length) == [message(1)]
        assert store.vectors.length("openai/other") is None


@EVERY_KIND
class TestNearest:
    def test_the_nearest_come_first_and_their_length_does_not_matter(self, store: Store) -> None:
        keep(store, *(said(f"m{number}") for number in range(20)))
        vectors = {
            f"m{number}": [(number + 1) * math.cos(number / 10), (number + 1) * math.sin(number / 10)]
            for number in range(20)
        }
        embed(store, vectors)
        assert nearest(store, [3, 0], most=3) == [message(1), message(2), message(3)]

    def test_what_is_as_far_as_all_others_is_not_near(self, store: Store) -> None:
        keep(store, *(said(f"m{number}") for number in range(20)))
        embed(store, {f"m{number}": [1, number / 100] for number in range(20)})
        assert nearest(store, [0, -1]) == []

    def test_vectors_of_other_models_and_lengths_are_not_compared(self, store: Store) -> None:
        """S2.33"""
        keep(store, said("one"))
        embed(store, {"one": [1, 0]}, "openai/other")
        with pytest.raises(Unusable, match="no vectors"):
            nearest(store, [1, 0])
        embed(store, {"one": [1, 0]})
        with pytest.raises(Unusable, match="3 dimensions"):
            nearest(store, [1, 0, 0])

    def test_only_what_the_query_selects_is_found(self, store: Store) -> None:
        keep(store, said("one", at="2026-03-01T00:00:00.000Z"))
        store.messages.append(session("t", cwd=None), [said("two")], counter="words", now=NOW)
        store.rows.add(row(1, text="three", session="s"), row(2, text="four", session="t", priority=Priority.LOW))
        embed(store, {text: [1, 0] for text in ("one", "two", "three", "four")})
        assert len(nearest(store, [1, 0])) == 4
        assert nearest(store, [1, 0], session="s") == [message(1), of_row(1)]
        assert nearest(store, [1, 0], project=NO_PROJECT)[:1] == [message(2)]
        assert nearest(store, [1, 0], since="2026-03-02")[:1] == [of_row(2)]
        assert of_row(1) not in nearest(store, [1, 0], priorities=(Priority.LOW,))

    def test_a_place_counts_once_by_its_nearest_part(self, store: Store) -> None:
        keep(store, said("a" * 1000 + "b" * 1000), said("c"))
        embed(store, {"a" * 1000: [1, 0], "b" * 1000: [0, 1], "c": [0.8, 0.6]})
        found = store.vectors.nearest(MODEL, [0, 1], LogQuery(), most=5)
        assert next(iter(found.messages)) == 1
        assert found.messages[1] == pytest.approx(1, abs=0.01)


@EVERY_KIND
class TestAlwaysFresh:
    def test_what_is_hidden_is_not_found_and_what_is_restored_needs_no_call(self, store: Store) -> None:
        keep(store, said("one"))
        store.rows.add(row(1, text="two", sources=(1,)))
        embed(store, {"one": [1, 0], "two": [1, 0]})
        change = OperationWrite(verb=OperationKind.FORGET, forgotten=(row_id(1),), messages=(1,))
        done = store.operations.change(change, now=NOW)
        assert nearest(store, [1, 0]) == []
        store.operations.undo(done.number, now=LATER)
        assert embed(store, {}) == 2
        assert nearest(store, [1, 0]) == [message(1), of_row(1)]

    def test_a_row_that_is_replaced_is_not_found(self, store: Store) -> None:
        store.rows.add(row(1, text="one"))
        embed(store, {"one": [1, 0]})
        store.operations.change(
            OperationWrite(verb=OperationKind.PRUNE, dropped=(Dropped(row=row_id(1), reason="old"),)), now=NOW
        )
        assert nearest(store, [1, 0]) == []

    def test_what_is_deleted_for_good_takes_its_vectors_along(self, store: Store) -> None:
        """S2.32: vectors tell about their texts."""
        keep(store, said("one", identity="a"), said("one", identity="b"), said("two"))
        embed(store, {"one": [1, 0], "two": [0, 1]})
        for seqs, left in (((3,), 2), ((1,), 2), ((2,), 0)):
            change = OperationWrite(verb=OperationKind.FORGET, messages=seqs)
            store.operations.change(change, now=NOW, for_good=True)
            assert store.vectors.status(MODEL).size == left

    def test_vectors_that_nothing_is_linked_to_are_dropped(self, store: Store) -> None:
        """S2.32"""
        keep(store, said("one"), said("two"))
        embed(store, {"one": [1, 0], "two": [0, 1]})
        assert store.vectors.drop_unused() == 0
        store.operations.change(OperationWrite(verb=OperationKind.FORGET, messages=(1,)), now=NOW)
        assert store.vectors.drop_unused() == 1
        assert store.vectors.known(MODEL, ["one", "two"]) == {"two"}

    def test_status_counts_places(self, store: Store) -> None:
        keep(store, said("one"), said("two"), said("a" * 1500))
        store.rows.add(row(1, text="one"))
        embed(store, {"one": [1, 0], "a" * 1000: [1, 0], "a" * 500: [0, 1]})
        found = store.vectors.status(MODEL)
        assert (found.messages, found.rows, found.missing_messages, found.missing_rows) == (2, 1, 1, 0)
        assert (found.dimensions, found.size) == (2, 6)


@given(
    vectors=st.lists(st.tuples(*[st.floats(-1, 1, width=16)] * 4).filter(any), min_size=1, max_size=30, unique=True),
    wanted=st.tuples(*[st.floats(-1, 1, width=16)] * 4).filter(any),
)
def test_the_search_is_exact(vectors: list[tuple[float, ...]], wanted: tuple[float, ...]) -> None:
    """No vector that is left out is nearer than one that is found, apart from the rounding of vectors."""

    def cosine(vector: Sequence[float]) -> float:
        dot = sum(one * other for one, other in zip(vector, wanted, strict=True))
        return dot / (math.hypot(*vector) * math.hypot(*wanted))

    with MemoryStore() as store:
        keep(store, *(said(f"m{number}") for number in range(len(vectors))))
        embed(store, {f"m{number}": vector for number, vector in enumerate(vectors)})
        found = store.vectors.nearest(MODEL, wanted, LogQuery(), most=5).messages
        cosines = {number + 1: cosine(vector) for number, vector in enumerate(vectors)}
        others = [cosines[number] for number in cosines.keys() - found.keys()]
        assert all(abs(value - cosines[number]) < 0.02 for number, value in found.items())
        assert max(others, default=-1) <= min(found.values(), default=1) + 0.02
        assert list(found.values()) == sorted(found.values(), reverse=True)
