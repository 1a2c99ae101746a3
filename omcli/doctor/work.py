"""Checks of the work that waits: messages, transcripts, leases, failures, background workers and the schedule."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from omcli.base.errors import CannotCreate, InputOutput, OmError
from omcli.base.record import replace
from omcli.doctor import DAY, Check, Doctor, Section, counted, failure, pass_, shown, size, skip, warn
from omcli.memory.message import Message
from omcli.memory.transcript import Facts, Origin, Reason
from omcli.processes import state_folder
from omcli.schedules import NAMES, scheduler
from omcli.schedules.job import SUCCESS_CODES, run_command
from omcli.settings import is_off_in
from omcli.sqlite import checks
from omcli.sqlite.lanes import is_gone
from omcli.text.instants import instant, minute
from omcli.wiring.consolidate_inputs import changed_files
from omcli.wiring.inputs import asked, terms, transcript
from omcli.workers import full_name, last_run, log_file

_LONG_PENDING = 2 * DAY
_STALE = {"consolidate": 2 * DAY, "tick": DAY}
"""Seconds since the last run of a scheduled command after which the doctor warns. It should run at least once a day."""
_END = 4_000
"""Bytes to read from the end of the log of a scheduled command."""
_ERROR = "om: error: "
_MOST_NAMES = 5
_RUN_TIMES = ("ExecMainExitTimestampUSec", "ExecMainStatus")


def section() -> Section:
    return {
        "pending": _pending,
        "errors": _errors,
        "leases": _leases,
        "background": _worker,
        "schedule": _schedule,
        "transcripts": _transcript_files,
        "records": _records,
    }


def _pending(doctor: Doctor) -> Iterator[Check]:
    if not doctor.has_store:
        return
    found = checks.waiting_counts(doctor.store.database)
    if not found.messages:
        yield pass_("pending", "every message is observed")
        return
    since = f" since {minute(found.since)}" if found.since else ""
    text = f"{counted(found.messages, 'message')} not observed yet{since}, {counted(found.tokens, 'token')}"
    if found.since and found.since < doctor.ago(_LONG_PENDING):
        yield warn("pending", text, "`om tick` observes what is due, `om consolidate` all")
    else:
        yield pass_("pending", text)


def _errors(doctor: Doctor) -> Iterator[Check]:
    """Report work that failed, and models that are not asked again yet. A failure of the last day is a warning, because
    it may pass by itself; an older one fails the check.
    """
    if not doctor.has_store:
        return
    found = doctor.store.sessions.status().errors
    for each in found:
        says = failure if each.at < doctor.ago(DAY) else warn
        text = f"{each.lane} of {each.session or 'all sessions'} failed at {minute(each.at)}: {each.error}"
        yield says("errors", text, f"`om {'tick' if each.session else 'consolidate'}` tries again")
    waiting = doctor.wiring.waiting_models()
    for model in waiting:
        yield warn("errors", f"{model.lane}: {model.reason}", "`--again` asks now")
    if not (found or waiting):
        yield pass_("errors", "no open failure")


def _leases(doctor: Doctor) -> Iterator[Check]:
    if not doctor.has_store:
        return
    held = checks.held_leases(doctor.store.database)
    gone = [lane for lane in held if lane.is_gone]
    for lane in gone:
        text = f"{lane.name} has ended without giving its lease back"
        yield warn(
            "leases",
            text,
            "the next run takes it over; `om doctor --fix` releases it now",
            partial(_release, doctor, lane),
        )
    if not gone:
        yield pass_("leases", "; ".join(lane.name for lane in held[:_MOST_NAMES]) or "none is held")


def _release(doctor: Doctor, lane: checks.HeldLane) -> str:
    doctor.write(lambda store: checks.release(store.database, lane))
    return "released"


def _worker(doctor: Doctor) -> Iterator[Check]:
    log = log_file(doctor.environment)
    ran = last_run(log, full_name(doctor.settings.db))
    if ran is None:
        return
    where = f"its log is {shown(log, doctor.environment)}"
    if ran.ended is None:
        if is_gone(ran.owner):
            yield warn("background", f"the worker of {minute(ran.at)} was killed", f"`om tick` goes on; {where}")
        else:
            yield pass_("background", f"a worker is running since {minute(ran.at)}")
    elif ran.ended:
        yield warn(
            "background", f"the last worker ended at {minute(ran.at)} with {ran.ended}: {ran.error or ''}", where
        )
    else:
        yield pass_("background", f"the last worker ended well at {minute(ran.at)}")


# ---- the schedule


def _schedule(doctor: Doctor) -> Iterator[Check]:
    found = [(name, job) for name in NAMES for job in SUCCESS_CODES if _is_installed(doctor, name, job)]
    for name, job in found:
        yield _last_run(doctor, name, job)
    if not found:
        yield skip("schedule", "no scheduled job", "`om schedule` runs `om consolidate` daily")


def _is_installed(doctor: Doctor, name: str, job: str) -> bool:
    if name == "launchd" and sys.platform != "darwin":
        return False
    try:
        return bool(scheduler(name, doctor.environment).remove(job, dry_run=True).changes)
    except (CannotCreate, InputOutput):  # this machine has no cron, or does not let the user read the table
        return False


def _last_run(doctor: Doctor, name: str, job: str) -> Check:
    at, error = _of_systemd(job) if name == "systemd" else _of_log(doctor, job)
    if at is None:
        return pass_("schedule", f"{name} runs om {job}; it has not run yet")
    text = f"{name} runs om {job}; last at {minute(at)}"
    log = f"journalctl --user -u om-{job}" if name == "systemd" else str(_job_log(doctor, job))
    if error:
        return warn("schedule", f"{text}, which failed: {error}", f"its log: {shown(log, doctor.environment)}")
    if at < doctor.ago(_STALE[job]):
        return warn(
            "schedule", f"{text}, which is long ago", f"is {name} running? `om schedule` installs the job again"
        )
    return pass_("schedule", text)


def _job_log(doctor: Doctor, job: str) -> Path:
    return Path(state_folder(doctor.environment), f"{job}.log")


def _of_log(doctor: Doctor, job: str) -> tuple[str | None, str]:
    """Return the time and the error of a job's last run, from its log. A run touches the file at its start, and prints
    its error last.
    """
    log = _job_log(doctor, job)
    try:
        changed = log.stat().st_mtime
        with log.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _END))
            lines = stream.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return None, ""
    said = [line for line in lines if not line.startswith("hint: ")][-1:]
    return instant(changed), next((line.removeprefix(_ERROR) for line in said if line.startswith(_ERROR)), "")


def _of_systemd(job: str) -> tuple[str | None, str]:
    words = [f"--property={name}" for name in _RUN_TIMES]
    found = run_command("systemctl", "--user", "show", f"om-{job}.service", "--timestamp=unix", *words)
    told = dict(line.partition("=")[::2] for line in found.output.decode().splitlines()) if found else {}
    at = told.get("ExecMainExitTimestampUSec") or told.get("ExecMainExitTimestamp") or ""
    code = told.get("ExecMainStatus", "0")
    is_known = at.removeprefix("@").isdecimal() and at not in ("0", "@0")
    is_good = code in ("0", *map(str, SUCCESS_CODES[job]))
    return instant(float(at.removeprefix("@"))) if is_known else None, "" if is_good else f"exit code {code}"


# ---- transcripts


def _transcript_files(doctor: Doctor) -> Iterator[Check]:
    if doctor.is_damaged:
        return
    said = doctor.settings.consolidate
    taken_in = doctor.store.bookmarks.files() if doctor.has_store else ()
    found = changed_files(said.places, taken_in, doctor.environment, others=True, without=said.notes)
    for place in (*found.missing, *found.unseen):
        yield warn("transcripts", f"cannot be read: {place}", "`consolidate.places` names it" if said.places else "")
    origins = {each.origin.path: each.origin for each in taken_in}
    new = [
        path.stat()
        for file in found.changed
        if (path := Path(file.name)).is_file() and not _is_read(doctor, file.name, origins.get(os.path.realpath(path)))
    ]
    number = found.unchanged + len(found.changed)
    if new:
        yield _new_files(doctor, new, number)
    else:
        yield pass_("transcripts", f"{counted(number, 'file')}, all taken in" if number else "none found")


def _is_read(doctor: Doctor, name: str, origin: Origin | None) -> bool:
    """Return True if no message follows the part of a file that was read, apart from messages in folders where memory
    is off.

    The stamp of a file is not enough if the file was read right after a change, as by hooks: it may have changed again
    within the same time stamp.
    """
    format_name, session = (None, None) if origin is None else asked(origin.terms)
    bookmarks = () if origin is None else doctor.store.bookmarks.find(origin)
    if origin and origin.terms != terms(format_name, session):
        # This version of the reader cannot go on from the state of another version.
        bookmarks = tuple(replace(each, carried=None) for each in bookmarks)
    is_off = False
    try:
        with transcript(name, lambda _: bookmarks, format_name=format_name, session=session) as rest:
            for item in rest.items:
                if isinstance(item, Facts) and item.cwd:
                    is_off = is_off_in(item.cwd, doctor.environment)
                elif isinstance(item, Message) and not is_off:
                    return False
    except OmError:  # the next run reports it
        return False
    return True


def _new_files(doctor: Doctor, stats: Sequence[os.stat_result], number: int) -> Check:
    new = f"{len(stats)} of {counted(number, 'file')} ({size(sum(each.st_size for each in stats))})"
    settled = (doctor.wiring.clock.milliseconds() / 1000) - DAY
    if any(each.st_mtime < settled for each in stats):
        text = f"{new} have something that is not taken in"
        return warn("transcripts", text, "`om consolidate` takes them in, and hooks do so while an agent works")
    return pass_("transcripts", f"{new} changed within a day; the next run takes them in")


def _records(doctor: Doctor) -> Iterator[Check]:
    """Check the records that could not be read or are of unknown types, as counted when files were taken in."""
    if not doctor.has_store:
        return
    skips = checks.record_skips(doctor.store.database)
    prefix = f"{Reason.UNKNOWN_TYPE}:"
    unknown = {name.removeprefix(prefix): number for name, number in skips.items() if name.startswith(prefix)}
    faults = {name: number for name, number in skips.items() if not name.startswith(prefix) and _is_fault(name)}
    if faults:
        hint = "`om observe -v FILE` names them; nothing else of these files is lost"
        yield warn("records", f"{counted(sum(faults.values()), 'record')} could not be read: {_list(faults)}", hint)
    if unknown:
        yield pass_("records", f"{counted(sum(unknown.values()), 'record')} of unknown types skipped: {_list(unknown)}")
    elif not faults:
        yield pass_("records", "every record of the transcripts taken in is known")


def _is_fault(name: str) -> bool:
    reason = name.partition(":")[0]
    return reason in {str(each) for each in Reason} and Reason(reason).is_fault


def _list(numbers: Mapping[str, int]) -> str:
    most: Sequence[str] = sorted(numbers, key=lambda name: -numbers[name])
    named = ", ".join(f"{name} ({numbers[name]})" for name in most[:_MOST_NAMES])
    return f"{named}, …" if len(most) > _MOST_NAMES else named
