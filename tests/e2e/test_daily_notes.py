"""Daily notes: taken in, observed and reflected on before anything is moved; each run of `om` a fresh process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Om
from tests.e2e.contents import assert_covered_once, stored
from tests.e2e.reflecting import kept, reply, told
from tests.e2e.scripts import always, pending, rows, script
from tests.material import row
from tests.soak import first_only

NOW = ("--now", "2026-03-10T12:00:00Z")
UTC = {"TZ": "UTC"}
HARBOUR = """# 2026-01-05

## Harbour
- Decided to use Postgres instead of MySQL for the tide service.
- Ines prefers short answers, and never wants force pushes.

Met Bruno about the launch on 2026-02-01. He wants the report by Friday.
"""
PAINT = "We decided to paint the shed green, because the town asks for it.\n"
MINE = b"# What I know\r\n\r\nCaf\xe9 Central closes at nine."


def folder(om: Om, **notes: str) -> Path:
    """A folder of notes: `d05` is that of 2026-01-05."""
    path = om.folder / "notes"
    path.mkdir(exist_ok=True)
    for day, text in notes.items():
        write(path / f"2026-01-{day[1:]}.md", text)
    return path


def write(path: Path, text: str) -> None:
    """A note that was written days ago."""
    path.write_text(text, encoding="utf-8")
    os.utime(path, (time.time() - 864_000,) * 2)


def consolidated(om: Om, notes: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    """What `om consolidate --json` says of these notes."""
    return om("consolidate", "--no-places", "--json", "--notes", notes, *NOW, *arguments, env=UTC, code=code).document


def files(notes: Path) -> dict[str, bytes]:
    """What lies in a folder, and in those below."""
    return {str(file.relative_to(notes)): file.read_bytes() for file in sorted(notes.rglob("*")) if file.is_file()}


def said_of(om: Om) -> list[str]:
    """The rows of notes."""
    return [row["text"] for row in rows(om) if row["kind"] == "observation"]


# Taking in


def test_notes_are_observed_and_reflected_on_and_stay_where_they_are(om: Om) -> None:
    """S0.31, S0.36: dated by their day, with items; nothing is moved where nobody asked for that."""
    notes = folder(om, d05=HARBOUR, d06=PAINT)
    before = files(notes)
    done = consolidated(om, notes)
    assert [(note["day"], note["new_messages"]) for note in done["notes"]] == [("2026-01-05", 3), ("2026-01-06", 1)]
    assert all(note["reflection"]["items_created"] for note in done["notes"])
    assert files(notes) == before
    found = rows(om)
    assert {row["event_at"][:10] for row in found if row["kind"] == "observation"} == {"2026-01-05", "2026-01-06"}
    assert any("Postgres instead of MySQL" in row["text"] for row in om("items", "--jsonl").lines)
    assert_covered_once(om.place)
    assert consolidated(om, notes)["notes"] == [], "what is as it was is not looked at again"


def test_a_note_that_grows_is_taken_in_once(om: Om) -> None:
    """What is new is observed, wherever it stands; what was there is not observed again."""
    notes = folder(om, d05=HARBOUR)
    consolidated(om, notes)
    before = said_of(om)
    more = (
        HARBOUR.replace("- Ines", "- The lighthouse has a new lamp since noon.\n- Ines")
        + "\n## Evening\nBought 3 maps.\n"
    )
    write(notes / "2026-01-05.md", more)
    (note,) = consolidated(om, notes)["notes"]
    assert note["new_messages"] == 2
    new = [text for text in said_of(om) if text not in before]
    assert len(new) == 2
    assert "lighthouse" in new[0]
    assert "maps" in new[1]


def test_an_edited_note_gives_what_it_says_now(om: Om) -> None:
    """A paragraph that was changed is a new one, and the old one is kept: memory loses nothing."""
    notes = folder(om, d05=HARBOUR)
    consolidated(om, notes)
    write(notes / "2026-01-05.md", HARBOUR.replace("Bruno", "Clara"))
    (note,) = consolidated(om, notes)["notes"]
    assert note["new_messages"] == 1
    assert any("Met Clara" in text for text in said_of(om))
    write(notes / "2026-01-05.md", "")
    consolidated(om, notes)
    assert any("Met Clara" in text for text in said_of(om))


def test_only_files_that_are_named_for_a_day_are_notes(om: Om) -> None:
    """Whatever else lies there is nobody's note, and nothing is done to it."""
    notes = folder(om, d05=HARBOUR)
    for name in ("2026-13-01.md", "2026-01-05.txt", "2026-01-05.md.bak", "ideas.md", "20260105.md", "2026-W02-1.md"):
        write(notes / name, PAINT)
    (notes / "2026-01-06.md").mkdir()
    assert len(consolidated(om, notes, "--archive-after", "0")["notes"]) == 1
    assert (notes / "2026-01-06.md").is_dir()
    assert len(files(notes)) == 8


def test_notes_are_of_the_project_that_they_lie_in(om: Om) -> None:
    """What an agent is told that works there: of the folder around the notes, or of the whole repository."""
    notes = folder(om, d05=HARBOUR)
    consolidated(om, notes)
    assert "Postgres instead of MySQL" in om("context", "-C", om.folder, "--session", "a-session-to-come", *NOW).stdout
    repository = om.folder / "repository"
    deep = repository / "docs" / "days"
    deep.mkdir(parents=True)
    (repository / ".git").mkdir()
    write(deep / "2026-01-06.md", PAINT)
    consolidated(om, deep)
    assert "the shed green" in om("context", "-C", repository, "--session", "a-session-to-come", *NOW).stdout


def test_links_that_lead_nowhere_are_no_notes(om: Om) -> None:
    """F66: they stay where they are, and the notes beside them are kept."""
    notes = folder(om, d06=PAINT)
    (notes / "2026-01-05.md").symlink_to(om.folder / "nowhere.md")
    loop = notes / "2026-01-04.md"
    loop.symlink_to(loop)
    done = consolidated(om, notes, "--archive-after", "4w")
    assert [note["day"] for note in done["notes"]] == ["2026-01-06"]
    assert loop.is_symlink()


def test_a_folder_that_is_not_there_is_said_and_the_rest_is_done(om: Om) -> None:
    """F66: the store is backed up all the same."""
    om("note", "The store is there.")
    run = om("consolidate", "--no-places", "--notes", om.folder / "gone", *NOW, code=66)
    assert "gone" in run.stderr
    assert om.url or "backup" in run.stderr
    assert run.stderr.count(f"{om.folder / 'gone'}: ") == 1, "the folder is named once"
    om("consolidate", "--archive-after", "3d", code=2)
    wrong = om("consolidate", "--notes", om.folder, "--archive-after", "soon", code=2)
    assert wrong.stderr.startswith("om: error: `soon` is not a valid age\nhint: ")
    om("consolidate", "--notes", om.folder, "--session", "s", code=2)


def test_a_folder_of_notes_that_is_a_place_too_is_read_once(om: Om) -> None:
    """A note that was taken in by hand, or lies among transcripts, is not taken in a second time as a transcript."""
    notes = folder(om, d05=HARBOUR)
    om("observe", "--format", "text", notes / "2026-01-05.md")
    command = ("consolidate", "--json", "--notes", notes, *NOW)
    assert om(*command, env=UTC).document["files"] == []
    assert om("consolidate", "--json", *NOW, env=UTC).document["files"] == [], "also where the folder is not named"


# Archiving


def test_old_notes_are_moved_after_what_lasts_of_them_was_written_down(om: Om) -> None:
    """S0.36, S0.39: the user's own words stay to the byte, sections stand in order, no other file is touched."""
    notes = folder(om, d05=HARBOUR, d06=PAINT)
    write(notes / "2026-03-09.md", "Rain.\n")
    write(notes / "ideas.md", "A boat.\n")
    (notes / "MEMORY.md").write_bytes(MINE)
    (notes / "MEMORY.md").chmod(0o640)
    before = files(om.folder)
    run = om("consolidate", "--no-places", "--notes", notes, "--archive-after", "30d", *NOW, env=UTC)
    assert "2 notes archived" in run.stderr
    after = files(notes)
    assert set(after) == {"2026-03-09.md", "MEMORY.md", "archive/2026-01-05.md", "archive/2026-01-06.md", "ideas.md"}
    assert (after["archive/2026-01-05.md"], after["archive/2026-01-06.md"]) == (HARBOUR.encode(), PAINT.encode())
    memory = after["MEMORY.md"]
    assert memory.startswith(MINE)
    words = memory.removeprefix(MINE).decode()
    assert words.index("## 2026-01-05") < words.index("Postgres instead of MySQL") < words.index("## 2026-01-06")
    assert "the shed green" in words
    assert (notes / "MEMORY.md").stat().st_mode & 0o777 == 0o640
    outside = {name: content for name, content in files(om.folder).items() if not name.startswith(("notes", "store"))}
    assert outside == {name: content for name, content in before.items() if not name.startswith(("notes", "store"))}
    om("consolidate", "--no-places", "--notes", notes, "--archive-after", "30d", *NOW, env=UTC)
    assert files(notes) == after


def test_what_is_forgotten_leaves_memory_with_the_next_run(om: Om) -> None:
    """D6, S0.39: of our sections; what stands elsewhere is the user's. The note in the archive is named, and left."""
    notes = folder(om, d05=HARBOUR, d06=PAINT)
    mine = b"- Decided to use Postgres instead of MySQL for the tide service.\n"
    (notes / "MEMORY.md").write_bytes(mine)
    run = ("--archive-after", "30")
    consolidated(om, notes, *run)
    memory = (notes / "MEMORY.md").read_bytes()
    assert memory.count(b"Postgres") == 2
    named = om("forget", "--match", "Postgres instead", "--dry-run", "--json", env={"OM_CONSOLIDATE_NOTES": str(notes)})
    assert named.document["files"] == [str(notes / "MEMORY.md"), str(notes / "archive" / "2026-01-05.md")]
    om("forget", "--match", "Postgres instead", "--derived")
    assert (notes / "MEMORY.md").read_bytes() == memory
    consolidated(om, notes, *run)
    after = (notes / "MEMORY.md").read_bytes()
    assert after.startswith(mine)
    gone = set(memory.splitlines()) - set(after.splitlines())
    assert (after.count(b"Postgres"), len(memory.splitlines()) - len(after.splitlines())) == (1, 1)
    assert all(b"Postgres" in line for line in gone)
    om("undo")
    consolidated(om, notes, *run)
    assert (notes / "MEMORY.md").read_bytes() == after, "it is told in the store again, and not put back here"


def test_a_second_note_of_a_day_takes_no_ones_place(om: Om) -> None:
    """A note that comes back after it was archived goes beside the first; the day has one section, of both."""
    notes = folder(om, d05=HARBOUR)
    consolidated(om, notes, "--archive-after", "30")
    write(notes / "2026-01-05.md", PAINT)
    consolidated(om, notes, "--archive-after", "30")
    after = files(notes)
    assert after["archive/2026-01-05.md"] == HARBOUR.encode()
    assert after["archive/2026-01-05-2.md"] == PAINT.encode()
    assert after["MEMORY.md"].count(b"## 2026-01-05") == 1
    assert b"Postgres" in after["MEMORY.md"]
    assert b"shed" in after["MEMORY.md"]


def test_what_lasts_of_a_day_is_told_also_when_its_rows_were_folded_across_sessions(om: Om) -> None:
    """Notes are taken in daily and archived weeks later: by then a reflection across sessions has folded their rows."""
    notes = folder(om, d05=HARBOUR, d06=PAINT)
    consolidated(om, notes)
    labelled = reply(told("Something else altogether was told of January.", "o1", "o2", "o3", "o4", "o5"))
    om("reflect", "--global", "--model", script(om, labelled).model, *NOW, code=None)
    consolidated(om, notes, "--archive-after", "30")
    assert b"Postgres" in files(notes)["MEMORY.md"]


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        ({"error": "unreachable"}, 69),
        ({"error": "not-allowed"}, 77),
        ({"error": "refused"}, 69),
        ("this is no reply", 69),
    ],
)
def test_where_a_model_fails_no_file_is_touched(om: Om, failure: object, code: int) -> None:
    """S0.36: a failed observation moves nothing and writes nothing; without the model the same run does it."""
    notes = folder(om, d05=HARBOUR, d06=PAINT)
    (notes / "MEMORY.md").write_bytes(MINE)
    before = files(notes)
    bad = always(om, failure)
    for _ in range(2):
        consolidated(om, notes, "--archive-after", "30", "--model", bad.model, code=code)
        assert files(notes) == before
    assert "1 note" not in om("consolidate", "--no-places", *NOW).stderr
    consolidated(om, notes, "--archive-after", "30")
    assert set(files(notes)) == {"MEMORY.md", "archive/2026-01-05.md", "archive/2026-01-06.md"}
    assert pending(om) == 0


def test_where_a_reflection_fails_no_file_is_touched(om: Om) -> None:
    """S0.36, T40: observed, but not reflected on: it stays as long as that is so, and the exit code says it."""
    notes = folder(om, d05=HARBOUR)
    before = files(notes)
    bad = {"OM_REFLECTOR_PROVIDER": "scripted", "OM_REFLECTOR_MODEL": str(always(om, "no").path)}
    env = {**UTC, "OM_OBSERVER_PROVIDER": "rules", **bad}
    command = ("consolidate", "--no-places", "--notes", notes, "--archive-after", "30", *NOW)
    for _ in range(3):
        run = om(*command, env=env, code=69)
        assert "2026-01-05.md" in run.stderr
        assert files(notes) == before
    tolerant = om(
        "consolidate", "--no-places", "--notes", notes, "--archive-after", "30", "--best-effort", *NOW, env=env
    )
    assert "warning" in tolerant.stderr
    assert files(notes) == before


def test_what_a_reflection_made_that_was_taken_back_is_not_told(om: Om) -> None:
    """D6, S0.36: only what it was made of."""
    notes = folder(om, d06=PAINT)
    [note] = consolidated(om, notes)["notes"]
    seen = [f"the {pier} pier was seen in the morning, and again late in the evening" for pier in ("east", "west")]
    here = str(om.folder)
    kept(om, *(row(n, text=text, session=note["session"], project=here) for n, text in enumerate(seen)))
    short = always(om, reply(told("two piers were seen", "o2", "o3"), keep=["o1"]))
    om("reflect", "--session", note["session"], "--model", short.model, *NOW)
    assert "two piers were seen" in [each["text"] for each in rows(om)]
    om("undo", *NOW)
    consolidated(om, notes, "--archive-after", "30")
    assert b"the east pier" in files(notes)["MEMORY.md"]
    assert b"two piers" not in files(notes)["MEMORY.md"]


def test_a_note_in_which_nothing_is_worth_a_row_is_moved_without_a_word(om: Om) -> None:
    notes = folder(om, d05="Ok.\n", d06="")
    assert consolidated(om, notes, "--archive-after", "30")["failures"] == []
    assert set(files(notes)) == {"archive/2026-01-05.md", "archive/2026-01-06.md"}


def test_a_folder_that_cannot_be_written_keeps_its_notes(om: Om) -> None:
    """A `MEMORY.md` that is a folder, and an `archive` that is a file: said, and nothing is moved."""
    notes = folder(om, d05=HARBOUR)
    (notes / "MEMORY.md").mkdir()
    assert consolidated(om, notes, "--archive-after", "30", code=74)["notes"][0]["error"]["slug"] == "input-output"
    assert (notes / "2026-01-05.md").exists()
    (notes / "MEMORY.md").rmdir()
    (notes / "archive").write_text("mine")
    consolidated(om, notes, "--archive-after", "30", code=74)
    assert (notes / "2026-01-05.md").exists()
    (notes / "archive").unlink()
    consolidated(om, notes, "--archive-after", "30")
    assert set(files(notes)) == {"MEMORY.md", "archive/2026-01-05.md"}


def test_a_link_in_the_place_of_memory_stays_a_link(om: Om) -> None:
    """It is written where it leads."""
    notes = folder(om, d05=HARBOUR)
    real = om.write("real.md", MINE)
    (notes / "MEMORY.md").symlink_to(real)
    consolidated(om, notes, "--archive-after", "30")
    assert (notes / "MEMORY.md").is_symlink()
    assert b"Postgres" in real.read_bytes()


def test_a_secret_in_a_note_is_in_no_row_and_in_no_memory(om: Om) -> None:
    """F36: the note itself is the user's, and stays as it is."""
    secret = "sk-ant-api03-" + "Zq7" * 30
    notes = folder(om, d05=f"{HARBOUR}\nWe decided to use the key {secret} for the pier.\n")
    consolidated(om, notes, "--archive-after", "30")
    assert secret.encode() not in files(notes)["MEMORY.md"]
    assert secret.encode() not in stored(om.place)
    assert secret.encode() in files(notes)["archive/2026-01-05.md"]


# Killed, and several at once


@pytest.fixture(scope="module")
def undisturbed(new_om: Callable[[], Om]) -> tuple[float, dict[str, bytes]]:
    """How long a run takes that nobody disturbs, and what it leaves."""
    om = new_om()
    command = killed_command(many(om))
    begun = time.monotonic()
    om.process(*command, env=UTC)
    return time.monotonic() - begun, files(om.folder / "notes")


def killed_command(notes: Path) -> tuple[str | Path, ...]:
    return ("consolidate", "-q", "--no-places", "--notes", notes, "--archive-after", "30", *NOW)


def many(om: Om) -> Path:
    """Twenty notes, and a `MEMORY.md`."""
    notes = folder(om, **{f"d{day:02}": HARBOUR.replace("Bruno", f"Bruno's friend {day}") for day in range(1, 21)})
    (notes / "MEMORY.md").write_bytes(MINE)
    return notes


@pytest.mark.parametrize("part", first_only([3, 0, 1, 2, 4, 5, 6]))
def test_a_run_killed_anywhere_and_repeated_leaves_what_an_undisturbed_one_does(
    part: int, undisturbed: tuple[float, dict[str, bytes]], new_om: Callable[[], Om]
) -> None:
    """S0.36: no note is lost, none is told twice, and `MEMORY.md` is whole at every moment."""
    seconds, left = undisturbed
    om = new_om()
    notes = many(om)
    command = killed_command(notes)
    process = om.start(*command, env=UTC)
    time.sleep(seconds * (2 * part + 4) / 18)
    process.kill()
    process.communicate()
    there = files(notes)
    assert there["MEMORY.md"].startswith(MINE)
    moved = [name for name in there if name.startswith("archive/")]
    assert all(f"## {name[8:18]}".encode() in there["MEMORY.md"] for name in moved), "told before it is moved"
    om(*command, env=UTC)
    assert files(notes) == left
    assert_covered_once(om.place)


def test_of_four_at_once_one_archives(om: Om) -> None:
    """The others end with 75, and no note is told or moved twice."""
    notes = many(om)
    om.open().close()
    command = ("consolidate", "-q", "--wait", "60", "--no-places", "--notes", notes, "--archive-after", "30", *NOW)
    processes = [om.start(*command, env=UTC) for _ in range(4)]
    codes = {process.wait() for process in processes if process.communicate() is not None}
    assert codes <= {0, 75}
    om(*command, env=UTC)
    after = files(notes)
    assert len([name for name in after if name.startswith("archive/")]) == 20
    assert after["MEMORY.md"].count(b"## 2026-01-") == 20
