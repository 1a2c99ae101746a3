"""Presets and settings of models, with a scripted model or none; each run a fresh process."""

from __future__ import annotations

import stat

import pytest

from tests.conftest import Om
from tests.e2e.transcripts import tide_story

PRESETS = ("default", "zora", "lango", "duet", "pi", "coding", "mastra")
# A model whose command line is kept by `command`: it answers nothing of use, and says what it was asked.
ASKED = "#!/bin/sh\ncat > asked.txt\nexit 1\n"


@pytest.mark.parametrize("preset", PRESETS)
def test_without_a_key_every_preset_goes_by_rules(om: Om, preset: str) -> None:
    """S1.6, S3.5, S3.17, D15: the model that a preset proposes is nobody's wish."""
    om.write("tide.jsonl", tide_story().text())
    observed = om("--preset", preset, "observe", "tide.jsonl", "--json").document["files"][0]
    assert observed["observations"]
    assert om("--preset", preset, "reflect", "--json").stderr.count("error") == 0
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


def test_an_endpoint_that_is_named_needs_its_key_and_one_that_is_proposed_does_not(om: Om) -> None:
    """D15: what somebody has configured is not silently replaced."""
    om.write("tide.jsonl", tide_story().text())
    run = om("--preset", "pi", "observe", "tide.jsonl", env={"OM_OBSERVER_PROVIDER": "gemini"}, code=77)
    assert "gemini needs a key" in run.stderr
    assert om("--preset", "pi", "observe", "tide.jsonl").code == 0


def test_the_address_of_one_provider_is_never_another_ones(om: Om) -> None:
    """A key goes to the endpoint it is for, whatever a weaker layer says of another."""
    om.write("mine.toml", '[observer]\nprovider = "ollama"\nmodel = "qwen"\nbase_url = "http://127.0.0.1:9/v1"\n')
    asked = om("config", "--config", "mine.toml", "--json", env={"OM_OBSERVER_PROVIDER": "anthropic"}).document
    assert asked["settings"]["observer.base_url"] is None
    assert asked["settings"]["observer.model"] is None
    assert asked["settings"]["reflector.provider"] == "anthropic"
