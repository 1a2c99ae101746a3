"""What the architecture map promises of the code: who imports whom, how long things get, where SQL is."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.modules import nodes, parsed

PACKAGE = Path(__file__).parents[2] / "omcli"
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FUNCTION = 60
"""Lines; most functions stay far below."""
COMMON_LENGTH = 35
SQL = re.compile(
    r"\b(SELECT\b.+\bFROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE|PRAGMA \w+|BEGIN IMMEDIATE)\b", re.DOTALL
)


def name(path: Path) -> str:
    return str(path.relative_to(PACKAGE.parent))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Names and lengths of the functions in a module."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef):
            yield f"{name(path)}: {node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_imports_point_inward() -> None:
    """The contracts of `pyproject.toml`; `lint-imports` says which line breaks which."""
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert command, "import-linter is not installed: pip install -e '.[dev]'"
    done = subprocess.run([command, "--no-cache"], cwd=PACKAGE.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_map_names_every_folder_and_is_read_in_one_go() -> None:
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    folders = {path.relative_to(PACKAGE).parts[0] for path in MODULES if path.parent != PACKAGE}
    missing = {folder for folder in folders if f"`{folder}/" not in text}
    assert not missing, f"omcli/README.md does not name {sorted(missing)}"
    assert len(text.splitlines()) <= 250


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_opens_with_one_line_that_a_user_could_read(path: Path) -> None:
    docstring = ast.get_docstring(parsed(path))
    assert docstring, f"{name(path)} has no docstring"
    assert docstring.splitlines()[0].endswith((".", ":")), docstring


def test_functions_stay_short() -> None:
    lengths = [function for path in MODULES for function in functions(path)]
    longest = {function: lines for function, lines in lengths if lines > LONGEST_FUNCTION}
    assert not longest, f"longer than {LONGEST_FUNCTION} lines: {longest}"
    short = sum(lines <= COMMON_LENGTH for _, lines in lengths)
    assert short >= 0.95 * len(lengths), sorted(lengths, key=lambda pair: -pair[1])[:20]


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_error_is_caught_without_being_named(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.ExceptHandler):
            caught = (
                [] if node.type is None else [part.id for part in ast.walk(node.type) if isinstance(part, ast.Name)]
            )
            assert node.type is not None, f"{name(path)}:{node.lineno}"
            assert "Exception" not in caught, f"{name(path)}:{node.lineno}"
            # `except BaseException` may clean up, but not swallow.
            assert "BaseException" not in caught or isinstance(node.body[-1], ast.Raise), f"{name(path)}:{node.lineno}"


# The tables of other programs are formats; `sqlite/` and `postgres/` know those of om's own store.
FOREIGN_TABLES = {PACKAGE / "formats" / file for file in ("tables.py", "opencode/database.py")}


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.parent.name not in ("sqlite", "postgres") and path not in FOREIGN_TABLES],
    ids=name,
)
def test_all_sql_is_in_one_place(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not SQL.search(node.value), f"{name(path)}:{node.lineno}: {node.value[:80]}"


def test_only_cli_writes_to_the_streams() -> None:
    """Invariant 11: stdout is data, stderr is talk, and each has one owner."""
    found = {name(path) for path in MODULES if any(map(_is_speaking, nodes(path)))}
    allowed = {"omcli/cli/output.py", "omcli/cli/console.py", "omcli/cli/app.py", "omcli/cli/main.py"}
    allowed |= {"omcli/cli/hooks.py"}  # which nothing of the others is quick enough for
    assert found <= allowed | {"omcli/__main__.py"}, "the entry point flushes both before it leaves"


def _is_speaking(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "print"
    if not isinstance(node, ast.Attribute) or node.attr not in ("stdout", "stderr", "echo"):
        return False
    return not (isinstance(node.value, ast.Name) and node.value.id == "process")  # another program's
