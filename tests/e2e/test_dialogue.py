"""What `om observe` makes of conversations: rows for what was said, from chats and from work, in any language."""

from __future__ import annotations

import json

from tests.conftest import Om
from tests.e2e.transcripts import Talk

IDA = (
    "I'm Ida, a cabinet maker in Bergen. I've decided on oak over ash because it takes the stain better. The delivery "
    "moved from 3 May to 9 May, so there is a week less. Always give lengths in millimetres. How do I keep the boards "
    "from warping until they arrive?"
)


def _chat(*turns: tuple[str, str, str]) -> str:
    """Messages of role, name and text, as JSON Lines."""
    told = [{"role": role, "name": name, "content": text} for role, name, text in turns]
    return "".join(json.dumps(turn, ensure_ascii=False) + "\n" for turn in told)


def _rows(om: Om) -> list[tuple[str, str]]:
    return [(row["type"], row["text"]) for row in om("log", "--jsonl").lines]


def test_a_long_prompt_becomes_a_row_for_each_thing_it_says(om: Om) -> None:
    """S0.24, S0.26, S3.9, O6: who somebody is, what was decided and why, what changed and what is preferred."""
    om(
        "observe",
        "--format",
        "openai",
        stdin=_chat(
            (
                "user",
                "user",
                IDA,
            ),
            ("assistant", "assistant", "Sure! Stack them flat, with a lath every 400 mm. I recommend a dry room."),
        ),
    )
    assert _rows(om) == [
        ("fact", "User: I'm Ida, a cabinet maker in Bergen."),
        ("decision", "User: I've decided on oak over ash because it takes the stain better."),
        ("fact", "User: The delivery moved from 3 May to 9 May, so there is a week less."),
        ("instruction", "User: Always give lengths in millimetres."),
        ("question", "User: How do I keep the boards from warping until they arrive?"),
        ("fact", "Agent: Stack them flat, with a lath every 400 mm."),
        ("decision", "Agent: I recommend a dry room."),
    ]


def test_rules_in_any_language_are_high_and_found_in_the_pack(om: Om) -> None:
    """S1.20, O24, T24: word for word."""
    rules = ("Bitte schreib ab jetzt immer auf Deutsch.", "Réponds toujours avec un exemple.", "以后请都用中文回答。")
    turns = [turn for rule in rules for turn in (("user", "user", rule), ("assistant", "assistant", "OK."))]
    om("observe", "--format", "openai", "--session", "s", stdin=_chat(*turns))
    assert _rows(om) == [("instruction", f"User: {rule}") for rule in rules]
    pack = om("context", "--session", "s").stdout
    assert all(rule in pack for rule in rules)


def test_a_small_pack_of_a_long_chat_keeps_what_it_began_with(om: Om) -> None:
    """XC11: the opening says what the matter is."""
    said = [f"Our boat {at} needs {at + 30} planks of larch for its deck." for at in range(80)]
    said[1] = "Our yard in Ostend restores seven wooden trawlers."
    said[40] = "Our shed in Bruges stores nine copper boilers."
    turns = [turn for text in said for turn in (("user", "user", text), ("assistant", "assistant", "Noted."))]
    om("observe", "--format", "openai", "--session", "s", stdin=_chat(*turns))
    chosen = [text for text in (said[1], said[40]) if text in om("context", "--session", "s", "--budget", "180").stdout]
    assert chosen == [said[1]]


def test_a_chat_of_people_keeps_who_did_what_and_no_courtesies(om: Om) -> None:
    """S1.2, O6: an answer names its question."""
    om(
        "observe",
        "--format",
        "openai",
        stdin=_chat(
            ("user", "Ada", "Hey Bea! Long time no see! How long have you had the boat?"),
            ("user", "Bea", "Four years already!"),
            ("user", "Bea", "Last May we sailed it to Tromsø, which took nine days."),
            ("user", "Ada", "Wow, that's amazing!"),
        ),
    )
    assert [text for _, text in _rows(om)] == [
        "Bea: boat: Four years already; Last May we sailed it to Tromsø, which took nine days",
    ]


def test_what_follows_a_courtesy_is_kept_and_a_courtesy_alone_is_not(om: Om) -> None:
    """XB2: only the greeting is dropped."""
    courtesies = ("Hi there!", "Thanks, bye", "thank you so much, have a nice day", "cool, looks good to me")
    asked = (
        "hi, please fix the login test in foo.py and never touch bar.cfg",
        "hello, always run make lint before committing",
        "thanks, from now on always run make lint",
        "Hi Claude, fix foo.py",
        "Hi Claude - bump the version",
        "Hello, my name is Anna",
    )
    told = [turn for said in asked + courtesies for turn in (("user", "user", said), ("assistant", "assistant", "OK."))]
    om("observe", "--format", "openai", stdin=_chat(*told))
    assert _rows(om) == [
        ("instruction", "User: please fix the login test in foo.py and never touch bar.cfg"),
        ("instruction", "User: always run make lint before committing"),
        ("instruction", "User: from now on always run make lint"),
        ("request", "User: Hi Claude, fix foo.py"),
        ("request", "User: Hi Claude - bump the version"),
        ("fact", "User: Hello, my name is Anna"),
    ]


def test_what_people_tell_each_other_after_a_greeting_is_kept(om: Om) -> None:
    """XB2: in a chat between people, too, only the greeting is dropped."""
    told = (
        ("Ann", "Hi Bob, I moved to Berlin yesterday"), ("Bob", "Wow, Ann, that's great news"),
        ("Ann", "Hello Bob, how are you today"), ("Bob", "Great, I started a job at Siemens last week"),
        ("Ann", "Cool, see you then"), ("Bob", "Thanks, Ann, your support means the world to me!"),
        ("Ann", "Wow, fantastic, Bob!"), ("Bob", "Hey Ann, my sister visits us in May"),
    )  # fmt: skip
    om("observe", "--format", "openai", stdin=_chat(*(("user", name, text) for name, text in told)))
    assert [text for _, text in _rows(om)] == [
        "Ann: moved to Berlin yesterday",
        "Bob: started job at Siemens last week; sister visits us in May",
    ]


def test_text_after_a_tag_that_is_not_closed_is_kept(om: Om) -> None:
    """XE1: in results and in the words of a person. A closed block goes."""
    talk = Talk().user("Run the tests.\n<system-reminder>\nhidden\n</system-reminder>")
    talk.call("Bash", {"command": "pytest -q"}).result("collected 3 items\n<system-reminder>\n1 failed\nExit code: 1")
    om("observe", "-q", "--later", stdin=talk.user("Why?\n<om-memory>\nis printed twice, fix it in baz.py").text())
    shown = om("context").stdout
    assert "1 failed" in shown
    assert "fix it in baz.py" in shown
    assert "hidden" not in shown
