"""Which provider is meant, and what is wrong with it, before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from omcli.base.errors import BadConfiguration, NotAllowed
from omcli.llm.model import Prompt, Provider
from omcli.providers.endpoints import ENDPOINTS, split_model
from omcli.providers.resolve import ModelSpec, provider
from omcli.wiring.models import USUAL_KEYS, endpoint_with_key
from tests.fake_provider import FakeModel, KnownOutputModes


def chosen(spec: ModelSpec, environment: Mapping[str, str] | None = None) -> Provider:
    return provider(spec, environment=environment or {}, output_modes=KnownOutputModes())


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        ("ollama/qwen2.5:7b", ("ollama", "qwen2.5:7b")),
        ("openrouter/google/gemini-2.5-flash", ("openrouter", "google/gemini-2.5-flash")),
        ("google/gemini-2.5-flash", (None, "google/gemini-2.5-flash")),
        ("claude-haiku-4-5", (None, "claude-haiku-4-5")),
        ("scripted//tmp/replies.json", ("scripted", "/tmp/replies.json")),
        ("command/agent --model x/y", ("command", "agent --model x/y")),
        ("ollama", (None, "ollama")),
        ("/x", (None, "/x")),
    ],
)
def test_a_model_may_begin_with_its_endpoint(model: str, parts: tuple[str | None, str]) -> None:
    assert split_model(model) == parts


@pytest.mark.parametrize(
    ("provider", "parts"),
    [
        (None, ("openai", "gpt-4o")),
        ("anthropic", ("openai", "gpt-4o")),
        ("unknown", ("openai", "gpt-4o")),
        ("openrouter", (None, "openai/gpt-4o")),
    ],
)
def test_openrouter_has_models_with_the_names_of_other_endpoints(
    provider: str | None, parts: tuple[str | None, str]
) -> None:
    assert split_model("openai/gpt-4o", provider) == parts
    assert split_model("openrouter/openai/gpt-4o", provider) == ("openrouter", "openai/gpt-4o")


@pytest.mark.parametrize(
    ("environment", "endpoint"),
    [
        ({}, None),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, "anthropic"),
        ({"ANTHROPIC_AUTH_TOKEN": "k"}, "anthropic"),
        ({"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "k"}, "openai"),
        ({"OPENROUTER_API_KEY": "k"}, None),
    ],
)
def test_a_key_selects_its_endpoint(environment: dict[str, str], endpoint: str | None) -> None:
    assert endpoint_with_key(environment) == endpoint


def test_the_usual_keys_are_those_of_their_endpoints() -> None:
    usual = {name: ENDPOINTS[name].key_variables for name in dict.fromkeys(USUAL_KEYS.values())}
    assert [(key, name) for name, keys in usual.items() for key in keys] == list(USUAL_KEYS.items())


@pytest.mark.parametrize("name", [name for name, place in ENDPOINTS.items() if not place.is_local])
def test_a_missing_key_is_reported_in_one_line_before_any_request(name: str) -> None:
    """F75, S3.17: one SDK fails at the request, with a TypeError, the other as soon as it is made."""
    with pytest.raises(NotAllowed) as failed:
        chosen(ModelSpec(endpoint=name, model="m"), {"HOME": "/nowhere"})
    variable = ENDPOINTS[name].key_variables[0]
    assert variable in failed.value.message
    assert variable in failed.value.hint
    assert "`--observer rules`" in failed.value.hint
    assert failed.value.exit_code == 77


@pytest.mark.parametrize("name", [name for name, place in ENDPOINTS.items() if place.is_local and place.base_url])
def test_a_local_endpoint_needs_no_key(name: str) -> None:
    """F75."""
    model = chosen(ModelSpec(endpoint=name, model="qwen2.5:7b"))
    assert (model.name, model.model) == (name, "qwen2.5:7b")


@pytest.mark.parametrize("url", ["http://localhost:8000/v1", "http://127.0.0.1:1/v1", "http://[::1]:8000/v1"])
def test_nothing_on_this_machine_needs_a_key(url: str) -> None:
    """F75."""
    chosen(ModelSpec(endpoint="openai", model="m", base_url=url))


def test_a_remote_address_needs_a_key_under_any_name() -> None:
    """F75."""
    with pytest.raises(NotAllowed):
        chosen(ModelSpec(endpoint="openai", model="m", base_url="https://models.example/v1"))


@pytest.mark.parametrize(
    "url",
    ["", "models.example", "ftp://models.example", "http://", "http://host:port/v1", "http://host:99999/v1",
     "http://a b/v1", "http://user:word@host/v1", "https://host/v1?key=1", "https://host/\x00", "http://[::1/v1"],
)  # fmt: skip
def test_an_invalid_base_url_is_reported(url: str) -> None:
    with pytest.raises(BadConfiguration, match="base URL"):
        chosen(ModelSpec(endpoint="ollama", model="m", base_url=url or "x:"))


def test_an_unknown_provider_is_reported() -> None:
    with pytest.raises(BadConfiguration, match="'olama' is not a known provider") as failed:
        chosen(ModelSpec(endpoint="olama", model="m"))
    assert "ollama" in failed.value.hint


def test_a_missing_model_is_reported() -> None:
    with pytest.raises(BadConfiguration, match="ollama needs a model"):
        chosen(ModelSpec(endpoint="ollama"))


def test_a_cheap_model_is_the_default() -> None:
    """S1.6."""
    assert chosen(ModelSpec(endpoint="anthropic", key="k")).model == "claude-haiku-4-5"
    assert chosen(ModelSpec(endpoint="openai"), {"OPENAI_API_KEY": "k"}).model == "gpt-5-mini"


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_an_invalid_key_is_reported_without_showing_it(key: str) -> None:
    """F75."""
    with pytest.raises(NotAllowed) as failed:
        chosen(ModelSpec(endpoint="openai"), {"OPENAI_API_KEY": key})
    assert "OPENAI_API_KEY" in failed.value.message
    assert key not in failed.value.message


def test_a_timeout_of_zero_is_refused() -> None:
    with pytest.raises(BadConfiguration, match=r"0 s is not a valid timeout"):
        chosen(ModelSpec(endpoint="openai", key="k", timeout=0))


def test_pictures_follow_the_setting() -> None:
    """S2.20."""
    assert chosen(ModelSpec(endpoint="anthropic", key="k")).takes_images
    assert not chosen(ModelSpec(endpoint="anthropic", key="k", images=False)).takes_images
    assert not chosen(ModelSpec(endpoint="ollama", model="llava")).takes_images
    assert chosen(ModelSpec(endpoint="ollama", model="llava", images=True)).takes_images


PROMPT = Prompt(system="s", content=("m1 hello",), schema={"type": "object"}, name="n")


def test_keys_and_addresses_of_the_environment_are_used(fake_model: FakeModel) -> None:
    chosen(ModelSpec(endpoint="openai"), {"OPENAI_API_KEY": " k1\n", "OPENAI_BASE_URL": f"{fake_model.url}/"}).ask(
        PROMPT
    )
    chosen(ModelSpec(endpoint="anthropic"), {"ANTHROPIC_API_KEY": "k2", "ANTHROPIC_BASE_URL": fake_model.url}).ask(
        PROMPT
    )
    chosen(ModelSpec(endpoint="anthropic", base_url=fake_model.root), {"ANTHROPIC_AUTH_TOKEN": "k3"}).ask(PROMPT)
    chosen(ModelSpec(endpoint="openai", base_url=fake_model.url, key="k4"), {"OPENAI_API_KEY": "k1"}).ask(PROMPT)
    assert [asked.key for asked in fake_model.asked] == ["k1", "k2", "k3", "k4"]
    assert fake_model.asked[2].headers["authorization"] == "Bearer k3"


def test_a_key_is_sent_to_its_own_endpoint_only(fake_model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK reads the environment as well; a local server is sent no key, and no account."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    monkeypatch.setenv("OPENAI_ORG_ID", "secret-account")
    chosen(ModelSpec(endpoint="ollama", model="m", base_url=fake_model.url), {"OPENAI_API_KEY": "secret-key"}).ask(
        PROMPT
    )
    assert "secret" not in json.dumps(dict(fake_model.asked[0].headers))


def test_a_profile_of_the_sdk_is_as_good_as_a_key(
    fake_model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F75: where the SDK finds credentials of its own, it is let."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "credentials").mkdir(mode=0o700)
    config = {"version": "1.0", "authentication": {"type": "user_oauth"}, "base_url": fake_model.root}
    (tmp_path / "configs" / "default.json").write_text(json.dumps(config))
    credentials = tmp_path / "credentials" / "default.json"
    credentials.write_text(json.dumps({"version": "1.0", "type": "oauth_token", "access_token": "of-the-profile"}))
    credentials.chmod(0o600)
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    model = chosen(ModelSpec(endpoint="anthropic"), {"ANTHROPIC_CONFIG_DIR": str(tmp_path)})
    model.ask(PROMPT)
    assert fake_model.asked[0].key == "of-the-profile"


@pytest.mark.parametrize("variable", ["ANTHROPIC_CONFIG_DIR", "HOME"])
def test_a_profile_without_credentials_is_reported(
    fake_model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """F75: the SDK passes over a broken profile that nobody named, and fails with a TypeError at the request."""
    folder = tmp_path if variable == "ANTHROPIC_CONFIG_DIR" else tmp_path / ".config" / "anthropic"
    (folder / "configs").mkdir(parents=True)
    (folder / "configs" / "default.json").write_text("{")
    monkeypatch.setenv(variable, str(tmp_path))
    model = chosen(ModelSpec(endpoint="anthropic", base_url=fake_model.root), {variable: str(tmp_path)})
    with pytest.raises(NotAllowed):
        model.ask(PROMPT)
    assert not fake_model.asked
