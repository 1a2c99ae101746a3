"""The working-memory block: its bytes, what is one line, what survives folding, and its budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.notation import WORKING_HEADINGS
from omcli.memory.observation import Kind, Observation, Priority, Status, Type
from omcli.pack.working_block import CAP, WorkingBlock, document, working_block
from omcli.tokenizers import counter
from tests.material import row, row_id
from tests.strategies import examples, observations, texts

COUNTER = counter("o200k-approx")


@dataclass
class Rows:
    """A session's rows under construction; every method adds one."""

    rows: list[Observation] = field(default_factory=list)

    def add(
        self,
        type: Type,  # noqa: A002 - the field's name
        text: str,
        *,
        status: Status | None = None,
        priority: Priority = Priority.MEDIUM,
        kind: Kind = Kind.OBSERVATION,
        **metadata: object,
    ) -> Rows:
        number = len(self.rows) + 1
        self.rows.append(
            row(
                number,
                text=text,
                type=type,
                status=status,
                priority=priority,
                kind=kind,
                metadata=metadata,
                sources=(number,),
            )
        )
        return self

    def edited(self, path: str, change: str = "modified", *, edits: int = 1, what: str = "adds go") -> Rows:
        kind = Type.FILE_CREATED if change == "created" else Type.FILE_MODIFIED
        text = f"{change.capitalize()} {path}: {what}"
        return self.add(kind, text, status=Status.DONE, priority=Priority.HIGH, path=path, change=change, edits=edits)

    def failed(self, command: str, why: str = "error: 2 failed", *, times: int = 1) -> Rows:
        text = f"Ran: {command} → exit 1: {why}" + (f" (× {times})" if times > 1 else "")
        return self.add(
            Type.COMMAND_ERROR, text, status=Status.OPEN, priority=Priority.HIGH, command=command, times=times
        )

    def ran(self, command: str, outcome: str = "exit 0") -> Rows:
        return self.add(Type.COMMAND_RUN, f"Ran: {command} → {outcome}", status=Status.DONE, command=command)

    def searched(self, pattern: str, matches: int) -> Rows:
        found = {"pattern": pattern, "matches": matches, "unit": "matches", "first_matches": []}
        text = f'Searched "{pattern}" → {matches} matches'
        return self.add(Type.SEARCH_PERFORMED, text, priority=Priority.LOW, searches=[found])

    def todos(self, *entries: Mapping[str, str], partial: bool = False, agent: str | None = None) -> Rows:
        return self.add(
            Type.TODO_UPDATED, "Todos: …", status=Status.OPEN, todos=list(entries), partial=partial, agent=agent
        )

    def block(self, budget: int = CAP, cwd: str | None = "/src/app") -> WorkingBlock:
        return working_block(self.rows, cwd=cwd, budget=budget, counter=COUNTER)

    def lines(self, heading: str) -> list[str]:
        return lines(self.block(), heading)


def lines(block: WorkingBlock, heading: str) -> list[str]:
    """The lines under a heading."""
    return [entry.text for section in block.sections if section.heading == heading for entry in section.entries]


def todo(text: str, state: str) -> dict[str, str]:
    return {"text": text, "state": state}


def test_the_block_to_the_byte() -> None:
    """S4.10, S4.13, T34: the headings, their order, and the form of every line."""
    rows = (
        Rows()
        .add(Type.REQUEST, "User: Make the parser faster.", priority=Priority.HIGH)
        .add(Type.FILE_READ, "Read src/parser.py", priority=Priority.LOW)
        .searched("parse", 5)
        .todos(todo("Measure", "completed"), todo("Cache the tables", "in_progress"), todo("Document it", "pending"))
        .add(Type.DECISION, "User: We keep Python 3.11.", priority=Priority.HIGH)
        .edited("/src/app/src/parser.py", edits=2, what="adds cached_tables")
        .edited("/src/app/docs/speed.md", "created", edits=0, what="adds Speed")
        .failed("pytest -q", "error: 2 failed")
        .failed("mypy src", "error: no stubs")
        .ran("mypy src")
        .ran("make docs", "exit 0: Build finished")
        .add(Type.TASK_DELEGATED, "Delegated: Read the changelog → nothing about speed", task="Read the changelog")
        .add(Type.OUTCOME, "Committed 1a2b3c4 on main: cache the tables", priority=Priority.HIGH)
        .add(Type.QUESTION, "Agent: Shall the cache be bounded?", status=Status.OPEN)
        .add(Type.FACT, "ask Ines about Windows", kind=Kind.NOTE)
        .add(Type.FACT, "Agent: the tables have 40,000 entries")
    )
    assert rows.block().printed == (
        "## Working Memory\n"
        "\n"
        "### Current Task\n"
        "- Cache the tables (1 completed, 1 in progress, 1 pending; next: Document it)\n"
        "- User: Make the parser faster.\n"
        "\n"
        "### Modified Files\n"
        "- docs/speed.md (created): adds Speed\n"
        "- src/parser.py (modified × 2): adds cached_tables\n"
        "\n"
        "### Recent Errors\n"
        "- pytest -q → exit 1: error: 2 failed\n"
        "- mypy src → exit 1: error: no stubs (resolved)\n"
        "\n"
        "### Key Decisions\n"
        "- User: We keep Python 3.11.\n"
        "\n"
        "### Open Questions\n"
        "- Agent: Shall the cache be bounded?\n"
        "\n"
        "### Notes\n"
        "- ask Ines about Windows\n"
        "\n"
        "### Outcomes\n"
        "- Committed 1a2b3c4 on main: cache the tables\n"
        "\n"
        "### Commands\n"
        "- make docs → exit 0: Build finished\n"
        "\n"
        "### Delegated Tasks\n"
        "- Read the changelog → nothing about speed\n"
        "\n"
        "### Searches\n"
        '- "parse" → 5 matches\n'
    )


# ---- what is one line


def test_a_file_is_one_line_with_what_became_of_it() -> None:
    """T32: edited three times; created, then modified; deleted; created twice; moved."""
    rows = Rows().edited("a.py").edited("a.py").edited("a.py", what="removes stop")
    assert rows.lines("Modified Files") == ["a.py (modified × 3): removes stop"]
    assert Rows().edited("a.py", "created", edits=0).edited("a.py").lines("Modified Files") == [
        "a.py (created, modified): adds go"
    ]
    assert Rows().edited("a.py", "created", edits=2).edited("a.py").lines("Modified Files") == [
        "a.py (created, modified × 3): adds go"
    ]
    assert Rows().edited("a.py", "created", edits=0).edited("a.py", "created", edits=0).lines("Modified Files") == [
        "a.py (created, modified): adds go"
    ]
    assert Rows().edited("a.py").edited("a.py", "deleted", edits=0).lines("Modified Files") == ["a.py (deleted)"]
    moved = Rows().edited("a.py", "created", edits=0)
    moved.add(
        Type.FILE_MODIFIED, "Modified a.py → b.py: adds x", path="a.py", change="modified", edits=1, moved_to="b.py"
    )
    assert moved.lines("Modified Files") == ["b.py (moved from a.py, created, modified): adds x"]


def test_a_path_is_the_same_file_however_it_is_given() -> None:
    rows = Rows().edited("/src/app/a.py").edited("a.py")
    assert rows.lines("Modified Files") == ["a.py (modified × 2): adds go"]
    assert lines(rows.block(cwd=None), "Modified Files") == [
        "a.py (modified): adds go",
        "/src/app/a.py (modified): adds go",
    ]


def test_a_command_is_one_line_with_what_came_of_it_last() -> None:
    """T32: the same command twice; one that failed stands among the errors only."""
    rows = Rows().ran("make", "exit 0: 3 warnings").ran("make lint").ran("make", "exit 0")
    assert rows.lines("Commands") == ["make → exit 0", "make lint → exit 0"]
    assert Rows().ran("make").failed("make").lines("Commands") == []


def test_a_pattern_is_one_line_with_what_was_found_last() -> None:
    """T32: 3, then 5 matches."""
    assert Rows().searched("TODO", 3).searched("x", 1).searched("TODO", 5).lines("Searches") == [
        '"TODO" → 5 matches',
        '"x" → 1 matches',
    ]


def test_only_the_latest_todos_count() -> None:
    """T32, XC2: two todo updates, latest only; a list that is done is not the current task."""
    rows = Rows().todos(todo("a", "in_progress")).todos(todo("a", "completed"), todo("b", "in_progress"))
    assert rows.lines("Current Task") == ["b (1 completed, 1 in progress)"]
    rows.todos(todo("a", "completed"), todo("b", "completed"))
    assert rows.lines("Current Task") == []
    rows.add(Type.REQUEST, "User: Now the docs.").edited("a.py")
    assert rows.lines("Current Task") == ["User: Now the docs."]


def test_todos_that_nobody_touched_while_other_things_were_done_are_old() -> None:
    """T32."""
    rows = Rows().todos(todo("a", "completed"), todo("b", "pending"))
    for number in range(2):
        rows.add(Type.REQUEST, f"User: Paint boat {number}.", status=Status.DONE).edited("boat.py")
        assert rows.lines("Current Task")[0] == "Todos: 1 completed, 1 pending; next: b"
    rows.add(Type.REQUEST, "User: Paint boat 3.", status=Status.DONE).edited("boat.py")
    assert rows.lines("Current Task")[0] == "Last done: User: Paint boat 3."
    rows.add(Type.REQUEST, "User: Paint boat 4.", status=Status.OPEN).edited("boat.py")
    assert rows.lines("Current Task") == ["User: Paint boat 4."]


def test_a_request_that_the_talk_went_past_is_not_the_current_task() -> None:
    rows = Rows().edited("boat.py").add(Type.REQUEST, "User: Paint it red.", left="passed over")
    assert rows.lines("Current Task") == []
    rows.add(Type.REQUEST, "User: Paint it blue.", status=Status.OPEN)
    assert rows.lines("Current Task") == ["User: Paint it blue."]


def test_a_question_from_before_the_last_reply_is_over() -> None:
    """XC2: unlike a request, which the reply may be about."""
    rows = Rows().add(Type.REQUEST, "User: Paint boat 3 of `boats.csv`.", status=Status.OPEN)
    rows.add(Type.QUESTION, "User: Which colour had boat 2 of `boats.csv`?", status=Status.OPEN).edited("boat.py")
    rows.add(Type.CORRECTION, "User refused Edit: take `blue` for both", status=None).ran("paint")
    assert rows.lines("Current Task") == [
        "User refused Edit: take `blue` for both",
        "User: Paint boat 3 of `boats.csv`.",
    ]


def test_a_request_that_was_taken_up_again_is_as_old_as_its_prompt() -> None:
    """XC2: the last source of a settled request is what settled it."""
    rows = Rows().add(Type.REQUEST, "User: Paint boat 1 of `boats.csv`.", status=Status.DONE)
    rows.add(Type.REQUEST, "User: Sell boat 2 of `boats.csv`.", status=Status.DONE).edited("boat.py")
    rows.rows[0] = replace(rows.rows[0], sources=(1, 9))
    rows.rows[1] = replace(rows.rows[1], sources=(2, 8))
    assert rows.lines("Current Task") == ["Last done: User: Sell boat 2 of `boats.csv`."]


def test_todos_that_are_written_one_by_one_add_up_over_turns() -> None:
    """S4.7"""
    rows = Rows().todos({"id": "1", "text": "Parse", "state": "pending"}, partial=True)
    rows.todos({"id": "2", "text": "Test", "state": "pending"}, {"id": "3", "state": "pending"}, partial=True)
    rows.todos({"id": "1", "state": "completed"}, {"id": "3", "state": "in_progress"}, partial=True)
    assert rows.lines("Current Task") == ["#3 (1 completed, 1 in progress, 1 pending; next: Test)"]
    rows.todos({"id": "3", "state": "deleted"}, partial=True)
    assert rows.lines("Current Task") == ["Todos: 1 completed, 1 pending; next: Test"]


def test_a_subagents_todos_are_not_the_current_task() -> None:
    rows = Rows().todos(todo("Ours", "in_progress")).todos(todo("Its own", "in_progress"), agent="a7")
    assert rows.lines("Current Task") == ["Ours (1 in progress)"]


def test_commits_are_something_to_go_on_from() -> None:
    rows = Rows().add(Type.OUTCOME, "Agent: All is done.", priority=Priority.HIGH)
    rows.add(Type.OUTCOME, "Committed 1a2b3c4 on main: x", priority=Priority.HIGH, command="git commit -m x")
    assert rows.lines("Outcomes") == ["Committed 1a2b3c4 on main: x", "Agent: All is done."]


def test_an_open_blocker_is_told_and_a_settled_one_is_not() -> None:
    rows = Rows().add(Type.BLOCKER, "Agent: no VPN", status=Status.OPEN)
    rows.add(Type.BLOCKER, "Agent: no disk", status=Status.RESOLVED)
    assert rows.lines("Blockers") == ["Agent: no VPN"]


def test_tasks_and_decisions_can_be_noted_by_hand() -> None:
    """S4.10: what no tool tells comes from notes and from an observer's current task."""
    rows = Rows().add(Type.TASK, "ship 1.4", kind=Kind.NOTE).add(Type.TASK, "fix the build")
    rows.add(Type.TASK, "write the notes").add(Type.DECISION, "no new dependencies", kind=Kind.NOTE)
    assert rows.lines("Current Task") == ["ship 1.4", "write the notes"]
    assert rows.lines("Key Decisions") == ["no new dependencies"]


def test_what_a_person_decided_comes_before_what_an_agent_did() -> None:
    """S4.10: where only a few lines fit, they are those that bind."""
    rows = Rows().add(Type.INSTRUCTION, "User: never drop a table").add(Type.DECISION, "Agent: I'll use a queue.")
    assert rows.lines("Key Decisions") == ["User: never drop a table", "Agent: I'll use a queue."]


def test_a_sentence_of_a_decision_has_no_line_of_its_own() -> None:
    rows = Rows().add(Type.DECISION, "User: We use ISO weeks. Fix it.").add(Type.DECISION, "User: We use ISO weeks.")
    assert rows.lines("Key Decisions") == ["User: We use ISO weeks. Fix it."]


def test_a_delegated_task_is_one_line_with_its_outcome() -> None:
    """S4.8"""
    rows = Rows().add(Type.TASK_DELEGATED, "Delegated: Look (still running)", status=Status.OPEN, task="Look")
    rows.add(Type.TASK_DELEGATED, "Delegated: Look → found it", status=Status.DONE, task="Look")
    assert rows.lines("Delegated Tasks") == ["Look → found it"]


# ---- failures


def test_repeated_failures_are_one_line_with_their_count() -> None:
    rows = Rows().failed("bun test", times=2).failed("bun test", "error: 1 failed")
    assert rows.lines("Recent Errors") == ["bun test → exit 1: error: 1 failed (× 3)"]


@pytest.mark.parametrize("command", ["bun test", "bun lint && bun test"])
def test_an_error_ends_in_resolved_once_the_same_command_worked(command: str) -> None:
    """T35, S4.16: by the row of the command that worked, alone or in a chain."""
    rows = Rows().failed("bun test").ran(command)
    assert rows.lines("Recent Errors") == ["bun test → exit 1: error: 2 failed (resolved)"]
    rows.failed("bun test", "error: 9 failed")
    assert rows.lines("Recent Errors") == ["bun test → exit 1: error: 9 failed"], "it failed anew"


def test_an_error_is_resolved_by_the_row_that_takes_its_place() -> None:
    """T35, S4.16: the failure is superseded by the same one, resolved."""
    rows = Rows().failed("bun test", times=2)
    resolved = replace(rows.rows[0], id=row_id(9), status=Status.RESOLVED)
    rows.rows = [replace(rows.rows[0], superseded_by=row_id(9)), resolved]
    assert rows.lines("Recent Errors") == ["bun test → exit 1: error: 2 failed (× 2) (resolved)"]


def test_an_error_is_resolved_by_a_note_that_takes_its_place() -> None:
    """S4.16: `om note --resolves`."""
    rows = Rows().failed("bun test").add(Type.FACT, "it was the cache", kind=Kind.NOTE)
    rows.rows[0] = replace(rows.rows[0], superseded_by=rows.rows[1].id)
    assert rows.lines("Recent Errors") == ["bun test → exit 1: error: 2 failed (resolved)"]
    assert rows.lines("Notes") == ["it was the cache"]


def test_a_failure_that_came_after_it_was_resolved_stays_open() -> None:
    rows = Rows().failed("bun test")
    again, late = rows.rows[0], replace(rows.rows[0], id=row_id(9), status=Status.RESOLVED)
    rows.rows = [
        replace(again, event_at="2026-03-02T12:00:00.000Z"),
        replace(late, event_at="2026-03-02T11:00:00.000Z"),
    ]
    assert rows.lines("Recent Errors") == ["bun test → exit 1: error: 2 failed"]


def test_a_failed_edit_is_resolved_by_a_change_of_the_same_file() -> None:
    """T31, S4.16"""
    rows = Rows().add(
        Type.TOOL_ERROR, "Edit a.py failed: not found", status=Status.OPEN, tool="Edit", target="/src/app/a.py"
    )
    assert rows.lines("Recent Errors") == ["Edit a.py failed: not found"]
    assert rows.edited("a.py").lines("Recent Errors") == ["Edit a.py failed: not found (resolved)"]


def test_what_is_open_stands_before_what_is_resolved_and_the_newest_first() -> None:
    """S4.10: by priority and recency."""
    rows = Rows().failed("a").failed("b").failed("c").ran("c")
    assert [line.split()[0] for line in rows.lines("Recent Errors")] == ["b", "a", "c"]


def test_a_long_line_is_cut_between_words_and_still_says_that_it_is_resolved() -> None:
    rows = Rows().failed("make", "word " * 200).ran("make")
    [line] = rows.lines("Recent Errors")
    assert line.endswith("word … (resolved)")
    assert len(line) <= 300


@pytest.mark.parametrize(
    "said",
    [
        "a" * 1000,
        "修复登录页面的错误。" * 100,
        "กขค" * 400,
        "please look at https://example.org/" + "q" * 700,
        "word " * 200,
    ],
)
def test_a_long_line_of_any_script_keeps_its_beginning_and_its_end(said: str) -> None:
    said = said.rstrip()
    rows = Rows().add(Type.REQUEST, f"User: {said}", status=Status.OPEN).edited("a.py")
    [line] = rows.lines("Current Task")
    begin, end = line.split("…")
    assert 250 < len(line) <= 300
    assert f"User: {said}".startswith(begin.rstrip())
    assert said.endswith(end)
    assert len(end) >= 100


# ---- what is no business of the block


@pytest.mark.parametrize(
    "rows",
    [
        Rows(),
        Rows().add(Type.FILE_READ, "Read a.py", priority=Priority.LOW),
        Rows().add(Type.REQUEST, "User: Read a.py.").add(Type.FILE_READ, "Read a.py", priority=Priority.LOW),
        Rows().add(Type.QUESTION, "User: What is in a.py?", status=Status.DONE).add(Type.FILE_READ, "Read a.py"),
        Rows().add(Type.QUESTION, "User: What is in a.py?", status=Status.OPEN),
        Rows().add(Type.FILE_READ, "Read a.py").add(Type.OUTCOME, "Agent: I have read it.", priority=Priority.HIGH),
        Rows().add(Type.FACT, "folded", kind=Kind.REFLECTION).add(Type.DECISION, "an item", kind=Kind.ITEM),
    ],
    ids=["no rows", "only reads", "reads on request", "a question", "only a question", "a report", "only reflections"],
)
def test_nothing_to_go_on_from_is_no_block(rows: Rows) -> None:
    """T33, S4.4"""
    assert rows.block().printed == ""
    assert rows.block().tokens == 0


@pytest.mark.parametrize("kind", [Type.QUESTION, Type.REQUEST])
def test_an_open_request_that_the_agent_reads_for_is_a_block(kind: Type) -> None:
    """XC2: there is something to go on from."""
    rows = Rows().add(kind, "User: What is in a.py?", status=Status.OPEN).add(Type.FILE_READ, "Read a.py")
    assert rows.block().printed == "## Working Memory\n\n### Current Task\n- User: What is in a.py?\n"


def test_the_block_is_the_same_before_and_after_rows_were_folded_and_dropped() -> None:
    """T36, S4.11: reflections supersede, prune drops; the block reads all rows."""
    rows = Rows().edited("a.py").failed("make").add(Type.DECISION, "User: We keep it.").searched("x", 3).ran("make")
    before = rows.block().printed
    folded = row(99, text="what happened", kind=Kind.REFLECTION, type=Type.OUTCOME)
    after = [replace(old, superseded_by=folded.id) for old in rows.rows[:3]]
    after += [replace(old, dropped_at="2026-03-03T00:00:00.000Z") for old in rows.rows[3:]]
    assert working_block([*after, folded], cwd="/src/app", budget=CAP, counter=COUNTER).printed == before


def test_a_row_that_a_later_one_took_the_place_of_is_gone() -> None:
    rows = Rows().add(Type.DECISION, "User: We use tabs.").add(Type.DECISION, "User: We use spaces.")
    rows.rows[0] = replace(rows.rows[0], superseded_by=rows.rows[1].id)
    assert rows.lines("Key Decisions") == ["User: We use spaces."]


@pytest.mark.parametrize("type_", [Type.FILE_MODIFIED, Type.COMMAND_ERROR, Type.COMMAND_RUN, Type.SEARCH_PERFORMED])
def test_rows_without_metadata_are_shown_in_their_own_words(type_: Type) -> None:
    """Rows of other observers, and of older stores."""
    rows = Rows().add(type_, "something was done", priority=Priority.HIGH)
    [section] = rows.block().sections
    assert [entry.text for entry in section.entries] == ["something was done"]


# ---- the budget


def crowd() -> Rows:
    """200 searches, 60 commands and 3 files."""
    rows = Rows().todos(todo("Find them all", "in_progress")).add(Type.DECISION, "User: We keep it.")
    for number in range(200):
        rows.searched(f"pattern_{number}", number)
    for number in range(60):
        rows.ran(f"make target-{number}", f"exit 0: {number} passed in 1.0s")
    return rows.failed("make all").edited("a.py").edited("b.py").edited("c.py")


def test_the_lowest_section_gives_way_first_and_says_how_much_is_left_out() -> None:
    """T34: 200 searches, 60 commands, 3 files; 800 tokens."""
    block = crowd().block()
    assert COUNTER.text(block.printed) == block.tokens <= 800
    assert [section.heading for section in block.sections] == [
        "Current Task", "Modified Files", "Recent Errors", "Key Decisions", "Commands",
    ]  # fmt: skip
    assert len(lines(block, "Modified Files")) == 3
    shown = len(lines(block, "Commands"))
    assert 20 < shown < 60
    assert f"\n… (+{60 - shown} more)\n\n… (+200 more)\n" in block.printed
    assert block.tokens > 760, "what fits is shown"


def test_the_main_sections_share_a_small_budget() -> None:
    """T34: files alone may fill it; an open error and a decision are shown all the same."""
    rows = Rows().failed("make all").add(Type.DECISION, "User: We keep it.")
    for number in range(300):
        rows.edited(f"src/module_{number}/file_{number}.py")
    block = rows.block()
    assert block.tokens <= 800
    assert lines(block, "Recent Errors")
    assert lines(block, "Key Decisions")
    assert lines(block, "Modified Files")[0].startswith("src/module_299/")


@pytest.mark.parametrize("budget", [0, -1, 5, 20, 60, 200, 5000])
def test_a_smaller_budget_lowers_the_cap_and_a_greater_one_does_not_raise_it(budget: int) -> None:
    block = crowd().block(budget)
    assert block.tokens <= max(0, min(budget, 800))
    assert bool(block.printed) == (budget >= 60)


_anything = st.one_of(texts, st.none(), st.booleans(), st.integers(-3, 99), st.floats(allow_nan=False))
_metadata = st.dictionaries(
    st.sampled_from(
        "path change edits moved_to command commands exit_code times target todos partial task searches".split()
    ),
    st.one_of(
        _anything,
        st.lists(_anything, max_size=3),
        st.lists(st.dictionaries(st.sampled_from("id state text pattern matches unit".split()), _anything), max_size=3),
    ),
    max_size=4,
)


@st.composite
def noted(draw: st.DrawFn) -> Observation:
    """A row with metadata that may say anything."""
    return replace(draw(observations(session=st.just("s"))), metadata=draw(_metadata))


@given(
    rows=st.lists(noted(), max_size=30),
    budget=st.integers(-5, 1200),
    name=st.sampled_from(["o200k-approx", "chars-4", "chars-2.5"]),
)
def test_no_block_is_ever_over_its_budget(rows: Sequence[Observation], budget: int, name: str) -> None:
    """T34, invariant 6: any rows, any budget, any counter."""
    counted = counter(name)
    block = working_block(rows, cwd="/p", budget=budget, counter=counted)
    assert counted.text(block.printed) == block.tokens <= max(0, min(CAP, budget))
    again = working_block(rows, cwd="/p", budget=budget, counter=counted)
    assert again.printed == block.printed


@examples(60)
@given(said=st.lists(texts, min_size=1, max_size=5))
def test_no_text_breaks_out_of_its_line(said: list[str]) -> None:
    """T74: each line is a heading, an item or a count, whatever rows say; nothing closes a pack around it."""
    rows = Rows()
    for text in said:
        rows.add(Type.DECISION, text).add(Type.FILE_MODIFIED, f"Modified x: {text}", path=text or "x")
    printed = rows.block().printed
    allowed = {"", "## Working Memory", *(f"### {heading}" for heading in WORKING_HEADINGS)}
    assert all(line in allowed or line.startswith(("- ", "… (+")) for line in printed.split("\n"))
    assert "</om-memory" not in printed.lower()


def test_the_document_holds_the_lines_with_the_rows_they_were_made_of() -> None:
    rows = Rows().edited("a.py").edited("a.py").ran("make")
    block = rows.block()
    assert document(block, session="s") == {
        "session": "s",
        "counter": "o200k-approx",
        "budget": 800,
        "tokens": block.tokens,
        "sections": [
            {
                "heading": "Modified Files",
                "lines": [{"text": "a.py (modified × 2): adds go", "rows": [row_id(1), row_id(2)]}],
                "more": 0,
            },
            {"heading": "Commands", "lines": [{"text": "make → exit 0", "rows": [row_id(3)]}], "more": 0},
        ],
        "more": 0,
        "older": 0,
    }
