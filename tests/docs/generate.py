"""Writes what is generated: man pages, completion scripts, and the list of modules in the architecture map.

python -m tests.docs.generate           writes them
python -m tests.docs.generate --check   only says which are out of date
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from omcli import __version__
from omcli.cli.app import application

ROOT = Path(__file__).parents[2]
Command = Any
"""A command as Typer keeps it; the type is private to Typer."""
_DATE = "2026-11-20"
"""The day the pages last changed in wording; a build has no day of its own, so that it can be repeated."""

_ENVIRONMENT = {
    "OM_DB": "The store. Default: the user data folder of the system.",
    "OM_PRESET": "Whose ways to go by: default, zora, lango, duet, pi, coding, mastra.",
    "OM_CONFIG": "Your configuration. Default: config.toml in the user configuration folder of the system.",
    "OM_...": 'Any other setting: OM_OBSERVE_TOKENS is observe.tokens. "om config" lists them all.',
    "OM_OBSERVER_PROVIDER": "Who observes: anthropic, openai, ollama, ..., or rules. Default: whose key is set.",
    "OM_OBSERVER_MODEL": "The model that observes, and reflects where nothing else is said.",
    "ANTHROPIC_API_KEY": "Makes a model of Anthropic the observer, unless another one is named.",
    "OPENAI_API_KEY": "The same for OpenAI. Other endpoints have theirs: OPENROUTER_API_KEY, GEMINI_API_KEY, ...",
    "OM_COUNTER": "How tokens are counted. Default: o200k-approx.",
    "OM_WAIT": "Seconds to wait for another process that writes. Default: 10.",
    "OM_CONTEXT_BUDGET": "Tokens of a context pack. Default: 20000.",
    "OM_DISABLED": "When 1, nothing is written; commands say so and succeed.",
    "NO_COLOR": "When not empty, no colour.",
}
_EXIT_STATUS = {
    "0": "Done; also when nothing was found.",
    "1": 'The answer is no: "om tick --check" finds nothing due.',
    "2": "The command line asks for something impossible.",
    "65": "Bad input: no transcript, an unknown id, malformed lines under --strict.",
    "66": "There is no such input.",
    "69": "A model gave no reply that can be used, or would have passed a limit. What was to be worked on waits.",
    "70": "An error in om.",
    "73": "A file or folder cannot be made.",
    "74": "Input or output failed: a full disk, for one.",
    "75": "Another process holds the lock or the lease; try again. Nothing was lost.",
    "77": "There is no key, or the endpoint does not accept it.",
    "78": "A setting is wrong, or the store was written by a later om.",
    "130": "Interrupted.",
    "141": "The reader of the output went away.",
    "143": "Terminated.",
}


def generated() -> Iterator[tuple[Path, str]]:
    """Every generated file and what it should hold."""
    group: Command = typer.main.get_command(application([]))
    context = group.make_context("om", [], resilient_parsing=True)
    yield ROOT / "man" / "om.1", _page("om", group, context, list(group.commands))
    for name, command in group.commands.items():
        sub = type(context)(command, info_name=f"om {name}")
        yield ROOT / "man" / f"om-{name}.1", _page(f"om-{name}", command, sub, [])
    for shell, file in (("bash", "om.bash"), ("zsh", "_om"), ("fish", "om.fish")):
        yield ROOT / "completions" / file, _completion(shell)
    yield ROOT / "omcli" / "README.md", _map()


# ---- man pages


def _page(name: str, command: Command, context: Any, commands: list[str]) -> str:
    summary, _, description = (command.help or "").strip().partition("\n")
    words = name.replace("om-", "om ")
    lines = [
        f'.TH {name.upper()} 1 "{_DATE}" "om {__version__}" "om manual"',
        ".SH NAME",
        f"{_roff(name)} \\- {_roff(summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_roff(words)}",
        _roff(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *_paragraphs(description.strip() or summary),
    ]
    if commands:
        lines += [".SH COMMANDS"]
        for sub in commands:
            about = (command.commands[sub].help or "").strip().splitlines()[0]
            lines += [".TP", f"\\fBom {_roff(sub)}\\fR(1)", _roff(about)]
    lines += [".SH OPTIONS"]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and record[1]:
            lines += [".TP", f"\\fB{_roff(record[0])}\\fR", _roff(record[1])]
    lines += [".SH EXAMPLES", ".nf", *(_roff(line) for line in _examples(command)), ".fi"]
    for title, entries in (("ENVIRONMENT", _ENVIRONMENT), ("EXIT STATUS", _EXIT_STATUS)):
        lines += [f".SH {title}"]
        for term, meaning in entries.items():
            lines += [".TP", f"\\fB{_roff(term)}\\fR", _roff(meaning)]
    others = [] if commands else ["om"]
    others += [f"om-{other}" for other in (commands or ["context", "observe", "log"]) if f"om-{other}" != name]
    lines += [".SH SEE ALSO", ", ".join(f"\\fB{_roff(other)}\\fR(1)" for other in others)]
    return "\n".join(lines) + "\n"


def _examples(command: Command) -> list[str]:
    return [line.rstrip() for line in (command.epilog or "").replace("\b", "").splitlines() if line.strip()]


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.replace("\b", "").split("\n\n")):
        if number:
            yield ".PP"
        yield _roff(" ".join(paragraph.split()))


def _roff(text: str) -> str:
    """Escaped for roff: hyphens stay hyphens when copied, and no line begins a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("…", "...")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


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


# ---- the map


def _map() -> str:
    """The architecture map with its list of modules, each with the first line of its docstring."""
    path = ROOT / "omcli" / "README.md"
    before, _, rest = path.read_text(encoding="utf-8").partition("<!-- modules -->\n")
    _, _, after = rest.partition("<!-- end of modules -->\n")
    return f"{before}<!-- modules -->\n{''.join(_modules())}<!-- end of modules -->\n{after}"


def _modules() -> Iterator[str]:
    folder = None
    for module in sorted((ROOT / "omcli").rglob("*.py"), key=lambda path: (path.parent.as_posix(), path.name)):
        if module.parent != folder:
            folder = module.parent
            name = folder.relative_to(ROOT).as_posix()
            yield f"\n**`{name}/`** {_first_line(folder / '__init__.py')}\n\n"
        if module.name != "__init__.py":
            yield f"- `{module.name}` — {_first_line(module)}\n"
    yield "\n"


def _first_line(module: Path) -> str:
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) if module.is_file() else None
    return (docstring or "").partition("\n")[0]


def main() -> int:
    """Writes the files, or with --check compares them; 1 if one is out of date."""
    check = "--check" in sys.argv[1:]
    stale = []
    for path, text in generated():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{'out of date' if check else 'written'}: {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
