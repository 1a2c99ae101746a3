"""`om config`: the settings and their origins."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from omcli.cli.command import Run, with_shared
from omcli.cli.options import argument, option
from omcli.settings.layers import preset_file
from omcli.settings.values import as_json, toml
from omcli.text.redaction import redact

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

    Prints every key with its value, in the format of a configuration file. Options take precedence over OM_* variables,
    then come .om.toml, your config.toml, the preset and the defaults. Variables are named after keys: OM_OBSERVE_TOKENS
    sets observe.tokens. `om config path` prints the paths of your file, of the project's file, and of one that
    documents every key.
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
