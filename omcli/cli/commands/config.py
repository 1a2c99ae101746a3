"""`om config`: the settings, and where they are; `om doctor`: the state of all that om needs."""

from __future__ import annotations

import os
from collections import Counter
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadConfiguration, BadUsage
from omcli.cli.command import Run, with_shared
from omcli.cli.console import Exit, counted
from omcli.cli.options import argument, option
from omcli.settings import PROJECT_FILE
from omcli.settings.layers import preset_file, read
from omcli.settings.values import KEYS, as_json, project_may_set, toml
from omcli.text.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omcli.doctor import Check, Result


_EXAMPLES = """\b
om config
om config show --origin | grep observe
om config show --preset lango --json | jq .settings
om config get context.budget
om config set context.budget 8000
om config set enabled false --local
om config unset context.budget
om config schema > om.schema.json
"""
_NO_VALUE = 1
_ARGUMENTS = 2
_NEW_FILE = """\
# Settings of om. `om config` prints all keys with their values, and `om config path` a file that explains them.
"""


class ConfigTask(StrEnum):
    """Something to do with the configuration."""

    SHOW = "show"
    PATH = "path"
    GET = "get"
    SET = "set"
    UNSET = "unset"
    EDIT = "edit"
    SCHEMA = "schema"


def _keys() -> list[str]:
    """Return the keys, for completion."""
    return list(KEYS)


@with_shared(examples=_EXAMPLES, without=["now"])
def config(
    run: Run,
    action: Annotated[
        ConfigTask,
        argument(metavar="[show|path|get|set|unset|edit|schema]", help="What to do."),
    ] = ConfigTask.SHOW,
    key: Annotated[
        str | None, argument(metavar="KEY", help="A key, such as observe.tokens.", autocompletion=_keys)
    ] = None,
    value: Annotated[str | None, argument(metavar="VALUE", help="The value to set, as text or TOML.")] = None,
    *,
    origin: Annotated[bool, option("--origin", help="Print where each setting comes from.")] = False,
    local: Annotated[bool, option("--local", help="Change the project's .om.toml instead of your file.")] = False,
) -> None:
    """Print or change the settings.

    `show` prints every key with its value, in the format of a configuration file, and `get` one value. In order of
    precedence: options, OM_* variables, the project's .om.toml, your config.toml, the preset, and the defaults.
    Variables are named after keys: OM_OBSERVE_TOKENS sets observe.tokens. Secrets in values are not printed. The exit
    code of `get` is 1 if the key has no value.

    `set` and `unset` change one key in your file, or with --local in the project's: the nearest .om.toml or, if there
    is none, a new one in the current directory. Comments stay. A value that is not valid is refused, and so is a key
    that a project's file may not have. "unlimited" removes a limit, "unset" a value. A line on stderr says if another
    value is in force, and why. With --json, the value printed is the one in force.

    `edit` opens the file in $VISUAL or $EDITOR and checks it afterwards. `schema` prints a JSON Schema of such files,
    with which editors complete and check them. `path` prints the paths of your file, of the project's file, and of a
    file that documents every key.
    """
    wanted = {ConfigTask.GET: (key,), ConfigTask.SET: (key, value), ConfigTask.UNSET: (key,)}.get(action, ())
    if None in wanted or (key, value)[len(wanted) :].count(None) < _ARGUMENTS - len(wanted):
        words = ("om config", action, *("KEY", "VALUE")[: len(wanted)])
        raise BadUsage(f"wrong number of arguments for `om config {action}`", hint=f"`{' '.join(words)}`")
    if action is ConfigTask.PATH:
        _show_paths(run)
    elif action is ConfigTask.SCHEMA:
        _show_schema(run)
    elif action is ConfigTask.SHOW:
        _show(run, with_origin=origin)
    elif action is ConfigTask.GET:
        _get(run, str(key), with_origin=origin)
    elif action is ConfigTask.EDIT:
        _edit(run, is_local=local)
    else:
        _change(run, str(key), value, is_local=local)


def _values(run: Run) -> dict[str, object]:
    """Return all values without secrets: a command may contain a key, and a base URL a password."""
    return {
        key: redact(value).text if isinstance(value, str) else value for key, value in as_json(run.settings).items()
    }


def _show(run: Run, *, with_origin: bool) -> None:
    values = _values(run)
    origins = {key: run.settings.origin(key) for key in values}
    if run.json:
        run.output.document({"settings": values, **({"origins": origins} if with_origin else {})})
        return
    written = {key: toml(key, value) for key, value in values.items()}
    run.output.settings(written, origins if with_origin else {})


def _show_paths(run: Run) -> None:
    files, defaults = run.files, preset_file("default")
    has_pi = run.settings.origin("preset") != "default" and run.settings.preset == "pi"
    named = {"pi_user": files.pi_user, "pi_project": files.pi_project}
    of_pi = {name: path for name, path in named.items() if path is not None and has_pi}
    if run.json:
        run.output.document(
            {
                "user": {"path": str(files.user), "found": files.user.is_file()},
                "project": None if files.project is None else {"path": str(files.project), "found": True},
                "defaults": {"path": str(defaults), "found": True},
                **{name: {"path": str(path), "found": True} for name, path in of_pi.items()},
            }
        )
        return
    missing = "" if files.user.is_file() else "  (not there)"
    paths = (
        ("user", f"{files.user}{missing}"),
        ("project", str(files.project or "(none)")),
        ("defaults", str(defaults)),
        *((name.replace("_", " "), str(path)) for name, path in of_pi.items()),
    )
    run.output.fields(paths)


def _get(run: Run, name: str, *, with_origin: bool) -> None:
    """Print the value of a key: a text as it is, anything else as TOML. Raise Exit if there is none."""
    from omcli.settings.editing import known_key

    key = known_key(name)
    value = _values(run)[key]
    value = not value if key != name else value
    if run.json:
        origin = {"origin": run.settings.origin(key)} if with_origin else {}
        run.output.document({"key": name, "value": value, **origin})
    elif value is not None:
        written = value if isinstance(value, str) else toml(key, value)
        run.output.line(f"{written}  # {run.settings.origin(key)}" if with_origin else written)
    if value is None:
        raise Exit(_NO_VALUE)


def _show_schema(run: Run) -> None:
    import json

    from omcli.settings.editing import schema

    run.output.text(json.dumps(schema(), indent=2) + "\n")


def _change(run: Run, name: str, text: str | None, *, is_local: bool) -> None:
    """Set a key in a file or, without a text, remove it."""
    from omcli.settings.editing import known_key, value_from

    key = known_key(name)
    file = _file(run, is_local=is_local)
    value = None if text is None else value_from(name, text)
    if is_local and value is not None and not project_may_set(key, value):
        raise BadUsage(f"a project's file may not set `{name}`", hint="set it in your own file: leave out --local")
    is_changed = _write(file, name, value)
    by, now = run.settings.origin(key), _values(run)[key]
    now = not now if key != name else now
    if run.json:
        run.output.document({"path": str(file), "changed": is_changed, "key": name, "value": now, "origin": by})
    else:
        run.console.report(f"{file}: {'changed' if is_changed else 'unchanged'}")
    if value is not None and by != str(file):
        run.console.note(f"this has no effect here: `{name} = {toml(key, now)}` comes from {by}")


def _write(file: Path, name: str, value: object) -> bool:
    """Set a key in a file or, for None, remove it. Return True if that changes the file."""
    from omcli.clients import files
    from omcli.settings.editing import with_value, without_value

    with files.locked(file):
        content = files.read(file)
        try:
            before = (content or b"").decode()
            after = without_value(before, name) if value is None else with_value(before, name, value)
        except UnicodeDecodeError:
            raise BadConfiguration(f"{file}: not valid UTF-8", hint="mend it: `om config edit`") from None
        except BadConfiguration as error:
            raise BadConfiguration(f"{file}: {error.message}", hint="mend it: `om config edit`") from None
        if after != before:
            files.replace_content(file, content, after.encode(), mode=None if file.exists() else 0o600)
    return after != before


def _edit(run: Run, *, is_local: bool) -> None:
    """Have the user edit a file, which is created if it is missing, and print what is wrong with it afterwards."""
    from omcli.cli.terminal import edit_file
    from omcli.clients import files

    file = _file(run, is_local=is_local)
    if not file.exists():
        files.replace_content(file, None, _NEW_FILE.encode(), mode=0o600)
    if edit_file(file) is None:
        raise BadUsage("no editor is set", hint=f"set VISUAL or EDITOR, or edit {file}")
    read(file)
    count = len(run.settings.warnings)
    run.console.report(f"{file}: {counted(count, 'warning') if count else 'valid'}")


def _file(run: Run, *, is_local: bool) -> Path:
    """Return the file to change: the user's, or the project's."""
    return (run.files.project or Path(run.project, PROJECT_FILE)) if is_local else run.files.user


# ---- doctor


_DOCTOR_EXAMPLES = """\b
om doctor
om doctor --fix
om doctor --json | jq -r '.checks[] | select(.state == "fail") | .text'
"""


@with_shared(examples=_DOCTOR_EXAMPLES)
def doctor(
    run: Run,
    *,
    fix: Annotated[bool, option("--fix", help="Mend what can safely be mended, and say what was done.")] = False,
    thorough: Annotated[
        bool, option("--thorough", help="Check all of the store and of its index, which may take some time.")
    ] = False,
    ping: Annotated[
        bool, option("--ping", help="Send a short prompt to each model, which may cost a fraction of a cent.")
    ] = False,
) -> None:
    """Check the store, settings, hooks, schedule, models and this program.

    Each check passes, warns, fails, or is skipped because there is nothing to check; a hint says what to do. Each hook
    that runs this om is fired once, as its client does at the start of a session in an empty directory, to see it
    answer. A hook that runs any other program, even another copy of om, is only reported. Without --fix nothing is
    changed, and without --ping no model is asked.

    --fix makes files private that others can read, rebuilds a damaged index of words, releases leases of processes that
    have ended, and shortens a long write-ahead log. It changes only om's own files, and follows no links. A damaged
    store is only reported: `om restore` puts a backup in its place.

    The exit code is 1 if a check fails.
    """
    from omcli.doctor import Doctor, Result, check_all, clients, models, program, store, work

    sections = {
        "Store": store.section(run.settings),
        "Settings": program.of_settings(),
        "Hooks": clients.section(),
        "Work": work.section(),
        "Models": models.section(),
        "Program": program.of_system(),
    }
    patient = Doctor(
        run.wiring, files=run.files, environment=os.environ, project=run.project, thoroughly=thorough, pings=ping
    )
    settles = fix and not run.is_read_only("nothing is mended")
    found = list(check_all(patient, sections, settles=settles))
    results = Counter(check.result for _, check in found)
    if run.json:
        shown = [_as_dict(check) for _, check in found]
        run.output.document({"checks": shown, "failed": results[Result.FAIL]})
    else:
        for at, (heading, checks) in enumerate(groupby(found, key=lambda each: each[0])):
            run.output.text("\n" if at else "")
            run.output.results(heading, [(str(each.result), each.name, each.text, each.hint) for _, each in checks])
        run.console.report(_summary(results))
    if results[Result.FAIL]:
        raise Exit(1)


def _as_dict(check: Check) -> Mapping[str, object]:
    hint = {"hint": check.hint} if check.hint else {}
    return {"name": check.name, "state": check.result, "text": check.text, **hint}


def _summary(results: Counter[Result]) -> str:
    from omcli.doctor import Result

    words: Iterable[str] = (
        f"{results[Result.PASS]} passed",
        counted(results[Result.WARN], "warning"),
        f"{results[Result.FAIL]} failed",
        f"{results[Result.SKIP]} skipped",
    )
    return ", ".join(words)
