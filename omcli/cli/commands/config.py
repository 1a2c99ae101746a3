"""`om config`: what a run goes by, and who says so."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from omcli.cli.arguments import argument, option
from omcli.cli.command import with_shared
from omcli.cli.run import Run

_EXAMPLES = """\b
om config
om config show --origin | grep observe
om config show --preset lango --json | jq .settings
om config path
"""

_WIDEST = 60
"""Where the origins begin, at most."""


class What(StrEnum):
    """What is asked."""

    SHOW = "show"
    PATH = "path"


@with_shared(examples=_EXAMPLES, without=["now"])
def config(
    run: Run,
    what: Annotated[
        What, argument(metavar="[show|path]", help="The settings, or the files that are looked for.")
    ] = What.SHOW,
    *,
    origin: Annotated[bool, option("--origin", help="Say of every setting where it comes from.")] = False,
) -> None:
    """Show the settings: every key with its value.

    They are printed as a configuration file would say them. Flags go before OM_* variables, those before .om.toml, your
    config.toml, the preset and the defaults. A variable is named for its key: OM_OBSERVE_TOKENS says what
    observe.tokens is. `om config path` names your file, the project's, and one that explains every key.
    """
    if what is What.PATH:
        _show_paths(run)
    else:
        _show(run, with_origin=origin)


def _show(run: Run, *, with_origin: bool) -> None:
    from omcli.settings.values import shown, toml
    from omcli.text.redaction import redact

    # A command may have a key among its arguments, a base URL a password.
    values = {
        key: redact(value).text if isinstance(value, str) else value for key, value in shown(run.settings).items()
    }
    origins = {key: run.settings.origin(key) for key in values}
    if run.json:
        run.output.document({"settings": values, **({"origins": origins} if with_origin else {})})
        return
    lines = {key: f"{key} = {toml(key, value)}" for key, value in values.items()}
    widest = max(map(len, lines.values())) if with_origin else 0
    for key, line in lines.items():
        run.output.line(f"{line:<{min(widest, _WIDEST)}}  # {origins[key]}" if with_origin else line)


def _show_paths(run: Run) -> None:
    from omcli.settings.layers import preset_file

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
    run.output.line(f"{'user':<12}  {files.user}{missing}")
    run.output.line(f"{'project':<12}  {files.project or '(none)'}")
    run.output.line(f"{'defaults':<12}  {defaults}")
