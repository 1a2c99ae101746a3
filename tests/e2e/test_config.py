"""`om config`, presets and configuration files, each run a fresh process."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from omcli.settings.layers import preset_file
from tests.conftest import Om
from tests.e2e.scripts import always
from tests.e2e.transcripts import tide_story

PRESETS = ("default", "zora", "lango", "duet", "pi", "coding", "mastra")
GEMINI = "gemini-2.5-flash"  # of `gemini`, Google's own endpoint
# What each preset says of each key, in the order of `PRESETS`; None is no limit, no value, never.
TABLE: dict[str, tuple[Any, ...]] = {
    "counter": ("o200k-approx", "chars-3.5-3", "chars-4-cjk-2", "chars-3.2", "chars-4", "chars-2.5", "chars-2.5"),
    "observe.trigger": ("tokens", "tokens", "tokens", "turn", "manual", "tool", "tokens"),
    "observe.tokens": (10_000, 30_000, 1_000, 0, 30_000, 0, 30_000),
    "observe.inclusive": (True, False, True, True, False, True, True),
    "observe.chunk_messages": (0, 20, 0, 0, 0, 1, 0),
    "observe.max_transcript": (35_000, None, None, 35_000, None, None, None),
    "observe.newest_only": (False, False, False, True, False, False, False),
    "observe.max_output": (8_000, None, None, 8_000, 100_000, None, 100_000),
    "observe.sentences": (None, None, "2-5", None, None, None, None),
    # The default shows less than the 4000 it could: with batches of 6000 that keeps long transcripts cheap.
    "observe.previous_tokens": (1_500, None, 0, 4_000, None, 0, None),
    "observe.batch_tokens": (6_000, 6_000, 6_000, 6_000, 6_000, 6_000, 6_000),
    "observe.precompute": (0, 0.7, 0, 0, 0, 0, 6_000),
    "observe.precompute_late": (0, 0, 0, 0, 0, 0, 3_000),
    "observe.precompute_late_from": (0, 0, 0, 0, 0, 0, 23_400),
    "observe.floor": (0, 0, 0, 0, 0, 0, 6_000),
    "observe.block_after": (2, 2, 0, 0, 0, 0, 1.2),
    "hook.opt_in": (False, False, False, False, True, False, False),
    "tools.args_chars": (1_500, 1_500, 1_500, 1_500, 1_500, 1_500, 2_000 * 2.5),
    "tools.result_chars": (1_500, 1_500, 1_500, 1_500, 1_500, 1_500, 5_000 * 2.5),
    "reflect.tokens": (20_000, 10_000, 2_000, 65_000, 40_000, None, 40_000),
    "reflect.inclusive": (True, False, True, True, False, True, True),
    "reflect.target": (0.5, 1, 1, 32_500, 0.9, 1, 40_000),
    "reflect.rows": (0, 0, 1, 1, 0, 0, 0),
    "reflect.sentences": (None, None, "3-8", None, None, None, None),
    "reflect.attempts": (2, 1, 1, 2, 2, 2, 4),
    "reflect.levels": ([1, 3], [0], [0], [0, 0], [0, 3], [1, 3], [1, 2, 3, 4]),
    "reflect.verbatim": ("open", "high", "none", "none", "none", "none", "none"),
    "reflect.meta": ("never", "never", "generations", "never", "whole", "never", "whole"),
    "reflect.meta_at": (5, 5, 5, 5, 5, 5, 5),
    "reflect.min_age": (3, 3, 3, 3, 3, 3, 3),
    "scope": ("project", "project", "session", "global", "session", "session", "session"),
    "context.cross": (4_000, 5_000, 0, 15_000, 0, 0, 0),
    "context.session": (8_000, 10_000, 4_000, None, None, 800, None),
    "context.reflections": (None, None, 5, None, None, None, None),
    "context.observations": (None, None, 20, None, None, None, None),
    "context.tail": (8_000, 30_000, 8_000, 60_000, 0, 0, 6_000),
    "context.result_chars": (1_500, None, *(1_500,) * 5),
    "context.evict": (None, None, None, 120_000, None, None, None),
    "context.order": (
        *(["cross", "session", "tail"],) * 2,
        ["session", "tail"],
        *(["cross", "session", "tail"],) * 4,
    ),
    "context.select": ("worth", "worth", "recent", "worth", "worth", "worth", "worth"),
    "context.rank": (*("half-life",) * 3, "time-constant", *("half-life",) * 3),
    "context.render": ("asc", "asc", "asc", "asc", "asc", "asc", "asc"),
    "context.block": (False, False, False, False, False, True, False),
    "context.append_only": (False, True, *(False,) * 5),
    "context.freeze": (False, False, False, True, False, False, False),
    "notation": ("words", "words", "none", "emoji", "brackets", "importance", "emoji"),
    "observer.provider": (None, None, None, None, "gemini", "rules", "gemini"),
    "observer.model": (None, None, None, None, GEMINI, None, GEMINI),
    "observer.temperature": (0.3, None, None, None, 0.3, None, 0.3),
    "observer.effort": (None, None, None, "low", None, None, None),
    "observer.max_output": (None, None, None, None, 100_000, None, 100_000),
    "observer.fallback": ("none", "none", "none", "none", "none", "none", "none"),
    "reflector.fallback": ("none", "none", "none", "none", "none", "none", "none"),
    "reflector.provider": (None, None, None, None, "gemini", "rules", "gemini"),
    "reflector.model": (None, None, None, None, GEMINI, None, GEMINI),
    "reflector.temperature": (0, None, None, None, 0, None, 0),
    "reflector.effort": (None, None, None, "low", None, None, None),
    "reflector.max_output": (None, None, None, None, 100_000, None, 100_000),
    "effective_context": (200_000,) * 7,
    "provider.timeout": (60,) * 7,
}


def users_file(om: Om, content: str) -> Path:
    """The user's own configuration."""
    path = om.home / ".config" / "om" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize(("place", "name"), list(enumerate(PRESETS)), ids=PRESETS)
def test_a_preset_is_what_its_design_says(om: Om, place: int, name: str) -> None:
    """Key by key: S0.16 S0.33 S1.7 S1.8 S1.9 S1.14 S2.3 S2.4 S2.6 S2.7 S2.26 S2.36 S3.3 S3.4 S3.11 S3.14 S3.16 S4.10
    C3 C4 C5 C6 C9 C10 C11 C12 C13 C21 D1 D7 D8 D13."""
    settings = om("config", "show", "--preset", name, "--json").document["settings"]
    assert {key: settings[key] for key in TABLE} == {key: values[place] for key, values in TABLE.items()}
    assert settings["preset"] == name


def test_the_table_leaves_out_nothing_that_a_preset_says(om: Om) -> None:
    usual = om("config", "--json").document["settings"]
    for name in PRESETS:
        settings = om("config", "--preset", name, "--json").document["settings"]
        assert {key for key in settings if settings[key] != usual[key]} <= {*TABLE, "preset", "reflect.batch_tokens"}


# What 1000 letters, in one text and in one message, cost by each preset: its divisor, its rounding, its overhead.
COUNTED = {
    "default": None, "zora": (286, 286), "lango": (250, 254), "duet": (313, 313), "pi": (250, 250),
    "coding": (400, 428), "mastra": (400, 428),
}  # fmt: skip


@pytest.mark.parametrize(("name", "tokens"), [(name, tokens) for name, tokens in COUNTED.items() if tokens])
def test_a_preset_counts_as_its_design_does(om: Om, name: str, tokens: tuple[int, int]) -> None:
    """D1, S0.11, S1.5, S3.16, C3: characters for a token, up or down, and what a message and a conversation cost."""
    text = om("tokens", "--preset", name, "--as", "text", stdin="a" * 1000).stdout
    said = om("tokens", "--preset", name, stdin='{"role": "user", "content": "' + "a" * 1000 + '"}\n').stdout
    assert (int(text), int(said)) == tokens


def test_the_default_reads_as_toml_and_is_followed_again(om: Om) -> None:
    printed = om("config", "show", "--preset", "duet").stdout
    assert tomllib.loads(printed)["reflect"]["tokens"] == 65_000
    om.write("mine.toml", printed)
    assert om("config", "--config", "mine.toml").stdout == printed
    assert om("config", "show", "--origin", "--preset", "duet").stderr == ""


def test_of_every_key_it_can_be_told_who_says_so(om: Om) -> None:
    """T71, S3.2: flag, variable, project file, user file, preset, default."""
    user = users_file(om, 'preset = "zora"\nwait = 3\n[observe]\ntokens = 5\n[context]\ntail = 3\ncross = 4\n')
    project = om.write(".om.toml", "[context]\ntail = 2\ncross = 3\n")
    run = om("config", "--origin", "--json", "--wait", "4", env={"OM_CONTEXT_CROSS": "4"})
    settings, origins = run.document["settings"], run.document["origins"]
    expected = {
        "wait": (4, "flag"),
        "context.cross": (4, "OM_CONTEXT_CROSS"),
        "context.tail": (2, str(project)),
        "observe.tokens": (5, str(user)),
        "reflect.tokens": (10_000, "preset zora"),
        "provider.timeout": (60, "default"),
    }
    assert {key: (settings[key], origins[key]) for key in expected} == expected
    assert origins.keys() == settings.keys()
    lines = om("config", "show", "--origin").stdout.splitlines()
    assert any(line.split() == ["context.tail", "=", "2", "#", str(project)] for line in lines)
    user_line, project_line, defaults_line = om("config", "path").stdout.splitlines()
    assert (user_line.split(), project_line.split()) == (["user", str(user)], ["project", str(project)])
    assert "tokens = 10_000 " in Path(defaults_line.split(maxsplit=1)[1]).read_text(encoding="utf-8")


def test_the_nearest_file_above_is_the_projects(om: Om) -> None:
    """The root of a repository ends the search, and the home directory has no project."""
    inner = om.folder / "a" / "b"
    inner.mkdir(parents=True)
    outer = om.write(".om.toml", "wait = 7")
    assert om("config", "path", "--json", cwd=inner).document["project"] == {"path": str(outer), "found": True}
    assert om("-C", inner, "config", "path", "--json").document["project"]["path"] == str(outer)
    (om.folder / "a" / ".git").mkdir()
    assert om("config", "path", "--json", cwd=inner).document["project"] is None
    nearer = om.write("a/.om.toml", "wait = 8")
    assert om("config", "path", "--json", cwd=inner).document["project"]["path"] == str(nearer)
    (om.home / "work").mkdir()
    om.write("home/.om.toml", "wait = 9")
    assert om("config", "path", "--json", cwd=om.home / "work").document["project"] is None


def test_a_project_cannot_send_memory_elsewhere(om: Om) -> None:
    """F94: warned of by file and key, and --strict refuses."""
    project = om.write(".om.toml", 'db = "theirs.db"\n[observer]\nbase_url = "http://theirs"\nprovider = "command"\n')
    run = om("config", "--json")
    assert run.document["settings"]["db"] == str(om.place)
    assert run.document["settings"]["observer.base_url"] is None
    assert run.document["settings"]["observer.provider"] is None
    assert [line.split("`")[1] for line in run.stderr.splitlines()] == ["db", "observer.base_url", "observer.provider"]
    assert [line.split(": ")[2] for line in run.stderr.splitlines()] == [f"{project}:{n}" for n in (1, 3, 4)]
    assert om("observe", "--strict", stdin=tide_story().text(), code=78).stdout == ""
    om("observe", stdin=tide_story().text())
    assert om.has_store
    assert not (om.folder / "theirs.db").exists()


def test_a_project_cannot_read_the_memory_of_others(om: Om) -> None:
    """XE3, D8: a repository somebody cloned; its preset has a wider scope too."""
    om("note", "The other customer pays 900 a month", cwd=_project(om, "other"))
    clone = _project(om, "clone")
    om("note", "This one is public", cwd=clone)
    for line in ('scope = "global"', 'preset = "duet"'):
        (clone / ".om.toml").write_text(line, "utf-8")
        run = om("context", cwd=clone)
        assert "This one is public" in run.stdout
        assert "900 a month" not in run.stdout
        key = line.partition(" ")[0]
        assert f"om: warning: {clone / '.om.toml'}:" in run.stderr
        assert ": a project file may " in run.stderr
        assert f"`{key}`" in run.stderr
        assert om("context", "--strict", cwd=clone, code=78).stdout == ""
        assert "900 a month" in om("context", cwd=clone, env={"OM_SCOPE": "global"}).stdout


def test_what_a_project_takes_away_is_said_once(om: Om) -> None:
    """XE3: one line on stderr, never on stdout; --quiet and your own choice are silent."""
    clone = _project(om, "clone")
    om("note", "Tests run with tox", cwd=clone)
    file = clone / ".om.toml"
    file.write_text('scope = "session"\ncontext.session = 0\nnotation = "emoji"\n', "utf-8")
    said = f'om: {file} narrows memory here: scope = "session" (yours: "project"), context.session = 0 (yours: 8000)\n'
    for command in ("context", "log", "status --json"):
        run = om(*command.split(), cwd=clone)
        assert run.stderr.count("narrows memory") == 1
        assert said in run.stderr
    assert om("context", "-q", cwd=clone).stderr == ""
    assert om("context", "--strict", cwd=clone).stderr.count("narrows memory") == 1
    assert "narrows" not in om("context", cwd=clone, env={"OM_SCOPE": "project", "OM_CONTEXT_SESSION": "8"}).stderr
    file.write_text("disabled = true", "utf-8")
    for command in ("context", "status", "note x", "tick"):
        assert om(*command.split(), cwd=clone).stderr.count(f"om: disabled by {file}: ") == 1


def test_a_project_neither_counts_nor_freezes_silently(om: Om) -> None:
    """XE3: the user's counter holds for every budget; fewer or older rows are said, and may be refused."""
    clone = _project(om, "clone")
    for number in range(80):
        om("note", f"决定{number}：港口漆成红色，永远不要使用颜色{number}。", cwd=clone)
    own = om("context", "--budget", "800", cwd=clone)
    file = clone / ".om.toml"
    for counter in ("chars-4", "chars-2.5"):
        file.write_text(f'counter = "{counter}"\n', "utf-8")
        run = om("context", "--budget", "800", cwd=clone)
        assert run.stdout == own.stdout
        assert f"{file}:1: a project file may not set `counter`" in run.stderr
    for key, value, yours in (("freeze", "true", "false"), ("select", '"recent"', '"worth"')):
        file.write_text(f"[context]\n{key} = {value}\n", "utf-8")
        said = f"om: {file} narrows memory here: context.{key} = {value} (yours: {yours})\n"
        assert om("context", cwd=clone).stderr.count(said) == 1
        file.write_text(f"[context]\n{key} = {yours}\n", "utf-8")
        mine = om.write("own.toml", f"[context]\n{key} = {value}\n")
        refused = om("context", "--config", mine, cwd=clone).stderr
        assert f"a project file may only narrow `context.{key}` (yours is {value})" in refused


@pytest.mark.parametrize("how", ["flag", "variable", "file"])
def test_a_project_does_not_silently_choose_rules_for_a_model(om: Om, how: str) -> None:
    """XE3, XA1: the model of a flag or a variable is asked; rules observe instead of a file's, and it is said."""
    clone, model = _project(om, "clone"), always(om, "echo")
    (clone / ".om.toml").write_text('[observer]\nprovider = "rules"\n', "utf-8")
    own = om.write("own.toml", f'[observer]\nmodel = "{model.model}"\n')
    words = {"flag": ("--model", model.model), "file": ("--config", own)}.get(how, ())
    env = {"OM_OBSERVER_MODEL": model.model} if how == "variable" else {}
    run = om("observe", *words, cwd=clone, env=env, stdin=tide_story().text())
    assert bool(model.asked) == (how != "file")
    assert ("narrows memory here: observer.provider" in run.stderr) == (how == "file")


def _project(om: Om, name: str) -> Path:
    folder = om.folder / name
    (folder / ".git").mkdir(parents=True)
    return folder


def test_wrong_values_warn_with_their_place_and_strict_refuses_them(om: Om) -> None:
    """F92, T71, D11, S0.34."""
    bad = {"OM_OBSERVE_TOKENS": "abc"}
    run = om("context", env=bad)
    assert run.stderr == "om: warning: `OM_OBSERVE_TOKENS=abc` is not valid (expected a whole number from 0); ignored\n"
    assert om("context", "--strict", env=bad, code=78).stdout == ""
    assert om("config", "--json", "--preset", "lango", env=bad).document["settings"]["observe.tokens"] == 1_000
    project = om.write(".om.toml", "observe.tokens = -3\nobserve.tokns = 3\n")
    assert om("config").stderr.splitlines() == [
        f"om: warning: {project}:2: unknown key `observe.tokns` (did you mean `observe.tokens`?); ignored",
        f"om: warning: `observe.tokens = -3` in {project}:1 is not valid (expected a whole number from 0); ignored",
    ]
    assert om("config", "--strict", code=78).stdout == ""


def test_lines_are_counted_as_in_an_editor(om: Om) -> None:
    """Neither characters that only Python takes for ends of lines nor texts of several lines mislead."""
    file = users_file(
        om,
        '# a\u2028b\x85c, it\'s """ no text\r\nnotation = """\nwait = 1\n[observe]\n\\"""""\n'
        "counter = '''\ntokns = 1\n'''\ndb = \"it's#\" # it's\ntokns = 1\n",
    )
    assert om("config", code=0).stderr.splitlines()[0] == (f"om: warning: {file}:10: unknown key `tokns`; ignored")


def test_a_file_that_was_asked_for_has_to_be_there(om: Om) -> None:
    """D11, T71: one that nobody asked for may be broken."""
    assert "nowhere.toml: no such file" in om("context", "--config", "nowhere.toml", code=78).stderr
    assert om("context", env={"OM_CONFIG": "nowhere.toml"}, code=78).stdout == ""
    broken = om.write("broken.toml", "observe = [")
    assert om("log", "--config", broken, code=78).stderr.startswith(f"om: error: {broken}: not valid TOML: ")
    user = users_file(om, "observe = [")
    assert om("log").stderr.startswith(f"om: warning: {user}: not valid TOML: ")
    assert om("log", "--strict", code=78).stdout == ""
    other = om.write("other.toml", "wait = 2")
    assert om("config", "--json", "--config", other).document["settings"]["wait"] == 2
    assert om("config", "--json", env={"OM_CONFIG": str(other)}).document["settings"]["wait"] == 2


def test_an_unknown_preset_is_refused_on_the_command_line_and_warned_of_elsewhere(om: Om) -> None:
    run = om("context", "--preset", "nope", code=78)
    assert run.stderr == (
        "om: error: unknown preset `nope`\nhint: one of: default, zora, lango, duet, pi, coding, mastra\n"
    )
    assert "is not valid (expected one of default, zora" in om("context", env={"OM_PRESET": "nope"}).stderr


def test_memory_can_be_switched_off_in_a_file(om: Om) -> None:
    """S1.18, S1.19, C16: who switched it off is said."""
    project = om.write(".om.toml", "enabled = false")
    run = om("observe", stdin=tide_story().text())
    assert f"disabled by {project}" in run.stderr
    assert not om.has_store
    om("observe", stdin=tide_story().text(), env={"OM_ENABLED": "1"})
    assert om.has_store


@pytest.mark.parametrize(
    "command",
    [
        "observe -",
        "compact --session s",
        "note x",
        "reflect",
        "reflect --global",
        "tick",
        "apply -",
        "import --format zora -",
    ],
)
def test_whoever_writes_says_what_switched_it_off(om: Om, command: str) -> None:
    """S1.18, XA1: the file or the variable that does. Only `om compact` fails: nothing may replace a session."""
    code = 1 if command.startswith("compact") else 0
    assert "disabled by OM_DISABLED: " in om(*command.split(), stdin="{}", env={"OM_DISABLED": "1"}, code=code).stderr
    project = om.write(".om.toml", "enabled = false")
    assert f"disabled by {project}: " in om(*command.split(), stdin="{}", code=code).stderr
    assert not om.has_store


@pytest.mark.parametrize(
    "line",
    [
        "--preset lango|context", "--json|status", "-q --preset=pi|context --tier session", "-qC sub|config path",
        "-Csub|config path", "--color never|log -n 2", "--db x.db --wait 3 -q|sessions", "--db log|log",
        "--strict|config --help", "--now 2026-02-11 --json|context --js", "--db x|tokens tide.jsonl",
    ],
)  # fmt: skip
def test_shared_options_mean_the_same_before_the_command(om: Om, line: str) -> None:
    om.write("tide.jsonl", tide_story().text())
    (om.folder / "sub").mkdir()
    om("observe", "-q", "tide.jsonl", "--now", "2026-02-11")
    before, _, rest = line.partition("|")
    command, *own = rest.split()
    first = om(*before.split(), command, *own, code=None)
    behind = om(command, *before.split(), *own, code=None)
    assert (first.code, first.stdout, first.stderr) == (behind.code, behind.stdout, behind.stderr)


def test_what_is_no_shared_option_belongs_behind_the_command(om: Om) -> None:
    assert "options come after the command" in om("--session", "x", "context", code=2).stderr
    assert om("--db", code=2).stderr.startswith("om: error: option '--db' requires an argument")
    assert om("--preset", "lango", code=2).stderr == om("--help").stdout
    assert "Did you mean 'observe'" in om("--json", "obsreve", code=2).stderr
    assert "--preset NAME" in om("--help").stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("om --preset ", "lango"), ("om --preset lango con", "context"), ("om --pre", "--preset"),
        ("om --preset lango context --ti", "--tier"), ("om context --preset ", "duet"), ("om config p", "path"),
    ],
)  # fmt: skip
def test_presets_and_what_follows_them_are_completed(om: Om, words: str, offered: str) -> None:
    count = len(words.split()) - (not words.endswith(" "))
    shell = {"_OM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(count)}
    assert offered in om(env=shell).stdout.split()


# ---- what presets change in a pack


@pytest.fixture
def remembering(om: Om) -> Om:
    """A memory of a session with some rows, and of another one in the same project."""
    om("observe", "-q", "--session", "long", stdin="User: A long day begins.\nAssistant: It does.\n")
    for number in range(30):
        om(
            "note",
            "-q",
            f"Fact number {number} of the long day",
            "--session",
            "long",
            "--now",
            f"2026-03-01T10:{number:02}Z",
        )
    om("note", "-q", "A lasting decision of another day", "--type", "decision", "--now", "2026-03-01T09:00Z")
    return om


def facts(printed: str) -> list[int]:
    """The numbers of the facts in a pack, as they are printed."""
    return [int(line.split("number ")[1].split()[0]) for line in printed.splitlines() if "Fact number" in line]


def test_lango_shows_the_newest_rows_of_one_session(remembering: Om) -> None:
    """T60, C10, C11, S1.3, S1.9: at most 20, oldest first, and nothing of other sessions."""
    usual = remembering("context", "--session", "long").stdout
    assert facts(usual) == list(range(30))
    assert "A lasting decision" in usual
    lango = remembering("context", "--session", "long", "--preset", "lango").stdout
    assert facts(lango) == list(range(10, 30))
    assert "A lasting decision" not in lango
    newest_first = remembering("context", "--session", "long", "--preset", "lango", env={"OM_CONTEXT_RENDER": "desc"})
    assert facts(newest_first.stdout) == list(range(29, 9, -1))
    asked = remembering("context", "--session", "long", "--preset", "lango", "--cross-budget", "500").stdout
    assert "A lasting decision" in asked


def test_lango_shows_the_newest_five_reflections_and_twenty_observations(remembering: Om) -> None:
    """T60: of 7 and 30, each oldest to newest."""
    for number in range(7):
        row = {"session_key": "long", "content": f"Folded {number}.", "generation": 1}
        at = f"2026-02-0{number + 1}T10:00Z"
        remembering("import", "-", "-q", "--format", "lango-jsonl", "--now", at, stdin=json.dumps(row))
    pack = remembering("context", "--session", "long", "--preset", "lango").stdout
    assert [number for number in range(7) if f"Folded {number}." in pack] == [2, 3, 4, 5, 6]
    assert [line.split()[-1] for line in pack.splitlines() if "Folded" in line] == ["2.", "3.", "4.", "5.", "6."]
    assert facts(pack) == list(range(10, 30))
    assert pack.index("Folded 6.") < pack.index("number 10 ")


def test_with_little_room_recent_rows_are_the_newest(remembering: Om) -> None:
    small = remembering(
        "context", "--session", "long", "--session-budget", "150", env={"OM_CONTEXT_SELECT": "recent"}
    ).stdout
    assert facts(small)
    assert facts(small) == list(range(30))[-len(facts(small)) :]


def test_the_budgets_of_tiers_are_those_of_the_preset(remembering: Om) -> None:
    """C12, C13: what a flag asks for goes before."""

    def budget(*options: str) -> int:
        made: int = remembering("context", "--session", "long", "--json", *options).document["budget"]
        return made

    assert budget() == 20_000
    assert budget("--preset", "zora") == 45_000
    assert budget("--preset", "lango") == 12_000
    assert budget("--preset", "zora", "--tail-budget", "7") == 15_007
    assert budget("--preset", "duet", "--budget", "900") == 900


def test_a_session_without_a_limit_is_shown_whole(remembering: Om) -> None:
    for number in range(30, 36):
        text = f"Fact number {number} " + " ".join(f"word{number}x{place}" for place in range(700))
        remembering("note", "-q", text, "--session", "long", "--now", f"2026-03-01T10:{number:02}Z")
    usual = remembering("context", "--session", "long").stdout
    whole = remembering("context", "--session", "long", "--preset", "mastra").stdout
    assert len(facts(usual)) < 36
    assert facts(whole) == list(range(36))


def test_the_order_of_tiers_is_a_setting(remembering: Om) -> None:
    """C11."""
    other = {"OM_CONTEXT_ORDER": "session,cross"}
    for to in ("text", "markdown", "xml", "messages"):
        printed = remembering("context", "--session", "long", "--to", to, env=other).stdout
        assert printed.index("Fact number 3 ") < printed.index("A lasting decision")
        usual = remembering("context", "--session", "long", "--to", to).stdout
        assert usual.index("A lasting decision") < usual.index("Fact number 3 ")


def test_duet_looks_beyond_the_project(remembering: Om) -> None:
    """C10, D8: global scope."""
    elsewhere = remembering.folder / "elsewhere"
    elsewhere.mkdir()
    new = ("--session", "a-session-to-come")
    assert "A lasting decision" not in remembering("context", *new, cwd=elsewhere).stdout
    assert "A lasting decision" in remembering("context", *new, "--preset", "duet", cwd=elsewhere).stdout
    only_own = {"OM_SCOPE": "session"}
    assert "A lasting decision" not in remembering("context", "--session", "long", env=only_own).stdout


def test_coding_shows_the_working_memory_block(remembering: Om) -> None:
    """S4.10, C12: 800 tokens, by headings."""
    printed = remembering("context", "--preset", "coding").stdout
    assert printed == remembering("context", "--working-memory", "--preset", "coding").stdout
    assert remembering("context", "--preset", "coding", "--tier", "session").stdout.startswith("<om-memory")
    assert remembering("context", "--preset", "coding", "--json").document["budget"] == 800


def test_a_run_that_needs_no_settings_reads_no_file(om: Om) -> None:
    om.write(".om.toml", "observe = [")
    assert om("--version").stderr == ""
    assert om("context", "--help").stderr == ""


@pytest.mark.parametrize("arguments", [(), ("--origin",), ("--json",)])
def test_a_secret_in_a_setting_is_not_printed(om: Om, arguments: tuple[str, ...]) -> None:
    """A command with a key among its arguments, an address with a password in it."""
    password, key = "tr0ubadour", "sk-proj-" + "4mK9" * 8 + "tideX7"
    env = {"OM_OBSERVER_COMMAND": f"ask --key {key}", "OM_REFLECTOR_BASE_URL": f"http://me:{password}@localhost:1/v1"}
    run = om("config", *arguments, env=env)
    assert "ask --key [redacted:openai-key]" in run.stdout
    assert not any(secret in f"{run.stdout}{run.stderr}" for secret in (password, key))


# ---- changing files


def test_a_setting_is_set_read_and_removed(om: Om) -> None:
    """The file and its folder are made, and only the user can read them: a command may contain a key."""
    assert om("config", "get", "context.budget", code=1).stdout == ""
    file = Path(om("config", "path", "--json").document["user"]["path"])
    assert om("config", "set", "context.budget", "8000").stderr == f"{file}: changed\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert om("config", "get", "context.budget").stdout == "8000\n"
    assert om("config", "get", "context.budget", "--origin").stdout == f"8000  # {file}\n"
    assert om("config", "get", "context.budget", "--json").document == {
        "schema": 1,
        "key": "context.budget",
        "value": 8000,
    }
    assert om("config", "set", "context.budget", "8000").stderr == f"{file}: unchanged\n"
    assert om("config", "unset", "context.budget").stderr == f"{file}: changed\n"
    assert om("config", "unset", "context.budget").stderr == f"{file}: unchanged\n"
    assert file.read_text("utf-8") == ""


def test_values_are_written_as_toml_has_them(om: Om) -> None:
    given = {
        "observe.tokens": ("32.5%", "32.5%", 65_000),
        "observe.verify": ("yes", True, True),
        "enabled": ("1", True, True),
        "context.order": ("cross, tail", "cross, tail", ["cross", "tail"]),
        "context.budget": ("unlimited", "unlimited", None),
        "observer.base_url": ("http://localhost:8080/v1", "http://localhost:8080/v1", "http://localhost:8080/v1"),
        "db": ("here.db", str(om.folder / "here.db"), str(om.folder / "here.db")),
        "consolidate.places": ("notes, more", [str(om.folder / "notes"), str(om.folder / "more")], None),
        "preset": ("duet", "duet", "duet"),
        "prices": ('{ "m" = { input = 1, output = 2 } }', {"m": {"input": 1, "output": 2}}, None),
    }
    for key, (text, _, _) in given.items():
        om("config", "set", key, text)
    written = tomllib.loads((om.home / ".config" / "om" / "config.toml").read_text("utf-8"))
    for key, (_, value, seen) in given.items():
        section, _, name = key.rpartition(".")
        assert (written[section] if section else written)[name] == value, key
        if seen is not None and key != "db":  # the tests' own store is named by a variable
            assert om("config", "get", key, "--json").document["value"] == seen, key


def test_comments_and_order_stay(om: Om) -> None:
    before = "# mine\n[context]\ntail = 4 # short\n\n# later\n[observe]\ntokens = 1\n"
    file = users_file(om, before)
    om("config", "set", "context.tail", "5")
    om("config", "set", "observe.verify", "true")
    om("config", "set", "wait", "2")
    after = file.read_text("utf-8")
    assert after.splitlines()[-3:] == ["[observe]", "tokens = 1", "verify = true"]
    assert "tail = 5 # short" in after
    for key in ("wait", "observe.verify"):
        om("config", "unset", key)
    left = [line for line in file.read_text("utf-8").splitlines() if line]
    assert left == [line for line in before.replace("tail = 4", "tail = 5").splitlines() if line]
    om("config", "unset", "context.tail")
    om("config", "unset", "observe.tokens")
    assert file.read_text("utf-8").endswith("\n")


@pytest.mark.parametrize(
    "db",
    [
        ":memory:",
        "file:x?mode=memory",
        "postgres://u:secret@host:x/x",
        "mysql://u:secret@host/x",
        "~nobody-of-this-name/x",
    ],
)
def test_a_store_in_a_file_s_settings_is_a_file(om: Om, db: str) -> None:
    users_file(om, f"db = {db!r}\n")
    run = om("note", "hello", env={"OM_DB": ""}, code=78)
    assert run.stderr.startswith("om: error: ")
    assert "secret" not in run.stderr
    assert not list(om.home.rglob("*memory*"))


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["set", "context.budgt", "1"], 2, "unknown key `context.budgt` (did you mean `context.budget`?)"),
        (["get", "nope"], 2, "unknown key `nope`"),
        (["set", "context.budget", "many"], 2, "`many` is not a valid `context.budget` (expected a whole number"),
        (["set", "preset", "nope"], 2, "`nope` is not a valid `preset` (expected one of default, zora"),
        (["set", "context.budget"], 2, "wrong number of arguments for `om config set`"),
        (["show", "context.budget"], 2, "wrong number of arguments for `om config show`"),
        (["set", "observer.provider", "openai", "--local"], 2, "a project's file may not set `observer.provider`"),
        (["set", "db", "mysql://u:secret@host/x"], 2, "`db` must be the path of a file, or postgresql://"),
        (["set", "db", "postgres://u:secret@host:x/x"], 2, "`db` is not a URL like postgresql://user@host/database"),
        (["edit"], 2, "no editor is set"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_be_set_is_refused_and_changes_nothing(om: Om, words: list[str], code: int, error: str) -> None:
    file = users_file(om, "wait = 1\n")
    assert om("config", *words, code=code).stderr.startswith(f"om: error: {error}")
    assert file.read_text("utf-8") == "wait = 1\n"
    assert not (om.folder / ".om.toml").exists()


def test_a_broken_file_is_not_written_over(om: Om) -> None:
    file = users_file(om, "wait = 1\ntokens = [\n")
    run = om("config", "set", "wait", "2", code=78)
    assert run.stderr.startswith(f"om: error: {file}: not valid TOML: ")
    assert "hint: mend it: `om config edit`" in run.stderr
    assert file.read_text("utf-8") == "wait = 1\ntokens = [\n"


@pytest.mark.parametrize("content", ["observe = 3\n", "[[observe]]\ntokens = 3\n"])
def test_something_else_in_the_place_of_a_section_is_not_written_over(om: Om, content: str) -> None:
    file = users_file(om, content)
    assert "`observe` is not a table" in om("config", "set", "observe.tokens", "4", code=78).stderr
    assert file.read_text("utf-8") == content


def test_other_keys_stay_as_they_are(om: Om) -> None:
    file = users_file(om, "prices.m = { input = 1, output = 2 }\nwait = 3\ndisabled = true\n")
    before = file.read_text("utf-8")
    run = om("config", "set", "prices", "{ m = { input = 1, output = 3 } }", code=78)
    assert "`prices` cannot be set without changing other keys" in run.stderr
    assert file.read_text("utf-8") == before


def test_what_is_set_holds_although_its_opposite_was_set_before(om: Om) -> None:
    for name, value, disabled in (
        ("disabled", "true", "true"),
        ("enabled", "true", "false"),
        ("disabled", "true", "true"),
    ):
        om("config", "set", name, value)
        assert om("config", "get", "disabled").stdout == f"{disabled}\n"


def test_a_read_only_file_is_not_written(om: Om) -> None:
    file = users_file(om, "wait = 1\n")
    file.chmod(0o444)
    assert f"{file} is read-only" in om("config", "set", "wait", "2", code=73).stderr
    assert file.read_text("utf-8") == "wait = 1\n"


def test_the_project_has_a_file_of_its_own(om: Om) -> None:
    """S3.2: the nearest one above, or a new one here; it narrows what the user has set, and no more."""
    clone = _project(om, "clone")
    inner = clone / "src"
    inner.mkdir()
    om("config", "set", "context.tail", "100")
    om("config", "set", "enabled", "false", "--local", cwd=clone)
    assert (clone / ".om.toml").read_text("utf-8") == "enabled = false\n"
    assert om("config", "get", "disabled", cwd=inner).stdout == "true\n"
    om("config", "unset", "enabled", "--local", cwd=inner)
    assert "may only narrow `context.tail`" in om("config", "set", "context.tail", "200", "--local", cwd=inner).stderr
    assert om("config", "get", "context.tail", cwd=inner).stdout == "100\n"


def test_a_value_that_something_else_overrides_is_noted(om: Om) -> None:
    run = om("config", "set", "context.budget", "1", env={"OM_CONTEXT_BUDGET": "2"})
    assert run.stderr.splitlines()[1] == (
        "om: this has no effect here: `context.budget = 2` comes from OM_CONTEXT_BUDGET"
    )


def test_a_value_that_the_users_settings_narrow_is_noted(om: Om) -> None:
    """It is written all the same: others have other settings."""
    clone = _project(om, "clone")
    om("config", "set", "context.tail", "100")
    file = Path(om("config", "path", "--json").document["user"]["path"])
    warned, changed, noted = om("config", "set", "context.tail", "200", "--local", cwd=clone).stderr.splitlines()
    assert changed == f"{clone / '.om.toml'}: changed"
    assert warned.endswith(":2: a project file may only narrow `context.tail` (yours is 100); ignored")
    assert noted == f"om: this has no effect here: `context.tail = 100` comes from {file}"
    assert "no effect" not in om("config", "set", "context.tail", "50", "--local", cwd=clone).stderr


def test_changes_are_printed_as_json(om: Om) -> None:
    """With the value that holds afterwards."""
    file = str(Path(om("config", "path", "--json").document["user"]["path"]))
    changed = {"schema": 1, "path": file, "changed": True}
    run = om("config", "set", "enabled", "no", "--json")
    assert run.document == {**changed, "key": "enabled", "value": False, "origin": file}
    assert run.stderr == ""
    run = om("config", "unset", "enabled", "--json")
    assert run.document == {**changed, "key": "enabled", "value": True, "origin": "default"}
    run = om("config", "set", "wait", "3", "--json", env={"OM_WAIT": "4"})
    assert run.document == {**changed, "key": "wait", "value": 4.0, "origin": "OM_WAIT"}
    assert om("config", "set", "wait", "3", "--json").document["changed"] is False


def test_nothing_is_lost_if_several_processes_change_a_file(om: Om) -> None:
    """Neither of a new file nor of one that is there."""
    keys = ["context.budget", "context.cross", "context.session", "context.tail", "observe.tokens", "wait"]
    for value in ("1", "2"):
        runs = [om.start("config", "set", key, value) for key in keys]
        for run in runs:
            _, said = run.communicate(timeout=60)
            assert run.returncode == 0, said
        settings = om("config", "--json").document["settings"]
        assert {settings[key] for key in keys} == {int(value)}


def test_a_link_to_the_file_stays_a_link(om: Om) -> None:
    """Dotfiles are kept elsewhere by many."""
    file = users_file(om, "")
    kept = om.write("dotfiles.toml", "wait = 1\n")
    file.unlink()
    file.symlink_to(kept)
    om("config", "set", "wait", "3")
    assert file.is_symlink()
    assert kept.read_text("utf-8") == "wait = 3\n"


def test_an_edited_file_is_checked(om: Om) -> None:
    editor = om.write("editor.sh", 'printf "wait = 3\n%s\n" "$LINE" >> "$1"\n')
    words = {"EDITOR": f"sh {editor}"}
    file = users_file(om, "")
    file.unlink()
    assert om("config", "edit", env={**words, "LINE": "# good"}).stderr == f"{file}: valid\n"
    assert file.read_text("utf-8").startswith("# Settings of om.")
    file.write_text("", "utf-8")
    run = om("config", "edit", env={**words, "LINE": "tokns = 1"})
    assert run.stderr.splitlines()[0] == f"om: warning: {file}:2: unknown key `tokns`; ignored"
    assert run.stderr.endswith(f"{file}: 1 warning\n")
    assert "not valid TOML" in om("config", "edit", env={**words, "LINE": "["}, code=78).stderr


def test_the_schema_accepts_the_files_of_om_and_knows_every_key(om: Om) -> None:
    schema = om("config", "schema").document
    properties = schema["properties"]
    for key in om("config", "--json").document["settings"]:
        section, _, name = key.rpartition(".")
        assert name in (properties[section]["properties"] if section else properties)
    assert properties["context"]["properties"]["cross"]["description"] == "tokens of rows of other sessions"
    for preset in PRESETS:
        Draft202012Validator(schema).validate(tomllib.loads(preset_file(preset).read_text("utf-8")))
    for wrong in ({"observe": {"tokns": 1}}, {"wait": "long"}, {"scope": "all"}, {"context": {"order": ["last"]}}):
        assert not Draft202012Validator(schema).is_valid(wrong), wrong
