"""Presets and settings of models, with a scripted model or none; each run a fresh process."""

from __future__ import annotations

import stat

import pytest

from tests.conftest import Om
from tests.e2e.transcripts import PROJECT, Talk, tide_story

PRESETS = ("default", "zora", "lango", "duet", "pi", "coding", "mastra")
# A model whose command line is kept by `command`: it answers nothing of use, and says what it was asked.
ASKED = "#!/bin/sh\ncat > asked.txt\nexit 1\n"


WITH_MODEL = ("pi", "mastra")
"""Presets that choose a model."""


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_goes_by_rules_if_it_or_somebody_says_so(om: Om, preset: str) -> None:
    """S1.6, S3.5, XA1: a preset without a model means rules; one with a model does so only with `--observer rules`."""
    om.write("tide.jsonl", tide_story().text())
    rules = ("--observer", "rules") if preset in WITH_MODEL else ()
    observed = om("--preset", preset, "observe", *rules, "tide.jsonl", "--json").document["files"][0]
    assert observed["observations"]
    by = ("--reflector", "rules") if preset in WITH_MODEL else ()
    assert om("--preset", preset, "reflect", *by, "--json").stderr.count("error") == 0
    assert om("--preset", preset, "context").stdout
    assert om("--preset", preset, "tick", "--check", code=None).code in (0, 1)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_observes_with_a_model_that_is_named(om: Om, preset: str) -> None:
    """Limits that a preset does not have are the usual ones; what a model costs is no business of the preset."""
    program = om.write("model.sh", ASKED)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    om.write("config.toml", f'preset = "{preset}"\nobserver.provider = "command"\nobserver.command = "{program}"\n')
    om.write("tide.jsonl", tide_story().text())
    run = om("observe", "--config", "config.toml", "tide.jsonl", code=None)
    assert "bug" not in run.stderr
    asked = (om.folder / "asked.txt").read_text(encoding="utf-8")
    assert ("Write 2 to 5 sentences altogether." in asked) == (preset == "lango")


@pytest.mark.parametrize("preset", WITH_MODEL)
def test_the_model_of_a_preset_needs_its_key(om: Om, preset: str) -> None:
    """XA1, S3.3, S3.17, D15: it was chosen with the preset, so rules do not silently replace it."""
    om.write("tide.jsonl", tide_story().text())
    run = om("--preset", preset, "observe", "tide.jsonl", code=77)
    assert "gemini needs a key, and GEMINI_API_KEY or GOOGLE_API_KEY is not set" in run.stderr
    assert "`--observer rules`" in run.stderr
    asked = om(
        "--preset", preset, "observe", "tide.jsonl", env={"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, code=77
    )
    assert "gemini needs a key" in asked.stderr, "the keys of others are for something else"
    assert om("status", "--json").document["pending"] == 8


def test_the_address_of_one_provider_is_never_another_ones(om: Om) -> None:
    """A key goes to the endpoint it is for, whatever a weaker layer says of another."""
    om.write("mine.toml", '[observer]\nprovider = "ollama"\nmodel = "qwen"\nbase_url = "http://127.0.0.1:9/v1"\n')
    asked = om("config", "--config", "mine.toml", "--json", env={"OM_OBSERVER_PROVIDER": "anthropic"}).document
    assert asked["settings"]["observer.base_url"] is None
    assert asked["settings"]["observer.model"] is None
    assert asked["settings"]["reflector.provider"] == "anthropic"


def test_a_count_of_a_preset_means_the_entries_of_its_design(om: Om) -> None:
    """XB9: lango's 20 observations are 20 texts about a batch each, not 20 facts; a request is never one too many."""
    talk = Talk().user("Give each station a loader, and never touch compose.yaml.")
    for number in range(40):
        body = f"def load_{number}(path): return {number}"
        talk.call("Write", {"file_path": f"{PROJECT}/s{number}.py", "content": body}).result("ok")
    om("--preset", "lango", "observe", "-q", stdin=talk.text())
    pack = om("--preset", "lango", "context").stdout
    assert "User: Give each station a loader" in pack
    assert sum(f"s{number}.py" in pack for number in range(40)) > 20
    asked = om("context", "--tier", "session", "--budget", "2000", env={"OM_CONTEXT_OBSERVATIONS": "0"}).stdout
    assert "User: Give each station a loader" in asked
    assert "s1.py" not in asked
