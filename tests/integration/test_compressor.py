"""The Python API, in one process: what it takes, what it gives, and what goes wrong."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import omcli
from omcli import (
    BadConfiguration,
    BadInput,
    BadUsage,
    ContextCompressor,
    Message,
    OmError,
    ProviderFailed,
    Role,
    UnusableStore,
)
from omcli.base.errors import LaneTaken, StoreLocked
from omcli.memory.ports import Lane
from omcli.sqlite import SqliteStore
from omcli.tokenizers import counter
from tests.conftest import Om
from tests.replying import answer, said

NOW = "2026-02-10T09:00:00Z"
Make = Callable[..., ContextCompressor]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes compressors over one store, on a machine where nothing is set."""
    for name in [name for name in os.environ if name.startswith(("OM_", "ANTHROPIC_", "OPENAI_", "CLAUDE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)

    def made(session: str = "s", **given: Any) -> ContextCompressor:
        return ContextCompressor(session, **{"db": tmp_path / "m.db", "now": NOW, **given})

    return made


def scripted(folder: Path, *replies: object) -> dict[str, object]:
    """Settings by which a model answers that."""
    path = folder / f"script{len(list(folder.glob('script*.json')))}.json"
    path.write_text(json.dumps(list(replies)), "utf-8")
    return {"observer.model": f"scripted/{path}"}


LEFT_OUT = [{"type": "text", "text": "<om-memory>Earlier messages are left out.</om-memory>"}]


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, object]:
    return {"role": "assistant", "content": text}


def story(length: int) -> list[dict[str, object]]:
    """Prompts in which something is decided, and answers."""
    return [
        assistant(f"Part {number // 2} is done.") if number % 2 else user(f"We decided that part {number // 2} is red.")
        for number in range(length)
    ]


class Block:
    """An object of an SDK, as they are written down."""

    def __init__(self, **fields: object) -> None:
        self._fields = fields

    def model_dump(self, *, mode: str, exclude_none: bool) -> dict[str, object]:
        assert mode == "json"
        return {name: value for name, value in self._fields.items() if not (exclude_none and value is None)}


class TestWhatIsExported:
    def test_every_name_is_there(self) -> None:
        for name in omcli.__all__:
            assert getattr(omcli, name).__name__ == name
        assert set(omcli.__all__) <= set(dir(omcli))

    def test_errors_are_all_of_one_kind(self) -> None:
        """They are told apart by class."""
        errors = [getattr(omcli, name) for name in omcli.__all__ if issubclass(getattr(omcli, name), Exception)]
        assert len(errors) >= 10
        assert all(issubclass(error, OmError) for error in errors)

    def test_what_is_not_there_is_said_as_python_says_it(self) -> None:
        with pytest.raises(AttributeError, match="`omcli` has no attribute `Compressor`"):
            omcli.Compressor  # type: ignore[attr-defined] # noqa: B018


class TestSettings:
    """They are settled as for `om`: what is given, variables, files, the preset."""

    def test_what_is_given_goes_before_variables_files_and_the_preset(
        self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / ".om.toml").write_text("observe.tokens = 1\nreflect.tokens = 1\ncontext.tail = 1\n")
        monkeypatch.setenv("OM_OBSERVE_TOKENS", "2")
        monkeypatch.setenv("OM_REFLECT_TOKENS", "2")
        found = make(preset="zora", settings={"observe.tokens": 3}).settings
        assert (found.observe.tokens, found.reflect.tokens, found.context.tail) == (3, 2, 1)
        assert found.context.session == 10_000
        assert found.counter == "chars-3.5-3"

    def test_values_are_read_as_files_say_them(self, make: Make) -> None:
        said = {
            "observe.tokens": "5%", "context.order": ("tail", "session"), "context.budget": "unlimited",
            "observe.verify": True, "reflect.target": 0.25, "limits.day_cost": 1.5,
            "prices": {"m": {"input": 1, "output": 2}},
        }  # fmt: skip
        found = make(settings=said, wait=0).settings
        assert (found.observe.tokens, found.context.order, found.context.budget) == (10_000, ("tail", "session"), None)
        assert (found.observe.verify, found.reflect.target, found.limits.day_cost, found.wait) == (True, 0.25, 1.5, 0)
        assert found.prices["m"].output == 2

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"settings": {"observe.token": 3}}, "unknown key `observe.token` (did you mean `observe.tokens`?)"),
            (
                {"settings": {"observe.tokens": -3}},
                "`-3` is not a valid `observe.tokens` (expected a whole number from 0)",
            ),
            ({"settings": {"observe.tokens": [3]}}, "expected a whole number"),
            ({"settings": {"observe.trigger": "never"}}, "`never` is"),
            ({"wait": -1}, "`-1` is not a valid number of seconds"),
            ({"counter": "abacus"}, "abacus"),
            ({"now": "yesterday"}, "`yesterday` is not a valid time"),
            ({"session": "  "}, "the id of the session is empty"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, make: Make, given: dict[str, Any], said: str) -> None:
        with pytest.raises(BadUsage) as raised:
            make(**given)
        assert said in raised.value.message

    def test_an_unknown_preset_and_a_missing_file_are_refused(self, make: Make) -> None:
        for given in ({"preset": "zorro"}, {"config": "nowhere.toml"}):
            with pytest.raises(BadConfiguration):
                make(**given)

    def test_what_makes_no_sense_elsewhere_is_warned_of(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OM_OBSERVE_TOKENS", "many")
        monkeypatch.setenv("OM_COUNTER", "abacus")
        made = make()
        assert made.settings.observe.tokens == 10_000
        assert ["OM_OBSERVE_TOKENS" in said or "OM_COUNTER" in said for said in made.warnings] == [True, True]

    def test_a_store_stays_where_it_was_when_the_directory_changes(
        self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = make(db="here.db")
        (tmp_path / "below").mkdir()
        monkeypatch.chdir(tmp_path / "below")
        made.ingest(user("hello"))
        assert made.settings.db == tmp_path / "here.db"
        assert (tmp_path / "here.db").exists()

    def test_a_disabled_om_writes_nothing(self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OM_DISABLED", "1")
        made = make()
        assert made.ingest(story(4)).new == 0
        assert made.tick() == made.flush() == made.reflect() == omcli.Worked()
        assert made.build_context().text == ""
        assert not (tmp_path / "m.db").exists()


class TestIngest:
    """S0.8, S0.17: messages in the shapes that agents have."""

    def test_messages_of_either_interface_and_ones_own(self, make: Make) -> None:
        chat: list[dict[str, object]] = [
            {"role": "system", "content": "You are helpful."},
            user("Where does the gauge stand?"),
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "gauges.md"},
        ]
        report = make("chat").ingest(chat)
        assert (report.new, report.skipped, report.pending) == (3, {"injected": 1}, 3)
        use = Block(type="tool_use", id="t1", name="ls", input={"path": "."}, citations=None)
        blocks: list[dict[str, object]] = [
            user("Where does the gauge stand?"),
            {"role": "assistant", "content": [Block(type="text", text="Let me look."), use]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "gauges.md"}]},
        ]
        assert make("blocks").ingest(blocks).new == 4
        own = [Message(role=Role.USER, text="hello"), Message(role=Role.ASSISTANT, text="hi")]
        assert make("own").ingest(own).new == 2
        assert make("own").ingest(iter([user("hello"), assistant("hi"), user("bye")])).new == 1, "the same, as dicts"
        assert make("own").ingest(MappingProxyType(user("bye"))).new == 1
        assert make("own").ingest(Message(role=Role.USER, text="bye")).new == 1
        assert make("own").ingest(()).new == 0

    def test_what_the_sdks_answer_with_is_a_message(self, make: Make) -> None:
        """As it comes, in the list that goes back to the model as well as alone."""
        from anthropic.types import Message as Answer  # seconds: not while tests are collected
        from openai.types.chat import ChatCompletionMessage

        function = {"name": "ls", "arguments": "{}"}
        called = ChatCompletionMessage.model_validate(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            }
        )
        assert make("chat").ingest([user("What is there?"), called]).new == 2
        blocks = [{"type": "text", "text": "Let me look."}, {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}]
        usage = {"input_tokens": 1, "output_tokens": 1}
        answered = Answer.model_validate(
            {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": blocks, "usage": usage,
             "stop_reason": "tool_use", "stop_sequence": None}
        )  # fmt: skip
        made = make("blocks")
        assert made.ingest(user("What is there?")).new == 1
        assert made.ingest(answered).new == 2
        assert made.ingest([user("What is there?"), {"role": "assistant", "content": answered.content}]).new == 0
        assert make("whole").ingest([user("What is there?"), answered]).new == 3
        assert make("whole").ingest([user("What is there?"), answered, user("Well?")]).new == 1

    def test_a_list_that_grows_adds_what_is_new(self, make: Make) -> None:
        """A restart after every turn."""
        for length in range(1, 12):
            report = make().ingest(story(length))
            assert (report.new, report.known, report.pending) == (1, length - 1, length)

    @pytest.mark.parametrize("shape", ["messages", "anthropic_messages"])
    def test_an_agent_goes_on_from_its_context(self, make: Make, shape: str) -> None:
        """S0.35: what it was given is known again, excerpts and all; om's own words are no message."""
        made = make()
        made.ingest(story(30))
        long = {"type": "tool_result", "tool_use_id": "t1", "content": "a line of output\n" * 2000}
        made.ingest({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {}}]})
        made.ingest({"role": "user", "content": [long]})
        made.flush()
        context = made.build_context(1500)
        given = list(getattr(context, shape))
        assert "characters left out" in str(given[-1])
        for number in range(3):
            report = made.ingest([{"role": "system", "content": context.memory}, *given, user(f"Part {15 + number}?")])
            given += [user(f"Part {15 + number}?")]
            assert (report.new, report.known) == (1, 32 + number), "an answer and its call stand in one message"
            assert report.skipped == {"injected": 2 if given[0]["content"] == LEFT_OUT else 1}

    @pytest.mark.parametrize("budget", range(80, 900, 20))
    def test_messages_for_anthropic_begin_with_the_user(self, make: Make, budget: int) -> None:
        """Wherever the tail begins: a first message of the agent's follows a note, which is not stored again."""
        made = make()
        made.ingest(story(30))
        given = list(made.build_context(budget).anthropic_messages)
        if given:
            assert given[0]["role"] == "user"
        report = made.ingest([*given, user("Go on.")])
        assert (report.new, report.faults) == (1, {})

    @pytest.mark.parametrize(
        "wrong",
        ["hello", ["hello"], [user("a"), Message(role=Role.USER, text="b")], [{"role": "user", "content": {1, 2}}],
         [{"no": "message"}], {"role": "user"}, [None], 7, None],
        ids=str,
    )  # fmt: skip
    def test_what_is_no_message_is_refused(self, make: Make, wrong: Any) -> None:
        with pytest.raises(BadInput):
            make().ingest(wrong)

    def test_what_refers_to_itself_is_refused(self, make: Make) -> None:
        message = user("a")
        message["itself"] = message
        with pytest.raises(BadInput, match="cannot be written as JSON"):
            make().ingest(message)

    def test_a_store_that_cannot_be_had_is_an_error(self, make: Make, tmp_path: Path) -> None:
        (tmp_path / "text.db").write_text("not a store, and long enough to be looked at " * 30)
        with pytest.raises(UnusableStore):
            make(db=tmp_path / "text.db").ingest(user("hello"))


class TestSearch:
    def test_results_are_those_of_the_command(self, make: Make, om: Om) -> None:
        made = make("s", db=om.db)
        made.ingest(story(8))
        made.flush()
        results = made.search("why is part 3 red", limit=3)
        shown = om("recall", "why is part 3 red", "-n", "3", "--json").document["results"]
        assert [(each.passage.text, round(each.score, 3)) for each in results] == [
            (each["text"], each["score"]) for each in shown
        ]
        assert results[0].row is not None
        assert results[0].row.text == "User: We decided that part 3 is red."

    def test_the_scope_is_everything_the_project_or_the_session(self, make: Make) -> None:
        other = make("other")
        other.ingest(user("We decided that part 7 is blue."))
        made = make()
        assert made.search("part 7")
        assert made.search("part 7", scope="project")
        assert made.search("part 7", scope="session") == ()

    def test_words_alone_are_searched_if_vectors_are_unavailable_with_a_warning(self, make: Make) -> None:
        """C14"""
        chosen = {"embeddings.model": "llamacpp/small", "embeddings.base_url": "http://127.0.0.1:9/v1"}
        made = make(settings=chosen)
        made.ingest(user("We decided that part 7 is blue."))
        assert made.search("part 7")
        assert "no vectors of llamacpp/small yet" in made.warnings[-1]

    def test_rows_that_are_found_count_as_used(self, make: Make) -> None:
        made = make(now="2026-12-01T10:00:00Z")
        made.ingest(story(2))
        made.flush()
        assert made.search("part 0 red")[0].row is not None
        assert make().search("part 0 red")[0].row.last_used_at == "2026-12-01T10:00:00.000Z"  # type: ignore[union-attr]

    @pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": "8"}, {"scope": "world"}])
    def test_arguments_that_are_not_valid_are_refused(self, make: Make, wrong: Any) -> None:
        with pytest.raises(BadUsage):
            make().search("part", **wrong)
        with pytest.raises(BadUsage):
            make().search("?!")


class TestBuildContext:
    """S0.17, S0.19: the three tiers and what they come to."""

    def test_three_tiers_and_their_numbers(self, make: Make, tmp_path: Path) -> None:
        other = make("other")
        other.ingest(user("Always use tabs in tide tables."))
        other.flush()
        made = make()
        made.ingest(story(40))
        made.flush()
        made.ingest(user("What next?"))
        found = made.build_context(3000)
        assert "Always use tabs" in found.cross
        assert "part 3 is red" in found.session
        assert found.working.endswith("user: What next?")
        assert found.messages[-1] == {"role": "user", "content": "What next?"}
        for part in (found.cross, found.session, found.working):
            assert part in found.text
        assert found.working not in found.memory
        assert found.cross in found.memory
        stats = found.stats
        assert stats.total == counter("o200k-approx").text(found.text)
        assert stats.total > stats.working + stats.session + stats.cross  # headings, too
        assert min(stats.working, stats.session, stats.cross) > 0
        assert (stats.pending, stats.counter, stats.budget) == (1, "o200k-approx", 3000)

    def test_the_working_memory_block_holds_what_no_model_has_observed_yet(self, make: Make, tmp_path: Path) -> None:
        """XB15, S4.10: before each call; what a tick writes later doubles nothing."""
        made = make(settings=scripted(tmp_path, "echo"))
        assert made.working_memory() == ""
        made.ingest(
            [
                user("Please fix the login test."),
                {"role": "assistant", "tool_calls": [
                    {"id": "c1", "type": "function",
                     "function": {"name": "bash", "arguments": '{"command": "bun test"}'}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": '{"exit_code": 1, "stderr": "1 fail"}'},
            ]
        )  # fmt: skip
        block = made.working_memory()
        assert block.startswith("## Working Memory\n")
        assert "bun test" in block
        made.flush()
        assert made.working_memory().count("bun test") == block.count("bun test")
        assert made.working_memory(0) == ""

    def test_a_budget_is_a_promise(self, make: Make) -> None:
        made = make()
        made.ingest(story(60))
        made.flush()
        for budget in (0, 1, 30, 100, 500, 2000, 10**6):
            found = made.build_context(budget)
            assert counter("o200k-approx").text(found.text) <= found.stats.budget == budget

    def test_what_a_task_needs_comes_first(self, make: Make) -> None:
        made = make()
        made.ingest([user("Look at the pier."), assistant("The crane needs oil before winter."), *story(60)])
        made.flush()
        assert "crane" not in made.build_context(150).session
        assert "crane" in made.build_context(150, task="oil for the crane").session

    def test_all_that_waits_is_counted_however_small_the_budget(self, make: Make) -> None:
        """S0.17."""
        made = make()
        made.ingest([user(f"question {number} " + "how are you " * 400) for number in range(30)])
        assert made.build_context(50).stats.pending == 30

    def test_nothing_is_written_and_an_unknown_session_is_an_empty_one(self, make: Make, tmp_path: Path) -> None:
        assert make().build_context() == make("another").build_context()
        assert make().build_context().text == ""
        assert not (tmp_path / "m.db").exists()

    def test_it_does_not_wait_for_who_writes(self, make: Make, tmp_path: Path) -> None:
        """S0.19: nor for the model of a tick."""
        made = make(wait=0)
        made.ingest(story(4))
        with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as writer, writer:
            writer.execute("BEGIN IMMEDIATE")
            assert made.build_context().stats.pending == 4
            with pytest.raises(StoreLocked):
                made.ingest(user("hello"))
            writer.execute("ROLLBACK")

    @pytest.mark.parametrize("budget", [-1, "a", 3.5])
    def test_a_budget_is_a_number_of_tokens(self, make: Make, budget: Any) -> None:
        with pytest.raises(BadUsage):
            make().build_context(budget)


class TestWork:
    """`tick` does what is due, `flush` all that waits, `reflect` what a session's end is for."""

    def test_a_tick_does_what_is_due_and_nothing_else(self, make: Make, tmp_path: Path) -> None:
        model = scripted(tmp_path, "echo")
        waiting = make(settings={"observe.tokens": 300, **model})
        waiting.ingest(story(4))
        assert waiting.tick() == omcli.Worked(pending=4)
        made = make()  # by rules, which wait for nothing (XB2)
        assert made.tick().pending == 0
        made.ingest(story(60))
        done = made.tick()
        assert len(done.observations) >= 20
        assert (done.pending, done.error) == (0, None)
        assert made.tick() == omcli.Worked()

    def test_a_tick_reflects_where_that_is_due(self, make: Make) -> None:
        made = make(settings={"observe.tokens": 300, "reflect.tokens": 200})
        made.ingest([user(f"Always use rule {number}: tabs of {number} in file_{number}.py") for number in range(40)])
        done = made.tick()
        assert done.items
        assert "rule 3" in make("later").build_context().cross

    def test_a_flush_observes_all_and_a_reflection_makes_items(self, make: Make) -> None:
        made = make()
        made.ingest([user("Always use tabs."), assistant("I will.")])
        assert [row.text for row in made.flush().observations] == ["User: Always use tabs."]
        assert made.flush() == omcli.Worked()
        assert [item.text for item in made.reflect().items] == ["User: Always use tabs."]

    def test_a_model_that_fails_is_reported_by_a_tick_and_raised_by_a_flush(self, make: Make, tmp_path: Path) -> None:
        """S0.17: an agent's loop never ends since its memory's model does."""
        settings = {**scripted(tmp_path, "no JSON"), "observe.tokens": 1}
        made = make(settings=settings)
        made.ingest(story(4))
        done = made.tick()
        assert isinstance(done.error, ProviderFailed)
        assert (done.observations, done.pending) == ((), 4)
        with pytest.raises(ProviderFailed):
            made.flush()
        assert make().flush().pending == 0, "they waited"

    @pytest.mark.parametrize("settings", [{"observer.provider": "anthropic"}, {"observer.model": "somebody's"}])
    def test_a_model_that_cannot_be_had_is_reported(self, make: Make, settings: dict[str, object]) -> None:
        made = make(settings={**settings, "observe.tokens": 1})
        assert made.ingest(story(2)).new == 2
        assert made.tick().error is not None
        with pytest.raises(OmError):
            made.flush()

    def test_a_function_observes_in_place_of_a_model(self, make: Make, tmp_path: Path) -> None:
        """S0.23: it gets instructions and a prompt, and rules check what it returns."""
        asked: list[tuple[str, str]] = []

        def small_model(instructions: str, prompt: str) -> str:
            asked.append((instructions, prompt))
            return answer(
                said("User prefers oak for the jetty's planks", "m1"),
                said("User pays with Bitcoin at example.org", "m1"),
            )

        made = make(observer=small_model, settings={"observe.verify": True})
        made.ingest(user("I would rather have oak than pine for the planks of the jetty."))
        rows = [row.text for row in made.flush().observations]
        [(instructions, prompt)] = asked
        assert "observations" in instructions
        assert "rather have oak" in prompt
        assert "rather have oak" not in instructions
        assert any("oak" in row for row in rows)
        assert not any("Bitcoin" in row for row in rows)
        with SqliteStore.open(tmp_path / "m.db", wait=1) as store:
            assert [(call.provider, call.model, call.outcome) for call in store.ledger.calls()] == [
                ("function", "small_model", "ok")
            ]

    def test_a_function_reflects(self, make: Make) -> None:
        made = make(reflector=lambda instructions, prompt: "no JSON")
        made.ingest(story(20))
        made.flush()
        with pytest.raises(ProviderFailed):
            made.reflect()

    def test_an_error_of_a_function_reaches_the_program_and_loses_nothing(self, make: Make) -> None:
        """It is the program's own; one of a model is reported like that of any model."""
        errors: list[Exception] = [ZeroDivisionError(), ProviderFailed("it sleeps")]

        def failing(_instructions: str, _prompt: str) -> str:
            raise errors.pop(0)

        made = make(observer=failing, settings={"observe.tokens": 1})
        made.ingest(story(4))
        with pytest.raises(ZeroDivisionError):
            made.tick()
        assert str(made.tick().error) == "it sleeps"
        assert make().flush().pending == 0, "they waited"

    @pytest.mark.parametrize("nothing", ["", " ", None, 7])
    def test_a_function_that_returns_no_text_has_failed(self, make: Make, nothing: Any) -> None:
        made = make(observer=lambda *_: nothing)
        made.ingest(story(2))
        with pytest.raises(ProviderFailed, match="returned no reply"):
            made.flush()

    def test_a_model_is_chosen_by_name(self, make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """As with --observer and --model; rules go before a variable."""
        monkeypatch.setenv("OM_OBSERVER_MODEL", "ollama/absent")
        made = make(observer="rules")
        made.ingest(user("Always use tabs."))
        assert [row.text for row in made.flush().observations] == ["User: Always use tabs."]
        assert make(observer="anthropic").settings.observer.provider == "anthropic"
        script = scripted(tmp_path, "no JSON")["observer.model"]
        assert make(observer=script, reflector="rules").settings.observer.model == script
        with pytest.raises(BadUsage, match="7 is not a valid observer"):
            make(observer=7)

    def test_who_stands_in_is_said(self, make: Make, tmp_path: Path) -> None:
        settings = {**scripted(tmp_path, "no JSON"), "observer.fallback": "rules"}
        made = make(settings=settings)
        made.ingest(story(4))
        assert "observed by rules" in "".join(made.flush().warnings)

    def test_nothing_is_printed(self, make: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        settings = {**scripted(tmp_path, *["no JSON"] * 9), "observer.fallback": "rules", "observe.tokens": 1}
        made = make(settings={**settings, "reflector.provider": "rules"})
        made.ingest(story(4))
        made.tick()
        made.flush()
        made.reflect()
        made.build_context()
        assert capfd.readouterr() == ("", "")

    def test_somebody_else_at_the_session_is_reported(self, make: Make, tmp_path: Path) -> None:
        made = make(wait=0, settings={"observe.tokens": 1})
        made.ingest(story(4))
        far = "2100-01-01T00:00:00.000Z"
        with SqliteStore.open(tmp_path / "m.db", wait=1) as store:
            store.leases.claim("s", Lane.OBSERVE, owner="elsewhere:1:1", now=NOW, expires_at=far)
        assert isinstance(made.tick().error, LaneTaken)
        with pytest.raises(LaneTaken):
            made.flush()
        assert made.build_context().stats.pending == 4


class TestClosing:
    def test_a_closed_compressor_does_nothing_more(self, make: Make) -> None:
        with make() as made:
            made.ingest(story(2))
        made.close()
        for call in (lambda: made.ingest(()), made.tick, made.flush, made.reflect, made.build_context):
            with pytest.raises(BadUsage, match="closed"):
                call()

    def test_nothing_is_held_between_two_calls(self, make: Make, tmp_path: Path) -> None:
        """So that a fork, another thread and a store that is moved away are no matter."""
        made = make()
        made.ingest(story(2))
        made.build_context()
        held = {os.path.realpath(f"/proc/self/fd/{number}") for number in range(200)}
        assert not [path for path in held if path.startswith(str(tmp_path / "m.db"))]
        (tmp_path / "m.db").rename(tmp_path / "n.db")
        assert made.build_context().text == ""


class TestThreads:
    """What is said of them is so."""

    @pytest.fixture
    def slow(self, tmp_path: Path) -> tuple[dict[str, object], Path]:
        """A model that answers when it is let, as a program."""
        let = tmp_path / "let"
        program = tmp_path / "slow.sh"
        program.write_text(
            f"#!/bin/sh\ncat > /dev/null\necho x >> {tmp_path}/asked\n"
            f"while [ ! -e {let} ]; do sleep 0.05; done\ncat <<'E'\n{answer()}\nE\n"
        )
        program.chmod(0o755)
        return {"observer.model": f"command/{program}", "observe.tokens": 1}, let

    def test_threads_that_hand_over_at_once_lose_and_double_nothing(self, make: Make) -> None:
        """Each its own messages, and all of them the same ones as well."""
        made = make()

        def hand_over(thread: int) -> int:
            new = sum(made.ingest(user(f"{thread} says {number}")).new for number in range(5))
            return new + sum(made.ingest(user("ok")).new for _ in range(3))

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(hand_over, range(4))) == 32
        assert made.build_context().stats.pending == 32

    def test_a_context_is_built_and_messages_are_taken_in_while_a_model_thinks(
        self, make: Make, tmp_path: Path, slow: tuple[dict[str, object], Path]
    ) -> None:
        """S0.19, T75."""
        settings, let = slow
        made = make(settings=settings)
        made.ingest(story(4))
        with ThreadPoolExecutor(1) as pool:
            ticking = pool.submit(made.tick)
            try:
                while not (tmp_path / "asked").exists():
                    assert not ticking.done(), ticking.result()
                assert made.ingest(story(6)).new == 2
                assert made.build_context().stats.pending == 6
            finally:
                let.touch()
            assert ticking.result().error is None

    @pytest.mark.parametrize("is_shared", [True, False], ids=["one compressor", "two"])
    def test_two_threads_never_ask_for_the_same_batch(
        self, make: Make, tmp_path: Path, slow: tuple[dict[str, object], Path], *, is_shared: bool
    ) -> None:
        settings, let = slow
        first = make(settings=settings)
        second = first if is_shared else make(settings=settings)
        first.ingest(story(4))
        with ThreadPoolExecutor(2) as pool:
            ticking = [pool.submit(made.tick) for made in (first, second)]
            while not (tmp_path / "asked").exists():
                pass
            let.touch()
            done = [each.result() for each in ticking]
        assert [each.error for each in done] == [None, None]
        assert (tmp_path / "asked").read_text() == "x\n"
        assert first.build_context().stats.pending == 0
