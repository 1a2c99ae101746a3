"""What a model would cost: `--estimate`, and the notice that a key is set although no model is chosen."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from omcli.tokenizers import counter
from tests.conftest import Om
from tests.e2e.background import wait_until
from tests.e2e.scripts import UNTIL, always
from tests.e2e.transcripts import long_talk, tide_story
from tests.fake_provider import KEY, FakeModel

SESSION = "5d0c6e0a-0000-4000-8000-000000000001"
DUE = {"OM_OBSERVE_TOKENS": "1", "OM_REFLECT_TOKENS": "1"}
KEYS = {"ANTHROPIC_API_KEY": "anthropic", "ANTHROPIC_AUTH_TOKEN": "anthropic", "OPENAI_API_KEY": "openai"}


def files(om: Om) -> dict[str, str]:
    """The digest of every file, without those that SQLite makes for readers."""
    found = (path for path in om.folder.rglob("*") if path.is_file() and path.suffix not in (".db-shm", ".db-wal"))
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def transcript(om: Om, messages: int = 400) -> Path:
    return Path(om.write("t.jsonl", long_talk(SESSION, messages).text()))


class TestEstimate:
    def test_it_is_what_the_run_then_asks(self, om: Om, fake_model: FakeModel) -> None:
        """XA3: the same calls, the same prompts, and the dollars of the known price."""
        path = transcript(om)
        chosen = ("--observer", "openai", "--base-url", fake_model.url)
        found = om("observe", path, "--estimate", "--json", *chosen).document["estimate"]
        assert fake_model.asked == []
        om("observe", path, *chosen, env={"OPENAI_API_KEY": KEY})
        assert found["calls"] == len(fake_model.asked) > 1
        count = counter("o200k-approx").text
        sent = sum(count(asked.system) + count(asked.text) for asked in fake_model.asked)
        assert sent < found["input_tokens"] < 1.5 * sent, "the schema counts as well"
        assert 0 < found["output_tokens"] < found["input_tokens"]
        assert found["cost"] == pytest.approx(
            (found["input_tokens"] * 0.25 + found["output_tokens"] * 2.0) / 1e6, abs=1e-6
        )
        [of_model] = found["models"]
        assert (of_model["lane"], of_model["model"]) == ("observe", "openai/gpt-5-mini")

    @pytest.mark.parametrize("command", ["observe", "tick", "consolidate"])
    def test_it_asks_nobody_changes_nothing_and_needs_no_key(self, om: Om, fake_model: FakeModel, command: str) -> None:
        """XA3: no row, no message, no call, no backup, no note moved; the run itself would reflect as well."""
        path = transcript(om)
        om("observe", "-q", "--later", path)
        notes = om.folder / "notes"
        notes.mkdir()
        (notes / "2026-01-05.md").write_text("- We decided on port 8080.\n", encoding="utf-8")
        words = {
            "observe": ("observe", path),
            "tick": ("tick",),
            "consolidate": ("consolidate", "--no-places", "--notes", str(notes), "--archive-after", "1d"),
        }[command]
        chosen = ("--observer", "anthropic", "--base-url", fake_model.root)
        before = files(om)
        run = om(*words, "--estimate", *chosen, env=DUE)
        assert files(om) == before
        assert fake_model.asked == []
        assert "claude-haiku-4-5" in run.stdout
        assert run.stdout.splitlines()[-1].startswith("total  ")
        assert "$" in run.stdout
        assert ("reflect  " in run.stdout) == (command != "observe")
        assert om("usage", "--json").document["total"]["calls"] == 0

    def test_it_makes_no_store(self, om: Om) -> None:
        """XA3: of a transcript that was never read, and of nothing at all."""
        path = transcript(om, 20)
        assert om("observe", path, "--estimate", "--model", "openai/gpt-5-mini", "--json").document["estimate"]["calls"]
        assert om("tick", "--estimate", "--model", "openai/gpt-5-mini").stdout.startswith("total  0 calls")
        om("consolidate", "--no-places", "--estimate")
        assert not om.has_store

    def test_messages_that_are_observed_cost_nothing_again(self, om: Om) -> None:
        """XA3: of a file that has grown, only what is new."""
        talk = long_talk(SESSION, 400)
        om("observe", "-q", om.write("t.jsonl", talk.text()))
        path = om.write("t.jsonl", talk.user("From now on use port 9000.").text())
        chosen = ("--estimate", "--model", "openai/gpt-5-mini", "--json")
        grown = om("observe", path, *chosen).document["estimate"]
        whole = om("observe", path, *chosen, "--db", "other.db").document["estimate"]
        assert (grown["calls"], whole["calls"] > 1) == (1, True)

    def test_rules_cost_nothing_and_an_unknown_price_is_not_guessed(self, om: Om) -> None:
        """XA3: a local model costs nothing, and a model without a price has no `cost`."""
        path = transcript(om, 20)
        rules = om("observe", path, "--estimate", "--json")
        assert rules.document["estimate"] == {
            "calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0, "models": [],
        }  # fmt: skip
        assert "--model NAME" in rules.stderr
        local = om("observe", path, "--estimate", "--model", "ollama/qwen", "--json").document["estimate"]
        assert (local["calls"], local["cost"]) == (1, 0.0)
        unknown = om("observe", path, "--estimate", "--model", "openai/whatever", "--json").document["estimate"]
        assert unknown["calls"] == 1
        assert "cost" not in unknown
        assert "unknown price" in om("observe", path, "--estimate", "--model", "openai/whatever").stdout

    def test_a_run_that_is_going_on_is_not_waited_for(self, om: Om) -> None:
        """XA3: the copy has no leases."""
        path = transcript(om, 20)
        model = always(om, {"text": "echo", **UNTIL})
        working = om.start("observe", "--model", model.model, path)
        wait_until(lambda: bool(model.asked))
        estimate = om("observe", path, "--estimate", "--model", "openai/gpt-5-mini", "--json", "--wait", "0")
        assert estimate.document["estimate"]["calls"] == 1
        model.answers()
        working.communicate()
        assert working.returncode == 0

    @pytest.mark.parametrize(
        "words",
        [("observe", "--later"), ("observe", "--background"), ("tick", "--check"), ("tick", "--background")],
    )
    def test_it_goes_with_nothing_that_does_less(self, om: Om, words: tuple[str, ...]) -> None:
        om(*words, "--estimate", stdin=tide_story().text(), code=2)

    def test_a_file_that_cannot_be_read_ends_as_it_does_without(self, om: Om) -> None:
        assert om("observe", "missing.jsonl", "--estimate", code=66).stdout == ""


def test_the_status_names_who_observes_and_reflects(om: Om) -> None:
    """S1.6, XA3: rules, or the chosen model, also without its key; and a key that is not used."""
    assert [om("status", "--json").document[role] for role in ("observer", "reflector")] == ["rules", "rules"]
    for name in ("anthropic/claude-haiku-4-5", "ollama/qwen2.5:7b"):
        env = {"OM_OBSERVER_MODEL": name}
        document = om("status", "--json", env=env).document
        assert (document["observer"], document["reflector"]) == (name, name)
    assert om("status", "--preset", "pi", "--json").document["observer"] == "gemini/gemini-2.5-flash"
    printed = om("status", env={"OPENAI_API_KEY": "k"}).stdout
    assert "rules (OPENAI_API_KEY is set, but no model is chosen)" in printed


class TestNotice:
    @pytest.mark.parametrize("variable", KEYS)
    @pytest.mark.parametrize("command", ["observe", "tick", "consolidate"])
    def test_an_unused_key_is_told_once_per_store(self, om: Om, command: str, variable: str) -> None:
        """XA3: how to choose a model, and about what it costs; not at every turn of a hook."""
        env = {variable: "k", "OM_OBSERVE_TOKENS": "1"}
        told = []
        for number in range(3):
            talk = tide_story(session=f"s{number}").user("From now on use port 9000.")
            path = om.write(f"{number}.jsonl", talk.text())
            if command != "observe":
                om("observe", "-q", "--later", path, env=env)
            words = {"observe": (path,), "consolidate": ("--no-places",)}.get(command, ())
            told.append([line for line in om(command, *words, env=env).stderr.splitlines() if variable in line])
        assert [len(lines) for lines in told] == [1, 0, 0]
        [line] = told[0]
        assert f"`--observer {KEYS[variable]}`" in line
        assert f"OM_OBSERVER_PROVIDER={KEYS[variable]}" in line
        assert "$0.0" in line
        other = om("observe", om.folder / "0.jsonl", "--db", "other.db", env=env)
        assert variable in other.stderr, "of another store it is told again"

    @pytest.mark.parametrize("result", ["The tide is high. " * 2000, "The tide is high."])
    def test_it_names_the_cost_that_an_estimate_names(self, om: Om, result: str) -> None:
        """XA3: of long results and arguments, only what a model is shown."""
        talk = tide_story().call("Bash", {"command": "cat tides", "input": result}).result(result)
        path = om.write("t.jsonl", talk.user("Thank you, that is all.").text())
        line = om("observe", path, env={"ANTHROPIC_API_KEY": "k"}).stderr
        told = float(line.partition("about $")[2].split()[0])
        model = line.partition("chooses ")[2].partition(",")[0]
        estimate = om(
            *("observe", path, "--estimate", "--json", "--model", f"anthropic/{model}", "--db", "other.db"),
            env={"ANTHROPIC_API_KEY": "k"},
        ).document["estimate"]
        assert 0.7 < told / estimate["cost"] < 1.4

    def test_it_is_not_told_where_it_does_not_help(self, om: Om) -> None:
        """XA3: if rules or a model were chosen, if nobody would read it, or if nothing was observed."""
        path = transcript(om, 20)
        env = {"OPENAI_API_KEY": "k"}
        assert "OPENAI" not in om("observe", path, "--later", env=env).stderr
        assert "OPENAI" not in om("observe", path, "--estimate", env=env).stderr
        assert "OPENAI" not in om("observe", path, "-q", "--session", "quiet", env=env).stderr
        assert "OPENAI" not in om("observe", path, "--observer", "rules", "--db", "b.db", env=env).stderr
        assert "OPENAI" not in om("--preset", "coding", "observe", path, "--db", "c.db", env=env).stderr
        model = always(om, "echo")
        assert "OPENAI" not in om("observe", path, "--model", model.model, "--db", "d.db", env=env).stderr
        grown = om.write("t.jsonl", long_talk(SESSION, 20).user("From now on use port 9000.").text())
        assert "OPENAI" in om("observe", grown, env=env).stderr, "it was not used up by the runs before"
