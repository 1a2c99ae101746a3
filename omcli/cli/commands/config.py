"""`om config`: the settings and their origins; `om doctor`: the state of everything that om depends on."""

from __future__ import annotations

import os
from collections import Counter
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

from omcli.cli.command import Run, with_shared
from omcli.cli.console import Exit, counted
from omcli.cli.options import argument, option
from omcli.settings.layers import preset_file
from omcli.settings.values import as_json, toml
from omcli.text.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omcli.doctor import Check, Result


_EXAMPLES = """\b
om config
om config show --origin | grep observe
om config show --preset lango --json | jq .settings
om config path
"""


class ConfigView(StrEnum):
    """A view of the configuration."""

    SHOW = "show"
    PATH = "path"


@with_shared(examples=_EXAMPLES, without=["now"])
def config(
    run: Run,
    what: Annotated[
        ConfigView, argument(metavar="[show|path]", help="Print the settings, or the configuration files.")
    ] = ConfigView.SHOW,
    *,
    origin: Annotated[bool, option("--origin", help="Print where each setting comes from.")] = False,
) -> None:
    """Print the settings.

    Prints every key with its value, in the format of a configuration file. In order of precedence: options, OM_*
    variables, the project's .om.toml, your config.toml, the preset, and the defaults. Variables are named after keys:
    OM_OBSERVE_TOKENS sets observe.tokens. `om config path` prints the paths of your file, of the project's file, and of
    a file that documents every key.
    """
    if what is ConfigView.PATH:
        _show_paths(run)
    else:
        _show(run, with_origin=origin)


def _show(run: Run, *, with_origin: bool) -> None:
    # A command may contain a key, and a base URL a password.
    values = {
        key: redact(value).text if isinstance(value, str) else value for key, value in as_json(run.settings).items()
    }
    origins = {key: run.settings.origin(key) for key in values}
    if run.json:
        run.output.document({"settings": values, **({"origins": origins} if with_origin else {})})
        return
    written = {key: toml(key, value) for key, value in values.items()}
    run.output.settings(written, origins if with_origin else {})


def _show_paths(run: Run) -> None:
    files, defaults = run.files, preset_file("default")
    if run.json:
        run.output.document(
            {
                "user": {"path": str(files.user), "found": files.user.is_file()},
                "project": None if files.project is None else {"path": str(files.project), "found": True},
                "defaults": {"path": str(defaults), "found": True},
            }
        )
        return
    missing = "" if files.user.is_file() else "  (not there)"
    paths = (
        ("user", f"{files.user}{missing}"),
        ("project", str(files.project or "(none)")),
        ("defaults", str(defaults)),
    )
    run.output.fields(paths)


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
    store is only reported: restore a backup.

    The exit code is 1 if a check fails.
    """
    from omcli.doctor import Doctor, Result, check_all, clients, models, program, store, work

    sections = {
        "Store": store.section(),
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
