"""Replies of a model: JSON in any wrapping, lists in text, and unusable ones."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest

from omcli.base.errors import CutOff, Looped, OmError, ProviderFailed, Refused, Unreachable, Unusable
from omcli.llm.model import EndReason, Reply
from omcli.memory.observation import Status, Type
from omcli.observers.model.reply import parse_reply
from omcli.observers.model.transcript import ObserverLimits
from omcli.tokenizers import counter
from tests.batches import Talk
from tests.fakes import ScriptedModel
from tests.replying import answer, observed, observer, said

_TALK = (
    Talk().user("We keep tabs in the parser.").agent("The parser keeps its tabs.").user("And `make lint` runs first.")
)
_GOOD = answer(said("The parser keeps tabs", "m1"))


def _texts(reply: str) -> list[str]:
    return [row.text for row in parse_reply(reply).rows]


def _cut_off(text: str) -> Reply:
    return Reply(text=text, stop=EndReason.LENGTH, model="scripted-1")


# ---- JSON


@pytest.mark.parametrize(
    "around",
    ["{}", "```json\n{}\n```", "Here are my rows:\n\n```json\n{}\n```\nThat is all.", "Sure! {} Anything else?"],
)
def test_json_is_read_whatever_is_around_it(around: str) -> None:
    """F38, V1."""
    assert _texts(around.replace("{}", _GOOD, 1)) == ["The parser keeps tabs"]


def test_a_list_of_rows_alone_is_a_reply() -> None:
    assert _texts(json.dumps([{"text": "one", "sources": ["m1"]}, {"text": "two", "sources": "m2"}])) == ["one", "two"]
    assert parse_reply("[]").rows == ()


def test_fields_of_other_types_count_as_absent() -> None:
    row = {"text": "one", "priority": 3, "kind": None, "at": 5, "sources": ["m1", 7, "[M2]"], "under": True}
    (read_row,) = parse_reply(json.dumps({"observations": [row], "used": "o1", "title": ["x"]})).rows
    assert (read_row.priority, read_row.kind, read_row.at, read_row.under) == ("", "", "", None)
    assert read_row.sources == ("m1", "m2")


@pytest.mark.parametrize("end", [20, 60, len(_GOOD) - 60, len(_GOOD) - 1])
@pytest.mark.parametrize("before", ["", "```json\n", "Here they are:\n"])
def test_json_that_ends_early_is_cut_off(end: int, before: str) -> None:
    """F5, V6: also where the provider gives no reason, and where whole rows stand in what is left."""
    with pytest.raises(CutOff):
        parse_reply(before + _GOOD[:end])


@pytest.mark.parametrize("text", ['{"rows": []}', '{"observations": {"text": "x"}}', '{"observations": null}', "{}"])
def test_json_of_another_structure_is_unusable(text: str) -> None:
    with pytest.raises(Unusable):
        parse_reply(text)


# ---- text


def test_sections_are_read_with_the_task_and_what_is_next() -> None:
    """T20, S3.21."""
    reply = parse_reply(
        "<observations>\nDate: Mar 2, 2026\n* 🔴 (10:00) User keeps tabs in the parser\n  * -> runs `make lint` first\n"
        "* 🟡 10:01 The parser keeps tabs\n</observations>\n<current-task>\nLinting\n</current-task>\n"
        "<suggested-response>\nRun `make lint`.\n</suggested-response>"
    )
    assert [(row.text, row.priority, row.at, row.under) for row in reply.rows] == [
        ("User keeps tabs in the parser", "high", "2026-03-02 10:00", None),
        ("runs `make lint` first", "", "2026-03-02", 0),
        ("The parser keeps tabs", "medium", "2026-03-02 10:01", None),
    ]
    assert (reply.current_task, reply.next_step) == ("Linting", "Run `make lint`.")


def test_tags_count_at_the_beginning_of_a_line_only() -> None:
    """F39: a tag in a sentence is no tag, one that is not closed goes on to the end, several blocks are one."""
    reply = parse_reply(
        "I use <observations> here.\n<observations>\n- one\n</observations>\n- no\n<observations>\n- two\n- three"
    )
    assert [row.text for row in reply.rows] == ["one", "two", "three"]
    assert _texts("- write <observations> in\n- a line") == ["write <observations> in", "a line"]


@pytest.mark.parametrize(
    ("line", "priority", "status", "at"),
    [
        ("- keeps tabs", "", "", ""),
        ("3. keeps tabs", "", "", ""),
        ("• 🟢 keeps tabs", "low", "", ""),
        ("- ✅ 2026-03-02: keeps tabs", "high", "done", "2026-03-02"),
        ("- [!] keeps tabs", "high", "", ""),
        ("[?] keeps tabs", "medium", "", ""),
        ("* [i] done: keeps tabs", "low", "done", ""),
        ("[2026-03-02 10:00] CRITICAL done: keeps tabs", "high", "done", "2026-03-02 10:00"),
        ("- **NOTE** keeps tabs", "low", "", ""),
        ("- (high) (9:05) keeps tabs", "high", "", "09:05"),
        ("- MED keeps tabs", "medium", "", ""),
    ],
)
def test_list_lines_are_read_in_any_notation(line: str, priority: str, status: str, at: str) -> None:
    """T20."""
    (row,) = parse_reply(line).rows
    assert (row.text, row.priority, row.status, row.at) == ("keeps tabs", priority, status, at)


def test_labels_at_the_end_of_a_line_are_its_sources() -> None:
    (row,) = parse_reply("- keeps tabs (m3, m1)").rows
    assert (row.text, row.sources) == ("keeps tabs", ("m3", "m1"))


@pytest.mark.parametrize(
    "text", ["The user keeps tabs in the parser.", "I'm sorry, but I can't.", "Note that all is well."]
)
def test_prose_is_unusable(text: str) -> None:
    """T20."""
    with pytest.raises(Unusable):
        parse_reply(text)


def test_rows_in_text_come_from_the_messages_they_are_about() -> None:
    """T20: by the words they share, or the time they name."""
    rows = observed(
        _TALK, "- The parser keeps its tabs\n- (10:02) `make lint` runs first\n- ✅ The parser is done"
    ).drafts
    assert [(row.sources, row.type, row.status) for row in rows] == [
        ((2,), Type.FACT, None),
        ((2,), Type.OUTCOME, Status.DONE),
        ((3,), Type.FACT, None),
    ]


@pytest.mark.parametrize(
    "hostile",
    [
        "- ",
        "<observations>\n",
        "🔴 ",
        "[2026-03-02 10:00] ",
        "- (high) ",
        "Date: ",
        "(m1, ",
        '{"text": "',
        "**",
        "1. " * 9,
    ],
)
def test_hostile_text_is_read_in_no_time(hostile: str) -> None:
    text = hostile * (200_000 // len(hostile))
    began = time.process_time()
    with suppress(ProviderFailed):
        parse_reply(text)
    assert time.process_time() - began < 3


# ---- no reply


def test_a_refusal_is_a_failure() -> None:
    """F42, V7: not an empty memory, whatever it says."""
    with pytest.raises(Refused):
        observed(_TALK, Reply(text=_GOOD, stop=EndReason.REFUSAL, model="scripted-1"))


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_a_blank_reply_is_a_failure(blank: str) -> None:
    """T13, V7: and nobody asks again."""
    model = ScriptedModel(blank, _GOOD)
    with pytest.raises(Unusable):
        observer(model).observe(_TALK.batch())
    assert len(model.asked) == 1


def test_a_reply_that_was_cut_off_is_not_believed() -> None:
    """F4, V6: even where it can be read."""
    with pytest.raises(CutOff) as raised:
        observed(_TALK, _cut_off(_GOOD))
    assert not isinstance(raised.value, Looped)


def test_a_loop_that_was_cut_off_is_recognised() -> None:
    """F34, V8: four hundred rows that differ in a number, in JSON and in text."""
    rows = [said(f"Ran the tests a {number}. time, all passed", "m1") for number in range(400)]
    for text in (answer(*rows)[:-90], "\n".join(f"- {row['text']}" for row in rows)):
        with pytest.raises(Looped):
            observed(_TALK, _cut_off(text))


def test_what_the_provider_raises_is_raised() -> None:
    """T12."""
    with pytest.raises(Unreachable):
        observed(_TALK, Unreachable("no connection"))


# ---- asked again


def test_a_reply_that_cannot_be_used_is_asked_for_once_more() -> None:
    """V1: with what was wrong."""
    model = ScriptedModel("I would rather not.", _GOOD)
    result = observer(model).observe(_TALK.batch())
    assert [draft.text for draft in result.drafts] == ["The parser keeps tabs"]
    assert result.findings == {"repaired": 1}
    assert "neither a JSON object nor a list" in model.last_seen
    assert "neither a JSON object nor a list" not in str(model.asked[0].content)


def test_after_a_second_one_that_cannot_be_used_it_is_over() -> None:
    """V1, T20."""
    model = ScriptedModel("I would rather not.", "Still not.", _GOOD)
    with pytest.raises(Unusable):
        observer(model).observe(_TALK.batch())
    assert len(model.asked) == 2


_LONG = answer(said("The user keeps tabs in the parser", "m1"), said("It runs first", "m3"), said("Yes", "m3"))


def test_a_reply_that_is_too_long_is_shortened_by_the_model() -> None:
    """T19, S2.19: one retry that quotes the counted size."""
    model = ScriptedModel(_LONG, answer(said("Tabs", "m1")))
    result = observer(model, limits=ObserverLimits(output=10)).observe(_TALK.batch())
    assert [draft.text for draft in result.drafts] == ["Tabs"]
    assert "had 13 tokens" in model.last_seen
    assert "at most 10" in model.last_seen


@pytest.mark.parametrize("second", [_LONG, "no reply", "", Unreachable("gone")])
def test_what_stays_too_long_is_trimmed_by_the_same_counter(second: str | OmError) -> None:
    """T19, V5: the last rows go first."""
    model = ScriptedModel(_LONG, second)
    result = observer(model, limits=ObserverLimits(output=12)).observe(_TALK.batch())
    texts = [draft.text for draft in result.drafts]
    assert texts == ["The user keeps tabs in the parser", "It runs first"]
    assert counter("chars-4").text("\n".join(texts)) <= 12
    assert result.findings["trimmed"] == 1
    assert len(model.asked) == 2


def test_one_row_that_is_too_long_alone_is_cut() -> None:
    """T19: 100 characters over a target of 10 tokens; what is kept counts 10 at most."""
    result = observed(_TALK, answer(said("tabs " * 20, "m1")), limits=ObserverLimits(output=10))
    (row,) = result.drafts
    assert counter("chars-4").text(row.text) <= 10
    assert row.text.startswith("tabs tabs")
    assert row.text.endswith("…")
