"""Worth: which rows of a session say the most that no other chosen row says."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.observation import PINNED, Kind, Observation, Priority, Status, Type
from omcli.pack.salience import by_salience
from omcli.text.terms import capital_terms, folded, terms_of
from tests.strategies import observations, texts
from tests.unit.pack.test_cross_session import ROW

ORDER = """
from random import Random
from omcli.pack.salience import by_salience
from tests.material import row
random = Random(1)
words = "berth crane tide gate pilot ledger queue parser schedule buoy manifest ferry lock beacon cargo".split()
print(list(by_salience([row(at, text=" ".join(random.choices(words, k=20))) for at in range(300)])))
"""
"""Prints an order in which nearly equal sums decide."""


def row(text: str, importance: int = 5, **columns: object) -> Observation:
    """A row of a session, as long as its words are many."""
    plain = replace(
        ROW, text=text, importance=importance, priority=Priority.of_importance(importance), tokens=len(text.split())
    )
    return replace(plain, **columns)  # type: ignore[arg-type]


def ranked(*rows: Observation) -> list[str]:
    """The texts of rows, best first."""
    return [rows[place].text for place in by_salience(rows)]


@given(rows=st.lists(observations(), max_size=12))
def test_every_row_is_named_once_and_always_in_the_same_order(rows: list[Observation]) -> None:
    order = list(by_salience(rows))
    assert sorted(order) == list(range(len(rows)))
    assert order == list(by_salience(rows))


@given(rows=st.lists(observations(), max_size=12), count=st.integers(0, 12))
def test_the_order_is_computed_only_as_far_as_it_is_asked_for(rows: list[Observation], count: int) -> None:
    assert list(islice(by_salience(rows), count)) == list(by_salience(rows))[:count]


def test_pinned_rows_come_first_whatever_they_say() -> None:
    """T61."""
    assert ranked(row("the parser moved to src/parse.py", 9), row("hello", 1, tags=(PINNED,)))[0] == "hello"


def test_importance_counts_more_than_length() -> None:
    rule, chat = row("Always run make lint before a push", 9), row("the meadow behind Kilburn floods in spring", 5)
    assert ranked(chat, rule)[0] == rule.text


@pytest.mark.parametrize(("lasting", "importance"), [(Type.INSTRUCTION, 9), (Type.PREFERENCE, 8)])
def test_what_the_user_always_wants_comes_before_a_fact_of_the_same_importance(lasting: Type, importance: int) -> None:
    """XG11: also if the fact names a little more."""
    wish = row("Give lengths in millimetres", importance, type=lasting)
    fact = row("oak board warped", importance, type=Type.FACT)
    assert ranked(fact, replace(wish, type=Type.FACT))[0] == fact.text
    assert ranked(fact, wish)[0] == wish.text


def test_a_row_that_repeats_what_was_said_gives_way_to_one_that_says_something_else() -> None:
    """The third row names nothing that the two before it have not named."""
    first = row("Modified src/tide.py: adds read_station and StationError", 7)
    again = row("Modified src/tide.py: read_station and its StationError once more", 7)
    other = row("Modified docs/usage.md: the flag --station", 7)
    assert ranked(first, again, other) == [first.text, other.text, again.text]


def test_a_name_that_the_session_comes_back_to_is_worth_more_than_one_named_once() -> None:
    """What is used later is what the work is about."""
    once, often = row("looked at src/once.py"), row("looked at src/often.py")
    later = [row(f"changed src/often.py in step {step}", 3) for step in "abcd"]
    others = [row(f"went to town_{number}", 3) for number in range(40)]
    order = ranked(once, often, *later, *others)
    assert order.index(often.text) < order.index(once.text)


def test_courtesies_are_worth_less_than_facts() -> None:
    kind, telling = (
        row("What a lovely day, thanks so much for sharing that"),
        row("the allotment at Fernhill costs 40 pounds yearly now"),
    )
    assert ranked(kind, telling)[0] == telling.text


def test_work_matters_less_the_more_has_been_done_since_but_a_decision_does_not() -> None:
    """S4.10: by priority and recency."""
    done = [row(f"Ran: make target_{number}", 5, type=Type.COMMAND_RUN, status=Status.DONE) for number in range(9)]
    assert ranked(*done)[0] == done[-1].text
    decided = [row(f"Agent: We use library_{number}", 5, type=Type.DECISION) for number in range(9)]
    assert ranked(*decided)[0] == decided[-1].text, "of equals the newest"
    older = [row("Agent: We use library_0 and nothing_else", 5, type=Type.DECISION), *decided[1:]]
    assert ranked(*older)[0] == older[0].text, "one that says more is not too old"


@pytest.mark.parametrize(
    ("speaker", "kind", "first"),
    [
        ("User", Type.FACT, True),
        ("User", Type.QUESTION, True),
        ("Agent", Type.FACT, False),
        ("User", Type.FILE_READ, False),
    ],
)
def test_what_people_say_at_the_beginning_sets_the_scene(speaker: str, kind: Type, *, first: bool) -> None:
    """XC11: who they are and what the matter is. It fades within a fifth of the session."""
    told = [row(f"{speaker}: wharf {at} has {at + 700} bricks", type=kind) for at in range(60)]
    told[1] = row(f"{speaker}: Ines runs seven bakeries", type=kind)
    told[30] = row(f"{speaker}: Olaf owns eleven orchards", type=kind)
    order = ranked(*told)
    assert (order.index(told[1].text) < order.index(told[30].text)) is first


def test_an_open_matter_stays_as_fresh_as_on_the_first_day() -> None:
    """S4.16: what is not settled yet goes before what is."""
    blocked = row("blocked by the missing token for the registry", 5, type=Type.BLOCKER, status=Status.OPEN)
    solved = replace(blocked, text="blocked by the missing licence for the compiler", status=Status.RESOLVED)
    filler = [row(f"Ran: make thing_{number}", 3, type=Type.COMMAND_RUN) for number in range(6)]
    assert ranked(solved, blocked, *filler)[0] == blocked.text


def test_an_error_stands_with_the_request_of_its_message() -> None:
    """It was written at the same instant. A pack reads no sources."""
    asked = row("rebuild the harbour index", 5, type=Type.REQUEST, status=Status.OPEN)
    pasted = row("User pasted: error: no such index", 1, type=Type.FACT)
    told = row("the deploy key lives in the vault", 9, type=Type.DECISION)
    assert ranked(pasted, told, asked)[:2] == [asked.text, pasted.text]
    earlier = replace(pasted, event_at="2020-01-01T00:00:00.000Z")
    assert ranked(earlier, told, asked)[:2] == [asked.text, told.text]


def test_a_row_written_by_hand_goes_before_an_equal_one_that_was_observed() -> None:
    """T61: a note counts double."""
    observed, noted = row("the deploy key lives in the vault"), row("the build cache lives on the disk", kind=Kind.NOTE)
    assert ranked(observed, noted)[0] == noted.text


def test_importance_ranks_and_priority_only_marks() -> None:
    """XB4: an edit is printed as an ordinary row, and is chosen before what was only read."""
    edit, read = row("Modified src/tides.py", 7, priority=Priority.MEDIUM), row("Read src/moon.py", 5)
    assert ranked(read, edit)[0] == edit.text


def test_a_problem_that_is_resolved_counts_no_more_than_what_was_done() -> None:
    """XB4: what is broken now matters; what was broken is a part of the story."""
    broken = row("Ran: make tides → exit 2", 8, type=Type.COMMAND_ERROR)
    done = row("Ran: make moon → exit 0", 6, type=Type.COMMAND_RUN)
    assert ranked(replace(broken, status=Status.OPEN), done)[0] == broken.text
    assert ranked(replace(broken, status=Status.RESOLVED), done)[0] == done.text


def test_terms_are_names_and_words_without_function_words() -> None:
    text = "I moved parse_date to src/dates.py for Marta, tests are passing in 3.2 s"
    assert terms_of([text]) == [{"mov", "parse_date", "src/dates.py", "marta", "test", "pass", "3.2"}]


def test_a_capital_is_a_name_inside_a_sentence_only() -> None:
    """Texts do not flow into each other, and a sentence may begin in quotation marks."""
    texts = ["Tests of Marta. Then Ola", "The end", " At last: Peter", 'she said: "Then', "I and The", "so The Hague"]
    assert capital_terms(texts) == {"marta", "ola", "hague"}


def test_a_script_without_spaces_gives_pairs_of_characters() -> None:
    assert terms_of(["数据库迁移", "用"]) == [{"数据", "据库", "库迁", "迁移"}, {"用"}]


@given(written=st.lists(texts, max_size=5))
def test_what_a_text_is_about_does_not_depend_on_the_texts_beside_it(written: list[str]) -> None:
    assert terms_of(written) == [terms_of([text])[0] for text in written]
    assert capital_terms(written) == frozenset().union(*(capital_terms([text]) for text in written))
    assert all(capital_terms([text]) <= terms_of([text])[0] for text in written)


def test_the_order_is_the_same_in_every_process() -> None:
    """Python orders sets of texts anew in every process; sums over them must not show it."""
    orders = {
        subprocess.run(
            [sys.executable, "-c", ORDER],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "123"
    }
    assert len(orders) == 1


def test_endings_are_folded_but_short_words_stay_whole() -> None:
    assert {folded(word) for word in ("test", "tests", "tested", "testing")} == {"test"}
    assert folded("bus") == "bus"


def test_what_a_file_that_is_read_repeats_makes_no_name_weigh_more() -> None:
    """XG4: excerpts of outputs are ranked by how often rows about the work use a name."""
    said = [
        row("load_station reads"),
        row("save_table writes"),
        *(row(f"pier {number} stands") for number in range(40)),
    ]
    quoted = [row(f"quoted {number}: load_station", 1, type=Type.EXCERPT) for number in range(5)]

    def order(*rows: Observation) -> list[str]:
        return [text for text in ranked(*said, *rows) if text in ("load_station reads", "save_table writes")]

    assert order(*quoted) == order() == ["save_table writes", "load_station reads"]
    assert order(*(replace(each, type=Type.EVENT) for each in quoted)) == order()[::-1]
