"""`om install`: the files of each client, and our entries in them.

Some clients have hooks in a settings file, in which our entries stand beside those of others. The other clients load an
extension of ours, a file of its own. All clients are given a skill.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from omcli.base import lazily
from omcli.base.errors import BadConfiguration, CannotCreate, OmError
from omcli.base.record import record
from omcli.clients import CLIENTS
from omcli.clients.entries import entries, hook_entries, starts, with_entries, without_entries
from omcli.clients.files import ClientFile, FileStep, KeptFile, KeptFiles, read, target
from omcli.clients.json_edit import parse

DATA = Path(__file__).parent / "data"
"""Folder of the files that are installed, and of the plugin for Claude Code."""
_MARK = "Written by `om install`"
"""Text by which whole files of ours are recognised."""
_PROGRAM = lazily(r'\bOM\b[^=\n]*=\s*("(?:[^"\\\n]|\\.)*")')
"""Matches the constant with the path of om in an extension."""
_SKILL = "om-memory/SKILL.md"


@record
class Client:
    """A client: where its files are, and what its user has to do."""

    title: str
    programs: tuple[str, ...]
    places: tuple[tuple[str, str], ...]
    """Environment variables, each with the path from its value to the client's folder. The first one set is used."""
    settings: str = ""
    """File for hooks in that folder."""
    extension: str = ""
    """File for our extension in that folder."""
    project: str = ""
    """File for hooks or our extension in the folder of a project."""
    own_skills: str = ""
    """Folder of skills in a project, if the client does not read `_SHARED_SKILLS`. The user's are in a folder with
    the same last name in the client's folder.
    """
    todo: str = ""
    """Steps left to the user after `om install`."""


TABLE: Mapping[str, Client] = {
    "claude-code": Client(
        title="Claude Code",
        programs=("claude",),
        places=(("CLAUDE_CONFIG_DIR", ""), ("HOME", ".claude")),
        settings="settings.json",
        project=".claude/settings.local.json",
        own_skills=".claude/skills",
        todo="start new sessions of Claude Code; running ones keep their hooks",
    ),
    "codex": Client(
        title="Codex",
        programs=("codex",),
        places=(("CODEX_HOME", ""), ("HOME", ".codex")),
        settings="hooks.json",
        project=".codex/hooks.json",
        todo="start `codex` and trust the hooks with `/hooks`; until then, and after each change of them, Codex does"
        " not run them and does not say so",
    ),
    "pi": Client(
        title="pi",
        programs=("pi",),
        places=(("PI_CODING_AGENT_DIR", ""), ("HOME", ".pi/agent")),
        extension="extensions/om.ts",
        project=".pi/extensions/om.ts",
        todo="start pi again; it loads extensions when it starts, those of a project only if you trust the project",
    ),
    "opencode": Client(
        title="OpenCode",
        programs=("opencode",),
        places=(("OPENCODE_CONFIG_DIR", ""), ("XDG_CONFIG_HOME", "opencode"), ("HOME", ".config/opencode")),
        extension="plugins/om.js",
        project=".opencode/plugins/om.js",
        todo="start OpenCode again; it loads plugins when it starts",
    ),
    "gemini": Client(
        title="Gemini CLI",
        programs=("gemini",),
        places=(("GEMINI_CLI_HOME", ".gemini"), ("HOME", ".gemini")),
        settings="settings.json",
        project=".gemini/settings.json",
        todo="start Gemini CLI again; `/hooks panel` shows if its hooks are on",
    ),
    "cursor": Client(
        title="Cursor",
        programs=("cursor", "cursor-agent"),
        places=(("HOME", ".cursor"),),
        settings="hooks.json",
        project=".cursor/hooks.json",
        todo="start Cursor again; if its settings include third-party configs, it also runs the hooks of Claude Code:"
        " then run `om uninstall cursor`, or each session is told its memory twice",
    ),
}
"""The clients that `om install` knows, in the order of CLIENTS."""
_SHARED_SKILLS = ".agents/skills"
"""Folder of skills, below the home or in a project, that all clients except Claude Code read."""
_OTHERS: Mapping[str, Mapping[str, object]] = {"cursor": {"version": 1}}
"""Other members that a settings file must have."""


def folder(name: str, environment: Mapping[str, str]) -> Path:
    """Return the folder of a client's settings."""
    for variable, below in TABLE[name].places:
        value = environment.get(variable, "").strip()
        if value and variable != "HOME":
            return Path(os.path.expanduser(value), below)  # noqa: PTH111 - Path.expanduser() raises if there is no home
    return _user_folder() / TABLE[name].places[-1][1]


def is_found(name: str, environment: Mapping[str, str]) -> bool:
    """Return True if a client's folder is there, or its program is on PATH."""
    programs = TABLE[name].programs
    return folder(name, environment).is_dir() or any(
        shutil.which(each, path=environment.get("PATH")) for each in programs
    )


def main_file(name: str, environment: Mapping[str, str], project: Path | None = None) -> Path:
    """Return the file with a client's hooks, or with our extension: for the user, or for one project."""
    client = TABLE[name]
    if project is not None:
        return project / client.project
    return folder(name, environment) / (client.settings or client.extension)


def skill_file(name: str, environment: Mapping[str, str], project: Path | None = None) -> Path:
    own = TABLE[name].own_skills
    if own and project is None:
        return folder(name, environment) / Path(own).name / _SKILL
    return (project or _user_folder()) / (own or _SHARED_SKILLS) / _SKILL


def entries_of(
    name: str, environment: Mapping[str, str], project: Path | None = None
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the events at which a client runs om, as named in its settings, each with the words that start om. For an
    extension, return the event "" with the path of its om, or without words if the extension does not give it.

    Raise NoInput or BadConfiguration if the file cannot be read, and CannotCreate if the home directory is unknown.
    """
    path = main_file(name, environment, project)
    content = read(path)
    if content is None:
        return ()
    if TABLE[name].extension:
        return (("", _named_in(content.decode(errors="replace"))),) if _MARK.encode() in content else ()
    with _named(path):
        return starts(_text(content))


def _named_in(extension: str) -> tuple[str, ...]:
    """Return the path of om in the text of an extension, or nothing if the text has none."""
    named = _PROGRAM.search(extension)
    try:
        return (str(json.loads(named[1])),) if named else ()
    except ValueError:  # a string in TypeScript may not be valid JSON
        return ()


def plan_install(
    name: str,
    om: tuple[str, ...],
    originals: KeptFiles,
    environment: Mapping[str, str],
    project: Path | None = None,
) -> tuple[ClientFile, ...]:
    """Return the changes of files that `om install` makes for a client.

    Raise CannotCreate if a file exists that is not ours, the home directory is unknown, or an extension needs a program
    `om` that is missing. Raise NoInput if a file cannot be read, and BadConfiguration if it is not valid.
    """
    path = main_file(name, environment, project)
    if TABLE[name].settings:
        command = " ".join(map(shlex.quote, (*om, "hook", name)))
        main = _plan_settings(path, originals.find(path), hook_entries(name, command), _OTHERS.get(name, {}))
    else:
        main = _plan_file(path, _source(name, om))
    skill = (DATA / "skill" / "SKILL.md").read_text("utf-8")
    return main, _plan_file(skill_file(name, environment, project), skill)


def _source(name: str, om: tuple[str, ...]) -> str:
    if len(om) > 1:
        raise CannotCreate(f"{TABLE[name].title} needs the program `om`", hint="install om, and run that one")
    source = DATA / name / Path(TABLE[name].extension).name
    text = source.read_text("utf-8").replace("__OM__", json.dumps(om[0]))
    return f"// {_MARK}, which overwrites changes; `om uninstall {name}` removes it.\n{text}"


def _plan_file(path: Path, text: str) -> ClientFile:
    before, after = read(path), text.encode()
    if before is not None and _MARK.encode() not in before:
        raise CannotCreate(f"{path} already exists and was not created by om", hint="move it out of the way")
    step = FileStep.CREATE if before is None else FileStep.KEEP if before == after else FileStep.CHANGE
    return ClientFile(path=path, step=step, before=before, after=after)


def _plan_settings(
    path: Path, known: KeptFile | None, wanted: Mapping[str, Any], others: Mapping[str, object]
) -> ClientFile:
    before = read(path)
    with _named(path):
        text = _text(before)
        had = entries(text, or_retired=True)
        after = with_entries(text, wanted, others)
        has = entries(after)
    is_changed = before is None or after.encode() != before
    original = _without_own(path, before, known, others) if is_changed else None
    return ClientFile(
        path=path,
        step=FileStep.CREATE if before is None else FileStep.CHANGE if is_changed else FileStep.KEEP,
        before=before,
        after=after.encode(),
        original=original,
        events=tuple(event for event, command in has if (event, command) not in had),
        replaced=tuple(dict.fromkeys(command for event, command in had if (event, command) not in has)),
    )


def plan_uninstall(
    name: str,
    originals: KeptFiles,
    environment: Mapping[str, str],
    project: Path | None = None,
    *,
    leaving: Collection[str] = (),
) -> tuple[ClientFile, ...]:
    """Return the changes of files that `om uninstall` makes for a client; `leaving` are all clients that are
    uninstalled with it. A skill that other clients may use stays.

    Raise NoInput if a file cannot be read, BadConfiguration if it is not valid, and CannotCreate if the home directory
    is unknown.
    """
    path, skill = main_file(name, environment, project), skill_file(name, environment, project)
    others = [other for other in CLIENTS if other not in {name, *leaving}]
    is_shared = any(
        target(skill_file(other, environment, project)) == target(skill) and _may_be_used(other, environment, project)
        for other in others
    )
    main = (
        _plan_remove(path, originals.find(path), _OTHERS.get(name, {}))
        if TABLE[name].settings
        else _plan_remove_file(path)
    )
    return (main,) if is_shared else (main, _plan_remove_file(skill))


def _may_be_used(name: str, environment: Mapping[str, str], project: Path | None) -> bool:
    try:
        return bool(entries_of(name, environment, project))
    except OmError:
        return True


def _plan_remove(path: Path, known: KeptFile | None, others: Mapping[str, object]) -> ClientFile:
    before = read(path)
    after = _without_own(path, before, known, others)
    is_restored = known is not None and after == known.content
    step = FileStep.RESTORE if is_restored else FileStep.CHANGE
    events: tuple[str, ...] = ()
    with suppress(BadConfiguration):
        events = tuple(event for event, _ in entries(_text(before)))
    return ClientFile(
        path=path,
        step=FileStep.KEEP if after == before else FileStep.REMOVE if after is None else step,
        before=before,
        after=after,
        events=events,
    )


def _plan_remove_file(path: Path) -> ClientFile:
    before = read(path)
    is_ours = before is not None and _MARK.encode() in before
    return ClientFile(path=path, step=FileStep.REMOVE if is_ours else FileStep.KEEP, before=before, after=None)


def _without_own(
    path: Path, content: bytes | None, known: KeptFile | None, others: Mapping[str, object]
) -> bytes | None:
    """Return the content of settings without our entries, or None if the file is missing, or was missing before and
    would be empty.

    If nobody has changed the file since `om install`, return its original content.
    """
    if content is None or (known is not None and known.is_as_left(content)):
        return None if content is None or known is None else known.content
    with _named(path):
        text = _text(content)
        original = parse(_text(known.content)).value if known is not None else None
        stripped = without_entries(text, original, others)
        if known is not None and known.content is None and parse(stripped).value == {}:
            return None
    return content if stripped == text else stripped.encode()


def _text(content: bytes | None) -> str:
    """Return the text of settings; an empty object if they are missing or blank. Raise BadConfiguration for invalid
    UTF-8.
    """
    try:
        text = (content or b"").decode()
    except UnicodeDecodeError as error:
        raise BadConfiguration(f"byte {error.start + 1}: not valid UTF-8") from None
    return text if text.strip("\ufeff \t\r\n") else "{}\n"


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the file's name to errors."""
    try:
        yield
    except BadConfiguration as error:
        raise BadConfiguration(f"{path}: {error.message}", hint=error.hint) from None


def _user_folder() -> Path:
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises if there is none
    if not home.is_absolute():
        raise CannotCreate("the home directory is unknown", hint="set HOME")
    return home
