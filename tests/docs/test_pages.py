"""The man pages that are written by hand say what the code says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from omcli import __version__
from omcli.base.errors import OmError
from omcli.cli.commands import COMMANDS
from omcli.settings.layers import PRESETS, preset_file, variable_name
from omcli.settings.values import DEFAULTS, KEYS, PROJECT_RULES, ProjectRule, as_json
from omcli.sqlite.connection import open_temporary, steps
from tests.conftest import Om
from tests.docs.generate import ROOT

WRITTEN = sorted(page for page in (ROOT / "man").glob("man?/*") if page.parent.name != "man1")
KINDS = {
    "Tokens": "tokens",
    "Amount": "amount",
    "Days": "days",
    "bool": "yes or no",
    "Path": "path",
    "int": "number",
    "float": "number",
    "str": "text",
    "Span": "range",
    "Mapping[str, Price]": "table",
}


def source(name: str) -> str:
    """The text of a page without roff's escapes."""
    (page,) = (ROOT / "man").glob(f"man?/{name}")
    return re.sub(r"\\f[BIR]|\\&", "", page.read_text("utf-8")).replace("\\-", "-")


def errors(of: type[OmError] = OmError) -> Iterator[type[OmError]]:
    yield of
    for child in of.__subclasses__():
        yield from errors(child)


@pytest.mark.parametrize("error", [pytest.param(each, id=each.slug) for each in errors()])
def test_every_error_is_explained(error: type[OmError]) -> None:
    """Under its slug, with its exit code and something to do or to know."""
    entry = re.search(rf"^{error.slug} \({error.exit_code}\)\n(.+)$", source("om-errors.7"), re.MULTILINE)
    assert entry, f"man7/om-errors.7 does not explain `{error.slug} ({error.exit_code})`"


def test_no_error_is_explained_that_does_not_exist() -> None:
    explained = re.findall(r"^\.TP\n([a-z-]+) \(\d+\)$", source("om-errors.7"), re.MULTILINE)
    assert sorted(explained) == sorted({error.slug for error in errors()})


def test_the_error_that_is_shown_is_the_one_that_om_prints(om: Om) -> None:
    assert om("observe", "nothing.jsonl", code=66).stderr in source("om-errors.7").replace("\\(ga", "`")


def test_every_setting_is_described_with_its_kind_default_and_variable() -> None:
    found = re.findall(r"^\.TP\n([a-z_.]+) \((.+)\)\n\S.*", source("om-config.5"), re.MULTILINE)
    assert dict(found) == {key: summary(key) for key in KEYS}


def summary(key: str) -> str:
    """A setting as its entry sums it up."""
    kind, value = KEYS[key].removesuffix(" | None"), as_json(DEFAULTS)[key]
    kind = "list" if kind.startswith("tuple[") else KINDS.get(kind, "word")
    default = "" if key == "db" else f", default {plain(key, value)}"
    is_variable = not isinstance(value, dict)
    mark = {ProjectRule.NONE: ", private", ProjectRule.NARROWER: ", narrow"}.get(PROJECT_RULES[key], "")
    return f"{kind}{default}{mark}" + (f"; {variable_name(key)}" if is_variable else "")


def plain(key: str, value: object) -> str:
    """A default as people write it."""
    if value is None:
        is_limit = KEYS[key].startswith(("int", "Tokens", "Days")) or key.startswith("limits.")
        return "unlimited" if is_limit else "unset"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value or "empty") if value != 0 else "0"


def test_every_preset_is_described() -> None:
    described = re.findall(r"^\.TP\n([a-z]+)\n", source("om-config.5"), re.MULTILINE)
    assert [name for name in described if preset_file(name).is_file()] == list(PRESETS)


def test_every_table_of_the_store_is_described() -> None:
    connection = open_temporary(steps=steps())
    tables = {
        name for (name,) in connection.execute("SELECT name FROM pragma_table_list WHERE type IN ('table', 'virtual')")
    }
    connection.close()
    named = set(re.findall(r"[a-z_]+", "\n".join(re.findall(r"^\.TP\n(.+)$", source("om-store.5"), re.MULTILINE))))
    assert {name for name in tables if not name.startswith("sqlite_")} <= named
    assert f"schema version, {len(steps())} at present" in source("om-store.5")


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_pages_are_of_this_version_and_refer_to_pages_that_exist(page: Path) -> None:
    text = source(page.name)
    assert f'"om {__version__}"' in text.partition("\n")[0]
    known = {"om(1)", "sqlite3(1)", *(f"om-{name}(1)" for name in COMMANDS)}
    known |= {f"{each.stem}({each.suffix[1:]})" for each in WRITTEN}
    assert set(re.findall(r"[a-z0-9-]+\([157]\)", text)) <= known
