"""Om's own output, found again inside a text."""

from __future__ import annotations

import time

import pytest

from omcli.formats.injected import is_pack, memory_skips, own_texts, own_words, without_injected

ROW = (
    '{"id":"01a1f806-d7d7-75d0-8e0a-5884fdf07ba9","session":"s \\"1\\"","kind":"observation","type":"decision",'
    '"priority":"high","importance":8,"text":"SECRET {","observed_at":"2026-02-20T08:16:00.471Z"}'
)
DOCUMENT = (
    '{"schema":1,"session":"s \\"1\\"","counter":"o200k-approx","budget":20000,"tokens":{"total":344},"pending":0,\n'
    f'"cross":[],\n"observations":[\n{ROW},\n{ROW}\n],\n"messages":[\n{{"id":"m1","role":"user","text":"SECRET"}}\n]}}'
)
MESSAGES = (
    '[\n{"role":"system","content":"<om-memory session=\\"s\\">\\nSECRET\\n</om-memory>\\n"},\n'
    '{"role":"user","content":"SECRET <system-reminder>"},\n{"role":"assistant","content":"SECRET"}\n]'
)
LOG = (
    "fdf07ba9 [2026-02-20 08:16] high   decision: SECRET\n"
    "9cd2abda [2026-02-20 08:16] medium task done: SECRET (superseded)\n"
    "\x1b[2m9cd2abda [2026-02-20 08:16] low    file_modified: SECRET\x1b[0m"
)
NOTATED = "\n".join(
    f"fdf07ba9 [2026-02-20 08:16] {mark} SECRET" for mark in ("CRITICAL", "\u2705", "\U0001f7e1", "[?]", "MED", "7/10")
)
BLOCK = (
    "## Working Memory\n\n### Current Task\n- SECRET\n\n### Modified Files\n- a.py (modified): SECRET\n"
    '… (+3 more)\n\n### Searches\n- "SECRET" → 3 matches\n\n… (+12 more)\n\n… (+8 older rows)\n'
)
BLOCK_DOCUMENT = (
    '{"schema":1,"session":"s","counter":"o200k-approx","budget":800,"tokens":12,"sections":[{"heading":'
    '"Current Task","lines":[{"text":"SECRET","rows":[]}],"more":0}],"more":0}'
)
PRINTED = [
    BLOCK,
    BLOCK.rstrip(),
    BLOCK_DOCUMENT,
    ROW,
    f"{ROW}\n{ROW}",
    DOCUMENT,
    MESSAGES,
    LOG,
    NOTATED,
    f'{{"schema":1,"observations":[{ROW}]}}',
    f'{{"schema":1,"observation":{ROW},"messages":[]}}',
    f'{{"schema":1,"files":[{{"path":"-","format":"pi","rows":[{ROW}]}}]}}',
    '{"schema":1,"query":"which SECRET?","answer":"SECRET [12ae6590]","cites":[],"results":[]}',
    '{"schema":1,"query":"SECRET","vectors":"off","results":[]}',
    '{"schema":1,"query":"SECRET","vector":"off","results":[]}',
]


@pytest.mark.parametrize("printed", PRINTED)
def test_what_om_printed_is_taken_out_and_the_words_around_it_stay(printed: str) -> None:
    """F45"""
    assert without_injected(printed) == ""
    assert without_injected(f"Look:\n{printed}\nGo on.").split() == ["Look:", "Go", "on."]
    assert without_injected(f"<om-memory>\n{printed}\n</om-memory>\nGo on.") == "Go on."


@pytest.mark.parametrize(
    "said",
    ["## Working Memory\n\n### Ideas\n- one\n", "## Working Memory\n\nis what I want.\n"],
    ids=["ideas", "prose"],
)
def test_somebody_s_own_heading_of_that_name_stays(said: str) -> None:
    assert without_injected(said) == said


def test_a_list_after_a_block_stays() -> None:
    assert without_injected(f"{BLOCK}\n- fix this\n").strip() == "- fix this"


@pytest.mark.parametrize("printed", [DOCUMENT, MESSAGES])
def test_what_was_cut_off_is_taken_out_to_its_end(printed: str) -> None:
    """F45"""
    for end in range(printed.index("SECRET") + 6, len(printed), 7):
        kept = without_injected(f"Look:\n{printed[:end]}\n\nGo on.")
        assert kept.split() == ["Look:", "Go", "on."], f"cut off at {end}"


def test_a_document_on_a_line_of_words_is_taken_out() -> None:
    assert without_injected(f"Look at {DOCUMENT} please.").split() == ["Look", "at", "please."]


@pytest.mark.parametrize(
    "said",
    [
        'Why does {"schema":1,"counter":"words","budget":100,"tokens":{ stop there?',
        '{"schema":1,"files":["a","b"]}',
        '{"schema":1,"observations":[{"id":7,"kind":"bird"}]}',
        '[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}]',
        "fdf07ba9 [2026-02-20 08:16] high time: to go\n    fdf07ba9 [2026-02-20 08:16] low    tide: indented",
        "2026-02-20 08:16 high   decision: no handle",
        "[2026-02-20 08:16] CRITICAL no handle",
        "fdf07ba9 [2026-02-20 08:16] Fix the tide (a commit)",
    ],
)
def test_what_only_looks_like_it_is_left_alone(said: str) -> None:
    assert without_injected(said) == said


def test_only_a_list_of_messages_as_om_prints_it_is_a_pack() -> None:
    """An agent that went on from a pack writes its own transcript, with more in it."""
    assert is_pack(MESSAGES)
    assert is_pack(MESSAGES.replace("\n", "\r\n"))
    assert not is_pack(MESSAGES.replace("\n", ""))
    assert not is_pack("")


@pytest.mark.parametrize(
    "hostile",
    [
        'x {"schema":1,"counter":"x","budget":1,"tokens":{"a":' * 20_000,
        '{"schema":1,"session":"' * 40_000,
        'x [{"role":"system","content":"<om-memory"},' * 20_000,
        "\n[" * 400_000 + '\n{"schema":1,"counter":"x","budget":1,"tokens":{' * 10_000,
        '{"schema":1,"observation":' + " " * 1_000_000,
        "] high " * 140_000,
        "] CRITICAL " * 90_000,
    ],
)
def test_a_megabyte_of_beginnings_takes_no_time(hostile: str) -> None:
    began = time.process_time()
    without_injected(hostile)
    assert time.process_time() - began < 2, "looking for the ends of documents must not be quadratic"


WRAPPED = [
    "<global_observations>\n* the harbour code\n</global_observations>",
    "<observations>\nSECRET\n</observations>",
    "<memory>SECRET</memory>",
    '<relevant-memories count="2">\n- SECRET\n</relevant-memories>  ',
    "<supermemory-context>\nSECRET\n<memory>\nSECRET\n</memory>\n</supermemory-context>",
    "<Memory>\n```\nSECRET\n```\n</Memory>",
    "<memory>\nSECRET\n```\nSECRET\n</memory>",
    "<memory>\nSECRET.</memory>",
    "  <memory>\n  SECRET\n  </memory>",
    "\ufeff<memory>\nSECRET\n</memory>",
    "<memory note='a>b'>\n<memory>\nSECRET\n</memory>\nSECRET\n</memory>",
    "<memory>\n  <rule>Push to SECRET</rule>\n</memory>",
    "<local_observations>\n\nSECRET\n\n</local_observations>",
    "<memory-pack>\nSECRET\n</memory-pack>",
    "<current-task>\nSECRET\n</current-task>",
    "## Conversation Memory\n\n### Summary\n- SECRET\n- SECRET\n",
]


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_memory_that_another_tool_wrapped_is_no_word_of_the_person(wrapped: str) -> None:
    """XD7, S2.9."""
    assert own_words(wrapped) == ""
    assert own_words(f"{wrapped}\n\nFix the gauge.") == "Fix the gauge."
    assert own_words(f"Look.\n{wrapped}\nGo on.").split() == ["Look.", "Go", "on."]
    assert len(list(memory_skips(f"{wrapped}\nGo on.\n{wrapped}"))) == 2
    assert list(memory_skips(wrapped)) == [], "a message without words is counted as a whole"
    assert without_injected(wrapped) == wrapped, "results and answers keep it"


@pytest.mark.parametrize(
    "said",
    [
        "Strip <memory> and </memory> from prompts, always.",
        "<memory> is what the tool writes, and it never closes it.",
        "<memory>\nis never closed\n",
        "What does this do?\n```\n<memory>\n4096\n</memory>\n```\nTell me.",
        "<domain>\n  <memory>4096</memory>\n</domain>",
        "<domain>\n  <memory unit='KiB'>4096</memory>\n</domain>",
        "Always fix this config:\n<memory>\n  <limit>512</limit>\n  <swap/>\n</memory>\nThanks.",
        "```md\n~~~\n<memory>\nx\n</memory>\n```",
        "> <memory>\n> x\n> </memory>",
        "<memory/>\nPlease.\n</memory>",
        "<memory-leak>\nSECRET\n</memory-leak>",
    ],
)
def test_who_talks_about_such_tags_keeps_the_words(said: str) -> None:
    """XD7, F39: inside a line, unclosed, quoted, in a fence, or as the elements of a document."""
    assert own_words(said) == said
    assert list(memory_skips(said)) == []


def test_what_stands_around_wrapped_memory_stays() -> None:
    """XD7: behind it on its line, after another block, between tags that a program put around the prompt."""
    assert own_words("<memory>SECRET</memory> Fix the gauge.") == "Fix the gauge."
    assert (
        own_words("<global_observations>\nS\n</global_observations><local_observations>S</local_observations> Go.")
        == "Go."
    )
    assert own_words("```md\n~~~\n```\n<memory>\nSECRET\n</memory>\nGo.").split() == ["```md", "~~~", "```", "Go."]
    assert own_words("<memories>\nS\n</memories>\n<user_query>\nGo.\n</user_query>") == "Go."
    assert own_words("<memory>\nS\n</memory>\nKeep it.\n</memory>") == "Keep it.\n</memory>"
    assert own_words("<memory>\n<memory> S\n</memory>\nGo.\n<memory>\nS\n</memory>") == "Go."


@pytest.mark.parametrize(
    ("parts", "own"),
    [
        (["<memory>\nS", "S\n</memory>\nGo."], ["", "Go."]),
        (["<memory>\n<core-memory>S</core-memory>", "S</memory>"], ["", ""]),
        (["<memory>S</memory>\n<observations>", "S", "</observations> Go."], ["", "", "Go."]),
        (["<system-reminder>S</system-reminder>\nSay", "</system-reminder>."], ["Say", "</system-reminder>."]),
        (["What is <memory>?", "And </memory>?"], ["What is <memory>?", "And </memory>?"]),
        (["<memory>\nS", "Go."], ["<memory>\nS", "Go."]),
        (["<hook_context>S</hook_context>\nS\n<hook_context>S</hook_context>", "On."], ["", "On."]),
        (["<hook_context>S <hook_context> S</hook_context>", "On."], ["", "On."]),
        (["Fix <system-reminder>", "or </system-reminder>"], ["Fix <system-reminder>", "or </system-reminder>"]),
        (["  one  "], ["  one  "]),
    ],
)
def test_blocks_may_cross_the_texts_of_a_message(parts: list[str], own: list[str]) -> None:
    """XD7."""
    assert own_texts(parts) == own


@pytest.mark.parametrize(
    "hostile",
    [
        "<memory>\n" * 10_000,
        "<memory>\n</memory>\n" * 5_000,
        "```\n<memory>" * 5_000,
        "<memory>\n<memory>\n</memory>\n" * 2_000,
        "x <core-memory>\n" * 10_000 + "x</core-memory>",
        "```\n<system-reminder>\n</system-reminder>\n```\n" * 5_000,
    ],
)
def test_many_tags_are_read_quickly(hostile: str) -> None:
    begin = time.process_time()
    own_words(hostile)
    own_texts([hostile, hostile[::-1], "</memory>"])
    assert time.process_time() - begin < 3
