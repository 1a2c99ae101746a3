"""Excerpts: of what was read and written, the lines that name what the work comes back to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.observation import Draft, Priority, Type
from omcli.text.clean import one_line
from tests.batches import Talk

SOURCE = """\
     1→import os
     2→
     3→def load_station(path):
     4→    return parse_table(os.path.join(path, "stations.json"))
     5→
     6→def unrelated_thing(value):
     7→    return value + 1
"""


def excerpts(talk: Talk) -> list[Draft]:
    return [row for row in talk.observed() if row.type is Type.EXCERPT]


def asked(about: str) -> Talk:
    return Talk().user(about)


def test_a_line_with_recurring_names_is_kept() -> None:
    """S4.4, S4.6: what was read matters by what is done with it later."""
    talk = asked("Why does load_station fail on Windows?").tool("Read", {"file_path": "/src/app/tides.py"}, SOURCE)
    (row,) = excerpts(talk.agent("load_station joins the path twice."))
    assert row.text.startswith("In tides.py: def load_station(path):")
    assert (row.importance, row.sources) == (4, (2, 3))


def test_a_name_alone_says_nothing() -> None:
    """An entry of a list of exports or of arguments; what calls it does."""
    fields = "    load_station,\n    'load_station',\nkept = load_station(path)\n"
    talk = asked("Why does load_station fail?").tool("Read", {"file_path": "/src/app/tides.py"}, fields)
    (row,) = excerpts(talk.agent("load_station joins the path twice."))
    assert row.text == "In tides.py: kept = load_station(path)"


def test_a_line_that_says_something_about_a_name_goes_before_one_that_only_has_it() -> None:
    """XG4: a reader who finds a bare call again learns nothing from it."""
    calls = "\n".join(f"x{number} = load_station(a{number})" for number in range(30))
    comment = "# load_station keeps the tables of the last station open"
    output = f"{calls}\n{comment}\n"
    talk = asked("Why is load_station slow?").tool("Read", {"file_path": "/src/app/tides.py"}, output)
    (row,) = excerpts(talk.agent("load_station keeps files open."))
    assert row.text == f"In tides.py: {comment}"


def test_what_was_only_read_has_the_lowest_priority() -> None:
    """S0.26, XG4: what is read last is often named next, so it stays in the log, but most else comes first."""
    (row,) = excerpts(asked("Look around.").tool("Read", {"file_path": "/src/app/tides.py"}, SOURCE))
    assert (row.importance, row.priority) == (4, Priority.LOW)
    assert "def load_station(path):" in row.text


def test_a_text_without_identifiers_gives_no_excerpt() -> None:
    """S0.26: search and read noise stays folded."""
    prose = "The tide comes in twice a day.\nNobody knows why it is late today.\n"
    assert excerpts(asked("Look around.").tool("Read", {"file_path": "/notes.txt"}, prose)) == []


def test_many_new_lines_stand_in_rows_of_their_own() -> None:
    """XG6: names of what was just written, with the line that says what each is for; important ones in the row."""
    new = "\n".join(f"def load_station_{number}(path, retry_count):  # station {number}" for number in range(30))
    talk = asked("Add loaders.").tool("Write", {"file_path": "/src/app/tides.py", "content": new}, "ok")
    (created,) = [row for row in talk.observed() if row.type is Type.FILE_CREATED]
    rows = excerpts(talk)
    assert all(row.text.startswith("In tides.py: def load_station_") for row in rows)
    assert {row.importance for row in rows} == {5}, "more than what was only read"
    quoted = [line for row in rows for line in row.text.removeprefix("In tides.py: ").split(" · ")]
    assert len(quoted) + 4 == 12
    assert not [line for line in quoted if line in created.text], "told once"


def test_new_lines_of_an_edit_stand_with_what_was_changed() -> None:
    """S4.3, T27."""
    old, new = (
        "def load_station(path):\n",
        "def load_station(path, retry_count=3):\n    for attempt in range(retry_count):\n",
    )
    talk = asked("load_station should try again; use a retry_count.")
    talk.tool("Edit", {"file_path": "/src/app/tides.py", "old_string": old, "new_string": new}, "ok")
    (row,) = [row for row in talk.observed() if row.type is Type.FILE_MODIFIED]
    assert row.text.startswith("Modified tides.py: ")
    assert "def load_station(path, retry_count=3):" in row.text
    assert excerpts(talk) == [], "told once"


def test_lines_seen_twice_in_a_turn_are_quoted_from_the_later_output() -> None:
    talk = asked("What calls load_station?").tool("Read", {"file_path": "/src/app/tides.py"}, SOURCE)
    talk.tool("Bash", {"command": "cat tides.py"}, SOURCE).agent("Only load_station itself.")
    (row,) = excerpts(talk)
    assert row.text.removeprefix("In tides.py: ").split(" · ") == [
        "def load_station(path):",
        'return parse_table(os.path.join(path, "stations.json"))',
        "def unrelated_thing(value):",
    ]


@pytest.mark.parametrize(
    ("command", "places"),
    [
        (
            "cat lib/harbours/of/the/northern/islands/tides.py",
            ["lib/harbours/of/the/northern/islands/tides.py", "tides.py", "tides.py"],
        ),
        ("nl -ba lib/tides.py | sed -n '30,90p'", ["lib/tides.py"] * 3),
        ("sed -n '1,260p' lib/tides.py", ["lib/tides.py"] * 3),
        ("head -n 300 tides.py", ["tides.py"] * 3),
        ("tail -300 /src/app/lib/tides.py", ["lib/tides.py"] * 3),
        ("cat tides.py ports.py", ["`cat tides.py ports.py`"] * 3),
        ("git show HEAD:tides.py", ["`git show HEAD:tides.py`"] * 3),
        ("cat tides.py | grep def", ["`cat tides.py | grep def`"] * 3),
    ],
)
def test_excerpts_of_a_command_that_shows_a_file_are_of_the_file(command: str, places: list[str]) -> None:
    """XC4: the folder of a long path stands in the first one."""
    names = [f"load_station_{number}" for number in range(200)]
    output = "\n".join(f"def {name}(path, table, options):" for name in names)
    talk = asked(f"Rename all of {' '.join(names)}.").tool("Bash", {"command": command}, output)
    rows = excerpts(talk.agent(f"Renamed {' '.join(names)}."))
    assert [row.text.partition(": ")[0] for row in rows] == [f"In {place}" for place in places]


def test_a_few_lines_are_quoted_however_much_was_read() -> None:
    """XG4: in short rows, of which a pack takes what it has room for."""
    names = [f"load_station_{number}" for number in range(200)]
    output = "\n".join(f"def {name}(path, table, options):" for name in names)
    talk = asked(f"Rename all of {' '.join(names)}.").tool("Read", {"file_path": "/src/app/tides.py"}, output)
    rows = excerpts(talk.agent(f"Renamed {' '.join(names)}."))
    assert [row.text.count(" · ") for row in rows] == [3] * 3
    assert len({line for row in rows for line in row.text.removeprefix("In tides.py: ").split(" · ")}) == 12


@given(
    lines=st.lists(
        st.sampled_from(["def load_station(path):", "x = load_station(1)", "retry_count = 3", "", "ünïcode_näme"])
    )
)
def test_every_part_of_an_excerpt_is_a_line_of_its_source(lines: list[str]) -> None:
    """O7, O8: nothing is worded anew."""
    talk = asked("See load_station and retry_count.").tool("Read", {"file_path": "/src/app/tides.py"}, "\n".join(lines))
    for row in excerpts(talk):
        shown = row.text.removeprefix("In tides.py: ").split(" · ")
        assert set(shown) <= {one_line(line) for line in lines}
        assert len(shown) == len(set(shown)) <= 4
