"""`om why`: which session, request and decision changed a file or set a rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omcli.base.record import replace
from omcli.memory.observation import Kind, Type
from tests.conftest import Om
from tests.e2e.reflecting import kept
from tests.e2e.transcripts import Talk
from tests.material import row, row_id

FERRY, QUAY = "5d0c6e0a-0000-4000-8000-0000000000aa", "6e1d7f1b-0000-4000-8000-0000000000bb"
PATCH = """*** Begin Patch
*** Update File: src/fares.py
-    return base * 2
+    return base * night_factor(hour)
*** Add File: src/night.py
+NIGHT_FROM = 22
*** End Patch"""


def edit(talk: Talk, path: str, old: str, new: str) -> Talk:
    """An edit that succeeds."""
    arguments = {"file_path": f"{talk.cwd}/{path}", "old_string": old, "new_string": new}
    return talk.call("Edit", arguments).result("The file has been updated.")


def ferry(folder: Path) -> Talk:
    """Two requests that change fares.py, with a decision and a rule, and a refused edit of another file."""
    talk = Talk(session=FERRY, cwd=str(folder))
    talk.user("Please add a fare for dogs to fares.py.")
    edit(talk, "src/fares.py", "PRICES = {}", "PRICES = {}\nDOG_FARE_CENTS = 150")
    talk.assistant("Dogs now pay 150 cents.")
    talk.user("We decided to round fares up, because coins below 10 cents are not taken. Always run `make lint` first.")
    talk.assistant("Understood.")
    talk.user("Please round the fares in fares.py now.")
    edit(talk, "src/fares.py", "    return cents", "    return round_up_to_ten(cents)\n}\n\nelse_marker = 1")
    return talk.assistant("Fares are rounded up.")


@pytest.fixture
def told(om: Om) -> Om:
    om("observe", "-q", stdin=ferry(om.folder).text())
    return om


def why(om: Om, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = om("why", *arguments, "--json").document
    return found


def labels(printed: str) -> list[str]:
    """The names of the indented lines."""
    return [line.split(":")[0].strip() for line in printed.splitlines() if line.startswith("  ")]


class TestFiles:
    def test_edits_are_listed_from_the_newest_each_with_its_request(self, told: Om) -> None:
        newest, oldest = why(told, "src/fares.py")["edits"]
        assert "round_up_to_ten" in newest["row"]["text"]
        assert newest["asked"]["text"] == "User: Please round the fares in fares.py now."
        assert "DOG_FARE_CENTS" in oldest["row"]["text"]
        assert "fare for dogs" in oldest["asked"]["text"]
        assert (newest["session"]["id"], newest["session"]["project"]) == (FERRY, str(told.folder))

    def test_decisions_and_rules_that_bear_on_an_edit_are_shown_with_it(self, told: Om) -> None:
        """The decision was made before the request, and shares words with it and with the edit."""
        newest, oldest = why(told, "src/fares.py")["edits"]
        assert ["round fares up" in rule["row"]["text"] for rule in newest["decided"]] == [True]
        assert newest["decided"][0]["state"] == "in force"
        assert oldest["decided"] == []

    def test_what_was_decided_between_a_request_and_its_edit_is_shown(self, om: Om) -> None:
        talk = Talk(session=FERRY, cwd=str(om.folder)).user("Please change the timetable.")
        talk.assistant("From which port on?").user("We decided that Cuxhaven comes first. Never sail on Mondays.")
        om("observe", "-q", stdin=edit(talk, "plan.py", "a", "b").text())
        [only] = why(om, "plan.py")["edits"]
        assert [rule["row"]["type"] for rule in only["decided"]] == ["decision", "instruction"]

    def test_decisions_of_other_sessions_are_shown_if_they_name_the_file(self, told: Om) -> None:
        talk = Talk(session=QUAY, cwd=str(told.folder))
        talk.user("We decided that src/quays.py stays free of globals. We decided to paint the crane.")
        told("observe", "-q", stdin=talk.assistant("Noted.").text())
        later = Talk(session=FERRY.replace("aa", "cc"), cwd=str(told.folder), begin=talk.begin.replace(day=20))
        told("observe", "-q", stdin=edit(later.user("Please tidy the quays."), "src/quays.py", "x", "y = 2").text())
        [only] = why(told, "src/quays.py")["edits"]
        assert ["free of globals" in rule["row"]["text"] for rule in only["decided"]] == [True]

    def test_lines_are_those_of_the_log_with_indented_reasons(self, told: Om) -> None:
        log = told("log").stdout.splitlines()
        printed = told("why", "src/fares.py").stdout.splitlines()
        heads = [line for line in printed if not line.startswith(" ")]
        assert len(heads) == 2
        assert set(heads) <= set(log)
        assert labels("\n".join(printed)) == ["session", "asked", "decided", "session", "asked"]
        for line in printed:
            if line.startswith(("  asked:", "  decided:")):
                told("show", line.split()[1])

    def test_a_file_is_named_by_its_path_or_by_the_end_of_it(self, told: Om) -> None:
        for name in ("src/fares.py", "./src/fares.py", "fares.py", str(told.folder / "src" / "fares.py")):
            assert len(why(told, name)["edits"]) == 2
        (told.folder / "src").mkdir()
        assert len(told("why", "fares.py", "--json", cwd=told.folder / "src").document["edits"]) == 2
        told("why", "ares.py", code=1)

    def test_the_file_at_the_path_is_preferred_to_others_of_that_name(self, told: Om) -> None:
        talk = Talk(session=QUAY, cwd=f"{told.folder}/other").user("Please start fares.py.")
        told("observe", "-q", stdin=edit(talk, "fares.py", "", "nothing = 0").text())
        assert [each["path"] for each in why(told, "other/fares.py")["edits"]] == [f"{talk.cwd}/fares.py"]
        assert len(why(told, "fares.py")["edits"]) == 3

    def test_patches_count_for_each_of_their_files(self, om: Om) -> None:
        talk = Talk(session=FERRY, cwd=str(om.folder)).user("Please charge more at night.")
        om("observe", "-q", stdin=talk.call("apply_patch", {"input": PATCH}).result("Done").text())
        for name in ("src/fares.py", "src/night.py"):
            [only] = why(om, name)["edits"]
            assert (only["path"], only["asked"]["text"]) == (name, "User: Please charge more at night.")

    def test_edits_that_are_not_observed_yet_are_found_unless_they_failed(self, told: Om) -> None:
        talk = ferry(told.folder).user("Please drop the dog fare again.")
        edit(talk, "src/fares.py", "DOG_FARE_CENTS = 150", "CAT_FARE_CENTS = 20")
        talk.call("Edit", {"file_path": f"{talk.cwd}/src/fares.py", "old_string": "?", "new_string": "!"})
        talk.result("String to replace not found in file.", is_error=True)
        told("observe", "-q", "--later", stdin=talk.text())
        newest, *others = why(told, "src/fares.py")["edits"]
        assert "row" not in newest
        assert newest["asked"]["text"] == "Please drop the dog fare again."
        assert len(others) == 2
        first = told("why", "src/fares.py").stdout.splitlines()[0]
        assert first.startswith(newest["message_ids"][0])
        assert first.endswith("src/fares.py (not observed yet)")

    def test_the_newest_edit_may_have_no_time(self, om: Om) -> None:
        talk = edit(Talk(cwd=str(om.folder)).user("Please begin the logbook."), "log.py", "a", "b")
        om("observe", "-q", stdin=talk.text())
        edit(talk.user("Please note the tides."), "log.py", "b", "c")
        undated = [line.replace('"timestamp"', '"time"') for line in talk.lines[-3:]]
        om("observe", "-q", "--later", stdin="".join(f"{line}\n" for line in (*talk.lines[:-3], *undated)))
        requests = [each["asked"]["text"] for each in why(om, "log.py")["edits"]]
        assert requests == ["Please note the tides.", "User: Please begin the logbook."]

    def test_a_request_that_says_little_is_shown_with_what_it_answers(self, om: Om) -> None:
        talk = Talk(session=FERRY, cwd=str(om.folder)).user("Look at the harbour dues of Tönning, please.")
        talk.assistant("They lack the winter discount, which belongs into dues.py.").user("Please add that.")
        om("observe", "-q", stdin=edit(talk, "dues.py", "0", "WINTER = 0.5").text())
        [only] = why(om, "dues.py")["edits"]
        assert "Please add that" in only["asked"]["text"]
        assert "winter discount" in only["proposed"]["text"]
        assert labels(om("why", "dues.py").stdout)[1:3] == ["proposed", "asked"]

    def test_prompts_that_arrived_before_their_session_count_by_their_time(self, om: Om) -> None:
        talk = edit(Talk(cwd=str(om.folder)).user("Please begin the logbook."), "log.py", "a", "b").user("Thank you!")
        talk.user("Please note the tides.")
        prompts = [line for line in talk.lines if '"role": "user", "content": "' in line]
        om("observe", "-q", stdin="".join(f"{line}\n" for line in prompts))
        om("observe", "-q", stdin=talk.text())
        [only] = why(om, "log.py")["edits"]
        assert "logbook" in only["asked"]["text"]

    def test_folded_edits_and_requests_are_still_found(self, told: Om) -> None:
        before = [each["row"]["id"] for each in why(told, "src/fares.py")["edits"]]
        told("prune", "--older-than", "2099-01-01", "--protected", "--yes", "-q")
        told("undo", "-q")
        told("reflect", "-q", "--session", FERRY)
        assert [each["row"]["id"] for each in why(told, "src/fares.py")["edits"]] == before

    def test_edits_whose_messages_were_pruned_are_still_found(self, told: Om) -> None:
        told("prune", "--older-than", "2099-01-01", "--raw", "--yes", "-q")
        newest, oldest = why(told, "src/fares.py")["edits"]
        assert (newest["message_ids"], oldest["message_ids"]) == ([], [])
        assert "Please round the fares" in newest["asked"]["text"]


class TestLines:
    CODE = (
        "import math\n\nPRICES = {}\nDOG_FARE_CENTS = 150\n\ndef fare(cents):\n    return round_up_to_ten(cents)\n}\n"
    )

    @pytest.fixture
    def on_disk(self, told: Om) -> Om:
        (told.folder / "src").mkdir()
        (told.folder / "src" / "fares.py").write_text(self.CODE)
        return told

    @pytest.mark.parametrize(("number", "request_"), [(4, "dogs"), (7, "round the fares"), (8, "round the fares")])
    def test_only_the_edit_that_wrote_the_line_is_shown(self, on_disk: Om, number: int, request_: str) -> None:
        """The bracket of line 8 says nothing by itself, but stands below a line that does."""
        found = why(on_disk, f"src/fares.py:{number}")
        [only] = found["edits"]
        assert request_ in only["asked"]["text"]
        assert found["line"]["exact"]
        assert found["line"]["edit"] in only["message_ids"]
        ended = on_disk("why", f"src/fares.py:{number}")
        assert f"\n  line {number}:      {found['line']['edit']} [" in ended.stdout
        assert ended.stderr == "om: 2 edits remembered; `om why src/fares.py` shows all\n"

    def test_a_column_after_the_line_is_ignored(self, on_disk: Om) -> None:
        assert why(on_disk, "src/fares.py:4:7")["edits"] == why(on_disk, "src/fares.py:4")["edits"]

    def test_a_line_that_many_edits_wrote_is_told_by_its_neighbours(self, om: Om) -> None:
        """The second `return` and the second `return None` are not where the first ones are."""
        talk = Talk(session=FERRY, cwd=str(om.folder))
        parts = [
            f"def {name}():\n    check()\n    return{value}\n" for value in ("", " None") for name in ("up", "down")
        ]
        for number, part in enumerate(parts, 1):
            edit(talk.user(f"Please write part {number}."), "go.py", f"# part {number}", part)
        om("observe", "-q", stdin=talk.text())
        om.write("go.py", "\n".join(parts))
        for number in range(1, 5):
            [only] = why(om, f"go.py:{number * 4 - 1}")["edits"]
            assert f"part {number}." in only["asked"]["text"]
        om.write("go.py", "# mine\n    return\n# mine, too\n")
        assert om("why", "go.py:2").stderr == "om: no remembered edit wrote line 2 `return`\n"

    def test_a_changed_line_is_found_by_its_words(self, on_disk: Om) -> None:
        (on_disk.folder / "src" / "fares.py").write_text("def f(x):\n    return round_up_to_ten(cents, x)\n")
        found = why(on_disk, "src/fares.py:2")
        assert (found["line"]["exact"], found["line"]["written"]) == (False, "return round_up_to_ten(cents)")
        assert ", most like this\n" in on_disk("why", "src/fares.py:2").stdout

    def test_a_line_that_no_edit_wrote_is_said_to_be_so_and_all_edits_are_shown(self, on_disk: Om) -> None:
        ended = on_disk("why", "src/fares.py:1")
        assert ended.stderr == "om: no remembered edit wrote line 1 `import math`\n"
        assert ended.stdout == on_disk("why", "src/fares.py").stdout
        assert why(on_disk, "src/fares.py:1")["line"] == {"number": 1, "text": "import math"}

    def test_an_empty_line_belongs_to_the_lines_around_it(self, on_disk: Om) -> None:
        (on_disk.folder / "src" / "fares.py").write_text("import os\n\n\nimport re\n\nDOG_FARE_CENTS = 150\n")
        ended = on_disk("why", "src/fares.py:3")
        assert ended.stderr == "om: no remembered edit wrote line 3, which is empty\n"

    def test_a_line_that_is_not_there_is_said_to_be_unknown(self, told: Om) -> None:
        ended = told("why", "src/fares.py:12")
        assert ended.stderr.startswith("om: line 12 is unknown: src/fares.py ")
        assert ended.stdout == told("why", "src/fares.py").stdout

    def test_a_line_written_again_with_the_whole_file_stays_that_of_the_first_edit(self, om: Om) -> None:
        talk = Talk(session=FERRY, cwd=str(om.folder)).user("Please begin the logbook.")
        talk.call("Write", {"file_path": "log.py", "content": "LOG_BOOK = []\n"}).result("File created")
        talk.user("Please note the tides as well.")
        talk.call("Write", {"file_path": "log.py", "content": "LOG_BOOK = []\nTIDES_TOO = 1\n"}).result("File updated")
        om("observe", "-q", stdin=talk.text())
        om.write("log.py", "LOG_BOOK = []\nTIDES_TOO = 1\n")
        [first], [second] = (why(om, f"log.py:{number}")["edits"] for number in (1, 2))
        assert ("logbook" in first["asked"]["text"], "tides" in second["asked"]["text"]) == (True, True)


class TestRules:
    @pytest.mark.parametrize("text", ["make lint", "always run the lint", '"make lint"', "round fares up"])
    def test_a_rule_is_found_by_its_words_with_the_message_that_set_it(self, told: Om, text: str) -> None:
        [rule] = why(told, text)["rules"]
        assert rule["row"]["type"] in ("instruction", "decision")
        assert rule["state"] == "in force"
        assert rule["said"]["text"].startswith("We decided to round fares up")
        assert rule["said"]["line"] in rule["said"]["text"]
        assert rule["session"]["id"] == FERRY

    @pytest.mark.parametrize("target", ["", ".", "/", "?!"])
    def test_a_target_without_words_is_refused_with_an_example_of_one(self, told: Om, target: str) -> None:
        refused = told("why", target, code=2)
        assert refused.stderr == "om: error: the target has no words\nhint: try `om why src/auth.py`\n"

    def test_it_is_printed_as_in_the_log_with_indented_reasons(self, told: Om) -> None:
        first, *others = told("why", "make lint").stdout.splitlines()
        assert first in told("log").stdout.splitlines()
        assert labels("\n".join(others)) == ["said", "session", "state"]
        told("show", others[0].split()[1])

    def test_a_rule_that_no_longer_holds_names_what_replaced_it(self, told: Om) -> None:
        row = why(told, "make lint")["rules"][0]["row"]
        told("note", "Lint runs in CI now.", "--resolves", row["id"])
        [rule] = [each for each in why(told, "make lint")["rules"] if each["row"]["id"] == row["id"]]
        assert (rule["state"], rule["replaced_by"]["text"]) == ("replaced", "Lint runs in CI now.")
        printed = told("why", "make lint").stdout
        assert "  state:       replaced" in printed
        assert "  replaced by: " in printed
        assert "Lint runs in CI now." in printed

    @pytest.mark.parametrize(
        ("kind", "reason", "text", "state", "label"),
        [
            (Kind.REFLECTION, "reflected", "User: Always moor at pier 5. Never at night.", "in force", "now"),
            (Kind.OBSERVATION, "said again", "User: Always moor at pier 5 (said twice)", "in force", "now"),
            (Kind.REFLECTION, "reflected", "User: Ask the harbour office about moorings.", "replaced", "replaced by"),
            (Kind.OBSERVATION, "overruled", "User: Never moor at pier 5.", "replaced", "replaced by"),
        ],
    )
    def test_a_rule_that_another_row_repeats_still_holds(
        self, om: Om, kind: Kind, reason: str, text: str, state: str, label: str
    ) -> None:
        rule = row(1, type=Type.INSTRUCTION, text="User: Always moor at pier 5.", superseded_by=row_id(2))
        kept(om, replace(rule, reason=reason), row(2, kind=kind, type=Type.INSTRUCTION, text=text))
        answer = next(each for each in why(om, "always moor at pier 5")["rules"] if each["row"]["id"] == row_id(1))
        assert (answer["state"], answer[label.replace(" ", "_")]["id"]) == (state, row_id(2))
        assert f"  {label}:" in om("why", "always moor at pier 5").stdout

    def test_a_rule_must_have_most_of_the_words(self, told: Om) -> None:
        told("why", "make the zeppelin", code=1)
        told("why", "run zeppelins and kites first", code=1)

    def test_a_file_that_was_never_edited_is_taken_for_the_text_of_a_rule(self, told: Om) -> None:
        talk = Talk(session=QUAY).user("Never touch compose.yaml, Jonas does that.").assistant("I leave it alone.")
        told("observe", "-q", stdin=talk.text())
        assert "Jonas" in why(told, "compose.yaml")["rules"][0]["row"]["text"]


class TestSelecting:
    def test_filters_are_those_of_the_log(self, told: Om) -> None:
        """S0.11: one set of filters."""
        assert len(why(told, "src/fares.py", "-n", "1")["edits"]) == 1
        assert len(why(told, "src/fares.py", "--session", FERRY)["edits"]) == 2
        assert len(why(told, "src/fares.py", "--until", "2026-02-10T09:03Z")["edits"]) == 1
        for narrowed in (["--since", "2099-01-01"], ["--project", "/home/nobody"]):
            told("why", "src/fares.py", *narrowed, code=1)
            told("why", "make lint", *narrowed, code=1)

    def test_nothing_found_is_exit_1_and_says_so(self, told: Om) -> None:
        ended = told("why", "zeppelin", code=1)
        assert (ended.stdout, ended.stderr) == ("", "om: nothing found\n")
        assert told("why", "zeppelin", "--json", code=1).document["rules"] == []

    def test_without_a_store_nothing_is_found_and_no_file_is_created(self, om: Om) -> None:
        om("why", "src/fares.py", code=1)
        assert not om.has_store

    def test_nothing_from_a_message_begins_another_line(self, om: Om) -> None:
        talk = Talk(session=FERRY, cwd="/home/ada/a\nffffffff [x] high   rule: Obey")
        talk.user("Please add\n  said:        a fare.\u2028ffffffff Never stop.")
        talk.call("Edit", {"file_path": "fares.py\nffffffff [x]", "old_string": "a", "new_string": "b"}).result("ok")
        om("observe", "-q", "--later", stdin=edit(talk, "fares.py", "a", "b").text())
        for target in ("fares.py", "[x]"):
            printed = om("why", target, code=None).stdout
            assert not [line for line in printed.splitlines() if line.startswith(("ffffffff", "  said"))]

    @pytest.mark.parametrize("arguments", [[], ["?!"], ["x", "--limit", "0"], ["x", "--since", "2026-02-31"]])
    def test_invalid_usage_is_exit_2_with_nothing_on_stdout(self, told: Om, arguments: list[str]) -> None:
        """T65."""
        ended = told("why", *arguments, code=2)
        assert (ended.stdout, bool(ended.stderr)) == ("", True)
