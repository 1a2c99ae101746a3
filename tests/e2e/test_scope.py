"""Whose facts are shared: of a session, a project or all, and of sessions without a project."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Om
from tests.e2e.transcripts import Talk

PIPED = "User: Always answer in French.\nAssistant: I will.\n"


def test_sessions_without_a_project_share_with_each_other(om: Om) -> None:
    """XB3, D8: what was piped; one that is not stored yet as well as one that is, and no session of a project."""
    om("observe", "--format", "text", "--session", "A", "-", stdin=PIPED)
    assert "Always answer in French" in om("context", "--session", "ses_4a5b6c7d8e9f", "--tier", "cross").stdout
    om("observe", "--format", "text", "--session", "B", "-", stdin="User: How are you?\nAssistant: Fine.\n")
    assert "Always answer in French" in om("context", "--session", "B", "--tier", "cross").stdout
    assert om("context", "--session", "B", "--scope", "session", "--tier", "cross").stdout == ""
    work = Talk(session="W").user("Never push on Fridays.")
    om("observe", stdin=work.text())
    assert om("context", "--session", "W", "--tier", "cross").stdout == ""
    assert "Fridays" not in om("context", "--session", "B").stdout
    om("note", "Ships sail at dawn")
    assert "Ships sail" in om("context", "--session", "B").stdout, "noted in the directory that it is read in"


def test_the_scope_of_a_pack_is_an_option(om: Om) -> None:
    """XB3, D8: over the setting, also one that a preset has."""
    om("observe", stdin=Talk(session="far", cwd="/far").user("Always use tabs in C files.").text())
    om("observe", stdin=Talk(session="near").user("Always use spaces in Python files.").text())
    own = Talk(session="own").user("Where does the gauge stand?").text()
    om("observe", stdin=own)

    def cross(*options: str, env: dict[str, str] | None = None) -> list[str]:
        text = om("context", "--session", "own", "--tier", "cross", *options, env=env).stdout
        return [word for word in ("spaces", "tabs") if word in text]

    assert cross() == cross("--scope", "project", env={"OM_SCOPE": "global"}) == ["spaces"]
    assert cross("--scope", "session") == cross(env={"OM_SCOPE": "session"}) == []
    assert cross("--scope", "global") == cross("--scope", "all") == ["spaces", "tabs"]
    assert om("context", "--scope", "world", code=2).stdout == ""


def test_the_scope_of_listed_rows_is_the_same_option(om: Om) -> None:
    """XB3, D8, T65: `log` and `items`; without a session there is none to limit to."""
    here = str(om.folder)
    om("observe", "-q", stdin=Talk(session="far", cwd="/far").user("Always use tabs in C files.").text())
    om("observe", "-q", stdin=Talk(session="near", cwd=here).user("Always use spaces in Python files.").text())
    om("note", "--item", "Tests run with tox")

    def listed(*words: str, env: dict[str, str] | None = None) -> int:
        return len(om(*words, "--jsonl", env=env).lines)

    assert listed("log", "--scope", "all") == listed("log", "--scope", "global") == listed("log") == 3
    assert listed("log", "--scope", "project") == 2
    assert listed("log", "--scope", "session", "--session", "far") == 1
    assert listed("log", "--scope", "session", env={"CLAUDE_CODE_SESSION_ID": "near"}) == 1
    assert listed("items", "--scope", "project") == 1
    for command in ("log", "items"):
        assert "`--scope session` without a session" in om(command, "--scope", "session", code=2).stderr
        assert "exclude each other" in om(command, "--scope", "all", "--session", "far", code=2).stderr


def test_a_row_belongs_to_the_project_of_its_message(om: Om) -> None:
    """XD3, S2.13: after a change of directory; folders inside a project are the project."""
    known = Talk(session="known", cwd="/home/ada/boats").user("Hello.")
    talk = Talk(session="s", cwd="/home/ada/tides")
    for cwd, text in (
        ("/home/ada/tides", "Always use tabs."),
        ("/home/ada/tides/src", "Always use spaces in C files."),
        ("/home/ada/boats/hulls", "Always use feet for hulls."),
        ("/srv/gauges", "Always use metres for gauges."),
        ("/home/ada", "Always use short names."),
    ):
        talk.user(text, cwd=cwd)
    om("observe", "-q", stdin=known.text())
    om("observe", "-q", stdin=talk.text())

    def words(project: str) -> list[str]:
        found = om("log", "--jsonl", "--session", "s", "--project", project).lines
        return [row["text"].removeprefix("User: Always use ") for row in found]

    assert words("/home/ada/tides") == ["tabs.", "spaces in C files."]
    assert words("/home/ada/boats") == ["feet for hulls."]
    assert words("/srv/gauges") == ["metres for gauges."]
    assert words("/home/ada") == ["short names."]
    pack = om("context", "--session", "known", "--tier", "cross").stdout
    assert "feet for hulls" in pack
    assert "metres" not in pack
    assert "feet" in om("context", "--session", "s").stdout, "its own session has all of them"
    (row,) = om("log", "--jsonl", "--project", "/srv/gauges").lines
    assert om("show", row["id"], "--json").document["observation"]["project"] == "/srv/gauges"


def test_the_project_of_listed_rows_is_that_of_the_session(om: Om) -> None:
    """XB3: sessions without a project share with each other, wherever the command runs."""
    chat = '{"messages": [{"role": "user", "content": "Always use {} in files."}]}'
    om("observe", "-q", "--session", "chat-of-the-tides-1", stdin=chat.replace("{}", "metres"))
    om("observe", "-q", "--session", "chat-of-the-tides-2", stdin=chat.replace("{}", "seconds"))
    om("observe", "-q", stdin=Talk(session="far", cwd="/far").user("Always use tabs in C files.").text())
    om("observe", "-q", stdin=Talk(session="farther", cwd="/far").user("Always use spaces in Ada files.").text())

    def listed(session: str) -> list[str]:
        rows = om("log", "--scope", "project", "--session", session, "--jsonl").lines
        return [word for word in ("metres", "seconds", "tabs", "spaces") if any(word in row["text"] for row in rows)]

    assert listed("chat-of-the-tides-2") == ["metres", "seconds"]
    assert listed("farther") == ["tabs", "spaces"]
    assert om("log", "--scope", "project", "--session", "farther", "--project", "/far").stdout.count("Ada") == 1


def test_a_folder_of_a_project_knows_what_the_project_knows(om: Om) -> None:
    """D8, XE3: before and after a session has started in it; not in a repository or a home inside the project."""
    project, inside, clone, home = (om.folder / name for name in ("a", "a/src/lib", "a/src/clone", "a/home"))
    for folder in (inside, clone / ".git", home / "notes", project / ".git"):
        folder.mkdir(parents=True)
    om("observe", "-q", stdin=Talk(session="a", cwd=str(project)).user("Always use kelvin units.").text())
    new = ("context", "--session", "brand-new-session-01")

    def knows(folder: Path, *words: str, env: dict[str, str] | None = None) -> bool:
        return "kelvin" in om(*words, cwd=folder, env=env).stdout

    for words in (
        new,
        ("context",),
        ("log", "--scope", "project"),
        ("items", "--scope", "project"),
        ("log", "--project", "."),
    ):
        assert knows(inside, *words) == knows(project, *words)
        assert not knows(clone, *words) or words == ("context",)
    assert not knows(home / "notes", *new, env={"HOME": str(home)})
    om("note", "--item", "Quays are lit", cwd=inside)
    assert "Quays" in om("items", "--scope", "project", cwd=inside).stdout
    om("observe", "-q", stdin=Talk(session="inside", cwd=str(inside)).user("Always use feet in lib.").text())
    assert knows(inside, *new)
    assert knows(inside, "context", "--session", "inside")
    assert not knows(inside, "log", "--scope", "project")
    assert "feet" not in om(*new, cwd=project).stdout
