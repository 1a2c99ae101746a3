"""What the working-memory block and a small pack say about the work at hand."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.conftest import Om
from tests.e2e.transcripts import PROJECT, Talk

COMMITTED = "[main 1a2b3c4] Round the tides\n 1 file changed, 2 insertions(+)"


PLAN = """Implement the following plan:

# A map of Zeeland

## Data

- Load the harbours from `harbours.csv`, all of them, with depth and position

## Drawing

- Draw each harbour as a circle that grows with its depth
- Please keep the colours as they are now, and the legend below the map
"""


def edit(talk: Talk) -> Talk:
    arguments = {"file_path": f"{PROJECT}/tides.ts", "old_string": "4", "new_string": f"4.{len(talk.lines)}"}
    return talk.call("Edit", arguments).result("ok")


def run(talk: Talk, command: str, output: str = "") -> Talk:
    return talk.call("Bash", {"command": command}).result(output)


def command(name: str, arguments: str) -> str:
    """A slash command as it is stored."""
    return f"<command-name>{name}</command-name>\n<command-args>{arguments}</command-args>"


def fixed() -> Talk:
    """A session in which a first request is done."""
    return edit(Talk().user("Fix the rounding of the tides")).assistant("Fixed the rounding in tides.ts; tests pass.")


def long_session() -> Talk:
    talk = fixed()
    for number in range(40):
        talk.user(
            f"Always keep harbour {number} in `harbours/{number}.ts`, never in `tides.ts`, since release {number}.2"
        )
        edit(talk).assistant(f"Changed `tides.ts` so that harbour {number} of `Zeeland` is read from the file.")
    return talk


def very_long_session() -> Talk:
    """A rule, and more changes of files than a block is made from."""
    talk = Talk().user("Always keep the harbours of Zeeland in `harbours.csv`, never in `tides.ts`")
    for number in range(1_300):
        arguments = {"file_path": f"{PROJECT}/{number}.ts", "old_string": "4", "new_string": f"4.{number}"}
        talk.call("Edit", arguments).result("ok")
    return talk.user("Fix the rounding of the tides")


def task(om: Om, talk: Talk) -> list[str]:
    om("observe", "-q", stdin=talk.text())
    printed = om("context", "-q", "--working-memory").stdout
    return printed.partition("### Current Task\n")[2].partition("\n\n")[0].splitlines()


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda talk: run(talk.user("commit"), "git commit -am x", COMMITTED).assistant("Committed."), "commit"),
        (lambda talk: run(talk.user("commit it"), "git commit -am x", COMMITTED).assistant("It is `1a2b3c4`."),
            "commit"),
        (lambda talk: run(talk.user("ok, push it"), "git push", "a..b main -> main"), "push it"),
        (lambda talk: run(talk.user("push"), "git push", "a..b main -> main").user("thanks!"), "push"),
        (lambda talk: run(talk.user("open a PR"), "gh pr create --fill", "https://github.com/ada/x/pull/2")
            .assistant("https://github.com/ada/x/pull/2 is open."), "open a PR"),
        (lambda talk: edit(talk.user("CI is red, fix it")).assistant("An import was unused. CI is green again."),
            "CI is red"),
        (lambda talk: edit(talk.user("Show it in feet")).assistant("It is in feet now."), "Show it in feet"),
        (lambda talk: edit(talk.user("Zeige Meter an")).assistant("Jetzt sind es Meter."), "Zeige Meter an"),
        (lambda talk: edit(talk.user("Sort the list"))
            .assistant("Done. The sort had failed for empty lists. What's next?"),
            "Sort the list"),
        (lambda talk: talk.user("Review tides.ts").call("Read", {"file_path": f"{PROJECT}/tides.ts"}).result("x")
            .assistant("It reads one file. The name is long. There is no check of the unit."), "Review tides.ts"),
        (lambda talk: run(talk.user("Which port does it use?"), "grep -rn port .", "8443").assistant("It uses 8443."),
            "Which port"),
        (lambda talk: run(talk.user("I wonder about the port. Is it fixed?"), "grep port .", "").assistant("It is."),
            "Is it fixed?"),
        (lambda talk: run(talk.user("please find out when the tide is high"), "grep high .", "").assistant("At 4."),
            "find out"),
        (lambda talk: run(talk.user("Look into the slow map"), "ls", "").assistant("It reads the list twice."),
            "slow map"),
        (lambda talk: edit(talk.user("Mend the tests")).assistant("Updated the failing tests. They all pass now."),
            "Mend the tests"),
        (lambda talk: edit(talk.user("no, round to 5 cm")).assistant("Changed the step to 5 cm in tides.ts."),
            "no, round to 5 cm"),
        (lambda talk: edit(talk.user("perhaps we should drop the map…").assistant("Perhaps.").user("Add Texel"))
            .assistant("Added Texel to tides.ts."), "Add Texel"),
    ],
)  # fmt: skip
def test_work_that_is_done_is_told_as_done(om: Om, work: Callable[[Talk], Talk], words: str) -> None:
    """XC2: with nothing open, the block says what was done last."""
    first = task(om, work(fixed()))[0]
    assert first.startswith("- Last done: ")
    assert words in first


@pytest.mark.parametrize(
    ("work", "begins"),
    [
        (lambda talk: talk.user("Add a flag --feet"), ["User: Add a flag --feet"]),
        (lambda talk: edit(talk.user("Add a flag --feet")).assistant("Now let me run the tests."),
            ["User: Add a flag"]),
        (lambda talk: run(edit(talk.user("push it")), "git status", "1 file changed"), ["User: push it"]),
        (lambda talk: edit(talk.user("no wait, the map shows the wrong harbour")),
            ["User: no wait, the map", "User: Fix the rounding"]),
        (lambda talk: edit(talk.user("the map shows Texel twice since yesterday")),
            ["User: the map shows Texel twice"]),
        (lambda talk: run(talk.user("is the map still needed?"), "grep -rn map .", "map.ts"), ["User: is the map"]),
        (lambda talk: edit(talk.user("Split the map"))
            .assistant("It is half done; `draw` is still missing.").user("continue"),
            ["User: Split the map"]),
        (lambda talk: edit(talk.user("Split the map")).assistant("Shall I rename it as well?").user("yes"),
            ['User agreed ("yes") to: Shall I rename it']),
        (lambda talk: run(talk.user("Review it").assistant("Shall I rename `map`?").user("yes"), "ls", "map.ts"),
            ['User agreed ("yes") to: Shall I rename `map`?']),
        (lambda talk: talk.user("Split the map").assistant("Now I split it.").user("no, split the legend"),
            ["User: no, split the legend"]),
        (lambda talk: run(talk.user("Why is it slow, and where?"), "grep -rn map .", "map.ts"),
            ["User: Why is it slow, and where?"]),
        (lambda talk: run(talk.user("Look at the map and fix it"), "ls", "").assistant("It reads the list twice."),
            ["User: Look at the map and fix it"]),
        (lambda talk: run(talk.user("Explain the map"), "ls", "map").assistant("Let me look at the list first."),
            ["User: Explain the map"]),
        (lambda talk: run(talk.user("=== RUN TestMap\n  map.ts:3: depth: 4\nerror: no map\nexit status 1"
            "\nerror: no list of the harbours was found in the folder of the map, which has none\nhint: make one"
            "\nerror: two of the harbours have no depth, and three of them have no name and no position on the map"),
            "ls", "map"), ["User pasted: "]),
        (lambda talk: talk.user("Log every error of the map"), ["User: Log every error of the map"]),
        (lambda talk: talk.user(PLAN),
            ["User: Implement the following plan: A map of Zeeland"]),
    ],
)  # fmt: skip
def test_what_was_asked_last_is_the_task_until_it_is_done(
    om: Om, work: Callable[[Talk], Talk], begins: list[str]
) -> None:
    """XC2: whatever the type of the prompt."""
    lines = task(om, work(fixed()))
    assert [line[: len(begin) + 2] for line, begin in zip(lines, begins, strict=False)] == [f"- {b}" for b in begins]


REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). To tell you how to proceed, the user said:\n"
)
FAILED = "".join(
    f"error: harbour {number} of Zeeland has no depth\n  --> src/map.rs:{number}:9\n" for number in range(9)
)


@pytest.mark.parametrize(
    ("work", "begins"),
    [
        (lambda talk: edit(talk.user("no, keep the legend, it is right as it was. What the map needs is a scale below "
            "the harbours, which starts at the left border and ends where the list of the boats begins, as on the old "
            "map of Zeeland that the school has, with a mark for each kilometre")),
            ["User: no, keep the legend, it is right", "User: What the map needs is a scale"]),
        (lambda talk: edit(talk.user("Two of the harbours have no depth, and three have no name in the list. They are "
            "drawn as circles without a number, which looks wrong on the printed map. I think this is good feedback, "
            "the office gave us the list and can mend it. I don't think the map should hide them. Any other ideas?")),
            ["User: Two of the harbours have no depth", "User: I think this is good", "User: Any other ideas?"]),
        (lambda talk: edit(talk.user("Draw it")).assistant("The list is gone. Shall I mend this?")
            .user("oh no! yeah let's put the old list of harbours back..."),
            ["User: oh no! (answering: Shall I mend this?)", "User: yeah let's put the old list of harbours back"]),
        (lambda talk: edit(talk.user("Draw the legend of Zeeland in blue").assistant("It is drawn in blue now."))
            .user("actually draw the legend below the map, and keep its colour")
            .assistant("I will read `legend.ts` first.").call("Read", {"file_path": f"{PROJECT}/legend.ts"}).result("x")
            .assistant("The colours are in a list of their own."),
            ["User: actually draw the legend below the map"]),
        (lambda talk: edit(talk.user("Draw it")).assistant("Would you like me to draw the scale, too? I suggest:\n\n"
            "- a line of 1 km\n- a mark for each 100 m\n\nBoth are small.").user("yes"),
            ['User agreed ("yes") to: Would you like me to draw the scale, too?']),
        (lambda talk: edit(talk.user("Draw it")).assistant("It is drawn.").user(command("/plugin", "add tides"))
            .user(command("/model", "large")).user("Print `map.ts` now"), ["User: Print `map.ts` now"]),
        (lambda talk: talk.user(command("/review", "the last 3 commits of `map.ts`")),
            ["User ran: /review the last 3 commits"]),
        (lambda talk: edit(talk.user("I wonder if we can show the depth of each harbour")),
            ["User: I wonder if we can show the depth"]),
        (lambda talk: edit(talk.user("Draw the legend of Zeeland in blue")).call("Bash", {"command": "make"})
            .result(f"{REFUSED}not now, first print the old map", is_error=True),
            ["User refused Bash: not now, first print", "User: Draw the legend of Zeeland"]),
        (lambda talk: edit(talk.user("Shorten tides.ts"))
            .assistant("I would move the table of `Texel` to `texel.ts`. Want me to do this?").user("yes please"),
            ['User agreed ("yes please") to: Want me', "Last done: User: Shorten tides.ts",
             "Agent: I would move the table of `Texel`"]),
        (lambda talk: edit(talk.user("Sort `harbours.csv` by depth")).assistant("Sorted `harbours.csv` by depth.")
            .user("commit and go on"),
            ["User: commit and go on", "Last done: User: Sort `harbours.csv`", "Agent: Sorted `harbours.csv`"]),
        (lambda talk: edit(talk.user("Why is Texel drawn twice on the map of Zeeland?"))
            .assistant("It is in both lists, `north.csv` and `south.csv`. Which of them is right?").user("north"),
            ["User: north (answering: Which of them"]),
        (lambda talk: edit(talk.user(f"This is what I get now, please mend it:\n\n{FAILED}")),
            ["User: This is what I get now", "User pasted: error: harbour 0 of Zeeland has no depth"]),
    ],
)  # fmt: skip
def test_what_the_task_is_about_stands_below_what_was_said_last(
    om: Om, work: Callable[[Talk], Talk], begins: list[str]
) -> None:
    """XC2: all of the last message, and what a short answer is about."""
    lines = task(om, work(fixed()))
    assert [line[: len(begin) + 2] for line, begin in zip(lines, begins, strict=False)] == [f"- {b}" for b in begins]


def test_the_end_of_pasted_output_is_kept_because_it_names_what_failed(om: Om) -> None:
    """XC2."""
    logged = "".join(f"    depth_test.go:{number}: depth of harbour {number}: 4.{number}\n" for number in range(10, 30))
    (first, *_) = task(om, run(fixed().user(f"--- FAIL: TestDepthOfTexel (0.2s)\n{logged}FAIL"), "ls"))
    assert first.startswith("- User pasted: depth_test.go:10: ")
    assert first.endswith("--- FAIL: TestDepthOfTexel (0.2s) [22 pasted lines]")
    assert len(first) <= 302


def test_a_question_that_was_answered_late_is_no_task(om: Om) -> None:
    """XC2: the agent went on before it answered, and "finish" with something new is a request of its own."""
    asked = "Is the map of the north drawn twice, or is that only the legend?"
    talk = run(fixed().user(asked), "ls", "north.csv")
    om("observe", "-q", stdin=talk.assistant("The list of the north is short.").text())
    run(talk, "grep -rn north .", "north.csv").assistant("It is only the legend. It has two names for `Texel`.")
    lines = task(om, run(talk.user("finish the list of harbours, `harbours.csv`"), "ls", "north.csv"))
    assert lines == ["- User: finish the list of harbours, `harbours.csv`"]


def test_the_end_of_a_long_prompt_is_part_of_the_task(om: Om) -> None:
    """XC2: it often asks for what the rest is about."""
    told = "".join(
        f"Harbour {number} of the north needs a circle of {number} mm, and its name should stand to the left of it, "
        f"except on the printed map of the school, where everything should be {number} % larger. "
        for number in range(2, 9)
    )
    lines = task(om, edit(fixed().user(f"Here is the list of the office.\n\n{told}\n\nPlease mend `list.ts` by it.")))
    assert lines[0].startswith("- User: Here is the list of the office.")
    assert lines[2].endswith("Please mend `list.ts` by it.")
    assert all(len(line) <= 302 for line in lines)


def test_a_statement_that_ends_with_a_question_waits_for_an_answer(om: Om) -> None:
    """XC2: before the agent did anything."""
    lines = task(om, fixed().user("Ah, the old list had no depth for Texel at all. That's what is mended now, right?"))
    assert lines[0].startswith("- User: Ah, the old list had no depth")


def test_a_command_that_the_client_ran_is_no_task(om: Om) -> None:
    """XC2: nothing of the agent follows it."""
    talk = edit(fixed().user("Draw the map of `Texel`")).assistant("Drew the map of `Texel` in tides.ts.")
    talk.user(command("/plugin", "add tides")).user(command("/model", "large"))
    assert [line for line in task(om, talk) if "plugin" in line] == []


def test_a_list_of_todos_from_before_the_last_request_stands_below_it(om: Om) -> None:
    """XC2: and above it once it is changed."""
    todos = [{"content": "Draw", "status": "in_progress"}, {"content": "Print", "status": "pending"}]
    talk = edit(fixed().user("Draw a map of Zeeland")).call("TodoWrite", {"todos": todos}).result("ok")
    edit(talk.assistant("It is half done.").user("First print the old map of `Texel`"))
    asked = "- User: First print the old map of `Texel`"
    assert [line[: len(asked)] for line in task(om, talk)][:1] == [asked]
    todos[0]["status"] = "completed"
    talk.call("TodoWrite", {"todos": todos}).result("ok")
    assert task(om, talk)[0].startswith("- Todos: 1 completed, 1 pending")


def test_a_completed_list_of_todos_is_no_task(om: Om) -> None:
    """XC2."""
    todos = [{"content": name, "status": "completed"} for name in ("Draw", "Paint", "Print")]
    talk = Talk().user("Draw a map").call("TodoWrite", {"todos": todos}).result("ok")
    assert task(om, edit(talk).assistant("Drew the map.")) == ["- Last done: User: Draw a map"]


def test_a_session_that_only_reads_so_far_has_its_open_request(om: Om) -> None:
    """XC2, T33: and nothing once it is answered."""
    talk = Talk().user("Explain how the map is drawn")
    talk.call("Read", {"file_path": f"{PROJECT}/map.ts"}).result("draw()")
    assert task(om, talk) == ["- User: Explain how the map is drawn"]
    assert task(om, talk.assistant("It draws each harbour.")) == []


def test_a_turn_with_open_todos_goes_on_until_something_is_reported(om: Om) -> None:
    """XC2."""
    todos = [{"content": "Draw", "status": "completed"}, {"content": "Print", "status": "in_progress"}]
    talk = edit(Talk().user("Draw a map")).call("TodoWrite", {"todos": todos}).result("ok")
    assert task(om, talk.assistant("It keeps its legend this way."))[-1] == "- User: Draw a map"


@pytest.mark.parametrize(
    "prompt",
    [
        "Add a flag --feet",
        "is the map still needed?",
        "why does the harbour of Texel have no depth, and where does its name come from?",
        "please write the changes down in docs/changes.md, a line for each, and mention who asked for them",
        "no wait, the map shows the wrong harbour",
        "the map shows Texel twice since yesterday",
        "commit and push",
        "5 sounds easy",
        "Zeige die Meter ohne Nachkommastelle an",
    ],
)
def test_what_is_open_is_in_the_smallest_pack(om: Om, prompt: str) -> None:
    """XC3: before the rows of edits, outputs and rules that a long session has."""
    talk = long_session()
    edit(talk.user(prompt))
    om("observe", "-q", stdin=talk.text())
    for also in ([], ["--tail-budget", "0"]):
        assert prompt in om("context", "-q", "--budget", "500", *also).stdout


@pytest.mark.parametrize(
    "output",
    [
        (
            "error[E0425]: cannot find value `depth` in this scope\n  --> src/main.rs:12:9\n   |\n12 |   depth + 1\n"
            'error: could not compile `tides` (bin "tides") due to previous error of the compiler, see the lines above'
        ),
        (
            "> tides@1.0.0 start\n> node server.js\n\nError: Cannot find module './depth'\n"
            "    at Module._resolveFilename (node:internal/modules/cjs/loader:1077:15)\n"
            "    at Module._load (node:internal/modules/cjs/loader:922:27)\n    at depth (/home/ada/server.js:1:1)"
        ),
    ],
)
def test_an_error_that_was_pasted_stands_with_the_open_request(om: Om, output: str) -> None:
    """XC3, XC4: without it, the request says little."""
    talk = long_session()
    edit(talk.user(f"This is what I get, please find out why:\n\n{output}"))
    om("observe", "-q", stdin=talk.text())
    printed = om("context", "-q", "--budget", "700", "--tail-budget", "0").stdout
    assert "User: This is what I get, please find out why:" in printed
    assert "depth" in printed.partition("User pasted: ")[2]


def test_the_block_of_a_very_long_session_is_made_from_its_newest_rows_and_its_rules(om: Om) -> None:
    om("observe", "-q", stdin=very_long_session().text())
    printed = om("context", "-q", "--working-memory").stdout
    assert "Always keep the harbours of Zeeland" in printed
    assert "- 1299.ts (modified)" in printed
    rows = len(om("log", "--all", "--jsonl").stdout.splitlines())
    older = json.loads(om("context", "-q", "--working-memory", "--json").stdout)["older"]
    assert older == rows - 1_250 - 1  # the rule is old, and read nevertheless
    assert printed.endswith(f"\n… (+{older} older rows)\n")
    om("reflect")
    assert om("context", "-q", "--working-memory").stdout == printed
