"""Prompts to coding agents: pasted output, short remarks, and what lasts."""

from __future__ import annotations

import pytest

from omcli.memory.observation import ASKED, Draft, Type
from tests.batches import Talk


def rows(prompt: str) -> tuple[Draft, ...]:
    """The rows of a prompt to an agent that works."""
    observed = Talk().user(prompt).tool("Read", {"file_path": "map.ts"}, "…").observed()
    return tuple(row for row in observed if row.type is not Type.FILE_READ)


PYTEST = """============================= test session starts ==============================
platform linux -- Python 3.12.1, pytest-8.0.0
collected 41 items

tests/test_tides.py ..........F..........                                [ 51%]
tests/test_ports.py ....................                                 [100%]

=================================== FAILURES ===================================
____________________________ test_high_water_rounds ____________________________
>       assert high_water("A") == 4.2
E       assert 4.1 == 4.2

tests/test_tides.py:31: AssertionError
=========================== short test summary info ============================
FAILED tests/test_tides.py::test_high_water_rounds - assert 4.1 == 4.2
========================= 1 failed, 40 passed in 1.22s ========================="""
CARGO = """   Compiling tides v0.1.0 (/home/ada/tides)
error[E0425]: cannot find value `depth` in this scope
  --> src/main.rs:12:9
   |
12 |         depth + 1
   |         ^^^^^ not found in this scope

For more information about this error, try `rustc --explain E0425`.
error: could not compile `tides` (bin "tides") due to previous error"""
NODE = """ada@ketch ~/tides % npm start

> tides@1.0.0 start
> node server.js

node:internal/modules/cjs/loader:1080
  throw err;
  ^

Error: Cannot find module './ports'
Require stack:
- /home/ada/tides/server.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1077:15)
    at Module._load (node:internal/modules/cjs/loader:922:27)"""
VITE = """> boats@1.2.0 build
> vite build

vite v5.1.0 building for production...
✓ 120 modules transformed.
x Build failed in 1.31s
error during build:
src/main.ts (3:9): "harbour" is not exported by "src/ports.ts", imported by "src/main.ts"."""
GO = """--- FAIL: TestHighWaterRounds (0.00s)
    tide_test.go:14: got 4.1, want 4.2
--- FAIL: TestLowWaterRounds (0.00s)
    tide_test.go:22: got 0.3, want 0.2
--- FAIL: TestNeapTideRounds (0.01s)
    tide_test.go:31: got 2.7, want 2.8 for the harbour that the list names last
FAIL
FAIL\tgithub.com/ada/tides\t0.003s"""
JAVA = """Exception in thread "main" java.lang.NullPointerException: harbour
\tat org.tides.Main.run(Main.java:31)
\tat org.tides.Main.main(Main.java:12)
Caused by: java.io.IOException: no such harbour in /srv/tides/harbours.csv
\tat org.tides.Harbours.read(Harbours.java:77)
\t... 2 more"""
DOCKER = """#12 [5/7] RUN npm ci
#12 3.201 npm error code ENOTFOUND
#12 3.203 npm error network request to https://registry.example.org/boats failed, never retried
#12 ERROR: process "/bin/sh -c npm ci" did not complete successfully: exit code: 1"""
MERGE = """Auto-merging src/map.ts
CONFLICT (content): Merge conflict in src/map.ts
error: could not apply 1a2b3c4... Round the tides
hint: Resolve all conflicts manually, mark them as resolved with
hint: "git add/rm <conflicted_files>", then run "git rebase --continue"."""
JSON = """{
  "boats": [
    {"name": "Ida", "class": "Laser", "level": "2", "harbour": "Texel", "made": 1987},
    {"name": "Ole", "class": "420", "level": "1", "harbour": "Vlieland", "made": 2004}
  ],
  "next": null, "prev": null, "total": 2, "page": 1, "pages": 1, "order": "name", "by": "ada"
}"""
VITEST = """ RUN  v1.2.0 /home/ada/tides

 ❯ tests/map.test.ts (3)
   × draws a circle

 FAIL  tests/map.test.ts > draws a circle for each harbour of the list
AssertionError: expected 3 to be 4, which must always be the number of harbours
 ❯ tests/map.test.ts:14:22

 Test Files  1 failed (1)
      Tests  1 failed | 2 passed (3)"""

GO_VERBOSE = """=== RUN   TestDrawsTexel
    map_test.go:31: drawing Texel
Drew 3 circles on the map
--- PASS: TestDrawsTexel (0.01s)
=== RUN   TestRounds
    map_test.go:44: Depth before: 4.1
Created harbour file: harbours/texel.json
    map_test.go:51: got 4.1, want 4.2 (the depth should round up)
          - texel.json
--- FAIL: TestRounds (0.02s)
FAIL
exit status 1
FAIL\tgithub.com/ada/tides\t0.31s"""


@pytest.mark.parametrize("output", [PYTEST, CARGO, NODE, VITE, GO, JAVA, DOCKER, MERGE, JSON, VITEST, GO_VERBOSE])
@pytest.mark.parametrize("said", ["This is what I get, please find out why:\n\n{}", "{}\n\nwhat do I have to change?"])
def test_pasted_output_is_one_row_beside_the_sentence(output: str, said: str) -> None:
    """XC4: told from speech by its shape; it asks for nothing and sets no rules."""
    words, pasted = rows(said.format(output))
    assert words.text.startswith("User: This is what I get" if said.startswith("This") else "User: what do I have")
    assert len(words.text) < 80
    assert pasted.text.startswith("User pasted: ")
    assert pasted.type in (Type.FACT, Type.EXCERPT)
    assert len(pasted.text) < 500


IMPORTER = """Refactor the importer:
- src/import.ts:12 reads the file twice, read it once
- src/map.ts:40 loops over all harbours, use the index
- then add a test for each of them in tests/, with at least two harbours in each test"""
HEADINGS = """Two things:

Layout
=======
Move the legend below the map, and the scale to the right of it.

Colours
=======
Use blue for the deep harbours, keep all other colours, and never use red on this map at all."""
NOTES = """Notes of today:
10:00 we agreed to draw the map first, since the school needs it before the summer begins
Please write the list after the map, and the import of the old files last, when there is time left for it."""


BETWEEN = """$ npm test
Tests 1 failed
fix the tests in map.ts
$ npm run build
error: no harbour"""
ORDERS = """error: no harbour is what divers see.
warning: deep water should be orange.
Make both texts friendlier, and keep them as short as they are, so that they fit on the screen of a phone."""
TREE = """Create these files, each with the licence at the top, and a test for each of them:
├── src
│   ├── map.ts
│   └── list.ts
└── tests"""


@pytest.mark.parametrize("prompt", [IMPORTER, HEADINGS, NOTES, ORDERS, TREE])
def test_what_a_person_lists_is_not_pasted(prompt: str) -> None:
    """XC4."""
    assert not any("pasted" in row.text for row in rows(prompt))


def test_an_order_between_two_outputs_is_no_output() -> None:
    """XC4."""
    assert any("fix the tests in map.ts" in row.text for row in rows(BETWEEN) if row.type is Type.REQUEST)


@pytest.mark.parametrize(
    "first",
    [
        "[map.ts](src/map.ts) should not read the list of harbours from the file of the boats in any case at all.",
        "[The map](https://example.org/map) is drawn twice since yesterday, whenever somebody opens the list of boats.",
    ],
)
def test_a_sentence_that_begins_with_a_link_is_said(first: str) -> None:
    """XC4: in a prompt of several sentences."""
    rest = "It keeps a list of its own, which it reads when it starts. Every harbour that it draws comes from there."
    assert rows(f"{first} {rest} {rest.replace('harbour', 'boat')}")[0].text.startswith(f"User: {first[:60]}")


FRAME = """# Harbour office

You are **Bosun**, an agent that the harbour office started. The logbook is in the folder `log`, a page for each day.

## Rules of the office

- Write all depths in metres, with one decimal place
- Begin each answer with a summary of one sentence, which is shown in the logbook
- Should a harbour be unknown, what is its number? Look it up in `harbours.csv`

## {heading}

{request}
"""
BELOW = "\n## Answer\n\nAnswer in one paragraph. Add the number of the page."
PAGE = "Do the tasks of this page:\n\n/home/ada/Log Book/TIDES-02.md\n\nTick them off on the page."


@pytest.mark.parametrize(
    ("heading", "request_"),
    [
        ("Task", "Redraw the map of Texel with the new depths."),
        ("User request", "Redraw the map of Texel."),
        ("My request for Bosun:", "redraw the map"),
        ("The user's question", "How deep is the harbour of Texel at low water?"),
        ("Current tasks", "- Redraw the map\n- Print it in colour"),
        ("Tasks", PAGE),
    ],
)
@pytest.mark.parametrize("below", ["", BELOW])
def test_of_a_prompt_with_a_frame_only_the_request_is_asked(heading: str, request_: str, below: str) -> None:
    """XC2: programs put instructions around what a person asks for."""
    said = rows(FRAME.format(heading=heading, request=request_) + below)
    asked = [row.text for row in said if row.type in ASKED]
    assert asked == [f"User: {' '.join(request_.split())}"] == [said[0].text]
    assert any("one decimal place" in row.text for row in said[1:])


@pytest.mark.parametrize(
    ("begins", "heading", "request_"),
    [
        ("Implement the following plan:", "Tasks", "- Redraw the map\n- Print it in colour"),
        ("Please write a map for the office:", "Question", "Which colours should it have?"),
        ("", "Tasks", "- Redraw the map of each harbour that is in the list\n" * 5),
        ("", "Thanks", "Redraw the map."),
    ],
)
def test_a_plan_is_no_frame(begins: str, heading: str, request_: str) -> None:
    """XC2: nor is a prompt whose tasks are long."""
    said = rows(f"{begins}\n\n{FRAME.format(heading=heading, request=request_)}")
    assert said[0].text.startswith("User: " + " ".join(f"{begins} Harbour office".split()))


@pytest.mark.parametrize(
    "place",
    ["/home/ada/tides.md", "~/Log Book/TIDES-02.md", "./tides", r"C:\ada\tides.md", "https://example.org/t?a=1"],
)
def test_a_place_below_an_introduction_is_said(place: str) -> None:
    """XC4: unlike a text."""
    said = rows(f"Summarize the following document:\n\n{place}\n\nThen print the map of Texel")
    assert [row.text for row in said] == [
        f"User: Summarize the following document: {place} Then print the map of Texel"
    ]


def test_a_heading_without_its_text_stands_above_no_other_text() -> None:
    """XC4: in a prompt of which only the most telling sentences are kept."""
    told = "The old map told the depth of each harbour in feet, and its colours came from the printed map of the school"
    items = "".join(
        f"- `deep_{number}.css` and `low_{number}.css` show harbour {number} in blue\n" for number in range(40)
    )
    said = [row.text for row in rows(f"Draw it anew.\n\n## History\n\n{told}.\n\n## Colours\n\n{items}")]
    assert any("`deep_3.css`" in text for text in said)
    assert not any("History: `deep" in text or "History: Colours" in text for text in said)


def test_rulers_without_words_are_no_row() -> None:
    """XC4: the frame of a terminal program."""
    frame = "─" * 90
    assert [row.text for row in rows(f"I only see this, why?\n{frame}\n{frame}")] == ["User: I only see this, why?"]


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ("stop", Type.EVENT),
        ("wait, hold on", Type.EVENT),
        ("no, stop it please", Type.EVENT),
        ("hang on a minute", Type.EVENT),
        ("Stop, that's the wrong branch", Type.CORRECTION),
        ("No guidance on names was given, so pick one", Type.REQUEST),
        ("CI is red, fix it", Type.REQUEST),
        ("Our CI is red; fix it", Type.REQUEST),
        ("my map is empty - check the importer", Type.REQUEST),
        ("Our map is empty, the list is full", Type.FACT),
        ("no, use the other branch", Type.CORRECTION),
        ("Decision: use SQLite", Type.DECISION),
        ("Entscheidung: SQLite für alle Boote", Type.DECISION),
        ("Nous allons utiliser Postgres", Type.DECISION),
        ("Rule: no force pushes to main", Type.INSTRUCTION),
        ("Note: the port is 8443", Type.FACT),
        ("perhaps we should drop the map", Type.PLAN),
        ("I was thinking of a second map", Type.PLAN),
        ("Review the harbours and decide, should we draw them (if not should I sort them)", Type.REQUEST),
        ("find the boats without a harbour, maybe I may delete them", Type.REQUEST),
        ("I wonder if there's a way to draw the map only once", Type.QUESTION),
        ("wondering whether the legend is still needed", Type.QUESTION),
        ("also wondering: how do the others read the list", Type.QUESTION),
        ("I'm wondering why Texel is drawn twice", Type.QUESTION),
        (
            'why does the log say "the map says: no harbour" when I start it, and where does it come from?',
            Type.QUESTION,
        ),
        ("great, but the legend is gone", Type.REQUEST),
        ("ok, it works now but the names are off", Type.REQUEST),
        ("also we have a lot of old maps are any of them still needed", Type.QUESTION),
    ],
)
def test_a_short_prompt_has_the_type_of_what_it_says(prompt: str, kind: Type) -> None:
    """XC9: a mere "stop" decides and corrects nothing."""
    assert [(row.type, row.text) for row in rows(prompt)] == [(kind, f"User: {prompt}")]


@pytest.mark.parametrize(
    "prompt",
    ["thanks!", "ty", "great, thanks", "thank you so much, that works great", "hm", "hmm...", "ok hm", "nvm", "/clera",
     "I see", "oh I see, got it", "interesting", "nice work", "good", "perfect, that fixed it", "cool",
     "merci beaucoup", "That’s all for today", "great, that's all I needed!", "ok, that was everything.",
     "whoops!", "oops", "uh oh...", "yay"],
)  # fmt: skip
def test_thanks_and_mistyped_commands_are_no_row(prompt: str) -> None:
    """XC9."""
    assert not rows(prompt)


TWO = "Which port should the map use? And shall I draw the legend?"
LIST = (
    "I can do one of these:\n\n1. **Circles**: removed the lines\n2. **Dots** with `dots.ts`\n\nWhich one do you want?"
)


@pytest.mark.parametrize(
    ("asked", "reply", "answered"),
    [
        (TWO, "8443", "And shall I draw the legend?"),
        (TWO, "port 8443", "Which port should the map use?"),
        ("1. Which port?\n2. Which host?", "1. 8443 2. localhost", "Which port? Which host?"),
        ("Which colour for the deep harbours?", "blue", "Which colour for the deep harbours?"),
        ("Shall I also add a legend?", "commit and push", ""),
        ("Shall I also add a legend?", "run the tests first", ""),
        ("Shall I also add a legend?", "add the legend on the left", "Shall I also add a legend?"),
        ("The map is drawn.", "blue", ""),
        ("Shall I go on?", "stop", "Shall I go on?"),
        ("Which of them comes first?", "what is the difference?", ""),
        (LIST, "2", "Which one do you want?"),
    ],
)
def test_a_short_answer_names_the_question_that_it_answers(asked: str, reply: str, answered: str) -> None:
    """XC9: not one that it has nothing to do with."""
    said = [row.text for row in Talk().agent(asked).user(reply).observed() if row.text.startswith("User")]
    assert said == [f"User: {reply} (answering: {answered})" if answered else f"User: {reply}"]


@pytest.mark.parametrize(
    "report",
    [
        "Option A: removed the lock and kept the list.\nOption B: added a table for `boats`.",
        LIST,
        "Two ways:\n\n- moved the list to `boats.ts`\n- replaced the list by a table\n\nWhat do you prefer?",
        "## Ways\n\n**A. List**\n- Removed the lock\n- Added `list.ts`\n\nWhich should I take?",
    ],
)
def test_an_option_is_no_result(report: str) -> None:
    """XC9: one that was not taken least of all."""
    talk = (
        Talk().user("Store the boats").tool("Edit", {"file_path": "map.ts", "old_string": "a", "new_string": "b"}, "")
    )
    assert not any(row.type is Type.OUTCOME for row in talk.agent(report).observed())
