"""The text of `--help`: of `om` itself, and of each command. It is written without Typer, which is slow to import."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from omcli.cli.command import shared_options
from omcli.cli.commands import GROUPS, command

if TYPE_CHECKING:
    from omcli.cli.options import Parameter

Entry = tuple[str, str]
"""A term, such as `-n, --last N`, and its meaning."""

ABOUT = "Durable memory for LLM agents: transcripts in, dated observations and context packs out."
VERSION = ("--version", "Print the version and exit; with --json, also those of Python, SQLite and the store.")
HELP = ("-h, --help", "Show this message and exit.")
EXAMPLES = """\b
om observe < transcript.jsonl       remember a transcript
om context --session ID             print what an agent should know
om log --since 7d --priority high   show the observation log
"""
_SHARED = "Global options"
_WIDEST_TERM = 26
"""Maximum width of a column of options. The meaning of a wider option begins on the next line."""
_WIDTHS = (50, 98)
"""Smallest and largest width of a page, in columns."""


def main_help() -> str:
    """Return the help of `om`, which lists the commands by purpose."""
    widest = max(len(name) for names in GROUPS.values() for name in names)
    groups = {title: [(name.ljust(widest), about) for name, about in names.items()] for title, names in GROUPS.items()}
    shared = {_SHARED: [VERSION, *map(entry, shared_options()), HELP]}
    return _help_text("om [OPTIONS] COMMAND [ARGS]...", ABOUT, groups | shared, EXAMPLES)


def command_help(name: str) -> str:
    """Return the help of a command."""
    wanted = command(name)
    return _help_text(
        f"om {name} {usage(wanted.parameters)}", wanted.__doc__ or "", sections(wanted.parameters), wanted.examples
    )


def usage(parameters: Iterable[Parameter]) -> str:
    """Return the options and arguments of a command in short, such as `[OPTIONS] {PATH...}`."""
    return " ".join(["[OPTIONS]", *(_in_usage(each) for each in parameters if not each.declared.names)])


def _in_usage(argument: Parameter) -> str:
    term = _value_name(argument)
    return term if term.startswith("[") else f"{{{term}}}" if argument.default is ... else f"[{term}]"


def sections(parameters: Iterable[Parameter]) -> dict[str, list[Entry]]:
    """Return a command's arguments, its own options, and those that it shares with all commands, under their titles."""
    shared = {each.name for each in shared_options()}
    found: dict[str, list[Entry]] = {"Arguments": [], "Options": [], _SHARED: []}
    for parameter in parameters:
        if not parameter.declared.settings.get("hidden"):
            is_shared = parameter.name in shared
            title = _SHARED if is_shared else "Options" if parameter.declared.names else "Arguments"
            found[title].append(entry(parameter))
    found[_SHARED].append(HELP)
    return {title: entries for title, entries in found.items() if entries}


def entry(parameter: Parameter) -> Entry:
    """Return a parameter as help lists it, with its default."""
    names = sorted(parameter.declared.names, key=lambda name: name.startswith("--"))
    value = "" if parameter.kind is bool else _value_name(parameter)
    default = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    extra = "required" if default is ... else "" if default is None or default is False else f"default: {default}"
    meaning = str(parameter.declared.settings.get("help", ""))
    return " ".join(filter(None, (", ".join(names), value))), f"{meaning}  [{extra}]" if extra else meaning


def _value_name(parameter: Parameter) -> str:
    """Return the text that stands for the value: the declared word, or the values to choose from."""
    declared = parameter.declared.settings.get("metavar")
    return str(declared or f"<{'|'.join(str(each.value) for each in parameter.values)}>")


def _help_text(usage: str, about: str, entries: Mapping[str, list[Entry]], examples: str) -> str:
    least, most = _WIDTHS
    width = max(min(shutil.get_terminal_size().columns - 2, most), least)
    first = textwrap.fill(usage, width, initial_indent="Usage: ", subsequent_indent=" " * len("Usage: om "))
    tables = (f"{title}:\n" + "".join(_table(found, width)) for title, found in entries.items())
    return "\n".join((f"{first}\n", _fill(about, width), *tables, f"Examples:\n{_fill(examples, width)}"))


def _table(entries: list[Entry], width: int) -> Iterator[str]:
    """Yield the lines of two columns, terms and meanings, indented by two."""
    column = min(max(len(term) for term, _ in entries), _WIDEST_TERM) + 2
    for term, meaning in entries:
        lines = textwrap.wrap(meaning, max(width - column - 2, 10))
        if len(term) > column - 2:
            yield f"  {term}\n"
        else:
            yield f"  {term:{column}}{lines.pop(0)}\n"
        yield from (f"{'':{column + 2}}{line}\n" for line in lines)


def _fill(text: str, width: int) -> str:
    """Wrap each paragraph, indented by two. The lines of one that begins with a backspace stay as they are."""
    return "\n".join("".join(f"  {line}\n" for line in lines) for lines in _blocks(text, width - 2))


def _blocks(text: str, width: int) -> Iterator[list[str]]:
    for paragraph in text.strip().split("\n\n"):
        lines = textwrap.dedent(paragraph).splitlines()
        yield lines[1:] if lines[0] == "\b" else textwrap.wrap(" ".join(lines), width)
