"""A script as a model: which reply an ask gets, over any number of processes."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omcli.base.errors import BadConfiguration, NotAllowed, OmError, PromptTooLong, Refused, Unreachable
from omcli.base.record import replace
from omcli.llm.model import EndReason, Picture, Prompt, Reply
from omcli.providers.scripted import Scripted

PROMPT = Prompt(system="Rules.", content=("m1 14:32 user: low tide",), schema={"type": "object"}, name="observations")


def script(folder: Path, replies: object) -> Path:
    path = folder / "replies.json"
    path.write_text(replies if isinstance(replies, str) else json.dumps(replies))
    return path


def ask(path: Path, prompt: Prompt = PROMPT, *, seconds: float = 60) -> Reply:
    """What a new process would get."""
    return Scripted(path, seconds=seconds).ask(prompt)


def asked(path: Path) -> list[dict[str, object]]:
    record = path.with_name(f"{path.name}.asked.jsonl").read_text()
    return [json.loads(line) for line in record.split("\n")[:-1]]  # the last may be being written


def test_replies_are_given_in_order_from_one_process_to_the_next(tmp_path: Path) -> None:
    path = script(tmp_path, ["one", {"text": "two"}, {"json": {"three": "ä"}}])
    assert [ask(path).text for _ in range(3)] == ["one", "two", '{"three": "ä"}']
    with pytest.raises(Unreachable, match=r"replies.json has no reply left"):
        ask(path)
    assert [one["reply"] for one in asked(path)] == [0, 1, 2, None]


def test_a_script_may_have_a_reply_per_line(tmp_path: Path) -> None:
    path = script(tmp_path, '"one"\n\n{"text": "two"}\n')
    assert [ask(path).text for _ in range(2)] == ["one", "two"]


@pytest.mark.parametrize("replies", ['"again"', '{"text": "again"}', '[{"text": "again", "times": null}]'])
def test_one_reply_may_be_for_every_ask(tmp_path: Path, replies: str) -> None:
    path = script(tmp_path, replies)
    assert {ask(path).text for _ in range(5)} == {"again"}


def test_a_reply_may_be_for_several_asks(tmp_path: Path) -> None:
    path = script(tmp_path, [{"text": "one", "times": 2}, "two"])
    assert [ask(path).text for _ in range(3)] == ["one", "one", "two"]


def test_a_reply_may_be_for_prompts_of_one_kind(tmp_path: Path) -> None:
    path = script(tmp_path, [{"text": "r", "when": "reflections", "times": None}, "one", "two"])
    reflecting = replace(PROMPT, name="reflections")
    assert [ask(path, one).text for one in (PROMPT, reflecting, PROMPT, reflecting)] == ["one", "r", "two", "r"]


def test_all_that_was_sent_is_on_record(tmp_path: Path) -> None:
    path = script(tmp_path, ["one"])
    picture = Picture(media_type="image/png", data=b"1234")
    ask(path, replace(PROMPT, content=("a\nb", picture), max_output=7, temperature=0.5))
    assert asked(path) == [{
        "ask": 1, "reply": 0, "name": "observations", "system": "Rules.",
        "content": ["a\nb", {"image": "image/png", "bytes": 4}], "schema": {"type": "object"},
        "max_output": 7, "temperature": 0.5,
    }]  # fmt: skip


def test_a_reply_says_how_it_stopped_and_what_it_took(tmp_path: Path) -> None:
    path = script(tmp_path, [{"text": "{", "stop": "length", "usage": {"input": 5, "output": 3, "cached": 2}}, "x"])
    reply = ask(path)
    assert (reply.stop, reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (EndReason.LENGTH, 5, 3, 2)
    assert (ask(path).input_tokens, reply.model) == (None, "replies.json")


@pytest.mark.parametrize("tokens", [10**30, -1, "many", 1e400])
def test_tokens_that_cannot_be_are_none(tmp_path: Path, tokens: object) -> None:
    reply = ask(script(tmp_path, [{"text": "x", "usage": {"input": tokens, "output": 3}}]))
    assert (reply.input_tokens, reply.output_tokens) == (None, 3)


@pytest.mark.parametrize(
    ("slug", "kind"),
    [
        ("unreachable", Unreachable),
        ("refused", Refused),
        ("prompt-too-long", PromptTooLong),
        ("not-allowed", NotAllowed),
    ],
)
def test_a_reply_may_be_a_failure(tmp_path: Path, slug: str, kind: type[OmError]) -> None:
    path = script(tmp_path, [{"error": slug, "text": "as it is told"}, "fine"])
    with pytest.raises(kind, match="as it is told"):
        ask(path)
    assert ask(path).text == "fine"


def test_a_reply_may_come_too_late(tmp_path: Path) -> None:
    """F74: and is gone then, as with a model that has been paid."""
    path = script(tmp_path, [{"text": "late", "sleep": 60}, "next"])
    with pytest.raises(Unreachable, match=r"within 0.05 s"):
        ask(path, seconds=0.05)
    assert ask(path).text == "next"


def test_a_reply_may_wait_for_a_file(tmp_path: Path) -> None:
    """Beside the script; until the deadline."""
    path = script(tmp_path, [{"text": "late", "until": "go"}, {"text": "now", "until": "go"}])
    with pytest.raises(Unreachable, match=r"within 0.05 s"):
        ask(path, seconds=0.05)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(ask, path, seconds=60)
        while len(asked(path)) < 2:
            assert not reply.done()
        assert not reply.done()
        (tmp_path / "go").touch()
        assert reply.result().text == "now"


_ASKS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from omcli.llm.model import Prompt
from omcli.providers.scripted import Scripted
Scripted(Path(sys.argv[1]), seconds=90).ask(Prompt(system="", content=(), schema={}, name="n"))
"""


def test_an_ask_that_is_killed_has_had_its_reply(tmp_path: Path) -> None:
    path = script(tmp_path, [{"text": "one", "sleep": 60}, "two"])
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", _ASKS, str(path)], cwd=root) as process:
        while not path.with_name("replies.json.asked.jsonl").exists() or not asked(path):
            pass
        process.kill()
    assert ask(path).text == "two"


def test_asks_at_once_take_each_reply_once(tmp_path: Path) -> None:
    path = script(tmp_path, [f"r{number}" for number in range(160)])
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: ask(path).text, range(160)))
    assert sorted(said) == sorted(f"r{number}" for number in range(160))
    assert [one["ask"] for one in asked(path)] == list(range(1, 161))


@pytest.mark.parametrize(
    "replies",
    ["not JSON", "[1]", "null", '[{"txt": "a"}]', '[{"error": "no-such"}]', '[{"stop": "soon"}]', '[{"text": 7}]'],
)
def test_a_script_that_is_none_is_told(tmp_path: Path, replies: str) -> None:
    with pytest.raises(BadConfiguration, match="script"):
        Scripted(script(tmp_path, replies), seconds=1)


def test_a_script_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match="cannot be read"):
        Scripted(tmp_path / "none.json", seconds=1)


def test_a_record_that_a_killed_process_left_half_written_still_counts(tmp_path: Path) -> None:
    path = script(tmp_path, ["one", "two", "three"])
    ask(path)
    record = path.with_name("replies.json.asked.jsonl")
    record.write_text(record.read_text() + '{"ask": 2, "reply": 1, "name": "obs')
    assert ask(path).text == "three"
    assert json.loads(record.read_text().splitlines()[-1])["ask"] == 3


def test_a_record_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    path = script(tmp_path, '"again"')
    path.with_name("replies.json.asked.jsonl").mkdir()
    with pytest.raises(BadConfiguration, match="record"):
        ask(path)


def echoed(path: Path, prompt: Prompt) -> dict[str, list[dict[str, object]]]:
    echo: dict[str, list[dict[str, object]]] = json.loads(ask(path, prompt).text)
    return echo


def test_an_echo_gives_a_row_for_every_label_and_no_other(tmp_path: Path) -> None:
    shown = (
        "Already recorded, do not repeat:\no1 [high] m9 is no label here\nm7 nor here\n",
        "<<< transcript 0f\nm1 2026-02-09 23:58 (before) assistant: good night\nm3 00:01 user: up early\n",
        "  m8 00:02 user: no\n",
        Picture(media_type="image/png", data=b"1234"),
        "m2 2026-02-10 00:03 [toolCall bash(ls)]\nm2 00:04 user: again\n>>> transcript 0f\nm4 00:05 user: outside\n",
    )
    rows = echoed(script(tmp_path, '"echo"'), replace(PROMPT, content=shown))["observations"]
    assert [(row["sources"], row["at"], row["text"]) for row in rows] == [
        (["m3"], "2026-02-09 00:01", "up early m8 00:02 user: no"),
        (["m2"], "2026-02-10 00:03", "[toolCall bash(ls)] m2 00:04 user: again"),
    ]


@pytest.mark.parametrize(
    "shown",
    [
        (
            "o1 2026-02-01 14:32 high decision (verbatim): use pnpm\n"
            "o2 2026-02-01 14:33 medium event: the `harbour is shallow at low` tide\n"
            "o3 2026-02-03 09:00 low error open: the ferry was late"
        ),
        (
            "## Group `o1`\n_range: 2026-02-01_\n- high decision (verbatim): use pnpm\n"
            "## Group `o2`\n_range: 2026-02-01_\n- medium event: the harbour is shallow at low tide\n"
            "## Group `o3`\n_range: 2026-02-03_\n- low error open: the ferry was late"
        ),
    ],
)
def test_an_echo_to_a_reflector_folds_all_that_need_not_stay(tmp_path: Path, shown: str) -> None:
    schema = {"type": "object", "properties": {"reflections": {}}}
    reply = echoed(script(tmp_path, '"echo"'), replace(PROMPT, schema=schema, content=("Rows:", shown)))
    [row] = reply["reflections"]
    assert (row["from"], row["first"], row["last"]) == (["o2", "o3"], "2026-02-01", "2026-02-03")
    assert row["text"] == "the harbour is shallow the ferry was late"
    assert reply == {"reflections": [row], "keep": ["o1"], "drop": [], "items": []}


def test_an_echo_of_nothing_is_empty(tmp_path: Path) -> None:
    assert echoed(script(tmp_path, '"echo"'), replace(PROMPT, content=("nothing",)))["observations"] == []
