"""When a file that is followed is taken in: its last state always, and none too often."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omcli.operations.watch import Debouncer

EVERY = 5.0
INTERVAL = 2.0


def taken(pace: Debouncer, now: float, **files: int) -> list[str]:
    """What is due of files with these stamps, all of which is taken in."""
    looked = {name: (stamp,) for name, stamp in files.items()}
    due = pace.due(looked, now)
    for path in due:
        pace.mark_ingested(path, looked[path], now)
    return due


def test_all_there_is_at_the_first_look_is_taken_in() -> None:
    pace = Debouncer(EVERY)
    assert taken(pace, 0, a=1, b=1) == ["a", "b"]
    assert taken(pace, 2, a=1, b=1) == []


def test_what_is_still_written_to_waits_until_it_rests() -> None:
    """A burst is taken in when it is over, a new file as well."""
    pace = Debouncer(EVERY)
    taken(pace, 0, a=1)
    assert taken(pace, 20, a=2, b=1) == []
    assert taken(pace, 22, a=2, b=2) == ["a"]
    assert taken(pace, 24, a=2, b=2) == ["b"]


def test_what_never_rests_is_taken_in_all_the_same() -> None:
    """So many seconds after it was seen to change, and then again."""
    pace = Debouncer(EVERY)
    times = [now for now in range(0, 31, 2) if taken(pace, now, a=now)]
    assert times == [0, 8, 16, 24]


def test_a_file_that_rests_is_not_taken_in_too_often() -> None:
    pace = Debouncer(EVERY)
    taken(pace, 0, a=1)
    assert taken(pace, 2, a=2) == []
    assert taken(pace, 4, a=2) == []
    assert taken(pace, 6, a=2) == ["a"]


def test_what_could_not_be_taken_in_is_due_again_until_it_was() -> None:
    """After so many seconds; and what is gone is forgotten."""
    pace = Debouncer(EVERY)
    assert pace.due({"a": (1,)}, 0) == ["a"]
    pace.mark_failed("a", 0)
    assert pace.due({"a": (1,)}, 2) == []
    assert pace.due({"a": (1,)}, 6) == ["a"]
    pace.mark_failed("a", 6)
    assert pace.due({}, 12) == []
    assert pace.due({"a": (1,)}, 14) == []
    assert pace.due({"a": (1,)}, 16) == ["a"]


def test_a_file_that_is_put_back_as_it_was_is_not_taken_in_again() -> None:
    pace = Debouncer(EVERY)
    taken(pace, 0, a=1)
    assert taken(pace, 20, a=2) == []
    assert taken(pace, 22, a=1) == []
    assert taken(pace, 30, a=1) == []


STATES = st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(1, 4), max_size=3), max_size=25)


@given(states=STATES, fails=st.sets(st.integers(0, 60)), every=st.floats(0, 20))
def test_the_last_state_is_always_taken_in_and_none_too_often(
    states: list[dict[str, int]], fails: set[int], every: float
) -> None:
    """However files come, change, rest and go, and however often that fails meanwhile."""
    pace, has, tried_at = Debouncer(every), dict[str, int](), dict[str, float]()
    last = states[-1] if states else {}
    rounds = [*states, *[last] * 30]
    for number, state in enumerate(rounds):
        now = number * INTERVAL
        for gone in has.keys() - state.keys():
            del has[gone]
        tried_at = {name: at for name, at in tried_at.items() if name in state}
        for path in pace.due({name: (stamp,) for name, stamp in state.items()}, now):
            assert now - tried_at.get(path, -every) >= every, "too often"
            assert has.get(path) != state[path], "for nothing"
            tried_at[path] = now
            if number in fails and number < len(states):
                pace.mark_failed(path, now)
            else:
                pace.mark_ingested(path, (state[path],), now)
                has[path] = state[path]
    assert has == last
