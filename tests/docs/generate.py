"""Generate the man pages of commands, the completion scripts and the schema of a new store.

python -m tests.docs.generate           write them
python -m tests.docs.generate --check   only name those that are out of date
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from inspect import cleandoc
from pathlib import Path

from omcli import __version__
from omcli.cli import help as cli_help
from omcli.cli.command import CliCommand, shared_options
from omcli.cli.commands import COMMANDS, GROUPS, command
from omcli.sqlite.connection import APPLICATION_ID, steps, whole_file
from omcli.sqlite.dialect import prepare

ROOT = Path(__file__).parents[2]
_OF_SCHEMA = """\
-- The schema that the steps in this folder add up to, for a new store. Written by `python -m tests.docs.generate`."""
_ROW = re.compile(r"^INSERT INTO .* VALUES .*;$", re.MULTILINE)
"""A row that every store begins with."""
_DATE = "2026-11-22"
"""Day of the last change in wording; fixed, so that a build can be repeated."""

_ENVIRONMENT = {
    "OM_DB": "The store. Default: memory.db in the user's data folder.",
    "OM_PRESET": "Preset to use: default, zora, lango, duet, pi, coding or mastra.",
    "OM_CONFIG": "Configuration file. Default: config.toml in the user's configuration folder.",
    "OM_COUNTER": "Token counter. Default: o200k-approx.",
    "OM_AUTHOR": "Name to store with what you write. Default: your login name.",
    "OM_WAIT": "Seconds to wait for another process that is writing. Default: 10.",
    "OM_CONTEXT_BUDGET": "Tokens of a context pack. Default: 20000.",
    "OM_PAGER, PAGER": "Program that shows long output on a terminal; empty for none. Default: less.",
    "OM_OBSERVER_PROVIDER": "Provider that observes: anthropic, openai, ollama, ..., or rules. Default: rules.",
    "OM_OBSERVER_MODEL": "The model that observes, and reflects if no other is named.",
    "OM_EMBEDDINGS_PROVIDER": "Provider of the model for vectors: openai, ollama, ..., or local. Default: none.",
    "OM_KEY": "Key of an encrypted store. om-store(5) says where it is looked for otherwise.",
    "OM_...": "Any other setting: OM_OBSERVE_TOKENS sets observe.tokens. om-config(5) lists them all.",
    "ANTHROPIC_API_KEY": "Key for Anthropic's models. It is used only if you choose one of them.",
    "OPENAI_API_KEY": "The same for OpenAI. Other providers have their own: OPENROUTER_API_KEY, GEMINI_API_KEY, ...",
    "OM_DISABLED": "If 1, nothing is written; commands say so and succeed.",
    "NO_COLOR": "If not empty, no colour.",
}
_EXIT_STATUS = {
    "0": "Done; also if nothing was found.",
    "1": (
        "The answer is no: om recall, om ask, om why or om trace found nothing, om tick nothing due, om forget nothing"
        " to forget; a check of om doctor failed."
    ),
    "2": "Invalid usage.",
    "65": "Invalid input: not a transcript, an unknown id, malformed lines with --strict.",
    "66": "An input does not exist or cannot be read.",
    "69": "A model gave no usable reply, or a call would have exceeded a limit. Messages are kept and wait.",
    "70": "A bug in om.",
    "73": "A file or folder cannot be created.",
    "74": "Reading or writing failed, for example because the disk is full.",
    "75": "Another process holds the lock or the lease. Try again; nothing was lost.",
    "77": "No API key was found, or the provider rejected it; or the key of an encrypted store is missing.",
    "78": "A setting is invalid, or the store was written by a newer om.",
    "130": "Interrupted.",
    "141": "The reader of the output closed the pipe.",
    "143": "Terminated.",
}
_OF_EVERY_COMMAND = (
    "0 done, 1 the answer is no, 2 invalid usage, 65 to 78 errors that om-errors(7) lists.",
    "om(1) lists the most common variables, om-config(5) all settings.",
)
"""Exit codes and environment of a subcommand, in a sentence."""
_WRITTEN = ("om-concepts(7)", "om-config(5)", "om-errors(7)", "om-store(5)", "om-transcript(5)")
"""The pages that are written by hand."""
_RELATED = ("om-context", "om-observe", "om-log")
_COLUMNS = 78
"""Width of a line of text in the source of a page."""


def generated() -> Iterator[tuple[Path, str]]:
    """Yield the path of every generated file with its text."""
    pages = ROOT / "man" / "man1"
    yield pages / "om.1", _overview()
    for name in COMMANDS:
        yield pages / f"om-{name}.1", _page_of(name, command(name))
    for shell, file in (("bash", "om.bash"), ("zsh", "_om"), ("fish", "om.fish")):
        yield ROOT / "completions" / file, _completion(shell)
    yield whole_file(steps()[-1]), schema()


def schema() -> str:
    """What the steps of `sqlite/migrations/` add up to."""
    with closing(prepare(sqlite3.connect(":memory:", isolation_level=None))) as connection:
        for step in steps():
            connection.executescript(step.read_text("utf-8"))
        found = connection.execute(
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT GLOB 'sqlite_*'"
            " AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow') ORDER BY rowid"
        )
        statements = [f"PRAGMA application_id = {APPLICATION_ID}", *(sql for (sql,) in found)]
    statements += [line.rstrip(";") for step in steps() for line in _ROW.findall(step.read_text("utf-8"))]
    return "\n".join((_OF_SCHEMA, *(f"{statement};" for statement in statements))) + "\n"


# ---- man pages


def _overview() -> str:
    """Return the page of `om` itself."""
    options = {"Global options": [cli_help.VERSION, *map(cli_help.entry, shared_options()), cli_help.HELP]}
    lines = [*_head("om", cli_help.ABOUT, "[OPTIONS] COMMAND [ARGS]...", cli_help.ABOUT), ".SH COMMANDS"]
    for title, names in GROUPS.items():
        lines += [f".SS {title}"]
        lines += (line for name, about in names.items() for line in _entry(f"om-{name}", about, section="1"))
    lines += [*_options(options), *_examples(cli_help.EXAMPLES)]
    for title, entries in (("ENVIRONMENT", _ENVIRONMENT), ("EXIT STATUS", _EXIT_STATUS)):
        lines += [f".SH {title}", *(line for entry in entries.items() for line in _entry(*entry))]
    return _joined([*lines, *_see_also(f"om-{name}" for name in COMMANDS)])


def _page_of(name: str, described: CliCommand) -> str:
    """Return the page of a command."""
    summary, _, description = cleandoc(described.__doc__ or "").partition("\n")
    codes, variables = _OF_EVERY_COMMAND
    lines = [
        *_head(f"om-{name}", summary, cli_help.usage(described.parameters), description.strip() or summary),
        *_options(cli_help.sections(described.parameters)),
        *_examples(described.examples),
        *(".SH ENVIRONMENT", *_filled(variables), ".SH EXIT STATUS", *_filled(codes)),
        *_see_also(["om", *(other for other in _RELATED if other != f"om-{name}")]),
    ]
    return _joined(lines)


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _head(name: str, summary: str, usage: str, description: str) -> Iterator[str]:
    yield f'.TH {name.upper()} 1 "{_DATE}" "om {__version__}" "om manual"'
    yield from (".SH NAME", *_filled(f"{name} - {summary.rstrip('.')}"))
    yield from (".SH SYNOPSIS", f".B {_roff(name.replace('om-', 'om '))}", _roff(usage))
    yield from (".SH DESCRIPTION", *_paragraphs(description))


def _options(sections: Mapping[str, list[cli_help.Entry]]) -> Iterator[str]:
    for title, entries in sections.items():
        yield f".SH {title.upper()}"
        yield from (line for entry in entries for line in _entry(*entry))


def _see_also(pages: Iterable[str]) -> Iterator[str]:
    yield ".SH SEE ALSO"
    yield from _links([*(f"{page}(1)" for page in pages), *_WRITTEN])


def _entry(term: str, meaning: str, *, section: str = "") -> list[str]:
    return [".TP", f"\\fB{_roff(term)}\\fR" + (f"({section})" if section else ""), *_filled(meaning)]


def _links(pages: list[str]) -> Iterator[str]:
    *first, last = pages
    for page, comma in (*((page, ",") for page in first), (last, "")):
        name, _, section = page.partition("(")
        yield f".BR {_roff(name)} ({section}{comma}"


def _examples(examples: str) -> Iterator[str]:
    lines = (line.rstrip() for line in examples.replace("\b", "").splitlines() if line.strip())
    yield from (".SH EXAMPLES", ".nf", *map(_roff, lines), ".fi")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs. The lines of one that begins with a backspace, which Click does not wrap, are a list."""
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ".PP"
        if paragraph.lstrip().startswith("\b"):
            yield from (".nf", *(_roff(line) for line in paragraph.splitlines()[1:]), ".fi")
        else:
            yield from _filled(paragraph)


def _filled(text: str) -> list[str]:
    """Split a paragraph into lines: a sentence begins a new one."""
    sentences = re.split(r"(?<=[a-z0-9)`][.?!]) +(?=[A-Z`])", " ".join(text.split()))
    wrapped = (
        textwrap.wrap(_roff(each), _COLUMNS, break_long_words=False, break_on_hyphens=False) for each in sentences
    )
    return [_guarded(line) for lines in wrapped for line in lines]


def _roff(text: str) -> str:
    """Escape a text for roff: hyphens stay hyphens when copied, and no line begins a request."""
    return _guarded(text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("…", "..."))


def _guarded(line: str) -> str:
    return f"\\&{line}" if line.startswith((".", "'")) else line


# ---- completions


def _completion(shell: str) -> str:
    environment = {**os.environ, "_OM_COMPLETE": f"source_{shell}"}
    printed = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['om']; from omcli.__main__ import main; main()"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    script = printed.strip() + "\n"  # zsh reads #compdef on the first line only
    if shell == "zsh":
        # Loaded by name, the first TAB would only define the function.
        script = script.replace(
            "compdef _om_completion om\n",
            'if [ "$funcstack[1]" = "_om" ]; then _om_completion "$@"; else compdef _om_completion om; fi\n',
        )
    return script


def main() -> int:
    """Write the files, or compare them with --check. Return 1 if one is out of date."""
    check = "--check" in sys.argv[1:]
    stale = []
    for path, text in generated():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{'out of date' if check else 'written'}: {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
