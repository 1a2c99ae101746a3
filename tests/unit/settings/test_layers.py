"""Settings: who wins, what values mean, and what is refused."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import platformdirs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from omcli.base.errors import BadConfiguration, BadUsage
from omcli.llm.model import Price
from omcli.settings import default_store, resolve, user_file
from omcli.settings import settings as records
from omcli.settings.editing import schema
from omcli.settings.layers import PRESETS, Layers, preset_file, variable_name
from omcli.settings.settings import Files, Settings
from omcli.settings.values import (
    DEFAULTS,
    KEYS,
    PROJECT_RULES,
    BadValue,
    ProjectRule,
    as_json,
    parse_value,
    project_may_set,
    reaches_further,
    toml,
)

FILE_SCHEMA = Draft202012Validator(schema())
OF_A_PROVIDER = ("model", "base_url", "command", "fallback_model", "max_output")
FOLLOWING = {"reflect.batch_tokens", *(f"reflector.{name}" for name in ("provider", *OF_A_PROVIDER))}
"""Keys that take what another key says where nobody says anything about them."""


def settled(
    *,
    flags: Mapping[str, object] | None = None,
    variables: Mapping[str, str] | None = None,
    project: str | None = None,
    user: str | None = None,
) -> Settings:
    """Settings from layers; files are given by their content."""
    with TemporaryDirectory() as folder:
        paths = {name: Path(folder, name) for name in ("project", "user")}
        for name, content in (("project", project), ("user", user)):
            if content is not None:
                paths[name].write_text(content, encoding="utf-8")
        files = Files(user=paths["user"], is_named=False, project=None if project is None else paths["project"])
        return Layers(flags=flags or {}, variables=variables or {}, files=files).settings(default_store=default_store)


def values_of(key: str) -> st.SearchStrategy[Any]:
    """Valid values of a key, as JSON."""
    kind = KEYS[key].removesuffix(" | None")
    words = st.text("abcdefgh", min_size=1, max_size=8)
    by_kind: dict[str, st.SearchStrategy[Any]] = {
        "Path": words.map("/{}".format),
        "str": words,
        "bool": st.booleans(),
        "Span": st.sampled_from(["1-2", "3-8"]),
        "tuple[int, ...]": st.lists(st.integers(0, 4), min_size=1, max_size=4),
        "tuple[Path, ...]": st.lists(words.map("/{}".format), min_size=1, max_size=3),
        "tuple[Part, ...]": st.permutations(["cross", "session", "tail"]),
        "Mapping[str, Price]": st.dictionaries(
            words, st.fixed_dictionaries({"input": st.floats(0, 99), "output": st.floats(0, 99)}), max_size=2
        ),
        **dict.fromkeys(("int", "Tokens"), st.integers(0, 10**6)),
        **dict.fromkeys(("float", "Amount", "Days"), st.floats(0, 10**6)),
    }
    return by_kind[kind] if kind in by_kind else st.sampled_from(get_args(getattr(records, kind)))


SAYABLE = sorted(set(KEYS) - {"preset"})
LAYERS = ("user", "project", "variables", "flags")
"""The weakest first."""
SAID = st.fixed_dictionaries(
    {
        layer: st.lists(st.sampled_from(SAYABLE), max_size=12, unique=True).flatmap(
            lambda keys: st.fixed_dictionaries({key: values_of(key) for key in keys})
        )
        for layer in LAYERS
    }
)


def as_file(said: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {toml(key, value)}\n" for key, value in said.items())


def as_variables(said: Mapping[str, Any]) -> dict[str, str]:
    return {
        variable_name(key): ",".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in said.items()
        if key != "prices"
    }


def may_set(key: str, value: Any, without: Settings, *, is_own: bool) -> bool:
    """Whether a project may set a valid value over these settings; `is_own` if the user's file sets it."""
    if not project_may_set(key, value):
        return False
    own = parse_value(key, as_json(without)[key], whole=200_000) if as_json(without)[key] is not None else None
    is_any = PROJECT_RULES[key] is ProjectRule.ANY and not is_own
    return is_any or reaches_further(key, parse_value(key, value, whole=200_000), own) <= 0


@given(said=SAID, preset=st.sampled_from(PRESETS))
def test_the_strongest_source_of_a_value_wins(said: dict[str, dict[str, Any]], preset: str) -> None:
    """T71, S3.2, XE3: flag > variable > project file > user file > preset > default, key by key, as far as the project
    may set it.
    """
    said["variables"].pop("prices", None)
    made = settled(
        user=as_file(said["user"]),
        project=as_file(said["project"]),
        variables=as_variables(said["variables"]),
        flags={"preset": preset, **said["flags"]},
    )
    alone, now = as_json(settled(flags={"preset": preset})), as_json(made)
    shares = {"reflect.target", "context.cross", "context.tail", "context.evict", "reflect.tokens"}
    # What is said of one provider's models may mean nothing for the one that is named; see below.
    provided = {
        role
        for role in ("observer", "reflector", "embeddings")
        if any(f"{role}.provider" in layer for layer in said.values())
    }
    named = {role for role in ("observer", "reflector") if any(f"{role}.model" in layer for layer in said.values())}
    unsure = {f"{role}.{name}" for role in provided for name in OF_A_PROVIDER} | {f"{role}.provider" for role in named}
    without = settled(user=as_file(said["user"]), flags={"preset": preset})
    allowed = {
        key for key, value in said["project"].items() if may_set(key, value, without, is_own=key in said["user"])
    }
    for key in set(SAYABLE) - {"db"} - unsure:
        speaking = [layer for layer in LAYERS if key in said[layer] and (layer != "project" or key in allowed)]
        if speaking:
            assert now[key] == said[speaking[-1]][key], (key, speaking)
            origin = {"flags": "flag", "variables": variable_name(key)}.get(speaking[-1], f"/{speaking[-1]}")
            assert made.origin(key).endswith(origin)
        elif key not in FOLLOWING and not (key in shares and preset == "duet"):
            assert now[key] == alone[key], key
    warned = {warning.split("`")[1] for warning in made.warnings}
    overruled = said["variables"].keys() | said["flags"].keys()  # a value that nobody would use is not compared
    refused = {key for key, value in said["project"].items() if not project_may_set(key, value)}
    assert warned == refused | (said["project"].keys() - allowed - overruled)


@given(said=st.fixed_dictionaries({key: values_of(key) for key in SAYABLE}))
def test_printed_settings_can_be_read_again(said: dict[str, Any]) -> None:
    once = settled(user=as_file(said))
    again = settled(user=as_file(as_json(once)))
    assert not again.warnings
    assert as_json(again) == as_json(once)


def test_the_preset_file_of_the_defaults_lists_every_key_with_its_default() -> None:
    """S0.34: what people read is what holds."""
    text = preset_file("default").read_text(encoding="utf-8")
    made = settled(user=text)
    assert not made.warnings
    assert as_json(made) | {"db": None} == as_json(DEFAULTS) | {"db": None}
    said = tomllib.loads(text)
    flat = {f"{name}.{key}" for name in said if isinstance(said[name], dict) for key in said[name]}
    assert flat | {name for name in said if not isinstance(said[name], dict)} | {"db", "prices"} == set(KEYS)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_no_invalid_values(name: str) -> None:
    assert settled(user=preset_file(name).read_text(encoding="utf-8")).warnings == ()


def test_every_preset_has_a_file() -> None:
    assert {path.stem for path in preset_file("default").parent.glob("*.toml")} == set(PRESETS)


@pytest.mark.parametrize(
    ("key", "said", "value"),
    [
        ("observe.tokens", "12_000", 12_000), ("observe.tokens", "25%", 50_000), ("reflect.target", "16.25%", 32_500),
        ("reflect.target", "0.5", 0.5), ("reflect.tokens", "unlimited", None), ("reflect.min_age", "2d", 2.0),
        ("disabled", "Yes", True), ("disabled", False, False), ("observe.trigger", " Turn ", "turn"),
        ("context.order", "tail, session", ("tail", "session")), ("context.order", ["tail"], ("tail",)),
        ("reflect.levels", [0, 3], (0, 3)), ("observer.temperature", "unset", None), ("observer.temperature", 1, 1.0),
        ("observe.sentences", "2-5", "2-5"),
        ("prices", {"m": {"input": 1, "output": 2}}, {"m": Price(input=1.0, output=2.0)}),
    ],
)  # fmt: skip
def test_values_are_read_as_people_write_them(key: str, said: object, value: object) -> None:
    assert parse_value(key, said, whole=200_000) == value


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("observe.tokens", -1), ("observe.tokens", "abc"), ("observe.tokens", 1.5), ("observe.tokens", True),
        ("observe.tokens", "120%"), ("observe.tokens", "-1%"), ("observe.tokens", "٣"), ("observe.tokens", 10**30),
        ("observe.tokens", "unlimited"), ("observe.trigger", "sometimes"), ("wait", "nan"), ("wait", "inf"),
        ("wait", [1]), ("wait", "10%"), ("disabled", "perhaps"), ("observer.model", 3), ("observer.model", "  "),
        ("observe.sentences", "few"), ("context.order", ["head"]), ("context.order", 5), ("prices", "cheap"),
        ("prices", {"m": 3}), ("prices", {"m": {"input": 1}}), ("reflect.levels", ["a"]), ("observe.inclusive", {}),
    ],
)  # fmt: skip
def test_invalid_values_are_refused(key: str, said: object) -> None:
    with pytest.raises(BadValue):
        parse_value(key, said, whole=200_000)


@given(
    key=st.sampled_from(SAYABLE),
    said=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    ),
)
def test_no_content_of_a_file_ends_a_run(key: str, said: object) -> None:
    """F92: right or wrong, and nothing else."""
    with suppress(BadValue):
        parse_value(key, said, whole=200_000)


WRITTEN = """
    5 05 1_000 _1 1__0 5. .5 5.5 1e3 1e-5 1E-400
    +5 -5 ٣ 150% 100% 99.5% 100.1% 100.0% 1_0% % . _ 30d 1.5d d unset Unlimited none
    yes ON Off 2 2-5 0-5 1000-2 cross cross,tail Cross,TAIL, cross,,tail 1,3 1,x , ~/a,b global Tokens half-life
""".split()
TEXTS = st.builds(
    str.join,
    st.sampled_from(["", " ", "\u2003", "\n"]),
    st.tuples(
        st.just(""),
        st.sampled_from([*WRITTEN, "9" * 15, "9" * 16, "0" * 20 + "5", "9" * 5000, *get_args(records.Part)])
        | st.text("0123456789._%d,-e ", max_size=6)
        | st.text(max_size=3),
        st.just(""),
    ),
)
PLAIN = st.booleans() | st.integers() | st.integers(-2, 5) | st.floats(allow_nan=False) | st.floats(0, 2) | TEXTS
VALUES = (
    PLAIN
    | st.lists(PLAIN, max_size=3)
    | st.lists(st.sampled_from(["cross", "Session", "tail"]), max_size=3)
    | st.dictionaries(
        st.text(max_size=3), st.dictionaries(st.sampled_from(["input", "output", "cached"]), PLAIN), max_size=2
    )
)


@given(key=st.sampled_from(SAYABLE), value=VALUES)
@settings(max_examples=1000)
def test_the_schema_accepts_what_is_valid(key: str, value: Any) -> None:
    """And nothing else; only `preset`, which is looked up, is not among the keys here."""
    section, _, name = key.rpartition(".")
    try:
        parse_value(key, value, whole=200_000)
        is_valid = True
    except BadValue:
        is_valid = False
    assert FILE_SCHEMA.is_valid({section: {name: value}} if section else {name: value}) is is_valid


def test_the_presets_value_replaces_an_invalid_one() -> None:
    """T71, D11: not that of the file below. XE3: an invalid value of a project leaves the user's alone."""
    made = settled(flags={"preset": "zora"}, variables={"OM_OBSERVE_TOKENS": "-5"}, user="observe.tokens = 7")
    assert made.observe.tokens == 30_000
    assert made.origin("observe.tokens") == "preset zora"
    made = settled(flags={"preset": "zora"}, project="observe.tokens = -5", user="observe.tokens = 7")
    assert made.observe.tokens == 7
    (warning,) = made.warnings
    assert warning.startswith("`observe.tokens = -5` in /")
    assert warning.endswith("/project:1 is not valid (expected a whole number from 0); ignored")


def test_an_invalid_flag_is_a_usage_error() -> None:
    with pytest.raises(
        BadUsage, match=r"`weekly` is not a valid `observe.trigger` \(expected one of tokens, turn, tool, manual\)"
    ):
        settled(flags={"observe.trigger": "weekly"})
    with pytest.raises(BadConfiguration, match="unknown preset `nope`"):
        settled(flags={"preset": "nope"})


def test_shares_are_of_the_configured_context() -> None:
    """S2.3: the ratios of duet times `effective_context`, whoever says that."""
    made = settled(flags={"preset": "duet"}, variables={"OM_EFFECTIVE_CONTEXT": "100000"})
    assert (made.reflect.tokens, made.context.cross, made.context.evict) == (32_500, 7_500, 60_000)
    assert (made.context.tail, made.reflect.target) == (30_000, 16_250)


def test_the_reflectors_model_is_the_observers_unless_it_has_its_own() -> None:
    """S1.6, S3.5."""
    both = settled(user='[observer]\nprovider = "openai"\nmodel = "a"\nbase_url = "http://localhost"')
    assert (both.reflector.provider, both.reflector.model) == ("openai", "a")
    assert both.reflector.base_url == "http://localhost"
    larger = settled(user='observer.provider = "openai"\nobserver.model = "a"\nreflector.model = "b"')
    assert (larger.reflector.provider, larger.reflector.model) == ("openai", "b")
    other = settled(user='observer.provider = "openai"\nobserver.model = "a"\nreflector.provider = "rules"')
    assert (other.reflector.provider, other.reflector.model) == ("rules", None)


def test_a_named_provider_takes_over_nothing_from_another() -> None:
    """Nobody's model is asked of somebody else, and no key is sent to somebody else's address."""
    local = (
        '[observer]\nprovider = "ollama"\nmodel = "qwen"\nbase_url = "http://box"\nmax_output = 500\ntemperature = 1'
    )
    other = settled(user=local, flags={"observer.provider": "anthropic"}).observer
    assert (other.provider, other.model, other.base_url, other.max_output) == ("anthropic", None, None, None)
    assert other.temperature == 1
    same = settled(user=local, flags={"observer.provider": "ollama", "observer.model": "larger"}).observer
    assert (same.provider, same.model, same.base_url) == ("ollama", "larger", "http://box")
    mixed = settled(user=local, variables={"OM_OBSERVER_PROVIDER": "openai", "OM_OBSERVER_MODEL": "m"}).observer
    assert (mixed.provider, mixed.model, mixed.base_url) == ("openai", "m", None)
    alone = settled(user='observer.model = "m"', flags={"observer.provider": "openai"}).observer
    assert (alone.provider, alone.model) == ("openai", "m")
    over_preset = settled(flags={"preset": "pi"}, user='observer.provider = "anthropic"')
    assert (over_preset.observer.model, over_preset.observer.max_output) == (None, None)
    assert (over_preset.reflector.provider, over_preset.reflector.model) == ("anthropic", None)


@pytest.mark.parametrize(
    "line",
    [
        'preset = "duet"', "wait = 86400", "effective_context = 100", "observe.batch_tokens = 1",
        "reflect.attempts = 100", 'observer.provider = "openai"', 'observer.model = "openai/dear"',
        'observer.effort = "high"', "observer.max_output = 100000", 'observer.fallback_model = "openai/dear"',
        "retention.keep_last = 0", "reflect.tokens = 1", "observe.tokens = 0", 'observe.trigger = "tool"',
        'scope = "global"', "tools.result_chars = 100000",
        'db = "/tmp/theirs.db"', 'observer.base_url = "http://theirs"', 'reflector.base_url = "http://theirs"',
        'observer.command = "sh -c theirs"', 'observer.provider = "command"', 'reflector.provider = " command"',
        'observer.provider = "Scripted"', 'observer.model = "command/x"', 'observer.fallback_model = "command/x"',
        'observer.instructions_file = "theirs"', "limits.day_cost = 1000", "provider.timeout = 1",
        'prices = { m = { input = 0, output = 0 } }',
    ],
)  # fmt: skip
def test_a_project_may_not_set_destinations_reach_or_costs(line: str) -> None:
    """F94, XE3: everybody who can write into a repository would."""
    made = settled(project=line)
    assert as_json(made) == as_json(settled())
    (warning,) = made.warnings
    key = line.partition(" =")[0]
    assert "/project:1: " in warning
    assert f"`{key}`" in warning
    assert settled(user=line).warnings == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('scope = "session"', 'scope = "session" (yours: "project")'),
        ('observe.trigger = "manual"', 'observe.trigger = "manual" (yours: "tokens")'),
        ("observe.tokens = 500_000", "observe.tokens = 500000 (yours: 10000)"),
        ("observe.verify = true", "observe.verify = true (yours: false)"),
        ("observer.images = false", "observer.images = false (yours: true)"),
        ("tools.args_chars = 9", "tools.args_chars = 9 (yours: 1500)"),
        ("context.budget = 100", 'context.budget = 100 (yours: "unlimited")'),
        ('context.order = ["tail"]', 'context.order = ["tail"] (yours: ["cross", "session", "tail"])'),
        ("context.block = true", "context.block = true (yours: false)"),
        *((f"context.{name} = 0", f"context.{name} = 0 (yours: {value})")
          for name, value in (("cross", 4000), ("session", 8000), ("tail", 8000), ("observations", '"unlimited"'))),
    ],
)  # fmt: skip
def test_what_a_project_narrows_is_said(line: str, said: str) -> None:
    """XE3: a repository cannot switch memory off or thin it out silently."""
    made = settled(project=line)
    assert made.warnings == ()
    (note,) = made.notes
    assert note.endswith(f"/project narrows memory here: {said}")
    assert settled(user=line).notes == settled(project=line, user=line).notes == ()


def test_a_project_may_choose_rules_and_print_more_of_its_own_memory() -> None:
    """XE3: rules send nothing anywhere; a larger pack of the same project shows nothing else."""
    user = 'observer.provider = "openai"\nobserver.model = "m"'
    rules = settled(user=user, project='observer.provider = "rules"')
    assert (rules.observer.provider, rules.observer.model, rules.reflector.provider) == ("rules", None, "rules")
    assert rules.notes[0].endswith(': observer.provider = "rules" (yours: "openai")')
    larger = settled(project='context.cross = 9000\nnotation = "emoji"\nobserver.provider = "rules"')
    assert (larger.context.cross, larger.notation, larger.notes, larger.warnings) == (9_000, "emoji", (), ())


@pytest.mark.parametrize("role", ["observer", "reflector"])
def test_a_project_that_chooses_rules_instead_of_a_model_says_so(role: str) -> None:
    """XE3, XA1: also if the user named the model with its provider in one."""
    made = settled(user=f'{role}.model = "ollama/m"', project=f'{role}.provider = "rules"')
    assert getattr(made, role).provider == "rules"
    assert made.notes[0].endswith(f': {role}.provider = "rules" (yours: "ollama/m")')


@pytest.mark.parametrize("role", ["observer", "reflector"])
def test_who_names_a_model_is_not_given_rules_by_a_weaker_layer(role: str) -> None:
    """XE3, XA1: neither a project's file, nor one's own, nor a preset."""
    name, rules = f"{role}.model", f'{role}.provider = "rules"'
    variables = {f"OM_{role.upper()}_MODEL": "ollama/m"}
    own = settled(user=f'{role}.provider = "openai"', project=rules, flags={name: "m"})
    assert (getattr(own, role).provider, getattr(own, role).model, own.notes) == ("openai", "m", ())
    for made in (
        settled(project=rules, variables=variables),
        settled(project=rules, user=f'{role}.model = "openai/n"', flags={name: "ollama/m"}),
        settled(user=rules, variables=variables),
        settled(variables={f"OM_{role.upper()}_PROVIDER": "rules"}, flags={name: "ollama/m"}),
    ):
        assert (getattr(made, role).provider, getattr(made, role).model, made.notes) == (None, "ollama/m", ())
    chosen = settled(project=rules, variables={**variables, f"OM_{role.upper()}_PROVIDER": "rules"})
    assert getattr(chosen, role).provider == "rules"


def test_rules_that_observe_leave_a_reflector_of_its_own() -> None:
    """XE3: only what has no provider or model of its own follows the observer."""
    made = settled(user='reflector.model = "ollama/m"', project='observer.provider = "rules"')
    assert (made.observer.provider, made.reflector.provider, made.reflector.model) == ("rules", None, "ollama/m")


@pytest.mark.parametrize(
    ("user", "project"),
    [
        ('scope = "session"', 'scope = "project"'), ('scope = "session"', 'scope = "bogus"'),
        ("disabled = true", "enabled = true"), ("enabled = false", 'disabled = "perhaps"'),
        ('observe.trigger = "manual"', 'observe.trigger = "turn"'),
        ("observer.images = false", "observer.images = true"),
        ("context.cross = 0", "context.cross = 99_999"), ("context.budget = 300", 'context.budget = "unlimited"'),
        ('context.order = ["tail"]', 'context.order = ["cross", "tail"]'),
    ],
)  # fmt: skip
def test_a_project_does_not_undo_what_the_user_narrowed(user: str, project: str) -> None:
    """XE3: neither by a valid value nor by an invalid one, which would give way to the preset's."""
    made = settled(user=user, project=project)
    assert as_json(made) == as_json(settled(user=user))
    (warning,) = made.warnings
    assert "ignored" in warning


def test_an_unknown_key_is_reported_with_the_nearest_one() -> None:
    """S0.34."""
    made = settled(user='observe.token = 5\nsurprise = 1\n[nothing]\nx = 1\n[observer]\napi_key = "s3cret"')
    assert [warning.partition(": ")[2] for warning in made.warnings] == [
        "unknown key `observe.token` (did you mean `observe.tokens`?); ignored",
        "unknown key `surprise`; ignored",
        "unknown key `nothing`; ignored",
        "unknown key `observer.api_key`; ignored",
    ]


@pytest.mark.parametrize(
    "content",
    [b"observe = ", b"\xff\xfe", b"a = " + b"[" * 100_000, b"#" * 2_000_000],
    ids=["cut", "bytes", "deep", "large"],
)
def test_an_unreadable_file_is_ignored_unless_given_explicitly(tmp_path: Path, content: bytes) -> None:
    """T71, D11."""
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    made = Layers(flags={}, variables={}, files=Files(user=path, is_named=False, project=path)).settings(
        default_store=default_store
    )
    assert len(made.warnings) == 2
    assert all(warning.startswith(f"{path}: ") and warning.endswith("; ignored") for warning in made.warnings)
    with pytest.raises(BadConfiguration):
        Layers(flags={}, variables={}, files=Files(user=path, is_named=True, project=None))


def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    path = tmp_path / ".om.toml"
    os.mkfifo(path)
    assert (
        len(
            Layers(flags={}, variables={}, files=Files(user=path, is_named=False, project=path))
            .settings(default_store=default_store)
            .warnings
        )
        == 2
    )


def test_enabled_is_the_opposite_of_disabled() -> None:
    """S1.18, S3.2: a file that does not say so is no switch."""
    assert settled(user="enabled = false").disabled
    assert not settled(user="enabled = true").disabled
    assert not settled(user="wait = 3").disabled
    assert settled(user="enabled = true", variables={"OM_DISABLED": "1"}).disabled
    assert not settled(user="disabled = true", variables={"OM_ENABLED": "yes"}).disabled


def test_a_path_in_a_file_is_relative_to_the_file() -> None:
    made = settled(user='observer.instructions_file = "more.txt"\ndb = "/abs/memory.db"')
    assert made.observer.instructions_file is not None
    assert made.observer.instructions_file.is_absolute()
    assert made.db == Path("/abs/memory.db")


@given(
    environment=st.fixed_dictionaries(
        {}, optional={"XDG_CONFIG_HOME": st.sampled_from(["/conf", "", "  "]), "HOME": st.just("/home/x")}
    )
)
def test_the_users_file_is_where_platformdirs_has_it(environment: dict[str, str]) -> None:
    """The short way to the folder that a run takes is the one that all programs take."""
    saved = dict(os.environ)
    try:
        os.environ.pop("XDG_CONFIG_HOME", None)
        os.environ.update(environment)
        assert user_file(os.environ) == platformdirs.user_config_path("om", appauthor=False) / "config.toml"
    finally:
        os.environ.clear()
        os.environ.update(saved)


def test_the_fast_and_the_full_way_to_the_defaults_agree(tmp_path: Path) -> None:
    """Most runs say nothing but where the store is; those are settled without reading values."""
    nowhere = {"XDG_CONFIG_HOME": str(tmp_path), "OM_DB": "/x/memory.db"}
    quick, wait = resolve({}, nowhere), resolve({"wait": 3.0, "db": Path("/y")}, nowhere)
    assert quick == settled(variables={"OM_DB": "/x/memory.db"})
    assert wait == settled(variables={"OM_DB": "/x/memory.db"}, flags={"wait": 3.0, "db": Path("/y")})
