"""Checks of the hooks that clients run: each is fired once, to see it answer."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from omcli.base import lazily
from omcli.base.errors import OmError
from omcli.base.record import record
from omcli.clients import CLIENTS
from omcli.clients.entries import entries
from omcli.clients.events import HookCall, answer, start_event
from omcli.clients.install import TABLE, entries_of, is_found, main_file
from omcli.clients.log import RETIRED, HookRun, has_told, last_errors, last_runs, log_path
from omcli.doctor import Check, Doctor, Section, failure, pass_, shown, skip, warn
from omcli.doctor.program import is_own
from omcli.processes import GUARD
from omcli.text.instants import minute

_SESSION = "om-doctor"
_PROGRAM = lazily(r'\bOM\b[^=\n]*=\s*("(?:[^"\\\n]|\\.)*")')
"""Matches the constant with the path of om in an extension."""
_SECONDS = 10.0
"""Maximum duration of a hook. Clients wait longer, but nobody likes to."""


def section() -> Section:
    return {"hooks": _each_hook, "old hooks": _retired}


def _each_hook(doctor: Doctor) -> Iterator[Check]:
    log = log_path(doctor.environment)
    runs, errors = last_runs(log), last_errors(log)
    is_any = False
    for name in CLIENTS:
        try:
            hooks = _hooks(doctor, name)
        except OmError as error:
            yield warn(name, error.message, error.hint)
            continue
        for hook in hooks:
            yield _check(doctor, hook, runs.get(name), errors.get(name))
        if not hooks and is_found(name, doctor.environment):
            yield skip(name, f"{TABLE[name].title} is on this machine, without hooks of om", f"`om install {name}`")
        is_any = is_any or bool(hooks) or is_found(name, doctor.environment)
    if not is_any:
        yield skip("hooks", "no client found", "`om install CLIENT` has a client run hooks")


@record
class _Hook:
    client: str
    place: Path
    """File that contains the hook."""
    words: tuple[str, ...]
    """The command that the client runs."""


def _hooks(doctor: Doctor, name: str) -> tuple[_Hook, ...]:
    """Return the commands of om that a client runs for the user and in this project, each once."""
    found: dict[_Hook, None] = {}
    for project in (None, Path(doctor.project)):
        place = main_file(name, doctor.environment, project)
        commands = set(entries_of(name, doctor.environment, project).values())
        for command in sorted(commands):
            words = _start_in(place) if TABLE[name].extension else _start_of(command.removesuffix(f" hook {name}"))
            if words:
                found[_Hook(client=name, place=place, words=(*words, "hook", name))] = None
    return tuple(found)


def _start_of(command: str) -> tuple[str, ...]:
    """Return the words that start om. Its path may have spaces."""
    for module in (("-P", "-m", "omcli"), ("-m", "omcli")):
        python = command.removesuffix(f" {' '.join(module)}")
        if python != command:
            return (python, *module)
    return (command,)


def _start_in(extension: Path) -> tuple[str, ...]:
    """Return the path of om in an extension; nothing if it has none."""
    named = _PROGRAM.search(extension.read_text("utf-8", errors="replace"))
    return (str(json.loads(named[1])),) if named else ()


def _retired(doctor: Doctor) -> Iterator[Check]:
    """Check that no client still runs hooks of the retired program, by their settings and by what was logged."""
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
    except OmError:  # the check of the client's hooks tells it
        return False


def _check(doctor: Doctor, hook: _Hook, last: HookRun | None, error: HookRun | None) -> Check:
    place, again = shown(hook.place, doctor.environment), f"`om install {hook.client}` writes it again"
    program = Path(hook.words[0])
    if not program.is_file():
        return failure(hook.client, f"the hooks in {place} run {program}, which does not exist", again)
    if not os.access(program, os.X_OK):
        return failure(hook.client, f"the hooks in {place} run {program}, which cannot be executed", again)
    if doctor.settings.disabled:
        return skip(hook.client, f"hooks in {place} do nothing while om is disabled")
    found = _answer(hook.client, hook.words, doctor.environment)
    if found.error:
        return failure(hook.client, f"the hook in {place} does not answer: {found.error}", again)
    text = f"hooks in {place} answer in {found.ms} ms; {_last(last)}"
    if not is_own(program):
        return warn(hook.client, f"{text}; they run {program}, not this om", again)
    if error is not None:
        at = f"{error.event or 'a hook'} failed at {minute(error.at)}"
        return warn(hook.client, f"{text}; {at}: {error.error}", "it is logged in hooks.log and background.log")
    if last is None and hook.client == "codex":
        return warn(hook.client, text, "Codex runs hooks only once they are trusted: type /hooks in Codex")
    return pass_(hook.client, text)


def _last(run: HookRun | None) -> str:
    return "the client has not run them yet" if run is None else f"last run {minute(run.at)} ({run.event}, {run.ms} ms)"


# ---- firing


@record
class HookAnswer:
    ms: int
    error: str = ""


def _answer(client: str, words: Sequence[str], environment: Mapping[str, str]) -> HookAnswer:
    """Run a hook as its client does at the start of a session in an empty folder.

    It logs into that folder, so that nothing of it remains.
    """
    with TemporaryDirectory(prefix="om-doctor-") as folder:
        state = {"XDG_STATE_HOME": folder}
        cleared = {name: value for name, value in environment.items() if name != GUARD}
        asked = HookCall(client=client, event=start_event(client), session=_SESSION, folder=folder, source="startup")
        begun = perf_counter()
        try:
            process = subprocess.run(
                list(words),
                input=json.dumps(_given(asked)).encode(),
                capture_output=True,
                cwd=folder,
                env={**cleared, **state},
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return HookAnswer(ms=round(_SECONDS * 1000), error=f"it did not end within {_SECONDS:g} seconds")
        ms = round((perf_counter() - begun) * 1000)
        run = last_runs(log_path({**cleared, **state})).get(client)
        return HookAnswer(ms=ms, error=_fault(asked, process, run))


def _given(asked: HookCall) -> Mapping[str, object]:
    place: Mapping[str, object] = {"session_id": asked.session, "cwd": asked.folder}
    if asked.client == "cursor":
        place = {"conversation_id": asked.session, "workspace_roots": [asked.folder]}
    return {"hook_event_name": asked.event, **place, "transcript_path": None, "source": asked.source}


def _fault(asked: HookCall, process: subprocess.CompletedProcess[bytes], run: HookRun | None) -> str:
    """Return the reason why an answer is not what the client wants, or an empty string."""
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
