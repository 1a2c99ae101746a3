"""`om doctor`: check everything that om depends on."""

from __future__ import annotations

import os
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

from omcli.cli.command import Run, with_shared
from omcli.cli.console import Exit, counted
from omcli.cli.options import option

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omcli.doctor import Check, Result

_EXAMPLES = """\b
om doctor
om doctor --fix
om doctor --json | jq -r '.checks[] | select(.state == "fail") | .text'
"""


@with_shared(examples=_EXAMPLES)
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
    that `om install` has set up is fired once, as its client does at the start of a session in an empty directory, to
    see it answer. Nothing is changed and no model is asked.

    --fix makes files private that others can read, rebuilds a damaged index of words, releases leases of processes that
    have ended, and shortens a long write-ahead log. It changes only files of om. A damaged store is only reported:
    restore a backup.

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
