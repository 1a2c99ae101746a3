"""What a person sees on a terminal: wrapped lines, colour only where it is wanted, and all that a pipe gets."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.conftest import Om
from tests.e2e.terminals import answering, on_real_terminal, on_terminal
from tests.e2e.transcripts import tide_story

COMMANDS = [
    "log", "log --notation emoji", "items", "sessions", "status", "usage", "history", "config --origin", "why tides.py",
    "trace Cuxhaven",
]  # fmt: skip


@pytest.fixture
def told(om: Om) -> Om:
    """A store with a session, an item and an operation."""
    om("observe", "-q", stdin=tide_story().text())
    om("note", "--item", "Always give the tides of Cuxhaven in metres", "--tag", "pinned")
    om("prune", "--keep-last", "4")
    return om


def plain(text: str) -> str:
    """A text without escape sequences."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize(
    ("line", "columns", "printed"),
    [("log", 80, on_real_terminal), ("log", 60, on_real_terminal), *((line, 60, on_terminal) for line in COMMANDS)],
)
def test_lines_fit_and_say_what_a_pipe_gets(told: Om, line: str, columns: int, printed: Callable[..., str]) -> None:
    shown = plain(printed(told, *line.split(), columns=columns))
    assert all(cell_len(each) <= columns for each in shown.splitlines())
    is_table = line in ("sessions", "history")
    for word in () if is_table else re.findall(r"[a-z]{4,}", told(*line.split()).stdout):
        assert word in re.sub(r"\s", "", shown)


def test_a_row_is_shown_with_its_messages_below_headings(told: Om) -> None:
    row = told("log", "--jsonl").lines[0]
    shown = plain(on_terminal(told, "show", row["id"], columns=120))
    assert re.search(r"^2026-02-10 .* ─+$", shown, re.MULTILINE)
    assert row["text"].split()[0] in shown


def test_the_id_of_a_message_is_never_cut(told: Om) -> None:
    """It is what `om show MESSAGE` wants."""
    row = told("log", "--jsonl").lines[0]
    shown = plain(on_terminal(told, "show", row["id"], columns=40))
    assert all(message in shown.replace("\n", "") for message in row["message_ids"])


ENVIRONMENTS: list[tuple[dict[str, str], bool]] = [
    ({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
]  # fmt: skip
"""Variables, and whether a terminal gets colour then."""


@pytest.mark.parametrize("command", ["log", "sessions", "status"])
@pytest.mark.parametrize(("env", "is_coloured"), ENVIRONMENTS)
def test_colour_is_a_matter_of_the_environment(told: Om, env: dict[str, str], is_coloured: bool, command: str) -> None:
    assert ("\x1b[" in on_terminal(told, command, env=env)) is is_coloured


@pytest.mark.parametrize(("env", "is_coloured"), ENVIRONMENTS[:2])
def test_a_process_sees_the_terminal_as_well(told: Om, env: dict[str, str], is_coloured: bool) -> None:
    assert ("\x1b[" in on_real_terminal(told, "log", env=env)) is is_coloured


@pytest.mark.parametrize("command", ["sessions", "status"])
def test_all_tables_are_coloured_alike(told: Om, command: str) -> None:
    assert "\x1b[" in on_terminal(told, command)
    assert "\x1b[" not in on_terminal(told, command, env={"NO_COLOR": "1"})


@pytest.mark.parametrize("env", [env for env, _ in ENVIRONMENTS])
def test_a_terminal_gets_no_colour_if_told_so(told: Om, env: dict[str, str]) -> None:
    assert "\x1b" not in on_terminal(told, "log", "--color", "never", env=env)


def test_the_variable_columns_goes_before_the_width_of_the_terminal(told: Om) -> None:
    shown = plain(on_real_terminal(told, "log", columns=200, env={"COLUMNS": "50"}))
    assert 40 < max(map(cell_len, shown.splitlines())) <= 50


PAGED = ["log", "items", "sessions", "history", "recall tide", "diff", "why tides.py", "trace Cuxhaven"]


@pytest.mark.parametrize("line", PAGED)
def test_long_output_goes_through_the_pager(told: Om, line: str) -> None:
    plainly = on_real_terminal(told, *line.split())
    paged = on_real_terminal(told, *line.split(), env={"OM_PAGER": "sed s/^/:/", "PAGER": "false"})
    assert paged.splitlines() == [f":{each}" for each in plainly.splitlines()]
    assert plainly.strip()


def test_the_pager_of_other_programs_is_used_unless_om_has_its_own(told: Om) -> None:
    """Set to nothing or to `cat`, the variable turns it off."""
    shown = {
        name: on_real_terminal(told, "log", env={"PAGER": "sed s/^/:/", **env})
        for name, env in {"other": {}, "none": {"OM_PAGER": ""}, "cat": {"OM_PAGER": "cat"}}.items()
    }
    assert all(line.startswith(":") for line in shown["other"].splitlines())
    assert shown["none"] == shown["cat"] != shown["other"]


@pytest.mark.parametrize("pager", ["head -n 1", "true"])
def test_a_pager_that_is_left_early_is_no_error(told: Om, pager: str) -> None:
    code, shown = answering(told, "log", answers=[], env={"OM_PAGER": pager})
    assert code == 0
    assert "Traceback" not in shown
    assert len(shown.splitlines()) <= 1


def test_a_pager_that_cannot_be_started_is_named_and_all_is_printed(told: Om) -> None:
    code, shown = answering(told, "log", answers=[], env={"OM_PAGER": "no-such-pager -x", "NO_COLOR": "1"})
    assert code == 0
    assert "om: warning: cannot run the pager `no-such-pager -x`" in shown
    assert all(row["id"][-8:] in shown for row in told("log", "--jsonl").lines)


def test_in_a_pipe_nothing_is_paged(told: Om) -> None:
    assert told("log", env={"OM_PAGER": "false"}).stdout == told("log").stdout


def test_a_person_sees_how_many_files_are_done(om: Om, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.jsonl", "two.jsonl")]
    for file, session in zip(files, "ab", strict=True):
        file.write_text(tide_story().text().replace("tide-1", session))
    _, shown = answering(om, "observe", *map(str, files), answers=[])
    assert "1 of 2 files" in shown
    assert "2 of 2 files" in shown


LIMITED = {"OM_LIMITS_DAY_COST": "1.5", "OM_REFLECT_TOKENS": "100"}


def test_what_is_used_of_limits_is_drawn_as_bars_for_a_person(told: Om) -> None:
    shown = plain(on_terminal(told, "status", columns=100, env=LIMITED))
    assert re.search(r"^to fold +[█░]{20}  \d+ of 100 tokens in the last session$", shown, re.MULTILINE)
    assert re.search(r"^day_cost +░{20}  \$0.00 of \$1.50 today$", shown, re.MULTILINE)


def test_the_same_is_told_without_bars_elsewhere(told: Om) -> None:
    assert "day_cost      $0.00 of $1.50 today\n" in told("status", env=LIMITED).stdout
    used = {each["name"]: each for each in told("status", "--json", env=LIMITED).document["usage"]}
    rows = sum(row["tokens"] for row in told("log", "--kind", "observation", "--jsonl").lines)
    assert used["to fold"] == {
        "name": "to fold", "used": rows, "most": 100, "unit": "tokens", "of": "in the last session",
    }  # fmt: skip


def test_messages_wait_for_a_model_up_to_a_number_of_tokens(om: Om) -> None:
    """Rules observe any number, so there is no limit to tell of."""
    om("observe", "--later", "-q", stdin=tide_story().text())
    model = {"OM_OBSERVER_PROVIDER": "ollama", "OM_OBSERVER_MODEL": "m"}
    by_model, by_rules = (om("status", "--json", env=env).document["usage"] for env in (model, {}))
    assert by_model[0]["name"] == "to observe"
    assert by_model[0]["used"] > 0
    assert "to observe" not in {each["name"] for each in by_rules}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        pytest.param("backup", r"copying memory.db · \d+ of \d+ pages", marks=pytest.mark.file_store("its copies")),
        pytest.param(
            "restore --yes",
            r"copying memory.db · \d+ of \d+ pages.*restoring memory.db\S+.bak · \d+ of \d+ pages",
            marks=pytest.mark.file_store("its copies"),
        ),
        pytest.param(
            "doctor --thorough", r"checking integrity · \d+ of \d+ checks", marks=pytest.mark.file_store("damage")
        ),
        ("reflect --global --again --min-age 1d", r": reflecting on \d+ rows"),
    ],
)
def test_a_person_sees_how_far_the_work_is_and_a_pipe_gets_nothing(told: Om, line: str, shown: str) -> None:
    if told.url is None:
        told("backup")
    assert not re.search(shown, told(*line.split()).stderr)
    assert re.search(shown, answering(told, *line.split(), answers=[])[1], re.DOTALL)


def test_a_person_sees_how_far_an_export_and_an_import_are(om: Om) -> None:
    lines = "".join(f'{{"role": "user", "content": "tide {number}"}}\n' for number in range(1100))
    om("observe", "--later", "-q", "--session", "s", stdin=lines)
    file = om.folder / "all.jsonl"
    assert "all.jsonl: 1000 lines" in answering(om, "export", "--to", "jsonl", str(file), answers=[])[1]
    assert "all.jsonl: 1000 lines" in answering(om, "import", str(file), "--db", str(om.folder / "b.db"), answers=[])[1]
