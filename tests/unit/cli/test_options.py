"""A plain command line means the same read here and read by Typer."""

from __future__ import annotations

from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Annotated, get_args

import pytest
import typer
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from omcli.cli.app import as_command, cli
from omcli.cli.commands import COMMANDS, command
from omcli.cli.options import Parameter, Values, argument, option, parameters, plain
from omcli.pack.budget import Tier
from omcli.pack.layouts import PackFormat

VALUES = st.sampled_from(
    [
        "0", "7", "800", "1.5", "-1", "1e3", "٣", "0x10", "1_000", "9" * 20, "text", "TEXT", "json", "session", "cross",
        "decision", "high", "note", "auto", "never", "a b", "a=b", "=", "", "-", "--", "-q", "--json", "--no-json", "ü",
        "/tmp/x.db", "2026-01-28", "--js", "-n5", "-n", "5", "-Cdir", "-qC", "--to=json", "--tier=tail", "--json=1",
    ]
)  # fmt: skip
UNKNOWN = ["--help", "-h", "--version", "--unknown", "-x", "--bud", "--budge"]


def words_for(name: str) -> st.SearchStrategy[list[str]]:
    """Words after a command: its options, some that it has not, and values that suit them or don't."""
    declared = [parameter.declared for parameter in command(name).parameters]
    names = [spelt for each in declared for spelt in (*each.names, *each.aliases)]
    known = st.sampled_from([*names, *names, *UNKNOWN])
    piece = known | VALUES | st.tuples(known, VALUES).map("=".join)
    pairs = st.tuples(st.sampled_from(names), VALUES).map(list)
    return st.lists(pairs | piece.map(lambda word: [word]), max_size=5).map(lambda parts: list(chain(*parts)))


LINES = st.sampled_from(COMMANDS).flatmap(lambda name: st.tuples(st.just(name), words_for(name)))


def read_by_typer(name: str, wanted: tuple[Parameter, ...], words: list[str]) -> Values | None:
    """What Typer makes of the words, or None where it takes them for wrong or prints help."""
    received: list[Values] = []
    app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
    app.callback()(lambda: None)
    app.command(name)(as_command(wanted, received.append))
    try:
        typer.main.get_command(app).main(args=[name, *words], prog_name="om", standalone_mode=False)
    except Exception:  # noqa: BLE001 - Typer's errors are private to it
        return None
    return received[0] if received else None


@given(LINES)
@example(("context", ["--session", "a", "--budget=800", "--to", "text", "--tier", "session", "--tier=tail", "-q"]))
@example(("observe", ["a", "--db", "x", "-", "b"]))
@example(("log", ["-n", "5", "--jsonl"]))
@example(("log", ["-n=5", "7"]))
@example(("show", ["a", "b"]))
def test_a_line_that_is_plain_says_what_typer_says(line: tuple[str, list[str]]) -> None:
    name, words = line
    wanted = command(name).parameters
    said = plain(wanted, words)
    if said is not None:
        assert said == read_by_typer(name, wanted, words)
        assert [type(value) for value in said.values()] == [
            type(value) for value in (read_by_typer(name, wanted, words) or {}).values()
        ]


def valid_words(parameter: Parameter) -> st.SearchStrategy[list[str]]:
    """The parameter spelled out with a value that it takes."""
    kind = next(each for each in (*get_args(parameter.kind), parameter.kind) if each is not type(None))
    kind = get_args(kind)[0] if get_args(kind) else kind
    if kind is bool:
        return st.sampled_from(parameter.declared.names).map(lambda name: [name])
    least = parameter.declared.at_least or 0
    values = (
        st.sampled_from([member.value for member in kind])
        if issubclass(kind, Enum)
        else st.integers(least, 10**9).map(str)
        if kind is int
        else st.floats(0, 10**6, allow_nan=False).map(lambda number: f"{number:.2f}")
        if kind is float
        else st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(lambda text: text[0] != "-")
    )
    if not parameter.declared.names:
        return values.map(lambda value: [value])
    long = [name for name in parameter.declared.names if name.startswith("--")]
    apart = st.tuples(st.sampled_from(parameter.declared.names), values).map(list)
    return apart | st.tuples(st.sampled_from(long), values).map(lambda pair: ["=".join(pair)]) if long else apart


@st.composite
def valid_lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A command, all that it requires, and some of what it takes besides."""
    name = draw(st.sampled_from(COMMANDS))
    wanted = command(name).parameters
    drawn = [parameter for parameter in wanted if parameter.default is ... or draw(st.booleans())]
    places = [parameter for parameter in wanted if not parameter.declared.names]
    most = next((at for at, parameter in enumerate(places) if parameter not in drawn), len(places))
    rest = iter(places[:most])  # arguments are told apart by their order
    drawn = [parameter for parameter in drawn if parameter.declared.names or parameter in places[:most]]
    order = [each if each.declared.names else next(rest) for each in draw(st.permutations(drawn))]
    return name, list(chain(*(draw(valid_words(parameter)) for parameter in order)))


@given(valid_lines())
def test_a_valid_line_that_is_spelled_out_is_plain_and_says_what_typer_says(line: tuple[str, list[str]]) -> None:
    name, words = line
    wanted = command(name).parameters
    said = plain(wanted, words)
    assert said is not None
    assert said == read_by_typer(name, wanted, words)


FORMER = [
    (name, parameter, alias)
    for name in COMMANDS
    for parameter in command(name).parameters
    for alias in parameter.declared.aliases
]


@pytest.mark.parametrize(("name", "parameter", "alias"), FORMER, ids=[f"{name} {alias}" for name, _, alias in FORMER])
@pytest.mark.parametrize("value", ["0", "7", "x"])
def test_a_former_name_says_what_the_present_one_says(name: str, parameter: Parameter, alias: str, value: str) -> None:
    values = [] if parameter.kind is bool else [value]
    wanted = command(name).parameters
    assert plain(wanted, [alias, *values]) is None, "former names are left to Typer"
    by_former = read_by_typer(name, wanted, [alias, *values])
    assert by_former == read_by_typer(name, wanted, [parameter.declared.names[0], *values])
    assert by_former is None or set(by_former) == {each.name for each in wanted}


@pytest.mark.parametrize(("name", "parameter", "alias"), FORMER, ids=[f"{name} {alias}" for name, _, alias in FORMER])
def test_a_former_name_is_in_no_help(name: str, parameter: Parameter, alias: str) -> None:
    help_ = CliRunner().invoke(cli(), [name, "--help"], prog_name="om").stdout
    assert parameter.declared.names[0] in help_
    assert alias not in help_


def test_there_are_former_names() -> None:
    """The tests above can fail."""
    assert {alias for _, _, alias in FORMER} >= {
        "--target-tokens",
        "--keep-recent",
        "--chunk",
        "--limit",
        "--max-tokens",
    }


@pytest.mark.parametrize(
    "line",
    [
        "context", "context --session a --budget 800 --to text", "context --tier session --tier=tail --json -C .",
        "context --db /x/y.db --counter chars-4 --wait 2.5 --now 2026-01-28 --strict --color never --quiet",
        "context --cross-budget 0 --session-budget 1 --tail-budget=2", "observe", "observe -",
        "observe a b --format pi",
        "log -n 5 --since 7d --type decision --priority high --jsonl -f", "show 3f9a1c2e", "sessions --last=3",
        "status", "tokens README.md --as text", "note text --type decision --tag pinned",
    ],
)  # fmt: skip
def test_plain_lines_are_read_without_typer(line: str) -> None:
    """What an agent's hooks run must not wait for Typer."""
    name, *words = line.split()
    wanted = command(name).parameters
    said = plain(wanted, words)
    assert said is not None
    assert said == read_by_typer(name, wanted, words)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--budget"], ["--budget", "x"], ["--budg", "3"], ["x"], ["--"]])
def test_all_else_is_left_to_typer(words: list[str]) -> None:
    assert plain(command("context").parameters, words) is None


def sample(
    _run: object,
    one: Annotated[str, argument(metavar="ONE")],
    more: Annotated[list[str] | None, argument()] = None,
    *,
    to: Annotated[PackFormat, option("--to")] = PackFormat.TEXT,
    tiers: Annotated[list[Tier] | None, option("--tier")] = None,
    db: Annotated[Path | None, option("--db")] = None,
    least: Annotated[int, option("--least", "-l", at_least=3)] = 4,
) -> None:
    """Everything a parameter can be."""


def test_parameters_are_read_from_the_annotations() -> None:
    names = [parameter.name for parameter in parameters(sample)]
    assert names == ["one", "more", "to", "tiers", "db", "least"]
    assert [parameter.default for parameter in parameters(sample)] == [..., None, PackFormat.TEXT, None, None, 4]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a"], {"one": "a"}),
        (["a", "b", "-", "c"], {"one": "a", "more": ["b", "-", "c"]}),
        (["--to", "xml", "a", "--db=x=y"], {"one": "a", "to": PackFormat.XML, "db": Path("x=y")}),
        (["a", "--tier", "tail", "--tier", "cross"], {"one": "a", "tiers": [Tier.TAIL, Tier.CROSS]}),
        (["a", "-l", "3"], {"one": "a", "least": 3}),
        (["a", "--least", "3", "--least", "9"], {"one": "a", "least": 9}),
    ],
)
def test_words_become_values(words: list[str], said: Values) -> None:
    default = {"more": None, "to": PackFormat.TEXT, "tiers": None, "db": None, "least": 4}
    assert plain(parameters(sample), words) == {**default, **said}
    assert read_by_typer("sample", parameters(sample), words) == {**default, **said}


@pytest.mark.parametrize(
    "words", [[], ["a", "--least", "2"], ["a", "--to", "XML"], ["a", "-l3"], ["a", "-l=3"], ["a", ""]]
)
def test_what_is_missing_or_odd_is_not_plain(words: list[str]) -> None:
    assert plain(parameters(sample), words) is None
