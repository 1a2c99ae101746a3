"""`om export --to jsonl` and `om import`: one memory on several machines, without loss and without doubles."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Ended
from tests.conftest import Om
from tests.e2e.contents import Place, connected, contents, copy, exists, stored
from tests.soak import first_only

STORIES = Path(__file__).parents[1] / "stories"
NAMES = (
    "claude_code_refactor.jsonl", "codex_release.jsonl", "pi_bugfix.jsonl", "gemini_calendar.jsonl",
    "copilot_queue.jsonl",
)  # fmt: skip


class Machines:
    """Stores of several machines, which share a clock but nothing else, and each have their own user."""

    def __init__(self, om: Om, new_om: Callable[[], Om]) -> None:
        self.om = om
        self._new_om = new_om
        self._servers: dict[str, Place] = {}
        self._minute = 0

    def place(self, machine: str) -> Place:
        if self.om.url is None:
            return self.path(machine)
        if machine not in self._servers:
            self._servers[machine] = self._new_om().place
        return self._servers[machine]

    def path(self, machine: str) -> Path:
        return self.om.folder / f"{machine}.db"

    def __call__(self, machine: str, *words: str | Path, code: int | None = 0, stdin: str = "") -> Ended:
        self._minute += 1
        now = f"2026-06-01T{self._minute // 60:02}:{self._minute % 60:02}:00Z"
        env = {"OM_AUTHOR": f"user of {machine}"}
        ended = self.om(*words, "--db", self.place(machine), "--now", now, code=code, stdin=stdin, env=env)
        assert "Traceback" not in ended.stderr
        return ended

    def observe(self, machine: str, name: str, lines: int | None = None) -> None:
        """Observe a story, or its first lines."""
        said = (STORIES / name).read_text().splitlines(keepends=True)[:lines]
        self(machine, "observe", self.om.write(name, "".join(said)))

    def exported(self, machine: str) -> str:
        return self(machine, "export", "--to", "jsonl").stdout

    def take_in(self, machine: str, text: str) -> str:
        """Import what another machine exported; return what is said about it."""
        return self(machine, "import", "-", stdin=text).stderr

    def reflect(self, machine: str) -> None:
        """Fold the rows of every session."""
        for session in json.loads(self(machine, "sessions", "--json").stdout)["sessions"]:
            self(machine, "reflect", "--session", session["id"])

    def rows(self, machine: str, *words: str) -> list[dict[str, Any]]:
        return self(machine, "log", "--jsonl", *words).lines

    def texts(self, machine: str) -> list[str]:
        return [row["text"] for row in self.rows(machine)]

    def exchange(self) -> tuple[str, str]:
        """Two machines import each other's memory. Return what they export then."""
        one, other = self.exported("a"), self.exported("b")
        self.take_in("a", other)
        self.take_in("b", one)
        return self.exported("a"), self.exported("b")


@pytest.fixture
def machines(om: Om, new_om: Callable[[], Om]) -> Machines:
    return Machines(om, new_om)


def check(machines: Machines, machine: str) -> None:
    """The file is sound, and every message that the cursor has passed is covered by a batch, or waits as a late one."""
    contents(machines.place(machine))
    with connected(machines.place(machine)) as connection:
        uncovered = connection.execute(
            "SELECT m.seq FROM messages AS m JOIN cursors AS c ON c.session = m.session AND c.lane = 'observe'"
            " WHERE m.seq <= c.covers_up_to AND m.seq NOT IN (SELECT message FROM passed_over) AND NOT EXISTS"
            " (SELECT 1 FROM batches AS b WHERE b.session = m.session AND b.outcome IN ('observed', 'empty')"
            " AND b.after < m.seq AND m.seq <= b.through)"
        )
        assert not uncovered.fetchall()


# ---- lossless


def test_a_new_store_exports_what_it_imported_to_the_byte(machines: Machines) -> None:
    """Messages, rows, reflections, what is pruned, forgotten and deleted, and what was undone."""
    for name in NAMES:
        machines.observe("a", name)
    machines("a", "note", "We ship on Friday.")
    machines("a", "reflect", "--global")
    machines.reflect("a")
    machines("a", "prune", "--keep-last", "5")
    machines("a", "undo")
    machines("a", "forget", machines.rows("a")[3]["id"])
    machines("a", "forget", machines.rows("a")[5]["id"], "--hard", "--yes")
    machines("a", "prune", "--raw", "--older-than", "30d")
    text = machines.exported("a")
    kinds = {json.loads(line)["record"] for line in text.splitlines()}
    assert kinds == {"memory", "session", "operation", "message", "row", "erased", "end"}

    machines.take_in("b", text)
    assert machines.exported("b") == text
    check(machines, "b")
    for words in (("log", "--all", "--jsonl"), ("items", "--json"), ("history",)):
        assert machines("b", *words).stdout == machines("a", *words).stdout, words
    assert "nothing new" in machines.take_in("b", text)
    assert machines.exported("b") == text


def test_what_is_observed_later_goes_on_from_there(machines: Machines) -> None:
    """S0.15: nothing is observed twice, and a pack is the same as without the move."""
    name = "claude_code_refactor.jsonl"
    machines.observe("a", name, 20)
    machines.take_in("b", machines.exported("a"))
    machines.observe("a", name)
    machines.observe("b", name)
    assert machines.texts("b") == machines.texts("a")
    packs = [machines(machine, "context", "--budget", "2000").stdout for machine in "ab"]
    assert packs[0] == packs[1] != ""


def test_pending_messages_are_pending_there(machines: Machines) -> None:
    text = '{"role": "user", "content": "We decided to keep the lamps on until six."}\n'
    machines("a", "observe", "--session", "s", "--observer", "agent", "-", stdin=text, code=78)
    machines.take_in("b", machines.exported("a"))
    status = json.loads(machines("b", "status", "--json").stdout)
    assert status["pending"] == 1
    machines("b", "observe", "--session", "s", "-", stdin=text)
    assert any("lamps" in each for each in machines.texts("b"))
    check(machines, "b")


def test_work_on_all_sessions_is_no_session_of_the_memory(machines: Machines) -> None:
    machines("a", "note", "We ship on Friday.")
    machines("a", "consolidate")
    text = machines.exported("a")
    machines("b", "import", "--strict", "-", stdin=text)
    assert machines.exported("b") == text


def test_from_process_to_process(machines: Machines) -> None:
    """Through a pipe, as from another machine; a reader that goes away ends it quietly."""
    machines.observe("a", "claude_code_refactor.jsonl")
    om = machines.om
    text = om.process("export", "--to", "jsonl", "--db", machines.place("a")).stdout
    assert "new rows" in om.process("import", "-", "--db", machines.place("b"), stdin=text).stderr
    assert om.process("export", "--to", "jsonl", "--db", machines.place("b")).stdout == text
    with om.start("export", "--to", "jsonl", "--db", machines.place("a")) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


# ---- two machines


def test_two_machines_that_saw_the_same_have_it_once(machines: Machines) -> None:
    """The earlier observation of a message counts, also where one machine had seen less of the session."""
    machines.observe("a", "claude_code_refactor.jsonl", 12)
    machines.observe("b", "claude_code_refactor.jsonl")
    machines.observe("a", "codex_release.jsonl")
    machines.observe("b", "pi_bugfix.jsonl")
    seen = [{(row["session"], row["text"]) for row in machines.rows(machine)} for machine in "ab"]
    one, other = machines.exchange()
    assert one == other
    together = [(row["session"], row["text"]) for row in machines.rows("a")]
    assert len(together) == len(set(together)) < len(seen[0]) + len(seen[1])
    assert set(together) <= seen[0] | seen[1]
    assert sorted(together) == sorted((row["session"], row["text"]) for row in machines.rows("b"))
    for machine in "ab":
        check(machines, machine)
        assert json.loads(machines(machine, "status", "--json").stdout)["pending"] == 0


def test_a_reflection_of_what_was_seen_twice_is_there_once(machines: Machines) -> None:
    for machine in "ab":
        machines.observe(machine, "claude_code_refactor.jsonl")
        machines.reflect(machine)
    alone = sorted(machines.texts("a"))
    one, other = machines.exchange()
    assert one == other
    assert sorted(machines.texts("a")) == sorted(machines.texts("b")) == alone


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_row_is_replaced_by_one_of_another_machine_whichever_comes_first(machines: Machines, first: str) -> None:
    """A third machine stores the rows of one after those of the other, in an order that chance has chosen."""
    second = "b" if first == "a" else "a"
    machines(first, "note", "old")
    machines.take_in(second, machines.exported(first))
    (old,) = machines.rows(second)
    machines(second, "note", "new", "--resolves", old["id"])
    machines.take_in("c", machines.exported(second))
    (added,) = machines("c", "diff", "--since", "2026-06-01T00:02Z", "--json").document["added"]
    assert (added["text"], [row["text"] for row in added["replaces"]]) == ("new", ["old"])


def test_two_folds_of_the_same_rows_leave_the_earlier(machines: Machines) -> None:
    machines.observe("a", "claude_code_refactor.jsonl")
    machines.take_in("b", machines.exported("a"))
    for machine in "ab":
        machines.reflect(machine)
    folded = sorted(machines.texts("a"))
    one, other = machines.exchange()
    assert one == other
    assert sorted(machines.texts("a")) == sorted(machines.texts("b")) == folded


def test_what_one_forgot_the_other_forgets(machines: Machines) -> None:
    """Also what only the other has, and for good if it was deleted; and it comes back on both when undone."""
    machines("a", "note", "begin")
    for machine in "ab":
        machines(machine, "observe", "--session", f"s{machine}", "-", stdin=_said("The harbour code is MARIGOLD-4711."))
    machines("a", "forget", "--match", "The harbour code is MARIGOLD-4711")
    machines.take_in("b", machines.exported("a"))
    assert not any("MARIGOLD" in text for text in machines.texts("b"))
    machines("a", "undo")
    machines.take_in("b", machines.exported("a"))
    assert sum("MARIGOLD" in text for text in machines.texts("b")) == 2
    machines("a", "forget", "--match", "The harbour code is MARIGOLD-4711", "--hard", "--yes")
    one, other = machines.exchange()
    assert one == other
    assert "MARIGOLD" not in one
    for machine in "ab":
        assert b"MARIGOLD" not in stored(machines.place(machine))
        check(machines, machine)


def test_undo_takes_back_the_latest_wherever_it_was_done(machines: Machines) -> None:
    for machine in "ab":
        machines(machine, "note", f"note of {machine}")
        machines(machine, "forget", "--match", f"note of {machine}")
    machines.take_in("b", machines.exported("a"))
    assert machines.texts("b") == []
    machines("b", "undo")
    assert machines.texts("b") == ["note of b"]
    machines("b", "undo")
    assert sorted(machines.texts("b")) == ["note of a", "note of b"]


def test_an_undo_by_a_slow_clock_is_one_everywhere(machines: Machines) -> None:
    """By the times, it comes before what it undoes."""
    machines.observe("a", "pi_bugfix.jsonl")
    machines("a", "prune", "--keep-last", "1")
    machines.take_in("b", machines.exported("a"))
    machines.om("undo", "--db", machines.place("b"), "--now", "2026-05-01")
    assert len(machines.rows("b")) > 1
    machines.take_in("c", machines.exported("b"))
    machines.take_in("a", machines.exported("c"))
    assert machines.exported("a") == machines.exported("b") == machines.exported("c")
    assert machines.rows("a") == machines.rows("c")


def test_deleted_rows_do_not_come_back(machines: Machines) -> None:
    machines.observe("a", "claude_code_refactor.jsonl")
    before = machines.exported("a")
    machines("a", "prune", "--keep-last", "2", "--hard", "--yes")
    after = machines.exported("a")
    machines.take_in("a", before)
    assert machines.exported("a") == after
    machines.take_in("b", before)
    machines.take_in("b", after)
    assert machines.exported("b") == after


def _whole(lines: Iterable[str]) -> str:
    """Lines with the last one of an export, which has their number."""
    above = list(lines)
    number = sum(1 for line in above if line.strip())
    return "".join([*above, f"{json.dumps({'record': 'end', 'lines': number})}\n"])


def _said(*texts: str) -> str:
    return "".join(f"{json.dumps({'role': 'user', 'content': text})}\n" for text in texts)


# ---- input that is not as it should be


def refused(machines: Machines, lines: Iterable[str]) -> str:
    """Import lines into a new store, of which nothing may be stored. Return the complaint."""
    ended = machines("c", "import", "-", stdin="".join(lines), code=65)
    assert ended.stderr.count("om: error") == 1
    assert "hint" in ended.stderr
    assert not exists(machines.place("c")) or machines.exported("c") == machines.exported("empty")
    return ended.stderr


def test_with_a_line_that_is_no_record_nothing_is_stored(machines: Machines) -> None:
    machines.observe("a", "pi_bugfix.jsonl")
    lines = machines.exported("a").splitlines(keepends=True)
    bad = ["{\n", "[1]\n", '{"record":"row"}\n', '{"record":"spell"}\n', '{"record":["row"]}\n']
    for kind in {json.loads(line)["record"]: line for line in lines[1:-1]}.values():
        record = json.loads(kind)
        bad.append(f"{json.dumps({key: value if key == 'record' else {} for key, value in record.items()})}\n")
    bad.append(lines[-2].replace('{"record":"row"', '{"record":"row","metadata":{"x":NaN}'))
    assert "NaN" in bad[-1]
    for line in bad:
        assert f"line {len(lines)} is not a record" in refused(machines, _whole([*lines[:-1], line]))
    assert machines.take_in("c", _whole([*lines[:-1], "\n"])).startswith("-: 1 new session")


def test_lines_in_another_order_are_refused(machines: Machines) -> None:
    """What a line names must be above it."""
    machines.observe("a", "pi_bugfix.jsonl")
    first, *lines, end = machines.exported("a").splitlines(keepends=True)
    assert "not in its place" in refused(machines, [first, *reversed(lines), end])
    assert "did not write it" in refused(machines, sorted([first, *lines, end]))


@pytest.mark.parametrize("depth", [30, 300, 100_000])
def test_a_file_may_be_nested_as_deeply_as_it_likes_and_its_text_broken(machines: Machines, depth: int) -> None:
    machines("a", "note", "We ship on Friday.")
    first, *_, line, _ = machines.exported("a").splitlines()
    row, deep = json.loads(line), '{"a":' * depth + "1" + "}" * depth
    broken = json.dumps({**row, "dropped_at": row["observed_at"], "reason": "half \ud800"})
    for bad in (broken, json.dumps({**row, "metadata": "deep"}).replace('"deep"', deep)):
        assert "line 3 is not a record" in refused(machines, _whole(f"{each}\n" for each in (first, line, bad)))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "did not write it"),
        ("hello\n", "did not write it"),
        ('{"record":"row"}\n', "did not write it"),
        ('{"record":"memory","version":2}\n', "a later version of om wrote it"),
        ('{"record":"memory","version":0}\n', "did not write it"),
        ('{"record":"memory","version":true}\n', "did not write it"),
        ('{"record":"memory"}\n', "did not write it"),
    ],
)
def test_a_file_that_om_did_not_write_is_refused_whole(machines: Machines, text: str, complaint: str) -> None:
    ended = machines("a", "import", "-", stdin=text, code=65)
    assert complaint in ended.stderr
    assert ended.stderr.count("om: error") == 1
    assert "hint" in ended.stderr
    assert not exists(machines.place("a"))


def test_of_a_file_that_is_not_whole_nothing_is_stored(machines: Machines) -> None:
    """Messages would count as observed, and their rows be missing."""
    machines.observe("a", "pi_bugfix.jsonl")
    lines = machines.exported("a").splitlines(keepends=True)
    for part in (lines[:-1], [*lines[:-1], lines[-1][:12]], [*lines[:-2], lines[-1]], lines[:2], [*lines, *lines]):
        refused(machines, part)


def test_secrets_in_a_file_are_not_stored(machines: Machines) -> None:
    machines("a", "observe", "--session", "s", "-", stdin=_said("The key is NAME, and we use port 8080."))
    secret = "ghp_" + "a1B2" * 9
    said = machines.take_in("b", machines.exported("a").replace("NAME", secret))
    assert "redacted" in said
    assert secret not in machines.exported("b")
    assert secret.encode() not in stored(machines.place("b"))


def test_secrets_in_any_words_of_a_record_are_not_stored(machines: Machines) -> None:
    """Titles that were forgotten, reasons and tags too, and what an operation says of itself."""
    machines.observe("a", NAMES[0])
    machines("a", "note", "The harbour is closed.", "--tag", "harbour")
    machines("a", "note", "It is open again.", "--resolves", machines.rows("a")[-1]["id"])
    machines.reflect("a")
    records = [json.loads(line) for line in machines.exported("a").splitlines()]
    secret = "ghp_" + "a1B2" * 9
    said = f"the key is {secret}"
    session = next(each["id"] for each in records if each["record"] == "session")
    words: dict[str, dict[str, Any]] = {
        "session": dict.fromkeys(("agent", "branch", "title", "model"), said),
        "operation": {"fingerprint": secret, "error": said, "figures": {"note": said, secret: 1}},
        "message": dict.fromkeys(("text", "name", "tool"), said),
        "row": {**dict.fromkeys(("text", "reason", "refers_to"), said), "tags": [secret], "metadata": {"path": said}},
    }
    for each in records[1:-1]:
        each.update(words.get(each["record"], {}))
        if each["record"] == "operation":
            each["titles"] = [[session, said]]
        if each["record"] == "message":
            each["images"] = [{"media_type": said, "size": 1, "sha256": "0" * 64}]
        if each.get("successors"):
            each["successors"] = [[of, said] for of, _ in each["successors"]]
    machines.take_in("b", "".join(f"{json.dumps(each)}\n" for each in records))
    assert secret not in machines.exported("b")
    assert secret.encode() not in stored(machines.place("b"))


def test_a_part_of_the_memory_is_not_exported_as_all_of_it(machines: Machines) -> None:
    machines("a", "note", "We ship on Friday.")
    for words in (("--session", "s"), ("--project", "."), ("--since", "1d"), ("--last", "3"), ("--all",)):
        assert "the whole memory" in machines("a", "export", "--to", "jsonl", *words, code=2).stderr
    assert "needs a format" in machines("a", "import", "--session", "s", "-", code=2).stderr


def test_a_report_in_json_and_a_file_that_is_missing(machines: Machines) -> None:
    machines("a", "note", "We ship on Friday.")
    file = machines.om.write("a.jsonl", machines.exported("a"))
    report = json.loads(machines("b", "import", file, "missing.jsonl", "--json").stdout)
    assert report["files"][0]["new"] == {"row": 1}
    assert report["files"][1]["error"]["slug"] == "no-input"
    assert "no such file" in machines("b", "import", "missing.jsonl", code=66).stderr


@pytest.mark.file_store("its copies")
def test_a_backup_is_made_first(machines: Machines) -> None:
    machines("a", "note", "We ship on Friday.")
    machines("b", "note", "We ship on Monday.")
    machines.take_in("b", machines.exported("a"))
    assert list(machines.om.folder.glob("b.db.*.bak"))


# ---- anything, in any order


STEPS = ("observe",) * 5 + ("reflect",) * 3 + ("undo", "import") * 2 + ("note", "forget", "prune", "raw", "hard", "all")


def step(machines: Machines, chance: random.Random) -> None:
    """Do something on one of two machines. What is refused changes nothing."""
    machine, other = chance.sample("ab", 2)
    what = chance.choice(STEPS)
    if what == "observe":
        machines.observe(machine, chance.choice(NAMES), chance.randrange(3, 60))
    elif what == "import":
        machines.take_in(machine, machines.exported(other))
    else:
        machines(machine, *words_of(what, machines, machine, chance), code=None)


def words_of(what: str, machines: Machines, machine: str, chance: random.Random) -> tuple[str, ...]:
    """A command line for this."""
    rows = [row["id"] for row in machines.rows(machine)] or ["none"]
    sessions = [each["id"] for each in json.loads(machines(machine, "sessions", "--json").stdout)["sessions"]] or ["s"]
    hard = ("--hard", "--yes") if chance.random() < 0.3 else ()
    word = chance.choice((("--match", "note"), ("--match", "test"), ("--match", "the"), (chance.choice(rows),)))
    at = (str(chance.randrange(1, 5)),) if chance.random() < 0.3 else ()
    preset = chance.choice(("zora", "default", "lango"))
    return {
        "note": ("note", f"note {chance.randrange(5)} about things", *(("--session", "s") if at else ())),
        "forget": ("forget", *word, *hard),
        "prune": ("prune", "--keep-last", str(chance.randrange(1, 6)), *hard),
        "raw": ("prune", "--raw", "--older-than", "30d", *hard),
        "reflect": ("reflect", "--session", chance.choice(sessions), "--preset", preset),
        "all": ("reflect", "--global"),
        "undo": ("undo", *at),
        "hard": ("prune", "--hard", "--yes"),
    }[what]


@pytest.mark.parametrize("number", first_only(range(40)))
def test_whatever_two_machines_do_they_end_up_with_one_memory(
    machines: Machines, chance: random.Random, number: int
) -> None:
    """Exports are equal, import changes nothing more, and a third machine gets the same."""
    machines("a", "note", "begin")
    if number % 3 == 0:  # a store that was copied to another machine, and then changed on both
        copy(machines.place("a"), machines.place("b"))
    machines("b", "note", "begin as well")
    for _ in range(chance.randrange(6, 20)):
        step(machines, chance)
    one, other = machines.exchange()
    assert one.splitlines() == other.splitlines()
    assert "nothing new" in machines.take_in("a", other)
    machines.take_in("c", one)
    assert machines.exported("c").splitlines() == one.splitlines() == machines.exported("a").splitlines()
    for machine in "abc":
        check(machines, machine)


@pytest.mark.file_store("its path")
def test_an_export_never_takes_the_place_of_the_store(machines: Machines) -> None:
    """Nor of a file beside it that belongs to it, by whatever name."""
    machines("a", "note", "We ship on Friday.")
    machines("a", "backup")
    store, link = machines.path("a"), machines.om.folder / "link"
    link.symlink_to(store)
    before = {path: path.read_bytes() for path in store.parent.glob("a.db*")}
    assert len(before) > 1
    for path in (*before, link, Path(f"{store}-wal")):
        for name in ("jsonl", "markdown", "pi"):
            assert "belongs to the store" in machines("a", "export", "--to", name, path, code=2).stderr
    assert {path: path.read_bytes() for path in before} == before


def test_a_file_stays_what_it_was_until_the_export_is_whole(machines: Machines) -> None:
    """The same holds for its mode, and for a link to it."""
    machines("a", "note", "We ship on Friday.")
    file, link = machines.om.folder / "all.jsonl", machines.om.folder / "all"
    file.write_text("earlier\n")
    file.chmod(0o640)
    link.symlink_to(file)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    words = ["export", "--to", "jsonl", "--db", str(machines.place("a")), str(link)]
    code = f"{limit}import sys; sys.argv = ['om', *{words!r}]; from omcli.__main__ import main; sys.exit(main())"
    full = subprocess.run(
        [sys.executable, "-c", code], env=machines.om.environment(), capture_output=True, text=True, check=False
    )
    assert (full.returncode, full.stderr.count("om: error")) == (74, 1), full.stderr
    assert file.read_text() == "earlier\n"
    machines("a", "export", "--to", "jsonl", link)
    assert file.read_text() == machines.exported("a")
    assert file.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert {path.name for path in machines.om.folder.glob(".all*")} == set()


def test_a_store_can_be_written_while_an_import_waits_for_its_input(machines: Machines) -> None:
    machines("a", "observe", "-", "--later", stdin=_said("The gauge is broken. " * 20_000))
    text = machines.exported("a")
    assert len(text) > 400_000  # more than a pipe holds: once all but the end is written, the import is reading
    waiting = subprocess.Popen(
        machines.om.command("import", "-", "--db", machines.place("b")),
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=machines.om.environment(),
    )  # fmt: skip
    assert waiting.stdin is not None
    waiting.stdin.write(text[:-30])
    waiting.stdin.flush()
    machines("b", "note", "We ship on Friday.", "--wait", "0")
    _, told = waiting.communicate(text[-30:])
    assert waiting.returncode == 0, told
    assert len(machines.exported("b").splitlines()) == len(text.splitlines()) + 1
