"""`om store`: encryption of the store, and moving it to a server."""

from __future__ import annotations

import os
from contextlib import closing
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadInput, BadUsage, InputOutput, NoInput, OmError
from omcli.cli.command import Run, with_shared
from omcli.cli.console import counted
from omcli.cli.options import YesOption, argument, option
from omcli.cli.reports import ask_first, store_file
from omcli.wiring.policies import with_key

if TYPE_CHECKING:
    from collections.abc import Sequence

_STORE_EXAMPLES = """\b
om store encrypt
om store encrypt --key-command "pass show om" --backups convert
om store key > /media/usb/om.key
om store decrypt --backups convert
om store migrate --to postgresql://memory@db.example/om
om store migrate --to ./memory.db --db postgresql://memory@db.example/om
om store init --roles --db postgresql:///om | psql om
"""


class StoreTask(StrEnum):
    """Something to do with the whole store."""

    ENCRYPT = "encrypt"
    DECRYPT = "decrypt"
    KEY = "key"
    MIGRATE = "migrate"
    INIT = "init"


class BackupTask(StrEnum):
    """Something to do with backups that are not encrypted although the store is, or the other way round."""

    CONVERT = "convert"
    DELETE = "delete"


@with_shared(examples=_STORE_EXAMPLES, without=["counter", "now"])
def store(
    run: Run,
    action: Annotated[StoreTask, argument(metavar="encrypt|decrypt|key|migrate|init", help="What to do.")],
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
    to: Annotated[
        str | None,
        option("--to", metavar="PLACE", help="For migrate: an empty database (postgresql://…), or a file."),
    ] = None,
    roles: Annotated[
        bool, option("--roles", help="For init: print the SQL that lets other users of a server read or write.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Encrypt or decrypt the store, or copy it to a server or back.

    `migrate` copies the store to the place given by --to: from a file to a PostgreSQL database, or back. Everything is
    copied, and the copy is compared with the store in the end. Nobody can write to the store meanwhile. If the copy is
    interrupted, run it again: it goes on where it was. The store stays as it is: set `db` or OM_DB to use the copy.
    `init` creates the store. With --roles it prints SQL instead, for the owner of a server: see om-store(5).

    An encrypted store needs SQLCipher (`pip install 'omcli[encryption]'`). Its key comes from the first of these that
    is set: OM_KEY, the command `store.key_command`, the file `store.key_file`; otherwise from the system's keyring.
    `encrypt` uses that key. If the file is missing, or the keyring has no key, it makes a new one and keeps it there.
    `key` prints the key: keep it in a safe place, for without it nothing can be read.

    `encrypt` and `decrypt` copy the store, check the copy, and put it in the store's place in one step, so that they
    can be interrupted at any moment and run again. They wait up to --wait seconds until no other process uses the
    store: stop `om watch` and `om mcp` first. New backups are encrypted with the same key. Older ones are only named,
    unless --backups says what to do with them. Copies made elsewhere, transcripts and exports stay as they are.
    """
    _check_options(action, key_command=key_command, to=to, roles=roles, backups=backups)
    if to is not None:
        _migrate(run, to)
    elif action is StoreTask.INIT:
        _init(run, roles=roles)
    else:
        path = store_file(run, f"om store {action}", hint="encryption is up to the server and its disks")
        if action is StoreTask.KEY:
            _print_key(run, path)
        elif not run.is_read_only(f"nothing is {action}ed"):
            _change_key(run, path, action, key_command=key_command, backups=backups, yes=yes)


def _check_options(
    action: StoreTask, *, key_command: str | None, to: str | None, roles: bool, backups: BackupTask | None
) -> None:
    """Raise BadUsage for an option that does not apply to what is to be done."""
    given = {
        "--key-command": (key_command, (StoreTask.ENCRYPT,)),
        "--to": (to, (StoreTask.MIGRATE,)),
        "--roles": (roles or None, (StoreTask.INIT,)),
        "--backups": (backups, (StoreTask.ENCRYPT, StoreTask.DECRYPT, StoreTask.KEY)),
    }
    for name, (value, actions) in given.items():
        if value is not None and action not in actions:
            raise BadUsage(f"`{name}` does not apply to `om store {action}`")
    if to is None and action is StoreTask.MIGRATE:
        raise BadUsage("`om store migrate` needs `--to`")


# ---- encryption


def _print_key(run: Run, path: Path) -> None:
    from omcli.sqlite.cipher import known_key
    from omcli.wiring.policies import place_of_key

    key = with_key(run.settings, lambda: known_key(path))
    if key is None:
        raise BadInput(f"{run.settings.db} is not encrypted", hint="`om store encrypt` encrypts it")
    if run.json:
        run.output.document({"key": key, "place": place_of_key(run.settings)})
    else:
        run.output.line(key)


def _change_key(
    run: Run, path: Path, action: StoreTask, *, key_command: str | None, backups: BackupTask | None, yes: bool
) -> None:
    """Encrypt or decrypt the store, and the backups as far as that was asked for."""
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
    path = run.wiring.spool_path
    key = known_key(path)
    if key is not None:
        run.console.report("encrypted already")
        return key
    key = new_key(settings)
    learn(key)
    change_key(path, key, wait=settings.wait)
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
    if left := state_of(run.wiring.spool_path):
        raise InputOutput(
            f"the spool, {left.folder}, is not encrypted, and has {left.in_words}",
            hint="try again later; delete files that cannot be read",
        )


def _remove_key(run: Run) -> None:
    from omcli.sqlite.cipher import known_key
    from omcli.sqlite.restore import change_key
    from omcli.wiring.policies import place_of_key

    settings, path = run.settings, run.wiring.spool_path
    if with_key(settings, lambda: known_key(path)) is None:
        run.console.report("not encrypted")
        return
    change_key(path, None, wait=settings.wait)
    run.console.report(f"decrypted; its key stays in {place_of_key(settings)}")


def _handle_backups(run: Run, key: str | None, task: BackupTask | None) -> Sequence[Path]:
    """Do what was asked with the other copies of the store. Warn about those that are left, and return them."""
    from omcli.sqlite.restore import change_backup, other_files

    path, wait = run.wiring.spool_path, run.settings.wait
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


# ---- moving it to a server


def _migrate(run: Run, to: str) -> None:
    from omcli.postgres import PostgresStore
    from omcli.postgres.moving import copy_store
    from omcli.settings.settings import ServerUrl, place_of
    from omcli.sqlite import SqliteStore

    place, db, wait = place_of(to), run.settings.db, run.settings.wait
    if isinstance(place, ServerUrl) and place.fault:
        raise BadUsage(f"`--to` {place.fault}")
    if not run.wiring.has_store:
        raise NoInput(f"{db} does not exist", hint="name the store to copy with --db")
    if place == db:
        raise BadUsage(f"{db} is the store itself", hint="name another place with --to")
    if run.is_read_only("nothing is copied"):
        return
    opened = PostgresStore.open(place.url, wait=wait, name=str(place)) if isinstance(place, ServerUrl) else None
    with opened or SqliteStore.open(Path(to), wait=wait) as target:
        copied = copy_store(run.wiring.store, target)
    if run.json:
        run.output.document({"store": str(db), "to": str(place), "copied": dict(copied)})
        return
    run.console.report(f"copied {counted(copied['messages'], 'message')} and {counted(copied['observations'], 'row')}")
    run.output.line(str(place))
    run.console.note(f"{db} stays as it is; set `db` or OM_DB to use the copy")


def _init(run: Run, *, roles: bool) -> None:
    if roles:
        from omcli.postgres.roles import roles as sql_of_roles

        run.output.line(sql_of_roles().rstrip("\n"))
        return
    if run.is_read_only("nothing is created"):
        return
    run.wiring.store.sessions.status()
    if run.json:
        run.output.document({"store": str(run.settings.db)})
    else:
        run.output.line(str(run.settings.db))
