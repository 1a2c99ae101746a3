"""`om store`: encryption of the store, and moving it to a server."""

from __future__ import annotations

import os
from contextlib import closing
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadInput, BadUsage, InputOutput, OmError
from omcli.cli.command import Run, with_shared
from omcli.cli.console import counted
from omcli.cli.options import YesOption, argument, option
from omcli.cli.reports import ask_first
from omcli.wiring.policies import with_key

if TYPE_CHECKING:
    from collections.abc import Sequence

_STORE_EXAMPLES = """\b
om store encrypt
om store encrypt --key-command "pass show om" --backups convert
om store key > /media/usb/om.key
om store decrypt --backups convert
"""


class StoreTask(StrEnum):
    """Something to do with the store's file."""

    ENCRYPT = "encrypt"
    DECRYPT = "decrypt"
    KEY = "key"


class BackupTask(StrEnum):
    """Something to do with backups that are not encrypted although the store is, or the other way round."""

    CONVERT = "convert"
    DELETE = "delete"


@with_shared(examples=_STORE_EXAMPLES, without=["counter", "now"])
def store(
    run: Run,
    action: Annotated[StoreTask, argument(metavar="encrypt|decrypt|key", help="What to do.")],
    *,
    key_command: Annotated[
        str | None,
        option(
            "--key-command",
            metavar="CMD",
            help="For encrypt: command that prints the key. It becomes `store.key_command`.",
        ),
    ] = None,
    backups: Annotated[
        BackupTask | None,
        option("--backups", help="Encrypt (or decrypt) other backups as well, or delete them.  [default: leave them]"),
    ] = None,
    yes: YesOption = False,
) -> None:
    """Encrypt or decrypt the store.

    An encrypted store needs SQLCipher (`pip install 'omcli[encryption]'`). Its key comes from the first of these that
    is set: OM_KEY, the command `store.key_command`, the file `store.key_file`; otherwise from the system's keyring.
    `encrypt` uses that key. If the file is missing, or the keyring has no key, it makes a new one and keeps it there.
    `key` prints the key: keep it in a safe place, for without it nothing can be read.

    `encrypt` and `decrypt` copy the store, check the copy, and put it in the store's place in one step, so that they
    can be interrupted at any moment and run again. They wait up to --wait seconds until no other process uses the
    store: stop `om watch` and `om mcp` first. New backups are encrypted with the same key. Older ones are only named,
    unless --backups says what to do with them. Copies made elsewhere, transcripts and exports stay as they are.
    """
    from omcli.sqlite.cipher import known_key

    if action is not StoreTask.ENCRYPT and key_command is not None:
        raise BadUsage(f"`--key-command` does not apply to `om store {action}`")
    path = run.settings.db
    if action is StoreTask.KEY:
        _print_key(run, with_key(run.settings, lambda: known_key(path)))
        return
    if run.is_read_only(f"nothing is {action}ed"):
        return
    if backups is BackupTask.DELETE and not yes:
        needed = BadUsage("`--backups delete` cannot be undone", hint="add `--yes`, or use `--backups convert`")
        ask_first(run, f"Delete the backups of {path} that are not {action}ed?", needed=needed, refused="nothing done")
    key = _set_key(run, key_command) if action is StoreTask.ENCRYPT else None
    if key is None:
        _remove_key(run)
    left = _handle_backups(run, key, backups)
    if run.json:
        run.output.document({"store": str(path), "encrypted": key is not None, "left": list(map(str, left))})
    else:
        run.output.line(str(path))


def _print_key(run: Run, key: str | None) -> None:
    from omcli.wiring.policies import place_of_key

    if key is None:
        raise BadInput(f"{run.settings.db} is not encrypted", hint="`om store encrypt` encrypts it")
    if run.json:
        run.output.document({"key": key, "place": place_of_key(run.settings)})
    else:
        run.output.line(key)


def _set_key(run: Run, key_command: str | None) -> str:
    """Encrypt the store if it is not encrypted yet, and return its key."""
    from omcli.cli.commands.config import ConfigTask, config
    from omcli.clients.prepared import clear
    from omcli.sqlite.cipher import known_key, learn
    from omcli.sqlite.restore import change_key
    from omcli.wiring.policies import checked_key, key_printed, new_key, place_of_key

    if key_command is not None:
        checked_key(key_printed(key_command), f"`{key_command}`")
        vars(run).pop("settings", None)  # they are read again once the file is changed
        config.call(run, action=ConfigTask.SET, key="store.key_command", value=key_command)
    settings = run.settings
    _empty_spool(run)  # nothing but a store is encrypted; a missing one is created
    key = known_key(settings.db)
    if key is not None:
        run.console.report("encrypted already")
        return key
    key = new_key(settings)
    learn(key)
    change_key(settings.db, key, wait=settings.wait)
    clear(os.environ)
    run.console.report(f"encrypted; its key is in {place_of_key(settings)}")
    run.console.note("without the key nothing can be read; `om store key` prints it, for a safe place")
    _empty_spool(run)  # of those that found the store locked
    return key


def _empty_spool(run: Run) -> None:
    """Store what waits in the spool, which is not encrypted. Raise InputOutput if something is left there."""
    from omcli.sqlite.spool import state_of

    with closing(run.new_wiring()) as wiring:
        wiring.store.sessions.status()
    if left := state_of(run.settings.db):
        raise InputOutput(
            f"the spool, {left.folder}, is not encrypted, and has {left.in_words}",
            hint="try again later; delete files that cannot be read",
        )


def _remove_key(run: Run) -> None:
    from omcli.sqlite.cipher import known_key
    from omcli.sqlite.restore import change_key
    from omcli.wiring.policies import place_of_key

    settings = run.settings
    if with_key(run.settings, lambda: known_key(settings.db)) is None:
        run.console.report("not encrypted")
        return
    change_key(settings.db, None, wait=settings.wait)
    run.console.report(f"decrypted; its key stays in {place_of_key(settings)}")


def _handle_backups(run: Run, key: str | None, task: BackupTask | None) -> Sequence[Path]:
    """Do what was asked with the other copies of the store. Warn about those that are left, and return them."""
    from omcli.sqlite.restore import change_backup, other_files

    path, wait = run.settings.db, run.settings.wait
    for file in other_files(path, key) if task else ():
        try:
            change = partial(change_backup, file, key, delete=task is BackupTask.DELETE, wait=wait)
            with_key(run.settings, change)
        except OmError as error:
            run.console.warn(error.message)
    if left := other_files(path, key):
        names, state = ", ".join(each.name for each in left), "not encrypted with its key" if key else "still encrypted"
        hint = "" if task is BackupTask.CONVERT else " (`--backups convert` or `--backups delete` changes that)"
        run.console.warn(
            f"{counted(len(left), 'file')} beside it {'are' if len(left) > 1 else 'is'} {state}: {names}{hint}"
        )
    return left
