"""Aims for the layout of the code: sizes of modules and folders, names, circles, docstrings and error texts.

A limit that is above its aim is a ratchet: lower it when the code gets better, never raise it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.architecture.modules import nodes, parsed

PACKAGE = Path(__file__).parents[2] / "omcli"
MODULES = sorted(PACKAGE.rglob("*.py"))
CORE = ("base", "text", "memory", "pack", "exchange", "llm", "recall")

MOST_MODULES = 240
"""Without those of the tables that grow by a module for each line: formats, clients and exchange."""
LEAST_MEAN_LINES = 185
MOST_LINES = 480  # aim: 450
MOST_FILES_IN_A_FOLDER = 25
MOST_LINES_OF_MEMORY = 3000
MOST_SHARED_CLASS_NAMES = 0
MOST_MODULES_IN_CIRCLES = 0
MOST_QUESTIONS = 0
MOST_ODD_ERRORS = 0
MOST_WORDS = 800

QUESTION = re.compile(r"(What|Whether|How|Who|Whose|Where|Why)\b")
ODD_ERROR = re.compile(r"\b(?:is|are|was|were) no\b|\bnothing says\b")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def name(path: Path) -> str:
    return str(path.relative_to(PACKAGE.parent))


def length(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


# ---- sizes


def test_there_are_few_modules_and_they_are_worth_opening() -> None:
    counted = [path for path in MODULES if not {"formats", "clients", "exchange", "postgres"}.intersection(path.parts)]
    assert len(counted) <= MOST_MODULES
    assert sum(map(length, MODULES)) / len(MODULES) >= LEAST_MEAN_LINES


def test_no_module_is_too_long() -> None:
    longest = {name(path): length(path) for path in MODULES if length(path) > MOST_LINES}
    assert not longest


def test_a_folder_can_be_taken_in_at_a_glance() -> None:
    full = {name(folder): count for folder, count in Counter(path.parent for path in MODULES).items()}
    assert not {folder: count for folder, count in full.items() if count > MOST_FILES_IN_A_FOLDER}


def test_memory_holds_only_nouns() -> None:
    assert sum(length(path) for path in MODULES if path.parent == PACKAGE / "memory") <= MOST_LINES_OF_MEMORY


# ---- names


def test_a_public_class_name_is_used_once() -> None:
    places = defaultdict(list)
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name(path))
    shared = {class_name: paths for class_name, paths in places.items() if len(paths) > 1}
    assert len(shared) <= MOST_SHARED_CLASS_NAMES, shared


def test_names_are_made_of_few_words() -> None:
    words = {
        word.lower()
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for word in WORD.findall(node.name)
    }
    assert len(words) <= MOST_WORDS


# ---- imports


def test_no_modules_import_each_other() -> None:
    circles = list(circular(imports(with_types=False)))
    assert sum(map(len, circles)) <= MOST_MODULES_IN_CIRCLES, circles


def test_the_core_has_no_circle_among_its_types_either() -> None:
    core = {
        module: found
        for module, found in imports(with_types=True).items()
        if module.split(".")[1:2] in ([x] for x in CORE)
    }
    assert not list(circular(core))


def imports(*, with_types: bool) -> Mapping[str, set[str]]:
    """Modules imported by each module, at its top or in a function; `with_types` also those under TYPE_CHECKING."""
    names = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__") for path in MODULES
    }
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        graph[module] = set()
        for node in _nodes(parsed(path), with_types=with_types):
            if isinstance(node, ast.Import):
                graph[module].update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found = (f"{node.module}.{alias.name}" for alias in node.names)
                graph[module].update(each if each in names else node.module for each in found)
        graph[module] &= names
    return graph


def _nodes(node: ast.AST, *, with_types: bool) -> Iterator[ast.AST]:
    """All nodes below one, without what only a type checker reads unless asked for."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test) and not with_types:
            continue
        yield child
        yield from _nodes(child, with_types=with_types)


def circular(graph: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """Groups of modules that reach each other."""
    reached = {module: _reached(module, graph) for module in graph}
    done: set[str] = set()
    for module in sorted(graph):
        circle = sorted(other for other in reached[module] if module in reached.get(other, ()))
        if circle and module not in done:
            yield circle
        done.update(circle)


def _reached(start: str, graph: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for other in graph.get(waiting.pop(), set()) - found:
            found.add(other)
            waiting.append(other)
    return found


def test_a_circle_is_found() -> None:
    """The tests above can fail."""
    assert list(circular({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}})) == [["b", "c"], ["d"]]


# ---- words


def test_no_docstring_opens_with_a_question() -> None:
    found = [
        f"{name(path)}:{getattr(node, 'lineno', 1)}: {docstring.splitlines()[0]}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
        and (docstring := ast.get_docstring(node))
        and QUESTION.match(docstring)
    ]
    assert len(found) <= MOST_QUESTIONS, found


def test_errors_say_what_is_wrong_in_plain_words() -> None:
    """`X is not a valid Y (expected …)`, never "X is no Y"."""
    found = sorted({
        f"{name(path)}:{text.lineno}: {text.value}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and "hint" in {key.arg for key in node.keywords})
        for text in ast.walk(node)
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and ODD_ERROR.search(text.value)
    })  # fmt: skip
    assert len(found) <= MOST_ODD_ERRORS, found
