"""Checks of the hooks that clients run: each that starts this om is fired once, to see it answer."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from time import perf_counter

from omcli.base.errors import OmError
from omcli.base.record import record
from omcli.clients import CLIENTS
from omcli.clients.entries import WAIT, entries, hook_entries
from omcli.clients.events import HookCall, answer, start_event
from omcli.clients.files import read
from omcli.clients.install import TABLE, entries_of, is_found, main_file
from omcli.clients.json_edit import parse
from omcli.clients.log import RETIRED, HookRun, has_told, last_errors, last_run_by_client, log_path
from omcli.doctor import Check, Doctor, Section, failure, pass_, shown, skip, warn
from omcli.doctor.program import is_own_start, read_by
from omcli.processes import GUARD
from omcli.text.instants import instant, minute

_SESSION = "om-doctor"
_SECONDS = 2.0 * WAIT
"""Seconds to wait for a hook, to see how long a slow one takes."""


def section() -> Section:
    return {"hooks": _each_hook, "old hooks": _retired}


def _each_hook(doctor: Doctor) -> Iterator[Check]:
    log = log_path(doctor.environment)
    runs, errors = last_run_by_client(log), last_errors(log)
    is_any = False
    for name in CLIENTS:
        hooks: dict[_Hook, list[str]] = {}
        faults = []
        for project in (None, Path(doctor.project)):
            try:
                _add_hooks(hooks, doctor, name, project)
            except OmError as error:
                faults.append(warn(name, error.message, error.hint))
        missing = _missing_events(doctor, name, set().union(*hooks.values())) if hooks else None
        for hook in hooks:
            yield _check(doctor, hook, missing, runs.get(name), errors.get(name))
        yield from dict.fromkeys(faults)
        is_here = bool(hooks or faults)
        if not is_here and is_found(name, doctor.environment):
            is_here = True
            yield skip(name, f"{TABLE[name].title} is on this machine, without hooks of om", f"`om install {name}`")
        is_any = is_any or is_here
    if not is_any:
        yield skip("hooks", "no client found", "`om install CLIENT` has a client run hooks")


@record
class _Hook:
    client: str
    place: Path
    """File that contains the hook."""
    start: tuple[str, ...]
    """The words that start om; none if an extension does not name its om."""


def _add_hooks(hooks: dict[_Hook, list[str]], doctor: Doctor, name: str, project: Path | None) -> None:
    """Add the ways in which a client starts om, for the user or in a project, each with its events."""
    place = main_file(name, doctor.environment, project)
    for event, start in entries_of(name, doctor.environment, project):
        hooks.setdefault(_Hook(client=name, place=place, start=start), []).append(event)


def _missing_events(doctor: Doctor, name: str, events: Collection[str]) -> tuple[str, str] | None:
    """Return the reason why a client does not run all hooks, and a hint; None if it does."""
    if name == "claude-code" and (place := _off_in(doctor)):
        return f"`disableAllHooks` in {shown(place, doctor.environment)} turns them off", "remove it there"
    without = [] if TABLE[name].extension else [event for event in hook_entries(name, "") if event not in events]
    return (f"none for {', '.join(without)}", f"`om install {name}` adds them") if without else None


def _off_in(doctor: Doctor) -> Path | None:
    """Return the settings of Claude Code that turn off all hooks. The first file with `disableAllHooks` counts. Return
    None if it is false there, or if no file has it.
    """
    local = main_file("claude-code", doctor.environment, Path(doctor.project))
    for place in (local, local.with_name("settings.json"), main_file("claude-code", doctor.environment)):
        try:
            value = parse((read(place) or b"{}").decode(errors="replace")).value
        except OmError:  # the check of the hooks reports this, unless they are elsewhere
            continue
        if isinstance(value, dict) and "disableAllHooks" in value:
            return place if value["disableAllHooks"] is True else None
    return None


def _retired(doctor: Doctor) -> Iterator[Check]:
    """Check in the settings of clients and in the log that no client still runs hooks of the retired program."""
    found = [name for name in CLIENTS if TABLE[name].settings and _has_retired(main_file(name, doctor.environment))]
    for name in found:
        yield warn(
            "old hooks", f"{TABLE[name].title} runs hooks of the retired om", f"`om install {name}` replaces them"
        )
    if not found and has_told(log_path(doctor.environment), RETIRED):
        yield warn("old hooks", "a client has run hooks of the retired om", "`om install CLIENT` replaces them")


def _has_retired(settings: Path) -> bool:
    if not settings.is_file():
        return False
    text = settings.read_text("utf-8", errors="replace")
    try:
        return entries(text, or_retired=True) != entries(text)
    except OmError:  # the check of the client's hooks reports this
        return False


def _check(
    doctor: Doctor, hook: _Hook, missing: tuple[str, str] | None, last: HookRun | None, error: HookRun | None
) -> Check:
    place, is_users = shown(hook.place, doctor.environment), hook.place == main_file(hook.client, doctor.environment)
    again = f"`om install {hook.client}{'' if is_users else ' --project'}` writes it again"
    if not hook.start:
        return failure(hook.client, f"the extension {place} does not name its om", again)
    program = _path_of(hook.start[0], doctor.environment)
    if fault := _fault_of(program):
        return failure(hook.client, f"the hooks in {place} run {program}, {fault}", again)
    if doctor.settings.disabled:
        return skip(hook.client, f"hooks in {place} do nothing while om is disabled")
    words = (program, *hook.start[1:])
    if not is_own_start(words):
        # It is not run: anybody can write the files of a project.
        return warn(hook.client, f"hooks in {place} run {program}, not this om; {_last(last)}", again)
    found = _answer(hook.client, (*words, "hook", hook.client), doctor.environment)
    if found.error:
        return failure(hook.client, f"the hook in {place} does not answer: {found.error}", again)
    text = f"hooks in {place} answer in {found.ms} ms; {_last(last)}"
    if found.is_late:
        return warn(hook.client, text, f"the client waits for {WAIT} s only, and goes on without memory")
    if error is not None:
        at = f"{error.event or 'a hook'} failed at {minute(error.at)}"
        return warn(hook.client, f"{text}; {at}: {error.error}", "it is logged in hooks.log and background.log")
    if missing is not None:
        return warn(hook.client, f"{text}; {missing[0]}", missing[1])
    if hook.client == "codex" and (last is None or last.at < (instant(hook.place.stat().st_mtime) or "")):
        return warn(hook.client, text, "Codex runs hooks only once they are trusted: type /hooks in Codex")
    return pass_(hook.client, text)


def _path_of(word: str, environment: Mapping[str, str]) -> str:
    """Return the program that a shell runs for a word, which may be a bare name or begin with `~`."""
    if os.sep not in word:
        return which(word, path=environment.get("PATH", "")) or word
    return os.path.expanduser(word)  # noqa: PTH111 - Path.expanduser() raises if there is no home


def _fault_of(program: str) -> str:
    """Return the reason why a program cannot run, or an empty string."""
    if os.sep not in program:
        return "which is not on PATH"
    if not Path(program).is_file():
        return "which does not exist"
    if not os.access(program, os.X_OK):
        return "which cannot be executed"
    reader = read_by(Path(program))
    return f"but {reader}, which runs it, does not exist" if reader and not Path(reader).is_file() else ""


def _last(run: HookRun | None) -> str:
    return "the client has not run them yet" if run is None else f"last run {minute(run.at)} ({run.event}, {run.ms} ms)"


# ---- firing


@record
class HookAnswer:
    ms: int
    error: str = ""

    @property
    def is_late(self) -> bool:
        """True if the client would not have waited for it."""
        return self.ms > WAIT * 1000


def _answer(client: str, words: Sequence[str], environment: Mapping[str, str]) -> HookAnswer:
    """Run a hook as its client does at the start of a session in an empty folder.

    The hook logs into that folder, so that nothing of it remains.
    """
    with TemporaryDirectory(prefix="om-doctor-") as folder:
        state = {"XDG_STATE_HOME": folder}
        cleared = {name: value for name, value in environment.items() if name != GUARD}
        asked = HookCall(client=client, event=start_event(client), session=_SESSION, folder=folder, source="startup")
        given = Path(folder, "call.json")  # writing to a program that does not read would end this process (SIGPIPE)
        given.write_text(json.dumps(_given(asked)))
        begun = perf_counter()
        try:
            with given.open("rb") as stream:
                process = subprocess.run(
                    list(words),
                    stdin=stream,
                    capture_output=True,
                    cwd=folder,
                    env={**cleared, **state},
                    timeout=_SECONDS,
                    check=False,
                )
        except OSError as error:
            return HookAnswer(ms=0, error=f"it cannot be started: {error.strerror}")
        except subprocess.TimeoutExpired:
            return HookAnswer(ms=round(_SECONDS * 1000), error=f"it did not end within {_SECONDS:g} seconds")
        ms = round((perf_counter() - begun) * 1000)
        run = last_run_by_client(log_path({**cleared, **state})).get(client)
        return HookAnswer(ms=ms, error=_fault(asked, process, run))


def _given(asked: HookCall) -> Mapping[str, object]:
    place: Mapping[str, object] = {"session_id": asked.session, "cwd": asked.folder}
    if asked.client == "cursor":
        place = {"conversation_id": asked.session, "workspace_roots": [asked.folder]}
    return {"hook_event_name": asked.event, **place, "transcript_path": None, "source": asked.source}


def _fault(asked: HookCall, process: subprocess.CompletedProcess[bytes], run: HookRun | None) -> str:
    """Return the reason why an answer is not valid for the client, or an empty string."""
    said = process.stdout.decode(errors="replace")
    if process.returncode:
        first = process.stderr.decode(errors="replace").strip().splitlines()[:1]
        return f"it ended with {process.returncode}: {' '.join(first)}"
    if run is not None and run.ended:
        return run.error or f"it ended with {run.ended}"
    if not said.strip():
        return ""
    try:
        given = json.loads(said)
    except ValueError:
        return "its answer is not JSON"
    return "" if _shape(given) == _shape(answer(asked, "")) else "its answer has another form than the client wants"


def _shape(value: object) -> object:
    """Return the keys of an object, and the types of its values."""
    return {key: _shape(inner) for key, inner in value.items()} if isinstance(value, dict) else type(value)
